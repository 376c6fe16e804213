//! What of a column chunk can be read, and what is lost.
//!
//! The losses are exactly those the format promises: a damaged page body loses its page; a damaged page header loses its
//! page if the chunk has an index page and the rest of the chunk if not; damaged column metadata loses the chunk unless the
//! footer has a replica; a damaged index page loses nothing.

use std::fmt;
use std::ops::Range;

use pilaster_core::Result;
use serde::{Serialize, Serializer};

use super::batch::LeafBatch;
use super::chunk::{Chunk, StoredPage, Window};
use super::dense::Dense;
use super::file::RedFile;
use super::leaf::{PagePlace, places};
use super::page::Scratch;
use super::values;
use crate::metadata::{ColumnMetadata, PageType};
use crate::write::Extremes;

/// Rows of one column that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Number of the row group.
    pub row_group: usize,
    /// Path of the column, dotted.
    pub column: String,
    /// What is damaged.
    pub reason: LossReason,
    /// Rows of the row group.
    pub rows: Range<u64>,
    /// Where the page begins; `None` if the whole chunk is lost.
    pub offset: Option<u64>,
    /// What was expected and what was found.
    pub detail: String,
}

/// What is damaged where rows are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LossReason {
    /// The header of a page whose place the index tells.
    PageHeader,
    /// The header of a page; without an index nothing behind it can be found.
    PageHeaderRestOfChunk,
    /// The body of a page.
    PageData,
    /// The body of a page whose rows are not known, so that those behind it cannot be numbered.
    PageDataRowCountUnknown,
    /// Pages end before the rows do.
    MissingPages,
    /// The metadata of the chunk, and there is no replica.
    ColumnMetadata,
    /// The file that holds the chunk.
    DataFile(String),
    /// Nothing: it is stored in a way this version does not know.
    Unsupported(String),
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PageHeader => f.write_str("page header"),
            Self::PageHeaderRestOfChunk => f.write_str("page header, rest of chunk"),
            Self::PageData => f.write_str("page data"),
            Self::PageDataRowCountUnknown => f.write_str("page data, row count unknown"),
            Self::MissingPages => f.write_str("missing pages"),
            Self::ColumnMetadata => f.write_str("column metadata"),
            Self::DataFile(why) => write!(f, "data file: {why}"),
            Self::Unsupported(what) => write!(f, "unsupported: {what}"),
        }
    }
}

impl Serialize for LossReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "row group {}, column \"{}\": {} ({})",
            self.row_group, self.column, self.reason, self.detail
        )
    }
}

/// Damage by which nothing is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Number of the row group.
    pub row_group: usize,
    /// Path of the column, dotted.
    pub column: String,
    /// What is damaged.
    pub note: &'static str,
}

const REPLICA_USED: &str = "column metadata damaged, replica used";
const INDEX_DAMAGED: &str = "index page damaged";

/// What can be read of a chunk.
pub(crate) enum ChunkState {
    Lost { loss: Box<Loss> },
    Readable { chunk: Box<Chunk>, places: Vec<PagePlace>, losses: Vec<Loss>, notes: Vec<Note> },
}

/// Reads every page of a chunk.
pub(crate) fn inspect_chunk(file: &RedFile, group: usize, leaf: usize) -> ChunkState {
    let column = file.leaf(leaf).map(crate::schema::Leaf::name).unwrap_or_default();
    let rows = file.group(group).map(crate::metadata::RowGroup::rows).unwrap_or_default();
    let lost = |reason: LossReason, detail: String| ChunkState::Lost {
        loss: Box::new(Loss {
            row_group: group,
            column: column.clone(),
            reason,
            rows: 0..rows,
            offset: None,
            detail,
        }),
    };
    let chunk = file.group(group).and_then(|group| {
        let missing = || pilaster_core::Error::invalid(format!("no column {leaf}"));
        group.columns.get(leaf).ok_or_else(missing)
    });
    let described = match chunk {
        Ok(described) => described,
        Err(error) => return lost(LossReason::ColumnMetadata, error.to_string()),
    };
    if let Err(error) = file.data_file(described) {
        return lost(LossReason::DataFile(error.to_string()), error.to_string());
    }
    let mut notes = Vec::new();
    let mut note = |note| notes.push(Note { row_group: group, column: column.clone(), note });
    let chunk = match best_chunk(file, group, leaf) {
        Ok((chunk, is_by_replica)) => {
            if is_by_replica {
                note(REPLICA_USED);
            }
            chunk
        }
        Err(error) => return lost(LossReason::ColumnMetadata, error.to_string()),
    };
    if let Ok(leaf) = file.leaf(leaf)
        && let Err(error) = chunk.check_supported(leaf)
    {
        return lost(LossReason::Unsupported(error.to_string()), error.to_string());
    }
    let index = match chunk.index() {
        Ok(index) => index,
        Err(_) => {
            note(INDEX_DAMAGED);
            None
        }
    };
    let mut inspection = Inspection {
        file,
        chunk: &chunk,
        column,
        places: Vec::new(),
        losses: Vec::new(),
        scratch: Scratch::default(),
    };
    match index {
        Some(entries) => inspection.by_index(&places(&chunk, &entries)),
        None => inspection.by_walk(),
    }
    let Inspection { places, losses, .. } = inspection;
    ChunkState::Readable { chunk: Box::new(chunk), places, losses, notes }
}

/// A chunk by the metadata behind it or, if that is damaged, by the replica in the footer; says which.
pub(crate) fn best_chunk(file: &RedFile, group: usize, leaf: usize) -> Result<(Chunk, bool)> {
    let open = |metadata: ColumnMetadata| file.chunk_of(group, leaf, metadata);
    let replica = || file.group(group).ok()?.columns.get(leaf)?.metadata.clone();
    file.metadata_behind(group, leaf).and_then(open).map(|chunk| (chunk, false)).or_else(|error| {
        let by_replica = replica().and_then(|metadata| open(metadata).ok());
        by_replica.map(|chunk| (chunk, true)).ok_or(error)
    })
}

struct Inspection<'a> {
    file: &'a RedFile,
    chunk: &'a Chunk,
    column: String,
    places: Vec<PagePlace>,
    losses: Vec<Loss>,
    scratch: Scratch,
}

impl Inspection<'_> {
    fn lose(&mut self, reason: LossReason, rows: Range<u64>, offset: u64, detail: &impl ToString) {
        self.losses.push(Loss {
            row_group: self.chunk.group,
            column: self.column.clone(),
            reason,
            rows,
            offset: Some(offset),
            detail: detail.to_string(),
        });
    }

    /// Each page on its own, where the index says it is.
    fn by_index(&mut self, places: &[PagePlace]) {
        let mut window = Window::default();
        for place in places {
            let rows = place.rows.clone();
            let end = place.offset.saturating_add(place.size);
            let page = match self.chunk.page(&mut window, place.offset, self.chunk.end) {
                Ok(page) if page.header.page_type == PageType::Data && page.end() == end => page,
                Ok(_) => {
                    self.lose(
                        LossReason::PageHeader,
                        rows,
                        place.offset,
                        &"another page than the index says",
                    );
                    continue;
                }
                Err(error) => {
                    self.lose(LossReason::PageHeader, rows, place.offset, &error);
                    continue;
                }
            };
            match self.decode(&page) {
                Ok(found) if found == rows.end.saturating_sub(rows.start) => self.places.push(place.clone()),
                Ok(found) => {
                    self.lose(LossReason::PageData, rows, place.offset, &format!("{found} rows"));
                }
                Err(error) => self.lose(LossReason::PageData, rows, place.offset, &error),
            }
        }
    }

    /// One page after the other.
    fn by_walk(&mut self) {
        let index_at = self.chunk.metadata.index_page_offset.and_then(|offset| u64::try_from(offset).ok());
        let max_rep = self.file.leaf(self.chunk.leaf).map_or(0, |leaf| leaf.max_rep);
        let mut window = Window::default();
        let (mut offset, mut row) = (self.chunk.start, 0u64);
        while offset < self.chunk.end && row < self.chunk.rows {
            let rest = row..self.chunk.rows;
            let page = match self.chunk.page(&mut window, offset, self.chunk.end) {
                Ok(page) => page,
                Err(_) if Some(offset) == index_at => break,
                Err(error) => {
                    self.lose(LossReason::PageHeaderRestOfChunk, rest, offset, &error);
                    return;
                }
            };
            let at = offset;
            offset = page.end();
            let Some(data) = page.header.data.as_ref() else { continue };
            let stated = data.num_rows.or((max_rep == 0).then_some(data.num_values)).map(u64::from);
            let end_of = |rows: u64| row.saturating_add(rows);
            if stated.is_some_and(|rows| end_of(rows) > self.chunk.rows) {
                self.lose(LossReason::PageHeaderRestOfChunk, rest, at, &"more rows than the row group has");
                return;
            }
            match (self.decode(&page), stated) {
                (Ok(rows), _) if end_of(rows) <= self.chunk.rows => {
                    let size = page.end().saturating_sub(at);
                    self.places.push(PagePlace { offset: at, size, rows: row..end_of(rows) });
                    row = end_of(rows);
                }
                (Ok(_), _) => {
                    self.lose(LossReason::PageData, rest, at, &"more rows than the row group has");
                    return;
                }
                (Err(error), Some(rows)) => {
                    self.lose(LossReason::PageData, row..end_of(rows), at, &error);
                    row = end_of(rows);
                }
                (Err(error), None) => {
                    self.lose(LossReason::PageDataRowCountUnknown, rest, at, &error);
                    return;
                }
            }
        }
        if row < self.chunk.rows {
            self.lose(LossReason::MissingPages, row..self.chunk.rows, offset, &"the end of the chunk");
        }
    }

    /// Decodes a page to the last value; gives its rows.
    fn decode(&mut self, page: &StoredPage) -> Result<u64> {
        let leaf = self.file.leaf(self.chunk.leaf)?;
        let data_type = self.file.leaf_type(self.chunk.leaf)?;
        let mut opened = self.chunk.open_page(page, leaf, std::mem::take(&mut self.scratch))?;
        let rows = opened.rows_left;
        let mut batch = LeafBatch::new(leaf, data_type, rows.min(1 << 16));
        opened.take(rows, &mut batch)?;
        self.scratch = opened.into_scratch();
        let count = batch.values.len();
        values::array(batch.values, data_type, count, None)?;
        Ok(rows as u64)
    }
}

/// Bounds and counts of a page, computed from its values.
pub(crate) fn column_extremes(
    chunk: &Chunk,
    page: &StoredPage,
    leaf: &crate::schema::Leaf,
) -> Result<Extremes> {
    let mut opened = chunk.open_page(page, leaf, Scratch::default())?;
    // As bytes, whatever they mean: bounds are in the order of the file, not of Arrow.
    let mut batch = LeafBatch::new(leaf, &arrow_schema::DataType::Binary, 0);
    opened.take(opened.rows_left, &mut batch)?;
    let order = crate::schema::order_of(&leaf.element, leaf.physical_type);
    let nulls = (opened.entries.saturating_sub(batch.values.len())) as u64;
    let extremes = match &batch.values {
        _ if order == crate::schema::Order::None => {
            Extremes { values: batch.values.len() as u64, ..Extremes::default() }
        }
        Dense::Bits { bits, len } => {
            let bits: Vec<u8> =
                (0..*len).map(|bit| u8::from(pilaster_encoding::bits::get(bits, bit))).collect();
            Extremes::of_bits(&bits)
        }
        Dense::Words(words) => Extremes::of_words(words, order),
        Dense::Longs(longs) => Extremes::of_longs(longs, order),
        Dense::Wide(wide) => Extremes::of_wide(wide),
        Dense::Strings { values, offsets } => {
            let at = |offset: &i32| usize::try_from(*offset).unwrap_or_default();
            let strings = offsets.windows(2).map(|pair| match pair {
                [start, end] => values.get(at(start)..at(end)).unwrap_or_default(),
                _ => &[],
            });
            Extremes::of_strings(strings, order)
        }
        _ => Extremes::default(),
    };
    Ok(Extremes { nulls, ..extremes })
}

/// Everything that was looked at, for reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SalvageReport {
    /// Pages that are lost.
    pub lost_pages: Vec<Loss>,
    /// Chunks that are lost as a whole.
    pub lost_chunks: Vec<Loss>,
    /// Damage by which nothing is lost.
    pub notes: Vec<Note>,
}

impl SalvageReport {
    /// Whether every page of a row group, its index pages included, is as it should be.
    pub(crate) fn is_sound(&self, group: usize) -> bool {
        let losses = self.lost_pages.iter().chain(&self.lost_chunks).map(|loss| loss.row_group);
        let indexes = self.notes.iter().filter(|note| note.note == INDEX_DAMAGED).map(|note| note.row_group);
        !losses.chain(indexes).any(|damaged| damaged == group)
    }
}

/// Reads every page of a file.
pub(crate) fn inspect(file: &RedFile) -> SalvageReport {
    let mut report = SalvageReport::default();
    for group in 0..file.metadata.row_groups.len() {
        for leaf in 0..file.schema.leaves().len() {
            match inspect_chunk(file, group, leaf) {
                ChunkState::Lost { loss } => report.lost_chunks.push(*loss),
                ChunkState::Readable { losses, notes, .. } => {
                    report.lost_pages.extend(losses);
                    report.notes.extend(notes);
                }
            }
        }
    }
    report
}

/// The definition and repetition levels of a chunk and how many values it has, for tests.
#[doc(hidden)]
pub fn inspect_levels(
    reader: &super::RedfileReader,
    group: usize,
    leaf: usize,
) -> Result<(Vec<u8>, Vec<u8>, usize)> {
    let file = reader.file();
    let described = file.leaf(leaf)?;
    let mut batch = LeafBatch::new(described, file.leaf_type(leaf)?, 0);
    let all = pilaster_core::RowRanges::one(file.group_rows(group));
    let rows = 0..file.group(group)?.rows();
    let memory = pilaster_core::ScanMemory::of_one_column(&file.options.limits);
    let file = std::sync::Arc::clone(file);
    super::leaf::LeafReader::new(file, leaf, all, &memory).read(group, rows, &mut batch)?;
    let entries = batch.entries;
    let (def, rep) = match batch.levels {
        super::batch::Levels::None => (vec![0; entries], vec![0; entries]),
        super::batch::Levels::Flat { validity, .. } => {
            let level = |entry| u8::from(pilaster_encoding::bits::get(&validity, entry));
            ((0..entries).map(level).collect(), vec![0; entries])
        }
        super::batch::Levels::Full { def, rep } if rep.is_empty() => (def, vec![0; entries]),
        super::batch::Levels::Full { def, rep } => (def, rep),
    };
    Ok((def, rep, batch.values.len()))
}
