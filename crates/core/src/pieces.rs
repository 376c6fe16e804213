//! The rows that one read takes out of several blocks, as one array.
//!
//! Strings of blocks that follow each other become one view array at once, over the buffers of all of them: joining one
//! array a block would go over every view a second time.

use std::fmt;
use std::ops::Range;

use arrow_array::{Array, ArrayRef, new_empty_array};
use arrow_schema::DataType;
use arrow_select::concat::concat;

use crate::error::Result;
use crate::views::{ByteKind, Strings, ViewBuilder};

/// Collects pieces of a column; see the module.
pub struct Pieces<F> {
    done: Vec<ArrayRef>,
    strings: Option<ViewBuilder>,
    finish: F,
}

impl<F> fmt::Debug for Pieces<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("done", &self.done.len()).finish_non_exhaustive()
    }
}

impl<F: Fn(ArrayRef) -> Result<ArrayRef>> Pieces<F> {
    /// None yet. `finish` makes strings and codes of a dictionary what the column's type is.
    pub fn new(finish: F) -> Self {
        Self { done: Vec::new(), strings: None, finish }
    }

    /// Adds values of the column's type, or codes of a dictionary of them.
    ///
    /// # Errors
    /// Of finishing the strings before.
    pub fn push(&mut self, piece: ArrayRef) -> Result<()> {
        self.close()?;
        self.done.push(piece);
        Ok(())
    }

    /// Adds the strings `range` of a block; with them, up to `rows` rows are still to come.
    ///
    /// # Errors
    /// As [`ViewBuilder::append`]; [`crate::ErrorKind::InvalidInput`] if the block has fewer strings.
    pub fn push_strings(
        &mut self,
        kind: ByteKind,
        strings: &Strings,
        range: &Range<usize>,
        rows: usize,
    ) -> Result<()> {
        let offsets = strings.offsets_of(range)?;
        let builder = self.strings.get_or_insert_with(|| ViewBuilder::with_capacity(kind, rows));
        builder.append(strings.bytes.clone(), offsets)
    }

    /// All as one array: of codes if all pieces are codes of the same type, else of `data_type`.
    ///
    /// # Errors
    /// Of finishing or joining the pieces.
    pub fn join(mut self, data_type: &DataType) -> Result<ArrayRef> {
        self.close()?;
        let Self { mut done, finish, .. } = self;
        let is_mixed = |pair: &[ArrayRef]| matches!(pair, [a, b] if a.data_type() != b.data_type());
        if done.windows(2).any(is_mixed) {
            done = done.into_iter().map(finish).collect::<Result<_>>()?;
        }
        match done.len() {
            0 => Ok(new_empty_array(data_type)),
            1 => Ok(done.swap_remove(0)),
            _ => Ok(concat(&done.iter().map(|piece| piece as &dyn Array).collect::<Vec<_>>())?),
        }
    }

    fn close(&mut self) -> Result<()> {
        if let Some(strings) = self.strings.take() {
            self.done.push((self.finish)(strings.finish(None)?)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt32Type;
    use arrow_array::{DictionaryArray, StringViewArray, UInt32Array};
    use arrow_select::take::take;
    use std::sync::Arc;

    fn unfolded(array: ArrayRef) -> Result<ArrayRef> {
        match array.as_any_dictionary_opt() {
            Some(codes) => Ok(take(codes.values(), codes.keys(), None)?),
            None => Ok(array),
        }
    }

    fn codes(of: &[u32]) -> ArrayRef {
        let words = Arc::new(StringViewArray::from(vec!["x", "y"]));
        Arc::new(DictionaryArray::<UInt32Type>::new(UInt32Array::from(of.to_vec()), words))
    }

    #[test]
    fn strings_of_neighbours_and_codes_are_one_array() {
        let block = Strings { bytes: b"onetwothree".to_vec().into(), offsets: vec![0, 3, 6, 11] };
        let mut pieces = Pieces::new(unfolded);
        pieces.push_strings(ByteKind::Text, &block, &(1..3), 5).unwrap();
        pieces.push_strings(ByteKind::Text, &block, &(0..1), 3).unwrap();
        assert!(pieces.push_strings(ByteKind::Text, &block, &(2..4), 1).is_err());
        pieces.push(codes(&[1, 0])).unwrap();
        let joined = pieces.join(&DataType::Utf8View).unwrap();
        let found: Vec<_> = joined.as_string_view().iter().flatten().collect();
        assert_eq!(found, ["two", "three", "one", "y", "x"]);
    }

    #[test]
    fn codes_alone_stay_codes_and_nothing_is_empty() {
        let mut pieces = Pieces::new(unfolded);
        pieces.push(codes(&[1])).unwrap();
        pieces.push(codes(&[0, 0])).unwrap();
        assert!(pieces.join(&DataType::Utf8View).unwrap().as_any_dictionary_opt().is_some());
        let empty = Pieces::new(unfolded).join(&DataType::Utf8View).unwrap();
        assert_eq!((empty.len(), empty.data_type()), (0, &DataType::Utf8View));
    }
}
