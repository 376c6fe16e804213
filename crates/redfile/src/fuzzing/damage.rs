//! Files without checksums whose bytes are changed, so that what they say is believed.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what is made here is known, and a surprise must stop the run"
)]

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use pilaster_core::Limits;
use pilaster_core::fuzzing::{Choices, look_at};
use pilaster_core::source::MemorySource;

use crate::metadata::Compression;
use crate::{EncodingChoice, RedfileReader, RedfileReaderOptions, RedfileWriter, RedfileWriterOptions};

fn rows(choices: &mut Choices<'_>) -> RecordBatch {
    let rows = 1 + choices.below(200) as i64;
    let period = 1 + choices.below(9) as i64;
    let is_null = |row: i64| period > 5 && row % period == 0;
    let mut lists = ListBuilder::new(Int64Builder::new());
    for row in 0..rows {
        lists.append_option((!is_null(row)).then(|| (0..row % period).map(Some)));
    }
    let numbers = (0..rows).map(|row| (!is_null(row)).then_some(row / period)).collect::<Int64Array>();
    let texts = (0..rows).map(|row| (!is_null(row)).then(|| "word ".repeat((row % period) as usize)));
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("number", Arc::new(numbers), true),
        ("text", Arc::new(texts.collect::<StringArray>()), true),
        ("list", Arc::new(lists.finish()), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}

/// A file that is written without checksums, and some bytes of it changed.
pub fn damaged_file(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let batch = rows(&mut choices);
    let encodings = [EncodingChoice::Auto, EncodingChoice::Plain, EncodingChoice::GroupVarInt];
    let options = RedfileWriterOptions::default()
        .with_page_bytes(choices.below(256))
        .with_row_group_rows(1 + choices.below(256) as u64)
        .with_codec(Compression::ALL[choices.below(4)])
        .with_encoding(choices.of(&encodings))
        .with_replica(choices.one_in(2))
        .with_index_pages(choices.one_in(2))
        .with_statistics(choices.one_in(2))
        .with_page_row_counts(choices.one_in(2))
        .with_checksums(false);
    let mut writer = RedfileWriter::try_new(Vec::new(), &batch.schema(), options).expect("types with a form");
    writer.write(&batch).expect("a sink that takes everything");
    let (mut file, _) = writer.finish().expect("a sink that takes everything");
    let footer = file.len() / 2..file.len();
    choices.damage(&mut file, &footer);
    let source = Arc::new(MemorySource::new("fuzz", file));
    let options = RedfileReaderOptions::default()
        .with_limits(Limits::small())
        .with_data_files(|path| Err(pilaster_core::Error::invalid(format!("no file {path}"))));
    if let Ok(reader) = RedfileReader::open_with_options(source.clone(), &options) {
        look_at(&reader, None);
    }
    if let Ok((reader, _)) = RedfileReader::recover(source, None, &options) {
        // What a recovery does without is a loss that it names itself.
        look_at(&reader, None);
    }
}
