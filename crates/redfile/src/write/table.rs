//! A metadata file over several files.

use std::io::Write;

use pilaster_core::{Error, Result};

use crate::metadata::{FileMetadata, MAGIC, VERSION, checksums};

/// Writes a metadata file that makes one table of complete files with the same schema: each is given with its path relative to
/// the folder of the metadata file.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if there are no files or their schemas differ; [`pilaster_core::ErrorKind::Io`].
pub fn write_table_file<W: Write>(mut sink: W, files: &[(String, FileMetadata)]) -> Result<W> {
    let Some((_, first)) = files.first() else { return Err(Error::invalid("a table of no files")) };
    let mut table = FileMetadata {
        version: VERSION,
        schema: first.schema.clone(),
        key_values: first.key_values.clone(),
        created_by: first.created_by.clone(),
        // What each of them promises holds for all; the file metadata is this one.
        checksums: Some(
            files.iter().fold(checksums::ALL, |all, (_, file)| all & file.checksums.unwrap_or(0))
                | checksums::FILE,
        ),
        ..FileMetadata::default()
    };
    for (path, file) in files {
        if file.schema != first.schema {
            return Err(Error::invalid(format!(
                "\"{path}\" has another schema than \"{}\"",
                files.first().map_or("", |f| &f.0)
            )));
        }
        for group in &file.row_groups {
            let mut group = group.clone();
            group.file_offset = None;
            for column in &mut group.columns {
                column.file_path = Some(match &column.file_path {
                    None => path.clone(),
                    // A file that is itself spread over others: their paths are relative to its own folder.
                    Some(inner) => match path.rsplit_once('/') {
                        Some((folder, _)) => format!("{folder}/{inner}"),
                        None => inner.clone(),
                    },
                });
            }
            table.num_rows = table
                .num_rows
                .checked_add(group.num_rows)
                .ok_or_else(|| Error::invalid("more rows than a table can count"))?;
            table.row_groups.push(group);
        }
    }
    let mut bytes = MAGIC.to_vec();
    table.write_footer(&mut bytes)?;
    sink.write_all(&bytes)?;
    sink.flush()?;
    Ok(sink)
}
