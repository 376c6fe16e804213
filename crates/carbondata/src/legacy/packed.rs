//! Numbers of as many bits as the writer's blocklet size needed, which the file does not say.
//!
//! They are one big-endian bit string aligned to the end of the bytes. The width is found by trying: only the right one gives
//! runs that add up to the rows, or ids that are every row once.

use pilaster_encoding::{DecodeError, Result};

/// 17 bits is what the default of 120,000 rows needs.
const WIDTHS: [u32; 19] = [17, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24];

/// All numbers of `width` bits in `bytes`.
fn unpack(bytes: &[u8], width: u32) -> Vec<u32> {
    let bits = bytes.len().saturating_mul(8);
    let step = usize::try_from(width).unwrap_or(1).max(1);
    let count = bits.checked_div(step).unwrap_or(0);
    let first = bits.saturating_sub(count.saturating_mul(step));
    (0..count)
        .map(|number| {
            let start = first.saturating_add(number.saturating_mul(step));
            (start..start.saturating_add(step)).fold(0u32, |value, bit| {
                let byte = bytes.get(bit / 8).copied().unwrap_or(0);
                (value << 1) | u32::from(byte.reverse_bits() >> (bit % 8) & 1)
            })
        })
        .collect()
}

/// For each row which of the `stored` values it has, out of pairs of start and count.
pub(crate) fn expand_runs(page: &[u8], stored: usize, rows: usize) -> Result<Vec<u32>> {
    WIDTHS
        .iter()
        .find_map(|width| {
            let numbers = unpack(page, *width);
            let (pairs, rest) = numbers.as_chunks::<2>();
            let is_right = rest.is_empty()
                && pairs.len() == stored
                && pairs.iter().all(|[_, count]| *count > 0)
                && pairs.iter().map(|[_, count]| u64::from(*count)).sum::<u64>() == rows as u64;
            is_right.then(|| {
                let repeat = |(value, pair): (u32, &[u32; 2])| std::iter::repeat_n(value, pair[1] as usize);
                (0u32..).zip(pairs).flat_map(repeat).collect()
            })
        })
        .ok_or_else(|| DecodeError::new(0, format!("runs of {stored} values over {rows} rows"), "none"))
}

/// For each of `rows` rows which of the stored values it has.
pub(crate) fn row_order(page: &[u8], rows: usize) -> Result<Vec<u32>> {
    let cut = || DecodeError::new(0, "row ids with their length", format!("{} bytes", page.len()));
    let (length, body) = page.split_first_chunk::<4>().ok_or_else(cut)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    let (ids, pairs) = body.split_at_checked(length).ok_or_else(cut)?;
    WIDTHS
        .iter()
        .find_map(|width| permutation(&unpack(ids, *width), &unpack(pairs, *width), rows))
        .ok_or_else(|| DecodeError::new(4, format!("each of {rows} row ids once"), "other numbers"))
}

/// Ids, some of which (at the places in `pairs`) begin a run that ends with the next.
fn permutation(ids: &[u32], pairs: &[u32], rows: usize) -> Option<Vec<u32>> {
    let mut order = vec![u32::MAX; rows];
    let mut stored = 0u32;
    let mut place = |id: u32| -> Option<()> {
        let slot = order.get_mut(id as usize).filter(|slot| **slot == u32::MAX)?;
        *slot = stored;
        stored = stored.saturating_add(1);
        Some(())
    };
    let mut pairs = pairs.iter().peekable();
    let mut ids = ids.iter().enumerate();
    while let Some((at, id)) = ids.next() {
        if pairs.next_if(|pair| **pair as usize == at).is_some() {
            let (_, last) = ids.next()?;
            if last < id || *last as usize >= rows {
                return None;
            }
            (*id..=*last).try_for_each(&mut place)?;
        } else {
            place(*id)?;
        }
    }
    (pairs.next().is_none() && stored as usize == rows).then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pack(numbers: &[u32], width: u32) -> Vec<u8> {
        let bits: Vec<u8> =
            numbers.iter().flat_map(|n| (0..width).rev().map(move |bit| ((n >> bit) & 1) as u8)).collect();
        let padding = (8 - bits.len() % 8) % 8;
        let bits = [vec![0; padding], bits].concat();
        bits.chunks(8).map(|byte| byte.iter().fold(0, |value, bit| (value << 1) | bit)).collect()
    }

    #[test]
    fn numbers_stand_at_the_right() {
        for width in WIDTHS {
            let numbers = [1, 5, 0, 33, 63];
            let found = unpack(&pack(&numbers, width), width);
            assert_eq!(found[found.len() - 5..], numbers, "{width}");
        }
    }

    #[test]
    fn the_width_is_found() {
        for width in [11, 17] {
            assert_eq!(expand_runs(&pack(&[0, 2, 2, 40], width), 2, 42).unwrap().len(), 42);
            let page = [&4u32.to_be_bytes()[..], &pack(&[3, 0, 2], width)].concat();
            let length = (page.len() - 4) as u32;
            let mut page = page;
            page[..4].copy_from_slice(&length.to_be_bytes());
            page.extend(pack(&[1], width));
            assert_eq!(row_order(&page, 4).unwrap(), [1, 2, 3, 0]);
        }
    }

    proptest! {
        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60), rows in 0usize..50) {
            let _ = row_order(&bytes, rows);
            let _ = expand_runs(&bytes, rows / 2, rows);
        }
    }
}
