//! Numbers as they were written.

use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal256Type, DecimalType as _, i256,
};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// `digits / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Number {
    digits: i256,
    scale: u8,
}

impl Number {
    /// Reads `-12.50e3`. `None` if it is no number, or has more digits than decimals have.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, places) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{places}");
        if !all.trim_start_matches(['-', '+']).bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let mut digits = i256::from_string(&all)?;
        let mut scale = i32::try_from(places.len()).ok()?.checked_sub(exponent)?;
        while scale < 0 {
            digits = digits.checked_mul(i256::from_i128(10))?;
            scale = scale.checked_add(1)?;
        }
        Self { digits, scale: u8::try_from(scale).ok()? }.checked()
    }

    /// What an expression of written numbers is worth: a number with a fraction or exponent, signs, sums and products of them.
    pub(super) fn of(expr: &Expr) -> Option<Self> {
        has_fraction(expr).then(|| Self::evaluate(expr))?
    }

    /// What an integer as it is written is worth.
    pub(super) fn of_integer(expr: &Expr) -> Option<Self> {
        match expr {
            Expr::Literal(ScalarValue::Int64(Some(_)) | ScalarValue::UInt64(Some(_)), _) => {
                Self::evaluate(expr)
            }
            Expr::Negative(inner) => {
                let Self { digits, scale } = Self::of_integer(inner)?;
                Some(Self { digits: i256::ZERO.checked_sub(digits)?, scale })
            }
            _ => None,
        }
    }

    fn evaluate(expr: &Expr) -> Option<Self> {
        match expr {
            // The shortest text that reads back to the same double is what was written, up to 15 digits; longer ones are text.
            Expr::Literal(ScalarValue::Float64(Some(value)), _) => Self::parse(&format!("{value:?}")),
            Expr::Literal(ScalarValue::Int64(Some(value)), _) => Self::parse(&value.to_string()),
            Expr::Literal(ScalarValue::UInt64(Some(value)), _) => Self::parse(&value.to_string()),
            Expr::Cast(_) => Self::parse(written(expr)?),
            Expr::Negative(inner) => {
                let Self { digits, scale } = Self::evaluate(inner)?;
                Some(Self { digits: i256::ZERO.checked_sub(digits)?, scale })
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (left, right) = (Self::evaluate(left)?, Self::evaluate(right)?);
                let scale = left.scale.max(right.scale);
                let both = || Some((left.scaled(scale)?, right.scaled(scale)?));
                match op {
                    Operator::Plus => {
                        let (left, right) = both()?;
                        Self { digits: left.checked_add(right)?, scale }.checked()
                    }
                    Operator::Minus => {
                        let (left, right) = both()?;
                        Self { digits: left.checked_sub(right)?, scale }.checked()
                    }
                    Operator::Multiply => Self {
                        digits: left.digits.checked_mul(right.digits)?,
                        scale: left.scale.checked_add(right.scale)?,
                    }
                    .checked(),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn scaled(self, scale: u8) -> Option<i256> {
        let missing = u32::from(scale.checked_sub(self.scale)?);
        self.digits.checked_mul(i256::from_i128(10).checked_pow(missing)?)
    }

    fn checked(self) -> Option<Self> {
        (self.precision() <= DECIMAL256_MAX_PRECISION).then_some(self)
    }

    fn precision(self) -> u8 {
        let text = self.digits.to_string();
        let digits = u8::try_from(text.trim_start_matches('-').len()).unwrap_or(u8::MAX);
        digits.max(self.scale)
    }

    fn whole_digits(self) -> u8 {
        self.precision().saturating_sub(self.scale)
    }

    /// As a whole number, if it is one that the type holds.
    pub(super) fn as_integer(self, data_type: &DataType) -> Option<ScalarValue> {
        let unit = i256::from_i128(10).checked_pow(u32::from(self.scale))?;
        if self.digits.checked_rem(unit)? != i256::ZERO {
            return None;
        }
        let whole = self.digits.checked_div(unit)?.to_i128()?;
        match data_type {
            DataType::Int64 => i64::try_from(whole).ok().map(|whole| ScalarValue::Int64(Some(whole))),
            DataType::UInt64 => u64::try_from(whole).ok().map(|whole| ScalarValue::UInt64(Some(whole))),
            _ => None,
        }
    }

    /// As a decimal that can be compared with `others` without losing digits of either. `None` if no type has so many.
    pub(super) fn comparable(self, others: &[DataType]) -> Option<ScalarValue> {
        let (mut whole, mut scale) = (i16::from(self.whole_digits()), i16::from(self.scale));
        let mut is_wide = false;
        for (precision, places) in others.iter().filter_map(precision_and_scale) {
            whole = whole.max(i16::from(precision).saturating_sub(i16::from(places)));
            scale = scale.max(i16::from(places));
        }
        for data_type in others {
            is_wide |= matches!(data_type, DataType::Decimal256(..));
        }
        let needed = whole.saturating_add(scale);
        if needed > i16::from(DECIMAL256_MAX_PRECISION) {
            return None;
        }
        self.decimal(is_wide || needed > i16::from(DECIMAL128_MAX_PRECISION))
    }

    /// As a decimal to compute with.
    pub(super) fn operand(self) -> Option<ScalarValue> {
        self.decimal(false)
    }

    fn decimal(self, is_wide: bool) -> Option<ScalarValue> {
        let (precision, scale) = (self.precision().max(1), i8::try_from(self.scale).ok()?);
        match self.digits.to_i128() {
            Some(digits) if !is_wide && precision <= DECIMAL128_MAX_PRECISION => {
                Some(ScalarValue::Decimal128(Some(digits), precision, scale))
            }
            _ => {
                let is_valid =
                    Decimal256Type::validate_decimal_precision(self.digits, precision, scale).is_ok();
                is_valid.then_some(ScalarValue::Decimal256(Some(self.digits), precision, scale))
            }
        }
    }
}

/// Digits of a type of exact numbers before and after the point together, and after it.
fn precision_and_scale(data_type: &DataType) -> Option<(u8, i8)> {
    match data_type {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => Some((*precision, *scale)),
        data_type if data_type.is_integer() => Some((20, 0)),
        _ => None,
    }
}

/// Whether one of the numbers is written with a fraction or an exponent, or too large for an integer.
fn has_fraction(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(value)), _) => value.is_finite(),
        Expr::Cast(_) => written(expr).is_some(),
        Expr::Negative(inner) => has_fraction(inner),
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => has_fraction(left) || has_fraction(right),
        _ => false,
    }
}

/// The digits of a number that [`super::digits`] has kept.
fn written(expr: &Expr) -> Option<&str> {
    let Expr::Cast(cast) = expr else { return None };
    match cast.expr.as_ref() {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _)
            if cast.field.data_type() == &DataType::Float64
                && text.starts_with(|sign: char| sign.is_ascii_digit() || sign == '.') =>
        {
            Some(text)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::lit;

    use super::*;

    #[test]
    fn numbers_are_the_digits_that_were_written() {
        for (expr, expected) in [
            (lit(99999.99), Some("99999.99")),
            (-lit(0.5), Some("-0.5")),
            (lit(0.06) + lit(0.01), Some("0.07")),
            (lit(1_i64) - lit(0.06), Some("0.94")),
            (lit(1.1) * lit(1.1), Some("1.21")),
            (lit(1e20), Some("100000000000000000000")),
            (lit(2.5e-7), Some("0.00000025")),
            (lit(1e300), None),
            (lit(1e-300), None),
            (lit(f64::NAN), None),
            (lit(5_i64), None),
            (lit(1.0) / lit(3.0), None),
        ] {
            let found = Number::of(&expr).and_then(Number::operand).map(|value| value.to_string());
            let found = found.map(|text| text.split(',').next().unwrap_or_default().to_string());
            let expected = expected.map(|text| {
                let number = Number::parse(text).unwrap();
                number.operand().unwrap().to_string().split(',').next().unwrap().to_string()
            });
            assert_eq!(found, expected, "{expr}");
        }
        assert_eq!(Number::parse("1.50e1"), Some(Number { digits: i256::from_i128(150), scale: 1 }));
        for text in ["", "-", "1.2.3", "x", "1e", "0x10", "NaN"] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }
}
