//! A small table of every key model: three loads, of which the second replaces rows of the first, and the third deletes some
//! where keys can be deleted.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int8Array, Int64Array, ListArray, RecordBatch, StringArray};
use pilaster_core::{Location, Result};
use pilaster_doris::TabletSchema;
use pilaster_doris::tablet::{TabletSummary, TabletWriteOptions, TabletWriter};
use serde_json::{Value, json};

pub const SIGN: &str = "__DORIS_DELETE_SIGN__";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    Duplicate,
    MergeOnRead,
    MergeOnWrite,
    Aggregate,
}

pub const MODELS: [Model; 4] = [Model::Duplicate, Model::MergeOnRead, Model::MergeOnWrite, Model::Aggregate];

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    key: i64,
    word: Option<String>,
    value: i64,
    list: Option<Vec<i64>>,
    is_deleted: bool,
}

impl Model {
    /// Name of its folder among the files for tests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::MergeOnRead => "merge-on-read",
            Self::MergeOnWrite => "merge-on-write",
            Self::Aggregate => "aggregate",
        }
    }

    fn can_delete(self) -> bool {
        matches!(self, Self::MergeOnRead | Self::MergeOnWrite)
    }

    pub fn schema_json(self) -> Value {
        let value = |id: i32, name: &str, kind: &str, length: i32, function: &str| {
            let mut column =
                json!({"unique_id": id, "name": name, "type": kind, "length": length, "is_nullable": true});
            if self == Self::Aggregate {
                column["aggregation"] = json!(function);
            }
            column
        };
        let mut columns = vec![
            json!({"unique_id": 0, "name": "key", "type": "BIGINT", "is_key": true}),
            value(1, "word", "VARCHAR", 50, "REPLACE"),
            value(2, "value", "BIGINT", 8, "SUM"),
        ];
        if self.can_delete() {
            columns.push(json!({"unique_id": 3, "name": SIGN, "type": "TINYINT", "visible": false}));
        }
        if self == Self::Duplicate {
            let item = json!({"unique_id": 5, "name": "item", "type": "BIGINT", "is_nullable": true});
            columns.push(json!({"unique_id": 4, "name": "list", "type": "ARRAY", "is_nullable": true, "children": [item]}));
        }
        let keys = match self {
            Self::Duplicate => "DUP_KEYS",
            Self::Aggregate => "AGG_KEYS",
            _ => "UNIQUE_KEYS",
        };
        json!({
            "keys_type": keys,
            "merge_on_write": self == Self::MergeOnWrite,
            "num_short_key_columns": 1,
            "columns": columns,
        })
    }

    pub fn schema(self) -> TabletSchema {
        TabletSchema::parse_json(self.schema_json().to_string().as_bytes()).unwrap()
    }

    /// The three loads of a table of so many keys.
    pub fn loads(self, keys: i64) -> Vec<Vec<Row>> {
        let row = |key: i64, version: i64, is_deleted: bool| Row {
            key,
            word: (key % 7 != 0).then(|| format!("word {}", key % 20)),
            value: key * 10 + version,
            list: (key % 5 != 0).then(|| (0..key % 4).map(|item| key + item).collect()),
            is_deleted,
        };
        vec![
            (0..keys).map(|key| row(key, 0, false)).collect(),
            (0..keys).step_by(20).map(|key| row(key, 1, false)).collect(),
            (5..keys).step_by(30).map(|key| row(key, 2, self.can_delete())).collect(),
        ]
    }

    /// The rows as a query gives them, by the rule of the model.
    pub fn answer(self, keys: i64) -> Vec<Row> {
        let mut rows: Vec<Row> = self.loads(keys).concat();
        rows.sort_by_key(|row| row.key);
        if self == Self::Duplicate {
            return rows;
        }
        let mut by_key = BTreeMap::<i64, Row>::new();
        for mut row in rows {
            if let (Self::Aggregate, Some(before)) = (self, by_key.get(&row.key)) {
                row.value += before.value;
            }
            by_key.insert(row.key, row);
        }
        by_key.into_values().filter(|row| !row.is_deleted).collect()
    }

    /// A row as the files for tests have it.
    pub fn json(self, row: &Row, with_hidden: bool) -> Value {
        let mut object = json!({"key": row.key, "word": row.word, "value": row.value});
        if with_hidden && self.can_delete() {
            object[SIGN] = json!(i8::from(row.is_deleted));
        }
        if self == Self::Duplicate {
            object["list"] = json!(row.list);
        }
        object
    }

    fn batch(self, schema: &TabletSchema, rows: &[Row]) -> RecordBatch {
        let arrays = schema.columns.iter().map(|column| {
            let rows = rows.iter();
            let array: ArrayRef = match column.name.as_str() {
                "key" => Arc::new(rows.map(|row| row.key).collect::<Int64Array>()),
                "word" => Arc::new(rows.map(|row| row.word.clone()).collect::<StringArray>()),
                "value" => Arc::new(rows.map(|row| row.value).collect::<Int64Array>()),
                "list" => Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(
                    rows.map(|row| row.list.clone().map(|list| list.into_iter().map(Some))),
                )),
                _ => Arc::new(rows.map(|row| i8::from(row.is_deleted)).collect::<Int8Array>()),
            };
            (column.name.clone(), array, column.is_nullable)
        });
        RecordBatch::try_from_iter_with_nullable(arrays).unwrap()
    }

    /// Writes the table, each load as a rowset.
    pub fn write(self, target: &Path, keys: i64, options: &TabletWriteOptions) -> TabletSummary {
        self.try_write(&target.into(), keys, options).unwrap()
    }

    /// The same, where it may go wrong.
    pub fn try_write(
        self,
        target: &Location,
        keys: i64,
        options: &TabletWriteOptions,
    ) -> Result<TabletSummary> {
        let schema = self.schema();
        let mut writer = TabletWriter::create(target, &schema, options)?;
        for load in self.loads(keys) {
            writer.write(&self.batch(&schema, &load))?;
            writer.finish_rowset()?;
        }
        writer.finish()
    }
}
