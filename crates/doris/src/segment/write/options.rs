//! What can be chosen when writing a segment.

use std::collections::HashMap;

use super::release::Release;
use crate::schema::TabletSchema;
use crate::segment::footer::StorageFormat;
use crate::segment::types::{Compression, Encoding, FieldType};

/// Bytes of a data page.
pub(super) const PAGE_BYTES: usize = 64 << 10;
/// Bytes of a dictionary page: what does not fit is stored in plain.
pub(super) const DICTIONARY_PAGE_BYTES: usize = 256 << 10;
/// Bytes of a page of the row store.
pub(super) const ROW_STORE_PAGE_BYTES: usize = 16 << 10;
/// How often a bloom filter may be wrong.
pub(super) const BLOOM_RATE: f64 = 0.05;
/// Rows between two short keys.
const ROWS_PER_SHORT_KEY: u32 = 1024;
/// More rows have no numbers.
const MOST_ROWS: u32 = i32::MAX.unsigned_abs();

/// How to write a segment. What is left open is as the tablet's schema says, and where that says nothing, as Doris does it:
/// format V2, LZ4F, data pages of 64 KiB, dictionaries of 256 KiB, a short key every 1024 rows.
#[derive(Debug, Clone)]
pub struct SegmentWriteOptions {
    pub(super) format: Option<StorageFormat>,
    pub(super) compression: Option<Compression>,
    pub(super) page_bytes: Option<usize>,
    pub(super) dictionary_page_bytes: Option<usize>,
    pub(super) row_store_page_bytes: Option<usize>,
    pub(super) bloom_rate: Option<f64>,
    pub(super) release: Option<Release>,
    pub(super) rows_per_short_key: u32,
    pub(super) max_rows: u32,
    pub(super) segment_id: u32,
    pub(super) column_order: Vec<i32>,
    pub(super) subcolumns_last: bool,
    pub(super) columns: HashMap<String, ColumnWriteOptions>,
}

impl Default for SegmentWriteOptions {
    fn default() -> Self {
        Self {
            format: None,
            compression: None,
            page_bytes: None,
            dictionary_page_bytes: None,
            row_store_page_bytes: None,
            bloom_rate: None,
            release: None,
            rows_per_short_key: ROWS_PER_SHORT_KEY,
            max_rows: MOST_ROWS,
            segment_id: 0,
            column_order: Vec::new(),
            subcolumns_last: false,
            columns: HashMap::new(),
        }
    }
}

impl SegmentWriteOptions {
    /// Where columns are described, which also decides the default encodings.
    #[must_use]
    pub fn with_format(mut self, format: StorageFormat) -> Self {
        self.format = Some(format);
        self
    }

    /// Codec of data and dictionary pages.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// About how many bytes a data page has before compression; 64 bytes to 10 MiB.
    #[must_use]
    pub fn with_page_bytes(mut self, bytes: usize) -> Self {
        self.page_bytes = Some(bytes);
        self
    }

    /// About how many bytes of entries a dictionary has before strings are stored in plain.
    #[must_use]
    pub fn with_dictionary_page_bytes(mut self, bytes: usize) -> Self {
        self.dictionary_page_bytes = Some(bytes);
        self
    }

    /// About how many bytes a page of the row store has.
    #[must_use]
    pub fn with_row_store_page_bytes(mut self, bytes: usize) -> Self {
        self.row_store_page_bytes = Some(bytes);
        self
    }

    /// How often bloom filters may be wrong, between 0 and 1.
    #[must_use]
    pub fn with_bloom_rate(mut self, rate: f64) -> Self {
        self.bloom_rate = Some(rate);
        self
    }

    /// A release that must read the segment rightly: what it does not know is an error, and what it gets wrong otherwise is written so
    /// that it does not.
    #[must_use]
    pub fn with_release(mut self, release: Release) -> Self {
        self.release = Some(release);
        self
    }

    /// Rows between two keys of the short key index.
    #[must_use]
    pub fn with_rows_per_short_key(mut self, rows: u32) -> Self {
        self.rows_per_short_key = rows;
        self
    }

    /// How many rows the segment may have; one more is an error.
    #[must_use]
    pub fn with_max_rows(mut self, rows: u32) -> Self {
        self.max_rows = rows;
        self
    }

    /// Number of the segment in its rowset.
    #[must_use]
    pub fn with_segment_id(mut self, number: u32) -> Self {
        self.segment_id = number;
        self
    }

    /// Unique ids in the order in which the columns' pages lie in the file; columns that are not named follow in the
    /// order of the schema.
    #[must_use]
    pub fn with_column_order(mut self, unique_ids: Vec<i32>) -> Self {
        self.column_order = unique_ids;
        self
    }

    /// Whether a V2 footer describes the subcolumns of VARIANT columns after all others, as Doris's row-wise writer does,
    /// instead of right after their column.
    #[must_use]
    pub fn with_subcolumns_last(mut self, last: bool) -> Self {
        self.subcolumns_last = last;
        self
    }

    /// Puts what a tablet's metadata says of its segments into the schema, as far as it was chosen here.
    pub(crate) fn declare(&self, schema: &mut TabletSchema) {
        let size = |chosen: Option<usize>| chosen.and_then(|bytes| u32::try_from(bytes).ok());
        schema.storage_format = Some(self.format.or(schema.storage_format).unwrap_or(StorageFormat::V2));
        schema.compression = self.compression.or(schema.compression);
        schema.storage_page_size = size(self.page_bytes).or(schema.storage_page_size);
        schema.storage_dict_page_size = size(self.dictionary_page_bytes).or(schema.storage_dict_page_size);
        schema.row_store_page_size = size(self.row_store_page_bytes).or(schema.row_store_page_size);
        schema.bf_fpp = self.bloom_rate.or(schema.bf_fpp);
    }

    /// The codec, if one was chosen.
    pub(crate) fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Takes an encoding and a codec for a column, and a format, where nothing was chosen.
    pub(crate) fn fill_column(&mut self, path: &str, encoding: Option<Encoding>, compression: Compression) {
        let is_open = self.compression.is_none();
        let column = self.columns.entry(path.to_string()).or_default();
        column.encoding = column.encoding.or(encoding);
        column.compression = column.compression.or(is_open.then_some(compression));
    }

    pub(crate) fn fill_format(&mut self, format: Option<StorageFormat>) {
        self.format = self.format.or(format);
    }

    /// Options of one column. A part of a column is named by its path: `tags.item`, `map.key`, `map.value`,
    /// `struct.field`.
    #[must_use]
    pub fn with_column(mut self, name: impl Into<String>, options: ColumnWriteOptions) -> Self {
        self.columns.insert(name.into(), options);
        self
    }
}

/// How to write one column.
#[derive(Debug, Clone, Default)]
pub struct ColumnWriteOptions {
    pub(super) encoding: Option<Encoding>,
    pub(super) compression: Option<Compression>,
    pub(super) page_bytes: Option<usize>,
    pub(super) bloom_filter: Option<bool>,
    pub(super) zone_map: Option<bool>,
    pub(super) subcolumns: Option<Vec<VariantSubcolumn>>,
}

impl ColumnWriteOptions {
    /// The encoding; by default what Doris takes for the type.
    #[must_use]
    pub fn with_encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = Some(encoding);
        self
    }

    /// Codec of the column's pages.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// About how many bytes a data page of the column has.
    #[must_use]
    pub fn with_page_bytes(mut self, bytes: usize) -> Self {
        self.page_bytes = Some(bytes);
        self
    }

    /// Whether the column's pages have bloom filters, whatever the schema says.
    #[must_use]
    pub fn with_bloom_filter(mut self, bloom_filter: bool) -> Self {
        self.bloom_filter = Some(bloom_filter);
        self
    }

    /// Whether the column has zone maps; by default keys have, and values of all tables but aggregating ones.
    #[must_use]
    pub fn with_zone_map(mut self, zone_map: bool) -> Self {
        self.zone_map = Some(zone_map);
        self
    }

    /// The paths of a VARIANT that get columns of their own, in the order in which they are stored; by default all paths
    /// up to the number the schema allows, the most frequent ones first chosen, sorted by path.
    #[must_use]
    pub fn with_variant_subcolumns(mut self, subcolumns: Vec<VariantSubcolumn>) -> Self {
        self.subcolumns = Some(subcolumns);
        self
    }
}

/// A path of a VARIANT that has a column of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariantSubcolumn {
    /// Keys from the value's root on.
    pub keys: Vec<String>,
    /// Its type: BIGINT, DOUBLE, BOOLEAN, STRING, JSONB, or ARRAY.
    pub field_type: FieldType,
    /// Type of the items of an ARRAY.
    pub item: Option<FieldType>,
}
