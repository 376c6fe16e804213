//! Parquet, by the `parquet` crate: what the others are compared with.
//!
//! Writer defaults: dictionaries on (and once more without), row groups of a million rows, statistics by page. Reading gives the Arrow types
//! that were written, for text views, which the crate reads faster than copied strings.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, BooleanArray, Int64Array, StringViewArray};
use arrow_ord::cmp;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowFilter, RowSelection,
    RowSelector,
};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, GzipLevel};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::WriterProperties;

use crate::Result;
use crate::format::{Batches, BenchFormat, Codec};
use crate::table::{BATCH_ROWS, Table};

pub struct Parquet {
    /// Whether values go through a dictionary, as they do by default.
    pub with_dictionary: bool,
}

type Builder = ParquetRecordBatchReaderBuilder<File>;

fn open(path: &Path, page_index: PageIndexPolicy) -> Result<Builder> {
    let options = ArrowReaderOptions::new().with_page_index_policy(page_index);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(File::open(path)?, options)?;
    Ok(builder.with_batch_size(BATCH_ROWS))
}

impl BenchFormat for Parquet {
    fn name(&self) -> &'static str {
        if self.with_dictionary { super::BASELINE } else { super::PLAIN_BASELINE }
    }

    fn write(&self, table: &Table, path: &Path, codec: Codec) -> Result<()> {
        let compression = match codec {
            Codec::None => Compression::UNCOMPRESSED,
            Codec::Lz4 => Compression::LZ4_RAW,
            Codec::Snappy => Compression::SNAPPY,
            Codec::Zlib => Compression::GZIP(GzipLevel::default()),
        };
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_dictionary_enabled(self.with_dictionary)
            .build();
        let mut writer =
            ArrowWriter::try_new(File::create_new(path)?, Arc::clone(&table.schema), Some(properties))?;
        for batch in &table.batches {
            writer.write(batch)?;
        }
        writer.into_inner()?.sync_all()?;
        Ok(())
    }

    fn full_scan(&self, path: &Path) -> Result<Batches> {
        Ok(Box::new(open(path, PageIndexPolicy::Skip)?.build()?))
    }

    fn one_column(&self, path: &Path, column: &str) -> Result<Batches> {
        let builder = open(path, PageIndexPolicy::Skip)?;
        let mask = ProjectionMask::columns(builder.parquet_schema(), [column]);
        Ok(Box::new(builder.with_projection(mask).build()?))
    }

    /// Row groups by their statistics, pages by the page index, rows by a filter on the key.
    fn key_range(&self, path: &Path, key: &str, range: Range<i64>) -> Result<Batches> {
        let builder = open(path, PageIndexPolicy::Required)?;
        let (groups, selection) = prune(&builder, key, &range)?;
        let mask = ProjectionMask::columns(builder.parquet_schema(), [key]);
        let (first, end) = (Int64Array::new_scalar(range.start), Int64Array::new_scalar(range.end));
        let filter = ArrowPredicateFn::new(mask, move |batch| {
            let keys = batch.column(0);
            let from = cmp::gt_eq(keys, &first)?;
            let below = cmp::lt(keys, &end)?;
            Ok(BooleanArray::new(from.values() & below.values(), None))
        });
        Ok(Box::new(
            builder
                .with_row_groups(groups)
                .with_row_selection(selection)
                .with_row_filter(RowFilter::new(vec![Box::new(filter)]))
                .build()?,
        ))
    }

    fn equal_text(&self, path: &Path, columns: [&str; 2], text: &str) -> Result<Batches> {
        let builder = open(path, PageIndexPolicy::Skip)?;
        let [_, compared] = columns;
        let mask = ProjectionMask::columns(builder.parquet_schema(), [compared]);
        let wanted = StringViewArray::new_scalar(text);
        let filter = ArrowPredicateFn::new(mask, move |batch| cmp::eq(batch.column(0), &wanted));
        let projection = ProjectionMask::columns(builder.parquet_schema(), columns);
        let filter = RowFilter::new(vec![Box::new(filter)]);
        Ok(Box::new(builder.with_projection(projection).with_row_filter(filter).build()?))
    }
}

/// The row groups that may hold a key in `range`, and the rows of their pages that may.
fn prune(builder: &Builder, key: &str, range: &Range<i64>) -> Result<(Vec<usize>, RowSelection)> {
    let metadata = builder.metadata();
    let (columns, offsets) =
        metadata.column_index().zip(metadata.offset_index()).ok_or("a file without a page index")?;
    let converter = StatisticsConverter::try_new(key, builder.schema(), builder.parquet_schema())?;
    let all: Vec<usize> = (0..metadata.num_row_groups()).collect();
    let overlaps = |mins: &dyn Array, maxes: &dyn Array| -> Vec<bool> {
        let bounds =
            mins.as_primitive::<Int64Type>().values().iter().zip(maxes.as_primitive::<Int64Type>().values());
        bounds.map(|(&min, &max)| min < range.end && max >= range.start).collect()
    };
    let hits = overlaps(
        &converter.row_group_mins(metadata.row_groups())?,
        &converter.row_group_maxes(metadata.row_groups())?,
    );
    let groups: Vec<usize> =
        all.into_iter().zip(hits).filter_map(|(group, hit)| hit.then_some(group)).collect();
    let pages = overlaps(
        &converter.data_page_mins(columns, offsets, &groups)?,
        &converter.data_page_maxes(columns, offsets, &groups)?,
    );
    let counts = converter
        .data_page_row_counts(offsets, metadata.row_groups(), &groups)?
        .ok_or("a page index without row counts")?;
    let selectors = pages
        .into_iter()
        .zip(counts.values())
        .map(|(hit, &rows)| {
            let rows = usize::try_from(rows)?;
            Ok(if hit { RowSelector::select(rows) } else { RowSelector::skip(rows) })
        })
        .collect::<Result<Vec<_>>>()?;
    Ok((groups, selectors.into()))
}
