//! Minima and maxima of files of versions 1 and 2, in the form of version 3.
//!
//! They are there for dimensions alone, one per chunk: codes of dictionaries, days, seconds, bytes of texts. Those of a
//! group of columns are packed keys and prune nothing.

use bytes::Bytes;

use super::footer::LegacyStatistics;
use crate::file::page::encoding::DIRECT_DICTIONARY;
use crate::messages::{ColumnSchema, MinMax};

/// Number of the type of timestamps.
const TIMESTAMP: i32 = 6;

/// The statistics of a blocklet, one per column.
pub(super) fn min_max(
    known: &LegacyStatistics,
    columns: &[ColumnSchema],
    places: &[usize],
    group_bits: &[Option<(u32, u32)>],
) -> MinMax {
    let mut all = MinMax { min: Vec::new(), max: Vec::new(), is_present: Vec::new() };
    for (number, column) in columns.iter().enumerate() {
        let is_alone = column.is_dimension && group_bits.get(number).is_some_and(Option::is_none);
        let of = |list: &[Bytes]| places.get(number).and_then(|place| list.get(*place)).cloned();
        let bounds = of(&known.min).zip(of(&known.max)).filter(|_| is_alone);
        let is_time = column.data_type == TIMESTAMP && column.encoders.contains(&DIRECT_DICTIONARY);
        let bounds = match bounds {
            Some((min, max)) if is_time => time(&min).zip(time(&max)),
            bounds => bounds,
        };
        all.is_present.push(bounds.is_some());
        let (min, max) = bounds.unwrap_or_default();
        all.min.push(min);
        all.max.push(max);
    }
    all
}

/// Seconds since 1970 and 2 more, as milliseconds with the sign bit flipped.
fn time(bytes: &[u8]) -> Option<Bytes> {
    let seconds = i64::from(u32::from_be_bytes(bytes.try_into().ok()?)).saturating_sub(2);
    let milliseconds = seconds.saturating_mul(1000) ^ i64::MIN;
    Some(Bytes::copy_from_slice(&milliseconds.to_be_bytes()))
}
