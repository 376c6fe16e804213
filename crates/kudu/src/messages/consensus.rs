//! Who votes on a tablet.

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ConsensusMetadataPb {
    #[prost(message, optional, tag = "1")]
    pub committed_config: Option<RaftConfigPb>,
    #[prost(int64, optional, tag = "2")]
    pub current_term: Option<i64>,
    #[prost(string, optional, tag = "3")]
    pub voted_for: Option<String>,
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
    #[prost(message, optional, tag = "3")]
    pub last_known_addr: Option<HostPortPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HostPortPb {
    #[prost(string, optional, tag = "1")]
    pub host: Option<String>,
    #[prost(uint32, optional, tag = "2")]
    pub port: Option<u32>,
}

impl RaftPeerPb {
    pub const VOTER: i32 = 1;
}
