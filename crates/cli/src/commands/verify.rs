//! `pilaster verify`: every finding with path, byte, structure and rows touched.

use std::io::{self, Write};

use clap::ValueEnum;
use pilaster::text::printable;
use pilaster::verify::{report_to_json, verify};
use pilaster::{Error, Finding, Result, Severity, VerifyDepth, VerifyReport};

use crate::args::InputArgs;
use crate::bytes::{counted, human};
use crate::exit::Outcome;
use crate::json;
use crate::progress::{Unit, Words};

/// Looks for damage and lists every finding with path, byte, structure and rows touched
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster verify data/*.cfile
  pilaster verify --depth values --json data/ > report.json

Exit code 0 if everything is sound, 1 if something is damaged, 2 if something could not be read at all.")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// How thoroughly to look
    #[arg(long, value_enum, default_value_t = Depth::Checksums)]
    depth: Depth,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Depth {
    /// Headers, footers and indexes agree
    Footer,
    /// And every stored checksum is right; of a format without checksums, every value decodes
    Checksums,
    /// And every value decodes
    Values,
}

impl From<Depth> for VerifyDepth {
    fn from(depth: Depth) -> Self {
        match depth {
            Depth::Footer => Self::Footer,
            Depth::Checksums => Self::Checksums,
            Depth::Values => Self::Values,
        }
    }
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    if args.input.open.ignores_checksums() {
        return Err(Error::invalid("verify compares checksums; --depth footer looks at less"));
    }
    let bar = words.bar("verify", Unit::Bytes);
    let report = verify(&args.input.paths, &args.input.open.options()?, args.depth.into(), &bar)?;
    drop(bar);
    if args.json {
        json::print(&report_to_json(&report))?;
    } else {
        print(&report)?;
    }
    words.say(summary(&report));
    Ok(outcome(&report))
}

/// Damage is what was asked for: it counts more than what could not be looked at.
fn outcome(report: &VerifyReport) -> Outcome {
    let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    match u64::try_from(errors).unwrap_or(u64::MAX) {
        0 => Outcome::Fine,
        errors if errors > report.unread => Outcome::Damaged,
        _ => Outcome::Failed,
    }
}

fn print(report: &VerifyReport) -> Result<()> {
    let mut stdout = io::stdout().lock();
    for finding in &report.findings {
        let word = match finding.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        writeln!(stdout, "{word}: {}{}", printable(&finding.to_string()), way_on(finding))?;
    }
    Ok(())
}

/// What shows more of what a finding counts.
fn way_on(finding: &Finding) -> &'static str {
    if finding.part == "orphans" { " (pilaster ls --orphans)" } else { "" }
}

fn summary(report: &VerifyReport) -> String {
    let verdict = match report.findings.len() {
        0 => "sound".to_string(),
        findings => counted(findings as u64, "finding"),
    };
    let parts = [
        counted(report.files, "file"),
        counted(report.blocks, "block"),
        counted(report.rows, "row"),
        counted(report.checksums, "checksum"),
    ];
    format!("{verdict}: {}, {} read", parts.join(", "), human(report.bytes))
}
