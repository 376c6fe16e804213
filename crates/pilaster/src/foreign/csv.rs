//! CSV and TSV with a header line.
//!
//! An empty field is null, and an empty text in quotes is one. Types are found by reading the whole file once, so that no later row can contradict them;
//! with a schema given, a row that does not fit is an error that names its line.

use std::io::BufReader;
use std::sync::Arc;

use arrow_array::types::{Date32Type, TimestampMicrosecondType};
use arrow_cast::parse::Parser;
use arrow_csv::ReaderBuilder;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use pilaster_core::{BatchReader, Dataset, Error, Result, ScanPlan, ScanRequest, SourceRef, TaskSpan};
use regex::Regex;

use super::csv_nulls::{self, MarkNulls};
use super::rewrite::Rewritten;
use super::source_read::SourceRead;
use super::whole::front_to_back;
use crate::open::OpenOptions;
use pilaster_core::stream;

/// A number with more digits than this may change when it becomes a double, so it stays text.
pub(super) const EXACT_DIGITS: usize = 15;

/// A CSV or TSV file.
#[derive(Debug, Clone)]
pub struct CsvDataset {
    source: SourceRef,
    schema: SchemaRef,
    delimiter: u8,
}

impl CsvDataset {
    /// Reads the header, and finds out the types unless the options give a schema.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if a record has more or fewer fields than the header;
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the schema given has other columns.
    pub fn open(source: SourceRef, delimiter: u8, options: &OpenOptions) -> Result<Self> {
        let schema = match options.schema() {
            Some(schema) => given_schema(&source, delimiter, schema)?,
            None => infer(&source, delimiter)?,
        };
        Ok(Self { source, schema, delimiter })
    }
}

impl Dataset for CsvDataset {
    front_to_back!("csv");

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let (dataset, span) = (self.clone(), TaskSpan { rows: None, bytes: self.source.size() });
        ScanPlan::of_one_task(request, &self.schema, span, move |request| dataset.rows(request))
    }
}

impl CsvDataset {
    fn rows(&self, request: &ScanRequest) -> Result<BatchReader> {
        let needed = stream::needed_columns(request, &self.schema)?;
        let is_text = self.schema.fields().iter().map(|field| field.data_type() == &DataType::Utf8).collect();
        let input = BufReader::new(skip_mark(&self.source)?);
        let marked = Rewritten::new(input, MarkNulls::new(self.delimiter, is_text));
        let is_null = Regex::new(&format!("^{}$", csv_nulls::NULL))
            .map_err(|error| Error::invalid(error.to_string()))?;
        let reader = ReaderBuilder::new(Arc::clone(&self.schema))
            .with_header(true)
            .with_delimiter(self.delimiter)
            .with_batch_size(request.batch_size.max(1))
            .with_projection(needed)
            .with_null_regex(is_null)
            .build_buffered(BufReader::new(marked))?;
        let (source, delimiter) = (Arc::clone(&self.source), self.delimiter);
        let input = reader.map(move |batch| batch.map_err(|error| misfit(&source, delimiter, error)));
        stream::apply(input, &self.schema, request)
    }
}

/// The file without a byte order mark in front, which is no part of the first column's name.
pub(super) fn skip_mark(source: &SourceRef) -> Result<SourceRead> {
    let head = source.read_at(0..source.size().min(3))?;
    let start = if &*head == b"\xef\xbb\xbf" { 3 } else { 0 };
    Ok(SourceRead::starting_at(Arc::clone(source), start))
}

/// Arrow says which record does not fit; a person needs the line, which quoted line ends move.
fn misfit(source: &SourceRef, delimiter: u8, error: ArrowError) -> Error {
    let text = match error {
        ArrowError::ParseError(text) | ArrowError::CsvError(text) => text,
        other => return Error::from(other).at(source.name(), 0, ""),
    };
    let (message, rest) = text.split_once(" at line ").unwrap_or((&text, ""));
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    let record = digits.parse::<usize>().ok().and_then(|number| {
        let records = reader(source, delimiter).ok()?.into_byte_records();
        records.flatten().nth(number.checked_sub(1)?)
    });
    match record.as_ref().and_then(csv::ByteRecord::position) {
        Some(place) => {
            let expected = format!("a record that fits the schema in line {}", place.line());
            Error::corrupt(expected, message).at(source.name(), place.byte(), "csv record")
        }
        None => Error::corrupt("records that fit the schema", text).at(source.name(), 0, ""),
    }
}

fn reader(source: &SourceRef, delimiter: u8) -> Result<csv::Reader<SourceRead>> {
    Ok(csv::ReaderBuilder::new().delimiter(delimiter).from_reader(skip_mark(source)?))
}

fn csv_error(source: &SourceRef, error: csv::Error) -> Error {
    let offset = error.position().map_or(0, csv::Position::byte);
    Error::corrupt("records of as many fields as the header", error).at(source.name(), offset, "csv record")
}

fn headers(source: &SourceRef, reader: &mut csv::Reader<SourceRead>) -> Result<Vec<String>> {
    let record = reader.headers().map_err(|error| csv_error(source, error))?;
    Ok(record.iter().map(str::to_string).collect())
}

/// The columns of the file with the types of the schema given, matched by name.
fn given_schema(source: &SourceRef, delimiter: u8, schema: &Schema) -> Result<SchemaRef> {
    let names = headers(source, &mut reader(source, delimiter)?)?;
    let fields = names.iter().map(|name| {
        schema.field_with_name(name).cloned().map_err(|_| {
            Error::invalid(format!("column \"{name}\" is not in the schema given")).at(source.name(), 0, "")
        })
    });
    let fields = fields.collect::<Result<Vec<_>>>()?;
    if let Some(missing) = schema.fields().iter().find(|field| !names.contains(field.name())) {
        let message = format!("the schema given has a column \"{}\", the file has not", missing.name());
        return Err(Error::invalid(message).at(source.name(), 0, ""));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// Reads every record and gives each column the narrowest type that changes none of its values.
fn infer(source: &SourceRef, delimiter: u8) -> Result<SchemaRef> {
    let mut reader = reader(source, delimiter)?;
    let names = headers(source, &mut reader)?;
    let mut kinds = vec![None; names.len()];
    let mut record = csv::ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| csv_error(source, error))? {
        for (kind, value) in kinds.iter_mut().zip(record.iter()) {
            if !value.is_empty() && *kind != Some(Kind::Text) {
                *kind = Some(kind.map_or_else(|| Kind::of(value), |kind: Kind| kind.join(Kind::of(value))));
            }
        }
    }
    let fields = names.into_iter().zip(kinds);
    let fields = fields.map(|(name, kind)| Field::new(name, kind.unwrap_or(Kind::Text).data_type(), true));
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// What a text can be read as without changing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    /// An integer that a double may not hold.
    LongInt,
    Float,
    Date,
    Timestamp,
    Text,
}

impl Kind {
    fn of(value: &[u8]) -> Self {
        let Ok(text) = std::str::from_utf8(value) else { return Self::Text };
        if text == "true" || text == "false" {
            return Self::Bool;
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        // A leading zero is part of a name such as a post code, not of a number.
        let is_padded = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
        let starts_as_number = digits.starts_with(|c: char| c.is_ascii_digit());
        if starts_as_number && !is_padded {
            if digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return match text.parse::<i64>() {
                    Ok(0) if text == "-0" => Self::Float,
                    Ok(_) if digits.len() <= EXACT_DIGITS => Self::Int,
                    Ok(_) => Self::LongInt,
                    Err(_) => Self::Text,
                };
            }
            let count = digits.bytes().take_while(|byte| !byte.eq_ignore_ascii_case(&b'e'));
            if count.filter(u8::is_ascii_digit).count() <= EXACT_DIGITS && text.parse::<f64>().is_ok() {
                return Self::Float;
            }
        }
        if is_date(text) {
            return Self::Date;
        }
        match text.split_once(['T', ' ']) {
            Some((date, time))
                if is_date(date) && is_time(time) && TimestampMicrosecondType::parse(text).is_some() =>
            {
                Self::Timestamp
            }
            _ => Self::Text,
        }
    }

    fn join(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Int | Self::LongInt, Self::Int | Self::LongInt) => Self::LongInt,
            (Self::Int | Self::Float, Self::Int | Self::Float) => Self::Float,
            _ => Self::Text,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int | Self::LongInt => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Text => DataType::Utf8,
        }
    }
}

/// `YYYY-MM-DD`
fn is_date(text: &str) -> bool {
    has_shape(text, 10, b'-', [4, 7]) && Date32Type::parse(text).is_some()
}

/// Whether a text is digits of this length, but for a separator at two places.
fn has_shape(text: &str, length: usize, separator: u8, places: [usize; 2]) -> bool {
    let fits = |(index, byte): (usize, u8)| match places.contains(&index) {
        true => byte == separator,
        false => byte.is_ascii_digit(),
    };
    text.len() == length && text.bytes().enumerate().all(fits)
}

/// `HH:MM:SS` with up to six digits after the point.
fn is_time(text: &str) -> bool {
    let (whole, fraction) =
        text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let is_fraction = |f: &str| (1..=6).contains(&f.len()) && f.bytes().all(|byte| byte.is_ascii_digit());
    has_shape(whole, 8, b':', [2, 5]) && fraction.is_none_or(is_fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use pilaster_core::source::MemorySource;

    fn open(text: &str) -> Result<CsvDataset> {
        CsvDataset::open(
            Arc::new(MemorySource::new("a.csv", text.to_string())),
            b',',
            &OpenOptions::default(),
        )
    }

    fn types(text: &str) -> Vec<String> {
        open(text).unwrap().schema.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    #[test]
    fn types_change_no_value() {
        assert_eq!(types("a,b,c\n1,1.5,true\n-2,3,false\n"), ["Int64", "Float64", "Boolean"]);
        assert_eq!(types("a,b\n007,+1\n"), ["Utf8", "Utf8"]);
        assert_eq!(types("a,b\n9007199254740993,99999999999999999999\n"), ["Int64", "Utf8"]);
        assert_eq!(types("a\n9007199254740993\n1.5\n"), ["Utf8"]);
        assert_eq!(types("a\n0.12345678901234567890\n"), ["Utf8"]);
        assert_eq!(types("a,b\n2024-02-29,2024-02-30\n"), ["Date32", "Utf8"]);
        assert_eq!(types("a,b\n2024-02-29T01:02:03.5,9999-01-01 00:00:00\n"), ["Timestamp(µs)", "Utf8"]);
        assert_eq!(types("a,b\n,NaN\n"), ["Utf8", "Utf8"]);
    }

    #[test]
    fn a_type_holds_for_the_last_row_too() {
        let mut text = String::from("a\n");
        for row in 0..5000 {
            text.push_str(&format!("{row}\n"));
        }
        text.push_str("x\n");
        let dataset = open(&text).unwrap();
        assert_eq!(dataset.schema.field(0).data_type(), &DataType::Utf8);
        let rows: usize = dataset.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(rows, 5001);
    }

    #[test]
    fn a_record_that_does_not_fit_is_named() {
        let error = open("a,b\n1,2\n3\n").unwrap_err().to_string();
        assert!(error.starts_with("a.csv: csv record at byte 8: ") && error.contains("line: 3"), "{error}");
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
        let source = Arc::new(MemorySource::new("a.csv", "a\n1\nx\n"));
        let options = OpenOptions::default().with_schema(Some(schema));
        let dataset = CsvDataset::open(source, b',', &options).unwrap();
        let error = dataset.scan().read().unwrap().find_map(Result::err).unwrap();
        assert_eq!(
            Error::from(error).to_string(),
            "a.csv: csv record at byte 4: expected a record that fits the schema in line 3, \
             found Error while parsing value 'x' as type 'Int32' for column 0"
        );
    }

    #[test]
    fn an_empty_text_is_no_null() {
        let dataset = open("a,b\n1,x\n,\n\"\",\"\"\n").unwrap();
        let batches: Vec<_> = dataset.scan().read().unwrap().map(Result::unwrap).collect();
        let (a, b) = (batches[0].column(0), batches[0].column(1).as_string::<i32>());
        assert_eq!(a.null_count(), 2);
        assert_eq!(b.iter().collect::<Vec<_>>(), [Some("x"), None, Some("")]);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_name() {
        assert_eq!(open("\u{feff}a,b\n1,2\n").unwrap().schema.field(0).name(), "a");
    }
}
