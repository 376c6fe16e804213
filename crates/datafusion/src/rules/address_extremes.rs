//! `min` and `max` of addresses.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use pilaster_core::order::Order;

use super::addresses::{address, octets};

/// The largest or smallest address.
pub(super) fn extreme(is_max: bool, order: Order) -> Arc<AggregateUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(AggregateUDF::from(Extreme { is_max, order, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    is_max: bool,
    order: Order,
    signature: Signature,
}

impl Extreme {
    fn start(&self, args: &AccumulatorArgs<'_>) -> Kept {
        Kept {
            is_max: self.is_max,
            counts: BTreeMap::new(),
            is_whole: true,
            data_type: args.return_field.data_type().clone(),
        }
    }
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        if self.is_max { "max" } else { "min" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [data_type] => Ok(data_type.clone()),
            other => exec_err!("{} of {} columns", self.name(), other.len()),
        }
    }

    /// The result is an address too.
    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        let types: Vec<_> = arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name(), self.return_type(&types)?, true);
        Ok(Arc::new(field.with_metadata(self.order.metadata())))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(self.start(&args)))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Kept { is_whole: false, ..self.start(&args) }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Addresses by their order, with the text of each and how often it is there.
#[derive(Debug)]
struct Kept {
    is_max: bool,
    counts: BTreeMap<[u8; 16], (String, u64)>,
    /// Whether nothing is taken out again, so that one address is enough.
    is_whole: bool,
    data_type: DataType,
}

impl Kept {
    fn best(&self) -> Option<&str> {
        let mut all = self.counts.values();
        let best = if self.is_max { all.next_back() } else { all.next() };
        best.map(|(text, _)| text.as_str())
    }

    fn each(values: &[ArrayRef], mut take: impl FnMut([u8; 16], &str)) -> Result<()> {
        let [texts] = values else { return exec_err!("the largest of {} columns", values.len()) };
        let texts = cast(texts, &DataType::Utf8View)?;
        for text in texts.as_string_view().iter().flatten() {
            take(octets(address(text)?), text);
        }
        Ok(())
    }
}

impl Accumulator for Kept {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let counts = &mut self.counts;
        let (is_max, is_whole) = (self.is_max, self.is_whole);
        Self::each(values, |bytes, text| {
            let is_better = |known: &[u8; 16]| if is_max { bytes > *known } else { bytes < *known };
            if is_whole {
                if counts.keys().next().is_some_and(|known| !is_better(known)) {
                    return;
                }
                counts.clear();
            }
            let (_, count) = counts.entry(bytes).or_insert_with(|| (text.to_string(), 0));
            *count = count.saturating_add(1);
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let counts = &mut self.counts;
        Self::each(values, |bytes, _| {
            if let Some((_, count)) = counts.get_mut(&bytes) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    counts.remove(&bytes);
                }
            }
        })
    }

    fn supports_retract_batch(&self) -> bool {
        !self.is_whole
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::Utf8(self.best().map(str::to_string)).cast_to(&self.data_type)
    }

    fn size(&self) -> usize {
        size_of_val(self).saturating_add(self.counts.len().saturating_mul(96))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
