//! Rows of equal keys made one: for aggregate tables, and unique tables that merge when they are read.
//!
//! Segments are sorted by key, so their rows are merged batch by batch. Which rows have one key is found out first; then
//! each column takes its value out of them by its own rule.

use std::cmp::Ordering;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::BinaryViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type,
};
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, PrimitiveArray, RecordBatch};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::interleave::interleave;
use pilaster_core::{BatchReader, Error, Result};

use super::unions;
use crate::schema::{KeysType, SEQUENCE_COLUMN, SchemaColumn, TabletSchema};

/// How the values of equal keys become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rule {
    /// That of the row that wins.
    Winner,
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

/// See the module. Sources go from the oldest to the newest.
pub(crate) struct Merge {
    schema: SchemaRef,
    sources: Vec<Source>,
    converter: RowConverter,
    keys: Vec<KeyColumn>,
    rules: Vec<Rule>,
    sequence: Option<usize>,
    batch_size: usize,
}

/// A key among the columns.
struct KeyColumn {
    at: usize,
    /// Whether it is an address: given as text, but sorted as a number.
    is_address: bool,
}

impl KeyColumn {
    /// The values in a form that is in the order of the rows.
    fn sortable(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let array = batch.column(self.at);
        let Some(texts) = array.as_string_view_opt().filter(|_| self.is_address) else {
            return Ok(Arc::clone(array));
        };
        let mut octets = BinaryViewBuilder::with_capacity(texts.len());
        for text in texts {
            let address = text.map(str::parse::<IpAddr>).transpose();
            match address.map_err(|error| Error::corrupt("an address", error))? {
                None => octets.append_null(),
                Some(IpAddr::V4(address)) => octets.append_value(address.octets()),
                Some(IpAddr::V6(address)) => octets.append_value(address.octets()),
            }
        }
        Ok(Arc::new(octets.finish()))
    }
}

struct Source {
    reader: BatchReader,
    batch: Option<Arc<RecordBatch>>,
    rows: Option<Rows>,
    at: usize,
    /// Number of its batch among those of the output, once a row of it was taken.
    slot: Option<usize>,
}

/// Rows to be given: batches, members as (batch, row) from the oldest to the newest, and where each key's members end.
#[derive(Default)]
struct Groups {
    batches: Vec<Arc<RecordBatch>>,
    members: Vec<(usize, usize)>,
    ends: Vec<usize>,
}

impl Groups {
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(self.ends.iter().copied()).map(|(start, end)| start..end)
    }
}

impl Merge {
    /// Merges readers that give the columns `columns` of `schema`, key columns among them.
    pub fn new(
        readers: Vec<BatchReader>,
        schema: SchemaRef,
        columns: &[&SchemaColumn],
        tablet: &TabletSchema,
        batch_size: usize,
    ) -> Result<Self> {
        let is_address = |column: &SchemaColumn| matches!(column.type_name.as_str(), "IPV4" | "IPV6");
        let keys: Vec<KeyColumn> = columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.is_key)
            .map(|(at, column)| KeyColumn { at, is_address: is_address(column) })
            .collect();
        let sorted_as = |key: &KeyColumn| match schema.field(key.at).data_type() {
            DataType::Utf8View if key.is_address => DataType::BinaryView,
            other => other.clone(),
        };
        let fields = keys.iter().map(|key| SortField::new(sorted_as(key))).collect::<Vec<_>>();
        let sequence = columns
            .iter()
            .position(|column| column.name == SEQUENCE_COLUMN)
            .filter(|_| tablet.keys_type == KeysType::Unique);
        Ok(Self {
            converter: RowConverter::new(fields)?,
            rules: columns.iter().map(|column| Rule::of(column, tablet.keys_type)).collect(),
            sources: readers
                .into_iter()
                .map(|reader| Source { reader, batch: None, rows: None, at: 0, slot: None })
                .collect(),
            schema,
            keys,
            sequence,
            batch_size,
        })
    }

    /// The next rows; `None` at the end.
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        let mut groups = Groups::default();
        for source in &mut self.sources {
            source.slot = None;
        }
        while groups.ends.len() < self.batch_size {
            for source in &mut self.sources {
                source.fill(&self.converter, &self.keys)?;
            }
            let Some(first) = self.smallest() else { break };
            self.take(first, &mut groups)?;
        }
        if groups.ends.is_empty() {
            return Ok(None);
        }
        self.gather(&groups).map(Some)
    }

    /// The source whose next key is the smallest.
    fn smallest(&self) -> Option<usize> {
        let with_rows = self.sources.iter().enumerate().filter(|(_, source)| source.key().is_some());
        with_rows.min_by(|(_, a), (_, b)| a.key().cmp(&b.key())).map(|(number, _)| number)
    }

    /// Takes all rows whose key is that of the next row of source `first`.
    fn take(&mut self, first: usize, groups: &mut Groups) -> Result<()> {
        let Some(key) = self.sources.get(first).and_then(Source::key).map(|key| key.owned()) else {
            return Ok(());
        };
        for source in &mut self.sources {
            loop {
                source.fill(&self.converter, &self.keys)?;
                if source.key().is_none_or(|next| next != key.row()) {
                    break;
                }
                let Some(batch) = &source.batch else { break };
                let slot = *source.slot.get_or_insert_with(|| {
                    groups.batches.push(Arc::clone(batch));
                    groups.batches.len().saturating_sub(1)
                });
                groups.members.push((slot, source.at));
                source.at = source.at.saturating_add(1);
            }
        }
        groups.ends.push(groups.members.len());
        Ok(())
    }

    fn gather(&self, groups: &Groups) -> Result<RecordBatch> {
        let winners = self.winners(groups)?;
        let columns = self
            .rules
            .iter()
            .enumerate()
            .map(|(number, rule)| self.column(number, rule, groups, &winners))
            .collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// For each key the member that wins: the largest sequence, else the newest.
    fn winners(&self, groups: &Groups) -> Result<Vec<usize>> {
        let Some(sequence) = self.sequence else {
            return Ok(groups.ends.iter().map(|end| end.saturating_sub(1)).collect());
        };
        let values = all_members(groups, sequence)?;
        // Of equal sequences the newest wins.
        best(groups, &values, |order| order != Ordering::Less)
    }

    fn column(&self, number: usize, rule: &Rule, groups: &Groups, winners: &[usize]) -> Result<ArrayRef> {
        match rule {
            Rule::Winner => pick(groups, number, winners.iter().copied()),
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

impl Source {
    /// Loads the next batch if this one is used up.
    fn fill(&mut self, converter: &RowConverter, keys: &[KeyColumn]) -> Result<()> {
        while self.batch.as_ref().is_none_or(|batch| self.at >= batch.num_rows()) {
            let Some(next) = self.reader.next() else {
                self.batch = None;
                self.rows = None;
                return Ok(());
            };
            let batch = next.map_err(Error::from)?;
            let columns = keys.iter().map(|key| key.sortable(&batch)).collect::<Result<Vec<_>>>()?;
            self.rows = Some(converter.convert_columns(&columns)?);
            self.batch = Some(Arc::new(batch));
            self.at = 0;
            self.slot = None;
        }
        Ok(())
    }

    fn key(&self) -> Option<arrow_row::Row<'_>> {
        let rows = self.rows.as_ref()?;
        (self.at < rows.num_rows()).then(|| rows.row(self.at))
    }
}

/// The values of all members of a column.
fn all_members(groups: &Groups, column: usize) -> Result<ArrayRef> {
    pick(groups, column, 0..groups.members.len())
}

fn pick(groups: &Groups, column: usize, members: impl Iterator<Item = usize>) -> Result<ArrayRef> {
    let arrays: Vec<&dyn Array> = groups.batches.iter().map(|batch| batch.column(column).as_ref()).collect();
    let places: Vec<_> =
        members.map(|member| groups.members.get(member).copied().unwrap_or_default()).collect();
    Ok(interleave(&arrays, &places)?)
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
