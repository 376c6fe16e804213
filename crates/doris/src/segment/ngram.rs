//! Filters of the parts of strings: every run of so many characters is in them, for `LIKE '%part%'`.
//!
//! ```text
//! filter = bytes, bit b in byte b / 8, lowest bit first
//! for i in 0, 1: bit (h1 + i·h2 + i·i) mod the bits of the filter       h1, h2 = City64 with the seeds 0 and 217728422
//! ```
//!
//! The hash is CityHash64 in its first public form, with constants of its own.

const SEEDS: [u64; 2] = [0, 217_728_422];
const K0: u64 = 0xa5b8_5c5e_198e_d849;
const K1: u64 = 0x8d58_ac26_afe1_2e47;
const K2: u64 = 0xc47b_6e9e_3a97_0ed3;
const K3: u64 = 0xc70f_6907_e782_aa0b;

/// Longer grams are not asked for: what their hash must be is known from no file.
const LONGEST_GRAM: usize = 16;

/// Every run of `size` characters of `value`.
fn grams(value: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    // Where characters begin, and where the last one ends.
    let is_start = |byte: &u8| byte & 0xc0 != 0x80;
    let mut edges: Vec<usize> =
        value.iter().enumerate().filter(|(_, byte)| is_start(byte)).map(|(at, _)| at).collect();
    edges.push(value.len());
    let ends = edges.clone().into_iter().skip(size);
    edges.into_iter().zip(ends).map(|(start, end)| value.get(start..end).unwrap_or_default())
}

/// The hashes that lead to a gram's bits.
#[derive(Debug, Clone, Copy)]
struct GramHash([u64; 2]);

impl GramHash {
    fn of(gram: &[u8]) -> Self {
        Self(SEEDS.map(|seed| len16(city64(gram).wrapping_sub(K2), seed)))
    }

    /// Byte and mask of each bit in a filter of so many bytes.
    fn bits(self, filter_bytes: usize) -> [(usize, u8); 2] {
        let Self([first, second]) = self;
        [0u64, 1].map(|number| {
            let hash = first.wrapping_add(number.wrapping_mul(second)).wrapping_add(number);
            let bit = hash.checked_rem((filter_bytes as u64).saturating_mul(8)).unwrap_or_default();
            let mask = 1u8.wrapping_shl(u32::try_from(bit % 8).unwrap_or_default());
            (usize::try_from(bit / 8).unwrap_or_default(), mask)
        })
    }
}

/// Texts to look for, as the grams in them.
pub(super) struct SoughtGrams(Vec<GramHash>);

impl SoughtGrams {
    /// The grams of all `texts`; none if they are too short to have any.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>, gram_size: usize) -> Option<Self> {
        let grams = texts.into_iter().flat_map(|text| grams(text.as_bytes(), gram_size.max(1)));
        let hashes: Vec<_> = grams.filter(|gram| gram.len() <= LONGEST_GRAM).map(GramHash::of).collect();
        (!hashes.is_empty()).then_some(Self(hashes))
    }

    /// Whether a page with this filter may have them all.
    pub fn may_be_in(&self, filter: &[u8]) -> bool {
        let is_set = |(at, mask): (usize, u8)| filter.get(at).is_none_or(|byte| byte & mask != 0);
        self.0.iter().all(|gram| gram.bits(filter.len()).into_iter().all(is_set))
    }
}

/// The filter of the page being filled.
#[derive(Debug)]
pub(super) struct NgramFilter {
    gram_size: usize,
    filter: Vec<u8>,
}

impl NgramFilter {
    pub fn new(gram_size: usize, filter_bytes: usize) -> Self {
        Self { gram_size: gram_size.max(1), filter: vec![0; filter_bytes.max(1)] }
    }

    pub fn add(&mut self, value: &[u8]) {
        for gram in grams(value, self.gram_size) {
            for (at, mask) in GramHash::of(gram).bits(self.filter.len()) {
                if let Some(byte) = self.filter.get_mut(at) {
                    *byte |= mask;
                }
            }
        }
    }

    pub fn finish_page(&mut self) -> Vec<u8> {
        let empty = vec![0; self.filter.len()];
        std::mem::replace(&mut self.filter, empty)
    }
}

fn shift_mix(value: u64) -> u64 {
    value ^ value >> 47
}

fn len16(u: u64, v: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let a = shift_mix((u ^ v).wrapping_mul(M));
    shift_mix((u ^ a).wrapping_mul(M)).wrapping_mul(M)
}

/// Eight bytes at `at`; zero beyond the end.
fn load64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |eight| u64::from_le_bytes(*eight))
}

/// Eight bytes that begin `back` bytes before the end.
fn tail64(bytes: &[u8], back: usize) -> u64 {
    load64(bytes, bytes.len().saturating_sub(back))
}

fn load32(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |four| u64::from(u32::from_le_bytes(*four)))
}

fn city64(bytes: &[u8]) -> u64 {
    match bytes.len() {
        0..=16 => up_to_16(bytes),
        17..=32 => up_to_32(bytes),
        33..=64 => up_to_64(bytes),
        _ => longer(bytes),
    }
}

fn up_to_16(bytes: &[u8]) -> u64 {
    let len = bytes.len() as u64;
    match bytes.len() {
        0 => K2,
        1..=3 => {
            let byte = |at: usize| u64::from(bytes.get(at).copied().unwrap_or_default());
            let y = byte(0).wrapping_add(byte(bytes.len() / 2) << 8);
            let z = len.wrapping_add(byte(bytes.len().saturating_sub(1)) << 2);
            shift_mix(y.wrapping_mul(K2) ^ z.wrapping_mul(K3)).wrapping_mul(K2)
        }
        4..=8 => len16(len.wrapping_add(load32(bytes, 0) << 3), load32(bytes, bytes.len().saturating_sub(4))),
        _ => {
            let (a, b) = (load64(bytes, 0), tail64(bytes, 8));
            let turned = b.wrapping_add(len).rotate_right(u32::try_from(len).unwrap_or_default());
            len16(a, turned) ^ b
        }
    }
}

fn up_to_32(bytes: &[u8]) -> u64 {
    let a = load64(bytes, 0).wrapping_mul(K1);
    let b = load64(bytes, 8);
    let c = tail64(bytes, 8).wrapping_mul(K2);
    let d = tail64(bytes, 16).wrapping_mul(K0);
    let u = a.wrapping_sub(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let v = a.wrapping_add((b ^ K3).rotate_right(20)).wrapping_sub(c).wrapping_add(bytes.len() as u64);
    len16(u, v)
}

fn up_to_64(bytes: &[u8]) -> u64 {
    // Two halves are mixed in the same way: 32 bytes from the beginning and 32 to the end.
    let half = |a: u64, z: u64, second: u64, third: u64| {
        let b = a.wrapping_add(z).rotate_right(52);
        let mut c = a.rotate_right(37);
        let mut a = a.wrapping_add(second);
        c = c.wrapping_add(a.rotate_right(7));
        a = a.wrapping_add(third);
        (a.wrapping_add(z), b.wrapping_add(a.rotate_right(31)).wrapping_add(c))
    };
    let z = load64(bytes, 24);
    let len = bytes.len() as u64;
    let a = load64(bytes, 0).wrapping_add(len.wrapping_add(tail64(bytes, 16)).wrapping_mul(K0));
    let (vf, vs) = half(a, z, load64(bytes, 8), load64(bytes, 16));
    let a = load64(bytes, 16).wrapping_add(tail64(bytes, 32));
    let z = z.wrapping_add(tail64(bytes, 8));
    let (wf, ws) = half(a, z, tail64(bytes, 24), tail64(bytes, 16));
    let mixed = vf.wrapping_add(ws).wrapping_mul(K2).wrapping_add(wf.wrapping_add(vs).wrapping_mul(K0));
    shift_mix(shift_mix(mixed).wrapping_mul(K0).wrapping_add(vs)).wrapping_mul(K2)
}

/// Mixes 32 bytes at `at` with two seeds.
fn weak32(bytes: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let word = |number: usize| load64(bytes, at.saturating_add(number.saturating_mul(8)));
    let a = a.wrapping_add(word(0));
    let b = b.wrapping_add(a).wrapping_add(word(3)).rotate_right(51);
    let c = a;
    let a = a.wrapping_add(word(1)).wrapping_add(word(2));
    let b = b.wrapping_add(a.rotate_right(23));
    (a.wrapping_add(word(3)), b.wrapping_add(c))
}

fn longer(bytes: &[u8]) -> u64 {
    let size = bytes.len();
    let len = size as u64;
    let mut x = tail64(bytes, 40);
    let mut y = tail64(bytes, 16).wrapping_add(tail64(bytes, 56));
    let mut z = len16(tail64(bytes, 48).wrapping_add(len), tail64(bytes, 24));
    let mut v = weak32(bytes, size.saturating_sub(64), len, z);
    let mut w = weak32(bytes, size.saturating_sub(32), y.wrapping_add(K1), x);
    x = x.wrapping_mul(K1).wrapping_add(load64(bytes, 0));
    let chunks = size.saturating_sub(1) / 64;
    for chunk in 0..chunks {
        let at = |more: usize| chunk.saturating_mul(64).saturating_add(more);
        let word = |more: usize| load64(bytes, at(more));
        x = x.wrapping_add(y).wrapping_add(v.0).wrapping_add(word(8)).rotate_right(37).wrapping_mul(K1);
        y = y.wrapping_add(v.1).wrapping_add(word(48)).rotate_right(42).wrapping_mul(K1);
        x ^= w.1;
        y = y.wrapping_add(v.0).wrapping_add(word(40));
        z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(K1);
        v = weak32(bytes, at(0), v.1.wrapping_mul(K1), x.wrapping_add(w.0));
        w = weak32(bytes, at(32), z.wrapping_add(w.1), y.wrapping_add(word(16)));
        std::mem::swap(&mut z, &mut x);
    }
    len16(
        len16(v.0, w.0).wrapping_add(shift_mix(y).wrapping_mul(K1)).wrapping_add(z),
        len16(v.1, w.1).wrapping_add(x),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_of_characters_is_in_the_filter() {
        let ones = |filter: &[u8]| filter.iter().map(|byte| byte.count_ones()).sum::<u32>();
        let mut filter = NgramFilter::new(3, 512);
        filter.add("äöü".as_bytes());
        let one = filter.finish_page();
        assert!((1..=2).contains(&ones(&one)));
        // Too short for a gram.
        filter.add("äö".as_bytes());
        filter.add(b"");
        assert_eq!(ones(&filter.finish_page()), 0);
        filter.add("xäöüy".as_bytes());
        let more = filter.finish_page();
        assert!(one.iter().zip(&more).all(|(one, more)| one & more == *one));
    }

    #[test]
    fn what_is_in_a_page_is_found_in_its_filter() {
        let mut filter = NgramFilter::new(3, 512);
        filter.add("the größte ship".as_bytes());
        let filter = filter.finish_page();
        let may = |texts: &[&str]| {
            SoughtGrams::of(texts.iter().copied(), 3).map(|sought| sought.may_be_in(&filter))
        };
        assert_eq!(may(&["größ", "ship"]), Some(true));
        assert_eq!(may(&["größ", "skip"]), Some(false));
        assert_eq!(may(&["öß", "", "hi"]), None);
        // Characters of four bytes make grams that are too long for the hashes that are known.
        assert_eq!(SoughtGrams::of(["𝄞𝄞𝄞𝄞𝄞"], 5).map(|sought| sought.may_be_in(&filter)), None);
    }

    #[test]
    fn every_length_has_a_hash_of_its_own() {
        let bytes: Vec<u8> = (0..200u8).collect();
        let mut hashes: Vec<u64> = (0..200).map(|length| city64(&bytes[..length])).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 200);
    }
}
