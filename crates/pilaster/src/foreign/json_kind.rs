//! Which type holds all values of a JSON column.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};

use super::csv::EXACT_DIGITS;
use super::json_value::Json;

/// What the values of a column have been so far.
#[derive(Debug)]
pub(super) enum Kind {
    Null,
    Bool,
    Number(Numbers),
    /// Nothing but the texts that stand for floats JSON has no number for; a number among them makes them floats.
    FloatText,
    Text,
    List(Box<Kind>),
    Object(Vec<(String, Kind)>),
}

impl Kind {
    fn of(value: &Json<'_>) -> Self {
        match value {
            Json::Null => Self::Null,
            Json::Bool(_) => Self::Bool,
            Json::Number(_) => Self::Number(Numbers::default()),
            Json::Text(text) if is_float_text(text) => Self::FloatText,
            Json::Text(_) => Self::Text,
            Json::List(_) => Self::List(Box::new(Self::Null)),
            Json::Object(_) => Self::Object(Vec::new()),
        }
    }

    /// Widens to hold `value` too; says what does not fit.
    pub(super) fn add(&mut self, value: &Json<'_>, depth: u32) -> Result<(), String> {
        let Some(depth) = depth.checked_sub(1) else { return Err("values nested too deeply".to_string()) };
        if matches!(self, Self::Null) {
            *self = Self::of(value);
        }
        match (&mut *self, value) {
            (_, Json::Null) | (Self::Bool, Json::Bool(_)) | (Self::Text, Json::Text(_)) => {}
            (Self::Number(numbers), Json::Number(text)) => numbers.add(text),
            (Self::Number(numbers), Json::Text(text)) if is_float_text(text) => numbers.has_float = true,
            (Self::FloatText, Json::Text(text)) => {
                if !is_float_text(text) {
                    *self = Self::Text;
                }
            }
            (Self::FloatText, Json::Number(text)) => {
                let mut numbers = Numbers { has_float: true, ..Numbers::default() };
                numbers.add(text);
                *self = Self::Number(numbers);
            }
            (Self::List(item), Json::List(values)) => {
                for value in values {
                    item.add(value, depth)?;
                }
            }
            (Self::Object(fields), Json::Object(values)) => {
                for (name, value) in values {
                    let index = match fields.iter().position(|(known, _)| known == name) {
                        Some(index) => index,
                        None => {
                            fields.push((name.clone(), Self::Null));
                            fields.len().saturating_sub(1)
                        }
                    };
                    if let Some((_, kind)) = fields.get_mut(index) {
                        kind.add(value, depth).map_err(|found| format!("{found} under \"{name}\""))?;
                    }
                }
            }
            (_, value) => return Err(value.to_string()),
        }
        Ok(())
    }

    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Null | Self::Text | Self::FloatText => DataType::Utf8,
            Self::Bool => DataType::Boolean,
            Self::Number(numbers) => numbers.data_type(),
            Self::List(item) => DataType::List(Arc::new(Field::new("item", item.data_type(), true))),
            Self::Object(fields) => DataType::Struct(
                fields
                    .iter()
                    .map(|(name, kind)| Field::new(name, kind.data_type(), true))
                    .collect::<Fields>(),
            ),
        }
    }
}

/// What the numbers of a column have been so far.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    has_negative: bool,
    has_float: bool,
    /// Integers that a double may not hold.
    has_long: bool,
    /// Integers that only an unsigned type holds.
    has_unsigned: bool,
    /// Integers that no type holds.
    has_huge: bool,
}

impl Numbers {
    fn add(&mut self, text: &str) {
        let digits = text.strip_prefix('-').unwrap_or(text);
        // No integer has a sign of its zero.
        if text == "-0" || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            self.has_float = true;
            return;
        }
        self.has_negative |= text.starts_with('-');
        self.has_long |= digits.len() > EXACT_DIGITS;
        if text.parse::<i64>().is_err() {
            match text.parse::<u64>() {
                Ok(_) => self.has_unsigned = true,
                Err(_) => self.has_huge = true,
            }
        }
    }

    /// The narrowest type that changes no integer; text if there is none.
    fn data_type(&self) -> DataType {
        let fits_no_integer = self.has_huge || self.has_negative && self.has_unsigned;
        match self {
            _ if fits_no_integer || self.has_float && self.has_long => DataType::Utf8,
            Self { has_float: true, .. } => DataType::Float64,
            Self { has_unsigned: true, .. } => DataType::UInt64,
            _ => DataType::Int64,
        }
    }
}

/// Whether a text is what this program writes for a float that is no JSON number.
fn is_float_text(text: &str) -> bool {
    matches!(text, "NaN" | "Infinity" | "-Infinity")
}
