//! What the fuzz targets and property tests of all formats share: choices out of bytes, changes to files, and the rule by which what a
//! reader makes of them is judged.

use std::ops::Range;
use std::sync::Arc;

use crate::dataset::Dataset;
use crate::progress::Silent;
use crate::rows::RowRanges;
use crate::salvage::LossLog;
use crate::verify::VerifyDepth;

/// A few bytes can stand for billions of rows; the first ones show what there is to see.
const MOST_ROWS: u64 = 1 << 14;

/// Takes choices from the bytes of a fuzzer: first the bytes themselves, then numbers that look random.
#[derive(Debug)]
pub struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
    state: u64,
}

impl<'a> Choices<'a> {
    /// The choices that `bytes` stand for.
    pub fn new(bytes: &'a [u8]) -> Self {
        let state = bytes.iter().fold(0x9e37_79b9_7f4a_7c15u64, |state, byte| {
            (state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        Self { bytes: bytes.iter(), state }
    }

    /// Any number; it takes no bytes, so that values do not use up what shapes tables.
    pub fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end` and below 256.
    pub fn below(&mut self, end: usize) -> usize {
        let byte = self.bytes.next().copied();
        let byte = byte.unwrap_or_else(|| self.random().to_le_bytes().first().copied().unwrap_or(0));
        usize::from(byte).checked_rem(end).unwrap_or(0)
    }

    /// Whether it is the one of `count` cases.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// One of `all`, which are some.
    ///
    /// # Panics
    /// If there are none.
    #[expect(clippy::indexing_slicing, reason = "a target that asks so is wrong")]
    pub fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// Changes a few bytes of a file, half of them in `part`.
    pub fn damage(&mut self, file: &mut [u8], part: &Range<usize>) {
        for _ in 0..=self.below(4) {
            let place = if self.one_in(2) && !part.is_empty() { part.clone() } else { 0..file.len() };
            let within = self.random().checked_rem(place.len() as u64).unwrap_or(0);
            let at = place.start.saturating_add(usize::try_from(within).unwrap_or(0));
            let Some(byte) = file.get_mut(at) else { return };
            let known = *byte;
            *byte = self.of(&[
                0,
                1,
                2,
                0x7f,
                0x80,
                0xff,
                known ^ 1,
                known.wrapping_add(1),
                known.wrapping_sub(1),
            ]);
        }
    }
}

/// Asks everything of a dataset that may be damaged, which had so many `rows` when it was written.
///
/// # Panics
/// If a scan fails or gives fewer rows where verifying finds nothing, or where one that goes on over damage names no loss; if that one
/// fails.
#[expect(clippy::expect_used, clippy::panic, reason = "a fuzzer finds what panics")]
pub fn look_at(dataset: &dyn Dataset, rows: Option<u64>) {
    let count = dataset.row_count().unwrap_or(0);
    let first = RowRanges::one(0..count.min(MOST_ROWS));
    let mut given = Ok(0u64);
    match dataset.scan().rows(first.clone()).read() {
        Ok(reader) => {
            for batch in reader {
                given = given.and_then(|sum| {
                    Ok(sum.saturating_add(batch.map_err(|e| e.to_string())?.num_rows() as u64))
                });
            }
        }
        Err(error) => given = Err(error.to_string()),
    }
    let losses = Arc::new(LossLog::new());
    let mut saved = 0u64;
    let tolerant = dataset.scan().rows(first).row_numbers("a row number").skip_damage(Arc::clone(&losses));
    let is_refused = match tolerant.read() {
        Ok(reader) => {
            for batch in reader {
                let batch = batch.expect("a tolerant scan goes on");
                saved = saved.saturating_add(batch.num_rows() as u64);
            }
            false
        }
        Err(_) => true,
    };
    let depth = if count <= MOST_ROWS { VerifyDepth::Values } else { VerifyDepth::Checksums };
    let report = dataset.verify(depth, &Silent).expect("looking itself does not fail");
    let _ = (dataset.describe(), dataset.pages(), dataset.column_statistics());
    if count > MOST_ROWS {
        return;
    }
    let wanted = rows.unwrap_or(count);
    let lacks = match &given {
        Ok(given) => *given < wanted,
        Err(_) => true,
    };
    if lacks && report.is_sound() {
        panic!("{given:?} of {wanted} rows, and verifying finds nothing");
    }
    if lacks && !is_refused && saved < wanted && losses.losses().is_empty() {
        panic!("{given:?} and {saved} of {wanted} rows, and no loss is named");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_are_the_same_choices() {
        let changed = |seed: &[u8]| {
            let mut file = vec![7; 100];
            Choices::new(seed).damage(&mut file, &(90..95));
            file
        };
        assert_eq!(changed(&[1, 2]), changed(&[1, 2]));
        let all: Vec<_> = (0..50u8).map(|seed| changed(&[seed])).collect();
        assert!(
            all.iter().any(|file| file[..90] != [7; 90]) && all.iter().any(|file| file[90..95] != [7; 5])
        );
        let mut choices = Choices::new(&[5, 0]);
        assert_eq!((choices.below(4), choices.one_in(3), choices.below(0)), (1, true, 0));
        Choices::new(&[]).damage(&mut [], &(0..0));
    }
}
