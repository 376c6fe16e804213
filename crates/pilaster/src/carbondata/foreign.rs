//! Segments of a table that are Parquet files.

use std::sync::Arc;

use pilaster_carbondata::table::{CarbonTable, CarbonTableOptions};
use pilaster_core::{
    Dataset, DatasetRef, Error, Finding, Location, Progress, Result, Severity, VerifyDepth, VerifyReport,
};

use crate::adapted::AdaptedDataset;
use crate::concat::ConcatDataset;
use crate::foreign::parquet::ParquetDataset;
use crate::open::OpenOptions;

/// Opens a table; segments that are Parquet files follow the others, with the table's columns.
pub(super) fn open_with_foreign(folder: &Location, options: &CarbonTableOptions) -> Result<DatasetRef> {
    let table = CarbonTable::open(folder, &options.clone().with_foreign_left_out(true))?;
    if table.foreign_segments().is_empty() {
        return Ok(Arc::new(table));
    }
    let schema = table.schema();
    let mut parts: Vec<DatasetRef> = Vec::new();
    for segment in table.foreign_segments() {
        let refused = |what: &str| {
            let message =
                format!("segment {} is {} in {}: {what}", segment.id, segment.format, segment.location);
            Error::unsupported(message).at(table.name(), 0, "")
        };
        if segment.format != "parquet" {
            return Err(refused("convert its files by themselves, and the other segments by their numbers"));
        }
        if let Some(reason) = &segment.unreachable {
            return Err(refused(reason));
        }
        for file in &segment.files {
            let opened: DatasetRef = Arc::new(ParquetDataset::open(file.open()?, &OpenOptions::default())?);
            parts.push(Arc::new(AdaptedDataset::try_new(opened, Arc::clone(&schema))?));
        }
    }
    let name = table.name().to_string();
    parts.insert(0, Arc::new(table));
    Ok(Arc::new(ConcatDataset::try_new(name, parts)?))
}

/// Looks for damage in the segments that are Parquet files; what cannot be looked at is a warning.
pub(super) fn verify_foreign(
    table: &CarbonTable,
    depth: VerifyDepth,
    progress: &dyn Progress,
    report: &mut VerifyReport,
) -> Result<()> {
    for segment in table.foreign_segments() {
        let is_read = segment.format == "parquet" && segment.unreachable.is_none();
        if !is_read {
            let reason = segment.unreachable.as_deref().unwrap_or("is of a format that is not read");
            report.findings.push(Finding {
                severity: Severity::Warning,
                path: table.name().into(),
                offset: 0,
                part: format!("segment {}", segment.id),
                message: format!("was not looked at: {reason}"),
                rows: None,
            });
        }
        for file in segment.files.iter().filter(|_| is_read) {
            let opened = file.open().and_then(|source| ParquetDataset::open(source, &OpenOptions::default()));
            match opened {
                Ok(opened) => report.merge(opened.verify(depth, progress)?),
                Err(error) => report.findings.push(Finding::from_error(&error, &file.to_string(), None)),
            }
        }
    }
    Ok(())
}
