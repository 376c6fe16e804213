//! Writing tables: new ones, loads, compaction.
//!
//! | module | what |
//! | --- | --- |
//! | `options` | how to write |
//! | `writer` | new tables, loads into tables that exist, folders of data files |
//! | `load` | the data and index files of one load |
//! | `sort` | rows in the order of keys, through temporary files if they are many |
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
mod load;
mod lock;
mod options;
mod partitions;
mod sort;
mod writer;

pub use compact::{CompactionSummary, compact};
pub use options::CarbonTableWriterOptions;
pub use writer::{CarbonFolderWriter, CarbonTableWriter, LoadSummary};
