//! Every row that can be proven good, and a list of what was lost.

use std::sync::Arc;

use pilaster_core::{Dataset, LossLog, LostRows, OnDamage, Progress, Result, RowRanges, ScanRequest};
use serde_json::{Value, json};

use crate::convert::{ConvertOptions, ConvertTarget, convert};

/// How to save rows.
#[derive(Debug, Clone, Default)]
pub struct SalvageOptions {
    row_number_column: Option<String>,
    convert: ConvertOptions,
}

impl SalvageOptions {
    /// Adds a last column of this name with each row's position in the damaged dataset.
    #[must_use]
    pub fn with_row_number_column(mut self, name: Option<String>) -> Self {
        self.row_number_column = name;
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
    /// Rows in it, where it says so.
    pub rows_total: Option<u64>,
    /// Rows written.
    pub rows_saved: u64,
    /// Rows that could not be given, each counted once: not those of which only a cell was lost and given as null, nor those that
    /// nobody can count. See [`SalvageReport::losses`] for these.
    pub rows_lost: u64,
    /// Bytes written.
    pub bytes: u64,
    /// What was lost and why, by position. Losses of no rows are of rows that nobody can count.
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
            "first_row": lost.rows.start,
            "rows": lost.rows.end.saturating_sub(lost.rows.start),
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
    let losses = Arc::new(LossLog::new());
    let request = ScanRequest {
        row_numbers: options.row_number_column.clone(),
        on_damage: OnDamage::Skip(Arc::clone(&losses)),
        ..ScanRequest::default()
    };
    let summary = convert(dataset, &request, target, &options.convert, progress)?;
    let losses = losses.losses();
    let lost: RowRanges = losses.iter().map(|lost| lost.rows.clone()).collect();
    let rows_total = dataset.row_count();
    // Of a row that was given, no more than cells can be lost.
    let most_lost = rows_total.map_or(u64::MAX, |total| total.saturating_sub(summary.rows));
    Ok(SalvageReport {
        source: dataset.name().to_string(),
        rows_total,
        rows_saved: summary.rows,
        rows_lost: lost.count().min(most_lost),
        bytes: summary.bytes,
        losses,
    })
}
