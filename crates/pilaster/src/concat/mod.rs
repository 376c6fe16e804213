//! Several files of the same columns as one dataset.

mod scan;

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::ArrayRef;
use arrow_schema::{Schema, SchemaRef};
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::{
    Absence, BatchReader, Dataset, DatasetRef, Error, Finding, OnDamage, Predicate, Progress, Result,
    RowRanges, Scan, ScanRequest, Severity, Split, VerifyDepth, VerifyReport,
};

use crate::formats::DRIVERS;
use crate::open::Beside;
use crate::verify::Summed;
use pilaster_core::stream;
use scan::{ConcatScan, PartRequest};

/// Several datasets of the same columns, one after another.
pub(crate) struct ConcatDataset {
    name: String,
    parts: Arc<Vec<DatasetRef>>,
    schema: SchemaRef,
    /// Row positions of each part, if all of them know how many rows they have.
    positions: Option<Vec<Range<u64>>>,
    /// Why parts could not be opened. They take no row positions: how many rows they had nobody knows.
    unopened: Vec<Error>,
    split_ends: OnceLock<Vec<usize>>,
    /// What lies beside the parts and is none, and what should and does not.
    beside: Beside,
}

impl fmt::Debug for ConcatDataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcatDataset").field("name", &self.name).field("parts", &self.parts.len()).finish()
    }
}

impl ConcatDataset {
    /// Joins `parts`, called `name` together.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a part has other columns than the first.
    pub(crate) fn try_new(name: String, parts: Vec<DatasetRef>) -> Result<Self> {
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
        let (unopened, beside) = (Vec::new(), Beside::default());
        let split_ends = OnceLock::new();
        Ok(Self { name, parts: Arc::new(parts), schema, positions, unopened, split_ends, beside })
    }

    /// As [`ConcatDataset::try_new`], of what could be opened. Scans that go on over damage note the others as lost.
    ///
    /// # Errors
    /// The first error if nothing could be opened.
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
            _ => Ok(Self { unopened, ..Self::try_new(name, opened)? }),
        }
    }

    /// The same, with what the folder tells of the parts.
    #[must_use]
    pub(crate) fn with_beside(mut self, beside: Beside) -> Self {
        self.beside = beside;
        self
    }

    /// Notes the parts that could not be opened, or fails because of them.
    fn lose_unopened(&self, on_damage: &OnDamage) -> Result<()> {
        for error in &self.unopened {
            let OnDamage::Skip(losses) = on_damage else { return Err(error.clone()) };
            losses.record_unknown(error);
        }
        Ok(())
    }

    /// For each part, how many splits there are up to its end.
    fn split_ends(&self) -> Result<&[usize]> {
        if let Some(ends) = self.split_ends.get() {
            return Ok(ends);
        }
        let mut end = 0usize;
        let mut ends = Vec::with_capacity(self.parts.len());
        for part in self.parts.iter() {
            end = end.saturating_add(part.splits()?.len());
            ends.push(end);
        }
        Ok(self.split_ends.get_or_init(|| ends))
    }

    /// What to read of each part.
    fn part_requests(&self, request: &ScanRequest) -> Result<Vec<PartRequest>> {
        let mut todo = Vec::new();
        let (mut only_part, mut only_split) = (None, None);
        if let Some(wanted) = request.split {
            let ends = self.split_ends()?;
            let part = ends.partition_point(|end| *end <= wanted);
            if part == ends.len() {
                let count = ends.last().copied().unwrap_or(0);
                return Err(Error::invalid(format!("no split number {wanted}: there are {count}")));
            }
            let before = part.checked_sub(1).and_then(|part| ends.get(part)).copied().unwrap_or(0);
            (only_part, only_split) = (Some(part), Some(wanted.saturating_sub(before)));
        }
        for index in only_part.map_or(0..self.parts.len(), |only| only..only.saturating_add(1)) {
            let place = self.positions.as_ref().and_then(|positions| positions.get(index)).cloned();
            let base = place.as_ref().map_or(0, |place| place.start);
            let mut part = ScanRequest { split: only_split, ..request.clone() };
            if let (Some(rows), Some(place)) = (&request.rows, place) {
                let inside = rows.intersect(&RowRanges::one(place));
                if inside.is_empty() {
                    continue;
                }
                let shift = |row: u64| row.saturating_sub(base);
                part.rows = Some(inside.as_slice().iter().map(|r| shift(r.start)..shift(r.end)).collect());
            }
            todo.push(PartRequest { index, base, is_placed: self.positions.is_some(), request: part });
        }
        Ok(todo)
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
        self.parts.first().map_or("nothing", |part| part.format())
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_count(&self) -> Option<u64> {
        let positions = self.positions.as_ref().filter(|_| self.unopened.is_empty());
        positions.map(|positions| positions.last().map_or(0, |last| last.end))
    }

    fn size_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.size_bytes()).fold(0, u64::saturating_add)
    }

    fn splits(&self) -> Result<Vec<Split>> {
        let mut splits = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            let base =
                self.positions.as_ref().and_then(|positions| positions.get(index)).map(|place| place.start);
            for mut split in part.splits()? {
                split.rows = split
                    .rows
                    .zip(base)
                    .map(|(rows, base)| base.saturating_add(rows.start)..base.saturating_add(rows.end));
                splits.push(split);
            }
        }
        Ok(splits)
    }

    fn splits_for(&self, predicate: &Predicate) -> Result<Vec<usize>> {
        let starts = std::iter::once(0).chain(self.split_ends()?.iter().copied());
        let mut splits = Vec::new();
        for (part, start) in self.parts.iter().zip(starts) {
            splits.extend(part.splits_for(predicate)?.iter().map(|split| split.saturating_add(start)));
        }
        Ok(splits)
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn read(&self, request: &ScanRequest) -> Result<BatchReader> {
        let by_position = request.rows.is_some() || request.row_numbers.is_some();
        if self.positions.is_none() && by_position {
            return stream::read_by_counting(self, request);
        }
        self.lose_unopened(&request.on_damage)?;
        // A request that is wrong for the columns must fail here, as it does for a single file.
        if let Some(predicate) = &request.predicate {
            predicate.bind(&self.schema)?;
        }
        let schema = request.output_schema(&self.schema)?;
        let todo = self.part_requests(request)?;
        Ok(Box::new(ConcatScan::new(Arc::clone(&self.parts), schema, todo, request)))
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
        let unopened = self.unopened.iter().map(|error| Finding::from_error(error, &self.name, None));
        let of_parts = self.parts.iter().flat_map(|part| part.findings());
        let passed_over = self.beside.passed_over.iter().cloned();
        unknown.into_iter().chain(passed_over).chain(unopened).chain(of_parts).collect()
    }

    fn absences(&self) -> Vec<Absence> {
        let of_parts = self.parts.iter().flat_map(|part| part.absences());
        self.beside.absences.iter().cloned().chain(of_parts).collect()
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let progress = Summed::new(progress);
        for part in self.parts.iter() {
            report.merge(part.verify(depth, &progress)?);
        }
        for error in &self.unopened {
            report.add_failure(&self.name, error, false);
        }
        Ok(report)
    }

    fn describe(&self) -> Result<Node> {
        let mut node = Node::new(format!("{} files", self.parts.len()), self.size_bytes());
        for part in self.parts.iter() {
            let mut child = part.describe()?;
            child.facts.insert(0, ("path".to_string(), part.name().to_string()));
            node = node.child(child);
        }
        Ok(node)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        let mut pages = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            let base =
                self.positions.as_ref().and_then(|positions| positions.get(index)).map(|place| place.start);
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
        let mut parts = self.parts.iter();
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
