//! A server's folder made of given rowsets: a file for each block, a superblock for each tablet, no log.

use std::fs;
use std::path::PathBuf;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use arrow_schema::{DataType, Field};
use pilaster_kudu::cfile::{CFileReaderOptions, CFileWriter, CFileWriterOptions, Encoding, KuduType};
use pilaster_kudu::key::{self, KeyPart};
use pilaster_kudu::store::{KuduStore, KuduStoreOptions};
use pilaster_kudu::tablet::{KuduTable, LogUse};
use prost::Message;

macro_rules! message {
    ($name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* }) => {
        #[derive(Clone, PartialEq, Message)]
        pub struct $name { $($(#[$attribute])* pub $field: $type,)* }
    };
}

message!(BlockId {
    #[prost(fixed64, optional, tag = "1")]
    id: Option<u64>,
});
message!(ColumnSchema {
    #[prost(uint32, optional, tag = "1")]
    id: Option<u32>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(int32, optional, tag = "3")]
    data_type: Option<i32>,
    #[prost(bool, optional, tag = "4")]
    is_key: Option<bool>,
    #[prost(bool, optional, tag = "5")]
    is_nullable: Option<bool>,
});
message!(TableSchema {
    #[prost(message, repeated, tag = "1")]
    columns: Vec<ColumnSchema>,
});
message!(ColumnData {
    #[prost(message, optional, tag = "2")]
    block: Option<BlockId>,
    #[prost(int32, optional, tag = "4")]
    column_id: Option<i32>,
});
message!(RowSetData {
    #[prost(uint64, optional, tag = "1")]
    id: Option<u64>,
    #[prost(int64, optional, tag = "2")]
    last_durable_dms_id: Option<i64>,
    #[prost(message, repeated, tag = "3")]
    columns: Vec<ColumnData>,
    #[prost(message, optional, tag = "7")]
    key_index: Option<BlockId>,
    #[prost(int64, optional, tag = "10")]
    live_row_count: Option<i64>,
});
message!(ColumnIdentifier {
    #[prost(int32, optional, tag = "1")]
    id: Option<i32>,
});
message!(HashDimension {
    #[prost(message, repeated, tag = "1")]
    columns: Vec<ColumnIdentifier>,
    #[prost(int32, optional, tag = "2")]
    buckets: Option<i32>,
    #[prost(uint32, optional, tag = "3")]
    seed: Option<u32>,
});
message!(RangeSchema {
    #[prost(message, repeated, tag = "1")]
    columns: Vec<ColumnIdentifier>,
});
message!(PartitionSchema {
    #[prost(message, repeated, tag = "1")]
    hash: Vec<HashDimension>,
    #[prost(message, optional, tag = "2")]
    range: Option<RangeSchema>,
});
message!(Partition {
    #[prost(int32, repeated, tag = "1")]
    buckets: Vec<i32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    start: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    end: Option<Vec<u8>>,
});
message!(SuperBlock {
    #[prost(bytes = "vec", optional, tag = "1")]
    table_id: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    tablet_id: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "3")]
    last_durable_mrs_id: Option<i64>,
    #[prost(message, repeated, tag = "6")]
    rowsets: Vec<RowSetData>,
    #[prost(string, optional, tag = "7")]
    table_name: Option<String>,
    #[prost(message, optional, tag = "8")]
    schema: Option<TableSchema>,
    #[prost(uint32, optional, tag = "9")]
    schema_version: Option<u32>,
    #[prost(int32, optional, tag = "10")]
    state: Option<i32>,
    #[prost(message, optional, tag = "13")]
    partition: Option<Partition>,
    #[prost(message, optional, tag = "14")]
    partition_schema: Option<PartitionSchema>,
});

/// A file with one message: magic, version, what the messages are, the message.
fn container(message: &[u8]) -> Vec<u8> {
    let mut file = b"kuducntr\x02\0\0\0".to_vec();
    file.extend(pilaster_encoding::checksum::crc32c(&file).to_le_bytes());
    for message in [&b"type"[..], message] {
        let length = (message.len() as u32).to_le_bytes();
        file.extend(length);
        file.extend(pilaster_encoding::checksum::crc32c(&length).to_le_bytes());
        file.extend(message);
        file.extend(pilaster_encoding::checksum::crc32c(message).to_le_bytes());
    }
    file
}

fn type_of(field: &Field) -> KuduType {
    match field.data_type() {
        DataType::Int32 => KuduType::Int32,
        DataType::Int64 => KuduType::Int64,
        DataType::Utf8 => KuduType::String,
        other => panic!("no column of {other}"),
    }
}

/// A server with one table; its first `keys` columns are the primary key.
pub struct MadeServer {
    folder: tempfile::TempDir,
    fields: Vec<Field>,
    keys: usize,
    blocks: u64,
    tablets: u64,
    options: CFileWriterOptions,
    partition_schema: PartitionSchema,
}

impl MadeServer {
    pub fn new(fields: Vec<Field>, keys: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["data", "tablet-meta"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let options = CFileWriterOptions::default();
        Self {
            folder,
            fields,
            keys,
            blocks: 0,
            tablets: 0,
            options,
            partition_schema: PartitionSchema::default(),
        }
    }

    /// How columns are written.
    pub fn with_options(mut self, options: CFileWriterOptions) -> Self {
        self.options = options;
        self
    }

    /// Hash dimensions (columns, buckets, seed) and range columns, by number.
    pub fn with_partitions(mut self, hash: &[(&[i32], i32, u32)], range: &[i32]) -> Self {
        let columns = |numbers: &[i32]| numbers.iter().map(|id| ColumnIdentifier { id: Some(*id) }).collect();
        let dimension = |(numbers, buckets, seed): &(&[i32], i32, u32)| HashDimension {
            columns: columns(numbers),
            buckets: Some(*buckets),
            seed: Some(*seed),
        };
        let hash = hash.iter().map(dimension).collect();
        self.partition_schema =
            PartitionSchema { hash, range: Some(RangeSchema { columns: columns(range) }) };
        self
    }

    fn next_block(&mut self) -> (u64, PathBuf) {
        self.blocks += 1;
        let folder = self.folder.path().join("data/00/00/00");
        fs::create_dir_all(&folder).unwrap();
        (self.blocks, folder.join(format!("{:016}", self.blocks)))
    }

    fn file_of(&mut self, field: &Field, array: &ArrayRef, options: CFileWriterOptions) -> u64 {
        let mut writer = CFileWriter::try_new(Vec::new(), field, options).unwrap();
        writer.write_array(array).unwrap();
        let (block, path) = self.next_block();
        fs::write(path, writer.finish().unwrap().0).unwrap();
        block
    }

    /// Another block with the same bytes, which take no more space.
    fn link(&mut self, block: u64) -> u64 {
        let (linked, path) = self.next_block();
        fs::hard_link(path.with_file_name(format!("{block:016}")), path).unwrap();
        linked
    }

    /// Writes rows, which ascend by key, as a rowset; columns that `same` gives blocks for are links to them.
    pub fn rowset(&mut self, rows: &RecordBatch, same: &[(usize, u64)]) -> RowSetData {
        let is_single = self.keys == 1;
        let mut columns = Vec::new();
        for (number, field) in self.fields.clone().iter().enumerate() {
            let known = same.iter().find(|(column, _)| *column == number);
            let options = self.options.clone().with_value_index(is_single && number == 0);
            let block = match known {
                Some((_, block)) => self.link(*block),
                None => self.file_of(field, rows.column(number), options),
            };
            columns.push(ColumnData {
                block: Some(BlockId { id: Some(block) }),
                column_id: Some(number as i32),
            });
        }
        let key_index = (!is_single).then(|| {
            let keys = BinaryArray::from_iter_values((0..rows.num_rows()).map(|row| self.key_of(rows, row)));
            let options = self
                .options
                .clone()
                .with_data_type(KuduType::Binary)
                .with_encoding(Encoding::Prefix)
                .with_positional_index(false)
                .with_value_index(true);
            let field = Field::new("key", DataType::Binary, false);
            let keys: ArrayRef = std::sync::Arc::new(keys);
            BlockId { id: Some(self.file_of(&field, &keys, options)) }
        });
        RowSetData {
            id: Some(self.blocks),
            last_durable_dms_id: Some(-1),
            columns,
            key_index,
            live_row_count: Some(rows.num_rows() as i64),
        }
    }

    /// The encoded key of a row.
    pub fn key_of(&self, rows: &RecordBatch, row: usize) -> Vec<u8> {
        self.encoded(rows, row, &(0..self.keys).collect::<Vec<_>>())
    }

    /// Some columns of a row, encoded as a key.
    pub fn encoded(&self, rows: &RecordBatch, row: usize, columns: &[usize]) -> Vec<u8> {
        let mut encoded = Vec::new();
        for (place, &number) in columns.iter().enumerate() {
            let part = if place + 1 == columns.len() { KeyPart::Last } else { KeyPart::NotLast };
            let stored = stored(rows.column(number), row);
            key::encode(type_of(&self.fields[number]), &stored, part, &mut encoded).unwrap();
        }
        encoded
    }

    /// Adds a tablet of some rowsets.
    pub fn tablet(&mut self, rowsets: Vec<RowSetData>, partition: Partition) {
        self.tablets += 1;
        let id = format!("{:032x}", self.tablets);
        let columns = self.fields.iter().enumerate().map(|(number, field)| ColumnSchema {
            id: Some(number as u32),
            name: Some(field.name().clone()),
            data_type: Some(type_of(field).number()),
            is_key: Some(number < self.keys),
            is_nullable: Some(field.is_nullable()),
        });
        let superblock = SuperBlock {
            table_id: Some(format!("{:032x}", 99).into_bytes()),
            tablet_id: Some(id.clone().into_bytes()),
            last_durable_mrs_id: Some(0),
            rowsets,
            table_name: Some("made".into()),
            schema: Some(TableSchema { columns: columns.collect() }),
            schema_version: Some(0),
            state: Some(1),
            partition: Some(partition),
            partition_schema: Some(self.partition_schema.clone()),
        };
        let path = self.folder.path().join("tablet-meta").join(id);
        fs::write(path, container(&superblock.encode_to_vec())).unwrap();
    }

    /// Opens the table.
    pub fn open(&self) -> KuduTable {
        self.open_with(CFileReaderOptions::default())
    }

    /// As [`MadeServer::open`], with limits.
    pub fn open_with(&self, options: CFileReaderOptions) -> KuduTable {
        let options = KuduStoreOptions::default().with_log(LogUse::Ignore).with_cfile_options(options);
        KuduStore::open(&[self.folder.path().to_path_buf()], options).unwrap().table(None).unwrap()
    }
}

/// A value as a CFile stores it.
fn stored(array: &ArrayRef, row: usize) -> Vec<u8> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int32Type, Int64Type};
    match array.data_type() {
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_le_bytes().to_vec(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_le_bytes().to_vec(),
        _ => array.as_string::<i32>().value(row).as_bytes().to_vec(),
    }
}
