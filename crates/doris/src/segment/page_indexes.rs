//! What is known of each page of a column: smallest and largest values, and a filter of its values.

use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray};
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result, RowRanges, ScanMemory};

use super::cells::Cell;
use super::column_meta::{BloomKind, ColumnMeta, IndexedColumnMeta};
use super::decode::Form;
use super::ngram::{NgramFilter, SoughtGrams};
use super::page::{PageKind, PageStore};
use super::page_cursor::{PageCursor, stretches};
use super::paged::{LocatedPage, PagedColumn};
use super::{bloom, zone_map};
use crate::messages::{self, ZoneMapPb};

/// Zone maps and bloom filters of a column's pages; read when first asked for, and kept.
#[derive(Debug, Default)]
pub(crate) struct PageIndexes {
    zones: OnceLock<Option<PageZones>>,
    filters: OnceLock<BinaryViewArray>,
    are_grams_known: OnceLock<bool>,
}

/// The zone maps of a column's pages.
#[derive(Debug)]
pub(crate) struct PageZones {
    pub min: Option<ArrayRef>,
    pub max: Option<ArrayRef>,
    /// Whether a page has nulls and whether it has values.
    pub has: Vec<(bool, bool)>,
}

impl PageIndexes {
    /// Zone maps, one for each page; `None` if the column has none.
    pub fn zones(&self, column: &PagedColumn, meta: &ColumnMeta) -> Result<Option<&PageZones>> {
        let Some(index) = meta.zone_map.as_ref().and_then(|zones| zones.pages) else { return Ok(None) };
        if self.zones.get().is_none() {
            let values = index_values(&column.store, &index, column.pages()?.len())?;
            let zones = values
                .iter()
                .map(|value| messages::parse::<ZoneMapPb>(value.unwrap_or_default(), "ZoneMapPB"))
                .collect::<Result<Vec<_>>>()
                .at(column.name(), index.offset(), PageKind::Data.part())?;
            let (min, max) = zone_map::bounds(&column.shape.cell, &zones)?;
            let has = zones
                .iter()
                .map(|zone| (zone.has_null.unwrap_or(true), zone.has_not_null.unwrap_or(true)))
                .collect();
            self.zones.get_or_init(|| Some(PageZones { min, max, has }));
        }
        Ok(self.zones.get().and_then(Option::as_ref))
    }

    /// Reads everything the indexes have.
    pub fn check(&self, column: &PagedColumn, meta: &ColumnMeta) -> Result<()> {
        self.zones(column, meta)?;
        for kind in [BloomKind::Values, BloomKind::Grams] {
            self.filters(column, meta, kind)?;
        }
        Ok(())
    }

    /// The pages that may hold one of `cells`; `None` if the column has no filters that could tell.
    pub fn may_hold(
        &self,
        column: &PagedColumn,
        meta: &ColumnMeta,
        cells: &[Vec<u8>],
    ) -> Result<Option<RowRanges>> {
        let Some(filters) = self.filters(column, meta, BloomKind::Values)? else { return Ok(None) };
        let holds = |filter: &[u8]| cells.iter().any(|cell| bloom::may_hold(filter, cell));
        pages_where(column, filters, holds).map(Some)
    }

    /// The pages that may hold a text with all of `parts` in it; `None` if the column has no filters that could tell.
    ///
    /// How long the grams are only the schema says, and a segment may be older than the index in it: filters are believed
    /// once the first page has given the one that is stored for it.
    pub fn may_contain(
        &self,
        column: &Arc<PagedColumn>,
        meta: &ColumnMeta,
        gram_size: usize,
        parts: &[String],
    ) -> Result<Option<RowRanges>> {
        let Some(sought) = SoughtGrams::of(parts.iter().map(String::as_str), gram_size) else {
            return Ok(None);
        };
        let Some(filters) = self.filters(column, meta, BloomKind::Grams)? else { return Ok(None) };
        if self.are_grams_known.get().is_none() {
            let is_as_stored = first_page_has_filter(column, filters, gram_size)?;
            self.are_grams_known.get_or_init(|| is_as_stored);
        }
        if self.are_grams_known.get() != Some(&true) {
            return Ok(None);
        }
        pages_where(column, filters, |filter| sought.may_be_in(filter)).map(Some)
    }

    /// The filters of a column's pages, if they are of this kind.
    fn filters(
        &self,
        column: &PagedColumn,
        meta: &ColumnMeta,
        kind: BloomKind,
    ) -> Result<Option<&BinaryViewArray>> {
        let Some(bloom) = meta.bloom.filter(|bloom| bloom.kind == Some(kind)) else { return Ok(None) };
        if self.filters.get().is_none() {
            let filters = index_values(&column.store, &bloom.filters, column.pages()?.len())?;
            self.filters.get_or_init(|| filters);
        }
        Ok(self.filters.get())
    }
}

/// The rows of the pages whose filter leaves room for what is sought.
fn pages_where(
    column: &PagedColumn,
    filters: &BinaryViewArray,
    may: impl Fn(&[u8]) -> bool,
) -> Result<RowRanges> {
    let kept = column.pages()?.iter().zip(filters).filter(|(_, filter)| filter.is_none_or(&may));
    Ok(kept.map(|(page, _): (&LocatedPage, _)| page.rows.clone()).collect())
}

/// Whether the texts of the first page, cut into grams of this size, give its filter; not if they are too short for any.
fn first_page_has_filter(
    column: &Arc<PagedColumn>,
    filters: &BinaryViewArray,
    gram_size: usize,
) -> Result<bool> {
    let (Some(page), Some(Some(stored))) = (column.pages()?.first(), filters.iter().next()) else {
        return Ok(false);
    };
    let mut cursor =
        PageCursor::new(column, RowRanges::one(page.rows.clone()), &ScanMemory::new(&column.shape.limits));
    let mut filter = NgramFilter::new(gram_size, stored.len());
    for rows in stretches(&page.rows) {
        let texts = cursor.read(rows, Form::Wanted)?;
        let Some(texts) = texts.as_string_view_opt() else { return Ok(false) };
        texts.iter().flatten().for_each(|text| filter.add(text.as_bytes()));
    }
    let filter = filter.finish_page();
    Ok(filter == stored && filter.iter().any(|byte| *byte != 0))
}

/// All values of an index that has one for each page.
pub(crate) fn index_values(
    store: &Arc<PageStore>,
    index: &IndexedColumnMeta,
    pages: usize,
) -> Result<BinaryViewArray> {
    if index.num_values != pages as u64 {
        let found = format!("one of {}", index.num_values);
        return Err(Error::corrupt(format!("an index of {pages} values"), found).at(
            store.name(),
            store.pages_end,
            "segment column metadata",
        ));
    }
    let values = all_values(store, index, Cell::Bytes)?;
    values
        .as_binary_view_opt()
        .cloned()
        .ok_or_else(|| Error::corrupt("an index of bytes", values.data_type()))
}

/// All values of a column that serves an index.
pub(crate) fn all_values(store: &Arc<PageStore>, index: &IndexedColumnMeta, cell: Cell) -> Result<ArrayRef> {
    let column = Arc::new(PagedColumn::of_index(store, index, cell));
    column.check_count(index.num_values)?;
    let memory = ScanMemory::new(&column.shape.limits);
    let rows = 0..index.num_values;
    PageCursor::new(&column, RowRanges::one(rows.clone()), &memory).unbounded().read(rows, Form::Wanted)
}
