//! Options of CarbonData tables.

use pilaster::carbondata::{
    Calendar, CarbonDataWriterOptions, CarbonTableWriterOptions, CarbonWriterOptions, Compressor,
};
use pilaster::{Error, Result};

use super::parse_pair;

/// How a CarbonData table is written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Writing CarbonData tables")]
pub(super) struct CarbonArgs {
    /// Add a load to a table that exists, instead of making one
    #[arg(long)]
    carbon_append: bool,

    /// Columns by which rows are sorted, over the whole load [default: none, rows stay in order]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    carbon_sort: Vec<String>,

    /// Columns whose values become folders, of a new table
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    carbon_partition: Vec<String>,

    /// Columns by which rows go into buckets, and how many there are, of a new table: --carbon-buckets id:8
    #[arg(long, value_name = "A,B:BUCKETS", value_parser = parse_buckets)]
    carbon_buckets: Option<(Vec<String>, u32)>,

    /// Columns with a dictionary of the whole table, as releases before 2.0 had them, of a new table
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    carbon_dictionary: Vec<String>,

    /// Columns of texts longer than 32,000 bytes
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    carbon_long_string: Vec<String>,

    /// Compressor of pages: snappy, zstd, gzip
    #[arg(long, value_name = "NAME", default_value = "snappy")]
    carbon_compressor: Compressor,

    /// Rows of a page, at most [default: 32000]
    #[arg(long, value_name = "ROWS")]
    carbon_page_rows: Option<usize>,

    /// Bytes of a blocklet [default: 67108864]
    #[arg(long, value_name = "BYTES")]
    carbon_blocklet_size: Option<u64>,

    /// Bytes of a data file, after which another begins [default: 1073741824]
    #[arg(long, value_name = "BYTES")]
    carbon_block_size: Option<u64>,

    /// No dictionaries of blocklets
    #[arg(long)]
    carbon_no_local_dictionary: bool,

    /// Store the numbers of days and times before 1582-10-15 as they are: of rows that were read with --raw-days
    #[arg(long)]
    carbon_raw_days: bool,

    /// A property of a new table; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    carbon_property: Vec<(String, String)>,
}

fn parse_buckets(text: &str) -> Result<(Vec<String>, u32)> {
    let wrong = || Error::invalid("buckets are given as COLUMNS:NUMBER");
    let (columns, number) = text.rsplit_once(':').ok_or_else(wrong)?;
    let number = number.parse().ok().filter(|number| *number > 0).ok_or_else(wrong)?;
    Ok((columns.split(',').map(str::to_string).collect(), number))
}

impl CarbonArgs {
    fn files(&self) -> CarbonWriterOptions {
        let mut files = CarbonWriterOptions::default()
            .with_compressor(self.carbon_compressor)
            .with_sort_columns(&self.carbon_sort)
            .with_long_strings(&self.carbon_long_string)
            .with_local_dictionary(!self.carbon_no_local_dictionary)
            .with_calendar(if self.carbon_raw_days { Calendar::Stored } else { Calendar::Shown });
        if let Some(rows) = self.carbon_page_rows {
            files = files.with_page_rows(rows);
        }
        if let Some(bytes) = self.carbon_blocklet_size {
            files = files.with_blocklet_bytes(bytes);
        }
        if let Some(bytes) = self.carbon_block_size {
            files = files.with_block_bytes(bytes);
        }
        files
    }

    pub(super) fn options(&self) -> CarbonDataWriterOptions {
        let mut table = CarbonTableWriterOptions::default()
            .with_files(self.files())
            .with_partition_columns(&self.carbon_partition)
            .with_dictionary_columns(&self.carbon_dictionary);
        if let Some((columns, buckets)) = &self.carbon_buckets {
            table = table.with_buckets(columns, *buckets);
        }
        for (key, value) in &self.carbon_property {
            table = table.with_property(key, value);
        }
        CarbonDataWriterOptions::default().with_table(table).with_append(self.carbon_append)
    }
}
