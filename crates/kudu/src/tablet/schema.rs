//! The schema of a table, with the ids by which its columns are known inside rowsets.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pilaster_core::{Error, Result};

use crate::cfile::{KuduType, Physical, natural_type};
use crate::messages::{
    ArrayTypePb, ColumnSchemaPb, ColumnTypeAttributesPb, NestedTypePb, SchemaPb, required,
};

/// Number of the type of array columns; the type of the elements stands elsewhere.
const NESTED: i32 = 21;

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct KuduColumn {
    /// The column's identity inside rowsets and deltas; `None` in a client's schema.
    pub id: Option<i32>,
    /// Its name today.
    pub name: String,
    /// Its type, or that of the elements of an array column.
    pub data_type: KuduType,
    /// Whether a cell is an array.
    pub is_array: bool,
    /// Whether it is part of the primary key.
    pub is_key: bool,
    /// Whether cells may be null.
    pub is_nullable: bool,
    /// What rows written before the column existed read as.
    pub read_default: Option<Vec<u8>>,
    /// What an insert without a value for it stores.
    pub write_default: Option<Vec<u8>>,
    /// Digits of a decimal.
    pub precision: u8,
    /// Digits of a decimal behind the point.
    pub scale: i8,
    /// Whether updates leave it alone.
    pub is_immutable: bool,
    /// Whether the server counts it up.
    pub is_auto_incrementing: bool,
    /// What the table's owner says of it.
    pub comment: Option<String>,
    /// Whether it is declared as text and holds other bytes: the system catalog keeps messages so.
    pub is_opaque: bool,
}

impl KuduColumn {
    fn parse(message: &ColumnSchemaPb) -> Result<Self> {
        let number = required(message.data_type, "type")?;
        let element =
            message.nested_type.and_then(|nested| nested.array).and_then(|array| array.element_type);
        let is_array = number == NESTED;
        let data_type =
            KuduType::from_number(if is_array { required(element, "nested_type")? } else { number })?;
        let attributes = message.type_attributes.unwrap_or_default();
        let digits = |field: Option<i32>| u8::try_from(field.unwrap_or_default()).unwrap_or_default();
        let column = Self {
            id: message.id.map(|id| i32::try_from(id).unwrap_or(-1)),
            name: required(message.name.clone(), "name")?,
            data_type,
            is_array,
            is_key: message.is_key.unwrap_or_default(),
            is_nullable: message.is_nullable.unwrap_or_default(),
            read_default: message.read_default_value.clone(),
            write_default: message.write_default_value.clone(),
            precision: digits(attributes.precision),
            scale: i8::try_from(digits(attributes.scale)).unwrap_or_default(),
            is_immutable: message.immutable.unwrap_or_default(),
            is_auto_incrementing: message.is_auto_incrementing.unwrap_or_default(),
            comment: message.comment.clone().filter(|text| !text.is_empty()),
            is_opaque: false,
        };
        if column.is_key && (column.is_nullable || column.is_array || !data_type.can_be_key()) {
            return Err(Error::corrupt(
                "a key column of a type that can be a key",
                format!("column {:?}", column.name),
            ));
        }
        Ok(column)
    }

    /// The message that [`KuduColumn::parse`] reads, without what only concerns how the column is stored.
    pub(crate) fn to_message(&self) -> ColumnSchemaPb {
        let number = self.data_type.number();
        let is_decimal = self.precision > 0;
        ColumnSchemaPb {
            id: self.id.and_then(|id| u32::try_from(id).ok()),
            name: Some(self.name.clone()),
            data_type: Some(if self.is_array { NESTED } else { number }),
            is_key: Some(self.is_key),
            is_nullable: Some(self.is_nullable),
            read_default_value: self.read_default.clone(),
            write_default_value: self.write_default.clone(),
            type_attributes: is_decimal.then(|| ColumnTypeAttributesPb {
                precision: Some(i32::from(self.precision)),
                scale: Some(i32::from(self.scale)),
                length: None,
            }),
            comment: self.comment.clone(),
            immutable: Some(self.is_immutable),
            is_auto_incrementing: self.is_auto_incrementing.then_some(true),
            nested_type: self
                .is_array
                .then_some(NestedTypePb { array: Some(ArrayTypePb { element_type: Some(number) }) }),
            ..ColumnSchemaPb::default()
        }
    }

    /// A column of which nothing but a number and the type is known.
    pub(crate) fn nameless(number: i32, data_type: KuduType) -> Self {
        Self {
            id: Some(number),
            name: format!("c{number}"),
            data_type,
            is_array: false,
            is_key: false,
            is_nullable: false,
            read_default: None,
            write_default: None,
            precision: 0,
            scale: 0,
            is_immutable: false,
            is_auto_incrementing: false,
            comment: None,
            is_opaque: false,
        }
    }

    /// The Arrow type of its values (of its elements, for an array column).
    pub(crate) fn value_type(&self) -> DataType {
        match self.data_type {
            KuduType::Decimal32 if self.precision > 0 => {
                DataType::Decimal128(self.precision.min(9), self.scale)
            }
            KuduType::Decimal64 if self.precision > 0 => {
                DataType::Decimal128(self.precision.min(18), self.scale)
            }
            KuduType::Decimal128 if self.precision > 0 => {
                DataType::Decimal128(self.precision.min(38), self.scale)
            }
            KuduType::String if self.is_opaque => natural_type(KuduType::Binary),
            other => natural_type(other),
        }
    }

    /// The column as an Arrow field.
    pub fn field(&self) -> Field {
        let data_type = match self.is_array {
            true => DataType::List(Arc::new(Field::new("item", self.value_type(), true))),
            false => self.value_type(),
        };
        Field::new(&self.name, data_type, self.is_nullable)
    }

    /// Bytes of a cell in rows and changes; `None` for cells of any length.
    pub(crate) fn cell_bytes(&self) -> Option<usize> {
        match self.data_type.physical() {
            _ if self.is_array => None,
            Physical::Fixed(width) => Some(width),
            Physical::Bool => Some(1),
            Physical::Binary => None,
        }
    }
}

/// The columns of a table, the key columns first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KuduSchema {
    /// All columns.
    pub columns: Vec<KuduColumn>,
}

impl KuduSchema {
    pub(crate) fn parse(message: &SchemaPb) -> Result<Self> {
        let columns = message.columns.iter().map(KuduColumn::parse).collect::<Result<Vec<_>>>()?;
        let schema = Self { columns };
        let keys = schema.key_count();
        if schema.columns.iter().skip(keys).any(|column| column.is_key) {
            return Err(Error::corrupt("key columns before all others", "a key column after another"));
        }
        Ok(schema)
    }

    /// Number of key columns.
    pub fn key_count(&self) -> usize {
        self.columns.iter().take_while(|column| column.is_key).count()
    }

    /// The key columns.
    pub fn keys(&self) -> &[KuduColumn] {
        self.columns.get(..self.key_count()).unwrap_or_default()
    }

    /// Whether two schemas agree in all that rows depend on.
    pub(crate) fn is_same_table(&self, other: &Self) -> bool {
        let shape = |schema: &Self| -> Vec<KuduColumn> {
            let rows_of =
                |column: &KuduColumn| KuduColumn { comment: None, is_opaque: false, ..column.clone() };
            schema.columns.iter().map(rows_of).collect()
        };
        shape(self) == shape(other)
    }

    /// Where the column of this id stands.
    pub(crate) fn index_of_id(&self, id: i32) -> Option<usize> {
        self.columns.iter().position(|column| column.id == Some(id))
    }

    /// Where the column of this name stands.
    pub(crate) fn index_of_name(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The schema in Arrow.
    pub fn to_arrow(&self) -> SchemaRef {
        Arc::new(Schema::new(self.columns.iter().map(KuduColumn::field).collect::<Vec<_>>()))
    }
}
