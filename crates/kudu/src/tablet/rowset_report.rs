//! What a rowset says of itself, and what is wrong with it.

use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::verify::Finding;
use pilaster_core::{Dataset, Progress, Result, VerifyDepth, VerifyReport};

use super::rowset::RowSet;
use super::schema::KuduSchema;
use crate::cfile::CFileReader;

impl RowSet {
    /// Bytes of all its blocks.
    pub fn size_bytes(&self) -> u64 {
        self.block_ids().map(|id| self.block_bytes(id)).sum()
    }

    fn block_ids(&self) -> impl Iterator<Item = u64> {
        let metadata = &self.metadata;
        let columns = metadata.columns.iter().map(|(_, block)| *block);
        let deltas = metadata.redo_deltas.iter().chain(&metadata.undo_deltas).copied();
        columns.chain(deltas).chain(metadata.bloom).chain(metadata.adhoc_index)
    }

    pub fn describe(&self) -> Node {
        let metadata = &self.metadata;
        let bytes = |ids: &[u64]| ids.iter().map(|id| self.block_bytes(*id)).sum::<u64>();
        let columns: Vec<u64> = metadata.columns.iter().map(|(_, block)| *block).collect();
        let mut node = Node::new(format!("rowset {}", metadata.id), self.size_bytes())
            .fact("rows", self.rows)
            .fact("changed_in_log", self.log_changes.len());
        if let Some(live) = metadata.live_row_count {
            node = node.fact("live_rows", live);
        }
        node = node.child(Node::new("columns", bytes(&columns)).fact("blocks", columns.len()));
        for (name, blocks) in [
            ("redo deltas", metadata.redo_deltas.as_slice()),
            ("undo deltas", metadata.undo_deltas.as_slice()),
            ("bloom", metadata.bloom.as_slice()),
            ("compound-key index", metadata.adhoc_index.as_slice()),
        ] {
            if !blocks.is_empty() {
                node = node.child(Node::new(name, bytes(blocks)).fact("blocks", blocks.len()));
            }
        }
        node
    }

    pub fn pages(&self, schema: &KuduSchema) -> Result<Vec<Page>> {
        let mut pages = Vec::new();
        for (id, block) in &self.metadata.columns {
            let name = schema.index_of_id(*id).and_then(|index| schema.columns.get(index));
            let name = name.map_or_else(|| format!("dropped column {id}"), |column| column.name.clone());
            let reader = CFileReader::open_with_options(self.block_source(*block)?, self.block_options())?;
            pages.extend(reader.pages()?.into_iter().map(|page| Page { column: name.clone(), ..page }));
        }
        Ok(pages)
    }

    pub fn add_statistics(&self, schema: &KuduSchema, all: &mut [ColumnStatistics]) -> Result<()> {
        for (column, statistics) in schema.columns.iter().zip(all) {
            let Some(file) = self.column(column)? else { continue };
            let metadata = file.metadata();
            statistics.bytes = statistics.bytes.saturating_add(metadata.file_bytes);
            for (list, name) in [
                (&mut statistics.encodings, metadata.encoding.name()),
                (&mut statistics.codecs, metadata.compression.name()),
            ] {
                if !list.iter().any(|known| known == name) {
                    list.push(name.to_string());
                }
            }
        }
        Ok(())
    }

    /// Verifies every block.
    pub fn verify(&self, depth: VerifyDepth, progress: &dyn Progress, report: &mut VerifyReport) {
        for id in self.block_ids() {
            let opened = self
                .block_source(id)
                .and_then(|source| CFileReader::open_with_options(source, self.block_options()))
                .and_then(|reader| reader.verify(depth, progress));
            match opened {
                Ok(found) => report.merge(found),
                Err(error) => report.findings.push(Finding::from_error(&error, &format!("block {id}"), None)),
            }
        }
    }
}
