//! Reading rows: one row group at a time, filter columns first.
//!
//! All columns of a row group are open together. Where their pages take more than the scan may, its rows are read one column after the
//! other ([`super::scan_apart`]); where words of a large dictionary would be written out for each row, strings are read as views and
//! written out once it is known how many bytes they are.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader, UInt64Array, new_null_array,
};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowPredicate, ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowFilter, RowSelection,
};
use parquet::arrow::{ProjectionMask, RowNumber};
use pilaster_core::dataset::column_index;
use pilaster_core::{
    Error, ErrorKind, OnDamage, Predicate, Result, RowRanges, ScanMemory, ScanRequest, TaskSpan, fitting,
};

use super::chunks::{SourceChunks, lock};
use super::scan_apart::Apart;
use super::{ParquetFile, metadata, views, zones};
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
pub(super) struct Stretch {
    pub(super) group: usize,
    pub(super) rows: RowRanges,
    /// Whether damage in it loses it: it has been cut as small as it gets.
    is_smallest: bool,
    /// Columns that are null in it, because they cannot be read, ascending.
    pub(super) filled: Vec<usize>,
}

/// One part of a conjunction, evaluated on its own columns.
#[derive(Debug, Clone)]
struct Filter {
    predicate: Predicate,
    columns: Vec<usize>,
}

/// The row group that is being read.
#[derive(Debug)]
struct Current {
    stretch: Stretch,
    reader: Reader,
    /// How many rows of the stretch were given.
    given: u64,
}

/// Rows that were read, of which the first `next` were given.
#[derive(Debug)]
struct Ready {
    columns: Vec<ArrayRef>,
    rows: usize,
    next: usize,
}

#[derive(Debug)]
enum Reader {
    Together(ParquetRecordBatchReader),
    Apart(Apart),
}

/// A stream of the rows a request asks for.
#[derive(Debug)]
pub(super) struct ParquetScan {
    pub(super) file: Arc<ParquetFile>,
    arrow: ArrowReaderMetadata,
    /// Whether the reader gives row numbers behind the columns.
    has_numbers: bool,
    schema: SchemaRef,
    pub(super) chunks: SourceChunks,
    pub(super) memory: ScanMemory,
    todo: VecDeque<Stretch>,
    current: Option<Current>,
    ready: Option<Ready>,
    filters: Vec<Filter>,
    pub(super) predicate: Option<Predicate>,
    /// The columns to decode for output, ascending.
    pub(super) read_columns: Vec<usize>,
    /// The output columns as positions in `read_columns`.
    projection: Vec<usize>,
    with_row_numbers: bool,
    pub(super) batch_size: usize,
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
        let chunks = SourceChunks::new(Arc::clone(&file.source), needed_chunks(&file, &needed), &file.limits);
        let memory = request.memory(&file.limits);
        let batch_size = memory.fitting_rows(&full_schema.project(&needed)?, request.batch_size.max(1));
        chunks.sizes().repeat_words(batch_size);
        // A tolerant scan must know which rows it has given before it met the damage.
        let is_tolerant = matches!(request.on_damage, OnDamage::Skip(_));
        let has_numbers = request.row_numbers.is_some() || is_tolerant;
        let arrow = match has_numbers {
            true => with_schema(&file, file.supplied_schema.clone(), true)?,
            false => file.arrow.clone(),
        };
        Ok(Self {
            schema: request.output_schema(&full_schema)?,
            file,
            arrow,
            has_numbers,
            chunks,
            memory,
            todo,
            current: None,
            ready: None,
            filters,
            predicate: request.predicate.clone(),
            read_columns,
            projection,
            with_row_numbers: request.row_numbers.is_some(),
            batch_size,
            remaining: request.limit,
            on_damage: request.on_damage.clone(),
            is_done: false,
        })
    }

    fn try_next(&mut self) -> Result<Option<RecordBatch>> {
        while self.remaining != Some(0) {
            if let Some(batch) = self.next_ready()? {
                return Ok(Some(batch));
            }
            let Some(mut current) = self.current.take() else {
                let Some(stretch) = self.todo.pop_front() else { return Ok(None) };
                match self.start(&stretch) {
                    Ok(reader) => {
                        self.current = Some(Current { stretch, reader: Reader::Together(reader), given: 0 });
                    }
                    Err(error) => self.meet(stretch, Some(0), error)?,
                }
                continue;
            };
            match self.read_next(&mut current) {
                Ok(true) => self.current = Some(current),
                Ok(false) => self.chunks.clear(),
                Err(error) => {
                    let given = matches!(current.reader, Reader::Together(_)).then_some(current.given);
                    self.meet(current.stretch, given, error)?;
                }
            }
        }
        Ok(None)
    }

    /// Makes the next rows ready; says whether there were any left to look at.
    fn read_next(&mut self, current: &mut Current) -> Result<bool> {
        let Current { stretch, reader, given } = current;
        let batch = match reader {
            Reader::Apart(apart) => self.read_apart(stretch, apart)?,
            Reader::Together(reader) => {
                self.chunks.sizes().begin_batch();
                let batch = guarded(|| reader.next().transpose())
                    .map_err(|error| self.file.group_error(stretch.group, &self.chunks, error))?;
                let width = self.read_columns.len().saturating_sub(stretch.filled.len());
                let numbers = batch.as_ref().and_then(|batch| row_numbers(batch, width));
                match numbers.as_ref().and_then(|numbers| numbers.values().last()) {
                    Some(last) => {
                        let rest = last.saturating_add(1)..u64::MAX;
                        stretch.rows = stretch.rows.intersect(&RowRanges::one(rest));
                    }
                    None => {
                        let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
                        *given = given.saturating_add(rows as u64);
                    }
                }
                batch
            }
        };
        let Some(batch) = batch else { return Ok(false) };
        if batch.num_rows() > 0 {
            self.ready = Some(self.arranged(&batch, &stretch.filled)?);
        }
        Ok(true)
    }

    /// Goes on with a stretch that could not be read, of which so many rows were `given`; none if it was read column by column already.
    fn meet(&mut self, stretch: Stretch, given: Option<u64>, error: Error) -> Result<()> {
        self.chunks.clear();
        let is_repeated = self.chunks.sizes().stop_repeating();
        match given {
            Some(0) if is_repeated => {
                self.arrow = self.with_views(self.has_numbers)?;
                self.todo.push_front(stretch);
                Ok(())
            }
            Some(given) if fitting::is_too_large(&error) => {
                let reader = Reader::Apart(Apart::new(self, &stretch, given)?);
                self.current = Some(Current { stretch, reader, given: 0 });
                Ok(())
            }
            _ => self.meet_damage(stretch, error),
        }
    }

    /// The same file with strings as views.
    pub(super) fn with_views(&self, has_numbers: bool) -> Result<ArrowReaderMetadata> {
        let schema = views::schema(self.file.arrow.schema());
        with_schema(&self.file, Some(Arc::new(schema)), has_numbers)
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
        let schema = self.arrow.schema().project(&filter.columns)?;
        let bound = filter.predicate.bind(&schema)?;
        let chunks = self.chunks.clone();
        let width = filter.columns.len();
        let failure = Arc::clone(self.chunks.failure());
        let mask = ProjectionMask::roots(self.arrow.parquet_schema(), filter.columns.iter().copied());
        Ok(Box::new(ArrowPredicateFn::new(mask, move |batch: RecordBatch| {
            chunks.sizes().begin_batch();
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

    /// The columns in the order that was asked for, with row numbers, and nulls for what could not be read.
    fn arranged(&self, batch: &RecordBatch, filled: &[usize]) -> Result<Ready> {
        let rows = batch.num_rows();
        let numbers = row_numbers(batch, self.read_columns.len().saturating_sub(filled.len()));
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
        Ok(Ready { columns, rows, next: 0 })
    }

    /// As many of the rows that were read as a batch has; strings that were read as views are written out if the schema says so, of as
    /// many rows as there is memory for.
    fn next_ready(&mut self) -> Result<Option<RecordBatch>> {
        let Some(mut ready) = self.ready.take() else { return Ok(None) };
        let left = usize::try_from(self.remaining.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let mut count = ready.rows.saturating_sub(ready.next).min(self.batch_size).min(left);
        let most = self.file.limits.scan_bytes / 4;
        let fields = self.schema.fields();
        let written = || {
            let columns = ready.columns.iter().zip(fields);
            columns.filter(|(column, field)| column.data_type() != field.data_type())
        };
        let bytes = |count| {
            let columns = written().map(|(column, _)| fitting::value_bytes(&column.slice(ready.next, count)));
            columns.fold(0, u64::saturating_add)
        };
        while count > 1 && bytes(count) > most {
            count /= 2;
        }
        let columns = ready.columns.iter().zip(fields).map(|(column, field)| {
            let column = column.slice(ready.next, count);
            Ok(if column.data_type() == field.data_type() {
                column
            } else {
                cast(&column, field.data_type())?
            })
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(count as u64));
        ready.next = ready.next.saturating_add(count);
        self.ready = (ready.next < ready.rows).then_some(ready);
        Ok(Some(batch))
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
            self.chunks.sizes().clear();
            let read = self.start_columns(stretch, &[column], &[]).and_then(|mut reader| {
                let mut read_batch = |batch: Result<RecordBatch, ArrowError>| {
                    self.chunks.sizes().begin_batch();
                    batch.map(drop)
                };
                guarded(|| reader.try_for_each(&mut read_batch))
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

/// The same file, decoded to another schema if there is one, perhaps with a column of row positions behind the others.
fn with_schema(
    file: &ParquetFile,
    schema: Option<SchemaRef>,
    has_numbers: bool,
) -> Result<ArrowReaderMetadata> {
    let field = Field::new(ROW_NUMBER, DataType::Int64, false).with_extension_type(RowNumber);
    let metadata = Arc::clone(file.arrow.metadata());
    let options = ArrowReaderOptions::new();
    let options = match schema {
        Some(schema) => options.with_schema(schema),
        None => options,
    };
    let options = match has_numbers {
        true => options.with_virtual_columns(vec![Arc::new(field)]),
        false => Ok(options),
    };
    options.and_then(|options| ArrowReaderMetadata::try_new(metadata, options)).map_err(|error| {
        Error::corrupt("a footer that parses", error).at(file.source.name(), 0, "parquet footer")
    })
}

/// The row positions that came along as column number `column`, if they did.
fn row_numbers(batch: &RecordBatch, column: usize) -> Option<UInt64Array> {
    let numbers = batch.columns().get(column)?.as_primitive_opt::<Int64Type>()?;
    Some(UInt64Array::from_iter_values(numbers.values().iter().map(|number| number.unsigned_abs())))
}

/// Rows of a group as parquet's selection, which counts from the group's first row.
pub(super) fn selection(rows: &RowRanges, group: &Range<u64>) -> RowSelection {
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
