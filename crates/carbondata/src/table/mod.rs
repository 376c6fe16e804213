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

mod as_of;
mod buckets;
mod cursor;
mod deletes;
mod describe;
mod dictionary;
mod find;
mod lazy;
mod live;
mod lost;
mod names;
mod open;
mod opener;
mod options;
mod part;
mod reader;
mod recovery;
mod repair;
mod schema;
mod secondary;
mod status;
mod values;
mod write;

pub use as_of::shown_time;
pub use find::{TablesBelow, find_tables, has_tables};
pub use opener::ForeignSegment;
pub use options::{CarbonTableOptions, OutsideFolders};
pub use reader::{CarbonTable, has_metadata, is_table};
pub use repair::{RebuiltFile, TableRepair, repair};
pub use schema::{SchemaChange, TableSchema};
pub use secondary::{IndexKind, SecondaryIndex};
pub use status::SegmentStatus;
pub use write::{
    CarbonFolderWriter, CarbonTableWriter, CarbonTableWriterOptions, CompactionSummary, LoadSummary, compact,
};

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use repair::fuzz_raw;

/// Any bytes as the files of a table's metadata.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz(bytes: &[u8]) {
    let _ = TableSchema::parse(bytes);
    let _ = dictionary::committed_bytes(bytes);
    let _ = dictionary::parse_words(bytes);
    repair::fuzz_words(bytes);
    if let Ok(segments) = serde_json::from_slice::<Vec<SegmentStatus>>(bytes) {
        for segment in &segments {
            let _ = (segment.is_readable(), status::checked_id(&segment.id), lost::numbers(&segment.id));
            let times = [&segment.load_start, &segment.load_end, &segment.modified];
            times.into_iter().flatten().for_each(|text| {
                let _ = as_of::milliseconds(text);
            });
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = (
            names::parts_of_name(text),
            names::loose_name(text),
            names::bucket(text),
            as_of::milliseconds(text),
        );
        let _ = OutsideFolders::default().with_allowed(true).find(text);
    }
    let _ = serde_json::from_slice::<status::SegmentFile>(bytes);
    let _ = serde_json::from_slice::<Vec<status::BlockUpdate>>(bytes);
    let _ = serde_json::from_slice::<status::DeleteDelta>(bytes);
    let shared = bytes::Bytes::copy_from_slice(bytes);
    let _ = crate::messages::parse_merged(&shared);
    let _ = crate::messages::StreamRecord::parse_file(&shared);
}
