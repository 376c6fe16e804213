//! The protobuf messages of tablets and rowsets, which Doris also writes as JSON: names of fields as here, enums by name, bytes in
//! base64.

use serde::Deserialize;

use super::json;

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
    #[prost(message, optional, tag = "9")]
    pub schema: Option<TabletSchemaPb>,
    #[prost(message, repeated, tag = "10")]
    pub rs_metas: Vec<RowsetMetaPb>,
    #[prost(message, repeated, tag = "18")]
    pub stale_rs_metas: Vec<RowsetMetaPb>,
    #[prost(message, optional, tag = "23")]
    pub delete_bitmap: Option<DeleteBitmapPb>,
    #[prost(bool, optional, tag = "24")]
    pub enable_unique_key_merge_on_write: Option<bool>,
    #[prost(int32, optional, tag = "34")]
    #[serde(deserialize_with = "json::encryption")]
    pub encryption_algorithm: Option<i32>,
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
    #[prost(int32, repeated, packed = "false", tag = "24")]
    pub cluster_key_uids: Vec<i32>,
    #[prost(bytes = "vec", repeated, tag = "35")]
    #[serde(skip)]
    pub seq_map: Vec<Vec<u8>>,
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
    #[prost(bool, optional, tag = "16")]
    pub visible: Option<bool>,
    #[prost(message, repeated, tag = "17")]
    pub children_columns: Vec<ColumnPb>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(crate) struct RowsetMetaPb {
    #[prost(int64, optional, tag = "1")]
    pub rowset_id: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub tablet_id: Option<i64>,
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
    #[prost(int64, optional, tag = "11")]
    pub num_rows: Option<i64>,
    #[prost(message, optional, tag = "16")]
    pub delete_predicate: Option<DeletePredicatePb>,
    #[prost(int64, optional, tag = "22")]
    pub num_segments: Option<i64>,
    #[prost(string, optional, tag = "23")]
    pub rowset_id_v2: Option<String>,
    #[prost(string, optional, tag = "24")]
    pub resource_id: Option<String>,
    #[prost(message, optional, tag = "28")]
    pub tablet_schema: Option<TabletSchemaPb>,
    #[prost(uint32, repeated, tag = "56", packed = "false")]
    pub num_segment_rows: Vec<u32>,
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
