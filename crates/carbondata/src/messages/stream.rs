//! Streaming segments: blocklets of rows, and the index without a header.

use bytes::Bytes;
use pilaster_encoding::DecodeError;
use pilaster_encoding::thrift::{Reader, Writer};

use super::{Message, MinMax, Parsed, required};

/// What the index of a streaming segment, which has no header, says of one data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamRecord {
    /// Its rows; negative if the engine did not count them.
    pub rows: i64,
    pub file_name: String,
    /// Of all columns that are not nested, dimensions first; releases before 1.5 have none.
    pub min_max: Option<MinMax>,
    /// The bytes that count: what follows was never committed.
    pub file_size: i64,
}

impl StreamRecord {
    /// Parses an index file.
    pub fn parse_file(bytes: &Bytes) -> Parsed<Vec<Self>> {
        let Message { bytes: whole, mut reader } = Message::new(bytes);
        let mut records = Vec::new();
        while !reader.is_at_end() {
            records.push(Self::parse(whole, &mut reader)?);
        }
        Ok(records)
    }

    fn parse(whole: &Bytes, reader: &mut Reader<'_>) -> Parsed<Self> {
        let at = reader.position();
        let (mut rows, mut name, mut min_max, mut size) = (-1, None, None, None);
        reader.structure(|reader, field| {
            match field.id {
                1 => rows = reader.i64(field)?,
                2 => name = Some(reader.text(field)?.to_string()),
                4 => min_max = reader.structure_field(field, |reader| stream_index(whole, reader))?,
                6 => size = Some(reader.i64(field)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self {
            rows,
            file_name: required(name, at, "an index record with a file name")?,
            min_max,
            file_size: required(size, at, "an index record with the size of its file")?,
        })
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.i64(1, self.rows);
        writer.text(2, &self.file_name);
        // There is no footer.
        writer.i64(3, -1);
        writer.structure(4, |out| {
            let mut writer = Writer::new(out);
            if let Some(min_max) = &self.min_max {
                writer.structure(1, |out| min_max.write(out));
            }
            writer.finish();
        });
        writer.i64(6, self.file_size);
        writer.finish();
    }
}

/// `BlockletIndex` of a stream: it has no keys, and may have no statistics.
fn stream_index(whole: &Bytes, reader: &mut Reader<'_>) -> Parsed<Option<MinMax>> {
    let mut min_max = None;
    reader.structure(|reader, field| {
        if field.id == 1 {
            min_max = Some(reader.structure_field(field, |reader| MinMax::parse(whole, reader))?);
        }
        Ok(field.id == 1)
    })?;
    Ok(min_max)
}

/// The header of a blocklet of rows in a streaming file.
#[derive(Debug)]
pub(crate) struct StreamBlocklet {
    pub rows: u64,
    /// 0 if its rows are added to the table.
    pub mutation: i32,
    /// As in the index; a blocklet of one row has none.
    pub min_max: Option<MinMax>,
}

impl StreamBlocklet {
    pub fn parse(bytes: &Bytes) -> Parsed<Self> {
        let Message { bytes: whole, mut reader } = Message::new(bytes);
        let (mut rows, mut mutation, mut min_max) = (None, 0, None);
        reader.structure(|reader, field| {
            match field.id {
                2 => mutation = reader.i32(field)?,
                3 => min_max = reader.structure_field(field, |reader| stream_index(whole, reader))?,
                4 => reader.structure_field(field, |reader| {
                    reader.structure(|reader, field| {
                        if field.id == 1 {
                            rows = Some(reader.i32(field)?);
                        }
                        Ok(field.id == 1)
                    })
                })?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let rows = required(rows, 0, "a blocklet with a number of rows")?;
        match u64::try_from(rows) {
            Ok(rows @ 1..) => Ok(Self { rows, mutation, min_max }),
            _ => Err(DecodeError::new(0, "at least one row", rows.to_string())),
        }
    }
}
