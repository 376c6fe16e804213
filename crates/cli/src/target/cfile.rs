//! Options of CFile sets.

use pilaster::kudu::{CFileSetWriterOptions, CFileWriterOptions, Compression, Encoding};

use super::kudu::parse_encoding;

/// How a CFile set is written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Writing CFiles")]
pub(super) struct CFileArgs {
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

impl CFileArgs {
    pub(super) fn options(&self) -> CFileSetWriterOptions {
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
