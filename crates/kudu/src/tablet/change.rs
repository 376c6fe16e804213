//! Changes of a row.
//!
//! ```text
//! 1 UPDATE, 2 DELETE or 3 REINSERT, 1 byte | item | item | …
//! item: | varint column id | varint n | n = 0: set to null; else n − 1 bytes of the cell |
//! ```

use pilaster_core::{Error, Result};
use pilaster_encoding::varint;

const UPDATE: u8 = 1;
const DELETE: u8 = 2;
const REINSERT: u8 = 3;

/// What a change does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Update,
    Delete,
    Reinsert,
}

/// A list of changes of one row, parsed as it is walked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeList<'a> {
    pub kind: ChangeKind,
    items: &'a [u8],
}

impl<'a> ChangeList<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (kind, items) = bytes.split_first().ok_or_else(|| Error::corrupt("a change", "no bytes"))?;
        let kind = match *kind {
            UPDATE => ChangeKind::Update,
            DELETE if items.is_empty() => ChangeKind::Delete,
            REINSERT => ChangeKind::Reinsert,
            other => return Err(Error::corrupt("a change of kind 1, 2 or 3", other)),
        };
        Ok(Self { kind, items })
    }

    /// Calls `each` with column id and cell of every item.
    pub fn for_each(&self, mut each: impl FnMut(i32, Option<&'a [u8]>) -> Result<()>) -> Result<()> {
        let mut at = 0;
        while at < self.items.len() {
            let id = varint::read_u32(self.items, &mut at)?;
            let id = i32::try_from(id).map_err(|_| Error::corrupt("a column id of 31 bits", id))?;
            let length = varint::read_u32(self.items, &mut at)? as usize;
            let cell = match length.checked_sub(1) {
                None => None,
                Some(bytes) => {
                    let end = at.saturating_add(bytes);
                    let cell = self.items.get(at..end).ok_or_else(|| {
                        Error::corrupt(format!("a cell of {bytes} bytes"), "the end of the change")
                    })?;
                    at = end;
                    Some(cell)
                }
            };
            each(id, cell)?;
        }
        Ok(())
    }
}

/// Builds the bytes of a change, for rows that the log changes.
#[derive(Debug, Clone)]
pub(crate) struct ChangeBuilder(Vec<u8>);

impl ChangeBuilder {
    pub fn new(kind: ChangeKind) -> Self {
        Self(vec![match kind {
            ChangeKind::Update => UPDATE,
            ChangeKind::Delete => DELETE,
            ChangeKind::Reinsert => REINSERT,
        }])
    }

    pub fn push(&mut self, column: i32, cell: Option<&[u8]>) {
        varint::write_u32(&mut self.0, u32::try_from(column).unwrap_or(u32::MAX));
        match cell {
            None => varint::write_u32(&mut self.0, 0),
            Some(cell) => {
                varint::write_u32(
                    &mut self.0,
                    u32::try_from(cell.len().saturating_add(1)).unwrap_or(u32::MAX),
                );
                self.0.extend_from_slice(cell);
            }
        }
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// Whether nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_built_is_parsed(items in prop::collection::vec((0i32..1000, prop::option::of(prop::collection::vec(any::<u8>(), 0..9))), 0..9)) {
            let mut builder = ChangeBuilder::new(ChangeKind::Reinsert);
            for (id, cell) in &items {
                builder.push(*id, cell.as_deref());
            }
            let bytes = builder.finish();
            let mut parsed = Vec::new();
            ChangeList::parse(&bytes).unwrap().for_each(|id, cell| {
                parsed.push((id, cell.map(<[u8]>::to_vec)));
                Ok(())
            }).unwrap();
            prop_assert_eq!(parsed, items);
        }

        #[test]
        fn any_bytes_are_changes_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(list) = ChangeList::parse(&bytes) {
                let _ = list.for_each(|_, _| Ok(()));
            }
        }
    }
}
