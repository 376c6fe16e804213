//! Rows of a tablet in memory, and the same rows sorted by key.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use arrow_select::interleave::interleave;
use pilaster_core::{Error, Result};

use super::convert::memory_bytes;
use super::key_rows::KeyRows;

/// Bytes that sorting needs for each row: an [`Entry`], and where its key ends.
const ROW_BYTES: usize = size_of::<Entry>() + size_of::<usize>();

/// Rows as they came.
#[derive(Debug, Default)]
pub(super) struct RowBuffer {
    /// The pieces of each column.
    columns: Vec<Vec<ArrayRef>>,
    /// Number of the first row of each piece.
    starts: Vec<usize>,
    keys: KeyRows,
    bytes: usize,
}

/// A row in its place by key.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The first bytes of the key, which mostly decide.
    prefix: u64,
    row: u32,
    piece: u32,
}

impl RowBuffer {
    pub fn rows(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of the rows and of what sorting them takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether so many more rows can be counted.
    pub fn has_room_for(&self, rows: usize) -> bool {
        u32::try_from(self.rows().saturating_add(rows)).is_ok()
    }

    /// Takes rows: an array of each column, and their keys.
    pub fn push<'a>(&mut self, columns: Vec<ArrayRef>, keys: impl Iterator<Item = &'a [u8]>) {
        let start = self.rows();
        self.starts.push(start);
        for key in keys {
            self.keys.push(key);
            self.bytes = self.bytes.saturating_add(key.len());
        }
        let rows = self.rows().saturating_sub(start);
        self.bytes = self.bytes.saturating_add(rows.saturating_mul(ROW_BYTES));
        self.columns.resize_with(columns.len(), Vec::new);
        for (pieces, array) in self.columns.iter_mut().zip(columns) {
            self.bytes = self.bytes.saturating_add(memory_bytes(&array));
            pieces.push(array);
        }
    }

    /// The rows by key; or the first key that two of them have.
    pub fn sort(self) -> Result<SortedRun, Vec<u8>> {
        let Self { columns, starts, keys, bytes } = self;
        let ends = starts.iter().skip(1).copied().chain([keys.len()]);
        let mut order: Vec<Entry> = Vec::with_capacity(keys.len());
        for (piece, (&start, end)) in (0..).zip(starts.iter().zip(ends)) {
            order.extend((start..end).map(|row| Entry {
                prefix: prefix(keys.get(row)),
                // `has_room_for` was asked.
                row: u32::try_from(row).unwrap_or(u32::MAX),
                piece,
            }));
        }
        let key = |entry: &Entry| keys.get(entry.row as usize);
        let compare = |a: &Entry, b: &Entry| a.prefix.cmp(&b.prefix).then_with(|| key(a).cmp(key(b)));
        if !order.is_sorted_by(|a, b| compare(a, b).is_lt()) {
            order.sort_unstable_by(compare);
            if let Some([twice, _]) = order.array_windows().find(|[a, b]| compare(a, b).is_eq()) {
                return Err(key(twice).to_vec());
            }
        }
        Ok(SortedRun { columns, starts, keys, order, bytes })
    }
}

fn prefix(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes)
}

/// Rows in key order, no key twice.
#[derive(Debug)]
pub(super) struct SortedRun {
    columns: Vec<Vec<ArrayRef>>,
    starts: Vec<usize>,
    keys: KeyRows,
    order: Vec<Entry>,
    bytes: usize,
}

impl SortedRun {
    pub fn rows(&self) -> usize {
        self.order.len()
    }

    /// Bytes of the rows while they were not sorted.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The key of a row.
    pub fn key(&self, row: usize) -> &[u8] {
        self.order.get(row).map_or(&[], |entry| self.keys.get(entry.row as usize))
    }

    /// The values of a column in `rows`.
    pub fn values(&self, column: usize, rows: Range<usize>) -> Result<ArrayRef> {
        let missing = || Error::internal("rows that are not there");
        let pieces = self.columns.get(column).ok_or_else(missing)?;
        let entries = self.order.get(rows).ok_or_else(missing)?;
        let place = |entry: &Entry| {
            let start = self.starts.get(entry.piece as usize).copied().unwrap_or_default();
            (entry.piece as usize, (entry.row as usize).saturating_sub(start))
        };
        // Rows that came in order are cut out without a copy.
        if let Some(first) = entries.first()
            && entries
                .iter()
                .zip(first.row..)
                .all(|(entry, row)| entry.row == row && entry.piece == first.piece)
        {
            let (piece, row) = place(first);
            return Ok(pieces.get(piece).ok_or_else(missing)?.slice(row, entries.len()));
        }
        let pieces: Vec<&dyn Array> = pieces.iter().map(|piece| piece.as_ref()).collect();
        let places: Vec<_> = entries.iter().map(place).collect();
        Ok(interleave(&pieces, &places)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use arrow_array::{Int32Array, StringArray};
    use std::sync::Arc;

    fn buffer(pieces: &[&[&str]]) -> RowBuffer {
        let mut buffer = RowBuffer::default();
        let mut number = 0;
        for piece in pieces {
            let numbers = Int32Array::from_iter_values(number..number + piece.len() as i32);
            let words = StringArray::from_iter_values(*piece);
            number += piece.len() as i32;
            buffer.push(vec![Arc::new(words), Arc::new(numbers)], piece.iter().map(|word| word.as_bytes()));
        }
        buffer
    }

    #[test]
    fn rows_of_all_pieces_come_in_key_order() {
        let run = buffer(&[&["d", "a-long-key-2"], &["c", "a-long-key-1", ""]]).sort().unwrap();
        let keys: Vec<_> = (0..run.rows()).map(|row| run.key(row)).collect();
        assert_eq!(keys, [&b""[..], b"a-long-key-1", b"a-long-key-2", b"c", b"d"]);
        let words = run.values(0, 1..4).unwrap();
        assert_eq!(words.as_ref(), &StringArray::from(vec!["a-long-key-1", "a-long-key-2", "c"]));
        let numbers = run.values(1, 0..5).unwrap();
        assert_eq!(numbers.as_primitive::<Int32Type>().values(), &[4, 3, 1, 2, 0]);
    }

    #[test]
    fn rows_in_order_are_not_copied() {
        let run = buffer(&[&["a", "b", "c"], &["d", "e"]]).sort().unwrap();
        let numbers = run.values(1, 1..3).unwrap();
        assert_eq!(numbers.as_primitive::<Int32Type>().values(), &[1, 2]);
        assert_eq!(run.values(1, 2..4).unwrap().as_primitive::<Int32Type>().values(), &[2, 3]);
    }

    #[test]
    fn a_key_twice_is_named() {
        assert_eq!(buffer(&[&["b", "a"], &["c", "b"]]).sort().unwrap_err(), b"b");
        assert_eq!(buffer(&[&["a", "a"]]).sort().unwrap_err(), b"a");
        let long = "the same first bytes";
        assert_eq!(buffer(&[&[long, "x", long]]).sort().unwrap_err(), long.as_bytes());
    }
}
