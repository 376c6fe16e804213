//! Superblocks whose checksum is wrong.
//!
//! Fields stand in the order of their numbers, so what comes before the damaged byte is good. Each field is taken alone:
//! one that cannot be parsed is left out, and where not even the length of a field makes sense the rest is lost. A field
//! that parses may still hold a wrong value; whoever uses it checks it against the blocks, and columns against the log.

use pilaster_encoding::varint;
use prost::Message;

use super::schema::KuduSchema;
use super::superblock::TabletMetadata;
use crate::messages::{TabletSuperBlockPb, op_type};
use crate::wal::Log;

/// What can be read of a superblock; `None` if not even the schema can.
pub(crate) fn parse(id: &str, bytes: &[u8]) -> Option<TabletMetadata> {
    let mut good = Vec::new();
    for field in fields(bytes) {
        if TabletSuperBlockPb::decode(field).is_ok() {
            good.extend_from_slice(field);
        }
    }
    let mut message = TabletSuperBlockPb::decode(good.as_slice()).ok()?;
    message.schema.as_ref()?;
    message.rowsets.retain(TabletMetadata::is_rowset);
    // What is known by other ways, or means "nothing is known".
    message.tablet_id = Some(id.as_bytes().to_vec());
    message.table_id.get_or_insert_with(Vec::new);
    message.table_name.get_or_insert_with(|| TabletMetadata::name_for(id));
    message.last_durable_mrs_id.get_or_insert(-1);
    message.schema_version.get_or_insert(0);
    TabletMetadata::from_message(message).ok()
}

/// Takes the columns from the log, if it says what they were at the version of the superblock: a flipped bit in a name, a type or a
/// scale would be believed otherwise. `false` if the log does not reach so far, so that nothing proves them.
pub(crate) fn take_columns(metadata: &mut TabletMetadata, log: &Log) -> bool {
    let version = metadata.schema_version;
    let known = logged_schemas(log).into_iter().filter(|(known, _)| *known <= version);
    let Some((newest, schema)) = known.max_by_key(|(known, _)| *known) else { return false };
    // The version itself may be damaged.
    if newest < version && !schema.is_same_table(&metadata.schema) {
        return false;
    }
    (metadata.schema, metadata.schema_version) = (schema, newest);
    metadata.mark_catalog();
    true
}

/// The columns by version, as headers of segments and operations that change them say.
fn logged_schemas(log: &Log) -> Vec<(u32, KuduSchema)> {
    let mut schemas = Vec::new();
    for segment in &log.segments {
        schemas.extend(segment.schema.clone().map(|schema| (segment.schema_version, schema)));
        let changes = segment.entries.iter().filter_map(|(_, entry)| entry.replicate.as_ref());
        let changes = changes.filter(|message| message.op_type == Some(op_type::ALTER_SCHEMA));
        for request in changes.filter_map(|message| message.alter_schema_request.as_ref()) {
            let schema = request.schema.as_ref().and_then(|schema| KuduSchema::parse(schema).ok());
            schemas.extend(request.schema_version.zip(schema));
        }
    }
    schemas
}

/// The fields of a message, each with its tag, as far as they can be told apart.
fn fields(bytes: &[u8]) -> Vec<&[u8]> {
    let mut fields = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let Some(end) = field_end(bytes, at) else { break };
        fields.extend(bytes.get(at..end));
        at = end;
    }
    fields
}

fn field_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    let tag = varint::read_u32(bytes, &mut at).ok()?;
    match tag & 7 {
        0 => {
            let length = bytes.get(at..)?.iter().take(10).position(|byte| byte & 0x80 == 0)?;
            at = at.checked_add(length)?.checked_add(1)?;
        }
        1 => at = at.checked_add(8)?,
        2 => {
            let length = varint::read_u32(bytes, &mut at).ok()? as usize;
            at = at.checked_add(length)?;
        }
        5 => at = at.checked_add(4)?,
        _ => return None,
    }
    (at <= bytes.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_fields_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let total: usize = fields(&bytes).iter().map(|field| field.len()).sum();
            prop_assert!(total <= bytes.len());
            let _ = parse("0", &bytes);
        }
    }
}
