//! One record of a manifest: what changed in the set of files that make up a database.
//!
//! ```text
//! edit:    fields, each | varint tag | content |
//!          1 text comparator    2 log number    3 next file number    4 last sequence number    9 number of the log before
//!          10 lowest log that is needed    5 level, key: where compaction goes on    6 level, number: a file is gone
//!          7, 100, 102, 103: a new file    200 number: whose edit it is    201 name: a new column family    202: it is dropped
//!          203 highest family    300 count: edits that belong together    400, 401 blob files
//!          from 8192 on: | varint length | bytes |, which may be passed over; 8196 to 8200 logs that were made and are gone
//! file:    level | number | path (102) | bytes | smallest key | largest key | lowest and highest sequence number (not 7)
//!          103: then fields | varint tag | text |, up to the tag 1; tags with the bit 64 may not be passed over
//! ```

use pilaster_core::{Error, Result};

use crate::cursor::Cursor;
use crate::key::{MAX_SEQUENCE, Place};

const IGNORABLE: u32 = 1 << 13;
/// Of fields of files: may not be passed over.
const BINDING: u32 = 1 << 6;
const PATH: u32 = 65;
const LOWEST_LOG: u32 = 3;
const MOST_LEVELS: u32 = 64;

/// A table, as the manifest knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableFile {
    pub number: u64,
    /// Which of several folders it is in; 0 is that of the database.
    pub path: u32,
    pub bytes: u64,
    /// Its smallest and largest key; `None` if no manifest says them.
    pub bounds: Option<(Place, Place)>,
    pub sequences: Option<(u64, u64)>,
}

/// What is said of a write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogNote {
    /// It is there, and has so many bytes at least.
    Synced { number: u64, bytes: u64 },
    /// All before this one are gone.
    GoneBefore(u64),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Edit {
    pub family: u32,
    pub comparator: Option<String>,
    pub log_number: Option<u64>,
    pub lowest_log: Option<u64>,
    pub next_file: Option<u64>,
    pub last_sequence: Option<u64>,
    pub added_family: Option<Vec<u8>>,
    pub is_dropped: bool,
    /// Edits that still follow in the same group.
    pub group: Option<u32>,
    pub gone: Vec<(u32, u64)>,
    pub new: Vec<(u32, TableFile)>,
    pub logs: Vec<LogNote>,
}

impl Edit {
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes);
        let mut edit = Self::default();
        while !cursor.is_at_end() {
            edit.read_field(&mut cursor)?;
        }
        Ok(edit)
    }

    fn read_field(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        match cursor.u32()? {
            1 => self.comparator = Some(String::from_utf8_lossy(cursor.text()?).into_owned()),
            2 => self.log_number = Some(cursor.u64()?),
            3 => self.next_file = Some(cursor.u64()?),
            4 => self.last_sequence = Some(cursor.u64()?),
            5 => {
                level(cursor)?;
                cursor.text()?;
            }
            6 => self.gone.push((level(cursor)?, cursor.u64()?)),
            kind @ (7 | 100 | 102 | 103) => self.read_file(kind, cursor)?,
            9 => {
                cursor.u64()?;
            }
            10 => self.lowest_log = Some(cursor.u64()?),
            200 => self.family = cursor.u32()?,
            201 => self.added_family = Some(cursor.text()?.to_vec()),
            202 => self.is_dropped = true,
            203 => {
                cursor.u32()?;
            }
            300 => self.group = Some(cursor.u32()?),
            400 | 8194 => pass_blob_file(cursor, true)?,
            401 | 8195 => pass_blob_file(cursor, false)?,
            8196 => self.read_log(cursor)?,
            8197 => self.logs.push(LogNote::GoneBefore(cursor.u64()?)),
            8199 => self.read_log(&mut Cursor::new(cursor.text()?))?,
            8200 => self.logs.push(LogNote::GoneBefore(Cursor::new(cursor.text()?).u64()?)),
            tag if tag & IGNORABLE != 0 => {
                cursor.text()?;
            }
            tag => return Err(Error::corrupt("a field of an edit", format!("tag {tag}"))),
        }
        Ok(())
    }

    fn read_file(&mut self, kind: u32, cursor: &mut Cursor<'_>) -> Result<()> {
        let level = level(cursor)?;
        let number = cursor.u64()?;
        let mut path = if kind == 102 { cursor.u32()? } else { 0 };
        let bytes = cursor.u64()?;
        let (smallest, largest) = (Place::parse(cursor.text()?)?, Place::parse(cursor.text()?)?);
        let sequences = if kind == 7 { None } else { Some((cursor.u64()?, cursor.u64()?)) };
        let mut tag = if kind == 103 { cursor.u32()? } else { 1 };
        while tag != 1 {
            let mut field = Cursor::new(cursor.text()?);
            match tag {
                PATH => path = u32::from(field.byte()?),
                LOWEST_LOG => {
                    let eight = field.take(8)?.first_chunk().copied().unwrap_or_default();
                    self.lowest_log = Some(u64::from_le_bytes(eight));
                }
                tag if tag & BINDING != 0 => {
                    return Err(Error::unsupported(format!(
                        "a table whose entry in the manifest has a field {tag}"
                    )));
                }
                _ => {}
            }
            tag = cursor.u32()?;
        }
        if smallest > largest || number > MAX_SEQUENCE << 6 {
            return Err(Error::corrupt(
                "a table from its smallest to its largest key",
                format!("table {number}, whose keys run the other way"),
            ));
        }
        self.new
            .push((level, TableFile { number, path, bytes, bounds: Some((smallest, largest)), sequences }));
        Ok(())
    }

    fn read_log(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let number = cursor.u64()?;
        loop {
            match cursor.u32()? {
                1 => return Ok(()),
                2 => self.logs.push(LogNote::Synced { number, bytes: cursor.u64()? }),
                tag => return Err(Error::corrupt("a field of a log", format!("tag {tag}"))),
            }
        }
    }
}

fn level(cursor: &mut Cursor<'_>) -> Result<u32> {
    match cursor.u32()? {
        level if level < MOST_LEVELS => Ok(level),
        level => Err(Error::corrupt(format!("a level below {MOST_LEVELS}"), level)),
    }
}

/// Which blob files there are matters only to entries that point into one, and these are refused.
fn pass_blob_file(cursor: &mut Cursor<'_>, is_new: bool) -> Result<()> {
    for _ in 0..3 {
        cursor.u64()?;
    }
    if is_new {
        cursor.text()?;
        cursor.text()?;
    }
    loop {
        match cursor.u32()? {
            0 => return Ok(()),
            tag if tag & BINDING != 0 => {
                return Err(Error::unsupported(format!(
                    "a blob file whose entry in the manifest has a field {tag}"
                )));
            }
            _ => {
                cursor.text()?;
            }
        }
    }
}

impl TableFile {
    /// A table of which no manifest says anything.
    pub const fn unknown(number: u64, bytes: u64) -> Self {
        Self { number, path: 0, bytes, bounds: None, sequences: None }
    }
}
