//! The header of a column chunk.

use bytes::Bytes;
use pilaster_encoding::DecodeError;
use pilaster_encoding::thrift::{Reader, Writer, wire};

use super::footer::MinMax;
use super::{Message, Parsed, binaries, i32_list, required, shared};

/// More pages than a blocklet has; a header takes hundreds of bytes in memory and few in a file.
const MAX_PAGES: usize = 1 << 16;

/// `DataChunk3`: what stands before the pages of a column in a blocklet.
#[derive(Debug, Clone)]
pub struct ChunkHeader {
    /// One header per page.
    pub pages: Vec<PageHeader>,
    /// Where each page begins, from the end of this header.
    pub page_offsets: Vec<i32>,
    /// Bytes of each page.
    pub page_lengths: Vec<i32>,
    /// The entries that the codes of all its pages stand for.
    pub dictionary: Option<DictionaryChunk>,
}

impl ChunkHeader {
    /// Parses the header at the start of `bytes`; gives its length too.
    pub(crate) fn parse(bytes: &Bytes) -> Parsed<(Self, usize)> {
        let Message { bytes: whole, mut reader } = Message::new(bytes);
        let (mut pages, mut offsets, mut lengths, mut dictionary) = (None, None, None, None);
        reader.structure(|reader, field| {
            match field.id {
                1 => {
                    let mut count = 0usize;
                    pages = Some(reader.list(field, wire::STRUCT, |reader| {
                        count = count.saturating_add(1);
                        if count > MAX_PAGES {
                            let expected = format!("at most {MAX_PAGES} pages");
                            return Err(DecodeError::new(reader.position(), expected, "more"));
                        }
                        PageHeader::parse(whole, reader)
                    })?);
                }
                2 => offsets = Some(i32_list(reader, field)?),
                3 => lengths = Some(i32_list(reader, field)?),
                4 => {
                    let parse = |reader: &mut Reader<'_>| DictionaryChunk::parse(whole, reader);
                    dictionary = Some(reader.structure_field(field, parse)?);
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let header = Self {
            pages: required(pages, 0, "a chunk with page headers")?,
            page_offsets: required(offsets, 0, "a chunk with page offsets")?,
            page_lengths: required(lengths, 0, "a chunk with page lengths")?,
            dictionary,
        };
        let counts = (header.pages.len(), header.page_offsets.len(), header.page_lengths.len());
        if counts.0 != counts.1 || counts.0 != counts.2 {
            let found = format!("{} headers, {} offsets, {} lengths", counts.0, counts.1, counts.2);
            return Err(DecodeError::new(0, "a header, an offset and a length per page", found));
        }
        Ok((header, reader.position()))
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.list(1, wire::STRUCT, &self.pages, PageHeader::write);
        writer.i32_list(2, &self.page_offsets);
        writer.i32_list(3, &self.page_lengths);
        if let Some(dictionary) = &self.dictionary {
            writer.structure(4, |out| dictionary.write(out));
        }
        writer.finish();
    }
}

/// `DataChunk2`: one page.
#[derive(Debug, Clone)]
pub struct PageHeader {
    /// Name of the codec; files before 1.5 have none and use Snappy.
    pub compressor_name: Option<String>,
    /// Bytes of the values before they were compressed, as the file says, which is not always so.
    pub uncompressed_bytes: i64,
    /// Bytes of the values.
    pub data_length: i32,
    /// Bytes of the row ids of an inverted index.
    pub row_id_length: i32,
    /// Bytes of the run lengths.
    pub rle_length: i32,
    /// Whether ones in the bit stream stand for values (and not for nulls).
    pub represents_presence: bool,
    /// The compressed bits of nulls.
    pub presence: Option<Bytes>,
    /// How the values are arranged: 1 in row order, 2 by row ids.
    pub sort_state: Option<i32>,
    /// Numbers of the encodings.
    pub encoders: Vec<i32>,
    /// What the encodings need to know.
    pub encoder_meta: Vec<Bytes>,
    /// Least and greatest value.
    pub min_max: Option<MinMax>,
    /// Rows; too small for nodes of nested columns.
    pub rows: Option<i32>,
}

impl PageHeader {
    fn parse(whole: &Bytes, reader: &mut Reader<'_>) -> Parsed<Self> {
        let at = reader.position();
        let mut data_length = None;
        let mut page = Self {
            compressor_name: None,
            uncompressed_bytes: 0,
            data_length: 0,
            row_id_length: 0,
            rle_length: 0,
            represents_presence: false,
            presence: None,
            sort_state: None,
            encoders: Vec::new(),
            encoder_meta: Vec::new(),
            min_max: None,
            rows: None,
        };
        reader.structure(|reader, field| {
            match field.id {
                1 => {
                    (page.compressor_name, page.uncompressed_bytes) =
                        reader.structure_field(field, |reader| compression(reader))?;
                }
                3 => data_length = Some(reader.i32(field)?),
                4 => page.row_id_length = reader.i32(field)?,
                5 => page.rle_length = reader.i32(field)?,
                6 => reader.structure_field(field, |reader| page.parse_presence(whole, reader))?,
                7 => page.sort_state = Some(reader.i32(field)?),
                8 => page.encoders = i32_list(reader, field)?,
                9 => page.encoder_meta = binaries(whole, reader, field)?,
                10 => {
                    let parse = |reader: &mut Reader<'_>| MinMax::parse(whole, reader);
                    page.min_max = Some(reader.structure_field(field, parse)?);
                }
                11 => page.rows = Some(reader.i32(field)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        page.data_length = required(data_length, at, "a page with the length of its data")?;
        Ok(page)
    }

    fn parse_presence(&mut self, whole: &Bytes, reader: &mut Reader<'_>) -> Parsed<()> {
        reader.structure(|reader, field| {
            match field.id {
                1 => self.represents_presence = reader.bool(field)?,
                2 => self.presence = Some(shared(whole, reader.binary(field)?)),
                _ => return Ok(false),
            }
            Ok(true)
        })
    }

    /// Bytes of the whole page.
    pub(crate) fn page_length(&self) -> i32 {
        self.data_length.saturating_add(self.row_id_length).saturating_add(self.rle_length)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.structure(1, |out| {
            let mut writer = Writer::new(out);
            writer.i32(1, NAMED_CODEC);
            writer.i64(2, self.uncompressed_bytes);
            writer.i64(3, i64::from(self.page_length()));
            if let Some(name) = &self.compressor_name {
                writer.text(4, name);
            }
            writer.finish();
        });
        writer.bool(2, false);
        writer.i32(3, self.data_length);
        for (id, length) in [(4, self.row_id_length), (5, self.rle_length)] {
            if length != 0 {
                writer.i32(id, length);
            }
        }
        if let Some(presence) = &self.presence {
            writer.structure(6, |out| {
                let mut writer = Writer::new(out);
                writer.bool(1, self.represents_presence);
                writer.binary(2, presence);
                writer.finish();
            });
        }
        if let Some(state) = self.sort_state {
            writer.i32(7, state);
        }
        writer.i32_list(8, &self.encoders);
        writer.binary_list(9, &self.encoder_meta);
        if let Some(min_max) = &self.min_max {
            writer.structure(10, |out| min_max.write(out));
        }
        if let Some(rows) = self.rows {
            writer.i32(11, rows);
        }
        writer.finish();
    }
}

/// `ChunkCompressionMeta`: the name of the codec and the bytes before compression.
fn compression(reader: &mut Reader<'_>) -> Parsed<(Option<String>, i64)> {
    let (mut name, mut bytes) = (None, 0);
    reader.structure(|reader, field| {
        match field.id {
            2 => bytes = reader.i64(field)?,
            4 => name = Some(reader.text(field)?.to_string()),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((name, bytes))
}

/// The encoding of the entries of a dictionary.
const DIRECT_COMPRESS: i32 = 6;
/// What stands for a codec that has a name.
const NAMED_CODEC: i32 = 1;

/// `LocalDictionaryChunk`: the entries of a column chunk.
#[derive(Debug, Clone)]
pub struct DictionaryChunk {
    /// What the encoding of the words needs to know.
    pub encoder_meta: Vec<Bytes>,
    /// The compressed words.
    pub words: Bytes,
    /// The compressed bits of the codes in use.
    pub codes: Bytes,
}

impl DictionaryChunk {
    fn parse(whole: &Bytes, reader: &mut Reader<'_>) -> Parsed<Self> {
        let at = reader.position();
        let (mut encoder_meta, mut words, mut codes) = (Vec::new(), None, None);
        reader.structure(|reader, field| {
            match field.id {
                1 => reader.structure_field(field, |reader| {
                    reader.structure(|reader, field| {
                        if field.id == 2 {
                            encoder_meta = binaries(whole, reader, field)?;
                        }
                        Ok(field.id == 2)
                    })
                })?,
                2 => words = Some(shared(whole, reader.binary(field)?)),
                3 => codes = Some(shared(whole, reader.binary(field)?)),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self {
            encoder_meta,
            words: required(words, at, "a dictionary with words")?,
            codes: required(codes, at, "a dictionary with codes")?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.structure(1, |out| {
            let mut writer = Writer::new(out);
            writer.i32_list(1, &[DIRECT_COMPRESS]);
            writer.binary_list(2, &self.encoder_meta);
            writer.finish();
        });
        writer.binary(2, &self.words);
        writer.binary(3, &self.codes);
        writer.finish();
    }
}
