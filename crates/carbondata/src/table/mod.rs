//! Whole tables: the folder with its metadata, segments and data files.
//!
//! ```text
//! <table>/Metadata/schema                       columns, properties             [TableSchema]
//!         Metadata/tablestatus                  segments                        [SegmentStatus]
//!         Metadata/segments/<id>_<time>.segment folders and index files of a segment
//!         Metadata/tableupdatestatus-<time>     which delete deltas count
//!         Fact/Part0/Segment_<id>/              data files, index files, delete deltas
//!         <column>=<value>/…                    the same, of a partitioned table
//! ```
//!
//! Opening reads metadata and index files alone. See `docs/formats/carbondata-table.md`.

mod cursor;
mod dictionary;
mod lazy;
mod live;
mod open;
mod part;
mod reader;
mod schema;
mod status;
mod values;

pub use reader::{CarbonTable, CarbonTableOptions, find_tables, is_table};
pub use schema::TableSchema;
pub use status::SegmentStatus;
