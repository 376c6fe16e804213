//! HyperLogLog sketches.
//!
//! ```text
//! 0 | 1, u8 n, u64 hash… | 2, u32 n, (u16 register, u8 value)… | 3, u8 of each of 16384 registers
//! ```
//!
//! Up to 160 hashes are kept as they are. More of them, or hashes with registers, become registers: the lowest 14 bits of
//! a hash are the register, and its value is the place of the lowest one bit of the others, counted from 1.

use std::collections::BTreeSet;

use pilaster_core::{Error, Result};

use super::{array, end, longs, take, word};

/// Hashes up to this many are listed in a sketch; more become registers.
const MAX_HASHES: usize = 160;
const REGISTER_BITS: u32 = 14;
const REGISTERS: usize = 1 << REGISTER_BITS;
/// Registers that are not zero are listed up to this many; more make all be written.
const MAX_LISTED: usize = 4096;

pub(super) fn union<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<Vec<u8>> {
    let (mut hashes, mut registers) = (BTreeSet::new(), None::<Vec<u8>>);
    for value in values {
        let Some((kind, mut rest)) = value.split_first() else { continue };
        let rest = &mut rest;
        match kind {
            0 => {}
            1 => {
                let [count] = array(rest)?;
                hashes.extend(longs(rest, usize::from(count))?);
            }
            2 => {
                let count = word(rest)? as usize;
                let entries = take(rest, count.saturating_mul(3))?;
                let registers = registers.get_or_insert_with(|| vec![0; REGISTERS]);
                for [low, high, value] in entries.as_chunks::<3>().0 {
                    raise(registers, usize::from(u16::from_le_bytes([*low, *high])), *value)?;
                }
            }
            3 => {
                let registers = registers.get_or_insert_with(|| vec![0; REGISTERS]);
                for (register, value) in take(rest, REGISTERS)?.iter().enumerate() {
                    raise(registers, register, *value)?;
                }
            }
            other => return Err(Error::corrupt("a sketch of form 0 to 3", other)),
        }
        end(rest, "a sketch")?;
    }
    match registers {
        None if hashes.is_empty() => Ok(vec![0]),
        None if hashes.len() <= MAX_HASHES => {
            let mut out = vec![1, u8::try_from(hashes.len()).unwrap_or(u8::MAX)];
            out.extend(hashes.into_iter().flat_map(u64::to_le_bytes));
            Ok(out)
        }
        known => {
            let mut registers = known.unwrap_or_else(|| vec![0; REGISTERS]);
            for hash in hashes {
                let (register, value) = place(hash);
                raise(&mut registers, register, value)?;
            }
            Ok(write(&registers))
        }
    }
}

/// The register of a hash, and what it raises it to.
fn place(hash: u64) -> (usize, u8) {
    let [low, high, ..] = hash.to_le_bytes();
    let register = usize::from(u16::from_le_bytes([low, high])) & REGISTERS.wrapping_sub(1);
    let rest = hash >> REGISTER_BITS | 1 << (u64::BITS - REGISTER_BITS);
    (register, u8::try_from(rest.trailing_zeros().saturating_add(1)).unwrap_or(u8::MAX))
}

/// Raises a register to at least `value`.
fn raise(registers: &mut [u8], register: usize, value: u8) -> Result<()> {
    let slot =
        registers.get_mut(register).ok_or_else(|| Error::corrupt("a register below 16384", register))?;
    *slot = value.max(*slot);
    Ok(())
}

fn write(registers: &[u8]) -> Vec<u8> {
    let listed = (0u16..).zip(registers).filter(|(_, value)| **value != 0);
    let count = listed.clone().count();
    match u32::try_from(count) {
        Ok(number) if count <= MAX_LISTED => {
            let mut out = vec![2];
            out.extend(number.to_le_bytes());
            for (register, value) in listed {
                out.extend(register.to_le_bytes());
                out.push(*value);
            }
            out
        }
        _ => [&[3], registers].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hashes(values: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let values: Vec<u64> = values.into_iter().collect();
        [vec![1, values.len() as u8], values.iter().flat_map(|value| value.to_le_bytes()).collect()].concat()
    }

    fn sparse(register: u16, value: u8) -> Vec<u8> {
        [&[2, 1, 0, 0, 0][..], &register.to_le_bytes(), &[value]].concat()
    }

    fn united(values: &[Vec<u8>]) -> Vec<u8> {
        union(values.iter().map(Vec::as_slice)).unwrap()
    }

    #[test]
    fn hashes_are_placed_as_doris_places_them() {
        // Register 3; the bits above it are …100: the lowest one is the third.
        assert_eq!(place(0b100 << 14 | 3), (3, 3));
        assert_eq!(place(1 << 14), (0, 1));
        assert_eq!(place(u64::MAX), (16_383, 1));
        // No bit but the register's: a bit above all others ends the count.
        assert_eq!(place(5), (5, 51));
        assert_eq!(place(0), (0, 51));
    }

    #[test]
    fn sketches_of_hashes_and_of_registers() {
        assert_eq!(united(&[hashes([5, 7]), hashes([7, 9]), vec![0]]), hashes([5, 7, 9]));
        assert_eq!(united(&[sparse(3, 4), sparse(3, 6), sparse(3, 5)]), sparse(3, 6));
        assert_eq!(united(&[hashes([0b100 << 14 | 3]), sparse(3, 2)]), sparse(3, 3));
        assert_eq!(united(&[sparse(3, 7), hashes([0b100 << 14 | 3])]), sparse(3, 7));
        let full = [vec![3], vec![2; REGISTERS]].concat();
        let mut raised = full.clone();
        raised[1 + 9] = 51;
        assert_eq!(united(&[full, hashes([9])]), raised);
        assert!(union([&sparse(0xffff, 1)[..]].into_iter()).is_err());
    }

    #[test]
    fn more_than_160_hashes_become_registers() {
        let first = hashes((0..100).map(|hash| hash << 14 | hash));
        let same = united(&[first.clone(), hashes((40..160).map(|hash| hash << 14 | hash))]);
        assert_eq!((same[0], same[1]), (1, 160));
        let more = united(&[first, hashes((40..161).map(|hash| hash << 14 | hash))]);
        assert_eq!(more[..5], [2, 161, 0, 0, 0]);
        // Hash 6 << 14 | 6 raises register 6 to 2.
        assert_eq!(more[5 + 6 * 3..][..3], [6, 0, 2]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_united_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0u8..5) {
            let value = [&[kind][..], &bytes].concat();
            let _ = union([value.as_slice()].into_iter());
        }

        #[test]
        fn the_order_of_sketches_does_not_matter(some in prop::collection::vec(any::<u64>(), 0..120), more in prop::collection::vec(any::<u64>(), 0..120), register in 0u16..16384, value in 1u8..52) {
            let parts = [hashes(some), sparse(register, value), hashes(more)];
            let mut turned = parts.clone();
            turned.reverse();
            let found = united(&parts);
            prop_assert_eq!(&united(&turned), &found);
            prop_assert_eq!(united(&[united(&parts[..2]), parts[2].clone()]), found);
        }
    }
}
