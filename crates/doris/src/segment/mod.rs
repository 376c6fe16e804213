//! The segment: Doris's columnar file, one `.dat`.
//!
//! ```text
//! | data and dictionary pages, column by column | index pages | V3: column metadata | footer | length | CRC-32C | "D0R1" |
//! ```
//!
//! Everything is found from the end. A column's ordinal index leads from a row to its page; zone maps, bloom filters, bitmap
//! indexes and the key index say which rows a query can leave out. See `docs/formats/doris-segment.md` for every byte.
//!
//! | module | what |
//! | --- | --- |
//! | `footer`, `column_meta`, `types` | what the file says of itself |
//! | `page` | pointer → checked, decompressed body |
//! | `cells`, `decode`, `zero_date` | body → Arrow |
//! | `paged`, `page_cursor` | a column with pages, by row |
//! | `column`, `cursor` | columns made of columns: arrays, maps, structs |
//! | `schema_change`, `default_value` | columns of today's schema in files of an older one |
//! | `variant`, `variant_cell` | VARIANT, put together again |
//! | `zone_map`, `bloom`, `ngram`, `page_indexes` | what is known of each page |
//! | `key`, `key_index`, `bitmap_index` | rows by value |
//! | `prune` | which rows can match a predicate |
//! | `structure`, `describe`, `verify`, `reader` | the dataset |
//! | [`mod@write`] | Arrow → segment |
//! | `rebuild` | a footer that is gone, from the pages |

#[cfg(any(test, feature = "fuzzing"))]
mod any_bytes;
mod bitmap_index;
mod bloom;
mod cells;
mod column;
mod column_meta;
mod cursor;
mod decode;
mod default_value;
mod describe;
mod footer;
#[cfg(test)]
mod hostile_tests;
mod index_pages;
mod key;
mod key_index;
mod ngram;
mod page;
mod page_cursor;
mod page_indexes;
mod paged;
mod prune;
mod reader;
mod rebuild;
mod schema_change;
mod stored;
mod structure;
mod types;
mod variant;
mod variant_cell;
#[cfg(test)]
mod variant_tests;
mod verify;
pub mod write;
mod zero_date;
mod zone_map;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use any_bytes::{decode_any_page, parse_any_index, variant_cell_text};
pub(crate) use column::{column_field, schema_type};
pub use column_meta::{ColumnMeta, VariantPath};
pub use footer::{MAGIC, PrimaryKeyMeta, SegmentMetadata, StorageFormat};
pub use page::PagePointer;
pub use reader::{SegmentReader, SegmentReaderOptions};
pub use rebuild::{SegmentRepair, repair};
pub use types::{Compression, Encoding, FieldType};
pub(crate) use write::row_keys;
pub use write::{
    ColumnWriteOptions, Release, SegmentSummary, SegmentWriteOptions, SegmentWriter, VariantSubcolumn,
};
pub(crate) use zone_map::large_number;
