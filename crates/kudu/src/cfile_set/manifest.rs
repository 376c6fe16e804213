//! The manifest of a set.

use arrow_schema::Schema;
use pilaster_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// File name of the manifest.
pub const MANIFEST_NAME: &str = "cfile-set.json";
/// Largest manifest that is read.
pub(super) const MAX_MANIFEST_BYTES: u64 = 64 << 20;

const FORMAT: &str = "pilaster cfile set";
const VERSION: u32 = 1;

/// What the manifest says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: String,
    version: u32,
    pub rows: u64,
    pub key: Option<String>,
    pub columns: Vec<ManifestColumn>,
    pub schema: Schema,
}

/// What the manifest says of a column; what the CFile's own footer says is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ManifestColumn {
    pub name: String,
    pub file: String,
}

impl Manifest {
    pub fn new(rows: u64, key: Option<String>, columns: Vec<ManifestColumn>, schema: Schema) -> Self {
        Self { format: FORMAT.into(), version: VERSION, rows, key, columns, schema }
    }

    pub fn to_json(&self) -> Result<Vec<u8>> {
        serde_json::to_vec_pretty(self)
            .map_err(|error| Error::invalid(format!("a schema that has no JSON form: {error}")))
    }

    /// Parses and checks: a manifest may come from anywhere.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let manifest: Self = serde_json::from_slice(bytes)
            .map_err(|error| Error::corrupt("the manifest of a CFile set", error))?;
        if manifest.format != FORMAT {
            return Err(Error::corrupt(format!("format {FORMAT:?}"), format!("{:?}", manifest.format)));
        }
        if manifest.version != VERSION {
            return Err(Error::unsupported(format!("a CFile set of version {}", manifest.version)));
        }
        if manifest.rows > u64::from(u32::MAX) {
            return Err(Error::corrupt("at most 4294967295 rows", manifest.rows));
        }
        let fields = manifest.schema.fields();
        let agrees = fields.len() == manifest.columns.len()
            && fields.iter().zip(&manifest.columns).all(|(field, column)| *field.name() == column.name);
        if !agrees {
            return Err(Error::corrupt("a file for each column of the schema, in its order", "others"));
        }
        for column in &manifest.columns {
            // A name must not lead out of the folder.
            let is_plain = !column.file.is_empty()
                && !column.file.starts_with('.')
                && column.file.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'));
            if !is_plain {
                return Err(Error::corrupt(
                    "the name of a file in this folder",
                    format!("{:?}", column.file),
                ));
            }
        }
        if let Some(key) = &manifest.key
            && !manifest.columns.iter().any(|column| column.name == *key)
        {
            return Err(Error::corrupt("a key that is a column", format!("{key:?}")));
        }
        Ok(manifest)
    }
}

/// A file name for column number `index`: readable, and safe on every file system.
pub(super) fn file_name(index: usize, column: &str) -> String {
    let readable: String = column
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .take(64)
        .collect();
    format!("{index:04}-{readable}.cfile")
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{DataType, Field};

    fn manifest(file: &str) -> Vec<u8> {
        let schema = Schema::new(vec![Field::new("a", DataType::Int32, false)]);
        let column = ManifestColumn { name: "a".into(), file: file.into() };
        Manifest::new(3, None, vec![column], schema).to_json().unwrap()
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_refused() {
        assert!(Manifest::parse(&manifest(&file_name(0, "a/../b c"))).is_ok());
        for bad in ["../a.cfile", "/etc/passwd", "a\\b", "", ".hidden", "s3://x"] {
            assert!(Manifest::parse(&manifest(bad)).is_err(), "{bad}");
        }
    }
}
