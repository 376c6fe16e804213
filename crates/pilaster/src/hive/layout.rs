//! From folders to partitions: which columns their names give, and which files lie in them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pilaster_core::storage::EntryKind;
use pilaster_core::{Error, Finding, Location, Result};

use crate::folder::{DataFile, Folder, note};
use crate::paths;

/// The folder of rows without a value.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// More columns than any table is partitioned by; deeper folders are a loop of links.
const MOST_COLUMNS: usize = 64;

/// A folder of partitions.
pub(super) struct Layout {
    /// The columns that the names of folders give, from the outside in.
    pub(super) columns: Vec<String>,
    pub(super) leaves: Vec<Leaf>,
    pub(super) passed_over: Vec<Finding>,
}

/// A folder that holds files.
pub(super) struct Leaf {
    /// The value of each column; `None` is null.
    pub(super) values: Vec<Option<String>>,
    pub(super) files: Vec<DataFile>,
}

impl Layout {
    /// The partitions in a folder; `None` if no folder in it is named like one.
    ///
    /// # Errors
    /// If folders do not agree on the columns, or files lie beside partitions; if something cannot be read.
    pub(super) fn find(folder: &Location) -> Result<Option<Self>> {
        if !has_partitions(folder)? {
            return Ok(None);
        }
        let mut layout = Self { columns: Vec::new(), leaves: Vec::new(), passed_over: Vec::new() };
        let mut levels = Vec::new();
        layout.descend(folder, &mut levels, &mut BTreeSet::new())?;
        Ok(Some(layout))
    }

    /// Adds what lies in a folder; `levels` are the names and values on the way to it, `above` the folders.
    fn descend(
        &mut self,
        folder: &Location,
        levels: &mut Vec<(String, Option<String>)>,
        above: &mut BTreeSet<PathBuf>,
    ) -> Result<()> {
        let refuse = |message: String| Err(folder.blame(Error::invalid(message)));
        let real = folder.real()?.path().to_path_buf();
        if levels.len() > MOST_COLUMNS || !above.insert(real.clone()) {
            return refuse("links lead back to a folder above".to_string());
        }
        let inside = Folder::look(folder)?;
        self.passed_over.extend(inside.passed_over);
        let (mut partitions, mut others) = (Vec::new(), Vec::new());
        for path in inside.folders {
            match parse(&path) {
                Some((name, value)) => partitions.push((path, name, value)),
                None => others.push(path),
            }
        }
        if let Some((_, first, _)) = partitions.first() {
            if let Some((_, other, _)) = partitions.iter().find(|(_, name, _)| name != first) {
                return refuse(format!(
                    "holds folders of partitions by {first:?} and by {other:?}: they are no one table"
                ));
            }
            if let Some(file) = inside.files.first() {
                let name = file.place.name().to_string_lossy().into_owned();
                return refuse(format!(
                    "holds the file {name:?} beside partitions by {first:?}: which value its rows have is not known"
                ));
            }
        }
        for path in others {
            self.passed_over.push(note(&path, "is no partition: it is passed over"));
        }
        let is_leaf = partitions.is_empty();
        for (path, name, value) in partitions {
            levels.push((name, value));
            self.descend(&path, levels, above)?;
            levels.pop();
        }
        above.remove(&real);
        // A folder without anything in it says nothing of the columns either.
        if is_leaf && !inside.files.is_empty() {
            self.add_leaf(folder, levels, inside.files)?;
        }
        Ok(())
    }

    fn add_leaf(
        &mut self,
        folder: &Location,
        levels: &[(String, Option<String>)],
        files: Vec<DataFile>,
    ) -> Result<()> {
        let columns: Vec<_> = levels.iter().map(|(name, _)| name.clone()).collect();
        if self.leaves.is_empty() {
            self.columns = columns;
        } else if self.columns != columns {
            let message = format!(
                "lies in partitions by {}, and others by {}: files read together must have the same",
                columns.join(", "),
                self.columns.join(", ")
            );
            return Err(folder.blame(Error::invalid(message)));
        }
        let values = levels.iter().map(|(_, value)| value.clone()).collect();
        self.leaves.push(Leaf { values, files });
        Ok(())
    }
}

/// Whether a folder holds one that is named like a partition.
pub(super) fn has_partitions(folder: &Location) -> Result<bool> {
    for path in paths::entries(folder)? {
        if parse(&path).is_some() && paths::kind(&path)? == Some(EntryKind::Folder) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Column and value of a folder's name.
fn parse(folder: &Location) -> Option<(String, Option<String>)> {
    let (name, value) = folder.name().to_str()?.split_once('=')?;
    let value = if value == NULL { None } else { Some(decode(value)) };
    (!name.is_empty()).then(|| (decode(name), value))
}

/// What `%XX` stands for; what does not stand for text stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        // "+1" would be a number too.
        let code = code.filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_columns_and_values() {
        let of = |name: &str| parse(&Location::local(name));
        let some = |name: &str, value: &str| Some((name.to_string(), Some(value.to_string())));
        assert_eq!(of("a/p=1"), some("p", "1"));
        assert_eq!(of("p="), some("p", ""));
        assert_eq!(of("p=a=b"), some("p", "a=b"));
        assert_eq!(of("a b=j%2Fp%3Dx"), some("a b", "j/p=x"));
        assert_eq!(of("p=%C3%A9"), some("p", "é"));
        assert_eq!(of("p=100%"), some("p", "100%"));
        assert_eq!(of("p=%+1%zz%ff"), some("p", "%+1%zz%ff"));
        assert_eq!(of("p=__HIVE_DEFAULT_PARTITION__"), Some(("p".to_string(), None)));
        assert_eq!(of("=1"), None);
        assert_eq!(of("data"), None);
    }
}
