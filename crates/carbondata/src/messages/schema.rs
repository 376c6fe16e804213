//! Headers and columns.

use pilaster_encoding::DecodeError;
use pilaster_encoding::thrift::{Reader, Writer, wire};

use super::{Parsed, i32_list, required};

/// More columns than any table has; each takes hundreds of bytes in memory and few in a file.
const MAX_COLUMNS: usize = 1 << 16;

/// The first struct of a data file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHeader {
    /// Version of the format: 3.
    pub version: i32,
    /// Columns in the order of their chunks; children follow their parents.
    pub columns: Vec<ColumnSchema>,
    /// Whether the file ends with a footer; files of a streaming segment do not.
    pub is_footer_present: bool,
    /// When the schema was last changed, in milliseconds since 1970.
    pub time_stamp: i64,
    /// What stands before every blocklet of a streaming file.
    pub sync_marker: Option<Vec<u8>>,
    /// The codec of a streaming file.
    pub compressor_name: Option<String>,
}

impl FileHeader {
    pub(crate) fn parse(reader: &mut Reader<'_>) -> Parsed<Self> {
        let at = reader.position();
        let (mut version, mut columns, mut has_footer) = (None, None, None);
        let mut header = Self::default();
        reader.structure(|reader, field| {
            match field.id {
                1 => version = Some(reader.i32(field)?),
                2 => columns = Some(parse_columns(reader, field)?),
                3 => has_footer = Some(reader.bool(field)?),
                4 => header.time_stamp = reader.i64(field)?,
                6 => header.sync_marker = Some(reader.binary(field)?.to_vec()),
                7 => header.compressor_name = Some(reader.text(field)?.to_string()),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        header.version = required(version, at, "a header with a version")?;
        header.columns = required(columns, at, "a header with columns")?;
        header.is_footer_present = has_footer.unwrap_or(true);
        Ok(header)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.i32(1, self.version);
        write_columns(&mut writer, 2, &self.columns);
        writer.bool(3, self.is_footer_present);
        writer.i64(4, self.time_stamp);
        writer.finish();
    }
}

pub(crate) fn write_columns(writer: &mut Writer<'_>, id: i16, columns: &[ColumnSchema]) {
    writer.list(id, wire::STRUCT, columns, ColumnSchema::write);
}

pub(crate) fn parse_columns(
    reader: &mut Reader<'_>,
    field: pilaster_encoding::thrift::Field,
) -> Parsed<Vec<ColumnSchema>> {
    let mut count = 0usize;
    reader.list(field, wire::STRUCT, |reader| {
        count = count.saturating_add(1);
        if count > MAX_COLUMNS {
            let expected = format!("at most {MAX_COLUMNS} columns");
            return Err(DecodeError::new(reader.position(), expected, "more"));
        }
        ColumnSchema::parse(reader)
    })
}

/// One column, or one node of a nested column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSchema {
    /// Number of the type.
    pub data_type: i32,
    /// Name in lower case; children carry the path of their parents.
    pub name: String,
    /// What stays the same when the column is renamed.
    pub column_id: String,
    /// Encodings of the column as a whole.
    pub encoders: Vec<i32>,
    /// Whether it is a dimension (else a measure).
    pub is_dimension: bool,
    /// Whether it is stored by itself; the columns of a group, in versions 1 and 2, are not.
    pub is_columnar: bool,
    /// Number of its group.
    pub group: i32,
    /// Digits after the point of a decimal.
    pub scale: i32,
    /// Digits of a decimal.
    pub precision: i32,
    /// How many of the following columns are its children.
    pub num_child: i32,
    /// What rows have that were written before the column was added.
    pub default_value: Option<Vec<u8>>,
    /// Properties of the column.
    pub properties: Vec<(String, String)>,
    /// Whether the column was dropped.
    pub is_invisible: bool,
    /// Place in the order of the user; -1 for children.
    pub ordinal: Option<i32>,
}

impl ColumnSchema {
    /// A dimension of texts, called by its name and with that as its id.
    pub(crate) fn text(name: &str, ordinal: i32) -> Self {
        Self {
            data_type: 0,
            name: name.to_string(),
            column_id: name.to_string(),
            encoders: Vec::new(),
            is_dimension: true,
            is_columnar: true,
            group: -1,
            scale: -1,
            precision: -1,
            num_child: 0,
            default_value: None,
            properties: Vec::new(),
            is_invisible: false,
            ordinal: Some(ordinal),
        }
    }

    pub(crate) fn parse(reader: &mut Reader<'_>) -> Parsed<Self> {
        let at = reader.position();
        let (mut data_type, mut name, mut column_id) = (None, None, None);
        let mut column = Self { is_dimension: false, ordinal: None, ..Self::text("", -1) };
        reader.structure(|reader, field| {
            match field.id {
                1 => data_type = Some(reader.i32(field)?),
                2 => name = Some(reader.text(field)?.to_string()),
                3 => column_id = Some(reader.text(field)?.to_string()),
                4 => column.is_columnar = reader.bool(field)?,
                5 => column.encoders = i32_list(reader, field)?,
                6 => column.is_dimension = reader.bool(field)?,
                7 => column.group = reader.i32(field)?,
                8 => column.scale = reader.i32(field)?,
                9 => column.precision = reader.i32(field)?,
                10 => column.num_child = reader.i32(field)?,
                12 => column.default_value = Some(reader.binary(field)?.to_vec()),
                13 => {
                    let pairs = reader.text_map(field)?;
                    column.properties =
                        pairs.into_iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
                }
                14 => column.is_invisible = reader.bool(field)?,
                16 => column.ordinal = Some(reader.i32(field)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        column.data_type = required(data_type, at, "a column with a type")?;
        column.name = required(name, at, "a column with a name")?;
        column.column_id = required(column_id, at, "a column with an id")?;
        Ok(column)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.i32(1, self.data_type);
        writer.text(2, &self.name);
        writer.text(3, &self.column_id);
        writer.bool(4, self.is_columnar);
        writer.i32_list(5, &self.encoders);
        writer.bool(6, self.is_dimension);
        writer.i32(7, self.group);
        writer.i32(8, self.scale);
        writer.i32(9, self.precision);
        writer.i32(10, self.num_child);
        // The name of an aggregate function, which no table has any more.
        writer.text(11, "");
        if let Some(value) = &self.default_value {
            writer.binary(12, value);
        }
        if !self.properties.is_empty() {
            writer.text_map(13, &self.properties);
        }
        writer.bool(14, self.is_invisible);
        writer.text(15, &self.column_id);
        if let Some(ordinal) = self.ordinal {
            writer.i32(16, ordinal);
        }
        writer.finish();
    }
}
