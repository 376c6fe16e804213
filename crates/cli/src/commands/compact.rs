//! `pilaster compact`: segments of a CarbonData table become one.

use pilaster::Result;
use pilaster::carbondata::{CarbonDataWriterOptions, compact_table};

use crate::bytes::human;
use crate::exit::Outcome;
use crate::progress::Words;
use crate::target::SortMemory;

/// Merges segments of a CarbonData table into one, as its own compaction does
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster compact store/db/sales
  pilaster compact store/db/sales --segments 0,1,2

The segments become one (0, 1 and 2 become 0.1), deleted rows are left out and rows are sorted again. Until the new segment is
complete the table is as it was; the files of the merged ones stay, marked as compacted. CarbonData's own locks are taken.")]
pub(crate) struct Args {
    /// The folder of the table
    #[arg(value_name = "TABLE")]
    table: String,

    /// Only these segments [default: all that can be merged]
    #[arg(long, value_name = "ID,ID", value_delimiter = ',')]
    segments: Vec<String>,

    #[command(flatten)]
    memory: SortMemory,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let segments = (!args.segments.is_empty()).then_some(args.segments.as_slice());
    let options = CarbonDataWriterOptions::default().with_sort_memory_bytes(args.memory.bytes());
    let done = compact_table(&args.table, segments, &options)?;
    match (&done.segment, done.merged.as_slice()) {
        (_, []) => words.say(format_args!("{}: fewer than two segments, nothing to merge", args.table)),
        (None, merged) => {
            words.say(format_args!("{}: segments {} had no rows left", args.table, merged.join(", ")))
        }
        (Some(segment), merged) => words.say(format_args!(
            "{}: segments {} are now {segment}: {} rows, {}",
            args.table,
            merged.join(", "),
            done.written.rows,
            human(done.written.data_bytes)
        )),
    }
    Ok(Outcome::Fine)
}
