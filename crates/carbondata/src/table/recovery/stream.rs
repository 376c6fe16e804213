//! Streaming segments whose index, or of whose rows something, is lost.

use std::path::{Path, PathBuf};

use pilaster_core::{Error, Result};

use crate::file::layout::CarbonFile;
use crate::file::stream::{holds, open_stream_until_damage, record};
use crate::messages::StreamRecord;
use crate::table::lost::{Lost, is_lost};
use crate::table::names::stream_index_name;
use crate::table::open::{open_path, sorted_names};
use crate::table::opener::{Opener, STREAM_PART};

impl Opener<'_> {
    /// Adds the files of a stream: as far as its index says, or without it as far as whole blocklets go.
    pub fn recover_stream(&mut self, segment: &str, folder: &Path) -> Result<()> {
        let names = sorted_names(folder)?;
        let data: Vec<_> = names.iter().filter(|name| name.ends_with(".carbondata")).collect();
        let indexes: Vec<_> = names.iter().filter(|name| name.ends_with(".carbonindex")).collect();
        let mut files: Vec<(PathBuf, Option<StreamRecord>)> = Vec::new();
        let mut has_all = !indexes.is_empty();
        for name in &indexes {
            let found = self.stream_files(folder, name).and_then(|found| match found.is_empty() {
                false => Ok(found),
                true => {
                    let place = folder.join(name).display().to_string();
                    Err(Error::corrupt("the data files of a stream", "none").at(&place, 0, STREAM_PART))
                }
            });
            match found {
                Ok(found) => match self.check_stream_index(folder, name, &found)? {
                    None => files.extend(found.into_iter().map(|(path, record)| (path, Some(record)))),
                    Some(error) => {
                        has_all = false;
                        self.lost_index(segment, folder, name, &error);
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
            let place = folder.join(name).display().to_string();
            let error = Error::corrupt("an index that says how many bytes of the stream count", "none");
            self.lost_index(segment, folder, name, &error.at(&place, 0, STREAM_PART));
        }
        for name in data {
            let path = folder.join(name);
            // What no index names was never committed.
            if !has_all && !files.iter().any(|(known, _)| *known == path) {
                files.push((path, None));
            }
        }
        for (path, record) in files {
            let valid = record.map_or(u64::MAX, |record| u64::try_from(record.file_size).unwrap_or(u64::MAX));
            match self.stream_until_damage(&path, valid) {
                Ok((mut file, damage)) => {
                    if let Some(error) = damage {
                        self.note(Lost::Data, &error);
                    }
                    self.add_stream_dictionaries(&mut file)?;
                    self.add_file(segment, file, Vec::new(), &[])?;
                }
                Err(error) if is_lost(&error) => self.note(Lost::Data, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn stream_until_damage(&self, path: &Path, valid: u64) -> Result<(CarbonFile, Option<Error>)> {
        let source = open_path(path)?;
        let valid = valid.min(source.size());
        open_stream_until_damage(source, self.options.limits.clone(), valid)
    }

    /// What is wrong with an index that can be read, if the files it names show that.
    fn check_stream_index(
        &self,
        folder: &Path,
        name: &str,
        files: &[(PathBuf, StreamRecord)],
    ) -> Result<Option<Error>> {
        for (path, known) in files {
            match self.fault_of_record(path, known) {
                Ok(None) => {}
                Ok(Some(fault)) => {
                    let place = folder.join(name).display().to_string();
                    return Ok(Some(fault.at(&place, 0, STREAM_PART)));
                }
                // Damage of the data is no fault of the index.
                Err(error) if is_lost(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// What is wrong with the record of one file.
    fn fault_of_record(&self, path: &Path, known: &StreamRecord) -> Result<Option<Error>> {
        let valid = u64::try_from(known.file_size).unwrap_or(u64::MAX);
        let (file, damage) = self.stream_until_damage(path, valid)?;
        if damage.is_some() {
            let is_wrong = u64::try_from(known.rows) == Ok(file.rows) || self.goes_on(path, valid)?;
            return Ok(is_wrong.then(|| Error::corrupt("the end of a blocklet", known.file_size)));
        }
        let found = record(&file)?;
        Ok(wrong_rows(known, &found).or_else(|| wrong_bounds(&file, known, &found)))
    }

    /// Whether whole blocklets go on behind `valid` bytes: then none ends there.
    fn goes_on(&self, path: &Path, valid: u64) -> Result<bool> {
        let (whole, _) = self.stream_until_damage(path, u64::MAX)?;
        Ok(whole.stream.as_ref().and_then(|stream| stream.end()).is_some_and(|end| end > valid))
    }
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
