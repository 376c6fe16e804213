//! Values to codes of a table's dictionary, which grows with them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast::cast;
use arrow_schema::DataType;
use pilaster_core::{Error, Result};
use pilaster_encoding::dictionary::DictionaryBuilder;

use super::super::page::strings::NULL_MARKER;

/// The code of null, and of the first member, which stands for it.
const NULL_CODE: u32 = 1;
/// Bytes of a code: as many as releases before 2.0 use where they do not know the number of members beforehand.
pub(crate) const CODE_BYTES: usize = 4;
/// What files note as the number of members then.
pub(crate) const UNKNOWN_CARDINALITY: i32 = i32::MAX;

/// The members of a column's dictionary, by their texts.
#[derive(Debug)]
pub(crate) struct TableCodes(Mutex<DictionaryBuilder>);

impl TableCodes {
    /// A dictionary of these members, the first of which stands for null.
    pub fn new<'a>(members: impl Iterator<Item = &'a str>) -> Result<Self> {
        let mut dictionary = DictionaryBuilder::new();
        for member in members {
            if dictionary.get_or_insert(member.as_bytes()).is_none_or(|(_, is_new)| !is_new) {
                return Err(Error::corrupt(
                    "members of a dictionary that differ",
                    format!("{member:?} twice"),
                ));
            }
        }
        dictionary.get_or_insert(NULL_MARKER);
        if dictionary.word(0) != Some(NULL_MARKER) {
            return Err(Error::corrupt("a dictionary whose first member stands for null", "another one"));
        }
        Ok(Self(Mutex::new(dictionary)))
    }

    fn lock(&self) -> MutexGuard<'_, DictionaryBuilder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All members, in the order of their codes.
    pub fn members(&self) -> Vec<String> {
        let dictionary = self.lock();
        let count = u32::try_from(dictionary.len()).unwrap_or(u32::MAX);
        let text = |code| String::from_utf8_lossy(dictionary.word(code).unwrap_or_default()).into_owned();
        (0..count).map(text).collect()
    }

    /// The codes of a page's values; new members are added.
    pub fn codes(&self, array: &ArrayRef) -> Result<Vec<u32>> {
        let texts = match array.data_type() {
            DataType::Utf8View => array.clone(),
            _ => cast(array, &DataType::Utf8View)?,
        };
        let mut dictionary = self.lock();
        let full = || Error::invalid("more members than a dictionary can have");
        let mut code = |text: Option<&str>| match text {
            None => Ok(NULL_CODE),
            Some(text) if text.as_bytes() == NULL_MARKER => {
                Err(Error::invalid(format!("a text that stands for null: {text:?}")))
            }
            Some(text) => {
                let (place, _) = dictionary.get_or_insert(text.as_bytes()).ok_or_else(full)?;
                place.checked_add(NULL_CODE).filter(|code| i32::try_from(*code).is_ok()).ok_or_else(full)
            }
        };
        texts.as_string_view().iter().map(&mut code).collect()
    }
}
