//! JSON lines: one object per line; or one array of objects, each of which counts as a line.
//!
//! Types are found by reading the whole file once, so that no later row can contradict them or bring a column nobody
//! knows of; with a schema given, a line that does not fit is an error that names it.

use std::io::{self, BufRead, BufReader};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_json::ReaderBuilder;
use arrow_json::reader::Decoder;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use pilaster_core::{BatchReader, Dataset, Error, Limits, Result, ScanRequest, SourceRef};
use serde_json::Value;

use super::csv::skip_mark;
use super::json_array::ElementLines;
use super::rewrite::Rewritten;
use super::whole::front_to_back;
use crate::open::OpenOptions;
use crate::stream;

/// A file of JSON lines.
#[derive(Debug)]
pub struct JsonLinesDataset {
    source: SourceRef,
    schema: SchemaRef,
}

impl JsonLinesDataset {
    /// Finds out the columns and types, unless the options give a schema.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if a line is no JSON object or has another type than the lines before.
    pub fn open(source: SourceRef, options: &OpenOptions) -> Result<Self> {
        let schema = match options.schema() {
            Some(schema) => Arc::clone(schema),
            None => infer(&source, options.limits())?,
        };
        Ok(Self { source, schema })
    }
}

impl Dataset for JsonLinesDataset {
    front_to_back!("json lines");

    fn read(&self, request: &ScanRequest) -> Result<BatchReader> {
        stream::check_single_split(request)?;
        let needed = stream::needed_columns(request, &self.schema)?;
        // Every column is parsed, so that a value that does not fit is found whoever asks.
        let batch_size = request.batch_size.max(1);
        let batches = Lines {
            lines: lines(&self.source)?,
            decoder: decoder(&self.schema, batch_size)?,
            source: Arc::clone(&self.source),
            schema: Arc::clone(&self.schema),
            pending: Vec::new(),
            batch_size,
            line: 0,
            is_done: false,
        };
        let input = batches.map(move |batch| Ok(batch?.project(&needed)?));
        stream::apply(input, &self.schema, request)
    }
}

/// The objects, one on each line.
fn lines(source: &SourceRef) -> Result<Box<dyn BufRead + Send>> {
    let mut input = BufReader::new(skip_mark(source)?);
    let is_array = input.fill_buf()?.trim_ascii_start().starts_with(b"[");
    Ok(match is_array {
        true => Box::new(BufReader::new(Rewritten::new(input, ElementLines::default()))),
        false => Box::new(input),
    })
}

fn unreadable(source: &SourceRef, error: io::Error) -> Error {
    let error = match error.kind() {
        io::ErrorKind::InvalidData => Error::corrupt("objects, one on each line or in one array", error),
        _ => Error::from(error),
    };
    error.at(source.name(), 0, "")
}

/// A decoder that refuses columns the schema does not have.
fn decoder(schema: &SchemaRef, batch_size: usize) -> Result<Decoder, ArrowError> {
    ReaderBuilder::new(Arc::clone(schema)).with_batch_size(batch_size).with_strict_mode(true).build_decoder()
}

/// Batches decoded line by line, so that a failure is tied to its line.
struct Lines {
    lines: Box<dyn BufRead + Send>,
    decoder: Decoder,
    source: SourceRef,
    schema: SchemaRef,
    /// The lines of the batch, to find the one that does not fit.
    pending: Vec<u8>,
    batch_size: usize,
    line: u64,
    is_done: bool,
}

impl Lines {
    fn try_next(&mut self) -> Result<Option<RecordBatch>> {
        let first = self.line.saturating_add(1);
        self.pending.clear();
        while self.decoder.len() < self.batch_size {
            let start = self.pending.len();
            let read = self.lines.read_until(b'\n', &mut self.pending);
            if read.map_err(|error| unreadable(&self.source, error))? == 0 {
                break;
            }
            self.line = self.line.saturating_add(1);
            let line = self.pending.get(start..).unwrap_or_default();
            let used = self.decoder.decode(line).map_err(|error| self.misfit(self.line, error))?;
            if used < line.len() || self.decoder.has_partial_record() {
                let error =
                    Error::corrupt(format!("one whole JSON object in line {}", self.line), "another number");
                return Err(error.at(self.source.name(), 0, ""));
            }
        }
        self.decoder.flush().map_err(|error| self.locate(first, error))
    }

    /// Decodes the lines of a batch one by one to name the first that does not fit.
    fn locate(&self, first: u64, error: ArrowError) -> Error {
        let lines = self.pending.split(|byte| *byte == b'\n');
        for (number, line) in (first..).zip(lines) {
            let alone = decoder(&self.schema, 1).and_then(|mut decoder| {
                decoder.decode(line)?;
                decoder.flush()
            });
            if let Err(error) = alone {
                return self.misfit(number, error);
            }
        }
        Error::from(error).at(self.source.name(), 0, "")
    }

    fn misfit(&self, line: u64, error: ArrowError) -> Error {
        let expected = format!("line {line} to fit the schema");
        Error::corrupt(expected, error).at(self.source.name(), 0, "")
    }
}

impl Iterator for Lines {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let next = self.try_next();
        self.is_done = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}

/// Reads every line and gives each column the type that holds all of its values.
fn infer(source: &SourceRef, limits: &Limits) -> Result<SchemaRef> {
    let mut lines = lines(source)?;
    let mut kind = Kind::Object(Vec::new());
    let mut line = Vec::new();
    let mut number = 0u64;
    while lines.read_until(b'\n', &mut line).map_err(|error| unreadable(source, error))? > 0 {
        number = number.saturating_add(1);
        if !line.trim_ascii().is_empty() {
            let bad = |expected: &str, found: String| {
                Error::corrupt(format!("{expected} in line {number}"), found).at(source.name(), 0, "")
            };
            let value: Value =
                serde_json::from_slice(&line).map_err(|e| bad("a JSON object", e.to_string()))?;
            if !value.is_object() {
                return Err(bad("a JSON object", value.to_string()));
            }
            kind.add(&value, limits.depth).map_err(|found| bad("the types of the lines before", found))?;
        }
        line.clear();
    }
    match kind.data_type() {
        DataType::Struct(fields) if !fields.is_empty() => Ok(Arc::new(Schema::new(fields))),
        _ => Err(Error::invalid("has no columns: every object is empty").at(source.name(), 0, "")),
    }
}

/// What the values of a column have been so far.
#[derive(Debug)]
enum Kind {
    Null,
    Bool,
    Int,
    Unsigned,
    Float,
    Text,
    List(Box<Kind>),
    Object(Vec<(String, Kind)>),
}

impl Kind {
    /// Widens to hold `value` too; says what does not fit.
    fn add(&mut self, value: &Value, depth: u32) -> Result<(), String> {
        let Some(depth) = depth.checked_sub(1) else { return Err("values nested too deeply".to_string()) };
        match (&mut *self, value) {
            (_, Value::Null) => {}
            (Self::Null, value) => {
                *self = match value {
                    Value::Null => Self::Null,
                    Value::Bool(_) => Self::Bool,
                    Value::Number(number) if number.is_i64() => Self::Int,
                    Value::Number(number) if number.is_u64() => Self::Unsigned,
                    Value::Number(_) => Self::Float,
                    Value::String(_) => Self::Text,
                    Value::Array(_) => Self::List(Box::new(Self::Null)),
                    Value::Object(_) => Self::Object(Vec::new()),
                };
                if matches!(value, Value::Array(_) | Value::Object(_)) {
                    return self.add(value, depth);
                }
            }
            (Self::Bool, Value::Bool(_))
            | (Self::Text, Value::String(_))
            | (Self::Float, Value::Number(_)) => {}
            (Self::Int, Value::Number(number)) if number.is_i64() => {}
            (Self::Unsigned, Value::Number(number)) if number.is_u64() => {}
            (Self::Int | Self::Unsigned, Value::Number(number)) if number.is_f64() => *self = Self::Float,
            (Self::List(item), Value::Array(values)) => {
                for value in values {
                    item.add(value, depth)?;
                }
            }
            (Self::Object(fields), Value::Object(values)) => {
                for (name, value) in values {
                    let index = match fields.iter().position(|(known, _)| known == name) {
                        Some(index) => index,
                        None => {
                            fields.push((name.clone(), Self::Null));
                            fields.len().saturating_sub(1)
                        }
                    };
                    if let Some((_, kind)) = fields.get_mut(index) {
                        kind.add(value, depth).map_err(|found| format!("{found} under \"{name}\""))?;
                    }
                }
            }
            (_, value) => return Err(value.to_string()),
        }
        Ok(())
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Null | Self::Text => DataType::Utf8,
            Self::Bool => DataType::Boolean,
            Self::Int => DataType::Int64,
            Self::Unsigned => DataType::UInt64,
            Self::Float => DataType::Float64,
            Self::List(item) => DataType::List(Arc::new(Field::new("item", item.data_type(), true))),
            Self::Object(fields) => DataType::Struct(
                fields
                    .iter()
                    .map(|(name, kind)| Field::new(name, kind.data_type(), true))
                    .collect::<Fields>(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilaster_core::source::MemorySource;

    fn open(text: &str) -> Result<JsonLinesDataset> {
        JsonLinesDataset::open(
            Arc::new(MemorySource::new("a.jsonl", text.to_string())),
            &OpenOptions::default(),
        )
    }

    #[test]
    fn columns_of_all_lines_are_found() {
        let dataset = open("{\"a\":1}\n\n{\"b\":[{\"c\":null}],\"a\":null}\n{\"b\":[{\"c\":true}]}").unwrap();
        let types: Vec<_> =
            dataset.schema.fields().iter().map(|f| (f.name().as_str(), f.data_type())).collect();
        assert_eq!(types[0], ("a", &DataType::Int64));
        assert_eq!(types[1].0, "b");
        assert!(types[1].1.to_string().contains("Boolean"), "{}", types[1].1);
        let rows: usize = dataset.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(rows, 3);
    }

    #[test]
    fn an_array_of_objects_is_read_as_lines_are() {
        let dataset = open("[{\"a\":1,\n\"b\":[1,2]},\n {\"a\":null}]\n").unwrap();
        let rows: usize = dataset.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!((dataset.schema.fields().len(), rows), (2, 2));
        for text in ["[{\"a\":1}", "[{\"a\":1}] {}", "[{\"a\":1}, 2]"] {
            assert!(open(text).unwrap_err().is_damage(), "{text}");
        }
    }

    #[test]
    fn a_line_that_contradicts_the_others_is_named() {
        let error = open("{\"a\":1}\n{\"a\":\"x\"}\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "a.jsonl: expected the types of the lines before in line 2, found \"x\" under \"a\""
        );
        let error = open("{\"a\":1}\n[1]\n").unwrap_err().to_string();
        assert_eq!(error, "a.jsonl: expected a JSON object in line 2, found [1]");
    }

    #[test]
    fn a_line_that_does_not_fit_the_schema_given_is_named() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
        let options = OpenOptions::default().with_schema(Some(schema));
        for text in ["{\"a\":1}\n{\"a\":2}\n{\"a\":\"x\"}\n", "{}\n\n{\"b\":1}\n", "{}\n{}\n{\"a\":"] {
            let source = Arc::new(MemorySource::new("a.jsonl", text.to_string()));
            let dataset = JsonLinesDataset::open(source, &options).unwrap();
            let error = dataset.scan().read().unwrap().find_map(Result::err).unwrap();
            let error = Error::from(error).to_string();
            assert!(error.contains("line 3"), "{error}");
        }
    }
}
