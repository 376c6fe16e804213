//! Which rows of a data file were deleted: the update status says which delta files count, they list the rows.

use std::collections::{HashMap, HashSet};

use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Location, Result};

use super::lost::not_here;
use super::open::{open_file, sorted_names};
use super::status::{BlockUpdate, DeleteDelta, checked_name, read_json};
use crate::file::layout::CarbonFile;
use crate::legacy::open_outlined;

pub(crate) const UPDATE_PART: &str = "carbondata update status";
const DELTA_PART: &str = "carbondata delete delta";

/// The deletes that count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deletes {
    updates: Vec<BlockUpdate>,
    /// The places of the updates of each segment and data file.
    places: HashMap<(String, String), Vec<usize>>,
    /// Segments of which whole data files are no part of the table any more.
    with_gone_files: HashSet<String>,
    /// The file that says so.
    pub path: String,
    /// Every delta file counts, because nothing says which do.
    all_deltas: bool,
}

impl Deletes {
    /// Reads an update status file of the folder `Metadata`.
    pub fn read(metadata: &Location, name: &str) -> Result<Self> {
        let path = metadata.child(checked_name(name)?);
        let updates: Vec<BlockUpdate> = read_json(&open_file(&path)?, UPDATE_PART)?;
        let mut places: HashMap<_, Vec<usize>> = HashMap::new();
        for (place, update) in updates.iter().enumerate() {
            places.entry((update.segment.clone(), update.data_file.clone())).or_default().push(place);
        }
        let gone = updates.iter().filter(|update| update.is_gone());
        let with_gone_files = gone.map(|update| update.segment.clone()).collect();
        Ok(Self { updates, places, with_gone_files, path: path.to_string(), all_deltas: false })
    }

    /// Every delta file that lies beside a data file counts: newer ones only add rows to older ones.
    pub fn every_delta() -> Self {
        Self { all_deltas: true, ..Self::default() }
    }

    /// The blocks that were touched.
    pub fn blocks(&self) -> &[BlockUpdate] {
        &self.updates
    }

    /// What the update status says of a data file.
    fn of<'a>(&'a self, segment: &str, name: &str) -> impl Iterator<Item = &'a BlockUpdate> + use<'a> {
        let places = self.places.get(&(segment.to_string(), name.to_string()));
        let places = places.map(Vec::as_slice).unwrap_or_default();
        places.iter().filter_map(|place| self.updates.get(*place))
    }

    /// Whether the update status says anything of a data file.
    pub fn names(&self, segment: &str, name: &str) -> bool {
        self.of(segment, name).next().is_some()
    }

    /// Whether a data file is no part of the table any more; it may have been cleaned away.
    pub fn is_gone(&self, segment: &str, name: &str) -> bool {
        self.of(segment, name).any(BlockUpdate::is_gone)
    }

    /// Whether whole data files of a segment are no part of the table any more.
    pub fn has_gone_files(&self, segment: &str) -> bool {
        self.with_gone_files.contains(segment)
    }

    /// How many of `rows` of a data file were not deleted, as far as that is known without the delta files.
    pub fn rows_left(&self, segment: &str, name: &str, rows: u64) -> Option<u64> {
        if self.all_deltas {
            return None;
        }
        let deleted = self.of(segment, name).map(BlockUpdate::deleted_count).sum::<Option<u64>>()?;
        rows.checked_sub(deleted)
    }

    /// The deleted rows of a data file, ascending; `None` if all of it is gone.
    pub fn of_file(
        &self,
        segment: &str,
        folder: &Location,
        name: &str,
        file: &CarbonFile,
    ) -> Result<Option<Vec<u64>>> {
        let Some(deltas) = self.deltas(segment, folder, name)? else { return Ok(None) };
        let mut rows = Vec::new();
        // Which rows a blocklet has is not in the index of versions 1 and 2.
        let opened;
        let file = match file.is_outline() && !deltas.is_empty() {
            true => {
                opened = open_outlined(file)?;
                &opened
            }
            false => file,
        };
        for path in deltas {
            read_delta(&path, file, &mut rows)
                .map_err(|error| not_here(error, "a list of deleted rows that the update status names"))?;
        }
        rows.sort_unstable();
        rows.dedup();
        // A list between two stamps may be gone without being missed by its name; what the update status counts misses its rows.
        if let Some(left) = self.rows_left(segment, name, file.rows)
            && file.rows.saturating_sub(rows.len() as u64) > left
        {
            let expected = format!("{} deleted rows of {name:?}", file.rows.saturating_sub(left));
            return Err(Error::corrupt(expected, rows.len()).at(&self.path, 0, UPDATE_PART));
        }
        Ok(Some(rows))
    }

    /// The delta files of a data file that count; `None` if all of it is gone.
    pub fn deltas(&self, segment: &str, folder: &Location, name: &str) -> Result<Option<Vec<Location>>> {
        let mut paths = if self.all_deltas { all_deltas(folder, name)? } else { Vec::new() };
        for update in self.of(segment, name) {
            if update.is_gone() {
                return Ok(None);
            }
            for stamp in stamps(folder, update)? {
                paths.push(folder.child(checked_name(&format!("{}-{stamp}.deletedelta", update.block))?));
            }
        }
        Ok(Some(paths))
    }
}

/// Adds the rows that one delta file lists.
pub(crate) fn read_delta(path: &Location, file: &CarbonFile, rows: &mut Vec<u64>) -> Result<()> {
    let delta: DeleteDelta = read_json(&open_file(path)?, DELTA_PART)?;
    for (key, page) in &delta.pages {
        deleted_of_page(file, key, &page.rows, rows).at(&path.to_string(), 0, DELTA_PART)?;
    }
    Ok(())
}

/// The stamps of the delta files that count.
fn stamps(folder: &Location, update: &BlockUpdate) -> Result<Vec<String>> {
    if let Some(stamps) = update.stamps.as_ref().filter(|stamps| !stamps.is_empty()) {
        return Ok(stamps.clone());
    }
    let (start, end) = (update.start.as_deref().unwrap_or(""), update.end.as_deref().unwrap_or(""));
    if start == end || start.is_empty() {
        return Ok(vec![end.to_string()]);
    }
    if folder.child(format!("{}-{start}.deletedelta", update.block)).is_file()? {
        // Before 1.5 every file between the two stamps counts.
        let (start, end) = (start.parse::<u64>().unwrap_or(0), end.parse::<u64>().unwrap_or(u64::MAX));
        let all = stamps_in_folder(folder, &update.block)?;
        let is_inside = |stamp: &String| stamp.parse().is_ok_and(|stamp| (start..=end).contains(&stamp));
        return Ok(all.into_iter().filter(is_inside).collect());
    }
    Ok(vec![end.to_string()])
}

/// All delta files of a data file: its name is theirs with another stamp.
fn all_deltas(folder: &Location, name: &str) -> Result<Vec<Location>> {
    let stem = name.strip_suffix(".carbondata").unwrap_or(name);
    let block = stem.rsplit_once('-').map_or(stem, |(block, _)| block);
    let stamps = stamps_in_folder(folder, block)?;
    Ok(stamps.iter().map(|stamp| folder.child(format!("{block}-{stamp}.deletedelta"))).collect())
}

/// The stamps of all delta files of a block, whether they count or not.
pub(crate) fn stamps_in_folder(folder: &Location, block: &str) -> Result<Vec<String>> {
    let prefix = format!("{block}-");
    let names = sorted_names(folder)?;
    let stamp = |name: &String| -> Option<String> {
        let stamp = name.strip_prefix(&prefix)?.strip_suffix(".deletedelta")?;
        stamp.bytes().all(|byte| byte.is_ascii_digit()).then(|| stamp.to_string())
    };
    Ok(names.iter().filter_map(stamp).collect())
}

/// Adds the rows of a page, whose key is `blocklet_page`.
fn deleted_of_page(file: &CarbonFile, key: &str, rows: &[u64], deleted: &mut Vec<u64>) -> Result<()> {
    let place = key.split_once('_').and_then(|(blocklet, page)| {
        let blocklet = file.blocklets.get(blocklet.parse::<usize>().ok()?)?;
        let page = page.parse::<usize>().ok()?;
        (page < blocklet.pages()).then(|| blocklet.page_rows(page))
    });
    let Some(page) = place else {
        return Err(Error::corrupt("the number of a blocklet and of a page", format!("{key:?}")));
    };
    for row in rows {
        let row = page.start.saturating_add(*row);
        if row >= page.end {
            let expected = format!("rows of a page of {}", page.end.saturating_sub(page.start));
            return Err(Error::corrupt(expected, row.saturating_sub(page.start)));
        }
        deleted.push(row);
    }
    Ok(())
}
