//! Files whose footer is damaged or was never written.
//!
//! | module | what |
//! | --- | --- |
//! | `block` | checkpoints and sync blocks, byte by byte |
//! | `scan` | finding them in a file |
//! | `checkpoint` | file metadata out of the blocks |
//! | `walk` | file metadata out of pages and column metadata, where there are no blocks |
//! | `report` | what was found |

mod block;
mod checkpoint;
mod report;
mod scan;
mod walk;

use pilaster_core::{Error, Limits, Result, SourceRef};

pub(crate) use block::Block;
pub use report::{RecoveryReport, RecoverySource, RecoveryStatus, Rest};

use crate::metadata::{FOOTER_PART, FileMetadata};
use crate::schema::RedfileSchema;

/// What could be found out about a file.
#[derive(Debug, Clone)]
pub struct Recovery {
    /// Metadata that leads to every row group that was found; `None` if the file is lost.
    pub metadata: Option<FileMetadata>,
    /// Where it comes from and what is missing.
    pub report: RecoveryReport,
}

/// How far to go.
#[derive(Debug, Clone, Copy)]
pub enum Effort<'a> {
    /// The footer, then checkpoints: what the format guarantees.
    Checkpoints,
    /// And then a walk over pages, which needs the schema unless only the last bytes of the file are damaged.
    Walk(Option<&'a RedfileSchema>),
}

/// Finds the metadata of a file that may be damaged, cut off or still being written.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Unsupported`] if the file is of a later version, [`pilaster_core::ErrorKind::Io`] if it cannot be
/// read. A file that is lost is no error.
pub fn recover(source: &SourceRef, effort: Effort<'_>, limits: &Limits) -> Result<Recovery> {
    match FileMetadata::read(source.as_ref(), limits) {
        Ok(metadata) => {
            let report = RecoveryReport::intact(&metadata);
            return Ok(Recovery { metadata: Some(metadata), report });
        }
        Err(error) if error.is_damage() => {}
        Err(error) => return Err(error),
    }
    if let Some(found) = checkpoint::recover(source, limits)? {
        return Ok(found);
    }
    match effort {
        Effort::Checkpoints => Ok(Recovery { metadata: None, report: RecoveryReport::lost() }),
        Effort::Walk(schema) => walk::walk(source, schema, limits),
    }
}

/// As [`recover`] with every effort; a file that is lost is an error.
pub(crate) fn recover_metadata(
    source: &SourceRef,
    schema: Option<&RedfileSchema>,
    limits: &Limits,
) -> Result<(FileMetadata, RecoveryReport)> {
    let found = recover(source, Effort::Walk(schema), limits)?;
    match found.metadata {
        Some(metadata) => Ok((metadata, found.report)),
        None => {
            let why = found.report.stop.unwrap_or_else(|| "nothing that leads to rows".to_string());
            Err(Error::corrupt("file metadata, checkpoints, or pages of a known schema", why).at(
                source.name(),
                source.size(),
                FOOTER_PART,
            ))
        }
    }
}

#[doc(hidden)]
pub mod kernels {
    //! The slow and sure way, for tests.
    use super::{Limits, Recovery, Result, SourceRef, checkpoint};

    /// Recovers by looking at every byte of the file.
    pub fn recover_by_full_scan(source: &SourceRef, limits: &Limits) -> Result<Option<Recovery>> {
        checkpoint::recover_by_full_scan(source, limits)
    }
}
