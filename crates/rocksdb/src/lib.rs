//! Databases of RocksDB, in which servers keep metadata: read without RocksDB, without a lock and without changing anything.
//!
//! ```text
//! folder:   CURRENT -> MANIFEST-<number> -> tables by column family and level, and the first log that counts
//! pairs:    logs     newest    ─┐
//!           level 0  each table ├─ of each key the newest entry, unless it or a range delete deletes it
//!           level 1…  one after the other ─┘
//! ```
//!
//! | what | read |
//! | --- | --- |
//! | tables | block-based, format versions 0 to 7; indexes of one and two levels, with first keys, with distances; hash indexes in blocks |
//! | codecs | none, Snappy, deflate, LZ4, Zstandard, the last three with dictionaries |
//! | checksums | none, CRC-32C, XXH32, XXH64, XXH3, with the context of version 6 |
//! | logs | fragments of all kinds, files that were used again, compressed ones |
//! | entries | put, delete, single delete, range delete |
//!
//! Merge operands, values in blob files, entities, timestamps, transactions in two phases, other orders of keys than by their bytes and other
//! kinds of tables are errors by name. Memory: what only the logs have, and a few blocks for each table of level 0 and each other level.
//!
//! # Example
//!
//! ```no_run
//! use pilaster_core::{Limits, Location};
//! use pilaster_rocksdb::{DEFAULT_FAMILY, Database, OnDamage};
//!
//! let database = Database::open(&Location::local("data/rdb"), &Limits::default(), OnDamage::Stop)?;
//! for pair in database.pairs(DEFAULT_FAMILY)? {
//!     let (key, value) = pair?;
//!     println!("{} has {} bytes", key.escape_ascii(), value.len());
//! }
//! for finding in database.findings() {
//!     eprintln!("{finding}");
//! }
//! # Ok::<(), pilaster_core::Error>(())
//! ```
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "tests compute with known values"
    )
)]

mod batch;
mod block;
mod checksum;
mod content;
mod cursor;
mod damage;
mod database;
mod edit;
mod footer;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod key;
mod level;
mod log;
mod memory;
mod pairs;
mod range_deletes;
mod replay;
mod table;
mod table_scan;
mod version;

pub use damage::OnDamage;
pub use database::{DEFAULT_FAMILY, Database, is_database};
pub use pairs::Pairs;
