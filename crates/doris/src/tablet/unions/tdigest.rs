//! The t-digest of a state of quantiles: centroids of values that lie together, small at both ends of the distribution.
//!
//! ```text
//! f32 compression, min, max | u64 most processed, most unprocessed | f32 processed weight, unprocessed weight
//! u32 n, (f32 mean, f32 weight)… processed | u32 n, (f32 mean, f32 weight)… unprocessed | u32 n, f32… cumulative
//! ```
//!
//! Values are added to the unprocessed centroids; when there are too many, they are sorted and merged with the processed
//! ones. All steps and roundings are those of Doris, so the bytes are, too, except where Doris's own depend on chance: on
//! the order in which it sorts unprocessed centroids of one mean and different weights, which it never makes itself, and of
//! zeros of different signs.

use pilaster_core::{Error, Result};

use super::{array, take, word};

/// Bytes of a centroid.
const CENTROID: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Centroid {
    mean: f32,
    weight: f32,
}

/// A t-digest, as Doris builds and stores it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Digest {
    compression: f32,
    min: f32,
    max: f32,
    max_processed: usize,
    max_unprocessed: usize,
    processed_weight: f32,
    unprocessed_weight: f32,
    processed: Vec<Centroid>,
    unprocessed: Vec<Centroid>,
    cumulative: Vec<f32>,
}

impl Digest {
    /// A digest without values. Its compression is between 2048 and 10000.
    pub fn new(compression: f32) -> Self {
        let [max_processed, max_unprocessed] = sizes(compression);
        Self {
            compression,
            min: f32::MAX,
            max: f32::MIN,
            max_processed,
            max_unprocessed,
            processed_weight: 0.0,
            unprocessed_weight: 0.0,
            processed: Vec::new(),
            unprocessed: Vec::new(),
            cumulative: Vec::new(),
        }
    }

    pub fn parse(rest: &mut &[u8]) -> Result<Self> {
        let float = |rest: &mut &[u8]| Ok::<_, Error>(f32::from_le_bytes(array(rest)?));
        let (compression, min, max) = (float(rest)?, float(rest)?, float(rest)?);
        let said = [u64::from_le_bytes(array(rest)?), u64::from_le_bytes(array(rest)?)];
        let [max_processed, max_unprocessed] = sizes(compression);
        if said != [max_processed as u64, max_unprocessed as u64] {
            return Err(Error::corrupt(
                format!("a t-digest for {max_processed} and {max_unprocessed} centroids"),
                format!("{said:?}"),
            ));
        }
        let digest = Self {
            compression,
            min,
            max,
            max_processed,
            max_unprocessed,
            processed_weight: float(rest)?,
            unprocessed_weight: float(rest)?,
            processed: centroids(rest)?,
            unprocessed: centroids(rest)?,
            cumulative: {
                let count = word(rest)? as usize;
                let bytes = take(rest, count.saturating_mul(size_of::<f32>()))?;
                bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect()
            },
        };
        // Otherwise every value that is added would make all centroids be merged.
        if digest.is_dirty() {
            return Err(Error::corrupt(
                format!("at most {max_processed} and {max_unprocessed} centroids"),
                format!("{} and {}", digest.processed.len(), digest.unprocessed.len()),
            ));
        }
        Ok(digest)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let count = |out: &mut Vec<u8>, count: usize| {
            out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
        };
        out.extend([self.compression, self.min, self.max].into_iter().flat_map(f32::to_le_bytes));
        out.extend(
            [self.max_processed as u64, self.max_unprocessed as u64].into_iter().flat_map(u64::to_le_bytes),
        );
        out.extend([self.processed_weight, self.unprocessed_weight].into_iter().flat_map(f32::to_le_bytes));
        for centroids in [&self.processed, &self.unprocessed] {
            count(&mut out, centroids.len());
            for centroid in centroids {
                out.extend([centroid.mean, centroid.weight].into_iter().flat_map(f32::to_le_bytes));
            }
        }
        count(&mut out, self.cumulative.len());
        out.extend(self.cumulative.iter().flat_map(|weight| weight.to_le_bytes()));
        out
    }

    /// Adds a value; NaN is ignored.
    pub fn add(&mut self, value: f32) -> Result<()> {
        if value.is_nan() {
            return Ok(());
        }
        self.unprocessed.push(Centroid { mean: value, weight: 1.0 });
        self.unprocessed_weight += 1.0;
        self.process_if_dirty()
    }

    /// Adds the centroids of another.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.merge_processed(other);
        self.unprocessed.extend(&other.unprocessed);
        self.unprocessed_weight += other.unprocessed_weight;
        self.process_if_dirty()?;
        self.update_cumulative();
        Ok(())
    }

    /// Merges two sorted lists. Of equal means the list that was not taken from last comes first, as out of a heap of two.
    fn merge_processed(&mut self, other: &Self) {
        if other.processed.is_empty() {
            return;
        }
        self.processed_weight += other.processed_weight;
        let (mut top, mut waiting) = (other.processed.as_slice(), self.processed.as_slice());
        let is_before = |one: &[Centroid], other: &[Centroid]| match (one.first(), other.first()) {
            (Some(one), Some(other)) => one.mean < other.mean,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if is_before(waiting, top) {
            std::mem::swap(&mut top, &mut waiting);
        }
        let mut sorted = Vec::with_capacity(top.len().saturating_add(waiting.len()));
        while let Some((first, rest)) = top.split_first() {
            sorted.push(*first);
            (top, waiting) = if is_before(rest, waiting) { (rest, waiting) } else { (waiting, rest) };
        }
        self.processed = sorted;
        self.update_bounds();
    }

    fn update_bounds(&mut self) {
        if let (Some(first), Some(last)) = (self.processed.first(), self.processed.last()) {
            // As the standard library of C++ does it, which keeps the first of two that cannot be compared.
            self.min = if first.mean < self.min { first.mean } else { self.min };
            self.max = if self.max < last.mean { last.mean } else { self.max };
        }
    }

    fn is_dirty(&self) -> bool {
        self.processed.len() > self.max_processed || self.unprocessed.len() > self.max_unprocessed
    }

    fn process_if_dirty(&mut self) -> Result<()> {
        if self.is_dirty() { self.process() } else { Ok(()) }
    }

    fn process(&mut self) -> Result<()> {
        let mut all = std::mem::take(&mut self.unprocessed);
        all.extend(std::mem::take(&mut self.processed));
        if all.iter().any(|centroid| !centroid.mean.is_finite()) {
            return Err(Error::unsupported("a t-digest of values beyond single precision"));
        }
        // Stable, and unprocessed ones come first where means are equal.
        all.sort_by(|a, b| a.mean.partial_cmp(&b.mean).unwrap_or(std::cmp::Ordering::Equal));
        self.processed_weight += self.unprocessed_weight;
        self.unprocessed_weight = 0.0;
        let Some((first, rest)) = all.split_first() else { return Ok(()) };
        let mut merged = vec![*first];
        let mut so_far = first.weight;
        let mut limit = self.processed_weight * self.quantile_of(1.0);
        for centroid in rest {
            let projected = so_far + centroid.weight;
            match merged.last_mut() {
                Some(last) if projected <= limit => {
                    so_far = projected;
                    last.add(centroid);
                }
                _ => {
                    let location = self.location_of(so_far / self.processed_weight);
                    #[expect(clippy::cast_possible_truncation, reason = "rounded as Doris rounds it")]
                    let next = (f64::from(location) + 1.0) as f32;
                    limit = self.processed_weight * self.quantile_of(next);
                    so_far += centroid.weight;
                    merged.push(*centroid);
                }
            }
        }
        // Weights that are not those of the centroids keep them apart.
        if merged.len() > self.max_processed {
            return Err(Error::corrupt(
                format!("a t-digest that has room in {} centroids", self.max_processed),
                merged.len(),
            ));
        }
        self.processed = merged;
        self.update_bounds();
        self.update_cumulative();
        Ok(())
    }

    fn update_cumulative(&mut self) {
        self.cumulative.clear();
        let mut before = 0.0f32;
        for centroid in &self.processed {
            self.cumulative.push(before + centroid.weight / 2.0);
            before += centroid.weight;
        }
        self.cumulative.push(before);
    }

    /// The scale: which centroid the part `quantile` of all weight is in.
    #[expect(clippy::cast_possible_truncation, reason = "computed in double, kept in single precision")]
    fn location_of(&self, quantile: f32) -> f32 {
        use std::f64::consts::PI;
        (f64::from(self.compression) * ((2.0 * f64::from(quantile) - 1.0).asin() + PI / 2.0) / PI) as f32
    }

    /// The other way.
    #[expect(clippy::cast_possible_truncation, reason = "computed in double, kept in single precision")]
    fn quantile_of(&self, location: f32) -> f32 {
        use std::f64::consts::PI;
        let location = if self.compression < location { self.compression } else { location };
        let angle = f64::from(location) * PI / f64::from(self.compression) - PI / 2.0;
        ((angle.sin() + 1.0) / 2.0) as f32
    }

    #[cfg(test)]
    pub fn weight(&self) -> f32 {
        self.processed_weight + self.unprocessed_weight
    }

    #[cfg(test)]
    pub fn processed_centroids(&self) -> usize {
        self.processed.len()
    }
}

impl Centroid {
    fn add(&mut self, other: &Self) {
        if self.weight == 0.0 {
            *self = *other;
        } else {
            self.weight += other.weight;
            self.mean += other.weight * (other.mean - self.mean) / self.weight;
        }
    }
}

/// How many centroids a digest holds, processed and not.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes the nearest number there is"
)]
fn sizes(compression: f32) -> [usize; 2] {
    let rounded = compression.ceil();
    [2.0 * rounded, 8.0 * rounded].map(|size| size as usize)
}

fn centroids(rest: &mut &[u8]) -> Result<Vec<Centroid>> {
    let count = word(rest)? as usize;
    let bytes = take(rest, count.saturating_mul(CENTROID))?;
    let mut found = Vec::with_capacity(count);
    for [m0, m1, m2, m3, w0, w1, w2, w3] in bytes.as_chunks::<CENTROID>().0 {
        let centroid = Centroid {
            mean: f32::from_le_bytes([*m0, *m1, *m2, *m3]),
            weight: f32::from_le_bytes([*w0, *w1, *w2, *w3]),
        };
        if centroid.mean.is_nan() || !(centroid.weight > 0.0 && centroid.weight.is_finite()) {
            return Err(Error::corrupt("a centroid with a mean and a weight", format!("{centroid:?}")));
        }
        found.push(centroid);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: impl IntoIterator<Item = f32>) -> Digest {
        let mut digest = Digest::new(2048.0);
        for value in values {
            digest.add(value).unwrap();
        }
        digest
    }

    fn parse(mut bytes: &[u8]) -> Result<Digest> {
        let digest = Digest::parse(&mut bytes)?;
        super::super::end(bytes, "a t-digest")?;
        Ok(digest)
    }

    #[test]
    fn values_wait_until_there_are_eight_for_each_centroid() {
        let digest = of((0..16_384u16).map(f32::from));
        assert_eq!((digest.processed.len(), digest.unprocessed.len()), (0, 16_384));
        assert_eq!((digest.min, digest.max), (f32::MAX, f32::MIN));
        let digest = of((0..=16_384u16).rev().map(f32::from));
        assert_eq!((digest.min, digest.max), (0.0, 16_384.0));
        assert_eq!((digest.weight(), digest.unprocessed.len()), (16_385.0, 0));
        assert!((1000..=4096).contains(&digest.processed.len()), "{}", digest.processed.len());
        // Centroids at the ends are single values, those in the middle are of several.
        assert_eq!(digest.processed[0], Centroid { mean: 0.0, weight: 1.0 });
        let middle = digest.processed[digest.processed.len() / 2];
        assert!(middle.weight > 5.0 && (middle.mean - 8192.0).abs() < 200.0, "{middle:?}");
        // Half of each centroid's weight, and what was before it.
        assert_eq!(digest.cumulative.len(), digest.processed.len() + 1);
        assert_eq!((digest.cumulative[0], *digest.cumulative.last().unwrap()), (0.5, 16_385.0));
        assert!(digest.processed.is_sorted_by(|a, b| a.mean <= b.mean));
    }

    #[test]
    fn lists_of_equal_means_are_taken_from_in_turn() {
        let with = |weights: &[f32]| {
            let mut digest = Digest::new(2048.0);
            digest.processed = weights.iter().map(|weight| Centroid { mean: 1.0, weight: *weight }).collect();
            digest.processed_weight = weights.iter().sum();
            digest
        };
        let mut one = with(&[10.0, 11.0]);
        one.merge(&with(&[20.0, 21.0, 22.0])).unwrap();
        let weights: Vec<_> = one.processed.iter().map(|centroid| centroid.weight).collect();
        assert_eq!(weights, [20.0, 10.0, 21.0, 11.0, 22.0]);
        assert_eq!(one.cumulative, [10.0, 25.0, 40.5, 56.5, 73.0, 84.0]);
        let mut empty = Digest::new(2048.0);
        empty.merge(&one).unwrap();
        assert_eq!(empty.processed, one.processed);
        one.merge(&Digest::new(2048.0)).unwrap();
        assert_eq!(empty.processed, one.processed);
    }

    #[test]
    fn digests_that_lie_are_refused() {
        let whole = of((0..20_000u16).map(f32::from)).to_bytes();
        assert_eq!(parse(&whole).unwrap().to_bytes(), whole);
        for length in [0, 4, 11, 40, 44, 100, whole.len() - 1] {
            assert!(parse(&whole[..length]).is_err(), "{length}");
        }
        // Room for no centroids; a weight of zero; a mean that is no number.
        for (at, bytes) in [(12, &[0; 8][..]), (44, &[0; 4]), (40, &[0, 0, 0xc0, 0x7f])] {
            let mut changed = whole.clone();
            changed[at..at + bytes.len()].copy_from_slice(bytes);
            assert!(parse(&changed).is_err(), "byte {at}");
        }
        // A total weight that is far too small keeps all centroids apart.
        let mut changed = whole.clone();
        changed[28..32].copy_from_slice(&1e-30f32.to_le_bytes());
        let mut digest = parse(&changed).unwrap();
        let ended = (0..30_000u16).map(|value| digest.add(f32::from(value))).find(Result::is_err);
        assert!(ended.is_some());
    }

    #[test]
    fn infinite_values_are_not_merged() {
        let mut digest = of([f32::INFINITY]);
        assert!((0..20_000u16).map(|value| digest.add(f32::from(value))).any(|added| added.is_err()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn weight_and_order_are_kept(seed in any::<u32>(), sizes in prop::collection::vec(1usize..30_000, 1..4)) {
            let mut state = seed;
            let mut all = Digest::new(2048.0);
            let mut expected = 0.0;
            for size in sizes {
                let part = of((0..size).map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    f32::from((state >> 16) as u16)
                }));
                expected += size as f32;
                all.merge(&part).unwrap();
            }
            prop_assert_eq!(all.weight(), expected);
            prop_assert!(all.processed.is_sorted_by(|a, b| a.mean <= b.mean));
            let sum: f32 = all.processed.iter().map(|centroid| centroid.weight).sum();
            prop_assert_eq!(sum, all.processed_weight);
            prop_assert_eq!(parse(&all.to_bytes()).unwrap(), all);
        }
    }
}
