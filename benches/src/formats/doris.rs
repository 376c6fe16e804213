//! A segment of Doris, with the options it has by default but the codec.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{DataType, Schema};
use pilaster_core::Dataset;
use pilaster_core::source::FileSource;
use pilaster_doris::TabletSchema;
use pilaster_doris::segment::{
    Compression, SegmentReader, SegmentReaderOptions, SegmentWriteOptions, SegmentWriter,
};
use serde_json::json;

use super::dataset::DatasetFormat;
use crate::Result;
use crate::format::Codec;
use crate::table::{KEY, Table};

pub struct DorisSegment;

/// The columns of lineitem as a table of Doris with duplicate keys has them; a segment does not know their names.
fn schema(columns: &Schema) -> Result<String> {
    let columns = columns.fields().iter().enumerate().map(|(number, field)| {
        let (kind, length) = match field.data_type() {
            DataType::Int32 => ("INT", 4),
            DataType::Int64 => ("BIGINT", 8),
            DataType::Date32 => ("DATEV2", 4),
            DataType::Decimal128(..) => ("DECIMAL64", 8),
            DataType::Utf8 | DataType::Utf8View => ("VARCHAR", 65_533),
            other => return Err(format!("no column of {other} in lineitem").into()),
        };
        let mut column = json!({
            "unique_id": number, "name": field.name(), "type": kind, "length": length, "index_length": length.min(20),
            "is_key": field.name() == KEY, "is_nullable": false,
        });
        if let (DataType::Decimal128(precision, scale), Some(column)) = (field.data_type(), column.as_object_mut()) {
            column.insert("precision".into(), json!(precision));
            column.insert("frac".into(), json!(scale));
        }
        Ok(column)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(json!({ "keys_type": "DUP_KEYS", "num_short_key_columns": 1, "columns": columns }).to_string())
}

/// Beside the segment.
fn schema_file(path: &Path) -> PathBuf {
    path.with_extension("schema.json")
}

impl DatasetFormat for DorisSegment {
    fn name(&self) -> &'static str {
        "doris"
    }

    fn write(&self, table: &Table, path: &Path, codec: Codec) -> Result<()> {
        let compression = match codec {
            Codec::None => Compression::None,
            Codec::Lz4 => Compression::Lz4,
            Codec::Snappy => Compression::Snappy,
            Codec::Zlib => Compression::Zlib,
        };
        let json = schema(&table.schema)?;
        let options = SegmentWriteOptions::default().with_compression(compression);
        let sink = BufWriter::with_capacity(1 << 16, File::create_new(path)?);
        let mut writer = SegmentWriter::try_new(sink, &TabletSchema::parse_json(json.as_bytes())?, &options)?;
        for batch in &table.batches {
            writer.write(batch)?;
        }
        let (sink, _) = writer.finish()?;
        sink.into_inner()?.sync_all()?;
        std::fs::write(schema_file(path), json)?;
        Ok(())
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Dataset>> {
        let schema = TabletSchema::parse_json(&std::fs::read(schema_file(path))?)?;
        let options = SegmentReaderOptions::default().with_schema(Some(Arc::new(schema)));
        Ok(Box::new(SegmentReader::open_with_options(Arc::new(FileSource::open(path)?), &options)?))
    }
}
