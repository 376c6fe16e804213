//! Schemas and partitions.

use super::RowOperationsPb;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SchemaPb {
    #[prost(message, repeated, tag = "1")]
    pub columns: Vec<ColumnSchemaPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ColumnSchemaPb {
    #[prost(uint32, optional, tag = "1")]
    pub id: Option<u32>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(int32, optional, tag = "3")]
    pub data_type: Option<i32>,
    #[prost(bool, optional, tag = "4")]
    pub is_key: Option<bool>,
    #[prost(bool, optional, tag = "5")]
    pub is_nullable: Option<bool>,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub read_default_value: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "7")]
    pub write_default_value: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "8")]
    pub encoding: Option<i32>,
    #[prost(int32, optional, tag = "9")]
    pub compression: Option<i32>,
    #[prost(int32, optional, tag = "10")]
    pub cfile_block_size: Option<i32>,
    #[prost(message, optional, tag = "11")]
    pub type_attributes: Option<ColumnTypeAttributesPb>,
    #[prost(string, optional, tag = "12")]
    pub comment: Option<String>,
    #[prost(bool, optional, tag = "13")]
    pub immutable: Option<bool>,
    #[prost(bool, optional, tag = "14")]
    pub is_auto_incrementing: Option<bool>,
    #[prost(message, optional, tag = "15")]
    pub nested_type: Option<NestedTypePb>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct ColumnTypeAttributesPb {
    #[prost(int32, optional, tag = "1")]
    pub precision: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub scale: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub length: Option<i32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct NestedTypePb {
    #[prost(message, optional, tag = "1")]
    pub array: Option<ArrayTypePb>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct ArrayTypePb {
    #[prost(int32, optional, tag = "1")]
    pub element_type: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ColumnIdentifierPb {
    #[prost(int32, optional, tag = "1")]
    pub id: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HashBucketSchemaPb {
    #[prost(message, repeated, tag = "1")]
    pub columns: Vec<ColumnIdentifierPb>,
    #[prost(int32, optional, tag = "2")]
    pub num_buckets: Option<i32>,
    #[prost(uint32, optional, tag = "3")]
    pub seed: Option<u32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RangeSchemaPb {
    #[prost(message, repeated, tag = "1")]
    pub columns: Vec<ColumnIdentifierPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CustomHashSchemaPb {
    /// Two operations, with the range columns given: the lower and the upper bound.
    #[prost(message, optional, tag = "1")]
    pub range_bounds: Option<RowOperationsPb>,
    #[prost(message, repeated, tag = "2")]
    pub hash_schema: Vec<HashBucketSchemaPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PartitionSchemaPb {
    #[prost(message, repeated, tag = "1")]
    pub hash_schema: Vec<HashBucketSchemaPb>,
    #[prost(message, optional, tag = "2")]
    pub range_schema: Option<RangeSchemaPb>,
    #[prost(message, repeated, tag = "5")]
    pub custom_hash_schema_ranges: Vec<CustomHashSchemaPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PartitionPb {
    #[prost(int32, repeated, tag = "1")]
    pub hash_buckets: Vec<i32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub partition_key_start: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub partition_key_end: Option<Vec<u8>>,
}
