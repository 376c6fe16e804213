//! The protobuf messages of a CFile.
//!
//! They are few and small, so they are written by hand. Every field is optional here, also the required ones: prost
//! reads a missing required field as zero, and the format says that is corruption; see [`required`].

pub(crate) use crate::messages::{parse, required};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HeaderPb {
    #[prost(message, repeated, tag = "3")]
    pub metadata: Vec<MetadataPairPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FooterPb {
    #[prost(int32, optional, tag = "1")]
    pub data_type: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub encoding: Option<i32>,
    #[prost(int64, optional, tag = "3")]
    pub num_values: Option<i64>,
    #[prost(message, optional, tag = "4")]
    pub posidx_info: Option<BTreeInfoPb>,
    #[prost(message, optional, tag = "5")]
    pub validx_info: Option<BTreeInfoPb>,
    #[prost(int32, optional, tag = "6")]
    pub compression: Option<i32>,
    #[prost(message, repeated, tag = "7")]
    pub metadata: Vec<MetadataPairPb>,
    #[prost(bool, optional, tag = "8")]
    pub is_type_nullable: Option<bool>,
    #[prost(message, optional, tag = "9")]
    pub dict_block_ptr: Option<BlockPointerPb>,
    #[prost(uint32, optional, tag = "10")]
    pub incompatible_features: Option<u32>,
    #[prost(uint32, optional, tag = "11")]
    pub compatible_features: Option<u32>,
    #[prost(bool, optional, tag = "12")]
    pub is_type_array: Option<bool>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MetadataPairPb {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub value: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BTreeInfoPb {
    #[prost(message, optional, tag = "1")]
    pub root_block: Option<BlockPointerPb>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct BlockPointerPb {
    #[prost(int64, optional, tag = "1")]
    pub offset: Option<i64>,
    #[prost(int32, optional, tag = "2")]
    pub size: Option<i32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct IndexBlockTrailerPb {
    #[prost(int32, optional, tag = "1")]
    pub num_entries: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub kind: Option<i32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct BloomBlockHeaderPb {
    #[prost(int32, optional, tag = "1")]
    pub num_hash_functions: Option<i32>,
}
