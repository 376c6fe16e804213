//! Which rows are wanted.
//!
//! A [`Predicate`] is small and shared by all formats: column op literal (LIKE is an op), IN, IS NULL, AND, OR, NOT. It
//! follows SQL's three-valued logic: a comparison with null is unknown, and only rows for which the whole is true are wanted.
//!
//! One place evaluates it on rows ([`BoundPredicate::evaluate`]), one tells which zones can hold a match
//! ([`BoundPredicate::may_match`]), one turns it into a range or a list of values of one column
//! ([`BoundPredicate::bounds`], [`BoundPredicate::values`]) for key indexes, hash partitions and bloom filters.

mod bind;
mod bounds;
mod evaluate;
mod like;
mod members;
mod prune;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Datum, Float64Array, Int32Array, Int64Array, StringArray, UInt64Array,
};
use arrow_cast::display::{ArrayFormatter, FormatOptions};

pub use bind::BoundPredicate;
pub use bounds::{Bounds, MOST_VALUES};
pub use prune::ZoneStatistics;

/// How a column is compared with a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `<>`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
    /// `LIKE`: `%` stands for any text, `_` for any one character, and what follows a `\` for itself.
    Like,
    /// `NOT LIKE`
    NotLike,
}

impl CompareOp {
    /// The comparison that is true exactly where this one is false.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::Eq => Self::NotEq,
            Self::NotEq => Self::Eq,
            Self::Lt => Self::GtEq,
            Self::LtEq => Self::Gt,
            Self::Gt => Self::LtEq,
            Self::GtEq => Self::Lt,
            Self::Like => Self::NotLike,
            Self::NotLike => Self::Like,
        }
    }
}

impl fmt::Display for CompareOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eq => "=",
            Self::NotEq => "<>",
            Self::Lt => "<",
            Self::LtEq => "<=",
            Self::Gt => ">",
            Self::GtEq => ">=",
            Self::Like => "LIKE",
            Self::NotLike => "NOT LIKE",
        })
    }
}

/// One value of any Arrow type: an array of length one.
#[derive(Debug, Clone)]
pub struct Literal(ArrayRef);

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ref() == other.0.as_ref()
    }
}

impl Literal {
    /// The value at `index` of `array`; null if the index is out of range.
    pub fn from_array(array: &dyn Array, index: usize) -> Self {
        if index < array.len() {
            Self(array.slice(index, 1))
        } else {
            Self(arrow_array::new_null_array(array.data_type(), 1))
        }
    }

    /// The value as an array of length one.
    pub fn array(&self) -> &ArrayRef {
        &self.0
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        self.0.is_null(0)
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = FormatOptions::default().with_null("NULL");
        match ArrayFormatter::try_new(self.0.as_ref(), &options) {
            Ok(formatter) => write!(f, "{}", formatter.value(0)),
            Err(_) => write!(f, "{:?}", self.0),
        }
    }
}

macro_rules! literal_from {
    ($($from:ty => $array:ty),* $(,)?) => {
        $(impl From<$from> for Literal {
            fn from(value: $from) -> Self {
                Self(Arc::new(<$array>::from(vec![value])))
            }
        })*
    };
}
literal_from!(i32 => Int32Array, i64 => Int64Array, u64 => UInt64Array, f64 => Float64Array, bool => BooleanArray, &str => StringArray);

/// A value to compare with.
pub fn lit(value: impl Into<Literal>) -> Literal {
    value.into()
}

/// A column to compare: `col("id").gt(lit(10_i64))`.
pub fn col(name: impl Into<String>) -> Column {
    Column(name.into())
}

/// A column on the left of a comparison.
#[derive(Debug, Clone)]
pub struct Column(String);

macro_rules! comparisons {
    ($($name:ident $op:ident $text:literal),* $(,)?) => {
        impl Column {
            $(#[doc = concat!("True where the column ", $text, " the value.")]
            pub fn $name(self, value: Literal) -> Predicate {
                Predicate::Compare { column: self.0, op: CompareOp::$op, value }
            })*
        }
    };
}
comparisons!(eq Eq "equals", not_eq NotEq "differs from", lt Lt "is less than", lt_eq LtEq "is at most", gt Gt "is greater than", gt_eq GtEq "is at least", like Like "is a text like");

impl Column {
    /// True where the column equals one of the values.
    pub fn is_in(self, values: Vec<Literal>) -> Predicate {
        Predicate::In { column: self.0, values }
    }

    /// True where the column is null.
    pub fn is_null(self) -> Predicate {
        Predicate::IsNull { column: self.0 }
    }

    /// True where the column is not null.
    pub fn is_not_null(self) -> Predicate {
        Predicate::IsNotNull { column: self.0 }
    }
}

/// Which rows are wanted.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// `column op value`
    Compare {
        /// The column.
        column: String,
        /// The comparison.
        op: CompareOp,
        /// What to compare with.
        value: Literal,
    },
    /// `column IN (values)`
    In {
        /// The column.
        column: String,
        /// The values.
        values: Vec<Literal>,
    },
    /// `column IS NULL`
    IsNull {
        /// The column.
        column: String,
    },
    /// `column IS NOT NULL`
    IsNotNull {
        /// The column.
        column: String,
    },
    /// All of them (true if there are none).
    And(Vec<Predicate>),
    /// Any of them (false if there are none).
    Or(Vec<Predicate>),
    /// The opposite; unknown stays unknown.
    Not(Box<Predicate>),
}

impl Predicate {
    /// The columns it looks at.
    pub fn columns(&self) -> BTreeSet<&str> {
        let mut columns = BTreeSet::new();
        self.collect_columns(&mut columns);
        columns
    }

    fn collect_columns<'a>(&'a self, columns: &mut BTreeSet<&'a str>) {
        match self {
            Self::Compare { column, .. }
            | Self::In { column, .. }
            | Self::IsNull { column }
            | Self::IsNotNull { column } => {
                columns.insert(column);
            }
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|part| part.collect_columns(columns)),
            Self::Not(inner) => inner.collect_columns(columns),
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: &[Predicate], word: &str| {
            f.write_str("(")?;
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    write!(f, " {word} ")?;
                }
                part.fmt(f)?;
            }
            f.write_str(")")
        };
        match self {
            Self::Compare { column, op, value } => write!(f, "{column} {op} {value}"),
            Self::In { column, values } => {
                let values: Vec<_> = values.iter().map(ToString::to_string).collect();
                write!(f, "{column} IN ({})", values.join(", "))
            }
            Self::IsNull { column } => write!(f, "{column} IS NULL"),
            Self::IsNotNull { column } => write!(f, "{column} IS NOT NULL"),
            Self::And(parts) => list(f, parts, "AND"),
            Self::Or(parts) => list(f, parts, "OR"),
            Self::Not(inner) => write!(f, "NOT {inner}"),
        }
    }
}

impl Datum for Literal {
    fn get(&self) -> (&dyn Array, bool) {
        (self.0.as_ref(), true)
    }
}
