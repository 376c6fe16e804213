//! Programs that run the real systems.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use crate::workspace;

/// Where the programs are: in `PILASTER_TOOLS` or beside the checkout.
pub fn tools() -> PathBuf {
    std::env::var_os("PILASTER_TOOLS").map_or_else(|| workspace().join("../shared/tools"), PathBuf::from)
}

/// Runs a program of a real system. The first one fetches the system, so it runs alone: two at once would take away each
/// other's files.
///
/// # Errors
/// If the program cannot be started.
pub fn run(system: &'static str, program: &mut Command) -> io::Result<Output> {
    static FETCHED: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    let mut fetched = FETCHED.lock().unwrap_or_else(PoisonError::into_inner);
    if fetched.contains(&system) {
        drop(fetched);
        return program.output();
    }
    let output = program.output()?;
    fetched.push(system);
    Ok(output)
}
