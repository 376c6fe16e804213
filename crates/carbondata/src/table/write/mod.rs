//! Writing tables: new ones, loads, compaction.
//!
//! | module | what |
//! | --- | --- |
//! | `options` | how to write |
//! | `writer` | new tables, loads into tables that exist |
//! | `folder` | folders of data files, as the SDK makes them |
//! | `plan` | what a load writes, out of the options and what the table says |
//! | `load` | the data and index files of one load |
//! | `partitions`, `buckets` | where a row goes |
//! | `commit` | changes of `tablestatus`; segment files |
//! | `lock` | locks, as CarbonData takes them |
//! | `compact` | several segments become one |
//! | `dictionary` | dictionaries of the whole table |
//!
//! A load: `tablestatus` notes it as in progress, then come data files, index files, the segment file, and last `tablestatus` with
//! the load as done. Whatever ends in between, the rows that are read are those before.

mod buckets;
mod commit;
mod compact;
mod dictionary;
mod folder;
mod load;
mod lock;
mod options;
mod partitions;
mod plan;
mod writer;

pub use compact::{CompactionSummary, compact};
pub use folder::CarbonFolderWriter;
pub use options::CarbonTableWriterOptions;
pub use writer::{CarbonTableWriter, LoadSummary};
