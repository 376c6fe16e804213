//! Dictionaries: distinct words in order of first appearance, and the codes that stand for them.
//!
//! ```text
//! values  "aa" "b" "aa"    words  "aa" "b"    codes  0 1 0    stored in 1, 2 or 4 bytes each
//! bytes   61 61 62 (words), 00 01 00 or 00 00 01 00 00 00 (codes of 1 and 2 bytes)
//! ```

use crate::{DecodeError, Result};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hasher};

/// Collects the distinct words of a column.
///
/// The words lie back to back in one buffer; a value that is there already costs no allocation.
///
/// ```
/// let mut dictionary = pilaster_encoding::dictionary::DictionaryBuilder::new();
/// assert_eq!(dictionary.get_or_insert(b"aa"), Some((0, true)));
/// assert_eq!(dictionary.get_or_insert(b"b"), Some((1, true)));
/// assert_eq!(dictionary.get_or_insert(b"aa"), Some((0, false)));
/// assert_eq!(dictionary.words(), (&b"aab"[..], &[0, 2, 3][..]));
/// ```
#[derive(Debug, Clone)]
pub struct DictionaryBuilder {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    codes: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Default for DictionaryBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl DictionaryBuilder {
    /// An empty dictionary.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bytes: Vec::new(),
            offsets: vec![0],
            codes: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// The code of `word`, and whether it is new. `None` if it is new and the dictionary is full: positions in the
    /// words and codes have 32 bits.
    #[inline]
    pub fn get_or_insert(&mut self, word: &[u8]) -> Option<(u32, bool)> {
        let hash = hash(&self.hasher, word);
        let (bytes, offsets) = (&self.bytes, &self.offsets);
        if let Some(&code) = self.codes.find(hash, |&code| word_at(bytes, offsets, code) == word) {
            return Some((code, false));
        }
        let code = u32::try_from(self.offsets.len().checked_sub(1)?).ok()?;
        let end = u32::try_from(self.bytes.len().checked_add(word.len())?).ok()?;
        self.bytes.extend_from_slice(word);
        self.offsets.push(end);
        let (bytes, offsets, hasher) = (&self.bytes, &self.offsets, &self.hasher);
        self.codes.insert_unique(hash, code, |&code| self::hash(hasher, word_at(bytes, offsets, code)));
        Some((code, true))
    }

    /// The code of `word` if it is there.
    #[must_use]
    pub fn find(&self, word: &[u8]) -> Option<u32> {
        let hash = hash(&self.hasher, word);
        self.codes.find(hash, |&code| word_at(&self.bytes, &self.offsets, code) == word).copied()
    }

    /// The word of `code` if it is there.
    #[must_use]
    pub fn word(&self, code: u32) -> Option<&[u8]> {
        ((code as usize) < self.len()).then(|| word_at(&self.bytes, &self.offsets, code))
    }

    /// The words back to back, and where each begins, with one more offset for the end of the last.
    #[must_use]
    pub fn words(&self) -> (&[u8], &[u32]) {
        (&self.bytes, &self.offsets)
    }

    /// How many words there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all words and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.offsets.truncate(1);
        self.codes.clear();
    }
}

#[inline]
fn hash(hasher: &DefaultHashBuilder, word: &[u8]) -> u64 {
    let mut state = hasher.build_hasher();
    state.write(word);
    state.finish()
}

#[inline]
fn word_at<'a>(bytes: &'a [u8], offsets: &[u32], code: u32) -> &'a [u8] {
    let at = code as usize;
    match offsets.get(at..).unwrap_or_default() {
        [start, end, ..] => bytes.get(*start as usize..*end as usize).unwrap_or_default(),
        _ => &[],
    }
}

/// The fewest bytes, 1, 2 or 4, that hold every code up to `max_code`.
#[must_use]
pub const fn narrowest(max_code: u32) -> usize {
    match max_code {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

/// Appends `codes` with `element_size` (1, 2 or 4) bytes each, little-endian.
///
/// # Errors
/// If the element size is another or a code does not fit it. Nothing is appended then.
#[expect(clippy::cast_possible_truncation, reason = "the largest code was compared with the element size")]
pub fn narrow(codes: &[u32], element_size: usize, out: &mut Vec<u8>) -> Result<()> {
    check_element_size(element_size)?;
    let largest = max_code(codes);
    if narrowest(largest) > element_size {
        return Err(DecodeError::new(0, format!("codes of {element_size} bytes"), largest.to_string()));
    }
    match element_size {
        1 => out.extend(codes.iter().map(|&code| code as u8)),
        2 => {
            let start = out.len();
            out.resize(start.saturating_add(codes.len().saturating_mul(2)), 0);
            let (chunks, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut::<2>();
            for (chunk, &code) in chunks.iter_mut().zip(codes) {
                *chunk = (code as u16).to_le_bytes();
            }
        }
        _ => crate::plain::encode(codes, out),
    }
    Ok(())
}

/// Fills `out` with codes of `element_size` (1, 2 or 4) bytes each.
///
/// # Errors
/// If the element size is another or `bytes` is not exactly as long as `out` needs.
pub fn widen(bytes: &[u8], element_size: usize, out: &mut [u32]) -> Result<()> {
    check_element_size(element_size)?;
    let needed = out.len().saturating_mul(element_size);
    if bytes.len() != needed {
        let expected = format!("{needed} bytes for {} codes", out.len());
        return Err(DecodeError::new(bytes.len().min(needed), expected, bytes.len().to_string()));
    }
    match element_size {
        1 => {
            for (code, &byte) in out.iter_mut().zip(bytes) {
                *code = u32::from(byte);
            }
        }
        2 => {
            for (code, chunk) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *code = u32::from(u16::from_le_bytes(*chunk));
            }
        }
        _ => crate::plain::decode_into(bytes, out)?,
    }
    Ok(())
}

fn check_element_size(element_size: usize) -> Result<()> {
    match element_size {
        1 | 2 | 4 => Ok(()),
        _ => Err(DecodeError::new(0, "codes of 1, 2 or 4 bytes", element_size.to_string())),
    }
}

/// The largest code, 0 if there is none.
#[must_use]
pub fn max_code(codes: &[u32]) -> u32 {
    // No early exit, so that the loop is vectorised.
    codes.iter().copied().fold(0, u32::max)
}

/// Says whether every code is the code of one of `words` words.
///
/// # Errors
/// With the index (not the byte) of the first code that is not.
pub fn check_codes(codes: &[u32], words: u32) -> Result<()> {
    if codes.is_empty() || max_code(codes) < words {
        return Ok(());
    }
    let at = codes.iter().position(|&code| code >= words).unwrap_or(0);
    let found = codes.get(at).copied().unwrap_or(0).to_string();
    Err(DecodeError::new(at, format!("a code below {words}"), found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn codes_outside_the_dictionary_are_refused() {
        assert_eq!(check_codes(&[0, 5, 2], 6), Ok(()));
        assert_eq!(check_codes(&[0, 5, 2], 5).unwrap_err().at, 1);
        assert!(check_codes(&[0], 0).is_err());
        assert_eq!(check_codes(&[], 0), Ok(()));
    }

    #[test]
    fn codes_are_not_cut() {
        let mut out = Vec::new();
        assert!(narrow(&[256], 1, &mut out).is_err());
        assert!(narrow(&[65536], 2, &mut out).is_err());
        assert!(narrow(&[0], 3, &mut out).is_err());
        assert!(widen(&[0; 3], 3, &mut [0]).is_err());
        assert!(widen(&[0; 3], 2, &mut [0]).is_err());
        assert!(out.is_empty());
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn words_get_codes_in_order_of_appearance(values in prop::collection::vec("[a-c]{0,3}", 0..300)) {
            let mut dictionary = DictionaryBuilder::new();
            let mut expected: HashMap<&str, u32> = HashMap::new();
            for value in &values {
                let next = expected.len() as u32;
                let is_new = !expected.contains_key(value.as_str());
                let code = *expected.entry(value).or_insert(next);
                prop_assert_eq!(dictionary.find(value.as_bytes()).is_none(), is_new);
                prop_assert_eq!(dictionary.get_or_insert(value.as_bytes()), Some((code, is_new)));
                prop_assert_eq!(dictionary.word(code), Some(value.as_bytes()));
            }
            prop_assert_eq!(dictionary.len(), expected.len());
            prop_assert_eq!(dictionary.words().1.len(), expected.len() + 1);
            prop_assert_eq!(dictionary.word(expected.len() as u32), None);
            dictionary.clear();
            prop_assert!(dictionary.is_empty() && dictionary.find(b"a").is_none());
        }

        #[test]
        fn codes_round_trip(codes in prop_oneof![
            prop::collection::vec(0u32..256, 0..100),
            prop::collection::vec(0u32..65536, 0..100),
            prop::collection::vec(any::<u32>(), 0..100),
        ]) {
            let size = narrowest(max_code(&codes));
            let mut bytes = vec![1];
            narrow(&codes, size, &mut bytes).unwrap();
            prop_assert_eq!(bytes.len(), 1 + codes.len() * size);
            let mut again = vec![0; codes.len()];
            widen(&bytes[1..], size, &mut again).unwrap();
            prop_assert_eq!(again, codes);
        }
    }
}
