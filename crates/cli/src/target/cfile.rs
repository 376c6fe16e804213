//! Options of CFiles and sets of them.

use pilaster::kudu::{CFileSetWriterOptions, CFileWriterOptions, Compression, Encoding, Version};

use super::kudu::parse_encoding;

/// How CFiles are written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Writing CFiles")]
pub(super) struct CFileArgs {
    /// Codec of CFile blocks: no_compression, snappy, lz4, zlib
    #[arg(long, value_name = "CODEC", default_value = "no_compression")]
    cfile_codec: Compression,

    /// Bytes of a CFile block before compression [default: 8192 numbers or 65536 bytes in a set, 262144 in a single file, as Kudu takes]
    #[arg(long, value_name = "BYTES")]
    cfile_block_size: Option<usize>,

    /// The column by which rows ascend, without repeats: it gets an index by value
    #[arg(long, value_name = "COLUMN")]
    cfile_key: Option<String>,

    /// Encoding of a column; may be given several times: --cfile-encoding name=prefix_encoding
    #[arg(long, value_name = "COLUMN=ENCODING", value_parser = parse_encoding)]
    cfile_encoding: Vec<(String, Encoding)>,

    /// Bytes of an index block [default: 32768]
    #[arg(long, value_name = "BYTES")]
    cfile_index_block_size: Option<usize>,

    /// Version of the file: 2, or 1, which has no checksums
    #[arg(long, value_name = "VERSION", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    cfile_version: u8,

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
        if let Some(bytes) = self.cfile_index_block_size {
            column = column.with_index_block_size_bytes(bytes);
        }
        if self.cfile_version == 1 {
            column = column.with_version(Version::V1);
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
