//! Functions whose result may be any size, though their arguments are small: `repeat('a', 2000000000)`. They are refused where what one
//! call gives would take more than [`MOST_BYTES`]; it would be memory that no budget counts.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, FieldRef, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::functions::{string, unicode};
use datafusion::functions_nested::{range, repeat, resize};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};
use pilaster_core::fitting::value_bytes;

/// What one call may give for all rows of a batch.
const MOST_BYTES: u64 = 256 << 20;

/// Bytes of a character, at most; of a number or of the place of a text, about.
const CHARACTER_BYTES: u64 = 4;
const VALUE_BYTES: u64 = 16;

/// DataFusion's functions with a bound around them.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let of = |inner, size| ScalarUDF::from(Bounded { inner, size });
    vec![
        of(string::repeat(), Size::Repeat),
        of(string::replace(), Size::Replace),
        of(unicode::lpad(), Size::Pad),
        of(unicode::rpad(), Size::Pad),
        of(repeat::array_repeat_udf(), Size::Values),
        of(resize::array_resize_udf(), Size::Resize),
        of(range::range_udf(), Size::Range),
        of(range::gen_series_udf(), Size::Range),
    ]
}

/// How large the result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Size {
    /// The text of the first argument, as often as the second says.
    Repeat,
    /// A list with the first argument, as often as the second says.
    Values,
    /// As many characters as the second argument says.
    Pad,
    /// As many values as the second argument says, each like the third.
    Resize,
    /// From the first argument to the second in steps of the third, or up to the first.
    Range,
    /// The first argument with the third wherever it has the second.
    Replace,
}

impl Size {
    /// Bytes of the result for these arguments, which are as long as each other; 0 for what the function itself refuses.
    fn bytes(self, args: &[ArrayRef]) -> Result<u64> {
        let sum = |rows: &mut dyn Iterator<Item = u64>| rows.fold(0, u64::saturating_add);
        Ok(match (self, args) {
            (Self::Repeat, [text, count]) => {
                let text = |row| value_bytes(&text.slice(row, 1));
                sum(&mut counts(count)?.map(|(row, count)| text(row).saturating_mul(count)))
            }
            (Self::Values, [value, count]) => {
                let value = |row| value_bytes(&value.slice(row, 1)).saturating_add(VALUE_BYTES);
                sum(&mut counts(count)?.map(|(row, count)| value(row).saturating_mul(count)))
            }
            (Self::Pad, [_, length, ..]) => {
                sum(&mut counts(length)?.map(|(_, length)| length.saturating_mul(CHARACTER_BYTES)))
            }
            (Self::Resize, [_, size, fill @ ..]) => {
                let fill = |row| fill.first().map_or(0, |fill| value_bytes(&fill.slice(row, 1)));
                let value = |row| fill(row).saturating_add(VALUE_BYTES);
                sum(&mut counts(size)?.map(|(row, size)| value(row).saturating_mul(size)))
            }
            (Self::Range, args) => range_bytes(args)?,
            (Self::Replace, [text, from, to]) => replaced_bytes(text, from, to)?,
            _ => 0,
        })
    }
}

/// Each row with its number, if that is more than 0.
fn counts(array: &ArrayRef) -> Result<impl Iterator<Item = (usize, u64)>> {
    let numbers = cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone();
    let counts: Vec<_> = numbers.iter().map(|count| u64::try_from(count.unwrap_or(0)).unwrap_or(0)).collect();
    Ok(counts.into_iter().enumerate())
}

/// Nanoseconds of a month, at least.
const MONTH: i128 = 28 * DAY;
const DAY: i128 = 86_400_000_000_000;

fn range_bytes(args: &[ArrayRef]) -> Result<u64> {
    let rows = args.first().map_or(0, |array| array.len());
    let positions = |array: &ArrayRef| -> Result<Vec<Option<i128>>> {
        let instant = DataType::Timestamp(TimeUnit::Second, None);
        let (array, unit) = match array.data_type() {
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
                (cast(array, &instant)?, 1_000_000_000)
            }
            _ => (Arc::clone(array), 1),
        };
        let numbers = cast(&array, &DataType::Int64)?;
        Ok(numbers
            .as_primitive::<Int64Type>()
            .iter()
            .map(|n| Some(i128::from(n?).saturating_mul(unit)))
            .collect())
    };
    let steps = |array: &ArrayRef| -> Result<Vec<Option<i128>>> {
        if !matches!(array.data_type(), DataType::Interval(_)) {
            return positions(array);
        }
        let steps = cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
        let steps = steps.as_primitive::<IntervalMonthDayNanoType>();
        let span = |step: IntervalMonthDayNano| {
            let (months, days) = (i128::from(step.months), i128::from(step.days));
            months
                .saturating_mul(MONTH)
                .saturating_add(days.saturating_mul(DAY))
                .saturating_add(i128::from(step.nanoseconds))
        };
        Ok(steps.iter().map(|step| step.map(span)).collect())
    };
    let (starts, stops, steps) = match args {
        [stop] => (vec![Some(0); rows], positions(stop)?, vec![Some(1); rows]),
        [start, stop] => (positions(start)?, positions(stop)?, vec![Some(1); rows]),
        [start, stop, step] => (positions(start)?, positions(stop)?, steps(step)?),
        _ => return Ok(0),
    };
    let mut bytes = 0u64;
    for ((start, stop), step) in starts.into_iter().zip(stops).zip(steps) {
        let (Some(start), Some(stop), Some(step)) = (start, stop, step) else { continue };
        let span = stop.saturating_sub(start);
        // Against its direction a range is empty; the function itself refuses a step of nothing.
        let count = if span.signum() == step.signum() { span.checked_div(step).unwrap_or(0) } else { 0 };
        bytes = bytes.saturating_add(u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(8));
    }
    Ok(bytes)
}

fn replaced_bytes(text: &ArrayRef, from: &ArrayRef, to: &ArrayRef) -> Result<u64> {
    let texts = |array: &ArrayRef| cast(array, &DataType::Utf8View);
    let (text, from, to) = (texts(text)?, texts(from)?, texts(to)?);
    let rows = text.as_string_view().iter().zip(from.as_string_view()).zip(to.as_string_view());
    let bytes = rows.map(|((text, from), to)| match (text, from, to) {
        (Some(text), Some(from), Some(to)) => {
            let (kept, new) = (text.len() as u64, to.len() as u64);
            // Nothing is between any two characters.
            let places = if new > from.len() as u64 { text.matches(from).count() as u64 } else { 0 };
            kept.saturating_add(places.saturating_mul(new))
        }
        _ => 0,
    });
    Ok(bytes.fold(0, u64::saturating_add))
}

/// A function whose results are measured before they are made.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    size: Size,
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, context)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_one { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let bytes = self.size.bytes(&arrays)?;
        if bytes > MOST_BYTES {
            return exec_err!(
                "{} would give {bytes} bytes at once, more than {MOST_BYTES}; a smaller number, or fewer rows, can do",
                self.name()
            );
        }
        self.inner.invoke_with_args(args)
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        self.inner.evaluate_bounds(inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    async fn answer(sql: &str) -> Result<usize> {
        let context = SessionContext::new();
        functions().into_iter().for_each(|function| context.register_udf(function));
        Ok(context.sql(sql).await?.collect().await?.iter().map(|batch| batch.num_rows()).sum())
    }

    use super::*;

    #[tokio::test]
    async fn results_that_no_memory_holds_are_refused() {
        for sql in [
            "select length(repeat('a', 2000000000))",
            "select length(repeat('abcdefgh', x)) from (values (100000000)) as t (x)",
            "select length(lpad('a', 2000000000))",
            "select length(rpad('a', x, 'bc')) from (values (1), (2000000000)) as t (x)",
            "select array_length(array_repeat('a', 100000000))",
            "select array_length(array_resize([1], 1000000000, 2))",
            "select array_length(range(1000000000))",
            "select array_length(generate_series(1, 1000000000))",
            "select array_length(generate_series(1000000000, 1, -2))",
            "select array_length(range(date '0001-01-01', date '9999-12-31', interval '1 millisecond'))",
            "select length(replace(repeat('a', 100000), 'a', repeat('b', 100000)))",
        ] {
            let error = answer(sql).await.unwrap_err().to_string();
            assert!(error.contains("bytes at once"), "{sql}: {error}");
        }
    }

    #[tokio::test]
    async fn small_results_are_what_they_were() {
        for sql in [
            "repeat('ab', 3) = 'ababab' and repeat('a', -1) = ''",
            "repeat(null, 2000000000) is null",
            "lpad('a', 3, 'xy') = 'xya' and rpad('abc', 2) = 'ab'",
            "array_repeat(7, 2) = [7, 7] and array_resize([1], 3, 5) = [1, 5, 5]",
            "range(3) = [0, 1, 2] and range(5, 1, -2) = [5, 3] and array_length(range(5, 1)) = 0",
            "array_length(generate_series(1, 10000000)) = 10000000",
            "array_length(generate_series(date '2020-01-01', date '2020-12-31', interval '1 month')) = 12",
            "replace('banana', 'an', 'AN') = 'bANANa' and replace('abc', '', 'x') is not null",
        ] {
            let (plain, bound) = (SessionContext::new(), SessionContext::new());
            functions().into_iter().for_each(|function| bound.register_udf(function));
            for context in [plain, bound] {
                let batches = context.sql(&format!("select {sql}")).await.unwrap().collect().await.unwrap();
                assert!(batches[0].column(0).as_boolean().value(0), "{sql}");
            }
        }
    }
}
