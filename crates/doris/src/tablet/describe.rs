//! What a tablet says of itself: its rowsets, and what is known of its columns.

use arrow_array::{Array, ArrayRef, Int8Array};
use arrow_row::{RowConverter, SortField};
use arrow_select::concat::concat;
use pilaster_core::describe::{ColumnStatistics, Node};
use pilaster_core::{Dataset, Location, Result};

use super::delete_values::is_address;
use super::meta::RowsetMeta;
use super::reader::{Tablet, TabletSegment};
use super::{addresses, delete_predicate};
use crate::calendar::{self, SECONDS_PER_DAY};
use crate::schema::{DELETE_SIGN_COLUMN, SchemaColumn, VERSION_COLUMN};

/// Its metadata, rowset by rowset.
pub(super) fn describe(tablet: &Tablet) -> Result<Node> {
    let meta = &tablet.meta;
    let bytes = tablet.segments.iter().map(TabletSegment::bytes).fold(0, u64::saturating_add);
    let deleted: u64 = tablet.segments.iter().map(|segment| segment.deleted.len()).sum();
    let mut node = Node::new(format!("tablet {}", meta.tablet_id), bytes)
        .fact("table_id", meta.table_id)
        .fact("partition_id", meta.partition_id);
    if let Some(id) = meta.index_id {
        node = node.fact("index_id", id);
    }
    if let Some(hash) = meta.schema_hash {
        node = node.fact("schema_hash", hash);
    }
    node = node
        .fact("state", meta.state)
        .fact("keys_type", format!("{:?}", tablet.schema.keys_type))
        .fact("merge_on_write", meta.schema.merge_on_write)
        .fact("schema_version", meta.schema_version)
        .fact("version", tablet.version)
        .fact("rowsets", meta.rowsets.len())
        .fact("stale_rowsets", meta.stale_rowsets.len())
        .fact("deleted_rows", deleted);
    for (rowsets, kind) in [(&meta.rowsets, "rowset"), (&meta.stale_rowsets, "stale rowset")] {
        for rowset in rowsets {
            node = node.child(rowset_node(tablet, rowset, kind)?);
        }
    }
    Ok(node)
}

fn rowset_node(tablet: &Tablet, rowset: &RowsetMeta, kind: &str) -> Result<Node> {
    let segments: Vec<_> = tablet.segments.iter().filter(|segment| segment.rowset == rowset.id).collect();
    let bytes = segments.iter().map(|segment| segment.bytes()).fold(0, u64::saturating_add);
    let mut node = Node::new(format!("{kind} {}", rowset.id), bytes)
        .fact("versions", format!("{}..={}", rowset.start_version, rowset.end_version))
        .fact("segments", rowset.num_segments)
        .fact("rows", rowset.num_rows)
        .fact("total_disk_size", rowset.bytes)
        .fact("schema_version", rowset.schema_version);
    if let Some(created) = rowset.creation_time.and_then(clock) {
        node = node.fact("created", created);
    }
    if rowset.is_remote {
        node = node.fact("is_remote", true);
    }
    if let Some(message) = &rowset.delete_predicate {
        let text = delete_predicate::text(message).unwrap_or_else(|error| error.to_string());
        node = node.fact("deletes", text);
    }
    for segment in segments {
        node = node.child(segment.reader.describe()?.fact("deleted_rows", segment.deleted.len()));
        for file in &segment.index_files {
            node = node.child(index_node(tablet, file)?);
        }
    }
    Ok(node)
}

fn index_node(tablet: &Tablet, file: &Location) -> Result<Node> {
    match tablet.index_file(file) {
        Ok(index) => index.describe(),
        Err(error) => Ok(Node::new(format!("index file {file}"), 0).fact("damaged", error)),
    }
}

/// A time in UTC.
fn clock(seconds: i64) -> Option<String> {
    let days = i32::try_from(seconds.div_euclid(SECONDS_PER_DAY)).ok()?;
    let (year, month, day) = calendar::civil(days);
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

/// What the segments say of each column that is given, together. Bounds and nulls only where no row is deleted and merging
/// leaves them as they are.
pub(super) fn column_statistics(tablet: &Tablet) -> Result<Vec<ColumnStatistics>> {
    let mut of_segments = Vec::with_capacity(tablet.segments.len());
    for segment in &tablet.segments {
        of_segments.push(segment.reader.column_statistics()?);
    }
    let sign = tablet.schema.columns.iter().position(|column| column.name == DELETE_SIGN_COLUMN);
    let is_whole = tablet.lost.is_empty()
        && tablet
            .segments
            .iter()
            .zip(&of_segments)
            .all(|(segment, known)| is_untouched(segment, known, sign));
    let is_merged = tablet.merges() && tablet.segments.len() > 1;
    let mut all = Vec::with_capacity(tablet.output.len());
    for number in &tablet.output {
        let Some(column) = tablet.schema.columns.get(*number) else { continue };
        let of_column: Vec<_> = of_segments.iter().filter_map(|known| known.get(*number)).collect();
        let mut joined = ColumnStatistics::default();
        for one in &of_column {
            joined.bytes = joined.bytes.saturating_add(one.bytes);
            for (to, from) in [(&mut joined.encodings, &one.encodings), (&mut joined.codecs, &one.codecs)] {
                let new: Vec<_> = from.iter().filter(|name| !to.contains(name)).cloned().collect();
                to.extend(new);
            }
        }
        joined.uncompressed_bytes = of_column.iter().map(|one| one.uncompressed_bytes).sum();
        // Versions are made up when rows are read.
        if is_whole && column.name != VERSION_COLUMN && (!is_merged || column.is_key) {
            joined.min = extreme(column, of_column.iter().map(|one| one.min.as_ref()), false)?;
            joined.max = extreme(column, of_column.iter().map(|one| one.max.as_ref()), true)?;
            let nulls: Option<u64> = of_column.iter().map(|one| one.nulls).sum();
            // Of equal keys one is left, so how many are null is known only if none is.
            joined.nulls = nulls.filter(|nulls| !is_merged || *nulls == 0);
        }
        all.push(joined);
    }
    Ok(all)
}

/// Whether all rows of a segment are rows of the tablet, unless others are merged with them.
fn is_untouched(segment: &TabletSegment, known: &[ColumnStatistics], sign: Option<usize>) -> bool {
    let is_zero = |max: &ArrayRef| {
        let signs = max.as_any().downcast_ref::<Int8Array>();
        signs.is_some_and(|signs| signs.len() == 1 && signs.is_valid(0) && signs.value(0) == 0)
    };
    let has_no_signs =
        sign.is_none_or(|sign| known.get(sign).and_then(|sign| sign.max.as_ref()).is_some_and(is_zero));
    segment.keeps.is_empty() && segment.deleted.is_empty() && has_no_signs
}

/// The smallest or the largest of some values; unknown if one of them is.
fn extreme<'a>(
    column: &SchemaColumn,
    values: impl Iterator<Item = Option<&'a ArrayRef>>,
    is_largest: bool,
) -> Result<Option<ArrayRef>> {
    let Some(values) = values.collect::<Option<Vec<_>>>().filter(|values| !values.is_empty()) else {
        return Ok(None);
    };
    let values: Vec<&dyn Array> = values.into_iter().map(AsRef::as_ref).collect();
    let all = concat(&values)?;
    let sorted = if is_address(column) { addresses::octets(&all)? } else { all.clone() };
    let rows =
        RowConverter::new(vec![SortField::new(sorted.data_type().clone())])?.convert_columns(&[sorted])?;
    let numbers = 0..rows.num_rows();
    let found = match is_largest {
        true => numbers.max_by(|a, b| rows.row(*a).cmp(&rows.row(*b))),
        false => numbers.min_by(|a, b| rows.row(*a).cmp(&rows.row(*b))),
    };
    Ok(found.map(|found| all.slice(found, 1)))
}
