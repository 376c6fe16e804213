//! Key columns made again from the index of a compound key, which holds the whole encoded key of every row.

use std::collections::HashSet;
use std::sync::Arc;

use pilaster_core::source::MemorySource;
use pilaster_core::{Error, LostRows, Result};

use super::cells;
use super::rowset::RowSet;
use super::schema::{KuduColumn, KuduSchema};
use crate::cfile::{CFile, CFileReaderOptions, CFileWriter, CFileWriterOptions, KuduType};
use crate::key;

/// Keys decoded at once.
const STRETCH_ROWS: u64 = 8192;

impl RowSet {
    /// Makes a key column again; from then on it is read instead of its file.
    pub fn restore_key_column(&self, schema: &KuduSchema, name: &str) -> Result<()> {
        let keys = schema.keys();
        let cannot = || Error::corrupt("an index of a compound key with this column", "none");
        let number =
            keys.iter().position(|key| key.name == name).filter(|_| self.metadata.adhoc_index.is_some());
        let (Some(number), true) = (number, self.key_index_file().is_some()) else { return Err(cannot()) };
        let column = keys.get(number).ok_or_else(cannot)?;
        let types: Vec<KuduType> = keys.iter().map(|key| key.data_type).collect();
        let file = self.make_column(column, number, &types)?;
        self.put_column(column.id.unwrap_or(-1), Arc::new(file));
        Ok(())
    }

    fn make_column(&self, column: &KuduColumn, number: usize, types: &[KuduType]) -> Result<CFile> {
        let mut writer = CFileWriter::try_new(Vec::new(), &column.field(), CFileWriterOptions::default())?;
        let mut start = 0;
        while start < self.rows {
            let end = start.saturating_add(STRETCH_ROWS).min(self.rows);
            let mut stored = Vec::new();
            for key in self.keys_of(start..end)? {
                let mut parts = key::decode(types, &key)?;
                stored.push(if number < parts.len() { parts.swap_remove(number) } else { Vec::new() });
            }
            let cells: Vec<Option<&[u8]>> = stored.iter().map(|cell| Some(cell.as_slice())).collect();
            writer.write_array(&cells::to_array(column, &cells)?)?;
            start = end;
        }
        let (bytes, _) = writer.finish()?;
        let name = format!("rowset {}: key column {:?} made again", self.metadata.id, column.name);
        let options = CFileReaderOptions::default().with_field(column.field());
        CFile::open(Arc::new(MemorySource::new(name, bytes)), &options)
    }

    /// Makes key columns with losses again and gives back the losses that are left.
    pub fn restore_lost_keys(&self, schema: &KuduSchema, losses: Vec<LostRows>) -> Vec<LostRows> {
        let columns: HashSet<String> = losses.iter().filter_map(|lost| lost.column.clone()).collect();
        let restored: HashSet<String> =
            columns.into_iter().filter(|name| self.restore_key_column(schema, name).is_ok()).collect();
        let is_left = |lost: &LostRows| lost.column.as_ref().is_none_or(|name| !restored.contains(name));
        losses.into_iter().filter(is_left).collect()
    }
}
