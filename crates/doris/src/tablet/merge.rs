//! Rows of equal keys made one: for aggregate tables, and unique tables that merge when they are read.
//!
//! Segments are sorted by key, so their rows are merged batch by batch. Which rows have one key is found out first; then
//! each column takes its value out of them by its own rule.
//!
//! A row that is lost may have replaced an older one. So where rows of a segment are lost, no row between their neighbours'
//! keys is given: none of them can be proven to be what Doris would answer.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::BinaryViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type,
};
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, PrimitiveArray, RecordBatch};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::interleave::interleave;
use pilaster_core::merge::{self as keyed, Batches, KeyedRows};
use pilaster_core::{Error, Result};

use super::doubts::Doubts;
use super::unions;
use crate::schema::{KeysType, SEQUENCE_COLUMN, SchemaColumn, TabletSchema};

/// How the values of equal keys become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rule {
    /// That of the row that wins.
    Winner,
    /// That of the row with the largest value in another column.
    Sequence(usize),
    NewestNonNull,
    Min,
    Max,
    Sum,
    /// Union of opaque values.
    Union(String),
}

impl Rule {
    pub fn of(column: &SchemaColumn, keys: KeysType) -> Self {
        if column.is_key || keys == KeysType::Unique {
            return Self::Winner;
        }
        match column.aggregation.as_deref().unwrap_or("REPLACE").to_ascii_uppercase().as_str() {
            "REPLACE" | "NONE" => Self::Winner,
            "REPLACE_IF_NOT_NULL" => Self::NewestNonNull,
            "MIN" => Self::Min,
            "MAX" => Self::Max,
            "SUM" => Self::Sum,
            other => Self::Union(other.to_string()),
        }
    }
}

/// Merges the sorted rows of several segments. Sources go from the oldest to the newest.
pub(crate) struct Merge {
    schema: SchemaRef,
    merge: keyed::Merge,
    rules: Vec<Rule>,
    sequence: Option<usize>,
    /// The version of the rowset of each source, where columns have sequences of their own.
    versions: Vec<i64>,
    last_source: usize,
    batch_size: usize,
    doubts: Arc<Doubts>,
    /// The key of the last row taken, and whether rows of it are given.
    last: Option<(Vec<u8>, bool)>,
    unproven: u64,
}

/// Rows to be given: batches, members as (batch, row) from the oldest to the newest, and where each key's members end.
#[derive(Default)]
struct Groups {
    batches: Batches,
    members: Vec<(usize, usize)>,
    ends: Vec<usize>,
}

impl Groups {
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(self.ends.iter().copied()).map(|(start, end)| start..end)
    }

    /// Adds a row: the first of its key, or one more.
    fn push(&mut self, member: (usize, usize), is_first: bool) {
        self.members.push(member);
        if !is_first {
            self.ends.pop();
        }
        self.ends.push(self.members.len());
    }
}

impl Merge {
    /// Merges sources that give the columns `columns` of `schema`, key columns among them.
    pub fn new(
        sources: Vec<Box<dyn KeyedRows>>,
        schema: SchemaRef,
        columns: &[&SchemaColumn],
        tablet: &TabletSchema,
        batch_size: usize,
        doubts: Arc<Doubts>,
    ) -> Self {
        let sequence = columns
            .iter()
            .position(|column| column.name == SEQUENCE_COLUMN)
            .filter(|_| tablet.keys_type == KeysType::Unique);
        let rule = |column: &&SchemaColumn| match group_sequence(column, tablet) {
            Some(sequence) => columns
                .iter()
                .position(|column| column.unique_id == sequence)
                .map_or(Rule::Winner, Rule::Sequence),
            None => Rule::of(column, tablet.keys_type),
        };
        Self {
            rules: columns.iter().map(rule).collect(),
            merge: keyed::Merge::new(sources),
            schema,
            sequence,
            versions: Vec::new(),
            last_source: 0,
            batch_size,
            doubts,
            last: None,
            unproven: 0,
        }
    }

    /// Says which sources are segments of one rowset. Of those the newest alone has a say in the sequences of column
    /// groups: Doris makes one row of them before it looks at any sequence.
    pub fn with_versions(mut self, versions: Vec<i64>) -> Self {
        if self.rules.iter().any(|rule| matches!(rule, Rule::Sequence(_))) {
            self.versions = versions;
        }
        self
    }

    /// How many keys were left out because rows next to them are lost.
    pub fn unproven(&self) -> u64 {
        self.unproven
    }

    /// The next rows; `None` at the end.
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        let mut groups = Groups::default();
        loop {
            let last = self.last.as_ref().map(|(key, _)| key.as_slice());
            let next = self.merge.next_key()?;
            let is_full = groups.ends.len() >= self.batch_size;
            if next.is_none() || (is_full && next != last) {
                break;
            }
            self.take_run(&mut groups)?;
        }
        if groups.ends.is_empty() {
            return Ok(None);
        }
        self.gather(&groups).map(Some)
    }

    fn take_run(&mut self, groups: &mut Groups) -> Result<()> {
        let room = self.batch_size.saturating_sub(groups.ends.len());
        let Some(run) = self.merge.next_run(room)? else { return Ok(()) };
        let batch = groups.batches.number(&run);
        let replaces_older = is_same_rowset(&self.versions, run.source, self.last_source);
        self.last_source = run.source;
        let (mut before, mut is_given) = match &self.last {
            Some((key, is_given)) => (Some(key.as_slice()), *is_given),
            None => (None, true),
        };
        for row in run.rows.clone() {
            let key = run.keys.get(row);
            let is_first = before != Some(key);
            if is_first {
                is_given = !self.doubts.cover(key);
                self.unproven = self.unproven.saturating_add(u64::from(!is_given));
            }
            if is_given {
                if replaces_older && !is_first && row == run.rows.start {
                    groups.members.pop();
                }
                groups.push((batch, row), is_first);
            }
            before = Some(key);
        }
        self.last = before.map(|key| (key.to_vec(), is_given));
        Ok(())
    }

    fn gather(&self, groups: &Groups) -> Result<RecordBatch> {
        let winners = match self.sequence {
            Some(sequence) => winners_by(groups, sequence)?,
            None => groups.ends.iter().map(|end| end.saturating_sub(1)).collect(),
        };
        let mut by_sequence: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for rule in &self.rules {
            if let Rule::Sequence(sequence) = rule
                && let Entry::Vacant(place) = by_sequence.entry(*sequence)
            {
                place.insert(winners_by(groups, *sequence)?);
            }
        }
        let columns = self.rules.iter().enumerate().map(|(number, rule)| {
            let winners = match rule {
                Rule::Sequence(sequence) => by_sequence.get(sequence).unwrap_or(&winners),
                _ => &winners,
            };
            self.column(number, rule, groups, winners)
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    fn column(&self, number: usize, rule: &Rule, groups: &Groups, winners: &[usize]) -> Result<ArrayRef> {
        match rule {
            Rule::Winner | Rule::Sequence(_) => pick(groups, number, winners.iter().copied()),
            Rule::NewestNonNull => {
                let values = all_members(groups, number)?;
                let newest = groups.ranges().map(|range| {
                    let last = range.end.saturating_sub(1);
                    range.rev().find(|member| values.is_valid(*member)).unwrap_or(last)
                });
                pick(groups, number, newest)
            }
            Rule::Min | Rule::Max => {
                let values = all_members(groups, number)?;
                let wanted = if *rule == Rule::Min { Ordering::Less } else { Ordering::Greater };
                let chosen = best(groups, &values, |order| order == wanted)?;
                pick(groups, number, chosen.into_iter())
            }
            Rule::Sum => sum(&all_members(groups, number)?, groups),
            Rule::Union(_) if groups.ends.len() == groups.members.len() => {
                // No key has more than one row, so any aggregation is what is there.
                pick(groups, number, winners.iter().copied())
            }
            Rule::Union(name) => {
                let refuse = || {
                    let column = self.schema.field(number).name();
                    Error::unsupported(format!(
                        "aggregating rows of equal keys by {name} (column \"{column}\")"
                    ))
                };
                let values = all_members(groups, number)?;
                let values = values.as_binary_view_opt().ok_or_else(refuse)?;
                let mut united = BinaryViewBuilder::with_capacity(groups.ends.len());
                for range in groups.ranges() {
                    let mut members = range
                        .rev()
                        .filter(|member| values.is_valid(*member))
                        .map(|member| values.value(member))
                        .peekable();
                    match members.peek() {
                        None => united.append_null(),
                        Some(_) => united.append_value(unions::union(name, members).ok_or_else(refuse)??),
                    }
                }
                Ok(Arc::new(united.finish()))
            }
        }
    }
}

/// Unique id of the column that decides on a column of a group.
fn group_sequence(column: &SchemaColumn, tablet: &TabletSchema) -> Option<i32> {
    let merges = tablet.keys_type == KeysType::Unique && !tablet.merge_on_write;
    let mut groups = tablet.sequence_groups.iter().filter(|_| merges);
    let group = groups.find(|group| {
        group.sequence_column == column.unique_id || group.columns_in_group.contains(&column.unique_id)
    });
    group.map(|group| group.sequence_column)
}

/// Whether two different sources are segments of one rowset.
fn is_same_rowset(versions: &[i64], source: usize, other: usize) -> bool {
    source != other && versions.get(source).is_some_and(|version| versions.get(other) == Some(version))
}

/// For each key the member with the largest sequence; of equal ones the newest.
fn winners_by(groups: &Groups, sequence: usize) -> Result<Vec<usize>> {
    best(groups, &all_members(groups, sequence)?, |order| order != Ordering::Less)
}

/// The values of all members of a column.
fn all_members(groups: &Groups, column: usize) -> Result<ArrayRef> {
    pick(groups, column, 0..groups.members.len())
}

fn pick(groups: &Groups, column: usize, members: impl Iterator<Item = usize>) -> Result<ArrayRef> {
    let places: Vec<_> =
        members.map(|member| groups.members.get(member).copied().unwrap_or_default()).collect();
    Ok(interleave(&groups.batches.column(column), &places)?)
}

/// For each key the member whose value, compared with the best so far, is better; members without a value only if none
/// has one.
fn best(groups: &Groups, values: &ArrayRef, is_better: impl Fn(Ordering) -> bool) -> Result<Vec<usize>> {
    let rows = RowConverter::new(vec![SortField::new(values.data_type().clone())])?
        .convert_columns(&[Arc::clone(values)])?;
    Ok(groups
        .ranges()
        .map(|range| {
            let last = range.end.saturating_sub(1);
            let with_value = range.filter(|member| values.is_valid(*member));
            let chosen = with_value.fold(None, |best: Option<usize>, member| match best {
                Some(known) if !is_better(rows.row(member).cmp(&rows.row(known))) => Some(known),
                _ => Some(member),
            });
            chosen.unwrap_or(last)
        })
        .collect())
}

/// The sums of the values of each key, nulls left out.
fn sum(values: &ArrayRef, groups: &Groups) -> Result<ArrayRef> {
    match values.data_type() {
        DataType::Int8 => sum_of::<Int8Type>(values, groups),
        DataType::Int16 => sum_of::<Int16Type>(values, groups),
        DataType::Int32 => sum_of::<Int32Type>(values, groups),
        DataType::Int64 => sum_of::<Int64Type>(values, groups),
        DataType::Float32 => sum_of::<Float32Type>(values, groups),
        DataType::Float64 => sum_of::<Float64Type>(values, groups),
        DataType::Decimal128(..) => sum_of::<Decimal128Type>(values, groups),
        DataType::Decimal256(..) => sum_of::<Decimal256Type>(values, groups),
        other => Err(Error::unsupported(format!("sums of {other}"))),
    }
}

fn sum_of<T: ArrowPrimitiveType>(values: &ArrayRef, groups: &Groups) -> Result<ArrayRef> {
    let numbers = values.as_primitive::<T>();
    let sums = groups.ranges().map(|range| {
        let with_value = range.filter(|member| numbers.is_valid(*member)).map(|member| numbers.value(member));
        with_value.reduce(|sum, value| sum.add_wrapping(value))
    });
    let sums: PrimitiveArray<T> = sums.collect();
    Ok(Arc::new(sums.with_data_type(values.data_type().clone())))
}
