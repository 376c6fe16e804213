//! What formats have in common that are read front to back and say little of themselves.

use arrow_schema::Schema;
use pilaster_core::describe::{ColumnStatistics, Node};
use pilaster_core::{
    BatchReader, Dataset, Error, Finding, Progress, Result, ScanRequest, VerifyDepth, VerifyReport,
};

/// The file and its columns, without structure inside.
pub(crate) fn describe(format: &str, bytes: u64, schema: &Schema) -> Node {
    let mut node = Node::new(format, bytes).fact("columns", schema.fields().len());
    for field in schema.fields() {
        node = node.fact(format!("column {}", field.name()), field.data_type());
    }
    node
}

/// One entry per column that tells nothing: such files keep no statistics.
pub(crate) fn no_statistics(schema: &Schema) -> Vec<ColumnStatistics> {
    vec![ColumnStatistics::default(); schema.fields().len()]
}

/// Reads everything; the first failure is the finding, since nothing after it can be found.
pub(crate) fn verify(
    dataset: &dyn Dataset,
    depth: VerifyDepth,
    progress: &dyn Progress,
) -> Result<VerifyReport> {
    let mut report = VerifyReport { files: 1, ..VerifyReport::default() };
    progress.set_total(dataset.size_bytes());
    if depth == VerifyDepth::Footer {
        return Ok(report);
    }
    let reader: Result<BatchReader> = dataset.read(&ScanRequest::default());
    match reader {
        Err(error) => report.findings.push(Finding::from_error(&error, dataset.name(), None)),
        Ok(reader) => {
            for batch in reader {
                match batch {
                    Ok(batch) => {
                        report.blocks = report.blocks.saturating_add(1);
                        report.rows = report.rows.saturating_add(batch.num_rows() as u64);
                    }
                    Err(error) => {
                        let error = Error::from(error);
                        let rows = report.rows..dataset.row_count().unwrap_or(u64::MAX).max(report.rows);
                        let rows = dataset.row_count().is_some().then_some(rows);
                        report.findings.push(Finding::from_error(&error, dataset.name(), rows));
                        break;
                    }
                }
            }
        }
    }
    report.bytes = dataset.size_bytes();
    progress.advance(dataset.size_bytes());
    Ok(report)
}

/// The methods of [`Dataset`] that are the same for every format read front to back.
macro_rules! front_to_back {
    ($format:literal) => {
        fn format(&self) -> &'static str {
            $format
        }

        fn name(&self) -> &str {
            self.source.name()
        }

        fn schema(&self) -> arrow_schema::SchemaRef {
            std::sync::Arc::clone(&self.schema)
        }

        fn row_count(&self) -> Option<u64> {
            None
        }

        fn size_bytes(&self) -> u64 {
            self.source.size()
        }

        fn scan(&self) -> pilaster_core::Scan<'_> {
            pilaster_core::Scan::new(self)
        }

        fn verify(
            &self,
            depth: pilaster_core::VerifyDepth,
            progress: &dyn pilaster_core::Progress,
        ) -> pilaster_core::Result<pilaster_core::VerifyReport> {
            $crate::foreign::whole::verify(self, depth, progress)
        }

        fn describe(&self) -> pilaster_core::Result<pilaster_core::describe::Node> {
            Ok($crate::foreign::whole::describe($format, self.source.size(), &self.schema))
        }

        fn pages(&self) -> pilaster_core::Result<Vec<pilaster_core::describe::Page>> {
            Ok(Vec::new())
        }

        fn column_statistics(&self) -> pilaster_core::Result<Vec<pilaster_core::describe::ColumnStatistics>> {
            Ok($crate::foreign::whole::no_statistics(&self.schema))
        }
    };
}
pub(crate) use front_to_back;
