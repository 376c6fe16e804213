//! A master's system catalog, without its secrets.
//!
//! The catalog is an ordinary tablet of three columns: `entry_type`, `entry_id` and `metadata`, a message whose kind the
//! type says. Kudu declares the last two as text, which messages and the numbers of signing keys are not: messages come
//! out as bytes, numbers as their digits. Types 3 (certificate authority) and 4 (token signing key) hold private keys; their
//! messages are replaced by a word unless secrets are asked for, before any filter sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, BinaryViewArray, PrimitiveArray, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::positional::{self, InMemory};
use pilaster_core::{
    Absence, Dataset, Error, Finding, Progress, Result, Scan, ScanPlan, ScanRequest, TaskSpan, VerifyDepth,
    VerifyReport,
};

use crate::cfile::KuduType;
use crate::key;
use crate::messages::{self, SysTabletsEntryPb};
use crate::tablet::{KuduTable, Partition};

/// Name of the table.
pub(super) const NAME: &str = "sys.catalog";
/// Stands for a message with a private key.
const REDACTED: &[u8] = b"<redacted>";
/// Entries of the certificate authority, and keys that sign tokens.
const SECRET_TYPES: [i8; 2] = [3, 4];

/// The system catalog as a dataset. A scan reads the whole catalog first: a few hundred bytes for each tablet of the cluster.
#[derive(Debug, Clone)]
pub(super) struct Catalog {
    table: KuduTable,
    schema: SchemaRef,
    shows_secrets: bool,
}

impl Catalog {
    pub fn new(table: KuduTable, shows_secrets: bool) -> Self {
        let schema = Schema::new(vec![
            Field::new("entry_type", DataType::Int8, false),
            Field::new("entry_id", DataType::Utf8View, false),
            Field::new("metadata", DataType::BinaryView, false),
        ]);
        Self { table, schema: Arc::new(schema), shows_secrets }
    }

    /// All rows.
    fn rows(&self, request: &ScanRequest) -> Result<RecordBatch> {
        let Entries { types, ids, messages } = Entries::read(&self.table, request)?;
        let is_hidden = |row: usize| !self.shows_secrets && SECRET_TYPES.contains(&types.value(row));
        let shown = |row: usize| if is_hidden(row) { REDACTED } else { messages.value(row) };
        let columns: Vec<ArrayRef> = vec![
            Arc::new(types.clone()),
            Arc::new(StringViewArray::from_iter_values(ids.iter().map(|id| id_text(id.unwrap_or_default())))),
            Arc::new(BinaryViewArray::from_iter_values((0..types.len()).map(shown))),
        ];
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

/// The columns of a catalog, secrets and all.
struct Entries {
    types: PrimitiveArray<Int8Type>,
    ids: BinaryViewArray,
    messages: BinaryViewArray,
}

impl Entries {
    fn read(table: &KuduTable, request: &ScanRequest) -> Result<Self> {
        let all = ScanRequest { on_damage: request.on_damage.clone(), ..ScanRequest::default() };
        let batches = table.read(&all)?.collect::<Result<Vec<_>, _>>()?;
        let rows = concat_batches(&table.schema(), &batches)?;
        let wrong = || Error::corrupt("a system catalog", "other columns").at(table.name(), 0, "");
        let column = |name: &str| rows.column_by_name(name).ok_or_else(wrong);
        Ok(Self {
            types: column("entry_type")?.as_primitive_opt::<Int8Type>().ok_or_else(wrong)?.clone(),
            ids: column("entry_id")?.as_binary_view_opt().ok_or_else(wrong)?.clone(),
            messages: column("metadata")?.as_binary_view_opt().ok_or_else(wrong)?.clone(),
        })
    }
}

/// The tablets of a table that are in use, by id.
pub(super) fn tablets_of(table: &KuduTable, table_id: &str) -> Result<BTreeMap<String, Partition>> {
    let entries = Entries::read(table, &ScanRequest::default())?;
    let mut tablets = BTreeMap::new();
    for (row, entry_type) in entries.types.values().iter().enumerate() {
        if *entry_type != SysTabletsEntryPb::ENTRY_TYPE {
            continue;
        }
        let entry: SysTabletsEntryPb = messages::parse(entries.messages.value(row), "SysTabletsEntryPB")?;
        if entry.state == Some(SysTabletsEntryPb::RUNNING)
            && entry.table_id.as_deref() == Some(table_id.as_bytes())
        {
            let partition = Partition::parse(entry.partition.unwrap_or_default());
            tablets.insert(id_text(entries.ids.value(row)), partition);
        }
    }
    Ok(tablets)
}

/// An id is text, or the encoded number of a signing key.
fn id_text(id: &[u8]) -> String {
    let number = || key::decode_last(KuduType::Int64, id).ok().and_then(|stored| stored.try_into().ok());
    match std::str::from_utf8(id) {
        Ok(text) => text.to_string(),
        Err(_) => match number() {
            Some(stored) => i64::from_le_bytes(stored).to_string(),
            None => id.iter().map(|byte| format!("{byte:02x}")).collect(),
        },
    }
}

impl Dataset for Catalog {
    fn format(&self) -> &'static str {
        self.table.format()
    }

    fn name(&self) -> &str {
        self.table.name()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_count(&self) -> Option<u64> {
        self.table.row_count()
    }

    fn size_bytes(&self) -> u64 {
        self.table.size_bytes()
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let (catalog, span) = (self.clone(), TaskSpan { rows: None, bytes: self.size_bytes() });
        ScanPlan::of_one_task(request, &self.schema, span, move |request| {
            let rows = catalog.rows(request)?;
            let wanted = request.wanted_rows(rows.num_rows() as u64);
            positional::scan(&InMemory(rows), &catalog.schema, request, &wanted)
        })
    }

    fn absences(&self) -> Vec<Absence> {
        self.table.absences()
    }

    fn findings(&self) -> Vec<Finding> {
        self.table.findings()
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        self.table.verify(depth, progress)
    }

    fn describe(&self) -> Result<Node> {
        self.table.describe()
    }

    fn pages(&self) -> Result<Vec<Page>> {
        self.table.pages()
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        self.table.column_statistics()
    }
}
