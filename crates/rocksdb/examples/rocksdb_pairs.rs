//! Reads databases for `.ci/rocksdb-judge`: each line of the input is `stop|skip`, a folder and a column family, with tabs between.
//!
//! The answer is `<key> <value>` in hex for each pair, `finding <text>` for what was odd, and `end` or `error damage|other <text>`.
#![allow(clippy::print_stdout, reason = "a program")]

use std::fmt::Write as _;
use std::io::{BufRead, Write};

use pilaster_core::{Error, Limits, Location, Result};
use pilaster_rocksdb::{Database, OnDamage};

fn hex(bytes: &[u8], out: &mut String) {
    bytes.iter().for_each(|byte| {
        let _ = write!(out, "{byte:02x}");
    });
}

fn read(line: &str, out: &mut String) -> Result<()> {
    let mut parts = line.split('\t');
    let (Some(mode), Some(folder), Some(family)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Error::invalid("a line is: stop|skip, folder, family"));
    };
    let on_damage = if mode == "skip" { OnDamage::Skip } else { OnDamage::Stop };
    let database = Database::open(&Location::local(folder), &Limits::default(), on_damage)?;
    let mut read = || {
        for pair in database.pairs(family)? {
            let (key, value) = pair?;
            hex(&key, out);
            out.push(' ');
            hex(&value, out);
            out.push('\n');
        }
        Ok(())
    };
    let read = read();
    for finding in database.findings() {
        let _ = writeln!(out, "finding {}", finding.to_string().replace('\n', " "));
    }
    read
}

fn main() -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let mut out = String::new();
        match read(&line?, &mut out) {
            Ok(()) => out.push_str("end\n"),
            Err(error) => {
                let kind = if error.is_damage() { "damage" } else { "other" };
                let _ = writeln!(out, "error {kind} {}", error.to_string().replace('\n', " "));
            }
        }
        output.write_all(out.as_bytes())?;
        output.flush()?;
    }
    Ok(())
}
