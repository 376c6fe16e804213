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

/// What stands behind the part of a file that was of use, as its first bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rest {
    /// The last bytes of a file whose metadata is whole.
    Tail,
    /// File metadata that was cut off or damaged.
    Footer,
    /// Pages of a row group that nothing proves to be complete.
    RowGroup,
    /// None of these.
    Unknown,
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
    /// What those bytes are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<Rest>,
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
            rest: None,
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
            rest: None,
            stop: None,
        }
    }

    pub(super) fn recovered(
        metadata: &FileMetadata,
        source: RecoverySource,
        used: u64,
        size: u64,
        rest: Rest,
    ) -> Self {
        Self {
            rest: (used < size).then_some(rest),
            status: RecoveryStatus::Recovered,
            source: Some(source),
            bytes_used: Some(used),
            bytes_discarded: Some(size.saturating_sub(used)),
            ..Self::intact(metadata)
        }
    }

    /// Rows that are or may be missing, in words; empty if every row group that was written is known to be there.
    pub fn losses(&self) -> Vec<String> {
        let mut losses: Vec<String> = self
            .holes
            .iter()
            .map(|group| {
                format!(
                    "row group {group} was written but cannot be found: how many rows it had is not known"
                )
            })
            .collect();
        let (used, discarded) = self.discarded();
        match self.rest {
            Some(Rest::RowGroup) => losses.push(format!(
                "no footer: the row group that begins at byte {used} is not known to be complete; its {discarded} bytes are left out"
            )),
            Some(Rest::Unknown) => losses.push(format!(
                "no footer: what the {discarded} bytes from byte {used} on were cannot be told; they are left out"
            )),
            Some(Rest::Tail | Rest::Footer) | None => {}
        }
        losses
    }

    /// Damage by which no row is lost, in words.
    pub fn notes(&self) -> Vec<String> {
        let (used, discarded) = self.discarded();
        let mut notes = Vec::new();
        match self.rest {
            // Behind checkpoints lies the metadata too.
            Some(Rest::Tail) if self.source == Some(RecoverySource::Checkpoint) => notes.push(format!(
                "the last bytes, which lead to the file metadata at byte {used}, are damaged; the file metadata is whole"
            )),
            Some(Rest::Tail) => notes.push(format!(
                "the last {discarded} bytes, which lead to the file metadata, are damaged; the file metadata is whole"
            )),
            Some(Rest::Footer) => notes.push(format!(
                "the file metadata at byte {used} is cut off or damaged, and was put together again"
            )),
            Some(Rest::RowGroup | Rest::Unknown) | None => {}
        }
        if self.may_miss_key_values() {
            notes.push("key/values that were added after the last checkpoint may be missing".to_string());
        }
        notes
    }

    /// From which byte on how many were of no use.
    fn discarded(&self) -> (u64, u64) {
        (self.bytes_used.unwrap_or_default(), self.bytes_discarded.unwrap_or_default())
    }

    /// Whether key/values that were added late may be missing: they are in the footer and the last checkpoint only.
    pub fn may_miss_key_values(&self) -> bool {
        self.status == RecoveryStatus::Recovered && self.source == Some(RecoverySource::Checkpoint)
    }
}
