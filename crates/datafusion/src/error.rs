//! Our errors on their way through DataFusion and back.

use std::error::Error as StdError;
use std::sync::Arc;

use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::parquet::errors::ParquetError;
use datafusion::sql::sqlparser::parser::ParserError;
use pilaster_core::{Error, ErrorKind};

use crate::parquet_damage::panic_in;
use crate::rules::depth::TOO_DEEP;

/// Our error as DataFusion carries it.
pub fn to_datafusion(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Our own error inside a DataFusion error, however often it was wrapped.
pub fn root_cause(error: &DataFusionError) -> Option<&Error> {
    find(error)
}

/// One error with one line of text: our own if it is in there, else what DataFusion says without its wrappings.
pub fn from_datafusion(error: DataFusionError) -> Error {
    take(error).unwrap_or_else(|error| Error::new(kind_of(&error)))
}

fn find<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(own) = error.downcast_ref::<Error>() {
            return Some(own);
        }
        if let Some(shared) = error.downcast_ref::<Arc<DataFusionError>>() {
            return find(shared.as_ref());
        }
        // The source of an Arrow external error is the source of what it carries, not the carried error itself.
        if let Some(ArrowError::ExternalError(carried)) = error.downcast_ref::<ArrowError>() {
            return find(carried.as_ref());
        }
        next = error.source();
    }
    None
}

/// Moves our error out where the wrappings allow it; shared errors come out as text of the same kind.
fn take(error: DataFusionError) -> Result<Error, DataFusionError> {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<Error>() {
            Ok(own) => Ok(*own),
            Err(inner) => match inner.downcast::<DataFusionError>() {
                Ok(nested) => take(*nested),
                Err(inner) => copy_of(DataFusionError::External(inner)),
            },
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => take(*inner),
        DataFusionError::ArrowError(inner, trace) => match *inner {
            ArrowError::ExternalError(carried) => match carried.downcast::<Error>() {
                Ok(own) => Ok(*own),
                Err(carried) => match carried.downcast::<DataFusionError>() {
                    Ok(nested) => take(*nested),
                    Err(carried) => copy_of(DataFusionError::ArrowError(
                        Box::new(ArrowError::ExternalError(carried)),
                        trace,
                    )),
                },
            },
            other => Err(DataFusionError::ArrowError(Box::new(other), trace)),
        },
        DataFusionError::Shared(shared) => match Arc::try_unwrap(shared) {
            Ok(inner) => take(inner),
            Err(shared) => copy_of(DataFusionError::Shared(shared)),
        },
        DataFusionError::Collection(mut errors) if !errors.is_empty() => take(errors.remove(0)),
        other => copy_of(other),
    }
}

/// Our error found by reference only: the same once more.
fn copy_of(error: DataFusionError) -> Result<Error, DataFusionError> {
    find(&error).cloned().ok_or(error)
}

fn kind_of(error: &DataFusionError) -> ErrorKind {
    match error.find_root() {
        DataFusionError::IoError(io) => ErrorKind::Io(std::io::Error::new(io.kind(), io.to_string())),
        // The object store names the path first; what it wraps says why.
        DataFusionError::ObjectStore(store) => ErrorKind::InvalidInput(one_line(&store.to_string())),
        DataFusionError::SQL(parser, _) if matches!(parser.as_ref(), ParserError::RecursionLimitExceeded) => {
            ErrorKind::InvalidInput(TOO_DEEP.to_string())
        }
        DataFusionError::SQL(parser, _) => {
            let text = parser.to_string();
            let text = text.strip_prefix("sql parser error: ").unwrap_or(&text);
            ErrorKind::InvalidInput(format!("sql: {}", one_line(text)))
        }
        DataFusionError::SchemaError(schema, _) => match schema.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => {
                let known: Vec<_> = valid_fields.iter().map(|column| column.name.as_str()).collect();
                let known = known.join(", ");
                ErrorKind::InvalidInput(format!("no column \"{}\"; there are: {known}", field.name))
            }
            other => ErrorKind::InvalidInput(one_line(&other.to_string())),
        },
        // While reading, these are bytes that break the format; DataFusion has forgotten in which file.
        DataFusionError::ParquetError(parquet) => match parquet.as_ref() {
            ParquetError::NYI(feature) => ErrorKind::Unsupported { feature: one_line(feature) },
            other => unsound_parquet(&other.to_string()),
        },
        DataFusionError::ArrowError(arrow, _) => match arrow.as_ref() {
            ArrowError::ParquetError(found) => unsound_parquet(found),
            other => ErrorKind::InvalidInput(one_line(&other.to_string())),
        },
        DataFusionError::Plan(message) => {
            // Names are only given in full when the user did.
            ErrorKind::InvalidInput(one_line(&message.replace("'datafusion.public.", "'")))
        }
        DataFusionError::ResourcesExhausted(message) => ErrorKind::InvalidInput(format!(
            "the query needs more memory than it was given: {}",
            one_line(message)
        )),
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => kind_of(first),
            None => ErrorKind::Internal("an error without words".to_string()),
        },
        // Neither the statement nor the data is to blame: damage of Parquet files was looked for before.
        root => match panic_in(error) {
            Some(found) => ErrorKind::Internal(format!("DataFusion broke off: {}", one_line(&found))),
            None => ErrorKind::InvalidInput(one_line(&root.message())),
        },
    }
}

fn unsound_parquet(found: &str) -> ErrorKind {
    ErrorKind::Corrupt { expected: "sound parquet".to_string(), found: one_line(found) }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parquet_damage::panicked;

    fn own() -> Error {
        Error::corrupt("crc 1", "crc 2").at("a.cfile", 7, "block")
    }

    #[test]
    fn our_error_comes_out_of_every_wrapping() {
        let text = own().to_string();
        let wrapped: Vec<fn(Error) -> DataFusionError> = vec![
            to_datafusion,
            |error| to_datafusion(error).context("while reading"),
            |error| DataFusionError::ArrowError(Box::new(ArrowError::from(error)), None),
            |error| DataFusionError::Shared(Arc::new(to_datafusion(error))),
            |error| {
                DataFusionError::from(ArrowError::ExternalError(Box::new(
                    to_datafusion(error).context("carried by arrow"),
                )))
            },
        ];
        for wrap in wrapped {
            assert_eq!(root_cause(&wrap(own())).map(ToString::to_string), Some(text.clone()));
            let error = from_datafusion(wrap(own()));
            assert_eq!(error.to_string(), text);
            assert!(error.is_damage());
        }
        let shared = Arc::new(to_datafusion(own()));
        let error = from_datafusion(DataFusionError::Shared(Arc::clone(&shared)));
        assert_eq!(error.to_string(), text);
        assert!(error.is_damage());
    }

    #[test]
    fn a_panic_is_nobodys_fault_but_the_programs() {
        let panic = || panicked(&"attempt to subtract\nwith overflow");
        for error in [panic(), panic().context("while adding"), DataFusionError::Shared(Arc::new(panic()))] {
            let error = from_datafusion(error);
            assert!(matches!(error.kind(), ErrorKind::Internal(_)), "{error}");
            assert!(error.to_string().ends_with("DataFusion broke off: attempt to subtract with overflow"));
        }
    }

    #[test]
    fn other_errors_are_one_line_without_prefixes() {
        let error = from_datafusion(DataFusionError::Plan("no such\n  thing".into()).context("outer"));
        assert_eq!(error.to_string(), "no such thing");
    }
}
