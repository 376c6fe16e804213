//! `COPY` with options or partitions, which DataFusion writes itself: turned to a place where nothing is yet.

use std::path::Path;

use datafusion::sql::parser::{CopyToSource, CopyToStatement, Statement};
use pilaster_core::Result;

use crate::partition_text;
use crate::session::parse_statements;

/// A `COPY` that names options or partitions.
#[derive(Debug)]
pub struct StagedCopy(CopyToStatement);

impl StagedCopy {
    /// Takes a `COPY` to a path of this machine.
    ///
    /// # Errors
    /// The statement, as it was, if it is none.
    pub fn try_from_statement(statement: Statement) -> Result<Self, Box<Statement>> {
        match statement {
            Statement::CopyTo(copy) if pilaster::local_path(&copy.target).is_some() => Ok(Self(copy)),
            other => Err(Box::new(other)),
        }
    }

    /// The file or folder that is to appear.
    pub fn target(&self) -> &str {
        self.0.target.strip_prefix("file://").unwrap_or(&self.0.target)
    }

    /// Whether the rows go into several files in a folder.
    pub fn is_folder(&self) -> bool {
        let target = self.target();
        !self.0.partitioned_by.is_empty() || target.ends_with('/') || Path::new(target).extension().is_none()
    }

    /// A query that has the columns after whose values folders are named, and no rows; `None` without such columns.
    ///
    /// # Errors
    /// If the query cannot be put into another.
    pub fn partition_columns(&self) -> Result<Option<Statement>> {
        if self.0.partitioned_by.is_empty() {
            return Ok(None);
        }
        let columns: Vec<_> = self.0.partitioned_by.iter().map(|column| quoted(column)).collect();
        let text = format!("SELECT {} FROM {} LIMIT 0", columns.join(", "), source_of(&self.0));
        Ok(parse_statements(&text)?.pop())
    }

    /// The statement that writes to `place` instead. Rows without a value in a column they are partitioned by get a partition of
    /// their own, apart from that of the empty text.
    ///
    /// # Errors
    /// If the query cannot be put into another.
    pub fn into_statement(self, place: &Path) -> Result<Statement> {
        let is_folder = self.is_folder();
        let mut copy = self.0;
        copy.target = format!("{}{}", place.display(), if is_folder { "/" } else { "" });
        if copy.partitioned_by.is_empty() {
            return Ok(Statement::CopyTo(copy));
        }
        let replaced = copy.partitioned_by.iter().map(|column| {
            let column = quoted(column);
            format!("{}({column}) AS {column}", partition_text::NAME)
        });
        let replaced = replaced.collect::<Vec<_>>().join(", ");
        let source = source_of(&copy);
        let text = format!("COPY (SELECT * REPLACE ({replaced}) FROM {source}) TO 'x.parquet'");
        for statement in parse_statements(&text)? {
            if let Statement::CopyTo(rewritten) = statement {
                copy.source = rewritten.source;
            }
        }
        Ok(Statement::CopyTo(copy))
    }
}

fn quoted(column: &str) -> String {
    format!("\"{}\"", column.replace('"', "\"\""))
}

/// What is copied, as it stands behind FROM.
fn source_of(copy: &CopyToStatement) -> String {
    match &copy.source {
        CopyToSource::Query(query) => format!("({query})"),
        CopyToSource::Relation(name) => name.to_string(),
    }
}
