//! A column with pages of its own, read by row position, page by page.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef};
use arrow_select::take::take;
use pilaster_core::dataset::DEFAULT_BATCH_SIZE;
use pilaster_core::fitting::Held;
use pilaster_core::pieces::Pieces;
use pilaster_core::source::ReadAhead;
use pilaster_core::{Error, Result, RowRanges};

use super::decode::{DecodedPage, Form};
use super::page::PageKind;
use super::paged::PagedColumn;

/// Rows that cannot be read, and why.
pub(crate) type Damage = (Range<u64>, Error);

/// `rows` in pieces of a batch: a page, or a column, may claim any number of them.
pub(crate) fn stretches(rows: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let (mut start, end) = (rows.start, rows.end);
    std::iter::from_fn(move || {
        let next = start..start.saturating_add(DEFAULT_BATCH_SIZE as u64).min(end);
        start = next.end;
        (next.start < next.end).then_some(next)
    })
}

/// Adds rows that cannot be read, to those before them if they follow for the same reason.
pub(crate) fn add_damage(damages: &mut Vec<Damage>, rows: Range<u64>, error: Error) {
    match damages.last_mut() {
        Some((last, known)) if last.end == rows.start && known.to_string() == error.to_string() => {
            last.end = rows.end;
        }
        _ => damages.push((rows, error)),
    }
}

/// The parts of `rows` that `read` fails for: by halves, because most can be read.
pub(crate) fn unreadable(
    rows: impl IntoIterator<Item = Range<u64>>,
    mut read: impl FnMut(Range<u64>) -> Result<()>,
) -> Vec<Damage> {
    let mut damages = Vec::new();
    for stretch in rows.into_iter().flat_map(|rows| stretches(&rows)) {
        let mut pending = vec![stretch];
        while let Some(rows) = pending.pop() {
            match read(rows.clone()) {
                Ok(()) => {}
                Err(_) if rows.end.saturating_sub(rows.start) > 1 => {
                    let middle = rows.start.midpoint(rows.end);
                    pending.extend([middle..rows.end, rows.start..middle]);
                }
                Err(error) => add_damage(&mut damages, rows, error),
            }
        }
    }
    damages
}

/// See the module.
#[derive(Debug)]
pub(crate) struct PageCursor {
    column: Arc<PagedColumn>,
    /// Rows that will all be read: what may be fetched ahead.
    wanted: RowRanges,
    current: Option<DecodedPage>,
    ahead: ReadAhead,
    /// Whether a read is refused whose strings would keep too many pages in memory.
    is_bounded: bool,
    /// What was found out about pages that were probed; `None` for good ones.
    probed: HashMap<usize, Option<Error>>,
}

impl PageCursor {
    pub fn new(column: &Arc<PagedColumn>, wanted: RowRanges) -> Self {
        column.announce_pages();
        Self {
            column: Arc::clone(column),
            wanted,
            current: None,
            ahead: ReadAhead::default(),
            is_bounded: true,
            probed: HashMap::new(),
        }
    }

    /// For a reader that wants all of its rows at once, however many pages that keeps in memory.
    pub fn unbounded(mut self) -> Self {
        self.is_bounded = false;
        self
    }

    /// The values of `rows`.
    pub fn read(&mut self, rows: Range<u64>, form: Form) -> Result<ArrayRef> {
        let column = Arc::clone(&self.column);
        let mut pieces = Pieces::new(without_codes);
        let mut held = Held::default();
        let mut row = rows.start;
        while row < rows.end {
            let left = usize::try_from(rows.end.saturating_sub(row)).unwrap_or_default();
            let is_bounded = self.is_bounded;
            let (range, page) = self.load(row, rows.end)?;
            row = row.saturating_add(range.len() as u64);
            let first_row = page.first_row;
            if is_bounded {
                held.add(page.held_bytes(), &column.shape.limits)?;
            }
            let pushed = match page.plain_strings(range.clone()) {
                Some((kind, strings, range)) => {
                    // What is asked for may be more than there is.
                    let room = left.min(range.len().max(DEFAULT_BATCH_SIZE));
                    pieces.push_strings(kind, strings, &range, room)
                }
                None => page.read(range, form, &column.shape.cell).and_then(|piece| pieces.push(piece)),
            };
            pushed.map_err(|error| column.at_page_of(first_row, error))?;
        }
        pieces.join(&column.shape.cell.arrow())
    }

    /// Says that an error came from the page of `row`.
    pub fn at_page_of(&self, row: u64, error: Error) -> Error {
        self.column.at_page_of(row, error)
    }

    /// For a column of offsets: where the items of each of `rows` begin, and where those of the last end.
    pub fn read_offsets(&mut self, rows: Range<u64>) -> Result<Vec<u64>> {
        let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or_default();
        let mut starts = Vec::with_capacity(count.min(DEFAULT_BATCH_SIZE).saturating_add(1));
        let mut end = 0;
        let mut row = rows.start;
        while row < rows.end {
            let column = Arc::clone(&self.column);
            let (range, page) = self.load(row, rows.end)?;
            row = row.saturating_add(range.len() as u64);
            let until = range.end;
            let with_next = range.start..until.saturating_add(1).min(page.rows);
            let first_row = page.first_row;
            let values = page
                .read(with_next.clone(), Form::Wanted, &column.shape.cell)
                .map_err(|error| column.at_page_of(first_row, error))?;
            let values = values
                .as_primitive_opt::<UInt64Type>()
                .ok_or_else(|| Error::corrupt("offsets of type UNSIGNED_BIGINT", values.data_type()))
                .map_err(|error| column.at_page_of(first_row, error))?;
            starts.extend_from_slice(values.values().get(..range.len()).unwrap_or_default());
            end = match (with_next.end > until, values.values().last(), page.next_item) {
                (true, Some(next), _) => *next,
                (_, _, Some(next)) => next,
                _ => {
                    let error = Error::corrupt("the end of the last row's items", "a page footer without it");
                    return Err(column.at_page_of(first_row, error));
                }
            };
        }
        if !starts.is_empty() {
            starts.push(end);
        }
        if starts.windows(2).any(|pair| matches!(pair, [start, end] if start > end)) {
            let error = Error::corrupt("offsets that ascend", format!("others in rows {rows:?}"));
            return Err(self.at_page_of(rows.start, error));
        }
        Ok(starts)
    }

    /// Makes the page of `row` the current one; gives which of its rows lie before `end`.
    fn load(&mut self, row: u64, end: u64) -> Result<(Range<usize>, &mut DecodedPage)> {
        if self.current.as_ref().is_none_or(|page| !page.row_range().contains(&row)) {
            self.current = None;
            let number = self.column.page_of(row)?;
            self.decode_page(number, row)?;
        }
        match &mut self.current {
            Some(page) if page.row_range().contains(&row) => {
                let index =
                    |row: u64| usize::try_from(row.saturating_sub(page.first_row)).unwrap_or(usize::MAX);
                let range = index(row)..index(end).min(page.rows);
                Ok((range, page))
            }
            _ => Err(Error::corrupt(format!("a page with row {row}"), "another page")),
        }
    }

    fn decode_page(&mut self, number: usize, row: u64) -> Result<()> {
        let column = Arc::clone(&self.column);
        let Some(located) = column.pages()?.get(number) else {
            return Err(Error::invalid(format!("no page number {number}")));
        };
        let place = located.pointer.range();
        if !self.ahead.has(&place) {
            self.fetch_ahead(number, row)?;
        }
        self.current = Some(column.decode(located, self.ahead.take(&place))?);
        Ok(())
    }

    /// Fetches the page `number` and those after it that are sure to be wanted, in few reads.
    fn fetch_ahead(&mut self, number: usize, row: u64) -> Result<()> {
        let wanted = self.wanted.from_row(row);
        if wanted.first().is_none_or(|range| !range.contains(&row)) {
            return Ok(());
        }
        let column = Arc::clone(&self.column);
        let mut wanted = wanted.iter().peekable();
        let pages = column.pages()?.get(number..).unwrap_or_default().iter();
        let places = pages
            .map_while(|page| {
                while wanted.next_if(|range| range.end <= page.rows.start).is_some() {}
                wanted.peek().map(|next| (next.start < page.rows.end, page.pointer))
            })
            .filter_map(|(is_wanted, pointer)| is_wanted.then_some(pointer))
            // What is wrong further on must not stop what is still readable here.
            .take_while(|pointer| column.store.check_pointer(*pointer, PageKind::Data).is_ok())
            .map(|pointer| pointer.range());
        self.ahead.fetch(column.store.source.as_ref(), places)
    }

    /// The parts of `rows` that cannot be read: whole pages.
    pub fn damages(&mut self, rows: &Range<u64>) -> Vec<Damage> {
        let column = Arc::clone(&self.column);
        let pages = match column.pages() {
            Ok(pages) => pages,
            Err(error) => return vec![(rows.clone(), error)],
        };
        let mut damages = Vec::new();
        let first = pages.partition_point(|page| page.rows.end <= rows.start);
        let mut covered = rows.start;
        for (number, page) in pages.iter().enumerate().skip(first) {
            if page.rows.start >= rows.end {
                break;
            }
            covered = page.rows.end;
            if let Some(error) = self.probe_page(number) {
                damages.push((page.rows.clone(), error));
            }
        }
        if covered < rows.end {
            let error = Error::corrupt("a page that holds these rows", "the end of the index");
            damages.push((covered..rows.end, error));
        }
        damages
    }

    fn probe_page(&mut self, number: usize) -> Option<Error> {
        if let Some(known) = self.probed.get(&number) {
            return known.as_ref().map(Error::again);
        }
        let column = Arc::clone(&self.column);
        let check = || {
            let located = column.pages()?.get(number).ok_or_else(|| Error::invalid("no such page"))?;
            let mut page = column.decode(located, None)?;
            page.check(&column.shape.cell).map_err(|error| column.at_page_of(page.first_row, error))?;
            Ok::<_, Error>(page)
        };
        let damage = match check() {
            Ok(page) => {
                self.current = Some(page);
                None
            }
            Err(error) => Some(error),
        };
        let said = damage.as_ref().map(Error::again);
        self.probed.insert(number, damage);
        said
    }
}

fn without_codes(array: ArrayRef) -> Result<ArrayRef> {
    match array.as_any_dictionary_opt() {
        Some(codes) => Ok(take(codes.values(), codes.keys(), None)?),
        None => Ok(array),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_cannot_be_read_are_found_one_by_one() {
        let bad = [(9_000, "a"), (20_000, "b"), (20_001, "b"), (20_002, "c")];
        let mut reads = 0;
        let found = unreadable([0..10_000, 15_000..30_000], |rows| {
            reads += 1;
            match bad.iter().find(|(row, _)| rows.contains(row)) {
                Some((_, why)) => Err(Error::invalid(*why)),
                None => Ok(()),
            }
        });
        let found: Vec<_> = found.into_iter().map(|(rows, error)| (rows, error.to_string())).collect();
        assert_eq!(
            found,
            [(9_000..9_001, "a".into()), (20_000..20_002, "b".into()), (20_002..20_003, "c".into())]
        );
        assert!(reads < 100, "{reads} reads");
    }
}
