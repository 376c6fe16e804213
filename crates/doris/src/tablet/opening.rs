//! Opening a tablet: its rowsets at a version, their segments, and the columns all of them give.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use arrow_schema::{Field, Schema, SchemaRef};
use pilaster_core::error::AtPosition;
use pilaster_core::storage::Entry;
use pilaster_core::{Absence, Dataset, Error, ErrorKind, Location, Result};

use super::delete_predicate::{self, Columns, Keeps};
use super::digest::StoredDigests;
use super::layout::{HEADER_PART, TabletFolder};
use super::merge::Rule;
use super::meta::{RowsetMeta, TabletMeta};
use super::options::TabletOptions;
use super::reader::{LostSegment, Tablet, TabletSegment};
use crate::schema::{KeysType, SchemaColumn, TabletSchema};
use crate::segment::{FieldType, SegmentReader, SegmentReaderOptions, column_field, schema_type};

/// The tablet of a folder, as its metadata describes it.
pub(super) fn open(folder: &TabletFolder, mut meta: TabletMeta, options: &TabletOptions) -> Result<Tablet> {
    let name = folder.location.to_string();
    if let Some(newer) = &options.schema {
        meta.schema = TabletSchema { merge_on_write: meta.schema.merge_on_write, ..newer.as_ref().clone() };
    }
    if meta.schema.keys_type != KeysType::Duplicate && !meta.schema.columns.iter().any(|column| column.is_key)
    {
        let expected = format!("a key column in a table of model {:?}", meta.schema.keys_type);
        return Err(Error::corrupt(expected, "none").at(&name, 0, HEADER_PART));
    }
    let (version, rowsets, mut absences) = chosen_rowsets(folder, &meta, options)?;
    let mut columns = Columns { schema: &meta.schema, rowsets: &rowsets, dropped: Vec::new() };
    let mut deletes = Vec::new();
    for rowset in &rowsets {
        if let Some(message) = &rowset.delete_predicate {
            let keeps = delete_predicate::keeps(rowset, message, &mut columns).at(&name, 0, HEADER_PART)?;
            deletes.push((rowset.start_version, keeps));
        }
    }
    let mut schema = meta.schema.clone();
    let given = schema.columns.len();
    schema.columns.extend(columns.dropped);
    let paths = path_columns(&schema, options).at(&name, 0, "")?;
    let open = |options: &TabletOptions| {
        open_segments(folder, &meta, &rowsets, &schema, &deletes, (version, options))
    };
    let mut opened = open(options)?;
    let path_places = schema.columns.len()..schema.columns.len().saturating_add(paths.len());
    let disputed = options.variant_paths.iter().zip(path_places.clone());
    let disputed: Vec<_> = disputed.filter(|(_, place)| !is_agreed(&opened.segments, *place)).collect();
    if !disputed.is_empty() {
        let agreed = disputed
            .into_iter()
            .fold(options.clone(), |options, ((column, path), _)| options.with_path_as_json(column, path));
        opened = open(&agreed)?;
    }
    let Opened { segments, lost, absent } = opened;
    absences.extend(absent);
    schema.columns.extend(paths);
    let fields = unified_fields(&schema, &segments).at(&name, 0, HEADER_PART)?;
    let is_given =
        |at: &usize| options.hidden || schema.columns.get(*at).is_some_and(|column| column.visible);
    let output: Vec<usize> = (0..given).filter(is_given).chain(path_places).collect();
    let arrow = Arc::new(Schema::new(fields.clone()).project(&output)?);
    Ok(Tablet {
        name,
        meta,
        version,
        schema,
        fields,
        output,
        arrow,
        segments,
        lost,
        absences,
        digests: StoredDigests::of(folder, &rowsets),
        limits: options.limits.clone(),
        units: OnceLock::new(),
        pieces: OnceLock::new(),
    })
}

/// The columns of paths that are asked for, each like the one it is taken out of.
fn path_columns(schema: &TabletSchema, options: &TabletOptions) -> Result<Vec<SchemaColumn>> {
    let is_variant = |column: &&SchemaColumn| column.type_name.eq_ignore_ascii_case("VARIANT");
    let paths = options.variant_paths.iter().map(|(name, path)| {
        let mut variants = schema.columns.iter().filter(is_variant);
        let Some(of) = variants.find(|column| column.name == *name) else {
            let known: Vec<_> =
                schema.columns.iter().filter(is_variant).map(|column| column.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
            return Err(Error::invalid(format!(
                "there is no VARIANT column \"{name}\" to take ['{path}'] out of; there are: {known}"
            )));
        };
        Ok(SchemaColumn { name: format!("{name}['{path}']"), is_nullable: true, ..of.clone() })
    });
    paths.collect()
}

/// Whether all segments give a path in the same way.
fn is_agreed(segments: &[TabletSegment], place: usize) -> bool {
    let way = |segment: &TabletSegment| {
        let data_type = segment.reader.schema().fields().get(place).map(|field| field.data_type().clone());
        (segment.reader.is_typed_path(place), data_type)
    };
    let mut ways = segments.iter().map(way);
    let first = ways.next();
    ways.all(|way| Some(way) == first)
}

/// The segments of a tablet.
#[derive(Default)]
struct Opened {
    segments: Vec<TabletSegment>,
    lost: Vec<LostSegment>,
    /// Those that are not there.
    absent: Vec<Absence>,
}

fn open_segments(
    folder: &TabletFolder,
    meta: &TabletMeta,
    rowsets: &[RowsetMeta],
    schema: &TabletSchema,
    deletes: &[(i64, Keeps)],
    (version, options): (i64, &TabletOptions),
) -> Result<Opened> {
    let mut reader_options = SegmentReaderOptions::default()
        .with_schema(Some(Arc::new(schema.clone())))
        .with_hidden(true)
        .with_json_paths(options.json_paths.clone())
        .with_verify_checksums(options.verify_checksums)
        .with_recovery(options.recovers)
        .with_lost_cells(options.lost_cells)
        .with_unfilled(deciding_columns(schema, deletes))
        .with_limits(options.limits.clone());
    for (column, path) in &options.variant_paths {
        reader_options = reader_options.with_variant_path(column, path);
    }
    let mut opened = Opened::default();
    let Opened { segments, lost, absent } = &mut opened;
    let mut first_row = 0u64;
    for rowset in rowsets {
        let reader_options = match &rowset.schema {
            Some(written) => reader_options.clone().with_written_schema(Some(Arc::new(written.clone()))),
            None => reader_options.clone().with_written_schema(Some(Arc::new(meta.schema.clone()))),
        };
        let keeps = deletes.iter().filter(|(at, _)| rowset.end_version < *at).map(|(_, keeps)| keeps.clone());
        let keeps: Vec<_> = keeps.collect();
        for number in 0..rowset.num_segments {
            let file = format!("{}_{number}.dat", rowset.id);
            let said = rowset.rows_of_segment(number);
            let Some(place) = folder.files.get(&file).map(|entry| folder.place_of(entry)) else {
                absent.push(absence(folder, meta, rowset, &file, said));
                first_row = first_row.saturating_add(said.unwrap_or(0));
                continue;
            };
            let reader = match open_segment(&place, &reader_options) {
                Ok(reader) => reader,
                Err(error) if options.recovers && !cannot_look(&error) => {
                    lost.push(LostSegment {
                        segment: place.to_string(),
                        rows: said.map(|rows| 0..rows),
                        first_row,
                        error,
                    });
                    first_row = first_row.saturating_add(said.unwrap_or(0));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let rows = reader.metadata().num_rows;
            if let Some(error) = miscounted(&reader, said) {
                if !options.recovers {
                    return Err(error);
                }
                lost.push(LostSegment {
                    segment: place.to_string(),
                    rows: said.map(|said| rows..said.max(rows)),
                    first_row,
                    error,
                });
            }
            let index_files = index_files(folder, &format!("{}_{number}", rowset.id));
            let index_bytes = index_files.iter().map(|file| file.size()).fold(0, u64::saturating_add);
            let deleted = meta.deleted.rows(&rowset.id, number, version);
            if let Some(row) = deleted.max().filter(|row| u64::from(*row) >= rows) {
                return Err(Error::corrupt(format!("deleted rows below {rows}"), row).at(
                    reader.name(),
                    0,
                    "delete bitmap",
                ));
            }
            segments.push(TabletSegment {
                reader,
                rowset: rowset.id.clone(),
                version: rowset.end_version,
                keeps: keeps.clone(),
                deleted,
                first_row,
                index_files: index_files.into_iter().map(|file| folder.place_of(file)).collect(),
                index_bytes,
            });
            first_row = first_row.saturating_add(rows.max(said.unwrap_or(0)));
        }
    }
    Ok(opened)
}

fn open_segment(file: &Location, options: &SegmentReaderOptions) -> Result<SegmentReader> {
    SegmentReader::open_with_options(file.open()?, options)
}

/// A segment that has fewer or more rows than the metadata of the tablet says.
fn miscounted(reader: &SegmentReader, said: Option<u64>) -> Option<Error> {
    let rows = reader.metadata().num_rows;
    let said = said.filter(|said| *said != rows)?;
    Some(match reader.unknown_end() {
        Some(error) => error.clone(),
        None => Error::corrupt(format!("{said} rows, as the metadata of the tablet says"), rows).at(
            reader.name(),
            0,
            "segment",
        ),
    })
}

/// Whether the system refused to give bytes that may be sound: that says nothing of what is in them. A disk that fails to read is
/// damage.
fn cannot_look(error: &Error) -> bool {
    const EIO: i32 = 5;
    matches!(error.kind(), ErrorKind::Io(error) if error.raw_os_error() != Some(EIO))
}

/// Columns that decide which rows there are, and those whose values are computed from several rows: a null that stands for a lost
/// cell would be an answer.
fn deciding_columns(schema: &TabletSchema, deletes: &[(i64, Keeps)]) -> HashSet<String> {
    let compared = deletes.iter().flat_map(|(_, keeps)| keeps.columns());
    let sequences = schema.sequence_groups.iter().map(|group| group.sequence_column);
    let sequences: HashSet<i32> = sequences.collect();
    let decides = |column: &&SchemaColumn| {
        column.is_key
            || !column.visible
            || sequences.contains(&column.unique_id)
            || (schema.keys_type == KeysType::Aggregate
                && !matches!(Rule::of(column, schema.keys_type), Rule::Winner))
    };
    let columns = schema.columns.iter().filter(decides).map(|column| column.name.as_str());
    compared.chain(columns).map(str::to_string).collect()
}

/// `<segment>.idx`, or `<segment>_<index>.idx` for each index.
fn index_files<'a>(folder: &'a TabletFolder, segment: &str) -> Vec<&'a Entry> {
    let belongs = |name: &str| {
        let rest = name.strip_prefix(segment).and_then(|rest| rest.strip_suffix(".idx"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let files = folder.files.iter().filter(|(name, _)| belongs(name)).map(|(_, file)| file);
    let mut files: Vec<_> = files.collect();
    files.sort_by(|a, b| a.path().cmp(b.path()));
    files
}

/// A segment that the metadata names and that is not in the folder.
fn absence(
    folder: &TabletFolder,
    meta: &TabletMeta,
    rowset: &RowsetMeta,
    file: &str,
    rows: Option<u64>,
) -> Absence {
    let (start, end) = (rowset.start_version, rowset.end_version);
    let what = if rowset.is_remote {
        format!("segment {file} of tablet {} is in object storage, and not here", meta.tablet_id)
    } else {
        format!("segment {file} of versions {start}..={end} of tablet {} is not here", meta.tablet_id)
    };
    Absence { path: folder.location.to_string().into(), what, rows }
}

/// The rowsets of a version; of the newest one those that are left if some versions are in no rowset, and which these are.
fn chosen_rowsets(
    folder: &TabletFolder,
    meta: &TabletMeta,
    options: &TabletOptions,
) -> Result<(i64, Vec<RowsetMeta>, Vec<Absence>)> {
    let name = folder.location.to_string();
    if let Some(version) = options.as_of {
        let rowsets = meta.rowsets_at(version).at(&name, 0, "")?;
        return Ok((version, rowsets.into_iter().cloned().collect(), Vec::new()));
    }
    let version = meta.newest_version().at(&name, 0, HEADER_PART)?;
    if let Ok(rowsets) = meta.rowsets_at(version) {
        return Ok((version, rowsets.into_iter().cloned().collect(), Vec::new()));
    }
    let (rowsets, gaps) = meta.rowsets_with_gaps();
    let absence = |(first, last): (i64, i64)| Absence {
        path: name.as_str().into(),
        what: format!("no rowset of versions {first}..={last} of tablet {} is here", meta.tablet_id),
        rows: None,
    };
    Ok((version, rowsets.into_iter().cloned().collect(), gaps.into_iter().map(absence).collect()))
}

/// One field for each column, of the type and nullability that all segments can give.
fn unified_fields(schema: &TabletSchema, segments: &[TabletSegment]) -> Result<Vec<Field>> {
    let given: Vec<SchemaRef> = segments.iter().map(|segment| segment.reader.schema()).collect();
    let mut fields = Vec::with_capacity(schema.columns.len());
    for (number, column) in schema.columns.iter().enumerate() {
        let in_segments: Vec<_> = given.iter().map(|schema| schema.field(number)).collect();
        let data_type = match in_segments.first() {
            Some(field) => field.data_type().clone(),
            None => schema_type(column)?,
        };
        if let Some(other) = in_segments.iter().find(|field| field.data_type() != &data_type) {
            return Err(Error::corrupt(
                format!("column \"{}\" of type {data_type}", column.name),
                other.data_type(),
            ));
        }
        let is_nullable = column.is_nullable || in_segments.iter().any(|field| field.is_nullable());
        let field_type = FieldType::from_schema_name(&column.type_name);
        fields.push(column_field(&column.name, data_type, is_nullable, field_type));
    }
    Ok(fields)
}
