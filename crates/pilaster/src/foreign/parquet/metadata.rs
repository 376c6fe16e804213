//! The footer, checked before anything relies on it.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Schema;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, RowGroupMetaData};
use pilaster_core::{Error, Limits, Result, SourceRef, widen};

use super::ParquetFile;
use super::chunks::SourceChunks;
use crate::foreign::guard::guarded;

/// Length of the footer's length and the magic after it.
const TAIL_BYTES: u64 = 8;
pub(super) const MAGIC: &[u8] = b"PAR1";
const MAGIC_ENCRYPTED: &[u8] = b"PARE";

/// Reads and checks the footer.
pub(super) fn load(source: SourceRef, limits: &Limits) -> Result<ParquetFile> {
    let footer_bytes = footer_length(&source, limits)?;
    let name = source.name();
    let footer_start = source.size().saturating_sub(TAIL_BYTES).saturating_sub(footer_bytes);
    let chunks = SourceChunks::new(SourceRef::clone(&source), [], limits);
    let load = |policy| {
        guarded(|| {
            ArrowReaderMetadata::load(&chunks, ArrowReaderOptions::new().with_page_index_policy(policy))
        })
    };
    let with_index =
        load(PageIndexPolicy::Optional).and_then(|arrow| match page_index_fault(arrow.metadata()) {
            None => Ok(arrow),
            Some(fault) => Err(fault),
        });
    // A damaged page index only makes a file slower, so it must not keep anyone from reading it.
    let (arrow, page_index_problem) = match with_index {
        Ok(arrow) => (arrow, None),
        Err(problem) => {
            let arrow = load(PageIndexPolicy::Skip).map_err(|error| {
                let own = chunks.take_failure();
                own.unwrap_or_else(|| Error::corrupt("a footer that parses", error)).at(
                    name,
                    footer_start,
                    "parquet footer",
                )
            })?;
            (arrow, Some(problem))
        }
    };
    let own = Arc::clone(arrow.schema());
    let arrow = widened(arrow);
    let supplied_schema = (own != *arrow.schema()).then(|| Arc::clone(arrow.schema()));
    let mut groups = Vec::with_capacity(arrow.metadata().num_row_groups());
    let mut next_row = 0u64;
    for group in arrow.metadata().row_groups() {
        let rows = u64::try_from(group.num_rows()).ok().and_then(|rows| next_row.checked_add(rows));
        let end = rows.ok_or_else(|| {
            Error::corrupt("a row count of at least 0", group.num_rows()).at(
                name,
                footer_start,
                "parquet footer",
            )
        })?;
        groups.push(next_row..end);
        next_row = end;
    }
    let limits = limits.clone();
    Ok(ParquetFile { source, arrow, supplied_schema, groups, page_index_problem, footer_bytes, limits })
}

/// The same file, decoded at once to the types in which values leave, as far as the `parquet` crate can: a file may carry an Arrow
/// schema of its writer with others, some of which it cannot decode at all.
fn widened(arrow: ArrowReaderMetadata) -> ArrowReaderMetadata {
    let own = Arc::clone(arrow.schema());
    let wide = widen::schema(&own);
    if Arc::ptr_eq(&own, &wide) {
        return arrow;
    }
    let mut best = arrow;
    for (index, field) in wide.fields().iter().enumerate() {
        let mut fields = best.schema().fields().to_vec();
        match fields.get_mut(index) {
            Some(known) if *known != *field => *known = Arc::clone(field),
            _ => continue,
        }
        let schema = Schema::new_with_metadata(fields, own.metadata().clone());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
        let metadata = Arc::clone(best.metadata());
        if let Ok(better) = guarded(|| ArrowReaderMetadata::try_new(metadata, options)) {
            best = better;
        }
    }
    best
}

/// What is wrong with the page index, if pages do not follow each other through the rows of their group.
fn page_index_fault(metadata: &ParquetMetaData) -> Option<String> {
    let index = metadata.offset_index()?;
    for (group, columns) in metadata.row_groups().iter().zip(index) {
        for (leaf, column) in columns.iter().enumerate() {
            let pages = column.page_locations();
            let firsts = || pages.iter().map(|page| page.first_row_index);
            let ascends = firsts().zip(firsts().skip(1)).all(|(a, b)| a < b);
            let starts_at_zero = pages.first().is_none_or(|page| page.first_row_index == 0);
            let ends_inside = pages.last().is_none_or(|page| page.first_row_index < group.num_rows());
            let has_places = pages.iter().all(|page| page.offset >= 0 && page.compressed_page_size >= 0);
            if !(ascends && starts_at_zero && ends_inside && has_places) {
                return Some(format!("pages of column number {leaf} that do not follow each other"));
            }
        }
    }
    None
}

/// The length of the footer message, within the file and the limits.
fn footer_length(source: &SourceRef, limits: &Limits) -> Result<u64> {
    let (name, size) = (source.name(), source.size());
    let smallest = TAIL_BYTES.saturating_add(MAGIC.len() as u64);
    if size < smallest {
        return Err(Error::corrupt(format!("at least {smallest} bytes"), size).at(
            name,
            size,
            "parquet file",
        ));
    }
    let tail_start = size.saturating_sub(TAIL_BYTES);
    let tail = source.read_at(tail_start..size)?;
    let (length, magic) = tail.split_at_checked(4).unwrap_or_default();
    if magic == MAGIC_ENCRYPTED {
        return Err(Error::unsupported("parquet with an encrypted footer").at(name, tail_start, ""));
    }
    if magic != MAGIC {
        let found = format!("\"{}\"", magic.escape_ascii());
        let offset = tail_start.saturating_add(4);
        return Err(Error::corrupt("\"PAR1\"", found).at(name, offset, "parquet footer magic"));
    }
    let length = u64::from(length.try_into().map_or(0, u32::from_le_bytes));
    let most = size.saturating_sub(smallest);
    if length > most {
        let error = Error::corrupt(format!("at most {most}"), length);
        return Err(error.at(name, tail_start, "parquet footer length"));
    }
    limits.metadata(length).map_err(|error| error.at(name, tail_start, "parquet footer length"))?;
    Ok(length)
}

/// The bytes of a column chunk. (The `parquet` crate's own function panics where an offset is negative.)
pub(super) fn chunk_range(column: &ColumnChunkMetaData) -> Result<Range<u64>> {
    let first = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let range = u64::try_from(first).ok().zip(u64::try_from(column.compressed_size()).ok());
    range.and_then(|(start, length)| Some(start..start.checked_add(length)?)).ok_or_else(|| {
        Error::corrupt(
            format!("a place in the file for column \"{}\"", column.column_path().string()),
            format!("offset {first} and length {}", column.compressed_size()),
        )
    })
}

/// Checks what decoding a row group relies on; gives the bytes of each column chunk.
pub(super) fn check_group(file: &ParquetFile, group: &RowGroupMetaData) -> Result<Vec<Range<u64>>> {
    let footer_start = file.source.size().saturating_sub(TAIL_BYTES).saturating_sub(file.footer_bytes);
    let at_footer = |error: Error| error.at(file.source.name(), footer_start, "parquet footer");
    let expected = file.arrow.parquet_schema().num_columns();
    if group.num_columns() != expected {
        return Err(at_footer(Error::corrupt(format!("{expected} column chunks"), group.num_columns())));
    }
    group
        .columns()
        .iter()
        .map(|column| {
            let range = chunk_range(column).map_err(at_footer)?;
            if range.end > footer_start || column.data_page_offset() < 0 || column.num_values() < 0 {
                let path = column.column_path().string();
                return Err(at_footer(Error::corrupt(
                    format!("column \"{path}\" before the footer at byte {footer_start}"),
                    format!("bytes {}..{}, {} values", range.start, range.end, column.num_values()),
                )));
            }
            Ok(range)
        })
        .collect()
}
