//! How columns are described: `ColumnMetaPB`.

use super::column::{ColumnWriter, Node};
use super::paged::PagedWriter;
use super::plan::{ColumnPlan, Layout};
use crate::messages::ColumnMetaPb;
use crate::segment::types::{Compression, Encoding, FieldType};

/// The metadata of a column of the schema, of its parts and helpers.
pub(super) fn top_level(column: &ColumnWriter) -> ColumnMetaPb {
    let footprint = column.footprint();
    ColumnMetaPb {
        compressed_data_bytes: Some(footprint.compressed),
        uncompressed_data_bytes: Some(footprint.uncompressed),
        raw_data_bytes: Some(footprint.raw),
        ..part(column)
    }
}

/// The metadata of a part of a column.
pub(super) fn part(column: &ColumnWriter) -> ColumnMetaPb {
    let mut meta = declared(&column.plan);
    meta.num_rows = Some(column.rows);
    match &column.node {
        Node::Paged(paged) => {
            meta.indexes = paged.indexes();
            meta.dict_page = paged.dictionary();
            // The argument types of an AGG_STATE, which have no data.
            meta.children_columns = column.plan.children.iter().map(declared).collect();
        }
        Node::Repeated(repeated) => {
            let first_id = if column.plan.layout == Layout::List { 2 } else { 3 };
            meta.children_columns = repeated.parts.iter().map(part).collect();
            meta.children_columns.push(helper(&repeated.offsets, first_id, FieldType::UnsignedBigInt));
            meta.children_columns.extend(
                repeated
                    .nulls
                    .iter()
                    .map(|nulls| helper(nulls, first_id.saturating_add(1), FieldType::TinyInt)),
            );
        }
        Node::Struct(grouped) => {
            meta.children_columns = grouped.fields.iter().map(part).collect();
            let id = u32::try_from(grouped.fields.len()).unwrap_or(u32::MAX).saturating_add(1);
            meta.children_columns
                .extend(grouped.nulls.iter().map(|nulls| helper(nulls, id, FieldType::TinyInt)));
        }
        Node::Variant(variant) => variant.describe_root(&mut meta),
    }
    meta
}

/// What is known of a column without its data.
pub(crate) fn declared(plan: &ColumnPlan) -> ColumnMetaPb {
    ColumnMetaPb {
        column_id: Some(plan.column_id),
        unique_id: Some(plan.unique_id.cast_unsigned()),
        field_type: Some(plan.field_type.number()),
        length: Some(plan.length),
        encoding: Some(plan.encoding.map_or(0, |encoding| encoding.number())),
        compression: Some(plan.paged.compression.number()),
        is_nullable: Some(plan.is_nullable),
        default_value: Some(plan.default_value.clone()),
        precision: Some(plan.precision),
        frac: Some(plan.frac),
        result_is_nullable: plan.aggregation.as_ref().map(|aggregation| aggregation.result_is_nullable),
        function_name: plan.aggregation.as_ref().map(|aggregation| aggregation.name.clone()),
        be_exec_version: plan.aggregation.as_ref().map(|aggregation| aggregation.be_exec_version),
        ..ColumnMetaPb::default()
    }
}

/// Offsets or nulls of a column made of columns: they have numbers instead of ids.
fn helper(paged: &PagedWriter, id: u32, field_type: FieldType) -> ColumnMetaPb {
    ColumnMetaPb {
        encoding: Some(paged.settings.encoding.number()),
        compression: Some(paged.settings.compression.number()),
        indexes: paged.indexes(),
        num_rows: Some(paged.rows()),
        ..no_helper(id, field_type)
    }
}

/// A helper without data.
pub(crate) fn no_helper(id: u32, field_type: FieldType) -> ColumnMetaPb {
    ColumnMetaPb {
        column_id: Some(id),
        unique_id: Some(id),
        field_type: Some(field_type.number()),
        length: Some(if field_type == FieldType::TinyInt { 1 } else { 8 }),
        encoding: Some(Encoding::BitShuffle.number()),
        compression: Some(Compression::None.number()),
        is_nullable: Some(false),
        num_rows: Some(0),
        ..ColumnMetaPb::default()
    }
}
