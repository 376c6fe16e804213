//! Formats of others, so that rows can come from and go to where users already work.

pub mod arrow_ipc;
pub mod csv;
mod csv_nulls;
mod guard;
mod json_array;
mod json_kind;
pub mod json_lines;
mod json_value;
pub mod parquet;
mod rewrite;
pub(crate) mod source_read;
mod whole;
