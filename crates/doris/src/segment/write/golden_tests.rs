//! Real segments, written again from their rows with their own schema and options.
//!
//! The bytes are the same but for LZ4, where another implementation may choose other matches. So a file that differs is
//! compared page by page, decompressed, and then what its metadata says, with places translated from one file to the other.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use pilaster_core::Dataset;
use pilaster_encoding::bitshuffle;
use pilaster_testing::needs;
use prost::Message;

use super::{ColumnWriteOptions, SegmentWriteOptions, SegmentWriter, VariantSubcolumn};
use crate::messages::{
    BTreePb, ColumnIndexPb, ColumnMetaPb, IndexedColumnPb, PagePointerPb, SegmentFooterPb,
};
use crate::schema::{ROW_STORE_COLUMN, TabletSchema};
use crate::segment::page::{PageKind, PagePointer};
use crate::segment::paged::parse_entries;
use crate::segment::structure::{Owner, StructurePage, structure_pages};
use crate::segment::types::{Compression, Encoding, FieldType};
use crate::segment::{SegmentReader, SegmentReaderOptions};

/// A golden segment.
struct Golden {
    name: String,
    bytes: Vec<u8>,
    schema: Arc<TabletSchema>,
    number: u32,
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn goldens() -> Vec<Golden> {
    let root = pilaster_testing::goldens("doris");
    let mut all = Vec::new();
    for folder in sorted(&root.join("segment")) {
        let schema = std::fs::read(folder.join("schema.json")).unwrap();
        let schema = Arc::new(TabletSchema::parse_json(&schema).unwrap());
        for path in sorted(&folder) {
            let name = path.file_name().unwrap().to_str().unwrap().to_string();
            let Some(number) = name.strip_prefix("segment_").and_then(|rest| rest.strip_suffix(".dat"))
            else {
                continue;
            };
            all.push(Golden {
                name: format!("{}/{name}", folder.file_name().unwrap().to_str().unwrap()),
                bytes: std::fs::read(&path).unwrap(),
                schema: Arc::clone(&schema),
                number: number.parse().unwrap(),
            });
        }
    }
    all
}

impl Golden {
    fn open(&self, bytes: &[u8]) -> SegmentReader {
        let options =
            SegmentReaderOptions::default().with_schema(Some(Arc::clone(&self.schema))).with_hidden(true);
        let source = pilaster_testing::memory(&self.name, bytes.to_vec());
        SegmentReader::open_with_options(source, &options).unwrap()
    }

    fn rows(&self) -> Vec<RecordBatch> {
        pilaster_testing::batches(self.open(&self.bytes).scan()).unwrap()
    }

    /// What the file shows of how it was written: order of columns and subcolumns.
    fn options(&self) -> SegmentWriteOptions {
        let reader = self.open(&self.bytes);
        let metadata = reader.metadata();
        let mut options = SegmentWriteOptions::default().with_segment_id(self.number);
        let ids: Vec<i32> =
            metadata.columns.iter().map(|column| column.unique_id).filter(|id| *id >= 0).collect();
        options = options.with_column_order(ids);
        let first_part = metadata.columns.iter().position(|column| column.unique_id < 0);
        let last_root = metadata.columns.iter().rposition(|column| column.unique_id >= 0);
        options = options.with_subcolumns_last(first_part > last_root);
        for root in metadata.columns.iter().filter(|column| column.field_type == FieldType::Variant) {
            let mut parts: Vec<_> = metadata
                .columns
                .iter()
                .filter_map(|column| {
                    let path = column.path.as_ref().filter(|path| path.parent == Some(root.unique_id))?;
                    let is_path = !path.keys[0].starts_with("__DORIS_");
                    is_path.then(|| {
                        let subcolumn = VariantSubcolumn {
                            keys: path.keys.clone(),
                            field_type: column.field_type,
                            item: column.children.first().map(|item| item.field_type),
                        };
                        (column.column_id, subcolumn)
                    })
                })
                .collect();
            // Column ids count subcolumns in the order of their data.
            parts.sort_by_key(|(id, _)| *id);
            let parts = parts.into_iter().map(|(_, part)| part).collect();
            let declared = self.schema.columns.iter().find(|column| column.unique_id == root.unique_id);
            options = options.with_column(
                &declared.unwrap().name,
                ColumnWriteOptions::default().with_variant_subcolumns(parts),
            );
        }
        options
    }

    fn written(&self, batches: &[RecordBatch]) -> Vec<u8> {
        self.written_with(batches, &self.options())
    }

    fn written_with(&self, batches: &[RecordBatch], options: &SegmentWriteOptions) -> Vec<u8> {
        let mut writer = SegmentWriter::try_new(Vec::new(), &self.schema, options)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        for batch in batches {
            writer.write(batch).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        }
        writer.finish().unwrap_or_else(|error| panic!("{}: {error}", self.name)).0
    }
}

/// The footer and the columns of a file, as messages.
fn messages(bytes: &[u8]) -> (SegmentFooterPb, Vec<ColumnMetaPb>) {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let end = bytes.len() - 12;
    let start = end - word(end);
    let mut footer = SegmentFooterPb::decode(&bytes[start..end]).unwrap();
    assert_eq!(footer.encode_to_vec(), bytes[start..end], "a field of the footer has no name here");
    if footer.version.is_none() {
        let columns = std::mem::take(&mut footer.columns);
        return (footer, columns);
    }
    let mut at = footer.col_meta_region_start.unwrap() as usize;
    let mut columns = Vec::new();
    for entry in &footer.column_meta_entries {
        let length = entry.length.unwrap() as usize;
        let column = ColumnMetaPb::decode(&bytes[at..at + length]).unwrap();
        assert_eq!(column.encode_to_vec(), bytes[at..at + length], "a field of a column has no name here");
        columns.push(column);
        at += length;
    }
    (footer, columns)
}

/// Pages by offset; a page that two indexes hang from is one.
fn pages(reader: &SegmentReader) -> Vec<StructurePage> {
    let mut pages = structure_pages(reader.shared());
    pages.sort_by_key(|page| page.pointer.offset);
    pages.dedup_by_key(|page| page.pointer.offset);
    pages
}

/// Places in one file that correspond to places in another.
#[derive(Default)]
struct Places(HashMap<u64, PagePointer>);

impl Places {
    fn pointer(&self, pointer: &mut PagePointerPb) {
        *pointer = self.0[&pointer.offset.unwrap()].message();
    }

    fn tree(&self, tree: &mut Option<BTreePb>) {
        if let Some(root) = tree.as_mut().and_then(|tree| tree.root_page.as_mut()) {
            self.pointer(root);
        }
    }

    fn indexed(&self, column: &mut IndexedColumnPb) {
        self.tree(&mut column.ordinal_index_meta);
        self.tree(&mut column.value_index_meta);
    }

    fn index(&self, index: &mut ColumnIndexPb) {
        if let Some(ordinal) = &mut index.ordinal_index {
            self.tree(&mut ordinal.root_page);
        }
        if let Some(pages) = index.zone_map_index.as_mut().and_then(|zones| zones.page_zone_maps.as_mut()) {
            self.indexed(pages);
        }
        if let Some(pages) = index.bloom_filter_index.as_mut().and_then(|bloom| bloom.bloom_filter.as_mut()) {
            self.indexed(pages);
        }
    }

    fn column(&self, column: &mut ColumnMetaPb) {
        column.indexes.iter_mut().for_each(|index| self.index(index));
        column.dict_page.iter_mut().for_each(|pointer| self.pointer(pointer));
        column.children_columns.iter_mut().for_each(|child| self.column(child));
    }

    fn footer(&self, footer: &mut SegmentFooterPb) {
        footer.short_key_index_page.iter_mut().for_each(|pointer| self.pointer(pointer));
        if let Some(primary) = &mut footer.primary_key_index_meta {
            self.indexed(primary.primary_key_index.as_mut().unwrap());
            self.index(primary.bloom_filter_index.as_mut().unwrap());
        }
        for pair in &mut footer.file_meta_datas {
            let mut column = IndexedColumnPb::decode(pair.value.as_deref().unwrap()).unwrap();
            self.indexed(&mut column);
            pair.value = Some(column.encode_to_vec());
        }
    }
}

/// Sizes depend on LZ4.
fn without_sizes(column: &mut ColumnMetaPb) {
    column.compressed_data_bytes = column.compressed_data_bytes.map(|_| 0);
    column.uncompressed_data_bytes = column.uncompressed_data_bytes.map(|_| 0);
}

/// A page with all LZ4 undone.
fn plain_body(reader: &SegmentReader, page: &StructurePage) -> (Vec<u8>, String) {
    let opened = reader.shared().store.read(page.pointer, page.kind, page.compression).unwrap();
    let mut footer = opened.footer;
    let body = opened.body;
    let null_bytes = footer.data_page_footer.and_then(|data| data.nullmap_size).unwrap_or(0) as usize;
    let values = &body[..body.len() - null_bytes];
    let is_codes = page.encoding == Some(Encoding::Dict) && values[..4] == 5u32.to_le_bytes();
    let shuffled_at = match page.kind {
        PageKind::Data if page.encoding == Some(Encoding::BitShuffle) => Some(0),
        PageKind::Data if is_codes => Some(4),
        _ => None,
    };
    let plain = match shuffled_at {
        None => values.to_vec(),
        Some(at) => {
            let word = |number: usize| {
                let at = at + number * 4;
                u32::from_le_bytes(values[at..at + 4].try_into().unwrap()) as usize
            };
            let (count, padded, width) = (word(0), word(2), word(3));
            assert_eq!(word(1), values.len() - at);
            let mut cells = vec![0; padded * width];
            bitshuffle::decompress_lz4(width, &values[at + 16..], &mut cells).unwrap();
            [count.to_le_bytes().to_vec(), cells].concat()
        }
    };
    footer.uncompressed_size = None;
    ([&plain, &body[body.len() - null_bytes..]].concat(), format!("{footer:?}"))
}

/// Compares files whose LZ4 differs.
fn compare(golden: &Golden, ours: &[u8]) -> Result<(), String> {
    let (theirs, mine) = (golden.open(&golden.bytes), golden.open(ours));
    let (their_pages, my_pages) = (pages(&theirs), pages(&mine));
    let shape = |pages: &[StructurePage]| {
        pages.iter().map(|page| format!("{:?} {} {:?}", page.kind, page.what, page.rows)).collect::<Vec<_>>()
    };
    if shape(&their_pages) != shape(&my_pages) {
        return Err(format!("pages {:#?}\nnot {:#?}", shape(&my_pages), shape(&their_pages)));
    }
    let places = Places(
        their_pages
            .iter()
            .zip(&my_pages)
            .map(|(theirs, mine)| (theirs.pointer.offset, mine.pointer))
            .collect(),
    );
    for (their_page, my_page) in their_pages.iter().zip(&my_pages) {
        let ((their_body, their_footer), (my_body, my_footer)) =
            (plain_body(&theirs, their_page), plain_body(&mine, my_page));
        if their_footer != my_footer {
            return Err(format!(
                "{} at {}: {my_footer} not {their_footer}",
                my_page.what, my_page.pointer.offset
            ));
        }
        if my_page.kind == PageKind::Index {
            let entries = |reader: &SegmentReader, page: &StructurePage| {
                let opened = reader.shared().store.read(page.pointer, page.kind, page.compression).unwrap();
                let mut entries = Vec::new();
                let parsed = parse_entries(&opened, |key, pointer| {
                    entries.push((key.to_vec(), pointer));
                    Ok(())
                });
                parsed.unwrap();
                entries
            };
            let translated: Vec<(Vec<u8>, PagePointer)> = entries(&theirs, their_page)
                .into_iter()
                .map(|(key, pointer)| (key, places.0[&pointer.offset]))
                .collect();
            if translated != entries(&mine, my_page) {
                return Err(format!("entries of the index at {}", my_page.pointer.offset));
            }
        } else if their_body != my_body {
            return Err(format!(
                "{} at {}: {} not {}",
                my_page.what,
                my_page.pointer.offset,
                my_body.escape_ascii(),
                their_body.escape_ascii()
            ));
        }
    }
    let ((mut their_footer, mut their_columns), (mut my_footer, mut my_columns)) =
        (messages(&golden.bytes), messages(ours));
    check_sizes(&theirs, &their_columns)?;
    check_sizes(&mine, &my_columns)?;
    places.footer(&mut their_footer);
    their_columns.iter_mut().for_each(|column| places.column(column));
    for column in their_columns.iter_mut().chain(&mut my_columns) {
        without_sizes(column);
    }
    for footer in [&mut their_footer, &mut my_footer] {
        footer.col_meta_region_start = footer.col_meta_region_start.map(|_| 0);
        footer.column_meta_entries.iter_mut().for_each(|entry| entry.length = None);
    }
    if their_footer != my_footer {
        return Err(format!("{my_footer:#?}\nnot {their_footer:#?}"));
    }
    for (theirs, mine) in their_columns.iter().zip(&my_columns) {
        if theirs != mine {
            return Err(format!("{mine:#?}\nnot {theirs:#?}"));
        }
    }
    if their_columns.len() != my_columns.len() {
        return Err("another number of columns".to_string());
    }
    Ok(())
}

#[needs(goldens = "doris")]
#[test]
fn every_golden_segment_is_written_again() {
    let goldens = goldens();
    let (mut identical, mut equal, mut wrong) = (0, 0, Vec::new());
    for golden in &goldens {
        let ours = golden.written(&golden.rows());
        if ours == golden.bytes {
            identical += 1;
            continue;
        }
        match compare(golden, &ours) {
            Ok(()) => equal += 1,
            Err(difference) => wrong.push(format!("{}: {difference}", golden.name)),
        }
    }
    eprintln!("{identical} segments identical, {equal} but for LZ4, {} different", wrong.len());
    let shown: Vec<String> = wrong.iter().take(5).map(|text| text.chars().take(4000).collect()).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), goldens.len(), shown.join("\n"));
    assert!(goldens.len() >= 109, "{} segments", goldens.len());
}

#[needs(goldens = "doris")]
#[test]
fn the_comparison_notices_other_options() {
    for golden in goldens().iter().filter(|golden| golden.name.contains("embedded_bloom")) {
        let variants = [
            golden.options().with_rows_per_short_key(100),
            golden.options().with_bloom_rate(0.5),
            golden.options().with_page_bytes(2048),
            golden.options().with_dictionary_page_bytes(2048),
            golden.options().with_compression(Compression::Zstd),
        ];
        for options in variants {
            let ours = golden.written_with(&golden.rows(), &options);
            assert!(compare(golden, &ours).is_err(), "{} {options:?}", golden.name);
        }
    }
}

/// What columns say of the bytes of their pages, against the pages.
fn check_sizes(reader: &SegmentReader, columns: &[ColumnMetaPb]) -> Result<(), String> {
    let all = pages(reader);
    for (number, column) in columns.iter().enumerate() {
        let Some(stored) = column.compressed_data_bytes.filter(|bytes| *bytes > 0) else { continue };
        let is_data = |page: &&StructurePage| {
            page.owner == Owner::Column(number) && matches!(page.what, "data page" | "dictionary page")
        };
        let (mut compressed, mut uncompressed) = (0, 0);
        for page in all.iter().filter(is_data) {
            let bytes = reader.shared().store.source.read_at(page.pointer.range()).unwrap();
            let footer =
                u64::from(u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()));
            let opened = reader.shared().store.read(page.pointer, page.kind, page.compression).unwrap();
            compressed += u64::from(page.pointer.size);
            uncompressed += opened.body.len() as u64 + footer + 8;
        }
        if (stored, column.uncompressed_data_bytes.unwrap()) != (compressed, uncompressed) {
            return Err(format!("column {number} says {stored} bytes, its pages have {compressed}"));
        }
    }
    Ok(())
}

#[needs(goldens = "doris")]
#[test]
fn the_row_store_is_made_from_the_other_columns() {
    let mut made = 0;
    for golden in goldens() {
        let has_row_store = golden.schema.columns.iter().any(|column| column.name == ROW_STORE_COLUMN);
        if !has_row_store {
            continue;
        }
        let rows = golden.rows();
        let without: Vec<RecordBatch> = rows
            .iter()
            .map(|batch| {
                let mut batch = batch.clone();
                let at = batch.schema().index_of(ROW_STORE_COLUMN).unwrap();
                batch.remove_column(at);
                batch
            })
            .collect();
        let ours = golden.open(&golden.written(&without));
        let found = pilaster_testing::batches(ours.scan()).unwrap();
        for (found, expected) in found.iter().zip(&rows) {
            for field in expected.schema().fields() {
                let (found, expected) = (
                    found.column_by_name(field.name()).unwrap(),
                    expected.column_by_name(field.name()).unwrap(),
                );
                if field.name() != ROW_STORE_COLUMN {
                    assert_eq!(found, expected, "{} {}", golden.name, field.name());
                    continue;
                }
                use arrow_array::cast::AsArray;
                for (found, expected) in found.as_binary_view().iter().zip(expected.as_binary_view()) {
                    // A boolean inside a VARIANT has two forms.
                    let text = |cell: Option<&[u8]>| crate::jsonb::to_text(cell.unwrap(), 32).unwrap();
                    let has_variant =
                        golden.schema.columns.iter().any(|column| column.type_name == "VARIANT");
                    if !has_variant {
                        assert_eq!(text(found), text(expected), "{}", golden.name);
                        assert_eq!(found, expected, "{}", golden.name);
                    }
                }
                made += 1;
            }
        }
    }
    eprintln!("{made} row stores");
}
