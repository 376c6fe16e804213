//! Every page of a segment, by what points to it.

use std::ops::Range;

use pilaster_core::Error;

use super::cells::Cell;
use super::column_meta::{ColumnMeta, IndexedColumnMeta, TreeMeta};
use super::footer::FOOTER_PART;
use super::page::{PageKind, PagePointer};
use super::paged::PagedColumn;
use super::reader::Segment;
use super::types::{Compression, Encoding, FieldType, Physical};

const DATA_PAGE: &str = "data page";
const DICTIONARY_PAGE: &str = "dictionary page";

/// What a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A column of [`super::SegmentMetadata::columns`].
    Column(usize),
    ShortKey,
    PrimaryKey,
}

/// A page something points to.
#[derive(Debug, Clone)]
pub(crate) struct StructurePage {
    pub owner: Owner,
    pub pointer: PagePointer,
    pub kind: PageKind,
    pub what: &'static str,
    pub compression: Compression,
    pub encoding: Option<Encoding>,
    pub rows: Option<Range<u64>>,
    /// How many values a data page must have.
    pub values: Option<u64>,
}

impl StructurePage {
    /// Whether it holds values of a column, or words of them, and is no index.
    pub fn is_data(&self) -> bool {
        matches!(self.what, DATA_PAGE | DICTIONARY_PAGE)
    }
}

/// Walks the metadata and the indexes; what cannot be read is told to `failed` and left out.
pub(crate) fn walk(segment: &Segment, failed: &mut dyn FnMut(Error)) -> Vec<StructurePage> {
    let mut walk = Walk { segment, pages: Vec::new(), failed };
    for (number, column) in segment.metadata.columns.iter().enumerate() {
        walk.column(Owner::Column(number), column, true);
    }
    if let Some(pointer) = segment.metadata.short_key_page {
        walk.add(
            Owner::ShortKey,
            pointer,
            PageKind::ShortKey,
            "short key page",
            Compression::None,
            None,
            None,
        );
    }
    if let Some(key) = &segment.metadata.primary_key {
        walk.index(Owner::PrimaryKey, &key.index, "primary key data page", Some(segment.metadata.num_rows));
        if let Some(bloom) = &key.bloom {
            walk.index(Owner::PrimaryKey, bloom, "primary key bloom filter page", Some(1));
        }
    }
    for (key, value) in &segment.metadata.pairs {
        let root = key.strip_prefix("variant_meta_keys").map(|rest| rest.trim_start_matches('.'));
        let Some(root) = root else { continue };
        let owner = segment.metadata.columns.iter().position(|column| {
            column.field_type == FieldType::Variant
                && (root.is_empty() || column.unique_id.to_string() == root)
        });
        match crate::messages::parse(value, "IndexedColumnMetaPB")
            .and_then(|message| IndexedColumnMeta::parse(&message))
        {
            Ok(index) => {
                let paths = owner.map(|owner| segment.metadata.path_count(owner));
                walk.index(Owner::Column(owner.unwrap_or_default()), &index, "variant path page", paths);
            }
            Err(error) => (walk.failed)(error),
        }
    }
    walk.pages
}

/// As [`walk`], leaving out in silence what cannot be read.
pub(crate) fn structure_pages(segment: &Segment) -> Vec<StructurePage> {
    walk(segment, &mut |_| {})
}

struct Walk<'a> {
    segment: &'a Segment,
    pages: Vec<StructurePage>,
    failed: &'a mut dyn FnMut(Error),
}

impl Walk<'_> {
    #[expect(clippy::too_many_arguments, reason = "a page is all of these")]
    fn add(
        &mut self,
        owner: Owner,
        pointer: PagePointer,
        kind: PageKind,
        what: &'static str,
        compression: Compression,
        encoding: Option<Encoding>,
        rows: Option<Range<u64>>,
    ) {
        let page = StructurePage { owner, pointer, kind, what, compression, encoding, rows, values: None };
        self.pages.push(page);
    }

    fn column(&mut self, owner: Owner, column: &ColumnMeta, is_top: bool) {
        let is_made_of_parts =
            column.field_type.physical() == Physical::Nested && column.field_type != FieldType::Variant;
        let mut pages = None;
        if !is_made_of_parts
            && column.encoding.is_some()
            && (column.ordinal_index.is_some() || column.dictionary.is_some())
        {
            // Any cell will do to find pages: they are not decoded here.
            match PagedColumn::new(&self.segment.store, column, Cell::Bytes) {
                Ok(paged) => pages = self.paged(owner, &paged, DATA_PAGE, is_top),
                Err(error) => (self.failed)(error),
            }
            if let Some(pointer) = column.dictionary {
                self.add(
                    owner,
                    pointer,
                    PageKind::Dictionary,
                    DICTIONARY_PAGE,
                    column.compression,
                    None,
                    None,
                );
            }
        }
        if let Some(index) = column.zone_map.as_ref().and_then(|zones| zones.pages.as_ref()) {
            self.index(owner, index, "zone map page", pages);
        }
        if let Some(bloom) = &column.bloom {
            self.index(owner, &bloom.filters, "bloom filter page", pages);
        }
        if let Some(bitmap) = &column.bitmap {
            self.index(owner, &bitmap.values, "bitmap index values page", None);
            self.index(owner, &bitmap.bitmaps, "bitmap index page", Some(bitmap.bitmap_count()));
        }
        for child in &column.children {
            self.column(owner, child, false);
        }
    }

    /// A column that serves an index, of so many values as what it is an index of has.
    fn index(&mut self, owner: Owner, index: &IndexedColumnMeta, what: &'static str, expected: Option<u64>) {
        if let Some(expected) = expected.filter(|expected| *expected != index.num_values) {
            let said = format!("an index of {expected} values ({what})");
            (self.failed)(Error::corrupt(said, index.num_values).at(
                self.segment.name(),
                self.segment.metadata.footer_start,
                FOOTER_PART,
            ));
        }
        let paged = PagedColumn::of_index(&self.segment.store, index, Cell::Bytes);
        self.paged(owner, &paged, what, false);
        if let (Some(_), Some(TreeMeta { root, is_data_page: false })) =
            (index.ordinal_index, index.value_index)
        {
            self.add(owner, root, PageKind::Index, "value index page", index.compression, None, None);
        }
    }

    /// The pages of a column; gives how many hold data, if that can be told.
    fn paged(
        &mut self,
        owner: Owner,
        paged: &PagedColumn,
        what: &'static str,
        has_rows: bool,
    ) -> Option<u64> {
        if let Some(TreeMeta { root, is_data_page: false }) = paged.tree {
            self.add(owner, root, PageKind::Index, "ordinal index page", paged.compression, None, None);
        }
        let pages = match paged.pages() {
            Ok(pages) => pages,
            Err(error) => {
                (self.failed)(error);
                return None;
            }
        };
        self.pages.extend(pages.iter().map(|page| StructurePage {
            owner,
            pointer: page.pointer,
            kind: PageKind::Data,
            what,
            compression: paged.compression,
            encoding: Some(paged.shape.encoding),
            rows: has_rows.then(|| page.rows.clone()),
            values: Some(page.count()),
        }));
        Some(pages.len() as u64)
    }
}
