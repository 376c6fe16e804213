//! Array cells.
//!
//! ```text
//! | varint elements | varint cells |
//! | varint size, RLE bits of the elements | varint size, RLE 16-bit lengths | varint size, RLE bits of the cells |
//! | encoded block of the elements that are not null |
//! ```

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericListArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use bytes::Bytes;
use pilaster_core::validity::Validity;
use pilaster_core::{Error, Limits, Result, fitting};
use pilaster_encoding::{rle, varint};

use super::bitmaps::read_bitmap;
use super::{BlockShape, DecodedBlock, FindWords, Form, Values, Words, block_bytes, read_values};
use crate::cfile::arrow_types::Target;

/// The cells of an array block.
#[derive(Debug)]
pub(crate) struct Lists {
    /// First element of each cell, and the end of the last.
    starts: Vec<i32>,
    cells: BooleanBuffer,
    elements: Validity,
    values: Box<Values>,
    limits: Limits,
}

impl BlockShape {
    pub(super) fn decode_lists(&self, payload: &Bytes, words: FindWords<'_>) -> Result<DecodedBlock> {
        let mut at = 0;
        let elements = varint::read_u32(payload, &mut at)? as usize;
        let cells = u64::from(varint::read_u32(payload, &mut at)?);
        if cells > self.metadata.num_values {
            return Err(Error::corrupt(format!("at most {} cells", self.metadata.num_values), cells));
        }
        let cells = usize::try_from(cells).map_err(|_| Error::corrupt("a count of cells", cells))?;
        let size = varint::read_u32(payload, &mut at)? as usize;
        let element_bits = read_bitmap(self, payload, &mut at, size, elements)?;
        let starts = self.read_lengths(payload, &mut at, cells, elements)?;
        let size = varint::read_u32(payload, &mut at)? as usize;
        let cell_bits = read_bitmap(self, payload, &mut at, size, cells)?;
        let cell_mask = cell_bits.bits();
        for (cell, pair) in starts.windows(2).enumerate() {
            if !cell_mask.value(cell) && pair.first() != pair.last() {
                return Err(Error::corrupt("no elements in a null cell", format!("elements in cell {cell}")));
            }
        }
        if !self.metadata.is_nullable && cell_bits.ones() != cells {
            return Err(Error::corrupt("no null cells in a column that has none", "null cells"));
        }
        let encoded = payload.slice(at.min(payload.len())..);
        let (start, values) = self.decode_values(&encoded, words, Some(element_bits.ones()))?;
        let lists = Lists {
            starts,
            cells: cell_mask,
            elements: element_bits,
            values: Box::new(values),
            limits: self.limits.clone(),
        };
        let values = Values::Lists(lists);
        Ok(DecodedBlock {
            first_row: u64::from(start.ordinal),
            rows: cells,
            bytes: block_bytes(payload, cells, &values),
            validity: None,
            values,
        })
    }

    /// RLE lengths of 16 bits, summed up.
    fn read_lengths(
        &self,
        payload: &[u8],
        at: &mut usize,
        cells: usize,
        elements: usize,
    ) -> Result<Vec<i32>> {
        let size = varint::read_u32(payload, at)? as usize;
        let end = at.checked_add(size).unwrap_or(usize::MAX);
        let stream = payload
            .get(*at..end)
            .ok_or_else(|| Error::corrupt(format!("{size} bytes of lengths"), "the end of the block"))?;
        *at = end;
        self.limits.decoded((cells as u64).saturating_mul(6))?;
        let mut lengths = vec![0u16; cells];
        rle::decode(stream, u16::BITS, &mut lengths)?;
        let mut starts = Vec::with_capacity(cells.saturating_add(1));
        let mut sum = 0i32;
        starts.push(sum);
        for length in lengths {
            sum = sum
                .checked_add(i32::from(length))
                .ok_or_else(|| Error::corrupt("at most 2^31 elements", "longer lengths"))?;
            starts.push(sum);
        }
        if usize::try_from(sum).ok() != Some(elements) {
            return Err(Error::corrupt(format!("lengths that sum to {elements}"), sum));
        }
        Ok(starts)
    }
}

impl Lists {
    /// See [`DecodedBlock::held_bytes`].
    pub fn held_bytes(&self) -> u64 {
        self.values.held_bytes()
    }

    /// What they take besides the payload, about.
    pub fn bytes(&self) -> u64 {
        let starts = self.starts.len().saturating_mul(size_of::<i32>()) as u64;
        starts.saturating_add(self.elements.len().div_ceil(8) as u64).saturating_add(self.values.bytes())
    }

    /// See [`DecodedBlock::words`].
    pub fn words(&self) -> Option<&Words> {
        self.values.words()
    }

    /// The cells `range` as a list array; `target` is the way of the elements, `target.arrow` the list.
    pub fn read(&mut self, range: Range<usize>, target: &Target) -> Result<ArrayRef> {
        let starts = self
            .starts
            .get(range.start..range.end.saturating_add(1))
            .ok_or_else(|| Error::internal(format!("cells {range:?} of {}", self.cells.len())))?;
        let first = starts.first().copied().unwrap_or_default();
        let last = starts.last().copied().unwrap_or_default();
        let position = |offset: i32| usize::try_from(offset).unwrap_or_default();
        let element_rows = position(first)..position(last);
        // Nulls cost nothing in the file, but room in an array.
        fitting::check_bytes(
            (element_rows.len() as u64).saturating_mul(target.element_bytes()),
            &self.limits,
        )?;
        let (nulls, dense) = self.elements.read(element_rows);
        let elements = read_values(&mut self.values, dense, nulls, Form::Wanted, target)?;
        let offsets: Vec<i32> = starts.iter().map(|start| start.wrapping_sub(first)).collect();
        let nulls = NullBuffer::new(self.cells.slice(range.start, range.len()));
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        list_array(OffsetBuffer::new(ScalarBuffer::from(offsets)), elements, nulls)
    }
}

fn list_array(offsets: OffsetBuffer<i32>, elements: ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let field = Arc::new(Field::new("item", elements.data_type().clone(), true));
    Ok(Arc::new(GenericListArray::<i32>::try_new(field, offsets, elements, nulls)?))
}

/// Brings the elements of a list array to the type that was asked for.
pub(super) fn finish(array: ArrayRef, shape: &BlockShape) -> Result<ArrayRef> {
    let Some(list) = array.as_list_opt::<i32>() else { return Ok(array) };
    if *list.values().data_type() == shape.target.arrow {
        return Ok(array);
    }
    let (_, offsets, elements, nulls) = list.clone().into_parts();
    list_array(offsets, shape.target.finish_within(elements, &shape.limits)?, nulls)
}

/// Brings a list array to the list type that was asked for (other element name, larger offsets).
pub(crate) fn as_list_type(array: ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if array.data_type() == wanted { Ok(array) } else { Ok(cast(&array, wanted)?) }
}
