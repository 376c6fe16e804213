//! A column of any shape, read by row position.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::{Array, ArrayRef, BooleanArray, ListArray, MapArray, StructArray, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, FieldRef, Fields};
use arrow_select::take::take;
use pilaster_core::positional::ColumnCursor;
use pilaster_core::{Error, Limits, Result, RowRanges, ScanMemory, fitting};

use super::column::{Column, Repeated};
use super::decode::Form;
use super::page::PageStore;
use super::page_cursor::{Damage, PageCursor, add_damage, unreadable};
use super::paged::PagedColumn;
use super::variant::VariantCursor;
use super::zero_date;

/// Reads a column; nested columns have a cursor for each of their parts.
#[derive(Debug)]
pub(crate) enum Cursor {
    Paged(PageCursor),
    List(RepeatedCursor, FieldRef, Box<Cursor>),
    Map(RepeatedCursor, FieldRef, Box<(Cursor, Cursor)>),
    Struct(Fields, Vec<Cursor>, Option<PageCursor>),
    Variant(VariantCursor),
    Constant(Arc<Result<ArrayRef>>),
    Cast(Box<Cursor>, DataType),
}

/// Offsets and nulls of arrays and maps.
#[derive(Debug)]
pub(crate) struct RepeatedCursor {
    offsets: PageCursor,
    nulls: Option<PageCursor>,
    items: u64,
    /// About what an item costs in memory, for refusing rows of absurdly many.
    item_bytes: u64,
    limits: Limits,
    memory: ScanMemory,
}

/// Where the items of a stretch of rows lie.
struct Items {
    range: Range<u64>,
    offsets: OffsetBuffer<i32>,
}

impl Items {
    /// Which of `rows`, whose items these are, have one of `lost`.
    fn rows_of(&self, lost: &Range<u64>, rows: &Range<u64>) -> Range<u64> {
        let start = |offset: &i32| self.range.start.saturating_add(u64::from(offset.cast_unsigned()));
        let row = |at: usize| rows.start.saturating_add(at as u64);
        let first = self.offsets.partition_point(|offset| start(offset) <= lost.start).saturating_sub(1);
        let last = self.offsets.partition_point(|offset| start(offset) < lost.end);
        row(first)..row(last).min(rows.end)
    }
}

impl Column {
    /// A cursor for a scan that will visit all of `wanted`.
    pub fn cursor(&self, wanted: &RowRanges, memory: &ScanMemory) -> Cursor {
        let paged = |column: &Arc<PagedColumn>| PageCursor::new(column, wanted.clone(), memory);
        match self {
            Self::Paged(column) => Cursor::Paged(paged(column)),
            Self::List(shared, field, item) => Cursor::List(
                shared.cursor(wanted, item.value_bytes(), memory),
                Arc::clone(field),
                Box::new(item.cursor(&shared.wanted_items(wanted), memory)),
            ),
            Self::Map(shared, field, columns) => {
                let items = shared.wanted_items(wanted);
                let item_bytes = columns.0.value_bytes().saturating_add(columns.1.value_bytes());
                let columns = (columns.0.cursor(&items, memory), columns.1.cursor(&items, memory));
                Cursor::Map(shared.cursor(wanted, item_bytes, memory), Arc::clone(field), Box::new(columns))
            }
            Self::Struct(group) => Cursor::Struct(
                group.fields.clone(),
                group.columns.iter().map(|column| column.cursor(wanted, memory)).collect(),
                group.nulls.as_ref().map(paged),
            ),
            Self::Variant(variant) => {
                Cursor::Variant(VariantCursor::new(variant, Vec::new(), wanted, memory))
            }
            Self::VariantPath(variant, keys) => {
                Cursor::Variant(VariantCursor::new(variant, keys.clone(), wanted, memory))
            }
            Self::Constant(value, _) => Cursor::Constant(Arc::clone(value)),
            Self::Cast(inner, to) => Cursor::Cast(Box::new(inner.cursor(wanted, memory)), to.clone()),
        }
    }
}

impl Repeated {
    fn cursor(&self, wanted: &RowRanges, item_bytes: u64, memory: &ScanMemory) -> RepeatedCursor {
        RepeatedCursor {
            offsets: PageCursor::new(&self.offsets, wanted.clone(), memory),
            nulls: self.nulls.as_ref().map(|nulls| PageCursor::new(nulls, wanted.clone(), memory)),
            items: self.items,
            item_bytes,
            limits: self.offsets.shape.limits.clone(),
            memory: memory.clone(),
        }
    }

    /// If all rows are wanted, so are all items.
    fn wanted_items(&self, wanted: &RowRanges) -> RowRanges {
        if wanted.count() == self.offsets.rows { RowRanges::one(0..self.items) } else { RowRanges::none() }
    }
}

impl RepeatedCursor {
    fn locate(&mut self, rows: Range<u64>) -> Result<Items> {
        let starts = self.offsets.read_offsets(rows.clone())?;
        let (Some(&first), Some(&last)) = (starts.first(), starts.last()) else {
            return Ok(Items { range: 0..0, offsets: OffsetBuffer::new_empty() });
        };
        let refuse = |expected: String| {
            let error = Error::corrupt(expected, format!("items {first}..{last} in rows {rows:?}"));
            self.offsets.at_page_of(rows.start, error)
        };
        if last > self.items {
            return Err(refuse(format!("offsets up to {}", self.items)));
        }
        let items = last.saturating_sub(first);
        let bytes = items.saturating_mul(self.item_bytes);
        fitting::check_bytes(bytes, &self.limits)
            .and_then(|()| self.memory.take(bytes))
            .map_err(|error| self.offsets.at_page_of(rows.start, error))?;
        let relative = starts
            .iter()
            .map(|start| i32::try_from(start.saturating_sub(first)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| refuse("fewer than 2^31 items in a batch".to_string()))?;
        Ok(Items { range: first..last, offsets: OffsetBuffer::new(ScalarBuffer::from(relative)) })
    }

    fn nulls(&mut self, rows: Range<u64>) -> Result<Option<NullBuffer>> {
        self.nulls.as_mut().map_or(Ok(None), |nulls| read_nulls(nulls, rows))
    }

    /// Rows whose offsets or nulls, or any of whose items, cannot be read.
    fn damages(&mut self, rows: &Range<u64>, items: &mut [&mut Cursor]) -> Vec<Damage> {
        let mut damages = self.offsets.damages(rows);
        if let Some(nulls) = &mut self.nulls {
            damages.extend(nulls.damages(rows));
        }
        let mut of_items = Vec::new();
        let of_offsets = unreadable(sound_parts(rows, &damages), |good| {
            let located = self.locate(good.clone())?;
            for cursor in items.iter_mut() {
                for (lost, error) in cursor.damages(&located.range) {
                    add_damage(&mut of_items, located.rows_of(&lost, &good), error);
                }
            }
            Ok(())
        });
        damages.extend(of_offsets);
        damages.extend(of_items);
        damages
    }
}

fn read_nulls(nulls: &mut PageCursor, rows: Range<u64>) -> Result<Option<NullBuffer>> {
    let array = nulls.read(rows, Form::Wanted)?;
    let flags = array
        .as_primitive_opt::<Int8Type>()
        .filter(|flags| flags.null_count() == 0)
        .ok_or_else(|| Error::corrupt("null flags of one byte", array.data_type()))?;
    let buffer = NullBuffer::new(BooleanBuffer::collect_bool(flags.len(), |row| flags.value(row) == 0));
    Ok((buffer.null_count() > 0).then_some(buffer))
}

impl Cursor {
    /// Says that an error came from the first page that has something of `row`; as it was, if no page has.
    fn at_page_of(&self, row: u64, error: Error) -> Error {
        match self {
            Self::Paged(cursor) => cursor.at_page_of(row, error),
            Self::List(shared, ..) | Self::Map(shared, ..) => shared.offsets.at_page_of(row, error),
            Self::Struct(_, columns, nulls) => match (nulls, columns.first()) {
                (Some(nulls), _) => nulls.at_page_of(row, error),
                (None, Some(first)) => first.at_page_of(row, error),
                (None, None) => error,
            },
            Self::Variant(cursor) => cursor.at_page_of(row, error),
            Self::Constant(_) => error,
            Self::Cast(inner, _) => inner.at_page_of(row, error),
        }
    }

    /// The values of `rows`.
    pub fn read_form(&mut self, rows: Range<u64>, form: Form) -> Result<ArrayRef> {
        match self {
            Self::Paged(cursor) => cursor.read(rows, form),
            Self::List(shared, field, item) => {
                let items = shared.locate(rows.clone())?;
                let nulls = shared.nulls(rows)?;
                let values = item.read_inside(items.range)?;
                Ok(Arc::new(ListArray::try_new(Arc::clone(field), items.offsets, values, nulls)?))
            }
            Self::Map(shared, field, columns) => {
                let items = shared.locate(rows.clone())?;
                let nulls = shared.nulls(rows)?;
                let keys = columns.0.read_inside(items.range.clone())?;
                if let Some(null) = keys.nulls().and_then(|nulls| nulls.iter().position(|valid| !valid)) {
                    let error = Error::unsupported("a MAP with a null key, which Arrow has no form for");
                    return Err(columns.0.at_page_of(items.range.start.saturating_add(null as u64), error));
                }
                let values = columns.1.read_inside(items.range)?;
                let DataType::Struct(fields) = field.data_type() else {
                    return Err(Error::internal("a map without entries"));
                };
                let entries = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
                Ok(Arc::new(MapArray::try_new(Arc::clone(field), items.offsets, entries, nulls, false)?))
            }
            Self::Struct(fields, columns, nulls) => {
                let nulls = match nulls {
                    Some(cursor) => read_nulls(cursor, rows.clone())?,
                    None => None,
                };
                let arrays = columns
                    .iter_mut()
                    .map(|column| column.read_inside(rows.clone()))
                    .collect::<Result<Vec<_>>>()?;
                let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or_default();
                Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls, count)?))
            }
            Self::Variant(cursor) => cursor.read(rows),
            Self::Constant(value) => {
                let value = value.as_ref().as_ref().map_err(Error::clone)?;
                let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or_default();
                Ok(take(value, &UInt32Array::from(vec![0; count]), None)?)
            }
            Self::Cast(inner, to) => {
                let strict = CastOptions { safe: false, ..CastOptions::default() };
                Ok(cast_with_options(&inner.read_inside(rows)?, to, &strict)?)
            }
        }
    }

    /// As [`Cursor::read_form`], of a part of other values.
    pub fn read_inside(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        let values = self.read_form(rows, Form::Wanted)?;
        zero_date::refuse_in(&values)?;
        Ok(values)
    }

    /// The parts of `rows` that cannot be read.
    pub fn damages(&mut self, rows: &Range<u64>) -> Vec<Damage> {
        match self {
            Self::Paged(cursor) => cursor.damages(rows),
            Self::List(shared, _, item) => shared.damages(rows, &mut [item]),
            Self::Map(shared, _, columns) => shared.damages(rows, &mut [&mut columns.0, &mut columns.1]),
            Self::Struct(_, columns, nulls) => {
                let mut damages: Vec<_> =
                    columns.iter_mut().flat_map(|column| column.damages(rows)).collect();
                if let Some(nulls) = nulls {
                    damages.extend(nulls.damages(rows));
                }
                damages
            }
            Self::Variant(cursor) => cursor.damages(rows),
            Self::Constant(value) => match value.as_ref() {
                Ok(_) => Vec::new(),
                Err(error) => vec![(rows.clone(), error.clone())],
            },
            Self::Cast(inner, _) => {
                let damages = inner.damages(rows);
                let mut all = unreadable(sound_parts(rows, &damages), |good| {
                    self.read_form(good, Form::Wanted).map(|_| ())
                });
                all.extend(damages);
                all
            }
        }
    }
}

/// What of `rows` no damage touches.
pub(crate) fn sound_parts(rows: &Range<u64>, damages: &[Damage]) -> Vec<Range<u64>> {
    let lost: RowRanges = damages.iter().map(|(range, _)| range.clone()).collect();
    let mut sound = Vec::new();
    let mut at = rows.start;
    for range in lost.as_slice() {
        sound.push(at..range.start.min(rows.end));
        at = at.max(range.end);
    }
    sound.push(at..rows.end);
    sound.retain(|range| range.start < range.end);
    sound
}

/// A column of a file, which what goes wrong outside of single pages is said of.
pub(crate) struct FileCursor {
    pub cursor: Cursor,
    pub store: Arc<PageStore>,
}

impl FileCursor {
    fn read_form(&mut self, rows: Range<u64>, form: Form) -> Result<ArrayRef> {
        let first = rows.start;
        self.cursor.read_form(rows, form).map_err(|error| self.at_page_of(first, error))
    }

    /// Says where a value of `row` lies, or at least in which file, where it has no page: its column is not stored.
    fn at_page_of(&self, row: u64, error: Error) -> Error {
        self.cursor.at_page_of(row, error).at(self.store.name(), 0, "segment column")
    }
}

impl ColumnCursor for FileCursor {
    fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        self.read_form(rows, Form::Wanted)
    }

    fn read_for_filter(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        self.read_form(rows, Form::Codes)
    }

    fn placeholders(&self, values: &dyn Array) -> Option<BooleanArray> {
        zero_date::find(values)
    }

    fn refuse_placeholder(&self, column: &str, row: u64) -> Error {
        self.at_page_of(row, zero_date::refuse(&format!(" in row {row} of column \"{column}\"")))
    }

    fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
        let damages = self.cursor.damages(&rows);
        let mut damages: Vec<_> = damages
            .into_iter()
            .map(|(range, error)| {
                let first = range.start;
                (range, self.at_page_of(first, error))
            })
            .collect();
        // Parts may be sound and not fit together.
        if matches!(self.cursor, Cursor::List(..) | Cursor::Map(..) | Cursor::Struct(..)) {
            let sound = sound_parts(&rows, &damages);
            damages.extend(unreadable(sound, |good| self.read_form(good, Form::Wanted).map(|_| ())));
        }
        let sound = sound_parts(&rows, &damages);
        let mut stretches: Vec<_> = sound.into_iter().map(|range| (range, None)).collect();
        stretches.extend(damages.into_iter().map(|(range, error)| (range, Some(error))));
        stretches.sort_by_key(|(range, _)| range.start);
        stretches
    }
}
