//! Every golden segment and tablet of Doris, through `cat -f jsonl` and through `sql`.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test"
)]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use pilaster_testing::needs;
use serde_json::{Value, json};

/// What to print, and the rows it must give.
struct Case {
    args: Vec<String>,
    data: PathBuf,
    schema: Value,
    rows: PathBuf,
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn json_file(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn segments(root: &Path) -> Vec<Case> {
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "dat");
    let case = |data: PathBuf, schema: PathBuf| {
        let plain = data.with_extension("rows.jsonl");
        Case {
            args: vec!["--hidden".into(), "--schema".into(), schema.display().to_string()],
            rows: if plain.is_file() { plain } else { data.with_extension("rows.jsonl.gz") },
            schema: json_file(&schema),
            data,
        }
    };
    let folders = sorted(&root.join("segment")).into_iter().flat_map(|folder| {
        let schema = folder.join("schema.json");
        sorted(&folder).into_iter().filter(is_segment).map(move |data| (data, schema.clone()))
    });
    let old = sorted(&root.join("v012")).into_iter().filter(is_segment).map(|data| {
        let schema = data.with_extension("schema.json");
        (data, schema)
    });
    folders.chain(old).map(|(data, schema)| case(data, schema)).collect()
}

fn tablets(root: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for folder in sorted(&root.join("tablet")) {
        for rows in sorted(&folder) {
            let Some(state) = rows.file_name().unwrap().to_str().unwrap().strip_suffix(".rows.jsonl") else {
                continue;
            };
            let version = state.strip_prefix("as_of_").map(|version| format!("--as-of={version}"));
            cases.push(Case {
                args: version.into_iter().collect(),
                data: folder.clone(),
                schema: json_file(&folder.join("schema.json")),
                rows: rows.clone(),
            });
        }
    }
    cases
}

fn json_lines(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).unwrap();
    let mut text = String::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn run(args: &[String]) -> Result<Vec<Value>, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_pilaster")).arg("-q").args(args).output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8(output.stdout).unwrap();
    Ok(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Whether a value as we print it is the expected one, which lists the fields of a struct without their names, the entries of
/// a map as pairs, bytes as `{"$hex": …}` and documents as JSON.
fn is_same(found: &Value, expected: &Value, column: &Value) -> bool {
    let children = column["children"].as_array();
    let child = |number: usize| children.and_then(|all| all.get(number)).unwrap_or(&Value::Null);
    match (found, expected) {
        (Value::Number(found), Value::Number(expected)) => {
            let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
            found == expected || (column["type"] == "FLOAT" && found as f32 == expected as f32)
        }
        (Value::String(found), Value::Object(expected)) if expected.contains_key("$hex") => {
            expected["$hex"] == json!(found)
        }
        (Value::String(text), expected)
            if ["JSONB", "VARIANT"].iter().any(|kind| column["type"] == *kind) =>
        {
            serde_json::from_str::<Value>(text).is_ok_and(|found| found == *expected)
        }
        (Value::String(found), Value::String(expected)) => {
            let is_time =
                ["DATETIME", "DATETIMEV2", "TIMESTAMPTZ"].iter().any(|kind| column["type"] == *kind);
            if !is_time {
                return found == expected;
            }
            let mut time = expected.replace("+00:00", "Z").replace(' ', "T");
            if !time.contains('.') {
                time.push_str(".000000");
            }
            *found == time
        }
        (Value::Object(found), Value::Array(expected)) => {
            let names: Vec<_> =
                children.into_iter().flatten().map(|child| child["name"].as_str().unwrap()).collect();
            names.len() == expected.len()
                && names
                    .iter()
                    .zip(expected)
                    .enumerate()
                    .all(|(at, (name, value))| is_same(&found[*name], value, child(at)))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| match (found.get("key"), expected) {
                    (Some(key), Value::Array(pair))
                        if column["type"] == "MAP" || column["type"] == "AGG_STATE" =>
                    {
                        is_same(key, &pair[0], child(0)) && is_same(&found["value"], &pair[1], child(1))
                    }
                    _ => is_same(found, expected, child(0)),
                })
        }
        (found, expected) => found == expected,
    }
}

fn compare(mut found: Vec<Value>, case: &Case, is_ordered: bool) -> Result<usize, String> {
    let mut wanted = json_lines(&case.rows);
    if found.len() != wanted.len() {
        return Err(format!("{} rows, expected {}", found.len(), wanted.len()));
    }
    let columns = case.schema["columns"].as_array().unwrap();
    if !is_ordered {
        let keys: Vec<_> = columns.iter().filter(|column| column["is_key"] == true).collect();
        let key = |row: &Value| {
            keys.iter().map(|column| row[column["name"].as_str().unwrap()].to_string()).collect::<Vec<_>>()
        };
        found.sort_by_cached_key(key);
        wanted.sort_by_cached_key(key);
    }
    for (number, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        let (found, wanted) = (found.as_object().unwrap(), wanted.as_object().unwrap());
        if found.keys().ne(wanted.keys()) {
            return Err(format!("row {number} has {:?}, expected {:?}", found.keys(), wanted.keys()));
        }
        for (name, expected) in wanted {
            let column = columns.iter().find(|column| column["name"] == **name).unwrap_or(&Value::Null);
            if !is_same(&found[name], expected, column) {
                return Err(format!(
                    "row {number}, {name} ({}): {}, expected {expected}",
                    column["type"], found[name]
                ));
            }
        }
    }
    Ok(found.len())
}

#[needs(goldens = "doris")]
#[test]
fn cat_and_sql_print_the_rows_of_every_segment_and_tablet() {
    let root = pilaster_testing::goldens("doris");
    let (mut runs, mut rows, mut failures) = (0, 0, Vec::new());
    let cases = segments(&root).into_iter().map(|case| (case, true));
    // Rows that are one by key come in its order; of others Doris promises none.
    let is_keyed = |case: &Case| !case.data.ends_with("dup_delete_predicate");
    let tablets =
        tablets(&root).into_iter().map(|case| (is_keyed(&case), case)).map(|(keyed, case)| (case, keyed));
    for (case, is_ordered) in cases.chain(tablets) {
        let data = case.data.display().to_string();
        let words = |words: &[&str]| {
            words.iter().map(ToString::to_string).chain(case.args.clone()).collect::<Vec<_>>()
        };
        for args in [
            words(&["cat", "-f", "jsonl", &data]),
            words(&["sql", "-f", "jsonl", &format!("SELECT * FROM '{data}'")]),
        ] {
            runs += 1;
            match run(&args).and_then(|found| compare(found, &case, is_ordered)) {
                Ok(count) => rows += count,
                Err(error) => failures.push(format!("{data} {args:?}: {error}")),
            }
        }
    }
    eprintln!("{runs} runs, {rows} rows");
    assert!(failures.is_empty(), "{} of {runs}:\n{}", failures.len(), failures.join("\n"));
    assert!(runs >= 2 * (113 + 10), "{runs} runs");
}
