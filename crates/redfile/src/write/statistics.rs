//! Bounds and counts of pages and chunks.

use std::cmp::Ordering;

use crate::metadata::Statistics;
use crate::schema::Order;

/// Longer bounds of byte strings are cut.
const MAX_BOUND_BYTES: usize = 64;

/// Least and greatest of some values, and how many there are.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Extremes {
    pub bounds: Bounds,
    pub nulls: u64,
    pub values: u64,
    pub nans: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Bounds {
    /// No values, or values without an order.
    #[default]
    None,
    Bool(bool, bool),
    /// Numbers of 32, 64 and 96 bits; unsigned ones as they are.
    Int(i128, i128),
    Float(f32, f32),
    Double(f64, f64),
    Bytes(Vec<u8>, Vec<u8>),
    /// Big-endian two's complement, by value.
    Decimal(Vec<u8>, Vec<u8>),
}

/// Big-endian two's complement numbers of any length, by value.
pub(crate) fn compare_decimals(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (crate::schema::decimal_bytes(a), crate::schema::decimal_bytes(b));
    let is_negative = |bytes: &[u8]| bytes.first().is_some_and(|byte| *byte >= 0x80);
    match (is_negative(a), is_negative(b)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        // Of negative numbers in their shortest form the longer is the lesser.
        (true, true) => b.len().cmp(&a.len()).then_with(|| a.cmp(b)),
    }
}

/// Lanes in which bounds are kept, so that one value need not wait for another.
const LANES: usize = 8;

macro_rules! range_of {
    ($name:ident, $t:ty, $min:expr, $max:expr) => {
        /// Least and greatest number, and how many are none. The lanes are compared one by one, so that the loop is vectorised.
        fn $name(values: impl ExactSizeIterator<Item = $t> + Clone) -> ($t, $t, u64) {
            let (mut low, mut high, mut nans) = ([$max; LANES], [$min; LANES], 0u64);
            let mut values = values;
            while values.len() >= LANES {
                for (low, high) in low.iter_mut().zip(&mut high) {
                    let value = values.next().unwrap_or_default();
                    *low = if value < *low { value } else { *low };
                    *high = if value > *high { value } else { *high };
                    // What is no number is not equal to itself.
                    nans = nans.wrapping_add(u64::from(value != value));
                }
            }
            let (mut least, mut most) = ($max, $min);
            for value in low.into_iter().chain(values.clone()) {
                least = if value < least { value } else { least };
            }
            for value in high.into_iter().chain(values.clone()) {
                most = if value > most { value } else { most };
            }
            let last_nans = values.filter(|value| *value != *value).count();
            (least, most, nans.wrapping_add(last_nans as u64))
        }
    };
}

range_of!(double_range, f64, f64::NEG_INFINITY, f64::INFINITY);
range_of!(float_range, f32, f32::NEG_INFINITY, f32::INFINITY);
range_of!(i64_range, i64, i64::MIN, i64::MAX);
range_of!(u64_range, u64, 0, u64::MAX);
range_of!(i32_range, i32, i32::MIN, i32::MAX);
range_of!(u32_range, u32, 0, u32::MAX);

impl Extremes {
    pub fn of_bits(values: &[u8]) -> Self {
        let any = |wanted: u8| values.contains(&wanted);
        let bounds = if values.is_empty() { Bounds::None } else { Bounds::Bool(!any(0), any(1)) };
        Self { bounds, values: values.len() as u64, ..Self::default() }
    }

    pub fn of_words(words: &[u32], order: Order) -> Self {
        let mut extremes = Self { values: words.len() as u64, ..Self::default() };
        if words.is_empty() {
            return extremes;
        }
        match order {
            Order::Signed => {
                let (low, high, _) = i32_range(words.iter().map(|word| word.cast_signed()));
                extremes.bounds = Bounds::Int(low.into(), high.into());
            }
            Order::Unsigned => {
                let (low, high, _) = u32_range(words.iter().copied());
                extremes.bounds = Bounds::Int(low.into(), high.into());
            }
            Order::Float => {
                let (low, high, nans) = float_range(words.iter().map(|word| f32::from_bits(*word)));
                extremes.nans = nans;
                if nans < extremes.values {
                    extremes.bounds = Bounds::Float(low, high);
                }
            }
            _ => {}
        }
        extremes
    }

    pub fn of_longs(longs: &[u64], order: Order) -> Self {
        let mut extremes = Self { values: longs.len() as u64, ..Self::default() };
        if longs.is_empty() {
            return extremes;
        }
        match order {
            Order::Signed => {
                let (low, high, _) = i64_range(longs.iter().map(|long| long.cast_signed()));
                extremes.bounds = Bounds::Int(low.into(), high.into());
            }
            Order::Unsigned => {
                let (low, high, _) = u64_range(longs.iter().copied());
                extremes.bounds = Bounds::Int(low.into(), high.into());
            }
            Order::Float => {
                let (low, high, nans) = double_range(longs.iter().map(|long| f64::from_bits(*long)));
                extremes.nans = nans;
                if nans < extremes.values {
                    extremes.bounds = Bounds::Double(low, high);
                }
            }
            _ => {}
        }
        extremes
    }

    pub fn of_wide(wide: &[i128]) -> Self {
        let range = wide.iter().min().zip(wide.iter().max());
        let bounds = range.map_or(Bounds::None, |(low, high)| Bounds::Int(*low, *high));
        Self { bounds, values: wide.len() as u64, ..Self::default() }
    }

    pub fn of_strings<'a>(strings: impl Iterator<Item = &'a [u8]> + Clone, order: Order) -> Self {
        let values = strings.clone().count() as u64;
        let compare = |a: &&'a [u8], b: &&'a [u8]| match order {
            Order::DecimalBytes => compare_decimals(a, b),
            _ => a.cmp(b),
        };
        let range = strings.clone().min_by(compare).zip(strings.max_by(compare));
        let bounds = match range {
            None => Bounds::None,
            Some((low, high)) if order == Order::DecimalBytes => Bounds::Decimal(low.to_vec(), high.to_vec()),
            Some((low, high)) => Bounds::Bytes(low.to_vec(), high.to_vec()),
        };
        Self { bounds, values, ..Self::default() }
    }

    /// Takes in what is known of other values of the same column.
    pub fn merge(&mut self, other: &Self) {
        self.nulls = self.nulls.saturating_add(other.nulls);
        self.values = self.values.saturating_add(other.values);
        self.nans = self.nans.saturating_add(other.nans);
        match (&mut self.bounds, &other.bounds) {
            (_, Bounds::None) => {}
            (own @ Bounds::None, other) => *own = other.clone(),
            (Bounds::Bool(low, high), Bounds::Bool(other_low, other_high)) => {
                *low &= other_low;
                *high |= other_high;
            }
            (Bounds::Int(low, high), Bounds::Int(other_low, other_high)) => {
                *low = (*low).min(*other_low);
                *high = (*high).max(*other_high);
            }
            (Bounds::Float(low, high), Bounds::Float(other_low, other_high)) => {
                *low = low.min(*other_low);
                *high = high.max(*other_high);
            }
            (Bounds::Double(low, high), Bounds::Double(other_low, other_high)) => {
                *low = low.min(*other_low);
                *high = high.max(*other_high);
            }
            (Bounds::Bytes(low, high), Bounds::Bytes(other_low, other_high)) => {
                if other_low < low {
                    low.clone_from(other_low);
                }
                if other_high > high {
                    high.clone_from(other_high);
                }
            }
            (Bounds::Decimal(low, high), Bounds::Decimal(other_low, other_high)) => {
                if compare_decimals(other_low, low) == Ordering::Less {
                    low.clone_from(other_low);
                }
                if compare_decimals(other_high, high) == Ordering::Greater {
                    high.clone_from(other_high);
                }
            }
            _ => {}
        }
    }

    /// As it stands in a file; `width` is that of the physical type in bytes.
    pub fn statistics(&self, order: Order, width: usize) -> Statistics {
        let mut statistics =
            Statistics { null_count: i64::try_from(self.nulls).ok(), ..Statistics::default() };
        if order == Order::Float && self.values > 0 {
            statistics.nan_count = i64::try_from(self.nans).ok();
        }
        let low_bytes = |number: &i128| number.to_le_bytes().get(..width).map(<[u8]>::to_vec);
        let (min, max) = match &self.bounds {
            Bounds::None => (None, None),
            Bounds::Bool(low, high) => (Some(vec![u8::from(*low)]), Some(vec![u8::from(*high)])),
            Bounds::Int(low, high) => (low_bytes(low), low_bytes(high)),
            // Zeros are equal, so the bounds take the one that is further out.
            Bounds::Float(low, high) => {
                let low = if *low == 0.0 { -0.0 } else { *low };
                let high = if *high == 0.0 { 0.0 } else { *high };
                (Some(low.to_le_bytes().to_vec()), Some(high.to_le_bytes().to_vec()))
            }
            Bounds::Double(low, high) => {
                let low = if *low == 0.0 { -0.0 } else { *low };
                let high = if *high == 0.0 { 0.0 } else { *high };
                (Some(low.to_le_bytes().to_vec()), Some(high.to_le_bytes().to_vec()))
            }
            Bounds::Decimal(low, high) => (Some(low.clone()), Some(high.clone())),
            Bounds::Bytes(low, high) => {
                let is_min_cut = low.len() > MAX_BOUND_BYTES;
                let is_max_cut = high.len() > MAX_BOUND_BYTES;
                let max = if is_max_cut { cut_max(high) } else { Some(high.clone()) };
                let Some(max) = max else { return statistics };
                statistics.is_min_exact = is_min_cut.then_some(false);
                statistics.is_max_exact = is_max_cut.then_some(false);
                (Some(low.get(..MAX_BOUND_BYTES).unwrap_or(low).to_vec()), Some(max))
            }
        };
        (statistics.min, statistics.max) = (min, max);
        statistics
    }
}

/// The least short string that is not below `bytes`; `None` if there is none.
fn cut_max(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut max = bytes.get(..MAX_BOUND_BYTES)?.to_vec();
    while max.last() == Some(&0xff) {
        max.pop();
    }
    let last = max.last_mut()?;
    *last = last.saturating_add(1);
    Some(max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_bounds_are_cut_to_bounds_still() {
        let mut long = vec![b'a'; 70];
        assert_eq!(cut_max(&long).unwrap().last(), Some(&b'b'));
        long[63] = 0xff;
        let cut = cut_max(&long).unwrap();
        assert_eq!((cut.len(), cut.last()), (63, Some(&b'b')));
        assert_eq!(cut_max(&[0xff; 65]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn decimals_compare_as_numbers(a in any::<i64>(), b in prop_oneof![any::<i64>(), -300i64..300]) {
            prop_assert_eq!(compare_decimals(&a.to_be_bytes(), &i128::from(b).to_be_bytes()), a.cmp(&b));
        }

        #[test]
        fn float_bounds_leave_out_what_is_no_number(values in prop::collection::vec(prop_oneof![any::<f64>(), Just(f64::NAN), -2.0f64..2.0], 0..40)) {
            let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            let extremes = Extremes::of_longs(&bits, Order::Float);
            let numbers: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
            prop_assert_eq!(extremes.nans as usize, values.len() - numbers.len());
            match extremes.bounds {
                Bounds::Double(low, high) => {
                    prop_assert_eq!(low, numbers.iter().copied().fold(f64::INFINITY, f64::min));
                    prop_assert_eq!(high, numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                }
                _ => prop_assert!(numbers.is_empty()),
            }
        }
    }
}
