//! Looking for damage in a segment.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Progress, Result, RowRanges, ScanMemory, VerifyDepth, VerifyReport};

use super::column::Column;
use super::decode::Form;
use super::footer::SegmentMetadata;
use super::page::{Page, PageStore};
use super::page_cursor::unreadable;
use super::reader::Segment;
use super::structure::{self, StructurePage};
use super::{bitmap_index, key_index, zero_date};

/// Looks at everything `depth` asks for.
pub(super) fn verify(segment: &Segment, depth: VerifyDepth, progress: &dyn Progress) -> VerifyReport {
    progress.set_total(segment.metadata.file_bytes);
    let mut check = Check {
        segment,
        // Checksums are what is being looked for, however the file was opened.
        store: PageStore { verify_checksums: true, ..segment.store.as_ref().clone() },
        progress,
        report: VerifyReport { files: 1, ..VerifyReport::default() },
        found: HashSet::new(),
    };
    check.footer();
    let pages = check.structure();
    check.coverage(&pages);
    if depth >= VerifyDepth::Checksums {
        check.pages(&pages);
    }
    if depth >= VerifyDepth::Values && check.report.is_sound() {
        check.values();
        check.indexes();
    }
    check.report
}

struct Check<'a> {
    segment: &'a Segment,
    store: PageStore,
    progress: &'a dyn Progress,
    report: VerifyReport,
    found: HashSet<Finding>,
}

impl Check<'_> {
    fn found(&mut self, error: &Error, rows: Option<Range<u64>>) {
        let finding = Finding::from_error(error, self.segment.name(), rows);
        if self.found.insert(finding.clone()) {
            self.report.findings.push(finding);
        }
    }

    fn warn(&mut self, offset: u64, message: String) {
        self.report.findings.push(Finding {
            severity: Severity::Warning,
            path: Arc::from(self.segment.name()),
            offset,
            part: "segment pages".to_string(),
            message,
            rows: None,
        });
    }

    /// A file that was opened without comparing checksums has its footer compared now.
    fn footer(&mut self) {
        let metadata = &self.segment.metadata;
        let read = SegmentMetadata::read(self.store.source.as_ref(), true, &self.store.limits);
        self.report.checksums = self.report.checksums.saturating_add(1);
        self.report.bytes =
            self.report.bytes.saturating_add(metadata.file_bytes.saturating_sub(metadata.footer_start));
        if let Err(error) = read {
            self.found(&error, None);
        }
    }

    fn structure(&mut self) -> Vec<StructurePage> {
        let mut failures = Vec::new();
        let pages = structure::walk(self.segment, &mut |error| failures.push(error));
        for error in &failures {
            self.found(error, None);
        }
        pages
    }

    /// Every byte before the footer belongs to exactly one page.
    fn coverage(&mut self, pages: &[StructurePage]) {
        for page in pages {
            if let Err(error) = self.store.check_pointer(page.pointer, page.kind) {
                self.found(&error, page.rows.clone());
            }
        }
        if !self.report.findings.is_empty() {
            return;
        }
        let mut ranges: Vec<_> = pages.iter().map(|page| page.pointer.range()).collect();
        // Two indexes may hang from one page.
        ranges.sort_by_key(|range| (range.start, range.end));
        ranges.dedup();
        let mut at = 0;
        for range in ranges {
            if range.start != at {
                self.warn(
                    at,
                    format!("expected a page at byte {at}, found the next one at byte {}", range.start),
                );
            }
            at = range.end;
        }
        if at != self.segment.metadata.pages_end {
            self.warn(
                at,
                format!("expected pages up to byte {}, found none", self.segment.metadata.pages_end),
            );
        }
    }

    fn pages(&mut self, pages: &[StructurePage]) {
        let mut seen = HashSet::new();
        for page in pages {
            // Two indexes may hang from one page.
            if !seen.insert((page.pointer, page.kind.number(), page.values)) {
                continue;
            }
            self.report.blocks = self.report.blocks.saturating_add(1);
            self.report.bytes = self.report.bytes.saturating_add(u64::from(page.pointer.size));
            self.report.checksums = self.report.checksums.saturating_add(1);
            self.progress.advance(u64::from(page.pointer.size));
            let read = self.store.read(page.pointer, page.kind, page.compression);
            if let Err(error) = read.and_then(|found| check_values(page, &found, self.store.name())) {
                self.found(&error, page.rows.clone());
            }
        }
    }

    /// Every value of every column of the dataset, by the way a scan takes.
    fn values(&mut self) {
        let rows = self.segment.metadata.num_rows;
        for output in &self.segment.columns {
            let memory = ScanMemory::of_one_column(&self.segment.store.limits);
            let mut cursor = output.column.cursor(&RowRanges::none(), &memory);
            for (lost, error) in cursor.damages(&(0..rows)) {
                self.found(&error, Some(lost));
            }
            let mut zero_dates = 0;
            if self.report.is_sound() {
                let failures = unreadable(std::iter::once(0..rows), |batch| {
                    let values = cursor.read_form(batch, Form::Wanted)?;
                    let found = zero_date::find(&values).map_or(0, |found| found.true_count());
                    zero_dates = found.saturating_add(zero_dates);
                    Ok(())
                });
                for (lost, error) in failures {
                    self.found(&error, Some(lost));
                }
            }
            if zero_dates > 0 {
                let found = format!("{zero_dates} rows with 0000-00-00 in column \"{}\"", output.name);
                self.warn(
                    0,
                    format!("{found}, a date in no calendar: no harm where the delete sign hides them"),
                );
            }
        }
        self.report.rows = rows;
    }

    /// Everything that a filter may ask the indexes for.
    fn indexes(&mut self) {
        let mut failures = Vec::new();
        for output in &self.segment.columns {
            let (Column::Paged(paged), Some(meta)) = (&output.column, self.segment.stored(output)) else {
                continue;
            };
            failures.extend(output.indexes.check(paged, meta).err());
            let bitmap = meta.bitmap.as_ref();
            failures.extend(bitmap.and_then(|bitmap| {
                bitmap_index::check(&self.segment.store, bitmap, &paged.shape.cell).err()
            }));
        }
        failures.extend(key_index::check(self.segment).err());
        for error in &failures {
            self.found(error, None);
        }
    }
}

/// Refuses a data page of another number of values than its index, or what it is an index of, says.
fn check_values(page: &StructurePage, found: &Page, name: &str) -> Result<()> {
    let stored = found.footer.data_page_footer.and_then(|footer| footer.num_values);
    match (page.values, stored) {
        (Some(expected), stored) if stored != Some(expected) => {
            let stored = stored.map_or_else(|| "none".to_string(), |stored| stored.to_string());
            Err(Error::corrupt(format!("{expected} values in a {}", page.what), stored).at(
                name,
                page.pointer.offset,
                page.kind.part(),
            ))
        }
        _ => Ok(()),
    }
}
