//! What an old release of Doris can read.

use pilaster_core::{Error, Result};

use super::filter::FilterKind;
use super::plan::ColumnPlan;
use crate::schema::{KeysType, TabletSchema};
use crate::segment::footer::StorageFormat;
use crate::segment::types::{Compression, Encoding, FieldType};

/// A release that must be able to read what is written, and lose no row of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Release {
    /// 0.12 of 2020, the first whose segments are those of today. It takes a page without bounds for one without values, so that small
    /// pages have bounds too. What it does not know is refused: newer types, encodings, codecs and indexes, storage format V3, and
    /// unique tables that are merged when they are written.
    V0_12,
}

impl Release {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::V0_12 => "0.12",
        }
    }

    /// The release of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::V0_12].into_iter().find(|release| release.name() == name)
    }

    fn types(self) -> &'static [FieldType] {
        use FieldType as T;
        match self {
            Self::V0_12 => &[
                T::Bool,
                T::TinyInt,
                T::SmallInt,
                T::Int,
                T::BigInt,
                T::LargeInt,
                T::Float,
                T::Double,
                T::Decimal,
                T::Char,
                T::Varchar,
                T::Date,
                T::DateTime,
                T::Hll,
                T::Bitmap,
            ],
        }
    }

    fn encodings(self) -> &'static [Encoding] {
        use Encoding as E;
        match self {
            Self::V0_12 => &[E::Plain, E::Prefix, E::Rle, E::Dict, E::BitShuffle, E::Frames],
        }
    }

    fn codecs(self) -> &'static [Compression] {
        use Compression as C;
        match self {
            Self::V0_12 => &[C::None, C::Snappy, C::Lz4, C::Lz4Frame, C::Zlib],
        }
    }

    /// Refuses a table that the release cannot read.
    pub(super) fn check_table(self, schema: &TabletSchema, format: StorageFormat) -> Result<()> {
        if format != StorageFormat::V2 {
            return Err(self.unknown("storage format V3", "V2"));
        }
        if schema.keys_type == KeysType::Unique && schema.merge_on_write {
            return Err(self.unknown("unique table that is merged when it is written", "merge on read"));
        }
        Ok(())
    }

    /// Refuses a column that the release cannot read, or reads wrongly.
    pub(super) fn check_column(self, column: &ColumnPlan, is_key: bool) -> Result<()> {
        if !self.types().contains(&column.field_type) {
            let known: Vec<_> = self.types().iter().map(|known| known.name()).collect();
            return Err(self.unknown(column.field_type.name(), &known.join(", ")));
        }
        let paged = &column.paged;
        if !self.encodings().contains(&paged.encoding) {
            let known: Vec<_> = self.encodings().iter().map(|known| known.name()).collect();
            return Err(self.unknown(paged.encoding.name(), &known.join(", ")));
        }
        if paged.encoding == Encoding::Prefix && !is_key {
            let message =
                format!("Doris {} misreads {} in columns of values", self.name(), paged.encoding.name());
            return Err(Error::invalid(message));
        }
        if !self.codecs().contains(&paged.compression) {
            let known: Vec<_> = self.codecs().iter().map(|known| known.name()).collect();
            return Err(self.unknown(paged.compression.name(), &known.join(", ")));
        }
        match paged.filter {
            Some(FilterKind::Ngram { .. }) => {
                Err(self.unknown("index of n-grams", "bloom filters of values"))
            }
            _ => Ok(()),
        }
    }

    fn unknown(self, what: &str, known: &str) -> Error {
        Error::invalid(format!("Doris {} knows no {what}, only {known}", self.name()))
    }
}
