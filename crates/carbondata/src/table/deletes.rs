//! Which rows of a data file were deleted: the update status says which delta files count, they list the rows.

use std::path::{Path, PathBuf};

use pilaster_core::error::AtPosition;
use pilaster_core::{Error, ErrorKind, Result};

use super::open::{open_path, sorted_names};
use super::status::{BlockUpdate, DeleteDelta, checked_name, read_json};
use crate::file::layout::CarbonFile;
use crate::legacy::open_outlined;

const UPDATE_PART: &str = "carbondata update status";
const DELTA_PART: &str = "carbondata delete delta";

/// The deletes that count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deletes {
    updates: Vec<BlockUpdate>,
    /// Every delta file counts, because nothing says which do.
    all_deltas: bool,
}

impl Deletes {
    /// Reads an update status file of the folder `Metadata`.
    pub fn read(metadata: &Path, name: &str) -> Result<Self> {
        let path = metadata.join(checked_name(name)?);
        Ok(Self { updates: read_json(&open_path(&path)?, UPDATE_PART)?, all_deltas: false })
    }

    /// Every delta file that lies beside a data file counts: newer ones only add rows to older ones.
    pub fn every_delta() -> Self {
        Self { updates: Vec::new(), all_deltas: true }
    }

    /// The blocks that were touched.
    pub fn blocks(&self) -> &[BlockUpdate] {
        &self.updates
    }

    /// The deleted rows of a data file, ascending; `None` if all of it is gone.
    pub fn of_file(
        &self,
        segment: &str,
        folder: &Path,
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
            read_delta(&path, file, &mut rows)?;
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(Some(rows))
    }

    /// The delta files of a data file that count; `None` if all of it is gone.
    pub fn deltas(&self, segment: &str, folder: &Path, name: &str) -> Result<Option<Vec<PathBuf>>> {
        let mut paths = if self.all_deltas { all_deltas(folder, name)? } else { Vec::new() };
        for update in self.updates.iter().filter(|u| u.segment == segment && u.data_file == name) {
            if update.is_gone() {
                return Ok(None);
            }
            for stamp in stamps(folder, update)? {
                paths.push(folder.join(checked_name(&format!("{}-{stamp}.deletedelta", update.block))?));
            }
        }
        Ok(Some(paths))
    }
}

/// Whether an error says that a file is not there.
pub(crate) fn is_missing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::NotFound)
}

/// Adds the rows that one delta file lists.
pub(crate) fn read_delta(path: &Path, file: &CarbonFile, rows: &mut Vec<u64>) -> Result<()> {
    let delta: DeleteDelta = read_json(&open_path(path)?, DELTA_PART)?;
    for (key, page) in &delta.pages {
        deleted_of_page(file, key, &page.rows, rows).at(&path.display().to_string(), 0, DELTA_PART)?;
    }
    Ok(())
}

/// The stamps of the delta files that count.
fn stamps(folder: &Path, update: &BlockUpdate) -> Result<Vec<String>> {
    if let Some(stamps) = update.stamps.as_ref().filter(|stamps| !stamps.is_empty()) {
        return Ok(stamps.clone());
    }
    let (start, end) = (update.start.as_deref().unwrap_or(""), update.end.as_deref().unwrap_or(""));
    if start == end || start.is_empty() {
        return Ok(vec![end.to_string()]);
    }
    if folder.join(format!("{}-{start}.deletedelta", update.block)).is_file() {
        // Before 1.5 every file between the two stamps counts.
        let (start, end) = (start.parse::<u64>().unwrap_or(0), end.parse::<u64>().unwrap_or(u64::MAX));
        let all = stamps_in_folder(folder, &update.block)?;
        let is_inside = |stamp: &String| stamp.parse().is_ok_and(|stamp| (start..=end).contains(&stamp));
        return Ok(all.into_iter().filter(is_inside).collect());
    }
    Ok(vec![end.to_string()])
}

/// All delta files of a data file: its name is theirs with another stamp.
fn all_deltas(folder: &Path, name: &str) -> Result<Vec<PathBuf>> {
    let stem = name.strip_suffix(".carbondata").unwrap_or(name);
    let block = stem.rsplit_once('-').map_or(stem, |(block, _)| block);
    let stamps = stamps_in_folder(folder, block)?;
    Ok(stamps.iter().map(|stamp| folder.join(format!("{block}-{stamp}.deletedelta"))).collect())
}

/// The stamps of all delta files of a block, whether they count or not.
pub(crate) fn stamps_in_folder(folder: &Path, block: &str) -> Result<Vec<String>> {
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
