//! The formats, a module each.

mod cfile_set;
mod dataset;
mod parquet;

use crate::Result;
use crate::format::BenchFormat;

/// All formats; Parquet, which the others are compared with, comes first.
pub const ALL: [&dyn BenchFormat; 2] = [&parquet::Parquet, &cfile_set::CFileSetFormat];

/// The name of the format that ratios refer to.
pub const BASELINE: &str = "parquet";

/// The format of that name.
pub fn by_name(name: &str) -> Result<&'static dyn BenchFormat> {
    let known = || ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
    ALL.into_iter()
        .find(|format| format.name() == name)
        .ok_or_else(|| format!("no format {name:?}; there are: {}", known()).into())
}
