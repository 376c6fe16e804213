//! A JSON value as it stands in the file: names in their order, numbers with all of their digits.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value of one line, and of what it holds.
#[derive(Debug, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    /// As it is written.
    Number(&'a str),
    Text(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl<'a> Json<'a> {
    /// The value that `line` is.
    ///
    /// # Errors
    /// If it is none, or is followed by something else.
    pub(super) fn parse(line: &'a [u8]) -> serde_json::Result<Self> {
        let mut numbers = NumberTexts(line);
        let mut input = serde_json::Deserializer::from_slice(line);
        let value = Seed(&mut numbers).deserialize(&mut input)?;
        input.end()?;
        Ok(value)
    }
}

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Number(text) => f.write_str(text),
            Self::Text(text) => serde_json::Value::from(text.as_str()).fmt(f),
            Self::List(_) => f.write_str("a list"),
            Self::Object(_) => f.write_str("an object"),
        }
    }
}

/// The numbers of a line in their order. The parser knows only what they are as integers of 64 bits or as doubles.
struct NumberTexts<'a>(&'a [u8]);

impl<'a> NumberTexts<'a> {
    /// The next number. The line is known to be JSON up to there, so that digits outside of texts are numbers.
    fn next(&mut self) -> Option<&'a str> {
        let (mut is_text, mut is_escaped) = (false, false);
        let start = self.0.iter().position(|byte| match byte {
            _ if is_escaped => {
                is_escaped = false;
                false
            }
            b'\\' => {
                is_escaped = is_text;
                false
            }
            b'"' => {
                is_text = !is_text;
                false
            }
            byte => !is_text && (*byte == b'-' || byte.is_ascii_digit()),
        })?;
        let rest = self.0.get(start..)?;
        let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let (number, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(number).ok()
    }
}

/// Makes a value of what the parser sees.
struct Seed<'s, 'a>(&'s mut NumberTexts<'a>);

impl<'a> Seed<'_, 'a> {
    fn number<E: serde::de::Error>(self) -> Result<Json<'a>, E> {
        self.0.next().map(Json::Number).ok_or_else(|| E::custom("a number that is not in its line"))
    }
}

impl<'de, 'a> DeserializeSeed<'de> for Seed<'_, 'a> {
    type Value = Json<'a>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Json<'a>, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de, 'a> Visitor<'de> for Seed<'_, 'a> {
    type Value = Json<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json<'a>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'a>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Json<'a>, E> {
        self.number()
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Json<'a>, E> {
        self.number()
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Json<'a>, E> {
        self.number()
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'a>, E> {
        Ok(Json::Text(text.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Json<'a>, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element_seed(Seed(self.0))? {
            list.push(value);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<Json<'a>, A::Error> {
        let mut object = Vec::new();
        while let Some(name) = values.next_key()? {
            object.push((name, values.next_value_seed(Seed(self.0))?));
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_order_and_numbers_their_digits() {
        let line = br#" {"z-1":-1.50e+3,"a":["2\"3\\",{"y":99999999999999999999,"b":null}],"m":[true,0]} "#;
        let object = |fields: Vec<(&str, Json<'static>)>| {
            Json::Object(fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
        };
        let inner = object(vec![("y", Json::Number("99999999999999999999")), ("b", Json::Null)]);
        let expected = object(vec![
            ("z-1", Json::Number("-1.50e+3")),
            ("a", Json::List(vec![Json::Text("2\"3\\".to_string()), inner])),
            ("m", Json::List(vec![Json::Bool(true), Json::Number("0")])),
        ]);
        assert_eq!(Json::parse(line).unwrap(), expected);
        for bad in ["", "{", "{} {}", "{\"a\":1,}", "{1:2}", "[1 2]", "1e999"] {
            assert!(Json::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
