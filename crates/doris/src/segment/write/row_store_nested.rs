//! Arrays, maps and structs in the row store: binary values of what Doris has in memory.
//!
//! ```text
//! ARRAY    u64 count | items                nullable parts: u8 1 for a null, u8 0 before any other value;
//! MAP      u64 count | keys | values        items of an array always have it
//! STRUCT   fields
//! strings  u32 length | bytes               numbers and dates: the cell as in memory
//! ```

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use pilaster_core::{Error, Result};

use super::column::{as_list, expected, leaf};
use super::plan::{ColumnPlan, Layout};
use super::row_store::in_memory;
use super::values::{Form, MadeBytes, Values};
use crate::segment::types::{FieldType, Physical};

/// A column, or a part of one, ready to be written row by row.
struct Part {
    nulls: Option<NullBuffer>,
    /// Whether a byte says if a value is null.
    has_flag: bool,
    rows: Rows,
}

enum Rows {
    Leaf {
        values: Values,
        field_type: FieldType,
    },
    /// Where the items of each row begin, and the items: one part of an array, two of a map.
    Repeated {
        offsets: Vec<usize>,
        parts: Vec<Part>,
    },
    Struct(Vec<Part>),
}

/// The values of an array, map or struct, one for each row.
pub(super) fn nested_values(array: &ArrayRef, plan: &ColumnPlan) -> Result<Values> {
    let part = Part::new(array, plan, false)?;
    let mut made = MadeBytes::default();
    for row in 0..array.len() {
        if !part.is_null(row) {
            part.append_value(row, &mut made.bytes)?;
        }
        made.end_value();
    }
    Ok(Values { form: Form::Made(made), nulls: part.nulls, len: array.len() })
}

/// Whether Doris has no bytes for such a value inside another.
fn is_opaque(field_type: FieldType) -> bool {
    matches!(field_type, FieldType::Hll | FieldType::Bitmap | FieldType::QuantileState | FieldType::AggState)
}

impl Part {
    fn new(array: &ArrayRef, plan: &ColumnPlan, has_flag: bool) -> Result<Self> {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let children = |arrays: &[ArrayRef]| {
            if arrays.len() != plan.children.len() {
                return Err(expected(&format!("{} parts", plan.children.len()), array));
            }
            let parts = arrays.iter().zip(&plan.children);
            let is_item = plan.layout == Layout::List;
            parts.map(|(array, child)| Self::new(array, child, is_item || child.is_nullable)).collect()
        };
        let places = |offsets: &[i32]| {
            offsets.iter().map(|offset| usize::try_from(*offset).unwrap_or_default()).collect()
        };
        let rows = match plan.layout {
            Layout::Paged if is_opaque(plan.field_type) => {
                return Err(Error::unsupported(format!(
                    "{} inside a column of the row store",
                    plan.field_type
                )));
            }
            Layout::Paged => {
                let values = Values::new(&leaf(array, plan)?, &plan.paged.cell, plan.length)?;
                Rows::Leaf { values, field_type: plan.field_type }
            }
            Layout::List => {
                let list = as_list(array)?;
                let list = list.as_list::<i32>();
                let parts = children(&[Arc::clone(list.values())])?;
                Rows::Repeated { offsets: places(list.value_offsets()), parts }
            }
            Layout::Map => {
                let map = array.as_map_opt().ok_or_else(|| expected("a map", array))?;
                let parts = children(&[Arc::clone(map.keys()), Arc::clone(map.values())])?;
                Rows::Repeated { offsets: places(map.value_offsets()), parts }
            }
            Layout::Struct => {
                let group = array.as_struct_opt().ok_or_else(|| expected("a struct", array))?;
                Rows::Struct(children(group.columns())?)
            }
            Layout::Variant => return Err(Error::unsupported("a VARIANT inside another column")),
        };
        Ok(Self { nulls, has_flag, rows })
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let is_null = self.is_null(row);
        if self.has_flag {
            out.push(u8::from(is_null));
        } else if is_null {
            return Err(Error::invalid("a null in a column that is not nullable"));
        }
        if is_null { Ok(()) } else { self.append_value(row, out) }
    }

    fn append_value(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match &self.rows {
            Rows::Leaf { values, field_type } => {
                let cell = in_memory(*field_type, values.cell(row));
                if !matches!(field_type.physical(), Physical::Fixed(_)) {
                    let length = u32::try_from(cell.len());
                    out.extend(length.map_err(|_| Error::invalid("a text of 4 GiB"))?.to_le_bytes());
                }
                out.extend_from_slice(&cell);
                Ok(())
            }
            Rows::Repeated { offsets, parts } => {
                let start = offsets.get(row).copied().unwrap_or_default();
                let end = offsets.get(row.saturating_add(1)).copied().unwrap_or(start);
                out.extend((end.saturating_sub(start) as u64).to_le_bytes());
                parts.iter().try_for_each(|part| (start..end).try_for_each(|item| part.append(item, out)))
            }
            Rows::Struct(fields) => fields.iter().try_for_each(|field| field.append(row, out)),
        }
    }
}
