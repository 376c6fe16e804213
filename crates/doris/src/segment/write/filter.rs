//! Bloom filters of pages; what they look like is in [`crate::segment`]'s `bloom` and `ngram`.

use crate::segment::bloom::{self, BLOCK_BYTES};
use crate::segment::column_meta::{BLOCK_BLOOM, CITY_HASH, MURMUR_HASH, NGRAM_BLOOM};
use crate::segment::ngram::NgramFilter;
use crate::segment::types::Encoding;

const SMALLEST_BITS: f64 = 256.0;
/// A filter is never larger than 128 MiB.
const LARGEST_BITS: f64 = (1u64 << 30) as f64;
const BITS_PER_BYTE: usize = 8;

/// Which filters a column gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FilterKind {
    /// Block filters that are wrong this often.
    Block { rate: f64 },
    /// Filters of all runs of so many characters.
    Ngram { gram_size: usize, filter_bytes: usize },
}

/// Builds one filter for each page of a column.
#[derive(Debug)]
pub(super) struct FilterBuilder {
    page: PageFilter,
    has_null: bool,
    filters: Vec<Vec<u8>>,
}

#[derive(Debug)]
enum PageFilter {
    /// Hashes of the values, with repeats.
    Block {
        rate: f64,
        hashes: Vec<u64>,
    },
    Ngram(NgramFilter),
}

impl FilterBuilder {
    pub fn new(kind: FilterKind) -> Self {
        let page = match kind {
            FilterKind::Block { rate } => PageFilter::Block { rate, hashes: Vec::new() },
            FilterKind::Ngram { gram_size, filter_bytes } => {
                PageFilter::Ngram(NgramFilter::new(gram_size, filter_bytes))
            }
        };
        Self { page, has_null: false, filters: Vec::new() }
    }

    pub fn add_nulls(&mut self) {
        self.has_null = true;
    }

    pub fn add_cells(&mut self, cells: &[u8], width: usize) {
        for cell in cells.chunks_exact(width.max(1)) {
            self.add_bytes(cell);
        }
    }

    #[inline]
    pub fn add_bytes(&mut self, value: &[u8]) {
        match &mut self.page {
            PageFilter::Block { hashes, .. } => hashes.push(bloom::hash64(value)),
            PageFilter::Ngram(filter) => filter.add(value),
        }
    }

    pub fn finish_page(&mut self) {
        let has_null = std::mem::take(&mut self.has_null);
        self.filters.push(match &mut self.page {
            PageFilter::Block { rate, hashes } => {
                let filter = block_filter(hashes, *rate, has_null);
                hashes.clear();
                filter
            }
            PageFilter::Ngram(filter) => filter.finish_page(),
        });
    }

    /// The filters, and how hashes and bits are computed: `hash_strategy` and `algorithm`.
    pub fn finish(self) -> (Vec<Vec<u8>>, i32, i32) {
        match self.page {
            PageFilter::Block { .. } => (self.filters, MURMUR_HASH, BLOCK_BLOOM),
            PageFilter::Ngram(_) => (self.filters, CITY_HASH, NGRAM_BLOOM),
        }
    }
}

/// How filters are stored: plain values, one for each page.
pub(super) const FILTER_ENCODING: Encoding = Encoding::Plain;

/// A block filter of these hashes, which are sorted on the way.
pub(super) fn block_filter(hashes: &mut Vec<u64>, rate: f64, has_null: bool) -> Vec<u8> {
    hashes.sort_unstable();
    hashes.dedup();
    let mut blocks = vec![[0u8; BLOCK_BYTES]; block_count(hashes.len(), rate)];
    for hash in hashes.iter() {
        bloom::add(&mut blocks, *hash);
    }
    let mut filter = blocks.into_flattened();
    filter.push(u8::from(has_null));
    filter
}

/// Blocks of a filter of so many values that is wrong at this rate: a power of two.
fn block_count(values: usize, rate: f64) -> usize {
    let bits = (-8.0 * values as f64 / (1.0 - rate.powf(1.0 / 8.0)).ln()).trunc();
    let bits = bits.clamp(SMALLEST_BITS, LARGEST_BITS);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped above")]
    let bits = (bits as usize).next_power_of_two();
    (bits / BITS_PER_BYTE / BLOCK_BYTES).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_grow_with_values_and_hold_them() {
        assert_eq!(block_count(0, 0.05), 1);
        assert_eq!(block_count(1, 0.05), 1);
        assert!(block_count(10_000, 0.001) > block_count(10_000, 0.05));
        let mut hashes: Vec<u64> = (0..1000u32).map(|value| bloom::hash64(&value.to_le_bytes())).collect();
        let filter = block_filter(&mut hashes, 0.05, true);
        assert_eq!(filter.last(), Some(&1));
        assert!((0..1000u32).all(|value| bloom::may_hold(&filter, &value.to_le_bytes())));
        let wrong = (1000..11_000u32).filter(|value| bloom::may_hold(&filter, &value.to_le_bytes())).count();
        assert!(wrong < 1000, "{wrong} of 10000");
    }
}
