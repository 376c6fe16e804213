//! Values made of other values.

use std::ops::Range;

use arrow_array::types::{ArrowDictionaryKeyType, RunEndIndexType};
use arrow_array::{
    DictionaryArray, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray, OffsetSizeTrait,
    RunArray, StructArray,
};
use pilaster_core::{Error, Result};

use super::scalar::push_json_string;
use super::value::{Encode, ValueEncoder};

/// Where the items of each list lie among all items.
enum Lists {
    Ranges(Vec<Range<usize>>),
    Fixed(usize),
}

pub(super) struct ListEncoder<'a> {
    items: ValueEncoder<'a>,
    lists: Lists,
}

impl<'a> ListEncoder<'a> {
    pub(super) fn offsets<O: OffsetSizeTrait>(array: &'a GenericListArray<O>, depth: u32) -> Result<Self> {
        let offsets: &[O] = array.value_offsets();
        let lists = offsets.windows(2).map(|pair| match pair {
            [start, end] => start.as_usize()..end.as_usize(),
            _ => 0..0,
        });
        Ok(Self {
            items: ValueEncoder::at_depth(array.values(), depth)?,
            lists: Lists::Ranges(lists.collect()),
        })
    }

    pub(super) fn views<O: OffsetSizeTrait>(array: &'a GenericListViewArray<O>, depth: u32) -> Result<Self> {
        let lists = array.offsets().iter().zip(array.sizes().iter());
        let lists =
            lists.map(|(start, size)| start.as_usize()..start.as_usize().saturating_add(size.as_usize()));
        Ok(Self {
            items: ValueEncoder::at_depth(array.values(), depth)?,
            lists: Lists::Ranges(lists.collect()),
        })
    }

    pub(super) fn fixed(array: &'a FixedSizeListArray, depth: u32) -> Result<Self> {
        let size =
            usize::try_from(array.value_length()).map_err(|_| Error::invalid("a list of negative length"))?;
        Ok(Self { items: ValueEncoder::at_depth(array.values(), depth)?, lists: Lists::Fixed(size) })
    }

    fn range(&self, row: usize) -> Range<usize> {
        match &self.lists {
            Lists::Ranges(ranges) => ranges.get(row).cloned().unwrap_or(0..0),
            Lists::Fixed(size) => {
                let start = row.saturating_mul(*size);
                start..start.saturating_add(*size)
            }
        }
    }
}

impl Encode for ListEncoder<'_> {
    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        out.push(b'[');
        for (index, item) in self.range(row).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.items.append_json(item, out);
        }
        out.push(b']');
    }
}

pub(super) struct StructEncoder<'a> {
    /// Each column with what stands before its value: `{"name":` or `,"name":`.
    fields: Vec<(Vec<u8>, ValueEncoder<'a>)>,
}

impl<'a> StructEncoder<'a> {
    pub(super) fn try_new(array: &'a StructArray, depth: u32) -> Result<Self> {
        let mut fields = Vec::with_capacity(array.num_columns());
        for (field, column) in array.fields().iter().zip(array.columns()) {
            let before = if fields.is_empty() { b'{' } else { b',' };
            fields.push((key(before, field.name()), ValueEncoder::at_depth(column, depth)?));
        }
        Ok(Self { fields })
    }
}

/// `{"name":` with what stands before it.
pub(super) fn key(before: u8, name: &str) -> Vec<u8> {
    let mut key = vec![before];
    push_json_string(name, &mut key);
    key.push(b':');
    key
}

impl Encode for StructEncoder<'_> {
    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        for (key, value) in &self.fields {
            out.extend_from_slice(key);
            value.append_json(row, out);
        }
        out.extend_from_slice(if self.fields.is_empty() { b"{}" } else { b"}" });
    }
}

pub(super) struct MapEncoder<'a> {
    keys: ValueEncoder<'a>,
    values: ValueEncoder<'a>,
    offsets: &'a [i32],
}

impl<'a> MapEncoder<'a> {
    pub(super) fn try_new(array: &'a MapArray, depth: u32) -> Result<Self> {
        Ok(Self {
            keys: ValueEncoder::at_depth(array.keys(), depth)?,
            values: ValueEncoder::at_depth(array.values(), depth)?,
            offsets: array.value_offsets(),
        })
    }
}

impl Encode for MapEncoder<'_> {
    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        out.push(b'[');
        let ends = self.offsets.get(row).zip(row.checked_add(1).and_then(|next| self.offsets.get(next)));
        let (start, end) = ends.map_or((0, 0), |(start, end)| (*start, *end));
        for entry in start..end {
            let entry = usize::try_from(entry).unwrap_or(usize::MAX);
            out.extend_from_slice(if out.last() == Some(&b'[') { b"{\"key\":" } else { b",{\"key\":" });
            self.keys.append_json(entry, out);
            out.extend_from_slice(b",\"value\":");
            self.values.append_json(entry, out);
            out.push(b'}');
        }
        out.push(b']');
    }
}

pub(super) struct DictionaryEncoder<'a, K: ArrowDictionaryKeyType> {
    array: &'a DictionaryArray<K>,
    words: ValueEncoder<'a>,
}

impl<'a, K: ArrowDictionaryKeyType> DictionaryEncoder<'a, K> {
    pub(super) fn try_new(array: &'a DictionaryArray<K>, depth: u32) -> Result<Self> {
        Ok(Self { array, words: ValueEncoder::at_depth(array.values(), depth)? })
    }
}

impl<K: ArrowDictionaryKeyType> Encode for DictionaryEncoder<'_, K> {
    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        match self.array.key(row) {
            Some(word) => self.words.append_json(word, out),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn is_plain_string(&self) -> bool {
        self.words.is_plain_string()
    }

    fn append_raw(&self, row: usize, out: &mut Vec<u8>) -> bool {
        self.array.key(row).is_some_and(|word| self.words.append_raw(word, out))
    }
}

pub(super) struct RunEncoder<'a, R: RunEndIndexType> {
    array: &'a RunArray<R>,
    values: ValueEncoder<'a>,
}

impl<'a, R: RunEndIndexType> RunEncoder<'a, R> {
    pub(super) fn try_new(array: &'a RunArray<R>, depth: u32) -> Result<Self> {
        Ok(Self { array, values: ValueEncoder::at_depth(array.values(), depth)? })
    }
}

impl<R: RunEndIndexType> Encode for RunEncoder<'_, R> {
    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        self.values.append_json(self.array.get_physical_index(row), out);
    }

    fn is_plain_string(&self) -> bool {
        self.values.is_plain_string()
    }

    fn append_raw(&self, row: usize, out: &mut Vec<u8>) -> bool {
        self.values.append_raw(self.array.get_physical_index(row), out)
    }
}
