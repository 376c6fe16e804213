//! JSON lines: one object per line; or one array of objects, each of which counts as a line.
//!
//! Types are found by reading the whole file once, so that no later row can contradict them or bring a column nobody
//! knows of; columns come in the order in which the file first names them. Numbers of which no type holds all digits are
//! text. With a schema given, a line that does not fit is an error that names it.

use std::io::{self, BufRead, BufReader};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_json::ReaderBuilder;
use arrow_json::reader::Decoder;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use pilaster_core::{
    BatchReader, Dataset, Error, Limits, Result, ScanPlan, ScanRequest, SourceRef, TaskSpan,
};

use super::csv::skip_mark;
use super::json_array::ElementLines;
use super::json_kind::Kind;
use super::json_value::Json;
use super::rewrite::Rewritten;
use super::whole::front_to_back;
use crate::open::OpenOptions;
use pilaster_core::stream;

/// A file of JSON lines.
#[derive(Debug, Clone)]
pub struct JsonLinesDataset {
    source: SourceRef,
    schema: SchemaRef,
    numbers_in_text: NumbersInText,
}

/// What a number in a column of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumbersInText {
    /// Its digits: the column was found to be text because no other type holds them.
    Kept,
    /// Of another type than the schema given says.
    Refused,
}

impl JsonLinesDataset {
    /// Finds out the columns and types, unless the options give a schema.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if a line is no JSON object or has another type than the lines before.
    pub fn open(source: SourceRef, options: &OpenOptions) -> Result<Self> {
        let (schema, numbers_in_text) = match options.schema() {
            Some(schema) => (Arc::clone(schema), NumbersInText::Refused),
            None => (infer(&source, options.limits())?, NumbersInText::Kept),
        };
        Ok(Self { source, schema, numbers_in_text })
    }
}

impl Dataset for JsonLinesDataset {
    front_to_back!("json lines");

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let (dataset, span) = (self.clone(), TaskSpan { rows: None, bytes: self.source.size() });
        ScanPlan::of_one_task(request, &self.schema, span, move |request| dataset.rows(request))
    }
}

impl JsonLinesDataset {
    fn rows(&self, request: &ScanRequest) -> Result<BatchReader> {
        let needed = stream::needed_columns(request, &self.schema)?;
        // Every column is parsed, so that a value that does not fit is found whoever asks.
        let batch_size = request.batch_size.max(1);
        let batches = Lines {
            lines: lines(&self.source)?,
            decoder: decoder(&self.schema, self.numbers_in_text, batch_size)?,
            source: Arc::clone(&self.source),
            schema: Arc::clone(&self.schema),
            numbers_in_text: self.numbers_in_text,
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

/// How many objects a file has, whatever is in them.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Corrupt`] if a line is no JSON, or the array does not end.
pub(crate) fn count_objects(source: &SourceRef) -> Result<u64> {
    let mut lines = lines(source)?;
    let mut line = Vec::new();
    let mut objects = 0u64;
    while lines.read_until(b'\n', &mut line).map_err(|error| unreadable(source, error))? > 0 {
        if !line.trim_ascii().is_empty() {
            serde_json::from_slice::<serde::de::IgnoredAny>(&line)
                .map_err(|error| Error::corrupt("a JSON object per line", error))?;
            objects = objects.saturating_add(1);
        }
        line.clear();
    }
    Ok(objects)
}

fn unreadable(source: &SourceRef, error: io::Error) -> Error {
    let error = match error.kind() {
        io::ErrorKind::InvalidData => Error::corrupt("objects, one on each line or in one array", error),
        _ => Error::from(error),
    };
    error.at(source.name(), 0, "")
}

/// A decoder that refuses columns the schema does not have.
fn decoder(
    schema: &SchemaRef,
    numbers_in_text: NumbersInText,
    batch_size: usize,
) -> Result<Decoder, ArrowError> {
    ReaderBuilder::new(Arc::clone(schema))
        .with_batch_size(batch_size)
        .with_strict_mode(true)
        .with_coerce_primitive(numbers_in_text == NumbersInText::Kept)
        .build_decoder()
}

/// Batches decoded line by line, so that a failure is tied to its line.
struct Lines {
    lines: Box<dyn BufRead + Send>,
    decoder: Decoder,
    source: SourceRef,
    schema: SchemaRef,
    numbers_in_text: NumbersInText,
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
            let alone = decoder(&self.schema, self.numbers_in_text, 1).and_then(|mut decoder| {
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
            let value = Json::parse(&line).map_err(|error| bad("a JSON object", error.to_string()))?;
            if !matches!(value, Json::Object(_)) {
                return Err(bad("a JSON object", String::from_utf8_lossy(line.trim_ascii()).into_owned()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;
    use arrow_schema::Field;
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

    /// The only column of lines with these values: its type, and its values as texts.
    fn column(values: &[&str]) -> (String, Vec<String>) {
        let lines: String = values.iter().map(|value| format!("{{\"a\":{value}}}\n")).collect();
        let dataset = open(&lines).unwrap();
        let batch = dataset.scan().read().unwrap().next().unwrap().unwrap();
        let text = |row| arrow_cast::display::array_value_to_string(batch.column(0), row).unwrap();
        (dataset.schema.field(0).data_type().to_string(), (0..batch.num_rows()).map(text).collect())
    }

    #[test]
    fn types_change_no_integer() {
        for (values, expected) in [
            (vec!["1", "-2", "null"], "Int64"),
            (vec!["1", "1.5"], "Float64"),
            (vec!["-0", "123456789012345"], "Float64"),
            (vec!["9007199254740993", "-9223372036854775808"], "Int64"),
            (vec!["5", "18446744073709551615"], "UInt64"),
            (vec!["18446744073709551615", "5"], "UInt64"),
            // No type holds all of these.
            (vec!["9007199254740993", "1.5"], "Utf8"),
            (vec!["1.50", "9007199254740993"], "Utf8"),
            (vec!["-1", "18446744073709551615"], "Utf8"),
            (vec!["99999999999999999999"], "Utf8"),
            (vec!["1e3", "-99999999999999999999", "1e300"], "Utf8"),
            (vec!["1e3", "1e300"], "Float64"),
        ] {
            let (found, texts) = column(&values);
            assert_eq!(found, expected, "{values:?}");
            if found != "Float64" {
                let values: Vec<_> = values.iter().map(|value| value.replace("null", "")).collect();
                assert_eq!(texts, values);
            }
        }
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true)]));
        let options = OpenOptions::default().with_schema(Some(schema));
        let source = Arc::new(MemorySource::new("a.jsonl", "{\"a\":1}\n"));
        let dataset = JsonLinesDataset::open(source, &options).unwrap();
        assert!(dataset.scan().read().unwrap().next().unwrap().is_err(), "a number is no text");
    }

    #[test]
    fn columns_come_in_the_order_of_the_file() {
        let dataset = open("{\"z\":{\"y\":1,\"b\":2},\"a\":1}\n{\"z\":{\"c\":1,\"y\":1},\"m\":1}\n").unwrap();
        let names = |fields: &arrow_schema::Fields| -> Vec<String> {
            fields.iter().map(|field| field.name().clone()).collect()
        };
        assert_eq!(names(dataset.schema.fields()), ["z", "a", "m"]);
        let DataType::Struct(inner) = dataset.schema.field(0).data_type() else { panic!("no struct") };
        assert_eq!(names(inner), ["y", "b", "c"]);
    }

    #[test]
    fn floats_that_json_has_no_number_for_come_back() {
        for values in [
            ["\"NaN\"", "1.5", "\"-Infinity\"", "\"Infinity\""],
            ["\"NaN\"", "\"-Infinity\"", "\"Infinity\"", "1.5"],
            ["2", "\"NaN\"", "\"Infinity\"", "null"],
        ] {
            let lines: String = values.iter().map(|value| format!("{{\"a\":{value}}}\n")).collect();
            let batch = open(&lines).unwrap().scan().read().unwrap().next().unwrap().unwrap();
            for (found, value) in batch.column(0).as_primitive::<Float64Type>().iter().zip(values) {
                let expected = value.trim_matches('"').parse::<f64>().ok();
                assert_eq!(found.map(f64::to_bits), expected.map(f64::to_bits), "{value} of {values:?}");
            }
        }
        for (values, expected) in [
            (["\"NaN\"", "\"Infinity\""], "Utf8"),
            (["\"NaN\"", "\"x\""], "Utf8"),
            (["\"x\"", "\"NaN\""], "Utf8"),
            (["9007199254740993", "\"NaN\""], "Utf8"),
        ] {
            let texts = values.map(|value| value.trim_matches('"').to_string());
            assert_eq!(column(&values), (expected.to_string(), texts.to_vec()));
        }
        let error = open("{\"a\":1.5}\n{\"a\":\"nan\"}\n").unwrap_err().to_string();
        assert!(error.ends_with("line 2, found \"nan\" under \"a\""), "{error}");
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
    fn objects_are_counted_in_lines_and_in_an_array() {
        for (text, expected) in [
            ("", Some(0)),
            ("[]", Some(0)),
            ("{\"a\":1}\n{}\n", Some(2)),
            ("[{\"a\":[1,2]},\n{}\n]\n", Some(2)),
            ("[{\"a\":1}", None),
            ("[{\"a\":1},\n{\"a\":]\n", None),
            ("{\"a\":\n", None),
        ] {
            let source: SourceRef = Arc::new(MemorySource::new("a.json", text.to_string()));
            assert_eq!(count_objects(&source).ok(), expected, "{text}");
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
