//! How values come out as text: the same in JSON lines, JSON, CSV and tables.
//!
//! | type | text |
//! | --- | --- |
//! | integers, booleans | numbers, `true` and `false` |
//! | floats | the shortest text that reads back to the same bits; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | decimals | strings with their full scale: `"1.50"` |
//! | strings | strings |
//! | binary | lower-case hex |
//! | dates | `"YYYY-MM-DD"` |
//! | timestamps | `"YYYY-MM-DDTHH:MM:SS.ffffff"` in UTC, nine digits for nanoseconds, `Z` only with a zone |
//! | times | `"HH:MM:SS.ffffff"`, nine digits for nanoseconds |
//! | durations, intervals | ISO 8601: `"PT1.500000S"`, `"P1M2DT0.000000003S"` |
//! | lists | arrays |
//! | structs | objects |
//! | maps | arrays of `{"key":…,"value":…}` |
//! | null | `null`; nothing at all in CSV |

mod calendar;
mod delimited;
mod json;
mod nested;
mod scalar;
mod sheet;
mod table;
mod value;

pub use delimited::DelimitedWriter;
pub use json::{JsonArrayWriter, JsonLinesWriter, append_json_lines};
pub use sheet::{Sheet, Side, printable};
pub use table::TableWriter;
pub use value::ValueEncoder;
