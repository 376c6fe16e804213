//! Who votes on a tablet.

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ConsensusMetadataPb {
    #[prost(message, optional, tag = "1")]
    pub committed_config: Option<RaftConfigPb>,
    #[prost(int64, optional, tag = "2")]
    pub current_term: Option<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RaftConfigPb {
    #[prost(int64, optional, tag = "1")]
    pub opid_index: Option<i64>,
    #[prost(message, repeated, tag = "3")]
    pub peers: Vec<RaftPeerPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RaftPeerPb {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub permanent_uuid: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "2")]
    pub member_type: Option<i32>,
}

impl RaftPeerPb {
    pub const VOTER: i32 = 1;
}
