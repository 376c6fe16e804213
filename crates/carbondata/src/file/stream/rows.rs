//! Rows of a stream to columns.
//!
//! ```text
//! row = i16 k | k bytes of null bits | the columns that are not null, in the header's order
//!
//! column with a dictionary    4 bytes: the code of the table's dictionary, or of the day
//! long text                   4 bytes of length, bytes
//! other dimension             2 bytes of length, bytes: texts, numbers with the sign flipped, nested columns
//! decimal                     2 bytes of length, scale, unscaled number
//! other measure               as wide as its type
//! ```
//!
//! All numbers are big-endian.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float32Array, Float64Array, Int8Array, make_array};
use arrow_buffer::NullBuffer;
use pilaster_core::{Error, Result};

use super::nested;
use crate::file::layout::CarbonFile;
use crate::file::page::encoding;
use crate::file::page::strings::{self, LengthWidth};
use crate::file::page::words;
use crate::file::types::{CarbonType, ColumnNode};
use crate::legacy::times;
use crate::messages::ColumnSchema;

/// What a value takes while its column is put together.
pub(super) const CELL_BYTES: u64 = size_of::<Option<&[u8]>>() as u64;

/// How long a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Fixed(usize),
    /// A length of two bytes, then as many.
    Short,
    /// A length of four bytes, then as many.
    Long,
}

impl Form {
    /// Cuts a value off.
    pub fn take(self, bytes: &[u8]) -> Result<(&[u8], &[u8])> {
        let cut = || Error::corrupt("a whole row", "the end of its bytes");
        let (length, bytes) = match self {
            Self::Fixed(length) => (length, bytes),
            Self::Short => {
                let (length, rest) = bytes.split_first_chunk().ok_or_else(cut)?;
                (usize::from(u16::from_be_bytes(*length)), rest)
            }
            Self::Long => {
                let (length, rest) = bytes.split_first_chunk().ok_or_else(cut)?;
                (usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX), rest)
            }
        };
        bytes.split_at_checked(length).ok_or_else(cut)
    }
}

/// What the rows of a file are like.
pub(super) struct Rows<'f> {
    pub file: &'f CarbonFile,
    /// The columns of a row in their order. Children have no place of their own: they lie inside their parents.
    pub columns: Vec<&'f ColumnNode>,
    /// Whether the bytes of children have lengths of four bytes, as since release 2.0.
    has_long_children: bool,
}

impl<'f> Rows<'f> {
    pub fn of(file: &'f CarbonFile) -> Self {
        let mut columns: Vec<_> = file.columns.iter().collect();
        columns.sort_by_key(|node| node.chunk);
        Self { file, columns, has_long_children: names_compressor(file.name()) }
    }

    fn schema_of(&self, node: &ColumnNode) -> Option<&'f ColumnSchema> {
        self.file.header.columns.get(node.chunk)
    }

    /// Whether values of a column are codes.
    fn is_coded(&self, node: &ColumnNode) -> bool {
        let lists = |column: &ColumnSchema| column.encoders.contains(&encoding::DICTIONARY);
        !node.carbon_type.is_nested() && self.schema_of(node).is_some_and(lists)
    }

    fn form(&self, node: &ColumnNode) -> Form {
        match (node.carbon_type, node.is_dimension) {
            (CarbonType::Date, true) => Form::Fixed(4),
            (_, true) if self.is_coded(node) => Form::Fixed(4),
            (CarbonType::Varchar, true) => Form::Long,
            (_, true) | (CarbonType::Decimal { .. }, false) => Form::Short,
            (CarbonType::Boolean | CarbonType::Byte, false) => Form::Fixed(1),
            (CarbonType::Short, false) => Form::Fixed(2),
            (CarbonType::Int | CarbonType::Float | CarbonType::Date, false) => Form::Fixed(4),
            (CarbonType::Long | CarbonType::Double | CarbonType::Timestamp, false) => Form::Fixed(8),
            (_, false) => Form::Short,
        }
    }

    /// The form of a value inside of a nested column.
    pub fn child_form(&self, node: &ColumnNode) -> Form {
        let is_bytes = matches!(
            node.carbon_type,
            CarbonType::String
                | CarbonType::Varchar
                | CarbonType::Binary
                | CarbonType::Date
                | CarbonType::Decimal { .. }
        );
        match self.is_coded(node) {
            true => Form::Fixed(4),
            false if is_bytes && self.has_long_children => Form::Long,
            false => Form::Short,
        }
    }

    /// Cuts the first row off; `found` gets its values.
    pub fn cut<'a>(
        &self,
        bytes: &'a [u8],
        mut found: impl FnMut(&ColumnNode, Option<&'a [u8]>),
    ) -> Result<&'a [u8]> {
        let (nulls, mut rest) = Form::Short.take(bytes)?;
        for (place, node) in self.columns.iter().enumerate() {
            if pilaster_encoding::bits::get(nulls, place) && place / 8 < nulls.len() {
                found(node, None);
                continue;
            }
            let (value, after) = self.form(node).take(rest)?;
            rest = after;
            found(node, Some(value));
        }
        Ok(rest)
    }

    /// Cuts one column out of `rows` rows.
    pub fn column(&self, bytes: &[u8], node: &ColumnNode, rows: usize) -> Result<ArrayRef> {
        // A row has at least the length of its null bits.
        if rows > bytes.len() / 2 {
            return Err(Error::corrupt(format!("{rows} rows"), format!("{} bytes", bytes.len())));
        }
        self.file.limits.decoded((rows as u64).saturating_mul(CELL_BYTES))?;
        let mut column = Vec::with_capacity(rows);
        let mut rest = bytes;
        for _ in 0..rows {
            rest = self.cut(rest, |other, value| {
                if other.chunk == node.chunk {
                    column.push(value);
                }
            })?;
        }
        if !rest.is_empty() {
            return Err(Error::corrupt(format!("{rows} rows"), format!("{} bytes more", rest.len())));
        }
        match node.carbon_type.is_nested() {
            true => nested::array(self, node, &column),
            false => self.array(node, &column),
        }
    }

    /// An array of values without children, as they were cut out.
    pub fn array(&self, node: &ColumnNode, column: &[Option<&[u8]>]) -> Result<ArrayRef> {
        let given = NullBuffer::from_iter(column.iter().map(Option::is_some));
        let array = self.values(node, column)?;
        if given.null_count() == 0 {
            return Ok(array);
        }
        let nulls = NullBuffer::union(Some(&given), array.nulls());
        Ok(make_array(array.to_data().into_builder().nulls(nulls).build()?))
    }

    /// The same, where nulls may be any value.
    fn values(&self, node: &ColumnNode, column: &[Option<&[u8]>]) -> Result<ArrayRef> {
        let values = column.iter().map(|value| value.unwrap_or_default());
        let is_coded = self.is_coded(node);
        if node.has_table_dictionary {
            let Some((words, _)) = self.file.dictionaries.get(&node.chunk) else {
                return Err(Error::invalid(format!("column {:?} without its dictionary", node.field.name())));
            };
            // Null is code 1.
            let code = |bytes: &[u8]| bytes.first_chunk().map_or(1, |bytes| u32::from_be_bytes(*bytes));
            let codes: Vec<_> = values.map(code).collect();
            return words.values(words::Words::keys(words, &codes)?.into());
        }
        Ok(match node.carbon_type {
            // Children have the sign flipped, as dimensions do.
            CarbonType::Double => {
                let flip = if node.is_dimension { 1 << 63 } else { 0 };
                let value = |bytes| f64::from_bits(u64::from_be_bytes(bytes) ^ flip);
                Arc::new(values.map(|bytes| Ok(exact(bytes)?.map(value))).collect::<Result<Float64Array>>()?)
            }
            CarbonType::Float => {
                let flip = if node.is_dimension { 1 << 31 } else { 0 };
                let value = |bytes| f32::from_bits(u32::from_be_bytes(bytes) ^ flip);
                Arc::new(values.map(|bytes| Ok(exact(bytes)?.map(value))).collect::<Result<Float32Array>>()?)
            }
            CarbonType::Byte if !node.is_dimension || node.is_child => {
                let value = |bytes| i8::from_be_bytes(bytes);
                Arc::new(values.map(|bytes| Ok(exact(bytes)?.map(value))).collect::<Result<Int8Array>>()?)
            }
            CarbonType::Timestamp if is_coded => {
                let stored: Vec<u8> =
                    values.flat_map(|bytes| bytes.first_chunk::<4>().copied().unwrap_or([0; 4])).collect();
                times(&stored)?
            }
            carbon_type => {
                let bytes = behind_lengths(values, self.flips_sign(node))?;
                strings::array(bytes.into(), LengthWidth::Four, carbon_type, Some(column.len()))?
            }
        })
    }

    /// Whether numbers must get the sign bit flipped to be in the form of dimensions: days that are codes, and measures.
    fn flips_sign(&self, node: &ColumnNode) -> bool {
        match node.carbon_type {
            CarbonType::Date => !node.is_child || self.is_coded(node),
            CarbonType::Short | CarbonType::Int | CarbonType::Long | CarbonType::Timestamp => {
                !node.is_dimension
            }
            _ => false,
        }
    }
}

/// The bytes of a number, none of null.
fn exact<const N: usize>(bytes: &[u8]) -> Result<Option<[u8; N]>> {
    match bytes.try_into() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(_) if bytes.is_empty() => Ok(None),
        Err(_) => Err(Error::corrupt(format!("a number of {N} bytes"), format!("{} bytes", bytes.len()))),
    }
}

/// Whether the name of a file has its compressor, as since release 2.0.
pub(crate) fn names_compressor(name: &str) -> bool {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = name.strip_suffix(".carbondata").and_then(|stem| stem.rsplit_once('-'));
    stem.is_some_and(|(_, stamp)| stamp.contains('.'))
}

/// Values as pages have them.
fn behind_lengths<'a>(values: impl Iterator<Item = &'a [u8]>, flips_sign: bool) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for value in values {
        let length = u32::try_from(value.len());
        out.extend(length.map_err(|_| Error::corrupt("less than 4 GiB of rows", "more"))?.to_be_bytes());
        let start = out.len();
        out.extend_from_slice(value);
        if let Some(byte) = out.get_mut(start).filter(|_| flips_sign) {
            *byte ^= 0x80;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use pilaster_core::{ErrorKind, Limits};

    use super::super::sample;
    use super::*;

    #[test]
    fn values_are_cut_by_their_form() {
        assert_eq!(Form::Short.take(b"\0\x02abc").unwrap(), (&b"ab"[..], &b"c"[..]));
        assert_eq!(Form::Long.take(b"\0\0\0\x01ab").unwrap(), (&b"a"[..], &b"b"[..]));
        assert_eq!(Form::Fixed(2).take(b"abc").unwrap(), (&b"ab"[..], &b"c"[..]));
        for form in [Form::Short, Form::Long, Form::Fixed(3)] {
            assert!(form.take(b"\xff\xff").is_err());
        }
    }

    /// Lengths of children stand in the rows, so they may be any.
    #[test]
    fn numbers_inside_of_nested_columns_have_their_width_or_are_null() {
        for (data_type, width) in [(sample::DOUBLE, 8), (sample::FLOAT, 4), (sample::BYTE, 1)] {
            let read = |length: u16| {
                let child = [length.to_be_bytes().to_vec(), vec![1; usize::from(length)]].concat();
                let value = [vec![0, 1], child].concat();
                let length = u16::try_from(value.len()).unwrap().to_be_bytes().to_vec();
                let row = sample::row(&[length, value].concat());
                let bytes = sample::file(&sample::structure(1, data_type), &[(1, None, row)]);
                let file = sample::open(bytes, Limits::default()).unwrap();
                let array = file.stream.as_ref().unwrap().decode(&file, 0, &file.columns[0], 1)?;
                Ok::<_, Error>(array.as_struct().column(0).null_count())
            };
            assert_eq!((read(0).unwrap(), read(width).unwrap()), (1, 0));
            for length in (1..12).filter(|length| *length != width) {
                let error = read(length).unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Corrupt { .. }), "{data_type} {length}: {error}");
            }
        }
    }

    #[test]
    fn names_of_release_2_have_a_compressor() {
        assert!(names_compressor("a/part-0-0_batchno0-0-0.1-17.zstd.carbondata"));
        assert!(!names_compressor("a.b/part-0-0_batchno0-0-0.1-17.carbondata"));
    }
}
