//! States of quantiles.
//!
//! ```text
//! f32 compression | u8 kind | 0: nothing, 1: f64, 2: u16 n, f64…, 3: a t-digest
//! ```
//!
//! Values are kept as they are up to 2048; more of them make a [`Digest`] of single precision. Everything here goes as in
//! Doris, the order included: the newest state comes first and keeps its compression, and the value that would be the
//! 2049th of a list makes the list a digest and is itself left out.

use pilaster_core::{Error, Result};

use super::tdigest::Digest;
use super::{array, end, longs, word};

/// More values than this are not listed.
const MAX_LISTED: usize = 2048;
/// Compressions that Doris knows.
const COMPRESSIONS: std::ops::RangeInclusive<f32> = 2048.0..=10_000.0;

#[derive(Debug, Clone, PartialEq)]
struct State {
    compression: f32,
    values: Values,
}

#[derive(Debug, Clone, PartialEq)]
enum Values {
    Empty,
    Single(f64),
    Listed(Vec<f64>),
    Digest(Box<Digest>),
}

pub(super) fn union<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<Vec<u8>> {
    let mut all: Option<State> = None;
    for bytes in values {
        // A cell without bytes is a state without values that Doris gives the smallest compression.
        let next = if bytes.is_empty() { State::empty() } else { State::parse(bytes)? };
        all = Some(match all {
            None => next,
            Some(all) => all.with(next)?,
        });
    }
    Ok(all.unwrap_or_else(State::empty).to_bytes())
}

impl State {
    fn empty() -> Self {
        Self { compression: *COMPRESSIONS.start(), values: Values::Empty }
    }

    fn parse(mut bytes: &[u8]) -> Result<Self> {
        let rest = &mut bytes;
        let compression = f32::from_le_bytes(array(rest)?);
        if !COMPRESSIONS.contains(&compression) {
            return Err(Error::corrupt("a compression from 2048 to 10000", compression));
        }
        let values = match array(rest)? {
            [0] => Values::Empty,
            [1] => Values::Single(f64::from_le_bytes(array(rest)?)),
            [2] => {
                let count = u16::from_le_bytes(array(rest)?);
                Values::Listed(longs(rest, usize::from(count))?.map(f64::from_bits).collect())
            }
            [3] => {
                let length = rest.len();
                let said = word(rest)?;
                if said as usize != length {
                    return Err(Error::corrupt(format!("a t-digest of {length} bytes"), said));
                }
                Values::Digest(Box::new(Digest::parse(rest)?))
            }
            [other] => return Err(Error::corrupt("a state of quantiles of kind 0 to 3", other)),
        };
        end(rest, "a state of quantiles")?;
        Ok(Self { compression, values })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.compression.to_le_bytes().to_vec();
        match &self.values {
            Values::Empty => out.push(0),
            Values::Single(value) => {
                out.push(1);
                out.extend(value.to_le_bytes());
            }
            Values::Listed(values) => {
                out.push(2);
                out.extend(u16::try_from(values.len()).unwrap_or(u16::MAX).to_le_bytes());
                out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            }
            Values::Digest(digest) => {
                out.push(3);
                let bytes = digest.to_bytes();
                let length = bytes.len().saturating_add(size_of::<u32>());
                out.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
                out.extend(bytes);
            }
        }
        out
    }

    /// With the values of an older state.
    fn with(self, older: Self) -> Result<Self> {
        let compression = self.compression;
        let values = match (self.values, older.values) {
            (known, Values::Empty) => known,
            (known, Values::Single(value)) => with_value(known, value, compression)?,
            (Values::Empty, other) => other,
            (Values::Single(value), Values::Listed(listed)) => {
                with_value(Values::Listed(listed), value, compression)?
            }
            (Values::Single(value), Values::Digest(digest)) => digest_with(digest, &[value])?,
            (Values::Listed(mut known), Values::Listed(listed)) => {
                if known.len().saturating_add(listed.len()) > MAX_LISTED {
                    known.extend(listed);
                    digest_with(Box::new(Digest::new(compression)), &known)?
                } else {
                    known.extend(listed);
                    Values::Listed(known)
                }
            }
            (Values::Listed(known), Values::Digest(digest)) => digest_with(digest, &known)?,
            (Values::Digest(digest), Values::Listed(listed)) => digest_with(digest, &listed)?,
            (Values::Digest(mut digest), Values::Digest(other)) => {
                digest.merge(&other)?;
                Values::Digest(digest)
            }
        };
        Ok(Self { compression, values })
    }
}

fn with_value(known: Values, value: f64, compression: f32) -> Result<Values> {
    match known {
        Values::Empty => Ok(Values::Single(value)),
        Values::Single(first) => Ok(Values::Listed(vec![first, value])),
        // The value is left out, as in every release of Doris.
        Values::Listed(listed) if listed.len() == MAX_LISTED => {
            digest_with(Box::new(Digest::new(compression)), &listed)
        }
        // One that is longer than Doris makes them would outgrow the count.
        Values::Listed(listed) if listed.len() == usize::from(u16::MAX) => {
            Err(Error::corrupt(format!("a list of at most {MAX_LISTED} values"), listed.len()))
        }
        Values::Listed(mut listed) => {
            listed.push(value);
            Ok(Values::Listed(listed))
        }
        Values::Digest(digest) => digest_with(digest, &[value]),
    }
}

fn digest_with(mut digest: Box<Digest>, values: &[f64]) -> Result<Values> {
    for value in values {
        #[expect(clippy::cast_possible_truncation, reason = "a digest is of single precision")]
        digest.add(*value as f32)?;
    }
    Ok(Values::Digest(digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tablet::header::adler32;
    use proptest::prelude::*;

    fn state(values: Values) -> State {
        State { compression: 2048.0, values }
    }

    fn listed(count: u32, from: f64) -> State {
        state(Values::Listed((0..count).map(|at| from + f64::from(at)).collect()))
    }

    fn united(states: &[State]) -> State {
        let bytes: Vec<_> = states.iter().map(State::to_bytes).collect();
        State::parse(&union(bytes.iter().map(Vec::as_slice)).unwrap()).unwrap()
    }

    #[test]
    fn states_are_read_as_the_format_says() {
        // A cell of a real file: one value, 1.5.
        let bytes = b"\0\0\0\x45\x01\0\0\0\0\0\0\xf8\x3f";
        assert_eq!(State::parse(bytes).unwrap(), state(Values::Single(1.5)));
        assert_eq!(union([&bytes[..]].into_iter()).unwrap(), bytes);
        assert_eq!(State::parse(b"\0\0\0\x45\0").unwrap(), State::empty());
        let list = b"\0\0\0\x45\x02\x01\0\0\0\0\0\0\0\xf8\x3f";
        assert_eq!(State::parse(list).unwrap(), state(Values::Listed(vec![1.5])));
        for bad in [
            &b"\0\0\0\x44\0"[..],
            b"\0\0\0\x45\0\0",
            b"\0\0\0\x45\x04",
            b"\0\0\0\x45\x02\x02\0\0\0\0\0\0\0\xf8\x3f",
            b"\0\0\0\x45\x03\x08\0\0\0\0\0\0\0",
            b"\0\0\xc0\x7f\0",
        ] {
            assert!(State::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn few_values_are_listed() {
        let single = |value| state(Values::Single(value));
        assert_eq!(united(&[]), State::empty());
        assert_eq!(united(&[State::empty(), single(3.0)]), single(3.0));
        assert_eq!(united(&[single(3.0), State::empty()]), single(3.0));
        assert_eq!(united(&[single(3.0), single(1.0)]), state(Values::Listed(vec![3.0, 1.0])));
        // A list takes the single value of a newer state at its end.
        let both = united(&[single(9.0), listed(2, 0.0)]);
        assert_eq!(both, state(Values::Listed(vec![0.0, 1.0, 9.0])));
        let both = united(&[listed(2, 0.0), single(9.0), listed(1, 5.0)]);
        assert_eq!(both, state(Values::Listed(vec![0.0, 1.0, 9.0, 5.0])));
        // The newest compression stays.
        let newest = State { compression: 4096.0, values: Values::Empty };
        assert_eq!(united(&[newest, single(1.0)]).compression, 4096.0);
    }

    #[test]
    fn many_values_become_a_digest() {
        let weight = |state: &State| match &state.values {
            Values::Digest(digest) => digest.weight(),
            _ => 0.0,
        };
        let full = united(&[listed(1024, 0.0), listed(1024, 1024.0)]);
        assert_eq!(full, listed(2048, 0.0));
        assert_eq!(weight(&united(&[listed(1024, 0.0), listed(1025, 0.0)])), 2049.0);
        let single = state(Values::Single(7.0));
        // What Doris loses is lost.
        assert_eq!(weight(&united(&[full.clone(), single.clone()])), 2048.0);
        assert_eq!(weight(&united(&[single.clone(), full.clone()])), 2048.0);
        let digest = united(&[full.clone(), full.clone()]);
        assert_eq!(weight(&digest), 4096.0);
        assert_eq!(weight(&united(&[digest.clone(), single.clone()])), 4097.0);
        assert_eq!(weight(&united(&[single, digest.clone()])), 4097.0);
        assert_eq!(weight(&united(&[digest.clone(), full.clone()])), 6144.0);
        assert_eq!(weight(&united(&[full, digest.clone()])), 6144.0);
        assert_eq!(weight(&united(&[digest.clone(), digest])), 8192.0);
        // What is no number is no value of a digest.
        let nothing = state(Values::Listed(vec![f64::NAN; 2000]));
        assert_eq!(weight(&united(&[nothing, listed(1000, 0.0)])), 1000.0);
    }

    /// Lengths, checksums and numbers of processed centroids that Doris's own code printed for the same states.
    #[test]
    fn unions_have_the_bytes_of_doris() {
        let mut seed = 1u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from((seed >> 32) as u32 as i32) / 1000.0
        };
        let expected = [
            (1, 13, 0x1c28_0474, 0),
            (1500, 12_015, 0x5fc5_a212, 0),
            (1200, 21_665, 0xc361_f436, 0),
            (2048, 38_049, 0xc1f7_d2ad, 0),
            (30_000, 173_257, 0x677c_27b9, 2191),
            (1, 173_265, 0x0d7b_2b09, 2191),
            (40_000, 39_541, 0xa73d_a545, 3290),
            (100_000, 41_257, 0x674c_34c3, 3433),
            (2048, 57_641, 0xb6fc_e42e, 3433),
            (0, 57_641, 0xb6fc_e42e, 3433),
            (3, 57_665, 0xf4bd_edb7, 3433),
            (70_000, 41_521, 0x48ea_f747, 3455),
        ];
        let mut all: Option<Vec<u8>> = None;
        for (count, length, checksum, processed) in expected {
            let compression = if count % 3 == 0 { 2048.0 } else { 3000.5 };
            let mut values = Values::Empty;
            for _ in 0..count {
                values = with_value(values, next(), compression).unwrap();
            }
            let state = State { compression, values }.to_bytes();
            let members = all.iter().map(Vec::as_slice).chain([state.as_slice()]);
            let found = union(members).unwrap();
            assert_eq!((found.len(), adler32(&found)), (length, checksum), "{count} values more");
            if let Values::Digest(digest) = State::parse(&found).unwrap().values {
                assert_eq!(digest.processed_centroids(), processed);
            }
            all = Some(found);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_united_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..5) {
            let value = [&b"\0\0\0\x45"[..], &[kind], &bytes].concat();
            let _ = union([value.as_slice(), value.as_slice()].into_iter());
        }
    }
}
