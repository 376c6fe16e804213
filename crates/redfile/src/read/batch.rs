//! What the pages of one leaf give for the rows of one batch.

use arrow_schema::DataType;

use super::dense::Dense;
use crate::schema::Leaf;

/// The levels of entries.
#[derive(Debug)]
pub(crate) enum Levels {
    /// Every entry has a value, and every row one entry.
    None,
    /// Every row has one entry; a set bit has a value.
    Flat { validity: Vec<u8>, len: usize },
    /// A byte per entry; no repetition levels where they can only be 0.
    Full { def: Vec<u8>, rep: Vec<u8> },
}

/// Levels and values of some rows of one leaf.
#[derive(Debug)]
pub(crate) struct LeafBatch {
    pub entries: usize,
    pub levels: Levels,
    pub values: Dense,
    pub max_def: u8,
}

impl LeafBatch {
    /// Nothing yet; `data_type` is what the leaf becomes, `rows` how many will be asked for.
    pub fn new(leaf: &Leaf, data_type: &DataType, rows: usize) -> Self {
        let levels = if leaf.max_def == 0 {
            Levels::None
        } else if leaf.is_flat_optional() {
            Levels::Flat { validity: Vec::with_capacity(rows.div_ceil(8)), len: 0 }
        } else {
            Levels::Full { def: Vec::with_capacity(rows), rep: Vec::new() }
        };
        let values = Dense::new(leaf.physical_type, data_type, rows);
        Self { entries: 0, levels, values, max_def: leaf.max_def }
    }
}
