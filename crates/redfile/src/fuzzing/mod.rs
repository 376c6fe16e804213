//! The decoders as functions on bytes, for the targets in `fuzz/`.

mod damage;

use arrow_schema::DataType;
use bytes::Bytes;

use crate::metadata::{
    ColumnMetadata, DataPageHeader, Encoding, FileMetadata, PageHeader, PhysicalType, SchemaElement,
    parse_page_index,
};
use crate::read::{DataPage, LeafBatch, Scratch};
use crate::schema::Leaf;

pub use damage::damaged_file;

const TYPES: [PhysicalType; 7] = [
    PhysicalType::Boolean,
    PhysicalType::Int32,
    PhysicalType::Int64,
    PhysicalType::Int96,
    PhysicalType::Float,
    PhysicalType::Double,
    PhysicalType::ByteArray,
];

/// Decodes a page at once and row by row, and compares both.
///
/// # Panics
/// If they differ: that is what a fuzzer looks for.
#[expect(clippy::panic, reason = "a fuzzer finds what panics")]
pub fn page(physical: u8, max_def: u8, max_rep: u8, encoding: u8, entries: u32, body: &[u8]) {
    let physical_type =
        TYPES.get(usize::from(physical) % TYPES.len()).copied().unwrap_or(PhysicalType::Boolean);
    let (max_def, max_rep) = (max_def % 65, max_rep % 65);
    let leaf = Leaf {
        element: SchemaElement::default(),
        physical_type,
        path: Vec::new(),
        max_def: max_def.max(max_rep),
        max_rep,
    };
    let encoding = if encoding.is_multiple_of(2) { Encoding::Plain } else { Encoding::GroupVarInt };
    let header = DataPageHeader { num_values: entries, encoding, num_rows: None, statistics: None };
    let data_type = DataType::Binary;
    let open = || DataPage::open(&Bytes::copy_from_slice(body), &header, &leaf, Scratch::default());
    let Ok(mut whole) = open() else { return };
    let mut at_once = LeafBatch::new(&leaf, &data_type, 0);
    let first = whole.take(whole.rows_left, &mut at_once);
    let Ok(mut pieces) = open() else { panic!("a page that opens only once") };
    let mut in_turn = LeafBatch::new(&leaf, &data_type, 0);
    let mut second = Ok(());
    while pieces.rows_left > 0 && second.is_ok() {
        second = pieces.take(1, &mut in_turn);
    }
    let same = at_once.entries == in_turn.entries && at_once.values.len() == in_turn.values.len();
    if first.is_ok() != second.is_ok() || (first.is_ok() && !same) {
        panic!("a page that reads differently in pieces");
    }
}

/// Parses bytes as every structure of the format.
pub fn headers(bytes: &[u8]) {
    let _ = PageHeader::parse(bytes);
    let _ = ColumnMetadata::parse_at_start(bytes);
    let _ = FileMetadata::parse_whole(bytes);
    let _ = parse_page_index(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_page_reads_in_pieces_as_at_once(
            shape in (any::<u8>(), 0u8..5, 0u8..4, any::<u8>()),
            entries in 0u32..40,
            body in prop_oneof![prop::collection::vec(any::<u8>(), 0..80), prop::collection::vec(0u8..3, 0..80)],
        ) {
            let (physical, max_def, max_rep, encoding) = shape;
            super::page(physical, max_def, max_rep, encoding, entries, &body);
            super::headers(&body);
        }

        #[test]
        fn any_damage_without_checksums_is_met(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            super::damaged_file(&bytes);
        }
    }
}
