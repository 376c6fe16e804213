//! VARIANT: a JSON value of any shape, taken apart into columns.
//!
//! ```text
//! root          JSONB of what is in no subcolumn, or nothing; its nulls are those of the whole value
//! subcolumns    one for each frequent path, of the path's own type; null where the value lacks the path
//! sparse        MAP<path, cell> of all other paths, in one column or in several buckets
//! doc           MAP<path, cell> of all paths, those of subcolumns too, in buckets; there is either this or sparse
//! ```
//!
//! A row is put together again: the root's document, every subcolumn at its path, every entry of the maps. Where a map of
//! documents and a subcolumn have the same path, the map has what was loaded, and the subcolumn has it in a type that fits
//! all rows.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{NullBuffer, NullBufferBuilder};
use pilaster_core::views::{ByteKind, view_array};
use pilaster_core::{Error, Limits, Result, RowRanges, ScanMemory, fitting};

use super::cells::Cell;
use super::column::Column;
use super::column_meta::ColumnMeta;
use super::cursor::Cursor;
use super::decode::Form;
use super::page::PageStore;
use super::page_cursor::{Damage, PageCursor, unreadable};
use super::paged::PagedColumn;
use super::types::FieldType;
use super::variant_cell;
use crate::json_text::{JsonShape, write_json};
use crate::jsonb;

pub(crate) const SPARSE_KEY: &str = "__DORIS_VARIANT_SPARSE__";
const DOC_KEY: &str = "__DORIS_VARIANT_DOC_VALUE__";

/// Whether a path with this key first is of a map, and no path of the value.
pub(crate) fn is_map_key(key: &str) -> bool {
    matches!(key, SPARSE_KEY | DOC_KEY)
}

/// The columns of one VARIANT.
#[derive(Debug)]
pub(crate) struct Variant {
    root: Arc<PagedColumn>,
    pub subcolumns: Vec<Subcolumn>,
    maps: Vec<PathMap>,
}

/// Paths without a column of their own.
#[derive(Debug)]
struct PathMap {
    column: Column,
    is_sparse: bool,
    /// Its paths; `None` if the file does not say all of them.
    paths: Option<Vec<String>>,
}

impl PathMap {
    /// Whether a value at `path` may be inside, or one below it.
    fn may_hold(&self, path: &str) -> bool {
        let holds = |known: &String| match known.strip_prefix(path) {
            // A subcolumn has what a map of documents repeats.
            Some("") => self.is_sparse,
            Some(rest) => rest.starts_with('.'),
            None => false,
        };
        self.paths.as_ref().is_none_or(|paths| paths.iter().any(holds))
    }
}

/// A path with a column of its own.
#[derive(Debug)]
pub(crate) struct Subcolumn {
    pub keys: Vec<String>,
    pub column: Column,
    shape: JsonShape,
}

impl Variant {
    /// Gathers the columns of the VARIANT `root` out of all columns of the file.
    pub fn build(store: &Arc<PageStore>, root: &ColumnMeta, all: &[ColumnMeta]) -> Result<Self> {
        let mut variant = Self {
            root: Arc::new(PagedColumn::new(store, root, Cell::Bytes)?),
            subcolumns: Vec::new(),
            maps: Vec::new(),
        };
        let belongs = |column: &&ColumnMeta| {
            column.path.as_ref().is_some_and(|path| path.parent == Some(root.unique_id))
        };
        for part in all.iter().filter(belongs).chain(&root.children) {
            let Some(path) = &part.path else {
                return Err(Error::corrupt("a path of the VARIANT's column", "none"));
            };
            if path.is_nested {
                return Err(Error::unsupported(
                    "a VARIANT with columns inside arrays of objects (nested groups)",
                ));
            }
            match path.keys.first().map(String::as_str) {
                None => return Err(Error::corrupt("a path inside the VARIANT", "an empty one")),
                Some(key @ (SPARSE_KEY | DOC_KEY)) => variant.maps.push(PathMap {
                    column: build_map(store, part)?,
                    is_sparse: key == SPARSE_KEY,
                    paths: all_paths(part),
                }),
                Some(_) => variant.subcolumns.push(Subcolumn {
                    keys: path.keys.clone(),
                    column: Column::build(store, part, None)?,
                    shape: JsonShape::of(part),
                }),
            }
            if part.num_rows != root.num_rows {
                return Err(Error::corrupt(
                    format!("{} rows in every column of a VARIANT", root.num_rows),
                    part.num_rows,
                ));
            }
        }
        Ok(variant)
    }

    /// The typed column of a path, if it is one column and nothing else is at the path or below it.
    pub fn typed(&self, keys: &[String]) -> Option<&Column> {
        if self.maps.iter().any(|map| map.may_hold(&keys.join("."))) {
            return None;
        }
        let mut below = self.subcolumns.iter().filter(|subcolumn| subcolumn.keys.starts_with(keys));
        match (below.next(), below.next()) {
            (Some(only), None) if only.keys == keys => Some(&only.column),
            _ => None,
        }
    }

    pub fn paged(&self) -> Vec<&Arc<PagedColumn>> {
        let subcolumns = self.subcolumns.iter().flat_map(|subcolumn| subcolumn.column.paged());
        let maps = self.maps.iter().flat_map(|map| map.column.paged());
        [&self.root].into_iter().chain(subcolumns).chain(maps).collect()
    }
}

/// The paths of a map, if those that the file counts are all: Doris leaves out some where there are very many.
fn all_paths(part: &ColumnMeta) -> Option<Vec<String>> {
    let entries = part.children.first().map_or(0, |keys| keys.num_rows);
    let counted: u64 = part.path_counts.values().map(|count| u64::from(*count)).sum();
    (counted == entries).then(|| part.path_counts.keys().cloned().collect())
}

/// MAP<STRING, STRING> whose values are cells of any type.
fn build_map(store: &Arc<PageStore>, part: &ColumnMeta) -> Result<Column> {
    let (FieldType::Map, [key, value, rest @ ..]) = (part.field_type, part.children.as_slice()) else {
        return Err(Error::corrupt("a map of paths", part.field_type));
    };
    let columns = (
        Column::Paged(Arc::new(PagedColumn::new(store, key, Cell::Text)?)),
        Column::Paged(Arc::new(PagedColumn::new(store, value, Cell::Bytes)?)),
    );
    if key.num_rows != value.num_rows {
        return Err(Error::corrupt(format!("{} values, one for each key", key.num_rows), value.num_rows));
    }
    Column::map_of(store, part, columns, rest, (key.num_rows, value.is_nullable))
}

/// Reads a VARIANT, or one path of it, as JSON text.
#[derive(Debug)]
pub(crate) struct VariantCursor {
    variant: Arc<Variant>,
    /// The path to give; empty for the whole value.
    keys: Vec<String>,
    root: PageCursor,
    subcolumns: Vec<Cursor>,
    maps: Vec<Cursor>,
    limits: Limits,
    memory: ScanMemory,
}

/// A JSON value being put together.
#[derive(Debug)]
enum Tree {
    Object(BTreeMap<String, Tree>),
    /// The JSON text of anything else.
    Leaf(String),
}

impl VariantCursor {
    pub fn new(variant: &Arc<Variant>, keys: Vec<String>, wanted: &RowRanges, memory: &ScanMemory) -> Self {
        Self {
            root: PageCursor::new(&variant.root, wanted.clone(), memory),
            subcolumns: variant.subcolumns.iter().map(|part| part.column.cursor(wanted, memory)).collect(),
            maps: variant.maps.iter().map(|map| map.column.cursor(wanted, memory)).collect(),
            limits: variant.root.shape.limits.clone(),
            memory: memory.clone(),
            variant: Arc::clone(variant),
            keys,
        }
    }

    /// Says that an error came from the page of `row` of the root column.
    pub fn at_page_of(&self, row: u64, error: Error) -> Error {
        self.root.at_page_of(row, error)
    }

    pub fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        let roots = self.root.read(rows.clone(), Form::Wanted)?;
        let roots =
            roots.as_binary_view_opt().ok_or_else(|| Error::corrupt("JSONB cells", roots.data_type()))?;
        let read = |cursors: &mut Vec<Cursor>| {
            cursors.iter_mut().map(|cursor| cursor.read_inside(rows.clone())).collect::<Result<Vec<_>>>()
        };
        let subcolumns = read(&mut self.subcolumns)?;
        let maps = read(&mut self.maps)?;
        let (mut text, mut ends) = (String::new(), vec![0]);
        let mut nulls = NullBufferBuilder::new(roots.len());
        for row in 0..roots.len() {
            let mut found = false;
            if roots.is_valid(row) {
                let tree = self.assemble(roots.value(row), row, &subcolumns, &maps)?;
                if let Some(part) = tree.at(&self.keys) {
                    part.write(&mut text);
                    found = true;
                }
            }
            nulls.append(found);
            fitting::check_bytes(text.len() as u64, &self.limits)?;
            self.memory
                .take((text.len() as u64).saturating_sub(ends.last().map_or(0, |end| u64::from(*end))))?;
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        }
        view_array(
            ByteKind::Text,
            text.into_bytes().into(),
            &ends,
            nulls.finish().filter(|n: &NullBuffer| n.null_count() > 0),
        )
    }

    fn assemble(&self, root: &[u8], row: usize, subcolumns: &[ArrayRef], maps: &[ArrayRef]) -> Result<Tree> {
        let mut tree = Tree::of_document(root, self.limits.depth)?;
        for (part, array) in self.variant.subcolumns.iter().zip(subcolumns) {
            if array.is_valid(row) {
                let mut leaf = String::new();
                write_json(array, row, &part.shape, &mut leaf)?;
                tree.set(part.keys.iter().map(String::as_str), leaf, self.limits.depth)?;
            }
        }
        for map in maps {
            let Some(entries) = map.as_map_opt().filter(|map| map.is_valid(row)).map(|map| map.value(row))
            else {
                continue;
            };
            let keys = entries.column(0).as_string_view_opt();
            let cells = entries.column(1).as_binary_view_opt();
            let (Some(keys), Some(cells)) = (keys, cells) else { continue };
            for (key, cell) in keys.iter().zip(cells) {
                if let (Some(key), Some(cell)) = (key, cell) {
                    let leaf = variant_cell::to_text(cell, &self.limits)?;
                    tree.set(key.split('.'), leaf, self.limits.depth)?;
                }
            }
        }
        Ok(tree)
    }

    pub fn damages(&mut self, rows: &Range<u64>) -> Vec<Damage> {
        let mut damages = self.root.damages(rows);
        for cursor in self.subcolumns.iter_mut().chain(&mut self.maps) {
            damages.extend(cursor.damages(rows));
        }
        let sound = super::cursor::sound_parts(rows, &damages);
        damages.extend(unreadable(sound, |good| self.read(good).map(|_| ())));
        damages
    }
}

impl Tree {
    /// The root's document; an object without members if there is none.
    fn of_document(document: &[u8], depth: u32) -> Result<Self> {
        match jsonb::open(document)? {
            None => Ok(Self::Object(BTreeMap::new())),
            Some(mut input) => {
                let tree = Self::of_value(&mut input, depth)?;
                input.finish()?;
                Ok(tree)
            }
        }
    }

    fn of_value(input: &mut jsonb::Input<'_>, depth: u32) -> Result<Self> {
        let Some(mut inside) = input.object()? else {
            let mut leaf = String::new();
            jsonb::write_value(input, depth, &mut leaf)?;
            return Ok(Self::Leaf(leaf));
        };
        let depth =
            depth.checked_sub(1).ok_or_else(|| Error::corrupt("JSONB nested less deeply", "more levels"))?;
        let mut members = BTreeMap::new();
        while !inside.is_empty() {
            let key = inside.key()?;
            members.insert(key, Self::of_value(&mut inside, depth)?);
        }
        Ok(Self::Object(members))
    }

    /// Puts a value at a path of at most `depth` keys; what is no object on the way becomes one.
    fn set<'a>(&mut self, keys: impl Iterator<Item = &'a str>, leaf: String, depth: u32) -> Result<()> {
        let mut at = self;
        let mut left = depth;
        for key in keys {
            left = left.checked_sub(1).ok_or_else(|| {
                Error::corrupt(format!("a path of at most {depth} keys in a VARIANT"), "more")
            })?;
            if let Self::Leaf(_) = at {
                *at = Self::Object(BTreeMap::new());
            }
            let Self::Object(members) = at else { return Ok(()) };
            at = members.entry(key.to_string()).or_insert_with(|| Self::Object(BTreeMap::new()));
        }
        *at = Self::Leaf(leaf);
        Ok(())
    }

    fn at(&self, keys: &[String]) -> Option<&Self> {
        keys.iter().try_fold(self, |tree, key| match tree {
            Self::Object(members) => members.get(key),
            Self::Leaf(_) => None,
        })
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Leaf(text) => out.push_str(text),
            Self::Object(members) => {
                out.push('{');
                let mut separator = "";
                for (key, value) in members {
                    out.push_str(separator);
                    separator = ",";
                    jsonb::write_string(key, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_put_into_the_root() {
        let mut tree = Tree::of_document(b"\x01\x0a\x04\0\0\0\x01a\x03\x01", 8).unwrap();
        tree.set(["b", "c"].into_iter(), "2".to_string(), 2).unwrap();
        tree.set(["b", "d"].into_iter(), "[3]".to_string(), 2).unwrap();
        tree.set(["a", "x"].into_iter(), "\"y\"".to_string(), 2).unwrap();
        let mut text = String::new();
        tree.write(&mut text);
        assert_eq!(text, r#"{"a":{"x":"y"},"b":{"c":2,"d":[3]}}"#);
        let mut part = String::new();
        tree.at(&["b".to_string(), "d".to_string()]).unwrap().write(&mut part);
        assert_eq!(part, "[3]");
        assert!(tree.at(&["b".to_string(), "z".to_string()]).is_none());
        // What is written, and dropped, level by level must not be deeper than a stack.
        let deep = "a.".repeat(100_000);
        assert!(tree.set(deep.split('.'), "1".to_string(), 32).is_err());
    }

    #[test]
    fn nothing_is_an_object_without_members() {
        let mut text = String::new();
        Tree::of_document(b"", 8).unwrap().write(&mut text);
        assert_eq!(text, "{}");
        assert!(Tree::of_document(b"\x01\x0a\x05\0\0\0", 8).is_err());
    }
}
