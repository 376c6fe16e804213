//! Tables and the rows that the engine gave for them.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use pilaster_carbondata::table::{CarbonTable, CarbonTableOptions};
use pilaster_core::Dataset;

use super::{batches, sorted};

pub fn whole(table: &CarbonTable) -> RecordBatch {
    concat_batches(&table.schema(), &batches(table.scan()).unwrap()).unwrap()
}

pub fn open(folder: &Path) -> CarbonTable {
    CarbonTable::open(folder, &CarbonTableOptions::default()).unwrap()
}

/// The tables of a folder of goldens that have expected rows.
pub fn cases(root: &Path) -> Vec<(String, PathBuf, PathBuf)> {
    sorted(root)
        .into_iter()
        .filter(|path| path.is_dir())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_string(), path.clone()))
        .map(|(name, path)| (name.clone(), path, root.join(format!("{name}.jsonl"))))
        .filter(|(_, path, expected)| path.join("Metadata").is_dir() && expected.is_file())
        .collect()
}

pub fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in sorted(folder) {
        if path.is_dir() {
            files_below(&path, files);
        } else {
            files.push(path);
        }
    }
}

pub fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for path in sorted(from) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_all(&path, &target);
        } else {
            std::fs::write(target, std::fs::read(&path).unwrap()).unwrap();
        }
    }
}
