//! A dataset whose columns leave as types that engines compute with rightly: see [`pilaster_core::widen`].

use std::sync::Arc;

use arrow_array::{RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::{
    Absence, BatchReader, Dataset, DatasetRef, Finding, Limits, Partition, Predicate, Progress, Result, Scan,
    ScanRequest, Split, VerifyDepth, VerifyReport, fitting, widen,
};

use crate::adapted::AdaptedDataset;

/// Casts what an inner dataset gives to the types that may leave.
#[derive(Debug)]
pub(crate) struct WidenedDataset {
    inner: DatasetRef,
    schema: SchemaRef,
}

impl WidenedDataset {
    /// `inner`, with its columns in the types in which they leave; itself if they have those.
    pub(crate) fn around(inner: DatasetRef) -> DatasetRef {
        let narrow = inner.schema();
        let schema = widen::schema(&narrow);
        if Arc::ptr_eq(&schema, &narrow) { inner } else { Arc::new(Self { inner, schema }) }
    }

    /// Whether a predicate means the same of the narrow values.
    fn can_pass_on(&self, predicate: &Predicate) -> bool {
        let narrow = self.inner.schema();
        let is_alike = |name: &str| {
            narrow.field_with_name(name).is_ok_and(|field| compares_as_what_leaves(field.data_type()))
        };
        predicate.bind(&narrow).is_ok() && predicate.columns().into_iter().all(is_alike)
    }

    /// Bounds in the types of the columns; those that cannot be told in them are not known.
    fn adapt(&self, known: Vec<ColumnStatistics>) -> Vec<ColumnStatistics> {
        let wide = |bound: Option<arrow_array::ArrayRef>, field: &arrow_schema::Field| {
            bound.and_then(|bound| widen::array(&bound, field.data_type()).ok())
        };
        let columns = known.into_iter().zip(self.schema.fields());
        columns
            .map(|(known, field)| ColumnStatistics {
                min: wide(known.min.clone(), field),
                max: wide(known.max.clone(), field),
                ..known
            })
            .collect()
    }
}

/// Halves do not: what is written beside them would be rounded to a half first. Nor do they, dictionaries and runs of floats have one
/// zero and one NaN: predicates see to that in plain floats alone.
fn compares_as_what_leaves(narrow: &DataType) -> bool {
    match narrow {
        DataType::Dictionary(_, values) => !values.is_floating(),
        DataType::RunEndEncoded(_, values) => !values.data_type().is_floating(),
        plain => *plain != DataType::Float16,
    }
}

impl Dataset for WidenedDataset {
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

    fn splits_for(&self, predicate: &Predicate) -> Result<Vec<usize>> {
        predicate.bind(&self.schema)?;
        if self.can_pass_on(predicate) {
            self.inner.splits_for(predicate)
        } else {
            Ok((0..self.splits()?.len()).collect())
        }
    }

    fn partitions(&self) -> Result<Vec<Partition>> {
        self.inner.partitions()
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    /// The predicate is the inner dataset's, where it means the same of the narrow values.
    fn read(&self, request: &ScanRequest) -> Result<BatchReader> {
        if request.predicate.as_ref().is_some_and(|predicate| !self.can_pass_on(predicate)) {
            return AdaptedDataset::try_new(Arc::clone(&self.inner), Arc::clone(&self.schema))?.read(request);
        }
        let output = request.output_schema(&self.schema)?;
        // Dictionaries that leave as their values write them out.
        let reader = fitting::batches(self.inner.read(request)?, &Limits::default());
        let schema = Arc::clone(&output);
        let batches = reader.map(move |batch| widen::batch(&batch?, &schema).map_err(ArrowError::from));
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
        Ok(self.adapt(self.inner.column_statistics()?))
    }

    fn column_statistics_with_sizes(&self) -> Result<Vec<ColumnStatistics>> {
        Ok(self.adapt(self.inner.column_statistics_with_sizes()?))
    }
}
