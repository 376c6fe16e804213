//! Ordinal indexes that cannot be read, made again.
//!
//! An ordinal index says where the pages of a column lie. The pages themselves say which rows they hold, and each has a checksum. So
//! the pages that no other column of the file claims are those of the column whose index is lost, if they are as many rows
//! from row 0 on as it has, and decode as its values.

use std::collections::HashSet;
use std::sync::Arc;

use pilaster_core::Result;

use super::assign::{Run, runs};
use super::walk;
use crate::segment::paged::{LocatedPage, PagedColumn};
use crate::segment::reader::Segment;
use crate::segment::structure;

const PAGE_DATA: i32 = 1;

/// Gives columns whose index is damaged their pages, where it is beyond doubt which these are. The others stay as they are.
pub(in crate::segment) fn restore(segment: &Segment) -> Result<()> {
    let mut broken: Vec<&Arc<PagedColumn>> = Vec::new();
    for column in segment.columns.iter().flat_map(|output| output.column.paged()) {
        let is_damaged = column.pages().is_err_and(|error| error.is_damage());
        if is_damaged && !broken.iter().any(|known| Arc::ptr_eq(known, column)) {
            broken.push(column);
        }
    }
    if broken.is_empty() {
        return Ok(());
    }
    let store = &segment.store;
    let (pages, _) = walk::walk(store.source.as_ref(), &store.limits)?;
    let claimed: HashSet<_> = structure::structure_pages(segment).iter().map(|page| page.pointer).collect();
    let free: Vec<_> = pages
        .into_iter()
        .filter(|page| page.footer.kind == Some(PAGE_DATA) && !claimed.contains(&page.pointer))
        .collect();
    let runs = runs(&free);
    let fits = |column: &PagedColumn, run: &Run| {
        let located = located(run);
        run.is_whole()
            && run.rows() == column.rows
            && located.iter().filter_map(|page| column.decode(page, None).ok()).next().is_some()
    };
    for column in &broken {
        let mut fitting = runs.iter().filter(|run| fits(column, run));
        let (Some(only), None) = (fitting.next(), fitting.next()) else { continue };
        if broken.iter().any(|other| !Arc::ptr_eq(other, column) && fits(other, only)) {
            continue;
        }
        column.set_pages(located(only));
    }
    Ok(())
}

fn located(run: &Run) -> Vec<LocatedPage> {
    let page = |(footer, pointer): &(crate::messages::DataPageFooterPb, _)| {
        let first = footer.first_ordinal.unwrap_or(0);
        let rows = first..first.saturating_add(footer.num_values.unwrap_or(0));
        LocatedPage { pointer: *pointer, rows }
    };
    run.pages.iter().map(page).collect()
}
