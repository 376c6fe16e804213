//! Looking for damage in a file.
//!
//! The format has no checksums (only gzip brings one along), so the values themselves are the best witness: every page must
//! decode, and its values must lie inside the minima and maxima that were written beside them. They are asked wherever
//! checksums are asked for.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use pilaster_core::error::AtPosition;
use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Literal, Predicate, Progress, Result, VerifyDepth, VerifyReport, col};

use super::chunk::{CHUNK_PART, Chunk};
use super::cursor::PageCursor;
use super::layout::{Blocklet, CarbonFile, FOOTER_PART, read_block};
use super::page;
use super::statistics::bounds;
use super::types::ColumnNode;
use crate::messages::MinMax;

pub(crate) fn verify(file: &Arc<CarbonFile>, depth: VerifyDepth, progress: &dyn Progress) -> VerifyReport {
    progress.set_total(file.source.size());
    let report = VerifyReport { files: 1, bytes: file.header_bytes, ..VerifyReport::default() };
    let mut check = Check { file, progress, report, said: HashSet::new(), counted: 0 };
    if file.footer.is_none() && file.has_chunks() {
        let error = Error::corrupt("a footer", "none that can be read");
        check.found(&error.at(file.name(), file.source.size(), FOOTER_PART), None);
    }
    for blocklet in &file.blocklets {
        let chunks = check.chunks(blocklet, depth);
        if depth >= VerifyDepth::Checksums {
            check.values(blocklet, &chunks);
        }
    }
    if depth >= VerifyDepth::Checksums && !file.has_chunks() {
        // Blocklets of versions 1 and 2 and of streams are read as they are, not by chunks and pages.
        check.report.blocks = file.blocklets.len() as u64;
        check.report.bytes = file.source.size();
        progress.advance(file.source.size());
    }
    check.report
}

struct Check<'a> {
    file: &'a Arc<CarbonFile>,
    progress: &'a dyn Progress,
    report: VerifyReport,
    /// Where the first `counted` findings are.
    said: HashSet<(u64, String)>,
    counted: usize,
}

impl Check<'_> {
    /// Whether nothing is said yet of the place of a finding.
    fn is_new(&mut self, finding: &Finding) -> bool {
        let more = self.report.findings.get(self.counted..).unwrap_or_default();
        self.said.extend(more.iter().map(|known| (known.offset, known.part.clone())));
        self.counted = self.report.findings.len();
        !self.said.contains(&(finding.offset, finding.part.clone()))
    }

    fn found(&mut self, error: &Error, rows: Option<Range<u64>>) {
        self.report.findings.push(Finding::from_error(error, self.file.name(), rows));
    }

    fn count(&mut self, bytes: u64) {
        self.report.blocks = self.report.blocks.saturating_add(1);
        self.report.bytes = self.report.bytes.saturating_add(bytes);
        self.progress.advance(bytes);
    }

    /// The headers of all chunks, and below them whether every page can be decompressed.
    fn chunks(&mut self, blocklet: &Blocklet, depth: VerifyDepth) -> Vec<Option<Chunk>> {
        let file = Arc::clone(self.file);
        let mut chunks = Vec::new();
        for (number, place) in blocklet.chunks.iter().enumerate() {
            self.count(place.header_bytes);
            match Chunk::read(&file, blocklet, number) {
                Ok(chunk) => {
                    if depth >= VerifyDepth::Checksums {
                        self.pages(blocklet, &chunk);
                    }
                    chunks.push(Some(chunk));
                }
                Err(error) => {
                    self.found(&error, Some(blocklet.rows.clone()));
                    chunks.push(None);
                }
            }
        }
        chunks
    }

    fn pages(&mut self, blocklet: &Blocklet, chunk: &Chunk) {
        let file = Arc::clone(self.file);
        for (number, (range, header)) in chunk.pages.iter().zip(&chunk.header.pages).enumerate() {
            self.count(range.end.saturating_sub(range.start));
            let unpack = || -> Result<bool> {
                let bytes = read_block(&file, range.clone(), CHUNK_PART)?;
                let codec = page::codec(header)?;
                let data = usize::try_from(header.data_length).unwrap_or(usize::MAX);
                let data = bytes.get(..data).ok_or_else(|| Error::corrupt("the data of a page", "less"))?;
                if header.encoders.first() == Some(&page::encoding::RLE_INTEGRAL) {
                    return Ok(false);
                }
                let cap = usize::try_from(file.limits.decoded_bytes).unwrap_or(usize::MAX);
                codec.decompress_sized(data, cap)?;
                Ok(codec == pilaster_encoding::codec::Codec::Gzip)
            };
            match unpack().at(file.name(), range.start, "column page") {
                Ok(true) => self.report.checksums = self.report.checksums.saturating_add(1),
                Ok(false) => {}
                Err(error) => self.found(&error, Some(blocklet.page_rows(number))),
            }
        }
    }

    fn values(&mut self, blocklet: &Blocklet, chunks: &[Option<Chunk>]) {
        let file = Arc::clone(self.file);
        let mut sound = true;
        for (column, node) in file.columns.iter().enumerate() {
            let mut cursor = PageCursor::alone(Arc::clone(&file), column);
            for page in 0..blocklet.pages() {
                let rows = blocklet.page_rows(page);
                match cursor.read_stored(rows.clone()) {
                    Ok(values) => {
                        let chunk = chunks.get(node.chunk).and_then(Option::as_ref);
                        self.bounds(node, page, &rows, &values, chunk, blocklet);
                    }
                    Err(error) => {
                        sound = false;
                        // What cannot be decompressed or parsed has been said already.
                        let finding = Finding::from_error(&error, file.name(), Some(rows));
                        if self.is_new(&finding) {
                            self.report.findings.push(finding);
                        }
                    }
                }
            }
        }
        if sound {
            let rows = blocklet.rows.end.saturating_sub(blocklet.rows.start);
            self.report.rows = self.report.rows.saturating_add(rows);
        }
    }

    /// Values lie between the minima and maxima of their page and of their blocklet.
    fn bounds(
        &mut self,
        node: &ColumnNode,
        page: usize,
        rows: &Range<u64>,
        values: &ArrayRef,
        chunk: Option<&Chunk>,
        blocklet: &Blocklet,
    ) {
        let file = Arc::clone(self.file);
        if let Err(error) = check_values(&file, node, chunk, page, values, blocklet) {
            self.found(&error, Some(rows.clone()));
            return;
        }
        // Values that their page's bounds hold and the blocklet's do not are not what is damaged.
        if let Ok(Some(count)) = outside_of(node, blocklet.min_max.as_ref(), node.chunk, values) {
            self.report.findings.push(Finding {
                severity: Severity::Error,
                path: file.name().into(),
                offset: file.footer.as_ref().map_or(0, |footer| footer.offset),
                part: FOOTER_PART.into(),
                message: format!(
                    "expected values of column {:?} inside the bounds of their blocklet, found {count} outside",
                    node.field.name()
                ),
                rows: None,
            });
        }
    }
}

/// Values of a page lie inside its bounds; where the page has none, inside those of the blocklet. Salvage asks the same.
pub(super) fn check_values(
    file: &CarbonFile,
    node: &ColumnNode,
    chunk: Option<&Chunk>,
    page: usize,
    values: &ArrayRef,
    blocklet: &Blocklet,
) -> Result<()> {
    let of_page = chunk.and_then(|chunk| chunk.page_statistics(page));
    let of_page = of_page.filter(|statistics| statistics.bounds(0).is_some());
    let (statistics, place, of) = match of_page {
        Some(statistics) => (Some(statistics), 0, "page"),
        None => (blocklet.min_max.as_ref(), node.chunk, "blocklet"),
    };
    let Some(count) = outside_of(node, statistics, place, values)? else { return Ok(()) };
    let offset = chunk.and_then(|chunk| chunk.pages.get(page)).map_or(0, |range| range.start);
    let expected = format!("values of column {:?} inside the bounds of their {of}", node.field.name());
    Err(Error::corrupt(expected, format!("{count} outside")).at(file.name(), offset, "column page"))
}

/// How many values lie outside of their bounds; `None` if none does, or nothing is known of them.
fn outside_of(
    node: &ColumnNode,
    statistics: Option<&MinMax>,
    place: usize,
    values: &ArrayRef,
) -> Result<Option<usize>> {
    let Some((min, max)) = statistics.and_then(|statistics| statistics.bounds(place)) else {
        return Ok(None);
    };
    let Some(limits) = bounds(node, &[Some(min), Some(max)]) else { return Ok(None) };
    // Bounds of floats leave NaN out.
    if limits.data_type().is_floating() || limits.null_count() > 0 {
        return Ok(None);
    }
    Ok(Some(outside(values, &limits)?).filter(|count| *count > 0))
}

/// How many of `values` are below the first of `limits` or above the second.
fn outside(values: &ArrayRef, limits: &ArrayRef) -> Result<usize> {
    let literal = |index| Literal::from_array(limits.as_ref(), index);
    let predicate = Predicate::Or(vec![col("v").lt(literal(0)), col("v").gt(literal(1))]);
    let schema = Arc::new(Schema::new(vec![Field::new("v", values.data_type().clone(), true)]));
    let bound = predicate.bind(&schema)?;
    let batch = RecordBatch::try_new(schema, vec![Arc::clone(values)])?;
    Ok(bound.evaluate(&batch)?.true_count())
}
