//! How far long work has come.

/// Told about work as it is done. Libraries never print; whoever wants a bar implements this.
pub trait Progress: Send + Sync {
    /// The work is now known to be `total` units (rows or bytes, as the work says).
    fn set_total(&self, total: u64);
    /// `units` more are done.
    fn advance(&self, units: u64);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn set_total(&self, _total: u64) {}
    fn advance(&self, _units: u64) {}
}
