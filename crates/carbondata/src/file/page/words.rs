//! The local dictionary of a column chunk.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array, ArrayRef, UInt32Array, make_array, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use pilaster_core::views::gather;
use pilaster_core::{CompareOp, Error, Limits, Literal, Result};
use pilaster_encoding::big24;
use pilaster_encoding::codec::Codec;

use super::super::meta::{EncoderMeta, PLAIN_LONG_VALUE};
use super::super::types::CarbonType;
use super::strings::{self, LengthWidth};
use crate::messages::DictionaryChunk;

/// The code of null.
const NULL_CODE: usize = 1;

/// Words, and which of them a code stands for.
#[derive(Debug)]
pub(crate) struct Words {
    /// The entries in the order of their codes. That of null is null; if no code in use is, it is the last one.
    pub array: ArrayRef,
    /// For each code its entry, counted from one; 0 for codes that are not in use.
    places: Vec<u32>,
    /// Why there are none, of a dictionary that is lost.
    missing: Option<String>,
    /// What [`Words::matches`] found out last.
    known: Mutex<Vec<(Question, Arc<Counts>)>>,
}

/// What may be asked of every entry: a comparison, or whether it is null.
type Question = Option<(CompareOp, Literal)>;

/// How many questions a dictionary remembers.
const MOST_QUESTIONS: usize = 16;

/// How many of the codes below each one have an entry that a question is true for.
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
        let mut places = vec![0u32; bits.len().saturating_mul(8)];
        let mut count = 0u32;
        for (code, place) in places.iter_mut().enumerate() {
            if pilaster_encoding::bits::get(&bits, code) {
                count = count.saturating_add(1);
                *place = count;
            }
        }
        let most = usize::try_from(count).unwrap_or(usize::MAX);
        let array = strings::array(words.into(), width, carbon_type, Some(most))?;
        if usize::try_from(count) != Ok(array.len()) {
            return Err(Error::corrupt(format!("{count} words, as many as codes"), array.len()));
        }
        Self::new(array, places)
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> u64 {
        let places = self.places.len().saturating_mul(size_of::<u32>());
        self.array.get_array_memory_size().saturating_add(places) as u64
    }

    /// The entries of a whole table: the first has code 1.
    pub fn of_table(array: ArrayRef) -> Result<Self> {
        let count = u32::try_from(array.len()).unwrap_or(u32::MAX);
        Self::new(array, (0..=count).collect())
    }

    /// A dictionary that is lost: no code has an entry.
    pub fn missing(data_type: &DataType, reason: String) -> Result<Self> {
        let words = Self::new(new_null_array(data_type, 0), Vec::new())?;
        Ok(Self { missing: Some(reason), ..words })
    }

    /// Makes the entry of null null, whatever it says, so that codes need no nulls of their own.
    fn new(mut array: ArrayRef, mut places: Vec<u32>) -> Result<Self> {
        places.resize(places.len().max(NULL_CODE.saturating_add(1)), 0);
        let Some(place) = places.get_mut(NULL_CODE) else {
            return Err(Error::internal("words without a place for null"));
        };
        match usize::try_from(place.wrapping_sub(1)).ok().filter(|word| *word < array.len()) {
            Some(word) if array.is_valid(word) => {
                let is_other = BooleanBuffer::collect_bool(array.len(), |other| other != word);
                let nulls = NullBuffer::union(Some(&NullBuffer::new(is_other)), array.nulls());
                array = make_array(array.to_data().into_builder().nulls(nulls).build()?);
            }
            Some(_) => {}
            None => {
                let null = new_null_array(array.data_type(), 1);
                array = arrow_select::concat::concat(&[&array, &null])?;
                *place = u32::try_from(array.len()).unwrap_or(u32::MAX);
            }
        }
        Ok(Self { array, places, missing: None, known: Mutex::default() })
    }

    /// Which codes have an entry for which a comparison is true, or with none which have a null; `None` if entries cannot be
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
        // A lost dictionary says nothing of what its codes stood for.
        if self.missing.is_some() {
            return None;
        }
        let found = match question {
            Some((op, value)) if self.array.data_type() == value.array().data_type() => {
                Some(op.compare(&self.array, value).ok()?)
            }
            Some(_) => return None,
            None => None,
        };
        let is_match = |place: u32| {
            let Some(word) = place.checked_sub(1).and_then(|word| usize::try_from(word).ok()) else {
                return false;
            };
            let is_null = self.array.is_null(word);
            match &found {
                Some(found) => !is_null && found.is_valid(word) && found.value(word),
                None => is_null,
            }
        };
        let mut counts = Vec::with_capacity(self.places.len().saturating_add(1));
        let mut count = 0u32;
        for place in &self.places {
            counts.push(count);
            count = count.saturating_add(u32::from(is_match(*place)));
        }
        counts.push(count);
        Some(Counts(counts))
    }

    /// The entry that a code stands for, [`NO_KEY`] if none.
    #[inline]
    fn key(&self, code: u32) -> u32 {
        self.places.get(code as usize).copied().unwrap_or(0).wrapping_sub(1)
    }

    /// Which entry each code stands for.
    pub fn keys(&self, codes: &[u32]) -> Result<Vec<u32>> {
        let keys: Vec<u32> = codes.iter().map(|code| self.key(*code)).collect();
        match keys.iter().zip(codes).find(|(key, _)| **key == NO_KEY) {
            Some((_, code)) => Err(match &self.missing {
                Some(reason) => Error::incomplete(format!("the word of code {code} is lost: {reason}")),
                None => Error::corrupt("a code of the dictionary", code),
            }),
            None => Ok(keys),
        }
    }

    /// Which entry each code of a page stands for.
    pub fn stored_keys(&self, bytes: &[u8], code_bytes: usize) -> Result<Vec<u32>> {
        if code_bytes != LOCAL_CODE_BYTES {
            return self.keys(&codes(bytes, code_bytes)?);
        }
        let mut largest = 0;
        let keys = big24::map(bytes, |word| {
            let key = self.key(word >> 8);
            largest = largest.max(key);
            key
        })?;
        // That some code has no entry is seen at the end, which one by looking again.
        if largest == NO_KEY { self.keys(&codes(bytes, code_bytes)?) } else { Ok(keys) }
    }

    /// `keys` as the keys of an Arrow dictionary of these entries, null for the entries that are.
    pub fn nullable_keys(&self, keys: ScalarBuffer<u32>) -> UInt32Array {
        let nulls = self.array.nulls().filter(|nulls| nulls.null_count() > 0).map(|words| {
            let is_word = |row: usize| keys.get(row).is_some_and(|key| words.is_valid(*key as usize));
            NullBuffer::new(BooleanBuffer::collect_bool(keys.len(), is_word))
        });
        UInt32Array::new(keys, nulls.filter(|nulls| nulls.null_count() > 0))
    }

    /// The words of `keys`.
    pub fn values(&self, keys: ScalarBuffer<u32>) -> Result<ArrayRef> {
        gather(&self.array, keys)
    }
}

/// Bytes of a code in a local dictionary.
pub(crate) const LOCAL_CODE_BYTES: usize = big24::WIDTH;

/// What stands for no word.
const NO_KEY: u32 = u32::MAX;

/// Codes of `width` bytes, big-endian.
pub(crate) fn codes(bytes: &[u8], width: usize) -> Result<Vec<u32>> {
    if !(1..=4).contains(&width) || bytes.len().checked_rem(width) != Some(0) {
        return Err(Error::corrupt(format!("codes of {width} bytes"), format!("{} bytes", bytes.len())));
    }
    if width == LOCAL_CODE_BYTES {
        return Ok(big24::map(bytes, |word| word >> 8)?);
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
