//! Damages to files, and the judgement of what a reader makes of them: the part of the net that knows no format.
//!
//! A test copies a small table as a [`DamagedFolder`], goes through its files and the [`damages`] to each, and hands what
//! the strict scan, `verify` and `salvage` said to [`Answers::judge`]:
//!
//! ```no_run
//! # use pilaster_testing::damage::{Answers, DamagedFolder, Damages, Judge};
//! # fn read(_: &std::path::Path) -> Answers<String> { unimplemented!() }
//! # let original: Vec<String> = vec![];
//! let folder = DamagedFolder::copy_of("testdata/table".as_ref()).unwrap();
//! let mut failures = Vec::new();
//! for (file, damage) in folder.damages(&Damages::default()) {
//!     let answers = folder.with(&file, &damage, |root| read(root)).unwrap();
//!     if let Err(failure) = answers.judge(&original, &Judge::default()) {
//!         failures.push(format!("{} {}: {failure}", file.display(), damage.name));
//!     }
//! }
//! ```

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

use pilaster_core::LostRows;
use pilaster_core::salvage::total_lost;

/// What is done to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// In a few words, for messages.
    pub name: String,
    /// The bytes it has then; `None` if it is gone.
    pub bytes: Option<Vec<u8>>,
}

impl Damage {
    /// Other bytes. Formats add their own, for example with checksums that are right again.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { name: name.into(), bytes: Some(bytes) }
    }
}

/// How many damages are done to each file.
#[derive(Debug, Clone)]
pub struct Damages {
    /// Cuts, spread over the file; the last byte alone is always cut off too.
    pub cuts: usize,
    /// Bytes that are flipped, one at a time, spread over the file with one in each stretch.
    pub flips: usize,
    /// How many bytes of the head and of the end are overwritten with zeros.
    pub edge_bytes: usize,
    /// Chooses the bytes and bits to flip.
    pub seed: u64,
}

impl Default for Damages {
    fn default() -> Self {
        Self { cuts: 6, flips: 8, edge_bytes: 16, seed: 42 }
    }
}

/// The damages to a file of these bytes: deleted, emptied, cut, head and end zeroed, bytes flipped. None of them leaves
/// the bytes as they are, and each comes once.
pub fn damages(bytes: &[u8], how: &Damages) -> Vec<Damage> {
    let length = bytes.len();
    let mut all = vec![Damage { name: "deleted".into(), bytes: None }];
    let mut add = |name: String, damaged: Vec<u8>| {
        if damaged != bytes && all.iter().all(|other: &Damage| other.bytes.as_ref() != Some(&damaged)) {
            all.push(Damage::new(name, damaged));
        }
    };
    add("emptied".into(), Vec::new());
    let parts = how.cuts.saturating_add(1);
    let cuts = (1..parts).map(|part| share(length, part, parts));
    for cut in cuts.chain([length.saturating_sub(1)]) {
        add(format!("cut at {cut} of {length}"), bytes.iter().take(cut).copied().collect());
    }
    let edge = how.edge_bytes.min(length);
    let mut zeroed = bytes.to_vec();
    zeroed.iter_mut().take(edge).for_each(|byte| *byte = 0);
    add(format!("first {edge} bytes zeroed"), zeroed);
    let mut zeroed = bytes.to_vec();
    zeroed.iter_mut().rev().take(edge).for_each(|byte| *byte = 0);
    add(format!("last {edge} bytes zeroed"), zeroed);
    let mut state = how.seed ^ u64::try_from(length).unwrap_or_default();
    for flip in 0..how.flips {
        let (from, end) = (share(length, flip, how.flips), share(length, flip.saturating_add(1), how.flips));
        let within = u64::try_from(end.saturating_sub(from)).unwrap_or_default().max(1);
        let at = from.saturating_add(
            usize::try_from(random(&mut state).checked_rem(within).unwrap_or_default()).unwrap_or_default(),
        );
        let bit = 1u8 << (random(&mut state) % 8);
        let mut flipped = bytes.to_vec();
        if let Some(byte) = flipped.get_mut(at) {
            *byte ^= bit;
            add(format!("byte {at} ^ {bit:#04x}"), flipped);
        }
    }
    all
}

/// `part` of `parts` of a length.
fn share(length: usize, part: usize, parts: usize) -> usize {
    length.saturating_mul(part).checked_div(parts).unwrap_or(length)
}

/// The next of numbers that look random and are the same in every run.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A copy of a folder in which one file at a time is damaged.
#[derive(Debug)]
pub struct DamagedFolder {
    copy: tempfile::TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl DamagedFolder {
    /// Copies a folder. Links, pipes and empty folders are left out.
    ///
    /// # Errors
    /// What the system says.
    pub fn copy_of(original: &Path) -> io::Result<Self> {
        let (mut files, mut pending) = (Vec::new(), vec![original.to_path_buf()]);
        while let Some(folder) = pending.pop() {
            for entry in std::fs::read_dir(folder)? {
                let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
                if kind.is_dir() {
                    pending.push(path);
                } else if kind.is_file() {
                    let bytes = std::fs::read(&path)?;
                    files.push((path.strip_prefix(original).unwrap_or(&path).to_path_buf(), bytes));
                }
            }
        }
        files.sort();
        let folder = Self { copy: tempfile::tempdir()?, files };
        folder.files.iter().try_for_each(|(path, bytes)| folder.put(path, Some(bytes)))?;
        Ok(folder)
    }

    /// The folder as it is now.
    pub fn root(&self) -> &Path {
        self.copy.path()
    }

    /// Each file below the root, with its bytes, by path.
    pub fn files(&self) -> &[(PathBuf, Vec<u8>)] {
        &self.files
    }

    /// The [`damages`] to every file.
    pub fn damages(&self, how: &Damages) -> impl Iterator<Item = (PathBuf, Damage)> {
        let each = |(path, bytes): &(PathBuf, Vec<u8>)| {
            damages(bytes, how).into_iter().map(|damage| (path.clone(), damage)).collect::<Vec<_>>()
        };
        self.files.iter().flat_map(each)
    }

    /// Does `read` while a file is damaged, and makes it whole again.
    ///
    /// # Errors
    /// What the system says.
    pub fn with<T>(&self, file: &Path, damage: &Damage, read: impl FnOnce(&Path) -> T) -> io::Result<T> {
        self.put(file, damage.bytes.as_deref())?;
        let result = read(self.root());
        let whole = self.files.iter().find(|(path, _)| path == file).map(|(_, bytes)| bytes.as_slice());
        self.put(file, whole)?;
        Ok(result)
    }

    /// Writes a file, or deletes it.
    fn put(&self, file: &Path, bytes: Option<&[u8]>) -> io::Result<()> {
        let path = self.root().join(file);
        let Some(bytes) = bytes else { return std::fs::remove_file(path) };
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, bytes)
    }
}

/// What the three ways to look at a table said about it. Rows are anything that is equal where the rows are, texts for example.
#[derive(Debug)]
pub struct Answers<R> {
    /// The rows of a scan that stops at damage (`cat`, `sql`), or its error; also that the table cannot be opened.
    pub strict: Result<Vec<R>, String>,
    /// Whether `verify` found the table sound and complete.
    pub is_sound: bool,
    /// The rows and losses of a scan that goes on over damage (`salvage`), or its error.
    pub salvaged: Result<(Vec<R>, Vec<LostRows>), String>,
}

/// What is asked of [`Answers`] beyond the rule.
#[derive(Debug, Clone, Copy, Default)]
pub struct Judge {
    /// More rows may be named as lost than are: where rows are lost before anyone could see that they are replaced or deleted.
    pub may_name_more: bool,
}

/// How a judgement that found nothing wrong came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Every row is given by both scans, and nothing else.
    Right,
    /// The strict scan refuses; `salvage` gives every row and names no loss.
    Refused,
    /// `salvage` gives some rows and counts the others as lost.
    Counted,
    /// `salvage` gives some rows, and says that nobody can count the others.
    Unknown,
    /// Both refuse.
    Nothing,
}

impl<R: Ord + Debug> Answers<R> {
    /// Holds the answers against the rows there were, in any order:
    ///
    /// - The strict scan gives exactly these rows, or refuses; where it refuses, `verify` finds something.
    /// - `salvage` gives no row that was not there, nor one twice. Rows it gives and rows it names as lost are together the rows
    ///   there were, or one of its losses says that nobody can count. Every loss has a reason.
    /// - Where `salvage` names a loss, `verify` finds something and the strict scan refuses.
    ///
    /// # Errors
    /// What does not hold.
    pub fn judge(&self, original: &[R], how: &Judge) -> Result<Verdict, String> {
        if let Ok(rows) = &self.strict {
            only_of(rows, original).map_err(|wrong| format!("the strict scan gives {wrong}"))?;
            if rows.len() != original.len() {
                return Err(format!("the strict scan gives {} of {} rows", rows.len(), original.len()));
            }
        }
        if let (Err(error), true) = (&self.strict, self.is_sound) {
            return Err(format!("the strict scan refuses where verify finds nothing: {error}"));
        }
        let (saved, losses) = match (&self.salvaged, &self.strict) {
            (Ok((saved, losses)), _) => (saved, losses),
            (Err(_), Err(_)) => return Ok(Verdict::Nothing),
            (Err(error), Ok(_)) => {
                return Err(format!("salvage refuses what the strict scan gives: {error}"));
            }
        };
        only_of(saved, original).map_err(|wrong| format!("salvage gives {wrong}"))?;
        if let Some(lost) = losses.iter().find(|lost| lost.reason.trim().is_empty()) {
            return Err(format!("a loss without a reason: {lost:?}"));
        }
        if (self.is_sound || self.strict.is_ok()) && !losses.is_empty() {
            let who = if self.is_sound { "verify finds nothing" } else { "the strict scan gives every row" };
            return Err(format!("salvage names losses where {who}: {}", named(losses)));
        }
        let missing = u64::try_from(original.len().saturating_sub(saved.len())).unwrap_or(u64::MAX);
        match total_lost(losses) {
            None => Ok(Verdict::Unknown),
            Some(total) if total < missing || (total > missing && !how.may_name_more) => Err(format!(
                "salvage gives {} of {} rows and names {total} as lost: {}",
                saved.len(),
                original.len(),
                named(losses)
            )),
            Some(0) if self.strict.is_ok() => Ok(Verdict::Right),
            Some(0) => Ok(Verdict::Refused),
            Some(_) => Ok(Verdict::Counted),
        }
    }
}

/// Names the first row that is not among `original`, or comes more often.
pub(crate) fn only_of<R: Ord + Debug>(rows: &[R], original: &[R]) -> Result<(), String> {
    let mut left = BTreeMap::<&R, usize>::new();
    for row in original {
        let count = left.entry(row).or_default();
        *count = count.saturating_add(1);
    }
    for row in rows {
        match left.get_mut(row) {
            Some(count) if *count > 0 => *count = count.saturating_sub(1),
            Some(_) => return Err(format!("a row twice: {row:?}")),
            None => return Err(format!("a row that was not there: {row:?}")),
        }
    }
    Ok(())
}

/// The first losses as text.
fn named(losses: &[LostRows]) -> String {
    let texts: Vec<_> = losses.iter().take(3).map(ToString::to_string).collect();
    if losses.is_empty() { "nothing".into() } else { texts.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_damage_changes_the_bytes_and_comes_once() {
        for length in [0, 1, 2, 15, 16, 40, 1000] {
            let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap() | 1).collect();
            let all = damages(&bytes, &Damages::default());
            assert!(all.iter().all(|damage| damage.bytes.as_ref() != Some(&bytes)));
            for (number, damage) in all.iter().enumerate() {
                assert!(all[..number].iter().all(|other| other.bytes != damage.bytes), "{}", damage.name);
            }
            assert_eq!(all[0].bytes, None);
            assert!(length < 15 || all.len() > 15, "{length}: {}", all.len());
        }
        assert_eq!(damages(b"abcdefgh", &Damages::default()), damages(b"abcdefgh", &Damages::default()));
    }

    #[test]
    fn a_damaged_file_is_whole_again_afterwards() {
        let original = tempfile::tempdir().unwrap();
        std::fs::create_dir(original.path().join("a")).unwrap();
        std::fs::write(original.path().join("a/b"), b"bytes").unwrap();
        let folder = DamagedFolder::copy_of(original.path()).unwrap();
        let mut seen = Vec::new();
        for (file, damage) in folder.damages(&Damages::default()) {
            assert_eq!(file, Path::new("a/b"));
            seen.push(folder.with(&file, &damage, |root| std::fs::read(root.join("a/b")).ok()).unwrap());
            assert_eq!(seen.last(), Some(&damage.bytes));
            assert_eq!(std::fs::read(folder.root().join("a/b")).unwrap(), b"bytes");
        }
        assert!(seen.contains(&None) && seen.contains(&Some(Vec::new())));
    }

    #[test]
    fn judges_by_rows_and_losses() {
        let refused = || Err("damage".to_string());
        let answers = |strict: Result<Vec<u8>, String>, is_sound, saved: &[u8], losses: &[LostRows]| {
            Answers { strict, is_sound, salvaged: Ok((saved.to_vec(), losses.to_vec())) }
        };
        let judge = |answers: &Answers<u8>| answers.judge(&[1, 2, 2, 3], &Judge::default());
        let one = || vec![LostRows::counted(1, "why")];
        assert_eq!(judge(&answers(Ok(vec![3, 2, 1, 2]), true, &[1, 2, 3, 2], &[])), Ok(Verdict::Right));
        assert_eq!(judge(&answers(refused(), false, &[1, 2, 3, 2], &[])), Ok(Verdict::Refused));
        assert_eq!(judge(&answers(refused(), false, &[1, 3, 2], &one())), Ok(Verdict::Counted));
        let unknown = [LostRows::unknown("why")];
        assert_eq!(judge(&answers(refused(), false, &[1], &unknown)), Ok(Verdict::Unknown));
        let nothing = Answers { strict: refused(), is_sound: false, salvaged: Err("damage".into()) };
        assert_eq!(judge(&nothing), Ok(Verdict::Nothing));
        for (wrong, text) in [
            (answers(Ok(vec![1, 2, 3]), true, &[1, 2, 3, 2], &[]), "strict scan gives 3 of 4 rows"),
            (answers(Ok(vec![1, 2, 3, 9]), true, &[1, 2, 3, 2], &[]), "row that was not there: 9"),
            (answers(refused(), true, &[1, 2, 3, 2], &[]), "verify finds nothing"),
            (answers(refused(), false, &[1, 2, 3], &[]), "3 of 4 rows and names 0 as lost: nothing"),
            (answers(refused(), false, &[1, 1, 2], &one()), "a row twice: 1"),
            (answers(refused(), false, &[1, 2], &one()), "2 of 4 rows and names 1"),
            (answers(refused(), false, &[1, 2, 3, 2], &one()), "4 of 4 rows and names 1"),
            (answers(refused(), false, &[1], &[LostRows::unknown(" ")]), "without a reason"),
            (
                answers(Ok(vec![1, 2, 2, 3]), false, &[1, 2, 3], &one()),
                "where the strict scan gives every row",
            ),
            (answers(Ok(vec![1, 2, 2, 3]), true, &[1, 2, 3], &one()), "where verify finds nothing"),
        ] {
            assert!(judge(&wrong).unwrap_err().contains(text), "{:?} {text}", judge(&wrong));
        }
        let more = answers(refused(), false, &[1, 2, 3, 2], &one());
        assert_eq!(more.judge(&[1, 2, 2, 3], &Judge { may_name_more: true }), Ok(Verdict::Counted));
    }
}
