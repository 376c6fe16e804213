//! Looking for damage in a Parquet file.

use std::ops::Range;
use std::sync::Arc;

use parquet::file::metadata::RowGroupMetaData;
use pilaster_core::{
    Error, Finding, Progress, Result, RowRanges, ScanRequest, Severity, VerifyDepth, VerifyReport,
};

use super::chunks::SourceChunks;
use super::page_walk::PageWalk;
use super::scan::ParquetScan;
use super::{ParquetFile, metadata};

/// Checks footer, pages and values, as deep as asked; every finding names the rows of its row group.
pub(super) fn verify(
    file: &Arc<ParquetFile>,
    depth: VerifyDepth,
    progress: &dyn Progress,
) -> Result<VerifyReport> {
    let mut report = VerifyReport { files: 1, bytes: file.footer_bytes, ..VerifyReport::default() };
    check_footer(file, &mut report);
    progress.set_total(file.source.size());
    for (index, (group, rows)) in file.metadata().row_groups().iter().zip(&file.groups).enumerate() {
        let bytes = u64::try_from(group.compressed_size()).unwrap_or(0);
        match metadata::check_group(file, group) {
            Err(error) => report.findings.push(finding(file, &error, rows)),
            Ok(ranges) if depth >= VerifyDepth::Checksums => {
                let before = report.findings.len();
                check_pages(file, group, ranges, rows, &mut report);
                // Pages that cannot be read have been named; decoding their rows would only repeat it.
                if depth >= VerifyDepth::Values && report.findings.len() == before {
                    check_values(file, index, rows, &mut report);
                }
            }
            Ok(_) => {}
        }
        progress.advance(bytes);
    }
    Ok(report)
}

fn finding(file: &ParquetFile, error: &Error, rows: &Range<u64>) -> Finding {
    Finding::from_error(error, file.source.name(), Some(rows.clone()))
}

/// What the footer says must agree with itself.
fn check_footer(file: &ParquetFile, report: &mut VerifyReport) {
    let name = file.source.name();
    let offset = file.source.size().saturating_sub(file.footer_bytes).saturating_sub(8);
    let said = file.metadata().file_metadata().num_rows();
    if u64::try_from(said).ok() != Some(file.row_count()) {
        let expected = format!("{} rows, as in the row groups together", file.row_count());
        let error = Error::corrupt(expected, said).at(name, offset, "parquet footer");
        report.findings.push(Finding::from_error(&error, name, None));
    }
    if let Some(problem) = &file.page_index_problem {
        let error =
            Error::corrupt("a page index that parses", problem).at(name, offset, "parquet page index");
        let mut finding = Finding::from_error(&error, name, None);
        finding.severity = Severity::Warning;
        report.findings.push(finding);
    }
    match file.source.read_at(0..4) {
        Ok(magic) if &*magic != b"PAR1" => {
            let error = Error::corrupt("\"PAR1\"", format!("\"{}\"", magic.escape_ascii()));
            let mut finding = Finding::from_error(&error.at(name, 0, "parquet magic"), name, None);
            finding.severity = Severity::Warning;
            report.findings.push(finding);
        }
        Ok(_) => {}
        Err(error) => report.findings.push(Finding::from_error(&error, name, None)),
    }
}

/// Reads and decompresses every page of a row group; stored checksums are compared on the way.
fn check_pages(
    file: &ParquetFile,
    group: &RowGroupMetaData,
    ranges: Vec<Range<u64>>,
    rows: &Range<u64>,
    report: &mut VerifyReport,
) {
    let chunks = SourceChunks::new(Arc::clone(&file.source), ranges.iter().cloned(), &file.limits);
    for (column, range) in group.columns().iter().zip(ranges) {
        let mut values = 0i64;
        let mut is_damaged = false;
        for step in PageWalk::new(chunks.clone(), column) {
            report.blocks = report.blocks.saturating_add(1);
            match step.page {
                Ok(page) if page.is_data_page() => {
                    values = values.saturating_add(i64::from(page.num_values()))
                }
                Ok(_) => {}
                Err(error) => {
                    is_damaged = true;
                    let error = error.at(file.source.name(), step.bytes.start, "parquet page");
                    let mut finding = finding(file, &error, rows);
                    finding.message =
                        format!("{} (column {})", finding.message, column.column_path().string());
                    report.findings.push(finding);
                }
            }
        }
        if !is_damaged && values != column.num_values() {
            let expected =
                format!("{} values in column {}", column.num_values(), column.column_path().string());
            let error =
                Error::corrupt(expected, values).at(file.source.name(), range.start, "parquet column chunk");
            report.findings.push(finding(file, &error, rows));
        }
        report.bytes = report.bytes.saturating_add(range.end.saturating_sub(range.start));
        chunks.clear();
    }
}

/// Decodes every value of a row group.
fn check_values(file: &Arc<ParquetFile>, index: usize, rows: &Range<u64>, report: &mut VerifyReport) {
    let wanted = RowRanges::one(rows.clone());
    let mut decoded = 0u64;
    let scan = match ParquetScan::try_new(Arc::clone(file), &ScanRequest::default(), &wanted) {
        Ok(scan) => scan,
        Err(error) => return report.findings.push(finding(file, &error, rows)),
    };
    for batch in scan {
        match batch {
            Ok(batch) => decoded = decoded.saturating_add(batch.num_rows() as u64),
            Err(error) => return report.findings.push(finding(file, &Error::from(error), rows)),
        }
    }
    report.rows = report.rows.saturating_add(decoded);
    let expected = rows.end.saturating_sub(rows.start);
    if decoded != expected {
        let error = Error::corrupt(format!("{expected} rows"), decoded).at(
            file.source.name(),
            file.group_offset(index),
            "parquet row group",
        );
        report.findings.push(finding(file, &error, rows));
    }
}
