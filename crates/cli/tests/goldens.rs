//! Every table of every real Kudu server folder, through `cat -f jsonl` and through `sql`, at every recorded snapshot.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test"
)]

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use pilaster_testing::needs;
use serde_json::{Map, Value};

const MICROS_PER_DAY: i128 = 86_400_000_000;

/// One scan that the real client made.
struct Expected {
    table: String,
    as_of: Option<u64>,
    rows: PathBuf,
    /// Type of each column, as it is now.
    types: HashMap<String, String>,
}

fn cases(root: &Path) -> Vec<PathBuf> {
    let mut cases: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|case| case.join("case.json").is_file() && case.join("fs").is_dir());
    cases.sort();
    cases
}

fn expectations(case: &Path) -> Vec<Expected> {
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let description: Value = serde_json::from_slice(&std::fs::read(case.join("case.json")).unwrap()).unwrap();
    let tables = description["tables"].as_array().unwrap();
    let types_of = |name: &str| -> HashMap<String, String> {
        let table = tables.iter().find(|table| table["name"] == name).unwrap();
        let columns = table["columns"].as_array().unwrap();
        columns.iter().map(|column| (text(&column["name"]), text(&column["type"]))).collect()
    };
    let scan = |name: String, entry: &Value| Expected {
        as_of: entry["timestamp"].as_u64(),
        rows: case.join("expected").join(text(&entry["expected"])),
        types: types_of(&name),
        table: name,
    };
    let latest = tables.iter().map(|table| scan(text(&table["name"]), table));
    let snapshots = description["snapshots"].as_array().into_iter().flatten();
    latest.chain(snapshots.map(|snapshot| scan(text(&snapshot["table"]), snapshot))).collect()
}

/// A row as text and as JSON.
struct Row {
    line: String,
    cells: Map<String, Value>,
}

impl Row {
    fn sort_key(&self) -> String {
        self.cells.values().next().unwrap().to_string()
    }

    /// The text of a number (serde_json itself does not read every number to the last bit).
    fn number(&self, name: &str) -> &str {
        let start = format!("\"{name}\":");
        let text = &self.line[self.line.find(&start).unwrap() + start.len()..];
        text[..text.find([',', '}']).unwrap()].trim().trim_matches('"')
    }
}

fn lines_of(path: &Path) -> Vec<Row> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    parse_lines(&text)
}

fn parse_lines(text: &str) -> Vec<Row> {
    let row = |line: &str| Row { line: line.to_string(), cells: serde_json::from_str(line).unwrap() };
    text.lines().map(row).collect()
}

fn run(folder: &Path, args: &[&str]) -> Result<Vec<Row>, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_pilaster"))
        .arg("-q")
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(parse_lines(&String::from_utf8(output.stdout).unwrap()))
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, by counting from 1 March 0000 in cycles of 400 years.
fn days_of(text: &str) -> i128 {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.trim_start_matches('+')),
    };
    let parts: Vec<i128> = digits.split('-').map(|part| part.parse().unwrap()).collect();
    let [year, month, day] = parts[..] else { panic!("{text}") };
    let year = sign * year - i128::from(month <= 2);
    let (cycle, year_of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    cycle * 146_097 + year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year - 719_468
}

fn micros_of(text: &str) -> i128 {
    let (day, time) = text.trim_end_matches('Z').split_once('T').unwrap();
    let (clock, fraction) = time.split_once('.').unwrap();
    assert_eq!(fraction.len(), 6, "{text}");
    let seconds = clock.split(':').fold(0, |sum, part| sum * 60 + part.parse::<i128>().unwrap());
    days_of(day) * MICROS_PER_DAY + seconds * 1_000_000 + fraction.parse::<i128>().unwrap()
}

fn is_same_float(found: &str, bits: &str, is_double: bool) -> bool {
    let wanted = u64::from_str_radix(bits, 16).unwrap();
    if is_double {
        let (wanted, found) = (f64::from_bits(wanted), found.parse::<f64>().unwrap());
        return wanted.to_bits() == found.to_bits() || (wanted.is_nan() && found.is_nan());
    }
    let (wanted, found) = (f32::from_bits(wanted as u32), found.parse::<f32>().unwrap());
    wanted.to_bits() == found.to_bits() || (wanted.is_nan() && found.is_nan())
}

/// Whether a cell as we print it is the cell the client saw.
fn is_same(found: &Row, wanted: &Row, name: &str, kind: &str) -> bool {
    let (cell, expected) = (&found.cells[name], &wanted.cells[name]);
    if cell.is_null() || expected.is_null() {
        return cell.is_null() && expected.is_null();
    }
    if let Some(bits) = wanted.cells.get(&format!("{name}#bits")).and_then(Value::as_str) {
        return is_same_float(found.number(name), bits, kind == "double");
    }
    match (kind, cell.as_str(), expected.as_i64().map(i128::from)) {
        ("date", Some(text), Some(days)) => days_of(text) == days,
        ("unixtime_micros", Some(text), Some(micros)) => micros_of(text) == micros,
        _ => cell == expected,
    }
}

fn compare(found: &[Row], expected: &Expected, is_ordered: bool) -> Result<(), String> {
    let wanted = lines_of(&expected.rows);
    if found.len() != wanted.len() {
        return Err(format!("{} rows, expected {}", found.len(), wanted.len()));
    }
    let mut found: Vec<_> = found.iter().collect();
    let mut wanted: Vec<_> = wanted.iter().collect();
    if !is_ordered {
        found.sort_by_cached_key(|row| row.sort_key());
        wanted.sort_by_cached_key(|row| row.sort_key());
    }
    for (number, (found, wanted)) in found.into_iter().zip(wanted).enumerate() {
        let names: Vec<_> = wanted.cells.keys().filter(|name| !name.ends_with("#bits")).collect();
        if found.cells.len() != names.len() || !names.iter().all(|name| found.cells.contains_key(*name)) {
            return Err(format!("row {number} has {:?}, expected {names:?}", found.cells.keys()));
        }
        for name in names {
            let kind = expected.types.get(name).map_or("", String::as_str);
            if !is_same(found, wanted, name, kind) {
                let (cell, expected) = (&found.cells[name], &wanted.cells[name]);
                return Err(format!("row {number}, {name} ({kind}): {cell}, expected {expected}"));
            }
        }
    }
    Ok(())
}

#[needs(goldens = "kudu", goldens = "kudu-extra")]
#[test]
fn cat_and_sql_print_what_the_client_saw() {
    let mut scans = 0;
    let mut failures = Vec::new();
    for case in ["kudu", "kudu-extra"].into_iter().flat_map(|name| cases(&pilaster_testing::goldens(name))) {
        for expected in expectations(&case) {
            // Rows of a transaction come in another order from the client than by key.
            let is_ordered = !case.ends_with("txn-wal");
            let as_of = expected.as_of.map(|time| format!("--as-of={time}"));
            let query = format!("SELECT * FROM 'fs#{}'", expected.table);
            let mut cat = vec!["cat", "-f", "jsonl", "--table", &expected.table, "fs"];
            let mut sql = vec!["sql", "-f", "jsonl", &query];
            cat.extend(as_of.as_deref());
            sql.extend(as_of.as_deref());
            for args in [cat, sql] {
                scans += 1;
                let result = run(&case, &args).and_then(|rows| compare(&rows, &expected, is_ordered));
                if let Err(error) = result {
                    failures.push(format!("{} {args:?}: {error}", case.display()));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(scans >= 560, "{scans} scans");
}
