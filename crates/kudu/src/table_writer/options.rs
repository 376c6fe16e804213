//! What can be chosen when writing a table.

use std::collections::HashMap;

use super::partition_options::{HashPartition, RangePartition};
use crate::cfile::{Compression, Encoding, KuduType};
use crate::fs::BlockManager;

/// Bytes of rows that become one rowset (`budgeted_compaction_target_rowset_size`).
const ROWSET_BYTES: usize = 32 << 20;
/// Bytes of rows that wait in memory to be sorted.
const MEMORY_BYTES: usize = 256 << 20;
/// Largest cell a server takes from a client (`max_cell_size_bytes`).
const CELL_BYTES: usize = 64 << 10;
/// Largest encoded primary key a server takes from a client (`max_encoded_key_size_bytes`).
const KEY_BYTES: usize = 16 << 10;
/// Where a tablet server listens unless told otherwise.
const SERVER_ADDRESS: (&str, u16) = ("127.0.0.1", 7050);

/// How to write a table; the defaults are those of a Kudu server and of a table without partitions.
#[derive(Debug, Clone)]
pub struct KuduTableWriterOptions {
    pub(super) table_name: Option<String>,
    pub(super) primary_key: Vec<String>,
    pub(super) hash: Vec<HashPartition>,
    pub(super) range: Option<RangePartition>,
    pub(super) data_types: HashMap<String, KuduType>,
    pub(super) varchars: HashMap<String, u16>,
    pub(super) encodings: HashMap<String, Encoding>,
    pub(super) compressions: HashMap<String, Compression>,
    pub(super) compression: Option<Compression>,
    pub(super) block_sizes: HashMap<String, usize>,
    pub(super) block_size_bytes: Option<usize>,
    pub(super) block_manager: BlockManager,
    pub(super) rowset_rows: usize,
    pub(super) rowset_bytes: usize,
    pub(super) memory_bytes: usize,
    pub(super) insert_history: bool,
    pub(super) max_cell_bytes: usize,
    pub(super) max_key_bytes: usize,
    pub(super) server_address: (String, u16),
}

impl Default for KuduTableWriterOptions {
    /// The table has the name of the folder, its first column is the primary key, one tablet holds all rows; encodings,
    /// codecs and block sizes are Kudu's own choice; log block manager; rowsets of 32 MiB.
    fn default() -> Self {
        Self {
            table_name: None,
            primary_key: Vec::new(),
            hash: Vec::new(),
            range: None,
            data_types: HashMap::new(),
            varchars: HashMap::new(),
            encodings: HashMap::new(),
            compressions: HashMap::new(),
            compression: None,
            block_sizes: HashMap::new(),
            block_size_bytes: None,
            block_manager: BlockManager::default(),
            rowset_rows: usize::MAX,
            rowset_bytes: ROWSET_BYTES,
            memory_bytes: MEMORY_BYTES,
            insert_history: true,
            max_cell_bytes: CELL_BYTES,
            max_key_bytes: KEY_BYTES,
            server_address: (SERVER_ADDRESS.0.into(), SERVER_ADDRESS.1),
        }
    }
}

impl KuduTableWriterOptions {
    /// The name of the table; by default that of the folder.
    #[must_use]
    pub fn with_table_name(mut self, name: impl Into<String>) -> Self {
        self.table_name = Some(name.into());
        self
    }

    /// The name of the table, if one was given.
    pub fn table_name(&self) -> Option<&str> {
        self.table_name.as_deref()
    }

    /// The columns of the primary key, in their order; by default the first column. They become the first columns of the
    /// table.
    #[must_use]
    pub fn with_primary_key<S: Into<String>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.primary_key = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a hash dimension: each of its buckets is divided by the dimensions that follow, and by ranges.
    #[must_use]
    pub fn with_hash_partition(mut self, partition: HashPartition) -> Self {
        self.hash.push(partition);
        self
    }

    /// Divides the table by ranges.
    #[must_use]
    pub fn with_range_partition(mut self, partition: RangePartition) -> Self {
        self.range = Some(partition);
        self
    }

    /// The Kudu type of a column, where it is not to be that of its Arrow type. Values that do not fit are an error.
    #[must_use]
    pub fn with_data_type(mut self, column: impl Into<String>, data_type: KuduType) -> Self {
        self.data_types.insert(column.into(), data_type);
        self
    }

    /// Makes a column of text VARCHAR of at most so many characters. Longer values are an error.
    #[must_use]
    pub fn with_varchar(mut self, column: impl Into<String>, characters: u16) -> Self {
        self.varchars.insert(column.into(), characters);
        self
    }

    /// The encoding of one column; by default AUTO_ENCODING, what Kudu takes for the type.
    #[must_use]
    pub fn with_encoding(mut self, column: impl Into<String>, encoding: Encoding) -> Self {
        self.encodings.insert(column.into(), encoding);
        self
    }

    /// The codec of one column.
    #[must_use]
    pub fn with_column_compression(mut self, column: impl Into<String>, compression: Compression) -> Self {
        self.compressions.insert(column.into(), compression);
        self
    }

    /// The codec of every column that has none of its own; by default DEFAULT_COMPRESSION, which is none.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// About how many bytes a block of one column has before compression.
    #[must_use]
    pub fn with_column_block_size_bytes(mut self, column: impl Into<String>, bytes: usize) -> Self {
        self.block_sizes.insert(column.into(), bytes);
        self
    }

    /// About how many bytes a block has, in every column that has no size of its own; by default 256 KiB.
    #[must_use]
    pub fn with_block_size_bytes(mut self, bytes: usize) -> Self {
        self.block_size_bytes = Some(bytes);
        self
    }

    /// How blocks lie on the disk. The server must be started with the same `--block_manager`.
    #[must_use]
    pub fn with_block_manager(mut self, manager: BlockManager) -> Self {
        self.block_manager = manager;
        self
    }

    /// At most so many rows in a rowset.
    #[must_use]
    pub fn with_rowset_rows(mut self, rows: usize) -> Self {
        self.rowset_rows = rows.max(1);
        self
    }

    /// About so many bytes of rows, before encoding, in a rowset.
    #[must_use]
    pub fn with_rowset_bytes(mut self, bytes: usize) -> Self {
        self.rowset_bytes = bytes.max(1);
        self
    }

    /// How many bytes of rows may wait in memory to be sorted. More memory means fewer rowsets that overlap.
    #[must_use]
    pub fn with_memory_bytes(mut self, bytes: usize) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Whether each row says when it was inserted, as a server writes it; it does unless told otherwise. Without it the table
    /// is smaller, and snapshots of a time before the rows were written have them too.
    #[must_use]
    pub fn with_insert_history(mut self, history: bool) -> Self {
        self.insert_history = history;
        self
    }

    /// The largest cell that is written; by default what servers take from clients (64 KiB).
    #[must_use]
    pub fn with_max_cell_bytes(mut self, bytes: usize) -> Self {
        self.max_cell_bytes = bytes;
        self
    }

    /// The largest encoded primary key that is written; by default what servers take from clients (16 KiB).
    #[must_use]
    pub fn with_max_key_bytes(mut self, bytes: usize) -> Self {
        self.max_key_bytes = bytes;
        self
    }

    /// The address at which the server will listen, for the list of those who vote on a tablet.
    #[must_use]
    pub fn with_server_address(mut self, host: impl Into<String>, port: u16) -> Self {
        self.server_address = (host.into(), port);
        self
    }
}
