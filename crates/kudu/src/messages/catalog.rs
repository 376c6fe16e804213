//! What a master's system catalog says of tablets.

use super::schema::PartitionPb;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SysTabletsEntryPb {
    #[prost(int32, optional, tag = "4")]
    pub state: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub table_id: Option<Vec<u8>>,
    #[prost(message, optional, tag = "7")]
    pub partition: Option<PartitionPb>,
}

impl SysTabletsEntryPb {
    /// `entry_type` of its rows.
    pub const ENTRY_TYPE: i8 = 2;
    /// `state` of a tablet in use; others are being made, were replaced, or are deleted.
    pub const RUNNING: i32 = 2;
}
