//! What a CFile says of itself.

use std::sync::Arc;

use pilaster_core::Result;
use pilaster_core::describe::{Node, Page};

use super::file::{CFile, DATA_PART};
use super::index::IndexTree;
use super::kinds::CFileKind;
use super::metadata::{BlockPointer, Version};
use super::types::Compression;

pub(crate) fn describe(file: &CFile, kind: CFileKind) -> Result<Node> {
    let metadata = file.metadata();
    let mut node = Node::new(format!("cfile {}", file.name()), metadata.file_bytes)
        .fact("kind", format!("{kind:?}").to_lowercase())
        .fact(
            "version",
            match metadata.version {
                Version::V1 => 1,
                Version::V2 => 2,
            },
        )
        .fact("data_type", metadata.data_type)
        .fact("encoding", metadata.encoding)
        .fact("compression", metadata.compression)
        .fact("num_values", metadata.num_values)
        .fact("is_type_nullable", metadata.is_nullable)
        .fact("is_type_array", metadata.is_array)
        .fact("incompatible_features", metadata.incompatible_features)
        .fact("compatible_features", metadata.compatible_features)
        .fact("checksums", metadata.has_checksums());
    for (name, pointer) in [
        ("positional_index_root", metadata.positional_index),
        ("value_index_root", metadata.value_index),
        ("dictionary_block", metadata.dictionary),
    ] {
        if let Some(pointer) = pointer {
            node = node.fact(name, format!("offset {}, {} bytes", pointer.offset, pointer.size));
        }
    }
    for (key, value) in &metadata.pairs {
        node = node.fact(format!("metadata.{key}"), value.escape_ascii());
    }
    let blocks = data_pointers(file, kind)?;
    let data_bytes = blocks.iter().map(|pointer| u64::from(pointer.size)).sum();
    node = node.child(Node::new("header", metadata.blocks_start));
    node = node.child(Node::new("data blocks", data_bytes).fact("blocks", blocks.len()));
    for (name, tree) in [("positional index", &file.positional), ("value index", &file.by_value)] {
        if let Some(tree) = tree {
            let (nodes, _) = tree.blocks(&file.store);
            let bytes = nodes.iter().map(|node| u64::from(node.pointer.size)).sum();
            let levels = nodes.iter().map(|node| node.level).max().unwrap_or_default().saturating_add(1);
            node = node.child(Node::new(name, bytes).fact("blocks", nodes.len()).fact("levels", levels));
        }
    }
    if let Some(pointer) = metadata.dictionary {
        let words = file.words()?.map_or(0, |words| words.len());
        node = node.child(Node::new("dictionary", u64::from(pointer.size)).fact("words", words));
    }
    Ok(node.child(Node::new("footer", metadata.file_bytes.saturating_sub(metadata.blocks_end))))
}

fn data_pointers(file: &CFile, kind: CFileKind) -> Result<Vec<BlockPointer>> {
    if let Some(found) = &file.recovered {
        return Ok(found.blocks.iter().map(|block| block.pointer).collect());
    }
    match (&file.positional, kind) {
        (Some(tree), CFileKind::Column) => {
            Ok(tree.entries(&file.store)?.into_iter().map(|entry| entry.pointer).collect())
        }
        _ => Ok(file.sequence()?.to_vec()),
    }
}

pub(crate) fn pages(file: &CFile, kind: CFileKind, column: &str) -> Result<Vec<Page>> {
    let mut pages = block_pages(file, kind, column)?;
    fill_uncompressed_sizes(file, &mut pages)?;
    fill_nulls(file, &mut pages);
    Ok(pages)
}

/// Every block, with what is known of it without reading it.
fn block_pages(file: &CFile, kind: CFileKind, column: &str) -> Result<Vec<Page>> {
    let metadata = file.metadata();
    let path: Arc<str> = file.name().into();
    let page = |kind, pointer: BlockPointer, rows, encoding: String| Page {
        path: Arc::clone(&path),
        column: column.to_string(),
        kind,
        offset: pointer.offset,
        bytes: u64::from(pointer.size),
        uncompressed_bytes: None,
        rows,
        nulls: None,
        encoding,
        codec: metadata.compression.name().to_string(),
    };
    let encoding = metadata.encoding.name().to_string();
    let mut pages: Vec<Page> = match kind {
        CFileKind::Bloom => {
            file.sequence()?.iter().map(|&at| page("bloom block", at, None, String::new())).collect()
        }
        CFileKind::Column | CFileKind::Delta => file
            .located_blocks()?
            .into_iter()
            .map(|block| page("data block", block.pointer, Some(block.rows), encoding.clone()))
            .collect(),
    };
    for (name, tree) in [("positional index block", &file.positional), ("value index block", &file.by_value)]
    {
        let blocks = tree.iter().flat_map(|tree: &IndexTree| tree.blocks(&file.store).0);
        pages.extend(blocks.map(|block| page(name, block.pointer, None, String::new())));
    }
    pages.extend(metadata.dictionary.map(|at| page("dictionary block", at, None, "PLAIN_ENCODING".into())));
    pages.sort_by_key(|page| page.offset);
    Ok(pages)
}

/// Counts the nulls of data blocks: of nullable columns, by the bitmaps in them. Those of damaged blocks stay unknown.
fn fill_nulls(file: &CFile, pages: &mut [Page]) {
    for page in pages.iter_mut().filter(|page| page.rows.is_some()) {
        let size = u32::try_from(page.bytes).unwrap_or(u32::MAX);
        let pointer = BlockPointer { offset: page.offset, size };
        page.nulls = if file.metadata().is_nullable {
            let block = file.store.read(pointer, DATA_PART);
            block.and_then(|block| file.shape.null_count(&block.payload)).ok()
        } else {
            Some(0)
        };
    }
}

/// Bytes of all blocks after decompression, and of what stands around them.
pub(crate) fn uncompressed_bytes(file: &CFile, kind: CFileKind) -> Result<u64> {
    let metadata = file.metadata();
    if metadata.compression == Compression::None {
        return Ok(metadata.file_bytes);
    }
    let mut pages = block_pages(file, kind, "")?;
    fill_uncompressed_sizes(file, &mut pages)?;
    let blocks = pages.iter().filter_map(|page| page.uncompressed_bytes).fold(0, u64::saturating_add);
    let around =
        metadata.blocks_start.saturating_add(metadata.file_bytes.saturating_sub(metadata.blocks_end));
    Ok(blocks.saturating_add(around))
}

/// Reads the size each compressed block states, a few bytes of each; that also tells whether it is stored raw.
fn fill_uncompressed_sizes(file: &CFile, pages: &mut [Page]) -> Result<()> {
    let metadata = file.metadata();
    let checksum_bytes = if metadata.has_checksums() { 4 } else { 0 };
    if metadata.compression == Compression::None {
        for page in pages {
            page.uncompressed_bytes = Some(page.bytes.saturating_sub(checksum_bytes));
        }
        return Ok(());
    }
    let skip = if metadata.version == Version::V1 { 4 } else { 0 };
    let ranges: Vec<_> = pages
        .iter()
        .map(|page| {
            page.offset.saturating_add(skip)
                ..page.offset.saturating_add(skip).saturating_add(4).min(metadata.blocks_end)
        })
        .collect();
    for (page, bytes) in pages.iter_mut().zip(file.store.source.read_many(&ranges)?) {
        page.uncompressed_bytes = bytes.first_chunk::<4>().map(|four| u64::from(u32::from_le_bytes(*four)));
        // What did not shrink is stored raw, behind its size.
        let raw = page.bytes.saturating_sub(checksum_bytes).checked_sub(4);
        if metadata.version == Version::V2 && page.uncompressed_bytes == raw {
            page.codec = Compression::None.name().to_string();
        }
    }
    Ok(())
}
