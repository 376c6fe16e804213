//! The values of one page, for each encoding.

mod bytes;
mod cells;
mod dictionary;

use std::ops::Range;

use pilaster_core::{Error, Result};

use super::values::ByteValues;
use crate::segment::cells::Cell;
use crate::segment::types::Encoding;

pub(super) use bytes::PlainEncoder;
use bytes::PrefixEncoder;
use cells::CellEncoder;
use dictionary::DictionaryEncoder;

/// What an encoder must know of its column.
#[derive(Debug, Clone, Copy)]
pub(super) struct EncoderSettings<'a> {
    pub cell: &'a Cell,
    pub encoding: Encoding,
    pub page_bytes: usize,
    pub dictionary_page_bytes: usize,
    /// Encoding of entries, and of strings that are no longer in the dictionary.
    pub words: Encoding,
}

/// How much of a stretch of values went into the page.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taken {
    pub values: usize,
    pub bytes: u64,
    /// Whether the page must be closed before the next value.
    pub is_full: bool,
}

/// The values of the page being filled.
#[derive(Debug)]
pub(super) enum ValueEncoder {
    Cells(CellEncoder),
    Plain(PlainEncoder),
    Prefix(PrefixEncoder),
    Dictionary(Box<DictionaryEncoder>),
}

impl ValueEncoder {
    pub fn new(settings: EncoderSettings<'_>) -> Result<Self> {
        let EncoderSettings { cell, encoding, page_bytes, dictionary_page_bytes, words } = settings;
        Ok(match (cell.width(), encoding) {
            (Some(width), _) => Self::Cells(CellEncoder::new(cell, width, encoding, page_bytes)?),
            (None, Encoding::Plain | Encoding::PlainV2 | Encoding::PlainV3) => {
                Self::Plain(PlainEncoder::new(encoding, page_bytes))
            }
            (None, Encoding::Prefix) => Self::Prefix(PrefixEncoder::new(page_bytes)),
            (None, Encoding::Dict) => {
                Self::Dictionary(Box::new(DictionaryEncoder::new(page_bytes, dictionary_page_bytes, words)))
            }
            (None, other) => return Err(Error::invalid(format!("strings have no encoding {other}"))),
        })
    }

    /// Adds cells of fixed width, as many as the page takes.
    pub fn append_cells(&mut self, cells: &[u8]) -> Result<Taken> {
        match self {
            Self::Cells(encoder) => Ok(encoder.append(cells)),
            _ => Err(Error::internal("cells of fixed width in a column of strings")),
        }
    }

    /// Adds values of any length, as many as the page takes; `observe` sees each value of the page at least once.
    pub fn append_bytes<V: ByteValues>(
        &mut self,
        values: &V,
        range: Range<usize>,
        observe: &mut impl FnMut(&[u8]),
    ) -> Result<Taken> {
        match self {
            Self::Plain(encoder) => Ok(encoder.append(values, range, observe)),
            Self::Prefix(encoder) => Ok(encoder.append(values, range, observe)),
            Self::Dictionary(encoder) => encoder.append(values, range, observe),
            Self::Cells(_) => Err(Error::internal("strings in a column of cells of fixed width")),
        }
    }

    /// Appends the encoded values of the page to `out` and starts the next.
    pub fn finish_page(&mut self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Cells(encoder) => encoder.finish_page(out),
            Self::Plain(encoder) => encoder.finish_page(out),
            Self::Prefix(encoder) => {
                encoder.finish_page(out);
                Ok(())
            }
            Self::Dictionary(encoder) => encoder.finish_page(out),
        }
    }

    /// The body of the dictionary page and its encoding, if there is one.
    pub fn dictionary_page(&mut self) -> Result<Option<(Vec<u8>, Encoding)>> {
        match self {
            Self::Dictionary(encoder) => encoder.dictionary_page().map(Some),
            _ => Ok(None),
        }
    }
}

/// A count as files store it.
fn small(count: usize) -> Result<u32> {
    u32::try_from(count).map_err(|_| Error::invalid("a page of 2^32 values or bytes"))
}
