//! Datasets around other datasets: other types, other columns, fewer rows.

use std::fmt::Debug;

use arrow_schema::SchemaRef;

use crate::dataset::{Absence, Dataset, Partition, Scan, ScanRequest};
use crate::describe::{ColumnStatistics, Node, Page};
use crate::error::Result;
use crate::plan::ScanPlan;
use crate::progress::Progress;
use crate::verify::{Finding, VerifyDepth, VerifyReport};

/// A dataset around another one. What it does not say itself, the inner one says: nothing is forgotten on the way.
pub trait Wrapper: Send + Sync + Debug {
    /// The dataset inside.
    fn inner(&self) -> &dyn Dataset;

    /// As [`Dataset::schema`].
    fn schema(&self) -> SchemaRef;

    /// As [`Dataset::plan`]; [`ScanPlan::around`] makes one of the inner plan.
    ///
    /// # Errors
    /// As [`Dataset::plan`].
    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan>;

    /// What is known of its columns, made of what is known of the inner ones.
    fn statistics(&self, inner: Vec<ColumnStatistics>) -> Vec<ColumnStatistics>;

    /// As [`Dataset::row_count`].
    fn row_count(&self) -> Option<u64> {
        self.inner().row_count()
    }

    /// As [`Dataset::partitions`].
    ///
    /// # Errors
    /// As [`Dataset::partitions`].
    fn partitions(&self) -> Result<Vec<Partition>> {
        self.inner().partitions()
    }

    /// As [`Dataset::describe`].
    ///
    /// # Errors
    /// As [`Dataset::describe`].
    fn describe(&self) -> Result<Node> {
        self.inner().describe()
    }
}

impl<W: Wrapper> Dataset for W {
    fn format(&self) -> &'static str {
        self.inner().format()
    }

    fn name(&self) -> &str {
        self.inner().name()
    }

    fn schema(&self) -> SchemaRef {
        Wrapper::schema(self)
    }

    fn row_count(&self) -> Option<u64> {
        Wrapper::row_count(self)
    }

    fn size_bytes(&self) -> u64 {
        self.inner().size_bytes()
    }

    fn partitions(&self) -> Result<Vec<Partition>> {
        Wrapper::partitions(self)
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        Wrapper::plan(self, request)
    }

    fn findings(&self) -> Vec<Finding> {
        self.inner().findings()
    }

    fn absences(&self) -> Vec<Absence> {
        self.inner().absences()
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        self.inner().verify(depth, progress)
    }

    fn describe(&self) -> Result<Node> {
        Wrapper::describe(self)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        self.inner().pages()
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        Ok(self.statistics(self.inner().column_statistics()?))
    }

    fn column_statistics_with_sizes(&self) -> Result<Vec<ColumnStatistics>> {
        Ok(self.statistics(self.inner().column_statistics_with_sizes()?))
    }
}
