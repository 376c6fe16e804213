//! The protobuf messages of tablets and rowsets, which Doris also writes as JSON: names of fields as here, enums by name, bytes in
//! base64. What only writers need is not read from JSON.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::json;
use crate::messages::PathInfoPb;

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct TabletMetaPb {
    #[prost(int64, optional, tag = "1")]
    pub table_id: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub partition_id: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub tablet_id: Option<i64>,
    #[prost(int32, optional, tag = "4")]
    pub schema_hash: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub shard_id: Option<i32>,
    #[prost(int64, optional, tag = "6")]
    pub creation_time: Option<i64>,
    #[prost(int64, optional, tag = "7")]
    pub cumulative_layer_point: Option<i64>,
    #[prost(int32, optional, tag = "8")]
    #[serde(deserialize_with = "json::tablet_state")]
    pub tablet_state: Option<i32>,
    #[prost(message, optional, tag = "9")]
    pub schema: Option<TabletSchemaPb>,
    #[prost(message, repeated, tag = "10")]
    pub rs_metas: Vec<RowsetMetaPb>,
    #[prost(bool, optional, tag = "13")]
    pub in_restore_mode: Option<bool>,
    #[prost(message, optional, tag = "14")]
    pub tablet_uid: Option<UniqueIdPb>,
    #[prost(int32, optional, tag = "16")]
    #[serde(skip)]
    pub preferred_rowset_type: Option<i32>,
    #[prost(int32, optional, tag = "17")]
    #[serde(skip)]
    pub tablet_type: Option<i32>,
    #[prost(message, repeated, tag = "18")]
    pub stale_rs_metas: Vec<RowsetMetaPb>,
    #[prost(int64, optional, tag = "21")]
    pub replica_id: Option<i64>,
    #[prost(message, optional, tag = "23")]
    pub delete_bitmap: Option<DeleteBitmapPb>,
    #[prost(bool, optional, tag = "24")]
    pub enable_unique_key_merge_on_write: Option<bool>,
    #[prost(int32, optional, tag = "34")]
    #[serde(deserialize_with = "json::encryption")]
    pub encryption_algorithm: Option<i32>,
    #[prost(int32, optional, tag = "36")]
    #[serde(deserialize_with = "json::tablet_role")]
    pub tablet_role: Option<i32>,
    #[prost(int64, optional, tag = "1000")]
    pub index_id: Option<i64>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct TabletSchemaPb {
    #[prost(int32, optional, tag = "1")]
    #[serde(deserialize_with = "json::keys_type")]
    pub keys_type: Option<i32>,
    #[prost(message, repeated, tag = "2")]
    pub column: Vec<ColumnPb>,
    #[prost(int32, optional, tag = "3")]
    pub num_short_key_columns: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub num_rows_per_row_block: Option<i32>,
    #[prost(double, optional, tag = "6")]
    pub bf_fpp: Option<f64>,
    #[prost(uint32, optional, tag = "7")]
    pub next_column_unique_id: Option<u32>,
    #[prost(bool, optional, tag = "8")]
    pub is_in_memory: Option<bool>,
    #[prost(int32, optional, tag = "9")]
    pub delete_sign_idx: Option<i32>,
    #[prost(int32, optional, tag = "10")]
    pub sequence_col_idx: Option<i32>,
    #[prost(int32, optional, tag = "11")]
    #[serde(skip)]
    pub sort_type: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub sort_col_num: Option<i32>,
    #[prost(int32, optional, tag = "13")]
    #[serde(skip)]
    pub compression_type: Option<i32>,
    #[prost(int32, optional, tag = "14")]
    pub schema_version: Option<i32>,
    #[prost(bool, optional, tag = "15")]
    pub disable_auto_compaction: Option<bool>,
    #[prost(message, repeated, tag = "16")]
    #[serde(skip)]
    pub index: Vec<TabletIndexPb>,
    #[prost(int32, optional, tag = "17")]
    pub version_col_idx: Option<i32>,
    #[prost(bool, optional, tag = "18")]
    pub store_row_column: Option<bool>,
    #[prost(int32, repeated, packed = "false", tag = "24")]
    pub cluster_key_uids: Vec<i32>,
    #[prost(int32, repeated, packed = "false", tag = "26")]
    pub row_store_column_unique_ids: Vec<i32>,
    #[prost(int64, optional, tag = "27")]
    pub row_store_page_size: Option<i64>,
    #[prost(int32, optional, tag = "29")]
    pub skip_bitmap_col_idx: Option<i32>,
    #[prost(int64, optional, tag = "30")]
    pub storage_page_size: Option<i64>,
    #[prost(int64, optional, tag = "31")]
    pub storage_dict_page_size: Option<i64>,
    #[prost(bool, optional, tag = "32")]
    pub is_external_segment_column_meta_used: Option<bool>,
    #[prost(bool, optional, tag = "33")]
    pub integer_type_default_use_plain_encoding: Option<bool>,
    #[prost(int32, optional, tag = "34")]
    pub binary_plain_encoding_default_impl: Option<i32>,
    #[prost(message, optional, tag = "35")]
    pub seq_map: Option<ColumnGroupsPb>,
    #[prost(int32, optional, tag = "36")]
    #[serde(skip)]
    pub storage_format: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct ColumnGroupsPb {
    #[prost(message, repeated, tag = "1")]
    pub cg: Vec<ColumnGroupPb>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct ColumnGroupPb {
    #[prost(uint32, optional, tag = "1")]
    pub sequence_column: Option<u32>,
    #[prost(uint32, repeated, packed = "false", tag = "2")]
    pub columns_in_group: Vec<u32>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct ColumnPb {
    #[prost(int32, optional, tag = "1")]
    pub unique_id: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(string, optional, tag = "3")]
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    #[prost(bool, optional, tag = "4")]
    pub is_key: Option<bool>,
    #[prost(string, optional, tag = "5")]
    pub aggregation: Option<String>,
    #[prost(bool, optional, tag = "6")]
    pub is_nullable: Option<bool>,
    #[prost(bytes = "vec", optional, tag = "7")]
    #[serde(deserialize_with = "json::bytes")]
    pub default_value: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "8")]
    pub precision: Option<i32>,
    #[prost(int32, optional, tag = "9")]
    pub frac: Option<i32>,
    #[prost(int32, optional, tag = "10")]
    pub length: Option<i32>,
    #[prost(int32, optional, tag = "11")]
    pub index_length: Option<i32>,
    #[prost(bool, optional, tag = "12")]
    pub is_bf_column: Option<bool>,
    #[prost(bool, optional, tag = "15")]
    pub has_bitmap_index: Option<bool>,
    #[prost(bool, optional, tag = "16")]
    pub visible: Option<bool>,
    #[prost(message, repeated, tag = "17")]
    pub children_columns: Vec<ColumnPb>,
    #[prost(bool, optional, tag = "19")]
    pub result_is_nullable: Option<bool>,
    #[prost(message, optional, tag = "20")]
    #[serde(skip)]
    pub column_path_info: Option<PathInfoPb>,
    #[prost(int32, optional, tag = "24")]
    pub be_exec_version: Option<i32>,
    #[prost(int32, optional, tag = "25")]
    pub variant_max_subcolumns_count: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct RowsetMetaPb {
    #[prost(int64, optional, tag = "1")]
    pub rowset_id: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub partition_id: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub tablet_id: Option<i64>,
    #[prost(int64, optional, tag = "4")]
    pub txn_id: Option<i64>,
    #[prost(int32, optional, tag = "5")]
    pub tablet_schema_hash: Option<i32>,
    #[prost(int32, optional, tag = "6")]
    #[serde(deserialize_with = "json::rowset_type")]
    pub rowset_type: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    #[serde(deserialize_with = "json::rowset_state")]
    pub rowset_state: Option<i32>,
    #[prost(int64, optional, tag = "8")]
    pub start_version: Option<i64>,
    #[prost(int64, optional, tag = "9")]
    pub end_version: Option<i64>,
    #[prost(int64, optional, tag = "10")]
    pub version_hash: Option<i64>,
    #[prost(int64, optional, tag = "11")]
    pub num_rows: Option<i64>,
    #[prost(int64, optional, tag = "12")]
    pub total_disk_size: Option<i64>,
    #[prost(int64, optional, tag = "13")]
    pub data_disk_size: Option<i64>,
    #[prost(int64, optional, tag = "14")]
    pub index_disk_size: Option<i64>,
    #[prost(message, optional, tag = "16")]
    pub delete_predicate: Option<DeletePredicatePb>,
    #[prost(bool, optional, tag = "17")]
    pub empty: Option<bool>,
    #[prost(int64, optional, tag = "20")]
    pub creation_time: Option<i64>,
    #[prost(message, optional, tag = "21")]
    pub tablet_uid: Option<UniqueIdPb>,
    #[prost(int64, optional, tag = "22")]
    pub num_segments: Option<i64>,
    #[prost(string, optional, tag = "23")]
    pub rowset_id_v2: Option<String>,
    #[prost(string, optional, tag = "24")]
    pub resource_id: Option<String>,
    #[prost(int64, optional, tag = "26")]
    pub newest_write_timestamp: Option<i64>,
    #[prost(message, repeated, tag = "27")]
    #[serde(skip)]
    pub segments_key_bounds: Vec<KeyBoundsPb>,
    #[prost(message, optional, tag = "28")]
    pub tablet_schema: Option<TabletSchemaPb>,
    #[prost(int32, optional, tag = "51")]
    #[serde(skip)]
    pub segments_overlap_pb: Option<i32>,
    #[prost(int64, repeated, packed = "false", tag = "56")]
    pub num_segment_rows: Vec<i64>,
    #[prost(int64, repeated, packed = "false", tag = "1001")]
    pub segments_file_size: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct DeletePredicatePb {
    #[prost(int32, optional, tag = "1")]
    pub version: Option<i32>,
    #[prost(string, repeated, tag = "2")]
    pub sub_predicates: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    pub in_predicates: Vec<InPredicatePb>,
    #[prost(message, repeated, tag = "4")]
    pub sub_predicates_v2: Vec<SubPredicatePb>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct InPredicatePb {
    #[prost(string, optional, tag = "1")]
    pub column_name: Option<String>,
    #[prost(bool, optional, tag = "2")]
    pub is_not_in: Option<bool>,
    #[prost(string, repeated, tag = "3")]
    pub values: Vec<String>,
    #[prost(int32, optional, tag = "4")]
    pub column_unique_id: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct SubPredicatePb {
    #[prost(int32, optional, tag = "1")]
    pub column_unique_id: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub column_name: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub op: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub cond_value: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct DeleteBitmapPb {
    #[prost(string, repeated, tag = "1")]
    pub rowset_ids: Vec<String>,
    #[prost(uint32, repeated, packed = "false", tag = "2")]
    pub segment_ids: Vec<u32>,
    #[prost(int64, repeated, packed = "false", tag = "3")]
    pub versions: Vec<i64>,
    #[prost(bytes = "vec", repeated, tag = "4")]
    #[serde(deserialize_with = "json::all_bytes")]
    pub segment_delete_bitmaps: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct UniqueIdPb {
    #[prost(int64, optional, tag = "1")]
    pub hi: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub lo: Option<i64>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct KeyBoundsPb {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub min_key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub max_key: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct TabletIndexPb {
    #[prost(int64, optional, tag = "1")]
    pub index_id: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub index_name: Option<String>,
    #[prost(int32, optional, tag = "3")]
    pub index_type: Option<i32>,
    #[prost(int32, repeated, packed = "false", tag = "4")]
    pub col_unique_id: Vec<i32>,
    #[prost(btree_map = "string, string", tag = "5")]
    pub properties: BTreeMap<String, String>,
}
