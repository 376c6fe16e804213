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
    /// When the schema was made and changed, in milliseconds since 1970.
    pub changes: Vec<i64>,
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
        let mut table = None;
        Reader::new(bytes).structure(|reader, field| {
            if field.id == 1 {
                table = Some(reader.structure_field(field, |reader| Self::parse_table(reader))?);
            }
            Ok(field.id == 1)
        })?;
        required(table, 0, "a table in the schema file")
    }

    fn parse_table(reader: &mut Reader<'_>) -> Parsed<Self> {
        let at = reader.position();
        let mut table = Self::default();
        let mut columns = None;
        reader.structure(|reader, field| {
            match field.id {
                1 => table.table_id = reader.text(field)?.to_string(),
                2 => columns = Some(parse_columns(reader, field)?),
                3 => table.changes = reader.structure_field(field, |reader| changes(reader))?,
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
            writer.list(1, wire::STRUCT, &self.changes, |time, out| {
                let mut writer = Writer::new(out);
                writer.i64(1, *time);
                writer.list(2, wire::STRUCT, &[], |(), _| {});
                writer.list(3, wire::STRUCT, &[], |(), _| {});
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

fn changes(reader: &mut Reader<'_>) -> Parsed<Vec<i64>> {
    let mut times = Vec::new();
    reader.structure(|reader, field| {
        if field.id != 1 {
            return Ok(false);
        }
        times = reader.list(field, wire::STRUCT, |reader| {
            let mut time = 0;
            reader.structure(|reader, field| {
                if field.id == 1 {
                    time = reader.i64(field)?;
                }
                Ok(field.id == 1)
            })?;
            Ok(time)
        })?;
        Ok(true)
    })?;
    Ok(times)
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
