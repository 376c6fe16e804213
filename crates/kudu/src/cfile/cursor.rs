//! A column read by row position, block by block.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;
use pilaster_core::fitting::Held;
use pilaster_core::kept::Kept;
use pilaster_core::pieces::Pieces;
use pilaster_core::positional::ColumnCursor;
use pilaster_core::source::ReadAhead;
use pilaster_core::{Error, Result, RowRanges, ScanMemory};

use super::block::Block;
use super::decode::{DecodedBlock, Form, Words, as_list_type, finish, finish_all};
use super::file::{CFile, DATA_PART, LocatedBlock};
use super::index::IndexCursor;
use super::metadata::BlockPointer;
use super::walk::salvage_map;

/// Reads the cells of one CFile; see the module.
#[derive(Debug)]
pub(crate) struct CellCursor {
    file: Arc<CFile>,
    /// Rows that will all be read: what may be fetched ahead.
    wanted: RowRanges,
    place: Place,
    current: Kept<DecodedBlock>,
    /// The dictionary, if it is too large to be kept with the file.
    words: Option<Words>,
    /// Where the block begins that was decoded last.
    at: u64,
    ahead: ReadAhead,
    /// Whether a read is refused whose strings would keep too many blocks in memory.
    is_bounded: bool,
    salvage: Option<Vec<(LocatedBlock, Option<Error>)>>,
}

/// Where the next block is.
#[derive(Debug)]
enum Place {
    /// On the entry of the current block in the positional index.
    Indexed(IndexCursor),
    /// The current block's number in [`CFile::sequence`].
    Numbered(usize),
    Nowhere,
}

impl CellCursor {
    pub fn new(file: Arc<CFile>, wanted: RowRanges) -> Self {
        let salvage = file
            .recovered
            .as_ref()
            .map(|found| found.blocks.iter().map(|block| (block.clone(), None)).collect());
        Self {
            current: Kept::new(&ScanMemory::of_one_column(&file.shape.limits)),
            file,
            wanted,
            place: Place::Nowhere,
            words: None,
            at: 0,
            ahead: ReadAhead::default(),
            is_bounded: true,
            salvage,
        }
    }

    /// Draws on a budget that it shares with other columns.
    pub fn within(mut self, memory: &ScanMemory) -> Self {
        self.current = Kept::new(memory);
        self
    }

    /// Fetches at most so many bytes in one go, but always a whole block.
    pub fn with_read_ahead(mut self, bytes: u64) -> Self {
        self.ahead = ReadAhead::new(bytes);
        self
    }

    /// For a reader that wants all of its rows at once, however many blocks that keeps in memory.
    pub fn unbounded(mut self) -> Self {
        self.is_bounded = false;
        self
    }

    /// Finds blocks without the index if that is damaged.
    pub fn over_damage(mut self) -> Self {
        self.salvage.get_or_insert_with(|| salvage_map(&self.file));
        self
    }

    fn read_form(&mut self, rows: Range<u64>, form: Form) -> Result<ArrayRef> {
        self.current.begin_read();
        let values = self.read_blocks(rows, form);
        self.end_read();
        values
    }

    /// A block that there is no room for goes with its dictionary.
    fn end_read(&mut self) {
        if self.current.end_read() {
            self.words = None;
        }
    }

    fn read_blocks(&mut self, rows: Range<u64>, form: Form) -> Result<ArrayRef> {
        let file = Arc::clone(&self.file);
        // Arrow has no way from words to fixed-size values, which a comparison would need.
        let is_fixed = matches!(file.shape.target.arrow, DataType::FixedSizeBinary(_));
        let form = if is_fixed { Form::Wanted } else { form };
        // Strings are joined as views; the whole is brought to the type that was asked for.
        let target = &file.shape.target.decoded_only();
        let mut pieces = Pieces::new(|piece| finish(piece, target));
        let mut held = Held::default();
        let mut row = rows.start;
        while row < rows.end {
            self.load(row)?;
            let is_kept = self.current.is_kept();
            let Some(block) = self.current.get_mut() else { break };
            if self.is_bounded && is_kept {
                held.add(block.held_bytes(), &file.shape.limits)?;
            }
            let index = |row: u64| usize::try_from(row.saturating_sub(block.first_row)).unwrap_or(usize::MAX);
            let (start, wanted_end) = (index(row), index(rows.end));
            let (end, left) = (wanted_end.min(block.rows), wanted_end.saturating_sub(start));
            let pushed = match block.plain_strings(start..end).filter(|_| is_kept) {
                Some((strings, range)) => pieces.push_strings(target.byte_kind(), strings, &range, left),
                None => {
                    let form = if is_kept { form } else { Form::Wanted };
                    let piece = block.read(start..end, form, target);
                    piece.and_then(|piece| self.current.given(piece)).and_then(|piece| pieces.push(piece))
                }
            };
            pushed.map_err(|error| error.at(file.name(), self.at, DATA_PART))?;
            row = row.saturating_add(end.saturating_sub(start) as u64);
        }
        let joined = pieces.join(&target.arrow)?;
        if form == Form::Codes && joined.as_any_dictionary_opt().is_some() {
            return Ok(joined);
        }
        let whole = finish_all(joined, &file.shape).map_err(|error| self.in_block(error))?;
        if file.metadata().is_array { as_list_type(whole, file.field.data_type()) } else { Ok(whole) }
    }

    /// An error of a value of the block that was read last.
    pub fn in_block(&self, error: Error) -> Error {
        error.at(self.file.name(), self.at, DATA_PART)
    }

    /// Makes the block that holds `row` the current one.
    fn load(&mut self, row: u64) -> Result<()> {
        let end = match self.current.get() {
            Some(block) => {
                let end = block.first_row.saturating_add(block.rows as u64);
                if (block.first_row..end).contains(&row) {
                    return Ok(());
                }
                Some(end)
            }
            None => None,
        };
        self.current.take();
        if let Some(map) = &self.salvage {
            let at = map.partition_point(|(located, _)| located.rows.end <= row);
            let located =
                map.get(at).map(|(located, _)| located).filter(|located| located.rows.contains(&row));
            let pointer = located.map(|located| located.pointer).ok_or_else(|| self.past_the_end(row))?;
            return self.decode_block(pointer, row);
        }
        let is_next = end == Some(row);
        match &self.file.positional {
            Some(_) => self.load_indexed(row, is_next),
            None => self.load_numbered(row, is_next),
        }
    }

    fn load_indexed(&mut self, row: u64, is_next: bool) -> Result<()> {
        let file = Arc::clone(&self.file);
        let Some(tree) = &file.positional else { return Err(self.past_the_end(row)) };
        let cursor = match std::mem::replace(&mut self.place, Place::Nowhere) {
            Place::Indexed(mut cursor) if is_next => {
                cursor.advance(tree, &file.store)?;
                cursor
            }
            _ => {
                let ordinal = u32::try_from(row).map_err(|_| self.past_the_end(row))?;
                tree.seek(&file.store, &ordinal.to_be_bytes())?
            }
        };
        let entry = cursor.entry().cloned().ok_or_else(|| self.past_the_end(row))?;
        let start = file.ordinal_of(&entry)?;
        let end = cursor.next_in_leaf().and_then(|next| file.ordinal_of(&next).ok());
        if !self.ahead.has(&entry.pointer.range()) {
            self.fetch_ahead(&cursor, row)?;
        }
        self.place = Place::Indexed(cursor);
        self.decode_block(entry.pointer, row)?;
        // Where the blocks before end, this one must begin, whatever its entry says.
        let starts = [start, if is_next { row } else { start }];
        starts.into_iter().try_for_each(|start| self.check_place(start, end))
    }

    /// Refuses the current block unless it has the rows from `start` to `end`, as far as that is known: of rows that two blocks claim
    /// to hold, the way there would decide which are given.
    fn check_place(&mut self, start: u64, end: Option<u64>) -> Result<()> {
        let Some(block) = self.current.get() else { return Ok(()) };
        let found = block.first_row..block.first_row.saturating_add(block.rows as u64);
        if found.start == start && end.is_none_or(|end| found.end == end) {
            return Ok(());
        }
        let end = end.map(|end| end.to_string()).unwrap_or_default();
        let expected = format!("a block of the rows {start}..{end}, as index and neighbours say");
        let error = Error::corrupt(expected, format!("rows {found:?}"));
        self.current.take();
        Err(self.in_block(error))
    }

    /// Fetches the block under `cursor` and those after it that are sure to be wanted, in few reads.
    fn fetch_ahead(&mut self, cursor: &IndexCursor, row: u64) -> Result<()> {
        let Some(range) = self.wanted.from_row(row).first().filter(|range| range.contains(&row)) else {
            return Ok(());
        };
        let until = range.end;
        let file = Arc::clone(&self.file);
        let Some(tree) = &file.positional else { return Ok(()) };
        let mut cursor = cursor.clone();
        let mut is_first = true;
        // What is wrong further on, an index or where it leads, must not stop what is still readable here.
        let places = std::iter::from_fn(|| {
            if !std::mem::take(&mut is_first) {
                cursor.advance(tree, &file.store).ok()?;
            }
            let entry = cursor.entry()?;
            let is_wanted = file.ordinal_of(entry).ok()? < until;
            (is_wanted && file.store.check_pointer(entry.pointer, DATA_PART).is_ok())
                .then(|| entry.pointer.range())
        });
        self.ahead.fetch(file.store.source.as_ref(), places)
    }

    fn load_numbered(&mut self, row: u64, is_next: bool) -> Result<()> {
        let file = Arc::clone(&self.file);
        let blocks = file.sequence()?;
        if let Place::Numbered(number) = self.place
            && is_next
        {
            let next = number.saturating_add(1);
            self.place = Place::Numbered(next);
            let pointer = *blocks.get(next).ok_or_else(|| self.past_the_end(row))?;
            self.decode_block(pointer, row)?;
            return self.check_place(row, None);
        }
        // Only the blocks know their rows: look for the right one by halves.
        let (mut low, mut high) = (0, blocks.len());
        while low < high {
            let middle = low.midpoint(high);
            let Some(&pointer) = blocks.get(middle) else { break };
            let decoded = file.decode_with(&file.store.read(pointer, DATA_PART)?, self.words.as_ref())?;
            let end = decoded.first_row.saturating_add(decoded.rows as u64);
            if row < decoded.first_row {
                high = middle;
            } else if row >= end {
                low = middle.saturating_add(1);
            } else {
                self.place = Place::Numbered(middle);
                self.at = pointer.offset;
                self.keep(decoded);
                return Ok(());
            }
        }
        Err(self.past_the_end(row))
    }

    /// Decodes the block at `pointer`, which must hold `row`.
    fn decode_block(&mut self, pointer: BlockPointer, row: u64) -> Result<()> {
        let block: Block = match self.ahead.take(&pointer.range()) {
            Some(bytes) => self.file.store.open(pointer, bytes, DATA_PART)?,
            None => self.file.store.read(pointer, DATA_PART)?,
        };
        let decoded = self.file.decode_with(&block, self.words.as_ref())?;
        let end = decoded.first_row.saturating_add(decoded.rows as u64);
        if !(decoded.first_row..end).contains(&row) {
            return Err(Error::corrupt(
                format!("a block with row {row}"),
                format!("rows {}..{end}", decoded.first_row),
            )
            .at(self.file.name(), pointer.offset, DATA_PART));
        }
        self.at = pointer.offset;
        self.keep(decoded);
        Ok(())
    }

    fn keep(&mut self, block: DecodedBlock) {
        if !self.file.has_words() {
            self.words = block.words().cloned();
        }
        let bytes = block.bytes;
        self.current.set(block, bytes);
    }

    fn past_the_end(&self, row: u64) -> Error {
        Error::corrupt(format!("a block with row {row}"), "the end of the index").at(
            self.file.name(),
            self.file.metadata().blocks_end,
            "cfile index",
        )
    }
}

impl ColumnCursor for CellCursor {
    fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        self.read_form(rows, Form::Wanted)
    }

    fn read_for_filter(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        self.read_form(rows, Form::Codes)
    }

    fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
        self.current.begin_read();
        let stretches = self.probe_blocks(rows);
        self.end_read();
        stretches
    }
}

impl CellCursor {
    fn probe_blocks(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
        let file = Arc::clone(&self.file);
        let mut map = match self.salvage.take() {
            Some(map) => map,
            None => salvage_map(&file),
        };
        let mut stretches = Vec::new();
        let mut row = rows.start;
        while row < rows.end {
            let index = map.partition_point(|(located, _)| located.rows.end <= row);
            let next = map.get_mut(index).filter(|(located, _)| located.rows.start < rows.end);
            let Some((located, damage)) = next else {
                stretches
                    .push((row..rows.end, Some(lost(&file, "no block that holds these rows was found"))));
                break;
            };
            if located.rows.start > row {
                let gap = row..located.rows.start;
                row = located.rows.start;
                stretches.push((gap, Some(lost(&file, "no block that holds these rows was found"))));
                continue;
            }
            let known_good = self.current.get().is_some_and(|block| block.first_row == located.rows.start);
            if !known_good && damage.is_none() {
                self.current.take();
                let read =
                    self.decode_block(located.pointer, row).and_then(|()| match self.current.get_mut() {
                        Some(block) => block.check(&file.shape),
                        None => Ok(()),
                    });
                *damage = read.err();
                if let Some(block) = self.current.get()
                    && block.first_row.saturating_add(block.rows as u64) != located.rows.end
                {
                    let expected = format!("rows {}..{} in the block", located.rows.start, located.rows.end);
                    let found = format!("{} rows from row {}", block.rows, block.first_row);
                    let at = located.pointer.offset;
                    *damage = Some(Error::corrupt(expected, found).at(file.name(), at, "cfile data block"));
                    self.current.take();
                }
            }
            let stretch = located.rows.clone();
            row = stretch.end;
            let error = damage.clone();
            // A damaged block is lost as a whole, a good one is good for what was asked.
            let stretch = if error.is_some() {
                stretch
            } else {
                stretch.start.max(rows.start)..stretch.end.min(rows.end)
            };
            stretches.push((stretch, error));
        }
        self.salvage = Some(map);
        stretches
    }
}

fn lost(file: &CFile, found: &str) -> Error {
    Error::corrupt("a data block", found).at(file.name(), file.metadata().blocks_start, "cfile index")
}
