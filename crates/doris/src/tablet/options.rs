//! How to open a tablet.

use std::sync::Arc;

use pilaster_core::{Limits, LostCells};

use crate::schema::TabletSchema;

/// How to open a tablet.
#[derive(Debug, Clone)]
pub struct TabletOptions {
    pub(super) as_of: Option<i64>,
    pub(super) hidden: bool,
    pub(super) verify_checksums: bool,
    pub(super) recovers: bool,
    pub(super) lost_cells: LostCells,
    pub(super) limits: Limits,
    pub(super) schema: Option<Arc<TabletSchema>>,
    pub(super) variant_paths: Vec<(String, String)>,
    pub(super) json_paths: Vec<(String, String)>,
}

impl Default for TabletOptions {
    /// The newest version; checksums are verified, and all segments must be there.
    fn default() -> Self {
        Self {
            as_of: None,
            hidden: false,
            verify_checksums: true,
            recovers: false,
            lost_cells: LostCells::DropRow,
            limits: Limits::default(),
            schema: None,
            variant_paths: Vec::new(),
            json_paths: Vec::new(),
        }
    }
}

impl TabletOptions {
    /// Rows as of an earlier version that is still on disk.
    #[must_use]
    pub fn with_as_of(mut self, version: Option<i64>) -> Self {
        self.as_of = version;
        self
    }

    /// Whether an earlier version is asked for.
    pub fn is_as_of(&self) -> bool {
        self.as_of.is_some()
    }

    /// Whether columns that queries do not see are given too.
    #[must_use]
    pub fn with_hidden(mut self, hidden: bool) -> Self {
        self.hidden = hidden;
        self
    }

    /// Whether stored checksums are compared; on unless switched off.
    #[must_use]
    pub fn with_verify_checksums(mut self, verify: bool) -> Self {
        self.verify_checksums = verify;
        self
    }

    /// Whether damaged segments are put together again, and a tablet opens without those that are missing or cannot be. Their rows are lost to a scan that
    /// goes on over damage; others end with the reason.
    #[must_use]
    pub fn with_recovery(mut self, recovers: bool) -> Self {
        self.recovers = recovers;
        self
    }

    /// What a scan that goes on over damage does with a row of which some cells are lost. Keys, and columns that decide which rows
    /// there are, are never given as null.
    #[must_use]
    pub fn with_lost_cells(mut self, lost_cells: LostCells) -> Self {
        self.lost_cells = lost_cells;
        self
    }

    /// How much a file may make us allocate.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
    /// The schema of the table, where other tablets of it know a newer one. Columns are joined by unique id.
    #[must_use]
    pub fn with_schema(mut self, schema: Option<Arc<TabletSchema>>) -> Self {
        self.schema = schema;
        self
    }

    /// Adds a column with one path of a VARIANT column, named `column['path']`; keys are separated by dots. It has the
    /// path's own type if all segments keep it in columns of one type, else it is JSON text.
    #[must_use]
    pub fn with_variant_path(mut self, column: impl Into<String>, path: impl Into<String>) -> Self {
        self.variant_paths.push((column.into(), path.into()));
        self
    }

    /// Makes such a column JSON text in any case, so that tablets of one table agree.
    #[must_use]
    pub fn with_path_as_json(mut self, column: impl Into<String>, path: impl Into<String>) -> Self {
        self.json_paths.push((column.into(), path.into()));
        self
    }
}
