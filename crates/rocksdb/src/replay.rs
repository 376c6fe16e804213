//! Plays the write-ahead logs that a database needs.
//!
//! Entries are numbered without holes, so that a log which is not there any more leaves one: unless tables have what is in the hole, that
//! is an error. RocksDB itself does not look, and gives fewer pairs.

use pilaster_core::error::AtPosition;
use pilaster_core::verify::Severity;
use pilaster_core::{Error, Limits, Location, Result};

use crate::batch::Batch;
use crate::damage::Damage;
use crate::database::logs;
use crate::log::{LogReader, PART};
use crate::memory::Memory;
use crate::version::Version;

/// The number of a log, out of its name.
pub(crate) fn log_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The logs of a database.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    pub folder: &'a Location,
    pub names: &'a [String],
    pub version: &'a Version,
    pub limits: &'a Limits,
    pub damage: &'a Damage,
}

/// What there was to a log.
struct Played {
    bytes: u64,
    /// Why it ends in the middle of a batch.
    torn: Option<Error>,
}

impl Replay<'_> {
    /// What the logs have of a column family.
    pub fn memory_of(&self, family: u32) -> Result<Memory> {
        let (mut memory, mut next) = (Memory::default(), self.version.last_sequence.saturating_add(1));
        let first = self.version.first_log();
        let from = self.version.families.get(&family).map_or(0, |family| family.log_number);
        let logs = logs(self.names);
        self.check_known(&logs, first)?;
        let mut empty: Option<&str> = None;
        let mut torn: Option<Error> = None;
        for (number, name) in logs.range(first..) {
            if let Some(before) = empty.take() {
                // RocksDB begins another log only once something stands in this one.
                let what = format!("{before} is empty, and {name} follows it: what stood there is not here");
                self.damage.pass(Error::incomplete(what).at(&self.folder.to_string(), 0, ""))?;
            }
            let (mut batches, torn_before) = (0u64, torn.take());
            let mut is_checked = torn_before.is_none();
            let played = self.play(*number, name, |batch| {
                if let (false, Some(error)) = (is_checked, &torn_before) {
                    is_checked = true;
                    self.check_torn(error, next, batch.first())?;
                }
                if batches == 0 {
                    self.check_hole(next, batch.first(), name)?;
                }
                batches = batches.saturating_add(1);
                next = batch.next_sequence();
                while let Some(op) = batch.next()? {
                    if op.family == family && *number >= from {
                        memory.apply(&op, self.limits)?;
                    }
                }
                Ok(())
            });
            match played {
                Ok(Played { bytes: 0, .. }) => empty = Some(name),
                Ok(Played { torn: found, .. }) => torn = found,
                Err(error) => self.damage.pass(error)?,
            }
            if batches == 0 && torn.is_some() {
                // Which entry the torn one was is not known then, nor whether the next log begins with it.
                next = u64::MAX;
            }
            if !is_checked {
                torn = torn.or(torn_before);
            }
        }
        if let Some(torn) = torn {
            self.damage.note(&torn, Severity::Warning);
        }
        Ok(memory)
    }

    /// A log may end in the middle of a batch if the next one begins with the numbers that the batch had: then RocksDB was started
    /// again, and has never seen it.
    fn check_torn(&self, torn: &Error, next: u64, found: u64) -> Result<()> {
        if next == found {
            self.damage.note(torn, Severity::Warning);
            return Ok(());
        }
        self.damage.pass(torn.clone())
    }

    /// Gives each batch of a log.
    fn play(
        &self,
        number: u64,
        name: &str,
        mut each: impl FnMut(&mut Batch<'_>) -> Result<()>,
    ) -> Result<Played> {
        let source = self.folder.child(name).open()?;
        let (path, bytes) = (source.name().to_string(), source.size());
        let mut log = LogReader::new(source, number, self.limits);
        while let Some(record) = log.next()? {
            let played = Batch::parse(&record.bytes).and_then(|mut batch| each(&mut batch));
            played.at(&path, record.offset, PART)?;
        }
        Ok(Played { bytes, torn: log.torn() })
    }

    /// Logs that the manifest says are there must be there.
    fn check_known(&self, logs: &std::collections::BTreeMap<u64, String>, first: u64) -> Result<()> {
        let here = |what: String| Error::incomplete(what).at(&self.folder.to_string(), 0, "");
        for (number, bytes) in self.version.synced_logs.range(first..) {
            let Some(name) = logs.get(number) else {
                self.damage
                    .pass(here(format!("the log {number:06}.log, which the manifest names, is not here")))?;
                continue;
            };
            let size = self.folder.child(name).open()?.size();
            if size < *bytes {
                let error = Error::corrupt(
                    format!("{bytes} bytes, as the manifest says"),
                    format!("a file of {size} bytes"),
                );
                self.damage.pass(error.at(&self.folder.child(name).to_string(), size, PART))?;
            }
        }
        let newest = self.version.newest_log();
        if logs.range(newest..).next().is_none() {
            let what = format!(
                "no log is here, from {newest:06}.log on: RocksDB always has one, and in it what was written last"
            );
            self.damage.pass(here(what))?;
        }
        Ok(())
    }

    /// Entries from `next` on are expected, and `found` is the first one that comes.
    fn check_hole(&self, next: u64, found: u64, name: &str) -> Result<()> {
        // Without a manifest nobody knows where logs begin.
        if next <= 1 && self.version.next_file == 0 {
            return Ok(());
        }
        match self.version.first_unknown(next..found) {
            None => Ok(()),
            Some(missing) => {
                let what = format!(
                    "entries {missing} to {} are in no log and in no table: the log before {name} is not here, or not all of it",
                    found.saturating_sub(1)
                );
                self.damage.pass(Error::incomplete(what).at(&self.folder.to_string(), 0, ""))
            }
        }
    }
}
