//! Keys of rows: the short key index of sorted rows, the primary key index of merge-on-write tables.

use std::io::Write;

use pilaster_core::{Error, Result};
use pilaster_encoding::varint;

use super::filter::block_filter;
use super::indexed::IndexedColumn;
use super::page::{Footer, Sink};
use super::paged::{bloom_index, write_filters};
use super::values::Values;
use crate::messages::{PrimaryKeyIndexPb, ShortKeyFooterPb};
use crate::schema::{KeysType, SEQUENCE_COLUMN, TabletSchema};
use crate::segment::bloom::hash64;
use crate::segment::cells::Cell;
use crate::segment::key;
use crate::segment::page::PagePointer;
use crate::segment::types::{Compression, Encoding, FieldType};

/// Bytes of a page of primary keys.
const PRIMARY_KEY_PAGE_BYTES: usize = 32 << 10;
/// How often the filter of primary keys may be wrong.
const PRIMARY_KEY_RATE: f64 = 0.01;

/// A column of a key.
#[derive(Debug, Clone)]
struct KeyColumn {
    /// Its number in the schema.
    number: usize,
    cell: Cell,
    /// Bytes of a string that are in the short key.
    short: usize,
}

/// Collects the keys of a segment's rows.
#[derive(Debug)]
pub(super) struct KeyBuilder {
    /// What rows are sorted by.
    sort: Vec<KeyColumn>,
    short_columns: usize,
    rows_per_item: u32,
    short: Option<ShortKeys>,
    primary: Option<PrimaryKeys>,
    /// Whether keys must ascend as bytes and not repeat, because an index holds them all.
    is_unique: bool,
    last: SortKey,
    current: SortKey,
    rows: u64,
    /// Full key of the first row.
    first: Vec<u8>,
}

/// A key, and where its columns end in it.
#[derive(Debug, Default)]
struct SortKey {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

#[derive(Debug, Default)]
struct ShortKeys {
    keys: Vec<u8>,
    offsets: Vec<u8>,
    items: u32,
}

#[derive(Debug)]
struct PrimaryKeys {
    columns: Vec<KeyColumn>,
    sequence: Option<(KeyColumn, usize)>,
    has_row_ids: bool,
    /// Keys with their suffixes, back to back, and where each ends: without and with suffixes.
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

/// What the footer says of keys.
#[derive(Debug, Default)]
pub(super) struct WrittenKeys {
    pub short_key_page: Option<PagePointer>,
    pub primary: Option<PrimaryKeyIndexPb>,
    /// First and last full key.
    pub min_key: Vec<u8>,
    pub max_key: Vec<u8>,
}

impl SortKey {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Compares column by column: a shorter string of one column is not joined with the next column.
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let mut start = (0, 0);
        for (&end, &other_end) in self.ends.iter().zip(&other.ends) {
            let mine = self.bytes.get(start.0..end).unwrap_or_default();
            let theirs = other.bytes.get(start.1..other_end).unwrap_or_default();
            match mine.cmp(theirs) {
                std::cmp::Ordering::Equal => {}
                unequal => return unequal,
            }
            start = (end, other_end);
        }
        std::cmp::Ordering::Equal
    }
}

impl KeyBuilder {
    /// `cell` gives what the cells of a column of the schema are.
    pub fn new(
        schema: &TabletSchema,
        rows_per_item: u32,
        cell: &dyn Fn(usize) -> Result<Cell>,
    ) -> Result<Self> {
        let key_column = |unique_id: i32| -> Result<KeyColumn> {
            let found = schema.columns.iter().enumerate().find(|(_, column)| column.unique_id == unique_id);
            let (number, column) =
                found.ok_or_else(|| Error::invalid(format!("no key column of unique id {unique_id}")))?;
            let cell = cell(number)?;
            let fits = key::append(&cell, &[0; 32], 0, &mut Vec::new()).is_some();
            if !fits {
                return Err(Error::invalid(format!("{} cannot be a key", column.type_name)).at(
                    &format!("column \"{}\"", column.name),
                    0,
                    "",
                ));
            }
            let length = if column.index_length > 0 { column.index_length } else { i32::MAX };
            Ok(KeyColumn { number, cell, short: usize::try_from(length).unwrap_or(usize::MAX) })
        };
        let keys_of = |ids: Vec<i32>| ids.into_iter().map(key_column).collect::<Result<Vec<_>>>();
        let keys: Vec<i32> =
            schema.columns.iter().filter(|column| column.is_key).map(|column| column.unique_id).collect();
        let sort = keys_of(schema.sort_columns().iter().map(|column| column.unique_id).collect())?;
        let is_merge_on_write = schema.keys_type == KeysType::Unique && schema.merge_on_write;
        let has_cluster_keys = is_merge_on_write && !schema.cluster_key_uids.is_empty();
        let primary = if is_merge_on_write {
            let sequence = schema.columns.iter().find(|column| column.name == SEQUENCE_COLUMN);
            let sequence = match sequence {
                None => None,
                Some(column) => {
                    let key = key_column(column.unique_id)?;
                    let width = key.cell.width().ok_or_else(|| {
                        Error::invalid(format!("a sequence column of {}", column.type_name))
                    })?;
                    Some((key, width))
                }
            };
            Some(PrimaryKeys {
                columns: keys_of(keys)?,
                sequence,
                has_row_ids: has_cluster_keys,
                bytes: Vec::new(),
                ends: Vec::new(),
            })
        } else {
            None
        };
        if schema.num_short_key_columns > sort.len() {
            return Err(Error::invalid(format!(
                "{} columns in the short key of a table sorted by {}",
                schema.num_short_key_columns,
                sort.len()
            )));
        }
        // What follows a string without an end, or part of one, is in no order.
        let short = sort.iter().take(schema.num_short_key_columns);
        for column in short.rev().skip(1) {
            let declared = schema.columns.get(column.number);
            let is_whole = match column.cell {
                Cell::Char => declared.is_some_and(|declared| {
                    usize::try_from(declared.length).is_ok_and(|length| column.short >= length)
                }),
                _ => column.cell.width().is_some(),
            };
            if !is_whole {
                let name = declared.map(|declared| declared.name.as_str()).unwrap_or_default();
                return Err(Error::invalid(format!(
                    "\"{name}\" can only be the last column of the short key: its keys have no end"
                )));
            }
        }
        Ok(Self {
            sort,
            short_columns: schema.num_short_key_columns,
            rows_per_item,
            short: (primary.is_none() || has_cluster_keys).then(ShortKeys::default),
            primary,
            is_unique: is_merge_on_write && !has_cluster_keys,
            last: SortKey::default(),
            current: SortKey::default(),
            rows: 0,
            first: Vec::new(),
        })
    }

    /// Adds rows; `values` are the cells of the columns of the schema, as far as they are needed.
    ///
    /// # Errors
    /// If rows are not in the order of their keys, or keys repeat that must not.
    pub fn append(&mut self, values: &[Option<Values>], rows: usize) -> Result<()> {
        for row in 0..rows {
            self.current.clear();
            for column in &self.sort {
                append_part(column, values, row, usize::MAX, &mut self.current.bytes)?;
                self.current.ends.push(self.current.bytes.len());
            }
            if self.rows > 0 && !self.sort.is_empty() {
                let order = if self.is_unique {
                    self.last.bytes.cmp(&self.current.bytes)
                } else {
                    self.last.compare(&self.current)
                };
                if order.is_gt() || (order.is_eq() && self.is_unique) {
                    let fault = if order.is_gt() { "is below the row before" } else { "repeats a key" };
                    return Err(Error::invalid(format!(
                        "rows must be sorted by key: row {} {fault}",
                        self.rows
                    )));
                }
            }
            if let Some(short) = &mut self.short
                && self.rows.is_multiple_of(u64::from(self.rows_per_item))
            {
                let offset =
                    u32::try_from(short.keys.len()).map_err(|_| Error::invalid("4 GiB of short keys"))?;
                varint::write_u32(&mut short.offsets, offset);
                for column in self.sort.iter().take(self.short_columns) {
                    append_part(column, values, row, column.short, &mut short.keys)?;
                }
                short.items = short.items.saturating_add(1);
            }
            if let Some(primary) = &mut self.primary {
                primary.append(values, row, self.rows)?;
            }
            if self.rows == 0 {
                self.first.clone_from(&self.current.bytes);
            }
            std::mem::swap(&mut self.last, &mut self.current);
            self.rows = self.rows.saturating_add(1);
        }
        Ok(())
    }

    /// Writes the indexes; gives what the footer says of them.
    pub fn finish<W: Write>(self, segment_id: u32, sink: &mut Sink<W>) -> Result<WrittenKeys> {
        let mut written = WrittenKeys::default();
        if let Some(short) = self.short {
            let footer = ShortKeyFooterPb {
                num_items: Some(short.items),
                key_bytes: u32::try_from(short.keys.len()).ok(),
                offset_bytes: u32::try_from(short.offsets.len()).ok(),
                segment_id: Some(segment_id),
                num_rows_per_block: Some(self.rows_per_item),
                num_segment_rows: u32::try_from(self.rows).ok(),
            };
            let body = [short.keys, short.offsets].concat();
            written.short_key_page =
                Some(sink.write_page(&body, Footer::ShortKey(footer), Compression::None)?);
        }
        (written.min_key, written.max_key) = (self.first, self.last.bytes);
        if let Some(primary) = self.primary {
            let index = primary.finish(sink)?;
            written.min_key = index.min_key.clone().unwrap_or_default();
            written.max_key = index.max_key.clone().unwrap_or_default();
            written.primary = Some(index);
        }
        Ok(written)
    }
}

/// Appends a column's part of a key.
fn append_part(
    column: &KeyColumn,
    values: &[Option<Values>],
    row: usize,
    most: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let values = values.get(column.number).and_then(Option::as_ref);
    let values = values.ok_or_else(|| Error::internal("a key column without values"))?;
    if values.is_null(row) {
        key::append_null(out);
        return Ok(());
    }
    key::append(&column.cell, values.cell(row), most, out).ok_or_else(|| Error::internal("no key column"))
}

impl PrimaryKeys {
    fn append(&mut self, values: &[Option<Values>], row: usize, number: u64) -> Result<()> {
        for column in &self.columns {
            append_part(column, values, row, usize::MAX, &mut self.bytes)?;
        }
        let end = self.bytes.len();
        if let Some((column, width)) = &self.sequence {
            let before = self.bytes.len();
            append_part(column, values, row, usize::MAX, &mut self.bytes)?;
            // A null has as many bytes as a value.
            self.bytes.resize(before.saturating_add(*width).saturating_add(1), 0);
        }
        if self.has_row_ids {
            self.bytes.push(key::VALUE);
            let id = u32::try_from(number).map_err(|_| Error::invalid("2^32 rows in a segment"))?;
            self.bytes.extend(id.to_be_bytes());
        }
        self.ends.push((end, self.bytes.len()));
        Ok(())
    }

    /// Each key with its suffixes, and how much of it is the key.
    fn keys(&self) -> Vec<(&[u8], usize)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        starts
            .zip(&self.ends)
            .map(|(start, (key_end, end))| {
                (self.bytes.get(start..*end).unwrap_or_default(), key_end.saturating_sub(start))
            })
            .collect()
    }

    fn finish<W: Write>(self, sink: &mut Sink<W>) -> Result<PrimaryKeyIndexPb> {
        let mut keys = self.keys();
        if self.has_row_ids {
            keys.sort_unstable();
        }
        // Suffixes follow keys without a mark between them, so both must ascend.
        let mut bare: Vec<&[u8]> =
            keys.iter().map(|(key, length)| key.get(..*length).unwrap_or_default()).collect();
        if self.has_row_ids {
            bare.sort_unstable();
        }
        let ascend = |pair: &[&[u8]]| matches!(pair, [before, after] if before < after);
        if !bare.windows(2).all(ascend) || !keys.windows(2).all(|pair| matches!(pair, [a, b] if a.0 < b.0)) {
            return Err(Error::invalid(
                "primary keys must ascend and not repeat: their encoded bytes do not",
            ));
        }
        let (min_key, max_key) = (bare.first().map(|key| key.to_vec()), bare.last().map(|key| key.to_vec()));
        let mut hashes: Vec<u64> = bare.iter().map(|key| hash64(key)).collect();
        let mut column = IndexedColumn::new(FieldType::Varchar, Encoding::Prefix, Compression::Zstd)
            .with_value_index()
            .with_page_bytes(PRIMARY_KEY_PAGE_BYTES);
        for (key, _) in &keys {
            column.push(key, sink)?;
        }
        let index = column.finish(sink)?;
        let filter = block_filter(&mut hashes, PRIMARY_KEY_RATE, false);
        let bloom = write_filters(&[filter], 0, 0, sink)?;
        Ok(PrimaryKeyIndexPb {
            primary_key_index: Some(index),
            bloom_filter_index: Some(bloom_index(bloom)),
            min_key,
            max_key,
        })
    }
}
