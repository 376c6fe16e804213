//! How values of metadata look in JSON: enums by name or number, bytes in base64.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

const KEYS_TYPES: &[&str] = &["DUP_KEYS", "UNIQUE_KEYS", "AGG_KEYS"];
const ROWSET_TYPES: &[&str] = &["ALPHA_ROWSET", "BETA_ROWSET"];
const ROWSET_STATES: &[&str] = &["PREPARED", "COMMITTED", "VISIBLE"];
const TABLET_STATES: &[&str] = &["PB_NOTREADY", "PB_RUNNING", "PB_TOMBSTONED", "PB_STOPPED", "PB_SHUTDOWN"];
const TABLET_ROLES: &[&str] = &["TABLET_ROLE_DATA", "TABLET_ROLE_ROW_BINLOG"];
const ENCRYPTIONS: &[&str] = &["PLAINTEXT", "AES_256_CTR", "SM4_128_CTR"];

#[derive(Deserialize)]
#[serde(untagged)]
enum NameOrNumber {
    Name(String),
    Number(i32),
}

/// A value of an enum whose names count from 0.
fn named<'de, D: Deserializer<'de>>(input: D, names: &[&str]) -> Result<Option<i32>, D::Error> {
    match NameOrNumber::deserialize(input)? {
        NameOrNumber::Number(number) => Ok(Some(number)),
        NameOrNumber::Name(name) => match names.iter().position(|known| *known == name) {
            Some(number) => Ok(i32::try_from(number).ok()),
            None => Err(D::Error::custom(format!("expected one of {}, found {name:?}", names.join(", ")))),
        },
    }
}

pub(super) fn keys_type<'de, D: Deserializer<'de>>(input: D) -> Result<Option<i32>, D::Error> {
    named(input, KEYS_TYPES)
}

pub(super) fn rowset_type<'de, D: Deserializer<'de>>(input: D) -> Result<Option<i32>, D::Error> {
    named(input, ROWSET_TYPES)
}

pub(super) fn rowset_state<'de, D: Deserializer<'de>>(input: D) -> Result<Option<i32>, D::Error> {
    named(input, ROWSET_STATES)
}

pub(super) fn tablet_state<'de, D: Deserializer<'de>>(input: D) -> Result<Option<i32>, D::Error> {
    named(input, TABLET_STATES)
}

pub(super) fn tablet_role<'de, D: Deserializer<'de>>(input: D) -> Result<Option<i32>, D::Error> {
    named(input, TABLET_ROLES)
}

pub(super) fn encryption<'de, D: Deserializer<'de>>(input: D) -> Result<Option<i32>, D::Error> {
    named(input, ENCRYPTIONS)
}

pub(super) fn bytes<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<u8>>, D::Error> {
    let text = String::deserialize(input)?;
    BASE64_STANDARD.decode(text).map(Some).map_err(D::Error::custom)
}

pub(super) fn all_bytes<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Vec<u8>>, D::Error> {
    let texts = Vec::<String>::deserialize(input)?;
    texts.iter().map(|text| BASE64_STANDARD.decode(text).map_err(D::Error::custom)).collect()
}
