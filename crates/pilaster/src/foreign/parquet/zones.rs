//! What row groups say of their columns: for pruning and for `stats`.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_schema::{DataType, Schema};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::{SortOrder, Type};
use parquet::file::metadata::RowGroupMetaData;
use pilaster_core::Result;
use pilaster_core::describe::ColumnStatistics;
use pilaster_core::predicate::{BoundPredicate, ZoneStatistics};

use super::ParquetFile;
use super::describe::codec_name;
use crate::foreign::guard::guarded;

/// The row groups of a file as zones of the columns `schema` (a projection of the file's).
struct Zones<'a> {
    file: &'a ParquetFile,
    schema: &'a Schema,
}

impl<'a> Zones<'a> {
    fn groups(&self) -> &'a [RowGroupMetaData] {
        self.file.metadata().row_groups()
    }

    fn converter(&self, column: usize) -> Option<StatisticsConverter<'a>> {
        let name = self.schema.fields().get(column)?.name();
        // Absent null counts mean "not known", not "none".
        let parquet_schema = self.file.arrow.parquet_schema();
        let converter = StatisticsConverter::try_new(name, self.file.arrow.schema(), parquet_schema).ok()?;
        Some(converter.with_missing_null_counts_as_zero(false))
    }
}

impl<'a> Zones<'a> {
    /// A converter of minima and maxima, if they follow the order in which values are compared here. Old writers ordered
    /// text and unsigned numbers as signed bytes, and the 96-bit timestamps have no order at all.
    fn ordered_converter(&self, column: usize) -> Option<StatisticsConverter<'a>> {
        let converter = self.converter(column)?;
        let leaf = converter.parquet_column_index()?;
        let descriptor = self.file.arrow.parquet_schema().column(leaf);
        let (physical, order) = (descriptor.physical_type(), descriptor.sort_order());
        let is_ordered = physical != Type::INT96 && order != SortOrder::UNDEFINED;
        let is_signed_number = order == SortOrder::SIGNED
            && matches!(physical, Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE);
        let mut chunks = self.groups().iter().filter_map(|group| group.columns().get(leaf)?.statistics());
        let is_trusted = is_signed_number || chunks.all(|statistics| !statistics.is_min_max_deprecated());
        (is_ordered && is_trusted).then_some(converter)
    }

    /// Whether every row group says that its smallest and largest value stand there whole. (Long texts are cut, which is
    /// good enough to prune.) Numbers cannot be cut.
    fn is_exact(&self, column: usize, data_type: &DataType) -> bool {
        if data_type.is_primitive() || *data_type == DataType::Boolean {
            return true;
        }
        let Some(leaf) = self.converter(column).and_then(|converter| converter.parquet_column_index()) else {
            return false;
        };
        let mut chunks = self.groups().iter().map(|group| group.columns().get(leaf)?.statistics());
        chunks.all(|statistics| statistics.is_some_and(|s| s.min_is_exact() && s.max_is_exact()))
    }
}

impl ZoneStatistics for Zones<'_> {
    fn zones(&self) -> usize {
        self.groups().len()
    }

    fn min(&self, column: usize) -> Option<ArrayRef> {
        let converter = self.ordered_converter(column)?;
        guarded(|| converter.row_group_mins(self.groups())).ok()
    }

    fn max(&self, column: usize) -> Option<ArrayRef> {
        let converter = self.ordered_converter(column)?;
        guarded(|| converter.row_group_maxes(self.groups())).ok()
    }

    fn null_counts(&self, column: usize) -> Option<UInt64Array> {
        let converter = self.converter(column)?;
        guarded(|| converter.row_group_null_counts(self.groups())).ok()
    }

    fn row_counts(&self) -> Option<UInt64Array> {
        Some(
            self.file
                .groups
                .iter()
                .map(|rows| rows.end.saturating_sub(rows.start))
                .collect::<Vec<_>>()
                .into(),
        )
    }
}

/// For each row group whether it can hold a match; `schema` is what the predicate was bound to.
pub(super) fn may_match(file: &ParquetFile, schema: &Schema, predicate: &BoundPredicate) -> Vec<bool> {
    let zones = Zones { file, schema };
    let may = predicate.may_match(&zones);
    // Every row group must have an answer, or a row group might be left out for want of one.
    if may.len() == zones.zones() { may.iter().collect() } else { vec![true; zones.zones()] }
}

/// Minimum, maximum, nulls, encodings and sizes of each column.
pub(super) fn column_statistics(file: &ParquetFile) -> Result<Vec<ColumnStatistics>> {
    let schema = file.arrow.schema();
    let zones = Zones { file, schema };
    let parquet_schema = file.arrow.parquet_schema();
    let mut all = Vec::with_capacity(schema.fields().len());
    for (index, field) in schema.fields().iter().enumerate() {
        let mut statistics = ColumnStatistics::default();
        let leaves = (0..parquet_schema.num_columns())
            .filter(|leaf| parquet_schema.get_column_root_idx(*leaf) == index);
        for leaf in leaves {
            for column in zones.groups().iter().filter_map(|group| group.columns().get(leaf)) {
                let bytes = u64::try_from(column.compressed_size()).unwrap_or(0);
                statistics.bytes = statistics.bytes.saturating_add(bytes);
                let plain = u64::try_from(column.uncompressed_size()).unwrap_or(0);
                statistics.uncompressed_bytes =
                    Some(statistics.uncompressed_bytes.unwrap_or(0).saturating_add(plain));
                for encoding in column.encodings() {
                    add_once(&mut statistics.encodings, encoding.to_string());
                }
                add_once(&mut statistics.codecs, codec_name(column.compression()));
            }
        }
        if !field.data_type().is_nested() {
            if zones.is_exact(index, field.data_type()) {
                statistics.min = zones.min(index).and_then(|mins| extreme(&mins, Extreme::Smallest));
                statistics.max = zones.max(index).and_then(|maxes| extreme(&maxes, Extreme::Largest));
            }
            statistics.nulls = zones.null_counts(index).and_then(|nulls| {
                (nulls.null_count() == 0)
                    .then(|| nulls.values().iter().fold(0u64, |a, b| a.saturating_add(*b)))
            });
        }
        all.push(statistics);
    }
    Ok(all)
}

fn add_once(texts: &mut Vec<String>, text: String) {
    if !texts.contains(&text) {
        texts.push(text);
    }
}

#[derive(Clone, Copy)]
enum Extreme {
    Smallest,
    Largest,
}

/// The smallest or largest of the row groups' values; `None` if one of them is not known or they have no order.
fn extreme(values: &ArrayRef, which: Extreme) -> Option<ArrayRef> {
    if values.is_empty() || values.null_count() > 0 || matches!(values.data_type(), DataType::Null) {
        return None;
    }
    let options =
        arrow_schema::SortOptions { descending: matches!(which, Extreme::Largest), nulls_first: false };
    let order = arrow_ord::sort::sort_to_indices(values, Some(options), Some(1)).ok()?;
    arrow_select::take::take(values, &order, None).ok().map(|array| Arc::clone(&array))
}
