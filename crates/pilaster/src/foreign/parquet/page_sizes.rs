//! What the pages take that are open at a time, told by their headers before anything is unpacked.
//!
//! ```text
//! PageHeader    Thrift, compact: 1 i32 type | 2 i32 bytes of the page unpacked | 3 i32 bytes as stored | …
//! ```
//!
//! The `parquet` crate opens a page in each column at once, however large they unpack to, and repeats a word of a dictionary for each
//! row that has it. So headers are looked at on their way to it.

use std::collections::BTreeMap;

use pilaster_core::{Error, ErrorKind, Limits, Result};

/// The type of a page that is a dictionary.
const DICTIONARY_PAGE: u32 = 2;

/// The fields of a page header that count here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    page_type: u32,
    unpacked: u64,
    stored: u64,
}

impl Header {
    /// Reads the first three fields; `None` where they are not as every writer has them, which the `parquet` crate then judges.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let page_type = u32::try_from(field(&mut rest)?).ok()?;
        let (unpacked, stored) = (field(&mut rest)?, field(&mut rest)?);
        Some(Self { page_type, unpacked, stored })
    }
}

/// An i32 whose field number is one more than that of the field before.
fn field(bytes: &mut &[u8]) -> Option<u64> {
    const NEXT_I32: u8 = 0x15;
    let (kind, rest) = bytes.split_first()?;
    if *kind != NEXT_I32 {
        return None;
    }
    let length = rest.iter().take(5).position(|byte| byte & 0x80 == 0)?.checked_add(1)?;
    let (number, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    let zigzag = number.iter().rev().fold(0u64, |number, byte| (number << 7) | u64::from(byte & 0x7f));
    // Negative ones are odd.
    (zigzag % 2 == 0).then_some(zigzag / 2)
}

/// The open pages of a column chunk.
#[derive(Debug, Default)]
struct Open {
    dictionary: u64,
    /// The page that is read.
    page: u64,
    /// That one, and those before it that this batch has values of.
    batch: u64,
    /// Stored bytes of a page whose header was read, and which is read next.
    body: Option<u64>,
}

/// Counts the pages of one scan.
#[derive(Debug)]
pub(super) struct PageSizes {
    limits: Limits,
    chunks: BTreeMap<u64, Open>,
    /// Largest dictionary whose words may be repeated for each row of a batch.
    most_repeated: u64,
    /// Whether a dictionary was refused that is larger.
    is_repeated: bool,
}

impl PageSizes {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, chunks: BTreeMap::new(), most_repeated: u64::MAX, is_repeated: false }
    }

    /// Refuses dictionaries whose words would be too many bytes if each of `rows` rows had the longest.
    pub(super) fn repeat_words(&mut self, rows: usize) {
        self.most_repeated = self.limits.scan_bytes.checked_div(rows as u64).unwrap_or(u64::MAX);
    }

    /// Whether a dictionary was refused because its words are repeated; from now on they are not.
    pub(super) fn stop_repeating(&mut self) -> bool {
        self.most_repeated = u64::MAX;
        std::mem::take(&mut self.is_repeated)
    }

    /// Forgets all pages: their columns are closed.
    pub(super) fn clear(&mut self) {
        self.chunks.clear();
    }

    /// Begins a batch: of what was given nothing is held any more.
    pub(super) fn begin_batch(&mut self) {
        self.chunks.values_mut().for_each(|open| open.batch = open.page);
    }

    /// `bytes` of a column chunk are read that begin with the header of a page.
    pub(super) fn header(&mut self, chunk: u64, bytes: &[u8]) -> Result<()> {
        let Some(header) = Header::parse(bytes) else { return Ok(()) };
        self.chunks.entry(chunk).or_default().body = Some(header.stored);
        self.enter(chunk, header)
    }

    /// `length` bytes of a column chunk are read, which begin with `bytes`: a page whose header is known, or one with its header.
    pub(super) fn page(&mut self, chunk: u64, length: u64, bytes: &[u8]) -> Result<()> {
        match self.chunks.get_mut(&chunk).and_then(|open| open.body.take()) {
            Some(stored) if stored == length => Ok(()),
            _ => Header::parse(bytes).map_or(Ok(()), |header| self.enter(chunk, header)),
        }
    }

    fn enter(&mut self, chunk: u64, header: Header) -> Result<()> {
        self.limits.decoded(header.unpacked)?;
        let open = self.chunks.entry(chunk).or_default();
        if header.page_type == DICTIONARY_PAGE {
            open.dictionary = header.unpacked;
            if header.unpacked > self.most_repeated {
                self.is_repeated = true;
                return Err(self.too_large(header.unpacked));
            }
        } else {
            open.page = header.unpacked;
            open.batch = open.batch.saturating_add(header.unpacked);
        }
        let add = |sum: u64, open: &Open| sum.saturating_add(open.dictionary).saturating_add(open.batch);
        let all = self.chunks.values().fold(0, add);
        if all > self.limits.scan_bytes { Err(self.too_large(all)) } else { Ok(()) }
    }

    fn too_large(&self, found: u64) -> Error {
        Error::new(ErrorKind::LimitExceeded { limit: "scan_bytes", max: self.limits.scan_bytes, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of these three fields and the end of the struct.
    fn header(fields: [u64; 3]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in fields {
            bytes.push(0x15);
            let mut zigzag = number * 2;
            while zigzag > 0x7f {
                bytes.push(zigzag as u8 | 0x80);
                zigzag >>= 7;
            }
            bytes.push(zigzag as u8);
        }
        bytes.push(0);
        bytes
    }

    fn sizes(scan_bytes: u64) -> PageSizes {
        PageSizes::new(Limits { scan_bytes, decoded_bytes: 1000, ..Limits::default() })
    }

    #[test]
    fn the_first_fields_of_a_header_are_read() {
        let parsed = Header::parse(&header([2, 1 << 30, 300])).unwrap();
        assert_eq!(parsed, Header { page_type: 2, unpacked: 1 << 30, stored: 300 });
        for bad in [&[][..], &[0x15], &[0x15, 1, 0x15, 2, 0x15, 2], &[0x25, 0], &[0x15, 0xff, 0xff]] {
            assert_eq!(Header::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn pages_of_all_columns_count_until_the_next_batch() {
        let mut sizes = sizes(1000);
        sizes.header(4, &header([2, 300, 30])).unwrap();
        sizes.page(4, 30, &header([0, 900, 1])).unwrap();
        sizes.header(4, &header([0, 300, 30])).unwrap();
        // Another column, whose headers come with their pages.
        sizes.page(90, 50, &header([0, 400, 10])).unwrap();
        let error = sizes.header(4, &header([0, 1, 1])).unwrap_err();
        assert_eq!(error.to_string(), "1001 is over the limit scan_bytes = 1000");
        sizes.begin_batch();
        sizes.header(4, &header([0, 299, 1])).unwrap();
        sizes.clear();
        sizes.header(4, &header([0, 1000, 1])).unwrap();
        let error = sizes.header(4, &header([0, 1001, 1])).unwrap_err();
        assert_eq!(error.to_string(), "1001 is over the limit decoded_bytes = 1000");
    }

    #[test]
    fn large_dictionaries_are_not_repeated() {
        let mut sizes = sizes(1000);
        sizes.repeat_words(100);
        sizes.header(4, &header([2, 10, 1])).unwrap();
        sizes.header(4, &header([2, 11, 1])).unwrap_err();
        assert!(sizes.stop_repeating());
        sizes.header(4, &header([2, 11, 1])).unwrap();
        assert!(!sizes.stop_repeating());
    }
}
