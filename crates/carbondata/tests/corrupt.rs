//! Damaged files: never a panic, never a wrong row without a word, and everything intact is given.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use pilaster_carbondata::file::{CarbonFileOptions, CarbonFileReader};
use pilaster_carbondata::table::{CarbonTable, CarbonTableOptions};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, ErrorKind, Limits, LossLog, VerifyDepth};
use pilaster_testing::needs;
use support::damage::Copy;
use support::tables::files_below;
use support::{GoldenFile, batches, goldens, memory, testdata};

fn golden(case: &str) -> Vec<u8> {
    let files = GoldenFile::all(&testdata());
    let golden = files.iter().find(|golden| golden.case == case).unwrap();
    std::fs::read(&golden.data).unwrap()
}

fn rows(file: &CarbonFileReader) -> RecordBatch {
    concat_batches(&file.schema(), &batches(file.scan()).unwrap()).unwrap()
}

/// Reads what can be read, whatever the bytes are.
fn exercise(bytes: Vec<u8>) {
    let limits =
        Limits { decoded_bytes: 1 << 22, block_bytes: 1 << 22, metadata_bytes: 1 << 20, ..Limits::default() };
    let options = CarbonFileOptions::default().with_limits(limits);
    let source = memory("damaged.carbondata", bytes);
    for file in [
        CarbonFileReader::open_with_options(Arc::clone(&source), &options),
        CarbonFileReader::recover(source, &options),
    ]
    .into_iter()
    .flatten()
    {
        let _ = batches(file.scan());
        let log = Arc::new(LossLog::new());
        let given: usize = batches(file.scan().skip_damage(Arc::clone(&log)))
            .map_or(0, |all| all.iter().map(RecordBatch::num_rows).sum());
        let whole = file.row_count().unwrap();
        assert!(given as u64 == whole || !log.is_empty());
        let _ = file.verify(VerifyDepth::Values, &Silent);
        let _ = file.describe();
        let _ = file.pages();
        let _ = (file.column_statistics(), file.column_statistics_with_sizes());
    }
}

/// An index of versions 1 and 2 is believed only as far as the footers of its data files agree.
#[needs(goldens = "carbondata")]
#[test]
fn an_index_of_old_versions_gives_the_rows_or_an_error() {
    let root = goldens();
    for name in ["v1_group", "v2_dict_one"] {
        let copy = Copy::of(&root.join("table/v1.0").join(name), "old-index");
        let open = || CarbonTable::open(&copy.1, &CarbonTableOptions::default());
        // The file of another name is not there, which is said.
        let whole = |table: CarbonTable| match table.absences().first() {
            Some(absence) => Err(pilaster_core::Error::incomplete(absence.to_string())),
            None => batches(table.scan()),
        };
        let read = || open().and_then(whole);
        let truth = read().unwrap();
        let mut files = Vec::new();
        files_below(&copy.1, &mut files);
        let index =
            files.iter().find(|path| path.extension().is_some_and(|end| end == "carbonindex")).unwrap();
        let bytes = std::fs::read(index).unwrap();
        let (mut same, mut refused) = (0, 0);
        for at in 0..bytes.len() {
            for bit in [0x01, 0x80] {
                let mut bad = bytes.clone();
                bad[at] ^= bit;
                std::fs::write(index, bad).unwrap();
                match read() {
                    Ok(found) => {
                        assert_eq!(found, truth, "{name}: bit {bit} of byte {at}");
                        same += 1;
                    }
                    Err(_) => refused += 1,
                }
                if at % 16 == 0
                    && let Ok(table) = open()
                {
                    let _ = table.verify(VerifyDepth::Values, &Silent);
                }
            }
        }
        // Paths before the name, keys and statistics do not matter to a scan.
        assert!(same > 100 && refused > 300, "{name}: {same} read, {refused} refused");
    }
}

/// A number in the form that Thrift gives it.
fn thrift_number(value: i64) -> Vec<u8> {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    let mut bytes = Vec::new();
    while rest > 0x7f {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// Nothing is reserved for rows that only an index of versions 1 and 2 speaks of.
#[needs(goldens = "carbondata")]
#[test]
fn an_index_of_old_versions_that_boasts_is_refused() {
    let root = goldens();
    for name in ["v1_group", "v2_dict_one"] {
        let copy = Copy::of(&root.join("table/v1.0").join(name), "old-index-rows");
        let mut files = Vec::new();
        files_below(&copy.1, &mut files);
        let find = |end: &str| {
            let is_it = |path: &&std::path::PathBuf| path.extension().is_some_and(|found| found == end);
            files.iter().find(is_it).unwrap()
        };
        let open = |recovers| {
            let options = CarbonTableOptions::default().with_recovery(recovers);
            CarbonTable::open(&copy.1, &options)
        };
        let truth = open(false).unwrap().row_count().unwrap();
        let (index, data) = (find("carbonindex"), find("carbondata"));
        let bytes = std::fs::read(index).unwrap();
        // Field 1, a number of 64 bits, then field 2, bytes.
        let record = |rows: i64| [&[0x16], thrift_number(rows).as_slice(), &[0x18]].concat();
        let known = record(i64::try_from(truth).unwrap());
        let at = bytes.windows(known.len()).position(|window| window == known).unwrap();
        let size = i64::try_from(std::fs::metadata(data).unwrap().len()).unwrap();
        let most = size * i64::from(i32::MAX);
        for rows in [i64::MAX, most + 1, most] {
            let bad = [&bytes[..at], &record(rows), &bytes[at + known.len()..]].concat();
            std::fs::write(index, bad).unwrap();
            match open(false) {
                Ok(table) => {
                    assert_eq!(rows, most);
                    assert!(table.scan().plan().unwrap().tasks().unwrap().len() < 100);
                    assert!(batches(table.scan()).is_err());
                    let log = Arc::new(LossLog::new());
                    assert_eq!(batches(table.scan().skip_damage(Arc::clone(&log))).unwrap(), []);
                    assert!(!log.is_empty());
                    assert!(!table.verify(VerifyDepth::Footer, &Silent).unwrap().is_sound());
                    let _ = (
                        table.describe(),
                        table.pages(),
                        table.column_statistics_with_sizes(),
                        table.partitions(),
                    );
                }
                Err(error) => {
                    assert!(rows > most, "{error}");
                    let name = data.file_name().unwrap().to_str().unwrap();
                    assert!(matches!(error.kind(), ErrorKind::Corrupt { .. }), "{error}");
                    assert!(error.to_string().contains(name), "{error}");
                }
            }
            // Recovery asks the footer.
            let table = open(true).unwrap();
            assert_eq!(table.row_count(), Some(truth), "{rows}");
            assert!(!table.findings().is_empty());
        }
    }
}

/// Rows of streams, with nested values and dictionaries, whatever their bytes are.
#[test]
fn damaged_streams_are_refused_or_read_in_part() {
    for name in ["stream_nested", "stream_types", "stream_map", "stream_1_6"] {
        let copy = Copy::of(&testdata().join("stream").join(name), "damaged-stream");
        let mut files = Vec::new();
        files_below(&copy.1, &mut files);
        let is_stream = |path: &&std::path::PathBuf| path.display().to_string().contains("-0.");
        for path in files.iter().filter(is_stream) {
            let bytes = std::fs::read(path).unwrap();
            for at in (0..bytes.len()).step_by(1 + bytes.len() / 90) {
                for change in [0x01, 0x80, 0xff] {
                    let mut bad = bytes.clone();
                    bad[at] ^= change;
                    std::fs::write(path, bad).unwrap();
                    for recovers in [false, true] {
                        let options = CarbonTableOptions::default().with_recovery(recovers);
                        let Ok(table) = CarbonTable::open(&copy.1, &options) else { continue };
                        let _ = batches(table.scan());
                        let _ = batches(table.scan().skip_damage(Arc::new(LossLog::new())));
                    }
                }
            }
            std::fs::write(path, bytes).unwrap();
        }
    }
}

#[test]
fn a_file_cut_at_any_byte_is_refused_or_read_in_part() {
    let bytes = golden("one_row");
    for end in 0..bytes.len() {
        assert!(CarbonFileReader::open(memory("cut", bytes[..end].to_vec())).is_err(), "{end}");
        if end % 7 == 0 {
            exercise(bytes[..end].to_vec());
        }
    }
}

#[test]
fn any_flipped_byte_is_survived() {
    for case in ["one_row", "complex_zstd", "bool_byte"] {
        let bytes = golden(case);
        let step = (bytes.len() / 400).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let mut bad = bytes.clone();
            bad[at] ^= 0x55;
            exercise(bad);
        }
    }
}

#[test]
fn without_a_footer_every_row_is_found_again() {
    for case in ["bool_byte", "complex_zstd", "decimal_delta"] {
        let bytes = golden(case);
        let whole = rows(&CarbonFileReader::open(memory(case, bytes.clone())).unwrap());
        let offset = i64::from_be_bytes(bytes[bytes.len() - 8..].try_into().unwrap());
        let cut = bytes[..usize::try_from(offset).unwrap()].to_vec();
        assert!(CarbonFileReader::open(memory(case, cut.clone())).is_err());
        let recovered = CarbonFileReader::recover(memory(case, cut), &CarbonFileOptions::default()).unwrap();
        assert_eq!(rows(&recovered), whole);
        assert!(!recovered.verify(VerifyDepth::Footer, &Silent).unwrap().is_sound());
    }
}

#[needs(goldens = "carbondata")]
#[test]
fn pages_before_the_cut_are_given_and_the_others_named() {
    let root = goldens();
    let files = GoldenFile::all(&root.join("sdk"));
    let golden = files.iter().find(|golden| golden.case == "multi_page").unwrap();
    let bytes = std::fs::read(&golden.data).unwrap();
    let file = CarbonFileReader::open(memory("whole", bytes.clone())).unwrap();
    let whole = rows(&file);
    // Into the last page of the last column.
    let last = file.pages().unwrap().into_iter().max_by_key(|page| page.offset).unwrap();
    let cut = bytes[..usize::try_from(last.offset + last.bytes / 2).unwrap()].to_vec();
    let recovered = CarbonFileReader::recover(memory("cut", cut), &CarbonFileOptions::default()).unwrap();
    let log = Arc::new(LossLog::new());
    let given = batches(recovered.scan().skip_damage(Arc::clone(&log))).unwrap();
    let given = concat_batches(&file.schema(), &given).unwrap();
    assert_eq!(given, whole.slice(0, 64_000));
    let losses = log.losses();
    assert_eq!(losses.len(), 1);
    assert_eq!(losses[0].positions(), Some(64_000..70_000));
}

#[test]
fn a_value_outside_its_bounds_is_found() {
    // Snappy has no checksum: a changed literal decompresses to another value.
    let bytes = golden("one_row");
    let mut found = 0;
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 0x01;
        let Ok(file) = CarbonFileReader::open(memory("flipped", bad)) else { continue };
        let report = file.verify(VerifyDepth::Values, &Silent).unwrap();
        found += usize::from(report.findings.iter().any(|finding| finding.message.contains("bounds")));
    }
    assert!(found > 10, "{found}");
}
