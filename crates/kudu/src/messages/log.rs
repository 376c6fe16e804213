//! The write-ahead log.

use super::schema::SchemaPb;
use super::superblock::OpIdPb;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LogSegmentHeaderPb {
    #[prost(uint32, optional, tag = "1")]
    pub major_version: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub minor_version: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub tablet_id: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "6")]
    pub sequence_number: Option<u64>,
    #[prost(message, optional, tag = "7")]
    pub schema: Option<SchemaPb>,
    #[prost(uint32, optional, tag = "8")]
    pub schema_version: Option<u32>,
    #[prost(int32, optional, tag = "9")]
    pub compression_codec: Option<i32>,
    #[prost(int32, repeated, tag = "10")]
    pub incompatible_features: Vec<i32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct LogSegmentFooterPb {
    #[prost(int64, optional, tag = "1")]
    pub num_entries: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub min_replicate_index: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub max_replicate_index: Option<i64>,
    #[prost(int64, optional, tag = "4")]
    pub close_timestamp_micros: Option<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LogEntryBatchPb {
    #[prost(message, repeated, tag = "1")]
    pub entry: Vec<LogEntryPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LogEntryPb {
    #[prost(int32, optional, tag = "1")]
    pub entry_type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub replicate: Option<ReplicateMsg>,
    #[prost(message, optional, tag = "3")]
    pub commit: Option<CommitMsg>,
}

impl LogEntryPb {
    pub const REPLICATE: i32 = 1;
    pub const COMMIT: i32 = 2;
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReplicateMsg {
    #[prost(message, optional, tag = "1")]
    pub id: Option<OpIdPb>,
    #[prost(fixed64, optional, tag = "2")]
    pub timestamp: Option<u64>,
    #[prost(int32, optional, tag = "4")]
    pub op_type: Option<i32>,
    #[prost(message, optional, tag = "5")]
    pub write_request: Option<WriteRequestPb>,
    #[prost(message, optional, tag = "6")]
    pub alter_schema_request: Option<AlterSchemaRequestPb>,
    #[prost(message, optional, tag = "9")]
    pub participant_request: Option<ParticipantRequestPb>,
    #[prost(message, optional, tag = "999")]
    pub noop_request: Option<NoOpRequestPb>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct NoOpRequestPb {
    #[prost(bool, optional, tag = "2")]
    pub timestamp_in_opid_order: Option<bool>,
}

/// What an operation of the log is.
pub(crate) mod op_type {
    pub(crate) const NO_OP: i32 = 1;
    pub(crate) const WRITE: i32 = 3;
    pub(crate) const ALTER_SCHEMA: i32 = 4;
    pub(crate) const CHANGE_CONFIG: i32 = 5;
    pub(crate) const PARTICIPANT: i32 = 6;
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CommitMsg {
    #[prost(int32, optional, tag = "1")]
    pub op_type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub commited_op_id: Option<OpIdPb>,
    #[prost(message, optional, tag = "3")]
    pub result: Option<TxResultPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TxResultPb {
    #[prost(message, repeated, tag = "1")]
    pub ops: Vec<OperationResultPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OperationResultPb {
    #[prost(bool, optional, tag = "1")]
    pub skip_on_replay: Option<bool>,
    #[prost(message, optional, tag = "2")]
    pub failed_status: Option<AppStatusPb>,
    #[prost(message, repeated, tag = "3")]
    pub mutated_stores: Vec<MemStoreTargetPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AppStatusPb {
    #[prost(int32, optional, tag = "1")]
    pub code: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub message: Option<String>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct MemStoreTargetPb {
    #[prost(int64, optional, tag = "1")]
    pub mrs_id: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub rs_id: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub dms_id: Option<i64>,
    #[prost(int64, optional, tag = "4")]
    pub rs_txn_id: Option<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WriteRequestPb {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub tablet_id: Option<Vec<u8>>,
    #[prost(message, optional, tag = "2")]
    pub schema: Option<SchemaPb>,
    #[prost(message, optional, tag = "3")]
    pub row_operations: Option<RowOperationsPb>,
    /// A signed token, as it is: a secret.
    #[prost(bytes = "vec", optional, tag = "6")]
    pub authz_token: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "7")]
    pub txn_id: Option<i64>,
    #[prost(message, optional, tag = "8")]
    pub auto_incrementing_column: Option<AutoIncrementingColumnPb>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct AutoIncrementingColumnPb {
    #[prost(int64, optional, tag = "1")]
    pub auto_incrementing_counter: Option<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RowOperationsPb {
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub rows: Option<bytes::Bytes>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub indirect_data: Option<bytes::Bytes>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AlterSchemaRequestPb {
    #[prost(message, optional, tag = "2")]
    pub schema: Option<SchemaPb>,
    #[prost(uint32, optional, tag = "3")]
    pub schema_version: Option<u32>,
    #[prost(string, optional, tag = "4")]
    pub new_table_name: Option<String>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct ParticipantRequestPb {
    #[prost(message, optional, tag = "2")]
    pub op: Option<ParticipantOpPb>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct ParticipantOpPb {
    #[prost(int32, optional, tag = "1")]
    pub op_type: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub txn_id: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub finalized_commit_timestamp: Option<i64>,
}

impl ParticipantOpPb {
    pub const BEGIN_TXN: i32 = 1;
    pub const BEGIN_COMMIT: i32 = 2;
    pub const FINALIZE_COMMIT: i32 = 3;
    pub const ABORT_TXN: i32 = 4;
}
