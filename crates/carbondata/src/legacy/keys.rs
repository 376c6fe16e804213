//! Blocklets by the codes of their first and last row.
//!
//! Rows of versions 1 and 2 are in the order of the codes of all dictionary dimensions, side by side. A row that matches has
//! each of its codes between the least and the greatest that the filter leaves, so its key lies between the keys of those.
//! Minima and maxima of single columns do not see this: a filter on the first two columns may leave out blocklets that a filter
//! on each of them alone would not.

use std::ops::Bound as Limit;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, TimestampMillisecondType};
use pilaster_core::predicate::{BoundPredicate, Bounds};
use pilaster_core::{CompareOp, Literal, RowRanges};

use super::Legacy;
use crate::file::layout::CarbonFile;
use crate::file::page::encoding::DIRECT_DICTIONARY;
use crate::file::page::words::{Words, code_bytes};
use crate::file::{CarbonType, ColumnNode};

/// Days are stored with this added.
const DATE_BASE: i64 = 1_073_741_823;
/// Seconds are stored with this added.
const TIME_BASE: i64 = 2;

/// An end of a stretch of values.
#[derive(Debug, Clone, Copy)]
enum End {
    Least,
    Greatest,
}

use End::{Greatest, Least};

/// Codes from the first to the second.
type Span = (u32, u32);

/// The rows of the blocklets that may hold a match; `None` if all may. `column_of` gives the column of the predicate that is
/// this column of the file, of the same type.
pub(crate) fn rows(
    file: &CarbonFile,
    predicate: &BoundPredicate,
    column_of: &dyn Fn(&ColumnNode) -> Option<usize>,
) -> Option<RowRanges> {
    let legacy = file.legacy.as_ref()?;
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    let mut is_narrowed = false;
    let mut next = 0;
    while let Some(column) = file.header.columns.get(next) {
        let place = legacy.places.get(next)?;
        let members = legacy.places.iter().filter(|other| *other == place).count().max(1);
        let node = file.columns.iter().find(|node| node.chunk == next);
        let number = next;
        next = next.saturating_add(members);
        // Nodes of nested columns and what has no dictionary is not in the key.
        let (Some(node), true) = (node, column.is_dimension && !column.encoders.is_empty()) else { continue };
        if node.carbon_type.is_nested() {
            continue;
        }
        let width = legacy.key_bytes(number, members)?;
        let span = column_of(node)
            .filter(|_| members == 1)
            .map(|column| span(file, node, &predicate.bounds(column), predicate.values(column).as_deref()));
        match span {
            Some(None) => return Some(RowRanges::none()),
            Some(Some((least, greatest))) if (least, greatest) != (0, u32::MAX) => {
                is_narrowed = true;
                push(&mut lower, least, width);
                push(&mut upper, greatest, width);
            }
            _ => {
                lower.extend(std::iter::repeat_n(0u8, width));
                upper.extend(std::iter::repeat_n(0xff, width));
            }
        }
    }
    if !is_narrowed {
        return None;
    }
    let may = |number: usize| match legacy.keys.get(number) {
        Some((start, end)) if start.len() == lower.len() && end.len() == lower.len() => {
            lower.as_slice() <= end.as_ref() && upper.as_slice() >= start.as_ref()
        }
        _ => true,
    };
    let kept = file.blocklets.iter().enumerate().filter(|(number, _)| may(*number));
    Some(kept.map(|(_, blocklet)| blocklet.rows.clone()).collect())
}

/// The last bytes of a code.
fn push(key: &mut Vec<u8>, code: u32, width: usize) {
    let bytes = code.to_be_bytes();
    let is_cut = bytes.iter().take(4usize.saturating_sub(width)).any(|byte| *byte != 0);
    match bytes.get(4usize.saturating_sub(width)..) {
        Some(bytes) if !is_cut => key.extend_from_slice(bytes),
        // A code that needs more bytes is greater than every one in this file.
        _ => key.extend(std::iter::repeat_n(0xff, width)),
    }
}

impl Legacy {
    /// Bytes of a dimension in the key.
    fn key_bytes(&self, column: usize, members: usize) -> Option<usize> {
        let bits = |column: usize| self.group_bits.get(column).copied().flatten();
        if members > 1 || bits(column).is_some() {
            let all = (column..column.saturating_add(members)).filter_map(bits);
            let most = all.map(|(shift, width)| shift.saturating_add(width)).max()?;
            return usize::try_from(most.div_ceil(8)).ok();
        }
        self.cardinalities.get(column).filter(|count| **count > 0).map(|count| code_bytes(*count))
    }
}

/// The least and the greatest code that may match; `None` if none may.
fn span(file: &CarbonFile, node: &ColumnNode, bounds: &Bounds, values: Option<&[Literal]>) -> Option<Span> {
    const ANY: Span = (0, u32::MAX);
    let column = file.header.columns.get(node.chunk);
    if column.is_some_and(|column| column.encoders.contains(&DIRECT_DICTIONARY)) {
        return Some(
            match (limit(file, node, &bounds.lower, Least), limit(file, node, &bounds.upper, Greatest)) {
                (None, None) => ANY,
                (least, greatest) => (least.unwrap_or(0), greatest.unwrap_or(u32::MAX)),
            },
        );
    }
    match file.dictionaries.get(&node.chunk) {
        Some((words, _)) => word_span(words, bounds, values).unwrap_or(Some(ANY)),
        None => Some(ANY),
    }
}

/// A day or a time as it is stored: the least or the greatest that may leave as the limit.
fn limit(file: &CarbonFile, node: &ColumnNode, limit: &Limit<Literal>, end: End) -> Option<u32> {
    let (Limit::Included(value) | Limit::Excluded(value)) = limit else { return None };
    let array = value.array();
    let of = |(least, greatest): (i64, i64)| match end {
        Least => least,
        Greatest => greatest,
    };
    let stored = match node.carbon_type {
        CarbonType::Date => {
            let day = i64::from(array.as_primitive_opt::<Date32Type>()?.value(0));
            of(file.calendar.stored_days(day)).checked_add(DATE_BASE)?
        }
        CarbonType::Timestamp => {
            let milliseconds = array.as_primitive_opt::<TimestampMillisecondType>()?.value(0);
            of(file.calendar.stored_times(milliseconds)).div_euclid(1000).checked_add(TIME_BASE)?
        }
        _ => return None,
    };
    Some(u32::try_from(stored.max(0)).unwrap_or(u32::MAX))
}

/// The codes of the entries inside bounds, and among values; `None` if entries cannot be compared so.
fn word_span(words: &Words, bounds: &Bounds, values: Option<&[Literal]>) -> Option<Option<Span>> {
    let mut questions = Vec::new();
    match &bounds.lower {
        Limit::Included(value) => questions.push((CompareOp::GtEq, value)),
        Limit::Excluded(value) => questions.push((CompareOp::Gt, value)),
        Limit::Unbounded => {}
    }
    match &bounds.upper {
        Limit::Included(value) => questions.push((CompareOp::LtEq, value)),
        Limit::Excluded(value) => questions.push((CompareOp::Lt, value)),
        Limit::Unbounded => {}
    }
    let ask = |(op, value): (CompareOp, &Literal)| words.matches(&Some((op, value.clone())));
    let inside = questions.into_iter().map(ask).collect::<Option<Vec<_>>>()?;
    let among = match values {
        Some(values) => {
            Some(values.iter().map(|value| ask((CompareOp::Eq, value))).collect::<Option<Vec<_>>>()?)
        }
        None => None,
    };
    if inside.is_empty() && among.is_none() {
        return None;
    }
    let last = u32::try_from(words.array.len()).ok()?;
    let is_allowed = |code: &u32| {
        inside.iter().all(|counts| counts.any(*code, *code))
            && among.as_ref().is_none_or(|among| among.iter().any(|counts| counts.any(*code, *code)))
    };
    let least = (1..=last).find(is_allowed);
    Some(least.map(|least| (least, (least..=last).rev().find(is_allowed).unwrap_or(least))))
}
