//! Pages without pointers to them: found by their footers, and proven by their checksums.

use pilaster_core::{Limits, Result, Source};
use pilaster_encoding::checksum::crc32c;
use pilaster_encoding::varint;
use prost::Message;

use crate::messages::PageFooterPb;
use crate::segment::page::PagePointer;

/// Bytes looked at in one read.
const WINDOW_BYTES: u64 = 1 << 20;
/// No page footer is longer.
const LONGEST_FOOTER: usize = 64;
/// Size of the footer and checksum behind it.
const TRAILER_BYTES: usize = 8;
/// What looks like so many footers after a page's beginning, and proves none, is damage.
const MOST_PENDING: usize = 64;

/// A page of the file.
#[derive(Debug, Clone)]
pub(super) struct WalkedPage {
    pub pointer: PagePointer,
    pub footer: PageFooterPb,
}

/// What looks like the end of a page.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    footer: PageFooterPb,
    end: u64,
}

/// Every page from the beginning of the file on, and where they end. A page that is damaged is among them if its footer is
/// not.
pub(super) fn walk(source: &dyn Source, limits: &Limits) -> Result<(Vec<WalkedPage>, u64)> {
    let size = source.size();
    let mut pages = Pages { source, limits, start: 0, pending: Vec::new(), pages: Vec::new(), last_sound: 0 };
    let mut at = 0;
    while at < size {
        let end = at.saturating_add(WINDOW_BYTES).min(size);
        // A footer that begins in this window may end in the next.
        let read_end = end.saturating_add((LONGEST_FOOTER + TRAILER_BYTES) as u64).min(size);
        let bytes = source.read_at(at..read_end)?;
        let inside = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
        let mut from = 0;
        while let Some(found) = next_footer(&bytes, from, inside) {
            let (place, length, footer) = found;
            let end = at.saturating_add((place.saturating_add(length).saturating_add(TRAILER_BYTES)) as u64);
            pages.add(Candidate { footer, end })?;
            from = place.saturating_add(1);
        }
        at = end;
    }
    pages.finish()
}

/// The next footer that begins at `from` or later and before `until`: where, how long, and what it says.
fn next_footer(bytes: &[u8], from: usize, until: usize) -> Option<(usize, usize, PageFooterPb)> {
    let mut at = from;
    while at < until {
        let rest = bytes.get(at..)?;
        // Field 1, a kind of page, field 2.
        if let [0x08, 1..=4, 0x10, ..] = rest
            && let Some((length, footer)) = footer_at(rest)
        {
            return Some((at, length, footer));
        }
        at = at.saturating_add(1);
    }
    None
}

/// A page footer at the beginning of `bytes`, whose length stands behind it.
fn footer_at(bytes: &[u8]) -> Option<(usize, PageFooterPb)> {
    let mut at = 3;
    varint::read_u32(bytes, &mut at).ok()?;
    let tag = *bytes.get(at)?;
    matches!(tag, 0x3a | 0x42 | 0x4a | 0x52).then_some(())?;
    at = at.saturating_add(1);
    let inner = varint::read_u32(bytes, &mut at).ok()?;
    let length = at.saturating_add(inner as usize);
    let said = bytes.get(length..)?.first_chunk().map(|four| u32::from_le_bytes(*four))?;
    (length <= LONGEST_FOOTER && said as usize == length).then_some(())?;
    let footer = PageFooterPb::decode(bytes.get(..length)?).ok()?;
    Some((length, footer))
}

struct Pages<'a> {
    source: &'a dyn Source,
    limits: &'a Limits,
    /// Where the next page begins.
    start: u64,
    pending: Vec<Candidate>,
    pages: Vec<WalkedPage>,
    last_sound: usize,
}

impl Pages<'_> {
    fn add(&mut self, candidate: Candidate) -> Result<()> {
        if candidate.end <= self.start {
            return Ok(());
        }
        if self.is_page(candidate)? {
            self.accept(candidate);
            self.last_sound = self.pages.len();
            self.pending.clear();
            return Ok(());
        }
        self.pending.push(candidate);
        if self.pending.len() >= MOST_PENDING {
            self.give_up_one()?;
        }
        Ok(())
    }

    fn accept(&mut self, candidate: Candidate) {
        let size = u32::try_from(candidate.end.saturating_sub(self.start)).unwrap_or(u32::MAX);
        let pointer = PagePointer { offset: self.start, size };
        self.pages.push(WalkedPage { pointer, footer: candidate.footer });
        self.start = candidate.end;
    }

    /// Takes the nearest footer for the end of a damaged page, and looks again at those behind it.
    fn give_up_one(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let damaged = self.pending.remove(0);
        self.accept(damaged);
        for candidate in std::mem::take(&mut self.pending) {
            self.add(candidate)?;
        }
        Ok(())
    }

    fn is_page(&self, candidate: Candidate) -> Result<bool> {
        let bytes = candidate.end.saturating_sub(self.start);
        if bytes > self.limits.block_bytes || u32::try_from(bytes).is_err() {
            return Ok(false);
        }
        let page = self.source.read_at(self.start..candidate.end)?;
        Ok(page
            .split_last_chunk::<4>()
            .is_some_and(|(checked, stored)| crc32c(checked) == u32::from_le_bytes(*stored)))
    }

    /// What was taken for damaged pages behind the last sound one is the old footer, or nothing.
    fn finish(mut self) -> Result<(Vec<WalkedPage>, u64)> {
        while !self.pending.is_empty() {
            self.give_up_one()?;
        }
        self.pages.truncate(self.last_sound);
        let end = self.pages.last().map_or(0, |page| page.pointer.range().end);
        Ok((self.pages, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilaster_core::source::MemorySource;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(prop::sample::select(vec![0u8, 1, 2, 4, 8, 0x10, 0x3a, 6, 12]), 0..600)) {
            let source = MemorySource::new("any", bytes);
            let (pages, end) = walk(&source, &Limits::default()).unwrap();
            prop_assert!(pages.iter().all(|page| page.pointer.range().end <= end));
        }
    }
}
