//! An index file as a dataset: its rows are the files in it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::positional::{self, InMemory};
use pilaster_core::{
    Dataset, Finding, Limits, Progress, Result, Scan, ScanPlan, ScanRequest, Severity, SourceRef, TaskSpan,
    VerifyDepth, VerifyReport,
};

use super::IndexFile;

/// An open index file, of which the directory was read and checked.
#[derive(Debug)]
pub struct IndexFileReader {
    source: SourceRef,
    file: IndexFile,
    schema: SchemaRef,
    directory: RecordBatch,
    rows: u64,
}

impl IndexFileReader {
    /// Reads the directory.
    ///
    /// # Errors
    /// As [`IndexFile::read`].
    pub fn open(source: SourceRef, limits: &Limits) -> Result<Self> {
        let file = IndexFile::read(source.as_ref(), limits)?;
        let files =
            || file.indexes.iter().flat_map(|index| index.files.iter().map(move |file| (index, file)));
        let ids: Int64Array = files().map(|(index, _)| index.id).collect();
        let suffixes = StringViewArray::from_iter_values(files().map(|(index, _)| &index.suffix));
        let names = StringViewArray::from_iter_values(files().map(|(_, (name, _))| name));
        let offsets = UInt64Array::from_iter_values(files().map(|(_, (_, place))| place.start));
        let bytes = files().map(|(_, (_, place))| length(place));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(ids),
            Arc::new(suffixes),
            Arc::new(names),
            Arc::new(offsets),
            Arc::new(UInt64Array::from_iter_values(bytes)),
        ];
        let rows = files().count() as u64;
        let schema = Arc::new(Schema::new(vec![
            Field::new("index", DataType::Int64, true),
            Field::new("suffix", DataType::Utf8View, false),
            Field::new("file", DataType::Utf8View, false),
            Field::new("offset", DataType::UInt64, false),
            Field::new("bytes", DataType::UInt64, false),
        ]));
        let directory = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        Ok(Self { source, file, schema, directory, rows })
    }
}

fn length(place: &Range<u64>) -> u64 {
    place.end.saturating_sub(place.start)
}

impl Dataset for IndexFileReader {
    fn format(&self) -> &'static str {
        "doris index file"
    }

    fn name(&self) -> &str {
        self.source.name()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn size_bytes(&self) -> u64 {
        self.source.size()
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let span = TaskSpan { rows: Some(0..self.rows), bytes: self.source.size() };
        let (columns, schema) = (InMemory(self.directory.clone()), Arc::clone(&self.schema));
        let wanted = request.wanted_rows(self.rows);
        ScanPlan::by_rows(request, &self.schema, wanted, vec![span], move |request, wanted| {
            positional::scan(&columns, &schema, request, wanted)
        })
    }

    /// The directory was checked when it was opened, and what is in the files nobody here can read.
    fn verify(&self, _depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        progress.set_total(self.source.size());
        let findings = self.file.unclaimed.iter().map(|gap| Finding {
            severity: Severity::Warning,
            path: Arc::from(self.name()),
            offset: gap.start,
            part: "index file".to_string(),
            message: format!("expected a file of an index, found {} bytes that none claims", length(gap)),
            rows: None,
        });
        Ok(VerifyReport {
            findings: findings.collect(),
            files: 1,
            blocks: self.rows,
            ..VerifyReport::default()
        })
    }

    fn describe(&self) -> Result<Node> {
        let node = Node::new(format!("doris index file {}", self.name()), self.source.size())
            .fact("version", self.file.version)
            .fact("indexes", self.file.indexes.len());
        Ok(self.file.indexes.iter().fold(node, |node, index| {
            let bytes = index.files.iter().map(|(_, place)| length(place));
            let id = index.id.map_or_else(String::new, |id| format!(" {id}"));
            let parent = Node::new(format!("index{id}{}", index.suffix), bytes.sum());
            node.child(index.files.iter().fold(parent, |parent, (name, place)| {
                parent.child(Node::new(format!("file {name}"), length(place)))
            }))
        }))
    }

    fn pages(&self) -> Result<Vec<Page>> {
        Ok(Vec::new())
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        Ok(Vec::new())
    }
}
