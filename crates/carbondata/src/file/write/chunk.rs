//! One column of a blocklet: its pages as they will be stored, its words, its bounds.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use bytes::Bytes;
use pilaster_core::{Error, Result};

use super::super::meta::{Extremes, MetaFields, PLAIN_LONG_VALUE, Store, column_type};
use super::super::page::encoding;
use super::super::page::strings::LengthWidth;
use super::super::types::{CarbonType, ColumnNode};
use super::bounds::{BoundKind, Bounds};
use super::columns::meta_type;
use super::numbers;
use super::options::{CarbonWriterOptions, Compressor};
use super::release::Release;
use super::strings::{self, LocalDictionary, PageParts};
use super::table_codes::TableCodes;
use crate::messages::{ChunkHeader, ColumnSchema, DictionaryChunk, MinMax, PageHeader};

/// A chunk as it is stored.
#[derive(Debug)]
pub(super) struct EncodedChunk {
    pub header: Vec<u8>,
    pub pages: Vec<Bytes>,
    pub bounds: (Bytes, Bytes, bool),
}

impl EncodedChunk {
    pub fn bytes(&self) -> u64 {
        let pages: usize = self.pages.iter().map(Bytes::len).sum();
        (self.header.len() as u64).saturating_add(pages as u64)
    }
}

/// The chunk that is being filled.
#[derive(Debug)]
pub(super) struct ChunkWriter {
    pub(super) path: String,
    pub(super) kind: BoundKind,
    pub(super) has_inverted_index: bool,
    pub(super) compressor: Compressor,
    /// Lengths inside of nested columns.
    pub(super) child_lengths: LengthWidth,
    /// Compressed nothing: the null bits of a page without nulls.
    pub(super) no_nulls: Bytes,
    pub(super) dictionary: Option<LocalDictionary>,
    pub(super) codes: Option<Arc<TableCodes>>,
    pub(super) pages: Vec<PageHeader>,
    pub(super) bodies: Vec<Bytes>,
    pub(super) bounds: Option<Bounds>,
    /// Values that the format cannot tell from others.
    pub conflated: u64,
}

impl ChunkWriter {
    pub fn new(
        column: &ColumnSchema,
        node: &ColumnNode,
        release: Release,
        options: &CarbonWriterOptions,
        codes: Option<Arc<TableCodes>>,
    ) -> Result<Self> {
        let mut no_nulls = Vec::new();
        options.compressor.codec().compress(&[], &mut no_nulls)?;
        let is_text = matches!(node.carbon_type, CarbonType::String | CarbonType::Varchar);
        let dictionary = (options.local_dictionary && is_text && codes.is_none())
            .then(|| LocalDictionary::new(options.local_dictionary_threshold));
        Ok(Self {
            path: column.name.clone(),
            kind: BoundKind {
                carbon_type: node.carbon_type,
                is_dimension: node.is_dimension,
                is_child: node.is_child,
            },
            has_inverted_index: column.encoders.contains(&encoding::INVERTED_INDEX),
            compressor: options.compressor,
            child_lengths: match release {
                Release::Old => LengthWidth::Two,
                Release::Current => LengthWidth::Four,
            },
            no_nulls: no_nulls.into(),
            dictionary,
            codes,
            pages: Vec::new(),
            bodies: Vec::new(),
            bounds: None,
            conflated: 0,
        })
    }

    /// Notes values that will be read as others.
    pub fn conflate(&mut self, count: u64) {
        self.conflated = self.conflated.saturating_add(count);
    }

    /// Bytes of the pages so far.
    pub fn bytes(&self) -> u64 {
        self.bodies.iter().map(|body| body.len() as u64).sum()
    }

    /// Adds a page of a column without children.
    pub fn add(&mut self, array: &ArrayRef) -> Result<()> {
        let added = match (self.kind.carbon_type, self.kind.is_child) {
            _ if self.codes.is_some() => self.table_codes(array),
            (CarbonType::String | CarbonType::Varchar, _) => self.texts(array),
            (CarbonType::Binary, _) => self.binaries(array),
            (CarbonType::Date, false) => self.dates(array),
            (CarbonType::Date | CarbonType::Decimal { .. }, true) => self.child_bytes(array),
            _ => self.numbers(array),
        };
        added.map_err(|error| Error::invalid(format!("column {:?}: {error}", self.path)))
    }

    /// Adds a page of the nodes of a nested column.
    pub fn add_nodes(&mut self, data: Vec<u8>, count: usize) -> Result<()> {
        let column_type = match self.kind.carbon_type {
            CarbonType::Struct => column_type::STRUCT,
            _ => column_type::ARRAY,
        };
        let header = self.nested_header(count, column_type)?;
        self.push(header, PageParts { data, ..PageParts::default() }, Bounds::Node, false)
    }

    pub(super) fn header(&self, rows: usize) -> PageHeader {
        PageHeader {
            compressor_name: Some(self.compressor.name().to_string()),
            uncompressed_bytes: 0,
            data_length: 0,
            row_id_length: 0,
            rle_length: 0,
            represents_presence: false,
            presence: Some(self.no_nulls.clone()),
            sort_state: None,
            encoders: Vec::new(),
            encoder_meta: Vec::new(),
            min_max: None,
            rows: i32::try_from(rows).ok(),
        }
    }

    /// The header of nodes and of the bytes of children.
    pub(super) fn nested_header(&self, rows: usize, column_type: u8) -> Result<PageHeader> {
        let mut header = self.header(rows);
        header.encoders = self.child_encoders(encoding::DIRECT_COMPRESS);
        header.encoder_meta = vec![self.byte_array_meta(column_type)?.into()];
        Ok(header)
    }

    /// The encoders of a page inside of a nested column.
    fn child_encoders(&self, encoder: i32) -> Vec<i32> {
        match self.child_lengths {
            LengthWidth::Two => vec![encoder],
            LengthWidth::Four => vec![encoder, encoding::INT_LENGTH_CHILD],
        }
    }

    fn byte_array_meta(&self, column_type: u8) -> Result<Vec<u8>> {
        let fields = MetaFields {
            name: &self.path,
            schema_type: meta_type(CarbonType::Array),
            column_type,
            store: Store::ByteArray,
            decimals: 0,
            extremes: Extremes::None,
            compressor: self.compressor.name(),
        };
        fields.write()
    }

    pub(super) fn push(
        &mut self,
        mut header: PageHeader,
        parts: PageParts,
        bounds: Bounds,
        has_nulls: bool,
    ) -> Result<()> {
        let body = self.fill(&mut header, parts)?;
        let (min, max, is_present) = bounds.of_page(self.kind, has_nulls);
        header.min_max = Some(MinMax { min: vec![min], max: vec![max], is_present: vec![is_present] });
        self.bounds = Some(match self.bounds.take() {
            Some(before) => before.merge(bounds),
            None => bounds,
        });
        self.pages.push(header);
        self.bodies.push(body);
        Ok(())
    }

    /// Compresses the parts and puts their lengths into the header.
    pub(super) fn fill(&self, header: &mut PageHeader, parts: PageParts) -> Result<Bytes> {
        let mut body = Vec::new();
        self.compressor.codec().compress(&parts.data, &mut body)?;
        let number = |length: usize| {
            i32::try_from(length)
                .map_err(|_| Error::invalid("a page of more than 2 GiB: make its rows fewer"))
        };
        header.uncompressed_bytes = i64::from(number(parts.data.len())?);
        header.data_length = number(body.len())?;
        header.row_id_length = number(parts.row_ids.len())?;
        header.rle_length = number(parts.runs.len())?;
        body.extend(parts.row_ids);
        body.extend(parts.runs);
        number(body.len())?;
        body.shrink_to_fit();
        Ok(body.into())
    }

    fn numbers(&mut self, array: &ArrayRef) -> Result<()> {
        let is_child = self.kind.is_child;
        let values = numbers::encode(self.kind.carbon_type, is_child, array)?;
        let fields = MetaFields {
            name: &self.path,
            schema_type: meta_type(self.kind.carbon_type),
            column_type: match (is_child, self.kind.is_dimension) {
                (true, _) => column_type::CHILD,
                (_, true) => column_type::PLAIN_VALUE,
                _ => column_type::MEASURE,
            },
            store: values.store,
            decimals: values.decimals,
            extremes: values.extremes,
            compressor: self.compressor.name(),
        };
        let mut header = self.header(array.len());
        header.encoder_meta = vec![fields.write()?.into()];
        header.encoders = match is_child {
            true => self.child_encoders(values.encoding),
            false => vec![values.encoding],
        };
        if let Some(bits) = null_bits(array) {
            let mut packed = Vec::new();
            self.compressor.codec().compress(&bits, &mut packed)?;
            header.presence = Some(packed.into());
        }
        let parts = PageParts { data: values.bytes, ..PageParts::default() };
        self.push(header, parts, values.bounds, array.null_count() > 0)
    }

    /// The chunk of the blocklet that ends here.
    pub fn finish(&mut self) -> Result<EncodedChunk> {
        let codec = self.compressor.codec();
        let is_varchar = self.kind.carbon_type == CarbonType::Varchar;
        let dictionary = match &mut self.dictionary {
            None => None,
            Some(dictionary) => {
                let (width, column_type) = match is_varchar {
                    true => (LengthWidth::Four, PLAIN_LONG_VALUE),
                    false => (LengthWidth::Two, column_type::PLAIN_VALUE),
                };
                let (words, bits) = dictionary.finish(width, strings::null_word(is_varchar))?;
                dictionary.clear();
                let (mut packed_words, mut packed_bits) = (Vec::new(), Vec::new());
                codec.compress(&words, &mut packed_words)?;
                codec.compress(&bits, &mut packed_bits)?;
                Some(DictionaryChunk {
                    encoder_meta: vec![self.byte_array_meta(column_type)?.into()],
                    words: packed_words.into(),
                    codes: packed_bits.into(),
                })
            }
        };
        let mut offset = 0i32;
        let (mut offsets, mut lengths) = (Vec::new(), Vec::new());
        for page in &self.pages {
            offsets.push(offset);
            lengths.push(page.page_length());
            offset = offset
                .checked_add(page.page_length())
                .ok_or_else(|| Error::invalid("a column chunk of more than 2 GiB: make blocklets smaller"))?;
        }
        let header = ChunkHeader {
            pages: std::mem::take(&mut self.pages),
            page_offsets: offsets,
            page_lengths: lengths,
            dictionary,
        };
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        let bounds = self.bounds.take().unwrap_or(Bounds::Node);
        Ok(EncodedChunk {
            header: bytes,
            pages: std::mem::take(&mut self.bodies),
            bounds: bounds.of_blocklet(self.kind),
        })
    }
}

/// Ones where values are null, up to the last of them; `None` if there are none.
fn null_bits(array: &ArrayRef) -> Option<Vec<u8>> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0)?;
    let mut bits = vec![0u8; array.len().div_ceil(8)];
    let is_null = !nulls.inner();
    for row in is_null.set_indices() {
        if let Some(byte) = bits.get_mut(row / 8) {
            *byte |= 1 << (row % 8);
        }
    }
    let used = bits.iter().rposition(|byte| *byte != 0).map_or(0, |last| last.saturating_add(1));
    bits.truncate(used);
    Some(bits)
}
