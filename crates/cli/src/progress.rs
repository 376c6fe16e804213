//! Words and bars on stderr.

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pilaster::{Finding, Progress, Severity};

use crate::sheet::printable;

/// Work that takes less than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether and how this run speaks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    quiet: bool,
}

/// What a bar counts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    Bytes,
    Rows,
}

impl Words {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Says something that is not data.
    pub(crate) fn say(self, text: impl std::fmt::Display) {
        if !self.quiet {
            // Words are a courtesy: a closed stderr does not stop the work.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    /// Says what may be odd about data that is given all the same. Damage is not: it ends a scan with its own words.
    pub(crate) fn warn(self, findings: &[Finding]) {
        for finding in findings.iter().filter(|finding| finding.severity == Severity::Warning) {
            self.say(format_args!("warning: {}", printable(&finding.to_string())));
        }
    }

    /// A bar for long work; silent with `-q` and where nobody watches.
    pub(crate) fn bar(self, what: &'static str, unit: Unit) -> Bar {
        let is_watched = !self.quiet && std::io::stderr().is_terminal();
        Bar {
            what,
            unit,
            started: is_watched.then(Instant::now),
            bar: OnceLock::new(),
            total: OnceLock::new(),
            done: AtomicU64::new(0),
        }
    }
}

/// Shows how far work has come once it has taken a second.
#[derive(Debug)]
pub(crate) struct Bar {
    what: &'static str,
    unit: Unit,
    /// `None` when nobody watches.
    started: Option<Instant>,
    bar: OnceLock<ProgressBar>,
    total: OnceLock<u64>,
    done: AtomicU64,
}

impl Bar {
    fn shown(&self) -> Option<&ProgressBar> {
        let started = self.started?;
        if let Some(bar) = self.bar.get() {
            return Some(bar);
        }
        (started.elapsed() >= PATIENCE).then(|| self.bar.get_or_init(|| self.draw(started)))
    }

    fn draw(&self, started: Instant) -> ProgressBar {
        let total = self.total.get().copied();
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr())
            .with_elapsed(started.elapsed())
            .with_message(self.what);
        let template = match (self.unit, total) {
            (Unit::Bytes, Some(_)) => {
                "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}"
            }
            (Unit::Bytes, None) => "{msg} {binary_bytes} {binary_bytes_per_sec} {elapsed}",
            (Unit::Rows, Some(_)) => "{msg} {wide_bar} {human_pos}/{human_len} rows {per_sec} {eta}",
            (Unit::Rows, None) => "{msg} {human_pos} rows {per_sec} {elapsed}",
        };
        match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}

impl Progress for Bar {
    fn set_total(&self, total: u64) {
        let _ = self.total.set(total);
        if let Some(bar) = self.shown() {
            bar.set_length(total);
        }
    }

    fn advance(&self, units: u64) {
        let done = self.done.fetch_add(units, Ordering::Relaxed).saturating_add(units);
        if let Some(bar) = self.shown() {
            bar.set_position(done);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
