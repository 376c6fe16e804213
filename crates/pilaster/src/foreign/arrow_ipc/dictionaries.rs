//! Dictionaries on their way into an Arrow file, in which each column has one that may only grow.
//!
//! Batches may come with a dictionary each: those of different row groups, or of different files. So the entries of a column are
//! collected, and the codes of each batch are made those of the collection; what is new in it is written as a delta.
//! Dictionaries inside lists and structs are written out.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array, make_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;
use pilaster_core::{Error, Result};

/// The dictionaries of a file that is being written.
#[derive(Debug)]
pub(crate) struct Dictionaries {
    schema: SchemaRef,
    columns: Vec<Words>,
}

/// The entries of a column so far.
#[derive(Debug, Default)]
struct Words {
    values: Option<ArrayRef>,
    /// Where each entry stands.
    places: HashMap<Option<Box<[u8]>>, u64>,
}

impl Dictionaries {
    pub(crate) fn new(schema: &SchemaRef) -> Self {
        let fields = schema.fields().iter().map(|field| match field.data_type() {
            DataType::Dictionary(..) => Arc::clone(field),
            _ => written_out(field),
        });
        let fields: Vec<FieldRef> = fields.collect();
        let columns = fields.iter().map(|_| Words::default()).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Self { schema, columns }
    }

    /// The schema of the file.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// A batch whose dictionaries begin with those of the batches before.
    pub(crate) fn unite(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(batch.num_columns());
        for ((column, field), words) in
            batch.columns().iter().zip(self.schema.fields()).zip(&mut self.columns)
        {
            columns.push(match field.data_type() {
                DataType::Dictionary(..) => words.unite(column)?,
                wanted if wanted == column.data_type() => Arc::clone(column),
                wanted => strict_cast(column, wanted)?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

impl Words {
    fn unite(&mut self, column: &ArrayRef) -> Result<ArrayRef> {
        let codes = column
            .as_any_dictionary_opt()
            .ok_or_else(|| Error::internal("a column without the dictionary it announced"))?;
        let Some(known) = &self.values else {
            // Where all batches share one dictionary, it is the file's.
            self.values = Some(Arc::clone(codes.values()));
            return Ok(Arc::clone(column));
        };
        if known.to_data().ptr_eq(&codes.values().to_data()) || known.to_data() == codes.values().to_data() {
            return Ok(Arc::clone(column));
        }
        if self.places.is_empty() {
            for (place, word) in (0..).zip(words_of(known)?) {
                self.places.entry(word).or_insert(place);
            }
        }
        let mut size = known.len() as u64;
        let mut new = Vec::new();
        let mut moved = Vec::with_capacity(codes.values().len());
        for (index, word) in (0..).zip(words_of(codes.values())?) {
            moved.push(*self.places.entry(word).or_insert_with(|| {
                new.push(index);
                let place = size;
                size = size.saturating_add(1);
                place
            }));
        }
        let values = match new.is_empty() {
            true => Arc::clone(known),
            false => {
                let new = take(codes.values(), &UInt64Array::from(new), None)?;
                concat(&[known.as_ref(), new.as_ref()])?
            }
        };
        let keys = take(&UInt64Array::from(moved), codes.keys(), None)?;
        let keys = strict_cast(&keys, codes.keys().data_type())?;
        let data = keys.to_data().into_builder().data_type(column.data_type().clone());
        let data = data.child_data(vec![values.to_data()]).build()?;
        self.values = Some(values);
        Ok(make_array(data))
    }
}

/// The bytes of each entry.
fn words_of(values: &ArrayRef) -> Result<Vec<Option<Box<[u8]>>>> {
    let binary = match values.data_type() {
        DataType::LargeBinary => Arc::clone(values),
        _ => strict_cast(values, &DataType::LargeBinary)?,
    };
    Ok(binary.as_binary::<i64>().iter().map(|word| word.map(Box::from)).collect())
}

fn strict_cast(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, wanted, &strict).map_err(|error| Error::invalid(error.to_string()))
}

/// A field without dictionaries in it.
fn written_out(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::List(item) => DataType::List(written_out(item)),
        DataType::LargeList(item) => DataType::LargeList(written_out(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(written_out(item), *length),
        DataType::Map(entries, is_sorted) => DataType::Map(written_out(entries), *is_sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(written_out).collect()),
        _ => return Arc::clone(field),
    };
    if data_type == *field.data_type() {
        return Arc::clone(field);
    }
    Arc::new(Field::clone(field).with_data_type(data_type))
}
