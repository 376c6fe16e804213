//! Merging sources of rows by primary key; each key may be live in one of them only.

use std::sync::Arc;

use pilaster_core::merge::{KeyedRows, Merge, Runs, SomeRows};
use pilaster_core::{Error, LossLog, Result};

/// The merged rows of several sources, in batches.
pub(crate) struct MergedRows {
    merge: Merge,
    batch_size: usize,
    losses: Option<Arc<LossLog>>,
}

impl MergedRows {
    pub fn new(sources: Vec<Box<dyn KeyedRows>>, batch_size: usize, losses: Option<Arc<LossLog>>) -> Self {
        Self { merge: Merge::new(sources), batch_size, losses }
    }

    /// The next merged rows: of at most a batch of keys, so that what is held does not grow where few of them are wanted.
    pub fn next(&mut self) -> Result<Option<SomeRows>> {
        let mut runs = Runs::default();
        let mut room = self.batch_size;
        loop {
            let Some(run) = self.merge.next_run(room)? else { break };
            if run.is_contested {
                // Two rows have the same key: neither can be proven good.
                let error = Error::corrupt("every key live once", "a key that is live in two rowsets");
                let Some(losses) = &self.losses else { return Err(error) };
                losses.record_unknown(&error);
                self.merge.pass_key()?;
                continue;
            }
            room = room.saturating_sub(run.rows.len());
            runs.add(&run);
            if room == 0 {
                if runs.count() > 0 {
                    break;
                }
                room = self.batch_size;
            }
        }
        runs.gather()
    }
}
