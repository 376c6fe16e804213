//! What a file is, by its first and last bytes.

use std::fmt;

use pilaster_core::{Error, Result, Source};

/// How much of the beginning of a file is looked at to tell text formats apart.
const HEAD_BYTES: u64 = 64 * 1024;

/// How many bytes of an unknown file its error shows.
const SHOWN_BYTES: usize = 16;

const PARQUET_MAGIC: &[u8] = b"PAR1";
const PARQUET_ENCRYPTED_MAGIC: &[u8] = b"PARE";
const ARROW_MAGIC: &[u8] = b"ARROW1";
const ARROW_CONTINUATION: &[u8] = &[0xff; 4];
/// A CFile ends with its magic and a length of four bytes, a Doris segment with a length, a checksum and its magic.
const TAIL_BYTES: u64 = 12;
const REDFILE_MAGIC: &[u8] = b"RED1";
const CFILE_MAGICS: [&[u8]; 2] = [b"kuducfl2", b"kuducfil"];
/// A Doris segment ends with it, and has none at its start.
const SEGMENT_MAGIC: &[u8] = b"D0R1";

/// A CarbonData file has no magic: it begins with a Thrift field 1, version 3, and a list in field 2, and ends with where its
/// footer is.
const CARBONDATA_HEAD: &[u8] = &[0x15, 0x06, 0x19];

/// A kind of file that can be recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC file: record batches with a footer.
    ArrowFile,
    /// Arrow IPC stream: record batches one after another.
    ArrowStream,
    /// One column of Apache Kudu.
    CFile,
    /// Redfile.
    Redfile,
    /// A segment of Apache Doris.
    DorisSegment,
    /// A container of inverted or ANN indexes of Apache Doris.
    DorisIndex,
    /// A data file of Apache CarbonData.
    CarbonData,
    /// One JSON object per line, or one array of them.
    JsonLines,
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
}

impl Format {
    /// The feature of this crate that reads it.
    pub(crate) fn feature(self) -> &'static str {
        match self {
            Self::CFile => "kudu",
            Self::Redfile => "redfile",
            Self::DorisSegment | Self::DorisIndex => "doris",
            Self::CarbonData => "carbondata",
            Self::Parquet | Self::ArrowFile | Self::ArrowStream | Self::JsonLines | Self::Csv | Self::Tsv => {
                "default"
            }
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parquet => "parquet",
            Self::ArrowFile => "arrow file",
            Self::ArrowStream => "arrow stream",
            Self::CFile => "kudu cfile",
            Self::Redfile => "redfile",
            Self::DorisSegment => "doris segment",
            Self::DorisIndex => "doris index file",
            Self::CarbonData => "carbondata",
            Self::JsonLines => "json lines",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
        })
    }
}

/// Finds out what a file is from its content. Its name matters only between one-column CSV and other text, and where a format has no mark of its own.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if the file is empty or none of the known formats, with what was looked
/// for; [`pilaster_core::ErrorKind::Io`] if it cannot be read.
pub fn detect(source: &dyn Source) -> Result<Format> {
    let name = source.name();
    let size = source.size();
    if size == 0 {
        return Err(Error::invalid("is empty (0 bytes): there is no format to find").at(name, 0, ""));
    }
    let head = source.read_at(0..size.min(HEAD_BYTES))?;
    if let Some(format) = by_magic(&head) {
        return Ok(format);
    }
    if head.starts_with(PARQUET_ENCRYPTED_MAGIC) {
        return Err(Error::unsupported("parquet with an encrypted footer").at(name, 0, ""));
    }
    // A damaged first page can hide the magic at the start; the one at the end is still there.
    let tail = source.read_at(size.saturating_sub(TAIL_BYTES)..size)?;
    if tail.ends_with(PARQUET_MAGIC) && size > 12 {
        return Ok(Format::Parquet);
    }
    if tail.ends_with(REDFILE_MAGIC) && size > 12 {
        return Ok(Format::Redfile);
    }
    if tail.ends_with(ARROW_MAGIC) && size > 16 {
        return Ok(Format::ArrowFile);
    }
    if size > TAIL_BYTES && CFILE_MAGICS.iter().any(|magic| tail.starts_with(magic)) {
        return Ok(Format::CFile);
    }
    if tail.ends_with(SEGMENT_MAGIC) && size >= TAIL_BYTES {
        return Ok(Format::DorisSegment);
    }
    if head.starts_with(CARBONDATA_HEAD) && (ends_with_offset(&tail, size) || name.ends_with(".carbondata")) {
        return Ok(Format::CarbonData);
    }
    if is_doris_index(name) {
        return Ok(Format::DorisIndex);
    }
    by_text(&head, size > HEAD_BYTES, name).ok_or_else(|| {
        Error::invalid(format!(
            "no known format: looked for parquet (PAR1), arrow (ARROW1 or a stream), kudu cfile (kuducfl2, kuducfil), \
             redfile (RED1), doris segment (D0R1 at the end), doris index files (.idx), carbondata, json lines, csv and tsv; the file begins with {}",
            shown(&head)
        ))
        .at(name, 0, "")
    })
}

/// Containers of indexes have no magic (newer ones begin with a version, older ones with the number of their files): they are
/// known by their names.
pub(crate) fn is_doris_index(name: &str) -> bool {
    name.ends_with(".idx")
}

/// Whether the last eight bytes are a place in the file, big-endian.
fn ends_with_offset(tail: &[u8], size: u64) -> bool {
    let offset = tail.last_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    offset > CARBONDATA_HEAD.len() as u64 && offset < size
}

fn by_magic(head: &[u8]) -> Option<Format> {
    if head.starts_with(PARQUET_MAGIC) {
        return Some(Format::Parquet);
    }
    if head.starts_with(ARROW_MAGIC) {
        return Some(Format::ArrowFile);
    }
    if head.starts_with(REDFILE_MAGIC) {
        return Some(Format::Redfile);
    }
    if CFILE_MAGICS.iter().any(|magic| head.starts_with(magic)) {
        return Some(Format::CFile);
    }
    let length = head.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(i32::from_le_bytes);
    if head.starts_with(ARROW_CONTINUATION) && length.is_some_and(|length| length >= 0 && length % 8 == 0) {
        return Some(Format::ArrowStream);
    }
    None
}

/// Tells text formats apart; `is_cut` says that the file goes on after `head`.
fn by_text(head: &[u8], is_cut: bool, name: &str) -> Option<Format> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character may be cut in two at the end of what was read.
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(head.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let is_named = matches!(extension.as_deref(), Some("tsv" | "tab" | "csv"));
    // Values may hold any character, but a file that says nothing of itself and has such ones is hardly text.
    if !is_named && text.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\r' | '\n')) {
        return has_columns(text, is_cut, b',')
            .then_some(Format::Csv)
            .or_else(|| has_columns(text, is_cut, b'\t').then_some(Format::Tsv))
            .filter(|_| !text.contains('\0'));
    }
    if text.trim_start().starts_with('{') {
        return starts_with_json_object(text.trim_start(), is_cut).then_some(Format::JsonLines);
    }
    if text.trim_start().strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with(['{', ']'])) {
        return Some(Format::JsonLines);
    }
    let first_line = text.lines().next().unwrap_or_default();
    match extension.as_deref() {
        Some("tsv" | "tab") => Some(Format::Tsv),
        Some("csv") => Some(Format::Csv),
        _ if has_columns(text, is_cut, b'\t') => Some(Format::Tsv),
        _ if first_line.contains(',') && has_columns(text, is_cut, b',') => Some(Format::Csv),
        _ => None,
    }
}

/// Whether the first line is an object of its own, or is longer than what was read.
fn starts_with_json_object(text: &str, is_cut: bool) -> bool {
    match text.split_once('\n') {
        None if is_cut => true,
        None => serde_json::from_str::<serde_json::Map<_, _>>(text).is_ok(),
        Some((line, _)) => serde_json::from_str::<serde_json::Map<_, _>>(line).is_ok(),
    }
}

/// Whether every record that was read whole has the same number of fields, and more than one.
fn has_columns(text: &str, is_cut: bool, delimiter: u8) -> bool {
    let whole = if is_cut { text.rsplit_once('\n').map_or("", |(whole, _)| whole) } else { text };
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).from_reader(whole.as_bytes());
    let mut fields = 0;
    // The reader itself refuses a record of another length; the last one may end inside quotes that were cut.
    for record in reader.byte_records() {
        match record {
            Ok(record) => fields = record.len(),
            Err(_) => return false,
        }
    }
    fields > 1
}

fn shown(head: &[u8]) -> String {
    let first = head.get(..SHOWN_BYTES).unwrap_or(head);
    let hex: Vec<_> = first.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{} (\"{}\")", hex.join(" "), first.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilaster_core::source::MemorySource;
    use proptest::prelude::*;

    fn of(name: &str, bytes: &[u8]) -> Result<Format> {
        detect(&MemorySource::new(name, bytes.to_vec()))
    }

    #[test]
    fn knows_files_by_content() {
        let cases: [(&[u8], Format); 16] = [
            (b"PAR1....", Format::Parquet),
            (b"ARROW1\0\0", Format::ArrowFile),
            (b"RED1....", Format::Redfile),
            (b"\0\0\0\0\0\0\0\0\x10\0\0\0RED1", Format::Redfile),
            (b"\xff\xff\xff\xff\x10\0\0\0....", Format::ArrowStream),
            (b"kuducfl2....", Format::CFile),
            (b"kuducfil....", Format::CFile),
            (b"\0\0\0\0\0\0\0\0....kuducfl2\x04\0\0\0", Format::CFile),
            (b"\0\0\0\0\0\0\0\0\x10\0\0\0PAR1", Format::Parquet),
            (b"\x02\0\0\0\x01\x02\0\0\x12\0\0\0\x92\x6f\xac\xd7D0R1", Format::DorisSegment),
            (b"\x15\x06\x19\x1c....\0\0\0\0\0\0\0\x06", Format::CarbonData),
            (b"{\"a\":1}\n{\"a\":2}\n", Format::JsonLines),
            (b" [\n{\"a\":1},{\"a\":2}]\n", Format::JsonLines),
            (b"a,b\n1,2\n", Format::Csv),
            (b"a\tb,c\n1\t2\n", Format::Tsv),
            (b"\xef\xbb\xbfa,b\r\n\"x,\ny\",2\r\n", Format::Csv),
        ];
        for (bytes, format) in cases {
            assert_eq!(of("file", bytes).unwrap(), format, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_name_decides_only_for_one_column_of_text() {
        assert_eq!(of("a.csv", b"a\n1\n").unwrap(), Format::Csv);
        assert!(of("a.txt", b"a\n1\n").is_err());
        assert_eq!(of("a.csv", b"PAR1").unwrap(), Format::Parquet);
        // Text may hold characters that files of no format begin with.
        assert_eq!(of("a.csv", b"a\n\x00\x1b\x7f\n").unwrap(), Format::Csv);
        assert_eq!(of("out", b"a,b\n1,\x1b[0m\n").unwrap(), Format::Csv);
        assert_eq!(of("out", b"a\tb\n1\t\x01\n").unwrap(), Format::Tsv);
        assert!(of("out", b"a,b\n1,\x00\n").is_err());
    }

    #[test]
    fn says_what_was_looked_for_and_what_was_found() {
        let text = of("x/y.bin", b"\0\x01abc").unwrap_err().to_string();
        assert!(text.starts_with("x/y.bin: no known format: looked for parquet (PAR1)"), "{text}");
        assert!(text.ends_with("the file begins with 00 01 61 62 63 (\"\\x00\\x01abc\")"), "{text}");
        let text = of("e", b"").unwrap_err().to_string();
        assert_eq!(text, "e: is empty (0 bytes): there is no format to find");
    }

    proptest! {
        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = of("a.csv", &bytes);
        }
    }
}
