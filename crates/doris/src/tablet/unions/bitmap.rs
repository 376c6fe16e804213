//! Bitmaps.
//!
//! ```text
//! 0 | 1, u32 | 3, u64 | 2, roaring | 4, varint n, (u32 high, roaring)… | 5, u8 n, u64… | 10, u32 n, u64…
//! 12, native | 13, varint n, (u32 high, native)…
//! roaring = the portable form of all libraries
//! native  = 1, u32 n, u32… | 2, roaring          as CRoaring writes it, whichever is smaller
//! ```

use pilaster_core::{Error, Result};
use pilaster_encoding::varint;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::{array, end, longs, take, word};

pub(super) fn union<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<Vec<u8>> {
    let mut all = RoaringTreemap::new();
    for value in values {
        add(value, &mut all)?;
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

fn add(value: &[u8], all: &mut RoaringTreemap) -> Result<()> {
    let Some((kind, mut rest)) = value.split_first() else { return Ok(()) };
    let rest = &mut rest;
    match kind {
        0 => {}
        1 => all.extend([u64::from(word(rest)?)]),
        2 => add_part(0, &portable(rest)?, all),
        3 => all.extend(longs(rest, 1)?),
        4 => add_parts(rest, portable, all)?,
        5 => {
            let [count] = array(rest)?;
            all.extend(longs(rest, usize::from(count))?);
        }
        10 => {
            let count = word(rest)?;
            all.extend(longs(rest, count as usize)?);
        }
        12 => add_part(0, &native(rest)?, all),
        13 => add_parts(rest, native, all)?,
        other => return Err(Error::corrupt("a bitmap of form 0 to 5, 10, 12 or 13", other)),
    }
    end(rest, "a bitmap")
}

fn add_parts(
    rest: &mut &[u8],
    part: impl Fn(&mut &[u8]) -> Result<RoaringBitmap>,
    all: &mut RoaringTreemap,
) -> Result<()> {
    let mut at = 0;
    let count = varint::read_u64(rest, &mut at)?;
    take(rest, at)?;
    // Every part takes bytes, so that a count that lies ends with them.
    for _ in 0..count {
        let high = word(rest)?;
        add_part(high, &part(rest)?, all);
    }
    Ok(())
}

fn add_part(high: u32, part: &RoaringBitmap, all: &mut RoaringTreemap) {
    all.extend(part.iter().map(|low| u64::from(high) << 32 | u64::from(low)));
}

fn portable(rest: &mut &[u8]) -> Result<RoaringBitmap> {
    RoaringBitmap::deserialize_from(rest).map_err(|error| Error::corrupt("a roaring bitmap", error))
}

fn native(rest: &mut &[u8]) -> Result<RoaringBitmap> {
    match array(rest)? {
        [1] => {
            let count = word(rest)? as usize;
            let members = take(rest, count.saturating_mul(4))?.as_chunks::<4>().0;
            Ok(members.iter().map(|four| u32::from_le_bytes(*four)).collect())
        }
        [2] => portable(rest),
        [other] => Err(Error::corrupt("members (1) or containers (2) of a bitmap", other)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    fn united(values: &[&[u8]]) -> Vec<u8> {
        union(values.iter().copied()).unwrap()
    }

    fn members(value: &[u8]) -> Vec<u64> {
        let mut all = RoaringTreemap::new();
        add(value, &mut all).unwrap();
        all.iter().collect()
    }

    #[test]
    fn bitmaps_of_every_form() {
        assert_eq!(united(&[b"\0", b""]), [0]);
        assert_eq!(united(&[b"\x01\xc8\0\0\0", b"\x01\xc8\0\0\0"]), b"\x01\xc8\0\0\0");
        let set = b"\x05\x02\x14\0\0\0\0\0\0\0\x15\0\0\0\0\0\0\0";
        assert_eq!(members(&united(&[set, b"\x01\xc8\0\0\0"])), [20, 21, 200]);
        let wide = b"\x03\0\0\0\0\x01\0\0\0";
        assert_eq!(united(&[wide, b"\0"]), wide);
        let both = united(&[wide, set]);
        assert_eq!((both[0], members(&both)), (4, vec![20, 21, 1 << 32]));
        assert!(union([&b"\x0b"[..]].into_iter()).is_err());
        assert!(union([&b"\x01\0\0\0\0\0"[..]].into_iter()).is_err());
    }

    #[test]
    fn newer_forms_hold_members_or_containers() {
        let listed = b"\x0c\x01\x02\0\0\0\x07\0\0\0\x09\0\0\0";
        assert_eq!(members(listed), [7, 9]);
        // The portable form of {5}, as in the documents of the format: cookie, one container, key 0, one value.
        let portable = b"\x3a\x30\0\0\x01\0\0\0\0\0\0\0\x10\0\0\0\x05\0";
        assert_eq!(members(&[&b"\x0c\x02"[..], portable].concat()), [5]);
        let wide =
            [&b"\x0d\x02"[..], b"\0\0\0\0\x02", portable, b"\x03\0\0\0\x01\x01\0\0\0\x08\0\0\0"].concat();
        assert_eq!(members(&wide), [5, 3 << 32 | 8]);
        // With a set and an older form.
        let set = b"\x05\x02\x14\0\0\0\0\0\0\0\x15\0\0\0\0\0\0\0";
        let older = [&b"\x02"[..], portable].concat();
        assert_eq!(members(&united(&[&wide, set, &older, listed])), [5, 7, 9, 20, 21, 3 << 32 | 8]);
        for bad in [
            &b"\x0c"[..],
            b"\x0c\x03",
            b"\x0c\x01\xff\xff\xff\xff\0",
            b"\x0d\xff\xff\xff\xff\x0f",
            b"\x0d\x01\0\0\0\0",
        ] {
            assert!(union([bad].into_iter()).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_united_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0u8..15) {
            let value = [&[kind][..], &bytes].concat();
            let _ = union([value.as_slice()].into_iter());
        }

        #[test]
        fn united_bitmaps_hold_what_each_held(a in prop::collection::btree_set(any::<u64>(), 0..40), b in prop::collection::btree_set(0u32..100, 0..40)) {
            let mut set = vec![10];
            set.extend((a.len() as u32).to_le_bytes());
            set.extend(a.iter().flat_map(|value| value.to_le_bytes()));
            let mut listed = vec![12, 1];
            listed.extend((b.len() as u32).to_le_bytes());
            listed.extend(b.iter().flat_map(|value| value.to_le_bytes()));
            let found = united(&[&set, &listed]);
            let b: BTreeSet<u64> = b.into_iter().map(u64::from).collect();
            prop_assert_eq!(members(&found), a.union(&b).copied().collect::<Vec<_>>());
            prop_assert_eq!(members(&united(&[&found])), members(&found));
        }
    }
}
