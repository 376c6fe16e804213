//! DELETE statements that are kept as conditions: a rowset without rows that removes rows of older ones.
//!
//! A row goes if all conditions are true for it. Conditions are `column op value`: `=`, `!=`, `>>` (greater), `<<`
//! (less), `>=`, `<=`, `is` with `null` or `not null`, `*=` and `!*=` with several values.

use pilaster_core::{Error, Literal, Predicate, Result, col, lit};

use super::messages::DeletePredicatePb;
use super::meta::RowsetMeta;
use crate::schema::{SchemaColumn, TabletSchema};

/// Operators in the order in which a text is searched for them.
const OPERATORS: [&str; 9] = ["!*=", "*=", "!=", ">=", "<=", ">>", "<<", "=", " is "];

/// Finds a column by its id, else by its name: in the schema, else among those that were dropped since.
pub(crate) struct Columns<'a> {
    pub schema: &'a TabletSchema,
    pub rowsets: &'a [RowsetMeta],
    /// Columns that only old rowsets have, which a condition needs.
    pub dropped: Vec<SchemaColumn>,
}

impl Columns<'_> {
    fn name(&mut self, unique_id: Option<i32>, name: Option<&str>) -> Result<String> {
        let is_it = |column: &&SchemaColumn| match unique_id.filter(|id| *id >= 0) {
            Some(id) => column.unique_id == id,
            None => name.is_some_and(|name| column.name.eq_ignore_ascii_case(name)),
        };
        if let Some(found) = self.schema.columns.iter().chain(&self.dropped).find(is_it) {
            return Ok(found.name.clone());
        }
        let old = self
            .rowsets
            .iter()
            .filter_map(|rowset| rowset.schema.as_ref())
            .flat_map(|schema| &schema.columns);
        let Some(found) = old.into_iter().find(is_it) else {
            return Err(Error::corrupt("a column of the tablet in a delete predicate", format!("{name:?}")));
        };
        let mut dropped = found.clone();
        dropped.name = format!("{} (dropped, id {})", found.name, found.unique_id);
        dropped.visible = false;
        self.dropped.push(dropped.clone());
        Ok(dropped.name)
    }
}

/// What must be true for a row to stay.
pub(crate) fn keeps(message: &DeletePredicatePb, columns: &mut Columns<'_>) -> Result<Predicate> {
    let mut stays = Vec::new();
    if message.sub_predicates_v2.is_empty() {
        for text in &message.sub_predicates {
            let (name, op, value) = split(text)?;
            let name = columns.name(None, Some(name))?;
            stays.push(not_true(name, op, &[value])?);
        }
    }
    for condition in &message.sub_predicates_v2 {
        let name = columns.name(condition.column_unique_id, condition.column_name.as_deref())?;
        let value = condition.cond_value.as_deref().unwrap_or_default();
        stays.push(not_true(name, condition.op.as_deref().unwrap_or_default().trim(), &[unquoted(value)])?);
    }
    for condition in &message.in_predicates {
        let name = columns.name(condition.column_unique_id, condition.column_name.as_deref())?;
        let values: Vec<_> = condition.values.iter().map(|value| unquoted(value)).collect();
        let op = if condition.is_not_in.unwrap_or(false) { "!*=" } else { "*=" };
        stays.push(not_true(name, op, &values)?);
    }
    if stays.is_empty() {
        return Err(Error::corrupt("a condition in a delete predicate", "none"));
    }
    Ok(Predicate::Or(stays))
}

/// True where `column op value` is false or unknown.
fn not_true(name: String, op: &str, values: &[&str]) -> Result<Predicate> {
    let column = || col(name.clone());
    let value = || -> Literal { lit(values.first().copied().unwrap_or_default()) };
    let condition = match op {
        "=" | "==" => column().eq(value()),
        "!=" => column().not_eq(value()),
        ">>" | ">" => column().gt(value()),
        "<<" | "<" => column().lt(value()),
        ">=" => column().gt_eq(value()),
        "<=" => column().lt_eq(value()),
        "*=" => column().is_in(values.iter().map(|value| lit(*value)).collect()),
        "!*=" => Predicate::Not(Box::new(column().is_in(values.iter().map(|value| lit(*value)).collect()))),
        "is" | "IS" => {
            let is_null = values.first().is_some_and(|value| value.eq_ignore_ascii_case("null"));
            return Ok(if is_null { column().is_not_null() } else { column().is_null() });
        }
        other => return Err(Error::unsupported(format!("the operator \"{other}\" in a delete predicate"))),
    };
    Ok(Predicate::Or(vec![Predicate::Not(Box::new(condition)), column().is_null()]))
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
    let value = text.get(at.saturating_add(op.len())..).unwrap_or_default();
    Ok((name, op.trim(), unquoted(value)))
}

fn unquoted(value: &str) -> &str {
    let trimmed = value.trim();
    trimmed.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(trimmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_in_text_form() {
        for (text, expected) in [
            ("k1=5", ("k1", "=", "5")),
            ("k1!='a=b'", ("k1", "!=", "a=b")),
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
