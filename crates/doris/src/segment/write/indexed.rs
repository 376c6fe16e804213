//! A column that serves an index: values without nulls, found by their number or by their value.

use std::io::Write;

use pilaster_core::Result;

use super::encode::{EncoderSettings, ValueEncoder};
use super::page::{Footer, Sink};
use super::paged::{append_entry, tree};
use super::values::MadeBytes;
use crate::messages::{BTreePb, IndexedColumnPb};
use crate::segment::cells::Cell;
use crate::segment::page::PagePointer;
use crate::segment::types::{Compression, Encoding, FieldType};

/// Bytes of a page of zone maps or filters.
const PAGE_BYTES: usize = 1 << 20;

/// Writes such a column. Pages go to the file as they are filled.
#[derive(Debug)]
pub(super) struct IndexedColumn {
    field_type: FieldType,
    encoding: Encoding,
    compression: Compression,
    page_bytes: usize,
    has_value_index: bool,
    encoder: Option<ValueEncoder>,
    page_values: u64,
    done_values: u64,
    first_value: Vec<u8>,
    pages: usize,
    last_page: Option<PagePointer>,
    by_ordinal: Vec<u8>,
    by_value: Vec<u8>,
    body: Vec<u8>,
}

impl IndexedColumn {
    /// A column of byte values with an ordinal index.
    pub fn new(field_type: FieldType, encoding: Encoding, compression: Compression) -> Self {
        Self {
            field_type,
            encoding,
            compression,
            page_bytes: PAGE_BYTES,
            has_value_index: false,
            encoder: None,
            page_values: 0,
            done_values: 0,
            first_value: Vec::new(),
            pages: 0,
            last_page: None,
            by_ordinal: Vec::new(),
            by_value: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Its values ascend and are found by value too.
    pub fn with_value_index(mut self) -> Self {
        self.has_value_index = true;
        self
    }

    pub fn with_page_bytes(mut self, bytes: usize) -> Self {
        self.page_bytes = bytes;
        self
    }

    pub fn push<W: Write>(&mut self, value: &[u8], sink: &mut Sink<W>) -> Result<()> {
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            None => self.encoder.insert(ValueEncoder::new(EncoderSettings {
                cell: &Cell::Bytes,
                encoding: self.encoding,
                page_bytes: self.page_bytes,
                dictionary_page_bytes: self.page_bytes,
                words: Encoding::Plain,
            })?),
        };
        if self.page_values == 0 {
            self.first_value.clear();
            self.first_value.extend_from_slice(value);
        }
        let mut one = MadeBytes::default();
        one.push(value);
        let taken = encoder.append_bytes(&one, 0..1, &mut |_| {})?;
        self.page_values = self.page_values.saturating_add(taken.values as u64);
        if taken.is_full {
            self.finish_page(sink)?;
        }
        Ok(())
    }

    fn finish_page<W: Write>(&mut self, sink: &mut Sink<W>) -> Result<()> {
        let (Some(encoder), 1..) = (&mut self.encoder, self.page_values) else { return Ok(()) };
        self.body.clear();
        encoder.finish_page(&mut self.body)?;
        let footer = Footer::Data {
            first_ordinal: self.done_values,
            rows: self.page_values,
            null_bytes: 0,
            next_item: None,
        };
        let pointer = sink.write_page(&self.body, footer, self.compression)?;
        append_entry(&self.done_values.to_be_bytes(), pointer, &mut self.by_ordinal);
        if self.has_value_index {
            append_entry(&self.first_value, pointer, &mut self.by_value);
        }
        self.pages = self.pages.saturating_add(1);
        self.last_page = Some(pointer);
        self.done_values = self.done_values.saturating_add(self.page_values);
        self.page_values = 0;
        Ok(())
    }

    /// Ends the last page and writes the indexes.
    pub fn finish<W: Write>(mut self, sink: &mut Sink<W>) -> Result<IndexedColumnPb> {
        self.finish_page(sink)?;
        let (pages, last, compression) = (self.pages, self.last_page, self.compression);
        let mut root = |entries: &[u8]| -> Result<Option<BTreePb>> {
            match last {
                None => Ok(None),
                Some(only) if pages == 1 => Ok(Some(tree(only, true))),
                Some(_) => {
                    let footer = Footer::Index { entries: pages };
                    Ok(Some(tree(sink.write_page(entries, footer, compression)?, false)))
                }
            }
        };
        let ordinal_index_meta = root(&self.by_ordinal)?;
        let value_index_meta = if self.has_value_index { root(&self.by_value)? } else { None };
        Ok(IndexedColumnPb {
            data_type: Some(self.field_type.number()),
            encoding: Some(self.encoding.number()),
            num_values: i64::try_from(self.done_values).ok(),
            ordinal_index_meta,
            value_index_meta,
            compression: Some(compression.number()),
        })
    }
}
