//! What the tests of this crate share.
#![allow(dead_code, reason = "every test program uses its own part of this")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

pub mod cells;
pub mod damage;
pub mod random;
pub mod rows;
pub mod tables;

use std::io::Read;
use std::path::{Path, PathBuf};

use pilaster_core::SourceRef;
#[allow(unused_imports, reason = "every test program uses its own part of this")]
pub use pilaster_testing::{batches, memory, workspace};
use serde_json::Value;

/// The files that are committed with the tests.
pub fn testdata() -> PathBuf {
    pilaster_testing::testdata("carbondata")
}

/// The golden files of the real system, which are not committed.
pub fn goldens() -> PathBuf {
    pilaster_testing::goldens("carbondata")
}

/// A file, read into memory.
pub fn source(path: &Path) -> SourceRef {
    memory(&path.display().to_string(), std::fs::read(path).unwrap())
}

/// A data file with the rows that the SDK's row reader gave.
#[derive(Debug, Clone)]
pub struct GoldenFile {
    pub case: String,
    pub data: PathBuf,
    pub expected: PathBuf,
}

impl GoldenFile {
    /// All files of the cases in `root`, and in the folders in it.
    pub fn all(root: &Path) -> Vec<Self> {
        let mut files = Vec::new();
        for folder in sorted(root) {
            if folder.join("case.json").is_file() {
                let case = folder.strip_prefix(root).unwrap().display().to_string();
                for data in sorted(&folder.join("data")) {
                    let name = data.file_name().unwrap().to_str().unwrap();
                    let Some(stem) = name.strip_suffix(".carbondata") else { continue };
                    let plain = folder.join("expected").join(format!("{stem}.jsonl"));
                    let packed = folder.join("expected").join(format!("{stem}.jsonl.gz"));
                    let expected = if plain.is_file() { plain } else { packed };
                    files.push(Self { case: case.clone(), data: data.clone(), expected });
                }
            } else if folder.is_dir() {
                files.extend(Self::all(&folder));
            }
        }
        files
    }

    /// One JSON array per row, columns in schema order.
    pub fn rows(&self) -> Vec<Value> {
        let bytes = std::fs::read(&self.expected).unwrap();
        let mut text = String::new();
        if self.expected.extension().is_some_and(|extension| extension == "gz") {
            flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
        } else {
            text = String::from_utf8(bytes).unwrap();
        }
        text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// What is in a folder, by name.
pub fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
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

/// The values of a column without nulls.
pub fn column_values<T: arrow_array::ArrowPrimitiveType>(
    batch: &arrow_array::RecordBatch,
    name: &str,
) -> Vec<T::Native> {
    use arrow_array::cast::AsArray;
    batch.column_by_name(name).unwrap().as_primitive::<T>().values().to_vec()
}
