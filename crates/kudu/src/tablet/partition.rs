//! Which rows of a table a tablet holds.

use crate::messages::PartitionPb;

/// The bounds of a tablet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Partition {
    /// Bucket of each hash dimension.
    pub hash_buckets: Vec<i32>,
    /// First partition key, inclusive; empty for no bound.
    pub start: Vec<u8>,
    /// Last partition key, exclusive; empty for no bound.
    pub end: Vec<u8>,
}

impl Partition {
    pub(crate) fn parse(message: PartitionPb) -> Self {
        Self {
            hash_buckets: message.hash_buckets,
            start: message.partition_key_start.unwrap_or_default(),
            end: message.partition_key_end.unwrap_or_default(),
        }
    }
}

impl std::fmt::Display for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bound = |key: &[u8], none: &str| {
            if key.is_empty() {
                none.to_string()
            } else {
                key.iter().map(|byte| format!("{byte:02x}")).collect()
            }
        };
        if !self.hash_buckets.is_empty() {
            let buckets: Vec<_> = self.hash_buckets.iter().map(ToString::to_string).collect();
            write!(f, "hash {} ", buckets.join(","))?;
        }
        write!(f, "[{}, {})", bound(&self.start, "-∞"), bound(&self.end, "∞"))
    }
}
