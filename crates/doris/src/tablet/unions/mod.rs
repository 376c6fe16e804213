//! Unions of opaque values: bitmaps and HyperLogLog sketches.
//!
//! ```text
//! BITMAP   0 | 1, u32 | 3, u64 | 2, roaring | 4, varint n, (u32 high, roaring)… | 5, u8 n, u64… | 10, u32 n, u64…
//! HLL      0 | 1, u8 n, u64 hash… | 2, u32 n, (u16 register, u8 value)… | 3, u8 of each of 16384 registers
//! ```

use std::collections::BTreeSet;

use pilaster_core::{Error, Result};
use pilaster_encoding::varint;
use roaring::{RoaringBitmap, RoaringTreemap};

/// Hashes up to this many are listed in a sketch; more become registers.
const MAX_HASHES: usize = 160;
const REGISTERS: usize = 16_384;

/// The union of values of a column that is aggregated by `name`; `None` if there is no such union here.
pub(super) fn union<'a>(name: &str, values: impl Iterator<Item = &'a [u8]>) -> Option<Result<Vec<u8>>> {
    match name {
        "BITMAP_UNION" => Some(bitmap_union(values)),
        "HLL_UNION" => Some(hll_union(values)),
        _ => None,
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count).ok_or_else(|| {
        Error::corrupt(format!("{count} bytes of an opaque value"), format!("{} bytes", rest.len()))
    })?;
    *rest = after;
    Ok(taken)
}

fn numbers(rest: &mut &[u8], count: usize) -> Result<Vec<u64>> {
    let bytes = take(rest, count.saturating_mul(8))?;
    Ok(bytes.as_chunks::<8>().0.iter().map(|eight| u64::from_le_bytes(*eight)).collect())
}

fn roaring(rest: &mut &[u8]) -> Result<RoaringBitmap> {
    RoaringBitmap::deserialize_from(rest).map_err(|error| Error::corrupt("a roaring bitmap", error))
}

fn bitmap_union<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<Vec<u8>> {
    let mut all = RoaringTreemap::new();
    for value in values {
        add_bitmap(value, &mut all)?;
    }
    let mut out = Vec::new();
    match (all.len(), all.min(), all.max()) {
        (0, ..) => out.push(0),
        (1, Some(only), _) => match u32::try_from(only) {
            Ok(narrow) => {
                out.push(1);
                out.extend(narrow.to_le_bytes());
            }
            Err(_) => {
                out.push(3);
                out.extend(only.to_le_bytes());
            }
        },
        (_, _, max) => {
            let parts: Vec<_> = all.bitmaps().collect();
            let is_narrow = max.is_some_and(|max| u32::try_from(max).is_ok());
            out.push(if is_narrow { 2 } else { 4 });
            if !is_narrow {
                varint::write_u64(&mut out, parts.len() as u64);
            }
            for (high, part) in parts {
                if !is_narrow {
                    out.extend(high.to_le_bytes());
                }
                part.serialize_into(&mut out)?;
            }
        }
    }
    Ok(out)
}

fn add_bitmap(value: &[u8], all: &mut RoaringTreemap) -> Result<()> {
    let Some((kind, mut rest)) = value.split_first() else { return Ok(()) };
    let rest = &mut rest;
    match kind {
        0 => {}
        1 => {
            all.extend([take(rest, 4)?.first_chunk().map_or(0, |four| u64::from(u32::from_le_bytes(*four)))])
        }
        2 => all.extend(roaring(rest)?.iter().map(u64::from)),
        3 => all.extend(numbers(rest, 1)?),
        4 => {
            let mut at = 0;
            let count = varint::read_u64(rest, &mut at)?;
            take(rest, at)?;
            for _ in 0..count {
                let high =
                    take(rest, 4)?.first_chunk().map_or(0, |four| u64::from(u32::from_le_bytes(*four)));
                all.extend(roaring(rest)?.iter().map(|low| high << 32 | u64::from(low)));
            }
        }
        5 => {
            let count = usize::from(take(rest, 1)?.first().copied().unwrap_or_default());
            all.extend(numbers(rest, count)?);
        }
        10 => {
            let count = take(rest, 4)?.first_chunk().map_or(0, |four| u32::from_le_bytes(*four));
            all.extend(numbers(rest, count as usize)?);
        }
        other => return Err(Error::unsupported(format!("the union of bitmaps of form {other}"))),
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(Error::corrupt("the end of a bitmap", format!("{} more bytes", rest.len())))
    }
}

fn hll_union<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<Vec<u8>> {
    let (mut hashes, mut registers) = (BTreeSet::new(), None::<Vec<u8>>);
    for value in values {
        let Some((kind, mut rest)) = value.split_first() else { continue };
        let rest = &mut rest;
        match kind {
            0 => {}
            1 => {
                let count = usize::from(take(rest, 1)?.first().copied().unwrap_or_default());
                hashes.extend(numbers(rest, count)?);
            }
            2 => {
                let count = take(rest, 4)?.first_chunk().map_or(0, |four| u32::from_le_bytes(*four)) as usize;
                let entries = take(rest, count.saturating_mul(3))?;
                for [low, high, value] in entries.as_chunks::<3>().0 {
                    raise(&mut registers, usize::from(u16::from_le_bytes([*low, *high])), *value)?;
                }
            }
            3 => {
                for (register, value) in take(rest, REGISTERS)?.iter().enumerate() {
                    raise(&mut registers, register, *value)?;
                }
            }
            other => return Err(Error::corrupt("a sketch of form 0 to 3", other)),
        }
        if !rest.is_empty() {
            return Err(Error::corrupt("the end of a sketch", format!("{} more bytes", rest.len())));
        }
    }
    match (hashes.len(), registers) {
        (0, None) => Ok(vec![0]),
        (0, Some(registers)) => Ok([vec![3], registers].concat()),
        (count, None) if count <= MAX_HASHES => {
            let mut out = vec![1, u8::try_from(count).unwrap_or(u8::MAX)];
            out.extend(hashes.into_iter().flat_map(u64::to_le_bytes));
            Ok(out)
        }
        _ => Err(Error::unsupported("the union of sketches that list hashes with sketches that do not")),
    }
}

/// Raises a register to at least `value`.
fn raise(registers: &mut Option<Vec<u8>>, register: usize, value: u8) -> Result<()> {
    let registers = registers.get_or_insert_with(|| vec![0; REGISTERS]);
    let slot =
        registers.get_mut(register).ok_or_else(|| Error::corrupt("a register below 16384", register))?;
    *slot = value.max(*slot);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bitmap(values: &[&[u8]]) -> Vec<u8> {
        bitmap_union(values.iter().copied()).unwrap()
    }

    fn members(value: &[u8]) -> Vec<u64> {
        let mut all = RoaringTreemap::new();
        add_bitmap(value, &mut all).unwrap();
        all.iter().collect()
    }

    #[test]
    fn bitmaps_of_every_form() {
        assert_eq!(bitmap(&[b"\0", b""]), [0]);
        assert_eq!(bitmap(&[b"\x01\xc8\0\0\0", b"\x01\xc8\0\0\0"]), b"\x01\xc8\0\0\0");
        let set = b"\x05\x02\x14\0\0\0\0\0\0\0\x15\0\0\0\0\0\0\0";
        assert_eq!(members(&bitmap(&[set, b"\x01\xc8\0\0\0"])), [20, 21, 200]);
        let wide = b"\x03\0\0\0\0\x01\0\0\0";
        assert_eq!(bitmap(&[wide, b"\0"]), wide);
        let both = bitmap(&[wide, set]);
        assert_eq!((both[0], members(&both)), (4, vec![20, 21, 1 << 32]));
        assert!(bitmap_union([&b"\x0c"[..]].into_iter()).is_err());
        assert!(bitmap_union([&b"\x01\0\0\0\0\0"[..]].into_iter()).is_err());
    }

    #[test]
    fn sketches_of_hashes_and_of_registers() {
        let hashes = |values: &[u64]| {
            [vec![1, values.len() as u8], values.iter().flat_map(|value| value.to_le_bytes()).collect()]
                .concat()
        };
        let found = hll_union([hashes(&[5, 7]), hashes(&[7, 9]), vec![0]].iter().map(Vec::as_slice)).unwrap();
        assert_eq!(found, hashes(&[5, 7, 9]));
        let sparse = |value: u8| vec![2, 1, 0, 0, 0, 3, 0, value];
        let full = hll_union([sparse(4), sparse(6), sparse(5)].iter().map(Vec::as_slice)).unwrap();
        assert_eq!((full.len(), full[0], full[4]), (REGISTERS + 1, 3, 6));
        assert!(hll_union([sparse(4), hashes(&[1])].iter().map(Vec::as_slice)).is_err());
        assert!(hll_union([&[2u8, 1, 0, 0, 0, 0xff, 0xff, 1][..]].into_iter()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_united_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0u8..12) {
            let value = [&[kind][..], &bytes].concat();
            let _ = bitmap_union([value.as_slice()].into_iter());
            let _ = hll_union([value.as_slice()].into_iter());
        }

        #[test]
        fn united_bitmaps_hold_what_each_held(a in prop::collection::btree_set(any::<u64>(), 0..40), b in prop::collection::btree_set(0u64..100, 0..40)) {
            let set = |values: &BTreeSet<u64>| {
                let mut out = vec![10];
                out.extend((values.len() as u32).to_le_bytes());
                out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                out
            };
            let united = bitmap(&[&set(&a), &set(&b)]);
            prop_assert_eq!(members(&united), a.union(&b).copied().collect::<Vec<_>>());
            prop_assert_eq!(members(&bitmap(&[&united])), members(&united));
        }
    }
}
