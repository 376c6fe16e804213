//! Every way to write a file or a folder, once for each of the calls it makes, which goes wrong.

use std::fmt::{Debug, Display};
use std::io::ErrorKind;

use pilaster_core::storage::MemoryStorage;
use pilaster_core::{Location, Result};

use crate::faults::{Fault, faulty};

/// What goes wrong with each call.
const FAULTS: [Fault; 3] = [Fault::Refuse(ErrorKind::StorageFull), Fault::Cut, Fault::End];

/// Writes at a place.
pub type Step<'a> = &'a dyn Fn(&Location) -> Result<()>;

/// How something is written.
pub struct Writes<'a, R> {
    /// What must be there before, if rows are added to it.
    pub prepare: Option<Step<'a>>,
    /// Writes.
    pub write: Step<'a>,
    /// Reads what was written; an error for what is nothing whole.
    pub rows: &'a dyn Fn(&Location) -> Result<Vec<R>>,
}

/// Writes to memory and to a local disk with every call going wrong in turn; gives how many there were. Then
///
/// - an error names the file or folder whose call failed;
/// - what was there before is there as it was, and where nothing was, nothing is;
/// - what a program leaves that ends in the middle is all rows, those from before, or nothing that can be read.
///
/// # Panics
/// If one of these does not hold.
pub fn check<R: Ord + Debug>(writes: &Writes<'_, R>) -> u64 {
    let mut calls = 0;
    for is_local in [false, true] {
        // What a program leaves on a disk that ends in the middle is seen where programs are killed.
        let faults = if is_local { FAULTS.get(..1) } else { FAULTS.get(..) };
        for &fault in faults.unwrap_or_default() {
            let mut number = 0;
            while one_call(writes, is_local, number, fault) {
                number += 1;
            }
            calls += number;
        }
    }
    calls
}

/// Writes with a call that goes wrong; `false` if there are not so many.
fn one_call<R: Ord + Debug>(writes: &Writes<'_, R>, is_local: bool, number: u64, fault: Fault) -> bool {
    let folder = must(tempfile::tempdir());
    let place = match is_local {
        true => Location::local(folder.path()),
        false => MemoryStorage::new("memory").root(),
    };
    let sorted = |target: &Location| -> Result<Vec<R>> {
        let mut rows = (writes.rows)(target)?;
        rows.sort();
        Ok(rows)
    };
    let target = place.child("out");
    let before = writes.prepare.map(|prepare| {
        must(prepare(&target));
        must(sorted(&target))
    });
    let (faulty_target, faults) = faulty(&target, number, fault);
    let done = (writes.write)(&faulty_target);
    drop(faulty_target);
    let Some((call, path)) = faults.happened() else {
        must(done);
        let rows = must(sorted(&target));
        assert!(!rows.is_empty() && Some(&rows) != before.as_ref(), "nothing was written");
        assert!(number > 1, "nothing can go wrong");
        return false;
    };
    let what = format!("{call} (call {number}) of {path}: {fault:?}");
    match &done {
        Ok(()) => {
            let (whole, expected) = (must(sorted(&target)), whole(writes, before.is_some()));
            assert_eq!(whole, expected, "{what}");
            return true;
        }
        Err(error) => assert!(error.to_string().contains(&path), "{what}: {error}"),
    }
    let left = must(target.entry()).map(|_| sorted(&target));
    match (left, before) {
        (None, None) => {
            let files: Vec<_> = place.walk().map(|entry| must(entry).path().to_path_buf()).collect();
            assert!(files.is_empty() || fault == Fault::End, "{what}: {files:?}");
        }
        (None, Some(_)) => panic!("{what}: what was there is gone"),
        (Some(left), None) => {
            assert!(fault == Fault::End, "{what}: something is left under the name");
            if let Ok(rows) = left {
                assert_eq!(rows, whole(writes, false), "{what}: a part is taken for all");
            }
        }
        (Some(left), Some(before)) => {
            let rows = left.unwrap_or_else(|error| panic!("{what}: what was there is broken: {error}"));
            assert!(rows == before || rows == whole(writes, true), "{what}: {rows:?}");
        }
    }
    true
}

/// The rows when nothing goes wrong.
fn whole<R: Ord>(writes: &Writes<'_, R>, is_prepared: bool) -> Vec<R> {
    let target = MemoryStorage::new("memory").root().child("out");
    if let Some(prepare) = writes.prepare.filter(|_| is_prepared) {
        must(prepare(&target));
    }
    must((writes.write)(&target));
    let mut rows = must((writes.rows)(&target));
    rows.sort();
    rows
}

/// What goes well if nothing is made to go wrong.
fn must<T, E: Display>(done: std::result::Result<T, E>) -> T {
    done.unwrap_or_else(|error| panic!("{error}"))
}
