//! Apache Parquet, read through the `parquet` crate.
//!
//! A row group is a split, a zone for pruning, and what a finding is about; pages are what a tolerant scan gives up.

mod chunks;
mod describe;
mod mended;
mod metadata;
mod page_sizes;
mod page_walk;
mod scan;
mod scan_apart;
mod verify;
mod views;
mod zones;

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::{
    Dataset, Error, Limits, Progress, Result, Scan, ScanPlan, ScanRequest, SourceRef, VerifyDepth,
    VerifyReport,
};

use crate::open::OpenOptions;
use chunks::SourceChunks;
use mended::Mended;

/// What all scans of one file share.
#[derive(Debug)]
struct ParquetFile {
    source: SourceRef,
    arrow: ArrowReaderMetadata,
    /// The schema to decode to, if it is not the one that the file asks for.
    supplied_schema: Option<SchemaRef>,
    /// Row positions of each row group.
    groups: Vec<Range<u64>>,
    /// Why the page index could not be used, if it is there and damaged.
    page_index_problem: Option<String>,
    footer_bytes: u64,
    limits: Limits,
}

impl ParquetFile {
    fn metadata(&self) -> &ParquetMetaData {
        self.arrow.metadata()
    }

    fn row_count(&self) -> u64 {
        self.groups.last().map_or(0, |last| last.end)
    }

    /// The metadata and the row positions of a row group.
    fn group(&self, index: usize) -> Result<(&RowGroupMetaData, Range<u64>)> {
        match (self.metadata().row_groups().get(index), self.groups.get(index)) {
            (Some(group), Some(rows)) => Ok((group, rows.clone())),
            _ => Err(Error::invalid(format!("no row group number {index}: there are {}", self.groups.len()))),
        }
    }

    /// Where the first byte of a row group lies, as far as its metadata can be trusted.
    fn group_offset(&self, index: usize) -> u64 {
        let Ok((group, _)) = self.group(index) else { return 0 };
        let starts = group.columns().iter().filter_map(|column| metadata::chunk_range(column).ok());
        starts.map(|range| range.start).min().unwrap_or(0)
    }

    /// An error of the parquet reader in a row group, as ours.
    fn group_error(&self, index: usize, chunks: &SourceChunks, text: String) -> Error {
        let error = chunks.take_failure().unwrap_or_else(|| Error::corrupt("pages that decode", text));
        error.at(self.source.name(), self.group_offset(index), "parquet row group")
    }
}

/// A Parquet file.
#[derive(Debug)]
pub struct ParquetDataset {
    file: Arc<ParquetFile>,
}

impl ParquetDataset {
    /// Reads the footer, and the page index if there is one. With recovery, metadata to which the last bytes no longer lead is looked
    /// for.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if the footer is damaged, [`pilaster_core::ErrorKind::LimitExceeded`] if
    /// it is larger than the limits allow.
    pub fn open(source: SourceRef, options: &OpenOptions) -> Result<Self> {
        let limits = options.limits();
        let file = match metadata::load(Arc::clone(&source), limits) {
            Err(error) if options.recovers() && error.is_damage() => match Mended::find(source, limits)? {
                Some(mended) => metadata::load(Arc::new(mended), limits).map_err(|_| error)?,
                None => return Err(error),
            },
            loaded => loaded?,
        };
        Ok(Self { file: Arc::new(file) })
    }

    /// What the footer says, as the `parquet` crate gives it.
    pub fn metadata(&self) -> &Arc<ParquetMetaData> {
        self.file.arrow.metadata()
    }
}

impl Dataset for ParquetDataset {
    fn format(&self) -> &'static str {
        "parquet"
    }

    fn name(&self) -> &str {
        self.file.source.name()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(self.file.arrow.schema())
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.file.row_count())
    }

    fn size_bytes(&self) -> u64 {
        self.file.source.size()
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let wanted = scan::wanted_rows(&self.file, request)?;
        let (file, spans) = (Arc::clone(&self.file), scan::spans(&self.file));
        ScanPlan::by_rows(request, self.file.arrow.schema(), wanted, spans, move |request, wanted| {
            Ok(Box::new(scan::ParquetScan::try_new(Arc::clone(&file), request, wanted)?))
        })
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        verify::verify(&self.file, depth, progress)
    }

    fn describe(&self) -> Result<Node> {
        describe::describe(&self.file)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        describe::pages(&self.file)
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        zones::column_statistics(&self.file)
    }
}
