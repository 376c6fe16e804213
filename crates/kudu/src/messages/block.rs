//! Instances, directories and block records.

/// The first record of a protobuf container: what the others are.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerSupHeaderPb {
    /// A `FileDescriptorSet`; servers never look into it.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub protos: Option<Vec<u8>>,
    #[prost(string, optional, tag = "2")]
    pub pb_type: Option<String>,
}

/// `instance` of every root.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InstanceMetadataPb {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub uuid: Option<Vec<u8>>,
    #[prost(string, optional, tag = "2")]
    pub format_stamp: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub server_key: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub server_key_iv: Option<String>,
    #[prost(string, optional, tag = "5")]
    pub server_key_version: Option<String>,
    #[prost(message, repeated, tag = "6")]
    pub tenants: Vec<TenantPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TenantPb {
    #[prost(string, optional, tag = "3")]
    pub tenant_key: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub tenant_key_iv: Option<String>,
}

/// `block_manager_instance` of a data directory.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DirInstanceMetadataPb {
    #[prost(message, optional, tag = "1")]
    pub dir_set: Option<DirSetPb>,
    #[prost(string, optional, tag = "2")]
    pub dir_type: Option<String>,
    #[prost(uint64, optional, tag = "3")]
    pub filesystem_block_size_bytes: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DirSetPb {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub uuid: Option<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub all_uuids: Vec<Vec<u8>>,
}

/// The data directories that hold the blocks of a tablet.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DataDirGroupPb {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub uuids: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct BlockIdPb {
    #[prost(fixed64, optional, tag = "1")]
    pub id: Option<u64>,
}

/// One record of a container's metadata.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct BlockRecordPb {
    #[prost(message, optional, tag = "1")]
    pub block_id: Option<BlockIdPb>,
    #[prost(int32, optional, tag = "2")]
    pub op_type: Option<i32>,
    #[prost(uint64, optional, tag = "3")]
    pub timestamp_us: Option<u64>,
    #[prost(int64, optional, tag = "4")]
    pub offset: Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub length: Option<i64>,
}

impl BlockRecordPb {
    pub const CREATE: i32 = 1;
    pub const DELETE: i32 = 2;
}
