//! SQL over everything Pilaster opens.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`table`] | a [`Dataset`](pilaster_core::Dataset) as a table: projection, filters, limit and statistics pushed down |
//! | [`exec`] | the plan node that reads it, one partition per group of splits |
//! | [`translate`] | DataFusion expressions as [`Predicate`](pilaster_core::Predicate)s |
//! | [`session`] | a session: paths as tables, table functions, SQL in, batches out |
//! | [`blocking`] | the same for callers that do not use async |
//! | [`open`] | datasets opened by a session, each once |
//! | [`describe`] | what files say of themselves, as tables |
//! | [`filter`] | a condition in SQL's words on any dataset |
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

pub mod blocking;
mod catalog;
pub mod describe;
pub mod error;
pub mod exec;
pub mod filter;
mod functions;
pub mod open;
mod partitions;
pub mod session;
mod statistics;
pub mod table;
pub mod translate;

pub use blocking::SqlSession;
pub use datafusion::arrow;
pub use error::{from_datafusion, root_cause};
pub use exec::PilasterExec;
pub use filter::RowFilter;
pub use open::Opener;
pub use session::{SqlContext, SqlOptions};
pub use table::PilasterTable;
pub use translate::translate;
