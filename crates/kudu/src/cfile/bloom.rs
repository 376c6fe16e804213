//! Bloom files: which keys a rowset may hold.
//!
//! ```text
//! block payload: | u32 H | BloomBlockHeaderPB, H bytes | bits, the rest |
//! ```
//!
//! The bits of a key: h = [`hash64`] of the encoded key; with h1 its low and h2 its high half, bit number i is
//! (h1 + i·h2 mod 2³²) mod the number of bits.

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};

use super::file::CFile;
use super::index::IndexEntry;
use super::proto::{self, BloomBlockHeaderPb, required};

const PART: &str = "cfile bloom block";

/// One block of a bloom file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BloomBlock {
    /// A separator: greater than every key of the blocks before, at most the first key of this one.
    pub first_key: Bytes,
    /// Bits set for each key.
    pub hash_functions: u32,
    /// The bits, least significant first.
    pub bits: Bytes,
}

impl BloomBlock {
    pub(crate) fn read(file: &CFile, entry: &IndexEntry) -> Result<Self> {
        let block = file.store.read(entry.pointer, PART)?;
        Self::parse(&block.payload, entry.key.clone()).at(file.name(), entry.pointer.offset, PART)
    }

    fn parse(payload: &Bytes, first_key: Bytes) -> Result<Self> {
        let (length, rest) = payload
            .split_first_chunk::<4>()
            .ok_or_else(|| Error::corrupt("a bloom block header", format!("{} bytes", payload.len())))?;
        let length = u32::from_le_bytes(*length) as usize;
        let header = rest
            .get(..length)
            .ok_or_else(|| Error::corrupt(format!("a header of at most {} bytes", rest.len()), length))?;
        let header: BloomBlockHeaderPb = proto::parse(header, "BloomBlockHeaderPB")?;
        let hashes = required(header.num_hash_functions, "num_hash_functions")?;
        let hash_functions = u32::try_from(hashes)
            .ok()
            .filter(|count| (1..=256).contains(count))
            .ok_or_else(|| Error::corrupt("1 to 256 hash functions", hashes))?;
        let bits = payload.slice(length.saturating_add(4)..);
        if bits.is_empty() {
            return Err(Error::corrupt("bits", "none"));
        }
        Ok(Self { first_key, hash_functions, bits })
    }

    /// Whether the block may hold an encoded key. No means no.
    pub fn may_contain(&self, key: &[u8]) -> bool {
        bits_of_key(key, self.hash_functions, self.bits.len())
            .all(|bit| pilaster_encoding::bits::get(&self.bits, bit))
    }
}

/// The bits of an encoded key in a filter of so many bytes.
pub(super) fn bits_of_key(
    key: &[u8],
    hash_functions: u32,
    filter_bytes: usize,
) -> impl Iterator<Item = usize> + use<> {
    let hash = hash64(key);
    let half = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default();
    let (mut hash, step) = (half(hash), half(hash >> 32));
    let count = (filter_bytes as u64).saturating_mul(8);
    (0..hash_functions).map(move |_| {
        let bit = u64::from(hash).checked_rem(count).unwrap_or_default();
        hash = hash.wrapping_add(step);
        usize::try_from(bit).unwrap_or(usize::MAX)
    })
}

impl CFile {
    /// Whether the rowset of this bloom file may hold an encoded key.
    pub fn bloom_may_contain(&self, key: &[u8]) -> Result<bool> {
        let Some(tree) = &self.by_value else { return Ok(true) };
        let cursor = tree.seek(&self.store, key)?;
        match cursor.entry() {
            Some(entry) if entry.key.as_ref() <= key => Ok(BloomBlock::read(self, entry)?.may_contain(key)),
            _ => Ok(false),
        }
    }
}

const K0: u64 = 0xa5b8_5c5e_198e_d849;
const K1: u64 = 0x8d58_ac26_afe1_2e47;
const K2: u64 = 0xc47b_6e9e_3a97_0ed3;
const K3: u64 = 0xc70f_6907_e782_aa0b;
const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;

/// Kudu's 64-bit hash of a key: an old relative of CityHash64, not the public one.
pub fn hash64(key: &[u8]) -> u64 {
    let n = key.len();
    let length = n as u64;
    match n {
        0 => K2,
        1..=3 => {
            let byte = |at: usize| key.get(at).copied().map_or(0, u64::from);
            let y = byte(0).wrapping_add(byte(n / 2) << 8);
            let z = length.wrapping_add(byte(n.saturating_sub(1)) << 2);
            mix(y.wrapping_mul(K2) ^ z.wrapping_mul(K3)).wrapping_mul(K2)
        }
        4..=8 => join(length.wrapping_add(load32(key, 0) << 3), load32(key, n.saturating_sub(4))),
        9..=16 => {
            let (a, b) = (load(key, 0), load(key, n.saturating_sub(8)));
            #[expect(clippy::cast_possible_truncation, reason = "at most 16")]
            let turn = n as u32;
            join(a, b.wrapping_add(length).rotate_right(turn)) ^ b
        }
        17..=32 => {
            let a = load(key, 0).wrapping_mul(K1);
            let b = load(key, 8);
            let c = load(key, n.saturating_sub(8)).wrapping_mul(K2);
            let d = load(key, n.saturating_sub(16)).wrapping_mul(K0);
            join(
                a.wrapping_sub(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d),
                a.wrapping_add((b ^ K3).rotate_right(20)).wrapping_sub(c).wrapping_add(length),
            )
        }
        33..=64 => hash_33_to_64(key),
        _ => hash_long(key),
    }
}

fn hash_33_to_64(key: &[u8]) -> u64 {
    let n = key.len();
    let from_end = |back: usize| load(key, n.saturating_sub(back));
    let length = n as u64;
    let mut z = load(key, 24);
    let mut a = load(key, 0).wrapping_add(length.wrapping_add(from_end(16)).wrapping_mul(K0));
    let mut b = a.wrapping_add(z).rotate_right(52);
    let mut c = a.rotate_right(37);
    a = a.wrapping_add(load(key, 8));
    c = c.wrapping_add(a.rotate_right(7));
    a = a.wrapping_add(load(key, 16));
    let (vf, vs) = (a.wrapping_add(z), b.wrapping_add(a.rotate_right(31)).wrapping_add(c));
    a = load(key, 16).wrapping_add(from_end(32));
    z = z.wrapping_add(from_end(8));
    b = a.wrapping_add(z).rotate_right(52);
    c = a.rotate_right(37);
    a = a.wrapping_add(from_end(24));
    c = c.wrapping_add(a.rotate_right(7));
    a = a.wrapping_add(from_end(16));
    let (wf, ws) = (a.wrapping_add(z), b.wrapping_add(a.rotate_right(31)).wrapping_add(c));
    let r = mix(vf.wrapping_add(ws).wrapping_mul(K2).wrapping_add(wf.wrapping_add(vs).wrapping_mul(K0)));
    mix(r.wrapping_mul(K0).wrapping_add(vs)).wrapping_mul(K2)
}

fn hash_long(key: &[u8]) -> u64 {
    let n = key.len();
    let length = n as u64;
    let from_end = |back: usize| load(key, n.saturating_sub(back));
    let mut x = from_end(40);
    let mut y = from_end(16).wrapping_add(from_end(56));
    let mut z = join(from_end(48).wrapping_add(length), from_end(24));
    let mut v = weak(key, n.saturating_sub(64), length, z);
    let mut w = weak(key, n.saturating_sub(32), y.wrapping_add(K1), x);
    x = x.wrapping_mul(K1).wrapping_add(load(key, 0));
    for o in (0..n.saturating_sub(1) & !63).step_by(64) {
        let at = |ahead: usize| load(key, o.saturating_add(ahead));
        x = x.wrapping_add(y).wrapping_add(v.0).wrapping_add(at(8)).rotate_right(37).wrapping_mul(K1);
        y = y.wrapping_add(v.1).wrapping_add(at(48)).rotate_right(42).wrapping_mul(K1);
        x ^= w.1;
        y = y.wrapping_add(v.0).wrapping_add(at(40));
        z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(K1);
        v = weak(key, o, v.1.wrapping_mul(K1), x.wrapping_add(w.0));
        w = weak(key, o.saturating_add(32), z.wrapping_add(w.1), y.wrapping_add(at(16)));
        std::mem::swap(&mut z, &mut x);
    }
    join(join(v.0, w.0).wrapping_add(mix(y).wrapping_mul(K1)).wrapping_add(z), join(v.1, w.1).wrapping_add(x))
}

fn mix(value: u64) -> u64 {
    value ^ value >> 47
}

fn join(u: u64, v: u64) -> u64 {
    let a = mix((u ^ v).wrapping_mul(MULTIPLIER));
    mix((u ^ a).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER)
}

fn weak(key: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let word = |ahead: usize| load(key, at.saturating_add(ahead));
    let (w, x, y, z) = (word(0), word(8), word(16), word(24));
    let mut a = a.wrapping_add(w);
    let mut b = b.wrapping_add(a).wrapping_add(z).rotate_right(51);
    let c = a;
    a = a.wrapping_add(x).wrapping_add(y);
    b = b.wrapping_add(a.rotate_right(23));
    (a.wrapping_add(z), b.wrapping_add(c))
}

fn load(key: &[u8], at: usize) -> u64 {
    key.get(at..).and_then(|rest| rest.first_chunk::<8>()).map_or(0, |eight| u64::from_le_bytes(*eight))
}

fn load32(key: &[u8], at: usize) -> u64 {
    key.get(at..)
        .and_then(|rest| rest.first_chunk::<4>())
        .map_or(0, |four| u64::from(u32::from_le_bytes(*four)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_every_length_class() {
        let cases: [(&[u8], u64); 8] = [
            (b"", 0xc47b_6e9e_3a97_0ed3),
            (b"a", 0x235e_57f9_7256_5b24),
            (b"key-00", 0xb5de_8a41_beb5_af70),
            (b"0123456789", 0xb4f5_8229_6820_b42c),
            (b"0123456789abcdefghij", 0xe03f_0547_0346_c44a),
            (&[b'x'; 40], 0x4a07_25aa_a283_1af6),
            (&[b'y'; 100], 0x0ff0_af33_a299_2218),
            (&(0..200).collect::<Vec<u8>>(), 0x4705_8938_0426_40ef),
        ];
        for (key, expected) in cases {
            assert_eq!(hash64(key), expected, "{} bytes", key.len());
        }
    }
}
