//! What only the write-ahead logs know: the newest entry of each key that was not yet put into a table.

use std::collections::BTreeMap;

use bytes::Bytes;
use pilaster_core::{Limits, Result};

use crate::batch::{Change, Op};
use crate::key::{Entry, Place, RangeDelete};

const DELETE: u64 = 0;
const PUT: u64 = 1;

/// The entries of one column family, played from its logs.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    entries: BTreeMap<Vec<u8>, (u64, Bytes)>,
    pub range_deletes: Vec<RangeDelete>,
    bytes: u64,
}

impl Memory {
    pub fn apply(&mut self, op: &Op<'_>, limits: &Limits) -> Result<()> {
        let (key, kind, value): (&[u8], u64, &[u8]) = match op.change {
            Change::Put(key, value) => (key, PUT, value),
            Change::Delete(key) => (key, DELETE, &[]),
            Change::Foreign(kind, key) => (key, u64::from(kind), &[]),
            Change::DeleteRange(start, end) => {
                self.bytes = self.bytes.saturating_add(start.len() as u64).saturating_add(end.len() as u64);
                limits.log(self.bytes)?;
                self.range_deletes.push(RangeDelete {
                    start: Place::before(start),
                    end: Place::before(end),
                    sequence: op.sequence,
                });
                return Ok(());
            }
        };
        let tag = op.sequence << 8 | kind;
        match self.entries.get_mut(key) {
            Some(known) if known.0 > tag => {}
            Some(known) => {
                self.bytes =
                    self.bytes.saturating_sub(known.1.len() as u64).saturating_add(value.len() as u64);
                limits.log(self.bytes)?;
                *known = (tag, Bytes::copy_from_slice(value));
            }
            None => {
                self.bytes = self.bytes.saturating_add(key.len() as u64).saturating_add(value.len() as u64);
                limits.log(self.bytes)?;
                self.entries.insert(key.to_vec(), (tag, Bytes::copy_from_slice(value)));
            }
        }
        Ok(())
    }

    /// The entries in their order, from a key on.
    pub fn into_entries(self, from: &[u8]) -> impl Iterator<Item = Entry> + Send + use<> {
        let mut entries = self.entries;
        let entries = entries.split_off(from);
        entries.into_iter().map(|(user, (tag, value))| Entry { user, tag, value })
    }
}
