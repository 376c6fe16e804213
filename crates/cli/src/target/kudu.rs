//! Options of Kudu tables.

use pilaster::Result;
use pilaster::kudu::{
    BlockManager, Compression, Encoding, HashPartition, KuduTableWriterOptions, RangePartition,
};

use super::parse_pair;

/// How the folder of a Kudu tablet server is written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Writing Kudu tables")]
pub(super) struct KuduArgs {
    /// Name of the table [default: that of the folder]
    #[arg(long, value_name = "NAME")]
    kudu_table: Option<String>,

    /// Columns of the primary key, in order; rows may come in any order [default: the first column]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    kudu_key: Vec<String>,

    /// Hash partitions by key columns; may be given several times: --kudu-hash id:4
    #[arg(long, value_name = "A,B:BUCKETS")]
    kudu_hash: Vec<HashPartition>,

    /// Range partitions by key columns: divided at these values, "year:2020|2024"; or only these ranges, each up to and without
    /// its upper bound, "year:2020..2022|2022..2024@id:8|2030..", where @A,B:BUCKETS replaces --kudu-hash in a range
    #[arg(long, value_name = "A,B:RANGES")]
    kudu_range: Option<RangePartition>,

    /// Codec of blocks: no_compression, snappy, lz4, zlib [default: no_compression]
    #[arg(long, value_name = "CODEC")]
    kudu_codec: Option<Compression>,

    /// Encoding of a column; may be given several times: --kudu-encoding name=prefix_encoding
    #[arg(long, value_name = "COLUMN=ENCODING", value_parser = parse_encoding)]
    kudu_encoding: Vec<(String, Encoding)>,

    /// Bytes of a block before compression [default: 262144]
    #[arg(long, value_name = "BYTES")]
    kudu_block_size: Option<usize>,

    /// How blocks lie on the disk: log or file; the server must be started with the same --block_manager
    #[arg(long, value_name = "KIND", default_value = "log")]
    kudu_block_manager: BlockManager,
}

impl KuduArgs {
    pub(super) fn options(&self) -> KuduTableWriterOptions {
        let mut options = KuduTableWriterOptions::default()
            .with_primary_key(self.kudu_key.iter().cloned())
            .with_block_manager(self.kudu_block_manager);
        if let Some(name) = &self.kudu_table {
            options = options.with_table_name(name);
        }
        for hash in &self.kudu_hash {
            options = options.with_hash_partition(hash.clone());
        }
        if let Some(range) = &self.kudu_range {
            options = options.with_range_partition(range.clone());
        }
        if let Some(codec) = self.kudu_codec {
            options = options.with_compression(codec);
        }
        if let Some(bytes) = self.kudu_block_size {
            options = options.with_block_size_bytes(bytes);
        }
        for (column, encoding) in &self.kudu_encoding {
            options = options.with_encoding(column, *encoding);
        }
        options
    }
}

/// An encoding of Kudu's for a column.
pub(super) fn parse_encoding(text: &str) -> Result<(String, Encoding)> {
    let (column, encoding) = parse_pair(text)?;
    Ok((column, encoding.parse()?))
}
