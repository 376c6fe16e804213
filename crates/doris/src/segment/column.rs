//! The columns of a segment as a tree: a scalar column has pages, an array, map or struct is made of other columns.
//!
//! ```text
//! ARRAY    item, offsets, [nulls]           offsets: where the items of each row begin, as row numbers of the item column
//! MAP      key, value, offsets, [nulls]     nulls: a TINYINT for each row, 1 for null; there if the column is nullable
//! STRUCT   field 1 … n, [nulls]
//! ```

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field, FieldRef, Fields};
use pilaster_core::order::Order;
use pilaster_core::{Error, Result};

use super::cells::Cell;
use super::column_meta::ColumnMeta;
use super::default_value::default_value;
use super::page::PageStore;
use super::paged::{PagedColumn, VIEW_BYTES};
use super::schema_change;
use super::types::{Encoding, FieldType};
use super::variant::Variant;
use crate::schema::{ROW_STORE_COLUMN, SchemaColumn};

/// A column of a segment, with the columns it is made of.
#[derive(Debug, Clone)]
pub(crate) enum Column {
    Paged(Arc<PagedColumn>),
    List(Arc<Repeated>, FieldRef, Box<Column>),
    Map(Arc<Repeated>, FieldRef, Box<(Column, Column)>),
    Struct(Arc<Grouped>),
    Variant(Arc<Variant>),
    /// A path of a VARIANT, as JSON text.
    VariantPath(Arc<Variant>, Vec<String>),
    /// A column that was added after the file was written: one value for all rows, or why there is none.
    Constant(Arc<Result<ArrayRef>>, DataType),
    /// A column whose type was changed after the file was written.
    Cast(Box<Column>, DataType),
}

/// What arrays and maps have besides their items.
#[derive(Debug)]
pub(crate) struct Repeated {
    pub offsets: Arc<PagedColumn>,
    pub nulls: Option<Arc<PagedColumn>>,
    /// Rows of the item columns.
    pub items: u64,
}

/// A struct.
#[derive(Debug)]
pub(crate) struct Grouped {
    pub fields: Fields,
    pub columns: Vec<Column>,
    pub nulls: Option<Arc<PagedColumn>>,
}

impl Column {
    /// The column of `meta`; `schema` gives names and what old files leave out.
    pub fn build(store: &Arc<PageStore>, meta: &ColumnMeta, schema: Option<&SchemaColumn>) -> Result<Self> {
        let child = |at: usize| {
            meta.children.get(at).ok_or_else(|| {
                Error::corrupt(
                    format!("the parts of a {} column", meta.field_type),
                    format!("{} parts", meta.children.len()),
                )
            })
        };
        let has_offsets_at =
            |at: usize| meta.children.get(at).is_some_and(|c| c.field_type == FieldType::UnsignedBigInt);
        match meta.field_type {
            FieldType::Array => Self::list(store, meta, schema),
            FieldType::Map => Self::map(store, meta, schema),
            // The state of some functions is an array or a map, and stored like one.
            FieldType::AggState if meta.ordinal_index.is_none() && has_offsets_at(1) => {
                Self::list(store, meta, schema)
            }
            FieldType::AggState if meta.ordinal_index.is_none() && has_offsets_at(2) => {
                Self::map(store, meta, schema)
            }
            FieldType::Struct => {
                let count = meta.children.len().saturating_sub(usize::from(meta.is_nullable));
                let declared = declared_parts(schema);
                schema_change::check_fields(schema, count)?;
                let mut fields = Vec::with_capacity(count);
                let mut columns = Vec::with_capacity(count);
                for number in 0..count {
                    let named = declared.get(number);
                    let (column, is_nullable) = part(store, meta, child(number)?, named)?;
                    let name = named
                        .map_or_else(|| format!("f{}", number.saturating_add(1)), |named| named.name.clone());
                    fields.push(Field::new(name, column.arrow(), is_nullable));
                    columns.push(column);
                }
                for added in declared.iter().skip(count) {
                    let column = Self::missing(added)?;
                    fields.push(Field::new(&added.name, column.arrow(), added.is_nullable));
                    columns.push(column);
                }
                let nulls = if meta.is_nullable { Some(nulls_column(store, child(count)?)?) } else { None };
                Ok(Self::Struct(Arc::new(Grouped { fields: fields.into(), columns, nulls })))
            }
            _ => Ok(Self::Paged(Arc::new(PagedColumn::new(store, meta, cell_of(meta, schema)?)?))),
        }
    }

    fn list(store: &Arc<PageStore>, meta: &ColumnMeta, schema: Option<&SchemaColumn>) -> Result<Self> {
        let [item, rest @ ..] = meta.children.as_slice() else {
            return Err(Error::corrupt("an item column", "none"));
        };
        let (column, is_nullable) = part(store, meta, item, declared_parts(schema).first())?;
        let field = Arc::new(Field::new("item", column.arrow(), is_nullable));
        Ok(Self::List(Arc::new(Repeated::new(store, meta, rest, item.num_rows)?), field, Box::new(column)))
    }

    fn map(store: &Arc<PageStore>, meta: &ColumnMeta, schema: Option<&SchemaColumn>) -> Result<Self> {
        let [key, value, rest @ ..] = meta.children.as_slice() else {
            return Err(Error::corrupt(
                "a key and a value column",
                format!("{} columns", meta.children.len()),
            ));
        };
        let declared = declared_parts(schema);
        let (keys, _) = part(store, meta, key, declared.first())?;
        let (values, is_nullable) = part(store, meta, value, declared.get(1))?;
        if key.num_rows != value.num_rows {
            return Err(Error::corrupt(format!("{} values, one for each key", key.num_rows), value.num_rows));
        }
        Self::map_of(store, meta, (keys, values), rest, (key.num_rows, is_nullable))
    }

    /// A map of so many entries, whose key and value columns were made before.
    pub fn map_of(
        store: &Arc<PageStore>,
        meta: &ColumnMeta,
        columns: (Column, Column),
        rest: &[ColumnMeta],
        (count, is_nullable): (u64, bool),
    ) -> Result<Self> {
        // Arrow's keys are never null; a null key is refused when it is met.
        let entries = Fields::from(vec![
            Field::new("key", columns.0.arrow(), false),
            Field::new("value", columns.1.arrow(), is_nullable),
        ]);
        let field = Arc::new(Field::new("entries", DataType::Struct(entries), false));
        Ok(Self::Map(Arc::new(Repeated::new(store, meta, rest, count)?), field, Box::new(columns)))
    }

    /// A column that the file does not have.
    pub fn missing(schema: &SchemaColumn) -> Result<Self> {
        let arrow = schema_type(schema)?;
        let value = default_value(schema, &arrow);
        Ok(Self::Constant(Arc::new(value), arrow))
    }

    /// The Arrow type of the column.
    pub fn arrow(&self) -> DataType {
        match self {
            Self::Paged(column) => column.shape.cell.arrow(),
            Self::List(_, field, _) => DataType::List(Arc::clone(field)),
            Self::Map(_, field, _) => DataType::Map(Arc::clone(field), false),
            Self::Struct(group) => DataType::Struct(group.fields.clone()),
            Self::Variant(_) | Self::VariantPath(..) => DataType::Utf8View,
            Self::Constant(_, arrow) | Self::Cast(_, arrow) => arrow.clone(),
        }
    }

    /// About what a value takes in memory, without what arrays in it hold.
    pub fn value_bytes(&self) -> u64 {
        match self {
            Self::Paged(column) => column.shape.cell.value_bytes() as u64,
            Self::Struct(group) => {
                group.columns.iter().map(Self::value_bytes).fold(1, |all, bytes| all.saturating_add(bytes))
            }
            Self::List(..) | Self::Map(..) => size_of::<u64>() as u64,
            Self::Variant(_) | Self::VariantPath(..) | Self::Constant(..) => VIEW_BYTES as u64,
            Self::Cast(inner, _) => inner.value_bytes().saturating_add(VIEW_BYTES as u64),
        }
    }

    /// Every column with pages, this one or below it.
    pub fn paged(&self) -> Vec<&Arc<PagedColumn>> {
        match self {
            Self::Paged(column) => vec![column],
            Self::List(shared, _, item) => shared.paged().into_iter().chain(item.paged()).collect(),
            Self::Map(shared, _, columns) => {
                shared.paged().into_iter().chain(columns.0.paged()).chain(columns.1.paged()).collect()
            }
            Self::Struct(group) => {
                group.columns.iter().flat_map(Self::paged).chain(group.nulls.iter()).collect()
            }
            Self::Variant(variant) | Self::VariantPath(variant, _) => variant.paged(),
            Self::Constant(..) => Vec::new(),
            Self::Cast(inner, _) => inner.paged(),
        }
    }
}

impl Repeated {
    fn new(store: &Arc<PageStore>, meta: &ColumnMeta, parts: &[ColumnMeta], items: u64) -> Result<Self> {
        let (offsets, nulls) = match (parts, meta.is_nullable) {
            ([offsets], false) => (offsets, None),
            ([offsets, nulls], true) => (offsets, Some(nulls_column(store, nulls)?)),
            _ => {
                return Err(Error::corrupt(
                    format!(
                        "offsets{} of a {} column",
                        if meta.is_nullable { " and nulls" } else { "" },
                        meta.field_type
                    ),
                    format!("{} columns", parts.len()),
                ));
            }
        };
        if offsets.field_type != FieldType::UnsignedBigInt {
            return Err(Error::corrupt("offsets of type UNSIGNED_BIGINT", offsets.field_type));
        }
        let cell = Cell::of(offsets, None)?;
        Ok(Self { offsets: Arc::new(PagedColumn::new(store, offsets, cell)?), nulls, items })
    }

    fn paged(&self) -> Vec<&Arc<PagedColumn>> {
        [Some(&self.offsets), self.nulls.as_ref()].into_iter().flatten().collect()
    }
}

fn declared_parts(schema: Option<&SchemaColumn>) -> &[SchemaColumn] {
    schema.map(|schema| schema.children.as_slice()).unwrap_or_default()
}

/// A part of a column as the schema has it, and whether it may be null. The parts of a state that is stored like an array are the
/// arguments of its function, which no schema change touches.
fn part(
    store: &Arc<PageStore>,
    whole: &ColumnMeta,
    meta: &ColumnMeta,
    declared: Option<&SchemaColumn>,
) -> Result<(Column, bool)> {
    let column = Column::build(store, meta, declared)?;
    match declared {
        Some(declared) if whole.field_type != FieldType::AggState => {
            let is_nullable = meta.is_nullable || declared.is_nullable;
            Ok((schema_change::widened(column, meta.field_type, declared)?, is_nullable))
        }
        _ => Ok((column, meta.is_nullable)),
    }
}

fn nulls_column(store: &Arc<PageStore>, meta: &ColumnMeta) -> Result<Arc<PagedColumn>> {
    if meta.field_type != FieldType::TinyInt {
        return Err(Error::corrupt("nulls of type TINYINT", meta.field_type));
    }
    Ok(Arc::new(PagedColumn::new(store, meta, Cell::of(meta, None)?)?))
}

/// What the cells of a scalar column are. The row-store column claims to be a STRING and holds binary documents; without
/// its name it is known by doing without a dictionary, which strings have.
fn cell_of(meta: &ColumnMeta, schema: Option<&SchemaColumn>) -> Result<Cell> {
    let is_row_store = match schema {
        Some(schema) => schema.name == ROW_STORE_COLUMN,
        None => meta.unique_id >= 0 && meta.encoding != Some(Encoding::Dict),
    };
    if meta.field_type == FieldType::String && is_row_store {
        return Ok(Cell::Bytes);
    }
    Cell::of(meta, schema.map(|schema| (schema.precision, schema.frac)))
}

/// A field, which says of addresses that they are no texts.
pub(crate) fn column_field(
    name: &str,
    data_type: DataType,
    is_nullable: bool,
    field_type: Option<FieldType>,
) -> Field {
    let order = match field_type {
        Some(FieldType::Ipv4) => Some(Order::Ipv4),
        Some(FieldType::Ipv6) => Some(Order::Ipv6),
        _ => None,
    };
    let metadata = order.map(Order::metadata).unwrap_or_default();
    Field::new(name, data_type, is_nullable).with_metadata(metadata)
}

/// The Arrow type of a column of a schema, as reading a file of it would give.
pub(crate) fn schema_type(schema: &SchemaColumn) -> Result<DataType> {
    let field_type = FieldType::from_schema_name(&schema.type_name).ok_or_else(|| {
        Error::invalid(format!("column \"{}\" is of an unknown type {}", schema.name, schema.type_name))
    })?;
    let part = |at: usize| {
        schema
            .children
            .get(at)
            .ok_or_else(|| Error::invalid(format!("column \"{}\" lacks its parts", schema.name)))
    };
    Ok(match field_type {
        FieldType::Array => {
            DataType::List(Arc::new(Field::new("item", schema_type(part(0)?)?, part(0)?.is_nullable)))
        }
        FieldType::Map => {
            let entries = Fields::from(vec![
                Field::new("key", schema_type(part(0)?)?, false),
                Field::new("value", schema_type(part(1)?)?, part(1)?.is_nullable),
            ]);
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
        }
        FieldType::Struct => {
            let fields = schema
                .children
                .iter()
                .map(|child| Ok(Field::new(&child.name, schema_type(child)?, child.is_nullable)));
            DataType::Struct(fields.collect::<Result<Vec<_>>>()?.into())
        }
        FieldType::Variant => DataType::Utf8View,
        FieldType::String if schema.name == ROW_STORE_COLUMN => DataType::BinaryView,
        _ => Cell::of_type(field_type, Some(schema.precision), Some(schema.frac))?.arrow(),
    })
}
