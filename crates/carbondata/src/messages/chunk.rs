//! The header of a column chunk.

use bytes::Bytes;
use pilaster_encoding::DecodeError;
use pilaster_encoding::thrift::{Reader, wire};

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
    /// The words that the codes of all its pages stand for.
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
}

/// `DataChunk2`: one page.
#[derive(Debug, Clone)]
pub struct PageHeader {
    /// Name of the codec; files before 1.5 have none and use Snappy.
    pub compressor_name: Option<String>,
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
            data_length: 0,
            row_id_length: 0,
            rle_length: 0,
            represents_presence: false,
            presence: None,
            encoders: Vec::new(),
            encoder_meta: Vec::new(),
            min_max: None,
            rows: None,
        };
        reader.structure(|reader, field| {
            match field.id {
                1 => {
                    page.compressor_name = reader.structure_field(field, |reader| compressor_name(reader))?;
                }
                3 => data_length = Some(reader.i32(field)?),
                4 => page.row_id_length = reader.i32(field)?,
                5 => page.rle_length = reader.i32(field)?,
                6 => reader.structure_field(field, |reader| page.parse_presence(whole, reader))?,
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
}

/// `ChunkCompressionMeta`, of which only the name is to be trusted.
fn compressor_name(reader: &mut Reader<'_>) -> Parsed<Option<String>> {
    let mut name = None;
    reader.structure(|reader, field| {
        if field.id != 4 {
            return Ok(false);
        }
        name = Some(reader.text(field)?.to_string());
        Ok(true)
    })?;
    Ok(name)
}

/// `LocalDictionaryChunk`: the words of a column chunk.
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
}
