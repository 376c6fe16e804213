//! The table being written.

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::SchemaRef;
use arrow_select::take::take;
use pilaster_core::{Error, Location, NewFolder, Result};

use super::columns::{TableColumns, check_name};
use super::convert::convert;
use super::duplicates::find_duplicate;
use super::key_rows::{KeyColumn, KeyRows};
use super::options::KuduTableWriterOptions;
use super::partitions::Partitions;
use super::tablet::{TableIdentity, TabletWriter};
use crate::fs::{BlockWriter, NewRoot, new_uuid, now_micros};
use crate::key;
use crate::tablet::{Partition, cells_to_array};

/// A hybrid timestamp has microseconds above this many bits of a counter.
const COUNTER_BITS: u32 = 12;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KuduTableSummary {
    /// Name of the table.
    pub table_name: String,
    /// Id of the table.
    pub table_id: String,
    /// Uuid of the server whose folder it is.
    pub server_uuid: String,
    /// Rows of the table.
    pub rows: u64,
    /// Bytes of all blocks.
    pub bytes: u64,
    /// The tablets, in partition order.
    pub tablets: Vec<TabletSummary>,
}

/// A tablet that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TabletSummary {
    /// Its id.
    pub tablet_id: String,
    /// Its bounds.
    pub partition: String,
    /// Its rows.
    pub rows: u64,
    /// Its rowsets.
    pub rowsets: usize,
}

/// Writes a table as the folder of a tablet server. The folder appears when [`KuduTableWriter::finish`] has succeeded, or not
/// at all.
#[derive(Debug)]
pub struct KuduTableWriter {
    folder: NewFolder,
    root: NewRoot,
    blocks: BlockWriter,
    schema: SchemaRef,
    table_name: String,
    columns: TableColumns,
    partitions: Partitions,
    tablets: Vec<TabletWriter>,
    options: KuduTableWriterOptions,
    /// When the rows are inserted: a hybrid timestamp.
    timestamp: u64,
    rows: u64,
    /// Bytes of rows in memory.
    waiting_bytes: usize,
    has_failed: bool,
}

impl KuduTableWriter {
    /// Starts a table that will be the folder `target`, which must not exist or be empty, of batches of this schema.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a column has no Kudu type, no primary key can be made, or the options do
    /// not fit; [`pilaster_core::ErrorKind::Io`].
    pub fn try_new(
        target: impl Into<Location>,
        schema: SchemaRef,
        options: KuduTableWriterOptions,
    ) -> Result<Self> {
        let target = target.into();
        let table_name = match &options.table_name {
            Some(name) => name.clone(),
            None => name_of(&target),
        };
        check_name("table", &table_name)?;
        let columns = TableColumns::new(&schema, &options)?;
        let partitions = Partitions::new(&columns, &options)?;
        let tablets = partitions.tablets().into_iter().map(TabletWriter::new).collect();
        let folder = NewFolder::create(target)?;
        let root = NewRoot::create(folder.place(), options.block_manager)?;
        let blocks = BlockWriter::new(root.folder.child("data"), options.block_manager, root.fs_block_bytes);
        Ok(Self {
            folder,
            root,
            blocks,
            schema,
            table_name,
            columns,
            partitions,
            tablets,
            options,
            timestamp: now_micros()?.saturating_mul(1 << COUNTER_BITS),
            rows: 0,
            waiting_bytes: 0,
            has_failed: false,
        })
    }

    /// Adds rows, in any order.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the batch has other columns, a value that Kudu cannot hold, a null in the
    /// primary key, a key that was there before or lies in no range partition; [`pilaster_core::ErrorKind::Io`]. No folder can be made after an error.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let was_sound = !std::mem::replace(&mut self.has_failed, true);
        if !was_sound {
            return Err(Error::invalid("a table that could not be written before"));
        }
        self.add(batch)?;
        self.has_failed = false;
        Ok(())
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check_schema(batch)?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let arrays = self
            .columns
            .columns
            .iter()
            .map(|column| {
                convert(batch.column(column.source), column, self.options.max_cell_bytes, self.rows)
            })
            .collect::<Result<Vec<_>>>()?;
        let key_columns = self
            .columns
            .keys()
            .iter()
            .zip(&arrays)
            .map(|(column, array)| KeyColumn::new(column.column.data_type, array))
            .collect::<Result<Vec<_>>>()?;
        let keys = KeyRows::encode(&key_columns.iter().collect::<Vec<_>>(), batch.num_rows())?;
        let most = self.options.max_key_bytes;
        if let Some(long) = keys.iter().find(|key| key.len() > most) {
            return Err(Error::invalid(format!(
                "a primary key of {} encoded bytes; servers take at most {most} by default",
                long.len()
            )));
        }
        self.distribute(arrays, &key_columns, &keys)?;
        self.rows = self.rows.saturating_add(batch.num_rows() as u64);
        while self.waiting_bytes > self.options.memory_bytes {
            let largest = (0..self.tablets.len())
                .max_by_key(|tablet| self.tablets.get(*tablet).map(|tablet| tablet.buffer.bytes()));
            let Some(largest) = largest else { break };
            self.flush(largest)?;
        }
        Ok(())
    }

    fn check_schema(&self, batch: &RecordBatch) -> Result<()> {
        let schema = batch.schema();
        let fits = schema.fields().len() == self.schema.fields().len()
            && schema.fields().iter().zip(self.schema.fields()).all(|(found, wanted)| {
                found.name() == wanted.name() && found.data_type() == wanted.data_type()
            });
        match fits {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "a batch of other columns than the table's: {} instead of {}",
                described(&schema),
                described(&self.schema)
            ))),
        }
    }

    /// Gives rows to their tablets.
    fn distribute(&mut self, arrays: Vec<ArrayRef>, key_columns: &[KeyColumn], keys: &KeyRows) -> Result<()> {
        if self.partitions.is_one() {
            return self.give(0, arrays, keys.len(), keys.iter());
        }
        let assigned = match self.partitions.assign(key_columns, keys.len())? {
            Ok(assigned) => assigned,
            Err(row) => {
                let key = self.described_key(keys.get(row));
                return Err(Error::invalid(format!(
                    "the row with the primary key {key} lies in no range partition"
                )));
            }
        };
        let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); self.tablets.len()];
        for (row, tablet) in (0u32..).zip(assigned) {
            if let Some(rows) = rows_of.get_mut(tablet) {
                rows.push(row);
            }
        }
        for (tablet, rows) in rows_of.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            let rows = UInt32Array::from(rows);
            let parts = arrays.iter().map(|array| Ok(take(array, &rows, None)?));
            let parts = parts.collect::<Result<Vec<_>>>()?;
            let keys = rows.values().iter().map(|row| keys.get(*row as usize));
            self.give(tablet, parts, rows.values().len(), keys)?;
        }
        Ok(())
    }

    fn give<'a>(
        &mut self,
        tablet: usize,
        arrays: Vec<ArrayRef>,
        rows: usize,
        keys: impl Iterator<Item = &'a [u8]>,
    ) -> Result<()> {
        if self.tablets.get(tablet).is_some_and(|tablet| !tablet.buffer.has_room_for(rows)) {
            self.flush(tablet)?;
        }
        let Some(tablet) = self.tablets.get_mut(tablet) else { return Ok(()) };
        let before = tablet.buffer.bytes();
        tablet.buffer.push(arrays, keys);
        tablet.rows = tablet.rows.saturating_add(rows as u64);
        self.waiting_bytes = self.waiting_bytes.saturating_add(tablet.buffer.bytes()).saturating_sub(before);
        Ok(())
    }

    /// Writes the rows of a tablet that wait in memory.
    fn flush(&mut self, tablet: usize) -> Result<()> {
        let Some(tablet) = self.tablets.get_mut(tablet) else { return Ok(()) };
        self.waiting_bytes = self.waiting_bytes.saturating_sub(tablet.buffer.bytes());
        let size = (self.options.rowset_rows, self.options.rowset_bytes);
        let timestamp = self.options.insert_history.then_some(self.timestamp);
        match tablet.flush(&self.columns, size, timestamp, &mut self.blocks)? {
            Ok(()) => Ok(()),
            Err(key) => Err(self.duplicate(&key)),
        }
    }

    /// Writes what is left, compares the keys of all rowsets, writes the metadata and gives the folder its name.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a primary key occurs twice, or if writing failed before;
    /// [`pilaster_core::ErrorKind::Io`]. Then there is no folder.
    pub fn finish(mut self) -> Result<KuduTableSummary> {
        if self.has_failed {
            return Err(Error::invalid("a table that could not be written before"));
        }
        for tablet in 0..self.tablets.len() {
            self.flush(tablet)?;
        }
        let bytes = self.blocks.bytes();
        self.blocks.finish()?;
        self.check_duplicates()?;
        let table_id = new_uuid();
        let identity = TableIdentity {
            name: &self.table_name,
            id: &table_id,
            columns: &self.columns,
            partition_schema: self.partitions.to_message(&self.columns),
            server_address: &self.options.server_address,
            root: &self.root,
            timestamp: self.timestamp,
            now_micros: now_micros()?,
        };
        for tablet in &self.tablets {
            tablet.write_metadata(&identity)?;
        }
        self.root.finish()?;
        self.folder.finish()?;
        let tablets = self.tablets.iter().map(|tablet| TabletSummary {
            tablet_id: tablet.id.clone(),
            partition: Partition::parse(tablet.partition.clone()).to_string(),
            rows: tablet.rows,
            rowsets: tablet.rowsets(),
        });
        Ok(KuduTableSummary {
            tablets: tablets.collect(),
            table_name: self.table_name,
            table_id,
            server_uuid: self.root.uuid,
            rows: self.rows,
            bytes,
        })
    }

    fn check_duplicates(&mut self) -> Result<()> {
        let scratch = self.root.folder.scratch();
        for tablet in 0..self.tablets.len() {
            let Some(tablet) = self.tablets.get_mut(tablet) else { continue };
            let runs = std::mem::take(&mut tablet.runs);
            if let Some(key) = find_duplicate(runs, &scratch)? {
                return Err(self.duplicate(&key));
            }
        }
        Ok(())
    }

    fn duplicate(&self, encoded: &[u8]) -> Error {
        Error::invalid(format!("several rows have the primary key {}", self.described_key(encoded)))
    }

    /// The columns of a key and their values.
    fn described_key(&self, encoded: &[u8]) -> String {
        let columns = self.columns.keys();
        let types: Vec<_> = columns.iter().map(|column| column.column.data_type).collect();
        let values = || -> Result<Vec<String>> {
            let cells = key::decode(&types, encoded)?;
            columns
                .iter()
                .zip(cells)
                .map(|(column, cell)| {
                    let array = cells_to_array(&column.column, &[Some(&cell)])?;
                    let value =
                        ArrayFormatter::try_new(&array, &FormatOptions::default())?.value(0).to_string();
                    Ok(format!("{} = {value}", column.column.name))
                })
                .collect()
        };
        values().map_or_else(|_| format!("{encoded:02x?}"), |values| values.join(", "))
    }
}

/// The name a table gets from its folder.
fn name_of(folder: &Location) -> String {
    folder.name().to_string_lossy().into_owned()
}

fn described(schema: &SchemaRef) -> String {
    let fields: Vec<_> =
        schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    format!("({})", fields.join(", "))
}
