//! What the tests of this crate share.
#![allow(dead_code, reason = "every test program uses its own part of this")]

pub mod cells;
pub mod columns;
pub mod container;
pub mod golden;
pub mod made;
pub mod printed;
pub mod rows;
pub mod tables;

use std::path::PathBuf;

use arrow_array::{Array, ArrayRef};
use arrow_schema::Field;
use pilaster_core::{Dataset, Result, Scan};
use pilaster_kudu::cfile::{CFileReader, CFileReaderOptions, CFileWriter, CFileWriterOptions};
#[allow(unused_imports, reason = "every test program uses its own part of this")]
pub use pilaster_testing::{batches, memory, workspace};

/// The files that are committed with the tests.
pub fn testdata() -> PathBuf {
    pilaster_testing::testdata("kudu")
}

/// The golden files of the real system, which are not committed.
pub fn goldens() -> PathBuf {
    pilaster_testing::goldens("kudu")
}

/// Opens bytes as a CFile with a column like `field`.
pub fn open_as(bytes: &[u8], field: &Field) -> Result<CFileReader> {
    let options = CFileReaderOptions::default().with_field(field.clone());
    CFileReader::open_with_options(memory("test.cfile", bytes.to_vec()), &options)
}

/// Writes `arrays` one after the other as one CFile.
pub fn write(field: &Field, arrays: &[ArrayRef], options: CFileWriterOptions) -> Result<Vec<u8>> {
    let mut writer = CFileWriter::try_new(Vec::new(), field, options)?;
    for array in arrays {
        writer.write_array(array)?;
    }
    Ok(writer.finish()?.0)
}

/// The first column of a scan, in one piece.
pub fn column(scan: Scan<'_>) -> Result<ArrayRef> {
    nth_column(scan, 0)
}

/// A column of a scan, in one piece.
pub fn nth_column(scan: Scan<'_>, index: usize) -> Result<ArrayRef> {
    let reader = scan.read()?;
    let schema = reader.schema();
    let batches = reader.map(|batch| batch.map_err(Into::into)).collect::<Result<Vec<_>>>()?;
    let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(index).as_ref()).collect();
    Ok(match parts.as_slice() {
        [] => arrow_array::new_empty_array(schema.field(index).data_type()),
        parts => arrow_select::concat::concat(parts)?,
    })
}

/// All values of the first column.
pub fn read_all(reader: &CFileReader) -> Result<ArrayRef> {
    column(reader.scan())
}

/// Numbers that look random and are the same in every run.
#[derive(Debug, Clone)]
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}
