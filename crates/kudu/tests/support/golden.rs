//! The golden cases: folders of real tablet servers, with the rows its client scanned.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::container::Blocks;

/// A case folder.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    pub folder: PathBuf,
    description: Value,
    pub blocks: Blocks,
    pub listed: Vec<Listed>,
}

/// One line of the list of blocks that Kudu's own tool made.
#[derive(Debug, Clone)]
pub struct Listed {
    pub table: String,
    pub tablet: String,
    pub rowset: String,
    pub block: u64,
    pub kind: String,
    pub column: String,
    pub data_type: String,
    pub is_nullable: bool,
    pub encoding: String,
    pub compression: String,
    pub num_values: u64,
    pub size: u64,
    /// First and last timestamp, and number of deletes, of a delta file.
    pub delta_statistics: Option<((u64, u64), u64)>,
}

/// A table of a case.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    expected: PathBuf,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub is_key: bool,
    pub is_float: bool,
    pub scale: usize,
}

/// Blocks by what they are, of one rowset.
pub type Rowset<'a> = BTreeMap<(&'a str, &'a str), &'a Listed>;

impl Case {
    pub fn open(folder: &Path) -> Self {
        let description: Value =
            serde_json::from_slice(&std::fs::read(folder.join("case.json")).unwrap()).unwrap();
        let data: Vec<_> = description["dirs"]["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|dir| folder.join(dir.as_str().unwrap()).join("data"))
            .collect();
        let list = std::fs::read_to_string(folder.join("dumps/fs-list.tsv")).unwrap();
        let listed = list.lines().skip(1).filter(|line| !line.is_empty()).map(Listed::parse).collect();
        Self {
            name: folder.file_name().unwrap().to_str().unwrap().to_string(),
            folder: folder.to_path_buf(),
            description,
            blocks: Blocks::find(&data),
            listed,
        }
    }

    /// All cases in `root`, by name.
    pub fn all(root: &Path) -> Vec<Self> {
        let mut folders: Vec<_> = std::fs::read_dir(root)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.join("case.json").is_file())
            .collect();
        folders.sort();
        folders.iter().map(|folder| Self::open(folder)).collect()
    }

    pub fn tables(&self) -> Vec<Table> {
        let text = |value: &Value| value.as_str().unwrap().to_string();
        let tables = self.description["tables"].as_array().unwrap();
        tables
            .iter()
            .map(|table| Table {
                name: text(&table["name"]),
                expected: self.folder.join("expected").join(text(&table["expected"])),
                columns: table["columns"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|column| Column {
                        name: text(&column["name"]),
                        is_key: column["key"].as_bool().unwrap(),
                        is_float: matches!(column["type"].as_str().unwrap(), "float" | "double"),
                        scale: column["scale"].as_u64().unwrap_or(0) as usize,
                    })
                    .collect(),
            })
            .collect()
    }

    /// The rowsets of a table: for each the blocks by kind and column.
    pub fn rowsets(&self, table: &str) -> Vec<Rowset<'_>> {
        let mut rowsets = BTreeMap::<(&str, &str), Rowset<'_>>::new();
        for listed in self.listed.iter().filter(|listed| listed.table == table) {
            let key = (listed.tablet.as_str(), listed.rowset.as_str());
            rowsets.entry(key).or_default().insert((&listed.kind, &listed.column), listed);
        }
        rowsets.into_values().collect()
    }
}

impl Listed {
    fn parse(line: &str) -> Self {
        let fields: Vec<_> = line.split('\t').collect();
        let text = |index: usize| fields[index].to_string();
        Self {
            table: text(0),
            tablet: text(1),
            rowset: text(3),
            block: fields[4].parse().unwrap(),
            kind: text(5),
            column: text(6),
            data_type: text(8),
            is_nullable: fields[9] == "true",
            encoding: text(10),
            compression: text(11),
            num_values: fields[12].parse().unwrap(),
            size: fields[13].parse().unwrap(),
            delta_statistics: fields.get(17).filter(|text| !text.is_empty()).map(|text| {
                let numbers: Vec<u64> =
                    text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
                ((numbers[0], numbers[1]), numbers[2])
            }),
        }
    }
}

impl Table {
    pub fn expected(&self) -> Vec<Value> {
        json_lines(&self.expected)
    }
}

/// The rows of a `.jsonl.gz` file.
pub fn json_lines(path: &Path) -> Vec<Value> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
