//! Values of fixed width.
//!
//! ```text
//! PLAIN:       | u32 count | cells |
//! RLE:         | u32 count | runs |
//! BIT_SHUFFLE: see `shuffled`
//! FOR:         see `pilaster_encoding::packed_frames`
//! ```

use arrow_array::ArrayRef;
use arrow_buffer::MutableBuffer;
use bytes::Bytes;
use pilaster_core::{Error, Result};
use pilaster_encoding::packed_frames;
use pilaster_encoding::plain::Fixed;
use pilaster_encoding::rle::{self, RleValue};

use super::{PageShape, check_count, word};
use crate::segment::cells::Cell;
use crate::segment::types::Encoding;

const COUNT_BYTES: usize = size_of::<u32>();

/// All values, of any encoding but BIT_SHUFFLE.
pub(super) fn decode(shape: &PageShape, encoded: &Bytes, width: usize, count: usize) -> Result<ArrayRef> {
    shape.limits.decoded((count as u64).saturating_mul(shape.cell.value_bytes() as u64))?;
    let cells = match shape.encoding {
        Encoding::Plain => decode_plain(encoded, width, count)?,
        Encoding::Rle if shape.cell == Cell::Bool => {
            check_count(word(encoded, 0, "a count")? as usize, count)?;
            let mut bits = Vec::with_capacity(count.div_ceil(8));
            rle::decode_bitmap(encoded.get(COUNT_BYTES..).unwrap_or_default(), count, &mut bits)?;
            return shape.cell.bits_array(bits, count);
        }
        Encoding::Rle => decode_runs(encoded, width, count)?,
        Encoding::Frames => {
            check_count(packed_frames::count(encoded)?, count)?;
            let mut cells = Vec::new();
            packed_frames::decode(encoded, width, count, &mut cells)?;
            aligned(&cells)
        }
        other => return Err(Error::corrupt("an encoding of cells of fixed width", other)),
    };
    shape.cell.fixed_array(cells)
}

/// Arrow wants numbers aligned.
fn aligned(cells: &[u8]) -> MutableBuffer {
    let mut buffer = MutableBuffer::with_capacity(cells.len());
    buffer.extend_from_slice(cells);
    buffer
}

fn decode_plain(encoded: &[u8], width: usize, count: usize) -> Result<MutableBuffer> {
    check_count(word(encoded, 0, "a count")? as usize, count)?;
    let cells = encoded.get(COUNT_BYTES..).unwrap_or_default();
    let expected = count.saturating_mul(width);
    if cells.len() != expected {
        return Err(Error::corrupt(format!("{expected} bytes of cells"), format!("{} bytes", cells.len())));
    }
    Ok(aligned(cells))
}

fn decode_runs(encoded: &[u8], width: usize, count: usize) -> Result<MutableBuffer> {
    check_count(word(encoded, 0, "a count")? as usize, count)?;
    let runs = encoded.get(COUNT_BYTES..).unwrap_or_default();
    match width {
        1 => runs_of::<u8>(runs, count),
        2 => runs_of::<u16>(runs, count),
        4 => runs_of::<u32>(runs, count),
        8 => runs_of::<u64>(runs, count),
        _ => Err(Error::corrupt("runs of cells of 1, 2, 4 or 8 bytes", width)),
    }
}

fn runs_of<T: RleValue + Fixed>(runs: &[u8], count: usize) -> Result<MutableBuffer> {
    let mut values = vec![<T as Default>::default(); count];
    let bits = u32::try_from(T::WIDTH.saturating_mul(8)).unwrap_or(u32::MAX);
    rle::decode(runs, bits, &mut values)?;
    let mut cells = Vec::with_capacity(count.saturating_mul(T::WIDTH));
    pilaster_encoding::plain::encode(&values, &mut cells);
    Ok(aligned(&cells))
}
