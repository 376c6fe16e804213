//! Columns of every type of Arrow in SQL: what is computed with them is right, or refused.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests compute with known values, and a failure is a panic"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema};
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::errors::ParquetError;
use futures::TryStreamExt;
use pilaster_datafusion::{SqlContext, SqlOptions};
use pilaster_testing::types::{ROWS, number_columns};

/// The columns as tables of a number and the column, in files of others.
fn files(folder: &Path, column: &ArrayRef) -> Vec<String> {
    let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(0..ROWS as i32));
    let fields =
        vec![Field::new("id", DataType::Int32, false), Field::new("x", column.data_type().clone(), true)];
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![ids, Arc::clone(column)]).unwrap();
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    let mut files = vec![("a.arrow", writer.into_inner().unwrap())];
    // The `parquet` crate panics on dictionaries of views.
    let is_view = |values: &DataType| matches!(values, DataType::Utf8View | DataType::BinaryView);
    let is_hopeless = matches!(column.data_type(), DataType::Dictionary(_, values) if is_view(values));
    let parquet = match is_hopeless {
        true => Err(ParquetError::NYI(String::new())),
        false => ArrowWriter::try_new(Vec::new(), batch.schema(), None),
    };
    let parquet = parquet.and_then(|mut writer| writer.write(&batch).map(|()| writer));
    files.extend(parquet.and_then(ArrowWriter::into_inner).ok().map(|bytes| ("a.parquet", bytes)));
    let write = |(name, bytes): (&str, Vec<u8>)| {
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    files.into_iter().map(write).collect()
}

/// The first column of an answer.
async fn answer(context: &SqlContext, query: &str) -> Result<Vec<ArrayRef>, String> {
    let stream = context.sql(query).await.map_err(|error| error.to_string())?;
    let batches: Vec<RecordBatch> = stream.try_collect().await.map_err(|error| error.to_string())?;
    Ok(batches.iter().map(|batch| Arc::clone(batch.column(0))).collect())
}

fn as_numbers(arrays: &[ArrayRef]) -> Result<Vec<Option<f64>>, String> {
    let mut numbers = Vec::new();
    for array in arrays {
        let doubles = cast(array, &DataType::Float64).map_err(|error| error.to_string())?;
        numbers.extend(doubles.as_primitive::<Float64Type>().iter());
    }
    Ok(numbers)
}

fn session() -> SqlContext {
    SqlContext::new(SqlOptions::default().with_threads(2))
}

/// Every operation on 1, null, 2, 1, 3, 2, and what it gives.
const NUMBERS: &[(&str, &[Option<f64>])] = &[
    ("SELECT x FROM t", &[Some(1.0), None, Some(2.0), Some(1.0), Some(3.0), Some(2.0)]),
    ("SELECT x + x FROM t", &[Some(2.0), None, Some(4.0), Some(2.0), Some(6.0), Some(4.0)]),
    ("SELECT 1 - x FROM t", &[Some(0.0), None, Some(-1.0), Some(0.0), Some(-2.0), Some(-1.0)]),
    ("SELECT x * 100000 FROM t", &[Some(1e5), None, Some(2e5), Some(1e5), Some(3e5), Some(2e5)]),
    ("SELECT x + 0.5 FROM t", &[Some(1.5), None, Some(2.5), Some(1.5), Some(3.5), Some(2.5)]),
    ("SELECT x / 0.5 FROM t", &[Some(2.0), None, Some(4.0), Some(2.0), Some(6.0), Some(4.0)]),
    ("SELECT x % 2 FROM t", &[Some(1.0), None, Some(0.0), Some(1.0), Some(1.0), Some(0.0)]),
    ("SELECT 3 * x - id FROM t", &[Some(3.0), None, Some(4.0), Some(0.0), Some(5.0), Some(1.0)]),
    ("SELECT sum(x) FROM t", &[Some(9.0)]),
    ("SELECT sum(x * (1 - x)) FROM t", &[Some(-10.0)]),
    ("SELECT avg(x) FROM t", &[Some(1.8)]),
    ("SELECT min(x) FROM t", &[Some(1.0)]),
    ("SELECT max(x) FROM t WHERE id < 4", &[Some(2.0)]),
    ("SELECT median(x) FROM t", &[Some(2.0)]),
    ("SELECT count(DISTINCT x) FROM t", &[Some(3.0)]),
    ("SELECT sum(DISTINCT x) FROM t", &[Some(6.0)]),
    ("SELECT sum(x) FROM t GROUP BY id % 2 ORDER BY 1", &[Some(3.0), Some(6.0)]),
    ("SELECT x FROM t GROUP BY x ORDER BY x", &[Some(1.0), Some(2.0), Some(3.0), None]),
    ("SELECT x FROM t GROUP BY x, id % 2 ORDER BY x LIMIT 2", &[Some(1.0), Some(1.0)]),
    ("SELECT DISTINCT x FROM t ORDER BY x DESC NULLS LAST", &[Some(3.0), Some(2.0), Some(1.0), None]),
    ("SELECT id FROM t ORDER BY x, id", &[Some(0.0), Some(3.0), Some(2.0), Some(5.0), Some(4.0), Some(1.0)]),
    (
        "SELECT CASE WHEN id > 1 THEN x ELSE 0 END FROM t",
        &[Some(0.0), Some(0.0), Some(2.0), Some(1.0), Some(3.0), Some(2.0)],
    ),
    (
        "SELECT CASE WHEN id > 1 THEN x ELSE 0.5 END FROM t",
        &[Some(0.5), Some(0.5), Some(2.0), Some(1.0), Some(3.0), Some(2.0)],
    ),
    ("SELECT coalesce(x, 7) FROM t", &[Some(1.0), Some(7.0), Some(2.0), Some(1.0), Some(3.0), Some(2.0)]),
    ("SELECT coalesce(x, 7.5) FROM t", &[Some(1.0), Some(7.5), Some(2.0), Some(1.0), Some(3.0), Some(2.0)]),
    ("SELECT nullif(x, 2) FROM t", &[Some(1.0), None, None, Some(1.0), Some(3.0), None]),
    ("SELECT x FROM t WHERE id < 2 UNION ALL SELECT 70000 ORDER BY 1", &[Some(1.0), Some(70000.0), None]),
    (
        "SELECT x FROM t WHERE id < 3 UNION SELECT x FROM t WHERE id = 3 ORDER BY 1",
        &[Some(1.0), Some(2.0), None],
    ),
    ("SELECT count(*) FROM t a JOIN t b ON a.x = b.x", &[Some(9.0)]),
    ("SELECT count(*) FROM t a JOIN (SELECT CAST(id AS BIGINT) i FROM t) b ON a.x = b.i", &[Some(5.0)]),
    (
        "SELECT sum(x) OVER (ORDER BY id) FROM t ORDER BY id",
        &[Some(1.0), Some(1.0), Some(3.0), Some(4.0), Some(7.0), Some(9.0)],
    ),
    (
        "SELECT lag(x) OVER (ORDER BY id) FROM t ORDER BY id",
        &[None, Some(1.0), None, Some(2.0), Some(1.0), Some(3.0)],
    ),
    (
        "SELECT rank() OVER (ORDER BY x) FROM t ORDER BY id",
        &[Some(1.0), Some(6.0), Some(3.0), Some(1.0), Some(5.0), Some(3.0)],
    ),
    ("SELECT count(*) FROM t WHERE x > 1", &[Some(3.0)]),
    ("SELECT count(*) FROM t WHERE x > 1.5", &[Some(3.0)]),
    ("SELECT count(*) FROM t WHERE x <= 100000", &[Some(5.0)]),
    ("SELECT count(*) FROM t WHERE x + 1 > 2", &[Some(3.0)]),
    ("SELECT count(*) FROM t WHERE x BETWEEN 1 AND 2", &[Some(4.0)]),
    ("SELECT count(*) FROM t WHERE x IN (1, 3)", &[Some(3.0)]),
    ("SELECT count(*) FROM t WHERE x IN (1, 3, 7, 8, 9)", &[Some(3.0)]),
    ("SELECT count(*) FROM t WHERE x NOT IN (1, 3)", &[Some(2.0)]),
    ("SELECT count(*) FROM t WHERE x = (SELECT max(x) FROM t)", &[Some(1.0)]),
    ("SELECT count(*) FROM t WHERE x IN (SELECT x FROM t WHERE id = 0)", &[Some(2.0)]),
    ("SELECT count(*) FROM t WHERE x IS NULL", &[Some(1.0)]),
    ("SELECT array_agg(x ORDER BY id)[3] FROM t", &[Some(2.0)]),
    ("SELECT first_value(x ORDER BY id DESC) FROM t", &[Some(2.0)]),
    ("SELECT CAST(x AS DECIMAL(20, 5)) FROM t WHERE id = 0", &[Some(1.0)]),
];

async fn check(
    columns: Vec<ArrayRef>,
    mut judge: impl AsyncFnMut(&SqlContext, &DataType, &str) -> Vec<String>,
) {
    let mut faults = BTreeSet::new();
    for column in columns {
        let folder = tempfile::tempdir().unwrap();
        for path in files(folder.path(), &column) {
            let name = path.rsplit_once('/').unwrap().1.to_string();
            let context = session();
            for fault in judge(&context, column.data_type(), &path).await {
                faults.insert(format!("{} in {name}: {fault}", column.data_type()));
            }
        }
    }
    let faults: Vec<_> = faults.into_iter().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn over(query: &str, path: &str) -> String {
    query.replace("FROM t", &format!("FROM '{path}'")).replace("JOIN t", &format!("JOIN '{path}'"))
}

#[tokio::test]
async fn numbers_of_every_type_are_computed_with_rightly() {
    check(number_columns(), async |context, _, path| {
        let mut faults = Vec::new();
        for (query, expected) in NUMBERS {
            let found = answer(context, &over(query, path)).await.and_then(|arrays| as_numbers(&arrays));
            let is_close = |a: &Option<f64>, b: &Option<f64>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() < 1e-6,
                (a, b) => a == b,
            };
            let is_right = found.as_ref().is_ok_and(|found| {
                found.len() == expected.len() && found.iter().zip(*expected).all(|(a, b)| is_close(a, b))
            });
            if !is_right {
                faults.push(format!("{query}: {found:?} for {expected:?}"));
            }
        }
        // Nothing less than zero fits a type without a sign: an error is right, a large number is not.
        let found = answer(context, &over("SELECT -x FROM t WHERE id = 0", path)).await;
        if let Ok(Ok(found)) = found.map(|arrays| as_numbers(&arrays))
            && found != [Some(-1.0)]
        {
            faults.push(format!("-x: {found:?}"));
        }
        faults
    })
    .await;
}
