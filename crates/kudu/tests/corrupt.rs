//! Damaged files: an error or the right rows, never a panic, and everything that can still be read.
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

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field};
use pilaster_core::describe::Page;
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Limits, LossLog, Result, VerifyDepth};
use pilaster_encoding::checksum::crc32c;
use pilaster_encoding::varint;
use pilaster_kudu::cfile::{
    AssumedShape, CFileReader, CFileReaderOptions, CFileWriterOptions, Compression, Encoding, KuduType,
    Version, kudu_type,
};

use support::columns::{Pattern, Recipe, list_types};
use support::golden::Case;
use support::{Numbers, batches, memory, testdata, write};

/// A small sound file.
struct Sample {
    name: String,
    bytes: Vec<u8>,
}

/// One column for each encoding with a codec of its own, nullable and not, and an array column.
fn written_samples(rows: usize, checksums: bool) -> Vec<Sample> {
    let flat = [
        DataType::Int32,
        DataType::Int64,
        DataType::Boolean,
        DataType::Utf8View,
        DataType::Float64,
        DataType::UInt32,
    ];
    let mut samples = Vec::new();
    for data_type in flat.into_iter().chain([list_types()[3].clone(), list_types()[9].clone()]) {
        let is_list = matches!(data_type, DataType::List(_));
        for (number, &encoding) in kudu_type(&data_type).unwrap().encodings().iter().enumerate() {
            for is_nullable in [false, true] {
                let nulls = if is_nullable { 20 } else { 0 };
                let pattern = if encoding == Encoding::Rle { Pattern::Random } else { Pattern::Runs };
                let rows = if data_type == DataType::Boolean { rows * 60 } else { rows };
                let array = Recipe::new(pattern, rows, nulls).build(&data_type);
                let compression = Compression::ALL[(number + usize::from(is_nullable)) % 4];
                let options = CFileWriterOptions::default()
                    .with_encoding(encoding)
                    .with_compression(compression)
                    .with_checksums(checksums)
                    .with_value_index(false)
                    .with_index_block_size_bytes(40)
                    .with_block_size_bytes(512);
                let field = Field::new("value", data_type.clone(), is_nullable);
                let bytes = write(&field, &[array], options).unwrap();
                let list = if is_list { "list of " } else { "" };
                let name =
                    format!("{list}{} {encoding} {compression} {nulls}", kudu_type(&data_type).unwrap());
                samples.push(Sample { name, bytes });
            }
        }
    }
    let array: ArrayRef = Arc::new(Int32Array::from_iter_values((0..rows as i32).map(|row| row * 5)));
    let options = CFileWriterOptions::default().with_value_index(true).with_block_size_bytes(512);
    let options = options.with_index_block_size_bytes(40).with_checksums(checksums);
    let bytes = write(&Field::new("value", DataType::Int32, false), &[array], options).unwrap();
    samples.push(Sample { name: "key".into(), bytes });
    samples
}

/// The same for version 1, which has no checksums and whose compressed blocks begin with both lengths.
fn old_samples(rows: usize) -> Vec<Sample> {
    let types = [DataType::Int32, DataType::Utf8View];
    let shapes = types
        .iter()
        .flat_map(|data_type| Compression::ALL.iter().map(move |compression| (data_type, *compression)));
    shapes
        .map(|(data_type, compression)| {
            let options = CFileWriterOptions::default()
                .with_version(Version::V1)
                .with_checksums(false)
                .with_encoding(Encoding::Plain)
                .with_compression(compression)
                .with_index_block_size_bytes(40)
                .with_block_size_bytes(512);
            let array = Recipe::new(Pattern::Runs, rows, 20).build(data_type);
            let bytes = write(&Field::new("value", data_type.clone(), true), &[array], options).unwrap();
            Sample { name: format!("version 1 {data_type} {compression}"), bytes }
        })
        .collect()
}

/// Real files: every block of the smallest golden case, among them a bloom file and a delta file.
fn real_samples() -> Vec<Sample> {
    let case = Case::open(&testdata().join("tiny"));
    let block = |id: u64| {
        let source = case.blocks.open(id);
        source.read_at(0..source.size()).unwrap().to_vec()
    };
    case.listed
        .iter()
        .map(|listed| Sample {
            name: format!("{} {}", listed.kind, listed.column),
            bytes: block(listed.block),
        })
        .collect()
}

fn small_limits() -> Limits {
    Limits { block_bytes: 1 << 17, decoded_bytes: 1 << 17, ..Limits::small() }
}

fn options(verify_checksums: bool) -> CFileReaderOptions {
    CFileReaderOptions::default().with_limits(small_limits()).with_verify_checksums(verify_checksums)
}

/// Opens, scans and verifies; what the scan gives.
fn read(bytes: &[u8], verify_checksums: bool) -> Result<Vec<RecordBatch>> {
    let reader = CFileReader::open_with_options(memory("bad", bytes.to_vec()), &options(verify_checksums))?;
    let report = reader.verify(VerifyDepth::Values, &Silent)?;
    let found = batches(reader.scan());
    if let (Err(error), true) = (&found, report.is_sound()) {
        panic!("a scan fails where verifying finds nothing: {error}");
    }
    if !reader.metadata().has_checksums() {
        // Nothing but the values could tell.
        assert_eq!(reader.verify(VerifyDepth::Checksums, &Silent)?, report);
    }
    let skipped = batches(reader.scan().skip_damage(Arc::new(LossLog::new())));
    if let (Ok(found), Ok(skipped)) = (&found, skipped) {
        assert_eq!(*found, skipped, "a tolerant scan of a file that can be read");
    }
    let _ = (reader.describe(), reader.pages(), reader.column_statistics_with_sizes());
    found
}

/// With checksums, damage is an error or does not matter.
fn check_noticed(sample: &Sample, damaged: &[u8], damage: &str) {
    let Ok(found) = read(damaged, true) else { return };
    let sound = read(&sample.bytes, true).unwrap();
    assert_eq!(found, sound, "{}: {damage} gives other rows", sample.name);
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    for sample in written_samples(40, true).iter().chain(&real_samples()).chain(&old_samples(40)) {
        assert!(read(&sample.bytes, true).is_ok(), "{}", sample.name);
        for length in 0..sample.bytes.len() {
            let found = read(&sample.bytes[..length], true);
            assert!(found.is_err(), "{} cut to {length} bytes", sample.name);
        }
    }
}

#[test]
fn a_flipped_bit_is_an_error_or_does_not_matter() {
    let mut numbers = Numbers(3);
    for sample in written_samples(40, true).iter().chain(&real_samples()) {
        for at in 0..sample.bytes.len() {
            let bits = if sample.bytes.len() < 400 { 0..8 } else { numbers.below(8) as u32..9 };
            for bit in bits.take(if sample.bytes.len() < 400 { 8 } else { 1 }) {
                let mut damaged = sample.bytes.clone();
                damaged[at] ^= 1 << (bit % 8);
                check_noticed(sample, &damaged, &format!("bit {bit} of byte {at}"));
            }
        }
    }
}

/// Without checksums wrong rows cannot be told from right ones; a panic or endless work still must not be.
#[test]
fn damage_without_checksums_never_panics() {
    let mut numbers = Numbers(4);
    for (sample, verify) in written_samples(40, false)
        .iter()
        .chain(&old_samples(40))
        .map(|sample| (sample, true))
        .chain(real_samples().iter().map(|sample| (sample, false)))
    {
        for at in 0..sample.bytes.len() {
            let mut damaged = sample.bytes.clone();
            damaged[at] = numbers.next() as u8;
            let _ = read(&damaged, verify);
            damaged[at] = [0, 0xff, 0x7f, 0x80][numbers.below(4) as usize];
            let _ = read(&damaged, verify);
            let _ = read(&damaged[..at], verify);
        }
    }
}

/// A file of several blocks to be damaged, with what it holds.
struct Whole {
    name: String,
    shape: AssumedShape,
    field: Field,
    bytes: Vec<u8>,
    array: ArrayRef,
}

impl Whole {
    fn reader(&self) -> CFileReader {
        CFileReader::open(memory("whole", self.bytes.clone())).unwrap()
    }

    fn data_pages(&self) -> Vec<Page> {
        self.reader().pages().unwrap().into_iter().filter(|page| page.rows.is_some()).collect()
    }
}

/// Every encoding, codec and nullability, also arrays, in at least five blocks.
fn wholes() -> Vec<Whole> {
    let mut wholes = Vec::new();
    let types = [
        DataType::Int32,
        DataType::Boolean,
        DataType::Utf8View,
        list_types()[4].clone(),
        list_types()[9].clone(),
    ];
    for data_type in types {
        let is_array = matches!(data_type, DataType::List(_));
        let kudu = kudu_type(&data_type).unwrap();
        for &encoding in kudu.encodings() {
            for &compression in Compression::ALL {
                for is_nullable in [false, true] {
                    let rows = if kudu == KuduType::Bool { 60_000 } else { 1500 };
                    let array = Recipe::new(Pattern::Random, rows, if is_nullable { 30 } else { 0 })
                        .build(&data_type);
                    let array = if encoding == Encoding::Dict { few_words(&array) } else { array };
                    let field = Field::new("value", array.data_type().clone(), is_nullable);
                    let writer = CFileWriterOptions::default()
                        .with_encoding(encoding)
                        .with_compression(compression)
                        .with_block_size_bytes(1024);
                    let bytes = write(&field, &[Arc::clone(&array)], writer).unwrap();
                    let shape = AssumedShape {
                        encoding,
                        compression,
                        is_nullable,
                        is_array,
                        ..AssumedShape::new(kudu)
                    };
                    let name = format!("{data_type} {encoding} {compression} nullable {is_nullable}");
                    let whole = Whole { name, shape, field, bytes, array };
                    assert!(whole.data_pages().len() >= 5, "{}", whole.name);
                    wholes.push(whole);
                }
            }
        }
    }
    wholes
}

/// The same column with few distinct words, so that a dictionary holds them.
fn few_words(array: &ArrayRef) -> ArrayRef {
    if let Some(list) = array.as_list_opt::<i32>() {
        let (field, offsets, values, nulls) = list.clone().into_parts();
        return Arc::new(arrow_array::ListArray::new(field, offsets, few_words(&values), nulls));
    }
    let words = array.as_string_view().iter().map(|word| word.map(|word| format!("word {}", word.len() % 9)));
    Arc::new(words.collect::<arrow_array::StringViewArray>())
}

/// A tolerant scan: the values, their row numbers and the ranges that were lost.
fn tolerant(reader: &CFileReader) -> (ArrayRef, Vec<u64>, Vec<Range<u64>>) {
    let log = Arc::new(LossLog::new());
    let found = batches(reader.scan().row_numbers("row").skip_damage(Arc::clone(&log))).unwrap();
    let rows = found
        .iter()
        .flat_map(|batch| batch.column(1).as_primitive::<UInt64Type>().values().to_vec())
        .collect();
    let parts: Vec<&dyn Array> = found.iter().map(|batch| batch.column(0).as_ref()).collect();
    let values = match parts.as_slice() {
        [] => arrow_array::new_empty_array(reader.schema().field(0).data_type()),
        parts => arrow_select::concat::concat(parts).unwrap(),
    };
    (values, rows, log.losses().iter().map(|lost| lost.positions().unwrap_or_default()).collect())
}

/// Everything but `lost` was given, with its true row numbers.
fn check_all_but(
    whole: &Whole,
    found: &(ArrayRef, Vec<u64>, Vec<Range<u64>>),
    lost: &[Range<u64>],
    context: &str,
) {
    let wanted: Vec<u64> =
        (0..whole.array.len() as u64).filter(|row| !lost.iter().any(|range| range.contains(row))).collect();
    let context = format!("{}: {context}", whole.name);
    assert_eq!(found.1.len(), wanted.len(), "{context}");
    assert_eq!(found.1, wanted, "{context}");
    let values = arrow_select::take::take(&whole.array, &UInt64Array::from(wanted), None).unwrap();
    assert_eq!(found.0.as_ref(), values.as_ref(), "{context}");
    assert_eq!(found.2, lost, "{context}");
}

#[test]
fn a_damaged_block_loses_its_own_rows_only() {
    for whole in wholes() {
        let pages = whole.data_pages();
        for number in [0, pages.len() / 2, pages.len() - 1] {
            let page = &pages[number];
            let mut damaged = whole.bytes.clone();
            damaged[(page.offset + page.bytes / 2) as usize] ^= 0x10;
            let options = CFileReaderOptions::default().with_field(whole.field.clone());
            let reader = CFileReader::open_with_options(memory("bad", damaged), &options).unwrap();
            assert!(batches(reader.scan()).is_err());
            let found = tolerant(&reader);
            check_all_but(&whole, &found, &[page.rows.clone().unwrap()], &format!("block {number} damaged"));
            let report = reader.verify(VerifyDepth::Values, &Silent).unwrap();
            assert_eq!(report.findings.len(), 1, "{}: {:?}", whole.name, report.findings);
            assert_eq!(report.findings[0].rows, page.rows, "{}", whole.name);
        }
    }
}

#[test]
fn a_damaged_index_loses_nothing() {
    for whole in wholes() {
        let root = whole.reader().metadata().positional_index.unwrap();
        let mut damaged = whole.bytes.clone();
        damaged[(root.offset + 2) as usize] ^= 0x10;
        let options = CFileReaderOptions::default().with_field(whole.field.clone());
        let reader = CFileReader::open_with_options(memory("bad", damaged), &options).unwrap();
        assert!(batches(reader.scan()).is_err());
        check_all_but(&whole, &tolerant(&reader), &[], "index damaged");
    }
}

fn recover(whole: &Whole, bytes: Vec<u8>) -> CFileReader {
    let options = CFileReaderOptions::default().with_field(whole.field.clone());
    CFileReader::recover(memory("bad", bytes), &whole.shape, &options).unwrap()
}

#[test]
fn a_lost_footer_loses_nothing() {
    for whole in wholes() {
        let end = whole.reader().metadata().blocks_end as usize;
        check_all_but(&whole, &tolerant(&recover(&whole, whole.bytes[..end].to_vec())), &[], "footer lost");
        // Half of the footer is still there.
        let torn = (end + whole.bytes.len()) / 2;
        check_all_but(&whole, &tolerant(&recover(&whole, whole.bytes[..torn].to_vec())), &[], "footer torn");
    }
}

#[test]
fn a_file_cut_in_a_block_keeps_all_blocks_before_it() {
    for whole in wholes().into_iter().filter(|whole| whole.shape.encoding != Encoding::Dict) {
        let pages = whole.data_pages();
        let page = &pages[pages.len() / 2];
        let cut = (page.offset + page.bytes / 2) as usize;
        let reader = recover(&whole, whole.bytes[..cut].to_vec());
        let rows = page.rows.clone().unwrap().start;
        assert_eq!(reader.row_count(), Some(rows), "{}", whole.name);
        let (values, numbers, lost) = tolerant(&reader);
        assert_eq!(values.as_ref(), whole.array.slice(0, rows as usize).as_ref(), "{}", whole.name);
        assert_eq!(numbers, (0..rows).collect::<Vec<_>>(), "{}", whole.name);
        // Nobody knows how many rows the rest held, but that it is lost is said.
        assert_eq!(lost, std::slice::from_ref(&(0..0)), "{}", whole.name);
        assert!(batches(reader.scan()).is_err(), "{}", whole.name);
        assert!(!reader.verify(VerifyDepth::Footer, &Silent).unwrap().is_sound(), "{}", whole.name);
    }
}

#[test]
fn a_lost_footer_and_a_damaged_block_lose_that_block_only() {
    for whole in wholes() {
        let end = whole.reader().metadata().blocks_end as usize;
        let pages = whole.data_pages();
        let page = &pages[pages.len() / 2];
        let mut damaged = whole.bytes[..end].to_vec();
        for at in page.offset..page.offset + page.bytes {
            damaged[at as usize] = damaged[at as usize].wrapping_mul(31).wrapping_add(at as u8);
        }
        check_all_but(
            &whole,
            &tolerant(&recover(&whole, damaged)),
            &[page.rows.clone().unwrap()],
            "block and footer",
        );
    }
}

/// Blocks of the default size: behind damage there are too many possible starts and ends to try them all.
#[test]
fn large_blocks_behind_damage_are_found_too() {
    let recipe = Recipe::new(Pattern::Random, 250_000, 10);
    let array = recipe.build(&DataType::Int64);
    let field = Field::new("value", DataType::Int64, true);
    let writer = CFileWriterOptions::default().with_encoding(Encoding::Plain);
    let bytes = write(&field, &[Arc::clone(&array)], writer).unwrap();
    let shape =
        AssumedShape { encoding: Encoding::Plain, is_nullable: true, ..AssumedShape::new(KuduType::Int64) };
    let whole = Whole { name: "large".into(), shape, field, bytes, array };
    let pages = whole.data_pages();
    assert!(pages.len() > 4, "{}", pages.len());
    let mut damaged = whole.bytes[..whole.reader().metadata().blocks_end as usize].to_vec();
    let start = pages[2].offset as usize;
    damaged[start..start + 100].fill(0xaa);
    check_all_but(
        &whole,
        &tolerant(&recover(&whole, damaged)),
        &[pages[2].rows.clone().unwrap()],
        "block and footer",
    );
}

#[test]
fn a_damaged_value_index_does_not_stop_a_tolerant_scan() {
    let array: ArrayRef = Arc::new(Int32Array::from_iter_values(0..3000));
    let field = Field::new("value", DataType::Int32, false);
    let writer = CFileWriterOptions::default().with_value_index(true).with_block_size_bytes(512);
    let mut bytes = write(&field, &[array], writer).unwrap();
    let root = CFileReader::open(memory("whole", bytes.clone())).unwrap().metadata().value_index.unwrap();
    bytes[root.offset as usize + 3] ^= 1;
    let reader = CFileReader::open(memory("bad", bytes)).unwrap();
    let wanted = || pilaster_core::col("value").gt_eq(pilaster_core::lit(2990));
    assert!(reader.scan().filter(wanted()).read().is_err());
    let log = Arc::new(LossLog::new());
    let found = batches(reader.scan().filter(wanted()).skip_damage(Arc::clone(&log))).unwrap();
    assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 10);
    assert!(log.is_empty(), "{:?}", log.losses());
}

/// Blocks are fetched together, so one further on must not cost the rows before it.
#[test]
fn an_index_entry_that_leads_out_of_the_file_stops_no_row_before_it() {
    let array: ArrayRef = Arc::new(Int32Array::from_iter_values(0..30_000));
    let field = Field::new("value", DataType::Int32, false);
    let writer = CFileWriterOptions::default().with_encoding(Encoding::Plain).with_block_size_bytes(16_384);
    let mut bytes = write(&field, &[array], writer).unwrap();
    let reader = CFileReader::open(memory("whole", bytes.clone())).unwrap();
    let (index, pages) = (reader.metadata().positional_index.unwrap(), reader.pages().unwrap());
    let index = index.offset as usize..(index.offset + u64::from(index.size)) as usize;
    let bad = pages.iter().filter(|page| page.rows.is_some()).nth(4).unwrap();
    let (mut offset, mut elsewhere) = (Vec::new(), Vec::new());
    varint::write_u64(&mut offset, bad.offset);
    varint::write_u64(&mut elsewhere, 2_000_000);
    assert_eq!(offset.len(), elsewhere.len());
    replace(&mut bytes[index.clone()], &offset, &elsewhere);
    let damaged = CFileReader::open(memory("bad", with_block_checksum(bytes, index))).unwrap();
    let mut scan = damaged.scan().batch_size(100).read().unwrap();
    let rows: usize = scan.by_ref().map_while(Result::ok).map(|batch| batch.num_rows()).sum();
    let first_bad = bad.rows.clone().unwrap().start;
    assert!((first_bad - 100..=first_bad).contains(&(rows as u64)), "{rows} rows, block at {first_bad}");
}

#[test]
fn verifying_compares_checksums_that_reading_was_told_to_ignore() {
    for sample in real_samples() {
        let sound = CFileReader::open(memory("whole", sample.bytes.clone())).unwrap();
        let all = sound.pages().unwrap();
        for page in all {
            let mut damaged = sample.bytes.clone();
            damaged[(page.offset + page.bytes) as usize - 1] ^= 1;
            let reader = CFileReader::open_with_options(memory("bad", damaged), &options(false)).unwrap();
            let sound = batches(sound.scan()).unwrap();
            assert_eq!(batches(reader.scan()).unwrap(), sound, "{} {}", sample.name, page.kind);
            let report = reader.verify(VerifyDepth::Checksums, &Silent).unwrap();
            assert!(!report.is_sound(), "{} {} at byte {}", sample.name, page.kind, page.offset);
        }
    }
}

/// A file with the checksum of the block at `block` made right again.
fn with_block_checksum(mut bytes: Vec<u8>, block: Range<usize>) -> Vec<u8> {
    let sum = crc32c(&bytes[block.start..block.end - 4]).to_le_bytes();
    bytes[block.end - 4..block.end].copy_from_slice(&sum);
    bytes
}

/// A file whose footer message is replaced, with lengths and checksum to match.
fn with_footer(bytes: &[u8], change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let tail = bytes.len() - 12;
    let length = u32::from_le_bytes(bytes[tail + 8..].try_into().unwrap()) as usize;
    let mut footer = bytes[tail - length..tail].to_vec();
    change(&mut footer);
    let mut end = footer.clone();
    end.extend_from_slice(&bytes[tail..tail + 8]);
    end.extend((footer.len() as u32).to_le_bytes());
    let mut out = bytes[..tail - length - 4].to_vec();
    out.extend(crc32c(&end).to_le_bytes());
    out.extend(end);
    out
}

fn replace(footer: &mut [u8], from: &[u8], to: &[u8]) {
    let at = footer.windows(from.len()).position(|window| window == from).unwrap();
    footer[at..at + to.len()].copy_from_slice(to);
}

/// What opening and reading says.
fn message(bytes: Vec<u8>) -> String {
    let read = || -> Result<()> { batches(CFileReader::open(memory("t.cfile", bytes))?.scan()).map(drop) };
    read().unwrap_err().to_string()
}

#[test]
fn messages_say_where_what_was_expected_and_what_was_found() {
    // The file `plain` of the format document: header 0..16, data block 16..68, index block 68..91, footer from 91 on.
    let plain = || {
        let array: ArrayRef = Arc::new(Int32Array::from_iter_values(-5..5));
        let options = CFileWriterOptions::default().with_encoding(Encoding::Plain);
        write(&Field::new("value", DataType::Int32, false), &[array], options).unwrap()
    };
    // The data block of a DICT file of two words; its dictionary follows.
    let dict = || {
        let array: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a"]));
        write(&Field::new("value", DataType::Utf8, false), &[array], CFileWriterOptions::default()).unwrap()
    };
    assert_eq!(plain().len(), 127);
    let changed = |at: usize, to: &[u8]| {
        let mut bytes = plain();
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    };
    let in_block = |at: usize, to: &[u8]| with_block_checksum(changed(at, to), 16..68);
    let in_index = |at: usize, to: &[u8]| with_block_checksum(changed(at, to), 68..91);
    let footer = |from: &[u8], to: &[u8]| with_footer(&plain(), |footer| replace(footer, from, to));
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "t.cfile: cfile at byte 0: expected a CFile of at least 24 bytes, found 0 bytes"),
        (
            changed(115, b"kuducfl3"),
            "t.cfile: cfile footer magic at byte 115: expected \"kuducfl2\" or \"kuducfil\", found \"kuducfl3\"",
        ),
        (
            changed(123, &u32::MAX.to_le_bytes()),
            "t.cfile: cfile footer length at byte 123: expected at most 103, found 4294967295",
        ),
        (
            changed(91, &[0; 4]),
            "t.cfile: cfile footer checksum at byte 91: expected checksum 00000000, found bytes with checksum 48c4b283",
        ),
        (
            changed(0, b"parquet1"),
            "t.cfile: cfile header magic at byte 0: expected \"kuducfl2\" or \"kuducfil\", found \"parquet1\"",
        ),
        (
            changed(20, &[1]),
            "t.cfile: cfile data block at byte 16: expected checksum 9003a191, found bytes with checksum f05285ae",
        ),
        (
            footer(&[0x50, 1], &[0x50, 5]),
            "t.cfile: cfile footer at byte 95: cannot read this: incompatible features 0x5",
        ),
        (
            footer(&[0x50, 1], &[0x50, 3]),
            "t.cfile: cfile footer at byte 95: expected feature bit 2 exactly in array files, found 0x3",
        ),
        (
            footer(&[0x10, 1], &[0x10, 5]),
            "t.cfile: cfile footer at byte 95: expected an encoding of INT32, found DICT_ENCODING",
        ),
        (
            footer(&[0x10, 1], &[0x10, 9]),
            "t.cfile: cfile footer at byte 95: cannot read this: encoding number 9",
        ),
        (
            footer(&[0x08, 5], &[0x08, 21]),
            "t.cfile: cfile footer at byte 95: cannot read this: data type number 21",
        ),
        (
            footer(&[0x18, 10], &[0x18, 11]),
            "t.cfile: cfile index at byte 91: expected a block with row 10, found the end of the index",
        ),
        (
            footer(&[0x08, 68], &[0x08, 90]),
            "t.cfile: cfile index block at byte 90: expected a block inside bytes 16..91, found bytes 90..113",
        ),
        (in_block(16, &[11]), "t.cfile: cfile data block at byte 16: expected at most 10 values, found 11"),
        (
            in_block(20, &[1]),
            "t.cfile: cfile data block at byte 16: expected rows inside 0..10, found rows 1..11",
        ),
        (
            in_index(69, &[0, 0, 0, 1]),
            "t.cfile: cfile data block at byte 16: expected a block of the rows 1.., as index and neighbours say, found rows 0..10",
        ),
        (
            in_index(68, &[5]),
            "t.cfile: cfile index block at byte 68: expected a 32-bit varint, found the end of the bytes",
        ),
        (
            in_index(86, &[2]),
            "t.cfile: cfile index block at byte 68: expected a trailer of at most 15 bytes, found 33554436",
        ),
        (
            with_footer(&plain(), |footer| footer.truncate(4)),
            "t.cfile: cfile footer at byte 95: expected the required field num_values, found a message without it",
        ),
        (
            with_dictionary_code(dict()),
            "t.cfile: cfile data block at byte 16: expected codewords below 1, found 1",
        ),
    ];
    for (number, (bytes, wanted)) in cases.into_iter().enumerate() {
        let found = message(bytes);
        assert_eq!(found, wanted, "case {number}");
    }
}

/// A DICT file whose codewords all are 1, of a dictionary of one word.
fn with_dictionary_code(bytes: Vec<u8>) -> Vec<u8> {
    let pages = CFileReader::open(memory("whole", bytes.clone())).unwrap().pages().unwrap();
    let dictionary = pages.iter().find(|page| page.kind.contains("dictionary")).unwrap();
    let start = dictionary.offset as usize;
    let mut damaged = bytes;
    damaged[start + 4] = 1;
    with_block_checksum(damaged, start..start + dictionary.bytes as usize)
}

/// Every encoding and codec, in files that carry no checksums: blocks are found by the lengths their bytes tell.
fn unchecked_wholes() -> Vec<Whole> {
    let mut wholes = Vec::new();
    for data_type in [DataType::Int64, DataType::UInt32, DataType::Boolean, DataType::Utf8View] {
        let kudu = kudu_type(&data_type).unwrap();
        for &encoding in kudu.encodings() {
            for &compression in Compression::ALL {
                for is_nullable in [false, true] {
                    let rows = if kudu == KuduType::Bool { 30_000 } else { 1500 };
                    let recipe = Recipe::new(Pattern::Runs, rows, if is_nullable { 30 } else { 0 });
                    let array = recipe.build(&data_type);
                    let array = if encoding == Encoding::Dict { few_words(&array) } else { array };
                    let field = Field::new("value", data_type.clone(), is_nullable);
                    let writer = CFileWriterOptions::default()
                        .with_encoding(encoding)
                        .with_compression(compression)
                        .with_checksums(false)
                        .with_index_block_size_bytes(200)
                        .with_block_size_bytes(512);
                    let bytes = write(&field, &[Arc::clone(&array)], writer).unwrap();
                    let shape = AssumedShape {
                        encoding,
                        compression,
                        is_nullable,
                        has_checksums: false,
                        ..AssumedShape::new(kudu)
                    };
                    let name =
                        format!("unchecked {data_type} {encoding} {compression} nullable {is_nullable}");
                    wholes.push(Whole { name, shape, field, bytes, array });
                }
            }
        }
    }
    wholes
}

#[test]
fn a_lost_footer_without_checksums_loses_nothing() {
    for whole in unchecked_wholes() {
        let end = whole.reader().metadata().blocks_end as usize;
        let reader = recover(&whole, whole.bytes[..end].to_vec());
        check_all_but(&whole, &tolerant(&reader), &[], "footer lost");
        assert!(batches(reader.scan()).is_ok(), "{}", whole.name);
    }
}

#[test]
fn a_lost_footer_and_a_damaged_block_without_checksums_lose_that_block_only() {
    for whole in unchecked_wholes() {
        let end = whole.reader().metadata().blocks_end as usize;
        let pages = whole.data_pages();
        let Some(page) = pages.get(1).filter(|_| pages.len() > 3) else { continue };
        let mut damaged = whole.bytes[..end].to_vec();
        damaged[page.offset as usize..(page.offset + page.bytes) as usize].fill(0xff);
        let lost = [page.rows.clone().unwrap()];
        check_all_but(&whole, &tolerant(&recover(&whole, damaged)), &lost, "block and footer");
    }
}

/// Blocks of more than 1 MiB, compressed: only the codec tells their length.
#[test]
fn long_compressed_blocks_are_found() {
    let array = Recipe::new(Pattern::Random, 1_000_000, 0).build(&DataType::Int64);
    let field = Field::new("value", DataType::Int64, false);
    // Values of few bits, so that they are stored compressed.
    let narrow = array.as_primitive::<arrow_array::types::Int64Type>().iter().map(|v| v.map(|v| v & 0xffff));
    let array: ArrayRef = Arc::new(narrow.collect::<arrow_array::Int64Array>());
    for (compression, has_checksums) in [(Compression::Lz4, true), (Compression::Snappy, false)] {
        let writer = CFileWriterOptions::default()
            .with_encoding(Encoding::Plain)
            .with_compression(compression)
            .with_checksums(has_checksums)
            .with_block_size_bytes(2 << 20);
        let bytes = write(&field, &[Arc::clone(&array)], writer).unwrap();
        let shape = AssumedShape {
            encoding: Encoding::Plain,
            compression,
            has_checksums,
            ..AssumedShape::new(KuduType::Int64)
        };
        let name = format!("long {compression}");
        let whole = Whole { name, shape, field: field.clone(), bytes, array: Arc::clone(&array) };
        let pages = whole.data_pages();
        assert!(pages.len() >= 4, "{}", whole.name);
        let end = whole.reader().metadata().blocks_end as usize;
        check_all_but(&whole, &tolerant(&recover(&whole, whole.bytes[..end].to_vec())), &[], "footer lost");
        let mut damaged = whole.bytes[..end].to_vec();
        damaged[pages[1].offset as usize..][..1000].fill(0xee);
        let lost = [pages[1].rows.clone().unwrap()];
        check_all_but(&whole, &tolerant(&recover(&whole, damaged)), &lost, "block and footer");
    }
}

#[test]
fn what_nothing_claims_is_a_loss() {
    let array = Recipe::new(Pattern::Random, 3000, 0).build(&DataType::Int64);
    let field = Field::new("value", DataType::Int64, false);
    let writer = CFileWriterOptions::default().with_block_size_bytes(1024);
    let bytes = write(&field, &[Arc::clone(&array)], writer).unwrap();
    let whole =
        Whole { name: "int64".into(), shape: AssumedShape::new(KuduType::Int64), field, bytes, array };
    let pages = whole.data_pages();
    let end = whole.reader().metadata().blocks_end as usize;
    let recovered = |bytes: &[u8], shape: &AssumedShape| {
        let reader =
            CFileReader::recover(memory("f.cfile", bytes.to_vec()), shape, &CFileReaderOptions::default());
        let reader = reader.unwrap();
        let log = Arc::new(LossLog::new());
        let found = batches(reader.scan().skip_damage(Arc::clone(&log))).unwrap();
        let reasons: Vec<_> = log
            .losses()
            .into_iter()
            .map(|lost| (lost.positions().unwrap_or_default(), lost.reason))
            .collect();
        (found.iter().map(|batch| batch.num_rows() as u64).sum::<u64>(), reasons)
    };
    // Another type, encoding or codec: nothing is found, and that is said.
    let wrong = [
        AssumedShape::new(KuduType::Int32),
        AssumedShape::new(KuduType::String),
        AssumedShape { encoding: Encoding::Rle, ..whole.shape.clone() },
        AssumedShape { compression: Compression::Zlib, ..whole.shape.clone() },
        AssumedShape { is_nullable: true, ..whole.shape.clone() },
    ];
    for shape in wrong {
        let (rows, losses) = recovered(&whole.bytes[..end], &shape);
        assert_eq!((rows, losses.len(), &losses[0].0), (0, 1, &(0..0)), "{shape:?}: {losses:?}");
        let expected = format!(
            "f.cfile: cfile blocks at byte 16: expected blocks of {} {} {}: is that what the file holds?, found ",
            shape.data_type, shape.encoding, shape.compression
        );
        assert!(losses[0].1.starts_with(&expected), "{}", losses[0].1);
    }
    // Cut between two blocks: nothing is left over, and still nobody knows whether rows followed.
    let (rows, losses) = recovered(&whole.bytes[..pages[3].offset as usize], &whole.shape);
    assert_eq!(rows, pages[3].rows.clone().unwrap().start);
    assert_eq!(losses.len(), 1);
    let expected = format!(
        "f.cfile: cfile blocks at byte {}: expected an index that names all blocks, found none; whether rows followed the last \
         block is not known",
        pages[3].offset
    );
    assert_eq!(losses[0], (0..0, expected));
    // The last block is damaged: its rows have no neighbour that tells how many they were.
    let last = pages.last().unwrap();
    let mut damaged = whole.bytes[..end].to_vec();
    damaged[last.offset as usize + 30] ^= 1;
    let (rows, losses) = recovered(&damaged, &whole.shape);
    assert_eq!((rows, losses.len()), (last.rows.clone().unwrap().start, 1), "{losses:?}");
    assert!(
        losses[0].1.contains(&format!("at byte {}: expected blocks of INT64", last.offset)),
        "{losses:?}"
    );
    // A footer that is sound knows better than the caller.
    let (rows, losses) = recovered(&whole.bytes, &AssumedShape::new(KuduType::String));
    assert_eq!((rows, losses), (3000, vec![]));
    // So does one behind a damaged header.
    let mut damaged = whole.bytes.clone();
    damaged[3] ^= 1;
    assert_eq!(recovered(&damaged, &AssumedShape::new(KuduType::Int32)), (3000, vec![]));
    // Nothing is no CFile.
    for length in [0, 11] {
        let source = memory("f.cfile", whole.bytes[..length].to_vec());
        let error = CFileReader::recover(source, &whole.shape, &CFileReaderOptions::default()).unwrap_err();
        let expected =
            format!("f.cfile: cfile at byte 0: expected a CFile header of 12 bytes, found {length} bytes");
        assert_eq!(error.to_string(), expected);
    }
    let (rows, losses) = recovered(&whole.bytes[..16], &whole.shape);
    assert_eq!((rows, losses.len()), (0, 1));
}

/// A file of no rows without its footer: its empty index proves that none are lost.
#[test]
fn no_rows_are_not_lost() {
    let field = Field::new("value", DataType::Int32, false);
    for checksums in [false, true] {
        let options = CFileWriterOptions::default().with_checksums(checksums);
        let bytes = write(&field, &[], options).unwrap();
        let end = CFileReader::open(memory("f.cfile", bytes.clone())).unwrap().metadata().blocks_end as usize;
        let shape = AssumedShape { has_checksums: checksums, ..AssumedShape::new(KuduType::Int32) };
        let source = memory("f.cfile", bytes[..end].to_vec());
        let reader = CFileReader::recover(source, &shape, &CFileReaderOptions::default()).unwrap();
        assert!(batches(reader.scan()).unwrap().is_empty());
    }
}
