//! `sql` with statements from the command line, a file and a pipe.
#![allow(
    dead_code,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests compute with known values, and share helpers that not all of them use"
)]

#[macro_use]
mod common;

use std::sync::Arc;

use common::{Folder, settings};
use insta_cmd::assert_cmd_snapshot;
use pilaster_datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use pilaster_datafusion::arrow::ipc::writer::StreamWriter;

snapshots! {
    sql_gives_json_lines_in_a_pipe: ["sql", "SELECT * FROM 'people.csv' WHERE id > 2"];
    sql_as_a_table: ["sql", "--format", "table", "SELECT name, score FROM 'people.parquet' ORDER BY score DESC NULLS LAST"];
    sql_with_f_and_the_name_of_a_format: ["sql", "-f", "csv", "SELECT count(*) AS n, max(id) AS last FROM 'people.csv'"];
    sql_joins_formats: ["sql", "SELECT a.id, b.name FROM 'people.csv' a JOIN 'people.parquet' b ON a.id = b.id WHERE a.id < 3 ORDER BY a.id"];
    sql_of_several_statements: ["sql", "CREATE VIEW v AS SELECT id FROM 'people.csv'; SELECT sum(id) AS s FROM v"];
    sql_explains_what_is_pushed_down: ["sql", "--format", "table", "EXPLAIN SELECT name FROM 'people.csv' WHERE id > 3"];
    sql_of_schema: ["sql", "SELECT * FROM pilaster_schema('people.parquet')"];
    sql_of_metadata: ["sql", "SELECT path, fact, value FROM pilaster_metadata('people.csv')"];
    sql_of_pages: ["sql", "SELECT \"column\", kind, encoding FROM pilaster_pages('people.parquet')"];
    sql_of_a_missing_file: ["sql", "SELECT * FROM 'nobody.parquet'"];
    sql_of_a_missing_table: ["sql", "SELECT * FROM nobody"];
    sql_of_a_damaged_file: ["sql", "SELECT * FROM 'broken/cut.parquet'"];
    sql_that_is_none: ["sql", "SELEC 1"];
    sql_that_cannot_be_computed: ["sql", "SELECT 1/0"];
    sql_of_a_table_that_is_not_there: ["sql", "SELECT * FROM './people.csv#orders'"];
    sql_from_two_places: ["sql", "-f", "report.sql", "SELECT 1"];
}

#[test]
fn a_prompt_understands_its_words_from_a_pipe() {
    let folder = Folder::new();
    let script = "\
CREATE VIEW grown AS
  SELECT id, name FROM 'people.csv'
  WHERE id > 3; -- two rows
\\d
\\d grown
.mode csv
\\timing
SELECT * FROM grown;
.mode nope
SELECT 'not reached';
";
    settings().bind(|| {
        assert_cmd_snapshot!("prompt_from_a_pipe", folder.run(&["sql"]).pass_stdin(script));
        assert_cmd_snapshot!("prompt_leaves", folder.run(&["sql"]).pass_stdin("\\?\n\\q\nSELECT 1;"));
        assert_cmd_snapshot!(
            "prompt_without_a_last_semicolon",
            folder.run(&["sql"]).pass_stdin("SELECT\n1 AS one")
        );
        assert_cmd_snapshot!("prompt_with_an_unknown_word", folder.run(&["sql"]).pass_stdin("\\x"));
    });
}

#[test]
fn a_file_of_statements_writes_to_a_file() {
    let folder = Folder::new();
    folder.write("report.sql", "SELECT id FROM 'people.csv' WHERE score > 2;");
    let output = folder.run(&["sql", "-f", "report.sql", "-o", "report.csv"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(folder.read("report.csv"), "id\n3\n5\n");
    let output =
        folder.run(&["sql", "COPY (SELECT id FROM 'people.csv') TO 'ids.parquet'"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "{\"count\":5}\n");
    let output = folder.run(&["count", "ids.parquet"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "5\n");
}

#[test]
fn the_file_of_o_gets_the_rows_of_the_last_query_and_no_count_of_a_copy() {
    let folder = Folder::new();
    for copy in [
        "COPY (SELECT 2 AS b) TO 'x.csv'",
        "COPY (SELECT 2 AS b, 3 AS c) TO 'parts/' STORED AS CSV PARTITIONED BY (c)",
    ] {
        let query = format!("SELECT 0 AS z; SELECT 1 AS a; {copy}");
        let output = folder.run(&["sql", "-o", "o.csv", &query]).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        assert_eq!(folder.read("o.csv"), "a\n1\n", "{copy}");
    }
    assert_eq!(folder.read("x.csv"), "b\n2\n");
}

#[test]
fn a_stream_that_breaks_off_is_no_shorter_table() {
    let folder = Folder::new();
    let batch =
        RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from_iter(0..100)) as ArrayRef)]).unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    for start in [0, 50] {
        stream.write(&batch.slice(start, 50)).unwrap();
    }
    let bytes = stream.into_inner().unwrap();
    folder.write("cut.arrows", &bytes[..bytes.len() - 100]);
    for (query, code) in [
        ("SELECT count(*) FROM 'cut.arrows'", 1),
        ("SELECT max(id) FROM 'cut.arrows' WHERE id < 10", 1),
        ("SELECT id FROM 'cut.arrows' WHERE id % 7 = 3", 1),
        // Rows that are there are enough.
        ("SELECT id FROM 'cut.arrows' LIMIT 5", 0),
    ] {
        let output = folder.run(&["sql", query]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{query}: {output:?}");
    }
    let output = folder.run(&["convert", "cut.arrows", "out/"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!folder.path("out/_SUCCESS").exists());
}

#[test]
fn a_copy_has_the_texts_of_every_other_command() {
    let folder = Folder::new();
    let query = "SELECT CAST('NaN' AS DOUBLE) AS x, CAST(1.5 AS DECIMAL(5,2)) AS d, '' AS t, NULL AS n";
    let copy = |target: &str| folder.run(&["sql", &format!("COPY ({query}) TO {target}")]).output().unwrap();
    assert!(copy("'x.jsonl'").status.success());
    assert_eq!(folder.read("x.jsonl"), "{\"x\":\"NaN\",\"d\":\"1.50\",\"t\":\"\",\"n\":null}\n");
    assert!(copy("'x' STORED AS CSV").status.success());
    assert_eq!(folder.read("x"), "x,d,t,n\nNaN,1.50,\"\",\n");
    for refused in ["'x.unknown'", "'missing/x.csv'", "'x.cfiles'"] {
        assert_eq!(copy(refused).status.code(), Some(2), "{refused}");
    }
    // An array of JSON and an empty text come back.
    assert!(copy("'x.json'").status.success());
    for (table, expected) in [("x.json", "\"\""), ("x", "\"\"")] {
        let output = folder.run(&["sql", &format!("SELECT t FROM '{table}'")]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{{\"t\":{expected}}}\n"), "{table}");
    }
}

/// Neither the stack of the first thread nor a panic of a library reaches the user.
#[test]
fn long_statements_and_hostile_files_end_with_one_line() {
    let folder = Folder::new();
    folder.write("hostile.parquet", b"PAR1\0\0\0\0\0\0\0\0\xff\xff\xff\0PAR1");
    let many = |count: usize, word: &str, part: &str| vec![part; count].join(word);
    let nested = |count: usize, open: &str, close: &str| open.repeat(count) + "1" + &close.repeat(count);
    let numbered = |count: usize, part: &str| {
        (0..count).map(|number| format!("{part}{number}")).collect::<Vec<_>>().join(", ")
    };
    let from = "FROM 'people.csv'";
    for (sql, code) in [
        (format!("SELECT count(*) {from} WHERE {}", many(5000, " OR ", "id = 7")), 0),
        (many(150, " UNION ", "SELECT 1"), 0),
        (many(1000, " UNION ALL ", "SELECT 1"), 0),
        (format!("SELECT 1{}", " IS NULL".repeat(400)), 0),
        (format!("SELECT {}", nested(40, "CASE WHEN true THEN ", " END")), 0),
        (many(5000, " UNION ", "SELECT 1"), 2),
        (many(5000, " EXCEPT ", "SELECT 1"), 2),
        (format!("SELECT {}", many(5000, "+", "1")), 2),
        (format!("SELECT 1{}", " IS NULL".repeat(5000)), 2),
        (format!("SELECT 1{}", " LIKE 'a'".repeat(5000)), 2),
        (format!("SELECT {}'1'", "INTERVAL ".repeat(5000)), 2),
        (format!("{}SELECT 1", "EXPLAIN ".repeat(5000)), 2),
        (format!("SELECT {}", nested(5000, "(", ")")), 2),
        (format!("SELECT {}", nested(5000, "abs(", ")")), 2),
        (format!("SELECT {}", nested(5000, "CASE WHEN true THEN ", " END")), 2),
        (format!("SELECT {}true", "NOT ".repeat(60)), 2),
        (format!("SELECT {}", nested(30, "(SELECT ", ")")), 2),
        (format!("SELECT count(*) FROM {}", many(1000, ", ", "'people.csv'")), 2),
        (format!("SELECT count(*) {from} GROUP BY CUBE({})", many(40, ", ", "id + 1")), 2),
        (format!("SELECT 1 {from} ORDER BY {}", numbered(150, "id + ")), 0),
        (format!("SELECT 1 {from} ORDER BY {}", numbered(5000, "id + ")), 2),
        (format!("SELECT sum(1) OVER (ORDER BY {}) {from}", numbered(5000, "id + ")), 2),
        (format!("SELECT {} {from}", numbered(5000, "count(*) OVER () + ")), 2),
        (format!("SELECT {} {from}", numbered(50_000, "")), 2),
        (format!("SELECT 1 {from} GROUP BY {}", numbered(50_000, "id + ")), 2),
        ("SELECT * FROM 'hostile.parquet'".to_string(), 1),
        ("SELECT count(*) FROM 'host*.parquet'".to_string(), 1),
    ] {
        folder.write("long.sql", &sql);
        let done = folder.run(&["sql", "-f", "long.sql"]).env("RUST_BACKTRACE", "1").output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let shown: String = sql.chars().take(80).collect();
        assert_eq!(done.status.code(), Some(code), "{shown}: {said}");
        assert_eq!(said.lines().count(), usize::from(code != 0), "{shown}: {said}");
        assert!(code == 0 || said.starts_with("pilaster: "), "{shown}: {said}");
    }
}
