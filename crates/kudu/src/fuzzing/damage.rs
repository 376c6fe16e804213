//! Files whose bytes are changed and whose checksums are right all the same, so that what they say is believed.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what is made here is known, and a surprise must stop the run"
)]

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, Int32Array, ListArray};
use arrow_schema::Field;
use bytes::Bytes;
use pilaster_core::fuzzing::{Choices, look_at};
use pilaster_core::source::MemorySource;
use pilaster_core::{Dataset, Limits};
use pilaster_encoding::checksum::crc32c;

use crate::cfile::{
    CFileReader, CFileReaderOptions, CFileWriter, CFileWriterOptions, Compression, Version, kudu_type,
};
use crate::fs::{Pbc, append_record, file_start};

/// A log that a server wrote, and the records of a container.
const LOG: &[u8] =
    include_bytes!("../../../../testdata/kudu/tiny/fs/wals/a1be1a0f82b54a3cb57f25ade7e4a946/wal-000000001");
const CONTAINER: &[u8] =
    include_bytes!("../../../../testdata/kudu/tiny/fs/data/acb3a90bcafa44b9b7d2cdba004c155e.metadata");
/// Magic and length of a segment before its header, and the four numbers before each entry.
const PREFIX_BYTES: usize = 12;
const ENTRY_BYTES: usize = 16;

fn column(choices: &mut Choices<'_>) -> ArrayRef {
    let rows = 1 + choices.below(200) as i32;
    let period = 1 + choices.below(9) as i32;
    let is_null = |row: i32| period > 5 && row % period == 0;
    let word = |row: i32| "word ".repeat((row / period % 7) as usize);
    match choices.below(4) {
        0 => Arc::new((0..rows).map(|row| (!is_null(row)).then_some(row / period)).collect::<Int32Array>()),
        1 => Arc::new(
            (0..rows).map(|row| (!is_null(row)).then_some(row % period == 1)).collect::<BooleanArray>(),
        ),
        2 => Arc::new((0..rows).map(|row| (!is_null(row)).then(|| word(row))).collect::<BinaryArray>()),
        _ => Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
            (0..rows).map(|row| (!is_null(row)).then(|| (0..row % period).map(Some).collect::<Vec<_>>())),
        )),
    }
}

/// A column that is written, some bytes of it changed, and the checksums of its blocks made right again, or without any.
pub fn damaged_cfile(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let array = column(&mut choices);
    let has_nulls = arrow_array::Array::null_count(&array) > 0;
    let field = Field::new("value", array.data_type().clone(), has_nulls);
    let element = match array.data_type() {
        arrow_schema::DataType::List(item) => item.data_type(),
        other => other,
    };
    let encodings = kudu_type(element).expect("a type with a CFile form").encodings();
    let has_checksums = choices.one_in(2);
    let options = CFileWriterOptions::default()
        .with_encoding(choices.of(encodings))
        .with_compression(choices.of(Compression::ALL))
        .with_block_size_bytes(512 + choices.below(256))
        .with_index_block_size_bytes(choices.below(200))
        .with_checksums(has_checksums)
        .with_version(choices.of(&[Version::V2, Version::V2, Version::V1]));
    let Ok(mut writer) = CFileWriter::try_new(Vec::new(), &field, options) else { return };
    if writer.write_array(&array).is_err() {
        return;
    }
    let (mut file, _) = writer.finish().expect("a sink that takes everything");
    let limits = Limits { batch_bytes: 1 << 16, ..Limits::small() };
    let options = CFileReaderOptions::default().with_limits(limits);
    let open = |file: &[u8]| {
        CFileReader::open_with_options(Arc::new(MemorySource::new("fuzz", file.to_vec())), &options)
    };
    let sound = open(&file).expect("a file of our own");
    let pages = sound.pages().expect("pages");
    let end = pages.iter().map(|page| (page.offset + page.bytes) as usize).max().unwrap_or(0);
    // Checksums of what is behind the blocks are left as they are: changes there are met or refused.
    let place = if has_checksums { 0..end } else { end..file.len() };
    let changed = if has_checksums { end } else { file.len() };
    choices.damage(&mut file[..changed], &place);
    for page in pages.iter().filter(|_| has_checksums) {
        let (start, end) = (page.offset as usize, (page.offset + page.bytes) as usize);
        let checksum = crc32c(&file[start..end - 4]).to_le_bytes();
        file[end - 4..end].copy_from_slice(&checksum);
    }
    if let Ok(reader) = open(&file) {
        look_at(&reader, None);
    }
}

/// A log segment of which bytes of entries are changed under right checksums.
pub fn damaged_log(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let mut file = LOG.to_vec();
    let number = |file: &[u8], at: usize| {
        file.get(at..at + 4)
            .map_or(0, |four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]) as usize)
    };
    let mut entries = Vec::new();
    let mut at = PREFIX_BYTES + number(&file, PREFIX_BYTES - 4);
    while number(&file, at) > 0 && at + ENTRY_BYTES + number(&file, at) <= file.len() {
        let end = at + ENTRY_BYTES + number(&file, at);
        entries.push(at..end);
        at = end;
    }
    let all = entries.first().map_or(0, |entry| entry.start)..at;
    for _ in 0..=choices.below(3) {
        let entry = entries[choices.below(entries.len())].clone();
        choices.damage(&mut file[entry.start + ENTRY_BYTES..entry.end], &(0..0));
    }
    if choices.one_in(3) {
        choices.damage(&mut file[all], &(0..0));
    }
    for entry in entries {
        let payload = entry.start + ENTRY_BYTES;
        let checksum = crc32c(&file[payload..entry.end]).to_le_bytes();
        file[payload - 8..payload - 4].copy_from_slice(&checksum);
        let checksum = crc32c(&file[entry.start..payload - 4]).to_le_bytes();
        file[payload - 4..payload].copy_from_slice(&checksum);
    }
    super::log_segment(&file);
}

/// The records of a container, changed under right checksums.
pub fn damaged_container(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let sound = Pbc::parse("fuzz", &Bytes::from_static(CONTAINER)).expect("a file of a server");
    let mut file = file_start("kudu.BlockRecordPB");
    for (_, record) in &sound.records {
        let mut record = record.to_vec();
        if choices.one_in(3) {
            choices.damage(&mut record, &(0..0));
        }
        append_record(&mut file, &record);
    }
    super::container(&file);
}
