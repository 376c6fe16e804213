//! A segment as a dataset.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::new_null_array;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pilaster_core::dataset::OnDamage;
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::error::AtPosition;
use pilaster_core::positional::{self, ColumnCursor, Columns, FilledCursor};
use pilaster_core::source::TailSource;
use pilaster_core::{
    Dataset, Error, ErrorKind, Limits, LossLog, LostCells, Predicate, Progress, Result, RowRanges, Scan,
    ScanMemory, ScanPlan, ScanRequest, SourceRef, TaskSpan, VerifyDepth, VerifyReport,
};

use super::column::{Column, column_field};
use super::column_meta::ColumnMeta;
use super::cursor::FileCursor;
use super::footer::{FOOTER_PART, SegmentMetadata};
use super::page::PageStore;
use super::page_indexes::PageIndexes;
use super::schema_change;
use super::types::FieldType;
use super::variant::Variant;
use super::{describe, prune, rebuild, verify};
use crate::schema::{SchemaColumn, TabletSchema};

/// Footer, column metadata and the smaller indexes fit in this, so that one read finds them.
const TAIL_BYTES: u64 = 16 << 10;

/// How to open a segment.
#[derive(Debug, Clone)]
pub struct SegmentReaderOptions {
    schema: Option<Arc<TabletSchema>>,
    hidden: bool,
    variant_paths: Vec<(String, String)>,
    json_paths: Vec<(String, String)>,
    verify_checksums: bool,
    recovers: bool,
    written_schema: Option<Arc<TabletSchema>>,
    lost_cells: LostCells,
    /// Columns whose lost cells are never given as null.
    unfilled: HashSet<String>,
    limits: Limits,
}

impl Default for SegmentReaderOptions {
    /// Columns are named by their ids; checksums are verified.
    fn default() -> Self {
        Self {
            schema: None,
            hidden: false,
            variant_paths: Vec::new(),
            json_paths: Vec::new(),
            verify_checksums: true,
            recovers: false,
            written_schema: None,
            lost_cells: LostCells::DropRow,
            unfilled: HashSet::new(),
            limits: Limits::default(),
        }
    }
}

impl SegmentReaderOptions {
    /// The schema of the tablet: names, order and visibility of columns, which a segment does not know. Columns are joined
    /// by unique id; one that the file lacks has its default value in every row, one that the schema lacks is left out.
    #[must_use]
    pub fn with_schema(mut self, schema: Option<Arc<TabletSchema>>) -> Self {
        self.schema = schema;
        self
    }

    /// Whether columns that queries do not see are given too.
    #[must_use]
    pub fn with_hidden(mut self, hidden: bool) -> Self {
        self.hidden = hidden;
        self
    }

    /// Adds a column with one path of a VARIANT column, named `column['path']`; keys are separated by dots. It has the
    /// path's own type if the file keeps it in a column, else it is JSON text.
    #[must_use]
    pub fn with_variant_path(mut self, column: impl Into<String>, path: impl Into<String>) -> Self {
        self.variant_paths.push((column.into(), path.into()));
        self
    }

    /// Whether stored checksums are compared; on unless switched off.
    #[must_use]
    pub fn with_verify_checksums(mut self, verify: bool) -> Self {
        self.verify_checksums = verify;
        self
    }

    /// Whether a damaged footer and damaged ordinal indexes are made again from the pages. That takes a schema, and gives no row
    /// that the checksums of its pages do not prove.
    #[must_use]
    pub fn with_recovery(mut self, recovers: bool) -> Self {
        self.recovers = recovers;
        self
    }

    /// The schema that the file was written with, by which it is put together again; unless set, that of
    /// [`SegmentReaderOptions::with_schema`].
    #[must_use]
    pub fn with_written_schema(mut self, schema: Option<Arc<TabletSchema>>) -> Self {
        self.written_schema = schema;
        self
    }

    /// What a scan that goes on over damage does with a row of which some cells are lost. Keys are never given as null.
    #[must_use]
    pub fn with_lost_cells(mut self, lost_cells: LostCells) -> Self {
        self.lost_cells = lost_cells;
        self
    }

    /// How much the file may make us allocate.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

impl SegmentReaderOptions {
    /// Paths of VARIANT columns that are JSON text whatever the file has: segments of one tablet must agree.
    pub(crate) fn with_json_paths(mut self, paths: Vec<(String, String)>) -> Self {
        self.json_paths = paths;
        self
    }

    /// Columns that decide about rows: null would be an answer.
    pub(crate) fn with_unfilled(mut self, columns: HashSet<String>) -> Self {
        self.unfilled = columns;
        self
    }

    pub(super) fn written_schema(&self) -> Option<&TabletSchema> {
        self.written_schema.as_deref().or(self.schema())
    }

    pub(super) fn schema(&self) -> Option<&TabletSchema> {
        self.schema.as_deref()
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// An open segment.
#[derive(Debug, Clone)]
pub struct SegmentReader(Arc<Segment>);

/// What scans share.
#[derive(Debug)]
pub(crate) struct Segment {
    pub store: Arc<PageStore>,
    pub metadata: SegmentMetadata,
    pub schema: Option<Arc<TabletSchema>>,
    pub columns: Vec<OutputColumn>,
    pub arrow: SchemaRef,
    /// Columns by number whose lost cells are given as null by scans that go on over damage.
    fillable: Vec<bool>,
    /// Why nothing tells how many rows there were, if that is so.
    unknown_end: Option<Error>,
    /// The last predicate and the rows it leaves: threads that share a scan prune once.
    pruned: Mutex<Option<(Predicate, RowRanges)>>,
}

/// A column of the dataset.
#[derive(Debug)]
pub(crate) struct OutputColumn {
    pub name: String,
    pub column: Column,
    /// Its number in [`SegmentMetadata::columns`], if the file has it as it is given.
    pub stored: Option<usize>,
    pub unique_id: i32,
    /// Its zone maps and filters, kept once they have been read.
    pub indexes: PageIndexes,
}

impl OutputColumn {
    fn new(name: String, column: Column, stored: Option<usize>, unique_id: i32) -> Self {
        Self { name, column, stored, unique_id, indexes: PageIndexes::default() }
    }
}

impl SegmentReader {
    /// Opens a segment whose columns are named by their unique ids.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if this is no segment or its footer is damaged.
    pub fn open(source: SourceRef) -> Result<Self> {
        Self::open_with_options(source, &SegmentReaderOptions::default())
    }

    /// Opens a segment.
    ///
    /// # Errors
    /// As [`SegmentReader::open`]; [`pilaster_core::ErrorKind::InvalidInput`] if the schema does not fit the file.
    pub fn open_with_options(source: SourceRef, options: &SegmentReaderOptions) -> Result<Self> {
        if !options.recovers {
            return Self::open_as_it_is(source, options);
        }
        let reader = match Self::open_as_it_is(Arc::clone(&source), options) {
            Err(error) if error.is_damage() && options.written_schema().is_some() => {
                Self::recover(source, options)?
            }
            // A number that nobody knows is a newer Doris, or damage in what no checksum covers.
            Err(error)
                if matches!(error.kind(), ErrorKind::Unsupported { .. })
                    && options.written_schema().is_some() =>
            {
                Self::recover(source, options).map_err(|_| error)?
            }
            opened => opened?,
        };
        rebuild::restore_indexes(&reader.0)?;
        Ok(reader)
    }

    /// Opens a segment whose footer is whole.
    pub(super) fn open_as_it_is(source: SourceRef, options: &SegmentReaderOptions) -> Result<Self> {
        let source: SourceRef = Arc::new(TailSource::read(source, TAIL_BYTES)?);
        let metadata = SegmentMetadata::read(source.as_ref(), options.verify_checksums, &options.limits)?;
        let store = Arc::new(PageStore::new(
            source,
            options.limits.clone(),
            options.verify_checksums,
            metadata.pages_end,
        ));
        let columns =
            build_columns(&store, &metadata, options).at(store.name(), metadata.footer_start, FOOTER_PART)?;
        let fields: Vec<Field> = columns.iter().map(|(field, _)| field.clone()).collect();
        // Null in a hidden column would say something: that a row is not deleted.
        let decides = |name: &String| {
            let mut declared = options.schema().into_iter().flat_map(|schema| &schema.columns);
            declared.any(|column| (column.is_key || !column.visible) && column.name == *name)
        };
        let is_fillable = |field: &Field| {
            options.lost_cells == LostCells::Null
                && field.is_nullable()
                && !decides(field.name())
                && !options.unfilled.contains(field.name())
        };
        Ok(Self(Arc::new(Segment {
            store,
            metadata,
            schema: options.schema.clone(),
            columns: columns.into_iter().map(|(_, column)| column).collect(),
            fillable: fields.iter().map(is_fillable).collect(),
            unknown_end: None,
            arrow: Arc::new(Schema::new(fields)),
            pruned: Mutex::new(None),
        })))
    }

    /// What the footer says.
    pub fn metadata(&self) -> &SegmentMetadata {
        &self.0.metadata
    }

    /// Says that the file may have had more rows than anything in it tells.
    pub(super) fn with_unknown_end(self, error: Error) -> Self {
        match Arc::try_unwrap(self.0) {
            Ok(segment) => Self(Arc::new(Segment { unknown_end: Some(error), ..segment })),
            Err(shared) => Self(shared),
        }
    }

    /// Columns whose lost cells are given as null by scans that go on over damage.
    pub(crate) fn filled_columns(&self) -> HashSet<String> {
        let columns = self.0.columns.iter().zip(&self.0.fillable);
        columns.filter(|(_, fills)| **fills).map(|(output, _)| output.name.clone()).collect()
    }

    /// Why nothing in the file tells how many rows there were, if that is so.
    pub(crate) fn unknown_end(&self) -> Option<&Error> {
        self.0.unknown_end.as_ref()
    }

    /// What scans share, for looking at what lies in a file.
    pub(crate) fn shared(&self) -> &Segment {
        &self.0
    }

    /// Whether a column is a path of a VARIANT in the type that the file keeps it in, and not as JSON text.
    pub(crate) fn is_typed_path(&self, column: usize) -> bool {
        let column = self.0.columns.get(column).map(|output| &output.column);
        !matches!(column, None | Some(Column::VariantPath(..) | Column::Constant(..)))
    }

    /// The rows that can match a predicate, as far as the indexes know.
    ///
    /// # Errors
    /// If an index cannot be read, or the predicate does not fit the columns.
    pub fn prune(&self, predicate: &Predicate) -> Result<RowRanges> {
        let mut pruned = self.0.pruned.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, rows)) = pruned.as_ref()
            && known == predicate
        {
            return Ok(rows.clone());
        }
        let rows = prune::prune(&self.0, predicate)?;
        *pruned = Some((predicate.clone(), rows.clone()));
        Ok(rows)
    }
}

/// The columns of the dataset and their fields.
fn build_columns(
    store: &Arc<PageStore>,
    metadata: &SegmentMetadata,
    options: &SegmentReaderOptions,
) -> Result<Vec<(Field, OutputColumn)>> {
    let mut columns = Vec::new();
    match &options.schema {
        Some(schema) => {
            for column in schema.columns.iter().filter(|column| column.visible || options.hidden) {
                let stored = metadata.columns.iter().position(|meta| meta.unique_id == column.unique_id);
                columns.push(named_column(store, metadata, column, stored)?);
            }
        }
        None => {
            let mut ids = HashSet::new();
            for (number, meta) in metadata.columns.iter().enumerate().filter(|(_, meta)| meta.unique_id >= 0)
            {
                let column = stored_column(store, metadata, meta, None)?;
                let name = meta.unique_id.to_string();
                if !ids.insert(meta.unique_id) {
                    return Err(Error::corrupt(
                        "columns of different unique ids",
                        format!("two of id {name}"),
                    ));
                }
                let field = column_field(&name, column.arrow(), meta.is_nullable, Some(meta.field_type));
                columns.push((field, OutputColumn::new(name, column, Some(number), meta.unique_id)));
            }
        }
    }
    for (column, path) in &options.variant_paths {
        columns.push(path_column(&columns, column, path, options)?);
    }
    Ok(columns)
}

/// A column of the file, whatever its type.
fn stored_column(
    store: &Arc<PageStore>,
    metadata: &SegmentMetadata,
    meta: &ColumnMeta,
    schema: Option<&SchemaColumn>,
) -> Result<Column> {
    if meta.num_rows != metadata.num_rows {
        return Err(Error::corrupt(
            format!("{} rows in the column of unique id {}", metadata.num_rows, meta.unique_id),
            meta.num_rows,
        ));
    }
    if meta.field_type == FieldType::Variant {
        return Ok(Column::Variant(Arc::new(Variant::build(store, meta, &metadata.columns)?)));
    }
    Column::build(store, meta, schema)
}

/// A column of the schema: as the file has it, cast if its type was changed since, or a constant if it was added.
fn named_column(
    store: &Arc<PageStore>,
    metadata: &SegmentMetadata,
    schema: &SchemaColumn,
    stored: Option<usize>,
) -> Result<(Field, OutputColumn)> {
    let meta = stored.and_then(|number| metadata.columns.get(number));
    let Some(meta) = meta else {
        let column = Column::missing(schema)?;
        let field = column_field(
            &schema.name,
            column.arrow(),
            schema.is_nullable,
            FieldType::from_schema_name(&schema.type_name),
        );
        return Ok((field, OutputColumn::new(schema.name.clone(), column, None, schema.unique_id)));
    };
    let mut column = stored_column(store, metadata, meta, Some(schema))?;
    let mut stored = stored;
    if meta.field_type != FieldType::AggState
        && let Some(wanted) = schema_change::other_type(&column, meta.field_type, schema)?
    {
        column = Column::Cast(Box::new(column), wanted);
        stored = None;
    }
    let is_nullable = meta.is_nullable || schema.is_nullable;
    let field = column_field(
        &schema.name,
        column.arrow(),
        is_nullable,
        FieldType::from_schema_name(&schema.type_name),
    );
    Ok((field, OutputColumn::new(schema.name.clone(), column, stored, schema.unique_id)))
}

/// `column['path']`
fn path_column(
    columns: &[(Field, OutputColumn)],
    name: &str,
    path: &str,
    options: &SegmentReaderOptions,
) -> Result<(Field, OutputColumn)> {
    let found = columns
        .iter()
        .find(|(field, _)| field.name() == name)
        .map(|(_, output)| (&output.column, output.unique_id));
    let keys: Vec<String> = path.split('.').map(str::to_string).collect();
    let is_declared = |id: i32| {
        let mut declared = options.schema().into_iter().flat_map(|schema| &schema.columns);
        declared.any(|column| column.unique_id == id && column.type_name.eq_ignore_ascii_case("VARIANT"))
    };
    let is_json = options.json_paths.iter().any(|(column, json)| column == name && json == path);
    let (column, unique_id) = match found {
        Some((Column::Variant(variant), id)) => match variant.typed(&keys) {
            Some(typed) if !is_json => (typed.clone(), id),
            _ => (Column::VariantPath(Arc::clone(variant), keys), id),
        },
        // A column that was added after the file was written has no paths.
        Some((Column::Constant(..), id)) if is_declared(id) => {
            let none = new_null_array(&DataType::Utf8View, 1);
            (Column::Constant(Arc::new(Ok(none)), DataType::Utf8View), id)
        }
        _ => {
            return Err(Error::invalid(format!(
                "there is no VARIANT column \"{name}\" to take ['{path}'] out of"
            )));
        }
    };
    let full = format!("{name}['{path}']");
    let field = Field::new(&full, column.arrow(), true);
    Ok((field, OutputColumn::new(full, column, None, unique_id)))
}

/// The columns of a segment for one scan.
struct ScanColumns<'a> {
    segment: &'a Segment,
    /// Where lost cells are noted that are given as null.
    losses: Option<Arc<LossLog>>,
    memory: ScanMemory,
}

impl Columns for ScanColumns<'_> {
    fn memory(&self) -> ScanMemory {
        self.memory.clone()
    }

    fn open(&self, column: usize, wanted: &RowRanges) -> Result<Box<dyn ColumnCursor>> {
        let segment = self.segment;
        let output = segment
            .columns
            .get(column)
            .ok_or_else(|| Error::internal(format!("no column number {column}")))?;
        let cursor = output.column.cursor(wanted, &self.memory);
        let cursor = Box::new(FileCursor { cursor, store: Arc::clone(&segment.store) });
        let is_fillable = segment.fillable.get(column).copied().unwrap_or(false);
        Ok(match self.losses.clone().filter(|_| is_fillable) {
            None => cursor,
            Some(losses) => {
                Box::new(FilledCursor::new(cursor, output.name.as_str(), output.column.arrow(), losses))
            }
        })
    }
}

impl Segment {
    pub fn name(&self) -> &str {
        self.store.name()
    }

    /// The metadata of a column of the dataset, if the file has it as it is given.
    pub fn stored(&self, output: &OutputColumn) -> Option<&ColumnMeta> {
        self.metadata.columns.get(output.stored?)
    }
}

impl Dataset for SegmentReader {
    fn format(&self) -> &'static str {
        "doris segment"
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.arrow)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.0.metadata.num_rows)
    }

    fn size_bytes(&self) -> u64 {
        self.0.metadata.file_bytes
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let rows = self.0.metadata.num_rows;
        let mut wanted = request.wanted_rows(rows);
        if let Some(predicate) = &request.predicate {
            match (self.prune(predicate), &request.on_damage) {
                (Ok(rows), _) => wanted = wanted.intersect(&rows),
                // A damaged index costs time, not rows.
                (Err(error), OnDamage::Skip(_)) if error.is_damage() => {}
                (Err(error), _) => return Err(error),
            }
        }
        if let (OnDamage::Skip(losses), Some(error)) = (&request.on_damage, &self.0.unknown_end) {
            losses.record_unknown(error);
        }
        let segment = Arc::clone(&self.0);
        let spans = TaskSpan::stretches(rows, segment.metadata.file_bytes);
        ScanPlan::by_rows(request, &self.0.arrow, wanted, spans, move |request, wanted| {
            let losses = match &request.on_damage {
                OnDamage::Skip(losses) => Some(Arc::clone(losses)),
                OnDamage::Stop => None,
            };
            let memory = request.memory(&segment.store.limits);
            let columns = ScanColumns { segment: &segment, losses, memory };
            positional::scan(&columns, &segment.arrow, request, wanted)
        })
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        Ok(verify::verify(&self.0, depth, progress))
    }

    fn describe(&self) -> Result<Node> {
        describe::describe(&self.0)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        describe::pages(&self.0)
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        describe::column_statistics(&self.0)
    }
}
