//! Files of this writer, read by the real Kudu.
//!
//! Kudu's own tool (`kudu fs dump cfile`) reads header, footer, indexes and every row of each file and prints the rows;
//! they must be the rows that were written.
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

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Float64Array, Int64Array, StringArray};
use arrow_schema::Field;
use pilaster_kudu::cfile::{CFileWriterOptions, Compression, Encoding, KuduType, Version};

use support::columns::{Pattern, ascending};
use support::printed::{self, TYPES, values};
use support::write;

/// A file and the rows it must hold.
struct Written {
    path: PathBuf,
    rows: Vec<String>,
}

/// The files of one test, in a folder of their own.
struct Matrix {
    folder: tempfile::TempDir,
    files: Vec<Written>,
}

impl Matrix {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), files: Vec::new() }
    }

    fn add(
        &mut self,
        name: &str,
        data_type: KuduType,
        array: &ArrayRef,
        nullable: bool,
        options: CFileWriterOptions,
    ) {
        let path = self.folder.path().join(format!("{:04}-{name}.cfile", self.files.len()));
        let field = Field::new("value", array.data_type().clone(), nullable);
        let bytes = write(&field, &[Arc::clone(array)], options.with_data_type(data_type)).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let rows = printed::column(data_type, array);
        self.files.push(Written { path, rows });
    }

    /// Lets Kudu read every file and compares what it prints.
    fn check(&self) {
        let output = printed::run_kudu("kudu-accepts-cfile", self.files.iter().map(|file| &file.path));
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code < 2), "the tool did not run: {errors}");
        let mut rest = text.as_ref();
        let mut failures = Vec::new();
        for file in &self.files {
            match rest.split_once(&format!("ACCEPTED {}\n", file.path.display())) {
                Some((printed, after)) => {
                    rest = after;
                    failures.extend(difference(&file.path, printed, &file.rows));
                }
                None => {
                    let line = text.lines().find(|line| line.contains(&*file.path.to_string_lossy()));
                    failures.push(line.unwrap_or("a file the tool says nothing about").to_string());
                }
            }
        }
        assert!(
            failures.is_empty(),
            "{} of {} files:\n{}",
            failures.len(),
            self.files.len(),
            failures.join("\n")
        );
        eprintln!("{} files accepted by Kudu", self.files.len());
    }
}

/// What differs between the printed rows and the expected ones.
fn difference(path: &Path, printed: &str, rows: &[String]) -> Option<String> {
    let lines: Vec<_> = printed.lines().collect();
    let Some(start) = lines.len().checked_sub(rows.len() + 1) else {
        return Some(format!("{}: {} lines for {} rows", path.display(), lines.len(), rows.len()));
    };
    let found = &lines[start + 1..];
    if !lines[start].is_empty() {
        return Some(format!("{}: not {} rows", path.display(), rows.len()));
    }
    let row = found.iter().zip(rows).position(|(found, wanted)| found != wanted)?;
    Some(format!("{}: row {row}: expected {:?}, found {:?}", path.display(), rows[row], found[row]))
}

#[test]
#[ignore = "runs the real Kudu tool, which is downloaded once (kudu-accepts-cfile in PILASTER_TOOLS)"]
fn kudu_reads_every_type_encoding_and_codec() {
    let mut matrix = Matrix::new();
    for data_type in TYPES {
        for &encoding in data_type.encodings().iter().filter(|encoding| **encoding != Encoding::GroupVarint) {
            for &compression in Compression::ALL {
                for nulls in [0, 30] {
                    let pattern = if nulls == 0 { Pattern::Random } else { Pattern::Runs };
                    let array = values(data_type, pattern, 300, nulls);
                    let options = CFileWriterOptions::default()
                        .with_encoding(encoding)
                        .with_compression(compression)
                        .with_block_size_bytes(512);
                    let name = format!("{data_type}-{encoding}-{compression}-{nulls}");
                    matrix.add(&name, data_type, &array, nulls > 0, options);
                }
            }
        }
    }
    assert!(matrix.files.len() > 350, "{}", matrix.files.len());
    matrix.check();
}

#[test]
#[ignore = "runs the real Kudu tool, which is downloaded once (kudu-accepts-cfile in PILASTER_TOOLS)"]
fn kudu_reads_keys_deep_indexes_old_versions_and_odd_values() {
    let mut matrix = Matrix::new();
    let small = || CFileWriterOptions::default().with_block_size_bytes(512);

    for data_type in TYPES.into_iter().filter(|data_type| data_type.can_be_key()) {
        let rows = match data_type.physical() {
            pilaster_kudu::cfile::Physical::Fixed(1) => 200,
            _ => 3000,
        };
        let array = ascending(&values(data_type, Pattern::Random, rows, 0));
        for &encoding in data_type.encodings().iter().filter(|encoding| **encoding != Encoding::GroupVarint) {
            for index_bytes in [200, 32_768] {
                let options = small()
                    .with_encoding(encoding)
                    .with_value_index(true)
                    .with_index_block_size_bytes(index_bytes);
                matrix.add(&format!("key-{data_type}-{encoding}"), data_type, &array, false, options);
            }
        }
    }

    for (data_type, encoding) in [
        (KuduType::Int32, Encoding::BitShuffle),
        (KuduType::Int64, Encoding::Rle),
        (KuduType::Bool, Encoding::Plain),
        (KuduType::String, Encoding::Dict),
        (KuduType::Binary, Encoding::Prefix),
        (KuduType::Double, Encoding::Plain),
    ] {
        for nulls in [0, 40] {
            let array = values(data_type, Pattern::Ascending, 2000, nulls);
            for &compression in Compression::ALL {
                let options = small().with_encoding(encoding).with_compression(compression);
                for (name, options) in [
                    ("version-1", options.clone().with_version(Version::V1)),
                    ("no-checksums", options.clone().with_checksums(false)),
                    ("deep", options.with_index_block_size_bytes(60)),
                ] {
                    matrix.add(&format!("{name}-{data_type}"), data_type, &array, nulls > 0, options);
                }
            }
        }
    }

    for data_type in TYPES {
        let is_ranged = matches!(data_type, KuduType::Date | KuduType::UnixtimeMicros);
        let pattern = if is_ranged { Pattern::Constant } else { Pattern::Extremes };
        for &encoding in data_type.encodings().iter().filter(|encoding| **encoding != Encoding::GroupVarint) {
            for (name, rows, nulls) in [("extremes", 2500, 10), ("one-row", 1, 0), ("all-null", 5000, 100)] {
                let array = values(data_type, pattern, rows, nulls);
                let options = CFileWriterOptions::default().with_encoding(encoding);
                matrix.add(&format!("{name}-{data_type}-{encoding}"), data_type, &array, true, options);
            }
        }
    }

    let words = |count: usize, rows: usize| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("w{}", row * 7919 % count))))
    };
    let dict = || CFileWriterOptions::default().with_encoding(Encoding::Dict);
    matrix.add("dictionary-1-byte", KuduType::String, &words(256, 3000), false, dict());
    matrix.add("dictionary-2-bytes", KuduType::String, &words(257, 3000), false, dict());
    let large = dict().with_block_size_bytes(4 << 20);
    matrix.add("dictionary-4-bytes", KuduType::String, &words(70_000, 140_000), false, large);
    matrix.add(
        "dictionary-overflow",
        KuduType::String,
        &words(900, 5000),
        false,
        dict().with_block_size_bytes(2048),
    );

    let odd: ArrayRef = Arc::new(BinaryArray::from_iter_values([
        &b""[..],
        b"\0",
        b"\0\0\x01",
        b"",
        b"\xff\xfe",
        b"tab\tnewline\nquote\"'\\",
        &[b'x'; 5000],
        b"a",
        b"ab",
    ]));
    let text: ArrayRef =
        Arc::new(StringArray::from_iter_values(["", "\0", "\0\0a", "", "größe", "\t\n\"'\\", "日本"]));
    for &encoding in KuduType::Binary.encodings() {
        matrix.add("odd-bytes", KuduType::Binary, &odd, false, small().with_encoding(encoding));
        matrix.add("odd-text", KuduType::String, &text, false, small().with_encoding(encoding));
    }

    let many: ArrayRef = Arc::new(Int64Array::from_iter_values((0..200_000).map(|row| row * 3 - 1000)));
    for &encoding in KuduType::Int64.encodings() {
        let options =
            small().with_encoding(encoding).with_value_index(true).with_index_block_size_bytes(4096);
        matrix.add("many-rows", KuduType::Int64, &many, false, options);
    }
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5, -0.25, 1024.0, -3.0, 0.0]));
    matrix.add("floats", KuduType::Double, &floats, false, CFileWriterOptions::default());
    matrix.check();
}
