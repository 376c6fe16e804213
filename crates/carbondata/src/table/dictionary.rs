//! The dictionary of a column for the whole table, as releases before 2.0 keep it.
//!
//! ```text
//! <column id>.dict       chunks of entries, in the order of their codes; the first has code 1 and stands for null
//! <column id>.dictmeta   a record per load that added entries: how far the .dict file is committed
//! ```
//!
//! Entries are texts whatever the type of the column. The order of entries (`.sortindex`) is not needed to read.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_cast::cast::cast;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Location, Result};
use pilaster_encoding::thrift::{Reader, wire};

use super::lost::not_here;
use super::open::open_file;
use super::status::checked_name;
use crate::file::ColumnNode;
use crate::file::page::words::{Words, WordsRef};
use crate::messages::{Parsed, required};

const DICT_PART: &str = "carbondata dictionary";
const META_PART: &str = "carbondata dictionary meta";
/// What stands for null.
const NULL_MARKER: &str = "@NU#LL$!";

/// Reads the dictionary of a column from the folder `Metadata`.
pub(crate) fn read_dictionary(
    metadata: &Location,
    column_id: &str,
    node: &ColumnNode,
    limits: &Limits,
) -> Result<WordsRef> {
    let gone = |error| not_here(error, "the dictionary of a column");
    let meta = open_file(&metadata.child(checked_name(&format!("{column_id}.dictmeta"))?)).map_err(gone)?;
    limits.metadata(meta.size()).at(meta.name(), 0, META_PART)?;
    let bytes = meta.read_at(0..meta.size())?;
    let committed = committed_bytes(&bytes).at(meta.name(), 0, META_PART)?;
    let dict = open_file(&metadata.child(format!("{column_id}.dict"))).map_err(gone)?;
    limits.metadata(committed).at(dict.name(), 0, DICT_PART)?;
    if committed > dict.size() {
        let error = Error::corrupt(format!("{committed} committed bytes"), dict.size());
        return Err(error.at(dict.name(), dict.size(), DICT_PART));
    }
    let bytes = dict.read_at(0..committed)?;
    let words = parse_words(&bytes).at(dict.name(), 0, DICT_PART)?;
    let array = typed(&words, node).at(dict.name(), 0, DICT_PART)?;
    Ok(Arc::new(Words::of_table(array)?))
}

/// Which file of a dictionary is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damaged {
    Meta,
    Words,
}

/// A dictionary of which the entries or the meta file are damaged: all entries up to the damage, and what is damaged.
pub(crate) fn recover_dictionary(
    metadata: &Location,
    column_id: &str,
    node: &ColumnNode,
    limits: &Limits,
) -> Result<(WordsRef, Vec<(Damaged, Error)>)> {
    let mut damaged = Vec::new();
    let dict = open_file(&metadata.child(checked_name(&format!("{column_id}.dict"))?))?;
    let meta = metadata.child(format!("{column_id}.dictmeta"));
    let committed = open_file(&meta).and_then(|meta| {
        limits.metadata(meta.size()).at(meta.name(), 0, META_PART)?;
        committed_bytes(&meta.read_at(0..meta.size())?).at(meta.name(), 0, META_PART)
    });
    let committed = committed.unwrap_or_else(|error| {
        damaged.push((Damaged::Meta, error));
        dict.size()
    });
    limits.metadata(dict.size()).at(dict.name(), 0, DICT_PART)?;
    let end = if committed > dict.size() {
        let error = Error::corrupt(format!("{committed} committed bytes"), dict.size());
        damaged.push((Damaged::Words, error.at(dict.name(), dict.size(), DICT_PART)));
        dict.size()
    } else {
        committed
    };
    let bytes = dict.read_at(0..end)?;
    let (words, error) = words_before_damage(&bytes);
    if let Some(error) = error {
        damaged.push((Damaged::Words, Error::from(error).at(dict.name(), 0, DICT_PART)));
    }
    let array = typed(&words, node).at(dict.name(), 0, DICT_PART)?;
    Ok((Arc::new(Words::of_table(array)?), damaged))
}

/// All entries of the chunks before the first that cannot be parsed, and the entries of that one before the damage.
fn words_before_damage(bytes: &[u8]) -> (Vec<&str>, Option<pilaster_encoding::DecodeError>) {
    let mut reader = Reader::new(bytes);
    let mut words = Vec::new();
    while !reader.is_at_end() {
        let read = reader.structure(|reader, field| {
            if field.id == 1 {
                reader.list(field, wire::BINARY, |reader| {
                    words.push(reader.text_value()?);
                    Ok(())
                })?;
            }
            Ok(field.id == 1)
        });
        if let Err(error) = read {
            return (words, Some(error));
        }
    }
    (words, None)
}

/// Where the last load that was finished ends in the file of entries.
pub(crate) fn committed_bytes(bytes: &[u8]) -> Parsed<u64> {
    let mut reader = Reader::new(bytes);
    let mut committed = None;
    while !reader.is_at_end() {
        let at = reader.position();
        let mut end = None;
        reader.structure(|reader, field| {
            if field.id == 4 {
                end = Some(reader.i64(field)?);
            }
            Ok(field.id == 4)
        })?;
        let end = required(end, at, "a record with an end offset")?;
        committed = Some(u64::try_from(end).unwrap_or(u64::MAX));
    }
    required(committed, 0, "a record of a load")
}

/// All entries, in the order of their codes.
pub(crate) fn parse_words(bytes: &[u8]) -> Parsed<Vec<&str>> {
    let mut reader = Reader::new(bytes);
    let mut words = Vec::new();
    while !reader.is_at_end() {
        reader.structure(|reader, field| {
            if field.id == 1 {
                words.append(&mut reader.list(field, wire::BINARY, Reader::text_value)?);
            }
            Ok(field.id == 1)
        })?;
    }
    Ok(words)
}

/// Words as values of the column's type; what is no such value is null.
fn typed(words: &[&str], node: &ColumnNode) -> Result<ArrayRef> {
    let texts: StringArray = words.iter().map(|word| (*word != NULL_MARKER).then_some(*word)).collect();
    Ok(cast(&texts, node.field.data_type())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_worked_example() {
        let meta = [0x15, 0x02, 0x15, 0x18, 0x16, 0x00, 0x16, 0xa0, 0x01, 0x15, 0x02, 0x00];
        assert_eq!(committed_bytes(&meta), Ok(80));
        assert!(committed_bytes(&[]).is_err());
        let words = [&[0x19, 0x28, 0x08][..], b"@NU#LL$!", &[0x06], b"Aachen", &[0x00]].concat();
        assert_eq!(parse_words(&words), Ok(vec!["@NU#LL$!", "Aachen"]));
        let twice = [words.as_slice(), &words].concat();
        assert_eq!(parse_words(&twice).map(|words| words.len()), Ok(4));
    }
}
