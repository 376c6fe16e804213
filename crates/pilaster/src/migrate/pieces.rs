//! Which rows go into which file.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, TimestampMicrosecondArray};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, Schema, TimeUnit};
use pilaster_core::{Dataset, Literal, Partition, Result, RowRanges, ScanRequest, TaskSpan};

/// What Hive calls the folder of nulls, and of empty texts.
const NULL_FOLDER: &str = "__HIVE_DEFAULT_PARTITION__";

/// One file to be written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    /// Where, below the target.
    pub path: String,
    /// Columns of the file, by index into the schema of the dataset.
    pub columns: Vec<usize>,
    /// The rows by position.
    pub rows: RowRanges,
}

/// The name of a file.
pub(super) fn file_name(number: usize) -> String {
    format!("part-{number:05}.parquet")
}

/// Cuts a dataset into files; the same dataset gives the same files every time. `None` if it does not know the positions of its rows.
pub(super) fn plan(
    dataset: &dyn Dataset,
    request: &ScanRequest,
    spans: &[TaskSpan],
    file_rows: u64,
) -> Result<Option<Vec<Piece>>> {
    let schema = dataset.schema();
    let columns = request.projected(&schema)?;
    // How many rows a condition leaves is not known, but where they stand.
    let positions = spans.iter().try_fold(0, |most: u64, span| Some(most.max(span.rows.as_ref()?.end)));
    let Some(rows) = positions else { return Ok(None) };
    let mut pieces = Vec::new();
    let mut partitions = dataset.partitions()?;
    if partitions.is_empty() {
        partitions.push(Partition { values: Vec::new(), rows: RowRanges::one(0..rows) });
    }
    for partition in partitions {
        let mut values = partition.values;
        values.retain(|(column, _)| columns.contains(column));
        let is_value = |column: &usize| values.iter().any(|(value, _)| value == column);
        let mut in_file: Vec<_> = columns.iter().copied().filter(|column| !is_value(column)).collect();
        if in_file.is_empty() {
            // A file needs a column.
            in_file.clone_from(&columns);
        }
        let folders: String =
            values.iter().map(|(column, value)| folder(&schema, *column, value) + "/").collect();
        for rows in cut(&partition.rows, spans, file_rows) {
            let path = format!("{folders}{}", file_name(pieces.len()));
            pieces.push(Piece { path, columns: in_file.clone(), rows });
        }
    }
    if pieces.is_empty() {
        // The columns of an empty table are worth a file.
        pieces.push(Piece { path: file_name(0), columns, rows: RowRanges::none() });
    }
    Ok(Some(pieces))
}

/// Stretches of at most `file_rows` rows, which end where tasks end if they can.
fn cut(rows: &RowRanges, spans: &[TaskSpan], file_rows: u64) -> Vec<RowRanges> {
    let ends: Vec<u64> = spans.iter().filter_map(|span| Some(span.rows.as_ref()?.end)).collect();
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    let mut left = file_rows;
    for range in rows.as_slice() {
        let mut start = range.start;
        while start < range.end {
            let most = start.saturating_add(left);
            let end = if most >= range.end {
                range.end
            } else {
                let last = ends.partition_point(|end| *end <= most).checked_sub(1);
                match last.and_then(|last| ends.get(last)).filter(|end| **end > start) {
                    Some(end) => *end,
                    // A task that does not fit into what is left begins a file of its own, unless it fits into none.
                    None if left < file_rows => start,
                    None => most,
                }
            };
            if end > start {
                piece.push(start..end);
            }
            left = left.saturating_sub(end.saturating_sub(start));
            if left == 0 || end < range.end {
                pieces.push(piece.drain(..).collect());
                left = file_rows;
            }
            start = end;
        }
    }
    if !piece.is_empty() {
        pieces.push(piece.into_iter().collect());
    }
    pieces
}

/// `column=value`, as Hive writes and escapes it.
fn folder(schema: &Schema, column: usize, value: &Literal) -> String {
    let name = schema.fields().get(column).map_or("", |field| field.name());
    let text = if value.is_null() { None } else { Some(text(value)) };
    match text.filter(|text| !text.is_empty()) {
        Some(text) => format!("{}={}", escape(name), escape(&text)),
        None => format!("{}={NULL_FOLDER}", escape(name)),
    }
}

/// A value as engines that find partitions by their folders read it.
fn text(value: &Literal) -> String {
    let array = value.array();
    let micros = match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            Some(array.as_primitive::<TimestampSecondType>().value(0).saturating_mul(1_000_000))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            Some(array.as_primitive::<TimestampMillisecondType>().value(0).saturating_mul(1000))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Some(array.as_primitive::<TimestampMicrosecondType>().value(0))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Some(array.as_primitive::<TimestampNanosecondType>().value(0).div_euclid(1000))
        }
        _ => None,
    };
    match micros {
        // 2024-05-31 12:00:00, with a fraction only where there is one
        Some(micros) => {
            let plain = TimestampMicrosecondArray::from(vec![micros]);
            array_value_to_string(&plain, 0).unwrap_or_default().replace('T', " ")
        }
        None => value.to_string(),
    }
}

/// What Hive does not let into the names of folders becomes `%XX`.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let is_special = "\"#%'*/:=?\\{[]^".contains(character) || character.is_ascii_control();
        if is_special {
            out.push_str(&format!("%{:02X}", u32::from(character)));
        } else {
            out.push(character);
        }
    }
    // Neither may a name lead elsewhere.
    if out.trim_matches('.').is_empty() { out.replace('.', "%2E") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    #[test]
    fn folders_are_named_as_hive_does() {
        let name = |array: Arc<dyn Array>| {
            let schema = Schema::new(vec![arrow_schema::Field::new("a b", array.data_type().clone(), true)]);
            folder(&schema, 0, &Literal::from_array(array.as_ref(), 0))
        };
        assert_eq!(name(Arc::new(arrow_array::StringArray::from(vec!["j/p=x"]))), "a b=j%2Fp%3Dx");
        assert_eq!(name(Arc::new(arrow_array::StringArray::from(vec![".."]))), "a b=%2E%2E");
        assert_eq!(
            name(Arc::new(arrow_array::StringArray::from(vec![""]))),
            "a b=__HIVE_DEFAULT_PARTITION__"
        );
        assert_eq!(
            name(Arc::new(arrow_array::Int32Array::from(vec![None]))),
            "a b=__HIVE_DEFAULT_PARTITION__"
        );
        assert_eq!(name(Arc::new(arrow_array::Date32Array::from(vec![1]))), "a b=1970-01-02");
        let time = arrow_array::TimestampMillisecondArray::from(vec![1500]).with_timezone("UTC");
        assert_eq!(name(Arc::new(time)), "a b=1970-01-01 00%3A00%3A01.500");
    }

    proptest! {
        #[test]
        fn pieces_cover_every_row_once(
            lengths in prop::collection::vec(1u64..50, 0..20),
            kept in prop::collection::vec(any::<bool>(), 20),
            file_rows in 1u64..80,
        ) {
            let (mut spans, mut wanted, mut start) = (Vec::new(), Vec::new(), 0);
            for (length, keep) in lengths.iter().zip(kept) {
                spans.push(TaskSpan { rows: Some(start..start + length), bytes: 1 });
                if keep {
                    wanted.push(start..start + length);
                }
                start += length;
            }
            let rows: RowRanges = wanted.into_iter().collect();
            let pieces = cut(&rows, &spans, file_rows);
            prop_assert!(pieces.iter().all(|piece| (1..=file_rows).contains(&piece.count())));
            prop_assert_eq!(pieces.iter().map(RowRanges::count).sum::<u64>(), rows.count());
            let all = pieces.iter().fold(RowRanges::none(), |all, piece| all.union(piece));
            prop_assert_eq!(all, rows);
        }
    }
}
