//! The formats, a module each.

mod carbondata;
mod cfile_set;
mod dataset;
mod doris;
mod parquet;
mod redfile;

use crate::Result;
use crate::format::BenchFormat;

/// All formats; Parquet, which the others are compared with, comes first, with dictionaries and without.
pub const ALL: [&dyn BenchFormat; 6] = [
    &parquet::Parquet { with_dictionary: true },
    &parquet::Parquet { with_dictionary: false },
    &cfile_set::CFileSetFormat,
    &redfile::Redfile,
    &doris::DorisSegment,
    &carbondata::CarbonFolder,
];

/// The name of the format that ratios refer to.
pub const BASELINE: &str = "parquet";

/// The name of the format that ratios of formats without dictionaries refer to.
pub const PLAIN_BASELINE: &str = "parquet-plain";

/// The format of that name.
pub fn by_name(name: &str) -> Result<&'static dyn BenchFormat> {
    let known = || ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
    ALL.into_iter()
        .find(|format| format.name() == name)
        .ok_or_else(|| format!("no format {name:?}; there are: {}", known()).into())
}
