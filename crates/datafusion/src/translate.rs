//! DataFusion expressions as predicates.
//!
//! What is translated is applied by the scan to every row and means the same there as in DataFusion; everything else
//! stays with DataFusion. The rule for types: column and literal have one type, or the column is cast to the literal's
//! type by a cast that loses nothing and keeps the order.

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Like, Operator};
use pilaster_core::{CompareOp, Literal, Predicate};

use crate::rules::floats;

/// `expr` as a predicate on rows of `schema`; `None` if it cannot be said, or not with the same meaning.
pub fn translate(expr: &Expr, schema: &Schema) -> Option<Predicate> {
    let predicate = translate_any(expr, schema)?;
    // Binding is what the scan will do; what it refuses must stay with DataFusion.
    predicate.bind(schema).ok()?;
    Some(predicate)
}

fn translate_any(expr: &Expr, schema: &Schema) -> Option<Predicate> {
    match expr {
        Expr::Alias(alias) => translate_any(&alias.expr, schema),
        Expr::Not(inner) => Some(Predicate::Not(Box::new(translate_any(inner, schema)?))),
        Expr::IsNull(inner) => Some(Predicate::IsNull { column: bare_column(inner, schema)? }),
        Expr::IsNotNull(inner) => Some(Predicate::IsNotNull { column: bare_column(inner, schema)? }),
        Expr::BinaryExpr(binary) => translate_binary(binary, schema),
        Expr::Between(between) => translate_between(between, schema),
        Expr::InList(list) => translate_in(list, schema),
        Expr::Like(like) => translate_like(like, schema),
        Expr::Column(column) => {
            let (_, field) = schema.column_with_name(&column.name)?;
            (field.data_type() == &DataType::Boolean).then(|| Predicate::Compare {
                column: column.name.clone(),
                op: CompareOp::Eq,
                value: true.into(),
            })
        }
        _ => None,
    }
}

fn translate_binary(binary: &BinaryExpr, schema: &Schema) -> Option<Predicate> {
    let BinaryExpr { left, op, right } = binary;
    match op {
        Operator::And => Some(match (translate_any(left, schema)?, translate_any(right, schema)?) {
            (Predicate::And(mut parts), last) => {
                parts.push(last);
                Predicate::And(parts)
            }
            (first, last) => Predicate::And(vec![first, last]),
        }),
        Operator::Or => Some(match (translate_any(left, schema)?, translate_any(right, schema)?) {
            (Predicate::Or(mut parts), last) => {
                parts.push(last);
                Predicate::Or(parts)
            }
            (first, last) => Predicate::Or(vec![first, last]),
        }),
        _ => compare(left, *op, right, schema).or_else(|| compare(right, op.swap()?, left, schema)),
    }
}

/// `left op right` where `left` is a column and `right` a literal.
fn compare(left: &Expr, op: Operator, right: &Expr, schema: &Schema) -> Option<Predicate> {
    let op = match op {
        Operator::Eq => CompareOp::Eq,
        Operator::NotEq => CompareOp::NotEq,
        Operator::Lt => CompareOp::Lt,
        Operator::LtEq => CompareOp::LtEq,
        Operator::Gt => CompareOp::Gt,
        Operator::GtEq => CompareOp::GtEq,
        _ => return None,
    };
    let (column, data_type) = comparable_column(left, schema)?;
    Some(Predicate::Compare { column, op, value: literal_of(right, &data_type)? })
}

fn translate_between(between: &Between, schema: &Schema) -> Option<Predicate> {
    let (column, data_type) = comparable_column(&between.expr, schema)?;
    let bound = |op, limit| {
        let value = literal_of(limit, &data_type)?;
        Some(Predicate::Compare { column: column.clone(), op, value })
    };
    let inside =
        Predicate::And(vec![bound(CompareOp::GtEq, &between.low)?, bound(CompareOp::LtEq, &between.high)?]);
    Some(negate_if(between.negated, inside))
}

fn translate_in(list: &InList, schema: &Schema) -> Option<Predicate> {
    let (column, data_type) = comparable_column(&list.expr, schema)?;
    let values = list.list.iter().map(|value| literal_of(value, &data_type)).collect::<Option<_>>()?;
    Some(negate_if(list.negated, Predicate::In { column, values }))
}

fn translate_like(like: &Like, schema: &Schema) -> Option<Predicate> {
    let Like { negated, expr, pattern, escape_char, case_insensitive } = like;
    if *case_insensitive || escape_char.is_some_and(|escape| escape != '\\') {
        return None;
    }
    let (column, data_type) = comparable_column(expr, schema)?;
    let value = literal_of(pattern, &data_type)?;
    Some(negate_if(*negated, Predicate::Compare { column, op: CompareOp::Like, value }))
}

fn negate_if(negated: bool, predicate: Predicate) -> Predicate {
    if negated { Predicate::Not(Box::new(predicate)) } else { predicate }
}

/// A column as it stands, of any type.
fn bare_column(expr: &Expr, schema: &Schema) -> Option<String> {
    let Expr::Column(Column { name, .. }) = expr else { return None };
    schema.column_with_name(name).map(|_| name.clone())
}

/// A column, or a harmless cast of one, and the type its values are compared in.
fn comparable_column(expr: &Expr, schema: &Schema) -> Option<(String, DataType)> {
    match floats::inside(expr) {
        Expr::Column(Column { name, .. }) => {
            let (_, field) = schema.column_with_name(name)?;
            Some((name.clone(), value_type(field.data_type()).clone()))
        }
        Expr::Cast(cast) => {
            let (name, from) = comparable_column(&cast.expr, schema)?;
            let to = value_type(cast.field.data_type());
            keeps_order_and_values(&from, to).then(|| (name, to.clone()))
        }
        _ => None,
    }
}

fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

/// A literal, or a cast of one, if it is of the type the column is compared in.
fn literal_of(expr: &Expr, data_type: &DataType) -> Option<Literal> {
    let scalar = scalar_of(expr)?;
    let found = scalar.data_type();
    if !(found == *data_type
        || is_text(&found) && is_text(data_type)
        || is_binary(&found) && is_binary(data_type))
        || data_type.is_nested()
    {
        return None;
    }
    let array = scalar.to_array().ok()?;
    Some(Literal::from_array(array.as_ref(), 0))
}

/// What a literal is worth, or a cast of one.
pub(crate) fn scalar_of(expr: &Expr) -> Option<ScalarValue> {
    let scalar = match expr {
        Expr::Literal(scalar, _) => scalar.clone(),
        Expr::Cast(cast) => scalar_of(&cast.expr)?.cast_to(cast.field.data_type()).ok()?,
        Expr::Alias(alias) => scalar_of(&alias.expr)?,
        _ => return None,
    };
    Some(match scalar {
        ScalarValue::Dictionary(_, value) => *value,
        other => other,
    })
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Whether comparing after this cast is comparing before it: every value survives, in the same order.
fn keeps_order_and_values(from: &DataType, to: &DataType) -> bool {
    use DataType::{
        Decimal128, Decimal256, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64,
    };
    if from == to || is_text(from) && is_text(to) || is_binary(from) && is_binary(to) {
        return true;
    }
    match (from, to) {
        (Int8, Int16 | Int32 | Int64 | Float32 | Float64)
        | (Int16, Int32 | Int64 | Float32 | Float64)
        | (Int32, Int64 | Float64)
        | (UInt8, UInt16 | UInt32 | UInt64 | Int16 | Int32 | Int64 | Float32 | Float64)
        | (UInt16, UInt32 | UInt64 | Int32 | Int64 | Float32 | Float64)
        | (UInt32, UInt64 | Int64 | Float64)
        | (Float32, Float64) => true,
        (from, Decimal128(precision, scale)) if from.is_integer() => {
            // Integers of 64 bits have up to 20 digits.
            i16::from(*precision).saturating_sub(i16::from(*scale)) >= 20
        }
        (Decimal128(p, s), Decimal128(wide_p, wide_s) | Decimal256(wide_p, wide_s)) => {
            let whole = |precision: u8, scale: i8| i16::from(precision).saturating_sub(i16::from(scale));
            wide_s >= s && whole(*wide_p, *wide_s) >= whole(*p, *s)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::Field;
    use datafusion::prelude::{cast, col, lit};

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("id", DataType::Int32, false),
            Field::new("big", DataType::Int64, true),
            Field::new("name", DataType::Utf8, true),
            Field::new("flag", DataType::Boolean, true),
        ])
    }

    fn text(expr: Expr) -> String {
        translate(&expr, &schema()).map_or("-".to_string(), |predicate| predicate.to_string())
    }

    #[test]
    fn says_what_a_predicate_can_say() {
        let cases = [
            (col("id").gt(lit(5_i32)), "id > 5"),
            (lit(5_i32).gt(col("id")), "id < 5"),
            (cast(col("id"), DataType::Int64).gt(lit(5_i64)), "id > 5"),
            (col("id").eq(cast(lit("7"), DataType::Int32)), "id = 7"),
            (col("id").between(lit(1_i32), lit(3_i32)), "(id >= 1 AND id <= 3)"),
            (col("id").not_between(lit(1_i32), lit(3_i32)), "NOT (id >= 1 AND id <= 3)"),
            (col("name").in_list(vec![lit("a"), lit("b")], true), "NOT name IN (a, b)"),
            (col("name").is_null().or(col("flag")), "(name IS NULL OR flag = true)"),
            (!col("flag"), "NOT flag = true"),
            (col("name").like(lit("a%")), "name LIKE a%"),
            (col("name").not_like(lit("_")), "NOT name LIKE _"),
        ];
        for (expr, expected) in cases {
            assert_eq!(text(expr.clone()), expected, "{expr}");
        }
    }

    #[test]
    fn leaves_alone_what_would_mean_something_else() {
        let cases = [
            // Two different 64-bit integers can become one float.
            cast(col("big"), DataType::Float64).gt(lit(5.0)),
            // As text, "10" is before "9".
            cast(col("id"), DataType::Utf8).gt(lit("10")),
            col("id").gt(lit(5_i64)),
            col("id").gt(col("big")),
            (col("id") + lit(1_i32)).gt(lit(5_i32)),
            col("name").ilike(lit("a%")),
            cast(col("id"), DataType::Utf8).like(lit("1%")),
            Expr::Like(Like::new(false, Box::new(col("name")), Box::new(lit("a!%")), Some('!'), false)),
            col("missing").is_null(),
            col("id").gt(lit(5_i32)).or(col("name").ilike(lit("a%"))),
        ];
        for expr in cases {
            assert_eq!(text(expr.clone()), "-", "{expr}");
        }
    }
}
