//! Sessions over tables in memory, and their answers as texts.

use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use pilaster_core::{DatasetRef, Error, Result};
use pilaster_datafusion::{SqlOptions, SqlSession};

/// A session of two threads that knows some tables.
pub fn session(tables: Vec<(&str, DatasetRef)>) -> SqlSession {
    let session = SqlSession::new(SqlOptions::default().with_threads(2)).unwrap();
    for (name, dataset) in tables {
        session.register(name, dataset).unwrap();
    }
    session
}

/// The rows of an answer, each with its values separated by spaces.
pub fn answer(session: &SqlSession, sql: &str) -> Result<String> {
    let mut rows = Vec::new();
    for batch in session.sql(sql)? {
        let batch = batch.map_err(Error::from)?;
        let options = FormatOptions::default().with_null("NULL");
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
            .collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join(" ")
        }));
    }
    Ok(rows.join(", "))
}
