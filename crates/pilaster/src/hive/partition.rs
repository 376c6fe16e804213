//! A file together with the columns whose values its folder is named after.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use arrow_select::take::take;
use pilaster_core::dataset::column_index;
use pilaster_core::describe::{ColumnStatistics, Node};
use pilaster_core::predicate::BoundPredicate;
use pilaster_core::stream::Tail;
use pilaster_core::{
    Dataset, DatasetRef, Limits, Predicate, Result, ScanPlan, ScanRequest, Wrapper, fitting,
};

/// Adds the columns of its folder to a file's own. Columns that the file has itself are the file's.
#[derive(Debug)]
pub(super) struct PartitionFile {
    inner: DatasetRef,
    schema: SchemaRef,
    /// How many columns are the file's.
    own: usize,
    /// The values of the others, one row of each.
    values: RecordBatch,
}

/// A condition taken apart by what it looks at.
struct Parts {
    /// Whether it is true for the values of the folder as far as it looks at nothing else.
    may_match: bool,
    /// What the file answers itself.
    inner: Option<Predicate>,
    /// What looks at both.
    mixed: Option<Predicate>,
}

impl PartitionFile {
    /// `inner` with these columns behind its own.
    pub(super) fn open(inner: DatasetRef, values: &[(FieldRef, ArrayRef)]) -> Result<DatasetRef> {
        let own = inner.schema();
        let added: Vec<_> = values.iter().filter(|(field, _)| own.index_of(field.name()).is_err()).collect();
        if added.is_empty() {
            return Ok(inner);
        }
        let fields: Vec<FieldRef> = added.iter().map(|(field, _)| Arc::clone(field)).collect();
        let arrays = added.iter().map(|(_, values)| Arc::clone(values)).collect();
        let values = RecordBatch::try_new(Arc::new(Schema::new(fields.clone())), arrays)?;
        let all: Vec<FieldRef> = own.fields().iter().cloned().chain(fields).collect();
        let schema = Arc::new(Schema::new_with_metadata(all, own.metadata().clone()));
        Ok(Arc::new(Self { inner, schema, own: own.fields().len(), values }))
    }

    fn take_apart(&self, predicate: Option<&Predicate>) -> Result<Parts> {
        let mut parts = Parts { may_match: true, inner: None, mixed: None };
        let Some(predicate) = predicate else { return Ok(parts) };
        predicate.bind(&self.schema)?;
        let conjuncts = match predicate {
            Predicate::And(conjuncts) => conjuncts.as_slice(),
            other => std::slice::from_ref(other),
        };
        let (mut inner, mut mixed) = (Vec::new(), Vec::new());
        for part in conjuncts {
            let of_folder =
                part.columns().iter().filter(|name| self.values.schema().index_of(name).is_ok()).count();
            if of_folder == 0 {
                inner.push(part.clone());
            } else if of_folder == part.columns().len() {
                let answer = part.bind(&self.values.schema())?.evaluate(&self.values)?;
                parts.may_match &= answer.is_valid(0) && answer.value(0);
            } else {
                mixed.push(part.clone());
            }
        }
        let all = |parts: Vec<Predicate>| (!parts.is_empty()).then_some(Predicate::And(parts));
        (parts.inner, parts.mixed) = (all(inner), all(mixed));
        Ok(parts)
    }
}

/// A batch of the file with the values of its folder in every row, and the numbers of its rows if it has them.
fn with_values(
    batch: &RecordBatch,
    schema: &SchemaRef,
    values: &[ArrayRef],
    with_numbers: bool,
) -> Result<(RecordBatch, Option<ArrayRef>)> {
    let rows = batch.num_rows();
    let mut columns = batch.columns().to_vec();
    let numbers = if with_numbers { columns.pop() } else { None };
    let first = arrow_array::UInt32Array::from(vec![0; rows]);
    for value in values {
        columns.push(take(value, &first, None)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok((RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?, numbers))
}

impl Wrapper for PartitionFile {
    fn inner(&self) -> &dyn Dataset {
        self.inner.as_ref()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let projected = request.projected(&self.schema)?;
        let parts = self.take_apart(request.predicate.as_ref())?;
        if !parts.may_match {
            return ScanPlan::of_nothing(request, &self.schema);
        }
        // What is read of the file: what is asked for of it, and what a mixed condition looks at.
        let mut needed: Vec<usize> = projected;
        for name in parts.mixed.iter().flat_map(|mixed| mixed.columns()) {
            needed.push(column_index(&self.schema, name)?);
        }
        needed.sort_unstable();
        needed.dedup();
        let schema: SchemaRef = Arc::new(self.schema.project(&needed)?);
        let filter = parts.mixed.as_ref().map(|mixed| mixed.bind(&schema)).transpose()?;
        let values =
            |column: &usize| Some(Arc::clone(self.values.columns().get(column.checked_sub(self.own)?)?));
        let values: Vec<ArrayRef> = needed.iter().filter_map(values).collect();
        let of_file = ScanRequest {
            projection: Some(needed.iter().copied().filter(|column| *column < self.own).collect()),
            predicate: parts.inner,
            limit: None,
            ..request.clone()
        };
        let own = Arc::clone(&self.schema);
        ScanPlan::around(self.inner.plan(&of_file)?, request, &self.schema, move |request, inner| {
            let reader = inner.read(request.limit.filter(|_| filter.is_none()))?;
            // A text of a folder's name is written out for each row.
            let reader = fitting::batches(reader, &Limits::default());
            let tail = Tail::new(request, &own, &needed, filter.clone().map(BoundPredicate::into_condition))?;
            let (schema, values) = (Arc::clone(&schema), values.clone());
            let with_numbers = request.row_numbers.is_some();
            Ok(tail.read(reader.map(move |batch| with_values(&batch?, &schema, &values, with_numbers))))
        })
    }

    fn describe(&self) -> Result<Node> {
        let mut node = self.inner.describe()?;
        for (field, value) in self.values.schema().fields().iter().zip(self.values.columns()) {
            let text = arrow_cast::display::array_value_to_string(value, 0)?;
            node = node.fact(format!("partition {}", field.name()), text);
        }
        Ok(node)
    }

    fn statistics(&self, inner: Vec<ColumnStatistics>) -> Vec<ColumnStatistics> {
        self.with_values(inner)
    }
}

impl PartitionFile {
    /// What is known of the file's columns, and of those that have one value.
    fn with_values(&self, mut statistics: Vec<ColumnStatistics>) -> Vec<ColumnStatistics> {
        for value in self.values.columns() {
            let bound = value.is_valid(0).then(|| Arc::clone(value));
            let nulls = if value.is_null(0) { self.inner.row_count() } else { Some(0) };
            statistics.push(ColumnStatistics {
                min: bound.clone(),
                max: bound,
                nulls,
                ..ColumnStatistics::default()
            });
        }
        statistics
    }
}
