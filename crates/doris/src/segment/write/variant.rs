//! A VARIANT column: the root, a column for each frequent path, a map of the others.
//!
//! The types of paths are known when the last row is, so the documents wait until then.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBufferBuilder;
use arrow_cast::cast;
use arrow_schema::DataType;
use pilaster_core::{Error, Result};

use super::column::ColumnWriter;
use super::filter::FilterKind;
use super::indexed::IndexedColumn;
use super::meta;
use super::page::Sink;
use super::paged::{PagedSettings, PagedWriter};
use super::plan::{ColumnPlan, FilePlan, Layout, VariantPlan, filters_fit, zone_maps_fit};
use super::values::{Form, MadeBytes, Values};
use super::variant_arrays::path_array;
use super::variant_parts::{Item, Kind, Parts, PathValues, sparse_cell};
use crate::messages::{ColumnMetaPb, IndexedColumnPb, PathInfoPb, PathPartPb, VariantStatisticsPb};
use crate::schema::SchemaColumn;
use crate::segment::cells::Cell;
use crate::segment::column::schema_type;
use crate::segment::types::{Encoding, FieldType};
use crate::segment::variant::SPARSE_KEY;

/// Unique id of what is no column of the schema.
const NO_ID: i32 = -1;

/// Collects the documents of a VARIANT column and writes its columns at the end.
#[derive(Debug)]
pub(super) struct VariantWriter {
    file: FilePlan,
    plan: ColumnPlan,
    documents: Vec<ArrayRef>,
    document_bytes: usize,
    root: PagedWriter,
    subcolumns: Vec<Subcolumn>,
    sparse: Option<Sparse>,
}

/// A path with a column of its own.
#[derive(Debug)]
struct Subcolumn {
    keys: Vec<String>,
    column: ColumnWriter,
    values: u64,
}

/// The map of all other paths.
#[derive(Debug)]
struct Sparse {
    column: ColumnWriter,
    /// Values of each path.
    counts: BTreeMap<String, u32>,
}

/// How a path is stored.
#[derive(Debug)]
struct Choice {
    keys: Vec<String>,
    field_type: FieldType,
    item: Option<Item>,
}

impl VariantWriter {
    pub fn new(file: &FilePlan, plan: &ColumnPlan) -> Result<Self> {
        let root =
            PagedWriter::new(PagedSettings { has_zone_maps: false, filter: None, ..plan.paged.clone() })?;
        Ok(Self {
            file: file.clone(),
            plan: plan.clone(),
            documents: Vec::new(),
            document_bytes: 0,
            root,
            subcolumns: Vec::new(),
            sparse: None,
        })
    }

    /// Keeps JSON texts.
    pub fn append(&mut self, array: &ArrayRef) -> Result<()> {
        let texts = match array.data_type() {
            DataType::Utf8View => Arc::clone(array),
            _ => cast(array, &DataType::Utf8View)?,
        };
        self.document_bytes = self.document_bytes.saturating_add(texts.get_array_memory_size());
        self.documents.push(texts);
        Ok(())
    }

    pub fn stored_bytes(&self) -> usize {
        self.document_bytes
    }

    fn options(&self) -> Result<VariantPlan> {
        self.plan.variant.clone().ok_or_else(|| Error::internal("no VARIANT"))
    }

    /// Takes the documents apart and fills the columns.
    pub fn take_apart(&mut self) -> Result<()> {
        let mut parts = Parts::default();
        let mut roots = MadeBytes::default();
        let mut nulls = NullBufferBuilder::new(0);
        for array in std::mem::take(&mut self.documents) {
            let texts = array.as_string_view();
            for row in 0..texts.len() {
                nulls.append(texts.is_valid(row));
                if texts.is_null(row) {
                    parts.add_null();
                    roots.push(b"");
                } else {
                    let number = parts.rows;
                    let rest = parts
                        .add(texts.value(row))
                        .map_err(|error| Error::invalid(format!("row {number}: {error}")))?;
                    roots.push(&rest);
                }
            }
        }
        self.document_bytes = 0;
        let rows = parts.rows;
        let nulls = nulls.finish().filter(|nulls| nulls.null_count() > 0);
        self.root.append(&Values { form: Form::Made(roots), nulls, len: rows })?;
        let choices = self.choose(&parts)?;
        let chosen: BTreeSet<&[String]> = choices.iter().map(|choice| choice.keys.as_slice()).collect();
        let rare: Vec<(&Vec<String>, &PathValues)> =
            parts.paths.iter().filter(|(keys, _)| !chosen.contains(keys.as_slice())).collect();
        self.sparse = Some(self.fill_sparse(&rare, rows, choices.len())?);
        for (number, choice) in choices.iter().enumerate() {
            let subcolumn = self.fill_subcolumn(choice, parts.paths.get(&choice.keys), rows, number)?;
            self.subcolumns.push(subcolumn);
        }
        Ok(())
    }

    /// The paths that get columns, and their types.
    fn choose(&self, parts: &Parts) -> Result<Vec<Choice>> {
        let options = self.options()?;
        if let Some(subcolumns) = &options.subcolumns {
            return subcolumns
                .iter()
                .map(|subcolumn| {
                    let item = subcolumn.item.and_then(Item::of_type);
                    if subcolumn.item.is_some() != item.is_some()
                        || (subcolumn.field_type == FieldType::Array) != item.is_some()
                        || subcolumn.keys.is_empty()
                    {
                        return Err(Error::invalid(format!("a subcolumn {subcolumn:?} of a VARIANT")));
                    }
                    Ok(Choice { keys: subcolumn.keys.clone(), field_type: subcolumn.field_type, item })
                })
                .collect();
        }
        let mut paths: Vec<(&Vec<String>, &PathValues)> = parts.paths.iter().collect();
        if let Ok(most @ 1..) = usize::try_from(options.max_subcolumns) {
            // The sort is stable: among equally frequent paths the first ones are kept.
            paths.sort_by_key(|(_, values)| std::cmp::Reverse(values.values.len()));
            paths.truncate(most);
        }
        paths.sort_by_key(|(keys, _)| keys.join("."));
        Ok(paths
            .into_iter()
            .map(|(keys, values)| {
                let (field_type, item) = match values.kind {
                    Kind::BigInt => (FieldType::BigInt, None),
                    Kind::Double => (FieldType::Double, None),
                    Kind::Bool => (FieldType::Bool, None),
                    Kind::Text => (FieldType::String, None),
                    Kind::List(Some(item)) => (FieldType::Array, Some(item)),
                    Kind::List(None) | Kind::Json => (FieldType::Jsonb, None),
                };
                Choice { keys: keys.clone(), field_type, item }
            })
            .collect())
    }

    /// The plan of a part: nullable, without the fields that only columns of a schema have.
    fn part(&self, field_type: FieldType, number: usize, children: Vec<ColumnPlan>) -> Result<ColumnPlan> {
        let layout = match field_type {
            FieldType::Array => Layout::List,
            FieldType::Map => Layout::Map,
            _ => Layout::Paged,
        };
        let has_filters = self.options()?.has_filters;
        let cell = match layout {
            Layout::Paged => Cell::of_type(field_type, None, None)?,
            _ => Cell::Bytes,
        };
        let paged = PagedSettings {
            cell,
            encoding: self.file.default_encoding(field_type),
            is_nullable: true,
            has_zone_maps: self.plan.paged.has_zone_maps && zone_maps_fit(field_type),
            filter: (has_filters && filters_fit(field_type))
                .then_some(FilterKind::Block { rate: self.file.bloom_rate }),
            ..self.plan.paged.clone()
        };
        let schema = SchemaColumn { type_name: field_type.name().to_string(), ..SchemaColumn::default() };
        Ok(ColumnPlan {
            name: self.plan.name.clone(),
            column_id: u32::try_from(number).map_err(|_| Error::invalid("too many paths"))?,
            unique_id: NO_ID,
            field_type,
            layout,
            length: match field_type {
                FieldType::Array => 65_535,
                FieldType::Bool => 1,
                FieldType::BigInt | FieldType::Double => 8,
                _ => i32::MAX,
            },
            is_nullable: true,
            default_value: Vec::new(),
            precision: NO_ID,
            frac: NO_ID,
            aggregation: None,
            encoding: (layout == Layout::Paged).then_some(paged.encoding),
            paged,
            arrow: if layout == Layout::Paged { schema_type(&schema)? } else { DataType::Null },
            children,
            variant: None,
        })
    }

    fn fill_subcolumn(
        &self,
        choice: &Choice,
        values: Option<&PathValues>,
        rows: usize,
        number: usize,
    ) -> Result<Subcolumn> {
        let column_id = number.saturating_add(1);
        let children = match choice.item {
            Some(item) => {
                let mut plan = self.part(item.field_type(), column_id, Vec::new())?;
                plan.paged.has_zone_maps = false;
                plan.paged.filter = None;
                vec![plan]
            }
            None => Vec::new(),
        };
        let plan = self.part(choice.field_type, column_id, children)?;
        let mut column = ColumnWriter::new(&self.file, plan)?;
        let values = values.map(|known| known.values.as_slice()).unwrap_or_default();
        let array = path_array((choice.field_type, choice.item), values, rows).map_err(|error| {
            Error::invalid(format!("path {} of the VARIANT: {error}", choice.keys.join(".")))
        })?;
        column.append(&array)?;
        Ok(Subcolumn { keys: choice.keys.clone(), column, values: values.len() as u64 })
    }

    fn fill_sparse(
        &self,
        rare: &[(&Vec<String>, &PathValues)],
        rows: usize,
        subcolumns: usize,
    ) -> Result<Sparse> {
        let column_id = subcolumns.saturating_add(1);
        let text = |cell: Cell| -> Result<ColumnPlan> {
            let mut plan = self.part(FieldType::String, column_id, Vec::new())?;
            plan.paged.cell = cell;
            plan.paged.has_zone_maps = false;
            plan.paged.filter = None;
            plan.paged.is_nullable = false;
            plan.is_nullable = false;
            plan.length = NO_ID;
            Ok(plan)
        };
        let mut value = text(Cell::Bytes)?;
        value.arrow = DataType::BinaryView;
        let mut plan = self.part(FieldType::Map, column_id, vec![text(Cell::Text)?, value])?;
        plan.is_nullable = false;
        plan.length = NO_ID;
        plan.default_value = b"NULL".to_vec();
        let mut by_row: BTreeMap<usize, Vec<(String, &[u8])>> = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for (keys, values) in rare {
            let path = keys.join(".");
            let count = values.values.len();
            let count =
                u32::try_from(count).map_err(|_| Error::invalid(format!("a path in {count} rows")))?;
            counts.insert(path.clone(), count);
            for (row, bytes) in &values.values {
                by_row.entry(*row).or_default().push((path.clone(), bytes));
            }
        }
        let mut maps = MapBuilder::new(
            Some(MapFieldNames { entry: "entries".into(), key: "key".into(), value: "value".into() }),
            StringBuilder::new(),
            BinaryBuilder::new(),
        );
        for row in 0..rows {
            let mut entries = by_row.remove(&row).unwrap_or_default();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            for (path, bytes) in entries {
                maps.keys().append_value(path);
                maps.values().append_value(sparse_cell(bytes)?);
            }
            maps.append(true)?;
        }
        let mut column = ColumnWriter::new(&self.file, plan)?;
        let array: ArrayRef = Arc::new(maps.finish());
        column.append(&array)?;
        Ok(Sparse { column, counts })
    }

    pub fn for_each_paged(&mut self, each: &mut dyn FnMut(&mut PagedWriter) -> Result<()>) -> Result<()> {
        each(&mut self.root)?;
        let sparse = self.sparse.iter_mut().map(|sparse| &mut sparse.column);
        let mut parts = self.subcolumns.iter_mut().map(|part| &mut part.column).chain(sparse);
        parts.try_for_each(|part| part.for_each_paged(each))
    }

    fn path_info(&self, keys: &[String], parent: u32) -> PathInfoPb {
        let all = [std::slice::from_ref(&self.plan.name), keys].concat();
        PathInfoPb {
            path: Some(all.join(".")),
            parts: all
                .into_iter()
                .map(|key| PathPartPb {
                    key: Some(key),
                    is_nested: Some(false),
                    anonymous_array_level: Some(0),
                })
                .collect(),
            has_nested: Some(false),
            parent_unique_id: Some(parent),
            is_typed: Some(false),
        }
    }

    /// What the root's metadata says beyond that of any column.
    pub fn describe_root(&self, meta: &mut ColumnMetaPb) {
        meta.indexes = self.root.indexes();
        meta.dict_page = self.root.dictionary();
        meta.column_path_info = Some(self.path_info(&[], NO_ID.cast_unsigned()));
        meta.variant_statistics = Some(no_groups(BTreeMap::new()));
        meta.variant_max_subcolumns_count =
            Some(self.plan.variant.as_ref().map_or(0, |options| options.max_subcolumns));
        meta.variant_enable_doc_mode = Some(false);
    }

    /// Metadata of the subcolumns, by path; in the order of their data if they are not to be sorted.
    pub fn describe_subcolumns(&self, is_sorted: bool) -> Vec<ColumnMetaPb> {
        let mut parts: Vec<&Subcolumn> = self.subcolumns.iter().collect();
        if is_sorted {
            parts.sort_by_key(|part| part.keys.join("."));
        }
        let parent = self.plan.unique_id.cast_unsigned();
        parts
            .into_iter()
            .map(|part| ColumnMetaPb {
                column_path_info: Some(self.path_info(&part.keys, parent)),
                none_null_size: Some(part.values),
                ..meta::part(&part.column)
            })
            .collect()
    }

    /// Metadata of the map of rare paths.
    pub fn describe_sparse(&self) -> Option<ColumnMetaPb> {
        let sparse = self.sparse.as_ref()?;
        let parent = self.plan.unique_id.cast_unsigned();
        Some(ColumnMetaPb {
            column_path_info: Some(self.path_info(&[SPARSE_KEY.to_string()], parent)),
            variant_statistics: Some(no_groups(sparse.counts.clone())),
            ..meta::part(&sparse.column)
        })
    }

    /// Writes the paths of the subcolumns as an index; `None` if there is none.
    pub fn write_paths<W: Write>(&self, sink: &mut Sink<W>) -> Result<Option<IndexedColumnPb>> {
        let mut paths: Vec<String> = self.subcolumns.iter().map(|part| part.keys.join(".")).collect();
        if paths.is_empty() {
            return Ok(None);
        }
        paths.sort();
        let mut column = IndexedColumn::new(FieldType::Varchar, Encoding::Prefix, self.file.compression)
            .with_value_index();
        for path in &paths {
            column.push(path.as_bytes(), sink)?;
        }
        column.finish(sink).map(Some)
    }
}

fn no_groups(counts: BTreeMap<String, u32>) -> VariantStatisticsPb {
    VariantStatisticsPb {
        sparse_column_non_null_size: counts,
        has_nested_group: Some(false),
        ..VariantStatisticsPb::default()
    }
}
