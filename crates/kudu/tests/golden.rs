//! Files written by the real Kudu, read and compared value by value.
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

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef};
use pilaster_core::predicate::Literal;
use pilaster_core::progress::Silent;
use pilaster_core::source::CountingSource;
use pilaster_core::{Dataset, Predicate, RowRanges, SourceRef, VerifyDepth, col};
use pilaster_kudu::cfile::{CFileKind, CFileReader, KuduType, MAX_KEY, MIN_KEY};
use pilaster_kudu::key::{self, KeyPart};
use pilaster_testing::needs;

use support::cells::{expected, texts, unhex};
use support::golden::{Case, Rowset, Table, json_lines};
use support::{Numbers, column, goldens, nth_column, read_all, testdata};

/// What was looked at, so that a test that looks at nothing fails.
#[derive(Debug, Default)]
struct Counts {
    files: usize,
    blocks: u64,
    cells: usize,
    probes: usize,
    keys: usize,
    seeks: usize,
    ranges: usize,
}

/// Opens a file and proves that every byte, checksum and value of it is right.
fn open_sound(source: SourceRef, counts: &mut Counts) -> CFileReader {
    let reader = CFileReader::open(source).unwrap();
    let report = reader.verify(VerifyDepth::Values, &Silent).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let metadata = reader.metadata();
    let around = metadata.blocks_start + (metadata.file_bytes - metadata.blocks_end);
    assert_eq!(
        report.bytes + around,
        metadata.file_bytes,
        "{}: bytes that belong to no block",
        reader.name()
    );
    counts.files += 1;
    counts.blocks += report.blocks;
    reader
}

/// Every block of the case is what Kudu's own list says it is.
fn check_listed_blocks(case: &Case, counts: &mut Counts) {
    for listed in &case.listed {
        let reader = open_sound(case.blocks.open(listed.block), counts);
        let metadata = reader.metadata();
        let context = format!("{} {listed:?}", case.name);
        // Kudu's list says "decimal" whatever its width.
        let data_type = metadata.data_type.name().to_lowercase();
        assert!(data_type.starts_with(&listed.data_type), "{data_type}: {context}");
        assert_eq!(metadata.encoding.name(), listed.encoding, "{context}");
        assert_eq!(metadata.compression.name(), listed.compression, "{context}");
        assert_eq!(metadata.is_nullable, listed.is_nullable, "{context}");
        assert_eq!(metadata.num_values, listed.num_values, "{context}");
        assert_eq!(metadata.file_bytes, listed.size, "{context}");
        let kind = match listed.kind.as_str() {
            "column" | "adhoc-index" => CFileKind::Column,
            "redo" | "undo" => CFileKind::Delta,
            "bloom" => CFileKind::Bloom,
            other => panic!("block kind {other}"),
        };
        assert_eq!(reader.kind(), kind, "{context}");
        if let Some((timestamps, deletes)) = listed.delta_statistics {
            check_delta(&reader, listed.num_values, timestamps, deletes);
        }
        let rows: usize = reader.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(Some(rows as u64), reader.row_count(), "{context}");
        reader.describe().unwrap();
        assert_eq!(reader.pages().unwrap().len() as u64, counted_blocks(&reader), "{context}");
    }
}

fn counted_blocks(reader: &CFileReader) -> u64 {
    reader.verify(VerifyDepth::Checksums, &Silent).unwrap().blocks
}

/// The rows of a table, rebuilt from its columns; `None` if other changes would have to be applied.
fn rows_of(case: &Case, table: &Table) -> Option<Vec<Vec<Option<String>>>> {
    let mut rows = Vec::new();
    for rowset in case.rowsets(&table.name) {
        if rowset.keys().any(|(kind, _)| *kind == "redo") {
            return None;
        }
        let columns = table
            .columns
            .iter()
            .map(|column| {
                let listed = rowset.get(&("column", column.name.as_str()))?;
                let reader = CFileReader::open(case.blocks.open(listed.block)).unwrap();
                Some(texts(&read_all(&reader).unwrap(), column.scale))
            })
            .collect::<Option<Vec<_>>>()?;
        rows.extend(
            (0..columns[0].len()).map(|row| columns.iter().map(|column| column[row].clone()).collect()),
        );
    }
    Some(rows)
}

/// Rows that were flushed and never changed since are exactly what the client scanned.
fn check_rows(case: &Case, counts: &mut Counts) {
    for table in case.tables() {
        let Some(mut found) = rows_of(case, &table) else { continue };
        let mut wanted: Vec<Vec<_>> = table
            .expected()
            .iter()
            .map(|row| table.columns.iter().map(|c| expected(row, &c.name, c.is_float)).collect())
            .collect();
        found.sort();
        wanted.sort();
        let difference = found.iter().zip(&wanted).find(|(found, wanted)| found != wanted);
        assert_eq!(difference, None, "{} {}", case.name, table.name);
        assert_eq!(found.len(), wanted.len(), "{} {}", case.name, table.name);
        counts.cells += found.len() * table.columns.len();
    }
}

/// The encoded keys of the rows of a rowset.
fn keys_of(case: &Case, table: &Table, rowset: &Rowset<'_>) -> Vec<Vec<u8>> {
    let columns: Vec<_> = table.columns.iter().filter(|column| column.is_key).collect();
    let mut keys = Vec::new();
    for (number, key_column) in columns.iter().enumerate() {
        let listed = rowset[&("column", key_column.name.as_str())];
        let reader = CFileReader::open(case.blocks.open(listed.block)).unwrap();
        let part = if number + 1 == columns.len() { KeyPart::Last } else { KeyPart::NotLast };
        let values = read_all(&reader).unwrap();
        keys.resize(values.len(), Vec::new());
        for (row, key) in keys.iter_mut().enumerate() {
            let data_type = reader.metadata().data_type;
            let mut value = stored(&values, row);
            // Decimals are read wider than they are stored.
            match data_type {
                KuduType::Decimal32 => value.truncate(4),
                KuduType::Decimal64 => value.truncate(8),
                _ => {}
            }
            key::encode(data_type, &value, part, key).unwrap();
        }
    }
    keys
}

/// A value as it is stored.
fn stored(values: &ArrayRef, row: usize) -> Vec<u8> {
    if let Some(bytes) = values.as_binary_view_opt() {
        return bytes.value(row).to_vec();
    }
    if let Some(text) = values.as_string_view_opt() {
        return text.value(row).as_bytes().to_vec();
    }
    let data = values.to_data();
    let width = values.data_type().primitive_width().unwrap();
    let start = (data.offset() + row) * width;
    data.buffers()[0][start..start + width].to_vec()
}

/// Keys ascend, are named in the footer, stand in the key index, and are found in the bloom file.
fn check_keys(case: &Case, counts: &mut Counts) {
    for table in case.tables() {
        for rowset in case.rowsets(&table.name) {
            let keys = keys_of(case, &table, &rowset);
            assert!(keys.is_sorted_by(|a, b| a < b), "{} {}", case.name, table.name);
            let key_columns: Vec<_> = table.columns.iter().filter(|column| column.is_key).collect();
            let key_file = match key_columns.as_slice() {
                [only] => rowset[&("column", only.name.as_str())],
                _ => rowset[&("adhoc-index", "")],
            };
            let reader = CFileReader::open(case.blocks.open(key_file.block)).unwrap();
            assert_eq!(reader.metadata().pair(MIN_KEY).unwrap(), &keys[0]);
            assert_eq!(reader.metadata().pair(MAX_KEY).unwrap(), keys.last().unwrap());
            if key_file.kind == "adhoc-index" {
                let values = read_all(&reader).unwrap();
                let index: Vec<_> = values.as_binary_view().iter().flatten().collect();
                assert_eq!(index, keys);
            }
            counts.keys += keys.len();
            let bloom = CFileReader::open(case.blocks.open(rowset[&("bloom", "")].block)).unwrap();
            for key in &keys {
                assert!(bloom.bloom_may_contain(key).unwrap(), "{} {} {key:?}", case.name, table.name);
                counts.probes += 1;
            }
            let strangers = keys.iter().map(|key| [key.as_slice(), b"\0stranger"].concat());
            let wrong = strangers.filter(|key| bloom.bloom_may_contain(key).unwrap()).count();
            assert!(wrong <= 2 + keys.len() / 25, "{} {}: {wrong} of {}", case.name, table.name, keys.len());
        }
    }
}

/// Single rows by position are the rows of the full scan.
fn check_seeks(case: &Case, counts: &mut Counts) {
    let mut numbers = Numbers(case.listed.len() as u64);
    for listed in case.listed.iter().filter(|listed| listed.kind != "bloom") {
        let reader = CFileReader::open(case.blocks.open(listed.block)).unwrap();
        let all = read_all(&reader).unwrap();
        let last = all.len() as u64 - 1;
        for row in [0, last].into_iter().chain((0..6).map(|_| numbers.below(last + 1))) {
            let one = column(reader.scan().rows(RowRanges::one(row..row + 1))).unwrap();
            assert_eq!(&one, &all.slice(row as usize, 1), "{} {listed:?} row {row}", case.name);
            counts.seeks += 1;
        }
    }
}

/// A range of keys gives what filtering everything gives, and reads less.
fn check_ranges(case: &Case, counts: &mut Counts) {
    let mut numbers = Numbers(case.listed.len() as u64);
    for listed in case.listed.iter().filter(|l| l.kind == "column" || l.kind == "adhoc-index") {
        let source = Arc::new(CountingSource::new(case.blocks.open(listed.block)));
        let reader = CFileReader::open(Arc::clone(&source) as SourceRef).unwrap();
        if reader.metadata().value_index.is_none() {
            continue;
        }
        let all = read_all(&reader).unwrap();
        let blocks = reader.pages().unwrap().iter().filter(|page| page.rows.is_some()).count();
        for _ in 0..16 {
            let mut ends =
                [numbers.below(all.len() as u64) as usize, numbers.below(all.len() as u64) as usize];
            ends.sort_unstable();
            let [low, high] = ends.map(|row| Literal::from_array(&all, row));
            let wanted = Predicate::And(vec![col("value").gt_eq(low), col("value").lt(high)]);
            source.reset();
            let found = column(reader.scan().filter(wanted)).unwrap();
            assert_eq!(&found, &all.slice(ends[0], ends[1] - ends[0]), "{} {listed:?} {ends:?}", case.name);
            // Without a positional index blocks must be read to learn which rows they hold.
            let is_positional = reader.metadata().positional_index.is_some();
            if is_positional && blocks > 8 && ends[1] - ends[0] < all.len() / 4 {
                let bytes = source.counts().bytes;
                assert!(bytes < listed.size, "{} {listed:?}: {bytes} of {} bytes", case.name, listed.size);
                counts.ranges += 1;
            }
        }
    }
}

/// Bare files of array columns, cell by cell.
fn check_arrays(folder: &Path, counts: &mut Counts) {
    let files: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("files.json")).unwrap()).unwrap();
    for file in files.as_array().unwrap() {
        let name = file["file"].as_str().unwrap();
        let source = pilaster_core::source::FileSource::open(folder.join(name)).unwrap();
        let reader = open_sound(Arc::new(source), counts);
        assert!(reader.metadata().is_array, "{name}");
        assert_eq!(reader.metadata().is_nullable, file["nullable"].as_bool().unwrap(), "{name}");
        let is_float = matches!(file["element_type"].as_str().unwrap(), "FLOAT" | "DOUBLE");
        let rows = json_lines(&folder.join("expected").join(file["expected"].as_str().unwrap()));
        let wanted: Vec<_> = rows.iter().map(|row| expected(row, "v", is_float)).collect();
        assert_eq!(texts(&read_all(&reader).unwrap(), 0), wanted, "{name}");
        counts.cells += wanted.len();
        for row in [0, wanted.len() / 2, wanted.len() - 1] {
            let one = column(reader.scan().rows(RowRanges::one(row as u64..row as u64 + 1))).unwrap();
            assert_eq!(texts(&one, 0), wanted[row..=row], "{name}");
        }
    }
}

/// The changes of a delta file are those its statistics count.
fn check_delta(reader: &CFileReader, rows: u64, timestamps: (u64, u64), deletes: u64) {
    const DELETE: u8 = 2;
    assert_eq!(reader.row_count(), Some(rows), "{}", reader.name());
    let found = nth_column(reader.scan(), 1).unwrap();
    let found = found.as_primitive::<UInt64Type>().values();
    let range = (*found.iter().min().unwrap(), *found.iter().max().unwrap());
    assert_eq!(range, timestamps, "{}", reader.name());
    let changes = nth_column(reader.scan(), 2).unwrap();
    let deleted = changes.as_binary_view().iter().flatten().filter(|list| list.first() == Some(&DELETE));
    assert_eq!(deleted.count() as u64, deletes, "{}", reader.name());
}

/// Bare files cut out of containers.
fn check_cfiles(folder: &Path, counts: &mut Counts) {
    let files: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("files.json")).unwrap()).unwrap();
    let on_disk = std::fs::read_dir(folder).unwrap();
    let on_disk =
        on_disk.filter(|entry| entry.as_ref().unwrap().path().extension() == Some("cfile".as_ref()));
    assert_eq!(on_disk.count(), files.as_array().unwrap().len(), "a file that no test knows");
    for file in files.as_array().unwrap() {
        let name = file["file"].as_str().unwrap();
        let source = pilaster_core::source::FileSource::open(folder.join(name)).unwrap();
        let reader = open_sound(Arc::new(source), counts);
        let lines = |field: &str| json_lines(&folder.join("expected").join(file[field].as_str().unwrap()));
        match file["kind"].as_str().unwrap() {
            "column" | "key-index" => {
                let is_float = file["float"].as_bool().unwrap();
                let wanted: Vec<_> =
                    lines("expected").iter().map(|row| expected(row, "v", is_float)).collect();
                let scale = file["scale"].as_u64().unwrap() as usize;
                assert_eq!(texts(&read_all(&reader).unwrap(), scale), wanted, "{name}");
                counts.cells += wanted.len();
            }
            "bloom" => {
                for row in lines("keys") {
                    let key = unhex(row["v"].as_str().unwrap());
                    assert!(reader.bloom_may_contain(&key).unwrap(), "{name}");
                    counts.probes += 1;
                }
            }
            "delta" => {
                let number = |value: &serde_json::Value| value.as_u64().unwrap();
                let timestamps = (number(&file["timestamps"][0]), number(&file["timestamps"][1]));
                check_delta(&reader, number(&file["rows"]), timestamps, number(&file["deletes"]));
            }
            other => panic!("{name}: kind {other}"),
        }
    }
}

/// Cases whose server was killed with changes that only its log knows.
const UNFLUSHED: [&str; 4] = ["delta-mem", "mixed", "wal", "wal-segments"];

fn check_case(case: &Case, counts: &mut Counts) {
    check_listed_blocks(case, counts);
    if !UNFLUSHED.contains(&case.name.as_str()) {
        check_rows(case, counts);
    }
    check_keys(case, counts);
    check_seeks(case, counts);
    check_ranges(case, counts);
}

#[test]
fn the_small_server_folder_reads_as_its_client_did() {
    let mut counts = Counts::default();
    check_case(&Case::open(&testdata().join("tiny")), &mut counts);
    assert_eq!((counts.files, counts.cells, counts.probes), (14, 120, 10));
}

#[test]
fn the_small_array_files_read_as_they_were_written() {
    let mut counts = Counts::default();
    check_arrays(&testdata().join("arrays"), &mut counts);
    assert!(counts.files >= 15, "{counts:?}");
}

#[test]
fn the_small_bare_files_read_as_expected() {
    let mut counts = Counts::default();
    check_cfiles(&testdata().join("cfiles"), &mut counts);
    assert_eq!((counts.files, counts.probes), (15, 900));
    assert!(counts.cells > 200_000, "{counts:?}");
}

#[needs(goldens = "kudu")]
#[test]
fn every_golden_case_reads_as_its_client_did() {
    let root = goldens();
    let mut counts = Counts::default();
    let cases = Case::all(&root);
    for case in &cases {
        check_case(case, &mut counts);
    }
    eprintln!("{counts:?}");
    assert!(cases.len() >= 21, "{}", cases.len());
    assert!(counts.files >= 1370, "{counts:?}");
    assert!(counts.cells >= 1_310_736, "{counts:?}");
    assert!(counts.probes >= 130_000, "{counts:?}");
    assert!(counts.ranges >= 10, "{counts:?}");
}

#[needs(goldens = "kudu")]
#[test]
fn every_golden_array_file_reads_as_it_was_written() {
    let root = goldens();
    let mut counts = Counts::default();
    check_arrays(&root.join("arrays"), &mut counts);
    assert_eq!(counts.files, 78);
}
