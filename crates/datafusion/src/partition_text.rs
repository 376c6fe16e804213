//! The text of a value in the name of a partition's folder.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;

/// What the function is called.
pub(crate) const NAME: &str = "pilaster_partition_text";

/// The name of the folder of rows that have no value in the column they are partitioned by, as Hive has it.
const NULL_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

pub(crate) fn register(context: &SessionContext) {
    context.register_udf(ScalarUDF::from(PartitionText(Signature::any(1, Volatility::Immutable))));
}

/// A value as text, null as the folder that stands for it. A text that reads like that folder would come back as null: an error.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PartitionText(Signature);

impl ScalarUDFImpl for PartitionText {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [values] = args.args.as_slice() else { return exec_err!("{NAME} takes one value") };
        // What has no text is no null.
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let texts = cast_with_options(&values.to_array(args.number_rows)?, &DataType::Utf8, &options)?;
        let texts = texts.as_string::<i32>();
        if texts.iter().any(|text| text == Some(NULL_PARTITION)) {
            return exec_err!(
                "a partition cannot be named after the text {NULL_PARTITION:?}: it stands for null"
            );
        }
        let named: StringArray = texts.iter().map(|text| Some(text.unwrap_or(NULL_PARTITION))).collect();
        Ok(ColumnarValue::Array(Arc::new(named) as ArrayRef))
    }
}
