//! Encodings and codecs that no golden file has, in pages made by hand.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int32Type};
use arrow_schema::DataType;
use pilaster_core::source::MemorySource;
use pilaster_encoding::checksum::crc32c;
use pilaster_encoding::codec::Codec;
use pilaster_encoding::prefix::PrefixEncoder;
use pilaster_encoding::rle;
use prost::Message;

use super::*;
use crate::messages::{DataPageFooterPb, PageFooterPb};
use crate::segment::page::{PageKind, PagePointer, PageStore};
use crate::segment::types::Compression;

fn footer(rows: u64, null_bytes: usize, uncompressed: usize) -> PageFooterPb {
    PageFooterPb {
        kind: Some(1),
        uncompressed_size: Some(uncompressed as u32),
        data_page_footer: Some(DataPageFooterPb {
            first_ordinal: Some(0),
            num_values: Some(rows),
            nullmap_size: Some(null_bytes as u32),
            next_array_item_ordinal: None,
            format_version: None,
        }),
        ..PageFooterPb::default()
    }
}

fn decode(cell: &Cell, encoding: Encoding, body: &[u8], rows: u64, null_bytes: usize) -> Result<ArrayRef> {
    let shape = PageShape { cell: cell.clone(), encoding, limits: Limits::default() };
    let page = Page { body: Bytes::copy_from_slice(body), footer: footer(rows, null_bytes, body.len()) };
    let mut decoded = shape.decode(&page, &|| Err(Error::corrupt("a dictionary", "none")))?;
    decoded.read(0..decoded.rows, Form::Wanted, cell)
}

const WORDS: [&str; 4] = ["apple", "apply", "", "banana"];

/// The entries in each encoding of strings.
fn encoded_words() -> Vec<(Encoding, Vec<u8>)> {
    let all = WORDS.concat().into_bytes();
    let mut plain = all.clone();
    for start in [0u32, 5, 10, 10] {
        plain.extend(start.to_le_bytes());
    }
    plain.extend(4u32.to_le_bytes());
    let mut second: Vec<u8> =
        WORDS.iter().flat_map(|word| [&[word.len() as u8][..], word.as_bytes()].concat()).collect();
    second.extend(4u32.to_le_bytes());
    let mut third = all.clone();
    third.extend(WORDS.map(|word| word.len() as u8));
    third.extend((all.len() as u32).to_le_bytes());
    third.extend(4u32.to_le_bytes());
    let mut encoder = PrefixEncoder::new(16);
    WORDS.iter().for_each(|word| encoder.push(word.as_bytes()));
    let (mut prefix, _) = encoder.finish();
    prefix.extend(4u32.to_le_bytes());
    prefix.push(16);
    prefix.extend(0u32.to_le_bytes());
    prefix.extend(1u32.to_le_bytes());
    vec![
        (Encoding::Plain, plain),
        (Encoding::PlainV2, second),
        (Encoding::PlainV3, third),
        (Encoding::Prefix, prefix),
    ]
}

#[test]
fn strings_in_every_encoding() {
    for (encoding, body) in encoded_words() {
        let array = decode(&Cell::Text, encoding, &body, 4, 0).unwrap();
        assert_eq!(array.as_string_view().iter().flatten().collect::<Vec<_>>(), WORDS, "{encoding}");
        // Another count, a cut and an addition are refused.
        assert!(decode(&Cell::Text, encoding, &body, 3, 0).is_err(), "{encoding}");
        assert!(decode(&Cell::Text, encoding, &body[..body.len() - 1], 4, 0).is_err(), "{encoding}");
        assert!(decode(&Cell::Text, encoding, &[&body[..], &[0]].concat(), 4, 0).is_err(), "{encoding}");
    }
}

#[test]
fn nulls_stand_where_the_map_says() {
    let mut map = Vec::new();
    rle::encode_bitmap(&[0b0010_1001], 0, 7, &mut map);
    for (encoding, body) in encoded_words() {
        let array = decode(&Cell::Text, encoding, &[body, map.clone()].concat(), 7, map.len()).unwrap();
        let expected = [None, Some("apple"), Some("apply"), None, Some(""), None, Some("banana")];
        assert_eq!(array.as_string_view().iter().collect::<Vec<_>>(), expected, "{encoding}");
    }
}

#[test]
fn numbers_in_runs_and_in_frames() {
    let number = Cell::Number(DataType::Int32, 4);
    let values = [7i32, 7, 7, 7, 7, 7, 7, 7, 7, -1];
    let mut runs = 10u32.to_le_bytes().to_vec();
    rle::encode(&values, 32, &mut runs);
    let array = decode(&number, Encoding::Rle, &runs, 10, 0).unwrap();
    assert_eq!(array.as_primitive::<Int32Type>().values(), &values);
    // The worked example of frames: 5, 7, 6.
    let frames = [5, 0, 0, 0, 0b0010_0100, 0, 2, 128, 3, 0, 0, 0];
    let array = decode(&number, Encoding::Frames, &frames, 3, 0).unwrap();
    assert_eq!(array.as_primitive::<Int32Type>().values(), &[5, 7, 6]);
    assert!(decode(&number, Encoding::Frames, &frames, 4, 0).is_err());
    // Old dates have three bytes, in four of a frame: 1970-01-01 and the day after.
    let first = 1970u32 << 9 | 1 << 5 | 1;
    let mut frames = first.to_le_bytes().to_vec();
    frames.extend([0b0100_0000, 1, 1, 128, 2, 0, 0, 0]);
    let array = decode(&Cell::Date, Encoding::Frames, &frames, 2, 0).unwrap();
    assert_eq!(array.as_primitive::<Date32Type>().values(), &[0, 1]);
}

#[test]
fn a_dictionary_that_was_full_goes_on_in_plain() {
    for (encoding, words) in encoded_words().into_iter().take(3) {
        let inner = match encoding {
            Encoding::Plain => 2u32,
            Encoding::PlainV2 => 8,
            _ => 9,
        };
        let body = [&inner.to_le_bytes()[..], &words].concat();
        let array = decode(&Cell::Text, Encoding::Dict, &body, 4, 0).unwrap();
        assert_eq!(array.as_string_view().iter().flatten().collect::<Vec<_>>(), WORDS, "{encoding}");
    }
    assert!(decode(&Cell::Text, Encoding::Dict, &[7, 0, 0, 0], 0, 0).is_err());
}

/// A whole page with its footer and checksum.
fn page(body: &[u8], stored: &[u8], rows: u64) -> Vec<u8> {
    let footer = footer(rows, 0, body.len()).encode_to_vec();
    let mut page = [stored, &footer].concat();
    page.extend((footer.len() as u32).to_le_bytes());
    page.extend(crc32c(&page).to_le_bytes());
    page
}

#[test]
fn pages_in_every_codec() {
    let mut body = 1000u32.to_le_bytes().to_vec();
    body.extend((0..1000i32).flat_map(|value| (value / 10).to_le_bytes()));
    for (compression, codec) in [
        (Compression::None, None),
        (Compression::Snappy, Some(Codec::Snappy)),
        (Compression::Lz4, Some(Codec::Lz4)),
        (Compression::Lz4Hc, Some(Codec::Lz4)),
        (Compression::Lz4Frame, Some(Codec::Lz4Frame)),
        (Compression::Zlib, Some(Codec::Zlib)),
        (Compression::Zstd, Some(Codec::Zstd)),
    ] {
        let mut stored = Vec::new();
        match codec {
            Some(codec) => codec.compress(&body, &mut stored).unwrap(),
            None => stored.clone_from(&body),
        }
        let bytes = page(&body, &stored, 1000);
        let pointer = PagePointer { offset: 0, size: bytes.len() as u32 };
        let open = |bytes: Vec<u8>, limits: Limits| {
            let pages_end = bytes.len() as u64;
            let source = Arc::new(MemorySource::new("page", bytes));
            PageStore::new(source, limits, true, pages_end).read(pointer, PageKind::Data, compression)
        };
        assert_eq!(open(bytes.clone(), Limits::default()).unwrap().body, body, "{compression}");
        let mut damaged = bytes.clone();
        damaged[20] ^= 1;
        assert!(open(damaged, Limits::default()).is_err(), "{compression}");
        if codec.is_some() {
            let small = Limits { decoded_bytes: 100, ..Limits::default() };
            assert!(open(bytes, small).unwrap_err().to_string().contains("decoded_bytes"), "{compression}");
        }
    }
}

/// A run of four bytes may stand for millions of addresses, each of them sixteen bytes of view and up to fifteen of text.
#[test]
fn addresses_are_counted_as_the_text_they_become() {
    let page = |count: u32| {
        let mut body = count.to_le_bytes().to_vec();
        pilaster_encoding::varint::write_u32(&mut body, count << 1);
        body.extend([1, 2, 3, 4]);
        decode(&Cell::Ipv4, Encoding::Rle, &body, u64::from(count), 0)
    };
    assert_eq!(page(3).unwrap().as_string_view().value(2), "4.3.2.1");
    let error = page(20_000_000).unwrap_err().to_string();
    assert!(error.contains("decoded_bytes"), "{error}");
}
