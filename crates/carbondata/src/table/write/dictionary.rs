//! Dictionaries of a whole table, in the form of releases before 2.0.
//!
//! Members get their codes in the order they arrive, as a load in a single pass gives them. When the data files are written the
//! new members are appended to `.dict`, a record to `.dictmeta` makes them count, and `.sortindex` is written anew; all before
//! `tablestatus`, so that no code is ever in the table without its member.

use std::collections::HashMap;
use std::sync::Arc;

use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Location, Result};
use pilaster_encoding::thrift;

use super::super::dictionary::{committed_bytes, parse_words};
use super::super::open::open_file;
use super::super::repair::words;
use super::super::status::checked_name;
use super::lock::TableLock;
use super::options::CarbonTableWriterOptions;
use crate::file::types::is_global;
use crate::file::write::TableCodes;
use crate::file::write::strings::fitting;
use crate::messages::ColumnSchema;

/// Members of a chunk of the file of entries.
const CHUNK_MEMBERS: usize = 10_000;

/// A dictionary that a load may extend.
struct OpenDictionary {
    column: ColumnSchema,
    codes: Arc<TableCodes>,
    /// Members and bytes that count already.
    known: usize,
    committed: u64,
    _lock: TableLock,
}

/// The dictionaries of a table, while a load extends them.
pub(crate) struct Dictionaries {
    metadata: Location,
    open: Vec<(usize, OpenDictionary)>,
}

/// Whether a column of this type can have a dictionary.
pub(crate) fn can_have_dictionary(data_type: i32) -> bool {
    // STRING, SHORT, INT, LONG, DECIMAL: what has one text for a value.
    matches!(data_type, 0 | 1 | 2 | 3 | 5)
}

fn file_of(metadata: &Location, column_id: &str, ending: &str) -> Result<Location> {
    Ok(metadata.child(checked_name(&format!("{column_id}{ending}"))?))
}

impl Dictionaries {
    /// Opens the dictionaries of those of `columns` that have one, and holds their locks.
    pub fn open(
        table: &Location,
        columns: &[ColumnSchema],
        options: &CarbonTableWriterOptions,
    ) -> Result<Self> {
        let metadata = table.child("Metadata");
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
            let meta = file_of(&metadata, &column.column_id, ".dictmeta")?;
            let (mut bytes, mut committed) = (Default::default(), 0);
            if meta.entry()?.is_some() {
                let source = open_file(&meta)?;
                let records = source.read_at(0..source.size())?;
                committed = committed_bytes(&records).at(source.name(), 0, "carbondata dictionary meta")?;
                let dict = open_file(&file_of(&metadata, &column.column_id, ".dict")?)?;
                Limits::default().metadata(committed).at(dict.name(), 0, "carbondata dictionary")?;
                bytes = dict.read_at(0..committed)?;
            }
            let members = parse_words(&bytes)?;
            open.push((
                place,
                OpenDictionary {
                    column: column.clone(),
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
    fn commit(&self, metadata: &Location, options: &CarbonTableWriterOptions) -> Result<()> {
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
        let file = file_of(metadata, &self.column.column_id, ".dict")?;
        match file.entry()? {
            // What an unfinished load left behind goes.
            Some(found) => file.replace_end(found.size(), self.committed, &bytes)?,
            None => file.write(&bytes)?,
        }
        options.step("dict");
        let end = self.committed.saturating_add(bytes.len() as u64);
        let index = file_of(metadata, &self.column.column_id, &format!("_{end}.sortindex"))?;
        index.write(&words::bytes(&words::order(&self.column, &members)))?;
        options.step("sortindex");
        let file = file_of(metadata, &self.column.column_id, ".dictmeta")?;
        let mut records = match file.entry()? {
            Some(_) => {
                let source = open_file(&file)?;
                Limits::default().metadata(source.size()).at(
                    source.name(),
                    0,
                    "carbondata dictionary meta",
                )?;
                source.read_at(0..source.size())?.to_vec()
            }
            None => Vec::new(),
        };
        let number = |value: usize| fitting::<i32>(value, "the members of a dictionary");
        let signed = |value: u64| {
            i64::try_from(value).map_err(|_| Error::invalid(format!("a dictionary of {value} bytes")))
        };
        let mut writer = thrift::Writer::new(&mut records);
        writer.i32(1, number(self.known.saturating_add(1))?);
        writer.i32(2, number(members.len())?);
        writer.i64(3, signed(self.committed)?);
        writer.i64(4, signed(end)?);
        writer.i32(5, number(new.len().div_ceil(CHUNK_MEMBERS))?);
        writer.finish();
        file.write(&records)?;
        options.step("dictmeta");
        Ok(())
    }
}
