//! What a schema and options mean for each column.

use arrow_schema::DataType;
use pilaster_core::{Error, Result};

use super::filter::FilterKind;
use super::options::{
    BLOOM_RATE, ColumnWriteOptions, DICTIONARY_PAGE_BYTES, PAGE_BYTES, ROW_STORE_PAGE_BYTES,
    SegmentWriteOptions, VariantSubcolumn,
};
use super::paged::PagedSettings;
use crate::schema::{KeysType, ROW_STORE_COLUMN, SchemaColumn, TabletSchema};
use crate::segment::cells::Cell;
use crate::segment::column::schema_type;
use crate::segment::footer::StorageFormat;
use crate::segment::types::{Compression, Encoding, FieldType, Physical};

/// Page sizes that make sense.
const PAGE_BYTES_RANGE: std::ops::RangeInclusive<usize> = 64..=10 << 20;
/// Bytes a CHAR can have: Doris allows 255 characters, of up to four bytes.
const CHAR_BYTES: std::ops::RangeInclusive<i32> = 1..=1020;
/// `be_exec_version` of columns that are no AGG_STATE.
const NO_VERSION: i32 = -1;
/// Functions whose states are arrays, and are stored like them.
const ARRAY_STATES: [&str; 1] = ["array_agg"];
/// Functions whose states are maps, and are stored like them.
const MAP_STATES: [&str; 1] = ["map_agg_v1"];

/// What all columns of a file share.
#[derive(Debug, Clone)]
pub(super) struct FilePlan {
    pub format: StorageFormat,
    pub compression: Compression,
    pub page_bytes: usize,
    pub dictionary_page_bytes: usize,
    pub row_store_page_bytes: usize,
    pub bloom_rate: f64,
    /// Whether pages of any number of rows have bounds.
    pub bounds_small_pages: bool,
}

/// How the rows of a column lie in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Paged,
    List,
    Map,
    Struct,
    Variant,
}

/// A column, or a part of one, with nothing left open.
#[derive(Debug, Clone)]
pub(crate) struct ColumnPlan {
    pub name: String,
    pub column_id: u32,
    pub unique_id: i32,
    pub field_type: FieldType,
    pub layout: Layout,
    pub length: i32,
    pub is_nullable: bool,
    pub default_value: Vec<u8>,
    pub precision: i32,
    pub frac: i32,
    /// Name of the aggregation, and what goes with it; `None` for parts of a VARIANT, which do not say it.
    pub aggregation: Option<Aggregation>,
    /// Encoding as the metadata says it; `None` for arrays, maps and structs.
    pub encoding: Option<Encoding>,
    pub paged: PagedSettings,
    pub children: Vec<ColumnPlan>,
    /// Type of the arrays that are written.
    pub arrow: DataType,
    pub variant: Option<VariantPlan>,
}

/// How values of equal keys are aggregated.
#[derive(Debug, Clone)]
pub(crate) struct Aggregation {
    pub name: String,
    pub result_is_nullable: bool,
    pub be_exec_version: i32,
}

/// What is special about a VARIANT.
#[derive(Debug, Clone)]
pub(crate) struct VariantPlan {
    pub max_subcolumns: i32,
    pub has_filters: bool,
    pub subcolumns: Option<Vec<VariantSubcolumn>>,
}

impl FilePlan {
    pub fn new(schema: &TabletSchema, options: &SegmentWriteOptions) -> Result<Self> {
        let size = |chosen: Option<usize>, declared: Option<u32>, default: usize| {
            chosen.or(declared.filter(|bytes| *bytes > 0).map(|bytes| bytes as usize)).unwrap_or(default)
        };
        let plan = Self {
            format: options.format.or(schema.storage_format).unwrap_or(StorageFormat::V2),
            compression: options.compression.or(schema.compression).unwrap_or(Compression::Lz4Frame),
            page_bytes: size(options.page_bytes, schema.storage_page_size, PAGE_BYTES),
            dictionary_page_bytes: size(
                options.dictionary_page_bytes,
                schema.storage_dict_page_size,
                DICTIONARY_PAGE_BYTES,
            ),
            row_store_page_bytes: size(
                options.row_store_page_bytes,
                schema.row_store_page_size,
                ROW_STORE_PAGE_BYTES,
            ),
            bloom_rate: options.bloom_rate.or(schema.bf_fpp.filter(|rate| *rate > 0.0)).unwrap_or(BLOOM_RATE),
            bounds_small_pages: options.release.is_some(),
        };
        for bytes in [plan.page_bytes, plan.dictionary_page_bytes, plan.row_store_page_bytes] {
            check_page_bytes(bytes)?;
        }
        if !(plan.bloom_rate > 0.0 && plan.bloom_rate < 1.0) {
            return Err(Error::invalid(format!(
                "a bloom filter that is wrong at a rate of {}, not between 0 and 1",
                plan.bloom_rate
            )));
        }
        if options.rows_per_short_key == 0 {
            return Err(Error::invalid("no rows between two short keys"));
        }
        if let Some(release) = options.release {
            release.check_table(schema, plan.format)?;
        }
        Ok(plan)
    }

    /// Encoding of entries, and of strings that are no longer in the dictionary.
    pub fn words(&self) -> Encoding {
        match self.format {
            StorageFormat::V2 => Encoding::Plain,
            StorageFormat::V3 => Encoding::PlainV3,
        }
    }

    /// The encoding Doris takes for a type.
    pub fn default_encoding(&self, field_type: FieldType) -> Encoding {
        match (field_type, self.format) {
            (
                FieldType::TinyInt
                | FieldType::SmallInt
                | FieldType::Int
                | FieldType::BigInt
                | FieldType::LargeInt,
                StorageFormat::V3,
            ) => Encoding::Plain,
            (FieldType::Bool, _) => Encoding::Rle,
            (
                FieldType::Char
                | FieldType::Varchar
                | FieldType::String
                | FieldType::Jsonb
                | FieldType::Variant,
                _,
            ) => Encoding::Dict,
            (FieldType::Hll | FieldType::Bitmap | FieldType::QuantileState | FieldType::AggState, _) => {
                self.words()
            }
            _ => Encoding::BitShuffle,
        }
    }

    /// How a helper column is written: offsets of rows, or their nulls.
    pub fn helper(&self, field_type: FieldType, compression: Compression) -> Result<PagedSettings> {
        Ok(PagedSettings {
            cell: Cell::of_type(field_type, None, None)?,
            encoding: self.default_encoding(field_type),
            compression,
            page_bytes: self.page_bytes,
            dictionary_page_bytes: self.dictionary_page_bytes,
            words: self.words(),
            is_nullable: false,
            has_zone_maps: false,
            bounds_small_pages: false,
            filter: None,
        })
    }
}

fn check_page_bytes(bytes: usize) -> Result<()> {
    if PAGE_BYTES_RANGE.contains(&bytes) {
        return Ok(());
    }
    Err(Error::invalid(format!("a page size of {bytes} bytes is outside 64..=10485760")))
}

/// The columns of a schema with Doris's own choices, and how strings are stored that are in no dictionary.
pub(crate) fn plan_schema(schema: &TabletSchema) -> Result<(Vec<ColumnPlan>, Encoding)> {
    let options = SegmentWriteOptions::default();
    let file = FilePlan::new(schema, &options)?;
    Ok((plan_columns(&file, schema, &options)?, file.words()))
}

/// The columns of a schema, in its order.
pub(super) fn plan_columns(
    file: &FilePlan,
    schema: &TabletSchema,
    options: &SegmentWriteOptions,
) -> Result<Vec<ColumnPlan>> {
    let mut known = options.columns.len();
    let mut columns = Vec::with_capacity(schema.columns.len());
    for (number, column) in schema.columns.iter().enumerate() {
        let planner = Planner {
            file,
            schema,
            options,
            column_id: u32::try_from(number).map_err(|_| Error::invalid("too many columns"))?,
            has_zone_maps: column.is_key || schema.keys_type != KeysType::Aggregate,
        };
        let planned = planner.column(column, &column.name, true, &mut known).and_then(|plan| {
            let checked =
                options.release.map_or(Ok(()), |release| release.check_column(&plan, column.is_key));
            checked.map(|()| plan)
        });
        columns.push(planned.map_err(|error| {
            if error.position().is_some() {
                error
            } else {
                error.at(&format!("column \"{}\"", column.name), 0, "")
            }
        })?);
    }
    if known > 0 {
        let names: Vec<_> = options.columns.keys().map(String::as_str).collect();
        return Err(Error::invalid(format!("options for columns that are not there, among {names:?}")));
    }
    Ok(columns)
}

struct Planner<'a> {
    file: &'a FilePlan,
    schema: &'a TabletSchema,
    options: &'a SegmentWriteOptions,
    column_id: u32,
    has_zone_maps: bool,
}

impl Planner<'_> {
    /// `unknown` counts the options that belong to no column so far.
    fn column(
        &self,
        column: &SchemaColumn,
        path: &str,
        is_top: bool,
        unknown: &mut usize,
    ) -> Result<ColumnPlan> {
        let default = ColumnWriteOptions::default();
        let chosen = match self.options.columns.get(path) {
            Some(chosen) => {
                *unknown = unknown.saturating_sub(1);
                chosen
            }
            None => &default,
        };
        let field_type = FieldType::from_schema_name(&column.type_name)
            .ok_or_else(|| Error::invalid(format!("an unknown type {}", column.type_name)))?;
        let function = column.aggregation.clone().filter(|name| !name.is_empty());
        let function = function.unwrap_or_else(|| "NONE".to_string());
        let is_state = |names: &[&str]| {
            field_type == FieldType::AggState && names.iter().any(|name| function.eq_ignore_ascii_case(name))
        };
        let layout = match field_type {
            FieldType::Array => Layout::List,
            FieldType::Map => Layout::Map,
            FieldType::Struct => Layout::Struct,
            FieldType::Variant => Layout::Variant,
            _ if is_state(&ARRAY_STATES) => Layout::List,
            _ if is_state(&MAP_STATES) => Layout::Map,
            _ => Layout::Paged,
        };
        // Every cell is filled up to it.
        if field_type == FieldType::Char && !CHAR_BYTES.contains(&column.length) {
            return Err(Error::invalid(format!(
                "a CHAR of {} bytes, not of {} to {}",
                column.length,
                CHAR_BYTES.start(),
                CHAR_BYTES.end()
            )));
        }
        if layout == Layout::Variant && !is_top {
            return Err(Error::unsupported("a VARIANT inside another column"));
        }
        let children = column
            .children
            .iter()
            .enumerate()
            .map(|(number, child)| {
                let part = match (layout, number) {
                    (Layout::List, _) => "item",
                    (Layout::Map, 0) => "key",
                    (Layout::Map, _) => "value",
                    _ => child.name.as_str(),
                };
                self.column(child, &format!("{path}.{part}"), false, unknown)
            })
            .collect::<Result<Vec<_>>>()?;
        let wanted = match layout {
            Layout::List => Some(1),
            Layout::Map => Some(2),
            Layout::Struct => Some(children.len().max(1)),
            _ => None,
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != children.len()) {
            return Err(Error::invalid(format!("a {field_type} of {} parts, not {wanted}", children.len())));
        }
        let paged = self.paged(column, field_type, chosen, is_top)?;
        Ok(ColumnPlan {
            name: column.name.clone(),
            column_id: self.column_id,
            unique_id: column.unique_id,
            field_type,
            layout,
            length: declared_length(column, field_type),
            is_nullable: column.is_nullable,
            default_value: column.default_value.clone().unwrap_or_default().into_bytes(),
            precision: column.precision,
            frac: column.frac,
            aggregation: Some(Aggregation {
                name: function,
                result_is_nullable: column.result_is_nullable,
                be_exec_version: column.be_exec_version.unwrap_or(NO_VERSION),
            }),
            encoding: (!matches!(field_type, FieldType::Array | FieldType::Map | FieldType::Struct))
                .then_some(paged.encoding),
            paged,
            arrow: arrow_type(column, layout)?,
            children,
            variant: (layout == Layout::Variant).then(|| VariantPlan {
                max_subcolumns: column.variant_max_subcolumns_count.unwrap_or(0),
                has_filters: chosen.bloom_filter.unwrap_or(column.is_bf_column),
                subcolumns: chosen.subcolumns.clone(),
            }),
        })
    }

    fn paged(
        &self,
        column: &SchemaColumn,
        field_type: FieldType,
        chosen: &ColumnWriteOptions,
        is_top: bool,
    ) -> Result<PagedSettings> {
        let is_row_store = column.name == ROW_STORE_COLUMN;
        let default = if is_row_store { self.file.words() } else { self.file.default_encoding(field_type) };
        let encoding = chosen.encoding.unwrap_or(default);
        let cell = match field_type {
            FieldType::Array | FieldType::Map | FieldType::Struct | FieldType::Variant => Cell::Bytes,
            FieldType::String if is_row_store => Cell::Bytes,
            _ => Cell::of_type(field_type, Some(column.precision), Some(column.frac))?,
        };
        let is_nested = field_type.physical() == Physical::Nested;
        if !is_nested && !is_readable(field_type, is_row_store, encoding) {
            return Err(Error::invalid(format!("{field_type} has no encoding {encoding}")));
        }
        let page_bytes = chosen.page_bytes.unwrap_or(if is_row_store {
            self.file.row_store_page_bytes
        } else {
            self.file.page_bytes
        });
        check_page_bytes(page_bytes)?;
        // The subcolumns of a VARIANT have them too.
        let has_zone_maps = is_top && (zone_maps_fit(field_type) || field_type == FieldType::Variant);
        let filter = if is_top { self.filter(column, field_type, chosen)? } else { None };
        Ok(PagedSettings {
            cell,
            encoding,
            compression: chosen.compression.unwrap_or(self.file.compression),
            page_bytes,
            dictionary_page_bytes: self.file.dictionary_page_bytes,
            words: self.file.words(),
            is_nullable: column.is_nullable,
            has_zone_maps: has_zone_maps && chosen.zone_map.unwrap_or(self.has_zone_maps),
            bounds_small_pages: self.file.bounds_small_pages,
            filter,
        })
    }

    fn filter(
        &self,
        column: &SchemaColumn,
        field_type: FieldType,
        chosen: &ColumnWriteOptions,
    ) -> Result<Option<FilterKind>> {
        if field_type == FieldType::Variant {
            return Ok(None);
        }
        let ngram = self.schema.ngram_index(column.unique_id);
        if let Some(index) = ngram.filter(|_| chosen.bloom_filter != Some(false)) {
            let property = |name: &str| {
                index
                    .number(name)
                    .ok_or_else(|| Error::invalid(format!("index \"{}\" without a {name}", index.index_name)))
            };
            return Ok(Some(FilterKind::Ngram {
                gram_size: property("gram_size")?,
                filter_bytes: property("bf_size")?,
            }));
        }
        if !chosen.bloom_filter.unwrap_or(column.is_bf_column) {
            return Ok(None);
        }
        if !filters_fit(field_type) {
            return Err(Error::invalid(format!("{field_type} has no bloom filters")));
        }
        Ok(Some(FilterKind::Block { rate: self.file.bloom_rate }))
    }
}

/// The type of the arrays that are written.
fn arrow_type(column: &SchemaColumn, layout: Layout) -> Result<DataType> {
    let as_type = match layout {
        Layout::List => "ARRAY",
        Layout::Map => "MAP",
        _ => return schema_type(column),
    };
    schema_type(&SchemaColumn { type_name: as_type.to_string(), ..column.clone() })
}

/// The length the metadata says: what is declared, or what the type takes.
fn declared_length(column: &SchemaColumn, field_type: FieldType) -> i32 {
    if column.length != 0 {
        return column.length;
    }
    match field_type.physical() {
        Physical::Fixed(width) => i32::try_from(width).unwrap_or(i32::MAX),
        Physical::Bytes => i32::MAX,
        Physical::Nested if field_type == FieldType::Variant => i32::MAX,
        Physical::Nested => 65_535,
    }
}

/// Whether readers know the type in this encoding.
pub(crate) fn is_readable(field_type: FieldType, is_row_store: bool, encoding: Encoding) -> bool {
    use Encoding as E;
    use FieldType as T;
    match field_type {
        T::Bool => matches!(encoding, E::Rle | E::BitShuffle | E::Plain),
        T::TinyInt | T::SmallInt | T::Int | T::BigInt | T::LargeInt => {
            matches!(encoding, E::BitShuffle | E::Plain | E::Frames)
        }
        T::Date | T::DateTime | T::DateV2 | T::DateTimeV2 => {
            matches!(encoding, E::BitShuffle | E::Plain | E::Frames)
        }
        T::String if is_row_store => matches!(encoding, E::Plain | E::PlainV2 | E::PlainV3),
        T::Char | T::Varchar | T::String | T::Jsonb | T::Variant => {
            matches!(encoding, E::Dict | E::Plain | E::PlainV2 | E::PlainV3 | E::Prefix)
        }
        T::Hll | T::Bitmap | T::QuantileState | T::AggState => {
            matches!(encoding, E::Plain | E::PlainV2 | E::PlainV3)
        }
        _ => matches!(encoding, E::BitShuffle | E::Plain),
    }
}

/// Whether columns of the type have zone maps at all.
pub(super) fn zone_maps_fit(field_type: FieldType) -> bool {
    !matches!(
        field_type,
        FieldType::Jsonb
            | FieldType::AggState
            | FieldType::Bitmap
            | FieldType::Hll
            | FieldType::QuantileState
            | FieldType::Variant
            | FieldType::Array
            | FieldType::Map
            | FieldType::Struct
    )
}

/// Whether columns of the type can have bloom filters.
pub(crate) fn filters_fit(field_type: FieldType) -> bool {
    zone_maps_fit(field_type) && !matches!(field_type, FieldType::Bool | FieldType::Float | FieldType::Double)
}
