//! Entry points for fuzz targets: the parsers of segments and tablets on any bytes, and the writer on any table.
//!
//! They give nothing back; what must hold is that they end, without a panic and without more memory than the bytes can
//! justify. The property tests of this module run the same functions on a few hundred inputs.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what is made here is known, and a surprise must stop the run"
)]

mod damage;
mod tables;
mod values;

use std::sync::Arc;

use pilaster_core::progress::Silent;
use pilaster_core::source::MemorySource;
use pilaster_core::{Dataset, Limits, VerifyDepth};

pub use damage::{damaged_segment, segment_open};
pub use tables::{segment_round_trip, tablet_round_trip};

use crate::index_file::IndexFileReader;
use crate::schema::TabletSchema;
use crate::segment::{SegmentReader, SegmentReaderOptions};
use crate::{jsonb, segment, tablet};

/// A JSONB document, and a cell of a VARIANT.
pub fn documents(bytes: &[u8]) {
    for text in
        [jsonb::to_text(bytes, 8), segment::variant_cell_text(bytes, &Limits::small())].into_iter().flatten()
    {
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "no JSON: {text}");
    }
}

/// A data page: the first bytes choose type, encoding and counts, the rest is the body.
pub fn data_page(bytes: &[u8]) {
    segment::decode_any_page(bytes, &Limits::small());
}

/// The pages of key, bitmap and bloom filter indexes, zone maps, and whole columns of an index.
pub fn index_pages(bytes: &[u8]) {
    segment::parse_any_index(bytes, &Limits::small());
}

/// The metadata of a tablet, and a container of indexes.
pub fn tablet_files(bytes: &[u8]) {
    tablet::parse_any_meta(bytes, &Limits::small());
    let source = Arc::new(MemorySource::new("fuzz.idx", bytes.to_vec()));
    if let Ok(index) = IndexFileReader::open(source, &Limits::small()) {
        let files: usize = index.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(Some(files as u64), index.row_count());
        index.verify(VerifyDepth::Values, &Silent).unwrap();
        index.describe().unwrap();
    }
}

/// A segment without a footer.
pub fn recover(bytes: &[u8]) {
    let schema = TabletSchema::parse_json(
        br#"{"columns": [
            {"unique_id": 0, "name": "a", "type": "INT"},
            {"unique_id": 1, "name": "b", "type": "STRING", "is_nullable": true},
            {"unique_id": 2, "name": "c", "type": "ARRAY", "is_nullable": true, "children": [
                {"unique_id": 3, "name": "item", "type": "BOOLEAN", "is_nullable": true}]}]}"#,
    );
    let options = SegmentReaderOptions::default()
        .with_schema(Some(Arc::new(schema.expect("a schema"))))
        .with_limits(Limits::small());
    let source = Arc::new(MemorySource::new("fuzz", bytes.to_vec()));
    let Ok(reader) = SegmentReader::recover(source, &options) else { return };
    let Ok(batches) = reader.scan().read() else { return };
    // Damage is met on the way, or not.
    batches.take_while(Result::is_ok).for_each(drop);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            documents(&bytes);
            data_page(&bytes);
            index_pages(&bytes);
            tablet_files(&bytes);
            recover(&bytes);
            segment_open(&bytes);
        }

        #[test]
        fn any_table_is_read_back_from_a_segment(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            segment_round_trip(&bytes);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn any_damage_under_right_checksums_is_met(bytes in prop::collection::vec(any::<u8>(), 0..150)) {
            damaged_segment(&bytes);
        }
    }

    proptest! {
        // Every file of a tablet is made durable, which takes its time.
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_table_is_read_back_from_a_tablet(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let folder = tempfile::tempdir().unwrap();
            tablet_round_trip(&bytes, folder.path());
        }
    }
}
