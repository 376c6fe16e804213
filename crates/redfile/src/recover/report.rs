//! What a recovery found.

use serde::Serialize;

use crate::metadata::FileMetadata;

/// How a file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecoveryStatus {
    /// Its footer is as it should be.
    Intact,
    /// Its metadata had to be put together again.
    Recovered,
    /// Nothing leads to its rows.
    Lost,
}

/// Where the metadata comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecoverySource {
    /// The footer.
    Footer,
    /// Checkpoints and sync blocks.
    Checkpoint,
    /// A walk over pages.
    Walk,
}

/// What a recovery found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecoveryReport {
    /// How the file was found.
    pub status: RecoveryStatus,
    /// Where the metadata comes from.
    pub source: Option<RecoverySource>,
    /// Row groups that were found.
    pub row_groups: u64,
    /// Their rows.
    pub rows: u64,
    /// Numbers of row groups that are known to have been written but cannot be found.
    pub holes: Vec<u64>,
    /// The file up to here was of use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_used: Option<u64>,
    /// Bytes behind that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_discarded: Option<u64>,
    /// Where a walk ended, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
}

impl RecoveryReport {
    pub(super) fn intact(metadata: &FileMetadata) -> Self {
        Self {
            status: RecoveryStatus::Intact,
            source: Some(RecoverySource::Footer),
            row_groups: metadata.row_groups.len() as u64,
            rows: u64::try_from(metadata.num_rows).unwrap_or_default(),
            holes: Vec::new(),
            bytes_used: None,
            bytes_discarded: None,
            stop: None,
        }
    }

    pub(super) fn lost() -> Self {
        Self {
            status: RecoveryStatus::Lost,
            source: None,
            row_groups: 0,
            rows: 0,
            holes: Vec::new(),
            bytes_used: None,
            bytes_discarded: None,
            stop: None,
        }
    }

    pub(super) fn recovered(metadata: &FileMetadata, source: RecoverySource, used: u64, size: u64) -> Self {
        Self {
            status: RecoveryStatus::Recovered,
            source: Some(source),
            bytes_used: Some(used),
            bytes_discarded: Some(size.saturating_sub(used)),
            ..Self::intact(metadata)
        }
    }

    /// What may be missing, in words; empty if the footer was intact or nothing is known to be missing.
    pub(crate) fn losses(&self) -> Vec<String> {
        let mut losses: Vec<String> = self
            .holes
            .iter()
            .map(|group| {
                format!(
                    "row group {group} was written but cannot be found: how many rows it had is not known"
                )
            })
            .collect();
        if let (Some(used), Some(discarded @ 1..)) = (self.bytes_used, self.bytes_discarded) {
            losses.push(format!(
                "no footer: the {discarded} bytes from byte {used} on are no complete row group, and are left out"
            ));
        }
        losses
    }

    /// Whether key/values that were added late may be missing: they are in the footer and the last checkpoint only.
    pub fn may_miss_key_values(&self) -> bool {
        self.status == RecoveryStatus::Recovered && self.source == Some(RecoverySource::Checkpoint)
    }
}
