//! A tablet's schema as a message, there and back.

use std::collections::BTreeSet;

use pilaster_core::{Error, Result};

use super::messages::{ColumnGroupPb, ColumnGroupsPb, ColumnPb, TabletIndexPb, TabletSchemaPb};
use crate::messages;
use crate::schema::{
    DELETE_SIGN_COLUMN, KeysType, ROW_STORE_COLUMN, SEQUENCE_COLUMN, SKIP_BITMAP_COLUMN, SchemaColumn,
    SchemaIndex, SequenceGroup, TabletSchema, VERSION_COLUMN,
};
use crate::segment::{Compression, StorageFormat};

/// `TabletIndexPB.index_type`, by number.
const INDEX_TYPES: [&str; 5] = ["BITMAP", "INVERTED", "BLOOMFILTER", "NGRAM_BF", "ANN"];
/// `TabletSchemaPB.binary_plain_encoding_default_impl` of format V3.
const PLAIN_V3: i32 = 3;
/// Rows between two short keys, as the schema says it.
const ROWS_PER_BLOCK: i32 = 1024;

/// What a message says of how segments are stored.
fn storage_of(message: &TabletSchemaPb) -> TabletSchema {
    let is_v3 = match message.storage_format {
        Some(3) => true,
        Some(_) => false,
        None => {
            message.is_external_segment_column_meta_used == Some(true)
                || message.integer_type_default_use_plain_encoding == Some(true)
                || message.binary_plain_encoding_default_impl.is_some_and(|number| number > 1)
        }
    };
    let size =
        |bytes: Option<i64>| bytes.and_then(|bytes| u32::try_from(bytes).ok()).filter(|bytes| *bytes > 0);
    TabletSchema {
        storage_format: Some(if is_v3 { StorageFormat::V3 } else { StorageFormat::V2 }),
        compression: message.compression_type.and_then(|number| Compression::from_number(number).ok()),
        bf_fpp: message.bf_fpp.filter(|rate| *rate > 0.0 && *rate < 1.0),
        storage_page_size: size(message.storage_page_size),
        storage_dict_page_size: size(message.storage_dict_page_size),
        row_store_page_size: size(message.row_store_page_size),
        row_store_column_unique_ids: message.row_store_column_unique_ids.clone(),
        indexes: message.index.iter().map(index_of).collect(),
        sequence_groups: message.seq_map.iter().flat_map(|groups| &groups.cg).map(group_of).collect(),
        ..TabletSchema::default()
    }
}

fn index_of(message: &TabletIndexPb) -> SchemaIndex {
    let kind = message.index_type.and_then(|number| usize::try_from(number).ok());
    SchemaIndex {
        index_id: message.index_id.unwrap_or_default(),
        index_name: message.index_name.clone().unwrap_or_default(),
        index_type: kind.and_then(|number| INDEX_TYPES.get(number)).copied().unwrap_or_default().to_string(),
        column_unique_ids: message.col_unique_id.clone(),
        properties: message.properties.clone(),
    }
}

/// The schema that a message describes.
pub(super) fn parse_schema(message: &TabletSchemaPb) -> Result<TabletSchema> {
    let schema = TabletSchema {
        keys_type: match message.keys_type.unwrap_or(0) {
            0 => KeysType::Duplicate,
            1 => KeysType::Unique,
            2 => KeysType::Aggregate,
            other => return Err(Error::corrupt("a keys type of 0, 1 or 2", other)),
        },
        columns: message
            .column
            .iter()
            .filter(|column| !is_path(column))
            .map(parse_column)
            .collect::<Result<_>>()?,
        num_short_key_columns: usize::try_from(message.num_short_key_columns.unwrap_or(0)).unwrap_or(0),
        merge_on_write: false,
        cluster_key_uids: message.cluster_key_uids.clone(),
        ..storage_of(message)
    };
    check_groups(&schema)?;
    Ok(schema)
}

/// Whether it is a path of a VARIANT: rowsets of some releases list those that they have columns for.
fn is_path(column: &ColumnPb) -> bool {
    let parent = column.column_path_info.as_ref().and_then(|path| path.parent_unique_id);
    parent.is_some_and(|id| !id.cast_signed().is_negative())
}

/// That every group has its sequence column, no column belongs to two, and none is a key.
fn check_groups(schema: &TabletSchema) -> Result<()> {
    let mut taken = BTreeSet::new();
    for group in &schema.sequence_groups {
        let sequence = group.sequence_column;
        if !schema.columns.iter().any(|column| column.unique_id == sequence) {
            return Err(Error::corrupt("the sequence column of a group", format!("no column {sequence}")));
        }
        for id in group.columns_in_group.iter().chain([&sequence]) {
            let is_key = schema.columns.iter().any(|column| column.unique_id == *id && column.is_key);
            if is_key || !taken.insert(*id) {
                return Err(Error::corrupt("value columns that belong to one group", format!("column {id}")));
            }
        }
    }
    if !taken.is_empty() && schema.columns.iter().any(|column| column.name == SEQUENCE_COLUMN) {
        return Err(Error::corrupt("sequences of a table or of its column groups", "both"));
    }
    Ok(())
}

fn parse_column(message: &ColumnPb) -> Result<SchemaColumn> {
    let default_value =
        message.default_value.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    Ok(SchemaColumn {
        unique_id: messages::required(message.unique_id, "unique_id")?,
        name: message.name.clone().unwrap_or_default(),
        type_name: messages::required(message.type_name.clone(), "type")?,
        is_key: message.is_key.unwrap_or(false),
        is_nullable: message.is_nullable.unwrap_or(false),
        aggregation: message.aggregation.clone(),
        length: message.length.unwrap_or(0),
        index_length: message.index_length.unwrap_or(0),
        precision: message.precision.unwrap_or(0),
        frac: message.frac.unwrap_or(0),
        visible: message.visible.unwrap_or(true),
        default_value,
        children: message.children_columns.iter().map(parse_column).collect::<Result<_>>()?,
        has_bitmap_index: message.has_bitmap_index.unwrap_or(false),
        is_bf_column: message.is_bf_column.unwrap_or(false),
        result_is_nullable: message.result_is_nullable.unwrap_or(false),
        be_exec_version: message.be_exec_version,
        variant_max_subcolumns_count: message.variant_max_subcolumns_count,
    })
}

/// The message of a schema.
pub(super) fn schema_message(schema: &TabletSchema) -> TabletSchemaPb {
    let place = |name: &str| {
        let found = schema.columns.iter().position(|column| column.name == name);
        Some(found.and_then(|at| i32::try_from(at).ok()).unwrap_or(-1))
    };
    let is_v3 = schema.storage_format == Some(StorageFormat::V3);
    let keys = schema.columns.iter().filter(|column| column.is_key).count();
    TabletSchemaPb {
        keys_type: Some(match schema.keys_type {
            KeysType::Duplicate => 0,
            KeysType::Unique => 1,
            KeysType::Aggregate => 2,
        }),
        column: schema.columns.iter().map(column_message).collect(),
        num_short_key_columns: i32::try_from(schema.num_short_key_columns).ok(),
        num_rows_per_row_block: Some(ROWS_PER_BLOCK),
        bf_fpp: schema.bf_fpp,
        next_column_unique_id: Some(largest_id(&schema.columns).saturating_add(1).cast_unsigned()),
        is_in_memory: Some(false),
        delete_sign_idx: place(DELETE_SIGN_COLUMN),
        sequence_col_idx: place(SEQUENCE_COLUMN),
        sort_type: Some(0),
        sort_col_num: i32::try_from(keys).ok(),
        compression_type: Some(schema.compression.unwrap_or(Compression::Lz4Frame).number()),
        schema_version: Some(0),
        disable_auto_compaction: Some(false),
        index: schema.indexes.iter().map(index_message).collect(),
        version_col_idx: place(VERSION_COLUMN),
        store_row_column: Some(schema.columns.iter().any(|column| column.name == ROW_STORE_COLUMN)),
        cluster_key_uids: schema.cluster_key_uids.clone(),
        row_store_column_unique_ids: schema.row_store_column_unique_ids.clone(),
        row_store_page_size: schema.row_store_page_size.map(i64::from),
        skip_bitmap_col_idx: place(SKIP_BITMAP_COLUMN),
        storage_page_size: schema.storage_page_size.map(i64::from),
        storage_dict_page_size: schema.storage_dict_page_size.map(i64::from),
        is_external_segment_column_meta_used: is_v3.then_some(true),
        integer_type_default_use_plain_encoding: is_v3.then_some(true),
        binary_plain_encoding_default_impl: is_v3.then_some(PLAIN_V3),
        seq_map: (!schema.sequence_groups.is_empty())
            .then(|| ColumnGroupsPb { cg: schema.sequence_groups.iter().map(group_message).collect() }),
        storage_format: Some(if is_v3 { 3 } else { 2 }),
    }
}

fn group_of(message: &ColumnGroupPb) -> SequenceGroup {
    SequenceGroup {
        sequence_column: message.sequence_column.unwrap_or_default().cast_signed(),
        columns_in_group: message.columns_in_group.iter().map(|id| id.cast_signed()).collect(),
    }
}

fn group_message(group: &SequenceGroup) -> ColumnGroupPb {
    ColumnGroupPb {
        sequence_column: Some(group.sequence_column.cast_unsigned()),
        columns_in_group: group.columns_in_group.iter().map(|id| id.cast_unsigned()).collect(),
    }
}

fn largest_id(columns: &[SchemaColumn]) -> i32 {
    let ids = columns.iter().map(|column| column.unique_id.max(largest_id(&column.children)));
    ids.max().unwrap_or(-1)
}

fn index_message(index: &SchemaIndex) -> TabletIndexPb {
    let kind = INDEX_TYPES.iter().position(|name| index.index_type.eq_ignore_ascii_case(name));
    TabletIndexPb {
        index_id: Some(index.index_id),
        index_name: Some(index.index_name.clone()),
        index_type: kind.and_then(|number| i32::try_from(number).ok()),
        col_unique_id: index.column_unique_ids.clone(),
        properties: index.properties.clone(),
    }
}

fn column_message(column: &SchemaColumn) -> ColumnPb {
    ColumnPb {
        unique_id: Some(column.unique_id),
        name: Some(column.name.clone()),
        type_name: Some(column.type_name.clone()),
        is_key: Some(column.is_key),
        aggregation: Some(column.aggregation.clone().unwrap_or_else(|| "NONE".to_string())),
        is_nullable: Some(column.is_nullable),
        default_value: column.default_value.clone().map(String::into_bytes),
        precision: Some(column.precision),
        frac: Some(column.frac),
        length: Some(column.length),
        index_length: Some(column.index_length),
        is_bf_column: column.is_bf_column.then_some(true),
        has_bitmap_index: Some(false),
        visible: Some(column.visible),
        children_columns: column.children.iter().map(column_message).collect(),
        result_is_nullable: column.result_is_nullable.then_some(true),
        column_path_info: None,
        be_exec_version: column.be_exec_version,
        variant_max_subcolumns_count: column.variant_max_subcolumns_count,
    }
}
