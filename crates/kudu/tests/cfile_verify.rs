//! What `verify` compares with the values: indexes, smallest and largest key, restarts, changes. All checksums are right.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

mod support;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int64Array, StringArray};
use arrow_schema::{DataType, Field};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, VerifyDepth, col, lit};
use pilaster_encoding::checksum::crc32c;
use pilaster_kudu::cfile::{CFileReader, CFileWriterOptions, DELTA_STATISTICS, Encoding, MAX_KEY, MIN_KEY};
use pilaster_kudu::key::encode_ordered_varint;

use support::{batches, memory, open_as, write};

/// The one thing that is wrong with a file whose checksums are right, if anything is.
fn finding(bytes: &[u8]) -> Option<String> {
    let reader = CFileReader::open(memory("t.cfile", bytes.to_vec())).unwrap();
    assert!(reader.verify(VerifyDepth::Checksums, &Silent).unwrap().is_sound());
    let findings = reader.verify(VerifyDepth::Values, &Silent).unwrap().findings;
    assert!(findings.len() <= 1, "{findings:?}");
    findings.into_iter().next().map(|finding| finding.to_string())
}

/// The bytes with the checksum of the block at `block` made right again.
fn with_checksum(mut bytes: Vec<u8>, block: Range<usize>) -> Vec<u8> {
    let sum = crc32c(&bytes[block.start..block.end - 4]).to_le_bytes();
    bytes[block.end - 4..block.end].copy_from_slice(&sum);
    bytes
}

fn value_index(bytes: &[u8]) -> Range<usize> {
    let root = CFileReader::open(memory("t.cfile", bytes.to_vec())).unwrap().metadata().value_index.unwrap();
    root.offset as usize..root.offset as usize + root.size as usize
}

/// Where the last byte of each key of an index block of short entries lies.
fn last_key_bytes(bytes: &[u8], block: &Range<usize>) -> Vec<usize> {
    let end = block.end - 4 - 4;
    let trailer = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
    let count = bytes[end - trailer + 1] as usize;
    let list = end - trailer - 4 * count;
    let position = |entry: usize| {
        let at = list + 4 * entry;
        block.start + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    };
    (0..count).map(position).map(|entry| entry + bytes[entry] as usize).collect()
}

fn numbers() -> (Field, Vec<u8>) {
    let field = Field::new("value", DataType::Int64, false);
    let array: ArrayRef = Arc::new(Int64Array::from_iter_values((0..600).map(|row| row * 3)));
    let options = CFileWriterOptions::default()
        .with_encoding(Encoding::Plain)
        .with_value_index(true)
        .with_block_size_bytes(512);
    let bytes = write(&field, &[array], options).unwrap();
    (field, bytes)
}

#[test]
fn a_key_of_the_value_index_that_the_values_contradict_is_found() {
    let (field, bytes) = numbers();
    assert_eq!(finding(&bytes), None);
    let block = value_index(&bytes);
    let keys = last_key_bytes(&bytes, &block);
    assert!(keys.len() > 5);
    // Keys of eight bytes: shorter ones would no longer ascend, which the index alone tells.
    let whole = |at: &&usize| bytes[**at - 8] == 8;
    assert!(keys.iter().filter(whole).count() > 3);
    for &at in keys.iter().filter(whole) {
        let mut raised = bytes.clone();
        raised[at] += 1;
        let raised = with_checksum(raised, block.clone());
        let found = finding(&raised).unwrap();
        assert!(found.contains("expected a key in the value index"), "{found}");
    }
    // This is why it matters: the first row of a block is not found by its value.
    let number = keys.iter().position(|at| whole(&at)).unwrap();
    let mut raised = bytes.clone();
    raised[keys[number]] += 1;
    let raised = with_checksum(raised, block.clone());
    let pages = open_as(&bytes, &field).unwrap().pages().unwrap();
    let first = pages[number].rows.clone().unwrap().start * 3;
    let search = |bytes: &[u8]| {
        let reader = open_as(bytes, &field).unwrap();
        batches(reader.scan().filter(col("value").eq(lit(first as i64)))).unwrap().len()
    };
    assert_eq!((search(&bytes), search(&raised)), (1, 0));
    // A key may not be at or below one of the block before either.
    let mut lowered = bytes.clone();
    lowered[keys[number]] -= 4;
    assert!(finding(&with_checksum(lowered, block)).is_some());
}

#[test]
fn smallest_and_largest_key_that_the_values_contradict_are_found() {
    let (_, bytes) = numbers();
    for name in [MIN_KEY, MAX_KEY] {
        let at = bytes.windows(7).rposition(|window| window == name.as_bytes()).unwrap();
        // Behind the name: a tag, a length and eight bytes of key.
        let mut changed = bytes.clone();
        changed[at + 7 + 2 + 7] ^= 1;
        let tail = changed.len() - 12;
        let length = u32::from_le_bytes(changed[tail + 8..].try_into().unwrap()) as usize;
        let footer = tail - length;
        let sum = crc32c(&changed[footer..]).to_le_bytes();
        changed[footer - 4..footer].copy_from_slice(&sum);
        let found = finding(&changed).unwrap();
        assert!(found.contains(&format!("cfile footer at byte {}: expected {name} ", footer - 4)), "{found}");
    }
}

#[test]
fn keys_that_do_not_ascend_are_found() {
    let field = Field::new("value", DataType::Utf8, false);
    let words: Vec<String> = (0..400).map(|row| format!("key/{row:06}")).collect();
    let array: ArrayRef = Arc::new(StringArray::from(words));
    let options = CFileWriterOptions::default()
        .with_encoding(Encoding::Plain)
        .with_value_index(true)
        .with_block_size_bytes(1024);
    let bytes = write(&field, &[array], options).unwrap();
    assert_eq!(finding(&bytes), None);
    let page = CFileReader::open(memory("t.cfile", bytes.clone())).unwrap().pages().unwrap()[1].clone();
    let block = page.offset as usize..(page.offset + page.bytes) as usize;
    let mut changed = bytes;
    // The second word of the second block: its last digits become nines.
    changed[block.start + 12 + 10 + 7..block.start + 12 + 20].fill(b'9');
    let found = finding(&with_checksum(changed, block)).unwrap();
    assert!(found.ends_with("expected keys that ascend, without repeats, found others"), "{found}");
}

#[test]
fn restarts_that_lead_elsewhere_are_found() {
    let words: Vec<String> = (0..100).map(|row| format!("key/{row:06}")).collect();
    for is_nullable in [false, true] {
        let field = Field::new("value", DataType::Utf8, is_nullable);
        let array: ArrayRef = Arc::new(StringArray::from(words.clone()));
        let options = CFileWriterOptions::default().with_encoding(Encoding::Prefix);
        let bytes = write(&field, &[array], options).unwrap();
        assert_eq!(finding(&bytes), None);
        let page = CFileReader::open(memory("t.cfile", bytes.clone())).unwrap().pages().unwrap()[0].clone();
        let block = page.offset as usize..(page.offset + page.bytes) as usize;
        // Six restarts, their number, the checksum.
        let list = block.end - 4 - 4 - 6 * 4;
        for restart in 0..6 {
            let mut changed = bytes.clone();
            changed[list + 4 * restart] ^= 1;
            let found = finding(&with_checksum(changed, block.clone())).unwrap();
            let entry = 16 * (restart + 1);
            assert!(found.contains(&format!("where entry {entry} begins, found byte ")), "{found}");
        }
    }
}

#[test]
fn values_of_a_delta_file_that_are_no_changes_are_found() {
    let value = |row: u64, changes: &[u8]| {
        let mut value = Vec::new();
        encode_ordered_varint(row, &mut value);
        encode_ordered_varint(7, &mut value);
        value.extend_from_slice(changes);
        value
    };
    let file = |values: Vec<Vec<u8>>| {
        let array: ArrayRef = Arc::new(BinaryArray::from_iter_values(values));
        let options = CFileWriterOptions::default()
            .with_encoding(Encoding::Plain)
            .with_metadata(DELTA_STATISTICS, [0x08, 0x01]);
        write(&Field::new("value", DataType::Binary, false), &[array], options).unwrap()
    };
    let delete: &[u8] = &[2];
    assert_eq!(
        finding(&file(vec![value(1, delete), value(1, &[1, 10, 0]), value(300, &[3, 10, 3, 5, 6])])),
        None
    );
    for (bad, expected) in [
        (value(2, &[9]), "expected a change of kind 1, 2 or 3, found 9"),
        (value(2, &[]), "expected a change, found no bytes"),
        (value(2, &[1, 10, 9, 5]), "expected a cell of 8 bytes, found the end of the change"),
        (value(0, delete), "expected a change of row 1 or a later one, found 0"),
        (vec![255], "expected an ordered varint, found the end of the value"),
    ] {
        let found = finding(&file(vec![value(1, delete), bad])).unwrap();
        assert!(found.ends_with(expected), "{found}");
    }
}
