//! From a range of key values to a range of rows, through the value index.

use std::ops::Bound;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Scalar};
use arrow_ord::cmp;
use pilaster_core::error::AtPosition;
use pilaster_core::predicate::Bounds;
use pilaster_core::views::view_array;
use pilaster_core::{Error, Literal, OnDamage, Result, RowRanges};

use super::arrow_types::{Target, is_ordered_as_stored};
use super::decode::{DecodedBlock, Form, one_number};
use super::file::{CFile, DATA_PART};
use super::metadata::BlockPointer;
use super::write::Stored;
use crate::cfile::types::Physical;
use crate::key::{self, KeyPart};

/// So many rows of a block are compared at once rather than by halves.
const FEW_ROWS: usize = 1024;

impl CFile {
    /// The rows whose value lies within `bounds`; all rows if the file has no value index or it cannot tell.
    fn rows_within(&self, bounds: &Bounds) -> Result<RowRanges> {
        let all = 0..self.metadata().num_values;
        if self.by_value.is_none()
            || bounds.is_unbounded()
            || self.metadata().is_array
            || self.metadata().is_nullable
            || !is_ordered_as_stored(self.metadata().data_type, self.field.data_type())
        {
            return Ok(RowRanges::one(all));
        }
        let mut last = None;
        let start = match &bounds.lower {
            Bound::Unbounded => all.start,
            Bound::Included(value) => self.boundary(value, cmp::lt, all.start, &mut last)?,
            Bound::Excluded(value) => self.boundary(value, cmp::lt_eq, all.start, &mut last)?,
        };
        let end = match &bounds.upper {
            Bound::Unbounded => all.end,
            Bound::Included(value) => self.boundary(value, cmp::lt_eq, all.end, &mut last)?,
            Bound::Excluded(value) => self.boundary(value, cmp::lt, all.end, &mut last)?,
        };
        Ok(RowRanges::one(start..end.max(start)))
    }

    /// Those of `wanted` whose value lies within `bounds`. A damaged index narrows nothing if damage is to be skipped.
    pub fn narrow(&self, wanted: &RowRanges, bounds: &Bounds, on_damage: &OnDamage) -> Result<RowRanges> {
        match (self.rows_within(bounds), on_damage) {
            (Ok(rows), _) => Ok(wanted.intersect(&rows)),
            (Err(error), OnDamage::Skip(_)) if error.is_damage() => Ok(wanted.clone()),
            (Err(error), _) => Err(error),
        }
    }

    /// The first row for which `is_before` (the value) is false; `unknown` if the index cannot tell. A narrow range begins and
    /// ends in the same block: the `last` one is kept, with the number of its rows before the beginning, which the end is not among.
    fn boundary(
        &self,
        value: &Literal,
        is_before: Comparison,
        unknown: u64,
        last: &mut Option<(BlockPointer, DecodedBlock, usize)>,
    ) -> Result<u64> {
        let Some(tree) = &self.by_value else { return Ok(unknown) };
        let Some(encoded) = self.encode_literal(value) else { return Ok(unknown) };
        let Some(pointer) = tree.seek(&self.store, &encoded)?.entry().map(|entry| entry.pointer) else {
            return Ok(unknown);
        };
        let (mut block, from) = match last.take() {
            Some((place, block, before)) if place == pointer => (block, before),
            _ => (self.decode(&self.store.read(pointer, DATA_PART)?)?, 0),
        };
        let target = self.shape.target.decoded_only();
        let decoded = self.decoded_literal(value, &target)?;
        let before = rows_before(&mut block, from, &decoded, is_before, &target)
            .map_err(|error| error.at(self.name(), pointer.offset, DATA_PART))?;
        let row = block.first_row.saturating_add(before as u64);
        *last = Some((pointer, block, before));
        Ok(row)
    }

    /// The first row whose encoded key is at least `key`, and whether it is that key. The file must be a key column's
    /// or a compound key's index.
    pub fn row_of_key(&self, key: &[u8]) -> Result<(u64, bool)> {
        let Some(tree) = &self.by_value else {
            return Err(Error::corrupt("a value index", "a key file without one").at(
                self.name(),
                self.metadata().blocks_end,
                "cfile footer",
            ));
        };
        let mut cursor = tree.seek(&self.store, key)?;
        let mut after = 0;
        while let Some(entry) = cursor.entry() {
            let mut block = self.decode(&self.store.read(entry.pointer, DATA_PART)?)?;
            let values =
                block.read_all(&self.shape.target).at(self.name(), entry.pointer.offset, DATA_PART)?;
            let (mut low, mut high) = (0, values.len());
            while low < high {
                let middle = low.midpoint(high);
                match self.encoded_value(&values, middle)?.as_slice().cmp(key) {
                    std::cmp::Ordering::Less => low = middle.saturating_add(1),
                    std::cmp::Ordering::Equal => {
                        return Ok((block.first_row.saturating_add(middle as u64), true));
                    }
                    std::cmp::Ordering::Greater => high = middle,
                }
            }
            after = block.first_row.saturating_add(low as u64);
            if low < values.len() {
                break;
            }
            cursor.advance(tree, &self.store)?;
        }
        Ok((after, false))
    }

    /// The encoded key of a value of this file.
    pub fn encoded_value(&self, values: &ArrayRef, index: usize) -> Result<Vec<u8>> {
        let data_type = self.metadata().data_type;
        let stored = stored_form(&values.slice(index, 1), data_type.physical())
            .ok_or_else(|| Error::corrupt("a key", "a null").at(self.name(), 0, DATA_PART))?;
        let mut encoded = Vec::new();
        key::encode(data_type, &stored, KeyPart::Last, &mut encoded)?;
        Ok(encoded)
    }

    /// The literal as the value index encodes keys; `None` if it has no such form.
    fn encode_literal(&self, value: &Literal) -> Option<Vec<u8>> {
        let data_type = self.metadata().data_type;
        let stored = stored_form(value.array(), data_type.physical())?;
        let mut encoded = Vec::new();
        key::encode(data_type, &stored, KeyPart::Last, &mut encoded).ok()?;
        Some(encoded)
    }

    /// The literal in the form in which values are compared with it: strings as views, which share their bytes.
    fn decoded_literal(&self, value: &Literal, target: &Target) -> Result<Scalar<ArrayRef>> {
        let physical = self.metadata().data_type.physical();
        Ok(Scalar::new(match stored_form(value.array(), physical) {
            Some(stored) if physical == Physical::Binary => one_string(stored, target)?,
            _ => Arc::clone(value.array()),
        }))
    }

    /// The value an encoded key of this column stands for, as an array of length one.
    pub fn decode_key(&self, encoded: &[u8]) -> Result<ArrayRef> {
        let stored = key::decode_last(self.metadata().data_type, encoded)?;
        let target = &self.shape.target;
        if self.metadata().data_type.physical() == Physical::Binary {
            return target.finish(one_string(stored, target)?);
        }
        one_number(&stored, target)
    }
}

fn one_string(bytes: Vec<u8>, target: &Target) -> Result<ArrayRef> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    view_array(target.byte_kind(), bytes.into(), &[0, length], None)
}

/// How many rows of a block of ascending values `is_before` holds for, of which `from` are known: near those first, then by halves,
/// so that few are decoded.
fn rows_before(
    block: &mut DecodedBlock,
    from: usize,
    value: &Scalar<ArrayRef>,
    is_before: Comparison,
    target: &Target,
) -> Result<usize> {
    let (mut low, mut high) = (from, block.rows);
    let mut near = (from > 0).then(|| from.saturating_add(FEW_ROWS));
    while high.saturating_sub(low) > FEW_ROWS {
        let middle = near.take().unwrap_or_else(|| low.midpoint(high));
        let one = block.read(middle..middle.saturating_add(1), Form::Wanted, target)?;
        if is_before(&one, value)?.true_count() == 1 {
            low = middle.saturating_add(1);
        } else {
            high = middle;
        }
    }
    let rest = block.read(low..high, Form::Wanted, target)?;
    Ok(low.saturating_add(is_before(&rest, value)?.true_count()))
}

type Comparison =
    fn(&dyn arrow_array::Datum, &dyn arrow_array::Datum) -> Result<BooleanArray, arrow_schema::ArrowError>;

/// A value of an array of length one as a CFile stores it; decimals may be wider in Arrow than in the file.
pub(crate) fn stored_form(array: &ArrayRef, physical: Physical) -> Option<Vec<u8>> {
    if array.is_null(0) {
        return None;
    }
    match physical {
        Physical::Bool => None,
        Physical::Binary => Some(Stored::new(array, physical).ok()?.value(0)?.to_vec()),
        Physical::Fixed(width) => {
            let data = array.to_data();
            let have = array.data_type().primitive_width()?;
            let start = data.offset().checked_mul(have)?;
            let bytes = data.buffers().first()?.get(start..start.checked_add(have)?)?.to_vec();
            if have <= width {
                return (have == width).then_some(bytes);
            }
            // Narrowed only if the dropped bytes repeat the sign.
            let (kept, dropped) = bytes.split_at_checked(width)?;
            let sign = if kept.last()? & 0x80 == 0 { 0x00 } else { 0xff };
            dropped.iter().all(|byte| *byte == sign).then(|| kept.to_vec())
        }
    }
}
