//! Encodes cells of fixed width: plain, bit-shuffled, as runs, or as frames of reference.

use pilaster_core::{Error, Result};
use pilaster_encoding::bitshuffle::ShuffledBlock;
use pilaster_encoding::packed_frames::FrameEncoder;
use pilaster_encoding::rle::RleEncoder;

use super::{Taken, small};
use crate::segment::cells::Cell;
use crate::segment::types::Encoding;

const COUNT_BYTES: usize = size_of::<u32>();
/// Within so many equal values a run has been decided upon, and writes nothing more before it ends.
const RUN_DECIDED: usize = 16;

/// Encodes cells of fixed width into one page.
#[derive(Debug)]
pub(in crate::segment::write) struct CellEncoder {
    width: usize,
    page_bytes: usize,
    count: usize,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Plain(Vec<u8>),
    Shuffled(Vec<u8>),
    Runs { encoder: RleEncoder, bits: u32 },
    Frames(FrameEncoder),
}

impl CellEncoder {
    pub fn new(cell: &Cell, width: usize, encoding: Encoding, page_bytes: usize) -> Result<Self> {
        let form = match encoding {
            Encoding::Plain => Form::Plain(Vec::new()),
            Encoding::BitShuffle => Form::Shuffled(Vec::new()),
            Encoding::Rle => {
                let bits = match cell {
                    Cell::Bool => 1,
                    _ => u32::try_from(width.saturating_mul(8)).unwrap_or(u32::MAX),
                };
                Form::Runs { encoder: RleEncoder::new(bits), bits }
            }
            Encoding::Frames => {
                let is_signed = match cell {
                    Cell::Number(arrow, _) => arrow.is_signed_integer(),
                    Cell::LargeInt | Cell::DateTime | Cell::Decimal { .. } => true,
                    _ => false,
                };
                Form::Frames(FrameEncoder::new(width, is_signed)?)
            }
            other => return Err(Error::invalid(format!("cells of fixed width have no encoding {other}"))),
        };
        Ok(Self { width, page_bytes, count: 0, form })
    }

    /// Values of a page whose size is that of its cells.
    fn capacity(&self) -> usize {
        self.page_bytes.checked_div(self.width).unwrap_or_default().max(1)
    }

    fn is_full(&self) -> bool {
        match &self.form {
            Form::Plain(_) | Form::Shuffled(_) => self.count >= self.capacity(),
            Form::Runs { encoder, .. } => {
                encoder.encoded_bytes().saturating_add(COUNT_BYTES) >= self.page_bytes
            }
            Form::Frames(encoder) => encoder.encoded_bytes() >= self.page_bytes,
        }
    }

    pub fn append(&mut self, cells: &[u8]) -> Taken {
        let before = self.count;
        let capacity = self.capacity();
        let mut rest = cells;
        while !rest.is_empty() && !self.is_full() {
            let present = rest.len().checked_div(self.width).unwrap_or_default();
            let taken = match &mut self.form {
                Form::Plain(page) | Form::Shuffled(page) => {
                    let taken = present.min(capacity.saturating_sub(self.count));
                    page.extend_from_slice(rest.get(..taken.saturating_mul(self.width)).unwrap_or_default());
                    taken
                }
                Form::Frames(encoder) => {
                    let taken = present.min(encoder.until_next_frame());
                    encoder.push(rest.get(..taken.saturating_mul(self.width)).unwrap_or_default());
                    taken
                }
                Form::Runs { encoder, .. } => push_run(encoder, rest, self.width),
            };
            self.count = self.count.saturating_add(taken);
            rest = rest.get(taken.saturating_mul(self.width)..).unwrap_or_default();
        }
        let values = self.count.saturating_sub(before);
        Taken { values, bytes: (values as u64).saturating_mul(self.width as u64), is_full: self.is_full() }
    }

    pub fn finish_page(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let count = small(std::mem::take(&mut self.count))?;
        match &mut self.form {
            Form::Plain(page) => {
                out.extend(count.to_le_bytes());
                out.extend_from_slice(page);
                page.clear();
            }
            Form::Shuffled(page) => {
                ShuffledBlock::append(self.width, page, 0, out)?;
                page.clear();
            }
            Form::Runs { encoder, bits } => {
                out.extend(count.to_le_bytes());
                std::mem::replace(encoder, RleEncoder::new(*bits)).finish_into(out);
            }
            Form::Frames(encoder) => encoder.finish_into(out),
        }
        Ok(())
    }
}

/// Adds equal cells, so few that the encoder cannot pass the end of the page unseen; says how many.
fn push_run(encoder: &mut RleEncoder, cells: &[u8], width: usize) -> usize {
    let Some(first) = cells.get(..width) else { return 0 };
    let value = first.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let equal = cells.chunks_exact(width).take_while(|cell| *cell == first).count();
    if equal > RUN_DECIDED {
        encoder.push_run(value, equal);
        return equal;
    }
    encoder.push(value);
    1
}
