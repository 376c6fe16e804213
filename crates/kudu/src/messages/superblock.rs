//! The superblock of a tablet.

use std::collections::HashMap;

use super::block::{BlockIdPb, DataDirGroupPb};
use super::schema::{PartitionPb, PartitionSchemaPb, SchemaPb};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TabletSuperBlockPb {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub table_id: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub tablet_id: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "3")]
    pub last_durable_mrs_id: Option<i64>,
    #[prost(message, repeated, tag = "6")]
    pub rowsets: Vec<RowSetDataPb>,
    #[prost(string, optional, tag = "7")]
    pub table_name: Option<String>,
    #[prost(message, optional, tag = "8")]
    pub schema: Option<SchemaPb>,
    #[prost(uint32, optional, tag = "9")]
    pub schema_version: Option<u32>,
    #[prost(int32, optional, tag = "10")]
    pub tablet_data_state: Option<i32>,
    #[prost(message, repeated, tag = "11")]
    pub orphaned_blocks: Vec<BlockIdPb>,
    #[prost(message, optional, tag = "12")]
    pub tombstone_last_logged_opid: Option<OpIdPb>,
    #[prost(message, optional, tag = "13")]
    pub partition: Option<PartitionPb>,
    #[prost(message, optional, tag = "14")]
    pub partition_schema: Option<PartitionSchemaPb>,
    #[prost(message, optional, tag = "15")]
    pub data_dir_group: Option<DataDirGroupPb>,
    #[prost(bool, optional, tag = "16")]
    pub supports_live_row_count: Option<bool>,
    #[prost(message, optional, tag = "17")]
    pub extra_config: Option<TableExtraConfigPb>,
    #[prost(string, optional, tag = "18")]
    pub dimension_label: Option<String>,
    #[prost(int32, optional, tag = "19")]
    pub table_type: Option<i32>,
    #[prost(map = "int64, message", tag = "20")]
    pub txn_metadata: HashMap<i64, TxnMetadataPb>,
}

impl TabletSuperBlockPb {
    /// `tablet_data_state` of a tablet in use.
    pub const READY: i32 = 1;
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RowSetDataPb {
    #[prost(uint64, optional, tag = "1")]
    pub id: Option<u64>,
    #[prost(int64, optional, tag = "2")]
    pub last_durable_dms_id: Option<i64>,
    #[prost(message, repeated, tag = "3")]
    pub columns: Vec<ColumnDataPb>,
    #[prost(message, repeated, tag = "4")]
    pub redo_deltas: Vec<DeltaDataPb>,
    #[prost(message, repeated, tag = "5")]
    pub undo_deltas: Vec<DeltaDataPb>,
    #[prost(message, optional, tag = "6")]
    pub bloom_block: Option<BlockIdPb>,
    #[prost(message, optional, tag = "7")]
    pub adhoc_index_block: Option<BlockIdPb>,
    #[prost(bytes = "vec", optional, tag = "8")]
    pub min_encoded_key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "9")]
    pub max_encoded_key: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "10")]
    pub live_row_count: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct ColumnDataPb {
    #[prost(message, optional, tag = "2")]
    pub block: Option<BlockIdPb>,
    #[prost(int32, optional, tag = "4")]
    pub column_id: Option<i32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct DeltaDataPb {
    #[prost(message, optional, tag = "2")]
    pub block: Option<BlockIdPb>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, prost::Message)]
pub(crate) struct OpIdPb {
    #[prost(int64, optional, tag = "1")]
    pub term: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub index: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct TableExtraConfigPb {
    #[prost(int32, optional, tag = "1")]
    pub history_max_age_sec: Option<i32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct TxnMetadataPb {
    #[prost(bool, optional, tag = "1")]
    pub aborted: Option<bool>,
    #[prost(int64, optional, tag = "2")]
    pub commit_timestamp: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub commit_mvcc_op_timestamp: Option<i64>,
    #[prost(bool, optional, tag = "4")]
    pub flushed_committed_mrs: Option<bool>,
}

/// Footer metadata of a delta file.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DeltaStatsPb {
    #[prost(int64, optional, tag = "1")]
    pub delete_count: Option<i64>,
    #[prost(fixed64, optional, tag = "3")]
    pub min_timestamp: Option<u64>,
    #[prost(fixed64, optional, tag = "4")]
    pub max_timestamp: Option<u64>,
    #[prost(message, repeated, tag = "5")]
    pub column_stats: Vec<DeltaColumnStatsPb>,
    #[prost(int64, optional, tag = "6")]
    pub reinsert_count: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct DeltaColumnStatsPb {
    #[prost(int32, optional, tag = "1")]
    pub col_id: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub update_count: Option<i64>,
}
