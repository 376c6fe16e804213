//! A Redfile as a dataset.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::positional;
use pilaster_core::{
    Dataset, Finding, LostRows, OnDamage, Progress, Result, Scan, ScanPlan, ScanRequest, Severity, SourceRef,
    TaskSpan, VerifyDepth, VerifyReport,
};

use super::cursor::RedfileColumns;
use super::file::RedFile;
use super::options::RedfileReaderOptions;
use super::salvage::{SalvageReport, inspect};
use super::{describe, prune, verify};
use crate::metadata::FileMetadata;
use crate::recover::{RecoveryReport, recover_metadata};
use crate::schema::RedfileSchema;

/// An open Redfile. Cheap to clone; footer and schema are read once and shared.
#[derive(Debug, Clone)]
pub struct RedfileReader {
    file: Arc<RedFile>,
}

impl RedfileReader {
    /// Opens a file with the default options.
    ///
    /// # Errors
    /// As [`RedfileReader::open_with_options`].
    pub fn open(source: SourceRef) -> Result<Self> {
        Self::open_with_options(source, &RedfileReaderOptions::default())
    }

    /// Opens a file: reads its footer and checks both magics.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if one of them is damaged, [`pilaster_core::ErrorKind::Unsupported`] if the file is
    /// of a later version.
    pub fn open_with_options(source: SourceRef, options: &RedfileReaderOptions) -> Result<Self> {
        Ok(Self { file: Arc::new(RedFile::open(source, options)?) })
    }

    /// Opens a file that may be damaged or still being written: by its footer if that is intact, else by its checkpoints,
    /// else by walking over its pages, for which `schema` is needed where the file metadata is gone. A scan of it should skip
    /// damage.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if nothing leads to rows, [`pilaster_core::ErrorKind::Unsupported`] if the file is
    /// of a later version.
    pub fn recover(
        source: SourceRef,
        schema: Option<&RedfileSchema>,
        options: &RedfileReaderOptions,
    ) -> Result<(Self, RecoveryReport)> {
        let (metadata, report) = recover_metadata(&source, schema, &options.limits)?;
        let mut file = RedFile::with_metadata(source, metadata, options)?;
        file.is_tolerant = true;
        file.recovery = Some(report.clone());
        Ok((Self { file: Arc::new(file) }, report))
    }

    /// Everything the footer says.
    pub fn metadata(&self) -> &FileMetadata {
        &self.file.metadata
    }

    /// The schema, as the file has it and as Arrow has it.
    pub fn redfile_schema(&self) -> &RedfileSchema {
        &self.file.schema
    }

    /// Reads every page and says what is lost, in the format's own words.
    pub fn inspect(&self) -> SalvageReport {
        inspect(&self.file)
    }

    pub(crate) fn file(&self) -> &Arc<RedFile> {
        &self.file
    }
}

impl Dataset for RedfileReader {
    fn format(&self) -> &'static str {
        "redfile"
    }

    fn name(&self) -> &str {
        self.file.name()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(self.file.schema.arrow())
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.file.rows())
    }

    fn size_bytes(&self) -> u64 {
        self.file.size_bytes()
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let mut wanted = request.wanted_rows(self.file.rows());
        if let Some(predicate) = &request.predicate {
            wanted = prune::narrow(&self.file, predicate, &wanted)?;
        }
        if let (OnDamage::Skip(log), Some(recovery)) = (&request.on_damage, &self.file.recovery) {
            recovery.losses().into_iter().for_each(|reason| log.add(LostRows::unknown(reason)));
        }
        let groups = self.file.metadata.row_groups.iter().enumerate();
        let spans = groups.map(|(number, group)| {
            let bytes = group.total_compressed_size.unwrap_or(group.total_byte_size);
            TaskSpan {
                rows: Some(self.file.group_rows(number)),
                bytes: u64::try_from(bytes).unwrap_or_default(),
            }
        });
        let (file, spans) = (Arc::clone(&self.file), spans.collect());
        ScanPlan::by_rows(request, self.file.schema.arrow(), wanted, spans, move |request, wanted| {
            let losses = match &request.on_damage {
                OnDamage::Stop => None,
                OnDamage::Skip(log) => Some(Arc::clone(log)),
            };
            let memory = request.memory(&file.options.limits);
            let columns = RedfileColumns { file: Arc::clone(&file), losses, memory };
            positional::scan(&columns, file.schema.arrow(), request, wanted)
        })
    }

    /// What a recovery had to do without, and what it had to put together again.
    fn findings(&self) -> Vec<Finding> {
        let warning = |message| Finding {
            severity: Severity::Warning,
            path: self.file.name().into(),
            offset: 0,
            part: "file metadata".to_string(),
            message,
            rows: None,
        };
        let told = |report: &RecoveryReport| report.losses().into_iter().chain(report.notes());
        self.file.recovery.iter().flat_map(told).map(warning).collect()
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        Ok(verify::verify(&self.file, depth, progress))
    }

    fn describe(&self) -> Result<Node> {
        describe::describe(&self.file)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        describe::pages(&self.file)
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        describe::column_statistics(&self.file)
    }
}
