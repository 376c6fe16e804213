//! Kudu.
