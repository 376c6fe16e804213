//! From the body of a page to its bytes in the file.

use std::io::Write;

use pilaster_core::{Error, Result};
use pilaster_encoding::checksum::crc32c;
use prost::Message;

use crate::messages::{
    DataPageFooterPb, DictPageFooterPb, IndexPageFooterPb, PageFooterPb, ShortKeyFooterPb,
};
use crate::segment::page::{PageKind, PagePointer};
use crate::segment::types::{Compression, Encoding};

/// A compressed body is kept only if it saves this share of the plain one.
const LEAST_SAVING: f64 = 0.1;
/// `IndexPageFooterPB.type` of a page whose entries point at data pages.
const LEAF: i32 = 1;

/// What a page footer says besides the size of the body.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Footer {
    Data { first_ordinal: u64, rows: u64, null_bytes: usize, next_item: Option<u64> },
    Index { entries: usize },
    Dictionary(Encoding),
    ShortKey(ShortKeyFooterPb),
}

/// Bytes of a page: as stored, and as they would be without a codec.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageSizes {
    pub stored: u32,
    pub uncompressed: u64,
}

impl Footer {
    fn message(self, uncompressed: u32) -> Result<PageFooterPb> {
        let small = |length: usize| u32::try_from(length).map_err(|_| too_large());
        let mut message = PageFooterPb { uncompressed_size: Some(uncompressed), ..PageFooterPb::default() };
        let kind = match self {
            Self::Data { first_ordinal, rows, null_bytes, next_item } => {
                message.data_page_footer = Some(DataPageFooterPb {
                    first_ordinal: Some(first_ordinal),
                    num_values: Some(rows),
                    nullmap_size: Some(small(null_bytes)?),
                    next_array_item_ordinal: next_item,
                    format_version: None,
                });
                PageKind::Data
            }
            Self::Index { entries } => {
                message.index_page_footer =
                    Some(IndexPageFooterPb { num_entries: Some(small(entries)?), kind: Some(LEAF) });
                PageKind::Index
            }
            Self::Dictionary(encoding) => {
                message.dict_page_footer = Some(DictPageFooterPb { encoding: Some(encoding.number()) });
                PageKind::Dictionary
            }
            Self::ShortKey(footer) => {
                message.short_key_page_footer = Some(footer);
                PageKind::ShortKey
            }
        };
        message.kind = Some(kind.number());
        Ok(message)
    }
}

fn too_large() -> Error {
    Error::invalid("a page of 4 GiB or more")
}

/// Appends a page to `out`; `scratch` is a buffer that keeps its memory.
pub(super) fn append_page(
    body: &[u8],
    footer: Footer,
    compression: Compression,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<PageSizes> {
    let length = u32::try_from(body.len()).map_err(|_| too_large())?;
    let start = out.len();
    scratch.clear();
    let is_smaller = match compression.codec() {
        None => false,
        Some(codec) => {
            codec.compress(body, scratch)?;
            let saving = 1.0 - scratch.len() as f64 / f64::from(length);
            saving >= LEAST_SAVING
        }
    };
    out.extend_from_slice(if is_smaller { scratch } else { body });
    let body_end = out.len();
    footer.message(length)?.encode(out).map_err(|error| Error::internal(error.to_string()))?;
    let footer_bytes = out.len().saturating_sub(body_end);
    out.extend(u32::try_from(footer_bytes).map_err(|_| too_large())?.to_le_bytes());
    let checksum = crc32c(out.get(start..).unwrap_or_default());
    out.extend(checksum.to_le_bytes());
    let stored = u32::try_from(out.len().saturating_sub(start)).map_err(|_| too_large())?;
    // Size of the footer and checksum stand behind the footer.
    let uncompressed = u64::from(length).saturating_add(footer_bytes as u64).saturating_add(8);
    Ok(PageSizes { stored, uncompressed })
}

/// Where the bytes of a file go, and how many went.
#[derive(Debug)]
pub(crate) struct Sink<W> {
    inner: W,
    pub at: u64,
    page: Vec<u8>,
    scratch: Vec<u8>,
}

impl<W: Write> Sink<W> {
    pub fn new(inner: W) -> Self {
        Self::at(inner, 0)
    }

    /// A sink whose first byte is at `at` of the file.
    pub fn at(inner: W, at: u64) -> Self {
        Self { inner, at, page: Vec::new(), scratch: Vec::new() }
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.inner.write_all(bytes)?;
        self.at = self.at.saturating_add(bytes.len() as u64);
        Ok(())
    }

    pub fn write_page(
        &mut self,
        body: &[u8],
        footer: Footer,
        compression: Compression,
    ) -> Result<PagePointer> {
        let mut page = std::mem::take(&mut self.page);
        page.clear();
        let sizes = append_page(body, footer, compression, &mut self.scratch, &mut page)?;
        let pointer = PagePointer { offset: self.at, size: sizes.stored };
        self.write(&page)?;
        self.page = page;
        Ok(pointer)
    }

    pub fn finish(mut self) -> Result<W> {
        self.inner.flush()?;
        Ok(self.inner)
    }
}
