//! One column of a blocklet: its pages as they will be stored, its words, its bounds.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type};
use arrow_array::{Array, ArrayRef};
use bytes::Bytes;
use pilaster_core::{Error, Result};

use super::super::meta::{Extremes, MetaFields, PLAIN_LONG_VALUE, Store, column_type, decimal_bytes};
use super::super::page::encoding;
use super::super::page::strings::{DATE_BASE, LengthWidth, NULL_MARKER};
use super::super::page::words::LOCAL_CODE_BYTES;
use super::super::types::{CarbonType, ColumnNode};
use super::bounds::{BoundKind, Bounds};
use super::columns::meta_type;
use super::numbers;
use super::options::{CarbonWriterOptions, Compressor};
use super::strings::{self, LocalDictionary, PageParts};
use super::table_codes::{CODE_BYTES, TableCodes};
use crate::messages::{ChunkHeader, ColumnSchema, DictionaryChunk, MinMax, PageHeader};

/// The longest text of a STRING: CarbonData's row reader takes lengths for signed numbers of 16 bits.
const MAX_STRING_BYTES: usize = i16::MAX as usize;
/// How the values of a page are arranged.
const IN_ROW_ORDER: i32 = 1;
const BY_ROW_IDS: i32 = 2;
/// The surrogate of a null date.
const NULL_DATE: i32 = 1;

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
    path: String,
    kind: BoundKind,
    has_inverted_index: bool,
    compressor: Compressor,
    /// Compressed nothing: the null bits of a page without nulls.
    no_nulls: Bytes,
    dictionary: Option<LocalDictionary>,
    codes: Option<Arc<TableCodes>>,
    pages: Vec<PageHeader>,
    bodies: Vec<Bytes>,
    bounds: Option<Bounds>,
    /// Values that the format cannot tell from others.
    pub conflated: u64,
}

/// Values as a page of bytes needs them.
struct ByteValues<'a> {
    values: Vec<Option<&'a [u8]>>,
    null: &'static [u8],
}

impl<'a> ByteValues<'a> {
    fn stored(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.values.iter().map(|value| value.unwrap_or(self.null))
    }
}

impl ChunkWriter {
    pub fn new(
        column: &ColumnSchema,
        node: &ColumnNode,
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
            no_nulls: no_nulls.into(),
            dictionary,
            codes,
            pages: Vec::new(),
            bodies: Vec::new(),
            bounds: None,
            conflated: 0,
        })
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
        let header = self.nested_header(count, column_type);
        self.push(header, PageParts { data, ..PageParts::default() }, Bounds::Node, false)
    }

    fn header(&self, rows: usize) -> PageHeader {
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
    fn nested_header(&self, rows: usize, column_type: u8) -> PageHeader {
        let mut header = self.header(rows);
        header.encoders = vec![encoding::DIRECT_COMPRESS, encoding::INT_LENGTH_CHILD];
        header.encoder_meta = vec![self.byte_array_meta(column_type).into()];
        header
    }

    fn byte_array_meta(&self, column_type: u8) -> Vec<u8> {
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

    fn push(
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
    fn fill(&self, header: &mut PageHeader, parts: PageParts) -> Result<Bytes> {
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
        header.encoder_meta = vec![fields.write().into()];
        header.encoders = vec![values.encoding];
        if is_child {
            header.encoders.push(encoding::INT_LENGTH_CHILD);
        }
        if let Some(bits) = null_bits(array) {
            let mut packed = Vec::new();
            self.compressor.codec().compress(&bits, &mut packed)?;
            header.presence = Some(packed.into());
        }
        let parts = PageParts { data: values.bytes, ..PageParts::default() };
        self.push(header, parts, values.bounds, array.null_count() > 0)
    }

    fn texts(&mut self, array: &ArrayRef) -> Result<()> {
        let is_varchar = self.kind.carbon_type == CarbonType::Varchar;
        let array = array.as_string_view();
        let null = strings::null_word(is_varchar);
        let values: Vec<Option<&[u8]>> = array.iter().map(|value| value.map(str::as_bytes)).collect();
        if !is_varchar {
            // Nobody could tell it from null.
            if values.iter().flatten().any(|value| *value == NULL_MARKER) {
                let marker = String::from_utf8_lossy(NULL_MARKER);
                return Err(Error::invalid(format!("a text that stands for null: {marker:?}")));
            }
            let longest = values.iter().flatten().map(|value| value.len()).max().unwrap_or_default();
            if longest > MAX_STRING_BYTES && !self.kind.is_child {
                return Err(Error::invalid(format!(
                    "a text of {longest} bytes: more than {MAX_STRING_BYTES} need a long text column"
                )));
            }
        }
        let values = ByteValues { values, null };
        let has_nulls = array.null_count() > 0;
        let bounds = match self.kind.is_child {
            true => Bounds::Node,
            false => Bounds::of_bytes(values.stored()),
        };
        let is_sorted = self.has_inverted_index && !has_nulls;
        if let Some(dictionary) = &mut self.dictionary {
            let max_length = if is_varchar { usize::MAX } else { MAX_STRING_BYTES };
            // A child has no code for null but a word for it.
            let is_child = self.kind.is_child;
            let words = values.values.iter().map(|value| value.or(is_child.then_some(null)));
            if let Some(rows) = dictionary.codes(words, max_length) {
                let parts = strings::coded(&rows, LOCAL_CODE_BYTES, is_sorted);
                return self.push_coded(parts, rows.len(), bounds, has_nulls);
            }
            self.give_up_dictionary()?;
        }
        if is_varchar {
            self.conflated = self.conflated.saturating_add(array.null_count() as u64);
        }
        let parts = self.plain_parts(&values, is_sorted);
        let header = self.byte_header(values.values.len(), &parts);
        self.push(header, parts, bounds, has_nulls)
    }

    fn push_coded(
        &mut self,
        mut parts: PageParts,
        rows: usize,
        bounds: Bounds,
        has_nulls: bool,
    ) -> Result<()> {
        // Children are read without runs.
        if self.kind.is_child && !parts.runs.is_empty() {
            parts = unrolled(&parts)?;
        }
        let header = self.byte_header(rows, &parts);
        self.push(header, parts, bounds, has_nulls)
    }

    fn length_width(&self) -> LengthWidth {
        let is_long = matches!(self.kind.carbon_type, CarbonType::Varchar | CarbonType::Binary);
        if is_long || self.kind.is_child { LengthWidth::Four } else { LengthWidth::Two }
    }

    fn plain_parts(&self, values: &ByteValues<'_>, is_sorted: bool) -> PageParts {
        if is_sorted {
            strings::plain_sorted(&values.stored().collect::<Vec<_>>(), self.length_width())
        } else {
            strings::plain(values.stored(), self.length_width())
        }
    }

    /// The header of a page of bytes or codes.
    fn byte_header(&self, rows: usize, parts: &PageParts) -> PageHeader {
        if self.kind.is_child {
            return self.nested_header(rows, column_type::CHILD);
        }
        let mut header = self.header(rows);
        if matches!(self.kind.carbon_type, CarbonType::Varchar | CarbonType::Binary) {
            header.encoders.push(encoding::DIRECT_COMPRESS_VARCHAR);
        }
        header.sort_state = Some(IN_ROW_ORDER);
        if !parts.row_ids.is_empty() {
            header.encoders.push(encoding::INVERTED_INDEX);
            header.sort_state = Some(BY_ROW_IDS);
        }
        if !parts.runs.is_empty() {
            header.encoders.push(encoding::RLE);
        }
        header
    }

    /// Stores the pages so far without the dictionary, which has become too large.
    fn give_up_dictionary(&mut self) -> Result<()> {
        let Some(dictionary) = self.dictionary.take() else { return Ok(()) };
        let null = strings::null_word(self.kind.carbon_type == CarbonType::Varchar);
        for page in 0..self.pages.len() {
            let (Some(header), Some(body)) = (self.pages.get(page), self.bodies.get(page)) else { continue };
            let lengths = (header.data_length, header.row_id_length, header.rle_length);
            let rows = usize::try_from(header.rows.unwrap_or_default()).unwrap_or_default();
            let codes = strings::stored_codes(body, lengths, rows, self.compressor.codec())?;
            let values: Vec<_> = codes.iter().map(|code| dictionary.value(*code)).collect();
            if self.kind.carbon_type == CarbonType::Varchar {
                let nulls = values.iter().filter(|value| value.is_none()).count();
                self.conflated = self.conflated.saturating_add(nulls as u64);
            }
            let is_sorted = header.row_id_length > 0;
            let parts = self.plain_parts(&ByteValues { values, null }, is_sorted);
            let mut renewed = self.byte_header(rows, &parts);
            renewed.min_max.clone_from(&header.min_max);
            let body = self.fill(&mut renewed, parts)?;
            if let (Some(page_header), Some(page_body)) =
                (self.pages.get_mut(page), self.bodies.get_mut(page))
            {
                (*page_header, *page_body) = (renewed, body);
            }
        }
        Ok(())
    }

    fn binaries(&mut self, array: &ArrayRef) -> Result<()> {
        let array = array.as_binary_view();
        let values = ByteValues { values: array.iter().collect(), null: &[] };
        let empty = values.values.iter().flatten().filter(|value| value.is_empty()).count();
        self.conflated = self.conflated.saturating_add(empty as u64);
        let bounds = match self.kind.is_child {
            true => Bounds::Node,
            false => Bounds::of_bytes(values.stored()),
        };
        let parts = self.plain_parts(&values, false);
        let header = self.byte_header(values.values.len(), &parts);
        self.push(header, parts, bounds, array.null_count() > 0)
    }

    fn surrogates(array: &ArrayRef) -> Result<Vec<i32>> {
        let dates = array.as_primitive::<Date32Type>();
        let surrogate = |days: Option<i32>| match days.map(|days| days.checked_add(DATE_BASE)) {
            None => Ok(NULL_DATE),
            Some(Some(surrogate @ 2..)) => Ok(surrogate),
            _ => Err(Error::invalid(format!("a date {} days from 1970", days.unwrap_or_default()))),
        };
        dates.iter().map(surrogate).collect()
    }

    fn dates(&mut self, array: &ArrayRef) -> Result<()> {
        let surrogates = Self::surrogates(array)?;
        let has_nulls = array.null_count() > 0;
        let is_sorted = self.has_inverted_index && !has_nulls;
        let parts = strings::surrogates(&surrogates, is_sorted);
        let mut header = self.header(array.len());
        // Runs are listed by every writer, whether there are any or not.
        header.encoders = vec![encoding::DICTIONARY, encoding::RLE];
        header.sort_state = Some(IN_ROW_ORDER);
        if is_sorted {
            header.encoders.push(encoding::INVERTED_INDEX);
            header.sort_state = Some(BY_ROW_IDS);
        }
        let wide = surrogates.iter().copied().map(i64::from);
        let (min, max) = (wide.clone().min().unwrap_or_default(), wide.max().unwrap_or_default());
        self.push(header, parts, Bounds::Integers { min, max }, has_nulls)
    }

    /// Dates and decimals inside nested columns, which are bytes; null is none.
    fn child_bytes(&mut self, array: &ArrayRef) -> Result<()> {
        let mut parts = PageParts::default();
        match self.kind.carbon_type {
            CarbonType::Decimal { scale, precision } => {
                let limit = super::super::page::numbers::power_of_ten(precision).unsigned_abs();
                for value in array.as_primitive::<Decimal128Type>() {
                    let bytes = match value {
                        Some(value) if value.unsigned_abs() >= limit => {
                            return Err(Error::invalid(format!("a decimal of more than {precision} digits")));
                        }
                        Some(value) => decimal_bytes(scale, value),
                        None => Vec::new(),
                    };
                    strings::put_value(&mut parts.data, LengthWidth::Four, &bytes);
                }
            }
            _ => {
                for (row, surrogate) in Self::surrogates(array)?.into_iter().enumerate() {
                    let bytes = (surrogate ^ i32::MIN).to_be_bytes();
                    let value: &[u8] = if array.is_null(row) { &[] } else { &bytes };
                    strings::put_value(&mut parts.data, LengthWidth::Four, value);
                }
            }
        }
        let header = self.nested_header(array.len(), column_type::CHILD);
        self.push(header, parts, Bounds::Node, false)
    }

    /// Codes of the table's dictionary.
    fn table_codes(&mut self, array: &ArrayRef) -> Result<()> {
        let Some(codes) = &self.codes else { return Ok(()) };
        let rows = codes.codes(array)?;
        let (min, max) = (rows.iter().min(), rows.iter().max());
        let bounds = Bounds::Codes {
            min: min.copied().unwrap_or_default(),
            max: max.copied().unwrap_or_default(),
            width: CODE_BYTES,
        };
        let parts = strings::coded(&rows, CODE_BYTES, false);
        let mut header = self.header(rows.len());
        header.encoders = vec![encoding::DICTIONARY, encoding::RLE];
        header.sort_state = Some(IN_ROW_ORDER);
        self.push(header, parts, bounds, array.null_count() > 0)
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
                let (words, bits) = dictionary.finish(width, strings::null_word(is_varchar));
                dictionary.clear();
                let (mut packed_words, mut packed_bits) = (Vec::new(), Vec::new());
                codec.compress(&words, &mut packed_words)?;
                codec.compress(&bits, &mut packed_bits)?;
                Some(DictionaryChunk {
                    encoder_meta: vec![self.byte_array_meta(column_type).into()],
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

/// Codes without runs.
fn unrolled(parts: &PageParts) -> Result<PageParts> {
    let entries = super::super::page::words::codes(&parts.data, LOCAL_CODE_BYTES)?;
    let places = super::super::page::order::expand_runs(&parts.runs, entries.len(), usize::MAX)?;
    let rows = super::super::page::through(&places, &entries)?;
    let data = rows.iter().flat_map(|code| code.to_be_bytes().into_iter().skip(1)).collect();
    Ok(PageParts { data, ..PageParts::default() })
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
