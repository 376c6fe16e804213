//! Folders of several formats whose files are damaged, emptied, renamed, moved, doubled or replaced at random.
//!
//! Nothing panics and nothing hangs; where counting the rows is refused, `verify` finds something, and `salvage` names a loss or is
//! refused too. `PILASTER_FOLDER_FUZZ=100000 cargo test -p pilaster --test folder_fuzz -- --nocapture` tries more, and
//! `PILASTER_FOLDER_SEED` begins elsewhere; a failure prints the seed that makes it again.
#![cfg(all(unix, feature = "kudu", feature = "doris", feature = "carbondata", feature = "redfile"))]
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

mod made;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use pilaster::convert::{ConvertOptions, ConvertTarget, convert};
use pilaster::core::progress::Silent;
use pilaster::ls::{ListOptions, list};
use pilaster::output::WriteOptions;
use pilaster::salvage::{SalvageOptions, salvage};
use pilaster::store::{named_tables, open_store};
use pilaster::{DatasetRef, Error, OpenOptions, OutputFormat, Result, ScanRequest, VerifyDepth, verify};
use pilaster_testing::testdata;

/// How often damage is tried where nobody asks for more.
const TRIALS: u64 = 150;
/// No folder of these takes as long; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// SplitMix64: the same seed gives the same damage.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &target);
        } else {
            fs::copy(&entry, &target).unwrap();
        }
    }
}

/// Everything below a folder: files, and folders.
fn below(folder: &Path, files: &mut Vec<PathBuf>, folders: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        let kind = fs::symlink_metadata(&entry).unwrap();
        if kind.is_dir() {
            folders.push(entry.clone());
            below(&entry, files, folders);
        } else if kind.is_file() {
            files.push(entry);
        }
    }
}

fn written(rows: usize, target: PathBuf, format: OutputFormat, options: WriteOptions) {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("rows.parquet");
    fs::write(&source, made::parquet_bytes(&made::sample(rows), 50)).unwrap();
    let dataset = pilaster::open(source.to_str().unwrap()).unwrap();
    let options = ConvertOptions::default().with_write(options);
    let target = ConvertTarget::new(target, format);
    convert(dataset.as_ref(), &ScanRequest::default(), &target, &options, &Silent).unwrap();
}

/// Folders of every system and of files, each of which opens.
fn folders(place: &Path) -> Vec<PathBuf> {
    let at = |name: &str| place.join(name);
    copy(&testdata("kudu").join("mixed/fs"), &at("kudu"));
    fs::create_dir(at("cfiles")).unwrap();
    for name in ["a.cfile", "b.cfile"] {
        fs::copy(testdata("kudu").join("cfiles/prefix-lz4.cfile"), at("cfiles").join(name)).unwrap();
    }
    for table in ["iud_update2", "part_overwritten"] {
        let table_folder = testdata("carbondata").join("table").join(table);
        if table_folder.is_dir() {
            copy(&table_folder, &at("carbon store").join("db").join(table));
        }
    }
    let plain = WriteOptions::default;
    written(120, at("doris"), OutputFormat::Doris, plain());
    written(120, at("carbon"), OutputFormat::CarbonData, plain());
    written(120, at("kudu made"), OutputFormat::Kudu, plain());
    written(120, at("set"), OutputFormat::CFileSet, plain());
    for (folder, format) in [
        ("parquet", OutputFormat::Parquet),
        ("arrow", OutputFormat::Arrow),
        ("red", OutputFormat::Redfile),
        ("csv", OutputFormat::Csv),
        ("jsonl", OutputFormat::Jsonl),
        ("hive/p=1", OutputFormat::Parquet),
        ("hive/p=__HIVE_DEFAULT_PARTITION__", OutputFormat::Parquet),
    ] {
        fs::create_dir_all(at(folder)).unwrap();
        for rows in [70, 130] {
            written(rows, at(folder).join(format!("{rows}.{format}")), format, plain());
        }
    }
    for folder in ["parquet", "doris", "carbon", "kudu made", "csv"] {
        copy(&at(folder), &at("all of them").join(folder));
    }
    fs::write(at("csv/notes.txt"), "what\nnobody\nreads\n").unwrap();
    let names = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| !path.ends_with("set")).chain([at("set")]).collect()
}

/// Damages something below a folder, and says what.
fn damage(folder: &Path, dice: &mut Dice) -> String {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    below(folder, &mut files, &mut folders);
    if files.is_empty() {
        return "nothing is left".to_string();
    }
    let file = dice.one(&files).clone();
    let other = dice.one(&files).clone();
    let inside = dice.one(&folders).clone();
    let mut bytes = fs::read(&file).unwrap();
    let place = dice.below(bytes.len());
    let name = |path: &Path| path.strip_prefix(folder).unwrap().display().to_string();
    let shown = name(&file);
    match dice.below(17) {
        0 => {
            fs::remove_file(&file).unwrap();
            format!("{shown} removed")
        }
        1 => {
            fs::write(&file, "").unwrap();
            format!("{shown} emptied")
        }
        2 | 3 => {
            fs::write(&file, &bytes[..place]).unwrap();
            format!("{shown} cut at {place}")
        }
        4 | 5 if !bytes.is_empty() => {
            bytes[place] ^= 1 << dice.below(8);
            fs::write(&file, bytes).unwrap();
            format!("{shown} with a bit flipped at {place}")
        }
        6 if !bytes.is_empty() => {
            let end = bytes.len().min(place + 1 + dice.below(64));
            bytes[place..end].fill(0);
            fs::write(&file, bytes).unwrap();
            format!("{shown} with zeros at {place}..{end}")
        }
        7 => {
            let new = file.with_file_name(*dice.one(&[
                "part-9.parquet",
                ".hidden",
                "_SUCCESS",
                "x=1",
                "a b%",
                "0",
            ]));
            fs::rename(&file, &new).unwrap();
            format!("{shown} renamed to {}", name(&new))
        }
        8 => {
            let new = inside.join(file.file_name().unwrap());
            fs::rename(&file, &new).unwrap();
            format!("{shown} moved to {}", name(&new))
        }
        9 => {
            let new = inside.join(format!("copy of {}", file.file_name().unwrap().to_str().unwrap()));
            fs::copy(&file, &new).unwrap();
            format!("{shown} copied to {}", name(&new))
        }
        10 => {
            fs::copy(&other, &file).unwrap();
            format!("{shown} overwritten with {}", name(&other))
        }
        11 => {
            fs::remove_file(&file).unwrap();
            symlink(file.file_name().unwrap(), &file).unwrap();
            format!("{shown} a link to itself")
        }
        12 => {
            fs::remove_file(&file).unwrap();
            assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
            format!("{shown} a pipe")
        }
        13 => {
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
            format!("{shown} a folder")
        }
        14 => {
            // Sparse: what claims to be long takes no place.
            fs::OpenOptions::new()
                .write(true)
                .open(&file)
                .unwrap()
                .set_len(1 << (16 + dice.below(9)))
                .unwrap();
            format!("{shown} made long")
        }
        15 if inside != folder => {
            let new = inside.with_file_name(*dice.one(&["moved", "p=2", "q=1", "Fact", ".x"]));
            if !new.exists() {
                fs::rename(&inside, &new).unwrap();
            }
            format!("{} renamed to {}", name(&inside), name(&new))
        }
        _ => {
            let made: Vec<u8> = (0..dice.below(300)).map(|_| dice.next() as u8).collect();
            let new = inside.join(*dice.one(&[
                "notes.txt",
                "x.parquet",
                "y",
                "z.csv",
                "1.hdr",
                "tablestatus",
                "a.cfile",
            ]));
            if !new.exists() {
                fs::write(&new, made).unwrap();
            }
            format!("{} added", name(&new))
        }
    }
}

/// Counts the rows of all tables by reading them.
fn count(path: &str) -> Result<u64> {
    let read = |dataset: DatasetRef| -> Result<u64> {
        let mut rows = 0;
        for batch in dataset.scan().read()? {
            rows += batch.map_err(Error::from)?.num_rows() as u64;
        }
        Ok(rows)
    };
    let tables = named_tables(&[path], &OpenOptions::default())?;
    tables.into_iter().map(|(_, dataset)| read(dataset)).sum()
}

/// Salvages every table: how many rows are saved, and whether a loss is named or saving refused.
fn saved(path: &str, out: &Path) -> (u64, bool) {
    let options = OpenOptions::default().with_recovery(true).with_partial(true);
    let opened: Vec<Result<DatasetRef>> = match open_store(&[path], &options) {
        Some(Err(_)) => return (0, true),
        Some(Ok(store)) => store.tables().iter().map(|table| store.table(Some(table))).collect(),
        None => vec![options.open(path)],
    };
    let (mut rows, mut is_less) = (0, opened.is_empty());
    for (number, dataset) in opened.into_iter().enumerate() {
        let target = ConvertTarget::new(out.join(format!("{number}.jsonl")), OutputFormat::Jsonl);
        match dataset
            .and_then(|dataset| salvage(dataset.as_ref(), &target, &SalvageOptions::default(), &Silent))
        {
            Ok(report) => {
                rows += report.rows_saved;
                is_less |= !report.is_complete();
            }
            Err(_) => is_less = true,
        }
    }
    (rows, is_less)
}

/// What contradicts itself in how a folder of so many rows is read, if anything does.
fn contradiction(path: &str, rows: Option<u64>, out: &Path) -> Option<String> {
    let counted = count(path);
    let _ = list(&[path], &ListOptions::default().with_recursive(true));
    let verified = verify::verify(&[path], &OpenOptions::default(), VerifyDepth::Values, &Silent);
    let (saved, is_less) = saved(path, out);
    let error = counted.err()?;
    // Tables that lie deeper are sound, and whoever wants their rows is told where they are.
    let lies_deeper = error.to_string().contains("below it are");
    if verified.is_ok_and(|report| report.findings.is_empty()) && rows.is_some() && !lies_deeper {
        return Some(format!("verify finds nothing, but: {error}"));
    }
    if error.is_damage() && !is_less && rows.is_some_and(|rows| saved < rows) {
        return Some(format!("{saved} rows are saved and none is lost of {rows:?}, but: {error}"));
    }
    None
}

fn try_one(base: &[(PathBuf, Option<u64>)], seed: u64) -> std::result::Result<(), String> {
    let mut dice = Dice(seed);
    let place = tempfile::tempdir().unwrap();
    let (folder, out) = (place.path().join("folder"), place.path().join("out"));
    let (source, rows) = dice.one(base).clone();
    copy(&source, &folder);
    fs::create_dir(&out).unwrap();
    let steps: Vec<_> = (0..=dice.below(3)).map(|_| damage(&folder, &mut dice)).collect();
    let what = format!("seed {seed}: {}: {}", source.file_name().unwrap().display(), steps.join(", "));
    let (done, is_done) = channel();
    let path = folder.display().to_string();
    let worker = thread::spawn(move || {
        let found = contradiction(&path, rows, &out);
        let _ = done.send(());
        found
    });
    if is_done.recv_timeout(PATIENCE).is_err() && !worker.is_finished() {
        return Err(format!("{what}: not done after {PATIENCE:?}"));
    }
    match worker.join() {
        Ok(None) => Ok(()),
        Ok(Some(found)) => Err(format!("{what}: {found}")),
        Err(_) => Err(format!("{what}: a panic")),
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn damaged_folders_are_read_or_refused_and_verified_alike() {
    let place = tempfile::tempdir().unwrap();
    let with_rows = |folder: PathBuf| {
        let counted = count(folder.to_str().unwrap());
        // Tables of several systems are not read together.
        assert_eq!(counted.is_err(), folder.ends_with("all of them"), "{}: {counted:?}", folder.display());
        (folder, counted.ok())
    };
    let base: Vec<_> = folders(place.path()).into_iter().map(with_rows).collect();
    let first = number("PILASTER_FOLDER_SEED", 1);
    let failures: Vec<_> = (first..first + number("PILASTER_FOLDER_FUZZ", TRIALS))
        .filter_map(|seed| try_one(&base, seed).err())
        .inspect(|failure| println!("{failure}"))
        .collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
