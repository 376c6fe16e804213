//! A file together with the columns whose values its folder is named after.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchOptions};
use arrow_schema::{ArrowError, FieldRef, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take;
use pilaster_core::dataset::column_index;
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::{
    Absence, BatchReader, Dataset, DatasetRef, Finding, Limits, Predicate, Progress, Result, Scan,
    ScanRequest, Split, VerifyDepth, VerifyReport, fitting,
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

impl Dataset for PartitionFile {
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
        let parts = self.take_apart(Some(predicate))?;
        match parts.inner {
            _ if !parts.may_match => Ok(Vec::new()),
            Some(inner) => self.inner.splits_for(&inner),
            None => Ok((0..self.inner.splits()?.len()).collect()),
        }
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn read(&self, request: &ScanRequest) -> Result<BatchReader> {
        let output = request.output_schema(&self.schema)?;
        let projected = request.projected(&self.schema)?;
        let parts = self.take_apart(request.predicate.as_ref())?;
        if !parts.may_match {
            return Ok(Box::new(RecordBatchIterator::new([], output)));
        }
        // What is read of the file: what is asked for of it, and what a mixed condition looks at.
        let mut needed: Vec<usize> = projected.clone();
        for name in parts.mixed.iter().flat_map(|mixed| mixed.columns()) {
            needed.push(column_index(&self.schema, name)?);
        }
        needed.sort_unstable();
        needed.dedup();
        let schema: SchemaRef = Arc::new(self.schema.project(&needed)?);
        let filter = parts.mixed.as_ref().map(|mixed| mixed.bind(&schema)).transpose()?;
        let of_file = needed.iter().copied().filter(|column| *column < self.own).collect();
        let values: Vec<ArrayRef> = needed
            .iter()
            .filter_map(|column| Some(Arc::clone(self.values.columns().get(column.checked_sub(self.own)?)?)))
            .collect();
        let place_of = |column: &usize| needed.iter().position(|known| known == column);
        let projection: Vec<usize> = projected.iter().filter_map(place_of).collect();
        let mut left = request.limit.unwrap_or(u64::MAX);
        let reader = self.inner.read(&ScanRequest {
            projection: Some(of_file),
            predicate: parts.inner,
            limit: request.limit.filter(|_| filter.is_none()),
            ..request.clone()
        })?;
        // A text of a folder's name is written out for each row.
        let reader = fitting::batches(reader, &Limits::default());
        let with_numbers = request.row_numbers.is_some();
        let schema_out = Arc::clone(&output);
        let mut complete = move |batch: RecordBatch| -> Result<RecordBatch, ArrowError> {
            let rows = batch.num_rows();
            let with_rows = RecordBatchOptions::new().with_row_count(Some(rows));
            let mut columns = batch.columns().to_vec();
            let numbers = if with_numbers { columns.pop() } else { None };
            let first = arrow_array::UInt32Array::from(vec![0; rows]);
            for value in &values {
                columns.push(take(value, &first, None)?);
            }
            let whole = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &with_rows)?;
            let mut asked: Vec<ArrayRef> =
                projection.iter().map(|place| Arc::clone(whole.column(*place))).collect();
            asked.extend(numbers);
            let mut out = RecordBatch::try_new_with_options(Arc::clone(&schema_out), asked, &with_rows)?;
            if let Some(filter) = &filter {
                out = filter_record_batch(&out, &filter.evaluate(&whole).map_err(ArrowError::from)?)?;
            }
            let keep = usize::try_from(left).unwrap_or(usize::MAX).min(out.num_rows());
            left = left.saturating_sub(keep as u64);
            Ok(out.slice(0, keep))
        };
        let batches = reader.map(move |batch| batch.and_then(&mut complete));
        let batches = batches.filter(|batch| batch.as_ref().map_or(true, |batch| batch.num_rows() > 0));
        Ok(Box::new(RecordBatchIterator::new(batches, output)))
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
        let mut node = self.inner.describe()?;
        for (field, value) in self.values.schema().fields().iter().zip(self.values.columns()) {
            let text = arrow_cast::display::array_value_to_string(value, 0)?;
            node = node.fact(format!("partition {}", field.name()), text);
        }
        Ok(node)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        self.inner.pages()
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        Ok(self.with_values(self.inner.column_statistics()?))
    }

    fn column_statistics_with_sizes(&self) -> Result<Vec<ColumnStatistics>> {
        Ok(self.with_values(self.inner.column_statistics_with_sizes()?))
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
