//! Damaged files made whole again: what can be derived is derived, and written as a new file.

use std::path::Path;

use pilaster_core::{Error, LostRows, Progress, Result, SharedFile, SourceRef};
use serde_json::{Value, json};

use crate::detect::detect;
use crate::formats::{DRIVERS, Driver, reader_of};
use crate::open::OpenOptions;
use crate::overwrite::Overwrite;
use crate::paths;
use crate::salvage::losses_to_json;

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairReport {
    /// The file that was repaired.
    pub source: String,
    /// Rows of the new file.
    pub rows: u64,
    /// Bytes of the new file.
    pub bytes: u64,
    /// Whether every row is in it, as far as can be known.
    pub is_complete: bool,
    /// What was lost and why, by position.
    pub losses: Vec<LostRows>,
}

impl RepairReport {
    /// The report as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "source": self.source,
            "rows": self.rows,
            "bytes": self.bytes,
            "is_complete": self.is_complete,
            "losses": losses_to_json(&self.losses),
        })
    }
}

/// Writes a whole file of the same format from a damaged one. The damaged file stays as it is. Progress counts rows.
///
/// # Errors
/// If the target exists and may not be replaced; if the format cannot be repaired; if nothing of the file is left. Then
/// nothing new is there under the target's name.
pub fn repair(
    path: &str,
    target: &Path,
    overwrite: bool,
    options: &OpenOptions,
    progress: &dyn Progress,
) -> Result<RepairReport> {
    Overwrite::new(overwrite).with_sources([path]).check(target)?;
    let source = paths::place(path)?.open()?;
    let options = options.clone().with_recovery(true);
    let driver = driver_of(&source, &options)?;
    let file = SharedFile::create(target)?;
    let report = driver.repair(source, file.clone(), &options, progress)?;
    file.take()?.finish()?;
    Ok(report)
}

/// The format that repairs a file: the one the options speak of, else the one its content tells.
fn driver_of(source: &SourceRef, options: &OpenOptions) -> Result<&'static dyn Driver> {
    if let Some(driver) = DRIVERS.iter().find(|driver| driver.claims(options)) {
        return Ok(*driver);
    }
    let format = detect(source.as_ref())?;
    reader_of(format).map_err(|_| {
        Error::unsupported(format!(
            "{format} files are not repaired; `salvage` writes what is left of them to a new one"
        ))
        .at(source.name(), 0, "")
    })
}
