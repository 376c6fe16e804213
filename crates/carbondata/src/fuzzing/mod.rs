//! The parsers as functions on bytes: whatever they are given, they must come back.

mod damage;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int32Array};
use arrow_schema::{DataType, Field};
use bytes::Bytes;
use pilaster_core::positional::ColumnCursor;
use pilaster_core::source::MemorySource;
use pilaster_core::{Limits, SourceRef};
use pilaster_encoding::thrift::Reader;

use crate::file::cursor::PageCursor;
use crate::file::layout::CarbonFile;
use crate::file::meta::{EncoderMeta, Max, Store};
use crate::file::page::numbers::NumberPage;
use crate::file::page::{nested, numbers, order, strings, words};
use crate::file::stream::open_stream_until_damage;
use crate::file::{CarbonType, ColumnNode};
use crate::messages::{ChunkHeader, FileFooter, FileHeader, IndexHeader};

pub use damage::damaged_file;

/// Headers, footers, chunk headers, index files and encoder meta.
pub fn structures(bytes: &[u8]) {
    let shared = Bytes::copy_from_slice(bytes);
    let _ = FileHeader::parse(&mut Reader::new(bytes));
    let _ = FileFooter::parse(&shared);
    let _ = ChunkHeader::parse(&shared);
    let _ = IndexHeader::parse_file(&shared);
    let _ = EncoderMeta::parse(bytes);
}

/// Row ids, runs, strings, dates and codes.
pub fn pages(bytes: &[u8]) {
    let rows = bytes.first().map_or(0, |byte| usize::from(*byte));
    let _ = order::row_order(bytes, rows);
    let _ = order::expand_runs(bytes, &vec![0u32; rows], 1 << 16);
    let _ = strings::date_page(bytes);
    let _ = words::codes(bytes, rows % 5);
    for width in [strings::LengthWidth::Two, strings::LengthWidth::Four] {
        for carbon_type in [CarbonType::String, CarbonType::Binary, CarbonType::Date, CarbonType::Long] {
            let _ = strings::array(bytes.into(), width, carbon_type, None);
        }
    }
}

/// Schema files, `tablestatus`, dictionaries of tables, and files of versions 1 and 2.
pub fn tables(bytes: &[u8]) {
    crate::table::fuzz(bytes);
    let source: SourceRef = Arc::new(MemorySource::new("fuzz", bytes.to_vec()));
    if let Ok(file) = crate::legacy::open_legacy(source, Limits::small()) {
        read_all(file);
    }
}

/// Local dictionaries, out of a chunk header.
pub fn dictionaries(bytes: &[u8]) {
    let Ok((header, _)) = ChunkHeader::parse(&Bytes::copy_from_slice(bytes)) else { return };
    if let Some(dictionary) = &header.dictionary {
        let codec = pilaster_encoding::codec::Codec::Snappy;
        let _ = words::Words::parse(dictionary, codec, CarbonType::String, &Limits::small());
    }
}

/// Pages of numbers: every type, encoding and stored form, chosen by the first bytes.
pub fn numbers(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first_chunk::<4>() else { return };
    let [which, encoding, store, decimals] = *choice;
    let (limit, bytes) = bytes.split_at(bytes.len().min(16));
    let pick = |count: usize, byte: u8| usize::from(byte).checked_rem(count).unwrap_or(0);
    let carbon_type = [
        CarbonType::Short,
        CarbonType::Int,
        CarbonType::Long,
        CarbonType::Double,
        CarbonType::Float,
        CarbonType::Byte,
        CarbonType::Boolean,
        CarbonType::Timestamp,
        CarbonType::Date,
        CarbonType::Decimal { precision: 18, scale: 2 },
        CarbonType::Decimal { precision: 38, scale: 10 },
    ];
    let stores = [
        Store::Byte,
        Store::Short,
        Store::ShortInt,
        Store::Int,
        Store::Long,
        Store::Float,
        Store::Double,
        Store::Decimal,
        Store::ByteArray,
    ];
    let mut number = [0u8; 16];
    number.iter_mut().zip(limit).for_each(|(slot, byte)| *slot = *byte);
    let low = number.first_chunk::<8>().copied().unwrap_or_default();
    let number = i128::from_le_bytes(number);
    let maxima = [
        Max::Integer(i64::from_le_bytes(low)),
        Max::Double(f64::from_le_bytes(low)),
        Max::Decimal(number),
        Max::None,
    ];
    let (Some(&carbon_type), Some(&store), Some(&max)) = (
        carbon_type.get(pick(carbon_type.len(), which)),
        stores.get(pick(stores.len(), store)),
        maxima.get(pick(maxima.len(), which / 16)),
    ) else {
        return;
    };
    let decimals = i32::from(decimals % 40).saturating_sub(1);
    let meta = EncoderMeta { column_type: 4, store, decimals, max, rest: 0 };
    let encoding = i32::from(encoding % 17);
    let count = numbers::value_count(carbon_type, encoding, &meta, bytes);
    let page = NumberPage { carbon_type, encoding, meta: &meta, bytes, order: None, nulls: None };
    if let (Ok(count), Ok(array)) = (count, page.decode()) {
        assert_eq!(array.len(), count, "as many values as were counted");
    }
}

/// Nodes of arrays, maps and structs over children of some length.
pub fn nested(bytes: &[u8]) {
    let Some((length, bytes)) = bytes.split_first() else { return };
    let items: ArrayRef = Arc::new(Int32Array::from_iter_values(0..i32::from(*length)));
    let field = |data_type: DataType| Arc::new(Field::new("a", data_type, true));
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let node = ColumnNode {
        carbon_type: CarbonType::Array,
        chunk: 0,
        is_dimension: true,
        has_table_dictionary: false,
        is_child: false,
        field: field(DataType::List(item)),
        children: Vec::new(),
        entries_chunk: None,
    };
    if let Ok(list) = nested::list(&node, bytes, &items) {
        assert!(list.len() <= bytes.len(), "no more rows than bytes");
    }
}

/// Files of streams: opened as far as they go, all rows read.
pub fn streams(bytes: &[u8]) {
    // The name tells the release, and with it how long the lengths inside of nested columns are.
    for name in ["part-0-0_batchno0-0-0-0.carbondata", "part-0-0_batchno0-0-0-0.snappy.carbondata"] {
        let source: SourceRef = Arc::new(MemorySource::new(name, bytes.to_vec()));
        let opened = open_stream_until_damage(source, Limits::small(), bytes.len() as u64);
        let Ok((file, _)) = opened else { return };
        read_all(file);
    }
}

/// Measures and packed numbers of versions 1 and 2, and what is copied out of footers to repair an index.
pub fn old_pages(bytes: &[u8]) {
    crate::legacy::fuzz(bytes);
    crate::table::fuzz_raw(bytes);
}

fn read_all(file: CarbonFile) {
    let file = Arc::new(file);
    for (column, _) in file.columns.iter().enumerate() {
        let mut cursor = PageCursor::alone(Arc::clone(&file), column);
        let _ = cursor.read(0..file.rows.min(1 << 16));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parsers_come_back(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            structures(&bytes);
            pages(&bytes);
            dictionaries(&bytes);
            tables(&bytes);
            numbers(&bytes);
            nested(&bytes);
            streams(&bytes);
            old_pages(&bytes);
        }

        #[test]
        fn any_damage_is_met(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            damaged_file(&bytes);
        }
    }
}
