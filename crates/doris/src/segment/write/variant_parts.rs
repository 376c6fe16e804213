//! JSON documents taken apart: which path holds what, and what is left over.
//!
//! ```text
//! {"a": 1, "b": {"c": [2, 3], "d": null}}     a: 1     b.c: [2, 3]     left over: {"b": {"d": null}}
//! ```
//!
//! Left over is what a column of a path cannot say: nulls, objects without members, keys with a dot, and values that are no
//! object at all.

use std::collections::{BTreeMap, HashMap};

use pilaster_core::{Error, Result};

use super::values::JSON_DEPTH;
use crate::jsonb::{self, Container, Input, Value};
use crate::segment::types::FieldType;

/// What the values of a path are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    BigInt,
    Double,
    Bool,
    Text,
    /// An array of items of one kind, nulls among them; `None` if there was no item.
    List(Option<Item>),
    /// Anything.
    Json,
}

/// What the items of an array are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    BigInt,
    Double,
    Bool,
    Text,
}

impl Item {
    pub fn field_type(self) -> FieldType {
        match self {
            Self::BigInt => FieldType::BigInt,
            Self::Double => FieldType::Double,
            Self::Bool => FieldType::Bool,
            Self::Text => FieldType::String,
        }
    }

    pub fn of_type(field_type: FieldType) -> Option<Self> {
        match field_type {
            FieldType::BigInt => Some(Self::BigInt),
            FieldType::Double => Some(Self::Double),
            FieldType::Bool => Some(Self::Bool),
            FieldType::String => Some(Self::Text),
            _ => None,
        }
    }
}

impl Kind {
    fn of(value: Value<'_>) -> Result<Self> {
        Ok(match value {
            Value::Bool(_) => Self::Bool,
            Value::Integer(integer) if i64::try_from(integer).is_ok() => Self::BigInt,
            Value::Double(_) => Self::Double,
            Value::String(_) => Self::Text,
            Value::Array(items) => Self::of_items(items)?,
            _ => Self::Json,
        })
    }

    fn of_items(mut items: Input<'_>) -> Result<Self> {
        let mut kind = None;
        while !items.is_empty() {
            let (value, _) = items.value()?;
            let item = match (value, Self::of(value)?) {
                (Value::Null, _) => continue,
                (_, Self::BigInt) => Item::BigInt,
                (_, Self::Double) => Item::Double,
                (_, Self::Bool) => Item::Bool,
                (_, Self::Text) => Item::Text,
                _ => return Ok(Self::Json),
            };
            if kind.is_some_and(|known| known != item) {
                return Ok(Self::Json);
            }
            kind = Some(item);
        }
        Ok(Self::List(kind))
    }

    /// A kind that holds the values of both without a change.
    pub fn join(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::List(None), list @ Self::List(_)) | (list @ Self::List(_), Self::List(None)) => list,
            _ => Self::Json,
        }
    }
}

/// The values of one path.
#[derive(Debug)]
pub(super) struct PathValues {
    pub kind: Kind,
    /// Row of each value and its JSONB, without the version.
    pub values: Vec<(usize, Vec<u8>)>,
}

/// Documents taken apart.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub paths: BTreeMap<Vec<String>, PathValues>,
    pub rows: usize,
}

impl Parts {
    /// Adds the document of a row; gives what is left over of it, nothing if nothing is.
    pub fn add(&mut self, text: &str) -> Result<Vec<u8>> {
        let document = jsonb::from_text(text, JSON_DEPTH)?;
        let row = self.rows;
        self.rows = self.rows.saturating_add(1);
        let Some(mut input) = jsonb::open(&document)? else { return Ok(document) };
        let (value, _) = input.value()?;
        let Value::Object(members) = value else { return Ok(document) };
        let mut rest = vec![jsonb::VERSION];
        let is_left = self.split(members, &mut Vec::new(), row, &mut rest)?;
        Ok(if is_left { rest } else { Vec::new() })
    }

    /// A row without a document.
    pub fn add_null(&mut self) {
        self.rows = self.rows.saturating_add(1);
    }

    /// Takes an object apart and appends what is left over, if anything is, to `rest`.
    fn split(
        &mut self,
        mut members: Input<'_>,
        path: &mut Vec<String>,
        row: usize,
        rest: &mut Vec<u8>,
    ) -> Result<bool> {
        let start = rest.len();
        let left = Container::object(rest);
        let mut is_left = false;
        let mut all = Vec::new();
        while !members.is_empty() {
            all.push((members.key()?, members.value()?));
        }
        let last: HashMap<&str, usize> =
            all.iter().enumerate().map(|(number, (key, _))| (key.as_str(), number)).collect();
        for (number, (key, (value, bytes))) in all.iter().enumerate() {
            // Of equal keys the last counts, as it does for all readers of JSON.
            if last.get(key.as_str()) != Some(&number) {
                continue;
            }
            let before = rest.len();
            let is_plain = !key.is_empty() && !key.contains('.') && !key.starts_with("__DORIS_VARIANT_");
            match value {
                Value::Object(inner) if is_plain && !inner.is_empty() => {
                    jsonb::append_key(key, rest)?;
                    path.push(key.clone());
                    let is_inner_left = self.split(*inner, path, row, rest)?;
                    path.pop();
                    if !is_inner_left {
                        rest.truncate(before);
                    }
                    is_left |= is_inner_left;
                }
                Value::Null | Value::Object(_) => {
                    jsonb::append_key(key, rest)?;
                    rest.extend_from_slice(bytes);
                    is_left = true;
                }
                _ if is_plain => {
                    path.push(key.clone());
                    self.push(path, row, *value, bytes)?;
                    path.pop();
                }
                _ => {
                    jsonb::append_key(key, rest)?;
                    rest.extend_from_slice(bytes);
                    is_left = true;
                }
            }
        }
        if is_left {
            left.end(rest)?;
        } else {
            rest.truncate(start);
        }
        Ok(is_left)
    }

    fn push(&mut self, path: &[String], row: usize, value: Value<'_>, bytes: &[u8]) -> Result<()> {
        let kind = Kind::of(value)?;
        let known = match self.paths.get_mut(path) {
            Some(known) => known,
            None => self.paths.entry(path.to_vec()).or_insert(PathValues { kind, values: Vec::new() }),
        };
        known.kind = known.kind.join(kind);
        known.values.push((row, bytes.to_vec()));
        Ok(())
    }
}

/// The first value of JSONB without a version.
pub(super) fn value_of(bytes: &[u8]) -> Result<Value<'_>> {
    let mut input = jsonb::bare(bytes);
    Ok(input.value()?.0)
}

/// A cell of the map of rare paths: see [`crate::segment`]'s `variant_cell`.
pub(super) fn sparse_cell(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut cell = Vec::new();
    append_sparse(value_of(bytes)?, bytes, &mut cell)?;
    Ok(cell)
}

fn append_sparse(value: Value<'_>, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    /// The type that stands for null.
    const NONE: u8 = 22;
    let tag = |field_type: FieldType| u8::try_from(field_type.number()).unwrap_or_default();
    match value {
        Value::Null => out.push(NONE),
        Value::Bool(flag) => out.extend([tag(FieldType::Bool), u8::from(flag)]),
        Value::Double(double) => {
            out.push(tag(FieldType::Double));
            out.extend(double.to_le_bytes());
        }
        Value::String(text) => {
            out.push(tag(FieldType::String));
            out.extend((text.len() as u64).to_le_bytes());
            out.extend_from_slice(text);
        }
        Value::Integer(integer) if i64::try_from(integer).is_ok() => {
            out.push(tag(FieldType::BigInt));
            out.extend(i64::try_from(integer).unwrap_or_default().to_le_bytes());
        }
        Value::Array(items) if matches!(Kind::of_items(items)?, Kind::List(Some(_))) => {
            out.push(tag(FieldType::Array));
            let mut count = 0u64;
            let mut cells = Vec::new();
            let mut items = items;
            while !items.is_empty() {
                let (value, bytes) = items.value()?;
                append_sparse(value, bytes, &mut cells)?;
                count = count.saturating_add(1);
            }
            out.extend(count.to_le_bytes());
            out.extend(cells);
        }
        Value::Integer(_) | Value::Array(_) | Value::Object(_) => {
            out.push(tag(FieldType::Jsonb));
            out.extend((bytes.len() as u64).saturating_add(1).to_le_bytes());
            out.push(jsonb::VERSION);
            out.extend_from_slice(bytes);
        }
        Value::Other => return Err(Error::invalid("a value that JSON does not have")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::variant_cell;
    use pilaster_core::Limits;

    #[test]
    fn documents_are_taken_apart() {
        let mut parts = Parts::default();
        let rest = parts.add(r#"{"a":1,"b":{"c":[2,null],"d":null},"e.f":3,"a":4,"g":{}}"#).unwrap();
        assert_eq!(jsonb::to_text(&rest, 8).unwrap(), r#"{"b":{"d":null},"e.f":3,"g":{}}"#);
        assert_eq!(parts.add("{}").unwrap(), b"");
        assert_eq!(jsonb::to_text(&parts.add("[1]").unwrap(), 8).unwrap(), "[1]");
        assert_eq!(parts.add(r#"{"a":"x","b":{"c":[]}}"#).unwrap(), b"");
        let kinds: Vec<_> = parts.paths.iter().map(|(path, values)| (path.join("."), values.kind)).collect();
        let expected = [("a".to_string(), Kind::Json), ("b.c".to_string(), Kind::List(Some(Item::BigInt)))];
        assert_eq!(kinds, expected);
        let rows: Vec<_> = parts.paths[&vec!["a".to_string()]].values.iter().map(|(row, _)| *row).collect();
        assert_eq!((rows, parts.rows), (vec![0, 3], 4));
    }

    #[test]
    fn rare_values_read_back() {
        for text in [
            "1",
            "-1.5",
            "true",
            "\"x\"",
            "[1,null]",
            "[]",
            "[1,\"x\"]",
            "9223372036854775808",
            "{\"a\":[1]}",
        ] {
            let document = jsonb::from_text(text, 8).unwrap();
            let cell = sparse_cell(&document[1..]).unwrap();
            assert_eq!(variant_cell::to_text(&cell, &Limits::default()).unwrap(), text);
        }
    }
}
