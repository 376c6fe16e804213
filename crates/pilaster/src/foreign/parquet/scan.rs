//! Reading rows: one row group at a time, filter columns first.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader, UInt64Array, new_null_array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowPredicate, ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowFilter, RowSelection,
};
use parquet::arrow::{ProjectionMask, RowNumber};
use pilaster_core::dataset::column_index;
use pilaster_core::{Error, ErrorKind, OnDamage, Predicate, Result, RowRanges, ScanRequest, TaskSpan};

use super::chunks::{SourceChunks, lock};
use super::{ParquetFile, metadata, zones};
use crate::foreign::guard::guarded;
use pilaster_core::stream::needed_columns;

/// Name of the row number column inside; no other column is looked up by name, so it cannot clash.
const ROW_NUMBER: &str = "pilaster row number";

/// After damage a row group without page index is tried in stretches of this many rows.
const STRETCH_ROWS: u64 = 1024;

/// The row groups as tasks.
pub(super) fn spans(file: &ParquetFile) -> Vec<TaskSpan> {
    let groups = file.metadata().row_groups().iter().zip(&file.groups);
    groups
        .map(|(group, rows)| TaskSpan {
            rows: Some(rows.clone()),
            bytes: u64::try_from(group.compressed_size()).unwrap_or(0),
        })
        .collect()
}

/// The rows of row groups that can hold a match, as far as positions ask for them.
pub(super) fn wanted_rows(file: &ParquetFile, request: &ScanRequest) -> Result<RowRanges> {
    let wanted = request.wanted_rows(file.row_count());
    let Some(predicate) = &request.predicate else { return Ok(wanted) };
    let schema = file.arrow.schema();
    let may_match = zones::may_match(file, schema, &predicate.bind(schema)?);
    let groups = file.groups.iter().zip(may_match).filter(|(_, may)| *may);
    Ok(wanted.intersect(&groups.map(|(rows, _)| rows.clone()).collect()))
}

/// Rows of one row group that are still to be read.
#[derive(Debug)]
struct Stretch {
    group: usize,
    rows: RowRanges,
    /// Whether damage in it loses it: it has been cut as small as it gets.
    is_smallest: bool,
    /// Columns that are null in it, because they cannot be read, ascending.
    filled: Vec<usize>,
}

/// One part of a conjunction, evaluated on its own columns.
#[derive(Debug, Clone)]
struct Filter {
    predicate: Predicate,
    columns: Vec<usize>,
}

/// A stream of the rows a request asks for.
#[derive(Debug)]
pub(super) struct ParquetScan {
    file: Arc<ParquetFile>,
    arrow: ArrowReaderMetadata,
    schema: SchemaRef,
    chunks: SourceChunks,
    todo: VecDeque<Stretch>,
    current: Option<(Stretch, ParquetRecordBatchReader)>,
    filters: Vec<Filter>,
    /// The columns to decode for output, ascending.
    read_columns: Vec<usize>,
    /// The output columns as positions in `read_columns`.
    projection: Vec<usize>,
    with_row_numbers: bool,
    batch_size: usize,
    remaining: Option<u64>,
    on_damage: OnDamage,
    is_done: bool,
}

impl ParquetScan {
    pub(super) fn try_new(file: Arc<ParquetFile>, request: &ScanRequest, wanted: &RowRanges) -> Result<Self> {
        let full_schema = Arc::clone(file.arrow.schema());
        let filters = match &request.predicate {
            Some(predicate) => conjuncts(predicate, &full_schema)?,
            None => Vec::new(),
        };
        let mut todo = VecDeque::new();
        for (group, rows) in file.groups.iter().enumerate() {
            let rows = wanted.within(rows).moved(rows.start);
            if !rows.is_empty() {
                todo.push_back(Stretch { group, rows, is_smallest: false, filled: Vec::new() });
            }
        }
        let projected = request.projected(&full_schema)?;
        let mut read_columns = projected.clone();
        read_columns.sort_unstable();
        read_columns.dedup();
        let projection =
            projected.iter().map(|column| read_columns.partition_point(|c| c < column)).collect();
        let needed = needed_columns(request, &full_schema)?;
        let chunks = SourceChunks::new(Arc::clone(&file.source), needed_chunks(&file, &needed));
        // A tolerant scan must know which rows it has given before it met the damage.
        let is_tolerant = matches!(request.on_damage, OnDamage::Skip(_));
        let arrow = match request.row_numbers.is_some() || is_tolerant {
            true => with_row_numbers(&file)?,
            false => file.arrow.clone(),
        };
        Ok(Self {
            schema: request.output_schema(&full_schema)?,
            file,
            arrow,
            chunks,
            todo,
            current: None,
            filters,
            read_columns,
            projection,
            with_row_numbers: request.row_numbers.is_some(),
            batch_size: request.batch_size.max(1),
            remaining: request.limit,
            on_damage: request.on_damage.clone(),
            is_done: false,
        })
    }

    fn try_next(&mut self) -> Result<Option<RecordBatch>> {
        while self.remaining != Some(0) {
            let Some((stretch, reader)) = &mut self.current else {
                let Some(stretch) = self.todo.pop_front() else { return Ok(None) };
                match self.start(&stretch) {
                    Ok(reader) => self.current = Some((stretch, reader)),
                    Err(error) => self.meet_damage(stretch, error)?,
                }
                continue;
            };
            match guarded(|| reader.next().transpose()) {
                Ok(None) => {
                    self.current = None;
                    self.chunks.clear();
                }
                Ok(Some(batch)) => {
                    let width = self.read_columns.len().saturating_sub(stretch.filled.len());
                    let numbers = row_numbers(&batch, width);
                    let filled = stretch.filled.clone();
                    if let Some(last) = numbers.as_ref().and_then(|numbers| numbers.values().last()) {
                        let rest = last.saturating_add(1)..u64::MAX;
                        stretch.rows = stretch.rows.intersect(&RowRanges::one(rest));
                    }
                    if batch.num_rows() > 0 {
                        return self.finish(&batch, numbers, &filled).map(Some);
                    }
                }
                Err(error) => {
                    let error = self.file.group_error(stretch.group, &self.chunks, error);
                    if let Some((stretch, _)) = self.current.take() {
                        self.meet_damage(stretch, error)?;
                    }
                }
            }
        }
        Ok(None)
    }

    fn start(&self, stretch: &Stretch) -> Result<ParquetRecordBatchReader> {
        let is_read = |column: &usize| !stretch.filled.contains(column);
        let columns: Vec<usize> = self.read_columns.iter().copied().filter(is_read).collect();
        self.start_columns(stretch, &columns, &self.filters)
    }

    fn start_columns(
        &self,
        stretch: &Stretch,
        columns: &[usize],
        filters: &[Filter],
    ) -> Result<ParquetRecordBatchReader> {
        let (group, rows) = self.file.group(stretch.group)?;
        metadata::check_group(&self.file, group)?;
        let descriptor = self.arrow.parquet_schema();
        let mut builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.chunks.clone(), self.arrow.clone())
                .with_row_groups(vec![stretch.group])
                .with_batch_size(self.batch_size)
                .with_projection(ProjectionMask::roots(descriptor, columns.iter().copied()));
        if stretch.rows != RowRanges::one(rows.clone()) {
            builder = builder.with_row_selection(selection(&stretch.rows, &rows));
        }
        if !filters.is_empty() {
            let filters = filters.iter().map(|filter| self.arrow_predicate(filter)).collect::<Result<_>>()?;
            builder = builder.with_row_filter(RowFilter::new(filters));
        }
        if let Some(remaining) = self.remaining {
            builder = builder.with_limit(usize::try_from(remaining).unwrap_or(usize::MAX));
        }
        guarded(|| builder.build()).map_err(|error| self.file.group_error(stretch.group, &self.chunks, error))
    }

    fn arrow_predicate(&self, filter: &Filter) -> Result<Box<dyn ArrowPredicate>> {
        let schema = self.file.arrow.schema().project(&filter.columns)?;
        let bound = filter.predicate.bind(&schema)?;
        let width = filter.columns.len();
        let failure = Arc::clone(self.chunks.failure());
        let mask = ProjectionMask::roots(self.arrow.parquet_schema(), filter.columns.iter().copied());
        Ok(Box::new(ArrowPredicateFn::new(mask, move |batch: RecordBatch| {
            // A row number column may come along behind the others.
            let columns: Vec<_> = (0..width).collect();
            let result =
                batch.project(&columns).map_err(Error::from).and_then(|batch| bound.evaluate(&batch));
            result.map_err(|error| {
                let text = error.to_string();
                *lock(&failure) = Some(error);
                ArrowError::ComputeError(text)
            })
        })))
    }

    /// Orders the columns as asked and adds row numbers, and nulls for what could not be read.
    fn finish(
        &mut self,
        batch: &RecordBatch,
        numbers: Option<UInt64Array>,
        filled: &[usize],
    ) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(rows as u64));
        let mut found = batch.columns().iter();
        let mut read: Vec<ArrayRef> = Vec::with_capacity(self.read_columns.len());
        for column in &self.read_columns {
            let field = self.file.arrow.schema().fields().get(*column);
            read.push(match field.filter(|_| filled.contains(column)) {
                Some(field) => new_null_array(field.data_type(), rows),
                None => {
                    let column = found.next();
                    Arc::clone(column.ok_or_else(|| Error::internal("a row group without a column"))?)
                }
            });
        }
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.projection.len().saturating_add(1));
        columns.extend(self.projection.iter().filter_map(|&column| read.get(column).cloned()));
        if let (true, Some(numbers)) = (self.with_row_numbers, numbers) {
            columns.push(Arc::new(numbers));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// Stops, or cuts what is left of a stretch into smaller ones, or notes it as lost.
    fn meet_damage(&mut self, stretch: Stretch, error: Error) -> Result<()> {
        self.chunks.clear();
        let OnDamage::Skip(losses) = &self.on_damage else { return Err(error) };
        if matches!(error.kind(), ErrorKind::InvalidInput(_) | ErrorKind::Internal(_)) {
            return Err(error);
        }
        if !stretch.is_smallest {
            for rows in self.cut(&stretch).into_iter().rev() {
                let filled = stretch.filled.clone();
                self.todo.push_front(Stretch { group: stretch.group, rows, is_smallest: true, filled });
            }
            return Ok(());
        }
        let guilty = self.guilty_columns(&stretch);
        let fields = self.file.arrow.schema().fields();
        let name = |column: &usize| fields.get(*column).map(|field| field.name().as_str());
        for rows in stretch.rows.as_slice() {
            if guilty.is_empty() {
                losses.record(rows.clone(), None, &error);
            }
            for (column, error) in &guilty {
                losses.record(rows.clone(), name(column), error);
            }
        }
        if losses.fills_cells()
            && !guilty.is_empty()
            && guilty.iter().all(|(column, _)| self.may_fill(*column))
        {
            let mut filled =
                [stretch.filled, guilty.into_iter().map(|(column, _)| column).collect()].concat();
            filled.sort_unstable();
            // Of a row of which nothing is left nobody knows that it was there.
            if filled.len() < self.read_columns.len() {
                let Stretch { group, rows, .. } = stretch;
                self.todo.push_front(Stretch { group, rows, is_smallest: true, filled });
            }
        }
        Ok(())
    }

    /// Whether null may stand for cells of a column: it may be null, and is not compared.
    fn may_fill(&self, column: usize) -> bool {
        let is_nullable =
            self.file.arrow.schema().fields().get(column).is_some_and(|field| field.is_nullable());
        is_nullable && !self.filters.iter().any(|filter| filter.columns.contains(&column))
    }

    /// The columns that do not decode in a stretch by themselves, but for those that are filled already.
    fn guilty_columns(&self, stretch: &Stretch) -> Vec<(usize, Error)> {
        let mut columns: Vec<usize> = self.read_columns.clone();
        columns.extend(self.filters.iter().flat_map(|filter| &filter.columns));
        columns.sort_unstable();
        columns.dedup();
        columns.retain(|column| !stretch.filled.contains(column));
        let mut guilty = Vec::new();
        for column in columns {
            let read = self.start_columns(stretch, &[column], &[]).and_then(|mut reader| {
                guarded(|| reader.try_for_each(|batch| batch.map(drop)))
                    .map_err(|error| self.file.group_error(stretch.group, &self.chunks, error))
            });
            if let Err(error) = read {
                guilty.push((column, error));
            }
        }
        guilty
    }

    /// Cuts a stretch where pages of its columns begin, or evenly where that is not known.
    fn cut(&self, stretch: &Stretch) -> Vec<RowRanges> {
        let Ok((_, group)) = self.file.group(stretch.group) else { return Vec::new() };
        let descriptor = self.file.arrow.parquet_schema();
        let mut starts: Vec<u64> = Vec::new();
        let indexes = self.file.metadata().offset_index().and_then(|index| index.get(stretch.group));
        for (leaf, index) in indexes.into_iter().flatten().enumerate() {
            let is_read = leaf < descriptor.num_columns() && {
                let root = descriptor.get_column_root_idx(leaf);
                self.read_columns.contains(&root) || self.filters.iter().any(|f| f.columns.contains(&root))
            };
            if is_read {
                let firsts = index.page_locations().iter().map(|page| page.first_row_index);
                starts.extend(firsts.filter_map(|first| group.start.checked_add(u64::try_from(first).ok()?)));
            }
        }
        if starts.is_empty() {
            starts.extend((group.start..group.end).step_by(usize::try_from(STRETCH_ROWS).unwrap_or(1)));
        }
        starts.push(group.start);
        starts.push(group.end);
        starts.sort_unstable();
        starts.dedup();
        let ends = starts.iter().skip(1);
        let parts = starts.iter().zip(ends).map(|(start, end)| RowRanges::one(*start..*end));
        parts.map(|part| stretch.rows.intersect(&part)).filter(|rows| !rows.is_empty()).collect()
    }
}

/// The parts of a conjunction, each with the columns it looks at, ascending.
fn conjuncts(predicate: &Predicate, schema: &Schema) -> Result<Vec<Filter>> {
    let parts = match predicate {
        Predicate::And(parts) if !parts.is_empty() => parts.as_slice(),
        other => std::slice::from_ref(other),
    };
    let mut filters = Vec::with_capacity(parts.len());
    for part in parts {
        let mut columns =
            part.columns().into_iter().map(|name| column_index(schema, name)).collect::<Result<Vec<_>>>()?;
        columns.sort_unstable();
        filters.push(Filter { predicate: part.clone(), columns });
    }
    Ok(filters)
}

/// Where the column chunks of these columns lie, as far as their metadata can be trusted.
fn needed_chunks(file: &ParquetFile, columns: &[usize]) -> Vec<Range<u64>> {
    let descriptor = file.arrow.parquet_schema();
    let leaves: Vec<_> = (0..descriptor.num_columns())
        .filter(|leaf| columns.contains(&descriptor.get_column_root_idx(*leaf)))
        .collect();
    let groups = file.metadata().row_groups().iter();
    groups
        .flat_map(|group| leaves.iter().filter_map(|leaf| group.columns().get(*leaf)))
        .filter_map(|column| metadata::chunk_range(column).ok())
        .collect()
}

/// The same file with a column of row positions behind the others.
fn with_row_numbers(file: &ParquetFile) -> Result<ArrowReaderMetadata> {
    let field = Field::new(ROW_NUMBER, DataType::Int64, false).with_extension_type(RowNumber);
    let metadata = Arc::clone(file.arrow.metadata());
    let options = ArrowReaderOptions::new();
    let options = match &file.supplied_schema {
        Some(schema) => options.with_schema(Arc::clone(schema)),
        None => options,
    };
    options
        .with_virtual_columns(vec![Arc::new(field)])
        .and_then(|options| ArrowReaderMetadata::try_new(metadata, options))
        .map_err(|error| {
            Error::corrupt("a footer that parses", error).at(file.source.name(), 0, "parquet footer")
        })
}

/// The row positions that came along as column number `column`, if they did.
fn row_numbers(batch: &RecordBatch, column: usize) -> Option<UInt64Array> {
    let numbers = batch.columns().get(column)?.as_primitive_opt::<Int64Type>()?;
    Some(UInt64Array::from_iter_values(numbers.values().iter().map(|number| number.unsigned_abs())))
}

/// Rows of a group as parquet's selection, which counts from the group's first row.
fn selection(rows: &RowRanges, group: &Range<u64>) -> RowSelection {
    let relative =
        |position: u64| usize::try_from(position.saturating_sub(group.start)).unwrap_or(usize::MAX);
    let ranges = rows.as_slice().iter().map(|range| relative(range.start)..relative(range.end));
    RowSelection::from_consecutive_ranges(ranges, relative(group.end))
}

impl Iterator for ParquetScan {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let next = self.try_next();
        self.is_done = !matches!(next, Ok(Some(_)));
        next.map_err(ArrowError::from).transpose()
    }
}

impl RecordBatchReader for ParquetScan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
