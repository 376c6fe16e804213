//! Arrow columns → Kudu columns.

use std::collections::HashSet;

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use pilaster_core::dataset::column_index;
use pilaster_core::{CallOption, Error, Result};

use super::options::KuduTableWriterOptions;
use crate::cfile::{CFileWriterOptions, Compression, Encoding, KuduType, kudu_type, natural_type};
use crate::messages::{ColumnSchemaPb, ColumnTypeAttributesPb, SchemaPb};
use crate::tablet::KuduColumn;

/// Longest name of a column or a table that Kudu takes.
const MAX_NAME_CHARACTERS: usize = 256;
/// Numbers that a schema uses where the server decides.
const AUTO_ENCODING: i32 = 0;
const DEFAULT_COMPRESSION: i32 = 0;

/// A column of the table being written.
#[derive(Debug, Clone)]
pub(super) struct TableColumn {
    /// Where it stands in the batches.
    pub source: usize,
    pub column: KuduColumn,
    /// Most characters of a VARCHAR.
    pub varchar_length: Option<u16>,
    /// What its values are while they are sorted: the narrowest change of what came, and never views.
    pub field: Field,
    encoding: Option<Encoding>,
    compression: Option<Compression>,
    block_size_bytes: Option<usize>,
}

/// The columns of the table, those of the key first.
#[derive(Debug, Clone)]
pub(super) struct TableColumns {
    pub columns: Vec<TableColumn>,
    pub key_count: usize,
}

impl TableColumns {
    /// The columns for batches of this schema.
    pub fn new(schema: &Schema, options: &KuduTableWriterOptions) -> Result<Self> {
        check_names(schema, options)?;
        let keys = key_columns(schema, options)?;
        let others = (0..schema.fields().len()).filter(|index| !keys.contains(index));
        let mut columns = Vec::with_capacity(schema.fields().len());
        for (id, source) in keys.iter().copied().chain(others).enumerate() {
            let field = schema.field(source);
            let is_key = id < keys.len();
            let column = TableColumn::new(field, source, is_key, options)
                .map_err(|message| Error::invalid(message).at(&place(field.name()), 0, ""))?;
            let id = i32::try_from(id).map_err(|_| Error::invalid("too many columns"))?;
            columns.push(TableColumn { column: KuduColumn { id: Some(id), ..column.column }, ..column });
        }
        // Options that no CFile of these columns can have must not wait for the first rowset.
        for column in &columns {
            crate::cfile::CFileWriter::try_new(std::io::sink(), &column.field, column.cfile_options(false))?;
        }
        Ok(Self { columns, key_count: keys.len() })
    }

    /// The key columns.
    pub fn keys(&self) -> &[TableColumn] {
        self.columns.get(..self.key_count).unwrap_or_default()
    }

    pub fn to_message(&self) -> SchemaPb {
        SchemaPb { columns: self.columns.iter().map(TableColumn::to_message).collect() }
    }
}

/// How errors name a column.
pub(super) fn place(column: &str) -> String {
    format!("column \"{column}\"")
}

fn check_names(schema: &Schema, options: &KuduTableWriterOptions) -> Result<()> {
    let mut seen = HashSet::new();
    for field in schema.fields() {
        let name = field.name();
        check_name("column", name)?;
        if !seen.insert(name) {
            return Err(Error::invalid(format!("several columns are called \"{name}\"")));
        }
    }
    let named = options.data_types.keys().chain(options.varchars.keys()).chain(options.encodings.keys());
    for name in named.chain(options.compressions.keys()).chain(options.block_sizes.keys()) {
        column_index(schema, name)?;
    }
    Ok(())
}

/// Refuses names that Kudu refuses.
pub(super) fn check_name(what: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.contains('\0') || name.chars().count() > MAX_NAME_CHARACTERS {
        return Err(Error::invalid(format!(
            "a {what} name of 1 to {MAX_NAME_CHARACTERS} characters without NUL is needed, not {name:?}"
        )));
    }
    Ok(())
}

/// The columns of the primary key: those that were asked for, or the first one.
fn key_columns(schema: &Schema, options: &KuduTableWriterOptions) -> Result<Vec<usize>> {
    if options.primary_key.is_empty() {
        let Some(first) = schema.fields().first() else {
            return Err(Error::invalid("a table without columns"));
        };
        let chosen = options.data_types.get(first.name()).copied();
        let is_key = planned(first.data_type(), chosen, false).is_ok_and(|plan| plan.can_be_key());
        if is_key {
            return Ok(vec![0]);
        }
        let message = format!(
            "the first column, \"{}\" of type {}, cannot be the primary key; name its columns",
            first.name(),
            first.data_type()
        );
        return Err(Error::invalid(message).turning_on(CallOption::PrimaryKey));
    }
    let mut keys = Vec::new();
    for name in &options.primary_key {
        let index = column_index(schema, name)?;
        if keys.contains(&index) {
            return Err(Error::invalid(format!("column \"{name}\" is in the primary key twice")));
        }
        keys.push(index);
    }
    Ok(keys)
}

impl TableColumn {
    fn new(
        field: &Field,
        source: usize,
        is_key: bool,
        options: &KuduTableWriterOptions,
    ) -> Result<Self, String> {
        let name = field.name();
        let varchar_length = options.varchars.get(name).copied();
        let chosen = match varchar_length {
            Some(0) => return Err("VARCHAR has at least 1 character".into()),
            Some(_) => Some(KuduType::Varchar),
            None => options.data_types.get(name).copied(),
        };
        if chosen == Some(KuduType::Varchar) && varchar_length.is_none() {
            return Err("VARCHAR needs a number of characters".into());
        }
        let plan = planned(field.data_type(), chosen, false)?;
        if is_key && !plan.can_be_key() {
            let what = if plan.is_array { "an array".to_string() } else { plan.data_type.to_string() };
            return Err(format!("{what} cannot be part of the primary key"));
        }
        let is_nullable = field.is_nullable() && !is_key;
        let working = match plan.is_array {
            true => DataType::new_list(plan.working, true),
            false => plan.working,
        };
        Ok(Self {
            source,
            column: KuduColumn {
                id: None,
                name: name.clone(),
                data_type: plan.data_type,
                is_array: plan.is_array,
                is_key,
                is_nullable,
                read_default: None,
                write_default: None,
                precision: plan.precision,
                scale: plan.scale,
                is_immutable: false,
                is_auto_incrementing: false,
                comment: None,
                is_opaque: false,
            },
            varchar_length,
            field: Field::new(name, working, is_nullable),
            encoding: options.encodings.get(name).copied(),
            compression: options.compressions.get(name).copied().or(options.compression),
            block_size_bytes: options.block_sizes.get(name).copied().or(options.block_size_bytes),
        })
    }

    /// How its CFiles are written.
    pub fn cfile_options(&self, is_only_key: bool) -> CFileWriterOptions {
        let mut options = CFileWriterOptions::default()
            .with_data_type(self.column.data_type)
            .with_compression(self.compression.unwrap_or(Compression::None))
            .with_value_index(is_only_key);
        if let Some(encoding) = self.encoding {
            options = options.with_encoding(encoding);
        }
        if let Some(bytes) = self.block_size_bytes {
            options = options.with_block_size_bytes(bytes);
        }
        options
    }

    fn to_message(&self) -> ColumnSchemaPb {
        let mut message = self.column.to_message();
        message.encoding = Some(self.encoding.map_or(AUTO_ENCODING, Encoding::number));
        message.compression = Some(self.compression.map_or(DEFAULT_COMPRESSION, Compression::number));
        message.cfile_block_size =
            Some(self.block_size_bytes.and_then(|bytes| i32::try_from(bytes).ok()).unwrap_or_default());
        if let Some(length) = self.varchar_length {
            let attributes = message.type_attributes.get_or_insert(ColumnTypeAttributesPb::default());
            attributes.length = Some(i32::from(length));
        }
        message
    }
}

/// What the values of an Arrow type become.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    data_type: KuduType,
    working: DataType,
    is_array: bool,
    precision: u8,
    scale: i8,
}

impl Plan {
    fn of(data_type: KuduType, working: DataType) -> Self {
        Self { data_type, working, is_array: false, precision: 0, scale: 0 }
    }

    fn can_be_key(&self) -> bool {
        !self.is_array && self.data_type.can_be_key()
    }
}

/// What values of an Arrow type become: `chosen`, or the type that holds them all.
fn planned(arrow: &DataType, chosen: Option<KuduType>, is_element: bool) -> Result<Plan, String> {
    use DataType::{
        Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, Dictionary, Duration, FixedSizeList,
        Float16, Float32, Int32, Int64, LargeList, List, Time32, Time64, Timestamp,
    };
    let refuse = |hint: &str| Err(format!("Arrow type {arrow} has no Kudu type; {hint}"));
    let natural = match arrow {
        Dictionary(_, values) => return planned(values, chosen, is_element),
        List(element) | LargeList(element) | FixedSizeList(element, _) if !is_element => {
            let plan = planned(element.data_type(), chosen, true)?;
            if plan.data_type == KuduType::Decimal128 {
                return Err("Kudu has no arrays of DECIMAL128".into());
            }
            return Ok(Plan { is_array: true, ..plan });
        }
        Float16 => Plan::of(KuduType::Float, Float32),
        Date32 | Date64 => Plan::of(KuduType::Date, Date32),
        Timestamp(_, zone) => {
            Plan::of(KuduType::UnixtimeMicros, Timestamp(TimeUnit::Microsecond, zone.clone()))
        }
        Decimal32(precision, scale)
        | Decimal64(precision, scale)
        | Decimal128(precision, scale)
        | Decimal256(precision, scale) => decimal(arrow, *precision, *scale)?,
        _ if chosen.is_some() && (arrow.is_unsigned_integer() || is_clock(arrow)) => {
            Plan::of(KuduType::Int64, Int64)
        }
        _ if arrow.is_unsigned_integer() => {
            return refuse("give the column a signed one that holds its values, such as INT64");
        }
        Time32(_) | Time64(_) | Duration(_) => return refuse("give the column INT32 or INT64"),
        _ => match kudu_type(arrow) {
            Ok(data_type) if !matches!(arrow, List(_) | LargeList(_)) => {
                Plan::of(data_type, working_type(data_type))
            }
            _ => return refuse("leave the column out or write it as text"),
        },
    };
    let Some(chosen) = chosen.filter(|chosen| *chosen != natural.data_type) else { return Ok(natural) };
    let is_integer =
        |data_type| matches!(data_type, KuduType::Int8 | KuduType::Int16 | KuduType::Int32 | KuduType::Int64);
    let is_bytes = |data_type| matches!(data_type, KuduType::String | KuduType::Varchar | KuduType::Binary);
    let is_number = arrow.is_integer() || is_clock(arrow) || matches!(arrow, Timestamp(..) | Date32 | Date64);
    let is_possible = match chosen {
        chosen if is_integer(chosen) => is_number,
        KuduType::UnixtimeMicros => *arrow == Int64,
        KuduType::Date => *arrow == Int32,
        KuduType::Double => natural.data_type == KuduType::Float,
        chosen if is_bytes(chosen) => is_bytes(natural.data_type),
        _ => false,
    };
    match is_possible {
        true => Ok(Plan::of(chosen, working_type(chosen))),
        false => Err(format!("Arrow type {arrow} cannot be written as {chosen}")),
    }
}

/// Times of day and durations, which Kudu has no types for.
fn is_clock(arrow: &DataType) -> bool {
    matches!(arrow, DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_))
}

/// The Arrow type that values of a Kudu type have while they are sorted.
fn working_type(data_type: KuduType) -> DataType {
    match data_type {
        KuduType::String | KuduType::Varchar => DataType::LargeUtf8,
        KuduType::Binary => DataType::LargeBinary,
        KuduType::UnixtimeMicros => DataType::Timestamp(TimeUnit::Microsecond, None),
        other => natural_type(other),
    }
}

fn decimal(arrow: &DataType, precision: u8, scale: i8) -> Result<Plan, String> {
    let digits = u8::try_from(scale).ok().filter(|scale| *scale <= precision);
    if !(1..=38).contains(&precision) || digits.is_none() {
        return Err(format!(
            "Arrow type {arrow} has no Kudu type; decimals have 1 to 38 digits, and 0 to all of them behind the point"
        ));
    }
    let data_type = match precision {
        1..=9 => KuduType::Decimal32,
        10..=18 => KuduType::Decimal64,
        _ => KuduType::Decimal128,
    };
    let working = match arrow {
        DataType::Decimal256(..) => DataType::Decimal128(precision, scale),
        other => other.clone(),
    };
    Ok(Plan { precision, scale, ..Plan::of(data_type, working) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(fields: Vec<Field>, options: &KuduTableWriterOptions) -> Result<TableColumns> {
        TableColumns::new(&Schema::new(fields), options)
    }

    fn refused(fields: Vec<Field>, options: &KuduTableWriterOptions) -> String {
        columns(fields, options).unwrap_err().to_string()
    }

    fn int(name: &str) -> Field {
        Field::new(name, DataType::Int32, true)
    }

    #[test]
    fn key_columns_come_first_and_are_never_null() {
        let options = KuduTableWriterOptions::default().with_primary_key(["c", "a"]);
        let table = columns(vec![int("a"), int("b"), int("c")], &options).unwrap();
        let shape: Vec<_> = table
            .columns
            .iter()
            .map(|c| (c.column.name.as_str(), c.column.id, c.source, c.column.is_key, c.column.is_nullable))
            .collect();
        assert_eq!(
            shape,
            [("c", Some(0), 2, true, false), ("a", Some(1), 0, true, false), ("b", Some(2), 1, false, true)]
        );
    }

    #[test]
    fn without_a_sensible_key_the_error_says_how_to_give_one() {
        let double = Field::new("x", DataType::Float64, false);
        assert_eq!(
            refused(vec![double.clone(), int("id")], &KuduTableWriterOptions::default()),
            "the first column, \"x\" of type Float64, cannot be the primary key; name its columns"
        );
        let options = KuduTableWriterOptions::default().with_primary_key(["x"]);
        assert_eq!(refused(vec![double], &options), "column \"x\": DOUBLE cannot be part of the primary key");
    }

    #[test]
    fn types_kudu_lacks_are_refused_with_a_way_out() {
        let refuse = |data_type: DataType| {
            refused(vec![int("id"), Field::new("x", data_type, true)], &KuduTableWriterOptions::default())
        };
        assert_eq!(
            refuse(DataType::UInt8),
            "column \"x\": Arrow type UInt8 has no Kudu type; give the column a signed one that holds its values, \
             such as INT64"
        );
        assert!(refuse(DataType::Time64(TimeUnit::Microsecond)).ends_with("give the column INT32 or INT64"));
        for data_type in [
            DataType::Null,
            DataType::new_list(DataType::new_list(DataType::Int8, true), true),
            DataType::new_list(DataType::Decimal128(20, 2), true),
            DataType::Decimal128(5, -2),
            DataType::Decimal256(60, 2),
            DataType::Struct(vec![int("a")].into()),
        ] {
            refuse(data_type);
        }
        let options = KuduTableWriterOptions::default().with_data_type("x", KuduType::Int16);
        let table = columns(vec![int("id"), Field::new("x", DataType::UInt8, true)], &options).unwrap();
        assert_eq!(table.columns[1].column.data_type, KuduType::Int16);
        for (arrow, wanted) in [
            (DataType::Float64, KuduType::Int64),
            (DataType::Utf8, KuduType::Int64),
            (DataType::Int64, KuduType::UInt64),
            (DataType::Int64, KuduType::Varchar),
        ] {
            let options = KuduTableWriterOptions::default().with_data_type("x", wanted);
            refused(vec![int("id"), Field::new("x", arrow, true)], &options);
        }
    }

    #[test]
    fn options_must_fit_the_columns() {
        let fields = || vec![int("id"), int("x")];
        let options = KuduTableWriterOptions::default();
        refused(fields(), &options.clone().with_encoding("y", Encoding::Plain));
        refused(fields(), &options.clone().with_encoding("x", Encoding::Dict));
        refused(fields(), &options.clone().with_primary_key(["id", "id"]));
        refused(fields(), &options.clone().with_primary_key(["y"]));
        refused(fields(), &options.clone().with_block_size_bytes(5));
        refused(vec![int("x"), int("x")], &options);
        refused(vec![int("")], &options);
        refused(vec![], &options);
    }
}
