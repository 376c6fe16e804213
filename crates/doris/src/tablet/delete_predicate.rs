//! DELETE statements that are kept as conditions: a rowset without rows that removes rows of older ones.
//!
//! A row goes if all conditions are true for it. Conditions are `column op value`: `=`, `!=`, `>>` (greater), `<<`
//! (less), `>=`, `<=`, `is` with `null` or `not null`, `*=` and `!*=` with several values.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use pilaster_core::predicate::BoundPredicate;
use pilaster_core::{CompareOp, Error, Predicate, Result, col};

use super::addresses;
use super::delete_values::{self, is_address};
use super::messages::DeletePredicatePb;
use super::meta::RowsetMeta;
use crate::schema::{SchemaColumn, TabletSchema};

/// Operators in the order in which a text is searched for them.
const OPERATORS: [&str; 9] = ["!*=", "*=", "!=", ">=", "<=", ">>", "<<", "=", " is "];

/// Finds the columns of conditions: in the schema, else among those that were dropped since.
pub(crate) struct Columns<'a> {
    pub schema: &'a TabletSchema,
    pub rowsets: &'a [RowsetMeta],
    /// Columns that only old rowsets have, which a condition needs.
    pub dropped: Vec<SchemaColumn>,
}

impl Columns<'_> {
    /// A column by its id, else by the name it had when the statement was made: another one may have the name now.
    fn find(&mut self, rowset: &RowsetMeta, id: Option<i32>, name: &str) -> Result<SchemaColumn> {
        let is_named = |column: &&SchemaColumn| column.name.eq_ignore_ascii_case(name);
        let then = || rowset.schema.iter().flat_map(|schema| &schema.columns);
        let id = id.filter(|id| *id >= 0).or_else(|| Some(then().find(is_named)?.unique_id));
        let is_it = |column: &&SchemaColumn| match id {
            Some(id) => column.unique_id == id,
            None => is_named(column),
        };
        if let Some(found) = self.schema.columns.iter().find(is_it) {
            return Ok(found.clone());
        }
        let old = self.rowsets.iter().filter_map(|rowset| rowset.schema.as_ref());
        let Some(found) = then().chain(old.flat_map(|schema| &schema.columns)).find(is_it) else {
            return Err(Error::corrupt("a column of the tablet in a delete predicate", format!("{name:?}")));
        };
        if let Some(known) = self.dropped.iter().find(|column| column.unique_id == found.unique_id) {
            return Ok(known.clone());
        }
        let mut dropped = found.clone();
        dropped.name = format!("{} (dropped, id {})", found.name, found.unique_id);
        dropped.visible = false;
        self.dropped.push(dropped.clone());
        Ok(dropped)
    }
}

/// What must be true for a row to stay.
#[derive(Debug, Clone)]
pub(crate) struct Keeps {
    predicate: Predicate,
    /// Columns of addresses among those it looks at, whose literals are the bytes of addresses.
    addresses: Vec<String>,
}

impl Keeps {
    /// The predicate, if rows need no change before it can be asked.
    pub fn pushed(&self) -> Option<&Predicate> {
        self.addresses.is_empty().then_some(&self.predicate)
    }

    /// Names of the columns it looks at.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.predicate.columns().into_iter()
    }

    /// For rows of `schema`.
    pub fn bind(&self, schema: &Schema) -> Result<BoundKeeps> {
        let is_address = |field: &Field| self.addresses.contains(field.name());
        let fields = schema.fields().iter().map(|field| match is_address(field) {
            true => field.as_ref().clone().with_data_type(DataType::BinaryView),
            false => field.as_ref().clone(),
        });
        let schema = Schema::new(fields.collect::<Vec<_>>());
        Ok(BoundKeeps { predicate: self.predicate.bind(&schema)?, schema })
    }
}

/// [`Keeps`] for the rows of one schema.
#[derive(Debug)]
pub(crate) struct BoundKeeps {
    predicate: BoundPredicate,
    /// The schema with addresses as bytes.
    schema: Schema,
}

impl BoundKeeps {
    /// For each row whether it stays.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let columns = self.schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
            match (field.data_type(), column.data_type()) {
                (DataType::BinaryView, DataType::Utf8View) => addresses::octets(column),
                _ => Ok(Arc::clone(column)),
            }
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let batch = RecordBatch::try_new(Arc::new(self.schema.clone()), columns)?;
        self.predicate.evaluate(&batch)
    }
}

/// What must be true for a row to stay, by the delete predicate of a rowset.
pub(crate) fn keeps(
    rowset: &RowsetMeta,
    message: &DeletePredicatePb,
    columns: &mut Columns<'_>,
) -> Result<Keeps> {
    let (mut stays, mut addresses) = (Vec::new(), Vec::new());
    for condition in conditions(message)? {
        let column = columns.find(rowset, condition.unique_id, condition.column)?;
        let is_true = condition.is_true(&column)?;
        // A comparison with null is not true.
        stays.push(Predicate::Or(vec![
            Predicate::Not(Box::new(is_true)),
            match condition.op {
                Op::IsNull | Op::IsNotNull => Predicate::Or(Vec::new()),
                _ => col(column.name.clone()).is_null(),
            },
        ]));
        if is_address(&column) && !addresses.contains(&column.name) {
            addresses.push(column.name);
        }
    }
    if stays.is_empty() {
        return Err(Error::corrupt("a condition in a delete predicate", "none"));
    }
    Ok(Keeps { predicate: Predicate::Or(stays), addresses })
}

/// The conditions in words.
pub(super) fn text(message: &DeletePredicatePb) -> Result<String> {
    let parts = conditions(message)?.into_iter().map(|condition| {
        let (column, values) = (condition.column, condition.values.join(", "));
        match condition.op {
            Op::Compare(op) => format!("{column} {op} {values}"),
            Op::In => format!("{column} IN ({values})"),
            Op::NotIn => format!("{column} NOT IN ({values})"),
            Op::IsNull => format!("{column} IS NULL"),
            Op::IsNotNull => format!("{column} IS NOT NULL"),
        }
    });
    Ok(parts.collect::<Vec<_>>().join(" AND "))
}

/// `column op values`
struct Condition<'a> {
    unique_id: Option<i32>,
    column: &'a str,
    op: Op,
    values: Vec<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Op {
    Compare(CompareOp),
    In,
    NotIn,
    IsNull,
    IsNotNull,
}

impl Op {
    fn parse(op: &str, value: &str) -> Result<Self> {
        Ok(match op.trim().to_ascii_lowercase().as_str() {
            "=" | "==" | "*=" => Self::Compare(CompareOp::Eq),
            "!=" | "!*=" => Self::Compare(CompareOp::NotEq),
            ">>" | ">" => Self::Compare(CompareOp::Gt),
            "<<" | "<" => Self::Compare(CompareOp::Lt),
            ">=" => Self::Compare(CompareOp::GtEq),
            "<=" => Self::Compare(CompareOp::LtEq),
            "is" if value.trim().eq_ignore_ascii_case("null") => Self::IsNull,
            "is" => Self::IsNotNull,
            other => {
                return Err(Error::unsupported(format!("the operator \"{other}\" in a delete predicate")));
            }
        })
    }
}

impl Condition<'_> {
    fn is_true(&self, column: &SchemaColumn) -> Result<Predicate> {
        match self.op {
            Op::Compare(op) => {
                delete_values::compare(column, op, self.values.first().copied().unwrap_or_default())
            }
            Op::In => delete_values::is_in(column, &self.values),
            Op::NotIn => Ok(Predicate::Not(Box::new(delete_values::is_in(column, &self.values)?))),
            Op::IsNull => Ok(col(column.name.clone()).is_null()),
            Op::IsNotNull => Ok(col(column.name.clone()).is_not_null()),
        }
    }
}

/// Conditions of one value are there twice, as text for older releases and in parts; those of several are always in parts.
fn conditions(message: &DeletePredicatePb) -> Result<Vec<Condition<'_>>> {
    let mut conditions = Vec::new();
    for condition in &message.sub_predicates_v2 {
        let value = condition.cond_value.as_deref().unwrap_or_default();
        conditions.push(Condition {
            unique_id: condition.column_unique_id,
            column: condition.column_name.as_deref().unwrap_or_default(),
            op: Op::parse(condition.op.as_deref().unwrap_or_default(), value)?,
            values: vec![value],
        });
    }
    if message.sub_predicates_v2.is_empty() {
        for text in &message.sub_predicates {
            let (column, op, value) = split(text)?;
            conditions.push(Condition {
                unique_id: None,
                column,
                op: Op::parse(op, value)?,
                values: vec![value],
            });
        }
    }
    for condition in &message.in_predicates {
        conditions.push(Condition {
            unique_id: condition.column_unique_id,
            column: condition.column_name.as_deref().unwrap_or_default(),
            op: if condition.is_not_in.unwrap_or(false) { Op::NotIn } else { Op::In },
            values: condition.values.iter().map(String::as_str).collect(),
        });
    }
    Ok(conditions)
}

/// Column, operator and value of the text form.
fn split(text: &str) -> Result<(&str, &str, &str)> {
    let lower = text.to_ascii_lowercase();
    let found = OPERATORS
        .into_iter()
        .filter_map(|op| Some((lower.find(op)?, op)))
        // The first operator in the text; of several at one place the longest.
        .min_by_key(|(at, op)| (*at, usize::MAX.wrapping_sub(op.len())));
    let (at, op) =
        found.ok_or_else(|| Error::corrupt("a condition of a delete predicate", format!("{text:?}")))?;
    let name = text.get(..at).unwrap_or_default().trim().trim_matches('`');
    let value = text.get(at.saturating_add(op.len())..).unwrap_or_default().trim_start();
    let inner = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    Ok((name, op.trim(), inner.unwrap_or(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_in_text_form() {
        for (text, expected) in [
            ("k1=5", ("k1", "=", "5")),
            ("k1!='a=b'", ("k1", "!=", "a=b")),
            ("k1='it''s '", ("k1", "=", "it''s ")),
            ("k1=''", ("k1", "=", "")),
            ("`k`>>7", ("k", ">>", "7")),
            ("k<<7", ("k", "<<", "7")),
            ("k>=7", ("k", ">=", "7")),
            ("k*=7", ("k", "*=", "7")),
            ("k!*=7", ("k", "!*=", "7")),
            ("k IS NOT NULL", ("k", "is", "NOT NULL")),
        ] {
            assert_eq!(split(text).unwrap(), expected, "{text}");
        }
        assert!(split("nothing").is_err());
    }
}
