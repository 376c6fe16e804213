//! What a file or a whole table is, and how rows are asked for.

use std::fmt::{self, Debug};
use std::sync::Arc;

use arrow_array::RecordBatchReader;
use arrow_schema::{Field, Schema, SchemaRef};

use crate::describe::{ColumnStatistics, Node, Page};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::memory::ScanMemory;
use crate::plan::ScanPlan;
use crate::predicate::{Literal, Predicate};
use crate::progress::Progress;
use crate::rows::RowRanges;
use crate::salvage::{LossLog, LostRows};
use crate::verify::{Finding, Severity, VerifyDepth, VerifyReport};

/// A dataset shared by scans and threads.
pub type DatasetRef = Arc<dyn Dataset>;

/// A stream of batches; it owns what it needs and outlives the dataset it came from.
pub type BatchReader = Box<dyn RecordBatchReader + Send>;

/// A file or a whole table of any format.
///
/// Opening parses headers, footers and the way to the indexes once; every scan shares them.
pub trait Dataset: Send + Sync + Debug {
    /// Which format this is, in lower case: `kudu cfile`.
    fn format(&self) -> &'static str;

    /// The path or address it was opened from.
    fn name(&self) -> &str;

    /// Columns and types of a scan that projects nothing away.
    fn schema(&self) -> SchemaRef;

    /// Number of rows; `None` when only a scan can tell.
    fn row_count(&self) -> Option<u64>;

    /// Bytes on disk, of all files that belong to it.
    fn size_bytes(&self) -> u64;

    /// The partitions of a table whose rows lie apart by the values of some columns; empty if they do not. They cover all
    /// rows, and no row twice.
    ///
    /// # Errors
    /// If finding them needs bytes that cannot be read.
    fn partitions(&self) -> Result<Vec<Partition>> {
        Ok(Vec::new())
    }

    /// A scan of everything, to be narrowed: `dataset.scan().project(["id"]).filter(…).read()`.
    fn scan(&self) -> Scan<'_>;

    /// Finds what must be read to give the rows asked for: prunes, once, and leaves the rest to the tasks of the plan.
    ///
    /// The predicate is applied to every row: pruning may save work but never decides alone.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if the request names what is not there; if an index that planning needs cannot be read.
    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan>;

    /// Gives the rows asked for. [`Scan::read`] is the friendlier way here.
    ///
    /// # Errors
    /// As [`Dataset::plan`]; what reading meets comes out of the stream.
    fn read(&self, request: &ScanRequest) -> Result<BatchReader> {
        self.plan(request)?.read()
    }

    /// What opening noticed and a reader of its rows should know: parts that are missing, replicas that were passed over.
    fn findings(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Parts that its metadata names and that are not here. Scans give the rest; whoever opens for rows asks first.
    fn absences(&self) -> Vec<Absence> {
        Vec::new()
    }

    /// Looks for damage and goes on after each finding. Progress counts bytes.
    ///
    /// # Errors
    /// Only if looking itself fails; damage is in the report.
    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport>;

    /// Everything its headers and footers say, and where its bytes go.
    ///
    /// # Errors
    /// If a structure cannot be read.
    fn describe(&self) -> Result<Node>;

    /// Every page or block.
    ///
    /// # Errors
    /// If a structure cannot be read.
    fn pages(&self) -> Result<Vec<Page>>;

    /// What is known of each column of [`Dataset::schema`] without reading values.
    ///
    /// # Errors
    /// If a structure cannot be read.
    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>>;

    /// As [`Dataset::column_statistics`], with sizes, encodings and codecs that only the blocks themselves tell: a little of each is
    /// read. For people who ask for them, not for the planning of queries.
    ///
    /// # Errors
    /// If a structure cannot be read.
    fn column_statistics_with_sizes(&self) -> Result<Vec<ColumnStatistics>> {
        self.column_statistics()
    }
}

/// A part of a table that the table's metadata names and that is not here: a tablet, a segment, a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    /// The file, folder or table it should be in.
    pub path: Arc<str>,
    /// What is not here, as a sentence without its end: `tablet of hash bucket 1 of 2 is not here`.
    pub what: String,
    /// How many rows it has, where something else tells.
    pub rows: Option<u64>,
}

impl Absence {
    /// What scans cannot give because of it.
    pub fn loss(&self) -> LostRows {
        let reason = self.to_string();
        match self.rows {
            Some(rows) => LostRows::counted(rows, reason),
            None => LostRows::unknown(reason),
        }
    }

    /// The same as something that is wrong.
    pub fn finding(&self) -> Finding {
        let rows = match self.rows {
            Some(1) => " (1 row)".to_string(),
            Some(rows) => format!(" ({rows} rows)"),
            None => String::new(),
        };
        Finding {
            severity: Severity::Error,
            path: Arc::clone(&self.path),
            offset: 0,
            part: String::new(),
            message: format!("{}{rows}", self.what),
            rows: None,
        }
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// Rows that have the same values in the columns their table is partitioned by.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    /// Columns by index into the schema, in the table's order, and their value.
    pub values: Vec<(usize, Literal)>,
    /// Positions of its rows.
    pub rows: RowRanges,
}

/// What a scan does about damage.
#[derive(Debug, Clone, Default)]
pub enum OnDamage {
    /// The first damaged block ends the scan with an error.
    #[default]
    Stop,
    /// Rows that cannot be proven good are left out and noted here; the scan goes on.
    Skip(Arc<LossLog>),
}

/// What to read: plain data, filled in by [`Scan`].
#[derive(Debug, Clone)]
pub struct ScanRequest {
    /// Columns by index into the schema, in the order wanted; `None` for all.
    pub projection: Option<Vec<usize>>,
    /// Only rows for which this is true.
    pub predicate: Option<Predicate>,
    /// Only rows at these positions.
    pub rows: Option<RowRanges>,
    /// Rows per batch, at most.
    pub batch_size: usize,
    /// Stop after this many rows.
    pub limit: Option<u64>,
    /// Add a last column of this name with each row's position in the dataset.
    pub row_numbers: Option<String>,
    /// What to do about damage.
    pub on_damage: OnDamage,
    /// The budget it draws on; unless set, one of its own.
    pub memory: Option<ScanMemory>,
}

/// Rows per batch unless the caller says otherwise.
pub const DEFAULT_BATCH_SIZE: usize = 8192;

impl Default for ScanRequest {
    fn default() -> Self {
        Self {
            projection: None,
            predicate: None,
            rows: None,
            batch_size: DEFAULT_BATCH_SIZE,
            limit: None,
            row_numbers: None,
            on_damage: OnDamage::Stop,
            memory: None,
        }
    }
}

impl ScanRequest {
    /// The budget that the scan of a file draws on, which was opened with these limits.
    pub fn memory(&self, limits: &Limits) -> ScanMemory {
        self.memory.clone().unwrap_or_else(|| ScanMemory::new(limits))
    }

    /// The projected columns as indexes into `schema`, checked.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if an index is out of range.
    pub fn projected(&self, schema: &Schema) -> Result<Vec<usize>> {
        let count = schema.fields().len();
        let Some(columns) = &self.projection else { return Ok((0..count).collect()) };
        match columns.iter().find(|&&column| column >= count) {
            Some(column) => Err(Error::invalid(format!("no column number {column}: there are {count}"))),
            None => Ok(columns.clone()),
        }
    }

    /// The schema of the batches this request gives.
    ///
    /// # Errors
    /// As [`ScanRequest::projected`].
    pub fn output_schema(&self, schema: &Schema) -> Result<SchemaRef> {
        let mut projected = schema.project(&self.projected(schema)?)?;
        if let Some(name) = &self.row_numbers {
            let mut fields = projected.fields().to_vec();
            fields.push(Arc::new(Field::new(name, arrow_schema::DataType::UInt64, false)));
            projected = Schema::new_with_metadata(fields, projected.metadata);
        }
        Ok(Arc::new(projected))
    }

    /// The row positions to visit in a dataset of `row_count` rows.
    pub fn wanted_rows(&self, row_count: u64) -> RowRanges {
        let all = RowRanges::one(0..row_count);
        self.rows.as_ref().map_or(all.clone(), |rows| all.intersect(rows))
    }
}

/// A scan being put together; it reads like a query.
#[derive(Debug)]
pub struct Scan<'a> {
    dataset: &'a dyn Dataset,
    columns: Option<Vec<String>>,
    request: ScanRequest,
}

impl<'a> Scan<'a> {
    /// A scan of everything in `dataset`.
    pub fn new(dataset: &'a dyn Dataset) -> Self {
        Self { dataset, columns: None, request: ScanRequest::default() }
    }

    /// Only these columns, in this order.
    #[must_use]
    pub fn project<I, S>(mut self, columns: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Only rows for which this is true; a second filter narrows the first.
    #[must_use]
    pub fn filter(mut self, predicate: Predicate) -> Self {
        self.request.predicate = Some(match self.request.predicate.take() {
            Some(first) => Predicate::And(vec![first, predicate]),
            None => predicate,
        });
        self
    }

    /// Only rows at these positions.
    #[must_use]
    pub fn rows(mut self, rows: RowRanges) -> Self {
        self.request.rows = Some(rows);
        self
    }

    /// Rows per batch, at most; [`DEFAULT_BATCH_SIZE`] unless set.
    #[must_use]
    pub fn batch_size(mut self, rows: usize) -> Self {
        self.request.batch_size = rows.max(1);
        self
    }

    /// Stop after this many rows.
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Self {
        self.request.limit = Some(rows);
        self
    }

    /// Add a last column with each row's position in the dataset.
    #[must_use]
    pub fn row_numbers(mut self, column: impl Into<String>) -> Self {
        self.request.row_numbers = Some(column.into());
        self
    }

    /// Leave out rows that cannot be proven good, note them, and go on.
    #[must_use]
    pub fn skip_damage(mut self, losses: Arc<LossLog>) -> Self {
        self.request.on_damage = OnDamage::Skip(losses);
        self
    }

    /// Starts reading: one batch in memory at a time.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if a column is unknown; see [`Dataset::read`].
    pub fn read(self) -> Result<BatchReader> {
        self.plan()?.read()
    }

    /// Finds what must be read, to divide it among threads: see [`Dataset::plan`].
    ///
    /// # Errors
    /// As [`Scan::read`].
    pub fn plan(mut self) -> Result<ScanPlan> {
        if let Some(columns) = &self.columns {
            let schema = self.dataset.schema();
            let indexes = columns.iter().map(|name| column_index(&schema, name)).collect::<Result<_>>()?;
            self.request.projection = Some(indexes);
        }
        self.dataset.plan(&self.request)
    }
}

/// Where a column stands in a schema.
///
/// # Errors
/// [`crate::ErrorKind::InvalidInput`], with the names there are.
pub fn column_index(schema: &Schema, name: &str) -> Result<usize> {
    schema.index_of(name).map_err(|_| {
        let known: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        Error::invalid(format!("no column \"{name}\"; there are: {}", known.join(", ")))
    })
}
