//! Segments that are no segments, or no longer: everything that can be asked of them.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use pilaster_core::progress::Silent;
use pilaster_core::source::MemorySource;
use pilaster_core::{
    CompareOp, Dataset, Limits, Literal, LossLog, Predicate, RowRanges, SourceRef, VerifyDepth, col, lit,
};
use pilaster_encoding::checksum::crc32c;

use super::tables::{Table, options};
use crate::segment::{SegmentReader, SegmentReaderOptions, SegmentWriter};
use pilaster_core::fuzzing::Choices;

/// A few bytes can stand for two billion rows; the first ones show what there is to see.
const MOST_ROWS: u64 = 1 << 14;
/// Footer length, checksum and magic.
const TAIL_BYTES: usize = 12;

/// Any bytes as a segment, with checksums and without.
pub fn segment_open(bytes: &[u8]) {
    let source: SourceRef = Arc::new(MemorySource::new("fuzz", bytes.to_vec()));
    for verify_checksums in [true, false] {
        let options = SegmentReaderOptions::default()
            .with_limits(Limits::small())
            .with_verify_checksums(verify_checksums);
        if let Ok(reader) = SegmentReader::open_with_options(Arc::clone(&source), &options) {
            look_at(&reader);
        }
    }
}

/// A table that is written, some bytes of it changed, and all checksums made right again, so that what they say is believed.
pub fn damaged_segment(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let table = Table::choose(&mut choices);
    let options = options(&table.schema, &mut choices);
    let mut writer = SegmentWriter::try_new(Vec::new(), &table.schema, &options).expect("options that fit");
    writer.write(&table.rows).expect("rows that fit");
    let mut file = writer.finish().expect("a file").0;
    let opening = SegmentReaderOptions::default()
        .with_schema(Some(Arc::new(table.schema.clone())))
        .with_hidden(true)
        .with_limits(Limits { metadata_bytes: 1 << 20, ..Limits::small() });
    let sound = open(&file, &opening).expect("what was written");
    let pages: Vec<_> = sound
        .pages()
        .expect("pages")
        .iter()
        .map(|page| page.offset as usize..(page.offset + page.bytes) as usize)
        .collect();
    let message = sound.metadata().footer_start as usize..file.len() - TAIL_BYTES;
    for _ in 0..1 + choices.below(4) {
        // Half of the changes are to what describes the rest.
        let place = if choices.one_in(2) { 0..file.len() - TAIL_BYTES } else { message.clone() };
        let at = place.start + (choices.random() % place.len() as u64) as usize;
        file[at] = choices.of(&[0, 1, 2, 0x7f, 0x80, 0xff, file[at] ^ 1, file[at].wrapping_add(1)]);
    }
    for page in pages {
        let checksum = crc32c(&file[page.start..page.end - 4]).to_le_bytes();
        file[page.end - 4..page.end].copy_from_slice(&checksum);
    }
    let (checksum, at) = (crc32c(&file[message.clone()]), message.end + 4);
    file[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
    let bare = SegmentReaderOptions::default().with_limits(Limits::small());
    for options in [opening, bare] {
        if let Ok(reader) = open(&file, &options) {
            look_at(&reader);
        }
    }
}

fn open(file: &[u8], options: &SegmentReaderOptions) -> pilaster_core::Result<SegmentReader> {
    SegmentReader::open_with_options(Arc::new(MemorySource::new("fuzz", file.to_vec())), options)
}

fn look_at(reader: &SegmentReader) {
    let count = reader.row_count().unwrap_or(0);
    let rows = RowRanges::one(0..count.min(MOST_ROWS));
    for batch in reader.scan().rows(rows.clone()).read().into_iter().flatten() {
        let _ = batch;
    }
    let log = Arc::new(LossLog::new());
    let tolerant = reader.scan().rows(rows.clone()).row_numbers("row").skip_damage(log);
    for batch in tolerant.read().into_iter().flatten() {
        batch.expect("a tolerant scan goes on");
    }
    for predicate in predicates(reader, &rows) {
        for batch in reader.scan().rows(rows.clone()).filter(predicate).read().into_iter().flatten() {
            let _ = batch;
        }
    }
    let depth = if count <= MOST_ROWS { VerifyDepth::Values } else { VerifyDepth::Checksums };
    reader.verify(depth, &Silent).expect("looking itself does not fail");
    let _ = (reader.describe(), reader.pages(), reader.column_statistics());
}

/// Conditions that ask every index of every column.
fn predicates(reader: &SegmentReader, rows: &RowRanges) -> Vec<Predicate> {
    let mut all = Vec::new();
    for field in reader.schema().fields() {
        let name = field.name();
        all.extend([col(name).is_null(), col(name).is_not_null()]);
        if field.data_type().is_nested() {
            continue;
        }
        let batch: Option<RecordBatch> =
            reader.scan().project([name]).rows(rows.clone()).read().ok().and_then(|mut all| all.next()?.ok());
        let value = match batch.filter(|batch| batch.num_rows() > 0 && batch.column(0).is_valid(0)) {
            Some(batch) => Literal::from_array(batch.column(0), 0),
            None => lit(1i64),
        };
        for op in [CompareOp::Eq, CompareOp::Lt, CompareOp::GtEq, CompareOp::NotEq] {
            all.push(Predicate::Compare { column: name.clone(), op, value: value.clone() });
        }
        if field.data_type() == &DataType::Utf8View {
            let patterns = ["a%", "%abc%", "_b%"].map(|pattern| col(name).like(lit(pattern)));
            all.extend(patterns);
        }
    }
    all
}
