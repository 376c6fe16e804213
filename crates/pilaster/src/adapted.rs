//! A dataset with the columns of another schema: those of the same name are cast, those it does not have are null.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchOptions, RecordBatchReader, new_null_array,
};
use arrow_cast::cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::filter::filter_record_batch;
use pilaster_core::dataset::column_index;
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::predicate::BoundPredicate;
use pilaster_core::{
    Absence, BatchReader, Dataset, DatasetRef, Error, Finding, Limits, Progress, Result, Scan, ScanRequest,
    Split, VerifyDepth, VerifyReport, fitting,
};

/// Gives the rows of an inner dataset with the columns of another schema.
#[derive(Debug)]
pub(crate) struct AdaptedDataset {
    inner: DatasetRef,
    schema: SchemaRef,
    /// For each column of `schema` that of the inner dataset.
    columns: Vec<Option<usize>>,
}

impl AdaptedDataset {
    /// `inner` with the columns of `schema`, found by their names in any case.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a column cannot be cast, or none has a name that is asked for.
    pub(crate) fn try_new(inner: DatasetRef, schema: SchemaRef) -> Result<Self> {
        let found = inner.schema();
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let index =
                found.fields().iter().position(|other| other.name().eq_ignore_ascii_case(field.name()));
            if let Some(other) = index.and_then(|index| found.fields().get(index))
                && !can_cast_types(other.data_type(), field.data_type())
            {
                let message = format!(
                    "column {:?} is {} and cannot become {}",
                    field.name(),
                    other.data_type(),
                    field.data_type()
                );
                return Err(Error::invalid(message).at(inner.name(), 0, ""));
            }
            columns.push(index);
        }
        if columns.iter().all(Option::is_none) {
            return Err(Error::invalid("has none of the columns of its table").at(inner.name(), 0, ""));
        }
        Ok(Self { inner, schema, columns })
    }

    fn inner_column(&self, column: usize) -> Option<usize> {
        self.columns.get(column).copied().flatten()
    }
}

/// From the batches of the inner dataset to those that were asked for.
struct Adapter {
    /// Columns of the adapted schema that are read.
    needed: Vec<usize>,
    /// For each of them its place in the inner batches.
    places: Vec<Option<usize>>,
    schema: SchemaRef,
    filter: Option<BoundPredicate>,
    /// Places in `needed`, in the order asked for.
    projection: Vec<usize>,
    with_row_numbers: bool,
    output: SchemaRef,
    left: u64,
}

impl Adapter {
    fn adapt(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let rows = batch.num_rows();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.needed.len());
        let options = CastOptions { safe: false, ..CastOptions::default() };
        for (field, place) in self.schema.fields().iter().zip(&self.places) {
            arrays.push(match place {
                Some(place) => cast_with_options(batch.column(*place), field.data_type(), &options)?,
                None => new_null_array(field.data_type(), rows),
            });
        }
        let with_rows = RecordBatchOptions::new().with_row_count(Some(rows));
        let whole = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &with_rows)?;
        let numbers = self.with_row_numbers.then(|| batch.columns().last().cloned()).flatten();
        let mut columns: Vec<ArrayRef> =
            self.projection.iter().map(|place| Arc::clone(whole.column(*place))).collect();
        columns.extend(numbers);
        let mut out = RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &with_rows)?;
        if let Some(filter) = &self.filter {
            out = filter_record_batch(&out, &filter.evaluate(&whole).map_err(ArrowError::from)?)?;
        }
        let keep = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.num_rows());
        self.left = self.left.saturating_sub(keep as u64);
        Ok(out.slice(0, keep))
    }
}

impl Dataset for AdaptedDataset {
    fn format(&self) -> &'static str {
        self.inner.format()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_count(&self) -> Option<u64> {
        self.inner.row_count()
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn splits(&self) -> Result<Vec<Split>> {
        self.inner.splits()
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn read(&self, request: &ScanRequest) -> Result<BatchReader> {
        let projected = request.projected(&self.schema)?;
        let mut needed: BTreeSet<usize> = projected.iter().copied().collect();
        for name in request.predicate.iter().flat_map(|predicate| predicate.columns()) {
            needed.insert(column_index(&self.schema, name)?);
        }
        let needed: Vec<usize> = needed.into_iter().collect();
        let schema: SchemaRef = Arc::new(self.schema.project(&needed)?);
        let inner: Vec<usize> = needed.iter().filter_map(|column| self.inner_column(*column)).collect();
        let mut next = 0usize;
        let mut place = |column: &usize| {
            self.inner_column(*column)?;
            let place = next;
            next = next.saturating_add(1);
            Some(place)
        };
        let places = needed.iter().map(&mut place).collect();
        let filter = request.predicate.as_ref().map(|predicate| predicate.bind(&schema)).transpose()?;
        let place_of = |column: &usize| needed.iter().position(|known| known == column);
        let projection = projected.iter().filter_map(place_of).collect();
        let reader = self.inner.read(&ScanRequest {
            projection: Some(inner),
            predicate: None,
            limit: request.limit.filter(|_| filter.is_none()),
            ..request.clone()
        })?;
        let output = request.output_schema(&self.schema)?;
        let mut adapter = Adapter {
            needed,
            places,
            schema,
            filter,
            projection,
            with_row_numbers: request.row_numbers.is_some(),
            output: Arc::clone(&output),
            left: request.limit.unwrap_or(u64::MAX),
        };
        // A cast may write out strings that the inner dataset shares.
        let reader = fitting::batches(reader, &Limits::default());
        let batches = reader.map_while(move |batch| match batch {
            _ if adapter.left == 0 => None,
            batch => Some(batch.and_then(|batch| adapter.adapt(&batch))),
        });
        let batches = batches.filter(|batch| batch.as_ref().map_or(true, |batch| batch.num_rows() > 0));
        Ok(Box::new(RecordBatchIterator::new(batches, output)) as Box<dyn RecordBatchReader + Send>)
    }

    fn findings(&self) -> Vec<Finding> {
        self.inner.findings()
    }

    fn absences(&self) -> Vec<Absence> {
        self.inner.absences()
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        self.inner.verify(depth, progress)
    }

    fn describe(&self) -> Result<Node> {
        self.inner.describe()
    }

    fn pages(&self) -> Result<Vec<Page>> {
        self.inner.pages()
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        Ok(self.adapt(&self.inner.column_statistics()?))
    }

    fn column_statistics_with_sizes(&self) -> Result<Vec<ColumnStatistics>> {
        Ok(self.adapt(&self.inner.column_statistics_with_sizes()?))
    }
}

impl AdaptedDataset {
    /// What is known of the inner columns, as that of these.
    fn adapt(&self, inner: &[ColumnStatistics]) -> Vec<ColumnStatistics> {
        let of = |column: &Option<usize>| column.and_then(|column| inner.get(column));
        self.columns
            .iter()
            .map(|column| match of(column) {
                // Bounds are of the inner column's type.
                Some(known) => ColumnStatistics { min: None, max: None, ..known.clone() },
                None => ColumnStatistics::default(),
            })
            .collect()
    }
}
