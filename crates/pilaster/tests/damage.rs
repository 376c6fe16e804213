//! Files of Redfile, Parquet and Arrow that are cut, emptied and overwritten: what is saved and what is named as lost is all there was.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests stop at the first surprise"
)]

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use pilaster::core::progress::Silent;
use pilaster::core::salvage::total_lost;
use pilaster::core::source::MemorySource;
use pilaster::output::{WriteOptions, writer};
use pilaster::redfile::RedfileWriterOptions;
use pilaster::{
    Error, LossLog, LostRows, OpenOptions, OutputFormat, Result, SharedFile, SourceRef, VerifyDepth, verify,
};
use pilaster_testing::damage::{Answers, DamagedFolder, Damages, Judge, Verdict};

const GROUPS: usize = 6;
const ROWS: usize = 50;

fn word(row: i64) -> String {
    format!("row number {row}")
}

fn batches() -> Vec<RecordBatch> {
    let batch = |group: usize| {
        let rows = (group * ROWS) as i64..((group + 1) * ROWS) as i64;
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone()));
        let words: ArrayRef = Arc::new(StringArray::from_iter_values(rows.map(word)));
        RecordBatch::try_from_iter([("n", numbers), ("t", words)]).unwrap()
    };
    (0..GROUPS).map(batch).collect()
}

/// The same rows in every format, in several row groups or record batches.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let batches = batches();
    let schema = batches[0].schema();
    let mut stream = StreamWriter::try_new(Vec::new(), &schema).unwrap();
    let mut file = FileWriter::try_new(Vec::new(), &schema).unwrap();
    for batch in &batches {
        stream.write(batch).unwrap();
        file.write(batch).unwrap();
    }
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_max_row_group_row_count(Some(ROWS))
        .build();
    let mut parquet =
        parquet::arrow::ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties)).unwrap();
    batches.iter().for_each(|batch| parquet.write(batch).unwrap());
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a.red");
    let sink = SharedFile::create(&path).unwrap();
    let options = WriteOptions::default().with_redfile(
        RedfileWriterOptions::default().with_row_group_rows(ROWS as u64).with_checkpoint_interval(2),
    );
    let mut red =
        writer(OutputFormat::Redfile, Box::new(sink.clone()), Arc::clone(&schema), &options).unwrap();
    batches.iter().for_each(|batch| red.write(batch).unwrap());
    red.finish().unwrap();
    sink.take().unwrap().finish().unwrap();
    vec![
        ("redfile", fs::read(path).unwrap()),
        ("parquet", parquet.into_inner().unwrap()),
        ("arrow file", file.into_inner().unwrap()),
        ("arrow stream", stream.into_inner().unwrap()),
    ]
}

/// What is left: how many rows were saved and how many are named as lost (`None`: nobody knows), or nothing at all.
fn salvaged(what: &str, bytes: Vec<u8>) -> Option<(u64, Option<u64>)> {
    let source: SourceRef = Arc::new(MemorySource::new("damaged", bytes));
    let as_it_is = OpenOptions::default().open_source(Arc::clone(&source));
    let dataset = match OpenOptions::default().with_recovery(true).open_source(source) {
        Ok(dataset) => dataset,
        // An error is a name for the loss of everything.
        Err(error) => {
            assert!(error.is_damage() || error.to_string().contains("format"), "{what}: {error}");
            return None;
        }
    };
    let losses = Arc::new(LossLog::new());
    let mut saved = 0;
    let mut seen = HashMap::new();
    for batch in dataset.scan().skip_damage(Arc::clone(&losses)).read().unwrap() {
        let batch = batch.map_err(Error::from).unwrap_or_else(|error| panic!("{what}: {error}"));
        let numbers = batch.column(0).as_primitive::<Int64Type>();
        let words = arrow_cast::cast(batch.column(1), &arrow_schema::DataType::Utf8).unwrap();
        for (number, word_read) in numbers.values().iter().zip(words.as_string::<i32>()) {
            assert!(seen.insert(*number, ()).is_none(), "{what}: row {number} came twice");
            assert!((0..(GROUPS * ROWS) as i64).contains(number), "{what}: row {number} was never there");
            assert_eq!(word_read, Some(word(*number).as_str()), "{what}");
            saved += 1;
        }
    }
    let losses = losses.losses();
    let lost = total_lost(&losses);
    // Verification says that something is wrong where rows are gone: that the file cannot be opened is a finding too.
    let is_sound =
        as_it_is.is_ok_and(|dataset| dataset.verify(VerifyDepth::Values, &Silent).unwrap().is_sound());
    // A stream may end without its mark; that nothing shows it to be whole is no damage.
    let is_open = losses.iter().all(|lost| lost.reason.contains("expected an end mark"));
    assert!(is_open || !is_sound, "{what}: sound, but {losses:?}");
    Some((saved, lost))
}

fn check(what: &str, bytes: Vec<u8>) -> u64 {
    let all = (GROUPS * ROWS) as u64;
    match salvaged(what, bytes) {
        None => 0,
        Some((saved, lost)) => {
            assert!(
                lost.is_none_or(|lost| saved + lost == all),
                "{what}: {saved} saved and {lost:?} lost of {all}"
            );
            saved
        }
    }
}

#[test]
fn a_file_that_is_cut_gives_what_is_before_the_cut_and_says_what_is_not() {
    for (format, whole) in files() {
        let all = (GROUPS * ROWS) as u64;
        assert_eq!(salvaged(format, whole.clone()), Some((all, Some(0))), "{format}");
        let mut most = 0;
        for end in (0..whole.len()).step_by(1 + whole.len() / 211) {
            most = most.max(check(&format!("{format} cut at {end}"), whole[..end].to_vec()));
        }
        // Only Parquet keeps all it knows of its columns behind the rows.
        assert_eq!(most > 0, format != "parquet", "{format}: {most}");
    }
}

#[test]
fn what_is_overwritten_with_zeros_is_lost_and_nothing_else() {
    for (format, whole) in files() {
        let mut saved = 0;
        let step = 1 + whole.len() / 97;
        for start in (0..whole.len()).step_by(step) {
            let mut bytes = whole.clone();
            let end = bytes.len().min(start + step);
            bytes[start..end].fill(0);
            // Values without checksums can become others that nobody can tell: the word beside the number gives them away here, so
            // only the places are damaged where something is stored about the values.
            let is_checked = matches!(format, "redfile");
            let near_an_end = start < step || format != "arrow stream" && end + step > whole.len();
            if is_checked || near_an_end {
                saved = saved.max(check(&format!("{format} zeroed at {start}..{end}"), bytes));
            }
        }
        // Without its first message a stream says nothing of its columns.
        assert_eq!(saved > 0, format != "arrow stream", "{format}: {saved}");
    }
}

#[test]
fn a_redfile_with_a_flipped_byte_gives_every_row_or_names_it() {
    let (_, whole) = files().swap_remove(0);
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        check(&format!("redfile flipped at {at}"), bytes);
    }
}

#[test]
fn a_damaged_dictionary_is_not_replaced_by_the_one_before_it() {
    use arrow_array::{DictionaryArray, types::Int32Type};
    let batch = |words: [&str; 2]| {
        let keys = arrow_array::Int32Array::from(vec![0, 1]);
        let dictionary: DictionaryArray<Int32Type> =
            DictionaryArray::try_new(keys, Arc::new(StringArray::from(words.to_vec()))).unwrap();
        RecordBatch::try_from_iter([("w", Arc::new(dictionary) as ArrayRef)]).unwrap()
    };
    let (first, second) = (batch(["first-a", "first-b"]), batch(["later-a", "later-b"]));
    let mut stream = StreamWriter::try_new(Vec::new(), &first.schema()).unwrap();
    stream.write(&first).unwrap();
    stream.write(&second).unwrap();
    let bytes = stream.into_inner().unwrap();
    let place = bytes.windows(7).position(|window| window == b"later-a").unwrap();
    let mut damaged = bytes.clone();
    // Not text any more.
    damaged[place] = 0xff;
    let source: SourceRef = Arc::new(MemorySource::new("damaged", damaged));
    let dataset = OpenOptions::default().with_recovery(true).open_source(source).unwrap();
    let losses = Arc::new(LossLog::new());
    let reader = dataset.scan().skip_damage(Arc::clone(&losses)).read().unwrap();
    let rows: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!((rows, total_lost(&losses.losses())), (2, Some(2)));
}

/// What a row is for the judge: its text where the format has checksums; otherwise only that it is one, since a flipped byte in a value is
/// another value that nobody can tell from the right one.
fn rows_in(
    dataset: &dyn pilaster::Dataset,
    losses: Option<&Arc<LossLog>>,
    is_checked: bool,
) -> Result<Vec<String>> {
    let scan = dataset.scan();
    let scan = match losses {
        Some(losses) => scan.skip_damage(Arc::clone(losses)),
        None => scan,
    };
    let mut rows = Vec::new();
    for batch in scan.read()? {
        let batch = batch.map_err(Error::from)?;
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayRef| arrow_cast::display::array_value_to_string(column, row).unwrap();
            let text = || batch.columns().iter().map(cell).collect::<Vec<_>>().join(" ");
            rows.push(if is_checked { text() } else { "a row".to_string() });
        }
    }
    Ok(rows)
}

fn answers(path: &Path, is_checked: bool) -> Answers<String> {
    let path = path.to_str().unwrap();
    let words = |error: Error| error.to_string();
    let strict = OpenOptions::default().open(path);
    let losses = Arc::new(LossLog::new());
    let salvaged = OpenOptions::default().with_recovery(true).open(path);
    let salvaged = salvaged.and_then(|dataset| rows_in(dataset.as_ref(), Some(&losses), is_checked));
    let verified = verify::verify(&[path], &OpenOptions::default(), VerifyDepth::Values, &Silent);
    Answers {
        strict: strict.and_then(|dataset| rows_in(dataset.as_ref(), None, is_checked)).map_err(words),
        is_sound: verified.is_ok_and(|report| report.is_sound()),
        salvaged: salvaged.map(|rows| (rows, losses.losses())).map_err(words),
    }
}

/// A stream may end without its mark: that nothing shows it to be whole is no damage.
fn may_be_whole(losses: &[LostRows]) -> bool {
    !losses.is_empty() && losses.iter().all(|lost| lost.reason.contains("expected an end mark"))
}

#[test]
fn whatever_happens_to_a_file_its_rows_are_given_or_named_as_lost() {
    let how = Damages { cuts: 60, flips: 120, edge_bytes: 16, seed: 7 };
    for (format, bytes) in files() {
        let is_checked = format == "redfile";
        let place = tempfile::tempdir().unwrap();
        // The files of a folder are one table, and only one of them is damaged.
        for name in ["a", "b"] {
            fs::write(place.path().join(name), &bytes).unwrap();
        }
        let whole = answers(place.path(), is_checked);
        let original = whole.strict.as_ref().unwrap().clone();
        assert_eq!(whole.judge(&original, &Judge::default()), Ok(Verdict::Right), "{format}");
        assert_eq!(original.len(), 2 * GROUPS * ROWS);
        let folder = DamagedFolder::copy_of(place.path()).unwrap();
        let mut verdicts = BTreeMap::<Verdict, usize>::new();
        let mut failures = Vec::new();
        for (file, damage) in folder.damages(&how).filter(|(file, _)| file.ends_with("b")) {
            // A folder without one of its files is another folder.
            let Some(_) = damage.bytes else { continue };
            let found = folder.with(&file, &damage, |root| answers(root, is_checked)).unwrap();
            if found.salvaged.as_ref().is_ok_and(|(_, losses)| may_be_whole(losses)) {
                continue;
            }
            match found.judge(&original, &Judge::default()) {
                Ok(verdict) => *verdicts.entry(verdict).or_default() += 1,
                Err(failure) => failures.push(format!("{}: {failure}", damage.name)),
            }
        }
        assert!(failures.is_empty(), "{format}: {} failures:\n{}", failures.len(), failures.join("\n"));
        // Both files are never lost together.
        assert_eq!(verdicts.get(&Verdict::Nothing), None, "{format}: {verdicts:?}");
        assert!(verdicts.get(&Verdict::Unknown).is_some_and(|count| *count > 20), "{format}: {verdicts:?}");
    }
}

#[test]
fn parquet_whose_last_bytes_are_lost_is_saved_whole_if_its_metadata_is() {
    let (_, whole) = files().swap_remove(1);
    let all = (GROUPS * ROWS) as u64;
    for cut in 1..=8 {
        let bytes = whole[..whole.len() - cut].to_vec();
        assert_eq!(salvaged(&format!("cut by {cut}"), bytes), Some((all, Some(0))));
        let mut bytes = whole.clone();
        let place = bytes.len() - cut;
        bytes[place] ^= 1;
        assert_eq!(salvaged(&format!("flipped {cut} before the end"), bytes), Some((all, Some(0))));
    }
}

/// The numbers and words that a salvage gives which fills lost cells, and of which columns cells were lost.
fn filled(path: &Path, columns: Option<&str>) -> (Vec<String>, Vec<Option<String>>) {
    let losses = Arc::new(LossLog::new().with_cells(pilaster::LostCells::Null));
    let dataset = OpenOptions::default().with_recovery(true).open(path.to_str().unwrap()).unwrap();
    let scan = dataset.scan().skip_damage(Arc::clone(&losses));
    let scan = match columns {
        Some(column) => scan.project([column]),
        None => scan,
    };
    let mut rows = Vec::new();
    for batch in scan.read().unwrap() {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayRef| arrow_cast::display::array_value_to_string(column, row).unwrap();
            rows.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join(" "));
        }
    }
    (rows, losses.losses().into_iter().map(|lost| lost.column).collect())
}

/// Rows of a number and a word that may be null, of which the words of one group cannot be read.
fn with_bad_words() -> Vec<(&'static str, Vec<u8>)> {
    let batches = batches().into_iter().map(|batch| {
        let words = batch.column(1).as_string::<i32>().iter().enumerate();
        // The first of each group has none.
        let words: StringArray = words.map(|(row, word)| word.filter(|_| row > 0)).collect();
        let columns = [("n", batch.column(0).clone(), false), ("t", Arc::new(words) as ArrayRef, true)];
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    });
    let batches: Vec<_> = batches.collect();
    let mut file = FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_max_row_group_row_count(Some(ROWS))
        .set_dictionary_enabled(false)
        .build();
    let mut parquet =
        parquet::arrow::ArrowWriter::try_new(Vec::new(), batches[0].schema(), Some(properties)).unwrap();
    for batch in &batches {
        file.write(batch).unwrap();
        parquet.write(batch).unwrap();
    }
    // A text of bytes that are none, in a group that is not the first.
    let spoilt = |mut bytes: Vec<u8>| {
        let word = word((2 * ROWS) as i64 + 7);
        let place = bytes.windows(word.len()).position(|window| window == word.as_bytes()).unwrap();
        bytes[place] = 0xff;
        bytes
    };
    vec![("parquet", spoilt(parquet.into_inner().unwrap())), ("arrow", spoilt(file.into_inner().unwrap()))]
}

#[test]
fn lost_cells_are_null_where_that_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    for (format, bytes) in with_bad_words() {
        let path = place.path().join(format);
        fs::write(&path, bytes).unwrap();
        let (rows, lost) = filled(&path, None);
        assert_eq!(rows.len(), GROUPS * ROWS, "{format}");
        assert!(
            lost.iter().all(|column| column.as_deref() == Some("t")) && !lost.is_empty(),
            "{format}: {lost:?}"
        );
        let nulls = rows.iter().filter(|row| row.ends_with(' ')).count();
        for (number, row) in (0..).zip(&rows) {
            assert!(
                *row == format!("{number} ") || *row == format!("{number} {}", word(number)),
                "{format}: {row}"
            );
        }
        assert_eq!(filled(&path, Some("n")).1, [], "{format}");
        // Without it the rows are left out.
        let losses = Arc::new(LossLog::new());
        let dataset = OpenOptions::default().with_recovery(true).open(path.to_str().unwrap()).unwrap();
        let rows = rows_in(dataset.as_ref(), Some(&losses), true).unwrap();
        let left_out = GROUPS * ROWS - rows.len();
        assert!((1..=ROWS).contains(&left_out), "{format}: {left_out}");
        assert!((left_out..=left_out + GROUPS).contains(&nulls), "{format}: {nulls}");
        assert_eq!(total_lost(&losses.losses()), Some(left_out as u64), "{format}");
    }
}

#[test]
fn a_condition_is_not_answered_by_a_cell_that_is_lost() {
    let place = tempfile::tempdir().unwrap();
    for (format, bytes) in with_bad_words() {
        let path = place.path().join(format);
        fs::write(&path, bytes).unwrap();
        let losses = Arc::new(LossLog::new().with_cells(pilaster::LostCells::Null));
        let dataset = OpenOptions::default().with_recovery(true).open(path.to_str().unwrap()).unwrap();
        let scan = dataset.scan().filter(pilaster::col("t").is_null()).skip_damage(Arc::clone(&losses));
        let rows: usize = scan.read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert!((1..=GROUPS).contains(&rows), "{format}: {rows}");
        assert!(!losses.is_empty(), "{format}");
    }
}
