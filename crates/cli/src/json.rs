//! Facts as JSON.

use std::io::{self, Write};
use std::path::Path;

use pilaster::core::describe::Node;
use pilaster::{AtomicFile, Error, Result};
use serde_json::{Map, Value, json};

/// Prints one document to stdout.
pub(crate) fn print(value: &Value) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(pretty(value)?.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Writes one document to a file, which appears when it is complete.
pub(crate) fn save(path: &Path, value: &Value) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(pretty(value)?.as_bytes())?;
    file.commit()
}

fn pretty(value: &Value) -> Result<String> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Error::internal(format!("json: {error}")))?;
    Ok(text + "\n")
}

/// A structure with its facts and everything inside it.
pub(crate) fn node(node: &Node) -> Value {
    let mut object = Map::new();
    object.insert("name".into(), json!(node.name));
    object.insert("bytes".into(), json!(node.bytes));
    if !node.facts.is_empty() {
        let facts = node.facts.iter().map(|(name, value)| json!({"name": name, "value": value}));
        object.insert("facts".into(), facts.collect());
    }
    if !node.children.is_empty() {
        object.insert("children".into(), node.children.iter().map(self::node).collect());
    }
    Value::Object(object)
}
