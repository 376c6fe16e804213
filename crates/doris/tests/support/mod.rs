//! What the tests of this crate share.
#![allow(dead_code, reason = "every test program uses its own part of this")]

pub mod cells;
pub mod golden;

use std::path::PathBuf;

#[allow(unused_imports, reason = "every test program uses its own part of this")]
pub use pilaster_testing::{batches, memory, workspace};

/// The files of real systems that are not committed; `None`, said aloud, if they are not there.
pub fn goldens() -> Option<PathBuf> {
    pilaster_testing::goldens("doris")
}
