//! The local dictionary of a column chunk.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_buffer::NullBuffer;
use arrow_ord::cmp;
use pilaster_core::{CompareOp, Error, Limits, Literal, Result};
use pilaster_encoding::codec::Codec;

use super::super::meta::{EncoderMeta, PLAIN_LONG_VALUE};
use super::super::types::CarbonType;
use super::strings::{LengthWidth, Strings};
use crate::messages::DictionaryChunk;

/// The code of null.
const NULL_CODE: u32 = 1;

/// Words, and which of them a code stands for.
#[derive(Debug)]
pub(crate) struct Words {
    /// The words in the order of their codes.
    pub array: ArrayRef,
    /// For each code its word, counted from one; 0 for codes that are not in use.
    places: Vec<u32>,
    /// What [`Words::matches`] found out last.
    known: Mutex<Vec<(Question, Arc<Counts>)>>,
}

/// What may be asked of every word: a comparison, or whether it is null.
type Question = Option<(CompareOp, Literal)>;

/// How many questions a dictionary remembers.
const MOST_QUESTIONS: usize = 16;

/// How many of the codes below each one have a word that a question is true for.
#[derive(Debug)]
pub(crate) struct Counts(Vec<u32>);

impl Counts {
    /// Whether one of the codes from `first` to `last` is among them; codes beyond the dictionary may be.
    pub fn any(&self, first: u32, last: u32) -> bool {
        let below = |code: usize| self.0.get(code).copied();
        let (Ok(first), Ok(last)) = (usize::try_from(first), usize::try_from(last)) else { return true };
        match (below(first), below(last.saturating_add(1))) {
            (Some(before), Some(through)) => through > before,
            _ => true,
        }
    }
}

impl Words {
    pub fn parse(
        chunk: &DictionaryChunk,
        codec: Codec,
        carbon_type: CarbonType,
        limits: &Limits,
    ) -> Result<Self> {
        let cap = usize::try_from(limits.decoded_bytes).unwrap_or(usize::MAX);
        // Codes have three bytes.
        let bits = codec.decompress_sized(&chunk.codes, cap.min(1 << 21))?;
        let words = codec.decompress_sized(&chunk.words, cap)?;
        let meta = match chunk.encoder_meta.first() {
            Some(meta) => Some(EncoderMeta::parse(meta)?),
            None => None,
        };
        let width = match meta {
            Some(meta) if meta.column_type == PLAIN_LONG_VALUE => LengthWidth::Four,
            _ => LengthWidth::Two,
        };
        let strings = Strings::parse(&words, width, None)?;
        let mut places = vec![0u32; bits.len().saturating_mul(8)];
        let mut count = 0u32;
        for (code, place) in places.iter_mut().enumerate() {
            if pilaster_encoding::bits::get(&bits, code) {
                count = count.saturating_add(1);
                *place = count;
            }
        }
        if usize::try_from(count) != Ok(strings.len()) {
            return Err(Error::corrupt(format!("{count} words, as many as codes"), strings.len()));
        }
        Ok(Self { array: strings.into_array(carbon_type)?, places, known: Mutex::default() })
    }

    /// The words of a whole table: the first has code 1.
    pub fn of_table(array: ArrayRef) -> Self {
        let count = u32::try_from(array.len()).unwrap_or(u32::MAX);
        Self { array, places: (0..=count).collect(), known: Mutex::default() }
    }

    /// Which codes have a word for which a comparison is true, or with none which have a null; `None` if words cannot be
    /// compared so.
    pub fn matches(&self, question: &Question) -> Option<Arc<Counts>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, counts)) = known.iter().find(|(asked, _)| asked == question) {
            return Some(Arc::clone(counts));
        }
        let counts = Arc::new(self.count(question)?);
        if known.len() >= MOST_QUESTIONS {
            known.remove(0);
        }
        known.push((question.clone(), Arc::clone(&counts)));
        Some(counts)
    }

    fn count(&self, question: &Question) -> Option<Counts> {
        let found = match question {
            Some((op, value)) if self.array.data_type() == value.array().data_type() => Some(match op {
                CompareOp::Eq => cmp::eq(&self.array, value),
                CompareOp::NotEq => cmp::neq(&self.array, value),
                CompareOp::Lt => cmp::lt(&self.array, value),
                CompareOp::LtEq => cmp::lt_eq(&self.array, value),
                CompareOp::Gt => cmp::gt(&self.array, value),
                CompareOp::GtEq => cmp::gt_eq(&self.array, value),
            })
            .transpose()
            .ok()?,
            Some(_) => return None,
            None => None,
        };
        let is_match = |code: usize, place: u32| {
            let Some(word) = place.checked_sub(1).and_then(|word| usize::try_from(word).ok()) else {
                return false;
            };
            let is_null = u32::try_from(code) == Ok(NULL_CODE) || self.array.is_null(word);
            match &found {
                Some(found) => !is_null && found.is_valid(word) && found.value(word),
                None => is_null,
            }
        };
        let mut counts = Vec::with_capacity(self.places.len().saturating_add(1));
        let mut count = 0u32;
        for (code, place) in self.places.iter().enumerate() {
            counts.push(count);
            count = count.saturating_add(u32::from(is_match(code, *place)));
        }
        counts.push(count);
        Some(Counts(counts))
    }

    /// Which word each code stands for; null for null.
    pub fn keys(&self, codes: impl ExactSizeIterator<Item = u32>) -> Result<UInt32Array> {
        let mut keys = Vec::with_capacity(codes.len());
        let mut is_value = Vec::with_capacity(codes.len());
        let has_nulls = self.array.null_count() > 0;
        for code in codes {
            let place = usize::try_from(code).ok().and_then(|code| self.places.get(code).copied());
            let word = match place.unwrap_or(0).checked_sub(1) {
                Some(word) => word,
                None if code == NULL_CODE => 0,
                None => return Err(Error::corrupt("a code of the dictionary", code)),
            };
            keys.push(word);
            let is_null = code == NULL_CODE || (has_nulls && self.array.is_null(word as usize));
            is_value.push(!is_null);
        }
        let nulls = NullBuffer::from(is_value);
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        Ok(UInt32Array::new(keys.into(), nulls))
    }

    /// The words of `keys`.
    pub fn values(&self, keys: &UInt32Array) -> Result<ArrayRef> {
        Ok(arrow_select::take::take(&self.array, keys, None)?)
    }
}

/// Bytes of a code in a local dictionary.
pub(crate) const LOCAL_CODE_BYTES: usize = 3;

/// Codes of `width` bytes, big-endian.
pub(crate) fn codes(bytes: &[u8], width: usize) -> Result<Vec<u32>> {
    if !(1..=4).contains(&width) || bytes.len().checked_rem(width) != Some(0) {
        return Err(Error::corrupt(format!("codes of {width} bytes"), format!("{} bytes", bytes.len())));
    }
    if width == LOCAL_CODE_BYTES {
        let (codes, _) = bytes.as_chunks::<3>();
        return Ok(codes.iter().map(|[a, b, c]| u32::from_be_bytes([0, *a, *b, *c])).collect());
    }
    let code = |bytes: &[u8]| bytes.iter().fold(0u32, |code, byte| (code << 8) | u32::from(*byte));
    Ok(bytes.chunks(width).map(code).collect())
}

/// Bytes of a code of a table's dictionary, out of the cardinality that its files note.
pub(crate) fn code_bytes(cardinality: i32) -> usize {
    let bits = u32::BITS.saturating_sub(cardinality.unsigned_abs().leading_zeros());
    usize::try_from(bits.div_ceil(8)).unwrap_or(4).max(1)
}

/// Words shared by the pages of a chunk.
pub(crate) type WordsRef = Arc<Words>;
