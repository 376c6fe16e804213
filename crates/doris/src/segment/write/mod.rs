//! Arrow → segment.
//!
//! ```text
//! RecordBatch ─► values ─► encode ─► page ─┐ one buffer per column, until all rows are there
//!                  │                        └─► data of column 0, of column 1, … | index pages | footer
//!                  └─► zone maps, filters, keys
//! ```
//!
//! A segment stores column after column, so the encoded pages of all columns but one wait for the end: a writer holds
//! one page per column being filled and the encoded bytes of one segment. A VARIANT column holds its documents as well,
//! because the types of its paths are known only when the last row is.
//!
//! | module | what |
//! | --- | --- |
//! | `options`, `plan` | what can be chosen, and what that means for each column of a schema |
//! | `release` | what an old release can read |
//! | `values` | Arrow arrays in the form a page stores |
//! | `encode` | the values of one page, for each encoding |
//! | `page` | a body with its null map, compressed, with footer and checksum |
//! | `paged` | a column with pages |
//! | `zone_map`, `filter` | what is said of each page |
//! | `column`, `meta` | columns made of columns; how they are described |
//! | `variant`, `variant_parts`, `variant_arrays` | JSON taken apart into columns |
//! | `row_store`, `row_store_nested` | whole rows as JSONB |
//! | `keys`, `indexed` | short keys, primary keys, columns that serve an index |
//! | `row_keys` | keys of rows that are not sorted yet |
//! | `writer` | the file |

mod column;
mod encode;
mod filter;
#[cfg(test)]
mod golden_tests;
mod indexed;
mod keys;
mod meta;
mod options;
mod page;
mod paged;
mod plan;
mod release;
mod row_keys;
mod row_store;
mod row_store_nested;
mod values;
mod variant;
mod variant_arrays;
mod variant_parts;
mod writer;
mod zone_map;

// What a footer is made of, for putting one together again.
pub(super) use meta::{declared as planned_meta, no_helper as planned_helper};
pub use options::{ColumnWriteOptions, SegmentWriteOptions, VariantSubcolumn};
pub(super) use page::Sink;
pub(super) use paged::ordinal_index;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use plan::filters_fit;
pub(crate) use plan::is_readable;
pub(super) use plan::{ColumnPlan, Layout, plan_schema};
pub use release::Release;
pub(crate) use row_keys::row_keys;
pub(super) use writer::write_footer;
pub use writer::{SegmentSummary, SegmentWriter};
