//! Sums, averages and medians that do not fit are errors. DataFusion wraps them.
//!
//! Its own functions compute, on a type so wide that they cannot wrap; what comes out must fit the type that they have in SQL. Where no
//! type is wider, what goes in must be small enough.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal256Type, Field, FieldRef,
};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::{average, median, sum};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature,
};
use pilaster_core::Error;

use crate::error::to_datafusion;

/// Decimals of so many digits can be added as often as rows can be counted, in 38 digits.
const DIGITS_TO_ADD: u8 = 28;

/// The same in 76 digits, the most there are.
const MOST_DIGITS_TO_ADD: u8 = 66;

/// `sum`, `avg` and `median`.
pub(super) fn checked() -> Vec<AggregateUDF> {
    [sum::sum_udaf(), average::avg_udaf(), median::median_udaf()]
        .map(|inner| AggregateUDF::from(Checked { inner }))
        .into()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    inner: Arc<AggregateUDF>,
}

/// The types that the function computes with.
struct Wide {
    input: [FieldRef; 1],
    output: FieldRef,
}

impl Checked {
    /// The types to compute with, where those of SQL could wrap.
    fn wide(&self, inputs: &[FieldRef]) -> Result<Option<Wide>> {
        let [field] = inputs else { return Ok(None) };
        let wide = match (self.name(), field.data_type()) {
            ("sum", DataType::Int64 | DataType::UInt64) => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
            ("sum" | "avg", DataType::Decimal128(precision, scale)) if *precision > DIGITS_TO_ADD => {
                // Averages get four more digits.
                DataType::Decimal256(DECIMAL256_MAX_PRECISION.saturating_sub(10), *scale)
            }
            // Nothing is wider: the values themselves are looked at.
            ("sum" | "avg", own @ DataType::Decimal256(precision, _)) if *precision > MOST_DIGITS_TO_ADD => {
                own.clone()
            }
            ("median", DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale)) => {
                DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale)
            }
            _ => return Ok(None),
        };
        let output = self.inner.return_type(std::slice::from_ref(&wide))?;
        Ok(Some(Wide {
            input: [Arc::new(Field::new(field.name(), wide, true))],
            output: Arc::new(Field::new(field.name(), output, true)),
        }))
    }

    fn narrow(&self, wide: &Wide, args: &AccumulatorArgs<'_>) -> Narrow {
        let [input] = &wide.input;
        Narrow {
            name: self.name().to_string(),
            input: input.data_type().clone(),
            output: args.return_field.data_type().clone(),
        }
    }
}

/// The same arguments with other types.
fn widened<'a>(args: &AccumulatorArgs<'a>, wide: &'a Wide) -> AccumulatorArgs<'a> {
    AccumulatorArgs {
        return_field: Arc::clone(&wide.output),
        schema: args.schema,
        ignore_nulls: args.ignore_nulls,
        order_bys: args.order_bys,
        is_reversed: args.is_reversed,
        name: args.name,
        is_distinct: args.is_distinct,
        exprs: args.exprs,
        expr_fields: &wide.input,
    }
}

impl AggregateUDFImpl for Checked {
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

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let Some(wide) = self.wide(args.expr_fields)? else { return self.inner.accumulator(args) };
        let inner = self.inner.accumulator(widened(&args, &wide))?;
        Ok(Box::new(CheckedAccumulator { inner, types: self.narrow(&wide, &args) }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let Some(wide) = self.wide(args.expr_fields)? else {
            return self.inner.create_sliding_accumulator(args);
        };
        let inner = self.inner.create_sliding_accumulator(widened(&args, &wide))?;
        Ok(Box::new(CheckedAccumulator { inner, types: self.narrow(&wide, &args) }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let Some(wide) = self.wide(args.input_fields)? else { return self.inner.state_fields(args) };
        self.inner.state_fields(StateFieldsArgs {
            name: args.name,
            input_fields: &wide.input,
            return_field: Arc::clone(&wide.output),
            ordering_fields: args.ordering_fields,
            is_distinct: args.is_distinct,
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        match self.wide(args.expr_fields) {
            Ok(Some(wide)) => self.inner.groups_accumulator_supported(widened(&args, &wide)),
            _ => self.inner.groups_accumulator_supported(args),
        }
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let Some(wide) = self.wide(args.expr_fields)? else {
            return self.inner.create_groups_accumulator(args);
        };
        let inner = self.inner.create_groups_accumulator(widened(&args, &wide))?;
        Ok(Box::new(CheckedGroups { inner, types: self.narrow(&wide, &args) }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(data_type)
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// What goes in becomes wide, what comes out must be narrow.
struct Narrow {
    name: String,
    input: DataType,
    output: DataType,
}

impl std::fmt::Debug for Narrow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {} as {}", self.name, self.input, self.output)
    }
}

const STRICT: CastOptions<'static> =
    CastOptions { safe: false, format_options: datafusion::common::format::DEFAULT_FORMAT_OPTIONS };

impl Narrow {
    fn widen(&self, values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        values.iter().map(|values| self.widen_one(values)).collect()
    }

    fn widen_one(&self, values: &ArrayRef) -> Result<ArrayRef> {
        if let Some(decimals) = values.as_primitive_opt::<Decimal256Type>()
            && values.data_type() == &self.input
        {
            decimals.validate_decimal_precision(MOST_DIGITS_TO_ADD).map_err(|_| {
                let (name, hint) = (&self.name, format!("{}(CAST(… AS DOUBLE)) takes them", self.name));
                to_datafusion(Error::invalid(format!(
                    "{name} of decimals of more than {MOST_DIGITS_TO_ADD} digits may not fit any type: {hint}"
                )))
            })?;
            return Ok(Arc::clone(values));
        }
        Ok(cast_with_options(values, &self.input, &STRICT)?)
    }

    fn check(&self, values: &ArrayRef) -> Result<ArrayRef> {
        cast_with_options(values, &self.output, &STRICT).map_err(|_| self.overflow())
    }

    fn overflow(&self) -> DataFusionError {
        let name = &self.name;
        let hint = match self.output {
            DataType::Decimal128(..) => {
                format!("{name}(CAST(… AS DOUBLE)) gives it with fewer digits")
            }
            _ => format!("{name}(CAST(… AS DECIMAL(38, 0))) gives it"),
        };
        to_datafusion(Error::invalid(format!("{name} does not fit {}: {hint}", self.output)))
    }
}

#[derive(Debug)]
struct CheckedAccumulator {
    inner: Box<dyn Accumulator>,
    types: Narrow,
}

impl Accumulator for CheckedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&self.types.widen(values)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.inner.evaluate()?;
        value.cast_to(&self.types.output).map_err(|_| self.types.overflow())
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&self.types.widen(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

struct CheckedGroups {
    inner: Box<dyn GroupsAccumulator>,
    types: Narrow,
}

impl GroupsAccumulator for CheckedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        self.inner.update_batch(&self.types.widen(values)?, group_indices, filter, groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let values = self.inner.evaluate(emit_to)?;
        self.types.check(&values)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], groups: usize) -> Result<()> {
        self.inner.merge_batch(values, group_indices, groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(&self.types.widen(values)?, filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}
