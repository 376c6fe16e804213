//! The body of a data page: levels, then values.
//!
//! ```text
//! | definition levels, ceil(n · wd / 8) | repetition levels, ceil(n · wr / 8) | values |
//! ```
//!
//! A column that is only optional (max_def 1, max_rep 0) has null bits instead of definition levels: 1 for a missing value.

use bytes::Bytes;
use pilaster_encoding::{DecodeError, Result, bits, levels};

use super::batch::{LeafBatch, Levels};
use super::dense::PageValues;
use crate::metadata::DataPageHeader;
use crate::schema::Leaf;

/// A data page that is being read.
#[derive(Debug)]
pub(crate) struct DataPage {
    /// Rows that have not been read.
    pub rows_left: usize,
    pub entries: usize,
    next_entry: usize,
    levels: Levels,
    values: PageValues,
    max_def: u8,
}

/// What levels cost, so that the vectors can be used again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    def: Vec<u8>,
    rep: Vec<u8>,
}

impl DataPage {
    /// Opens the uncompressed body of a page.
    pub fn open(body: &Bytes, header: &DataPageHeader, leaf: &Leaf, scratch: Scratch) -> Result<Self> {
        let entries = header.num_values as usize;
        // Every entry takes at least one bit: nothing is allocated for a number that cannot be.
        if entries > body.len().saturating_mul(8) {
            let expected = format!("at most {} entries", body.len().saturating_mul(8));
            return Err(DecodeError::new(0, expected, entries.to_string()));
        }
        let def_len = levels::packed_len(entries, levels::width_of(leaf.max_def));
        let rep_len = levels::packed_len(entries, levels::width_of(leaf.max_rep));
        let values_at = def_len.saturating_add(rep_len);
        let (Some(def), Some(rep)) = (body.get(..def_len), body.get(def_len..values_at)) else {
            return Err(DecodeError::new(
                0,
                format!("{values_at} bytes of levels"),
                format!("{} bytes", body.len()),
            ));
        };
        let (levels, present, rows) = if leaf.max_def == 0 {
            (Levels::None, entries, entries)
        } else if leaf.is_flat_optional() {
            let validity: Vec<u8> = def.iter().map(|byte| !byte).collect();
            let present = bits::count_ones(&validity, entries);
            (Levels::Flat { validity, len: entries }, present, entries)
        } else {
            let (levels, present, rows) = full_levels(def, rep, entries, leaf, scratch)?;
            (levels, present, rows)
        };
        if header.num_rows.is_some_and(|stated| stated as usize != rows) {
            let expected = format!("{} rows, as the header says", header.num_rows.unwrap_or_default());
            return Err(DecodeError::new(0, expected, rows.to_string()));
        }
        let values = PageValues::open(body.slice(values_at..), leaf.physical_type, header.encoding, present)
            .map_err(|error| error.shifted(values_at))?;
        Ok(Self { rows_left: rows, entries, next_entry: 0, levels, values, max_def: leaf.max_def })
    }

    /// How many entries the next `rows` rows have, and how many of them have values.
    fn extent(&self, rows: usize) -> (usize, usize) {
        let left = self.entries.saturating_sub(self.next_entry);
        match &self.levels {
            Levels::None => (rows, rows),
            Levels::Flat { validity, .. } => {
                let before = bits::count_ones(validity, self.next_entry);
                let after = bits::count_ones(validity, self.next_entry.saturating_add(rows));
                (rows, after.saturating_sub(before))
            }
            Levels::Full { def, rep } => {
                let rep = rep.get(self.next_entry..).unwrap_or_default();
                let entries = if rows == self.rows_left {
                    left
                } else if rep.is_empty() {
                    rows
                } else {
                    let starts = rep.iter().enumerate().filter(|(_, level)| **level == 0);
                    starts.map(|(entry, _)| entry).nth(rows).unwrap_or(left)
                };
                let def =
                    def.get(self.next_entry..self.next_entry.saturating_add(entries)).unwrap_or_default();
                (entries, count_equal(def, self.max_def))
            }
        }
    }

    /// Appends the next `rows` rows, of those that are left.
    pub fn take(&mut self, rows: usize, out: &mut LeafBatch) -> Result<()> {
        let (entries, present) = self.extent(rows);
        let end = self.next_entry.saturating_add(entries);
        match (&self.levels, &mut out.levels) {
            (Levels::None, Levels::None) => {}
            (Levels::Flat { validity, .. }, Levels::Flat { validity: target, len }) => {
                bits::append_range(target, len, validity, self.next_entry, entries)?;
            }
            (Levels::Full { def, rep }, Levels::Full { def: def_out, rep: rep_out }) => {
                def_out.extend_from_slice(def.get(self.next_entry..end).unwrap_or_default());
                rep_out.extend_from_slice(rep.get(self.next_entry..end).unwrap_or_default());
            }
            _ => return Err(DecodeError::new(0, "levels of the column's kind", "others")),
        }
        self.values.take(present, &mut out.values)?;
        self.next_entry = end;
        self.rows_left = self.rows_left.saturating_sub(rows);
        out.entries = out.entries.saturating_add(entries);
        Ok(())
    }

    /// Steps over the next `rows` rows, of those that are left.
    pub fn skip(&mut self, rows: usize) -> Result<()> {
        let (entries, present) = self.extent(rows);
        self.values.skip(present)?;
        self.next_entry = self.next_entry.saturating_add(entries);
        self.rows_left = self.rows_left.saturating_sub(rows);
        Ok(())
    }

    /// What it takes in memory besides its body: levels, and numbers that are unpacked.
    pub fn decoded_bytes(&self) -> u64 {
        let levels = match &self.levels {
            Levels::None => 0,
            Levels::Flat { validity, .. } => validity.len(),
            Levels::Full { def, rep } => def.len().saturating_add(rep.len()),
        };
        levels.saturating_add(self.values.unpacked_bytes()) as u64
    }

    /// Gives the vectors back.
    pub fn into_scratch(self) -> Scratch {
        match self.levels {
            Levels::Full { def, rep } => Scratch { def, rep },
            _ => Scratch::default(),
        }
    }
}

/// Unpacks and checks levels; gives the number of values and of rows too.
fn full_levels(
    def_bits: &[u8],
    rep_bits: &[u8],
    entries: usize,
    leaf: &Leaf,
    scratch: Scratch,
) -> Result<(Levels, usize, usize)> {
    let Scratch { mut def, mut rep } = scratch;
    def.clear();
    rep.clear();
    levels::unpack(def_bits, levels::width_of(leaf.max_def), entries, &mut def)?;
    check_max(&def, leaf.max_def, "definition")?;
    let mut rows = entries;
    if leaf.max_rep > 0 {
        levels::unpack(rep_bits, levels::width_of(leaf.max_rep), entries, &mut rep)?;
        check_max(&rep, leaf.max_rep, "repetition")?;
        if rep.first().is_some_and(|first| *first != 0) {
            return Err(DecodeError::new(0, "a page that begins with a record", "the middle of one"));
        }
        rows = count_equal(&rep, 0);
    }
    let present = count_equal(&def, leaf.max_def);
    Ok((Levels::Full { def, rep }, present, rows))
}

fn check_max(levels: &[u8], max: u8, name: &str) -> Result<()> {
    match levels.iter().copied().fold(0, u8::max) {
        highest if highest <= max => Ok(()),
        highest => Err(DecodeError::new(0, format!("{name} levels of at most {max}"), highest.to_string())),
    }
}

/// How many of `levels` are `wanted`; summed in bytes first, so that the loop is vectorised.
pub(super) fn count_equal(levels: &[u8], wanted: u8) -> usize {
    levels
        .chunks(255)
        .map(|chunk| {
            usize::from(chunk.iter().fold(0u8, |sum, level| sum.wrapping_add(u8::from(*level == wanted))))
        })
        .sum()
}
