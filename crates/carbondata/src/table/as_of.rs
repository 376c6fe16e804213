//! The table as it was at an earlier time, as far as its files still tell.
//!
//! | what | there from | until |
//! | --- | --- | --- |
//! | a segment | the end of its load | the time `tablestatus` notes for its deletion or compaction; else the end of the load of what it was merged into; else the segment file that marks all its folders; else a load that may have overwritten it |
//! | a form of a segment file | the stamp in its name | that of the next one |
//! | an update status | the stamp in its name; the end of the load of the segment that has the new rows, if it is an update's | that of the next one |
//! | a column | its change in the schema's history | the change that takes it back |
//!
//! A commit happens a little after the stamp that is written into names, so times close to one are as good as the engine's
//! own clock. Segments that were cleaned away are known from `tablestatus.history`.

use std::collections::HashMap;
use std::time::UNIX_EPOCH;

use arrow_array::TimestampMillisecondArray;
use arrow_cast::display::array_value_to_string;
use arrow_cast::parse::string_to_timestamp_nanos;
use pilaster_core::storage::Entry;
use pilaster_core::{Error, Location, Result};

use super::deletes::Deletes;
use super::open::{FACT, names_if_there, open_file, sorted_names};
use super::opener::SEGMENT_PART;
use super::schema::TableSchema;
use super::status::{SegmentFile, SegmentStatus, checked_id, checked_name, read_json};

const HISTORY_PART: &str = "carbondata tablestatus history";
const UPDATE_PREFIX: &str = "tableupdatestatus-";

/// What was part of the table at a time.
#[derive(Debug)]
pub(crate) struct Past {
    /// The segments, each with the segment file that counted.
    pub segments: Vec<SegmentStatus>,
    pub deletes: Deletes,
    /// When the deletes changed next.
    pub next_deletes: Option<i64>,
}

/// Everything that says when something was part of the table.
#[derive(Debug)]
pub(crate) struct History<'a> {
    table: &'a Location,
    schema: &'a TableSchema,
    segments: Vec<SegmentStatus>,
    /// By segment: stamps and names of its segment files, ascending.
    forms: HashMap<String, Vec<(i64, String)>>,
    /// When each update status took effect, its stamp and its name, ascending.
    updates: Vec<(i64, i64, String)>,
}

/// When a segment stopped being part of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Never,
    At(i64),
    /// At one of several times.
    Between(i64, i64),
    Unknown,
}

/// Milliseconds since 1970 out of a time in `tablestatus`. Releases before 1.1 wrote the clock of the writer, which is
/// taken as UTC.
pub(crate) fn milliseconds(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    // dd-MM-yyyy HH:mm:ss:SSS
    let (date, clock) = text.split_once(' ')?;
    let mut date = date.split('-');
    let (day, month, year) = (date.next()?, date.next()?, date.next()?);
    let (clock, fraction) = clock.rsplit_once(':')?;
    let nanos = string_to_timestamp_nanos(&format!("{year}-{month}-{day}T{clock}.{fraction}")).ok()?;
    Some(nanos.div_euclid(1_000_000))
}

fn time_of(text: Option<&str>) -> Option<i64> {
    text.and_then(milliseconds)
}

/// A time in `tablestatus` with what it is on the clock; as it stands there if it is none.
pub fn shown_time(text: Option<&str>) -> String {
    match text.map(|text| (text, text.parse())) {
        None => String::new(),
        Some((_, Ok(number))) => shown(number),
        Some((text, Err(_))) => text.to_string(),
    }
}

/// A time as a number, and for people.
fn shown(time: i64) -> String {
    let array = TimestampMillisecondArray::from(vec![time]).with_timezone("UTC");
    match array_value_to_string(&array, 0) {
        Ok(clock) => format!("{time} ({clock})"),
        Err(_) => time.to_string(),
    }
}

impl<'a> History<'a> {
    pub fn read(table: &'a Location, schema: &'a TableSchema, segments: &[SegmentStatus]) -> Result<Self> {
        let metadata = table.child("Metadata");
        let mut all = segments.to_vec();
        let history = metadata.child("tablestatus.history");
        if history.is_file()? {
            let old: Vec<SegmentStatus> = read_json(&open_file(&history)?, HISTORY_PART)?;
            all.extend(old.into_iter().filter(|old| !segments.iter().any(|known| known.id == old.id)));
        }
        let mut forms: HashMap<String, Vec<(i64, String)>> = HashMap::new();
        for name in names_if_there(&metadata.child("segments"))?.unwrap_or_default() {
            let parts = name.strip_suffix(".segment").and_then(|stem| stem.split_once('_'));
            if let Some((id, stamp)) = parts.and_then(|(id, stamp)| Some((id, stamp.parse::<i64>().ok()?))) {
                forms.entry(id.to_string()).or_default().push((stamp, name.clone()));
            }
        }
        forms.values_mut().for_each(|forms| forms.sort());
        let mut history = Self { table, schema, segments: all, forms, updates: Vec::new() };
        history.updates = history.find_updates(&metadata)?;
        Ok(history)
    }

    /// The update status files that were committed.
    fn find_updates(&self, metadata: &Location) -> Result<Vec<(i64, i64, String)>> {
        let stamp = |name: &str| name.strip_prefix(UPDATE_PREFIX).and_then(|stamp| stamp.parse::<i64>().ok());
        let named = self.segments.first().and_then(|segment| stamp(segment.update_status_file.as_deref()?));
        let changed = self.segments.iter().filter_map(|segment| time_of(segment.update_end.as_deref())).max();
        let last = named.or(changed).unwrap_or(i64::MIN);
        let mut updates: Vec<_> = sorted_names(metadata)?
            .into_iter()
            .filter_map(|name| stamp(&name).map(|stamp| (self.effective(stamp), stamp, name)))
            .filter(|(_, stamp, _)| *stamp <= last)
            .collect();
        updates.sort();
        Ok(updates)
    }

    /// When what carries a stamp was committed: the new rows of an update are a segment whose load began at the stamp.
    fn effective(&self, stamp: i64) -> i64 {
        let starts = |segment: &&SegmentStatus| time_of(segment.load_start.as_deref()) == Some(stamp);
        let end = self.segments.iter().filter(starts).filter_map(|s| time_of(s.load_end.as_deref())).min();
        end.map_or(stamp, |end| end.max(stamp))
    }

    /// The forms of a segment's file that counted, ascending by the time from which they did.
    fn forms_of(&self, segment: &SegmentStatus) -> &[(i64, String)] {
        let forms = self.forms.get(&segment.id).map_or(&[][..], Vec::as_slice);
        let named = segment.segment_file.as_deref();
        // What is newer than what the segment names was never committed.
        match forms.iter().position(|(_, name)| Some(name.as_str()) == named) {
            Some(place) => forms.get(..=place).unwrap_or(forms),
            None => forms,
        }
    }

    fn end(&self, place: usize, segment: &SegmentStatus) -> End {
        if segment.is_readable() {
            return End::Never;
        }
        if let Some(time) = time_of(segment.modified.as_deref()) {
            return End::At(self.effective(time));
        }
        let merged = segment.merged_into.as_deref();
        let merged = self.segments.iter().find(|other| Some(other.id.as_str()) == merged);
        if let Some(time) = merged.and_then(|merged| time_of(merged.load_end.as_deref())) {
            return End::At(time);
        }
        let marked = self.forms.get(&segment.id).and_then(|forms| {
            forms.iter().find(|(_, name)| self.folders(name).is_ok_and(|folders| folders.is_empty()))
        });
        if let Some((time, _)) = marked {
            return End::At(*time);
        }
        // A load that overwrites the table marks everything before it, without a time: after it, nothing of that can have
        // been left to be deleted.
        let overwrites = |at: usize, time: i64| {
            self.segments.iter().take(at).all(|earlier| {
                let is_older = time_of(earlier.modified.as_deref()).is_none_or(|modified| modified <= time);
                !earlier.is_readable() && is_older
            })
        };
        let later = self.segments.iter().enumerate().skip(place.saturating_add(1));
        let times: Vec<_> = later
            .filter_map(|(at, other)| Some((at, time_of(other.load_end.as_deref())?)))
            .filter(|(at, time)| overwrites(*at, *time))
            .map(|(_, time)| time)
            .collect();
        match (times.iter().min(), times.iter().max()) {
            (Some(first), Some(last)) if first == last => End::At(*first),
            (Some(first), Some(last)) => End::Between(*first, *last),
            _ => End::Unknown,
        }
    }

    /// The folders of a segment file that count: their place and the index files in them.
    fn folders(&self, name: &str) -> Result<Vec<(String, Vec<String>)>> {
        let path = self.table.child("Metadata/segments").child(checked_name(name)?);
        let file: SegmentFile = read_json(&open_file(&path)?, SEGMENT_PART)?;
        Ok(file
            .folders
            .into_iter()
            .filter(|(_, folder)| folder.is_live())
            .map(|(place, folder)| {
                (place, if folder.is_relative { folder.index_names() } else { Vec::new() })
            })
            .collect())
    }

    /// Whether the index files of a segment are still there.
    fn is_there(&self, segment: &SegmentStatus, form: Option<&str>) -> Result<bool> {
        let Some(form) = form else {
            let folder = self.table.child(FACT).child(format!("Segment_{}", checked_id(&segment.id)?));
            let is_index = |name: &String| name.contains(".carbonindex");
            let has_index = names_if_there(&folder)?.is_some_and(|names| names.iter().any(is_index));
            return Ok(has_index || segment.is_stream());
        };
        if !self.table.child("Metadata/segments").child(checked_name(form)?).is_file()? {
            return Ok(false);
        }
        for (place, names) in self.folders(form)? {
            let folder = self.table.child(place.trim_start_matches('/'));
            for name in names {
                if !folder.child(name).is_file()? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// From when on all rows of a segment are there, and from when some.
    fn start(&self, segment: &SegmentStatus) -> Option<(i64, i64)> {
        let end = time_of(segment.load_end.as_deref());
        if !segment.is_stream() {
            return end.map(|end| (end, end));
        }
        let first = time_of(segment.load_start.as_deref()).or(end)?;
        // A stream notes no times; when its index was last written it had all its rows.
        let last = end.or_else(|| {
            let folder = self.table.child(FACT).child(format!("Segment_{}", checked_id(&segment.id).ok()?));
            let written = |entry: Entry| {
                i64::try_from(entry.modified()?.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
            };
            folder.list().ok()?.into_iter().filter_map(written).max()
        });
        Some((last.unwrap_or(first), first))
    }

    /// The form of a segment's file that counted at `time`, and when the next one replaced it.
    fn form_at(&self, segment: &SegmentStatus, time: i64) -> (Option<String>, Option<i64>) {
        let forms = self.forms_of(segment);
        let next = forms.partition_point(|(stamp, _)| *stamp <= time).max(1);
        let form = forms.get(next.saturating_sub(1)).map(|(_, name)| name.clone());
        let named = segment.segment_file.clone().filter(|name| !name.is_empty());
        (form.or(named), forms.get(next).map(|(stamp, _)| *stamp))
    }

    /// What was part of the table at `time`, in milliseconds since 1970.
    pub fn at(&self, time: i64) -> Result<Past> {
        let mut past = Vec::new();
        for (place, segment) in self.segments.iter().enumerate().filter(|(_, segment)| segment.was_readable())
        {
            let Some((complete, first)) = self.start(segment) else { continue };
            if time < first {
                continue;
            }
            let id = &segment.id;
            match self.end(place, segment) {
                End::At(end) if end <= time => continue,
                End::Between(first, last) if first <= time && time < last => {
                    return Err(
                        self.impossible(time, &format!("when segment {id} was overwritten is not noted"))
                    );
                }
                End::Between(_, last) if last <= time => continue,
                End::Unknown if segment.has_no_data() => continue,
                End::Unknown => {
                    return Err(self.impossible(time, &format!("when segment {id} was deleted is not noted")));
                }
                End::Never | End::At(_) | End::Between(..) => {}
            }
            if time < complete {
                let reason = format!("segment {id} is a stream, which does not note when rows came");
                return Err(self.impossible(time, &reason));
            }
            let (form, _) = self.form_at(segment, time);
            if !self.is_there(segment, form.as_deref())? {
                let reason = format!("files of segment {id} of that time have been cleaned away");
                return Err(self.impossible(time, &reason));
            }
            let mut then = SegmentStatus { segment_file: form, ..segment.clone() };
            if !segment.is_readable() {
                then.status = if segment.is_stream() { "Streaming Finish" } else { "Success" }.to_string();
                (then.modified, then.merged_into, then.visibility) = (None, None, None);
            }
            past.push(then);
        }
        if self.schema.made().is_some_and(|made| time < made) {
            return Err(self.impossible(time, "the table was made later"));
        }
        let lost = || self.impossible(time, "the update status of that time has been cleaned away");
        let (deletes, next_deletes) = self.deletes_at(time)?.ok_or_else(lost)?;
        Ok(Past { segments: past, deletes, next_deletes })
    }

    /// The deletes that counted at `time`, and when they changed next; `None` if that is not known any more.
    fn deletes_at(&self, time: i64) -> Result<Option<(Deletes, Option<i64>)>> {
        let next = self.updates.partition_point(|(from, _, _)| *from <= time);
        let next_time = self.updates.get(next).map(|(from, _, _)| *from);
        let metadata = self.table.child("Metadata");
        // Stamps that a later file still lists must be known to the one that counted.
        let mut later = Vec::new();
        for (_, _, name) in self.updates.get(next..).unwrap_or_default() {
            later.extend(
                Deletes::read(&metadata, name)?.blocks().iter().flat_map(|block| block.stamps_listed()),
            );
        }
        let counted = next.checked_sub(1).and_then(|place| self.updates.get(place));
        let since = counted.map_or(i64::MIN, |(_, stamp, _)| *stamp);
        if later.iter().any(|stamp| *stamp > since && self.effective(*stamp) <= time) {
            return Ok(None);
        }
        match counted {
            Some((_, _, name)) => Ok(Some((Deletes::read(&metadata, name)?, next_time))),
            // The first change of a segment may be the drop of a partition, which is a form of its segment file.
            None => {
                let is_form = |time: i64| self.forms.values().flatten().any(|(stamp, _)| *stamp == time);
                let starts = self.segments.iter().filter_map(|s| time_of(s.update_start.as_deref()));
                if starts.into_iter().any(|start| self.effective(start) <= time && !is_form(start)) {
                    return Ok(None);
                }
                Ok(Some((Deletes::default(), next_time)))
            }
        }
    }

    /// From when on every state can be given.
    fn earliest(&self) -> Option<i64> {
        let mut earliest = self.schema.made().unwrap_or(i64::MIN);
        for (place, segment) in self.segments.iter().enumerate().filter(|(_, segment)| segment.was_readable())
        {
            let Some((complete, first)) = self.start(segment) else { continue };
            let end = match self.end(place, segment) {
                End::Never => None,
                End::At(end) | End::Between(_, end) => Some(end),
                End::Unknown if segment.has_no_data() => continue,
                End::Unknown => return None,
            };
            if let End::Between(_, last) = self.end(place, segment) {
                earliest = earliest.max(last);
            }
            if complete > first {
                earliest = earliest.max(complete);
            }
            let mut from = complete;
            loop {
                let (form, next) = self.form_at(segment, from);
                let until = [next, end].into_iter().flatten().min();
                if !self.is_there(segment, form.as_deref()).unwrap_or(false) {
                    earliest = earliest.max(until?);
                }
                match until {
                    Some(until) if until > from && end.is_none_or(|end| until < end) => from = until,
                    _ => break,
                }
            }
        }
        let first_update = self.updates.first().map_or(i64::MIN, |(from, _, _)| *from);
        let is_lost = !matches!(self.deletes_at(first_update.saturating_sub(1)), Ok(Some(_)));
        Some(if is_lost { earliest.max(first_update) } else { earliest })
    }

    /// The error of a time that cannot be given.
    pub fn impossible(&self, time: i64, reason: &str) -> Error {
        let advice = match self.earliest() {
            Some(earliest) => format!("the earliest possible time is {}", shown(earliest)),
            None => "only the present state can be given".to_string(),
        };
        let message = format!("the table as of {} is not there: {reason}; {advice}", shown(time));
        Error::invalid(message).at(&self.table.to_string(), 0, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_times_are_read() {
        assert_eq!(milliseconds("1794732568199"), Some(1_794_732_568_199));
        assert_eq!(milliseconds("02-01-1970 00:00:01:005"), Some(86_401_005));
        for bad in ["", "yesterday", "02-01-1970", "99-99-1970 00:00:00:000"] {
            assert_eq!(milliseconds(bad), None, "{bad}");
        }
    }
}
