//! SQL over everything Pilaster opens.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`table`] | a [`Dataset`](pilaster_core::Dataset) as a table: projection, filters, limit and statistics pushed down |
//! | [`exec`] | the plan node that reads it, one partition per task of the plan |
//! | [`mod@translate`] | DataFusion expressions as [`Predicate`](pilaster_core::Predicate)s |
//! | [`session`] | a session: paths as tables, table functions, SQL in, batches out |
//! | [`blocking`] | the same for callers that do not use async |
//! | `open` | tables opened by a session, each once |
//! | [`describe`] | what files say of themselves, as tables |
//! | [`filter`] | a condition in SQL's words on any dataset |
//! | [`error`] | our errors on their way through DataFusion and back |
//!
//! # A query
//!
//! ```
//! use pilaster_datafusion::{SqlOptions, SqlSession};
//! # fn main() -> pilaster::Result<()> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("people.csv");
//! # std::fs::write(&path, "id,name\n1,ann\n2,bob\n3,eve\n")?;
//! # let path = path.display();
//! let session = SqlSession::new(SqlOptions::default())?;
//! let mut rows = 0;
//! for batch in session.sql(&format!("SELECT name FROM '{path}' WHERE id > 1"))? {
//!     rows += batch?.num_rows();
//! }
//! assert_eq!(rows, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # What goes down into a scan
//!
//! Projections, limits, and filters of the forms `column op literal` (either way round), `IN`, `BETWEEN`, `LIKE`,
//! `IS [NOT] NULL`, `AND`, `OR` and `NOT`. A filter is called exact only if the scan applies it to every row with SQL's
//! meaning; every other filter stays with DataFusion. Row counts, minima and maxima come up as statistics, so that
//! `count(*)`, `min` and `max` of a whole table read no rows.
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
mod hidden;
mod irregular;
pub mod memory;
mod open;
mod parquet_damage;
mod partition_text;
mod rules;
pub mod session;
mod staged_copy;
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
