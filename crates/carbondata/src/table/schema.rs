//! `Metadata/schema`: one Thrift `TableInfo`.

use pilaster_core::error::AtPosition;
use pilaster_core::{Limits, Result, SourceRef};
use pilaster_encoding::thrift::{Reader, Writer, wire};

use crate::messages::{ColumnSchema, Parsed, parse_columns, required, write_columns};

const PART: &str = "carbondata table schema";
/// The only kind of partitions that releases since 2.0 make.
const NATIVE_HIVE: i32 = 4;

/// What the schema file of a table says.
#[derive(Debug, Clone, Default)]
pub struct TableSchema {
    /// The table's own id.
    pub table_id: String,
    /// Columns in storage order, children after their parents.
    pub columns: Vec<ColumnSchema>,
    /// Properties of the table; keys in lower case.
    pub properties: Vec<(String, String)>,
    /// Columns and number of buckets.
    pub buckets: Option<(Vec<String>, i32)>,
    /// Names of the columns whose values are in the names of folders.
    pub partition_columns: Vec<String>,
    /// When the table was made, and how its columns changed since.
    pub evolution: Vec<SchemaChange>,
    /// Name and class of what releases before 2.0 call data maps: indexes and views.
    pub data_maps: Vec<(String, String)>,
}

/// One change of a table's columns; the first is its making.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchemaChange {
    /// Milliseconds since 1970.
    pub time: i64,
    /// Columns that came, or the new form of changed ones.
    pub added: Vec<ColumnSchema>,
    /// Columns that went, or the old form of changed ones.
    pub removed: Vec<ColumnSchema>,
}

impl TableSchema {
    /// Reads a schema file.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if it is none.
    pub fn open(source: &SourceRef, limits: &Limits) -> Result<Self> {
        limits.metadata(source.size()).at(source.name(), 0, PART)?;
        let bytes = source.read_at(0..source.size())?;
        Self::parse(&bytes).at(source.name(), 0, PART)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Parsed<Self> {
        let (mut table, mut data_maps) = (None, Vec::new());
        Reader::new(bytes).structure(|reader, field| {
            match field.id {
                1 => table = Some(reader.structure_field(field, |reader| Self::parse_table(reader))?),
                3 if field.wire == wire::LIST => {
                    data_maps = reader.list(field, wire::STRUCT, |reader| data_map(reader))?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let table: Self = required(table, 0, "a table in the schema file")?;
        Ok(Self { data_maps, ..table })
    }

    /// The columns as they were at a time, in milliseconds since 1970.
    pub fn columns_at(&self, time: i64) -> Vec<ColumnSchema> {
        let mut columns = self.columns.clone();
        for change in self.evolution.iter().rev().take_while(|change| change.time > time) {
            columns.retain(|column| !change.added.iter().any(|added| added.column_id == column.column_id));
            // Releases that keep dropped columns mark them as invisible.
            columns.retain(|column| !change.removed.iter().any(|old| old.column_id == column.column_id));
            columns
                .extend(change.removed.iter().map(|old| ColumnSchema { is_invisible: false, ..old.clone() }));
        }
        columns
    }

    /// When the table was made, in milliseconds since 1970.
    pub fn made(&self) -> Option<i64> {
        self.evolution.first().map(|change| change.time).filter(|time| *time > 0)
    }

    fn parse_table(reader: &mut Reader<'_>) -> Parsed<Self> {
        let at = reader.position();
        let mut table = Self::default();
        let mut columns = None;
        reader.structure(|reader, field| {
            match field.id {
                1 => table.table_id = reader.text(field)?.to_string(),
                2 => columns = Some(parse_columns(reader, field)?),
                3 => table.evolution = reader.structure_field(field, |reader| changes(reader))?,
                4 => {
                    let pairs = reader.text_map(field)?;
                    table.properties =
                        pairs.into_iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
                }
                5 => {
                    let (columns, count) =
                        reader.structure_field(field, |reader| columns_and_number(reader))?;
                    table.buckets = Some((columns, count));
                }
                6 => {
                    let (columns, kind) =
                        reader.structure_field(field, |reader| columns_and_number(reader))?;
                    if kind == NATIVE_HIVE {
                        table.partition_columns = columns;
                    }
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        table.columns = required(columns, at, "a table with columns")?;
        Ok(table)
    }

    /// The bytes of a schema file.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.structure(1, |out| self.write_table(out));
        writer.list(2, wire::STRUCT, &[], |(), _| {});
        writer.finish();
        out
    }

    fn write_table(&self, out: &mut Vec<u8>) {
        let named = |names: &[String]| -> Vec<ColumnSchema> {
            let find = |name: &String| self.columns.iter().find(|column| column.name == *name).cloned();
            names.iter().filter_map(find).collect()
        };
        let write_named = |names: &[String], number: i32, out: &mut Vec<u8>| {
            let mut writer = Writer::new(out);
            write_columns(&mut writer, 1, &named(names));
            writer.i32(2, number);
            writer.finish();
        };
        let mut writer = Writer::new(out);
        writer.text(1, &self.table_id);
        write_columns(&mut writer, 2, &self.columns);
        writer.structure(3, |out| {
            let mut writer = Writer::new(out);
            writer.list(1, wire::STRUCT, &self.evolution, |change, out| {
                let mut writer = Writer::new(out);
                writer.i64(1, change.time);
                write_columns(&mut writer, 2, &change.added);
                write_columns(&mut writer, 3, &change.removed);
                writer.finish();
            });
            writer.finish();
        });
        writer.text_map(4, &self.properties);
        if let Some((columns, count)) = &self.buckets {
            writer.structure(5, |out| write_named(columns, *count, out));
        }
        if !self.partition_columns.is_empty() {
            writer.structure(6, |out| write_named(&self.partition_columns, NATIVE_HIVE, out));
        }
        writer.finish();
    }
}

/// Name and class of a data map.
fn data_map(reader: &mut Reader<'_>) -> Parsed<(String, String)> {
    let (mut name, mut class) = (String::new(), String::new());
    reader.structure(|reader, field| {
        match field.id {
            1 => name = reader.text(field)?.to_string(),
            2 => class = reader.text(field)?.to_string(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((name, class))
}

fn changes(reader: &mut Reader<'_>) -> Parsed<Vec<SchemaChange>> {
    let mut changes = Vec::new();
    reader.structure(|reader, field| {
        if field.id != 1 {
            return Ok(false);
        }
        changes = reader.list(field, wire::STRUCT, |reader| {
            let mut change = SchemaChange::default();
            reader.structure(|reader, field| {
                match field.id {
                    1 => change.time = reader.i64(field)?,
                    2 => change.added = parse_columns(reader, field)?,
                    3 => change.removed = parse_columns(reader, field)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            Ok(change)
        })?;
        Ok(true)
    })?;
    Ok(changes)
}

/// The shape of bucketing and partitioning: 1 columns, 2 a number.
fn columns_and_number(reader: &mut Reader<'_>) -> Parsed<(Vec<String>, i32)> {
    let (mut names, mut number) = (Vec::new(), 0);
    reader.structure(|reader, field| {
        match field.id {
            1 => names = parse_columns(reader, field)?.into_iter().map(|column| column.name).collect(),
            2 => number = reader.i32(field)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((names, number))
}
