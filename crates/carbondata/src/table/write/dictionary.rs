//! Dictionaries of a whole table, in the form of releases before 2.0.
//!
//! Members get their codes in the order they arrive, as a load in a single pass gives them. When the data files are written the
//! new members are appended to `.dict`, a record to `.dictmeta` makes them count, and `.sortindex` is written anew; all before
//! `tablestatus`, so that no code is ever in the table without its member.

use std::collections::HashMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::DataType;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result};
use pilaster_encoding::thrift;

use super::super::dictionary::{committed_bytes, parse_words};
use super::super::open::open_path;
use super::super::status::checked_name;
use super::load::write_whole;
use super::lock::TableLock;
use super::options::CarbonTableWriterOptions;
use crate::file::types::is_global;
use crate::file::write::TableCodes;
use crate::messages::ColumnSchema;

/// Members of a chunk of the file of words.
const CHUNK_MEMBERS: usize = 10_000;

/// A dictionary that a load may extend.
struct OpenDictionary {
    column_id: String,
    is_text: bool,
    codes: Arc<TableCodes>,
    /// Members and bytes that count already.
    known: usize,
    committed: u64,
    _lock: TableLock,
}

/// The dictionaries of a table, while a load extends them.
pub(crate) struct Dictionaries {
    metadata: PathBuf,
    open: Vec<(usize, OpenDictionary)>,
}

/// Whether a column of this type can have a dictionary.
pub(crate) fn can_have_dictionary(data_type: i32) -> bool {
    // STRING, SHORT, INT, LONG, DECIMAL: what has one text for a value.
    matches!(data_type, 0 | 1 | 2 | 3 | 5)
}

fn path_of(metadata: &Path, column_id: &str, ending: &str) -> Result<PathBuf> {
    Ok(metadata.join(checked_name(&format!("{column_id}{ending}"))?))
}

impl Dictionaries {
    /// Opens the dictionaries of those of `columns` that have one, and holds their locks.
    pub fn open(table: &Path, columns: &[ColumnSchema], options: &CarbonTableWriterOptions) -> Result<Self> {
        let metadata = table.join("Metadata");
        let mut open = Vec::new();
        for (place, column) in columns.iter().enumerate().filter(|(_, column)| is_global(column)) {
            if column.ordinal == Some(-1) || !can_have_dictionary(column.data_type) {
                let message =
                    format!("new rows of column {:?}, whose dictionary is of another kind", column.name);
                return Err(Error::unsupported(message));
            }
            let lock = TableLock::take(
                table,
                checked_name(&format!("{}.lock", column.column_id))?,
                options.lock_timeout,
            )?;
            let meta = path_of(&metadata, &column.column_id, ".dictmeta")?;
            let (mut bytes, mut committed) = (Default::default(), 0);
            if meta.exists() {
                let source = open_path(&meta)?;
                let records = source.read_at(0..source.size())?;
                committed = committed_bytes(&records).at(source.name(), 0, "carbondata dictionary meta")?;
                let words = open_path(&path_of(&metadata, &column.column_id, ".dict")?)?;
                Limits::default().metadata(committed).at(words.name(), 0, "carbondata dictionary")?;
                bytes = words.read_at(0..committed)?;
            }
            let members = parse_words(&bytes)?;
            open.push((
                place,
                OpenDictionary {
                    column_id: column.column_id.clone(),
                    is_text: column.data_type == 0,
                    known: members.len(),
                    committed,
                    codes: Arc::new(TableCodes::new(members.into_iter())?),
                    _lock: lock,
                },
            ));
        }
        Ok(Self { metadata, open })
    }

    /// The codes by the place of their column.
    pub fn codes(&self) -> HashMap<usize, Arc<TableCodes>> {
        self.open.iter().map(|(place, dictionary)| (*place, Arc::clone(&dictionary.codes))).collect()
    }

    /// Makes the new members count.
    pub fn commit(&self, options: &CarbonTableWriterOptions) -> Result<()> {
        self.open.iter().try_for_each(|(_, dictionary)| dictionary.commit(&self.metadata, options))
    }
}

impl OpenDictionary {
    fn commit(&self, metadata: &Path, options: &CarbonTableWriterOptions) -> Result<()> {
        let members = self.codes.members();
        let new = members.get(self.known..).unwrap_or_default();
        if new.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for chunk in new.chunks(CHUNK_MEMBERS) {
            let mut writer = thrift::Writer::new(&mut bytes);
            writer.binary_list(1, chunk);
            writer.finish();
        }
        let path = path_of(metadata, &self.column_id, ".dict")?;
        let name = path.display().to_string();
        let mut file =
            std::fs::File::options().create(true).truncate(false).write(true).open(&path).at(&name, 0, "")?;
        // What an unfinished load left behind goes.
        file.set_len(self.committed).at(&name, 0, "")?;
        file.seek(SeekFrom::End(0)).at(&name, 0, "")?;
        file.write_all(&bytes).at(&name, self.committed, "")?;
        file.sync_all().at(&name, 0, "")?;
        options.step("dict");
        let end = self.committed.saturating_add(bytes.len() as u64);
        let order = sort_order(&members, self.is_text);
        let index = path_of(metadata, &self.column_id, &format!("_{end}.sortindex"))?;
        write_whole(&index, &sort_index(&order))?;
        options.step("sortindex");
        let path = path_of(metadata, &self.column_id, ".dictmeta")?;
        let mut records = match path.exists() {
            true => std::fs::read(&path).at(&path.display().to_string(), 0, "")?,
            false => Vec::new(),
        };
        let number = |value: usize| i32::try_from(value).unwrap_or(i32::MAX);
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let mut writer = thrift::Writer::new(&mut records);
        writer.i32(1, number(self.known.saturating_add(1)));
        writer.i32(2, number(members.len()));
        writer.i64(3, signed(self.committed));
        writer.i64(4, signed(end));
        writer.i32(5, number(new.len().div_ceil(CHUNK_MEMBERS)));
        writer.finish();
        write_whole(&path, &records)?;
        options.step("dictmeta");
        Ok(())
    }
}

/// Codes in the order of their members: texts as Java compares them, numbers as numbers, what is none last.
fn sort_order(members: &[String], is_text: bool) -> Vec<i32> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    let member = |place: &usize| members.get(*place).map(String::as_str).unwrap_or_default();
    if is_text {
        order.sort_by(|a, b| member(a).encode_utf16().cmp(member(b).encode_utf16()));
    } else {
        let number = |place: &usize| {
            let text = arrow_array::StringArray::from(vec![member(place)]);
            let wide = arrow_cast::cast::cast(&text, &DataType::Decimal128(38, 18)).ok()?;
            let wide = arrow_array::cast::AsArray::as_primitive::<arrow_array::types::Decimal128Type>(&wide);
            wide.iter().next().flatten()
        };
        let keys: Vec<_> = (0..members.len()).map(|place| number(&place)).collect();
        let key = |place: &usize| keys.get(*place).copied().flatten();
        order.sort_by_key(|place| (key(place).is_none(), key(place)));
    }
    order.iter().map(|place| i32::try_from(place.saturating_add(1)).unwrap_or(i32::MAX)).collect()
}

/// `ColumnSortInfo`: the code of each rank, and the rank of each code.
fn sort_index(order: &[i32]) -> Vec<u8> {
    let mut ranks = vec![0i32; order.len()];
    for (rank, code) in order.iter().enumerate() {
        let place = usize::try_from(code.saturating_sub(1)).unwrap_or_default();
        if let Some(slot) = ranks.get_mut(place) {
            *slot = i32::try_from(rank.saturating_add(1)).unwrap_or(i32::MAX);
        }
    }
    let mut out = Vec::new();
    let mut writer = thrift::Writer::new(&mut out);
    writer.i32_list(1, order);
    writer.i32_list(2, &ranks);
    writer.finish();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn texts_are_sorted_as_java_does_and_numbers_as_numbers() {
        let texts = members(&["@NU#LL$!", "b", "\u{1f600}", "\u{ffff}", "A"]);
        assert_eq!(sort_order(&texts, true), [1, 5, 2, 3, 4]);
        let numbers = members(&["@NU#LL$!", "10", "-3", "9"]);
        assert_eq!(sort_order(&numbers, false), [3, 4, 2, 1]);
    }

    #[test]
    fn a_sort_index_goes_both_ways() {
        let bytes = sort_index(&[3, 1, 2]);
        assert_eq!(bytes, [0x19, 0x35, 6, 2, 4, 0x19, 0x35, 4, 6, 2, 0]);
    }
}
