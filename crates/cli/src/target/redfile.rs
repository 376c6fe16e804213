//! Options of Redfiles.

use clap::builder::PossibleValuesParser;
use pilaster::redfile::{self, RedfileWriterOptions};

/// How a Redfile is written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Writing Redfiles")]
pub(super) struct RedfileArgs {
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
    pub(super) fn options(&self) -> RedfileWriterOptions {
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
