//! What the names of data and index files say. Nothing that decides about rows follows from them alone.
//!
//! ```text
//! part-<part>-<task>_batchno<n>-<bucket>-<segment>-<stamp>[.codec].carbondata      since 1.3; the codec since 2.0
//!             <task>_batchno<n>-<bucket>-<segment>-<stamp>.carbonindex
//! part-<part>-<task>[_batchno<n>]-<bucket>-<stamp>.carbondata                      before
//! ```

use super::status::checked_id;

/// The stamp and the segment in the name of a data or index file: `…-<segment>-<stamp>[.codec].carbondata`. Releases
/// before 1.3 put no segment there.
pub(crate) fn parts_of_name(name: &str) -> Option<(Option<&str>, i64)> {
    let stem = name.strip_suffix(".carbondata").or_else(|| name.strip_suffix(".carbonindex"))?;
    let (rest, stamp) = stem.rsplit_once('-')?;
    let stamp = stamp.split('.').next()?.parse().ok()?;
    let segment = rest.rsplit_once('-').map(|(_, segment)| segment).filter(|id| checked_id(id).is_ok());
    // part-0-0_batchno0-0-<segment>, part-0-0-0 and so on: only the first form has five parts.
    let has_segment = rest.contains("_batchno") && rest.split("_batchno").nth(1)?.split('-').count() >= 3;
    Some((segment.filter(|_| has_segment), stamp))
}

/// Whether a data file came after the time the table is opened at: updates of 1.x put their new rows into the segment they
/// change.
pub(crate) fn is_too_new(name: &str, as_of: Option<i64>) -> bool {
    let stamp = parts_of_name(name).map(|(_, stamp)| stamp);
    matches!((stamp, as_of), (Some(stamp), Some(time)) if stamp > time)
}

/// The name of the index file of a data file: `part-0-<stem>[.codec].carbondata` belongs to `<stem>.carbonindex`.
pub(crate) fn loose_name(data: &str) -> Option<String> {
    let rest = data.strip_prefix("part-")?.split_once('-')?.1.strip_suffix(".carbondata")?;
    let (front, stamp) = rest.rsplit_once('-')?;
    let stamp = stamp.split('.').next()?;
    Some(format!("{front}-{stamp}.carbonindex"))
}

/// The bucket in a data file's name; releases before 1.0 have none.
pub(crate) fn bucket(name: &str) -> Option<i32> {
    let parts: Vec<_> = name.strip_prefix("part-")?.split('-').collect();
    parts.get(2).filter(|_| parts.len() > 3)?.parse().ok()
}

/// The number that tells the data files of one task apart.
pub(crate) fn part_number(name: &str) -> u64 {
    let number = name.strip_prefix("part-").and_then(|rest| rest.split('-').next()?.parse().ok());
    number.unwrap_or(u64::MAX)
}

/// The name of the index of the streaming segment that a data file is in: it is the same for all of them.
pub(crate) fn stream_index_name(data: &str) -> &'static str {
    match parts_of_name(data) {
        Some((None, _)) => "0_batchno0-0-0.carbonindex",
        _ => "0_batchno0-0-0-0.carbonindex",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_segment_and_stamp() {
        for (name, expected) in [
            ("part-0-0_batchno0-0-0-1794732568199.snappy.carbondata", Some((Some("0"), 1_794_732_568_199))),
            ("part-0-0_batchno0-0-0.1-1794733118062.carbondata", Some((Some("0.1"), 1_794_733_118_062))),
            ("part-0-0-0-1794733156689.carbondata", Some((None, 1_794_733_156_689))),
            ("part-0-0_batchno0-0-1-0.snappy.carbondata", Some((Some("1"), 0))),
            ("100100000100001_batchno0-0-3-17.carbonindex", Some((Some("3"), 17))),
            ("0-0-17.carbonindex", Some((None, 17))),
            ("tablestatus", None),
        ] {
            assert_eq!(parts_of_name(name), expected, "{name}");
        }
        assert!(is_too_new("part-0-0_batchno0-0-0-17.snappy.carbondata", Some(16)));
        assert!(!is_too_new("part-0-0_batchno0-0-0-17.snappy.carbondata", Some(17)));
        assert!(!is_too_new("part-0-0_batchno0-0-0-17.snappy.carbondata", None));
    }

    #[test]
    fn index_files_are_named_after_their_data_files() {
        let name = |data: &str| loose_name(data).unwrap_or_default();
        assert_eq!(name("part-0-0_batchno0-0-0-17.snappy.carbondata"), "0_batchno0-0-0-17.carbonindex");
        assert_eq!(name("part-3-100_batchno0-2-0.1-17.carbondata"), "100_batchno0-2-0.1-17.carbonindex");
        assert_eq!(name("other"), "");
        assert_eq!((bucket("part-0-0_batchno0-3-0-17.carbondata"), bucket("x")), (Some(3), None));
        assert_eq!((bucket("part-0-0-2-17.carbondata"), bucket("part-0-0-17.carbondata")), (Some(2), None));
        assert_eq!((part_number("part-12-0-2-17.carbondata"), part_number("x")), (12, u64::MAX));
        assert_eq!(stream_index_name("part-0-3_batchno0-0-0.carbondata"), "0_batchno0-0-0.carbonindex");
        assert_eq!(
            stream_index_name("part-0-3_batchno0-0-1-0.snappy.carbondata"),
            "0_batchno0-0-0-0.carbonindex"
        );
    }
}
