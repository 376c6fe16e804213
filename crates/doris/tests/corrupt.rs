//! Damaged segments: errors with a place, no panic, and all rows of good pages.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

mod support;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Limits, LossLog, VerifyDepth};
use pilaster_doris::segment::{SegmentReader, SegmentReaderOptions, StorageFormat};
use pilaster_testing::needs;
use support::cells::{cell, is_same};
use support::golden::Case;
use support::{batches, goldens, memory};

fn open(case: &Case, bytes: Vec<u8>, options: &SegmentReaderOptions) -> pilaster_core::Result<SegmentReader> {
    SegmentReader::open_with_options(memory(&case.name, bytes), options)
}

#[needs(goldens = "doris")]
#[test]
fn a_segment_cut_anywhere_is_refused() {
    let root = goldens();
    for case in Case::some(&root, "dup_without_key") {
        for length in 0..case.bytes.len() {
            let cut = case.bytes[..length].to_vec();
            assert!(open(&case, cut, &case.options()).is_err(), "{} cut to {length} bytes", case.name);
        }
    }
}

#[needs(goldens = "doris")]
#[test]
fn errors_name_file_place_expected_and_found() {
    let root = goldens();
    let case = &Case::some(&root, "dup_without_key")[0];
    let mut bytes = case.bytes.clone();
    let last = bytes.len() - 1;
    bytes[last] = b'2';
    let text = open(case, bytes, &case.options()).unwrap_err().to_string();
    assert_eq!(
        text,
        format!(
            "{}: segment footer at byte {}: expected \"D0R1\" as the last bytes, found \"D0R2\"",
            case.name,
            last - 11
        )
    );
    let mut bytes = case.bytes.clone();
    bytes[5] ^= 1;
    let segment = open(case, bytes, &case.options()).unwrap();
    let text = batches(segment.scan()).unwrap_err().to_string();
    assert!(
        text.starts_with(&format!("{}: segment data page at byte 0: expected checksum", case.name)),
        "{text}"
    );
}

#[needs(goldens = "doris")]
#[test]
fn every_flipped_byte_is_found_or_harmless() {
    let root = goldens();
    let mut flips = 0;
    for name in [
        "dup_without_key",
        "plain_row_binlog_horizontal/segment_0",
        "variant_row_store_0_horizontal/segment_0",
    ] {
        for case in Case::some(&root, name) {
            let format = case.open().unwrap().metadata().format;
            // Every byte of the smallest, every third of the others.
            for at in (0..case.bytes.len()).step_by(if case.bytes.len() < 1000 { 1 } else { 3 }) {
                let mut bytes = case.bytes.clone();
                bytes[at] ^= 0x15;
                flips += 1;
                let Ok(segment) = open(&case, bytes, &case.options()) else { continue };
                let report = segment.verify(VerifyDepth::Values, &Silent).unwrap();
                // Column metadata of V3 has no checksum.
                if format == StorageFormat::V2 {
                    assert!(!report.is_sound(), "{}: byte {at} flipped and not found", case.name);
                }
                let _ = batches(segment.scan());
            }
        }
    }
    assert!(flips > 1000, "{flips} flips");
}

#[needs(goldens = "doris")]
#[test]
fn decoders_meet_any_damage_without_a_panic() {
    let root = goldens();
    let limits = Limits { metadata_bytes: 1 << 20, ..Limits::small() };
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % end.max(1)
    };
    for case in Case::all(&root).iter().filter(|case| case.bytes.len() < 40_000) {
        for _ in 0..12 {
            let mut bytes = case.bytes.clone();
            for _ in 0..1 + random(4) {
                let at = random(bytes.len() - 12);
                bytes[at] = [0, 0xff, 0x7f, 0x80, 1, random(256) as u8][random(6)];
            }
            // Without checksums the damage reaches the decoders.
            let options = case.options().with_verify_checksums(false).with_limits(limits.clone());
            let Ok(segment) = open(case, bytes, &options) else { continue };
            if let Err(error) = batches(segment.scan()) {
                assert!(error.to_string().starts_with(&case.name), "no place: {error}");
            }
            let _ = segment.verify(VerifyDepth::Values, &Silent);
            let _ = segment.describe();
            let _ = segment.column_statistics();
            let losses = Arc::new(LossLog::new());
            batches(segment.scan().skip_damage(losses)).unwrap();
        }
    }
}

#[needs(goldens = "doris")]
#[test]
fn rows_of_good_pages_survive_with_their_positions() {
    let root = goldens();
    for case in Case::some(&root, "embedded_bloom") {
        let sound = case.open().unwrap();
        let pages = sound.pages().unwrap();
        let page = pages
            .iter()
            .filter(|page| page.kind == "data page")
            .find(|page| page.rows.as_ref().is_some_and(|rows| rows.start > 0))
            .unwrap();
        let lost = page.rows.clone().unwrap();
        let mut bytes = case.bytes.clone();
        bytes[page.offset as usize + 3] ^= 0xff;
        let segment = open(&case, bytes, &case.options()).unwrap();
        assert!(batches(segment.scan()).is_err());
        let losses = Arc::new(LossLog::new());
        let mut rows = Vec::new();
        for batch in batches(segment.scan().row_numbers("#").skip_damage(Arc::clone(&losses))).unwrap() {
            let numbers =
                batch.column(batch.num_columns() - 1).as_primitive::<UInt64Type>().values().to_vec();
            for (at, number) in numbers.iter().enumerate() {
                for (field, column) in
                    batch.schema().fields().iter().zip(batch.columns()).take(batch.num_columns() - 1)
                {
                    let is_json = matches!(case.type_of(field.name()), "JSONB" | "VARIANT");
                    let expected = &case.rows[*number as usize][field.name()];
                    assert!(
                        is_same(&cell(column, at, is_json), expected, field.data_type()),
                        "{} row {number}",
                        case.name
                    );
                }
            }
            rows.extend(numbers);
        }
        let expected: Vec<u64> = (0..case.rows.len() as u64).filter(|row| !lost.contains(row)).collect();
        assert_eq!(rows, expected, "{}", case.name);
        let noted = losses.losses();
        assert_eq!(noted.len(), 1, "{noted:?}");
        assert_eq!(
            (noted[0].positions(), noted[0].column.as_deref()),
            (Some(lost), Some(page.column.as_str()))
        );
        let report = segment.verify(VerifyDepth::Checksums, &Silent).unwrap();
        assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
        assert_eq!(report.findings[0].offset, page.offset);
    }
}
