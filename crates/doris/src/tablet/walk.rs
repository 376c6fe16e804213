//! The folders below a folder, one after the other, within bounds.

use std::collections::VecDeque;

use pilaster_core::{Error, ErrorKind, Location, Result};

use super::layout::Listing;

/// How far a walk goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// How deep folders inside folders are followed.
    depth: u32,
    /// How many folders are looked into of those that names lead to.
    likely: u64,
    /// How many of the others.
    others: u64,
}

impl Bounds {
    /// For all tablets of what is known to have some: more than the disks of any server hold.
    pub const FIND: Self = Self { depth: 64, likely: 100_000_000, others: 100_000_000 };
    /// For one tablet in what may be anything, and should soon be told.
    pub const SIGHT: Self = Self { depth: 64, likely: 200_000, others: 500 };
}

/// How likely something is to be found in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chance {
    /// It is looked into before all others, and what lies in it before its neighbours.
    Likely,
    /// When nothing likely is left, the least deep ones first: many in one place do not hide the rest.
    Any,
}

/// A walk that is under way.
#[derive(Debug)]
pub(super) struct Walk {
    pending: VecDeque<(Location, u32, Chance)>,
    bounds: Bounds,
    likely: u64,
    others: u64,
    /// The depth of the folder that was given last.
    depth: u32,
}

impl Walk {
    pub fn new(root: &Location, bounds: Bounds) -> Self {
        let pending = VecDeque::from([(root.clone(), 0, Chance::Likely)]);
        Self { pending, bounds, likely: 0, others: 0, depth: 0 }
    }

    /// The next folder, and what lies in it.
    ///
    /// # Errors
    /// If there are more than the bounds allow.
    pub fn next(&mut self) -> Result<Option<(Location, Result<Listing>)>> {
        let Some((folder, depth, chance)) = self.pending.pop_front() else { return Ok(None) };
        let (seen, max) = match chance {
            Chance::Likely => (&mut self.likely, self.bounds.likely),
            Chance::Any => (&mut self.others, self.bounds.others),
        };
        *seen = seen.saturating_add(1);
        if *seen > max {
            let kind = ErrorKind::LimitExceeded { limit: "folders looked into", max, found: *seen };
            return Err(folder.blame(Error::new(kind)));
        }
        self.depth = depth;
        let listing = Listing::of(&folder);
        Ok(Some((folder, listing)))
    }

    /// Adds a folder inside the one given last.
    ///
    /// # Errors
    /// If it lies deeper than the bounds allow.
    pub fn enter(&mut self, folder: Location, chance: Chance) -> Result<()> {
        let depth = self.depth.saturating_add(1);
        if depth > self.bounds.depth {
            let (max, found) = (u64::from(self.bounds.depth), u64::from(depth));
            let kind = ErrorKind::LimitExceeded { limit: "depth of folders", max, found };
            return Err(folder.blame(Error::new(kind)));
        }
        match chance {
            Chance::Likely => self.pending.push_front((folder, depth, chance)),
            Chance::Any => self.pending.push_back((folder, depth, chance)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_that_ends_early_says_so() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["a/b/c", "d", "e"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let seen = |depth: u32, most: u64, chance: Chance| -> Result<Vec<u32>> {
            let mut walk =
                Walk::new(&Location::local(root.path()), Bounds { depth, likely: most, others: most });
            let mut depths = Vec::new();
            while let Some((_, listing)) = walk.next()? {
                depths.push(walk.depth);
                for folder in listing?.folders {
                    walk.enter(folder, chance)?;
                }
            }
            Ok(depths)
        };
        assert_eq!(seen(3, 5, Chance::Any).unwrap(), [0, 1, 1, 1, 2, 3]);
        assert_eq!(seen(3, 6, Chance::Likely).unwrap().len(), 6);
        let error = seen(3, 4, Chance::Any).unwrap_err().to_string();
        assert!(error.contains("5 is over the limit folders looked into = 4"), "{error}");
        let error = seen(2, 6, Chance::Likely).unwrap_err().to_string();
        assert!(error.contains("3 is over the limit depth of folders = 2"), "{error}");
    }
}
