//! Damaged files made whole again: by copying what is sound, by a footer, by a file beside them.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

mod support;

use pilaster_core::progress::Silent;
use pilaster_core::source::open_source;
use pilaster_core::{Dataset, VerifyDepth};
use pilaster_redfile::metadata::Compression;
use pilaster_redfile::{
    RedfileReader, RedfileReaderOptions, RedfileWriterOptions, RepairOptions, RepairReport, Rest, repair,
    repair_in_place, write_sidecar,
};

use support::{memory, one_batch, open, read_all, row_groups, small_file, write};

fn repaired(bytes: &[u8]) -> (Vec<u8>, RepairReport) {
    let source = memory("damaged.red", bytes.to_vec());
    let (whole, report) = repair(source, Vec::new(), &RepairOptions::default(), &Silent).unwrap();
    let findings = open(&whole).unwrap().verify(VerifyDepth::Values, &Silent).unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
    (whole, report)
}

/// The bytes of each chunk, by row group and column.
fn chunks(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let reader = open(bytes).unwrap();
    let chunk = |column: &pilaster_redfile::metadata::ColumnChunk| {
        let metadata = column.metadata.as_ref().unwrap();
        let start = metadata.data_page_offset as usize;
        bytes[start..start + metadata.total_compressed_size as usize].to_vec()
    };
    reader.metadata().row_groups.iter().map(|group| group.columns.iter().map(chunk).collect()).collect()
}

/// Damages the last byte of the first page of `column` in row group `group`.
fn damage_page(bytes: &mut [u8], column: &str, group: usize) {
    let reader = open(bytes).unwrap();
    let rows = row_groups(&reader)[group].clone();
    let mut pages = reader.pages().unwrap().into_iter();
    let is_it = |page: &pilaster_core::describe::Page| {
        page.column == column && page.rows.as_ref().is_some_and(|found| found.start == rows.start)
    };
    let page = pages.find(is_it).unwrap();
    bytes[(page.offset + page.bytes - 1) as usize] ^= 1;
}

#[test]
fn row_groups_without_damage_are_copied_byte_for_byte() {
    let bytes = small_file(2);
    let cut = &bytes[..bytes.len() - 100];
    let (whole, report) = repaired(cut);
    assert_eq!((report.row_groups_written, report.row_groups_copied, report.rows_written), (4, 4, 12));
    assert!(report.is_complete(), "{:?}", report.losses);
    assert_eq!(chunks(&whole), chunks(&bytes));
    assert_eq!(read_all(&whole).unwrap(), read_all(&bytes).unwrap());

    let mut damaged = bytes.clone();
    damage_page(&mut damaged, "id", 1);
    let (whole, report) = repaired(&damaged);
    assert_eq!((report.row_groups_written, report.row_groups_copied), (4, 3));
    assert!(!report.is_complete());
    let (before, after) = (chunks(&bytes), chunks(&whole));
    assert_eq!([&after[0], &after[2], &after[3]], [&before[0], &before[2], &before[3]]);
    assert_ne!(after[1], before[1]);
}

#[test]
fn a_damaged_index_is_made_anew_and_nothing_is_lost() {
    let bytes = small_file(2);
    let index = open(&bytes).unwrap().metadata().row_groups[2].columns[0].clone();
    let mut damaged = bytes.clone();
    damaged[index.metadata.unwrap().index_page_offset.unwrap() as usize + 3] ^= 1;
    let (whole, report) = repaired(&damaged);
    assert_eq!((report.row_groups_copied, report.rows_written), (3, 12));
    assert!(report.is_complete(), "{:?}", report.losses);
    assert_eq!(read_all(&whole).unwrap(), read_all(&bytes).unwrap());
}

#[test]
fn columns_keep_their_codecs_and_files_without_checksums_get_them() {
    let rows = read_all(&small_file(2)).unwrap();
    let options = RedfileWriterOptions::default()
        .with_codec(Compression::Gzip)
        .with_column_codec("id", Compression::Uncompressed)
        .with_checksums(false);
    let (whole, report) = repaired(&write(&rows, options).unwrap());
    assert_eq!((report.row_groups_copied, report.rows_written), (0, 12), "nothing proves a page to be sound");
    let reader = open(&whole).unwrap();
    let codecs: Vec<_> = reader.metadata().row_groups[0]
        .columns
        .iter()
        .map(|column| column.metadata.as_ref().unwrap().codec)
        .collect();
    assert_eq!(codecs, [Compression::Uncompressed, Compression::Gzip, Compression::Gzip]);
    assert_eq!(reader.metadata().checksums, Some(15));
    assert_eq!(one_batch(reader.scan()).unwrap(), rows);
}

/// What a recovery says of the end of a file, as findings.
fn said(bytes: &[u8]) -> (Option<Rest>, String) {
    let source = memory("cut.red", bytes.to_vec());
    let (reader, report) = RedfileReader::recover(source, None, &RedfileReaderOptions::default()).unwrap();
    let findings: Vec<String> = reader.findings().into_iter().map(|finding| finding.message).collect();
    (report.rest, findings.join("; "))
}

#[test]
fn what_is_missing_at_the_end_of_a_file_is_told_apart() {
    let bytes = small_file(2);
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
    let footer_at = bytes.len() - footer;

    let (rest, text) = said(&bytes[..bytes.len() - 20]);
    assert_eq!(rest, Some(Rest::Footer));
    assert!(
        text.starts_with(&format!("the file metadata at byte {footer_at} is cut off or damaged")),
        "{text}"
    );
    assert!(text.ends_with("key/values that were added after the last checkpoint may be missing"), "{text}");
    let (_, report) = repaired(&bytes[..bytes.len() - 20]);
    assert!(report.is_complete(), "{:?}", report.losses);

    // Inside the last row group.
    let start = open(&bytes).unwrap().metadata().row_groups[3].file_offset.unwrap() as usize;
    let (rest, text) = said(&bytes[..start + 60]);
    assert_eq!(rest, Some(Rest::RowGroup));
    assert!(
        text.contains(&format!(
            "the row group that begins at byte {start} is not known to be complete; its 60"
        ))
    );
    let (_, report) = repaired(&bytes[..start + 60]);
    assert!(!report.is_complete());
    assert_eq!(report.losses.len(), 1, "{:?}", report.losses);

    // Two bytes can be the beginning of anything; none are nothing.
    assert_eq!(said(&bytes[..footer_at + 2]).0, Some(Rest::Unknown));
    assert_eq!(said(&bytes[..footer_at]).0, None);

    // Without checkpoints a walk meets the file metadata if only the end is gone.
    let rows = read_all(&bytes).unwrap();
    let plain = write(&rows, RedfileWriterOptions::default().with_checkpoint_interval(0)).unwrap();
    let (rest, text) = said(&plain[..plain.len() - 3]);
    assert_eq!(rest, Some(Rest::Tail));
    assert_eq!(
        text,
        "the last 5 bytes, which lead to the file metadata, are damaged; the file metadata is whole"
    );
}

#[test]
fn a_file_is_repaired_where_it_lies() {
    let bytes = small_file(2);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.red");
    let name = path.display().to_string();
    std::fs::write(&path, &bytes[..bytes.len() - 100]).unwrap();
    let plan = repair_in_place(open_source(&name).unwrap(), &RepairOptions::default()).unwrap();
    plan.apply(&path).unwrap();
    let again = std::fs::read(&path).unwrap();
    assert_eq!(read_all(&again).unwrap(), read_all(&bytes).unwrap());
    // What grew since it was looked at is left alone.
    std::fs::write(&path, &bytes[..bytes.len() - 90]).unwrap();
    assert!(plan.apply(&path).unwrap_err().to_string().contains("bytes"));
    assert_eq!(std::fs::read(&path).unwrap().len(), bytes.len() - 90);
}

#[test]
fn a_file_without_its_end_gets_a_footer_again_or_a_file_beside_it() {
    let bytes = small_file(2);
    let rows = read_all(&bytes).unwrap();
    let cut = bytes[..bytes.len() - 100].to_vec();
    let options = RepairOptions::default();

    let in_place = repair_in_place(memory("cut.red", cut.clone()), &options).unwrap();
    let mut whole = cut[..in_place.keep as usize].to_vec();
    whole.extend(&in_place.footer);
    let reader = open(&whole).unwrap();
    assert_eq!(one_batch(reader.scan()).unwrap(), rows);
    assert!(reader.verify(VerifyDepth::Values, &Silent).unwrap().findings.is_empty());
    let intact = repair_in_place(memory("whole.red", whole), &options);
    assert!(intact.unwrap_err().to_string().contains("intact"));
    // Nothing is cut off a file of which no row would be left.
    let short = repair_in_place(memory("short.red", bytes[..bytes.len() / 10].to_vec()), &options);
    assert!(short.unwrap_err().to_string().contains("nothing of the file would be left"));

    let (sidecar, report) =
        write_sidecar(memory("cut.red", cut.clone()), "cut.red", Vec::new(), &options).unwrap();
    assert_eq!(report.row_groups, 4);
    let reader_options =
        RedfileReaderOptions::default().with_data_files(move |path| Ok(memory(path, cut.clone())));
    let reader = RedfileReader::open_with_options(memory("side.red", sidecar), &reader_options).unwrap();
    assert_eq!(one_batch(reader.scan()).unwrap(), rows);
}
