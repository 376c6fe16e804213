//! The log of a new tablet.

use pilaster_encoding::checksum::crc32c;
use prost::Message;

use super::segment::{FOOTER_MAGIC, HEADER_MAGIC};
use crate::messages::{
    CommitMsg, LogEntryBatchPb, LogEntryPb, LogSegmentFooterPb, LogSegmentHeaderPb, NoOpRequestPb, OpIdPb,
    ReplicateMsg, SchemaPb, op_type,
};

/// The term of the only operation.
pub(crate) const FIRST_TERM: i64 = 1;
/// As where the operations before were flushed and their segments deleted: a log that begins with 1 is the whole history of its tablet,
/// and this one has made none of the rows.
const FIRST_INDEX: i64 = 2;

/// The file name of the first segment of a log.
pub(crate) const FIRST_SEGMENT: &str = "wal-000000001";

/// The first segment of the log of a tablet whose rows are all in rowsets. Kudu starts no tablet that has rowsets and no
/// log, so it holds an operation that does nothing, agreed on by the only voter at
/// `timestamp`. The segment is closed, as a server leaves it when it stops.
pub(crate) fn first_segment(tablet_id: &str, schema: SchemaPb, timestamp: u64, now_micros: u64) -> Vec<u8> {
    let header = LogSegmentHeaderPb {
        tablet_id: Some(tablet_id.into()),
        sequence_number: Some(1),
        schema: Some(schema),
        schema_version: Some(0),
        ..LogSegmentHeaderPb::default()
    }
    .encode_to_vec();
    let id = OpIdPb { term: Some(FIRST_TERM), index: Some(FIRST_INDEX) };
    let replicate = LogEntryPb {
        entry_type: Some(LogEntryPb::REPLICATE),
        replicate: Some(ReplicateMsg {
            id: Some(id),
            timestamp: Some(timestamp),
            op_type: Some(op_type::NO_OP),
            noop_request: Some(NoOpRequestPb::default()),
            ..ReplicateMsg::default()
        }),
        commit: None,
    };
    let commit = LogEntryPb {
        entry_type: Some(LogEntryPb::COMMIT),
        replicate: None,
        commit: Some(CommitMsg { op_type: Some(op_type::NO_OP), commited_op_id: Some(id), result: None }),
    };
    let footer = LogSegmentFooterPb {
        num_entries: Some(2),
        min_replicate_index: Some(FIRST_INDEX),
        max_replicate_index: Some(FIRST_INDEX),
        close_timestamp_micros: i64::try_from(now_micros).ok(),
    }
    .encode_to_vec();

    let mut file = HEADER_MAGIC.to_vec();
    file.extend(length(&header));
    file.extend(&header);
    for entry in [replicate, commit] {
        append_entry(&mut file, entry);
    }
    file.extend(&footer);
    file.extend_from_slice(FOOTER_MAGIC);
    file.extend(length(&footer));
    file
}

/// Appends an entry of an uncompressed segment.
fn append_entry(file: &mut Vec<u8>, entry: LogEntryPb) {
    let payload = LogEntryBatchPb { entry: vec![entry] }.encode_to_vec();
    let mut header = [length(&payload), length(&payload), crc32c(&payload).to_le_bytes()].concat();
    header.extend(crc32c(&header).to_le_bytes());
    file.extend(header);
    file.extend(payload);
}

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::ColumnSchemaPb;
    use crate::wal::segment::{SegmentEnd, parse_segment};
    use pilaster_core::Location;

    #[test]
    fn a_new_log_is_read_as_a_closed_segment_with_one_operation() {
        let column = ColumnSchemaPb {
            id: Some(0),
            name: Some("k".into()),
            data_type: Some(5),
            is_key: Some(true),
            ..ColumnSchemaPb::default()
        };
        let bytes = first_segment("tablet", SchemaPb { columns: vec![column] }, 77, 5);
        let segment = parse_segment(
            &Location::local(FIRST_SEGMENT),
            "wal",
            &bytes.into(),
            &pilaster_core::Limits::default(),
        )
        .unwrap()
        .unwrap();
        assert_eq!((segment.sequence, segment.end), (1, SegmentEnd::Closed));
        assert!(segment.findings.is_empty() && segment.gaps.is_empty());
        let kinds: Vec<_> = segment.entries.iter().map(|(_, entry)| entry.entry_type.unwrap()).collect();
        assert_eq!(kinds, [LogEntryPb::REPLICATE, LogEntryPb::COMMIT]);
        assert_eq!(segment.entries[0].1.replicate.as_ref().unwrap().timestamp, Some(77));
    }
}
