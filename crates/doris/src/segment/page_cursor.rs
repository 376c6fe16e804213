//! A column with pages of its own, read by row position, page by page.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef};
use arrow_select::take::take;
use bytes::Bytes;
use pilaster_core::dataset::DEFAULT_BATCH_SIZE;
use pilaster_core::fitting::{self, Held};
use pilaster_core::memory::Room;
use pilaster_core::pieces::Pieces;
use pilaster_core::source::ReadAhead;
use pilaster_core::{Error, Result, RowRanges, ScanMemory};

use super::decode::{DecodedPage, Form, Words};
use super::page::PageKind;
use super::paged::{LocatedPage, PagedColumn};

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

/// The parts of `rows` that `read` fails for: by halves, because most can be read. Halves that can be read and do not fit together are
/// lost both.
pub(crate) fn unreadable(
    rows: impl IntoIterator<Item = Range<u64>>,
    mut read: impl FnMut(Range<u64>) -> Result<()>,
) -> Vec<Damage> {
    let mut damages = Vec::new();
    for stretch in rows.into_iter().flat_map(|rows| stretches(&rows)) {
        add_unreadable(&mut damages, stretch, &mut read);
    }
    damages
}

/// Adds the parts of `rows`, which are no more than a batch, that `read` fails for; says whether there are any.
fn add_unreadable(
    damages: &mut Vec<Damage>,
    rows: Range<u64>,
    read: &mut impl FnMut(Range<u64>) -> Result<()>,
) -> bool {
    let Err(error) = read(rows.clone()) else { return false };
    if rows.end.saturating_sub(rows.start) > 1 {
        let middle = rows.start.midpoint(rows.end);
        let in_first = add_unreadable(damages, rows.start..middle, read);
        let in_second = add_unreadable(damages, middle..rows.end, read);
        if in_first || in_second {
            return true;
        }
        if fitting::is_too_large(&error) {
            return false;
        }
        add_damage(damages, unfitting(rows, middle, read), error);
        return true;
    }
    add_damage(damages, rows, error);
    true
}

/// The fewest of `rows` around `middle` that cannot be read together, where those before it and those after it can.
fn unfitting(rows: Range<u64>, middle: u64, read: &mut impl FnMut(Range<u64>) -> Result<()>) -> Range<u64> {
    let Range { mut start, mut end } = rows;
    let mut sound = middle;
    while sound.saturating_sub(start) > 1 {
        let at = start.midpoint(sound);
        if read(at..end).is_err() { start = at } else { sound = at }
    }
    let mut sound = middle;
    while end.saturating_sub(sound) > 1 {
        let at = sound.midpoint(end);
        if read(start..at).is_err() { end = at } else { sound = at }
    }
    start..end
}

/// The page that was decoded last.
#[derive(Debug)]
struct Open {
    page: DecodedPage,
    /// Unless there is none: then it goes with the read that needs it, and no value may point into it.
    room: Option<Room>,
}

/// Reads a column page by page and keeps the page it is in.
#[derive(Debug)]
pub(crate) struct PageCursor {
    column: Arc<PagedColumn>,
    /// Rows that will all be read: what may be fetched ahead.
    wanted: RowRanges,
    current: Option<Open>,
    /// Room of the pages that the values given last point into, and the words that are not kept with the file.
    rooms: Vec<Room>,
    words: Option<(Words, Room)>,
    memory: ScanMemory,
    ahead: ReadAhead,
    /// Whether a read is refused whose strings would keep too many pages in memory.
    is_bounded: bool,
    /// What was found out about pages that were probed; `None` for good ones.
    probed: HashMap<usize, Option<Error>>,
}

impl PageCursor {
    pub fn new(column: &Arc<PagedColumn>, wanted: RowRanges, memory: &ScanMemory) -> Self {
        column.announce_pages();
        Self {
            column: Arc::clone(column),
            wanted,
            current: None,
            rooms: Vec::new(),
            words: None,
            memory: memory.clone(),
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
        let values = self.read_pages(rows, form);
        self.let_go();
        values
    }

    fn read_pages(&mut self, rows: Range<u64>, form: Form) -> Result<ArrayRef> {
        let column = Arc::clone(&self.column);
        let memory = self.memory.clone();
        self.rooms.clear();
        let mut pieces = Pieces::new(without_codes);
        let mut held = Held::default();
        let mut row = rows.start;
        while row < rows.end {
            let left = usize::try_from(rows.end.saturating_sub(row)).unwrap_or_default();
            let is_bounded = self.is_bounded;
            let (range, open) = self.load(row, rows.end)?;
            row = row.saturating_add(range.len() as u64);
            let (page, is_kept) = (&mut open.page, open.room.is_some());
            let first_row = page.first_row;
            if is_bounded && is_kept {
                held.add(page.held_bytes(), &column.shape.limits)?;
            }
            let pushed = match page.plain_strings(range.clone()) {
                Some((kind, strings, range)) if is_kept => {
                    // What is asked for may be more than there is.
                    let room = left.min(range.len().max(DEFAULT_BATCH_SIZE));
                    pieces.push_strings(kind, strings, &range, room)
                }
                _ => {
                    let form = if is_kept { form } else { Form::Wanted };
                    let piece = page.read(range, form, &column.shape.cell);
                    let piece = match is_kept {
                        true => piece,
                        false => piece.and_then(|piece| apart(piece, &memory)),
                    };
                    piece.and_then(|piece| pieces.push(piece))
                }
            };
            pushed.map_err(|error| column.at_page_of(first_row, error))?;
        }
        pieces.join(&column.shape.cell.arrow())
    }

    /// Lets go of a page that there is no room for.
    fn let_go(&mut self) {
        if self.current.as_ref().is_some_and(|open| open.room.is_none()) {
            self.current = None;
            self.memory.note_let_go();
        }
    }

    /// Says that an error came from the page of `row`.
    pub fn at_page_of(&self, row: u64, error: Error) -> Error {
        self.column.at_page_of(row, error)
    }

    /// For a column of offsets: where the items of each of `rows` begin, and where those of the last end.
    pub fn read_offsets(&mut self, rows: Range<u64>) -> Result<Vec<u64>> {
        let starts = self.read_starts(rows);
        self.let_go();
        starts
    }

    fn read_starts(&mut self, rows: Range<u64>) -> Result<Vec<u64>> {
        self.rooms.clear();
        let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or_default();
        let mut starts = Vec::with_capacity(count.min(DEFAULT_BATCH_SIZE).saturating_add(1));
        let mut end = None;
        let mut row = rows.start;
        while row < rows.end {
            let column = Arc::clone(&self.column);
            let (range, Open { page, .. }) = self.load(row, rows.end)?;
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
            let first = values.values().first().copied();
            if let (Some(promised), Some(found)) = (end, first)
                && promised != found
            {
                let error = Error::corrupt(
                    format!("items from {promised} on, where those of the page before end"),
                    format!("the first at {found}"),
                );
                return Err(column.at_page_of(first_row, error));
            }
            starts.extend_from_slice(values.values().get(..range.len()).unwrap_or_default());
            end = match (with_next.end > until, values.values().last(), page.next_item) {
                (true, Some(next), _) => Some(*next),
                (_, _, Some(next)) => Some(next),
                _ => {
                    let error = Error::corrupt("the end of the last row's items", "a page footer without it");
                    return Err(column.at_page_of(first_row, error));
                }
            };
        }
        starts.extend(end);
        if starts.windows(2).any(|pair| matches!(pair, [start, end] if start > end)) {
            let error = Error::corrupt("offsets that ascend", format!("others in rows {rows:?}"));
            return Err(self.at_page_of(rows.start, error));
        }
        Ok(starts)
    }

    /// Makes the page of `row` the current one; gives which of its rows lie before `end`.
    fn load(&mut self, row: u64, end: u64) -> Result<(Range<usize>, &mut Open)> {
        if self.current.as_ref().is_none_or(|open| !open.page.row_range().contains(&row)) {
            let last = self.current.take();
            // Strings that were given point into it.
            self.rooms.extend(last.filter(|open| open.page.held_bytes() > 0).and_then(|open| open.room));
            let number = self.column.page_of(row)?;
            self.decode_page(number, row)?;
        }
        match &mut self.current {
            Some(open) if open.page.row_range().contains(&row) => {
                let first = open.page.first_row;
                let index = |row: u64| usize::try_from(row.saturating_sub(first)).unwrap_or(usize::MAX);
                let range = index(row)..index(end).min(open.page.rows);
                Ok((range, open))
            }
            _ => Err(Error::corrupt(format!("a page with row {row}"), "another page")),
        }
    }

    fn decode_page(&mut self, number: usize, row: u64) -> Result<()> {
        let column = Arc::clone(&self.column);
        let Some(located) = column.pages()?.get(number) else {
            return Err(Error::internal(format!("no page number {number}")));
        };
        let place = located.pointer.range();
        if !self.ahead.has(&place) {
            self.fetch_ahead(number, row)?;
        }
        let stored = self.ahead.take(&place);
        self.current = Some(self.open(located, stored)?);
        Ok(())
    }

    /// Decodes a page, and keeps it if there is room.
    fn open(&mut self, located: &LocatedPage, stored: Option<Bytes>) -> Result<Open> {
        let column = Arc::clone(&self.column);
        let page = match &self.words {
            Some((words, _)) => column.decode_with(located, stored, &|| Ok(Arc::clone(words)))?,
            None => column.decode(located, stored)?,
        };
        let mut room = self.memory.keep(page.bytes);
        if let (true, None, Some(words)) = (room.is_some(), &self.words, page.words())
            && !column.has_words()
        {
            match self.memory.keep(words.get_buffer_memory_size() as u64) {
                Some(for_words) => self.words = Some((Arc::clone(words), for_words)),
                None => room = None,
            }
        }
        Ok(Open { page, room })
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
            return known.clone();
        }
        let column = Arc::clone(&self.column);
        self.current = None;
        let mut check = || {
            let located = column.pages()?.get(number).ok_or_else(|| Error::internal("no such page"))?;
            let mut open = self.open(located, None)?;
            let first_row = open.page.first_row;
            open.page.check(&column.shape.cell).map_err(|error| column.at_page_of(first_row, error))?;
            Ok::<_, Error>(open)
        };
        let damage = match check() {
            Ok(open) => {
                self.current = Some(open).filter(|open| open.room.is_some());
                None
            }
            Err(error) => Some(error),
        };
        let said = damage.clone();
        self.probed.insert(number, damage);
        said
    }
}

/// Values that point into no page.
fn apart(array: ArrayRef, memory: &ScanMemory) -> Result<ArrayRef> {
    let bytes = fitting::value_bytes(&array);
    memory.take(bytes)?;
    Ok(if bytes == 0 { array } else { fitting::copied(&array) })
}

fn without_codes(array: ArrayRef) -> Result<ArrayRef> {
    match array.as_any_dictionary_opt() {
        Some(codes) => Ok(take(codes.values(), codes.keys(), None)?),
        None => Ok(array),
    }
}

#[cfg(test)]
mod tests {
    use pilaster_core::Limits;

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

    #[test]
    fn rows_that_do_not_fit_together_are_lost_and_no_more() {
        for (boundary, rows) in [(5_000, 0..10_000u64), (1, 0..2), (2_048, 0..4_096), (4_095, 0..4_096)] {
            let crossing = |rows: Range<u64>| match rows.contains(&(boundary - 1)) && rows.contains(&boundary)
            {
                true => Err(Error::corrupt("parts that fit", "others")),
                false => Ok(()),
            };
            let found: Vec<_> = unreadable(std::iter::once(rows.clone()), crossing)
                .into_iter()
                .map(|(rows, _)| rows)
                .collect();
            assert_eq!(found, vec![boundary - 1..boundary + 1], "{rows:?}");
        }
        // What is too much at once is read in parts.
        let too_many = |rows: Range<u64>| {
            fitting::check_bytes(rows.end - rows.start, &Limits { batch_bytes: 100, ..Limits::default() })
        };
        assert!(unreadable(std::iter::once(0..1_000), too_many).is_empty());
    }
}
