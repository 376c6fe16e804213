//! Golden files: bytes, expected rows, and the options they were written with.

use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use pilaster_redfile::metadata::Compression;
use pilaster_redfile::{EncodingChoice, RedfileWriterOptions};
use serde_json::Value;

/// A golden file.
#[derive(Debug)]
pub struct Golden {
    pub name: String,
    pub path: PathBuf,
}

impl Golden {
    /// Every `.red` file of a folder.
    pub fn all(folder: &Path) -> Vec<Self> {
        let mut found: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "red"))
            .map(|path| Self { name: path.file_stem().unwrap().to_str().unwrap().to_string(), path })
            .collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    pub fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    /// The expected rows, in physical terms.
    pub fn rows(&self) -> Option<Vec<Value>> {
        let text = fs::read_to_string(self.path.with_extension("rows.jsonl")).ok()?;
        Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    /// Note, options, schema and layout.
    pub fn info(&self) -> Option<Value> {
        let text = fs::read_to_string(self.path.with_extension("info.json")).ok()?;
        Some(serde_json::from_str(&text).unwrap())
    }

    /// The same table as Arrow has it.
    pub fn arrow(&self) -> Option<RecordBatch> {
        let file = fs::File::open(self.path.with_extension("arrow")).ok()?;
        let reader = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
        let schema = reader.schema();
        let batches: Vec<_> = reader.map(|batch| batch.unwrap()).collect();
        Some(match batches.as_slice() {
            [only] => only.clone(),
            batches => arrow_select::concat::concat_batches(&schema, batches).unwrap(),
        })
    }
}

/// The options a golden was written with; keys and values of the file are its own matter.
pub fn writer_options(info: &Value) -> RedfileWriterOptions {
    let options = &info["options"];
    let flag = |name: &str| options[name].as_bool().unwrap_or(true);
    let mut made = RedfileWriterOptions::default()
        .with_page_bytes(options["page_size"].as_u64().unwrap_or(8192) as usize)
        .with_codec(Compression::ALL[options["codec"].as_u64().unwrap_or(0) as usize])
        .with_encoding(match options["encoding"].as_str() {
            Some("plain") => EncodingChoice::Plain,
            Some("gvi") => EncodingChoice::GroupVarInt,
            _ => EncodingChoice::Auto,
        })
        .with_replica(flag("replicate"))
        .with_index_pages(flag("index"))
        .with_statistics(flag("stats"))
        .with_checksums(flag("crc"))
        .with_row_group_extent(flag("rgext"))
        .with_page_row_counts(flag("numrows"))
        .with_checkpoint_interval(options["checkpoint"].as_u64().unwrap_or(0) as u32)
        .with_created_by(options["created_by"].as_str().map(str::to_string));
    if let Some(marker) = options["marker"].as_str() {
        let bytes: Vec<u8> = (0..marker.len() / 2)
            .map(|n| u8::from_str_radix(&marker[2 * n..2 * n + 2], 16).unwrap())
            .collect();
        made = made.with_sync_marker(bytes.try_into().unwrap());
    }
    for pair in options["kv"].as_array().into_iter().flatten() {
        made = made.with_key_value(pair[0].as_str().unwrap(), pair[1].as_str().map(str::to_string));
    }
    made
}
