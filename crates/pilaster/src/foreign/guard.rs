//! The `parquet` and `arrow-ipc` crates trust some of what they read; where one panics on a damaged file, that is an error
//! like any other.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work` of such a crate; its error or panic as text.
///
/// What `work` was changing must not be used after an error: it may be half changed.
pub(crate) fn guarded<T, E: ToString>(work: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| {
            let text = error.to_string();
            let text = text.trim_start_matches("Parquet argument error: ");
            text.trim_start_matches("Parquet error: ").to_string()
        }),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            Err(text
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "damage".to_string()))
        }
    }
}
