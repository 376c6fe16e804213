//! Small streaming files, made for tests.

use std::sync::Arc;

use pilaster_core::source::MemorySource;
use pilaster_core::{Limits, Result};
use pilaster_encoding::codec::Codec;
use pilaster_encoding::thrift::Writer;

use super::open_stream;
use crate::file::layout::CarbonFile;
use crate::messages::{ColumnSchema, MinMax, write_columns};

const NAME: &str = "part-0-0_batchno0-0-0-0.snappy.carbondata";
const MARKER: &[u8; 16] = b"@carbondata_sync";

/// Numbers of types.
pub(crate) const BYTE: i32 = 25;
pub(crate) const DOUBLE: i32 = 4;
pub(crate) const FLOAT: i32 = 24;
pub(crate) const STRUCT: i32 = 21;

/// A measure.
pub(crate) fn measure(name: &str, data_type: i32) -> ColumnSchema {
    ColumnSchema { data_type, is_dimension: false, ..ColumnSchema::text(name, 0) }
}

/// A column `s`: a struct of fields of one type.
pub(crate) fn structure(fields: usize, data_type: i32) -> Vec<ColumnSchema> {
    let num_child = i32::try_from(fields).unwrap_or(i32::MAX);
    let mut columns = vec![ColumnSchema { data_type: STRUCT, num_child, ..ColumnSchema::text("s", 0) }];
    let child = |field| ColumnSchema { data_type, ..ColumnSchema::text(&format!("s.f{field}"), -1) };
    columns.extend((0..fields).map(child));
    columns
}

/// A row without nulls.
pub(crate) fn row(values: &[u8]) -> Vec<u8> {
    [&[0, 1, 0], values].concat()
}

/// The bytes of a file. A blocklet is a number of rows, statistics, and the bytes of the rows.
pub(crate) fn file(columns: &[ColumnSchema], blocklets: &[(i32, Option<MinMax>, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut header = Writer::new(&mut out);
    header.i32(1, 3);
    write_columns(&mut header, 2, columns);
    header.bool(3, false);
    header.i64(4, 0);
    header.binary(6, MARKER);
    header.text(7, "snappy");
    header.finish();
    for (rows, min_max, bytes) in blocklets {
        let (mut header, mut packed) = (Vec::new(), Vec::new());
        let mut writer = Writer::new(&mut header);
        if let Some(min_max) = min_max {
            writer.structure(3, |out| {
                let mut writer = Writer::new(out);
                writer.structure(1, |out| min_max.write(out));
                writer.finish();
            });
        }
        writer.structure(4, |out| {
            let mut writer = Writer::new(out);
            writer.i32(1, *rows);
            writer.finish();
        });
        writer.finish();
        Codec::Snappy.compress(bytes, &mut packed).unwrap();
        out.extend_from_slice(MARKER);
        for part in [header, packed] {
            out.extend(u32::try_from(part.len()).unwrap().to_be_bytes());
            out.extend(part);
        }
    }
    out
}

/// Opens the bytes of a file.
pub(crate) fn open(bytes: Vec<u8>, limits: Limits) -> Result<CarbonFile> {
    let size = bytes.len() as u64;
    open_stream(Arc::new(MemorySource::new(NAME, bytes)), limits, size)
}
