//! Random statements, conditions and arguments: whatever is asked, the program answers or says in words why not.
//!
//! For long: `PILASTER_WORDS_FUZZ=100000 PILASTER_WORDS_SEED=2 cargo test -p pilaster-cli --test words_fuzz -- --nocapture`
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

use std::process::Stdio;
use std::time::{Duration, Instant};

use common::Folder;

/// No call over a table of a few rows may take longer, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Numbers that follow from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        // https://prng.di.unimi.it/splitmix64.c, in our words: a counter, mixed.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % end.max(1)
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "'people.csv'",
    "'people.parquet'",
    "'nobody.*'",
    "'.'",
    "id",
    "name",
    "score",
    "*",
    ",",
    "(",
    ")",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "=",
    "<>",
    "<",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "||",
    "::",
    "1",
    "0",
    "-1",
    "1e400",
    "''",
    "'a%'",
    "9223372036854775808",
    "-9999999999999999999",
    "0.1",
    "99999999999999999999999999999999999999999",
    "IN",
    "BETWEEN",
    "LIKE",
    "IS",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "CAST(",
    "AS",
    "INT",
    "DECIMAL(38,38)",
    "TIMESTAMP",
    "DATE",
    "'9999-12-31'",
    "INTERVAL",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "LIMIT",
    "OFFSET",
    "DISTINCT",
    "UNION",
    "EXCEPT",
    "JOIN",
    "ON",
    "OVER",
    "sum(",
    "count(*)",
    "max(",
    "abs(",
    "date_trunc('year',",
    "substr(",
    "repeat('a',",
    "array_agg(",
    "unnest(",
    "EXISTS",
    "WITH",
    "EXPLAIN",
    "COPY",
    "TO",
    "VALUES",
    "[",
    "]",
    ";",
    "--",
    "/*",
    "\"",
    "'",
    "$1",
    "\\",
    "é",
    "\u{0}",
    "SET",
    "SHOW",
    "CREATE VIEW v AS",
];

const STATEMENTS: &[&str] = &[
    "SELECT id, name FROM 'people.csv' WHERE id > 2 ORDER BY name DESC LIMIT 3",
    "SELECT count(*), sum(score), max(name) FROM 'people.parquet' WHERE NOT (id IN (1, 2, NULL) OR score BETWEEN 0.5 AND 9)",
    "SELECT a.id, b.name FROM 'people.csv' a LEFT JOIN 'people.parquet' b ON a.id = b.id WHERE b.name LIKE 'a%'",
    "SELECT name, row_number() OVER (PARTITION BY id % 2 ORDER BY score) FROM 'people.parquet'",
    "WITH t AS (SELECT id FROM 'people.csv' UNION ALL SELECT id FROM 'people.parquet') SELECT id, count(*) FROM t GROUP BY id HAVING count(*) > 1",
    "SELECT CASE WHEN id > 1 THEN CAST(score AS DECIMAL(9, 2)) ELSE 0 END, date_trunc('day', TIMESTAMP '2020-01-01') FROM 'people.parquet'",
    "id > 2 AND (name LIKE 'a%' OR score IS NULL) AND id NOT IN (7, 8)",
];

const ARGUMENTS: &[&str] = &[
    "cat",
    "head",
    "tail",
    "sample",
    "count",
    "schema",
    "meta",
    "pages",
    "stats",
    "tree",
    "ls",
    "verify",
    "sql",
    "convert",
    "people.csv",
    "people.parquet",
    ".",
    "nobody",
    "",
    "*",
    "-",
    "--",
    "-w",
    "id > 1",
    "-c",
    "id,name",
    "-n",
    "3",
    "-1",
    "--rows",
    "0..2",
    "2..0",
    "..",
    "18446744073709551616",
    "--format",
    "json",
    "table",
    "--table",
    "x",
    "--schema",
    "--json",
    "--no-checksums",
    "--depth",
    "values",
    "--as-of",
    "9999-12-31",
    "--segment",
    "0",
    "--quiet",
    "--memory",
    "1",
    "64M",
    "--help",
    "\u{fffd}",
    "--overwrite",
    "-o",
    "out.parquet",
    "out.csv",
];

/// A statement with words put in, left out, doubled or nested; or nothing but words.
fn statement(chance: &mut Chance) -> String {
    if chance.below(4) == 0 {
        return (0..1 + chance.below(25)).map(|_| chance.of(WORDS)).collect::<Vec<_>>().join(" ");
    }
    let mut words: Vec<String> = chance.of(STATEMENTS).split(' ').map(ToString::to_string).collect();
    for _ in 0..1 + chance.below(4) {
        let at = chance.below(words.len());
        match chance.below(6) {
            0 => words.insert(at, chance.of(WORDS).to_string()),
            1 => words[at] = chance.of(WORDS).to_string(),
            2 if words.len() > 1 => drop(words.remove(at)),
            3 => words[at] = format!("({})", words[at]),
            4 => {
                let count = [2, 50, 3000][chance.below(3)];
                words[at] = vec![words[at].as_str(); count].join([" ", "", " + ", " OR "][chance.below(4)]);
            }
            _ => words[at] = words[at].chars().rev().collect(),
        }
    }
    words.join(" ")
}

#[test]
fn every_call_is_answered_or_refused_in_words() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (calls, seed) = (number("PILASTER_WORDS_FUZZ", 150), number("PILASTER_WORDS_SEED", 1));
    let folder = Folder::new();
    folder.write("words.sql", "");
    for call in 0..calls {
        let mut chance = Chance(seed.wrapping_mul(1 << 40).wrapping_add(call << 8));
        let args: Vec<String> = match chance.below(5) {
            0 => (0..1 + chance.below(6)).map(|_| chance.of(ARGUMENTS).to_string()).collect(),
            1 => vec!["count".into(), "people.parquet".into(), "-w".into(), statement(&mut chance)],
            _ => {
                folder.write("words.sql", statement(&mut chance));
                vec!["sql".into(), "-f".into(), "words.sql".into()]
            }
        };
        // Not what a command line can carry.
        if args.iter().any(|arg| arg.contains('\u{0}') || arg.len() > 100_000) {
            continue;
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = folder.run(&args);
        command.env("RUST_BACKTRACE", "1").stdin(Stdio::null());
        let (out, err) = (folder.path("out.txt"), folder.path("err.txt"));
        command.stdout(std::fs::File::create(&out).unwrap()).stderr(std::fs::File::create(&err).unwrap());
        let started = Instant::now();
        let mut child = command.spawn().unwrap();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if started.elapsed() > PATIENCE {
                child.kill().unwrap();
                panic!("call {call} of seed {seed} does not end: {args:?}\n{}", folder.read("words.sql"));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let said = String::from_utf8_lossy(&std::fs::read(&err).unwrap()).to_string();
        let is_fine = matches!(status.code(), Some(0..=2))
            && !said.contains("panicked")
            && !said.contains("a fault of its own")
            && (status.code() == Some(0) || !said.is_empty());
        let text = folder.read("words.sql");
        assert!(is_fine, "call {call} of seed {seed}: {status}\n{args:?}\n{said}\n{text}");
    }
}
