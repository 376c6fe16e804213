//! Pages of texts, bytes, dates and codes, for the chunk they belong to.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type};
use arrow_array::{Array, ArrayRef};
use pilaster_core::{Error, Result};

use super::super::meta::{column_type, decimal_bytes};
use super::super::page::encoding;
use super::super::page::numbers::power_of_ten;
use super::super::page::order::expand_runs;
use super::super::page::strings::{DATE_BASE, LengthWidth, NULL_MARKER};
use super::super::page::words::{self, LOCAL_CODE_BYTES};
use super::super::types::CarbonType;
use super::bounds::Bounds;
use super::chunk::ChunkWriter;
use super::strings::{self, PageParts};
use super::table_codes::CODE_BYTES;
use crate::messages::PageHeader;

/// The longest text of a STRING: CarbonData's row reader takes lengths for signed numbers of 16 bits.
const MAX_STRING_BYTES: usize = i16::MAX as usize;
/// How the values of a page are arranged.
const IN_ROW_ORDER: i32 = 1;
const BY_ROW_IDS: i32 = 2;
/// The surrogate of a null date.
const NULL_DATE: i32 = 1;

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
    pub(super) fn texts(&mut self, array: &ArrayRef) -> Result<()> {
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
            self.check_child_length(longest)?;
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
            // A child has no code for null but an entry for it.
            let is_child = self.kind.is_child;
            let words = values.values.iter().map(|value| value.or(is_child.then_some(null)));
            if let Some(rows) = dictionary.codes(words, max_length) {
                let parts = strings::coded(&rows, LOCAL_CODE_BYTES, is_sorted)?;
                return self.push_coded(parts, rows.len(), bounds, has_nulls);
            }
            self.give_up_dictionary()?;
        }
        if is_varchar {
            self.conflate(array.null_count() as u64);
        }
        let parts = self.plain_parts(&values, is_sorted)?;
        let header = self.byte_header(values.values.len(), &parts)?;
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
        let header = self.byte_header(rows, &parts)?;
        self.push(header, parts, bounds, has_nulls)
    }

    fn length_width(&self) -> LengthWidth {
        let is_long = matches!(self.kind.carbon_type, CarbonType::Varchar | CarbonType::Binary);
        match (self.kind.is_child, is_long) {
            (true, _) => self.child_lengths,
            (false, true) => LengthWidth::Four,
            (false, false) => LengthWidth::Two,
        }
    }

    fn plain_parts(&self, values: &ByteValues<'_>, is_sorted: bool) -> Result<PageParts> {
        if is_sorted {
            strings::plain_sorted(&values.stored().collect::<Vec<_>>(), self.length_width())
        } else {
            strings::plain(values.stored(), self.length_width())
        }
    }

    /// The header of a page of bytes or codes.
    fn byte_header(&self, rows: usize, parts: &PageParts) -> Result<PageHeader> {
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
        Ok(header)
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
            let parts = self.plain_parts(&ByteValues { values, null }, is_sorted)?;
            let mut renewed = self.byte_header(rows, &parts)?;
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

    /// Refuses what lengths of two bytes, which readers of old releases take for signed ones, cannot say.
    fn check_child_length(&self, longest: usize) -> Result<()> {
        match self.kind.is_child && self.child_lengths == LengthWidth::Two && longest > MAX_STRING_BYTES {
            true => Err(Error::invalid(format!(
                "a value of {longest} bytes inside of a nested column: releases before 2.0 have at most {MAX_STRING_BYTES}"
            ))),
            false => Ok(()),
        }
    }

    pub(super) fn binaries(&mut self, array: &ArrayRef) -> Result<()> {
        let array = array.as_binary_view();
        let values = ByteValues { values: array.iter().collect(), null: &[] };
        let longest = values.values.iter().flatten().map(|value| value.len()).max().unwrap_or_default();
        self.check_child_length(longest)?;
        let empty = values.values.iter().flatten().filter(|value| value.is_empty()).count();
        self.conflate(empty as u64);
        let bounds = match self.kind.is_child {
            true => Bounds::Node,
            false => Bounds::of_bytes(values.stored()),
        };
        let parts = self.plain_parts(&values, false)?;
        let header = self.byte_header(values.values.len(), &parts)?;
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

    pub(super) fn dates(&mut self, array: &ArrayRef) -> Result<()> {
        let surrogates = Self::surrogates(array)?;
        let has_nulls = array.null_count() > 0;
        let is_sorted = self.has_inverted_index && !has_nulls;
        let parts = strings::surrogates(&surrogates, is_sorted)?;
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
    pub(super) fn child_bytes(&mut self, array: &ArrayRef) -> Result<()> {
        let mut parts = PageParts::default();
        match self.kind.carbon_type {
            CarbonType::Decimal { scale, precision } => {
                let limit = power_of_ten(precision).unsigned_abs();
                for value in array.as_primitive::<Decimal128Type>() {
                    let bytes = match value {
                        Some(value) if value.unsigned_abs() >= limit => {
                            return Err(Error::invalid(format!("a decimal of more than {precision} digits")));
                        }
                        Some(value) => decimal_bytes(scale, value),
                        None => Vec::new(),
                    };
                    strings::put_value(&mut parts.data, self.child_lengths, &bytes)?;
                }
            }
            _ => {
                for (row, surrogate) in Self::surrogates(array)?.into_iter().enumerate() {
                    let bytes = (surrogate ^ i32::MIN).to_be_bytes();
                    let value: &[u8] = if array.is_null(row) { &[] } else { &bytes };
                    strings::put_value(&mut parts.data, self.child_lengths, value)?;
                }
            }
        }
        let header = self.nested_header(array.len(), column_type::CHILD)?;
        self.push(header, parts, Bounds::Node, false)
    }

    /// Codes of the table's dictionary.
    pub(super) fn table_codes(&mut self, array: &ArrayRef) -> Result<()> {
        let Some(codes) = &self.codes else { return Ok(()) };
        let rows = codes.codes(array)?;
        let (min, max) = (rows.iter().min(), rows.iter().max());
        let bounds = Bounds::Codes {
            min: min.copied().unwrap_or_default(),
            max: max.copied().unwrap_or_default(),
            width: CODE_BYTES,
        };
        let parts = strings::coded(&rows, CODE_BYTES, false)?;
        let mut header = self.header(rows.len());
        header.encoders = vec![encoding::DICTIONARY, encoding::RLE];
        header.sort_state = Some(IN_ROW_ORDER);
        self.push(header, parts, bounds, array.null_count() > 0)
    }
}

/// Codes without runs.
fn unrolled(parts: &PageParts) -> Result<PageParts> {
    let entries = words::codes(&parts.data, LOCAL_CODE_BYTES)?;
    let rows = expand_runs(&parts.runs, &entries, usize::MAX)?;
    let data = rows.iter().flat_map(|code| code.to_be_bytes().into_iter().skip(1)).collect();
    Ok(PageParts { data, ..PageParts::default() })
}
