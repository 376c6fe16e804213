//! What the tests of this crate share.
#![allow(dead_code, reason = "every test program uses its own part of this")]

pub mod cells;
pub mod golden;

use std::path::PathBuf;

#[allow(unused_imports, reason = "every test program uses its own part of this")]
pub use pilaster_testing::{batches, memory, workspace};

/// The golden files of the real system, which are not committed.
pub fn goldens() -> PathBuf {
    pilaster_testing::goldens("doris")
}
