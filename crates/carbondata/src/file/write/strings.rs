//! Pages of texts, bytes and dates: values with their lengths, or codes of the chunk's own dictionary.

use bytes::Bytes;
use pilaster_core::{Error, Result};
use pilaster_encoding::codec::Codec;
use pilaster_encoding::dictionary::DictionaryBuilder;

use super::super::page::order::{expand_runs, row_order};
use super::super::page::strings::{LengthWidth, NULL_MARKER};
use super::super::page::through;
use super::super::page::words::{LOCAL_CODE_BYTES, codes};
use super::options::LOCAL_DICTIONARY_BYTES;

/// The code of null.
const NULL_CODE: u32 = 1;
/// The code of the first entry.
const FIRST_CODE: u32 = 2;
/// Runs or row ids are kept if they take at most so many percent of what they stand for.
const WORTH_PERCENT: usize = 70;

fn is_worth(numbers: usize, rows: usize) -> bool {
    numbers.saturating_mul(100).checked_div(rows).is_none_or(|percent| percent <= WORTH_PERCENT)
}

/// A number as the format stores it; one that does not fit is an error, and never cut to what does.
pub(crate) fn fitting<T: TryFrom<usize>>(number: usize, what: &str) -> Result<T> {
    T::try_from(number)
        .map_err(|_| Error::invalid(format!("{what}: {number} is more than the format can say")))
}

/// The parts of a page before compression.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PageParts {
    pub data: Vec<u8>,
    pub row_ids: Vec<u8>,
    pub runs: Vec<u8>,
}

/// Appends a value behind its length.
pub(super) fn put_value(out: &mut Vec<u8>, width: LengthWidth, value: &[u8]) -> Result<()> {
    match width {
        LengthWidth::Two => out.extend(fitting::<u16>(value.len(), "the length of a value")?.to_be_bytes()),
        // Readers take it for a signed number.
        LengthWidth::Four => out.extend(fitting::<i32>(value.len(), "the length of a value")?.to_be_bytes()),
    }
    out.extend_from_slice(value);
    Ok(())
}

/// Values with their lengths, in row order.
pub(super) fn plain<'a>(values: impl Iterator<Item = &'a [u8]>, width: LengthWidth) -> Result<PageParts> {
    let mut parts = PageParts::default();
    for value in values {
        put_value(&mut parts.data, width, value)?;
    }
    Ok(parts)
}

/// The rows in the order of their values, and the page of row ids that says so.
fn sorted_rows<T: Ord>(values: &[T]) -> Result<(Vec<usize>, Vec<u8>)> {
    let mut rows: Vec<usize> = (0..values.len()).collect();
    rows.sort_by(|a, b| values.get(*a).cmp(&values.get(*b)));
    let page = row_id_page(&rows)?;
    Ok((rows, page))
}

/// Values with their lengths in the order of the values, with row ids.
pub(super) fn plain_sorted(values: &[&[u8]], width: LengthWidth) -> Result<PageParts> {
    let (rows, row_ids) = sorted_rows(values)?;
    let mut parts = plain(rows.iter().filter_map(|row| values.get(*row).copied()), width)?;
    parts.row_ids = row_ids;
    Ok(parts)
}

/// Numbers of four bytes (dates), sorted with row ids if that is wanted.
pub(super) fn surrogates(values: &[i32], is_sorted: bool) -> Result<PageParts> {
    let put = |values: &mut dyn Iterator<Item = i32>| values.flat_map(i32::to_be_bytes).collect();
    if !is_sorted {
        return Ok(PageParts { data: put(&mut values.iter().copied()), ..PageParts::default() });
    }
    let (rows, row_ids) = sorted_rows(values)?;
    let data = put(&mut rows.iter().filter_map(|row| values.get(*row).copied()));
    Ok(PageParts { data, row_ids, runs: Vec::new() })
}

/// Codes of `width` bytes, as runs if that is shorter; sorted with row ids if that is wanted.
pub(super) fn coded(rows: &[u32], width: usize, is_sorted: bool) -> Result<PageParts> {
    let mut parts = PageParts::default();
    let arranged;
    let rows = if is_sorted {
        let (order, row_ids) = sorted_rows(rows)?;
        parts.row_ids = row_ids;
        arranged = order.iter().filter_map(|row| rows.get(*row).copied()).collect::<Vec<_>>();
        &arranged
    } else {
        rows
    };
    let put = |out: &mut Vec<u8>, code: u32| {
        out.extend(code.to_be_bytes().iter().skip(4usize.saturating_sub(width)));
    };
    let entries = rows.chunk_by(|a, b| a == b).count();
    if !is_worth(entries.saturating_mul(3), rows.len()) {
        parts.data.reserve(rows.len().saturating_mul(width));
        if width == LOCAL_CODE_BYTES {
            for code in rows {
                let [_, high, middle, low] = code.to_be_bytes();
                parts.data.extend([high, middle, low]);
            }
        } else {
            rows.iter().for_each(|code| put(&mut parts.data, *code));
        }
        return Ok(parts);
    }
    let mut start = 0usize;
    for run in rows.chunk_by(|a, b| a == b) {
        parts.runs.extend(fitting::<u16>(start, "the first row of a run")?.to_be_bytes());
        parts.runs.extend(fitting::<u16>(run.len(), "the rows of a run")?.to_be_bytes());
        start = start.saturating_add(run.len());
        if let Some(code) = run.first() {
            put(&mut parts.data, *code);
        }
    }
    Ok(parts)
}

/// Row ids: list A, and in list B the places in it where a pair stands for a run.
fn row_id_page(rows: &[usize]) -> Result<Vec<u8>> {
    let number = |row: usize| fitting::<u16>(row, "the number of a row in its page");
    let (mut ids, mut pairs) = (Vec::new(), Vec::new());
    for run in rows.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
        match run {
            [first, .., last] if run.len() > 2 => {
                pairs.push(number(ids.len())?);
                ids.extend([number(*first)?, number(*last)?]);
            }
            few => {
                for row in few {
                    ids.push(number(*row)?);
                }
            }
        }
    }
    if !is_worth(ids.len().saturating_add(pairs.len()), rows.len()) {
        ids = rows.iter().map(|row| number(*row)).collect::<Result<_>>()?;
        pairs.clear();
    }
    let length = fitting::<i32>(ids.len().saturating_mul(2), "the bytes of row ids")?;
    let mut page = length.to_be_bytes().to_vec();
    page.extend(ids.iter().chain(&pairs).flat_map(|number| number.to_be_bytes()));
    Ok(page)
}

/// The words of one column and blocklet.
#[derive(Debug)]
pub(super) struct LocalDictionary {
    words: DictionaryBuilder,
    has_null: bool,
    threshold: usize,
}

impl LocalDictionary {
    pub fn new(threshold: usize) -> Self {
        Self { words: DictionaryBuilder::new(), has_null: false, threshold }
    }

    /// The codes of a page's values, `None` standing for null; nothing if there are too many entries.
    pub fn codes<'a>(
        &mut self,
        values: impl Iterator<Item = Option<&'a [u8]>>,
        max_length: usize,
    ) -> Option<Vec<u32>> {
        let mut rows = Vec::with_capacity(values.size_hint().0);
        let mut last: Option<(&[u8], u32)> = None;
        for value in values {
            let Some(word) = value else {
                self.has_null = true;
                rows.push(NULL_CODE);
                continue;
            };
            let code = match last {
                Some((before, code)) if before == word => code,
                _ => {
                    let (code, is_new) = self.words.get_or_insert(word)?;
                    let is_full = self.words.len() > self.threshold
                        || self.words.words().0.len() > LOCAL_DICTIONARY_BYTES
                        || word.len() > max_length;
                    if is_new && is_full {
                        return None;
                    }
                    code.saturating_add(FIRST_CODE)
                }
            };
            last = Some((word, code));
            rows.push(code);
        }
        Some(rows)
    }

    /// The value of a code; `None` for null.
    pub fn value(&self, code: u32) -> Option<&[u8]> {
        self.words.word(code.checked_sub(FIRST_CODE)?)
    }

    /// The entries with their lengths, and the bits of the codes in use.
    pub fn finish(&self, width: LengthWidth, null: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut words = Vec::new();
        if self.has_null {
            put_value(&mut words, width, null)?;
        }
        let count = self.words.len();
        for code in 0..fitting::<u32>(count, "the words of a dictionary")? {
            put_value(&mut words, width, self.words.word(code).unwrap_or_default())?;
        }
        let mut bits = vec![false, self.has_null];
        bits.resize(count.saturating_add(2), true);
        let mut packed = Vec::new();
        pilaster_encoding::bits::pack(&bits, &mut packed);
        Ok((words, packed))
    }

    /// Forgets all words, for the next blocklet.
    pub fn clear(&mut self) {
        self.words.clear();
        self.has_null = false;
    }
}

/// The codes of a stored page, in row order.
pub(super) fn stored_codes(
    page: &Bytes,
    lengths: (i32, i32, i32),
    rows: usize,
    codec: Codec,
) -> Result<Vec<u32>> {
    let length = |length: i32| usize::try_from(length).unwrap_or_default();
    let broken = || Error::internal("a page of codes that cannot be read again");
    let (data, rest) = page.split_at_checked(length(lengths.0)).ok_or_else(broken)?;
    let (row_ids, runs) = rest.split_at_checked(length(lengths.1)).ok_or_else(broken)?;
    let data = codec.decompress_sized(data, rows.saturating_mul(LOCAL_CODE_BYTES))?;
    let mut stored = codes(&data, LOCAL_CODE_BYTES)?;
    if !runs.is_empty() {
        stored = expand_runs(runs, &stored, rows)?;
    }
    if !row_ids.is_empty() {
        stored = through(&row_order(row_ids, rows)?, &stored)?;
    }
    Ok(stored)
}

/// What stands for null in a column of texts.
pub(super) fn null_word(is_varchar: bool) -> &'static [u8] {
    if is_varchar { &[] } else { NULL_MARKER }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_does_not_fit_is_refused_and_never_cut() {
        let long = vec![b'x'; 65_536];
        assert!(put_value(&mut Vec::new(), LengthWidth::Two, &long).is_err());
        assert!(put_value(&mut Vec::new(), LengthWidth::Two, &long[..65_535]).is_ok());
        assert!(plain([long.as_slice()].into_iter(), LengthWidth::Two).is_err());
        assert!(plain_sorted(&[&long], LengthWidth::Two).is_err());
        assert!(coded(&vec![7; 65_536], LOCAL_CODE_BYTES, false).is_err());
        assert!(row_id_page(&[65_536]).is_err());
        let mut dictionary = LocalDictionary::new(10);
        dictionary.codes([Some(long.as_slice())].into_iter(), usize::MAX).unwrap();
        assert!(dictionary.finish(LengthWidth::Two, b"").is_err());
        assert!(dictionary.finish(LengthWidth::Four, b"").is_ok());
    }

    #[test]
    fn row_ids_are_the_worked_example() {
        assert_eq!(row_id_page(&(0..900).collect::<Vec<_>>()).unwrap(), [0, 0, 0, 4, 0, 0, 3, 0x83, 0, 0]);
    }

    proptest! {
        #[test]
        fn codes_come_back(rows in prop::collection::vec(prop_oneof![Just(2u32), 0u32..9, 0u32..0xff_ffff], 1..300)) {
            for is_sorted in [false, true] {
                let parts = coded(&rows, LOCAL_CODE_BYTES, is_sorted).unwrap();
                let mut packed = Vec::new();
                Codec::Snappy.compress(&parts.data, &mut packed).unwrap();
                let lengths = [packed.len(), parts.row_ids.len(), parts.runs.len()].map(|n| n as i32);
                let page = Bytes::from([packed, parts.row_ids, parts.runs].concat());
                let again = stored_codes(&page, lengths.into(), rows.len(), Codec::Snappy).unwrap();
                prop_assert_eq!(&again, &rows);
            }
        }

        #[test]
        fn row_ids_come_back(values in prop::collection::vec(0u8..5, 1..400)) {
            let (rows, page) = sorted_rows(&values).unwrap();
            let order = row_order(&page, values.len()).unwrap();
            for (row, place) in order.iter().enumerate() {
                prop_assert_eq!(rows[*place as usize], row);
            }
        }
    }
}
