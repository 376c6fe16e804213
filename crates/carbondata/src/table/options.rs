//! How a table is opened.

use std::path::{Component, Path};

use pilaster_core::{Error, Limits, Location, Result};

use crate::file::Calendar;

/// How to open a table.
#[derive(Debug, Clone, Default)]
pub struct CarbonTableOptions {
    pub(super) limits: Limits,
    pub(super) segments: Option<Vec<String>>,
    pub(super) as_of: Option<i64>,
    pub(super) outside: OutsideFolders,
    pub(super) leaves_out_foreign: bool,
    pub(super) recovers: bool,
    pub(super) goes_over_unread: bool,
    pub(super) calendar: Calendar,
}

impl CarbonTableOptions {
    /// How much a file may make us allocate.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Which days and times numbers before 1582-10-15 are given as.
    #[must_use]
    pub fn with_calendar(mut self, calendar: Calendar) -> Self {
        self.calendar = calendar;
        self
    }

    /// Only the rows of these segments.
    #[must_use]
    pub fn with_segments(mut self, segments: Option<Vec<String>>) -> Self {
        self.segments = segments;
        self
    }

    /// The table as it was at a time, in milliseconds since 1970.
    #[must_use]
    pub fn with_as_of(mut self, time: Option<i64>) -> Self {
        self.as_of = time;
        self
    }

    /// Where folders outside of the table's may lie that its metadata names.
    #[must_use]
    pub fn with_outside(mut self, outside: OutsideFolders) -> Self {
        self.outside = outside;
        self
    }

    /// Whether segments in other formats (Parquet, ORC) are left out; they are refused otherwise. Who leaves them out reads
    /// them from [`super::CarbonTable::foreign_segments`].
    #[must_use]
    pub fn with_foreign_left_out(mut self, leaves_out: bool) -> Self {
        self.leaves_out_foreign = leaves_out;
        self
    }

    /// Whether opening goes on over segments that the system does not let us read (permission, I/O): they are left out, and
    /// [`super::CarbonTable::unread`] says which. They are errors otherwise.
    #[must_use]
    pub fn with_unread_left_out(mut self, goes_on: bool) -> Self {
        self.goes_over_unread = goes_on;
        self
    }

    /// Whether metadata and index files that are lost or damaged are worked around: what they said is derived from the data
    /// and from each other, as far as it can be. What was worked around is in [`pilaster_core::Dataset::findings`]; scans should
    /// skip damage. Footers of all data files are read.
    #[must_use]
    pub fn with_recovery(mut self, recovers: bool) -> Self {
        self.recovers = recovers;
        self
    }
}

/// What to do about folders that metadata names and that lie outside of the table's: segments that were added by their
/// path. A table must not make a reader open any file of a machine, so they are refused unless told otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutsideFolders {
    is_allowed: bool,
    moved: Vec<(String, Location)>,
}

impl OutsideFolders {
    /// Folders are looked for where the metadata says.
    #[must_use]
    pub fn with_allowed(mut self, is_allowed: bool) -> Self {
        self.is_allowed = is_allowed;
        self
    }

    /// What the metadata calls `from` (`hdfs://server/added`) is the folder `to`; so is what lies in it.
    #[must_use]
    pub fn with_moved(mut self, from: impl Into<String>, to: impl Into<Location>) -> Self {
        self.moved.push((from.into(), to.into()));
        self
    }

    /// The folder that metadata calls `location`.
    pub(crate) fn find(&self, location: &str) -> Result<Location> {
        for (from, to) in &self.moved {
            let from = from.trim_end_matches('/');
            if let Some(rest) =
                location.strip_prefix(from).filter(|rest| rest.is_empty() || rest.starts_with('/'))
            {
                return Ok(to.child(inside(rest)?));
            }
        }
        if !self.is_allowed {
            return Err(Error::unsupported(format!(
                "a segment outside of the table's folder, in {location:?}: allow it, or say where that is now"
            )));
        }
        let local = location.strip_prefix("file:").unwrap_or(location);
        if local.contains("://") || !local.starts_with('/') {
            return Err(Error::unsupported(format!(
                "a segment in {location:?}, which is no local folder: copy it, and say where it is now"
            )));
        }
        Ok(Location::local("/").child(inside(local)?))
    }
}

/// A path that leads further down and nowhere else.
pub(crate) fn inside(location: &str) -> Result<&Path> {
    let relative = Path::new(location.trim_start_matches('/'));
    if relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return Ok(relative);
    }
    Err(Error::corrupt("a folder below that of the table", format!("{location:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_outside_are_refused_moved_or_allowed() {
        let refused = OutsideFolders::default();
        assert!(refused.find("/data/added").unwrap_err().to_string().contains("allow it"));
        let moved = refused.with_moved("hdfs://server/data/", Path::new("/copy"));
        assert_eq!(moved.find("hdfs://server/data/added/x").unwrap().path(), Path::new("/copy/added/x"));
        assert_eq!(moved.find("hdfs://server/data").unwrap().path(), Path::new("/copy"));
        for bad in ["hdfs://server/database", "hdfs://server/data/../x", "/data"] {
            assert!(moved.find(bad).is_err(), "{bad}");
        }
        let allowed = moved.with_allowed(true);
        assert_eq!(allowed.find("/data/added").unwrap().path(), Path::new("/data/added"));
        assert_eq!(allowed.find("file:/data/added").unwrap().path(), Path::new("/data/added"));
        assert_eq!(allowed.find("file:///data/added").unwrap().path(), Path::new("/data/added"));
        for bad in ["s3a://bucket/x", "data/added", "/data/../etc"] {
            assert!(allowed.find(bad).is_err(), "{bad}");
        }
    }
}
