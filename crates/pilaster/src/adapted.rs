//! A dataset with the columns of another schema: those of the same name are cast, those it does not have are null.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_cast::cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::SchemaRef;
use pilaster_core::describe::ColumnStatistics;
use pilaster_core::predicate::BoundPredicate;
use pilaster_core::stream::{self, Tail};
use pilaster_core::{
    Dataset, DatasetRef, Error, Limits, Literal, Partition, Result, ScanPlan, ScanRequest, Wrapper, fitting,
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
            let in_any_case =
                || found.fields().iter().position(|other| other.name().eq_ignore_ascii_case(field.name()));
            let index = found.index_of(field.name()).ok().or_else(in_any_case);
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

/// From the batches of the inner dataset to the columns that are asked for.
#[derive(Debug, Clone)]
struct Adapter {
    /// For each column its place in the inner batches.
    places: Vec<Option<usize>>,
    schema: SchemaRef,
    with_row_numbers: bool,
}

impl Adapter {
    fn adapt(&self, batch: &RecordBatch) -> Result<(RecordBatch, Option<ArrayRef>)> {
        let rows = batch.num_rows();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.places.len());
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
        Ok((whole, numbers))
    }
}

impl Wrapper for AdaptedDataset {
    fn inner(&self) -> &dyn Dataset {
        self.inner.as_ref()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn partitions(&self) -> Result<Vec<Partition>> {
        let place = |inner: usize| self.columns.iter().position(|column| *column == Some(inner));
        let mut partitions = self.inner.partitions()?;
        for (column, value) in partitions.iter_mut().flat_map(|partition| &mut partition.values) {
            let Some(outer) = place(*column) else { return Ok(Vec::new()) };
            let Some(field) = self.schema.fields().get(outer) else { return Ok(Vec::new()) };
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            *value = Literal::from_array(&cast_with_options(&value.array(), field.data_type(), &strict)?, 0);
            *column = outer;
        }
        Ok(partitions)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let needed = stream::needed_columns(request, &self.schema)?;
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
        let adapter = Adapter { places, schema, with_row_numbers: request.row_numbers.is_some() };
        let of_inner =
            ScanRequest { projection: Some(inner), predicate: None, limit: None, ..request.clone() };
        let own = Arc::clone(&self.schema);
        ScanPlan::around(self.inner.plan(&of_inner)?, request, &self.schema, move |request, inner| {
            let reader = inner.read(request.limit.filter(|_| filter.is_none()))?;
            // A cast may write out strings that the inner dataset shares.
            let reader = fitting::batches(reader, &Limits::default());
            let tail = Tail::new(request, &own, &needed, filter.clone().map(BoundPredicate::into_condition))?;
            let adapter = adapter.clone();
            Ok(tail.read(reader.map(move |batch| adapter.adapt(&batch?))))
        })
    }

    /// What is known of the inner columns, as that of these.
    fn statistics(&self, inner: Vec<ColumnStatistics>) -> Vec<ColumnStatistics> {
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
