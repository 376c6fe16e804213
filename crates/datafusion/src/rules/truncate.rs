//! `date_trunc` and `date_bin` of any time.
//!
//! DataFusion counts nanoseconds there, which end in 2262: one function refuses times beyond, the other makes them null.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowTimestampType, DataType, Field, FieldRef, Int64Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::functions::datetime;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// After so many seconds, 400 years, days of weeks and of months come again as they were.
const CYCLE_SECONDS: i64 = 146_097 * 86_400;

/// Both functions.
pub(super) fn functions() -> [ScalarUDF; 2] {
    [
        ScalarUDF::from(Truncate {
            inner: datetime::date_trunc(),
            signature: Signature::user_defined(Volatility::Immutable),
        }),
        ScalarUDF::from(Bin { inner: datetime::date_bin() }),
    ]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Truncate {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for Truncate {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let [granularity, time] = arg_types else {
            return plan_err!("date_trunc takes a word and a time");
        };
        let time = match time {
            DataType::Timestamp(..) | DataType::Time32(_) | DataType::Time64(_) => time.clone(),
            DataType::Date32
            | DataType::Date64
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Null => DataType::Timestamp(TimeUnit::Microsecond, None),
            other => return plan_err!("date_trunc takes a time, not {other}"),
        };
        Ok(vec![granularity.clone(), time])
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.coerce_types(arg_types).map(|types| types.into_iter().nth(1).unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(DataType::Timestamp(unit, zone)) = args.args.get(1).map(ColumnarValue::data_type) else {
            return self.inner.invoke_with_args(args);
        };
        if !has_one_offset(zone.as_deref()) {
            return self.inner.invoke_with_args(args);
        }
        match unit {
            TimeUnit::Second => self.truncate::<TimestampSecondType>(args),
            TimeUnit::Millisecond => self.truncate::<TimestampMillisecondType>(args),
            TimeUnit::Microsecond => self.truncate::<TimestampMicrosecondType>(args),
            TimeUnit::Nanosecond => self.truncate::<TimestampNanosecondType>(args),
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

impl Truncate {
    /// Moves times by whole cycles to where nanoseconds hold them, truncates, and moves them back.
    fn truncate<T: ArrowTimestampType>(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(time) = args.args.get_mut(1) else { return exec_err!("date_trunc of no time") };
        let times = time.to_array(args.number_rows)?;
        let own_type = times.data_type().clone();
        let zone = match &own_type {
            DataType::Timestamp(_, zone) => zone.clone(),
            other => return exec_err!("date_trunc of {other}"),
        };
        // Nothing finer than microseconds is left when it is done.
        let (per_second, parts) = match T::UNIT {
            TimeUnit::Second => (1, 1),
            TimeUnit::Millisecond => (1_000, 1),
            TimeUnit::Microsecond => (1_000_000, 1),
            TimeUnit::Nanosecond => (1_000_000, 1_000),
        };
        let unit = if parts == 1 { T::UNIT } else { TimeUnit::Microsecond };
        let cycle = CYCLE_SECONDS.saturating_mul(per_second);
        let counts = cast(&times, &DataType::Int64)?;
        let counts =
            counts.as_primitive::<Int64Type>().unary::<_, Int64Type>(|count| count.div_euclid(parts));
        let cycles = counts.unary::<_, Int64Type>(|count| {
            let half = cycle.checked_div(2).unwrap_or(0);
            i64::try_from(i128::from(count).saturating_add(i128::from(half)).div_euclid(i128::from(cycle)))
                .unwrap_or(0)
        });
        let moved =
            datafusion::arrow::compute::binary::<_, _, _, Int64Type>(&counts, &cycles, |count, cycles| {
                count.wrapping_sub(cycles.wrapping_mul(cycle))
            })?;
        let moved: ArrayRef = Arc::new(moved);
        let moved_type = DataType::Timestamp(unit, zone);
        *time = ColumnarValue::Array(cast(&moved, &moved_type)?);
        if let Some(field) = args.arg_fields.get_mut(1) {
            *field = Arc::new(Field::new(field.name(), moved_type.clone(), true));
        }
        args.return_field = Arc::new(Field::new(args.return_field.name(), moved_type, true));
        let done = self.inner.invoke_with_args(args)?.to_array(times.len())?;
        let done = cast(&done, &DataType::Int64)?;
        let back = datafusion::arrow::compute::try_binary::<_, _, _, Int64Type>(
            done.as_primitive::<Int64Type>(),
            &cycles,
            |count, cycles| {
                let moved = cycles.checked_mul(cycle).and_then(|by| count.checked_add(by));
                moved.and_then(|count| count.checked_mul(parts)).ok_or_else(|| {
                    datafusion::arrow::error::ArrowError::ComputeError(
                        "the beginning of the time that date_trunc is asked for is out of range".to_string(),
                    )
                })
            },
        )?;
        let back: ArrayRef = Arc::new(back);
        Ok(ColumnarValue::Array(cast(&back, &own_type)?))
    }
}

/// Whether all times of a zone are as far from UTC as each other; the rules of others do not come again after a cycle.
fn has_one_offset(zone: Option<&str>) -> bool {
    zone.is_none_or(|zone| {
        zone.starts_with(['+', '-']) || matches!(zone, "UTC" | "Etc/UTC" | "GMT" | "Z" | "Zulu")
    })
}

/// Where DataFusion gives null for a time that it cannot count, an error.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bin {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Bin {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let inputs = args.args.iter().map(|input| input.to_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
        let found = self.inner.invoke_with_args(args)?;
        let binned = found.to_array(rows)?;
        let is_lost = |row: usize| binned.is_null(row) && inputs.iter().all(|input| input.is_valid(row));
        if binned.null_count() > 0 && (0..rows).any(is_lost) {
            return exec_err!("date_bin counts nanoseconds, which hold no times before 1678 and after 2261");
        }
        Ok(found)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}
