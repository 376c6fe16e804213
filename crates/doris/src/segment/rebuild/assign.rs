//! Which pages are whose, and a footer that says so.
//!
//! A file that was cut inside its data lacks the last pages of one column and all of those after it. They are in the footer all the
//! same, as pages that are gone: what is left of each column can be read, and rows that all columns have are whole.

use std::collections::VecDeque;
use std::sync::Arc;

use pilaster_core::{Error, ErrorKind, Limits, Result, SourceRef};

use super::PART;
use super::walk::WalkedPage;
use crate::messages::{
    ColumnIndexPb, ColumnMetaPb, DataPageFooterPb, OrdinalIndexPb, PagePointerPb, SegmentFooterPb,
};
use crate::schema::TabletSchema;
use crate::segment::cells::Cell;
use crate::segment::decode::PageShape;
use crate::segment::page::{PageKind, PagePointer, PageStore};
use crate::segment::types::{Compression, Encoding, FieldType};
use crate::segment::write::{
    ColumnPlan, Layout, Sink, is_readable, ordinal_index, plan_schema, planned_helper, planned_meta,
    write_footer,
};

fn struct_nulls_id(plan: &ColumnPlan) -> u32 {
    u32::try_from(plan.children.len()).unwrap_or(u32::MAX).saturating_add(1)
}

/// Pages of one column, or of a part of one: they begin with row 0.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub pages: Vec<(DataPageFooterPb, PagePointer)>,
    dictionary: Option<PagePointer>,
}

impl Run {
    /// Whether it begins with row 0, and no page of it is empty.
    pub fn is_whole(&self) -> bool {
        let first = self.pages.first().map(|(footer, _)| footer.first_ordinal.unwrap_or(0));
        first == Some(0) && self.pages.iter().all(|(footer, _)| footer.num_values.unwrap_or(0) > 0)
    }

    pub fn rows(&self) -> u64 {
        self.pages.last().map_or(0, |(footer, _)| {
            footer.first_ordinal.unwrap_or(0).saturating_add(footer.num_values.unwrap_or(0))
        })
    }
}

/// Cuts pages into runs, in their order. A dictionary is a run of its own until it is known whose it is.
pub(super) fn runs(pages: &[WalkedPage]) -> VecDeque<Run> {
    let mut runs: VecDeque<Run> = VecDeque::new();
    let mut next_row = None;
    for page in pages {
        match (page.footer.kind, page.footer.data_page_footer) {
            (Some(1), Some(footer)) => {
                let first = footer.first_ordinal.unwrap_or(0);
                if first == 0 || next_row != Some(first) {
                    runs.push_back(Run::default());
                }
                if let Some(run) = runs.back_mut() {
                    run.pages.push((footer, page.pointer));
                }
                next_row = Some(first.saturating_add(footer.num_values.unwrap_or(0)));
            }
            (Some(3), _) => {
                runs.push_back(Run { pages: Vec::new(), dictionary: Some(page.pointer) });
                next_row = None;
            }
            _ => next_row = None,
        }
    }
    runs
}

/// The bytes behind the pages.
pub(super) struct NewTail {
    /// Ordinal indexes and a footer.
    pub bytes: Vec<u8>,
    /// Whether it is certain that the first column, by which rows are counted, has no more.
    pub is_end_known: bool,
}

/// What is to stand behind the pages.
pub(super) fn new_tail(
    source: &SourceRef,
    schema: &TabletSchema,
    pages: &[WalkedPage],
    end: u64,
    limits: &Limits,
) -> Result<NewTail> {
    let (plans, words) = plan_schema(schema)?;
    let store = Arc::new(PageStore::new(Arc::clone(source), limits.clone(), true, end));
    let name = source.name().to_string();
    let mut assign = Assign {
        store,
        runs: runs(pages),
        // Indexes and keys come behind all data.
        is_cut: !pages.iter().any(|page| matches!(page.footer.kind, Some(2 | 4))),
        sink: Sink::at(Vec::new(), end),
        words,
        compression: schema.compression,
    };
    // Whatever follows the first column says that it ended.
    let is_end_known = !assign.is_cut || assign.runs.len() != 1;
    let mut columns = Vec::with_capacity(plans.len());
    let mut rows = None;
    for plan in &plans {
        let column =
            assign.column(plan, rows).map_err(|error| in_column(error, &plan.name).at(&name, end, PART))?;
        let found = column.num_rows.unwrap_or(0);
        if *rows.get_or_insert(found) != found {
            return Err(Error::corrupt(
                format!("{} rows in column \"{}\"", rows.unwrap_or(0), plan.name),
                format!("{found} rows"),
            )
            .at(&name, end, PART));
        }
        columns.push(column);
    }
    let rows = rows.unwrap_or(0);
    let footer = SegmentFooterPb {
        columns,
        num_rows: Some(u32::try_from(rows).map_err(|_| Error::corrupt("less than 2^32 rows", rows))?),
        short_key_index_page: short_keys(pages, rows),
        ..SegmentFooterPb::default()
    };
    let mut sink = assign.sink;
    write_footer(&footer, &mut sink)?;
    Ok(NewTail { bytes: sink.finish()?, is_end_known })
}

/// An error that says the column it is about, unless it has a place.
fn in_column(error: Error, name: &str) -> Error {
    match error.kind() {
        ErrorKind::Corrupt { expected, found } if error.position().is_none() => {
            Error::corrupt(format!("{expected} for column \"{name}\""), found)
        }
        _ => error,
    }
}

/// The page of short keys, if it is of so many rows.
pub(super) fn short_keys(pages: &[WalkedPage], rows: u64) -> Option<PagePointerPb> {
    let page = pages.iter().rev().find(|page| page.footer.kind == Some(4))?;
    let footer = page.footer.short_key_page_footer?;
    (footer.num_segment_rows.map(u64::from) == Some(rows)).then(|| page.pointer.message())
}

struct Assign {
    store: Arc<PageStore>,
    runs: VecDeque<Run>,
    /// Whether the file may end before its last data page.
    is_cut: bool,
    sink: Sink<Vec<u8>>,
    /// How strings are stored that are in no dictionary, if their pages do not tell.
    words: Encoding,
    compression: Option<Compression>,
}

impl Assign {
    /// Metadata of a column of `rows` rows, if that is known, and its parts, whose runs come next.
    fn column(&mut self, plan: &ColumnPlan, rows: Option<u64>) -> Result<ColumnMetaPb> {
        if let Some(rows) = rows.filter(|rows| self.is_cut && self.runs.is_empty() && *rows > 0) {
            return self.gone_column(plan, rows);
        }
        let mut meta = planned_meta(plan);
        match plan.layout {
            Layout::Paged => {
                self.paged(plan.field_type, &plan.paged.cell, rows, &mut meta)?;
                meta.children_columns = plan.children.iter().map(planned_meta).collect();
            }
            Layout::List | Layout::Map => {
                let first_id = if plan.layout == Layout::List { 2 } else { 3 };
                let items = self.items()?;
                let mut helpers = vec![self.helper(first_id, FieldType::UnsignedBigInt, rows)?];
                if plan.is_nullable {
                    let rows = helpers.first().and_then(|offsets| offsets.num_rows);
                    helpers.push(self.helper(first_id.saturating_add(1), FieldType::TinyInt, rows)?);
                }
                meta.num_rows = helpers.first().and_then(|offsets| offsets.num_rows);
                for child in &plan.children {
                    meta.children_columns.push(self.part(child, items)?);
                }
                meta.children_columns.extend(helpers);
            }
            Layout::Struct => {
                meta.num_rows = rows;
                for child in &plan.children {
                    let part = self.column(child, meta.num_rows)?;
                    meta.num_rows = part.num_rows;
                    meta.children_columns.push(part);
                }
                if plan.is_nullable {
                    let nulls = self.helper(struct_nulls_id(plan), FieldType::TinyInt, meta.num_rows)?;
                    meta.children_columns.push(nulls);
                }
            }
            Layout::Variant => {
                return Err(Error::unsupported(format!(
                    "rebuilding the VARIANT column \"{}\": only the footer knew its paths",
                    plan.name
                ))
                .at(self.store.name(), self.store.pages_end, PART));
            }
        }
        Ok(meta)
    }

    /// A part of an array or map with so many items; without any it has no pages but a dictionary.
    fn part(&mut self, plan: &ColumnPlan, items: u64) -> Result<ColumnMetaPb> {
        if items > 0 {
            return self.column(plan, Some(items));
        }
        let mut meta = planned_meta(plan);
        meta.num_rows = Some(0);
        match plan.layout {
            Layout::Paged => {
                let is_dictionary = self.runs.front().is_some_and(|run| run.pages.is_empty());
                if is_dictionary && plan.paged.cell.width().is_none() {
                    meta.dict_page =
                        self.runs.pop_front().and_then(|run| run.dictionary).map(PagePointer::message);
                    meta.encoding = Some(Encoding::Dict.number());
                }
                meta.children_columns = plan.children.iter().map(planned_meta).collect();
            }
            _ => {
                for child in &plan.children {
                    meta.children_columns.push(self.part(child, 0)?);
                }
                let (first_id, has_offsets) = match plan.layout {
                    Layout::List => (2, true),
                    Layout::Map => (3, true),
                    _ => (struct_nulls_id(plan), false),
                };
                if has_offsets {
                    meta.children_columns.push(planned_helper(first_id, FieldType::UnsignedBigInt));
                }
                if plan.is_nullable {
                    let id = if has_offsets { first_id.saturating_add(1) } else { first_id };
                    meta.children_columns.push(planned_helper(id, FieldType::TinyInt));
                }
            }
        }
        Ok(meta)
    }

    fn helper(&mut self, id: u32, field_type: FieldType, rows: Option<u64>) -> Result<ColumnMetaPb> {
        let mut meta = planned_helper(id, field_type);
        self.paged(field_type, &Cell::of_type(field_type, None, None)?, rows, &mut meta)?;
        Ok(meta)
    }

    /// A column all of whose pages are behind the end of the file.
    fn gone_column(&mut self, plan: &ColumnPlan, rows: u64) -> Result<ColumnMetaPb> {
        let mut meta = planned_meta(plan);
        meta.num_rows = Some(rows);
        match plan.layout {
            Layout::Paged | Layout::Variant => {
                let encoding = plan.encoding.unwrap_or(self.words);
                meta.encoding = Some(encoding.number());
                self.index(&[(0, self.gone())], &mut meta)?;
                meta.children_columns = plan.children.iter().map(planned_meta).collect();
            }
            Layout::List | Layout::Map => {
                for child in &plan.children {
                    meta.children_columns.push(self.part(child, 0)?);
                }
                let first_id = if plan.layout == Layout::List { 2 } else { 3 };
                meta.children_columns.push(self.gone_helper(first_id, FieldType::UnsignedBigInt, rows)?);
                if plan.is_nullable {
                    let id = first_id.saturating_add(1);
                    meta.children_columns.push(self.gone_helper(id, FieldType::TinyInt, rows)?);
                }
            }
            Layout::Struct => {
                for child in &plan.children {
                    meta.children_columns.push(self.gone_column(child, rows)?);
                }
                if plan.is_nullable {
                    let nulls = self.gone_helper(struct_nulls_id(plan), FieldType::TinyInt, rows)?;
                    meta.children_columns.push(nulls);
                }
            }
        }
        Ok(meta)
    }

    fn gone_helper(&mut self, id: u32, field_type: FieldType, rows: u64) -> Result<ColumnMetaPb> {
        let mut meta = planned_helper(id, field_type);
        meta.num_rows = Some(rows);
        self.index(&[(0, self.gone())], &mut meta)?;
        Ok(meta)
    }

    /// No page, where the next one would have been.
    fn gone(&self) -> PagePointer {
        PagePointer { offset: self.store.pages_end, size: 0 }
    }

    /// Gives a column an ordinal index of its pages and their first rows.
    fn index(&mut self, pages: &[(u64, PagePointer)], meta: &mut ColumnMetaPb) -> Result<()> {
        if let Some(root_page) = ordinal_index(pages, &mut self.sink)? {
            meta.indexes.push(ColumnIndexPb {
                kind: Some(1),
                ordinal_index: Some(OrdinalIndexPb { root_page: Some(root_page) }),
                ..ColumnIndexPb::default()
            });
        }
        Ok(())
    }

    /// How many items the rows of the next run, of offsets, have: its last page knows.
    fn items(&self) -> Result<u64> {
        let last = self.runs.front().and_then(|run| run.pages.last());
        last.and_then(|(footer, _)| footer.next_array_item_ordinal)
            .ok_or_else(|| Error::corrupt("pages of offsets", "pages that do not say where items end"))
    }

    /// Takes the next run for a column with pages, of `rows` rows if that is known.
    fn paged(
        &mut self,
        field_type: FieldType,
        cell: &Cell,
        rows: Option<u64>,
        meta: &mut ColumnMetaPb,
    ) -> Result<()> {
        let Some(mut run) = self.runs.pop_front() else {
            let Some(rows) = rows.filter(|rows| self.is_cut && *rows > 0) else {
                return Err(Error::corrupt("pages", "the end of the file"));
            };
            meta.num_rows = Some(rows);
            return self.index(&[(0, self.gone())], meta);
        };
        if run.pages.is_empty() {
            return Err(Error::corrupt("data pages", "a dictionary page"));
        }
        let is_dictionary = self.runs.front().is_some_and(|next| next.pages.is_empty());
        if is_dictionary && cell.width().is_none() {
            run.dictionary = self.runs.pop_front().and_then(|next| next.dictionary);
        }
        let compression = self.find_codec(&run)?;
        let is_last = self.is_cut && self.runs.is_empty();
        let encoding = match self.find_encoding(&run, field_type, cell, compression) {
            // Its dictionary would have come next.
            Err(_) if is_last && cell.width().is_none() && self.has_codes(&run, compression) => {
                Encoding::Dict
            }
            found => found?,
        };
        meta.encoding = Some(encoding.number());
        meta.compression = Some(compression.number());
        meta.dict_page = run.dictionary.map(PagePointer::message);
        meta.num_rows = Some(run.rows());
        let mut pages: Vec<(u64, PagePointer)> =
            run.pages.iter().map(|(footer, pointer)| (footer.first_ordinal.unwrap_or(0), *pointer)).collect();
        if let Some(rows) = rows.filter(|rows| is_last && *rows > run.rows()) {
            meta.num_rows = Some(rows);
            pages.push((run.rows(), self.gone()));
        }
        self.index(&pages, meta)
    }

    /// Whether a page begins as one of codes does.
    fn has_codes(&self, run: &Run, compression: Compression) -> bool {
        let inner = Encoding::Dict.number().to_le_bytes();
        run.pages.iter().any(|(_, pointer)| {
            let page = self.store.read(*pointer, PageKind::Data, compression);
            page.is_ok_and(|page| page.body.starts_with(&inner))
        })
    }

    /// The codec of the first page that has one.
    fn find_codec(&self, run: &Run) -> Result<Compression> {
        let all = [
            Compression::Lz4Frame,
            Compression::Zstd,
            Compression::Zlib,
            Compression::Snappy,
            Compression::Lz4,
        ];
        let known = self.compression.into_iter().chain(all);
        let data = run.pages.iter().map(|(_, pointer)| (*pointer, PageKind::Data));
        let mut result = Compression::None;
        for (pointer, kind) in data.chain(run.dictionary.map(|pointer| (pointer, PageKind::Dictionary))) {
            if self.store.read(pointer, kind, Compression::None).is_ok() {
                continue;
            }
            let fits = |codec: &Compression| self.store.read(pointer, kind, *codec).is_ok();
            if let Some(found) = known.clone().find(fits) {
                result = found;
                break;
            }
        }
        Ok(result)
    }

    /// The encoding in which a sound page decodes: the first one with values decides.
    fn find_encoding(
        &self,
        run: &Run,
        field_type: FieldType,
        cell: &Cell,
        compression: Compression,
    ) -> Result<Encoding> {
        if run.dictionary.is_some() {
            return Ok(Encoding::Dict);
        }
        // Those that check the most come first.
        let candidates: Vec<Encoding> = [
            Encoding::BitShuffle,
            Encoding::PlainV3,
            Encoding::PlainV2,
            Encoding::Prefix,
            Encoding::Frames,
            Encoding::Plain,
            Encoding::Rle,
        ]
        .into_iter()
        .filter(|encoding| {
            let is_offsets = field_type == FieldType::UnsignedBigInt;
            is_readable(field_type, *cell == Cell::Bytes, *encoding)
                || (is_offsets && matches!(encoding, Encoding::BitShuffle | Encoding::Plain))
        })
        .collect();
        let mut left = candidates.clone();
        for (_, pointer) in &run.pages {
            let Ok(page) = self.store.read(*pointer, PageKind::Data, compression) else { continue };
            let fits = |encoding: &Encoding| {
                // Cells of single bytes and their runs look alike; only the header of a run is above 1.
                let is_flags = *cell == Cell::Bool && *encoding == Encoding::Plain;
                let null_bytes = page.footer.data_page_footer.and_then(|data| data.nullmap_size).unwrap_or(0);
                let values = page.body.len().saturating_sub(null_bytes as usize);
                if is_flags && page.body.get(4..values).is_none_or(|flags| flags.iter().any(|flag| *flag > 1))
                {
                    return false;
                }
                let shape =
                    PageShape { cell: cell.clone(), encoding: *encoding, limits: self.store.limits.clone() };
                let decoded = shape.decode(&page, &|| Err(Error::corrupt("a dictionary", "none")));
                decoded.and_then(|mut page| page.check(cell)).is_ok()
            };
            left.retain(fits);
            if left.len() <= 1 {
                break;
            }
        }
        match left.first() {
            Some(encoding) if left.len() < candidates.len() || candidates.len() == 1 => Ok(*encoding),
            // Every page is damaged, or none has a value.
            Some(_) => Ok(if cell.width().is_none() { self.words } else { Encoding::BitShuffle }),
            None => Err(Error::corrupt(
                format!("pages of {field_type}"),
                run.pages.first().map_or_else(
                    || "no pages".to_string(),
                    |(_, pointer)| format!("a page of another type at byte {}", pointer.offset),
                ),
            )),
        }
    }
}
