//! Files of an independent implementation, read and compared value by value, and written again byte by byte.
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

use arrow_array::RecordBatch;
use pilaster_core::progress::Silent;
use pilaster_core::source::open_source;
use pilaster_core::{Dataset, ErrorKind, VerifyDepth, widen};
use pilaster_redfile::{RedfileReader, RedfileSchema, RedfileWriter};
use pilaster_testing::needs;
use serde_json::Value;

use support::golden::{Golden, writer_options};
use support::{goldens, memory, one_batch, open, physical, testdata};

/// Files that not every column of which can be read, or that cannot be read at all.
const PARTIAL: [&str; 2] = ["unknown_encoding", "version_2"];
/// Files that another writer would not write the same: things only a reader must know.
const NOT_REPRODUCIBLE: [&str; 6] =
    ["codec_mixed", "unknown_fields", "unknown_page_type", "schema_any_order", "table", "columns"];

fn open_file(golden: &Golden) -> RedfileReader {
    let path = golden.path.to_str().unwrap();
    RedfileReader::open(open_source(path).unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

/// Every value of a file is as expected, with batches of any size; verifying finds nothing.
fn check_rows(golden: &Golden) -> usize {
    let expected = golden.rows().unwrap();
    let reader = open_file(golden);
    assert_eq!(reader.row_count(), Some(expected.len() as u64), "{}", golden.name);
    let elements = reader.redfile_schema().elements().to_vec();
    for batch_size in [1 << 20, 7] {
        let batch = one_batch(reader.scan().batch_size(batch_size)).unwrap_or_else(|error| panic!("{error}"));
        for (number, wanted) in expected.iter().enumerate() {
            let found = physical::row(&elements, batch.columns(), number);
            assert!(physical::same(&found, wanted), "{} row {number}:\n{found}\n{wanted}", golden.name);
        }
    }
    let report = reader.verify(VerifyDepth::Values, &Silent).unwrap();
    assert!(report.findings.is_empty(), "{}: {:?}", golden.name, report.findings);
    assert_eq!(reader.pages().unwrap().is_empty(), expected.is_empty() || elements.len() == 1);
    reader.describe().unwrap();
    reader.column_statistics().unwrap();
    expected.len()
}

/// Written again with the same options, the file is the same to the byte (uncompressed) or reads the same.
fn check_rewrite(golden: &Golden) -> bool {
    let info = golden.info().unwrap();
    let reader = open_file(golden);
    let schema = RedfileSchema::from_file_elements(reader.redfile_schema().elements().to_vec()).unwrap();
    let mut writer = RedfileWriter::try_new_with_schema(Vec::new(), schema, writer_options(&info)).unwrap();
    for group in reader.scan().batch_size(13).plan().unwrap().tasks().unwrap() {
        // Batches need not end where pages do.
        for batch in group.read().unwrap() {
            writer.write(&batch.unwrap()).unwrap();
        }
        writer.end_row_group().unwrap();
    }
    let (bytes, _) = writer.finish().unwrap();
    let is_exact = info["options"]["codec"].as_u64().unwrap_or(0) == 0;
    if is_exact {
        let wanted = golden.bytes();
        let at = bytes.iter().zip(&wanted).position(|(a, b)| a != b);
        assert!(
            bytes == wanted,
            "{}: differs at {at:?}, {} and {} bytes",
            golden.name,
            bytes.len(),
            wanted.len()
        );
    }
    let all = |reader: &RedfileReader| one_batch(reader.scan().batch_size(1 << 20)).unwrap();
    assert_eq!(all(&open(&bytes).unwrap()).columns(), all(&reader).columns(), "{}", golden.name);
    is_exact
}

/// The table that Arrow's own file format holds is the same, schema and metadata included; written again too.
fn check_arrow(golden: &Golden) -> bool {
    let Some(expected) = golden.arrow() else { return false };
    let expected = widened(&expected);
    let reader = open_file(golden);
    let found = widened(&one_batch(reader.scan().batch_size(1 << 20)).unwrap());
    assert_eq!(found.schema(), expected.schema(), "{}", golden.name);
    for (number, (a, b)) in found.columns().iter().zip(expected.columns()).enumerate() {
        assert_eq!(a, b, "{} column {number}", golden.name);
    }
    true
}

/// The same rows with the types in which they leave.
fn widened(batch: &RecordBatch) -> RecordBatch {
    widen::batch(batch, &widen::schema(&batch.schema())).unwrap()
}

fn check_arrow_rewrite(golden: &Golden) -> bool {
    let info = golden.info().unwrap();
    let expected = golden.arrow().unwrap();
    let schema = expected.schema();
    let mut info_without_pairs = info.clone();
    info_without_pairs["options"].as_object_mut().unwrap().remove("kv");
    let mut writer =
        RedfileWriter::try_new(Vec::new(), &schema, writer_options(&info_without_pairs)).unwrap();
    let mut from = 0;
    for rows in info["row_groups"].as_array().unwrap() {
        let rows = rows.as_u64().unwrap() as usize;
        writer.write(&expected.slice(from, rows)).unwrap();
        writer.end_row_group().unwrap();
        from += rows;
    }
    let (bytes, _) = writer.finish().unwrap();
    let is_exact = info["options"]["codec"].as_u64().unwrap_or(0) == 0;
    if is_exact {
        let wanted = golden.bytes();
        let at = bytes.iter().zip(&wanted).position(|(a, b)| a != b);
        assert!(
            bytes == wanted,
            "{}: differs at {at:?}, {} and {} bytes",
            golden.name,
            bytes.len(),
            wanted.len()
        );
    }
    let again = one_batch(open(&bytes).unwrap().scan().batch_size(1 << 20)).unwrap();
    assert_eq!(widened(&again), widened(&expected), "{}", golden.name);
    is_exact
}

/// Looks at every file of a folder; says how many there are of each sort.
fn check_folder(folder: &Path) -> [usize; 4] {
    let mut counts = [0; 4];
    for golden in Golden::all(folder) {
        if PARTIAL.contains(&golden.name.as_str()) {
            continue;
        }
        counts[0] += 1;
        counts[1] += check_rows(&golden);
        counts[2] += usize::from(check_arrow(&golden));
        if !NOT_REPRODUCIBLE.contains(&golden.name.as_str()) && golden.info().is_some() {
            counts[3] += usize::from(check_rewrite(&golden));
        }
    }
    counts
}

#[test]
fn committed_files_read_and_write_as_expected() {
    let counts = check_folder(&testdata());
    assert!(counts[0] >= 5 && counts[1] > 100 && counts[3] >= 3, "{counts:?}");
}

#[needs(goldens = "redfile")]
#[test]
fn every_golden_reads_as_expected_and_is_written_the_same() {
    let root = goldens();
    let counts = check_folder(&root);
    assert_eq!(counts[0], 31, "{counts:?}");
    assert!(counts[1] > 5000 && counts[2] >= 7 && counts[3] >= 18, "{counts:?}");
    let multi = check_folder(&root.join("multi"));
    assert_eq!((multi[0], multi[1]), (2, 133));
    for part in Golden::all(&root.join("multi/parts")) {
        let report = open_file(&part).verify(VerifyDepth::Values, &Silent).unwrap();
        assert!(report.findings.is_empty(), "{}: {:?}", part.name, report.findings);
    }
    let damage = check_folder(&root.join("damage"));
    assert_eq!(damage[0], 5);
}

#[needs(goldens = "redfile")]
#[test]
fn every_arrow_table_survives() {
    let root = goldens();
    let all = Golden::all(&root.join("arrow"));
    assert_eq!(all.len(), 6);
    let mut exact = 0;
    for golden in all {
        assert!(check_arrow(&golden), "{}", golden.name);
        exact += usize::from(check_arrow_rewrite(&golden));
        let report = open_file(&golden).verify(VerifyDepth::Values, &Silent).unwrap();
        assert!(report.findings.is_empty(), "{}: {:?}", golden.name, report.findings);
    }
    assert!(exact >= 1, "{exact} files could be compared byte by byte");
}

#[test]
fn the_document_of_the_dremel_paper_has_the_papers_levels() {
    let golden = Golden { name: "dremel_document".into(), path: testdata().join("dremel_document.red") };
    let reader = open_file(&golden);
    let text = std::fs::read_to_string(golden.path.with_extension("levels.json")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    for (number, path) in reader.redfile_schema().leaf_paths().enumerate() {
        let wanted = &expected[path.join(".")];
        let levels = |name: &str| -> Vec<u8> {
            wanted[name].as_array().unwrap().iter().map(|level| level.as_u64().unwrap() as u8).collect()
        };
        let (def, rep, values) = pilaster_redfile::inspect_levels(&reader, 0, number).unwrap();
        assert_eq!((def, rep), (levels("d"), levels("r")), "{path:?}");
        assert_eq!(values, wanted["values"].as_array().unwrap().len(), "{path:?}");
    }
}

#[needs(goldens = "redfile")]
#[test]
fn a_later_version_is_unsupported_and_not_corrupt() {
    let root = goldens();
    let bytes = std::fs::read(root.join("version_2.red")).unwrap();
    let error = RedfileReader::open(memory("version_2.red", bytes)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("version 2"), "{error}");
}

#[needs(goldens = "redfile")]
#[test]
fn an_unknown_encoding_is_named_and_other_columns_are_read() {
    let root = goldens();
    let golden = Golden { name: "unknown_encoding".into(), path: root.join("unknown_encoding.red") };
    let reader = open_file(&golden);
    let batch = one_batch(reader.scan().project(["a"]).batch_size(1 << 20)).unwrap();
    let expected = golden.rows().unwrap();
    assert_eq!(batch.num_rows(), expected.len());
    for (number, wanted) in expected.iter().enumerate() {
        let found = physical::row(&reader.redfile_schema().elements()[..2], batch.columns(), number);
        assert_eq!(found["a"], wanted["a"]);
    }
    let error = one_batch(reader.scan().project(["b"])).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("encoding") && error.to_string().contains("\"b\""), "{error}");
}
