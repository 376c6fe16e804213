//! The values of one block, for each encoding, and when the block is full.

use std::ops::Range;

use arrow_array::ArrayAccessor;
use arrow_buffer::BooleanBuffer;
use pilaster_core::{Error, Result};
use pilaster_encoding::bitshuffle::ShuffledBlock;
use pilaster_encoding::dictionary::{self, DictionaryBuilder};
use pilaster_encoding::prefix::PrefixEncoder;
use pilaster_encoding::rle::RleEncoder;
use pilaster_encoding::{bits, frame_of_reference, group_varint};

use super::options::Resolved;
use super::values::{Bytes, Stored, with_bytes};
use crate::cfile::decode::{MODE_CODEWORDS, MODE_PLAIN, ORDINAL_BYTES, PLAIN_HEADER_BYTES};
use crate::cfile::types::{Encoding, KuduType, Physical};

/// Every this many entries of a PREFIX block one stands whole.
const RESTART_INTERVAL: u32 = 16;
/// Values given to a run-length encoder between two looks at its size.
const RLE_STEP: usize = 64;

/// The values of the block being filled.
#[derive(Debug)]
pub(super) struct ValueEncoder {
    limit: usize,
    dictionary_limit: usize,
    data_type: KuduType,
    encoding: Encoding,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// PLAIN, BIT_SHUFFLE and GROUP_VARINT numbers: little-endian.
    Fixed {
        width: usize,
        bytes: Vec<u8>,
    },
    /// RLE numbers and booleans.
    Runs(RleEncoder),
    /// PLAIN booleans.
    Bits {
        bytes: Vec<u8>,
        count: usize,
    },
    Plain(PlainBytes),
    Prefix(PrefixEncoder),
    /// DICT: entries are shared by all blocks; `plain` once the dictionary is full.
    Dict {
        words: DictionaryBuilder,
        size: PlainSize,
        codes: Vec<u32>,
        plain: Option<PlainBytes>,
    },
}

/// Strings of a PLAIN block.
#[derive(Debug, Default)]
struct PlainBytes {
    bytes: Vec<u8>,
    starts: Vec<u32>,
    size: PlainSize,
}

/// The size Kudu estimates for a PLAIN block of strings: values, their offsets, a selector for each four.
#[derive(Debug, Default, Clone, Copy)]
struct PlainSize {
    values: usize,
    count: usize,
    offsets: usize,
}

impl PlainSize {
    fn add(&mut self, length: usize) {
        let offset = u32::try_from(PLAIN_HEADER_BYTES.saturating_add(self.values)).unwrap_or(u32::MAX);
        self.offsets = self.offsets.saturating_add(group_varint::encoded_len(offset));
        self.values = self.values.saturating_add(length);
        self.count = self.count.saturating_add(1);
    }

    fn estimate(self) -> usize {
        PLAIN_HEADER_BYTES
            .saturating_add(self.values)
            .saturating_add(self.offsets)
            .saturating_add(self.count.div_ceil(4))
    }
}

impl PlainBytes {
    fn push(&mut self, value: &[u8]) -> Result<()> {
        let start = PLAIN_HEADER_BYTES.saturating_add(self.bytes.len());
        let start = u32::try_from(start).map_err(|_| Error::invalid("a block of more than 4 GiB"))?;
        self.starts.push(start);
        self.bytes.extend_from_slice(value);
        self.size.add(value.len());
        Ok(())
    }

    fn finish(&mut self, ordinal: u32, out: &mut Vec<u8>) {
        plain_block(ordinal, &self.bytes, &self.starts, out);
        self.bytes.clear();
        self.starts.clear();
        self.size = PlainSize::default();
    }
}

/// A PLAIN block of strings that begin at `starts`.
fn plain_block(ordinal: u32, bytes: &[u8], starts: &[u32], out: &mut Vec<u8>) {
    let offsets_at = word(PLAIN_HEADER_BYTES.saturating_add(bytes.len()));
    for number in [ordinal, word(starts.len()), offsets_at] {
        out.extend(number.to_le_bytes());
    }
    out.extend_from_slice(bytes);
    group_varint::encode(starts, out);
}

fn word(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl ValueEncoder {
    pub fn new(shape: &Resolved) -> Result<Self> {
        let (data_type, encoding) = (shape.data_type, shape.encoding);
        Ok(Self {
            limit: shape.block_size_bytes,
            dictionary_limit: shape.dictionary_size_bytes,
            data_type,
            encoding,
            kind: Kind::new(data_type, encoding)?,
        })
    }

    /// Number of values in the block.
    pub fn count(&self) -> usize {
        match &self.kind {
            Kind::Fixed { width, bytes } => bytes.len().checked_div(*width).unwrap_or_default(),
            Kind::Runs(runs) => runs.len(),
            Kind::Bits { count, .. } => *count,
            Kind::Plain(plain) => plain.starts.len(),
            Kind::Prefix(prefix) => prefix.len(),
            Kind::Dict { codes, plain, .. } => plain.as_ref().map_or(codes.len(), |plain| plain.starts.len()),
        }
    }

    /// Whether the block has reached its size, by the rule of its encoding.
    pub fn is_full(&self) -> bool {
        match &self.kind {
            Kind::Fixed { width, bytes } if self.encoding == Encoding::BitShuffle => {
                bytes.len() >= self.limit.checked_div(*width).unwrap_or_default().saturating_mul(*width)
            }
            Kind::Fixed { bytes, .. } => bytes.len().saturating_add(8) > self.limit,
            Kind::Runs(runs) => runs.encoded_bytes().saturating_add(8) > self.limit,
            Kind::Bits { count, .. } => count.div_ceil(8).saturating_add(8) > self.limit,
            Kind::Plain(plain) => plain.size.estimate() > self.limit,
            Kind::Prefix(prefix) => prefix.encoded_bytes() > self.limit,
            Kind::Dict { codes, plain, .. } => match plain {
                Some(plain) => plain.size.estimate() > self.limit,
                None => codes.len() >= codewords(self.limit),
            },
        }
    }

    /// Takes values of `range` until the block is full; gives how many. `whole` takes all of them whatever the size.
    pub fn append(&mut self, stored: &Stored, range: Range<usize>, whole: bool) -> Result<usize> {
        let limit = self.limit;
        match (&mut self.kind, stored) {
            (Kind::Fixed { width, bytes }, Stored::Fixed { bytes: from, .. }) => {
                let most = match self.encoding {
                    Encoding::BitShuffle => limit.checked_div(*width).unwrap_or_default(),
                    _ => limit.saturating_sub(8).checked_div(*width).unwrap_or_default().saturating_add(1),
                };
                let have = bytes.len().checked_div(*width).unwrap_or_default();
                let take = if whole { range.len() } else { range.len().min(most.saturating_sub(have)) };
                let start = range.start.saturating_mul(*width);
                let end = start.saturating_add(take.saturating_mul(*width));
                bytes.extend_from_slice(from.as_slice().get(start..end).ok_or_else(short)?);
                Ok(take)
            }
            (Kind::Runs(runs), Stored::Fixed { width, bytes }) => {
                append_runs(runs, bytes.as_slice(), *width, range, if whole { usize::MAX } else { limit })
            }
            (Kind::Runs(runs), Stored::Bits(from)) => {
                append_bit_runs(runs, from, range, if whole { usize::MAX } else { limit })
            }
            (Kind::Bits { bytes, count }, Stored::Bits(from)) => {
                let most = limit.saturating_sub(8).saturating_mul(8).saturating_add(1);
                let take = if whole { range.len() } else { range.len().min(most.saturating_sub(*count)) };
                bits::append_range(
                    bytes,
                    count,
                    from.values(),
                    from.offset().saturating_add(range.start),
                    take,
                )?;
                Ok(take)
            }
            (Kind::Plain(_) | Kind::Prefix(_) | Kind::Dict { .. }, Stored::Bytes(from)) => {
                with_bytes!(from, values => self.append_bytes(values, range, whole))
            }
            _ => Err(Error::internal("values of another kind than the column's")),
        }
    }

    fn append_bytes<'a>(
        &mut self,
        values: impl ArrayAccessor<Item = &'a [u8]>,
        range: Range<usize>,
        whole: bool,
    ) -> Result<usize> {
        let (limit, dictionary_limit) = (self.limit, self.dictionary_limit);
        let mut taken = 0;
        for index in range {
            if index >= values.len() {
                return Err(short());
            }
            let value = values.value(index);
            let is_full = match &mut self.kind {
                Kind::Plain(plain) | Kind::Dict { plain: Some(plain), .. } => {
                    plain.push(value)?;
                    plain.size.estimate() > limit
                }
                Kind::Prefix(prefix) => {
                    prefix.push(value);
                    prefix.encoded_bytes() > limit
                }
                Kind::Dict { words, size, codes, plain } => {
                    let code = match words.find(value) {
                        Some(code) => code,
                        None if size.estimate() > dictionary_limit && (!whole || codes.is_empty()) => {
                            // The dictionary is full: this block ends, and all after it are plain.
                            if !codes.is_empty() {
                                return Ok(taken);
                            }
                            let mut first = PlainBytes::default();
                            first.push(value)?;
                            *plain = Some(first);
                            taken = taken.saturating_add(1);
                            continue;
                        }
                        None => {
                            size.add(value.len());
                            let (code, _) = words
                                .get_or_insert(value)
                                .ok_or_else(|| Error::invalid("a dictionary of more than 4 GiB"))?;
                            code
                        }
                    };
                    codes.push(code);
                    codes.len() >= codewords(limit)
                }
                _ => return Err(Error::internal("strings in a column of numbers")),
            };
            taken = taken.saturating_add(1);
            if is_full && !whole {
                break;
            }
        }
        Ok(taken)
    }

    /// Whether a DICT block must end before `stored[range]` because an entry of it no longer fits in the dictionary.
    pub fn must_end_before(&self, stored: &Stored, range: Range<usize>) -> bool {
        let Kind::Dict { words, size, codes, plain: None } = &self.kind else { return false };
        if codes.is_empty() || size.estimate() <= self.dictionary_limit {
            return false;
        }
        let mut range = range;
        range.any(|index| stored.value(index).is_some_and(|value| words.find(value).is_none()))
    }

    /// The block as it is encoded, and an empty encoder again.
    pub fn finish(&mut self, ordinal: u32, out: &mut Vec<u8>) -> Result<()> {
        let count = word(self.count());
        let counts = |out: &mut Vec<u8>| {
            out.extend(count.to_le_bytes());
            out.extend(ordinal.to_le_bytes());
        };
        match &mut self.kind {
            Kind::Fixed { width, bytes } => {
                match self.encoding {
                    Encoding::BitShuffle => shuffled_block(ordinal, *width, bytes, out)?,
                    Encoding::GroupVarint => group_varint_block(ordinal, bytes, out),
                    _ => {
                        counts(out);
                        out.extend_from_slice(bytes);
                    }
                }
                bytes.clear();
            }
            Kind::Runs(runs) => {
                counts(out);
                let empty = RleEncoder::new(run_width(self.data_type));
                std::mem::replace(runs, empty).finish_into(out);
            }
            Kind::Bits { bytes, count } => {
                counts(out);
                out.extend_from_slice(bytes);
                bytes.clear();
                *count = 0;
            }
            Kind::Plain(plain) => plain.finish(ordinal, out),
            Kind::Prefix(prefix) => {
                let start = out.len();
                group_varint::encode_group(out, [count, ordinal, RESTART_INTERVAL, 0]);
                let header = word(out.len().saturating_sub(start));
                let (entries, restarts) =
                    std::mem::replace(prefix, PrefixEncoder::new(RESTART_INTERVAL)).finish();
                out.extend_from_slice(&entries);
                for restart in &restarts {
                    out.extend(restart.saturating_add(header).to_le_bytes());
                }
                out.extend(word(restarts.len()).to_le_bytes());
            }
            Kind::Dict { codes, plain, .. } => match plain {
                Some(plain) => {
                    out.extend(MODE_PLAIN.to_le_bytes());
                    plain.finish(ordinal, out);
                }
                None => {
                    out.extend(MODE_CODEWORDS.to_le_bytes());
                    let width = dictionary::narrowest(dictionary::max_code(codes));
                    let mut narrow = Vec::with_capacity(codes.len().saturating_mul(width));
                    dictionary::narrow(codes, width, &mut narrow)?;
                    shuffled_block(ordinal, width, &mut narrow, out)?;
                    codes.clear();
                }
            },
        }
        Ok(())
    }

    /// The dictionary block of a DICT file.
    pub fn dictionary(&self) -> Option<Vec<u8>> {
        let Kind::Dict { words, .. } = &self.kind else { return None };
        let (bytes, offsets) = words.words();
        let starts: Vec<u32> = offsets
            .iter()
            .take(words.len())
            .map(|start| start.saturating_add(word(PLAIN_HEADER_BYTES)))
            .collect();
        let mut out = Vec::new();
        plain_block(0, bytes, &starts, &mut out);
        Some(out)
    }
}

impl Kind {
    fn new(data_type: KuduType, encoding: Encoding) -> Result<Self> {
        Ok(match (data_type.physical(), encoding) {
            (Physical::Fixed(_) | Physical::Bool, Encoding::Rle) => {
                Self::Runs(RleEncoder::new(run_width(data_type)))
            }
            (Physical::Fixed(width), _) => Self::Fixed { width, bytes: Vec::new() },
            (Physical::Bool, _) => Self::Bits { bytes: Vec::new(), count: 0 },
            (Physical::Binary, Encoding::Plain) => Self::Plain(PlainBytes::default()),
            (Physical::Binary, Encoding::Prefix) => Self::Prefix(PrefixEncoder::new(RESTART_INTERVAL)),
            (Physical::Binary, Encoding::Dict) => Self::Dict {
                words: DictionaryBuilder::new(),
                size: PlainSize::default(),
                codes: Vec::new(),
                plain: None,
            },
            (_, other) => return Err(Error::invalid(format!("{data_type} values have no encoding {other}"))),
        })
    }
}

fn short() -> Error {
    Error::internal("an array shorter than announced")
}

/// Codewords of a full DICT block of `limit` bytes.
fn codewords(limit: usize) -> usize {
    limit.checked_div(size_of::<u32>()).unwrap_or_default()
}

fn run_width(data_type: KuduType) -> u32 {
    match data_type.physical() {
        Physical::Fixed(width) => u32::try_from(width.saturating_mul(8)).unwrap_or(64),
        _ => 1,
    }
}

fn append_runs(
    runs: &mut RleEncoder,
    bytes: &[u8],
    width: usize,
    range: Range<usize>,
    limit: usize,
) -> Result<usize> {
    let start = range.start.saturating_mul(width);
    let end = range.end.saturating_mul(width);
    let wanted = bytes.get(start..end).ok_or_else(short)?;
    let mut taken = 0usize;
    for step in wanted.chunks(width.saturating_mul(RLE_STEP)) {
        for value in step.chunks_exact(width) {
            let mut wide = [0u8; 8];
            for (to, from) in wide.iter_mut().zip(value) {
                *to = *from;
            }
            runs.push(u64::from_le_bytes(wide));
            taken = taken.saturating_add(1);
        }
        if runs.encoded_bytes().saturating_add(8) > limit {
            break;
        }
    }
    Ok(taken)
}

fn append_bit_runs(
    runs: &mut RleEncoder,
    from: &BooleanBuffer,
    range: Range<usize>,
    limit: usize,
) -> Result<usize> {
    if range.end > from.len() {
        return Err(short());
    }
    let mut taken = 0usize;
    for index in range {
        runs.push(u64::from(from.value(index)));
        taken = taken.saturating_add(1);
        if runs.encoded_bytes().saturating_add(8) > limit {
            break;
        }
    }
    Ok(taken)
}

/// A BIT_SHUFFLE block; `bytes` is padded with zero elements.
fn shuffled_block(ordinal: u32, width: usize, bytes: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<()> {
    out.extend(ordinal.to_le_bytes());
    Ok(ShuffledBlock::append(width, bytes, ORDINAL_BYTES, out)?)
}

fn group_varint_block(ordinal: u32, bytes: &[u8], out: &mut Vec<u8>) {
    let (chunks, _) = bytes.as_chunks::<4>();
    let values: Vec<u32> = chunks.iter().map(|four| u32::from_le_bytes(*four)).collect();
    let min = values.iter().min().copied().unwrap_or_default();
    group_varint::encode_group(out, [word(values.len()), min, ordinal, 0]);
    frame_of_reference::encode(&values, min, out);
}
