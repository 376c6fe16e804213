//! The CFile: Kudu's columnar file.
//!
//! ```text
//! header | data block | data block | index block | … | index roots | dictionary | footer
//! ```
//!
//! Blocks touch each other. The footer says type, encoding, codec and where the roots of the index trees are; an index
//! by row ordinal leads to the block of a row, an index by value (key columns) to the block of a key. See
//! `docs/formats/kudu-cfile.md` for every byte.
//!
//! | module | what |
//! | --- | --- |
//! | `metadata`, `proto` | header and footer |
//! | `block` | pointer → checked, decompressed payload |
//! | `index` | the index trees |
//! | `decode` | payload → Arrow |
//! | `file`, `cursor`, `lookup` | an open file; its cells by row; rows by key |
//! | `kinds`, `bloom` | what the rows of a file are: cells, deltas, bloom blocks |
//! | `walk`, `lengths`, `resync`, `recover` | blocks without an index or a footer |
//! | `reader`, `describe`, `verify`, `verify_values` | the dataset |
//! | `write` | Arrow → CFile |

mod arrow_types;
mod block;
mod bloom;
mod cursor;
mod decode;
mod describe;
mod file;
mod index;
mod kinds;
mod lengths;
mod lookup;
mod metadata;
mod proto;
mod reader;
mod recover;
mod resync;
mod types;
mod verify;
mod verify_values;
mod walk;
mod write;

pub(crate) use arrow_types::Target;
pub use arrow_types::{kudu_type, natural_type};
pub use bloom::{BloomBlock, hash64};
pub(crate) use cursor::CellCursor;
pub(crate) use decode::number_values;
pub(crate) use file::CFile;
pub use file::{CFileReaderOptions, DEFAULT_COLUMN};
pub use kinds::CFileKind;
pub(crate) use kinds::delta_values;
pub(crate) use lookup::stored_form;
pub(crate) use metadata::looks_like_footer;
pub use metadata::{
    BlockPointer, CFileMetadata, DELTA_STATISTICS, MAGIC_V1, MAGIC_V2, MAX_KEY, MIN_KEY, Version,
};
pub use reader::CFileReader;
pub(crate) use reader::{column_statistics, column_statistics_with_sizes};
pub use recover::AssumedShape;
pub(crate) use recover::recover_column;
pub use types::{Compression, Encoding, KuduType, Physical};
pub(crate) use write::{BloomFileWriter, Stored};
pub use write::{CFileWriter, CFileWriterOptions, WriteSummary};
