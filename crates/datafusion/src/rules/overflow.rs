//! `+`, `-` and `*` of integers that do not fit are errors. DataFusion wraps them: 100 + 100 of 8 bits is -56. So are results of
//! decimals with more digits than their type has: 128 bits hold some numbers of 39.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type,
};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

/// Puts checked functions in the place of operators that wrap.
pub(super) fn rewrite(expr: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        let function = match &expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let is_whole = |side: &Expr| match side {
                    // Asking for the type of a long chain at each of its links takes long.
                    Expr::ScalarFunction(call) if is_checked(call.func.name()) => true,
                    side => side.get_type(columns).is_ok_and(|found| found.is_integer()),
                };
                match op {
                    Operator::Plus if is_whole(left) && is_whole(right) => &FUNCTIONS.add,
                    Operator::Minus if is_whole(left) && is_whole(right) => &FUNCTIONS.subtract,
                    Operator::Multiply if is_whole(left) && is_whole(right) => &FUNCTIONS.multiply,
                    Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide
                        if is_longest(&expr.get_type(columns)?) =>
                    {
                        return Ok(Transformed::yes(FUNCTIONS.digits.call(vec![expr])));
                    }
                    _ => return Ok(Transformed::no(expr)),
                }
            }
            Expr::Negative(inner)
                if !matches!(inner.as_ref(), Expr::Literal(..))
                    && inner.get_type(columns).is_ok_and(|found| found.is_integer()) =>
            {
                &FUNCTIONS.negate
            }
            _ => return Ok(Transformed::no(expr)),
        };
        let operands = match expr {
            Expr::BinaryExpr(BinaryExpr { left, right, .. }) => vec![*left, *right],
            Expr::Negative(inner) => vec![*inner],
            other => return Ok(Transformed::no(other)),
        };
        Ok(Transformed::yes(function.call(operands)))
    })
}

/// Whether a decimal has as many digits as any: a result may have more.
fn is_longest(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Decimal128(DECIMAL128_MAX_PRECISION, _) | DataType::Decimal256(DECIMAL256_MAX_PRECISION, _)
    )
}

fn is_checked(name: &str) -> bool {
    let all = [&FUNCTIONS.add, &FUNCTIONS.subtract, &FUNCTIONS.multiply, &FUNCTIONS.negate];
    all.iter().any(|function| function.name() == name)
}

struct Functions {
    add: ScalarUDF,
    subtract: ScalarUDF,
    multiply: ScalarUDF,
    negate: ScalarUDF,
    digits: ScalarUDF,
}

static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| Functions {
    add: ScalarUDF::from(Checked::new("checked_add", "+", 2)),
    subtract: ScalarUDF::from(Checked::new("checked_subtract", "-", 2)),
    multiply: ScalarUDF::from(Checked::new("checked_multiply", "*", 2)),
    negate: ScalarUDF::from(Checked::new("checked_negate", "-", 1)),
    digits: ScalarUDF::from(Digits { signature: Signature::any(1, Volatility::Immutable) }),
});

/// The same decimals; an error if one has more digits than its type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Digits {
    signature: Signature,
}

impl ScalarUDFImpl for Digits {
    fn name(&self) -> &'static str {
        "checked_digits"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(ToString::to_string).collect())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| arg.schema_name().to_string()).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(arg_types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.into_iter().next() else { return exec_err!("digits of nothing") };
        let array = value.to_array(args.number_rows)?;
        match array.data_type() {
            DataType::Decimal128(precision, _) => {
                array.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision)?;
            }
            DataType::Decimal256(precision, _) => {
                array.as_primitive::<Decimal256Type>().validate_decimal_precision(*precision)?;
            }
            _ => {}
        }
        Ok(value)
    }
}

/// An operator on integers that does not wrap.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    name: &'static str,
    sign: &'static str,
    signature: Signature,
}

impl Checked {
    fn new(name: &'static str, sign: &'static str, operands: usize) -> Self {
        Self { name, sign, signature: Signature::any(operands, Volatility::Immutable) }
    }

    /// What the operator is called in the names of columns.
    fn written(&self, operands: &[String]) -> String {
        match operands {
            [operand] => format!("(- {operand})"),
            operands => operands.join(&format!(" {} ", self.sign)),
        }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.name
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(self.written(&args.iter().map(ToString::to_string).collect::<Vec<_>>()))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(self.written(&args.iter().map(|arg| arg.schema_name().to_string()).collect::<Vec<_>>()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [first, rest @ ..] if rest.iter().all(|other| other == first) => Ok(first.clone()),
            other => exec_err!("{} of {other:?}", self.name),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [left, right] => match self.sign {
                "+" => apply(left, right, numeric::add),
                "-" => apply(left, right, numeric::sub),
                _ => apply(left, right, numeric::mul),
            },
            [operand] => {
                let negated = numeric::neg(operand.to_array(args.number_rows)?.as_ref())?;
                Ok(ColumnarValue::Array(Arc::clone(&negated)))
            }
            other => exec_err!("{} of {} operands", self.name, other.len()),
        }
    }
}
