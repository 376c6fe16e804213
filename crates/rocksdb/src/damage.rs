//! What to do about damage, and what was found.

use std::sync::{Arc, Mutex, PoisonError};

use pilaster_core::source::is_out_of_handles;
use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, ErrorKind, Result};

/// What to do when something of a database cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// It is an error.
    #[default]
    Stop,
    /// It is noted, and the rest is read: pairs may be missing, and older ones may stand where newer ones or deletes were lost.
    Skip,
}

/// Findings of everybody who reads one database.
#[derive(Debug, Clone)]
pub(crate) struct Damage {
    on_damage: OnDamage,
    name: Arc<str>,
    findings: Arc<Mutex<Vec<Finding>>>,
}

impl Damage {
    pub fn new(on_damage: OnDamage, name: &str) -> Self {
        Self { on_damage, name: name.into(), findings: Arc::default() }
    }

    pub fn is_tolerant(&self) -> bool {
        self.on_damage == OnDamage::Skip
    }

    /// Notes an error where damage is tolerated, and gives it back where not. What asking again with other rights would mend is never
    /// damage.
    pub fn pass(&self, error: Error) -> Result<()> {
        let is_refusal = match error.kind() {
            ErrorKind::Io(io) => {
                io.kind() == std::io::ErrorKind::PermissionDenied || is_out_of_handles(&error)
            }
            _ => false,
        };
        if !self.is_tolerant() || is_refusal {
            return Err(error);
        }
        self.note(&error, Severity::Error);
        Ok(())
    }

    /// Notes what is odd, once.
    pub fn note(&self, error: &Error, severity: Severity) {
        let finding = Finding { severity, ..Finding::from_error(error, &self.name, None) };
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }

    pub fn findings(&self) -> Vec<Finding> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
