//! Streaming segments whose index, or of whose rows something, is lost.

use std::collections::HashSet;

use pilaster_core::{Error, Location, Result};

use crate::file::layout::CarbonFile;
use crate::file::stream::{holds, open_stream_until_damage, record};
use crate::messages::StreamRecord;
use crate::table::lost::{Lost, is_lost};
use crate::table::names::stream_index_name;
use crate::table::open::{open_file, sorted_names};
use crate::table::opener::{Opener, STREAM_PART};

impl Opener<'_> {
    /// Adds the files of a stream: as far as its index says, or without it as far as whole blocklets go.
    pub fn recover_stream(&mut self, segment: &str, folder: &Location) -> Result<()> {
        let names = sorted_names(folder)?;
        let data: Vec<_> = names.iter().filter(|name| name.ends_with(".carbondata")).collect();
        let indexes: Vec<_> = names.iter().filter(|name| name.ends_with(".carbonindex")).collect();
        let mut files: Vec<(Location, Option<StreamRecord>)> = Vec::new();
        let mut has_all = !indexes.is_empty();
        for name in &indexes {
            match self.stream_files(segment, folder, name) {
                Ok(found) => match self.check_stream_index(folder, name, &found)? {
                    None => files.extend(found.into_iter().map(|(path, record)| (path, Some(record)))),
                    Some((fault, error)) => {
                        self.lost_index(segment, folder, name, &error);
                        match fault {
                            // How far the stream goes is what it says all the same.
                            Fault::Bounds => {
                                files.extend(found.into_iter().map(|(path, record)| (path, Some(record))));
                            }
                            Fault::Extent => has_all = false,
                        }
                    }
                },
                Err(error) if is_lost(&error) => {
                    has_all = false;
                    self.lost_index(segment, folder, name, &error);
                }
                Err(error) => return Err(error),
            }
        }
        if indexes.is_empty()
            && let Some(name) = data.first().map(|name| stream_index_name(name))
        {
            let place = folder.child(name).to_string();
            let error = Error::corrupt("an index that says how many bytes of the stream count", "none");
            self.lost_index(segment, folder, name, &error.at(&place, 0, STREAM_PART));
        }
        for name in &data {
            let path = folder.child(name);
            // What no index names was never committed.
            if !has_all && !files.iter().any(|(known, _)| *known == path) {
                files.push((path, None));
            }
        }
        // Two indexes may name one file.
        let mut known = HashSet::new();
        files.retain(|(path, _)| known.insert(path.to_string()));
        let is_unbounded = files.iter().any(|(_, record)| record.is_none());
        if let Some(name) = data.first().filter(|_| is_unbounded) {
            let what = "how much of the stream was written whole is not known: rows of a last batch may be missing, or be more than there were";
            self.absent(segment, &folder.child(stream_index_name(name)), what, None);
        }
        for (path, record) in files {
            let expected = record.as_ref().and_then(|record| u64::try_from(record.rows).ok());
            let valid = record.map_or(u64::MAX, |record| u64::try_from(record.file_size).unwrap_or(u64::MAX));
            match self.stream_until_damage(&path, valid) {
                Ok((mut file, damage)) => {
                    if let Some(error) = damage {
                        self.note(Lost::Data, &error);
                        let rows = expected.and_then(|rows| rows.checked_sub(file.rows));
                        if rows != Some(0) {
                            self.absent(segment, &path, &format!("cannot be read to its end: {error}"), rows);
                        }
                    }
                    self.add_stream_dictionaries(&mut file)?;
                    self.add_file(segment, &path, file, Vec::new(), &[])?;
                }
                Err(error) if is_lost(&error) => {
                    self.note(Lost::Data, &error);
                    self.unreadable_file(&path, expected, &error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn stream_until_damage(&self, path: &Location, valid: u64) -> Result<(CarbonFile, Option<Error>)> {
        let source = open_file(path)?;
        let valid = valid.min(source.size());
        open_stream_until_damage(source, self.options.limits.clone(), valid)
    }

    /// What is wrong with an index that can be read, if the files it names show that.
    fn check_stream_index(
        &self,
        folder: &Location,
        name: &str,
        files: &[(Location, StreamRecord)],
    ) -> Result<Option<(Fault, Error)>> {
        let mut wrong_bounds = None;
        for (path, known) in files {
            match self.fault_of_record(path, known) {
                Ok(None) => {}
                Ok(Some((fault, error))) => {
                    let place = folder.child(name).to_string();
                    let error = error.at(&place, 0, STREAM_PART);
                    match fault {
                        Fault::Extent => return Ok(Some((fault, error))),
                        Fault::Bounds => wrong_bounds = Some((fault, error)),
                    }
                }
                // Damage of the data is no fault of the index.
                Err(error) if is_lost(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(wrong_bounds)
    }

    /// What is wrong with the record of one file.
    fn fault_of_record(&self, path: &Location, known: &StreamRecord) -> Result<Option<(Fault, Error)>> {
        let valid = u64::try_from(known.file_size).unwrap_or(u64::MAX);
        let (file, damage) = self.stream_until_damage(path, valid)?;
        if damage.is_some() {
            let is_wrong = u64::try_from(known.rows) == Ok(file.rows) || self.goes_on(path, valid)?;
            let end = || (Fault::Extent, Error::corrupt("the end of a blocklet", known.file_size));
            return Ok(is_wrong.then(end));
        }
        fault_of(known, &file)
    }

    /// Whether whole blocklets go on behind `valid` bytes: then none ends there.
    fn goes_on(&self, path: &Location, valid: u64) -> Result<bool> {
        let (whole, _) = self.stream_until_damage(path, u64::MAX)?;
        Ok(whole.stream.as_ref().and_then(|stream| stream.end()).is_some_and(|end| end > valid))
    }
}

/// What of a record is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Its rows or its bytes.
    Extent,
    /// Its least and greatest values.
    Bounds,
}

/// What the blocklets of a stream show to be wrong with its record.
pub(crate) fn fault_of(known: &StreamRecord, file: &CarbonFile) -> Result<Option<(Fault, Error)>> {
    let found = record(file)?;
    let of_rows = wrong_rows(known, &found).map(|error| (Fault::Extent, error));
    Ok(of_rows.or_else(|| wrong_bounds(file, known, &found).map(|error| (Fault::Bounds, error))))
}

fn wrong_rows(known: &StreamRecord, found: &StreamRecord) -> Option<Error> {
    let is_wrong = known.rows >= 0 && known.rows != found.rows;
    is_wrong.then(|| Error::corrupt(format!("{} rows, as the stream has", found.rows), known.rows))
}

fn wrong_bounds(file: &CarbonFile, known: &StreamRecord, found: &StreamRecord) -> Option<Error> {
    let (known, found) = (known.min_max.as_ref()?, found.min_max.as_ref()?);
    let is_wrong = !holds(file, known, found);
    is_wrong.then(|| Error::corrupt("least and greatest values of the stream", "others"))
}
