//! What to write, and how: the options of `convert` and `salvage`.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use pilaster::convert::{ConvertOptions, ConvertTarget};
use pilaster::doris::{
    self, ColumnWriteOptions, DorisWriterOptions, SegmentWriteOptions, StorageFormat, TableModel,
    TabletWriteOptions,
};
use pilaster::kudu::{
    BlockManager, CFileSetWriterOptions, CFileWriterOptions, Compression, Encoding, HashPartition,
    KuduTableWriterOptions, RangePartition,
};
use pilaster::output::{ParquetCodec, WriteOptions};
use pilaster::redfile::{self, RedfileWriterOptions};
use pilaster::{Error, OutputFormat, Result};

/// How the target is written.
#[derive(Debug, clap::Args)]
pub(crate) struct TargetArgs {
    /// The format to write, where the extension does not say it
    #[arg(short, long, value_parser = PossibleValuesParser::new(OutputFormat::ALL.map(|(_, name)| name)))]
    format: Option<String>,

    /// Block codec of Parquet files: none, snappy, lz4, gzip, zstd
    #[arg(long, value_name = "CODEC", default_value = "zstd")]
    parquet_codec: ParquetCodec,

    /// Replace what is there
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    cfile: CFileArgs,
    #[command(flatten)]
    kudu: KuduArgs,
    #[command(flatten)]
    redfile: RedfileArgs,
    #[command(flatten)]
    doris: DorisArgs,
}

/// How a CFile set is written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Writing CFiles")]
struct CFileArgs {
    /// Codec of CFile blocks: no_compression, snappy, lz4, zlib
    #[arg(long, value_name = "CODEC", default_value = "no_compression")]
    cfile_codec: Compression,

    /// Bytes of a CFile block before compression [default: 65536]
    #[arg(long, value_name = "BYTES")]
    cfile_block_size: Option<usize>,

    /// The column by which rows ascend, without repeats: it gets an index by value
    #[arg(long, value_name = "COLUMN")]
    cfile_key: Option<String>,

    /// Encoding of a column; may be given several times: --cfile-encoding name=prefix_encoding
    #[arg(long, value_name = "COLUMN=ENCODING", value_parser = parse_encoding)]
    cfile_encoding: Vec<(String, Encoding)>,

    /// Write CFiles without checksums
    #[arg(long)]
    cfile_unchecked: bool,
}

/// How the folder of a Kudu tablet server is written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Writing Kudu tables")]
struct KuduArgs {
    /// Name of the table [default: that of the folder]
    #[arg(long, value_name = "NAME")]
    kudu_table: Option<String>,

    /// Columns of the primary key, in order; rows may come in any order [default: the first column]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    kudu_key: Vec<String>,

    /// Hash partitions by key columns; may be given several times: --kudu-hash id:4
    #[arg(long, value_name = "A,B:BUCKETS")]
    kudu_hash: Vec<HashPartition>,

    /// Range partitions by key columns, divided at these values: --kudu-range "year:2020|2024"
    #[arg(long, value_name = "A,B:SPLIT|SPLIT")]
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
    fn options(&self) -> KuduTableWriterOptions {
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

/// How a Redfile is written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Writing Redfiles")]
struct RedfileArgs {
    /// Codec of pages
    #[arg(long, value_name = "CODEC", default_value = "snappy", value_parser = PossibleValuesParser::new(REDFILE_CODECS.map(|(name, _)| name)))]
    redfile_codec: String,

    /// Bytes of a page before compression [default: 8192]
    #[arg(long, value_name = "BYTES")]
    redfile_page_size: Option<usize>,

    /// Bytes of a row group before compression [default: 536870912]
    #[arg(long, value_name = "BYTES")]
    redfile_row_group_size: Option<u64>,

    /// A checkpoint after every so many row groups, from which a file that was cut off is put together; 0 for none [default: 16]
    #[arg(long, value_name = "N")]
    redfile_checkpoint: Option<u32>,

    /// Leave out checksums
    #[arg(long)]
    redfile_unchecked: bool,

    /// Leave out index pages and statistics
    #[arg(long)]
    redfile_no_index: bool,

    /// Leave out the second copy of column metadata
    #[arg(long)]
    redfile_no_replica: bool,
}

const REDFILE_CODECS: [(&str, redfile::Compression); 4] = [
    ("none", redfile::Compression::Uncompressed),
    ("snappy", redfile::Compression::Snappy),
    ("gzip", redfile::Compression::Gzip),
    ("lzo", redfile::Compression::Lzo),
];

impl RedfileArgs {
    fn options(&self) -> RedfileWriterOptions {
        let mut options = RedfileWriterOptions::default()
            .with_checksums(!self.redfile_unchecked)
            .with_index_pages(!self.redfile_no_index)
            .with_statistics(!self.redfile_no_index)
            .with_replica(!self.redfile_no_replica);
        if let Some((_, codec)) = REDFILE_CODECS.iter().find(|(name, _)| *name == self.redfile_codec) {
            options = options.with_codec(*codec);
        }
        if let Some(bytes) = self.redfile_page_size {
            options = options.with_page_bytes(bytes);
        }
        if let Some(bytes) = self.redfile_row_group_size {
            options = options.with_row_group_bytes(bytes);
        }
        if let Some(row_groups) = self.redfile_checkpoint {
            options = options.with_checkpoint_interval(row_groups);
        }
        options
    }
}

/// How segments and tablets of Doris are written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Writing Doris tablets and segments")]
struct DorisArgs {
    /// What rows of equal keys mean: duplicate, unique, aggregate
    #[arg(long, value_name = "MODEL", default_value = "duplicate", value_parser = PossibleValuesParser::new(DORIS_MODELS))]
    doris_model: String,

    /// Key columns, in order; rows of a tablet may come in any order, those of a segment must be sorted [default: none, for a duplicate table]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    doris_key: Vec<String>,

    /// How values of equal keys become one in an aggregate table: sum, min, max, replace, replace_if_not_null
    #[arg(long, value_name = "COLUMN=RULE", value_parser = parse_pair)]
    doris_aggregate: Vec<(String, String)>,

    /// A unique table merges when it is read, and not when it is written
    #[arg(long)]
    doris_merge_on_read: bool,

    /// The whole schema in the form of `schema.json`, instead of one made from the columns
    #[arg(long, value_name = "FILE", conflicts_with_all = ["doris_key", "doris_aggregate", "doris_bloom"])]
    doris_schema: Option<PathBuf>,

    /// Storage format: v2, v3
    #[arg(long, value_name = "FORMAT", default_value = "v2", value_parser = PossibleValuesParser::new(DORIS_FORMATS.map(|(name, _)| name)))]
    doris_format: String,

    /// Codec of pages: no_compression, snappy, lz4, lz4f, zlib, zstd, lz4hc [default: lz4f]
    #[arg(long, value_name = "CODEC")]
    doris_codec: Option<String>,

    /// Encoding of a column; may be given several times: --doris-encoding name=prefix_encoding
    #[arg(long, value_name = "COLUMN=ENCODING", value_parser = parse_pair)]
    doris_encoding: Vec<(String, String)>,

    /// Columns whose pages get bloom filters
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    doris_bloom: Vec<String>,

    /// How often a bloom filter may be wrong [default: 0.05]
    #[arg(long, value_name = "RATE")]
    doris_bloom_rate: Option<f64>,

    /// Bytes of a data page before compression [default: 65536]
    #[arg(long, value_name = "BYTES")]
    doris_page_size: Option<usize>,

    /// Rows between two entries of the short key index [default: 1024]
    #[arg(long, value_name = "ROWS")]
    doris_short_key_rows: Option<u32>,

    /// Rows of a segment of a tablet, at most [default: 1048576]
    #[arg(long, value_name = "ROWS")]
    doris_segment_rows: Option<u32>,

    /// Id of the tablet [default: 10001]
    #[arg(long, value_name = "ID")]
    doris_tablet: Option<i64>,

    /// Id of the table, by which it is called when it is opened [default: 10000]
    #[arg(long, value_name = "ID")]
    doris_table: Option<i64>,
}

const DORIS_MODELS: [&str; 3] = ["duplicate", "unique", "aggregate"];
const DORIS_FORMATS: [(&str, StorageFormat); 2] = [("v2", StorageFormat::V2), ("v3", StorageFormat::V3)];
/// Id of the partition, which nothing here asks for.
const DORIS_PARTITION: i64 = 10_002;

impl DorisArgs {
    fn segment(&self) -> Result<SegmentWriteOptions> {
        let mut options = SegmentWriteOptions::default();
        if let Some((_, format)) = DORIS_FORMATS.iter().find(|(name, _)| *name == self.doris_format) {
            options = options.with_format(*format);
        }
        if let Some(name) = &self.doris_codec {
            let codec = doris::Compression::from_name(&name.to_ascii_uppercase());
            options = options
                .with_compression(codec.ok_or_else(|| Error::invalid(format!("no codec \"{name}\"")))?);
        }
        for (column, name) in &self.doris_encoding {
            let encoding = doris::Encoding::from_name(&name.to_ascii_uppercase());
            let encoding = encoding.ok_or_else(|| Error::invalid(format!("no encoding \"{name}\"")))?;
            options = options.with_column(column, ColumnWriteOptions::default().with_encoding(encoding));
        }
        if let Some(rate) = self.doris_bloom_rate {
            options = options.with_bloom_rate(rate);
        }
        if let Some(bytes) = self.doris_page_size {
            options = options.with_page_bytes(bytes);
        }
        if let Some(rows) = self.doris_short_key_rows {
            options = options.with_rows_per_short_key(rows);
        }
        Ok(options)
    }

    fn tablet(&self) -> TabletWriteOptions {
        let mut options = TabletWriteOptions::default();
        if let Some(rows) = self.doris_segment_rows {
            options = options.with_rows_per_segment(rows);
        }
        if let Some(id) = self.doris_tablet {
            options = options.with_tablet_id(id);
        }
        if let Some(id) = self.doris_table {
            options = options.with_table(id, DORIS_PARTITION);
        }
        options
    }

    fn options(&self) -> Result<DorisWriterOptions> {
        let keys = self.doris_key.iter().cloned();
        let mut model = match self.doris_model.as_str() {
            "unique" => TableModel::unique(keys).with_merge_on_write(!self.doris_merge_on_read),
            "aggregate" => TableModel::aggregate(keys),
            _ => TableModel::duplicate(keys),
        };
        model = model.with_bloom_columns(self.doris_bloom.iter().cloned());
        for (column, rule) in &self.doris_aggregate {
            model = model.with_aggregation(column, rule.to_ascii_uppercase());
        }
        let schema = self.doris_schema.as_ref().map(doris::read_schema).transpose()?;
        Ok(DorisWriterOptions::default()
            .with_model(model)
            .with_schema(schema)
            .with_tablet(self.tablet())
            .with_segment(self.segment()?))
    }
}

fn parse_pair(text: &str) -> Result<(String, String)> {
    let (column, value) = text.rsplit_once('=').ok_or_else(|| Error::invalid("expected COLUMN=VALUE"))?;
    Ok((column.to_string(), value.to_string()))
}

fn parse_encoding(text: &str) -> Result<(String, Encoding)> {
    let (column, encoding) =
        text.rsplit_once('=').ok_or_else(|| Error::invalid("an encoding is given as COLUMN=ENCODING"))?;
    Ok((column.to_string(), encoding.parse()?))
}

impl CFileArgs {
    fn options(&self) -> CFileSetWriterOptions {
        let mut column = CFileWriterOptions::default()
            .with_compression(self.cfile_codec)
            .with_checksums(!self.cfile_unchecked);
        if let Some(bytes) = self.cfile_block_size {
            column = column.with_block_size_bytes(bytes);
        }
        let mut options = CFileSetWriterOptions::default().with_column_options(column);
        if let Some(key) = &self.cfile_key {
            options = options.with_key(key);
        }
        for (column, encoding) in &self.cfile_encoding {
            options = options.with_encoding(column, *encoding);
        }
        options
    }
}

impl TargetArgs {
    pub(crate) fn target(&self, path: &Path) -> Result<ConvertTarget> {
        match &self.format {
            Some(format) => Ok(ConvertTarget::new(path, format.parse()?)),
            None => ConvertTarget::from_path(path),
        }
    }

    pub(crate) fn options(&self) -> Result<ConvertOptions> {
        Ok(ConvertOptions::default().with_overwrite(self.overwrite).with_write(
            WriteOptions::default()
                .with_parquet_codec(self.parquet_codec)
                .with_cfile_set(self.cfile.options())
                .with_kudu(self.kudu.options())
                .with_redfile(self.redfile.options())
                .with_doris(self.doris.options()?),
        ))
    }
}
