//! Every row that can be proven good, and a list of what was lost.

use std::sync::Arc;

use pilaster_core::dataset::column_index;
use pilaster_core::salvage::total_lost;
use pilaster_core::{Dataset, LossLog, LostCells, LostRows, OnDamage, Progress, Result, ScanRequest};
use serde_json::{Value, json};

use crate::convert::{ConvertOptions, ConvertTarget, convert};

/// How to save rows.
#[derive(Debug, Clone, Default)]
pub struct SalvageOptions {
    row_number_column: Option<String>,
    columns: Option<Vec<String>>,
    lost_cells: LostCells,
    convert: ConvertOptions,
}

impl SalvageOptions {
    /// Adds a last column of this name with each row's position in the damaged dataset.
    #[must_use]
    pub fn with_row_number_column(mut self, name: Option<String>) -> Self {
        self.row_number_column = name;
        self
    }

    /// Only these columns, in this order: a row is not lost because of what happened to another column.
    #[must_use]
    pub fn with_columns(mut self, columns: Option<Vec<String>>) -> Self {
        self.columns = columns;
        self
    }

    /// What becomes of a row of which some cells are lost.
    #[must_use]
    pub fn with_lost_cells(mut self, lost_cells: LostCells) -> Self {
        self.lost_cells = lost_cells;
        self
    }

    /// How to write.
    #[must_use]
    pub fn with_convert(mut self, convert: ConvertOptions) -> Self {
        self.convert = convert;
        self
    }
}

/// What was saved and what was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvageReport {
    /// The dataset the rows came from.
    pub source: String,
    /// Rows in it, as far as anything that is left tells.
    pub rows_total: Option<u64>,
    /// Rows written.
    pub rows_saved: u64,
    /// Rows that could not be given, each counted once: not those of which only a cell was lost and given as null. `None` if there
    /// are losses that nobody can count.
    pub rows_lost: Option<u64>,
    /// Bytes written.
    pub bytes: u64,
    /// What was lost and why, by position.
    pub losses: Vec<LostRows>,
}

impl SalvageReport {
    /// Whether nothing was lost, cells and rows that nobody can count included.
    pub fn is_complete(&self) -> bool {
        self.losses.is_empty()
    }

    /// The report as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "source": self.source,
            "rows_total": self.rows_total,
            "rows_saved": self.rows_saved,
            "rows_lost": self.rows_lost,
            "bytes": self.bytes,
            "losses": losses_to_json(&self.losses),
        })
    }
}

/// Losses as JSON.
pub(crate) fn losses_to_json(losses: &[LostRows]) -> Value {
    let losses = losses.iter().map(|lost| {
        json!({
            "part": lost.part,
            "first_row": lost.positions().map(|rows| rows.start),
            "rows": lost.count(),
            "column": lost.column,
            "reason": lost.reason,
        })
    });
    losses.collect()
}

/// Writes every row that can be read to a new file and notes the others. Progress counts rows.
///
/// # Errors
/// As [`convert`]; damage is in the report.
pub fn salvage(
    dataset: &dyn Dataset,
    target: &ConvertTarget,
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport> {
    let losses = Arc::new(LossLog::new().with_cells(options.lost_cells));
    let schema = dataset.schema();
    let projection = options.columns.as_ref().map(|names| {
        let index = |name: &String| column_index(&schema, name);
        names.iter().map(index).collect::<Result<Vec<_>>>()
    });
    let request = ScanRequest {
        projection: projection.transpose()?,
        row_numbers: options.row_number_column.clone(),
        on_damage: OnDamage::Skip(Arc::clone(&losses)),
        ..ScanRequest::default()
    };
    let summary = convert(dataset, &request, target, &options.convert, progress)?;
    dataset.absences().iter().for_each(|absence| losses.add(absence.loss()));
    let losses = losses.losses();
    let (rows_total, rows_lost) = totals(&losses, dataset.row_count(), summary.rows);
    Ok(SalvageReport {
        source: dataset.name().to_string(),
        rows_total,
        rows_saved: summary.rows,
        rows_lost,
        bytes: summary.bytes,
        losses,
    })
}

/// How many rows there were and how many were lost, each as far as that can be known. `counted` is what the dataset says of
/// the rows at its positions; rows that are gone with a part that is not here have none.
fn totals(losses: &[LostRows], counted: Option<u64>, saved: u64) -> (Option<u64>, Option<u64>) {
    let Some(lost) = total_lost(losses) else { return (None, None) };
    let is_placed = losses.iter().all(|lost| lost.part.is_none() && lost.positions().is_some());
    match counted.filter(|_| is_placed) {
        // Of a row that was given, no more than cells can be lost.
        Some(total) => (Some(total), Some(lost.min(total.saturating_sub(saved)))),
        None => (Some(saved.saturating_add(lost)), Some(lost)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_guesses_how_many_rows_there_were() {
        let cells = LostRows::at(3..5, "why").of_column("c");
        for (losses, counted, expected) in [
            (vec![], Some(10), (Some(10), Some(0))),
            (vec![cells.clone()], Some(12), (Some(12), Some(2))),
            (vec![cells.clone()], Some(10), (Some(10), Some(0))),
            (vec![cells.clone()], None, (Some(12), Some(2))),
            (vec![cells.clone(), LostRows::counted(7, "gone")], Some(10), (Some(19), Some(9))),
            (vec![cells, LostRows::unknown("gone")], Some(10), (None, None)),
        ] {
            assert_eq!(totals(&losses, counted, 10), expected, "{losses:?}");
        }
    }
}
