//! Opening a tablet: its rowsets at a version, their segments, and the columns all of them give.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow_schema::{Field, Schema, SchemaRef};
use pilaster_core::error::AtPosition;
use pilaster_core::source::FileSource;
use pilaster_core::{Dataset, Error, Result};

use super::delete_predicate::{self, Columns, Keeps};
use super::digest::StoredDigests;
use super::layout::{HEADER_PART, TabletFolder};
use super::meta::{RowsetMeta, TabletMeta};
use super::options::TabletOptions;
use super::reader::{LostSegment, Tablet, TabletSegment};
use crate::schema::{KeysType, SchemaColumn, TabletSchema};
use crate::segment::{SegmentReader, SegmentReaderOptions, schema_type};

/// The tablet of a folder, as its metadata describes it.
pub(super) fn open(folder: &TabletFolder, mut meta: TabletMeta, options: &TabletOptions) -> Result<Tablet> {
    let name = folder.path.display().to_string();
    if let Some(newer) = &options.schema {
        meta.schema = TabletSchema { merge_on_write: meta.schema.merge_on_write, ..newer.as_ref().clone() };
    }
    if meta.schema.keys_type != KeysType::Duplicate && !meta.schema.columns.iter().any(|column| column.is_key)
    {
        let expected = format!("a key column in a table of model {:?}", meta.schema.keys_type);
        return Err(Error::corrupt(expected, "none").at(&name, 0, HEADER_PART));
    }
    let version = match options.as_of {
        Some(version) => version,
        None => meta.newest_version().at(&name, 0, HEADER_PART)?,
    };
    let rowsets: Vec<RowsetMeta> = meta.rowsets_at(version).at(&name, 0, "")?.into_iter().cloned().collect();
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
    let (mut segments, mut lost) = open(options)?;
    let path_places = schema.columns.len()..schema.columns.len().saturating_add(paths.len());
    let disputed = options.variant_paths.iter().zip(path_places.clone());
    let disputed: Vec<_> = disputed.filter(|(_, place)| !is_agreed(&segments, *place)).collect();
    if !disputed.is_empty() {
        let agreed = disputed
            .into_iter()
            .fold(options.clone(), |options, ((column, path), _)| options.with_path_as_json(column, path));
        (segments, lost) = open(&agreed)?;
    }
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

fn open_segments(
    folder: &TabletFolder,
    meta: &TabletMeta,
    rowsets: &[RowsetMeta],
    schema: &TabletSchema,
    deletes: &[(i64, Keeps)],
    (version, options): (i64, &TabletOptions),
) -> Result<(Vec<TabletSegment>, Vec<LostSegment>)> {
    let mut reader_options = SegmentReaderOptions::default()
        .with_schema(Some(Arc::new(schema.clone())))
        .with_hidden(true)
        .with_json_paths(options.json_paths.clone())
        .with_verify_checksums(options.verify_checksums)
        .with_limits(options.limits.clone());
    for (column, path) in &options.variant_paths {
        reader_options = reader_options.with_variant_path(column, path);
    }
    let (mut segments, mut lost, mut first_row) = (Vec::new(), Vec::new(), 0u64);
    for rowset in rowsets {
        let keeps = deletes.iter().filter(|(at, _)| rowset.end_version < *at).map(|(_, keeps)| keeps.clone());
        let keeps: Vec<_> = keeps.collect();
        for number in 0..rowset.num_segments {
            let reader = match open_segment(folder, rowset, number, &reader_options) {
                Ok(reader) => reader,
                Err(error) if options.recovers => {
                    let end = first_row.saturating_add(rowset.rows_of_segment(number).unwrap_or(0));
                    lost.push(LostSegment { rows: first_row..end, error });
                    first_row = end;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let rows = reader.metadata().num_rows;
            let index_files = index_files(folder, &format!("{}_{number}", rowset.id));
            let sizes = index_files.iter().filter_map(|path| Some(std::fs::metadata(path).ok()?.len()));
            let index_bytes = sizes.fold(0, u64::saturating_add);
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
                index_files,
                index_bytes,
            });
            first_row = first_row.saturating_add(rows);
        }
    }
    Ok((segments, lost))
}

fn open_segment(
    folder: &TabletFolder,
    rowset: &RowsetMeta,
    number: u32,
    options: &SegmentReaderOptions,
) -> Result<SegmentReader> {
    let file = format!("{}_{number}.dat", rowset.id);
    let path = folder.files.get(&file).ok_or_else(|| missing(&folder.path, &file, rowset))?;
    SegmentReader::open_with_options(Arc::new(FileSource::open(path)?), options)
}

/// `<segment>.idx`, or `<segment>_<index>.idx` for each index.
fn index_files(folder: &TabletFolder, segment: &str) -> Vec<PathBuf> {
    let belongs = |name: &str| {
        let rest = name.strip_prefix(segment).and_then(|rest| rest.strip_suffix(".idx"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let mut files: Vec<_> =
        folder.files.iter().filter(|(name, _)| belongs(name)).map(|(_, path)| path.clone()).collect();
    files.sort();
    files
}

fn missing(folder: &Path, file: &str, rowset: &RowsetMeta) -> Error {
    let message = if rowset.is_remote {
        format!("segment {file} is in object storage, and not in this folder")
    } else {
        format!("segment {file} of versions {}..={} is missing", rowset.start_version, rowset.end_version)
    };
    Error::invalid(message).at(&folder.display().to_string(), 0, "")
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
        fields.push(Field::new(&column.name, data_type, is_nullable));
    }
    Ok(fields)
}
