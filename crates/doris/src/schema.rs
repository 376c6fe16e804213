//! The schema of a tablet: what a segment does not know of its columns.
//!
//! The JSON form has the field names of Doris's own metadata:
//!
//! ```
//! let json = r#"{
//!     "keys_type": "DUP_KEYS",
//!     "num_short_key_columns": 1,
//!     "columns": [
//!         {"unique_id": 0, "name": "id", "type": "INT", "is_key": true, "is_nullable": false},
//!         {"unique_id": 1, "name": "price", "type": "DECIMAL64", "precision": 18, "frac": 4, "is_nullable": true}
//!     ]
//! }"#;
//! let schema = pilaster_doris::TabletSchema::parse_json(json.as_bytes())?;
//! assert_eq!(schema.columns[1].name, "price");
//! # Ok::<(), pilaster_core::Error>(())
//! ```

use std::collections::BTreeMap;

use pilaster_core::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::segment::{Compression, StorageFormat};

/// Name of the column that holds whole rows.
pub const ROW_STORE_COLUMN: &str = "__DORIS_ROW_STORE_COL__";
/// Name of the column that marks deleted rows.
pub const DELETE_SIGN_COLUMN: &str = "__DORIS_DELETE_SIGN__";
/// Name of the column that decides among rows of equal keys.
pub const SEQUENCE_COLUMN: &str = "__DORIS_SEQUENCE_COL__";
/// Name of the column that stands for the version of a row's rowset.
pub const VERSION_COLUMN: &str = "__DORIS_VERSION_COL__";

/// Name of the column that says which columns a flexible partial update left alone.
pub(crate) const SKIP_BITMAP_COLUMN: &str = "__DORIS_SKIP_BITMAP_COL__";

/// What rows of equal keys mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum KeysType {
    /// All of them are rows.
    #[default]
    #[serde(rename = "DUP_KEYS")]
    Duplicate,
    /// The newest replaces the others.
    #[serde(rename = "UNIQUE_KEYS")]
    Unique,
    /// Their values are aggregated.
    #[serde(rename = "AGG_KEYS")]
    Aggregate,
}

/// The schema of a tablet.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TabletSchema {
    /// What rows of equal keys mean.
    #[serde(default)]
    pub keys_type: KeysType,
    /// Columns in the order of the table.
    pub columns: Vec<SchemaColumn>,
    /// How many of the first sort columns are in the short key.
    #[serde(default)]
    pub num_short_key_columns: usize,
    /// Whether a unique table marks replaced rows when it writes.
    #[serde(default)]
    pub merge_on_write: bool,
    /// Unique ids of the columns rows are sorted by instead of the keys.
    #[serde(default)]
    pub cluster_key_uids: Vec<i32>,
    /// Where segments describe their columns; the older way if it is not said.
    #[serde(default)]
    pub storage_format: Option<StorageFormat>,
    /// Codec of pages; LZ4F if it is not said.
    #[serde(default, deserialize_with = "compression", serialize_with = "compression_name")]
    pub compression: Option<Compression>,
    /// How often a bloom filter may be wrong.
    #[serde(default)]
    pub bf_fpp: Option<f64>,
    /// Bytes of a data page.
    #[serde(default)]
    pub storage_page_size: Option<u32>,
    /// Bytes of a dictionary page.
    #[serde(default)]
    pub storage_dict_page_size: Option<u32>,
    /// Bytes of a page of the row store.
    #[serde(default)]
    pub row_store_page_size: Option<u32>,
    /// Unique ids of the columns in the row store; all if there are none.
    #[serde(default)]
    pub row_store_column_unique_ids: Vec<i32>,
    /// Indexes of columns.
    #[serde(default)]
    pub indexes: Vec<SchemaIndex>,
    /// Columns that have a sequence of their own, in a unique table that merges when it is read.
    #[serde(default, rename = "seq_map")]
    pub sequence_groups: Vec<SequenceGroup>,
}

/// Columns of a row that are replaced together: of rows of equal keys, those with the largest sequence count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SequenceGroup {
    /// Unique id of the column that decides. It belongs to the group.
    pub sequence_column: i32,
    /// Unique ids of the other columns.
    #[serde(default)]
    pub columns_in_group: Vec<i32>,
}

/// An index of a column that the table declares.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SchemaIndex {
    /// Its id.
    #[serde(default)]
    pub index_id: i64,
    /// Its name.
    #[serde(default)]
    pub index_name: String,
    /// `INVERTED`, `NGRAM_BF`, `ANN` …
    #[serde(default)]
    pub index_type: String,
    /// The columns it is of.
    #[serde(default, rename = "col_unique_id")]
    pub column_unique_ids: Vec<i32>,
    /// What else is declared, by name.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
}

/// A column of a tablet.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SchemaColumn {
    /// Joins the column to the columns of segments, whatever its name and place.
    pub unique_id: i32,
    /// Its name.
    pub name: String,
    /// Its type, in Doris's words.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Whether it belongs to the key.
    #[serde(default)]
    pub is_key: bool,
    /// Whether it may be null.
    #[serde(default)]
    pub is_nullable: bool,
    /// How values of equal keys are aggregated.
    #[serde(default)]
    pub aggregation: Option<String>,
    /// Declared length in bytes.
    #[serde(default)]
    pub length: i32,
    /// Bytes of it in the short key.
    #[serde(default)]
    pub index_length: i32,
    /// Digits of a decimal.
    #[serde(default)]
    pub precision: i32,
    /// Digits after the point.
    #[serde(default)]
    pub frac: i32,
    /// Whether queries see it.
    #[serde(default = "visible")]
    pub visible: bool,
    /// Text of the value of rows written before the column was added.
    #[serde(default)]
    pub default_value: Option<String>,
    /// The columns it is made of.
    #[serde(default)]
    pub children: Vec<SchemaColumn>,
    /// Whether its pages have bloom filters.
    #[serde(default)]
    pub is_bf_column: bool,
    /// Whether it has a bitmap index. Segments are not written with one.
    #[serde(default)]
    pub has_bitmap_index: bool,
    /// Whether what the function of an AGG_STATE gives may be null.
    #[serde(default)]
    pub result_is_nullable: bool,
    /// Version of the code that made an AGG_STATE.
    #[serde(default)]
    pub be_exec_version: Option<i32>,
    /// How many paths of a VARIANT have columns of their own; any number if 0.
    #[serde(default)]
    pub variant_max_subcolumns_count: Option<i32>,
}

fn visible() -> bool {
    true
}

fn compression<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Compression>, D::Error> {
    let Some(name) = Option::<String>::deserialize(json)? else { return Ok(None) };
    match Compression::from_name(&name) {
        Some(codec) => Ok(Some(codec)),
        None => Err(serde::de::Error::custom(format!("no codec {name:?}"))),
    }
}

fn compression_name<S: Serializer>(codec: &Option<Compression>, json: S) -> Result<S::Ok, S::Error> {
    codec.map(Compression::name).serialize(json)
}

impl SchemaIndex {
    /// A property that is a small number.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        let number = self.properties.get(name)?.parse().ok()?;
        (1..=1 << 16).contains(&number).then_some(number)
    }
}

impl TabletSchema {
    /// The index of the parts of a column's texts.
    pub(crate) fn ngram_index(&self, unique_id: i32) -> Option<&SchemaIndex> {
        self.indexes.iter().find(|index| {
            index.index_type.eq_ignore_ascii_case("NGRAM_BF") && index.column_unique_ids.contains(&unique_id)
        })
    }

    /// How many characters those parts have.
    pub(crate) fn gram_size(&self, unique_id: i32) -> Option<usize> {
        self.ngram_index(unique_id)?.number("gram_size")
    }

    /// Parses the JSON form.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if it is no such JSON, or two columns have one id or one name.
    pub fn parse_json(json: &[u8]) -> Result<Self> {
        let schema: Self = serde_json::from_slice(json)
            .map_err(|error| Error::invalid(format!("no schema of a Doris tablet: {error}")))?;
        for (number, column) in schema.columns.iter().enumerate() {
            let same = |other: &SchemaColumn| {
                other.name == column.name || (other.unique_id == column.unique_id && column.unique_id >= 0)
            };
            if schema.columns.iter().skip(number.saturating_add(1)).any(same) {
                let message =
                    format!("two columns are called \"{}\" or have id {}", column.name, column.unique_id);
                return Err(Error::invalid(message));
            }
        }
        Ok(schema)
    }

    /// The JSON form, which [`TabletSchema::parse_json`] reads.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a number of it has no form in JSON.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        serde_json::to_vec_pretty(self).map_err(|error| Error::internal(format!("a schema as JSON: {error}")))
    }

    /// The same without bitmap indexes, as segments are written.
    #[must_use]
    pub fn without_bitmap_indexes(&self) -> Self {
        let mut schema = self.clone();
        schema.columns.iter_mut().for_each(|column| column.has_bitmap_index = false);
        schema
    }

    /// The columns rows are sorted by.
    pub(crate) fn sort_columns(&self) -> Vec<&SchemaColumn> {
        if self.cluster_key_uids.is_empty() {
            return self.columns.iter().filter(|column| column.is_key).collect();
        }
        let by_id = |id: &i32| self.columns.iter().find(|column| column.unique_id == *id);
        self.cluster_key_uids.iter().filter_map(by_id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_are_unique() {
        let column = |id: i32, name: &str| format!(r#"{{"unique_id":{id},"name":"{name}","type":"INT"}}"#);
        let schema =
            |a: &str, b: &str| TabletSchema::parse_json(format!(r#"{{"columns":[{a},{b}]}}"#).as_bytes());
        assert!(schema(&column(1, "a"), &column(2, "b")).is_ok());
        assert!(schema(&column(1, "a"), &column(1, "b")).is_err());
        assert!(schema(&column(1, "a"), &column(2, "a")).is_err());
        assert!(TabletSchema::parse_json(b"[1]").is_err());
    }

    #[test]
    fn json_says_all_of_it() {
        let schema = TabletSchema::parse_json(
            br#"{"keys_type": "UNIQUE_KEYS", "num_short_key_columns": 1, "compression": "ZSTD", "storage_format": "V3",
                "bf_fpp": 0.01, "merge_on_write": true, "columns": [
                {"unique_id": 0, "name": "id", "type": "INT", "is_key": true},
                {"unique_id": 1, "name": "list", "type": "ARRAY", "is_nullable": true, "default_value": "[]", "children": [
                    {"unique_id": 2, "name": "item", "type": "DECIMAL64", "precision": 18, "frac": 4}]},
                {"unique_id": 3, "name": "hidden", "type": "BIGINT", "visible": false, "has_bitmap_index": true}],
                "indexes": [{"index_id": 7, "index_type": "NGRAM_BF", "col_unique_id": [1], "properties": {"gram_size": "3"}}]}"#,
        )
        .unwrap();
        assert_eq!(TabletSchema::parse_json(&schema.to_json().unwrap()).unwrap(), schema);
    }
}
