//! Files of our own whose bytes are changed. Pages have no checksums, so that what they say is believed.
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
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray};
use pilaster_core::Limits;
use pilaster_core::fuzzing::{Choices, look_at};
use pilaster_core::source::MemorySource;

use crate::file::{CarbonFileOptions, CarbonFileReader, CarbonFileWriter, CarbonWriterOptions, Compressor};

fn rows(choices: &mut Choices<'_>) -> RecordBatch {
    let rows = 1 + choices.below(200) as i64;
    let period = 1 + choices.below(9) as i64;
    let is_null = |row: i64| period > 5 && row % period == 0;
    let mut lists = ListBuilder::new(Int64Builder::new());
    for row in 0..rows {
        lists.append_option((!is_null(row)).then(|| (1..=row % period + 1).map(Some)));
    }
    let numbers = (0..rows).map(|row| (!is_null(row)).then_some(row / period)).collect::<Int64Array>();
    let reals = (0..rows).map(|row| (!is_null(row)).then_some(row as f64 / 8.0)).collect::<Float64Array>();
    let texts = (0..rows).map(|row| (!is_null(row)).then(|| "word ".repeat((row % period) as usize)));
    let columns: [(&str, ArrayRef, bool); 4] = [
        ("number", Arc::new(numbers), true),
        ("real", Arc::new(reals), true),
        ("text", Arc::new(texts.collect::<StringViewArray>()), true),
        ("list", Arc::new(lists.finish()), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}

/// A file that is written, and some bytes of it changed.
pub fn damaged_file(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let batch = rows(&mut choices);
    let sorted = if choices.one_in(2) { vec!["text", "number"] } else { Vec::new() };
    let indexed = if sorted.is_empty() { Vec::new() } else { vec!["text"] };
    let options = CarbonWriterOptions::default()
        .with_compressor(choices.of(&Compressor::ALL))
        .with_page_rows(1 + choices.below(100))
        .with_blocklet_bytes(1 + 64 * choices.below(256) as u64)
        .with_local_dictionary(choices.one_in(2))
        .with_sort_columns(sorted)
        .with_inverted_index(indexed);
    let mut writer =
        CarbonFileWriter::try_new(Vec::new(), &batch.schema(), &options).expect("types with a form");
    writer.write(&batch).expect("a sink that takes everything");
    let (mut file, _, _) = writer.finish().expect("a sink that takes everything");
    let footer = file.len() - file.len() / 4..file.len();
    choices.damage(&mut file, &footer);
    let source = Arc::new(MemorySource::new("fuzz", file));
    let options = CarbonFileOptions::default().with_limits(Limits::small());
    if let Ok(reader) = CarbonFileReader::open_with_options(source.clone(), &options) {
        look_at(&reader, None);
    }
    if let Ok(reader) = CarbonFileReader::recover(source, &options) {
        look_at(&reader, None);
    }
}
