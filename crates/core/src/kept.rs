//! The block that a column of a scan is in, as far as the budget of the scan has room for it.
//!
//! A cursor keeps the block it decoded last, because the next batch goes on in it. Where the budget has no room, the block is let go
//! at the end of the read and decoded again for the next one, and values that leave are copied out of it ([`Kept::given`]).

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array, make_array};
use arrow_schema::DataType;
use arrow_select::take::take;

use crate::error::Result;
use crate::fitting;
use crate::memory::{Room, ScanMemory};

/// The block of a cursor, and the room for it.
#[derive(Debug)]
pub struct Kept<B> {
    memory: ScanMemory,
    current: Option<(B, Option<Room>)>,
    /// Room of the blocks that the values of this read point into.
    before: Vec<Room>,
}

impl<B> Kept<B> {
    /// None yet.
    pub fn new(memory: &ScanMemory) -> Self {
        Self { memory: memory.clone(), current: None, before: Vec::new() }
    }

    /// Begins a read: what the last one gave is no longer held.
    pub fn begin_read(&mut self) {
        self.before.clear();
    }

    /// The block.
    pub fn get(&self) -> Option<&B> {
        self.current.as_ref().map(|(block, _)| block)
    }

    /// The block.
    pub fn get_mut(&mut self) -> Option<&mut B> {
        self.current.as_mut().map(|(block, _)| block)
    }

    /// Whether the block stays after the read, so that values may point into it.
    pub fn is_kept(&self) -> bool {
        self.current.as_ref().is_some_and(|(_, room)| room.is_some())
    }

    /// Makes way for the next block, and gives this one. Values that were given may point into it, so its room is taken until the next
    /// read.
    pub fn take(&mut self) -> Option<B> {
        let (block, room) = self.current.take()?;
        self.before.extend(room);
        Some(block)
    }

    /// The next block, of so many bytes.
    pub fn set(&mut self, block: B, bytes: u64) {
        self.take();
        let room = self.memory.keep(bytes);
        self.current = Some((block, room));
    }

    /// Ends a read: lets go of a block that there is no room for, and says whether it did.
    pub fn end_read(&mut self) -> bool {
        let is_short = self.current.as_ref().is_some_and(|(_, room)| room.is_none());
        if is_short {
            self.current = None;
            self.memory.note_let_go();
        }
        is_short
    }

    /// Values out of the block as they may leave: copied if the block does not stay.
    ///
    /// # Errors
    /// As [`copied_out`].
    pub fn given(&self, values: ArrayRef) -> Result<ArrayRef> {
        if self.is_kept() { Ok(values) } else { copied_out(&values, &self.memory) }
    }
}

/// A copy of values whose block does not stay.
///
/// # Errors
/// [`crate::ErrorKind::LimitExceeded`] if fewer rows should be read at once.
pub fn copied_out(values: &ArrayRef, memory: &ScanMemory) -> Result<ArrayRef> {
    memory.take(fitting::value_bytes(values))?;
    let copy = apart(values)?;
    if copy.data_type().is_nested() {
        memory.take(copy.get_array_memory_size() as u64)?;
    }
    Ok(copy)
}

/// A copy that shares no memory with `array`.
fn apart(array: &ArrayRef) -> Result<ArrayRef> {
    let places = UInt32Array::from_iter_values(0..u32::try_from(array.len()).unwrap_or(u32::MAX));
    without_blocks(&take(array, &places, None)?)
}

/// The same values; strings that are views point into memory of their own.
fn without_blocks(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Utf8View | DataType::BinaryView => Ok(fitting::copied(array)),
        nested if nested.is_nested() && array.as_any_dictionary_opt().is_none() => {
            let data = array.to_data();
            let children = data.child_data().iter();
            let children = children.map(|child| Ok(without_blocks(&make_array(child.clone()))?.to_data()));
            let children = children.collect::<Result<_>>()?;
            Ok(make_array(data.into_builder().child_data(children).build()?))
        }
        _ => Ok(std::sync::Arc::clone(array)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{ListArray, StringViewArray, StructArray};
    use arrow_buffer::OffsetBuffer;
    use arrow_schema::Field;

    use super::*;
    use crate::Limits;

    fn memory(scan_bytes: u64) -> ScanMemory {
        ScanMemory::new(&Limits { scan_bytes, ..Limits::default() })
    }

    #[test]
    fn blocks_stay_while_there_is_room_and_are_paid_for_until_the_next_read() {
        let memory = memory(200);
        let (mut one, mut other) = (Kept::new(&memory), Kept::new(&memory));
        one.begin_read();
        one.set('a', 60);
        one.set('b', 40);
        assert!(one.is_kept() && !one.end_read());
        other.set('c', 1);
        assert!(!other.is_kept() && other.end_read() && other.get().is_none());
        one.begin_read();
        assert_eq!(one.get(), Some(&'b'));
        other.set('d', 60);
        assert!(other.is_kept());
        drop((one, other));
        assert!(memory.keep(100).is_some());
    }

    #[test]
    fn copies_share_nothing_with_their_block() {
        let word = "a word of more than twelve bytes".repeat(100);
        let words: ArrayRef = Arc::new(StringViewArray::from_iter_values(vec![word.as_str(); 50]));
        let field = Arc::new(Field::new("item", DataType::Utf8View, true));
        let lists = ListArray::new(Arc::clone(&field), OffsetBuffer::from_lengths([20, 0, 30]), words, None);
        let numbers =
            ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1); 900]), None, None]);
        let structs: ArrayRef = Arc::new(StructArray::from(vec![
            (Arc::new(Field::new("w", lists.data_type().clone(), true)), Arc::new(lists) as ArrayRef),
            (Arc::new(Field::new("n", numbers.data_type().clone(), true)), Arc::new(numbers)),
        ]));
        for rows in [0..3, 1..3, 1..2] {
            let part = structs.slice(rows.start, rows.len());
            let copy = apart(&part).unwrap();
            assert_eq!(&copy, &part);
            let bytes = fitting::value_bytes(&part) as usize;
            let size = copy.get_array_memory_size();
            assert!(size < 2 * bytes + 10_000, "{rows:?}: {size} for {bytes}");
        }
        // Too many bytes for a batch are said to be so before they are there.
        let short = memory(1000);
        let mut kept = Kept::new(&short);
        kept.set((), 1 << 20);
        short.start(3);
        assert!(fitting::is_too_large(&kept.given(structs).unwrap_err()));
    }
}
