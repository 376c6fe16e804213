//! What lies beside a table to make the engine faster: bloom and Lucene indexes, index tables, materialised views. It never changes what
//! a scan gives, so it is recognised and named, and not read.

use std::fmt;
use std::path::Path;

use pilaster_core::Result;

use super::open::sorted_names;
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
pub(crate) fn find(table: &Path, schema: &TableSchema) -> Result<Vec<SecondaryIndex>> {
    let mut found = Vec::new();
    let is_own = |name: &str| {
        matches!(name, "Metadata" | "Fact" | "LockFiles") || name.starts_with('.') || name.contains('=')
    };
    for name in sorted_names(table)?.into_iter().filter(|name| !is_own(name)) {
        let folder = table.join(&name);
        if folder.is_dir() {
            let kind =
                kind_of(&folder, DEPTH).unwrap_or_else(|| IndexKind::Other("of an unknown kind".into()));
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

fn kind_of(folder: &Path, depth: u32) -> Option<IndexKind> {
    let names = sorted_names(folder).ok()?;
    let has = |ends: &[&str]| names.iter().any(|name| ends.iter().any(|end| name.ends_with(end)));
    if has(&[".bloomindex", ".bloomindexmerge"]) {
        return Some(IndexKind::Bloom);
    }
    if has(&[".cfs", ".cfe", ".si"]) || names.iter().any(|name| name.starts_with("segments_")) {
        return Some(IndexKind::Lucene);
    }
    let depth = depth.checked_sub(1)?;
    let inner = names.iter().map(|name| folder.join(name)).filter(|path| path.is_dir() && !path.is_symlink());
    inner.into_iter().find_map(|path| kind_of(&path, depth))
}
