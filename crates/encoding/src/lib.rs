//! Bytes to values and back.

mod error;

pub use error::{DecodeError, Result};
