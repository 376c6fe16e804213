//! A dataset whose columns leave as types that engines compute with rightly: see [`pilaster_core::widen`].

use std::sync::Arc;

use arrow_array::RecordBatchIterator;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pilaster_core::describe::ColumnStatistics;
use pilaster_core::{
    Dataset, DatasetRef, Limits, Predicate, Result, ScanPlan, ScanRequest, Wrapper, fitting, widen,
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
}

impl Wrapper for WidenedDataset {
    fn inner(&self) -> &dyn Dataset {
        self.inner.as_ref()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The predicate is the inner dataset's, where it means the same of the narrow values.
    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        if request.predicate.as_ref().is_some_and(|predicate| !self.can_pass_on(predicate)) {
            return Wrapper::plan(
                &AdaptedDataset::try_new(Arc::clone(&self.inner), Arc::clone(&self.schema))?,
                request,
            );
        }
        let output = request.output_schema(&self.schema)?;
        ScanPlan::around(self.inner.plan(request)?, request, &self.schema, move |request, inner| {
            // Dictionaries that leave as their values write them out.
            let reader = fitting::batches(inner.read(request.limit)?, &Limits::default());
            let schema = Arc::clone(&output);
            let batches = reader.map(move |batch| widen::batch(&batch?, &schema).map_err(ArrowError::from));
            Ok(Box::new(RecordBatchIterator::new(batches, Arc::clone(&output))))
        })
    }

    /// Bounds in the types of the columns; those that cannot be told in them are not known.
    fn statistics(&self, inner: Vec<ColumnStatistics>) -> Vec<ColumnStatistics> {
        let wide = |bound: Option<arrow_array::ArrayRef>, field: &arrow_schema::Field| {
            bound.and_then(|bound| widen::array(&bound, field.data_type()).ok())
        };
        let columns = inner.into_iter().zip(self.schema.fields());
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
