//! The parsers as functions on bytes: whatever they are given, they must come back.

use std::sync::Arc;

use bytes::Bytes;
use pilaster_core::positional::ColumnCursor;
use pilaster_core::source::MemorySource;
use pilaster_core::{Limits, RowRanges, SourceRef};
use pilaster_encoding::thrift::Reader;

use crate::file::CarbonType;
use crate::file::cursor::PageCursor;
use crate::file::meta::EncoderMeta;
use crate::file::page::{order, strings, words};
use crate::messages::{ChunkHeader, FileFooter, FileHeader, IndexHeader};

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
    let _ = order::expand_runs(bytes, rows, 1 << 16);
    let _ = strings::date_page(bytes);
    let _ = words::codes(bytes, rows % 5);
    for width in [strings::LengthWidth::Two, strings::LengthWidth::Four] {
        for carbon_type in [CarbonType::String, CarbonType::Binary, CarbonType::Date, CarbonType::Long] {
            if let Ok(parsed) = strings::Strings::parse(bytes, width, None) {
                let _ = parsed.into_array(carbon_type);
            }
        }
    }
}

/// Schema files, `tablestatus`, dictionaries of tables, and files of versions 1 and 2.
pub fn tables(bytes: &[u8]) {
    crate::table::fuzz(bytes);
    let source: SourceRef = Arc::new(MemorySource::new("fuzz", bytes.to_vec()));
    let small = 1 << 20;
    let limits = Limits {
        metadata_bytes: 1 << 16,
        block_bytes: small,
        decoded_bytes: small,
        depth: 8,
        ..Limits::default()
    };
    if let Ok(file) = crate::legacy::open_legacy(source, limits) {
        let file = Arc::new(file);
        for (column, _) in file.columns.iter().enumerate() {
            let rows = RowRanges::none();
            let mut cursor = PageCursor::new(Arc::clone(&file), column, rows, Arc::default());
            let _ = cursor.read(0..file.rows.min(1 << 16));
        }
    }
}

/// Local dictionaries, out of a chunk header.
pub fn dictionaries(bytes: &[u8]) {
    let Ok((header, _)) = ChunkHeader::parse(&Bytes::copy_from_slice(bytes)) else { return };
    if let Some(dictionary) = &header.dictionary {
        let codec = pilaster_encoding::codec::Codec::Snappy;
        let _ = words::Words::parse(dictionary, codec, CarbonType::String, &Limits::default());
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
        }
    }
}
