//! What a load writes, out of the options and what the table says of itself.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};
use pilaster_core::{Error, Limits, Location, Result};

use super::super::buckets::Buckets;
use super::super::open::{open_file, schema_path};
use super::super::schema::{SchemaChange, TableSchema};
use super::dictionary::can_have_dictionary;
use super::load::{LoadPlan, places_of};
use super::options::CarbonTableWriterOptions;
use crate::file::CarbonWriterOptions;
use crate::file::types::{column_trees, is_global};
use crate::file::write::Release;
use crate::file::write::columns::{Naming, columns_of, is_sort_column, random_id};
use crate::messages::ColumnSchema;

/// Where segments lie in a table.
pub(crate) const FACT: &str = "Fact/Part0";

/// The folder of a segment in a table.
pub(crate) fn segment_folder(id: &str) -> PathBuf {
    Path::new(FACT).join(format!("Segment_{id}"))
}

/// What the schema file of a table says.
pub(crate) fn read_table(folder: &Location) -> Result<TableSchema> {
    let name = folder.to_string();
    let missing = || Error::invalid("no CarbonData table: Metadata has no schema file").at(&name, 0, "");
    TableSchema::open(&open_file(&schema_path(folder)?.ok_or_else(missing)?)?, &Limits::default())
}

/// The schema file of a new table.
pub(crate) fn new_table(
    schema: &SchemaRef,
    options: &CarbonTableWriterOptions,
    time: i64,
) -> Result<TableSchema> {
    let files = &options.files;
    let is_partition = |name: &str| options.partition_columns.iter().position(|known| known == name);
    // The engine wants the columns of partitions to be the last.
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    fields.sort_by_key(|field| {
        is_partition(&field.name().to_lowercase()).map_or(0, |place| place.saturating_add(1))
    });
    let schema = &Schema::new(fields);
    let columns = columns_of(schema, files, &options.dictionary_columns, Naming::Table)?;
    let top =
        |name: &String| columns.iter().find(|column| column.name == *name && column.ordinal != Some(-1));
    for (names, what) in [
        (&options.partition_columns, "partition by"),
        (&options.bucket_columns, "put rows into buckets by"),
        (&options.dictionary_columns, "have a dictionary for"),
    ] {
        if let Some(name) = names.iter().find(|name| top(name).is_none()) {
            return Err(Error::invalid(format!("no column {name:?} to {what}")));
        }
    }
    for name in &options.dictionary_columns {
        if top(name).is_some_and(|column| !can_have_dictionary(column.data_type)) {
            return Err(Error::invalid(format!("column {name:?} has a type without a dictionary")));
        }
        if files.sort_columns.contains(name) {
            return Err(Error::invalid(format!("column {name:?} has a dictionary and cannot be sorted by")));
        }
    }
    for name in &options.partition_columns {
        let is_also = files.sort_columns.contains(name) || options.dictionary_columns.contains(name);
        if is_also {
            let message = format!("column {name:?} of partitions cannot be sorted by or have a dictionary");
            return Err(Error::invalid(message));
        }
    }
    if options.bucket_columns.is_empty() != (options.buckets == 0) {
        return Err(Error::invalid("buckets need both columns and a number"));
    }
    let buckets = i32::try_from(options.buckets).map_err(|_| Error::invalid("too many buckets"))?;
    let flag = |value: bool| if value { "true" } else { "false" }.to_string();
    let mebibytes = |bytes: u64| (bytes >> 20).max(1).to_string();
    let defaults = CarbonWriterOptions::default();
    let mut properties: Vec<(String, String)> = vec![
        ("sort_columns".into(), files.sort_columns.join(",")),
        ("local_dictionary_enable".into(), flag(files.local_dictionary)),
        ("bad_record_path".into(), String::new()),
        ("comment".into(), String::new()),
        ("indexexists".into(), flag(false)),
        ("indextableexists".into(), flag(false)),
    ];
    let mut optional = |is_set: bool, key: &str, value: String| {
        if is_set {
            properties.push((key.into(), value));
        }
    };
    optional(!files.sort_columns.is_empty(), "sort_scope", "GLOBAL_SORT".into());
    optional(!files.long_strings.is_empty(), "long_string_columns", files.long_strings.join(","));
    optional(!files.inverted_index.is_empty(), "inverted_index", files.inverted_index.join(","));
    optional(files.block_bytes != defaults.block_bytes, "table_blocksize", mebibytes(files.block_bytes));
    optional(
        files.blocklet_bytes != defaults.blocklet_bytes,
        "table_blocklet_size",
        mebibytes(files.blocklet_bytes),
    );
    optional(
        files.page_bytes != defaults.page_bytes,
        "table_page_size_inmb",
        mebibytes(files.page_bytes as u64),
    );
    optional(
        files.local_dictionary_threshold != defaults.local_dictionary_threshold,
        "local_dictionary_threshold",
        files.local_dictionary_threshold.to_string(),
    );
    optional(
        files.compressor != defaults.compressor,
        "carbon.column.compressor",
        files.compressor.name().into(),
    );
    optional(buckets > 0, "bucket_columns", options.bucket_columns.join(","));
    optional(buckets > 0, "bucket_number", buckets.to_string());
    optional(
        !options.dictionary_columns.is_empty(),
        "dictionary_include",
        options.dictionary_columns.join(","),
    );
    for (key, value) in &options.properties {
        match properties.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => known.clone_from(value),
            None => properties.push((key.clone(), value.clone())),
        }
    }
    Ok(TableSchema {
        table_id: random_id(),
        columns,
        properties,
        buckets: (buckets > 0).then(|| (options.bucket_columns.clone(), buckets)),
        partition_columns: options.partition_columns.clone(),
        evolution: vec![SchemaChange { time, ..SchemaChange::default() }],
        data_maps: Vec::new(),
    })
}

/// How the files of a table are written: as its properties say, else as `files` does.
pub(crate) fn table_files(table: &TableSchema, files: &CarbonWriterOptions) -> Result<CarbonWriterOptions> {
    let property =
        |key: &str| table.properties.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
    let number = |key: &str| property(key).and_then(|value| value.trim().parse::<u64>().ok());
    let mut files = files.clone();
    if let Some(size) = number("table_blocksize") {
        files = files.with_block_bytes(size.saturating_mul(1 << 20));
    }
    if let Some(size) = number("table_blocklet_size") {
        files = files.with_blocklet_bytes(size.saturating_mul(1 << 20));
    }
    if let Some(size) = number("table_page_size_inmb") {
        files = files.with_page_bytes(usize::try_from(size.saturating_mul(1 << 20)).unwrap_or(usize::MAX));
    }
    if let Some(words) = number("local_dictionary_threshold") {
        files = files.with_local_dictionary_threshold(usize::try_from(words).unwrap_or(usize::MAX));
    }
    if let Some(enable) = property("local_dictionary_enable") {
        files = files.with_local_dictionary(enable.eq_ignore_ascii_case("true"));
    }
    if let Some(name) = property("carbon.column.compressor") {
        files = files.with_compressor(name.parse()?);
    }
    Ok(files)
}

/// The columns of a flat list that were not dropped, with their children, dimensions before measures.
fn stored_trees(columns: &[ColumnSchema]) -> Vec<ColumnSchema> {
    let mut trees: Vec<Vec<ColumnSchema>> = Vec::new();
    for column in columns {
        let is_top = column.ordinal != Some(-1) && !column.name.contains('.');
        match trees.last_mut() {
            Some(tree) if !is_top => tree.push(column.clone()),
            _ => trees.push(vec![column.clone()]),
        }
    }
    let top = |tree: &Vec<ColumnSchema>| tree.first().cloned();
    trees.retain(|tree| top(tree).is_some_and(|top| !top.is_invisible));
    trees.sort_by_key(|tree| top(tree).is_some_and(|top| !top.is_dimension));
    trees.into_iter().flatten().collect()
}

/// What a load of segment `id` writes; `is_old` for a table of a release before 2.0.
pub(crate) fn plan(
    root: &Location,
    table: &TableSchema,
    id: &str,
    time: i64,
    is_old: bool,
    options: &CarbonTableWriterOptions,
) -> Result<LoadPlan> {
    let depth = Limits::default().depth;
    let columns = stored_trees(&table.columns);
    let trees = column_trees(&columns, depth)?;
    let fields: Vec<_> = trees.iter().map(|tree| Arc::clone(&tree.field)).collect();
    let schema = Schema::new(fields);
    let sorted: Vec<_> =
        columns.iter().filter(|column| is_sort_column(column)).map(|column| column.name.clone()).collect();
    // A table may name sort columns and yet not be sorted.
    let is_unsorted =
        |(key, value): &(String, String)| key == "sort_scope" && value.eq_ignore_ascii_case("no_sort");
    let sort_columns = match table.properties.iter().any(is_unsorted) {
        true => Vec::new(),
        false => places_of(&schema, &sorted)?,
    };
    let (bucket_names, buckets) = table.buckets.clone().unwrap_or_default();
    if table.buckets.is_some() && Buckets::of(table).is_none() {
        return Err(Error::unsupported("writing rows into buckets by another hash than Spark's"));
    }
    let bucket_columns = places_of(&schema, &bucket_names)?;
    let is_flat = |place: &usize| !schema.field(*place).data_type().is_nested();
    if !bucket_columns.iter().all(is_flat)
        || bucket_columns.iter().any(|place| schema.field(*place).data_type() == &DataType::BinaryView)
    {
        return Err(Error::invalid("rows cannot be put into buckets by nested columns or bytes"));
    }
    // Rows would be in the order of codes, which come with the rows.
    let is_coded = |column: &ColumnSchema| is_global(column) && is_sort_column(column);
    let sort_columns = if columns.iter().any(is_coded) { Vec::new() } else { sort_columns };
    Ok(LoadPlan {
        root: root.clone(),
        folder: segment_folder(id),
        release: Release::of(&columns, is_old),
        columns: columns.into(),
        partition_columns: places_of(&schema, &table.partition_columns)?,
        sort_columns,
        bucket_columns,
        buckets: u32::try_from(buckets).unwrap_or_default(),
        schema: Arc::new(schema),
        segment: Some(id.to_string()),
        time,
        schema_time: table.evolution.last().map_or(time, |change| change.time),
        options: options.clone(),
        codes: HashMap::new(),
    })
}
