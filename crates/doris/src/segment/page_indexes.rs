//! What is known of each page of a column: smallest and largest values, and a filter of its values.

use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray};
use pilaster_core::{Error, Result, RowRanges};

use super::cells::Cell;
use super::column_meta::{ColumnMeta, IndexedColumnMeta};
use super::decode::Form;
use super::page::PageStore;
use super::page_cursor::PageCursor;
use super::paged::{LocatedPage, PagedColumn};
use super::{bloom, zone_map};
use crate::messages::{self, ZoneMapPb};

/// See the module; read when first asked for, and kept.
#[derive(Debug, Default)]
pub(crate) struct PageIndexes {
    zones: OnceLock<Option<PageZones>>,
    filters: OnceLock<Option<BinaryViewArray>>,
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
                .collect::<Result<Vec<_>>>()?;
            let (min, max) = zone_map::bounds(&column.shape.cell, &zones)?;
            let has = zones
                .iter()
                .map(|zone| (zone.has_null.unwrap_or(true), zone.has_not_null.unwrap_or(true)))
                .collect();
            self.zones.get_or_init(|| Some(PageZones { min, max, has }));
        }
        Ok(self.zones.get().and_then(Option::as_ref))
    }

    /// The pages that may hold one of `cells`; `None` if the column has no filters that could tell.
    pub fn may_hold(
        &self,
        column: &PagedColumn,
        meta: &ColumnMeta,
        cells: &[Vec<u8>],
    ) -> Result<Option<RowRanges>> {
        let Some(bloom) = meta.bloom.filter(|bloom| bloom.is_block) else { return Ok(None) };
        let pages = column.pages()?;
        if self.filters.get().is_none() {
            let filters = index_values(&column.store, &bloom.filters, pages.len())?;
            self.filters.get_or_init(|| Some(filters));
        }
        let Some(filters) = self.filters.get().and_then(Option::as_ref) else { return Ok(None) };
        let holds = |filter: Option<&[u8]>| {
            filter.is_none_or(|filter| cells.iter().any(|cell| bloom::may_hold(filter, cell)))
        };
        let kept = pages.iter().zip(filters).filter(|(_, filter)| holds(*filter));
        Ok(Some(kept.map(|(page, _): (&LocatedPage, _)| page.rows.clone()).collect()))
    }
}

/// All values of an index that has one for each page.
fn index_values(store: &Arc<PageStore>, index: &IndexedColumnMeta, pages: usize) -> Result<BinaryViewArray> {
    let values = all_values(store, index, Cell::Bytes)?;
    if values.len() != pages {
        return Err(Error::corrupt(format!("an index of {pages} pages"), format!("one of {}", values.len())));
    }
    values
        .as_binary_view_opt()
        .cloned()
        .ok_or_else(|| Error::corrupt("an index of bytes", values.data_type()))
}

/// All values of a column that serves an index.
pub(crate) fn all_values(store: &Arc<PageStore>, index: &IndexedColumnMeta, cell: Cell) -> Result<ArrayRef> {
    let column = Arc::new(PagedColumn::of_index(store, index, cell));
    let rows = 0..index.num_values;
    PageCursor::new(&column, RowRanges::one(rows.clone())).read(rows, Form::Wanted)
}
