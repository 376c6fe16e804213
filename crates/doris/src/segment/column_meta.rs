//! How a column is described: `ColumnMetaPB`, checked.

use std::collections::BTreeMap;

use pilaster_core::{Error, Limits, Result};

use super::page::PagePointer;
use super::types::{Compression, Encoding, FieldType};
use crate::messages::{
    BTreePb, ColumnMetaPb, IndexedColumnPb, PathInfoPb, VariantStatisticsPb, ZoneMapPb, required,
};

/// `BloomFilterIndexPB.algorithm` of filters in blocks of 32 bytes.
pub(super) const BLOCK_BLOOM: i32 = 0;
/// That of filters of the parts of texts.
pub(super) const NGRAM_BLOOM: i32 = 2;
/// `BloomFilterIndexPB.hash_strategy` of the one-lane Murmur hash.
pub(super) const MURMUR_HASH: i32 = 0;
/// That of the City hash.
pub(super) const CITY_HASH: i32 = 1;

/// One column of a segment, or a part of one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ColumnMeta {
    /// Position in the schema when the file was written.
    pub column_id: u32,
    /// Joins the column to the tablet's schema; -1 for subcolumns of a VARIANT.
    pub unique_id: i32,
    /// What the cells are.
    pub field_type: FieldType,
    /// Declared length in bytes.
    pub length: i32,
    /// How pages are laid out; `None` for columns made of other columns.
    pub encoding: Option<Encoding>,
    /// Codec of data and dictionary pages.
    pub compression: Compression,
    /// Whether cells may be null.
    pub is_nullable: bool,
    /// Values, nulls included.
    pub num_rows: u64,
    /// The entries of a DICT column.
    pub dictionary: Option<PagePointer>,
    /// The columns this one is made of.
    pub children: Vec<ColumnMeta>,
    /// Digits of a decimal.
    pub precision: Option<i32>,
    /// Digits after the point.
    pub frac: Option<i32>,
    /// How rows of equal keys are aggregated; the function of an AGG_STATE.
    pub function_name: Option<String>,
    /// Where in which VARIANT the column belongs.
    pub path: Option<VariantPath>,
    /// Bytes of data and dictionary pages as they are stored, and before compression; not in old files.
    pub(crate) data_bytes: Option<(u64, u64)>,
    /// How many rows have each path of a map of a VARIANT, as far as the file says.
    pub(crate) path_counts: BTreeMap<String, u32>,
    pub(crate) ordinal_index: Option<TreeMeta>,
    pub(crate) zone_map: Option<ZoneMapMeta>,
    pub(crate) bloom: Option<BloomMeta>,
    pub(crate) bitmap: Option<BitmapMeta>,
}

/// Where a subcolumn belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariantPath {
    /// Unique id of the VARIANT column; `None` for the VARIANT column itself.
    pub parent: Option<i32>,
    /// Keys from the value's root on, without the column's name.
    pub keys: Vec<String>,
    /// Whether it lies inside an array of objects.
    pub is_nested: bool,
}

/// The root of an index tree, or the only data page in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeMeta {
    pub root: PagePointer,
    pub is_data_page: bool,
}

/// A column inside the file that serves an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexedColumnMeta {
    pub field_type: FieldType,
    pub encoding: Encoding,
    pub compression: Compression,
    pub num_values: u64,
    pub ordinal_index: Option<TreeMeta>,
    pub value_index: Option<TreeMeta>,
}

impl IndexedColumnMeta {
    /// Where its pages are listed, or its only page lies.
    pub fn offset(&self) -> u64 {
        self.ordinal_index.or(self.value_index).map_or(0, |tree| tree.root.offset)
    }
}

/// Smallest and largest values: of the whole segment and of each page.
#[derive(Debug, Clone)]
pub(crate) struct ZoneMapMeta {
    pub segment: Option<ZoneMapPb>,
    pub pages: Option<IndexedColumnMeta>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct BloomMeta {
    pub filters: IndexedColumnMeta,
    /// `None`: unknown ones, of which nothing is asked.
    pub kind: Option<BloomKind>,
}

/// What the filters are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BloomKind {
    /// Whole values.
    Values,
    /// Runs of so many characters as the schema says.
    Grams,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct BitmapMeta {
    pub has_null: bool,
    pub values: IndexedColumnMeta,
    pub bitmaps: IndexedColumnMeta,
}

impl BitmapMeta {
    /// One for each value, and one for nulls.
    pub fn bitmap_count(&self) -> u64 {
        self.values.num_values.saturating_add(u64::from(self.has_null))
    }
}

/// Numbers of types that StarRocks added: from NULL to VARIANT. Doris's end before.
const STARROCKS_TYPES: std::ops::RangeInclusive<i32> = 42..=55;

impl TreeMeta {
    fn parse(message: &BTreePb) -> Result<Self> {
        Ok(Self {
            root: PagePointer::parse(required(message.root_page, "root_page")?)?,
            is_data_page: message.is_root_data_page.unwrap_or(false),
        })
    }
}

impl IndexedColumnMeta {
    pub fn parse(message: &IndexedColumnPb) -> Result<Self> {
        let num_values = message.num_values.unwrap_or(0);
        Ok(Self {
            field_type: FieldType::from_number(required(message.data_type, "data_type")?)?,
            encoding: Encoding::from_number(required(message.encoding, "encoding")?)?,
            compression: match message.compression {
                Some(number) => Compression::from_number(number)?,
                None => Compression::None,
            },
            num_values: u64::try_from(num_values)
                .map_err(|_| Error::corrupt("a number of values", num_values))?,
            ordinal_index: message.ordinal_index_meta.as_ref().map(TreeMeta::parse).transpose()?,
            value_index: message.value_index_meta.as_ref().map(TreeMeta::parse).transpose()?,
        })
    }
}

impl VariantPath {
    fn parse(message: &PathInfoPb) -> Self {
        let is_nested = message.has_nested.unwrap_or(false)
            || message.parts.iter().any(|part| part.is_nested.unwrap_or(false));
        Self {
            parent: message.parent_unique_id.map(signed).filter(|id| *id >= 0),
            keys: message.parts.iter().skip(1).map(|part| part.key.clone().unwrap_or_default()).collect(),
            is_nested,
        }
    }
}

/// A map is of one kind, and fills one of the lists.
fn path_counts(message: &VariantStatisticsPb) -> BTreeMap<String, u32> {
    let (sparse, doc) = (&message.sparse_column_non_null_size, &message.doc_value_column_non_null_size);
    sparse.iter().chain(doc).map(|(path, count)| (path.clone(), *count)).collect()
}

/// Unique ids are signed in one message and unsigned in another.
fn signed(unique_id: u32) -> i32 {
    unique_id.cast_signed()
}

/// What is said about files of StarRocks.
pub(crate) fn starrocks() -> Error {
    Error::unsupported(
        "a segment of StarRocks, a fork of Doris whose types and pages are its own: export the table with StarRocks (`INSERT INTO FILES`) to Parquet",
    )
}

/// StarRocks left Doris in 2020 and kept the magic: its segments look alike, but its types and pages are its own.
fn refuse_starrocks(message: &ColumnMetaPb) -> Result<()> {
    let has_own_fields = message.all_dict_encoded.is_some() || message.total_mem_footprint.is_some();
    if has_own_fields || message.field_type.is_some_and(|number| STARROCKS_TYPES.contains(&number)) {
        return Err(starrocks());
    }
    Ok(())
}

impl ColumnMeta {
    /// Checks a message; `rows` is what old files, which do not say it, hold in every column.
    pub(crate) fn parse(message: &ColumnMetaPb, rows: u64, limits: &Limits) -> Result<Self> {
        Self::parse_nested(message, rows, limits.depth)
    }

    fn parse_nested(message: &ColumnMetaPb, rows: u64, depth: u32) -> Result<Self> {
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| Error::corrupt("columns nested less deeply", "more levels"))?;
        refuse_starrocks(message)?;
        let field_type = FieldType::from_number(required(message.field_type, "type")?)?;
        let num_rows = message.num_rows.unwrap_or(rows);
        let mut column = Self {
            column_id: message.column_id.unwrap_or(0),
            unique_id: signed(message.unique_id.unwrap_or(u32::MAX)),
            field_type,
            length: message.length.unwrap_or(0),
            encoding: match message.encoding.unwrap_or(0) {
                0 => None,
                number => Some(Encoding::from_number(number)?),
            },
            compression: Compression::from_number(message.compression.unwrap_or(2))?,
            is_nullable: message.is_nullable.unwrap_or(false),
            num_rows,
            dictionary: message.dict_page.map(PagePointer::parse).transpose()?,
            children: Vec::with_capacity(message.children_columns.len()),
            precision: message.precision,
            frac: message.frac,
            function_name: message.function_name.clone(),
            path: message.column_path_info.as_ref().map(VariantPath::parse),
            data_bytes: message.compressed_data_bytes.zip(message.uncompressed_data_bytes),
            path_counts: message.variant_statistics.as_ref().map(path_counts).unwrap_or_default(),
            ordinal_index: None,
            zone_map: None,
            bloom: None,
            bitmap: None,
        };
        for child in &message.children_columns {
            column.children.push(Self::parse_nested(child, num_rows, depth)?);
        }
        for index in &message.indexes {
            if let Some(tree) = index.ordinal_index.and_then(|ordinal| ordinal.root_page) {
                column.ordinal_index = Some(TreeMeta::parse(&tree)?);
            }
            if let Some(zone_map) = &index.zone_map_index {
                column.zone_map = Some(ZoneMapMeta {
                    segment: zone_map.segment_zone_map.clone(),
                    pages: zone_map.page_zone_maps.as_ref().map(IndexedColumnMeta::parse).transpose()?,
                });
            }
            if let Some(bloom) = &index.bloom_filter_index {
                column.bloom = Some(BloomMeta {
                    filters: IndexedColumnMeta::parse(required(
                        bloom.bloom_filter.as_ref(),
                        "bloom_filter",
                    )?)?,
                    kind: match (bloom.algorithm.unwrap_or(0), bloom.hash_strategy.unwrap_or(0)) {
                        (BLOCK_BLOOM, MURMUR_HASH) => Some(BloomKind::Values),
                        (NGRAM_BLOOM, CITY_HASH) => Some(BloomKind::Grams),
                        _ => None,
                    },
                });
            }
            if let Some(bitmap) = &index.bitmap_index {
                column.bitmap = Some(BitmapMeta {
                    has_null: bitmap.has_null.unwrap_or(false),
                    values: IndexedColumnMeta::parse(required(bitmap.dict_column.as_ref(), "dict_column")?)?,
                    bitmaps: IndexedColumnMeta::parse(required(
                        bitmap.bitmap_column.as_ref(),
                        "bitmap_column",
                    )?)?,
                });
            }
        }
        Ok(column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_starrocks_are_told_apart() {
        let date = ColumnMetaPb { field_type: Some(50), ..ColumnMetaPb::default() };
        let dictionary =
            ColumnMetaPb { field_type: Some(17), all_dict_encoded: Some(true), ..ColumnMetaPb::default() };
        let parent = ColumnMetaPb {
            field_type: Some(19),
            children_columns: vec![date.clone()],
            ..ColumnMetaPb::default()
        };
        for message in [date, dictionary, parent] {
            let error = ColumnMeta::parse(&message, 1, &Limits::default()).unwrap_err();
            assert!(error.to_string().contains("StarRocks"), "{error}");
        }
    }
}
