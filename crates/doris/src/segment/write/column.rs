//! Columns made of columns.
//!
//! ```text
//! ARRAY    data: offsets, [nulls], item          NULL rows are empty
//! MAP      data: offsets, [nulls], key, value
//! STRUCT   data: fields, [nulls]                 NULL rows have a row in every field
//! ```

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_buffer::bit_iterator::BitSliceIterator;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;
use pilaster_core::{Error, Result};

use super::paged::{Footprint, PagedWriter};
use super::plan::{ColumnPlan, FilePlan, Layout};
use super::values::{Form, MadeBytes, Values};
use super::variant::VariantWriter;
use crate::segment::cells::Cell;
use crate::segment::types::FieldType;

/// A column, or a part of one.
#[derive(Debug)]
pub(super) struct ColumnWriter {
    pub plan: ColumnPlan,
    pub node: Node,
    pub rows: u64,
}

/// What the rows of a column are put into.
#[derive(Debug)]
pub(super) enum Node {
    Paged(Box<PagedWriter>),
    Repeated(Box<Repeated>),
    Struct(Box<Grouped>),
    Variant(Box<VariantWriter>),
}

/// An array or a map.
#[derive(Debug)]
pub(super) struct Repeated {
    pub offsets: PagedWriter,
    pub nulls: Option<PagedWriter>,
    /// The item, or key and value.
    pub parts: Vec<ColumnWriter>,
    /// Items so far.
    items: u64,
}

/// A struct.
#[derive(Debug)]
pub(super) struct Grouped {
    pub fields: Vec<ColumnWriter>,
    pub nulls: Option<PagedWriter>,
}

impl ColumnWriter {
    pub fn new(file: &FilePlan, plan: ColumnPlan) -> Result<Self> {
        let compression = plan.paged.compression;
        let nulls = || {
            let settings = file.helper(FieldType::TinyInt, compression)?;
            plan.is_nullable.then(|| PagedWriter::new(settings)).transpose()
        };
        let parts =
            || plan.children.iter().map(|child| Self::new(file, child.clone())).collect::<Result<Vec<_>>>();
        let node = match plan.layout {
            Layout::Paged => Node::Paged(Box::new(PagedWriter::new(plan.paged.clone())?)),
            Layout::List | Layout::Map => Node::Repeated(Box::new(Repeated {
                offsets: PagedWriter::new(file.helper(FieldType::UnsignedBigInt, compression)?)?,
                nulls: nulls()?,
                parts: parts()?,
                items: 0,
            })),
            Layout::Struct => Node::Struct(Box::new(Grouped { fields: parts()?, nulls: nulls()? })),
            Layout::Variant => Node::Variant(Box::new(VariantWriter::new(file, &plan)?)),
        };
        Ok(Self { plan, node, rows: 0 })
    }

    /// The cells of an array, for columns with pages of their own.
    pub fn values(&self, array: &ArrayRef) -> Result<Option<Values>> {
        match &self.node {
            Node::Paged(_) => {
                let array = leaf(array, &self.plan)?;
                Ok(Some(Values::new(&array, &self.plan.paged.cell, self.plan.length)?))
            }
            _ => Ok(None),
        }
    }

    /// Appends an array whose cells [`ColumnWriter::values`] gave.
    pub fn append_values(&mut self, values: &Values) -> Result<()> {
        let Node::Paged(paged) = &mut self.node else {
            return Err(Error::internal("cells for a column made of columns"));
        };
        self.rows = self.rows.saturating_add(values.len as u64);
        paged.append(values)
    }

    pub fn append(&mut self, array: &ArrayRef) -> Result<()> {
        if let Some(values) = self.values(array)? {
            return self.append_values(&values);
        }
        self.rows = self.rows.saturating_add(array.len() as u64);
        if !self.plan.is_nullable && array.logical_null_count() > 0 {
            return Err(Error::invalid("a null in a column that is not nullable"));
        }
        match (&mut self.node, self.plan.layout) {
            (Node::Repeated(repeated), Layout::List) => {
                let list = as_list(array)?;
                let list = list.as_list::<i32>();
                repeated.append(list.value_offsets(), list.nulls(), &[Arc::clone(list.values())])
            }
            (Node::Repeated(repeated), _) => {
                let map = array.as_map_opt().ok_or_else(|| expected("a map", array))?;
                let parts = [Arc::clone(map.keys()), Arc::clone(map.values())];
                repeated.append(map.value_offsets(), map.nulls(), &parts)
            }
            (Node::Struct(grouped), _) => {
                let group = array.as_struct_opt().ok_or_else(|| expected("a struct", array))?;
                grouped.append(group.nulls(), group.columns(), group.len())
            }
            (Node::Variant(variant), _) => variant.append(array),
            (Node::Paged(_), _) => Ok(()),
        }
    }

    /// Appends rows that stand for nothing: nulls, or where there can be none, the emptiest value.
    fn append_empty(&mut self, rows: usize) -> Result<()> {
        self.rows = self.rows.saturating_add(rows as u64);
        match &mut self.node {
            Node::Paged(paged) if self.plan.is_nullable => paged.append_nulls(rows),
            Node::Paged(paged) => match paged.settings.cell.width() {
                Some(width) => {
                    let zeros = vec![0; rows.saturating_mul(width)];
                    // There is no day 0.
                    let cells = first_cells(&paged.settings.cell, rows).unwrap_or(zeros);
                    paged.append_cells(&cells, width)
                }
                None => {
                    let mut made = MadeBytes::default();
                    let empty = match paged.settings.cell {
                        Cell::Char => vec![0; usize::try_from(self.plan.length).unwrap_or_default()],
                        _ => Vec::new(),
                    };
                    (0..rows).for_each(|_| made.push(&empty));
                    paged.append(&Values { form: Form::Made(made), nulls: None, len: rows })
                }
            },
            Node::Repeated(repeated) => repeated.append_empty(rows),
            Node::Struct(grouped) => grouped.append_empty(rows),
            Node::Variant(_) => Err(Error::invalid("a VARIANT inside another column")),
        }
    }

    /// Every part with pages, in the order of their data in the file.
    pub fn for_each_paged(&mut self, each: &mut dyn FnMut(&mut PagedWriter) -> Result<()>) -> Result<()> {
        match &mut self.node {
            Node::Paged(paged) => each(paged),
            Node::Repeated(repeated) => {
                each(&mut repeated.offsets)?;
                repeated.nulls.iter_mut().try_for_each(&mut *each)?;
                repeated.parts.iter_mut().try_for_each(|part| part.for_each_paged(each))
            }
            Node::Struct(grouped) => {
                grouped.fields.iter_mut().try_for_each(|field| field.for_each_paged(each))?;
                grouped.nulls.iter_mut().try_for_each(each)
            }
            Node::Variant(variant) => variant.for_each_paged(each),
        }
    }

    /// Bytes of all pages, helpers included.
    pub fn footprint(&self) -> Footprint {
        let mut sum = Footprint::default();
        match &self.node {
            Node::Paged(paged) => sum.add(paged.footprint()),
            Node::Repeated(repeated) => {
                sum.add(repeated.offsets.footprint());
                repeated.nulls.iter().for_each(|nulls| sum.add(nulls.footprint()));
                repeated.parts.iter().for_each(|part| sum.add(part.footprint()));
            }
            Node::Struct(grouped) => {
                grouped.fields.iter().for_each(|field| sum.add(field.footprint()));
                grouped.nulls.iter().for_each(|nulls| sum.add(nulls.footprint()));
            }
            // Doris counts nothing for them.
            Node::Variant(_) => {}
        }
        sum
    }

    /// Bytes held in memory.
    pub fn stored_bytes(&self) -> usize {
        match &self.node {
            Node::Paged(paged) => paged.stored_bytes(),
            Node::Repeated(repeated) => {
                let helpers = [Some(&repeated.offsets), repeated.nulls.as_ref()];
                let helpers = helpers.into_iter().flatten().map(PagedWriter::stored_bytes);
                helpers.chain(repeated.parts.iter().map(Self::stored_bytes)).sum()
            }
            Node::Struct(grouped) => grouped.fields.iter().map(Self::stored_bytes).sum(),
            Node::Variant(variant) => variant.stored_bytes(),
        }
    }
}

impl Repeated {
    fn append(&mut self, offsets: &[i32], nulls: Option<&NullBuffer>, parts: &[ArrayRef]) -> Result<()> {
        let place = |offset: &i32| usize::try_from(*offset).unwrap_or_default();
        let rows = offsets.len().saturating_sub(1);
        let is_null = |row: usize| nulls.is_some_and(|nulls| nulls.is_null(row));
        let mut starts = Vec::with_capacity(rows);
        // Stretches of items that rows other than nulls have.
        let mut stretches: Vec<std::ops::Range<usize>> = Vec::new();
        for (row, pair) in offsets.windows(2).enumerate() {
            starts.push(self.items);
            let &[start, end] = pair else { continue };
            let (start, end) = (place(&start), place(&end));
            if is_null(row) || start >= end {
                continue;
            }
            self.items = self.items.saturating_add(end.saturating_sub(start) as u64);
            match stretches.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => stretches.push(start..end),
            }
        }
        self.offsets.append_offsets(&starts, self.items)?;
        append_flags(&mut self.nulls, nulls, rows)?;
        for (writer, items) in self.parts.iter_mut().zip(parts) {
            for stretch in &stretches {
                writer.append(&items.slice(stretch.start, stretch.len()))?;
            }
        }
        Ok(())
    }

    fn append_empty(&mut self, rows: usize) -> Result<()> {
        self.offsets.append_offsets(&vec![self.items; rows], self.items)?;
        match &mut self.nulls {
            Some(nulls) => nulls.append_cells(&vec![1; rows], 1),
            None => Ok(()),
        }
    }
}

impl Grouped {
    fn append(&mut self, nulls: Option<&NullBuffer>, columns: &[ArrayRef], rows: usize) -> Result<()> {
        if columns.len() != self.fields.len() {
            return Err(Error::invalid(format!(
                "a struct of {} fields, not {}",
                columns.len(),
                self.fields.len()
            )));
        }
        append_flags(&mut self.nulls, nulls, rows)?;
        let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
            return self.fields.iter_mut().zip(columns).try_for_each(|(field, column)| field.append(column));
        };
        let bits = nulls.inner();
        for (field, column) in self.fields.iter_mut().zip(columns) {
            let mut at = 0;
            for (start, end) in BitSliceIterator::new(bits.values(), bits.offset(), bits.len()) {
                if start > at {
                    field.append_empty(start.saturating_sub(at))?;
                }
                field.append(&column.slice(start, end.saturating_sub(start)))?;
                at = end;
            }
            if rows > at {
                field.append_empty(rows.saturating_sub(at))?;
            }
        }
        Ok(())
    }

    fn append_empty(&mut self, rows: usize) -> Result<()> {
        if let Some(nulls) = &mut self.nulls {
            nulls.append_cells(&vec![1; rows], 1)?;
        }
        self.fields.iter_mut().try_for_each(|field| field.append_empty(rows))
    }
}

/// Appends a byte for each row: 1 for a null.
fn append_flags(writer: &mut Option<PagedWriter>, nulls: Option<&NullBuffer>, rows: usize) -> Result<()> {
    let Some(writer) = writer else { return Ok(()) };
    let flags: Vec<u8> = match nulls {
        None => vec![0; rows],
        Some(nulls) => nulls.iter().map(|is_valid| u8::from(!is_valid)).collect(),
    };
    writer.append_cells(&flags, 1)
}

/// Cells of the first day of the calendar, for dates; they have no cell of zeros.
fn first_cells(cell: &Cell, rows: usize) -> Option<Vec<u8>> {
    const FIRST_DAY: u32 = 1 << 5 | 1;
    let one: Vec<u8> = match cell {
        Cell::Date => FIRST_DAY.to_le_bytes().into_iter().take(3).collect(),
        Cell::DateV2 => FIRST_DAY.to_le_bytes().to_vec(),
        Cell::DateTime => 101_000_000i64.to_le_bytes().to_vec(),
        Cell::DateTimeV2 | Cell::TimestampTz => (u64::from(FIRST_DAY) << 37).to_le_bytes().to_vec(),
        _ => return None,
    };
    Some(one.repeat(rows))
}

pub(super) fn expected(what: &str, array: &ArrayRef) -> Error {
    Error::invalid(format!("expected {what}, found {}", array.data_type()))
}

pub(super) fn as_list(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::List(_) => Ok(Arc::clone(array)),
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            cast(array, &DataType::List(Arc::clone(item)))
        }
        _ => Err(expected("a list", array)),
    }
}

/// A cast that loses nothing in silence.
fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(array, to, &strict)?)
}

/// The array in a type that [`Values::new`] takes.
pub(super) fn leaf(array: &ArrayRef, plan: &ColumnPlan) -> Result<ArrayRef> {
    let found = array.data_type();
    if *found == plan.arrow {
        return Ok(Arc::clone(array));
    }
    match (&plan.arrow, found) {
        (DataType::Utf8View, DataType::Utf8) => Ok(Arc::clone(array)),
        (DataType::BinaryView, DataType::Binary | DataType::Utf8 | DataType::Utf8View) => {
            Ok(Arc::clone(array))
        }
        (DataType::Timestamp(unit, _), DataType::Timestamp(..)) => {
            let converted = cast(array, &plan.arrow)?;
            // Casting to a coarser unit cuts; what it cut would be lost.
            let back = cast(&converted, found)?;
            if back.to_data() != array.to_data() && back.as_ref() != array.as_ref() {
                return Err(Error::invalid(format!("{found} values that are no whole {unit:?}")));
            }
            Ok(converted)
        }
        (DataType::Utf8View, DataType::FixedSizeBinary(_)) => {
            cast(&cast(array, &DataType::Binary)?, &plan.arrow)
        }
        _ => cast(array, &plan.arrow),
    }
}
