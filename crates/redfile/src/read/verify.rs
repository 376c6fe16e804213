//! Looking for damage.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Progress, RowRanges, VerifyDepth, VerifyReport};

use super::batch::LeafBatch;
use super::chunk::{CHUNK_PART, Chunk, HEADER_PART, INDEX_PART, PAGE_PART, StoredPage, Window};
use super::file::{COLUMN_PART, RedFile};
use super::page::Scratch;
use super::values;
use crate::metadata::{Encoding, PageIndexEntry, PageType, Statistics, check_head};
use crate::read::salvage::column_extremes;
use crate::schema::order_of;
use crate::write::Extremes;

/// Looks at everything `depth` asks for.
pub(super) fn verify(file: &Arc<RedFile>, depth: VerifyDepth, progress: &dyn Progress) -> VerifyReport {
    progress.set_total(file.size_bytes());
    let mut check =
        Check { file, depth, progress, report: VerifyReport { files: 1, ..VerifyReport::default() } };
    if let Err(error) = check_head(file.source.as_ref()) {
        check.found(&error, None);
    }
    check.row_group_sums();
    for group in 0..file.metadata.row_groups.len() {
        let mut is_sound = true;
        for leaf in 0..file.schema.leaves().len() {
            is_sound &= check.chunk(group, leaf);
        }
        if depth >= VerifyDepth::Values && is_sound {
            check.records(group);
        }
    }
    check.report
}

struct Check<'a> {
    file: &'a Arc<RedFile>,
    depth: VerifyDepth,
    progress: &'a dyn Progress,
    report: VerifyReport,
}

impl Check<'_> {
    fn found(&mut self, error: &Error, rows: Option<Range<u64>>) {
        self.report.findings.push(Finding::from_error(error, self.file.name(), rows));
    }

    fn warn(&mut self, chunk: &Chunk, offset: u64, part: &str, message: String) {
        self.report.findings.push(Finding {
            severity: Severity::Warning,
            path: Arc::from(chunk.name()),
            offset,
            part: part.to_string(),
            message,
            rows: None,
        });
    }

    fn corrupt(&mut self, chunk: &Chunk, offset: u64, part: &'static str, expected: String, found: String) {
        let error = Error::corrupt(expected, found).at(chunk.name(), offset, part);
        self.found(&error, None);
    }

    /// Sizes that row groups state must be those of their chunks.
    fn row_group_sums(&mut self) {
        for (number, group) in self.file.metadata.row_groups.iter().enumerate() {
            let replicas: Vec<_> =
                group.columns.iter().filter_map(|column| column.metadata.as_ref()).collect();
            if replicas.len() != group.columns.len() {
                continue;
            }
            let sum = replicas
                .iter()
                .fold(0i64, |sum, replica| sum.saturating_add(replica.total_uncompressed_size));
            let stored =
                replicas.iter().fold(0i64, |sum, replica| sum.saturating_add(replica.total_compressed_size));
            let is_wrong = sum != group.total_byte_size
                || group.total_compressed_size.is_some_and(|size| size != stored);
            if is_wrong {
                let expected = format!(
                    "{} and {} bytes in row group {number}",
                    group.total_byte_size,
                    group.total_compressed_size.unwrap_or(stored)
                );
                let error = Error::corrupt(expected, format!("{sum} and {stored}")).at(
                    self.file.name(),
                    self.file.source.size(),
                    crate::metadata::FOOTER_PART,
                );
                self.found(&error, None);
            }
        }
    }

    /// Rows of a row group among all rows.
    fn rows_of(&self, group: usize, rows: Range<u64>) -> Range<u64> {
        let first = self.file.group_rows(group).start;
        first.saturating_add(rows.start)..first.saturating_add(rows.end)
    }

    /// Looks at one chunk; says whether all its pages can be read.
    fn chunk(&mut self, group: usize, leaf: usize) -> bool {
        let all = self.file.group_rows(group);
        let behind = self.file.metadata_behind(group, leaf);
        let chunk = match (self.file.chunk(group, leaf), &behind) {
            (Ok(chunk), _) => chunk,
            (Err(error), _) => {
                self.found(&error, Some(all));
                return false;
            }
        };
        match behind {
            Ok(metadata) if metadata != chunk.metadata => self.corrupt(
                &chunk,
                chunk.end,
                COLUMN_PART,
                "the same as in the file metadata".to_string(),
                "another".to_string(),
            ),
            Ok(_) => {}
            // Without a replica the chunk could not have been opened.
            Err(error) => self.found(&error, None),
        }
        self.progress.advance(chunk.end.saturating_sub(chunk.start));
        if let Ok(described) = self.file.leaf(leaf)
            && let Err(error) = chunk.check_supported(described)
        {
            self.report.findings.push(Finding {
                severity: Severity::Warning,
                ..Finding::from_error(&error, self.file.name(), None)
            });
            return false;
        }
        let index = match chunk.index() {
            Ok(index) => index,
            Err(error) => {
                self.found(&error, None);
                None
            }
        };
        self.pages(&chunk, index.as_deref())
    }

    /// Walks over the pages of a chunk.
    fn pages(&mut self, chunk: &Chunk, index: Option<&[PageIndexEntry]>) -> bool {
        let mut window = Window::default();
        let mut walk = Walk::new(chunk);
        let mut is_sound = true;
        while walk.offset < chunk.end {
            let page = match self.next_page(chunk, &mut window, walk.offset) {
                Ok(page) => page,
                Err(error) => {
                    let rows = self.rows_of(chunk.group, walk.row..chunk.rows);
                    self.found(&error, Some(rows));
                    return false;
                }
            };
            self.report.blocks = self.report.blocks.saturating_add(1);
            let read = page.header_bytes.saturating_add(page.body.len() as u64);
            self.report.bytes = self.report.bytes.saturating_add(read);
            let entry = index.and_then(|entries| entries.get(walk.pages));
            is_sound &= self.page(chunk, &page, entry, &mut walk);
            walk.offset = page.end();
        }
        if is_sound {
            self.totals(chunk, index, &walk);
        }
        is_sound
    }

    /// A page; without its body where nobody looks at bodies.
    fn next_page(&self, chunk: &Chunk, window: &mut Window, offset: u64) -> Result<StoredPage, Error> {
        if self.depth >= VerifyDepth::Checksums {
            return chunk.page(window, offset, chunk.end);
        }
        let (header, header_bytes) = chunk.header(window, offset, offset)?;
        let page = StoredPage { header, offset, header_bytes, body: Bytes::new() };
        if page.end() > chunk.end {
            let expected = format!("a page that ends at byte {} or before", chunk.end);
            return Err(Error::corrupt(expected, page.end()).at(chunk.name(), offset, HEADER_PART));
        }
        Ok(page)
    }

    fn page(
        &mut self,
        chunk: &Chunk,
        page: &StoredPage,
        entry: Option<&PageIndexEntry>,
        walk: &mut Walk,
    ) -> bool {
        let unpacked = page.header_bytes.saturating_add(u64::from(page.header.uncompressed_size));
        walk.uncompressed = walk.uncompressed.saturating_add(unpacked);
        if page.header.crc.is_some() && self.depth >= VerifyDepth::Checksums {
            self.report.checksums = self.report.checksums.saturating_add(1);
        }
        let Some(data) = page.header.data.as_ref().filter(|_| page.header.page_type == PageType::Data) else {
            if self.depth >= VerifyDepth::Checksums && page.header.page_type == PageType::Index {
                // Damage of the index was told when it was read; an index in another place is none.
                if chunk.metadata.index_page_offset.map(i64::cast_unsigned) != Some(page.offset) {
                    self.warn(
                        chunk,
                        page.offset,
                        INDEX_PART,
                        "an index page that nothing leads to".to_string(),
                    );
                }
            }
            return true;
        };
        let max_rep = self.file.leaf(chunk.leaf).map_or(0, |leaf| leaf.max_rep);
        let stated = data.num_rows.or((max_rep == 0).then_some(data.num_values)).map(u64::from);
        walk.pages = walk.pages.saturating_add(1);
        walk.entries = walk.entries.saturating_add(u64::from(data.num_values));
        if let Encoding::GroupVarInt | Encoding::Plain = data.encoding
            && !chunk.metadata.encodings.contains(&data.encoding)
        {
            let expected = format!("one of the encodings {:?}", chunk.metadata.encodings);
            self.corrupt(chunk, page.offset, HEADER_PART, expected, data.encoding.to_string());
        }
        if let Some(entry) = entry {
            self.compare_entry(chunk, page, entry, data.num_values, stated);
        }
        if self.depth < VerifyDepth::Checksums {
            walk.row = walk.row.saturating_add(stated.unwrap_or_default());
            return true;
        }
        match self.decode(chunk, page, entry, walk) {
            Ok(rows) => {
                walk.row = walk.row.saturating_add(rows);
                true
            }
            Err(error) => {
                let end = stated.map_or(chunk.rows, |rows| walk.row.saturating_add(rows));
                let rows = self.rows_of(chunk.group, walk.row..end);
                self.found(&error, Some(rows));
                walk.row = end;
                false
            }
        }
    }

    fn compare_entry(
        &mut self,
        chunk: &Chunk,
        page: &StoredPage,
        entry: &PageIndexEntry,
        entries: u32,
        rows: Option<u64>,
    ) {
        let told = (chunk.start.saturating_add(entry.offset), u64::from(entry.size), entry.num_values);
        let found = (page.offset, page.end().saturating_sub(page.offset), entries);
        let are_rows = rows.is_none_or(|rows| rows == u64::from(entry.num_rows));
        if told != found || !are_rows {
            let expected = format!(
                "a page at byte {} of {} bytes and {} entries, as the index says",
                told.0, told.1, told.2
            );
            self.corrupt(
                chunk,
                page.offset,
                INDEX_PART,
                expected,
                format!("byte {}, {} bytes, {} entries", found.0, found.1, found.2),
            );
        }
    }

    /// Checks body and, where asked for, every value; gives the rows.
    fn decode(
        &mut self,
        chunk: &Chunk,
        page: &StoredPage,
        entry: Option<&PageIndexEntry>,
        walk: &mut Walk,
    ) -> Result<u64, Error> {
        let strict = Chunk { verify_checksums: true, ..chunk.clone() };
        let leaf = self.file.leaf(chunk.leaf)?;
        if self.depth < VerifyDepth::Values {
            let opened = strict.open_page(page, leaf, std::mem::take(&mut walk.scratch))?;
            let rows = opened.rows_left as u64;
            walk.scratch = opened.into_scratch();
            return Ok(rows);
        }
        let data_type = self.file.leaf_type(chunk.leaf)?;
        let mut opened = strict.open_page(page, leaf, std::mem::take(&mut walk.scratch))?;
        let rows = opened.rows_left;
        let mut batch = LeafBatch::new(leaf, data_type, rows.min(1 << 16));
        opened.take(rows, &mut batch)?;
        walk.scratch = opened.into_scratch();
        let order = order_of(&leaf.element, leaf.physical_type);
        let extremes = column_extremes(&strict, page, leaf)?;
        let width = crate::write::value_width(leaf.physical_type);
        let stored = entry.and_then(|entry| entry.statistics.as_ref());
        let stored = stored.or(page.header.data.as_ref().and_then(|data| data.statistics.as_ref()));
        if let Some(stored) = stored {
            self.compare_statistics(chunk, page.offset, stored, &extremes.statistics(order, width));
        }
        walk.extremes.merge(&extremes);
        let count = batch.values.len();
        values::array(batch.values, data_type, count, None)
            .map_err(|error| error.at(chunk.name(), page.offset, PAGE_PART))?;
        self.report.rows = self.report.rows.saturating_add(if chunk.leaf == 0 { rows as u64 } else { 0 });
        Ok(rows as u64)
    }

    /// Statistics are hints, but wrong ones lose rows.
    fn compare_statistics(&mut self, chunk: &Chunk, offset: u64, stored: &Statistics, computed: &Statistics) {
        let differs = |a: &Option<Vec<u8>>, b: &Option<Vec<u8>>| a.is_some() && a != b;
        let is_wrong = differs(&stored.min, &computed.min)
            || differs(&stored.max, &computed.max)
            || stored.null_count.is_some_and(|count| Some(count) != computed.null_count)
            || (stored.nan_count.is_some() && stored.nan_count != computed.nan_count);
        if is_wrong {
            let message = format!("statistics {stored:?} that are not those of the values, {computed:?}");
            self.warn(chunk, offset, PAGE_PART, message);
        }
    }

    fn totals(&mut self, chunk: &Chunk, index: Option<&[PageIndexEntry]>, walk: &Walk) {
        let stated = chunk.metadata.num_values.cast_unsigned();
        if walk.entries != stated {
            self.corrupt(
                chunk,
                chunk.end,
                COLUMN_PART,
                format!("{stated} entries"),
                walk.entries.to_string(),
            );
        }
        let has_rows = self.depth >= VerifyDepth::Checksums
            || self.file.leaf(chunk.leaf).is_ok_and(|leaf| leaf.max_rep == 0);
        if has_rows && walk.row != chunk.rows {
            self.corrupt(chunk, chunk.end, CHUNK_PART, format!("{} rows", chunk.rows), walk.row.to_string());
        }
        if walk.uncompressed != chunk.metadata.total_uncompressed_size.cast_unsigned() {
            let expected = format!("{} uncompressed bytes", chunk.metadata.total_uncompressed_size);
            self.corrupt(chunk, chunk.end, COLUMN_PART, expected, walk.uncompressed.to_string());
        }
        if index.is_some_and(|entries| entries.len() != walk.pages) {
            let expected = format!("{} pages, as the index says", index.map_or(0, <[_]>::len));
            self.corrupt(chunk, chunk.end, INDEX_PART, expected, walk.pages.to_string());
        }
        if self.depth >= VerifyDepth::Values
            && let (Some(stored), Ok(leaf)) = (&chunk.metadata.statistics, self.file.leaf(chunk.leaf))
        {
            let order = order_of(&leaf.element, leaf.physical_type);
            let width = crate::write::value_width(leaf.physical_type);
            self.compare_statistics(chunk, chunk.end, stored, &walk.extremes.statistics(order, width));
        }
    }

    /// Columns that are sound one by one must also make records.
    fn records(&mut self, group: usize) {
        let file = self.file;
        for (number, shape) in file.schema.shapes().iter().enumerate() {
            if shape.leaves.len() < 2 && shape.rep == 0 && matches!(shape.kind, crate::schema::Kind::Leaf) {
                continue;
            }
            let rows = file.group_rows(group);
            if let Err(error) = super::cursor::read_through(file, number, &RowRanges::one(rows.clone())) {
                self.found(&error, Some(rows));
            }
        }
    }
}

/// How far a walk over a chunk has come.
struct Walk {
    offset: u64,
    row: u64,
    pages: usize,
    entries: u64,
    uncompressed: u64,
    extremes: Extremes,
    scratch: Scratch,
}

impl Walk {
    fn new(chunk: &Chunk) -> Self {
        Self {
            offset: chunk.start,
            row: 0,
            pages: 0,
            entries: 0,
            uncompressed: 0,
            extremes: Extremes::default(),
            scratch: Scratch::default(),
        }
    }
}
