//! Files of versions 1 and 2 as their index describes them: one record for all rows of a file, which says enough to leave a file out.

use std::sync::Arc;

use bytes::Bytes;
use pilaster_core::{Error, Limits, Result, SourceRef};

use super::footer::LegacyStatistics;
use super::{Legacy, cardinalities, open_legacy, places, statistics};
use crate::file::layout::{Blocklet, CarbonFile};
use crate::file::page::words::code_bytes;
use crate::messages::{BlockIndex, IndexHeader};

const INDEX_PART: &str = "carbondata index";

/// Rows of a blocklet, unless the engine was told otherwise.
pub(crate) const USUAL_BLOCKLET_ROWS: u64 = 120_000;

/// A file of version 1 or 2 as its index describes it, without opening it: rows, and statistics over all of them.
pub(crate) fn outline(
    source: SourceRef,
    limits: Limits,
    header: &IndexHeader,
    records: &[&BlockIndex],
) -> Result<CarbonFile> {
    let mut file = CarbonFile::legacy(source, limits, header.version, header.columns.clone())?;
    let [record] = records else {
        let error = Error::corrupt("one record of a data file", records.len());
        return Err(error.at(file.name(), 0, INDEX_PART));
    };
    let most = most_rows(file.source.size());
    file.rows = match u64::try_from(record.rows) {
        Ok(rows) if rows <= most => rows,
        _ => {
            let expected = format!("at most {most} rows in {} bytes", file.source.size());
            return Err(Error::corrupt(expected, record.rows).at(file.name(), 0, INDEX_PART));
        }
    };
    let (places, group_bits) = places(&file.header.columns, &header.cardinalities);
    let known = LegacyStatistics::from(&record.index);
    if file.rows > 0 {
        file.blocklets.push(Blocklet {
            rows: 0..file.rows,
            page_starts: vec![0, file.rows],
            chunks: Vec::new(),
            min_max: Some(statistics::min_max(&known, &file.header.columns, &places, &group_bits)),
        });
    }
    file.legacy = Some(Legacy {
        blocklets: Vec::new(),
        places,
        group_bits,
        cardinalities: header.cardinalities.clone(),
        version: header.version,
        keys: vec![(known.start, known.end)],
        is_outline: true,
    });
    Ok(file)
}

/// The most rows that so many bytes can hold: each blocklet takes some of the footer, and counts its rows in 32 bits.
fn most_rows(bytes: u64) -> u64 {
    bytes.saturating_mul(i32::MAX.unsigned_abs().into())
}

/// Opens the file that an outline describes.
pub(crate) fn open_outlined(outline: &CarbonFile) -> Result<CarbonFile> {
    let mut file = open_legacy(Arc::clone(&outline.source), outline.limits.clone())?;
    file.calendar = outline.calendar;
    let differs = |what: &str, expected: &dyn ToString, found: &dyn ToString| {
        let expected = format!("{} {what}, as the index says", expected.to_string());
        Err(Error::corrupt(expected, found.to_string()).at(file.name(), 0, "carbondata footer"))
    };
    if file.rows != outline.rows {
        return differs("rows", &outline.rows, &file.rows);
    }
    if file.header.columns != outline.header.columns {
        return differs("columns", &outline.header.columns.len(), &"others");
    }
    let width = |chunk: usize| cardinalities(&file).get(chunk).map(|count| code_bytes(*count));
    let dictionaries = outline
        .dictionaries
        .iter()
        .map(|(chunk, (words, bytes))| (*chunk, (Arc::clone(words), width(*chunk).unwrap_or(*bytes))));
    file.dictionaries = dictionaries.collect();
    Ok(file)
}

/// Whether the statistics of an outline leave out nothing that the blocklets of the file hold.
pub(crate) fn holds(outline: &CarbonFile, file: &CarbonFile) -> bool {
    let (Some(of_index), Some(of_footer)) = (&outline.legacy, &file.legacy) else { return false };
    let Some(known) = outline.blocklets.first().and_then(|all| all.min_max.as_ref()) else { return true };
    let is_inside = |blocklet: &Blocklet| {
        let Some(found) = &blocklet.min_max else { return true };
        (0..file.header.columns.len()).all(|column| match (known.bounds(column), found.bounds(column)) {
            (Some(known), Some(found)) => known.0 <= found.0 && known.1 >= found.1,
            (known, _) => known.is_none(),
        })
    };
    let keys = of_index.keys.first();
    let is_between =
        |(start, end): &(Bytes, Bytes)| keys.is_none_or(|keys| keys.0 <= *start && keys.1 >= *end);
    file.blocklets.iter().all(is_inside) && of_footer.keys.iter().all(is_between)
}
