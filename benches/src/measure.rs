//! Timing and peak memory, each measurement in a process of its own.
//!
//! A process does one operation several times on its only thread and says how long the fastest took and how much memory
//! it ever had (`VmHWM` of Linux). So no format meets the heap another one left behind.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::clock::Clock;
use crate::format::{BenchFormat, Codec};
use crate::formats;
use crate::operation::Operation;
use crate::table::{Table, TableKind};

/// What a measuring process is told.
#[derive(Debug, Clone, Args)]
pub struct Task {
    #[arg(long, value_enum)]
    pub table: TableKind,
    #[arg(long)]
    pub format: String,
    #[arg(long)]
    pub operation: Operation,
    #[arg(long, value_enum)]
    pub codec: Codec,
    /// The written table; writing goes beside it.
    #[arg(long)]
    pub path: PathBuf,
    #[arg(long)]
    pub rows: usize,
    #[arg(long)]
    pub iterations: usize,
    #[arg(long)]
    pub seconds: f64,
    #[arg(long, value_enum)]
    pub clock: Clock,
}

/// What a measuring process found.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Measurement {
    /// Of the fastest iteration.
    pub seconds: f64,
    /// Rows written or read by each iteration.
    pub rows: usize,
    /// Most memory the process had; for writing, beyond the table in memory. `None` where the system does not tell.
    pub peak_bytes: Option<u64>,
}

impl Measurement {
    /// The faster of two, with the larger memory of both.
    pub fn better(self, other: Self) -> Self {
        let faster = if self.seconds <= other.seconds { self } else { other };
        Self { peak_bytes: self.peak_bytes.max(other.peak_bytes), ..faster }
    }
}

impl Task {
    /// Runs in a process of its own.
    pub fn run_apart(&self) -> Result<Measurement> {
        let output = Command::new(std::env::current_exe()?)
            .arg("measure")
            .args(["--table", self.table.name()])
            .args(["--format", &self.format])
            .args(["--operation", &self.operation.to_string()])
            .args(["--codec", self.codec.name()])
            .arg("--path")
            .arg(&self.path)
            .args(["--rows", &self.rows.to_string()])
            .args(["--iterations", &self.iterations.to_string()])
            .args(["--seconds", &self.seconds.to_string()])
            .args(["--clock", self.clock.name()])
            .output()?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{} of {}: {message}", self.operation, self.format).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Runs here and now.
    pub fn run(&self) -> Result<Measurement> {
        let format = formats::by_name(&self.format)?;
        match self.operation {
            Operation::Write => self.time_writing(format),
            _ => self.time_reading(format),
        }
    }

    /// As many times as asked for, and on until the time asked for has passed.
    fn repetitions(&self) -> impl Iterator<Item = usize> + use<> {
        let (start, iterations, seconds) = (Instant::now(), self.iterations.max(1), self.seconds);
        (0..).take_while(move |&done| done < iterations || start.elapsed().as_secs_f64() < seconds)
    }

    fn time_reading(&self, format: &dyn BenchFormat) -> Result<Measurement> {
        let (mut fastest, mut rows) = (Duration::MAX, 0usize);
        for _ in self.repetitions() {
            rows = 0;
            let start = self.clock.start();
            for batch in self.operation.read(format, &self.path, self.rows)? {
                rows = rows.saturating_add(black_box(batch?).num_rows());
            }
            fastest = fastest.min(start.elapsed());
        }
        Ok(Measurement { seconds: fastest.as_secs_f64(), rows, peak_bytes: memory("VmHWM") })
    }

    fn time_writing(&self, format: &dyn BenchFormat) -> Result<Measurement> {
        let table = Table::generate(self.table, self.rows)?;
        // Makes the kernel forget the peak of generating; where that fails the peak comes out too high, not too low.
        let _ = fs::write("/proc/self/clear_refs", "5");
        let before = memory("VmRSS");
        let mut fastest = Duration::MAX;
        let path = self.path.with_extension("again");
        for _ in self.repetitions() {
            let start = self.clock.start();
            format.write(&table, &path, self.codec)?;
            fastest = fastest.min(start.elapsed());
            remove(&path)?;
        }
        let peak_bytes = memory("VmHWM").zip(before).map(|(peak, before)| peak.saturating_sub(before));
        Ok(Measurement { seconds: fastest.as_secs_f64(), rows: table.rows, peak_bytes })
    }
}

/// Replaces each file by a copy of it.
pub fn lay_anew(path: &Path) -> Result<()> {
    if path.is_dir() {
        let entries = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
        return entries.iter().try_for_each(|entry| lay_anew(&entry.path()));
    }
    let mut copy = path.as_os_str().to_owned();
    copy.push(".copy");
    fs::copy(path, &copy)?;
    Ok(fs::rename(copy, path)?)
}

/// Removes a file or a folder.
fn remove(path: &Path) -> Result<()> {
    if path.is_dir() {
        fs::remove_dir_all(path)?;
    } else {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Bytes of a file, or of all files in a folder.
pub fn size_of(path: &Path) -> Result<u64> {
    if path.is_file() {
        return Ok(fs::metadata(path)?.len());
    }
    let mut bytes = 0u64;
    for entry in fs::read_dir(path)? {
        bytes = bytes.saturating_add(size_of(&entry?.path())?);
    }
    Ok(bytes)
}

/// A line of `/proc/self/status` that is given in kB.
fn memory(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes.saturating_mul(1024))
}
