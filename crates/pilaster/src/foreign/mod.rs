//! Formats of others, so that rows can come from and go to where users already work.

pub mod arrow_ipc;
pub mod csv;
mod csv_nulls;
mod guard;
mod json_array;
pub mod json_lines;
pub mod parquet;
mod rewrite;
mod source_read;
mod whole;
