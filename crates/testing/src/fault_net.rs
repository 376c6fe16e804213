//! Every way to look at a table, once for each of the calls it makes, which goes wrong.
//!
//! A test gives a table of a few small files, its rows, and what `cat`, `verify` and `salvage` make of it anywhere:
//!
//! ```no_run
//! # use pilaster_core::{Location, LostRows, Result, VerifyReport};
//! # use pilaster_testing::fault_net::{Looks, check, in_memory};
//! # fn rows(_: &Location) -> Result<Vec<String>> { unimplemented!() }
//! # fn verify(_: &Location) -> Result<VerifyReport> { unimplemented!() }
//! # fn salvage(_: &Location) -> Result<(Vec<String>, Vec<LostRows>)> { unimplemented!() }
//! let table = in_memory("testdata/table".as_ref()).unwrap();
//! let (log, notices_changes) = (None, true);
//! let calls = check(&table, &Looks { rows: &rows, verify: &verify, salvage: &salvage, log, notices_changes });
//! assert!(calls > 30);
//! ```

use std::fmt::{self, Debug};
use std::io::ErrorKind;
use std::path::Path;

use bytes::Bytes;
use pilaster_core::salvage::total_lost;
use pilaster_core::storage::MemoryStorage;
use pilaster_core::{Finding, Location, LostRows, Result, VerifyReport};

use crate::damage::only_of;
use crate::faults::{Fault, faulty};

/// What goes wrong with each call.
const FAULTS: [Fault; 3] = [Fault::Refuse(ErrorKind::PermissionDenied), Fault::Cut, Fault::Change];

/// Rows that were saved, and what is lost.
pub type Salvaged<R> = (Vec<R>, Vec<LostRows>);

/// The ways to look at a table.
pub struct Looks<'a, R> {
    /// A scan that stops at damage; what is not here is an error too.
    pub rows: &'a dyn Fn(&Location) -> Result<Vec<R>>,
    /// `verify`, with what is not here among the findings.
    pub verify: &'a dyn Fn(&Location) -> Result<VerifyReport>,
    /// A scan that goes on over damage, with what is lost.
    pub salvage: &'a dyn Fn(&Location) -> Result<Salvaged<R>>,
    /// The log of a table whose newest changes are in it alone.
    pub log: Option<LogEnd<'a, R>>,
    /// Whether every byte is covered by a checksum. Where not, other values may come out of changed bytes.
    pub notices_changes: bool,
}

/// What may be given where the bytes of a log are others, so that its end seems to come earlier: rows are then as they were before, and
/// whoever reads is warned.
pub struct LogEnd<'a, R> {
    /// Files of logs, by name.
    pub is_log: &'a dyn Fn(&str) -> bool,
    /// Rows as they were at any time that the end of the log goes back to.
    pub earlier: &'a [R],
    /// What the last look warned of.
    pub warnings: &'a dyn Fn() -> Vec<Finding>,
}

impl<R: Ord + Debug> LogEnd<'_, R> {
    /// No row is given that was never there.
    fn were_there(&self, rows: &[R], whole: &[R], what: &str) {
        let was_there = |row: &&R| whole.contains(row) || self.earlier.contains(row);
        assert_eq!(rows.iter().find(|row| !was_there(row)), None, "{what} gives a row that was never there");
    }

    /// Rows of an earlier state come with a warning that the sound table does not have.
    fn are_marked(&self, rows: &[R], whole: &[R], sound: &[Finding], (what, path): (&str, &str)) {
        let (mut rows, mut whole) = (rows.iter().collect::<Vec<_>>(), whole.iter().collect::<Vec<_>>());
        rows.sort();
        whole.sort();
        let warnings = (self.warnings)();
        let is_warned =
            warnings.iter().any(|finding| finding.path.contains(path) && !sound.contains(finding));
        assert!(rows == whole || is_warned, "{what} gives older rows without a word: {warnings:?}");
    }
}

/// The files below a local folder, in memory.
///
/// # Errors
/// If one of them cannot be read.
pub fn in_memory(folder: &Path) -> Result<Location> {
    in_memory_with(folder, |_, bytes| bytes)
}

/// The same with the bytes of each file changed.
///
/// # Errors
/// If one of them cannot be read.
pub fn in_memory_with(folder: &Path, change: impl Fn(&Path, Bytes) -> Bytes) -> Result<Location> {
    let storage = MemoryStorage::new("memory");
    let local = Location::local(folder);
    for entry in local.walk() {
        let entry = entry?;
        let file = local.beside(entry.path());
        let bytes = change(entry.path(), file.read("bytes", u64::MAX)?);
        storage.put(entry.path().strip_prefix(folder).unwrap_or(entry.path()), bytes);
    }
    Ok(storage.root())
}

/// Looks at the table in all ways with every call going wrong in turn; gives how many there were. Then
///
/// - an error, or what `verify` finds, names the file whose call failed, unless `verify` saw all it sees otherwise;
/// - rows that come without an error are all there are;
/// - what is salvaged was there, and what is missing of it is counted, or said to be more than anybody can count.
///
/// # Panics
/// If one of these does not hold.
pub fn check<R: Ord + Debug>(table: &Location, looks: &Looks<'_, R>) -> u64 {
    let whole = (looks.rows)(table).unwrap_or_else(|error| panic!("{error}"));
    let warned = looks.log.as_ref().map(|log| (log.warnings)()).unwrap_or_default();
    let sound = (looks.verify)(table).unwrap_or_else(|error| panic!("{error}"));
    assert!(sound.is_sound(), "{:?}", sound.findings);
    let mut calls = 0;
    for fault in FAULTS {
        let are_values_known = looks.notices_changes || fault != Fault::Change;
        let only_these = |rows: &[R], what: &str| {
            if are_values_known {
                only_of(rows, &whole).unwrap_or_else(|wrong| panic!("{what} gives {wrong}"));
            }
        };
        calls += each_call(table, fault, looks.rows, |rows, gone_wrong| {
            let what = format!("a scan, {gone_wrong}");
            let Some(rows) = gone_wrong.passed(rows, &what) else { return };
            if let Some(log) = gone_wrong.end_of(looks) {
                log.were_there(&rows, &whole, &what);
                return log.are_marked(&rows, &whole, &warned, (&what, &gone_wrong.path));
            }
            only_these(&rows, &what);
            assert!(rows.len() == whole.len(), "{what}: {} of {} rows", rows.len(), whole.len());
        });
        calls += each_call(table, fault, looks.verify, |report, gone_wrong| {
            let what = format!("verify, {gone_wrong}");
            let Some(report) = gone_wrong.passed(report, &what) else { return };
            let names = |finding: &Finding| finding.to_string().contains(&gone_wrong.path);
            let is_named = report.findings.iter().any(names);
            // What was not needed leaves all the rest looked at; what no row needs may be a warning.
            let (is_whole, reads_all) = (report == sound, report.rows == sound.rows);
            let is_told = match report.is_sound() {
                true => is_named && reads_all,
                false => is_named || !gone_wrong.has_failed(),
            };
            let is_warned = gone_wrong.end_of(looks).is_some() && is_named;
            assert!(
                fault == Fault::Change || is_whole || is_told || is_warned,
                "{what} finds {:?}",
                report.findings
            );
        });
        calls += each_call(table, fault, looks.salvage, |salvaged, gone_wrong| {
            let what = format!("salvage, {gone_wrong}");
            let Some((rows, losses)) = gone_wrong.passed(salvaged, &what) else { return };
            if let Some(log) = gone_wrong.end_of(looks).filter(|_| losses.is_empty()) {
                // It reads the log again, which the warnings were about when it was whole.
                return log.were_there(&rows, &whole, &what);
            }
            only_these(&rows, &what);
            let missing = u64::try_from(whole.len().saturating_sub(rows.len())).unwrap_or(u64::MAX);
            let is_said = total_lost(&losses).is_none_or(|total| total >= missing);
            assert!(is_said, "{what}: {missing} rows are missing, and said to be: {losses:?}");
        });
    }
    calls
}

/// A call that went wrong.
struct GoneWrong {
    fault: Fault,
    number: u64,
    call: &'static str,
    path: String,
}

impl fmt::Display for GoneWrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (call {}) of {}: {:?}", self.call, self.number, self.path, self.fault)
    }
}

impl GoneWrong {
    /// Whether the call failed. Where it gave other bytes instead, an error may be about what they led to.
    fn has_failed(&self) -> bool {
        self.fault != Fault::Change && (self.fault, self.call) != (Fault::Cut, "open")
    }

    /// The log that may seem to end earlier because of it.
    fn end_of<'a, R>(&self, looks: &'a Looks<'_, R>) -> Option<&'a LogEnd<'a, R>> {
        looks.log.as_ref().filter(|log| !self.has_failed() && (log.is_log)(&self.path))
    }

    /// What came out all the same; nothing if it is an error, which names the file.
    fn passed<T>(&self, answer: Result<T>, what: &str) -> Option<T> {
        let error = match answer {
            Ok(answer) => return Some(answer),
            Err(error) => error.to_string(),
        };
        assert!(!self.has_failed() || error.contains(&self.path), "{what}: {error}");
        None
    }
}

/// Does `look` with the first call going wrong, with the second, and so on.
fn each_call<T>(
    table: &Location,
    fault: Fault,
    look: impl Fn(&Location) -> T,
    judge: impl Fn(T, &GoneWrong),
) -> u64 {
    for number in 0.. {
        let (place, faults) = faulty(table, number, fault);
        let answer = look(&place);
        let Some((call, path)) = faults.happened() else { return number };
        judge(answer, &GoneWrong { fault, number, call, path });
    }
    u64::MAX
}
