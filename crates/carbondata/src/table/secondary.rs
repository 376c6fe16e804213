//! What lies beside a table to make the engine faster: bloom and Lucene indexes, index tables, materialised views. It never changes what
//! a scan gives, so it is recognised and named, and not read.

use std::fmt;

use pilaster_core::storage::Entry;
use pilaster_core::{Location, Result};

use super::schema::TableSchema;

/// How deep an index folder is looked into: `<index>/<segment>/<shard>`.
const DEPTH: u32 = 3;
/// The column by which an index table points into its parent.
const POSITION: &str = "positionreference";

/// What kind of index it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexKind {
    /// Bloom filters per blocklet.
    Bloom,
    /// A Lucene index.
    Lucene,
    /// A materialised view, or what releases before 2.0 called a data map, by the name of its class.
    Other(String),
    /// Tables of their own, beside this one.
    Tables,
    /// This table is an index of another one.
    Itself,
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bloom => "bloom",
            Self::Lucene => "lucene",
            Self::Other(class) => class,
            Self::Tables => "index tables beside this one",
            Self::Itself => "this table is an index of another one",
        })
    }
}

/// An index or a view of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondaryIndex {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Its kind.
    pub kind: IndexKind,
}

impl fmt::Display for SecondaryIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} ({})", self.kind),
            None => self.kind.fmt(f),
        }
    }
}

/// What a table's folder and its schema say of indexes.
pub(crate) fn find(table: &Location, schema: &TableSchema) -> Result<Vec<SecondaryIndex>> {
    let mut found = Vec::new();
    let is_own = |name: &str| {
        matches!(name, "Metadata" | "Fact" | "LockFiles") || name.starts_with('.') || name.contains('=')
    };
    for entry in table.list()?.into_iter().filter(Entry::is_folder) {
        let name = entry.name().to_string_lossy().into_owned();
        if !is_own(&name) {
            let kind = match kind_of(&table.beside(entry.path()), DEPTH) {
                Ok(kind) => kind.unwrap_or_else(|| IndexKind::Other("of an unknown kind".into())),
                Err(error) => IndexKind::Other(format!("of an unknown kind: {error}")),
            };
            found.push(SecondaryIndex { name: Some(name), kind });
        }
    }
    for (name, class) in &schema.data_maps {
        if !found.iter().any(|known| known.name.as_deref() == Some(name)) {
            found.push(SecondaryIndex { name: Some(name.clone()), kind: IndexKind::Other(class.clone()) });
        }
    }
    for (key, value) in &schema.properties {
        let kind = match key.as_str() {
            "indextableexists" if value.eq_ignore_ascii_case("true") => IndexKind::Tables,
            key if key.contains("mv") && key.contains("table") && !value.is_empty() => {
                IndexKind::Other(format!("materialised view: {value}"))
            }
            _ => continue,
        };
        found.push(SecondaryIndex { name: None, kind });
    }
    if schema.columns.iter().any(|column| column.name.eq_ignore_ascii_case(POSITION)) {
        found.push(SecondaryIndex { name: None, kind: IndexKind::Itself });
    }
    Ok(found)
}

fn kind_of(folder: &Location, depth: u32) -> Result<Option<IndexKind>> {
    let entries = folder.list()?;
    let names: Vec<_> = entries.iter().filter_map(|entry| entry.name().to_str()).collect();
    let has = |ends: &[&str]| names.iter().any(|name| ends.iter().any(|end| name.ends_with(end)));
    if has(&[".bloomindex", ".bloomindexmerge"]) {
        return Ok(Some(IndexKind::Bloom));
    }
    if has(&[".cfs", ".cfe", ".si"]) || names.iter().any(|name| name.starts_with("segments_")) {
        return Ok(Some(IndexKind::Lucene));
    }
    let Some(depth) = depth.checked_sub(1) else { return Ok(None) };
    for entry in entries.iter().filter(|entry| entry.is_folder() && !entry.is_link()) {
        if let Some(kind) = kind_of(&folder.beside(entry.path()), depth)? {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}
