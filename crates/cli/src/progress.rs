//! Words and bars on stderr.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pilaster::text::printable;
use pilaster::{BatchReader, Finding, Progress, Severity};
use pilaster_datafusion::arrow::array::RecordBatchIterator;

/// Work that takes less than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a wait shows that it goes on.
const TICK: Duration = Duration::from_millis(200);

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

    /// Says something that is not data, unless the run is quiet.
    pub(crate) fn say(self, text: impl std::fmt::Display) {
        if !self.quiet {
            self.tell(text);
        }
    }

    /// Says what is wrong with data; also in a quiet run, whose rows must not pass for all there are.
    pub(crate) fn tell(self, text: impl std::fmt::Display) {
        // Words are a courtesy: a closed stderr does not stop the work.
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    /// Says what may be odd about data that is given all the same. Damage is not: it ends a scan with its own words.
    pub(crate) fn warn(self, findings: &[Finding]) {
        for finding in findings.iter().filter(|finding| finding.severity == Severity::Warning) {
            self.tell(format_args!("warning: {}", printable(&finding.to_string())));
        }
    }

    fn is_watched(self) -> bool {
        !self.quiet && std::io::stderr().is_terminal()
    }

    /// Shows that work of unknown length goes on, until it is dropped; silent as bars are.
    fn wait(self, what: &'static str) -> Wait {
        Wait(self.is_watched().then(|| {
            let is_over = Arc::new(AtomicBool::new(false));
            let seen = Arc::clone(&is_over);
            (is_over, thread::spawn(move || show_wait(what, &seen)))
        }))
    }

    /// Does work of unknown length, and shows that it goes on.
    pub(crate) fn during<T>(self, what: &'static str, work: impl FnOnce() -> T) -> T {
        let _wait = self.wait(what);
        work()
    }

    /// The same rows, the first of which are there already: until they are, all that can be shown is that work goes on.
    pub(crate) fn await_first(self, what: &'static str, mut rows: BatchReader) -> BatchReader {
        let schema = rows.schema();
        let first = self.during(what, || rows.next());
        Box::new(RecordBatchIterator::new(first.into_iter().chain(rows), schema))
    }

    /// Rows that move a bar as they are taken.
    pub(crate) fn watch(self, what: &'static str, rows: BatchReader, total: Option<u64>) -> BatchReader {
        if !self.is_watched() {
            return rows;
        }
        let bar = self.bar(what, Unit::Rows);
        if let Some(total) = total {
            bar.set_total(total);
        }
        let schema = rows.schema();
        let counted = rows.inspect(move |batch| {
            let rows = batch.as_ref().map_or(0, |batch| batch.num_rows());
            bar.advance(u64::try_from(rows).unwrap_or(u64::MAX));
        });
        Box::new(RecordBatchIterator::new(counted, schema))
    }

    /// A bar for long work; silent with `-q` and where nobody watches.
    pub(crate) fn bar(self, what: &'static str, unit: Unit) -> Bar {
        Bar {
            what,
            unit,
            started: self.is_watched().then(Instant::now),
            bar: OnceLock::new(),
            total: OnceLock::new(),
            done: AtomicU64::new(0),
        }
    }
}

/// See [`Words::wait`].
struct Wait(Option<(Arc<AtomicBool>, JoinHandle<()>)>);

fn show_wait(what: &'static str, is_over: &AtomicBool) {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if is_over.load(Ordering::Acquire) {
            return;
        }
        thread::park_timeout(PATIENCE.saturating_sub(started.elapsed()));
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        .with_elapsed(started.elapsed())
        .with_message(what);
    let bar = match ProgressStyle::with_template("{msg} {spinner} {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    };
    while !is_over.load(Ordering::Acquire) {
        bar.tick();
        thread::park_timeout(TICK);
    }
    bar.finish_and_clear();
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some((is_over, shown)) = self.0.take() {
            is_over.store(true, Ordering::Release);
            shown.thread().unpark();
            // A wait that could not be shown is no reason to fail.
            let _ = shown.join();
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
