//! Where rows go: every format that can be written.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use pilaster_core::order::plain_schema;
use pilaster_core::{Error, Result, widen};

use crate::foreign::arrow_ipc::Dictionaries;
use crate::formats::{FormatWriteOptions, writer_of};
use crate::text::{DelimitedWriter, JsonArrayWriter, JsonLinesWriter, TableWriter};

/// A format that rows can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutputFormat {
    /// Aligned columns, for people.
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// Tab-separated values with a header.
    Tsv,
    /// One JSON array of objects.
    Json,
    /// One JSON object per line.
    Jsonl,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC file.
    Arrow,
    /// One column as a Kudu CFile.
    CFile,
    /// A folder with one Kudu CFile per column.
    CFileSet,
    /// The folder of a Kudu tablet server with one table.
    Kudu,
    /// Redfile.
    Redfile,
    /// The folder of a tablet of Apache Doris, as in a snapshot.
    Doris,
    /// One segment file of Apache Doris.
    DorisSegment,
    /// The folder of a CarbonData table.
    CarbonData,
}

impl OutputFormat {
    /// Every format, with its name.
    pub const ALL: [(OutputFormat, &'static str); 14] = [
        (Self::Table, "table"),
        (Self::Csv, "csv"),
        (Self::Tsv, "tsv"),
        (Self::Json, "json"),
        (Self::Jsonl, "jsonl"),
        (Self::Parquet, "parquet"),
        (Self::Arrow, "arrow"),
        (Self::CFile, "cfile"),
        (Self::CFileSet, "cfile-set"),
        (Self::Kudu, "kudu"),
        (Self::Redfile, "redfile"),
        (Self::Doris, "doris"),
        (Self::DorisSegment, "doris-segment"),
        (Self::CarbonData, "carbondata"),
    ];

    /// The format that a file name asks for by its extension.
    pub fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "csv" => Self::Csv,
            "tsv" | "tab" => Self::Tsv,
            "json" => Self::Json,
            "jsonl" | "ndjson" => Self::Jsonl,
            "parquet" | "pq" => Self::Parquet,
            "arrow" | "feather" | "ipc" => Self::Arrow,
            "cfile" => Self::CFile,
            "cfiles" => Self::CFileSet,
            "kudu" => Self::Kudu,
            "red" | "redfile" => Self::Redfile,
            "doris" => Self::Doris,
            "dat" => Self::DorisSegment,
            "txt" => Self::Table,
            _ => return None,
        })
    }

    /// The feature of this crate that writes it.
    pub(crate) fn feature(self) -> &'static str {
        match self {
            Self::CFile | Self::CFileSet | Self::Kudu => "kudu",
            Self::Redfile => "redfile",
            Self::Doris | Self::DorisSegment => "doris",
            Self::CarbonData => "carbondata",
            Self::Table | Self::Csv | Self::Tsv | Self::Json | Self::Jsonl | Self::Parquet | Self::Arrow => {
                "default"
            }
        }
    }

    /// Whether it is written as a folder and not as one stream of bytes.
    pub fn is_folder(self) -> bool {
        matches!(self, Self::CFileSet | Self::Kudu | Self::Doris | Self::CarbonData)
    }

    /// Whether it is bytes that do not belong on a terminal.
    pub fn is_binary(self) -> bool {
        !matches!(self, Self::Table | Self::Csv | Self::Tsv | Self::Json | Self::Jsonl)
    }
}

impl fmt::Display for OutputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(format, _)| format == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for OutputFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(_, name)| name.eq_ignore_ascii_case(text));
        found.map(|(format, _)| *format).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(_, name)| *name).collect();
            Error::invalid(format!("no output format \"{text}\"; there are: {}", names.join(", ")))
        })
    }
}

/// Block codec of a Parquet file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ParquetCodec {
    /// No compression.
    None,
    /// Snappy: what the oldest readers know.
    Snappy,
    /// LZ4, raw blocks.
    Lz4,
    /// Gzip, level 6.
    Gzip,
    /// Zstandard, level 3: about as fast to read as Snappy, a third smaller, and known to every reader of the last years.
    #[default]
    Zstd,
}

impl FromStr for ParquetCodec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "none" | "uncompressed" => Self::None,
            "snappy" => Self::Snappy,
            "lz4" => Self::Lz4,
            "gzip" => Self::Gzip,
            "zstd" => Self::Zstd,
            other => {
                let message =
                    format!("no parquet codec \"{other}\"; there are: none, snappy, lz4, gzip, zstd");
                return Err(Error::invalid(message));
            }
        })
    }
}

impl ParquetCodec {
    fn compression(self) -> Result<Compression> {
        Ok(match self {
            Self::None => Compression::UNCOMPRESSED,
            Self::Snappy => Compression::SNAPPY,
            Self::Lz4 => Compression::LZ4_RAW,
            Self::Gzip => Compression::GZIP(GzipLevel::default()),
            Self::Zstd => Compression::ZSTD(ZstdLevel::try_new(3).map_err(parquet_error)?),
        })
    }
}

/// Rows in a Parquet row group unless the caller says otherwise: enough for long runs and large pages.
pub const DEFAULT_ROW_GROUP_ROWS: usize = 1024 * 1024;

/// A row group of wide rows ends here, so that memory is bounded whatever the rows are.
const MAX_ROW_GROUP_BYTES: usize = 256 << 20;

/// How to write.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    parquet_codec: ParquetCodec,
    row_group_rows: usize,
    /// What only one format needs to know; its module fills it in.
    #[allow(dead_code, reason = "a build without formats has nothing to ask it")]
    pub(crate) formats: FormatWriteOptions,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            parquet_codec: ParquetCodec::default(),
            row_group_rows: DEFAULT_ROW_GROUP_ROWS,
            formats: FormatWriteOptions::default(),
        }
    }
}

impl WriteOptions {
    /// Block codec of Parquet files.
    #[must_use]
    pub fn with_parquet_codec(mut self, codec: ParquetCodec) -> Self {
        self.parquet_codec = codec;
        self
    }

    /// Rows in a row group of Parquet files.
    #[must_use]
    pub fn with_row_group_rows(mut self, rows: usize) -> Self {
        self.row_group_rows = rows.max(1);
        self
    }
}

/// Takes batches and writes them.
pub trait BatchWriter: Send {
    /// Writes the rows of a batch.
    ///
    /// # Errors
    /// If the sink fails or a value cannot be written in this format.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Writes what is left and flushes the sink. Without this call the output is incomplete.
    ///
    /// # Errors
    /// If the sink fails.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A writer of `format` to `sink`.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if the format is a folder; if the schema cannot be written in this format.
pub fn writer(
    format: OutputFormat,
    sink: Box<dyn Write + Send>,
    schema: SchemaRef,
    options: &WriteOptions,
) -> Result<Box<dyn BatchWriter>> {
    Ok(match format {
        OutputFormat::Table => Box::new(TableWriter::new(sink, schema)),
        OutputFormat::Csv => Box::new(DelimitedWriter::new(sink, &schema, b',')),
        OutputFormat::Tsv => Box::new(DelimitedWriter::new(sink, &schema, b'\t')),
        OutputFormat::Json => Box::new(JsonArrayWriter::new(sink)),
        OutputFormat::Jsonl => Box::new(JsonLinesWriter::new(sink)),
        OutputFormat::Arrow => Box::new(ArrowOutput::try_new(sink, &plain_schema(&widen::schema(&schema)))?),
        OutputFormat::Parquet => {
            let properties = WriterProperties::builder()
                .set_compression(options.parquet_codec.compression()?)
                .set_max_row_group_row_count(Some(options.row_group_rows))
                .set_max_row_group_bytes(Some(MAX_ROW_GROUP_BYTES))
                .set_created_by(concat!("pilaster version ", env!("CARGO_PKG_VERSION")).to_string())
                .build();
            // Readers give the types that stand in the file's Arrow schema, so they must be such as rows leave in.
            let schema = plain_schema(&widen::schema(&schema));
            let writer = ArrowWriter::try_new(sink, Arc::clone(&schema), Some(properties));
            Box::new(ParquetOutput { writer: writer.map_err(parquet_error)?, schema })
        }
        OutputFormat::CFile
        | OutputFormat::CFileSet
        | OutputFormat::Kudu
        | OutputFormat::Redfile
        | OutputFormat::Doris
        | OutputFormat::DorisSegment
        | OutputFormat::CarbonData => writer_of(format)?.writer(format, sink, schema, options)?,
    })
}

struct ArrowOutput {
    writer: FileWriter<Box<dyn Write + Send>>,
    schema: SchemaRef,
    dictionaries: Dictionaries,
}

impl ArrowOutput {
    fn try_new(sink: Box<dyn Write + Send>, schema: &SchemaRef) -> Result<Self> {
        let dictionaries = Dictionaries::new(schema);
        let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
        let writer = FileWriter::try_new_with_options(sink, dictionaries.schema(), options)?;
        Ok(Self { writer, schema: Arc::clone(schema), dictionaries })
    }
}

impl BatchWriter for ArrowOutput {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = self.dictionaries.unite(&widen::batch(batch, &self.schema)?)?;
        Ok(self.writer.write(&batch)?)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.writer.finish()?;
        Ok(self.writer.flush()?)
    }
}

struct ParquetOutput {
    writer: ArrowWriter<Box<dyn Write + Send>>,
    schema: SchemaRef,
}

impl BatchWriter for ParquetOutput {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(&widen::batch(batch, &self.schema)?).map_err(parquet_error)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.writer.finish().map_err(parquet_error)?;
        Ok(self.writer.inner_mut().flush()?)
    }
}

/// A failed write: an I/O error if there is one inside, else what parquet cannot write.
fn parquet_error(error: ParquetError) -> Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => Error::from(*io),
            Err(inner) => Error::invalid(format!("parquet: {inner}")),
        },
        other => Error::invalid(format!("parquet: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_extensions_lead_to_formats() {
        for (format, name) in OutputFormat::ALL {
            assert_eq!(name.parse::<OutputFormat>().unwrap(), format);
            assert_eq!(format.to_string(), name);
        }
        assert_eq!(OutputFormat::from_path(Path::new("a/b.NDJSON")), Some(OutputFormat::Jsonl));
        assert_eq!(OutputFormat::from_path(Path::new("a.parquet/b")), None);
        let error = "xml".parse::<OutputFormat>().unwrap_err().to_string();
        let known = "table, csv, tsv, json, jsonl, parquet, arrow, cfile, cfile-set, kudu, redfile, doris, doris-segment, carbondata";
        assert_eq!(error, format!("no output format \"xml\"; there are: {known}"));
    }
}
