//! Scans by several threads that take turns at the tasks of a scan.

use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;
use pilaster_core::source::FileSource;
use pilaster_core::{BatchReader, Dataset};
use pilaster_redfile::metadata::Compression;
use pilaster_redfile::{RedfileReader, RedfileWriter, RedfileWriterOptions};

use crate::Result;
use crate::clock::Clock;
use crate::table::{BATCH_ROWS, Table, TableKind};

/// Writes lineitem as a Redfile of several row groups and scans it with one thread and with more.
#[derive(Debug, Args)]
pub struct RedfileThreads {
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// Rows of a row group.
    #[arg(long, default_value_t = 62_500)]
    row_group_rows: u64,
    /// Threads to compare with one.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Scans with each; the fastest counts.
    #[arg(long, default_value_t = 20)]
    iterations: usize,
}

impl RedfileThreads {
    pub fn run(&self) -> Result<()> {
        let table = Table::generate(TableKind::Lineitem, self.rows)?;
        let folder = tempfile::tempdir_in(if std::path::Path::new("/dev/shm").is_dir() {
            std::path::PathBuf::from("/dev/shm")
        } else {
            std::env::temp_dir()
        })?;
        let path = folder.path().join("lineitem.red");
        let options = RedfileWriterOptions::default()
            .with_codec(Compression::Uncompressed)
            .with_row_group_rows(self.row_group_rows);
        let sink = BufWriter::with_capacity(1 << 16, File::create_new(&path)?);
        let mut writer = RedfileWriter::try_new(sink, &table.schema, options)?;
        for batch in &table.batches {
            writer.write(batch)?;
        }
        writer.finish()?;
        let reader = RedfileReader::open(Arc::new(FileSource::open(&path)?))?;
        println!("{} rows in {} tasks\n", self.rows, reader.scan().plan()?.tasks()?.len());
        println!("| clock | 1 thread, ms | {} threads, ms | ratio |", self.threads);
        println!("| --- | ---: | ---: | ---: |");
        for clock in [Clock::Cpu, Clock::Wall] {
            let mut times = [Duration::MAX; 2];
            // In turns, so that what else the machine does meets both alike.
            for _ in 0..self.iterations {
                for (time, threads) in times.iter_mut().zip([1, self.threads]) {
                    *time = scan_tasks(&reader, threads, clock)?.1.min(*time);
                }
            }
            let [one, several] = times.map(|time| time.as_secs_f64() * 1000.0);
            println!("| {} | {one:.2} | {several:.2} | {:.2} |", clock.name(), one / several);
        }
        Ok(())
    }
}

/// Rows of all tasks, and the time of the thread that took longest.
pub fn scan_tasks(dataset: &dyn Dataset, threads: usize, clock: Clock) -> Result<(usize, Duration)> {
    let tasks = dataset.scan().batch_size(BATCH_ROWS).plan()?.tasks()?;
    let next = AtomicUsize::new(0);
    let read_some = || -> Result<(usize, Duration), String> {
        let watch = clock.start();
        let mut rows = 0usize;
        loop {
            let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return Ok((rows, watch.elapsed()));
            };
            let read = task.read().map_err(|error| error.to_string())?;
            rows = rows.saturating_add(count(read).map_err(|error| error.to_string())?);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(read_some)).collect();
        threads.into_iter().try_fold((0usize, Duration::ZERO), |(rows, longest), thread| {
            let (more, time) = thread.join().map_err(|_| "a thread panicked")??;
            Ok((rows.saturating_add(more), longest.max(time)))
        })
    })
}

/// Reads everything and drops it.
pub fn count(reader: BatchReader) -> Result<usize> {
    let mut rows = 0usize;
    for batch in reader {
        rows = rows.saturating_add(batch?.num_rows());
    }
    Ok(rows)
}
