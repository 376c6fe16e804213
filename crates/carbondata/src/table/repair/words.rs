//! The files beside the entries of a dictionary: how far they are committed, and their order.

use std::cmp::Ordering;

use pilaster_core::error::AtPosition;
use pilaster_core::verify::{Finding, Severity, VerifyReport};
use pilaster_core::{Error, Limits, Location, Result};
use pilaster_encoding::thrift::{Reader, Writer, wire};

use super::super::dictionary::{committed_bytes, parse_words};
use super::super::lost::is_lost;
use super::super::open::open_file;
use super::super::options::CarbonTableOptions;
use super::super::schema::TableSchema;
use super::super::status::checked_name;
use crate::file::types::is_global;
use crate::messages::{ColumnSchema, Parsed};

const PART: &str = "carbondata dictionary";
const SORT_PART: &str = "carbondata sort index";

/// A meta file that commits all whole chunks of the entries at once; the borders between loads are lost.
pub(super) fn meta(metadata: &Location, column_id: &str, options: &CarbonTableOptions) -> Result<Vec<u8>> {
    let dict = open_file(&metadata.child(checked_name(&format!("{column_id}.dict"))?))?;
    options.limits.metadata(dict.size()).at(dict.name(), 0, PART)?;
    let bytes = dict.read_at(0..dict.size())?;
    let (words, chunks, end) = whole_chunks(&bytes);
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.i32(1, 1);
    writer.i32(2, number(words));
    writer.i64(3, 0);
    writer.i64(4, i64::try_from(end).unwrap_or(i64::MAX));
    writer.i32(5, number(chunks));
    writer.finish();
    Ok(out)
}

/// Number of words and chunks before the first damage, and where that is.
fn whole_chunks(bytes: &[u8]) -> (usize, usize, usize) {
    let mut reader = Reader::new(bytes);
    let (mut words, mut chunks, mut end) = (0usize, 0usize, 0usize);
    while !reader.is_at_end() {
        let mut count = 0usize;
        let read = reader.structure(|reader, field| {
            if field.id == 1 {
                count = reader.list(field, wire::BINARY, |reader| reader.text_value().map(drop))?.len();
            }
            Ok(field.id == 1)
        });
        if read.is_err() {
            break;
        }
        words = words.saturating_add(count);
        chunks = chunks.saturating_add(1);
        end = reader.position();
    }
    (words, chunks, end)
}

/// The sort index that a dictionary has and the one it should have.
struct SortIndex {
    path: Location,
    expected: Vec<u8>,
    found: Result<Vec<u8>>,
}

/// The sort indexes of all dictionaries of a table whose entries can be read.
fn all(table: &Location, schema: &TableSchema, limits: &Limits) -> Result<Vec<SortIndex>> {
    let metadata = table.child("Metadata");
    let mut indexes = Vec::new();
    for column in schema.columns.iter().filter(|column| is_global(column)) {
        let id = checked_name(&column.column_id)?;
        // Words that cannot be read are named where rows need them.
        let Ok((words, committed)) = words_of(&metadata, id, limits) else { continue };
        let order = order(column, &words);
        let path = metadata.child(format!("{id}_{committed}.sortindex"));
        let found = open_file(&path).and_then(|source| {
            limits.metadata(source.size()).at(source.name(), 0, SORT_PART)?;
            Ok(source.read_at(0..source.size())?.to_vec())
        });
        indexes.push(SortIndex { path, expected: bytes(&order), found });
    }
    Ok(indexes)
}

fn words_of(metadata: &Location, id: &str, limits: &Limits) -> Result<(Vec<String>, u64)> {
    let meta = open_file(&metadata.child(format!("{id}.dictmeta")))?;
    limits.metadata(meta.size()).at(meta.name(), 0, PART)?;
    let committed = committed_bytes(&meta.read_at(0..meta.size())?).at(meta.name(), 0, PART)?;
    let dict = open_file(&metadata.child(format!("{id}.dict")))?;
    limits.metadata(committed).at(dict.name(), 0, PART)?;
    if committed > dict.size() {
        return Err(Error::corrupt(format!("{committed} bytes"), dict.size()).at(dict.name(), 0, PART));
    }
    let bytes = dict.read_at(0..committed)?;
    let words = parse_words(&bytes).at(dict.name(), 0, PART)?;
    Ok((words.into_iter().map(str::to_string).collect(), committed))
}

/// The codes of entries in the order of their values: texts as Java compares them, numbers as numbers, what is none at the end.
pub(crate) fn order(column: &ColumnSchema, words: &[String]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..words.len()).collect();
    let word = |place: usize| words.get(place).map_or("", String::as_str);
    match column.data_type {
        // SHORT, INT, LONG
        1..=3 => sort_by(&mut order, |place| word(place).parse::<i64>().ok(), i64::cmp),
        // DOUBLE
        4 => sort_by(&mut order, |place| word(place).parse::<f64>().ok(), f64::total_cmp),
        // DECIMAL
        5 => sort_by(&mut order, |place| decimal(word(place)), |a, b| a.cmp(b)),
        _ => order.sort_by(|a, b| word(*a).encode_utf16().cmp(word(*b).encode_utf16())),
    }
    order
}

/// A decimal number in 38 digits before and after the point, so that it can be compared.
fn decimal(text: &str) -> Option<(i128, i128)> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.len() <= 38 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let number = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i128>().ok() };
    let fraction = number(&format!("{fraction:0<38}"))?;
    Some((number(whole)?.checked_mul(sign)?, fraction.checked_mul(sign)?))
}

fn sort_by<T>(order: &mut [usize], key: impl Fn(usize) -> Option<T>, compare: impl Fn(&T, &T) -> Ordering) {
    order.sort_by(|a, b| match (key(*a), key(*b)) {
        (Some(a), Some(b)) => compare(&a, &b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
}

/// `ColumnSortInfo`: the codes in order, and for each code its place.
pub(crate) fn bytes(order: &[usize]) -> Vec<u8> {
    let number = |place: usize| i32::try_from(place.saturating_add(1)).unwrap_or(i32::MAX);
    let codes: Vec<i32> = order.iter().map(|place| number(*place)).collect();
    let mut inverted = vec![0; order.len()];
    for (rank, place) in order.iter().enumerate() {
        if let Some(slot) = inverted.get_mut(*place) {
            *slot = number(rank);
        }
    }
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.i32_list(1, &codes);
    writer.i32_list(2, &inverted);
    writer.finish();
    out
}

/// The two lists of a sort index.
fn parse(bytes: &[u8]) -> Parsed<(Vec<i32>, Vec<i32>)> {
    let mut lists = (Vec::new(), Vec::new());
    Reader::new(bytes).structure(|reader, field| {
        match field.id {
            1 => lists.0 = reader.list(field, wire::I32, Reader::i32_value)?,
            2 => lists.1 = reader.list(field, wire::I32, Reader::i32_value)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(lists)
}

/// The sort indexes that are lost or wrong, as they should be.
///
/// # Errors
/// If one cannot be looked at: it may be right.
pub(super) fn sort_indexes(
    table: &Location,
    schema: &TableSchema,
    options: &CarbonTableOptions,
) -> Result<Vec<(Location, Vec<u8>)>> {
    let mut wrong = Vec::new();
    for index in all(table, schema, &options.limits)? {
        if let Some(error) = index.unread() {
            return Err(error.clone());
        }
        if index.problem().is_some() {
            wrong.push((index.path, index.expected));
        }
    }
    Ok(wrong)
}

/// Notes what is wrong with the sort indexes of a table, which touches no row, as reading does not need them; and which of them cannot
/// be looked at.
pub(crate) fn check(
    table: &Location,
    schema: &TableSchema,
    limits: &Limits,
    report: &mut VerifyReport,
) -> Result<()> {
    for index in all(table, schema, limits)? {
        let path = index.path.to_string();
        if let Some(error) = index.unread() {
            report.add_failure(&path, error, true);
        } else if let Some(message) = index.problem() {
            report.findings.push(Finding {
                severity: Severity::Warning,
                message,
                path: path.into(),
                offset: 0,
                part: SORT_PART.into(),
                rows: None,
            });
        }
    }
    Ok(())
}

impl SortIndex {
    /// Why nobody can tell what is in it.
    fn unread(&self) -> Option<&Error> {
        self.found.as_ref().err().filter(|error| !is_lost(error))
    }

    fn problem(&self) -> Option<String> {
        let expected = parse(&self.expected).ok();
        match &self.found {
            Err(error) => Some(error.to_string()),
            Ok(found) => match parse(found) {
                Err(error) => Some(error.to_string()),
                Ok(found) if Some(&found) != expected.as_ref() => {
                    Some("expected the words of the dictionary in their order, found another one".to_string())
                }
                Ok(_) => None,
            },
        }
    }
}

/// A sort index as a fuzz target sees it.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz(data: &[u8]) {
    let _ = parse(data);
    let _ = whole_chunks(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_ordered_by_their_type() {
        let ordered = |data_type: i32, words: &[&str]| -> Vec<String> {
            let column = ColumnSchema { data_type, ..ColumnSchema::text("a", 0) };
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            order(&column, &words).into_iter().map(|place| words[place].clone()).collect()
        };
        assert_eq!(ordered(2, &["@NU#LL$!", "10", "-2", "9"]), ["-2", "9", "10", "@NU#LL$!"]);
        assert_eq!(ordered(4, &["x", "1e3", "-0.5", "2"]), ["-0.5", "2", "1e3", "x"]);
        assert_eq!(
            ordered(5, &["10.5", "-0.25", "-0.5", "9.75", "\\N"]),
            ["-0.5", "-0.25", "9.75", "10.5", "\\N"]
        );
        // UTF-16 puts characters beyond the basic plane before U+FF5E.
        assert_eq!(ordered(0, &["\u{ff5e}", "b", "\u{1f600}", "a"]), ["a", "b", "\u{1f600}", "\u{ff5e}"]);
    }

    #[test]
    fn writes_the_worked_example() {
        assert_eq!(bytes(&[0, 1]), [0x19, 0x25, 0x02, 0x04, 0x19, 0x25, 0x02, 0x04, 0x00]);
        assert_eq!(parse(&bytes(&[2, 0, 1])), Ok((vec![3, 1, 2], vec![2, 3, 1])));
    }
}
