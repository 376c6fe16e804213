//! SQL over everything Pilaster opens.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`table`] | a [`Dataset`](pilaster_core::Dataset) as a table: projection, filters, limit and statistics pushed down |
//! | [`exec`] | the plan node that reads it, one partition per group of splits |
//! | [`translate`] | DataFusion expressions as [`Predicate`](pilaster_core::Predicate)s |
//! | [`error`] | our errors on their way through DataFusion and back |
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "tests compute with known values"
    )
)]

pub mod error;
pub mod exec;
mod partitions;
mod statistics;
pub mod table;
pub mod translate;

pub use error::{from_datafusion, root_cause};
pub use exec::PilasterExec;
pub use table::PilasterTable;
pub use translate::translate;
