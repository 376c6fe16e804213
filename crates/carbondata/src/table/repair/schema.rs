//! A schema file out of the columns of a data file.

use pilaster_core::{Location, Result};
use pilaster_encoding::thrift::{Writer, wire};

use super::super::lost;
use super::super::options::CarbonTableOptions;
use super::super::schema::TableSchema;
use super::thrift::columns;
use crate::messages::ColumnSchema;

/// Hive's way of partitioning, by folders.
const NATIVE_HIVE: i32 = 4;

/// The bytes of a schema file for the columns of the newest data file; `schema` says what was found out about the rest.
pub(super) fn schema(
    table: &Location,
    schema: &TableSchema,
    options: &CarbonTableOptions,
) -> Result<Vec<u8>> {
    let (path, _) = lost::newest_file(table)?;
    let mut columns = columns(&path, &options.limits)?;
    let written = |column: &ColumnSchema| {
        let mut bytes = Vec::new();
        column.write(&mut bytes);
        bytes
    };
    // Those that are not in the data file stand behind those that are.
    let stored = columns.len();
    columns.extend(schema.columns.iter().skip(stored).map(written));
    let is_partition = |column: &&ColumnSchema| {
        schema.partition_columns.iter().any(|name| name.eq_ignore_ascii_case(&column.name))
    };
    let partitions: Vec<Vec<u8>> = schema.columns.iter().filter(is_partition).map(written).collect();
    let mut out = Vec::new();
    let mut info = Writer::new(&mut out);
    info.structure(1, |out| {
        let mut table = Writer::new(out);
        table.text(1, &schema.table_id);
        table.list(2, wire::STRUCT, &columns, |column, out| out.extend_from_slice(column));
        table.structure(3, |out| evolution(schema, out));
        table.text_map(4, &properties());
        if !partitions.is_empty() {
            table.structure(6, |out| {
                let mut writer = Writer::new(out);
                writer.list(1, wire::STRUCT, &partitions, |column, out| out.extend_from_slice(column));
                writer.i32(2, NATIVE_HIVE);
                writer.finish();
            });
        }
        table.finish();
    });
    info.list(2, wire::STRUCT, &[] as &[Vec<u8>], |_, _| {});
    info.finish();
    Ok(out)
}

fn evolution(schema: &TableSchema, out: &mut Vec<u8>) {
    let times: Vec<i64> = schema.evolution.iter().map(|change| change.time).collect();
    let mut writer = Writer::new(out);
    writer.list(1, wire::STRUCT, &times, |time, out| {
        let mut entry = Writer::new(out);
        entry.i64(1, *time);
        entry.finish();
    });
    writer.finish();
}

/// What every table has.
fn properties() -> Vec<(String, String)> {
    let pairs = [
        ("sort_columns", ""),
        ("local_dictionary_enable", "true"),
        ("bad_record_path", ""),
        ("comment", ""),
        ("indexexists", "false"),
        ("indextableexists", "false"),
    ];
    pairs.map(|(key, value)| (key.to_string(), value.to_string())).to_vec()
}
