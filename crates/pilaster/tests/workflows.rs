//! Files and folders from opening to converting, verifying, saving and listing.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests compute with known values, and a failure is a panic"
)]

mod made;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use made::{ROWS, all_rows, ids, parquet_bytes, sample};
use pilaster::convert::{ConvertOptions, ConvertTarget, convert};
use pilaster::core::progress::Silent;
use pilaster::core::storage::MemoryStorage;
use pilaster::ls::{ListOptions, State, list};
use pilaster::migrate::{MigrateOptions, migrate};
use pilaster::output::{ParquetCodec, WriteOptions};
use pilaster::salvage::{SalvageOptions, salvage};
use pilaster::{
    Extent, LossLog, OpenOptions, OutputFormat, Predicate, RowRanges, ScanRequest, ScanTask, VerifyDepth,
    col, lit, open, verify,
};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), bytes).unwrap();
        self.text(name)
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn to(path: PathBuf, format: OutputFormat) -> ConvertTarget {
    ConvertTarget::new(path, format)
}

#[test]
fn rows_survive_every_format() {
    let folder = Folder::new();
    let batch = sample(ROWS);
    let start = folder.write("start", parquet_bytes(&batch, 1000));
    let formats = [
        OutputFormat::Parquet,
        OutputFormat::Arrow,
        OutputFormat::Csv,
        OutputFormat::Tsv,
        OutputFormat::Json,
        OutputFormat::Jsonl,
    ];
    for format in formats.into_iter().chain(cfg!(feature = "kudu").then_some(OutputFormat::CFileSet)) {
        let dataset = open(&start).unwrap();
        let target = to(folder.path(&format!("out.{format}")), format);
        let done =
            convert(dataset.as_ref(), &ScanRequest::default(), &target, &ConvertOptions::default(), &Silent);
        let done = done.unwrap();
        assert_eq!((done.rows, done.is_counted), (ROWS as u64, true), "{format}");
        assert!(format.is_folder() || done.bytes == fs::metadata(target.place.path()).unwrap().len());
        let back = open(&target.place.to_string()).unwrap();
        let rows = all_rows(back.as_ref());
        assert_eq!(rows.columns(), batch.columns(), "{format}");
    }
    assert!(folder.names().iter().all(|name| !name.ends_with(".tmp")));
}

#[test]
fn every_format_is_written_to_memory_and_counted_there() {
    let folder = Folder::new();
    let dataset = open(&folder.write("a.csv", "a,b\n1,2\n3,4\n")).unwrap();
    let place = MemoryStorage::new("memory").root();
    for (format, name) in OutputFormat::ALL {
        if matches!(format, OutputFormat::Table | OutputFormat::CFile) {
            continue;
        }
        let target = ConvertTarget::new(place.child(name), format);
        let options = ConvertOptions::default();
        let done = convert(dataset.as_ref(), &ScanRequest::default(), &target, &options, &Silent).unwrap();
        assert_eq!((done.rows, done.is_counted), (2, true), "{format}");
        if format != OutputFormat::DorisSegment {
            let back = OpenOptions::default().open_location(&target.place).unwrap();
            assert_eq!(all_rows(back.as_ref()).num_rows(), 2, "{format}");
        }
        let again = convert(dataset.as_ref(), &ScanRequest::default(), &target, &options, &Silent);
        assert_eq!(again.unwrap_err().to_string(), format!("memory/{name}: exists already"));
    }
}

#[test]
fn folders_of_files_and_partitions_are_opened_in_memory() {
    let files = [
        ("t/a.csv", "a,b\n1,2\n"),
        ("t/b.csv", "a,b\n3,4\n"),
        ("p/day=1/x.csv", "a\n1\n"),
        ("p/day=2/x.csv", "a\n2\n"),
    ];
    let place = MemoryStorage::with_files("memory", files).root();
    for (name, columns) in [("t", vec!["a", "b"]), ("p", vec!["a", "day"])] {
        let table = OpenOptions::default().open_location(place.child(name)).unwrap();
        let rows = all_rows(table.as_ref());
        let schema = rows.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!((rows.num_rows(), names), (2, columns), "{name}");
    }
    let missing = OpenOptions::default().open_location(place.child("u")).unwrap_err();
    assert!(missing.to_string().starts_with("memory/u: "), "{missing}");
}

#[test]
fn an_existing_file_is_replaced_only_if_asked() {
    let folder = Folder::new();
    let dataset = open(&folder.write("a.csv", "a,b\n1,2\n")).unwrap();
    let path = folder.write("out.parquet", "precious");
    let target = ConvertTarget::from_path(Path::new(&path)).unwrap();
    let error =
        convert(dataset.as_ref(), &ScanRequest::default(), &target, &ConvertOptions::default(), &Silent);
    assert_eq!(error.unwrap_err().to_string(), format!("{path}: exists already"));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    let options = ConvertOptions::default()
        .with_overwrite(pilaster::overwrite::Overwrite::new(true))
        .with_write(WriteOptions::default().with_parquet_codec(ParquetCodec::Snappy).with_row_group_rows(1));
    convert(dataset.as_ref(), &ScanRequest::default(), &target, &options, &Silent).unwrap();
    assert_eq!(open(&path).unwrap().row_count(), Some(1));
    assert!(ConvertTarget::from_path(Path::new("x.unknown")).is_err());
}

#[test]
fn a_conversion_that_fails_leaves_nothing() {
    let folder = Folder::new();
    let mut bytes = parquet_bytes(&sample(ROWS), 1000);
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xff);
    let dataset = open(&folder.write("bad", bytes)).unwrap();
    let target = to(folder.path("out.csv"), OutputFormat::Csv);
    let error =
        convert(dataset.as_ref(), &ScanRequest::default(), &target, &ConvertOptions::default(), &Silent);
    assert!(error.unwrap_err().is_damage());
    assert_eq!(folder.names(), ["bad"]);
}

#[test]
fn empty_results_convert_too() {
    let folder = Folder::new();
    let dataset = open(&folder.write("start", parquet_bytes(&sample(100), 10))).unwrap();
    let request = ScanRequest { predicate: Some(col("id").lt(lit(0_i64))), ..ScanRequest::default() };
    for (format, name) in OutputFormat::ALL.into_iter().filter(|(format, _)| !format.is_folder()) {
        let target = to(folder.path(name), format);
        // A CFile is one column.
        let projection = (format == OutputFormat::CFile).then(|| vec![0]);
        let request = ScanRequest { projection, ..request.clone() };
        let done = convert(dataset.as_ref(), &request, &target, &ConvertOptions::default(), &Silent);
        // Doris knows no segment without rows.
        if format == OutputFormat::DorisSegment {
            assert!(done.unwrap_err().to_string().contains("a segment without rows"));
            continue;
        }
        assert_eq!(done.unwrap().rows, 0, "{name}");
    }
}

#[test]
fn salvage_saves_the_rest_and_says_what_is_lost() {
    let folder = Folder::new();
    let mut bytes = parquet_bytes(&sample(ROWS), 1000);
    let start = folder.write("start", &bytes);
    let pages = open(&start).unwrap().pages().unwrap();
    let page = pages.iter().find(|page| page.column == "price" && page.rows == Some(3200..3400)).unwrap();
    let place = (page.offset + page.bytes / 2) as usize;
    bytes[place..place + 4].fill(0xff);
    let dataset = open(&folder.write("bad", bytes)).unwrap();
    let target = to(folder.path("saved.parquet"), OutputFormat::Parquet);
    let options = SalvageOptions::default().with_row_number_column(Some("row".into()));
    let report = salvage(dataset.as_ref(), &target, &options, &Silent).unwrap();
    assert_eq!((report.rows_total, report.rows_saved, report.rows_lost), (Some(5000), 4800, Some(200)));
    assert!(!report.is_complete());
    let json = report.to_json();
    assert_eq!(json["losses"][0]["first_row"], 3200);
    assert_eq!(json["losses"][0]["rows"], 200);
    assert_eq!(json["losses"][0]["column"], "price");
    let saved = all_rows(open(&folder.text("saved.parquet")).unwrap().as_ref());
    let expected = sample(ROWS);
    let rows = saved.column_by_name("row").unwrap().as_primitive::<UInt64Type>();
    for (row, position) in rows.values().iter().enumerate() {
        let whole = saved.project(&[0, 1, 2]).unwrap();
        if row % 97 == 0 {
            assert_eq!(whole.slice(row, 1), expected.slice(*position as usize, 1));
        }
    }
}

#[test]
fn files_of_the_same_columns_read_as_one() {
    let folder = Folder::new();
    let batch = sample(ROWS);
    for (index, start) in [0, 1700, 3400].into_iter().enumerate() {
        let part = batch.slice(start, 1700.min(ROWS - start));
        folder.write(&format!("part-{index}.parquet"), parquet_bytes(&part, 500));
    }
    let dataset = open(&folder.text("*.parquet")).unwrap();
    assert_eq!(dataset.row_count(), Some(ROWS as u64));
    assert_eq!(all_rows(dataset.as_ref()).columns(), batch.columns());
    assert_eq!(open(folder.0.path().to_str().unwrap()).unwrap().row_count(), Some(ROWS as u64));
    let tasks = dataset.scan().plan().unwrap().tasks().unwrap();
    assert_eq!(tasks.len(), 4 + 4 + 4);
    assert_eq!(tasks[4].span().rows, Some(1700..2200));
    let rows =
        |tasks: &[ScanTask]| tasks.iter().flat_map(|task| ids(task.read().unwrap())).collect::<Vec<_>>();
    assert_eq!(rows(&tasks), (0..ROWS as i64).collect::<Vec<_>>());
    // Merged, they go over the borders of files.
    for count in [1, 2, 5, 99] {
        let merged = dataset.scan().plan().unwrap().tasks_for(count).unwrap();
        assert_eq!(merged.len(), count.min(12));
        assert_eq!(rows(&merged), (0..ROWS as i64).collect::<Vec<_>>());
    }
    let starts = |predicate: Predicate| -> Vec<u64> {
        let tasks = dataset.scan().filter(predicate).plan().unwrap().tasks().unwrap();
        tasks.iter().map(|task| task.span().rows.clone().unwrap().start).collect()
    };
    assert_eq!(starts(col("id").is_in(vec![lit(3_i64), lit(1700_i64)])), [0, 1700]);
    assert_eq!(starts(col("id").gt(lit(4800_i64))), [4400, 4900]);
    let rows: RowRanges = [1690..1710, 3399..3401, 4999..9000].into_iter().collect();
    let scan = dataset.scan().project(["id"]).rows(rows).limit(21).row_numbers("n");
    let mut found = Vec::new();
    for part in scan.read().unwrap() {
        let part: RecordBatch = part.unwrap();
        found.extend_from_slice(part.column(1).as_primitive::<UInt64Type>().values());
    }
    assert_eq!(found, (1690..1710).chain([3399]).collect::<Vec<u64>>());
    let statistics = dataset.column_statistics().unwrap();
    assert_eq!(statistics[0].max.as_ref().unwrap().len(), 1);
    assert!(dataset.scan().filter(col("nope").eq(lit(1))).read().is_err());
}

#[test]
fn positions_are_counted_where_files_do_not_know_them() {
    let folder = Folder::new();
    folder.write("a.csv", "id,v\n0,a\n1,b\n");
    folder.write("b.csv", "id,v\n2,c\n3,d\n");
    let dataset = open(&folder.text("*.csv")).unwrap();
    assert_eq!(dataset.row_count(), None);
    let scan = dataset.scan().filter(col("v").not_eq(lit("b"))).row_numbers("n");
    let numbers: Vec<_> = scan
        .read()
        .unwrap()
        .flat_map(|part| part.unwrap().column(2).as_primitive::<UInt64Type>().values().to_vec())
        .collect();
    assert_eq!(numbers, [0, 2, 3]);
    assert_eq!(ids(dataset.scan().rows(RowRanges::one(1..3)).read().unwrap()), [1, 2]);
}

#[test]
fn losses_of_several_files_are_counted_from_the_first() {
    let folder = Folder::new();
    folder.write("a", parquet_bytes(&sample(1000), 1000));
    let mut bytes = parquet_bytes(&sample(1000), 1000);
    let pages = open(&folder.text("a")).unwrap().pages().unwrap();
    let page = pages.iter().find(|page| page.column == "name" && page.rows == Some(400..600)).unwrap();
    let place = (page.offset + page.bytes / 2) as usize;
    bytes[place..place + 4].fill(0xff);
    folder.write("b", bytes);
    let dataset = OpenOptions::default().open_all(&[folder.text("a"), folder.text("b")]).unwrap();
    let losses = Arc::new(LossLog::new());
    assert_eq!(ids(dataset.scan().skip_damage(losses.clone()).read().unwrap()).len(), 1800);
    assert_eq!(losses.losses()[0].positions(), Some(1400..1600));
}

#[test]
fn files_of_other_columns_are_refused_by_name() {
    let folder = Folder::new();
    let a = folder.write("a.csv", "id,v\n0,a\n");
    let check = |text: &str, expected: &str| {
        let b = folder.write("b.csv", text);
        let error = OpenOptions::default().open_all(&[&a, &b]).unwrap_err().to_string();
        assert_eq!(error, format!("{b}: {}", expected.replace('@', &a)));
    };
    check(
        "id,v\n0,1\n",
        "column \"v\" is Int64, but Utf8 in @; files read together must have the same types",
    );
    check(
        "id,w\n0,x\n",
        "column number 1 is \"w\", but \"v\" in @; files read together must have the same columns",
    );
    check("id\n0\n", "has no column \"v\", which @ has");
    check("id,v,x\n0,a,1\n", "has a column \"x\", which @ has not");
}

#[test]
fn what_cannot_be_opened_is_said_clearly() {
    let folder = Folder::new();
    let problem = |path: &str| open(path).unwrap_err().to_string();
    let missing = folder.text("missing");
    assert!(problem(&missing).starts_with(&format!("{missing}: No such file")));
    let empty = folder.write("empty", "");
    assert_eq!(problem(&empty), format!("{empty}: is empty (0 bytes): there is no format to find"));
    fs::create_dir(folder.path("folder")).unwrap();
    let inside = folder.text("folder");
    assert_eq!(problem(&inside), format!("{inside}: is a folder without files"));
    let error =
        OpenOptions::default().with_table(Some("t".into())).open(&folder.write("a.csv", "a,b\n1,2\n"));
    assert!(
        error.unwrap_err().to_string().ends_with("is one csv file: there is no table \"t\" to choose in it")
    );
    let cut = folder.write("cut", &parquet_bytes(&sample(10), 10)[..50]);
    assert!(
        problem(&cut).contains("parquet footer magic at byte 46: expected \"PAR1\""),
        "{}",
        problem(&cut)
    );
}

#[test]
fn verify_goes_on_over_files_that_do_not_open() {
    let folder = Folder::new();
    let whole = parquet_bytes(&sample(100), 10);
    folder.write("a.parquet", &whole);
    folder.write("b.parquet", &whole[..whole.len() - 1]);
    folder.write("c.txt", [0u8, 1, 2]);
    let report =
        verify::verify(&[folder.text("")], &OpenOptions::default(), VerifyDepth::Values, &Silent).unwrap();
    assert_eq!((report.files, report.rows, report.findings.len()), (2, 100, 2), "{report:?}");
    assert!(!report.is_sound());
    assert_eq!(verify::report_to_json(&report)["findings"][1]["part"], "parquet footer magic");
    let missing =
        verify::verify(&[folder.text("nope")], &OpenOptions::default(), VerifyDepth::Footer, &Silent);
    assert!(missing.is_err());
}

#[test]
fn a_listing_shows_what_opens_and_what_does_not() {
    let folder = Folder::new();
    folder.write("a.parquet", parquet_bytes(&sample(100), 10));
    folder.write("b.bin", [0u8, 1, 2]);
    fs::create_dir(folder.path("c")).unwrap();
    fs::write(folder.path("c").join("d.csv"), "x,y\n1,2\n").unwrap();
    let entries = list(&[folder.text("")], &ListOptions::default()).unwrap();
    let names = |entries: &[pilaster::ls::Entry]| -> Vec<String> {
        let name = |entry: &pilaster::ls::Entry| {
            Path::new(&entry.path).file_name().unwrap().to_str().unwrap().to_string()
        };
        entries.iter().map(name).collect()
    };
    assert_eq!(names(&entries), ["a.parquet", "b.bin", "c"]);
    assert_eq!((entries[0].rows, entries[0].columns, &entries[0].state), (Some(100), Some(3), &State::Ok));
    assert!(matches!(&entries[1].state, State::Problem(text) if text.starts_with("no known format")));
    assert_eq!(entries[2].format.as_deref(), Some("folder"));
    let entries = list(&[folder.text("")], &ListOptions::default().with_recursive(true)).unwrap();
    assert_eq!(names(&entries), ["a.parquet", "b.bin", "d.csv"]);
    assert!(list(&[folder.text("missing")], &ListOptions::default()).is_err());
}

#[test]
fn arrow_files_and_streams_read_by_position() {
    let batch = sample(ROWS);
    let (mut bytes, stream_bytes) = arrow_bytes(&batch, 700);
    let folder = Folder::new();
    let (file, stream) =
        (open(&folder.write("f", &bytes)).unwrap(), open(&folder.write("s", stream_bytes)).unwrap());
    assert_eq!((file.row_count(), stream.row_count()), (Some(ROWS as u64), Some(ROWS as u64)));
    let tasks = file.scan().plan().unwrap().tasks().unwrap();
    assert_eq!((tasks.len(), stream.scan().plan().unwrap().tasks().unwrap().len()), (8, 8));
    for dataset in [&file, &stream] {
        assert_eq!(all_rows(dataset.as_ref()), batch);
        let rows: RowRanges = [5..8, 699..702, 4998..6000].into_iter().collect();
        let found = ids(dataset.scan().rows(rows).filter(col("id").not_eq(lit(6_i64))).read().unwrap());
        assert_eq!(found, [5, 7, 699, 700, 701, 4998, 4999]);
        assert!(dataset.verify(VerifyDepth::Values, &Silent).unwrap().is_sound());
    }
    assert_eq!(ids(tasks[1].read().unwrap()), (700..1400).collect::<Vec<_>>());
    bytes.truncate(bytes.len() - 20);
    assert!(open(&folder.write("cut", bytes)).is_err());
}

#[cfg(feature = "kudu")]
#[test]
fn a_set_of_cfiles_is_listed_as_one_table_and_its_columns_open_alone() {
    let folder = Folder::new();
    let start = open(&folder.write("start", parquet_bytes(&sample(1000), 1000))).unwrap();
    let target = to(folder.path("set"), OutputFormat::CFileSet);
    convert(start.as_ref(), &ScanRequest::default(), &target, &ConvertOptions::default(), &Silent).unwrap();
    let entries = list(&[folder.text("")], &ListOptions::default()).unwrap();
    assert_eq!((entries[0].rows, entries[0].columns), (Some(1000), Some(3)), "{entries:?}");
    let again =
        convert(start.as_ref(), &ScanRequest::default(), &target, &ConvertOptions::default(), &Silent);
    assert!(again.unwrap_err().to_string().ends_with("set: exists already"));
    let column = folder.text("set/0001-name.cfile");
    assert_eq!(open(&column).unwrap().schema().field(0).name(), "value");
    let schema =
        pilaster::schema_file::parse("{\"columns\":[{\"name\":\"n\",\"type\":\"string\"}]}").unwrap();
    let named = OpenOptions::default().with_schema(Some(schema)).open(&column).unwrap();
    assert_eq!(named.schema().field(0).name(), "n");
    assert_eq!(all_rows(named.as_ref()).column(0), sample(1000).column(1));
    let report = verify::verify(&[folder.text("set")], &OpenOptions::default(), VerifyDepth::Values, &Silent);
    assert!(report.unwrap().is_sound());
}

/// An Arrow file and an Arrow stream of the same rows.
fn arrow_bytes(batch: &RecordBatch, rows: usize) -> (Vec<u8>, Vec<u8>) {
    let mut file = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    let mut stream = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    for start in (0..batch.num_rows()).step_by(rows) {
        let part = batch.slice(start, rows.min(batch.num_rows() - start));
        file.write(&part).unwrap();
        stream.write(&part).unwrap();
    }
    (file.into_inner().unwrap(), stream.into_inner().unwrap())
}

#[test]
fn a_damaged_record_batch_costs_its_rows_only() {
    let (mut bytes, _) = arrow_bytes(&sample(1000), 100);
    let folder = Folder::new();
    let dataset = open(&folder.write("a", &bytes)).unwrap();
    let node = dataset.describe().unwrap();
    let offset: usize = node.children[3].facts[0].1.parse().unwrap();
    // The offsets of the strings lie in the body; make them descend.
    bytes[offset + 300..offset + 2000].fill(0xff);
    let dataset = open(&folder.write("b", &bytes)).unwrap();
    assert!(!dataset.verify(VerifyDepth::Values, &Silent).unwrap().is_sound());
    let losses = Arc::new(LossLog::new());
    let found = ids(dataset.scan().skip_damage(losses.clone()).read().unwrap());
    assert_eq!(found.len(), 900);
    assert_eq!(losses.losses()[0].positions(), Some(300..400));
}

#[test]
fn no_flipped_byte_of_an_arrow_file_makes_a_panic() {
    let (file, stream) = arrow_bytes(&sample(12), 6);
    for whole in [file, stream] {
        for position in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[position] ^= 0x40;
            for bytes in [bytes, whole[..position].to_vec()] {
                let source = Arc::new(pilaster::core::source::MemorySource::new("a", bytes));
                let Ok(dataset) = OpenOptions::default().open_source(source) else { continue };
                if let Ok(reader) = dataset.scan().filter(col("id").gt(lit(3_i64))).read() {
                    let _ = reader.take(100).count();
                }
            }
        }
    }
}

#[test]
fn a_stream_that_breaks_off_gives_what_came_before() {
    let (_, mut bytes) = arrow_bytes(&sample(1000), 100);
    bytes.truncate(bytes.len() - 500);
    let folder = Folder::new();
    let dataset = open(&folder.write("cut", &bytes)).unwrap();
    assert_eq!(dataset.row_count(), None);
    let results: Vec<_> = dataset.scan().read().unwrap().collect();
    assert_eq!((results.len(), results.iter().filter(|result| result.is_ok()).count()), (10, 9));
    let losses = Arc::new(LossLog::new());
    assert_eq!(ids(dataset.scan().skip_damage(losses.clone()).read().unwrap()).len(), 900);
    assert_eq!(losses.len(), 1);
    assert!(!dataset.verify(VerifyDepth::Checksums, &Silent).unwrap().is_sound());
}

#[test]
fn a_stream_that_breaks_off_says_so_to_those_who_read_it_by_task() {
    let (_, bytes) = arrow_bytes(&sample(1000), 100);
    let (_, no_rows) = arrow_bytes(&sample(0), 100);
    let folder = Folder::new();
    for (case, bytes, rows) in [
        ("in a batch", &bytes[..bytes.len() - 500], 900),
        ("before the first batch", &bytes[..no_rows.len() + 100], 0),
        ("in the mark of the end", &bytes[..bytes.len() - 3], 1000),
    ] {
        let path = folder.write("cut", bytes);
        let dataset = open(&path).unwrap();
        let tasks = dataset.scan().plan().unwrap().tasks().unwrap();
        let (end, before) = tasks.split_last().unwrap();
        let read = |task: &ScanTask| task.read().unwrap().collect::<Result<Vec<_>, _>>();
        let found: usize = before.iter().flat_map(|task| read(task).unwrap()).map(|b| b.num_rows()).sum();
        assert_eq!(found, rows, "{case}");
        let error = read(end).unwrap_err().to_string();
        // Merged with others it is met as well.
        let merged = dataset.scan().plan().unwrap().tasks_for(1).unwrap();
        assert_eq!(read(&merged[0]).unwrap_err().to_string(), error, "{case}");
        // The path and the place stand there once.
        assert_eq!(
            (error.matches(&path).count(), error.matches("at byte").count()),
            (1, 1),
            "{case}: {error}"
        );
        let limited = end.clone().with_limit(Some(0)).read().unwrap().count();
        assert_eq!(limited, 0, "{case}");
        let out = folder.path(&format!("out {rows}"));
        let options = MigrateOptions::default();
        let error = migrate(dataset.as_ref(), &ScanRequest::default(), &out, &options, &Silent).unwrap_err();
        assert!(error.is_damage() && !out.join("_SUCCESS").exists(), "{case}: {error}");
    }
}

#[test]
fn a_file_that_cannot_be_opened_costs_no_rows_of_the_others() {
    let folder = Folder::new();
    let whole = parquet_bytes(&sample(100), 50);
    let sources = ["a", "b", "c"].map(|name| folder.text(name));
    let recovery = OpenOptions::default().with_recovery(true);
    let options = SalvageOptions::default().with_row_number_column(Some("row".to_string()));
    // Without its footer, without a byte, or without anything that tells what it was.
    let contents: [&[u8]; 3] = [&whole[..whole.len() - 9], &[], &[0; 64]];
    let cuts = [vec![0], vec![1], vec![1, 2], vec![0, 1, 2]];
    for (cut, content) in cuts.iter().flat_map(|cut| contents.map(|content| (cut, content))) {
        for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
            folder.write(name, if cut.contains(&number) { content } else { &whole });
        }
        assert!(OpenOptions::default().open_all(&sources).is_err());
        let Ok(dataset) = recovery.open_all(&sources) else {
            assert_eq!(cut.len(), sources.len());
            continue;
        };
        // Who does not ask for losses is not given fewer rows.
        assert!(dataset.scan().read().is_err());
        assert_eq!(dataset.row_count(), None);
        let target = folder.path(&format!("saved {cut:?} {}.parquet", content.len()));
        let report =
            salvage(dataset.as_ref(), &to(target.clone(), OutputFormat::Parquet), &options, &Silent).unwrap();
        let saved = 100 * (sources.len() - cut.len()) as u64;
        assert_eq!((report.rows_saved, report.rows_lost, report.is_complete()), (saved, None, false));
        let lost: Vec<_> = report.losses.iter().map(|lost| (&lost.extent, lost.column.is_none())).collect();
        assert_eq!(lost, vec![(&Extent::Unknown, true); cut.len()]);
        for (lost, number) in report.losses.iter().zip(cut) {
            assert!(lost.reason.starts_with(&sources[*number]), "{}", lost.reason);
        }
        let numbers = open(&target.display().to_string()).unwrap();
        let rows = all_rows(numbers.as_ref());
        let rows = rows.column_by_name("row").unwrap().as_primitive::<UInt64Type>();
        assert_eq!(rows.values().to_vec(), (0..saved).collect::<Vec<_>>());
    }
}
