//! Several files of the same columns as one dataset.

mod scan;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{Schema, SchemaRef};
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::{
    Absence, Dataset, DatasetRef, Error, Finding, OnDamage, Partition, Progress, Result, Scan, ScanPlan,
    ScanRequest, Severity, TaskSpan, VerifyDepth, VerifyReport,
};

use crate::formats::DRIVERS;
use crate::open::Beside;
use crate::verify::Summed;
use pilaster_core::stream;
use scan::PlannedParts;

/// Several datasets of the same columns, one after another.
pub(crate) struct ConcatDataset {
    name: String,
    parts: Arc<Parts>,
    /// What lies beside the parts and is none, and what should and does not.
    beside: Beside,
}

/// What is read.
#[derive(Debug)]
struct Parts {
    parts: Vec<DatasetRef>,
    schema: SchemaRef,
    /// Row positions of each part, if all of them know how many rows they have.
    positions: Option<Vec<Range<u64>>>,
    /// Why parts could not be opened. They take no row positions: how many rows they had nobody knows.
    unopened: Vec<Error>,
}

impl Parts {
    /// Plans to read them, one after the other; those that could not be opened are noted as lost, or an error.
    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        for error in &self.unopened {
            let OnDamage::Skip(losses) = &request.on_damage else { return Err(error.clone()) };
            losses.record_unknown(error);
        }
        ScanPlan::new(request, &self.schema, PlannedParts::new(self, request)?)
    }
}

impl fmt::Debug for ConcatDataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcatDataset")
            .field("name", &self.name)
            .field("parts", &self.parts.parts.len())
            .finish()
    }
}

impl ConcatDataset {
    /// Joins `parts`, called `name` together.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a part has other columns than the first.
    #[cfg(any(feature = "doris", feature = "carbondata"))]
    pub(crate) fn try_new(name: String, parts: Vec<DatasetRef>) -> Result<Self> {
        Self::of(name, parts, Vec::new())
    }

    fn of(name: String, parts: Vec<DatasetRef>, unopened: Vec<Error>) -> Result<Self> {
        let Some(first) = parts.first() else { return Err(Error::invalid("no file was given")) };
        let mut schema = first.schema();
        for part in parts.iter().skip(1) {
            check_same(&schema, first.name(), part.as_ref())?;
            schema = nullable_as_either(&schema, &part.schema());
        }
        let mut positions = Some(Vec::with_capacity(parts.len()));
        let mut next = 0u64;
        for part in &parts {
            match (part.row_count(), &mut positions) {
                (Some(rows), Some(positions)) => {
                    let end = next.saturating_add(rows);
                    positions.push(next..end);
                    next = end;
                }
                _ => positions = None,
            }
        }
        let parts = Arc::new(Parts { parts, schema, positions, unopened });
        Ok(Self { name, parts, beside: Beside::default() })
    }

    /// Joins what could be opened of `parts`. Scans that go on over damage note the others as lost.
    ///
    /// # Errors
    /// The first error if nothing could be opened, or as joining them.
    pub(crate) fn recovered(name: String, parts: Vec<Result<DatasetRef>>) -> Result<Self> {
        let (mut opened, mut unopened) = (Vec::with_capacity(parts.len()), Vec::new());
        for part in parts {
            match part {
                Ok(part) => opened.push(part),
                Err(error) => unopened.push(error),
            }
        }
        match unopened.first() {
            Some(first) if opened.is_empty() => Err(first.clone()),
            _ => Self::of(name, opened, unopened),
        }
    }

    /// The same, with what the folder tells of the parts.
    #[must_use]
    pub(crate) fn with_beside(mut self, beside: Beside) -> Self {
        self.beside = beside;
        self
    }
}

/// Says which column of a part is not as in the schema of the first, and how.
pub(crate) fn check_same(schema: &SchemaRef, first: &str, part: &dyn Dataset) -> Result<()> {
    let other = part.schema();
    let differs = |message: String| Err(Error::invalid(message).at(part.name(), 0, ""));
    for (index, field) in schema.fields().iter().enumerate() {
        match other.fields().get(index) {
            None => return differs(format!("has no column \"{}\", which {first} has", field.name())),
            Some(found) if found.name() != field.name() => {
                let (found, expected) = (found.name(), field.name());
                return differs(format!(
                    "column number {index} is \"{found}\", but \"{expected}\" in {first}; files read together must have the same columns"
                ));
            }
            Some(found) if found.data_type() != field.data_type() => {
                return differs(format!(
                    "column \"{}\" is {}, but {} in {first}; files read together must have the same types",
                    field.name(),
                    found.data_type(),
                    field.data_type()
                ));
            }
            Some(_) => {}
        }
    }
    match other.fields().get(schema.fields().len()) {
        Some(more) => differs(format!("has a column \"{}\", which {first} has not", more.name())),
        None => Ok(()),
    }
}

/// The first schema, with a column nullable where it is in one of the two.
fn nullable_as_either(schema: &SchemaRef, other: &SchemaRef) -> SchemaRef {
    let fields = schema
        .fields()
        .iter()
        .zip(other.fields())
        .map(|(a, b)| Arc::new(a.as_ref().clone().with_nullable(a.is_nullable() || b.is_nullable())));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

impl Dataset for ConcatDataset {
    fn format(&self) -> &'static str {
        self.parts.parts.first().map_or("nothing", |part| part.format())
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.parts.schema)
    }

    fn row_count(&self) -> Option<u64> {
        let positions = self.parts.positions.as_ref().filter(|_| self.parts.unopened.is_empty());
        positions.map(|positions| positions.last().map_or(0, |last| last.end))
    }

    fn size_bytes(&self) -> u64 {
        self.parts.parts.iter().map(|part| part.size_bytes()).fold(0, u64::saturating_add)
    }

    /// The partitions of all parts, if each of them has some by the same columns.
    fn partitions(&self) -> Result<Vec<Partition>> {
        let Some(positions) = &self.parts.positions else { return Ok(Vec::new()) };
        let mut joined: Vec<Partition> = Vec::new();
        for (part, place) in self.parts.parts.iter().zip(positions) {
            let partitions = part.partitions()?;
            if partitions.is_empty() && !place.is_empty() {
                return Ok(Vec::new());
            }
            for Partition { values, rows } in partitions {
                let rows = rows.moved(place.start);
                match joined.iter_mut().find(|known| known.values == values) {
                    Some(known) => known.rows = known.rows.union(&rows),
                    None => joined.push(Partition { values, rows }),
                }
            }
        }
        Ok(joined)
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let by_position = request.rows.is_some() || request.row_numbers.is_some();
        if !by_position || self.parts.positions.is_some() {
            return self.parts.plan(request);
        }
        let (parts, span) = (Arc::clone(&self.parts), TaskSpan { rows: None, bytes: self.size_bytes() });
        ScanPlan::of_one_task(request, &self.parts.schema, span, move |request| {
            stream::read_by_counting(&parts.schema, request, |all| parts.plan(all)?.read())
        })
    }

    fn findings(&self) -> Vec<Finding> {
        let unknown = DRIVERS.iter().find_map(|driver| driver.unknown_together(self.format()));
        let unknown = unknown.map(|message| Finding {
            severity: Severity::Warning,
            path: self.name.as_str().into(),
            offset: 0,
            part: String::new(),
            message: message.to_string(),
            rows: None,
        });
        let unopened = self.parts.unopened.iter().map(|error| Finding::from_error(error, &self.name, None));
        let of_parts = self.parts.parts.iter().flat_map(|part| part.findings());
        let passed_over = self.beside.passed_over.iter().cloned();
        unknown.into_iter().chain(passed_over).chain(unopened).chain(of_parts).collect()
    }

    fn absences(&self) -> Vec<Absence> {
        let of_parts = self.parts.parts.iter().flat_map(|part| part.absences());
        self.beside.absences.iter().cloned().chain(of_parts).collect()
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let progress = Summed::new(progress);
        for part in self.parts.parts.iter() {
            report.merge(part.verify(depth, &progress)?);
        }
        for error in &self.parts.unopened {
            report.add_failure(&self.name, error, false);
        }
        Ok(report)
    }

    fn describe(&self) -> Result<Node> {
        let mut node = Node::new(format!("{} files", self.parts.parts.len()), self.size_bytes());
        for part in self.parts.parts.iter() {
            let mut child = part.describe()?;
            child.facts.insert(0, ("path".to_string(), part.name().to_string()));
            node = node.child(child);
        }
        Ok(node)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        let mut pages = Vec::new();
        for (index, part) in self.parts.parts.iter().enumerate() {
            let base = self
                .parts
                .positions
                .as_ref()
                .and_then(|positions| positions.get(index))
                .map(|place| place.start);
            for mut page in part.pages()? {
                page.rows = page
                    .rows
                    .zip(base)
                    .map(|(rows, base)| base.saturating_add(rows.start)..base.saturating_add(rows.end));
                pages.push(page);
            }
        }
        Ok(pages)
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        self.join_parts(|part| part.column_statistics())
    }

    fn column_statistics_with_sizes(&self) -> Result<Vec<ColumnStatistics>> {
        self.join_parts(|part| part.column_statistics_with_sizes())
    }
}

impl ConcatDataset {
    /// What `known` says of each part, of all of them.
    fn join_parts(
        &self,
        known: impl Fn(&dyn Dataset) -> Result<Vec<ColumnStatistics>>,
    ) -> Result<Vec<ColumnStatistics>> {
        let mut parts = self.parts.parts.iter();
        let mut joined = match parts.next() {
            Some(first) => known(first.as_ref())?,
            None => Vec::new(),
        };
        for part in parts {
            for (joined, more) in joined.iter_mut().zip(known(part.as_ref())?) {
                join_statistics(joined, more)?;
            }
        }
        Ok(joined)
    }
}

/// What is known of both columns together.
fn join_statistics(joined: &mut ColumnStatistics, more: ColumnStatistics) -> Result<()> {
    joined.min = pick(joined.min.take(), more.min, false)?;
    joined.max = pick(joined.max.take(), more.max, true)?;
    joined.nulls = joined.nulls.zip(more.nulls).map(|(a, b)| a.saturating_add(b));
    joined.bytes = joined.bytes.saturating_add(more.bytes);
    joined.uncompressed_bytes =
        joined.uncompressed_bytes.zip(more.uncompressed_bytes).map(|(a, b)| a.saturating_add(b));
    for (all, new) in [(&mut joined.encodings, more.encodings), (&mut joined.codecs, more.codecs)] {
        for text in new {
            if !all.contains(&text) {
                all.push(text);
            }
        }
    }
    Ok(())
}

/// The smaller (or larger) of two single values; unknown if one of them is.
fn pick(a: Option<ArrayRef>, b: Option<ArrayRef>, descending: bool) -> Result<Option<ArrayRef>> {
    let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
    let both = arrow_select::concat::concat(&[a.as_ref(), b.as_ref()])?;
    let options = arrow_schema::SortOptions { descending, nulls_first: false };
    let order = arrow_ord::sort::sort_to_indices(&both, Some(options), Some(1))?;
    Ok(Some(arrow_select::take::take(&both, &order, None)?))
}
