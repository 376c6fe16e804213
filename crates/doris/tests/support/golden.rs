//! The golden cases: segments of real Doris, with their schema and the rows they hold.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::Result;
use pilaster_doris::TabletSchema;
use pilaster_doris::segment::{SegmentReader, SegmentReaderOptions};
use serde_json::Value;

/// One segment.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    pub bytes: Vec<u8>,
    pub schema: Arc<TabletSchema>,
    pub rows: Vec<Value>,
}

impl Case {
    fn new(name: String, segment: &Path, schema: &Path, rows: &Path) -> Self {
        Self {
            name,
            bytes: std::fs::read(segment).unwrap(),
            schema: Arc::new(TabletSchema::parse_json(&std::fs::read(schema).unwrap()).unwrap()),
            rows: json_lines(rows),
        }
    }

    /// All segments, of today's formats and of 0.12.
    pub fn all(root: &Path) -> Vec<Self> {
        let mut cases = Vec::new();
        for folder in sorted(&root.join("segment")) {
            for segment in
                sorted(&folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "dat"))
            {
                let name = format!("{}/{}", file_name(&folder), file_name(&segment));
                let rows = segment.with_extension("rows.jsonl");
                cases.push(Self::new(name, &segment, &folder.join("schema.json"), &rows));
            }
        }
        for segment in
            sorted(&root.join("v012")).into_iter().filter(|path| path.extension().is_some_and(|e| e == "dat"))
        {
            let plain = segment.with_extension("rows.jsonl");
            let rows = if plain.is_file() { plain } else { segment.with_extension("rows.jsonl.gz") };
            cases.push(Self::new(
                file_name(&segment),
                &segment,
                &segment.with_extension("schema.json"),
                &rows,
            ));
        }
        cases
    }

    /// The cases whose name holds `part`.
    pub fn some(root: &Path, part: &str) -> Vec<Self> {
        Self::all(root).into_iter().filter(|case| case.name.contains(part)).collect()
    }

    pub fn options(&self) -> SegmentReaderOptions {
        SegmentReaderOptions::default().with_schema(Some(Arc::clone(&self.schema))).with_hidden(true)
    }

    pub fn open(&self) -> Result<SegmentReader> {
        SegmentReader::open_with_options(super::memory(&self.name, self.bytes.clone()), &self.options())
    }

    /// The Doris type of a column.
    pub fn type_of(&self, column: &str) -> &str {
        &self.schema.columns.iter().find(|c| c.name == column).unwrap().type_name
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_string()
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn json_lines(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).unwrap();
    let mut text = String::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
