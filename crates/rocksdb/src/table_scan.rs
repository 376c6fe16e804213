//! The entries of a table in their order.
//!
//! ```text
//! index entry:   a key that no entry of the block comes behind -> handle of the block
//!                with distances, unless it is the first behind a restart: how much longer the block is than the one before, which it follows
//!                with first keys: | varint length | first key of the block | behind the handle
//! ```

use std::sync::Arc;

use pilaster_core::{Error, Result};
use pilaster_encoding::{varint, zigzag};

use crate::block::BlockCursor;
use crate::footer::Handle;
use crate::key::{self, Entry};
use crate::table::Table;

/// The handles of an index block.
#[derive(Debug)]
struct IndexCursor {
    block: BlockCursor,
    at: Handle,
    last: Handle,
}

impl IndexCursor {
    fn open(table: &Table, handle: Handle) -> Result<Self> {
        let block = BlockCursor::with_values(table.read_plain(handle)?, !table.shape.has_distances);
        let block = table.place(handle, block)?;
        Ok(Self { block, at: handle, last: Handle { offset: 0, bytes: 0 } })
    }

    fn next(&mut self, table: &Table) -> Result<Option<Handle>> {
        let read = self.read(table);
        table.place(self.at, read)
    }

    fn read(&mut self, table: &Table) -> Result<Option<Handle>> {
        if !self.block.advance()? {
            return Ok(None);
        }
        let (shape, last) = (table.shape, self.last);
        let is_distance = shape.has_distances && self.block.is_shared();
        let handle = self.block.take_value(|bytes, at| {
            let handle = if is_distance {
                let longer = zigzag::decode_i64(varint::read_u64(bytes, at)?);
                let bytes = last.bytes.checked_add_signed(longer);
                let bytes = bytes
                    .ok_or_else(|| Error::corrupt("a length", format!("{} and {longer}", last.bytes)))?;
                Handle { offset: last.end(), bytes }
            } else {
                Handle::read(bytes, at)?
            };
            if shape.has_first_keys {
                let length = varint::read_u32(bytes, at)? as usize;
                *at = at.saturating_add(length);
                if *at > bytes.len() {
                    return Err(Error::corrupt(
                        format!("a first key of {length} bytes"),
                        "the end of the block",
                    ));
                }
            }
            Ok(handle)
        })?;
        self.last = handle;
        Ok(Some(handle))
    }

    /// Whether all entries of the present block come before a key.
    fn is_before(&self, table: &Table, from: &[u8]) -> Result<bool> {
        let key = self.block.key();
        let user = if table.shape.has_user_keys { key } else { key::split(key)?.0 };
        Ok(user < from)
    }
}

/// Goes through a table. After an error it goes on behind what could not be read.
#[derive(Debug)]
pub(crate) struct TableScan {
    table: Arc<Table>,
    /// What comes before this key is left out.
    from: Vec<u8>,
    is_begun: bool,
    top: Option<IndexCursor>,
    part: Option<IndexCursor>,
    data: Option<(Handle, BlockCursor)>,
    last: Option<(Vec<u8>, u64)>,
    last_block: Option<u64>,
    last_part: Option<u64>,
    entries: u64,
    /// Whether entries were left out, so that their number says nothing.
    is_partial: bool,
}

impl TableScan {
    pub fn new(table: Arc<Table>, from: &[u8]) -> Self {
        Self {
            is_partial: !from.is_empty(),
            table,
            from: from.to_vec(),
            is_begun: false,
            top: None,
            part: None,
            data: None,
            last: None,
            last_block: None,
            last_part: None,
            entries: 0,
        }
    }

    pub fn next(&mut self) -> Result<Option<Entry>> {
        let next = self.read();
        if next.is_err() {
            self.is_partial = true;
        }
        next
    }

    fn read(&mut self) -> Result<Option<Entry>> {
        loop {
            if let Some((handle, block)) = &mut self.data {
                let handle = *handle;
                let entry = read_entry(&self.table, block);
                let entry = self.table.place(handle, entry);
                match entry {
                    Ok(Some(entry)) => {
                        self.entries = self.entries.saturating_add(1);
                        self.check_order(handle, &entry)?;
                        if entry.user.as_slice() < self.from.as_slice() {
                            continue;
                        }
                        return Ok(Some(entry));
                    }
                    Ok(None) => self.data = None,
                    Err(error) => {
                        self.data = None;
                        return Err(error);
                    }
                }
                continue;
            }
            let Some(handle) = self.next_block()? else {
                return self.check_count().map(|()| None);
            };
            let block = BlockCursor::new(self.table.read_data(handle)?);
            self.data = Some((handle, self.table.place(handle, block)?));
        }
    }

    /// The next block of entries that may hold what is wanted.
    fn next_block(&mut self) -> Result<Option<Handle>> {
        if !self.is_begun {
            self.is_begun = true;
            self.top = Some(IndexCursor::open(&self.table, self.table.index)?);
        }
        loop {
            let is_top = self.part.is_none();
            let Some(cursor) = self.part.as_mut().or(self.top.as_mut()) else { return Ok(None) };
            let handle = match cursor.next(&self.table) {
                Ok(Some(handle)) => handle,
                Ok(None) if is_top => return Ok(None),
                Ok(None) => {
                    self.part = None;
                    continue;
                }
                Err(error) => {
                    if is_top {
                        self.top = None
                    } else {
                        self.part = None
                    }
                    return Err(error);
                }
            };
            if cursor.is_before(&self.table, &self.from)? {
                continue;
            }
            // Blocks stand in the order of their keys: an index that goes back would be read without an end.
            let is_part = is_top && self.table.shape.is_of_two_levels;
            let last = if is_part { &mut self.last_part } else { &mut self.last_block };
            if last.is_some_and(|last| handle.offset <= last) {
                let found = format!("one at {} behind one at {}", handle.offset, last.unwrap_or_default());
                return self
                    .table
                    .place(self.table.index, Err(Error::corrupt("blocks in their order", found)));
            }
            *last = Some(handle.offset);
            if is_part {
                self.part = Some(IndexCursor::open(&self.table, handle)?);
                continue;
            }
            return Ok(Some(handle));
        }
    }

    fn check_order(&mut self, handle: Handle, entry: &Entry) -> Result<()> {
        let is_behind =
            |(user, tag): &(Vec<u8>, u64)| key::compare((user, *tag), (&entry.user, entry.tag)).is_lt();
        if !self.last.as_ref().is_none_or(is_behind) {
            self.data = None;
            let found = format!("\"{}\"", entry.user.escape_ascii());
            let last =
                self.last.as_ref().map(|(user, _)| user.escape_ascii().to_string()).unwrap_or_default();
            let error = Error::corrupt(format!("a key behind \"{last}\""), found);
            return self.table.place(handle, Err(error));
        }
        self.last = Some((entry.user.clone(), entry.tag));
        Ok(())
    }

    /// What the table says it holds must have come by.
    fn check_count(&mut self) -> Result<()> {
        let Some((all, ranges)) = self.table.count.filter(|_| !self.is_partial) else { return Ok(()) };
        self.is_partial = true;
        let wanted = all.saturating_sub(ranges);
        if self.entries == wanted {
            return Ok(());
        }
        let error = Error::corrupt(format!("{wanted} entries"), self.entries);
        Err(error.at(self.table.name(), 0, "rocksdb table"))
    }
}

fn read_entry(table: &Table, block: &mut BlockCursor) -> Result<Option<Entry>> {
    if !block.advance()? {
        return Ok(None);
    }
    let (user, tag) = key::split(block.key())?;
    Ok(Some(Entry { user: user.to_vec(), tag: table.tag(tag), value: block.value() }))
}
