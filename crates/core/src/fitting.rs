//! Batches that fit in memory once their values are written out.
//!
//! Views and dictionaries let many rows share the same bytes: a word of 300 KB, 8,192 times, takes 300 KB. Text with offsets
//! repeats it for each row, 2.4 GB here, which is more than offsets of 32 bits can tell. So what writes values out asks
//! before how many bytes they take ([`check`]); a scan that is told they are too many gives smaller batches, and so does
//! [`batches`] for those that come from elsewhere.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{
    AnyDictionaryArray, Array, ArrayRef, GenericByteViewArray, GenericListArray, OffsetSizeTrait,
    RecordBatch, RecordBatchReader,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, SchemaRef};

use crate::dataset::BatchReader;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::memory;

/// Name of the limit in [`Limits`].
const LIMIT: &str = "batch_bytes";

/// Bytes that strings take if each value is written out, those inside lists, structs and maps included. Numbers do not count:
/// as many rows as a batch has are few.
pub fn value_bytes(array: &dyn Array) -> u64 {
    if let Some(words) = array.as_any_dictionary_opt() {
        return word_bytes(words, array.nulls());
    }
    match array.data_type() {
        DataType::Utf8View => view_bytes(array.as_string_view()),
        DataType::BinaryView => view_bytes(array.as_binary_view()),
        DataType::Utf8 => span(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => span(array.as_string::<i64>().value_offsets()),
        DataType::Binary => span(array.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => span(array.as_binary::<i64>().value_offsets()),
        DataType::FixedSizeBinary(width) => {
            u64::try_from(*width).unwrap_or_default().saturating_mul(array.len() as u64)
        }
        DataType::List(_) => list_bytes(array.as_list::<i32>()),
        DataType::LargeList(_) => list_bytes(array.as_list::<i64>()),
        DataType::FixedSizeList(..) => value_bytes(array.as_fixed_size_list().values()),
        DataType::Map(..) => {
            let map = array.as_map();
            inside(map.entries(), map.value_offsets())
        }
        DataType::Struct(_) => {
            array.as_struct().columns().iter().fold(0, |sum, column| sum.saturating_add(value_bytes(column)))
        }
        _ => 0,
    }
}

fn view_bytes<T: ByteViewType + ?Sized>(array: &GenericByteViewArray<T>) -> u64 {
    // The lowest four bytes of a view are the length of its value.
    let length = |view: &u128| view.to_le_bytes().first_chunk().map_or(0, |four| u32::from_le_bytes(*four));
    array.views().iter().map(|view| u64::from(length(view))).sum()
}

fn word_bytes(codes: &dyn AnyDictionaryArray, nulls: Option<&NullBuffer>) -> u64 {
    let words = codes.values();
    if value_bytes(words) == 0 {
        return 0;
    }
    // Each word is measured once.
    let mut lengths = vec![None; words.len()];
    let mut sum = 0u64;
    for (row, key) in codes.normalized_keys().into_iter().enumerate() {
        if nulls.is_none_or(|nulls| nulls.is_valid(row))
            && let Some(known) = lengths.get_mut(key)
        {
            sum = sum.saturating_add(*known.get_or_insert_with(|| value_bytes(&words.slice(key, 1))));
        }
    }
    sum
}

fn span<O: OffsetSizeTrait>(offsets: &[O]) -> u64 {
    let at = |offset: Option<&O>| offset.map_or(0, |offset| offset.as_usize() as u64);
    at(offsets.last()).saturating_sub(at(offsets.first()))
}

fn list_bytes<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> u64 {
    inside(list.values(), list.value_offsets())
}

fn inside<O: OffsetSizeTrait>(elements: &dyn Array, offsets: &[O]) -> u64 {
    let start = offsets.first().map_or(0, |offset| offset.as_usize());
    let length = usize::try_from(span(offsets)).unwrap_or(usize::MAX);
    value_bytes(&elements.slice(start, length.min(elements.len().saturating_sub(start))))
}

/// Copies the strings of a view array out of the blocks that they lie in. The copy of a word that many rows share is made once for
/// each of them: ask before how many bytes that takes ([`value_bytes`]).
pub fn copied(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => Arc::clone(array),
    }
}

/// Refuses values that take more bytes than a batch may have or than offsets of 32 bits can tell.
///
/// # Errors
/// [`ErrorKind::LimitExceeded`]; see [`is_too_large`].
pub fn check(array: &dyn Array, limits: &Limits) -> Result<()> {
    check_bytes(value_bytes(array), limits)
}

/// As [`check`], for values of so many bytes that are not there yet.
///
/// # Errors
/// As [`check`].
pub fn check_bytes(found: u64, limits: &Limits) -> Result<()> {
    let max = most_bytes(limits);
    if found <= max {
        return Ok(());
    }
    Err(Error::new(ErrorKind::LimitExceeded { limit: LIMIT, max, found }))
}

/// Counts the bytes of the blocks that a batch of views keeps in memory.
#[derive(Debug, Default)]
pub struct Held(u64);

impl Held {
    /// Adds a block. One alone may have any size: no batch could do with less.
    ///
    /// # Errors
    /// As [`check`].
    pub fn add(&mut self, bytes: u64, limits: &Limits) -> Result<()> {
        let is_first = self.0 == 0;
        self.0 = self.0.saturating_add(bytes);
        if is_first { Ok(()) } else { check_bytes(self.0, limits) }
    }
}

fn most_bytes(limits: &Limits) -> u64 {
    limits.batch_bytes.min(i32::MAX as u64)
}

/// Whether a smaller batch may succeed where this one failed.
pub fn is_too_large(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::LimitExceeded { limit: LIMIT | memory::LIMIT, .. })
}

/// Does `part` for `rows`, or where that is too large for halves of them, down to single rows.
///
/// # Errors
/// Of `part`.
pub fn by_halves(rows: Range<usize>, mut part: impl FnMut(Range<usize>) -> Result<()>) -> Result<()> {
    let mut pending = vec![rows];
    while let Some(rows) = pending.pop() {
        match part(rows.clone()) {
            Err(error) if is_too_large(&error) && rows.len() > 1 => {
                let middle = rows.start.midpoint(rows.end);
                pending.extend([middle..rows.end, rows.start..middle]);
            }
            result => result?,
        }
    }
    Ok(())
}

/// The same rows in batches of which no column takes more bytes than the limits allow, as far as there is more than one row.
pub fn batches(reader: BatchReader, limits: &Limits) -> BatchReader {
    let schema = reader.schema();
    Box::new(Fitting { reader, schema, most: most_bytes(limits), pending: Vec::new() })
}

struct Fitting {
    reader: BatchReader,
    schema: SchemaRef,
    most: u64,
    /// Parts of a batch, the next at the end.
    pending: Vec<RecordBatch>,
}

impl Iterator for Fitting {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut batch = match self.pending.pop() {
            Some(batch) => batch,
            None => match self.reader.next()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            },
        };
        while batch.num_rows() > 1 && batch.columns().iter().any(|column| value_bytes(column) > self.most) {
            let half = batch.num_rows() / 2;
            self.pending.push(batch.slice(half, batch.num_rows().saturating_sub(half)));
            batch = batch.slice(0, half);
        }
        Some(Ok(batch))
    }
}

impl RecordBatchReader for Fitting {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::UInt32Type;
    use arrow_array::{
        BinaryArray, DictionaryArray, Int32Array, ListArray, RecordBatchIterator, StringViewArray,
        StructArray, UInt32Array,
    };
    use arrow_cast::cast;
    use arrow_schema::{Field, Schema};

    /// "aaaa…" of 20 bytes and "b", by turns.
    fn words(rows: u32) -> ArrayRef {
        let words = Arc::new(StringViewArray::from(vec!["a".repeat(20), "b".to_string()]));
        let keys = UInt32Array::from_iter_values((0..rows).map(|row| row % 2));
        Arc::new(DictionaryArray::<UInt32Type>::new(keys, words))
    }

    #[test]
    fn bytes_are_those_of_the_values_written_out() {
        let codes = words(10);
        assert_eq!(value_bytes(&codes), 105);
        for data_type in [
            DataType::Utf8View,
            DataType::Utf8,
            DataType::LargeUtf8,
            DataType::Binary,
            DataType::BinaryView,
            DataType::LargeBinary,
        ] {
            let array = cast(&cast(&codes, &DataType::Utf8).unwrap(), &data_type).unwrap();
            assert_eq!((value_bytes(&array), value_bytes(&array.slice(1, 3))), (105, 22), "{data_type}");
        }
        let lists = ListArray::new(
            Arc::new(Field::new("item", codes.data_type().clone(), true)),
            arrow_buffer::OffsetBuffer::from_lengths([3, 0, 7]),
            Arc::clone(&codes),
            None,
        );
        assert_eq!((value_bytes(&lists), value_bytes(&lists.slice(0, 2))), (105, 41));
        let field = Arc::new(Field::new("w", codes.data_type().clone(), true));
        assert_eq!(value_bytes(&StructArray::from(vec![(field, codes)])), 105);
        assert_eq!(value_bytes(&Int32Array::from(vec![1, 2])), 0);
        let nulls: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![None, Some(b"xy")]));
        assert_eq!(value_bytes(&nulls), 2);
    }

    #[test]
    fn batches_are_cut_until_they_fit() {
        let column = words(1000);
        let schema = Arc::new(Schema::new(vec![Field::new("w", column.data_type().clone(), false)]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
        let reader = || Box::new(RecordBatchIterator::new([Ok(batch.clone())], Arc::clone(&schema)));
        for most in [0, 30, 500, 1 << 20] {
            let limits = Limits { batch_bytes: most, ..Limits::default() };
            let parts: Vec<_> = batches(reader(), &limits).map(Result::unwrap).collect();
            assert_eq!(arrow_select::concat::concat_batches(&schema, &parts).unwrap(), batch);
            assert!(parts.iter().all(|part| part.num_rows() == 1 || value_bytes(part.column(0)) <= most));
        }
    }

    #[test]
    fn halves_are_done_in_order_and_single_rows_may_fail() {
        let limits = Limits { batch_bytes: 3, ..Limits::default() };
        let mut done = Vec::new();
        by_halves(0..10, |rows| {
            check_bytes(rows.len() as u64, &limits)?;
            done.push(rows);
            Ok(())
        })
        .unwrap();
        assert_eq!(done, [0..2, 2..5, 5..7, 7..10]);
        let error = by_halves(0..2, |_| check_bytes(4, &limits)).unwrap_err();
        assert_eq!(error.to_string(), "4 is over the limit batch_bytes = 3");
    }
}
