//! Arrow arrays in the form a page stores.

use std::net::{Ipv4Addr, Ipv6Addr};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, ByteArrayType, ByteViewType, Date32Type, Decimal128Type, Decimal256Type,
    TimestampMicrosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, GenericByteArray, GenericByteViewArray, StringArray,
    StringViewArray,
};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType;
use pilaster_core::{Error, Result};

use crate::calendar;
use crate::jsonb;
use crate::segment::cells::{Cell, decimal_v2_cell};

/// How deep a JSON document may be: what readers accept.
pub(super) const JSON_DEPTH: u32 = 32;

/// Values of any length by row.
pub(super) trait ByteValues {
    /// The bytes in `row`; any for a null.
    fn value(&self, row: usize) -> &[u8];
}

impl<T: ByteViewType> ByteValues for GenericByteViewArray<T> {
    #[inline]
    fn value(&self, row: usize) -> &[u8] {
        let value: &T::Native = GenericByteViewArray::value(self, row);
        value.as_ref()
    }
}

impl<T: ByteArrayType> ByteValues for GenericByteArray<T> {
    #[inline]
    fn value(&self, row: usize) -> &[u8] {
        let value: &T::Native = GenericByteArray::value(self, row);
        value.as_ref()
    }
}

/// Values made for the file, back to back.
#[derive(Debug, Default)]
pub(super) struct MadeBytes {
    pub bytes: Vec<u8>,
    pub ends: Vec<usize>,
}

impl MadeBytes {
    pub fn end_value(&mut self) {
        self.ends.push(self.bytes.len());
    }

    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.end_value();
    }
}

impl ByteValues for MadeBytes {
    #[inline]
    fn value(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(row).and_then(|end| self.bytes.get(start..*end)).unwrap_or_default()
    }
}

/// The values of an array, nulls in their places.
#[derive(Debug)]
pub(super) enum Form {
    Cells { cells: Buffer, width: usize },
    Text(StringArray),
    TextViews(StringViewArray),
    Binary(BinaryArray),
    BinaryViews(BinaryViewArray),
    Made(MadeBytes),
}

/// An array ready to be written.
#[derive(Debug)]
pub(super) struct Values {
    pub form: Form,
    pub nulls: Option<NullBuffer>,
    pub len: usize,
}

impl Values {
    /// The values of an array of the column's Arrow type, or of another string type; `length` is the declared one of
    /// strings.
    pub fn new(array: &ArrayRef, cell: &Cell, length: i32) -> Result<Self> {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let is_valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let fixed = |cells: Vec<u8>, width: usize| Form::Cells { cells: cells.into(), width };
        let form = match cell {
            Cell::Bool => {
                let bits = array.as_boolean_opt().ok_or_else(|| mismatch(array, cell))?;
                let cells: Vec<u8> = bits.values().iter().map(u8::from).collect();
                fixed(cells, 1)
            }
            Cell::Number(_, width) => plain_cells(array, *width)?,
            Cell::Decimal { width: width @ (16 | 32), .. } => plain_cells(array, *width)?,
            Cell::Decimal { width: 4, .. } => fixed(
                converted::<Decimal128Type, 4>(array, cell, is_valid, |value| {
                    i32::try_from(value).ok().map(i32::to_le_bytes)
                })?,
                4,
            ),
            Cell::Decimal { .. } => fixed(
                converted::<Decimal128Type, 8>(array, cell, is_valid, |value| {
                    i64::try_from(value).ok().map(i64::to_le_bytes)
                })?,
                8,
            ),
            Cell::LargeInt => fixed(
                converted::<Decimal256Type, 16>(array, cell, is_valid, |value| {
                    value.to_i128().map(i128::to_le_bytes)
                })?,
                16,
            ),
            Cell::DecimalV2 => {
                fixed(converted::<Decimal128Type, 12>(array, cell, is_valid, decimal_v2_cell)?, 12)
            }
            Cell::Date => fixed(
                converted::<Date32Type, 3>(array, cell, is_valid, |days| {
                    let [a, b, c, _] = calendar::pack_days(days)?.to_le_bytes();
                    Some([a, b, c])
                })?,
                3,
            ),
            Cell::DateV2 => fixed(
                converted::<Date32Type, 4>(array, cell, is_valid, |days| {
                    calendar::pack_days(days).map(u32::to_le_bytes)
                })?,
                4,
            ),
            Cell::DateTime => fixed(
                converted::<TimestampSecondType, 8>(array, cell, is_valid, |seconds| {
                    calendar::second_digits(seconds).map(i64::to_le_bytes)
                })?,
                8,
            ),
            Cell::DateTimeV2 | Cell::TimestampTz => fixed(
                converted::<TimestampMicrosecondType, 8>(array, cell, is_valid, |micros| {
                    calendar::pack_micros(micros).map(u64::to_le_bytes)
                })?,
                8,
            ),
            Cell::Ipv4 => fixed(
                addresses(array, is_valid, |text| {
                    Some(text.parse::<Ipv4Addr>().ok()?.to_bits().to_le_bytes())
                })?,
                4,
            ),
            Cell::Ipv6 => fixed(
                addresses(array, is_valid, |text| {
                    Some(text.parse::<Ipv6Addr>().ok()?.to_bits().to_le_bytes())
                })?,
                16,
            ),
            Cell::Char => padded(array, is_valid, length)?,
            Cell::Text => text(array, is_valid, length)?,
            Cell::Bytes => bytes(array)?,
            Cell::Jsonb => documents(array, is_valid)?,
        };
        Ok(Self { form, nulls, len: array.len() })
    }

    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The cell in `row`, as it is stored.
    pub fn cell(&self, row: usize) -> &[u8] {
        match &self.form {
            Form::Cells { cells, width } => {
                let start = row.saturating_mul(*width);
                cells.get(start..start.saturating_add(*width)).unwrap_or_default()
            }
            Form::Text(array) => ByteValues::value(array, row),
            Form::TextViews(array) => ByteValues::value(array, row),
            Form::Binary(array) => ByteValues::value(array, row),
            Form::BinaryViews(array) => ByteValues::value(array, row),
            Form::Made(made) => made.value(row),
        }
    }
}

fn mismatch(array: &ArrayRef, cell: &Cell) -> Error {
    Error::invalid(format!("expected values of {}, found {}", cell.arrow(), array.data_type()))
}

/// Numbers that Arrow holds as a page does.
fn plain_cells(array: &ArrayRef, width: usize) -> Result<Form> {
    let data = array.to_data();
    let (start, bytes) = (data.offset().saturating_mul(width), array.len().saturating_mul(width));
    let buffer = data.buffers().first().filter(|buffer| buffer.len() >= start.saturating_add(bytes));
    let buffer = buffer
        .ok_or_else(|| Error::invalid(format!("{} has no cells of {width} bytes", array.data_type())))?;
    Ok(Form::Cells { cells: buffer.slice_with_length(start, bytes), width })
}

fn converted<T: ArrowPrimitiveType, const W: usize>(
    array: &ArrayRef,
    cell: &Cell,
    is_valid: impl Fn(usize) -> bool,
    convert: impl Fn(T::Native) -> Option<[u8; W]>,
) -> Result<Vec<u8>> {
    let values = array.as_primitive_opt::<T>().ok_or_else(|| mismatch(array, cell))?;
    let mut cells = Vec::with_capacity(values.len().saturating_mul(W));
    for (row, value) in values.values().iter().enumerate() {
        match convert(*value) {
            Some(stored) => cells.extend(stored),
            None if !is_valid(row) => cells.extend([0; W]),
            None => {
                return Err(Error::invalid(format!(
                    "row {row} of the batch: {value:?} has no place in a column of {} bytes per cell",
                    W
                )));
            }
        }
    }
    Ok(cells)
}

/// Calls `each` with the text of every row that has one.
fn each_text(
    array: &ArrayRef,
    is_valid: impl Fn(usize) -> bool,
    mut each: impl FnMut(usize, Option<&str>) -> Result<()>,
) -> Result<()> {
    let mut row_text = |row: usize, text: &str| each(row, is_valid(row).then_some(text));
    match array.data_type() {
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            (0..array.len()).try_for_each(|row| row_text(row, array.value(row)))
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            (0..array.len()).try_for_each(|row| row_text(row, array.value(row)))
        }
        other => Err(Error::invalid(format!("expected text, found {other}"))),
    }
}

fn addresses<const W: usize>(
    array: &ArrayRef,
    is_valid: impl Fn(usize) -> bool,
    parse: impl Fn(&str) -> Option<[u8; W]>,
) -> Result<Vec<u8>> {
    let mut cells = Vec::with_capacity(array.len().saturating_mul(W));
    each_text(array, is_valid, |row, text| {
        let Some(text) = text else {
            cells.extend([0; W]);
            return Ok(());
        };
        let address = parse(text)
            .ok_or_else(|| Error::invalid(format!("row {row} of the batch: \"{text}\" is no address")))?;
        cells.extend(address);
        Ok(())
    })?;
    Ok(cells)
}

fn check_length(row: usize, found: usize, length: i32) -> Result<()> {
    match usize::try_from(length) {
        Ok(most) if found > most => Err(Error::invalid(format!(
            "row {row} of the batch: a string of {found} bytes in a column of at most {most}"
        ))),
        _ => Ok(()),
    }
}

/// CHAR cells, filled up to their length with zeros.
fn padded(array: &ArrayRef, is_valid: impl Fn(usize) -> bool, length: i32) -> Result<Form> {
    let width = usize::try_from(length).map_err(|_| Error::invalid("a CHAR column without a length"))?;
    let mut made = MadeBytes::default();
    each_text(array, is_valid, |row, text| {
        let text = text.unwrap_or_default();
        check_length(row, text.len(), length)?;
        if text.ends_with('\0') {
            return Err(Error::invalid(format!(
                "row {row} of the batch: a CHAR that ends with a zero byte would lose it"
            )));
        }
        let end = made.bytes.len().saturating_add(width);
        made.bytes.extend_from_slice(text.as_bytes());
        made.bytes.resize(end, 0);
        made.end_value();
        Ok(())
    })?;
    Ok(Form::Made(made))
}

fn text(array: &ArrayRef, is_valid: impl Fn(usize) -> bool, length: i32) -> Result<Form> {
    let check = |lengths: &mut dyn Iterator<Item = usize>| {
        if length <= 0 || length == i32::MAX {
            return Ok(());
        }
        let mut rows = lengths.enumerate().filter(|(row, _)| is_valid(*row));
        rows.try_for_each(|(row, found)| check_length(row, found, length))
    };
    match array.data_type() {
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            check(&mut array.offsets().lengths())?;
            Ok(Form::Text(array.clone()))
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            check(&mut array.lengths().map(|length| length as usize))?;
            Ok(Form::TextViews(array.clone()))
        }
        other => Err(Error::invalid(format!("expected text, found {other}"))),
    }
}

fn bytes(array: &ArrayRef) -> Result<Form> {
    match array.data_type() {
        DataType::Binary => Ok(Form::Binary(array.as_binary::<i32>().clone())),
        DataType::BinaryView => Ok(Form::BinaryViews(array.as_binary_view().clone())),
        DataType::Utf8 => Ok(Form::Text(array.as_string::<i32>().clone())),
        DataType::Utf8View => Ok(Form::TextViews(array.as_string_view().clone())),
        other => Err(Error::invalid(format!("expected bytes, found {other}"))),
    }
}

fn documents(array: &ArrayRef, is_valid: impl Fn(usize) -> bool) -> Result<Form> {
    let mut made = MadeBytes::default();
    each_text(array, is_valid, |row, text| {
        if let Some(text) = text {
            jsonb::append_document(text, JSON_DEPTH, &mut made.bytes)
                .map_err(|error| Error::invalid(format!("row {row} of the batch: {error}")))?;
        }
        made.end_value();
        Ok(())
    })?;
    Ok(Form::Made(made))
}
