//! Options of tablets and segments of Doris.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use pilaster::doris::{
    self, ColumnWriteOptions, DorisWriterOptions, Release, SegmentWriteOptions, StorageFormat, TableModel,
    TabletWriteOptions,
};
use pilaster::{Error, Result};

use super::parse_pair;

/// How segments and tablets of Doris are written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Writing Doris tablets and segments")]
pub(super) struct DorisArgs {
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

    /// Write what this release reads rightly too, and refuse what it does not know. 0.12 (2020): V2 only, no zstd or lz4hc, no types
    /// since (string, datev2, decimal64, …); pages of fewer than 20 rows get bounds, without which releases before 2021 lose their rows
    #[arg(long, value_name = "RELEASE", value_parser = PossibleValuesParser::new([Release::V0_12.name()]))]
    doris_compat: Option<String>,

    /// Storage format: v2, v3 [default: what the schema says, else v2]
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(DORIS_FORMATS.map(|(name, _)| name)))]
    doris_format: Option<String>,

    /// Codec of pages: no_compression, snappy, lz4, lz4f, zlib, zstd, lz4hc [default: lz4f]; may be given several times, for
    /// columns of their own too: --doris-codec zstd --doris-codec name=lz4
    #[arg(long, value_name = "[COLUMN=]CODEC")]
    doris_codec: Vec<String>,

    /// Encoding of a column; may be given several times: --doris-encoding name=plain_encoding. Doris up to at least 1.2 misreads
    /// columns of values in prefix_encoding
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
        if let Some((_, format)) =
            DORIS_FORMATS.iter().find(|(name, _)| Some(*name) == self.doris_format.as_deref())
        {
            options = options.with_format(*format);
        }
        let mut columns = BTreeMap::<&str, ColumnWriteOptions>::new();
        for (column, name) in &self.doris_encoding {
            let encoding = doris::Encoding::from_name(&name.to_ascii_uppercase());
            let encoding = encoding.ok_or_else(|| Error::invalid(format!("no encoding \"{name}\"")))?;
            let chosen = columns.entry(column).or_default();
            *chosen = std::mem::take(chosen).with_encoding(encoding);
        }
        for text in &self.doris_codec {
            let (column, name) = text.rsplit_once('=').map_or((None, text.as_str()), |(c, n)| (Some(c), n));
            let codec = doris::Compression::from_name(&name.to_ascii_uppercase());
            let codec = codec.ok_or_else(|| Error::invalid(format!("no codec \"{name}\"")))?;
            match column {
                Some(column) => {
                    let chosen = columns.entry(column).or_default();
                    *chosen = std::mem::take(chosen).with_compression(codec);
                }
                None => options = options.with_compression(codec),
            }
        }
        for (column, chosen) in columns {
            options = options.with_column(column, chosen);
        }
        if let Some(release) = self.doris_compat.as_deref().and_then(Release::from_name) {
            options = options.with_release(release);
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

    /// What whoever chose these options should know.
    pub(super) fn warning(&self) -> Option<String> {
        let is_prefix = |(_, name): &&(String, String)| name.eq_ignore_ascii_case("prefix_encoding");
        let (column, _) = self.doris_encoding.iter().find(is_prefix)?;
        Some(format!(
            "column {column:?} in prefix_encoding: Doris up to at least 1.2 misreads columns of values in it"
        ))
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

    pub(super) fn options(&self) -> Result<DorisWriterOptions> {
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
