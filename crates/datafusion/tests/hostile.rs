//! Damaged Parquet files in SQL: rows, or an error in words.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests compute with known values"
)]

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;
use pilaster_core::{Error, ErrorKind, Result};
use pilaster_datafusion::{SqlOptions, SqlSession};

/// How many rows an answer has.
fn count(session: &SqlSession, sql: &str) -> Result<usize> {
    let mut rows = 0;
    for batch in session.sql(sql)? {
        rows += batch.map_err(Error::from)?.num_rows();
    }
    Ok(rows)
}

fn session() -> SqlSession {
    SqlSession::new(SqlOptions::default().with_threads(2)).unwrap()
}

/// DataFusion's reader panics over the first of these, and would take the program with it.
#[test]
fn hostile_parquet_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let hostile: [&[u8]; 3] =
        [b"PAR1\0\0\0\0\0\0\0\0\xff\xff\xff\0PAR1", b"PAR1\0\0\0\0\0\0\0\0\x08\0\0\0PAR1", b"PAR1PAR1"];
    for (number, bytes) in hostile.into_iter().enumerate() {
        let path = folder.path().join(format!("{number}.parquet"));
        std::fs::write(&path, bytes).unwrap();
        let found = count(&session, &format!("SELECT * FROM '{}'", path.display()));
        assert!(found.as_ref().is_err_and(Error::is_damage), "{number}: {found:?}");
    }
}

/// Rows of groups go through tasks of their own, whose panics DataFusion makes errors of: "task 9 panicked with message …".
#[test]
fn a_panic_over_damaged_parquet_is_damage_in_every_task() {
    let rows = 0..200i64;
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from_iter_values(rows.clone())) as ArrayRef),
        (
            "m",
            Arc::new(StringArray::from_iter_values(rows.map(|row| format!("text {}", row % 7)))) as ArrayRef,
        ),
    ])
    .unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let whole = writer.into_inner().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let footer_start =
        whole.len() - 8 - u32::from_le_bytes(*whole[..whole.len() - 4].last_chunk().unwrap()) as usize;
    let (mut refused, mut wrong) = (0, Vec::new());
    for at in footer_start..whole.len() {
        for other in [whole[at] ^ 0x10, 0x80, 0x7f] {
            let mut bytes = whole.clone();
            bytes[at] = other;
            let path = folder.path().join(format!("{at}-{other}.parquet"));
            std::fs::write(&path, bytes).unwrap();
            for query in ["SELECT m, count(*) FROM % GROUP BY m", "SELECT a.m FROM % a JOIN % b ON a.m = b.m"]
            {
                let query = query.replace('%', &format!("'{}'", path.display()));
                if let Err(error) = count(&session, &query) {
                    refused += 1;
                    if error.to_string().contains("panicked") {
                        wrong.push(format!("byte {at} = {other:#04x}: {error}"));
                    }
                }
            }
        }
    }
    assert!(refused > 0);
    assert!(wrong.is_empty(), "{} of {refused}:\n{}", wrong.len(), wrong.join("\n"));
}

/// DataFusion subtracts from no rows here, which ends builds that check for it; the file has nothing to do with it.
#[test]
fn a_panic_of_the_engine_is_not_blamed_on_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sound.parquet").display().to_string();
    let session = session();
    assert_eq!(count(&session, &format!("COPY (SELECT 1 AS id UNION SELECT 2) TO '{path}'")).unwrap(), 1);
    let rows = format!("(SELECT id FROM '{path}' ORDER BY id LIMIT 3)");
    let found =
        count(&session, &format!("SELECT last_value(id ORDER BY id) FILTER (WHERE id > 9) FROM {rows}"));
    let is_right =
        found.as_ref().map_or_else(|error| matches!(error.kind(), ErrorKind::Internal(_)), |rows| *rows == 1);
    assert!(is_right, "{found:?}");
}

/// DataFusion waits for pipes, and takes a device for a table without rows.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_no_external_table() {
    use std::process::Command;

    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir(path("inside")).unwrap();
    std::fs::write(path("a.csv"), "a\n1\n2\n").unwrap();
    for name in ["a.fifo", "inside/x.csv", "x.parquet"] {
        assert!(Command::new("mkfifo").arg(path(name)).status().unwrap().success());
    }
    let create = |table: &str, format: &str, location: &str| {
        session
            .sql(&format!("CREATE EXTERNAL TABLE {table} STORED AS {format} LOCATION '{location}'"))
            .map(|_| ())
    };
    for location in [path("a.fifo"), path("inside"), path("*.fifo"), "/dev/zero".to_string()] {
        for format in ["CSV", "JSON", "PARQUET"] {
            let refused = create("t", format, &location).unwrap_err().to_string();
            assert!(refused.contains("is a pipe, a device or a socket"), "{format} {location}: {refused}");
        }
    }
    create("t", "CSV", &path("a.csv")).unwrap();
    assert_eq!(count(&session, "SELECT * FROM t").unwrap(), 2);
    // One of the files of a pattern.
    let batch = RecordBatch::try_from_iter([("a", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(path("y.parquet")).unwrap(), batch.schema(), None)
            .unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let refused = count(&session, &format!("SELECT * FROM '{}'", path("*.parquet"))).unwrap_err().to_string();
    assert!(refused.contains("x.parquet"), "{refused}");
    assert_eq!(count(&session, &format!("SELECT * FROM '{}'", path("y*.parquet"))).unwrap(), 1);
}
