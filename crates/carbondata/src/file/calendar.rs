//! Days before 1582-10-15: CarbonData counts them in Java's calendar, Arrow in the one of today.
//!
//! A DATE is a number of days and a TIMESTAMP one of milliseconds since 1970. Java's calendar turns them into year, month and day by
//! the Julian rules (every fourth year has a leap day) before 1582-10-15, which follows 1582-10-04; Arrow and everything that reads it
//! goes on by the Gregorian rules. So the number -719,164 is 0001-01-01 to CarbonData and 0000-12-30 to others. What leaves here is the
//! day that CarbonData shows, and the number with it is the one that others know that day by.
//!
//! Twelve days in the years 1 to 1582 are in the Julian calendar alone (02-29 of 100, 200, 300, 500 … 1500, and their like before): they
//! are given as 03-01. The ten days 1582-10-05 to 1582-10-14 are not in CarbonData's and cannot be written.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, TimestampMillisecondType};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, ListArray, MapArray, PrimitiveArray, StringViewArray, StructArray,
};
use arrow_schema::{DataType, TimeUnit};
use pilaster_core::{Error, Result};

/// 1582-10-15: the day from which on both calendars agree.
const AGREED: i64 = -141_427;
/// The days of today's calendar before it that Java's leaves out.
const LEFT_OUT: i64 = 10;
/// From 0000-03-01 of the Julian calendar to 1970.
const JULIAN_BASE: i64 = 719_470;
/// From 0000-03-01 of the Gregorian calendar to 1970.
const GREGORIAN_BASE: i64 = 719_468;
const MILLIS_PER_DAY: i64 = 86_400_000;

/// Which days and times the numbers of days before 1582-10-15 stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Calendar {
    /// Those that CarbonData shows, by Java's calendar: 0001-01-01 stays 0001-01-01.
    #[default]
    Shown,
    /// The numbers go as they are stored, and are another day in a calendar that is not Java's.
    Stored,
}

/// How many days a March-based year of the Julian calendar is behind the same year of the Gregorian one.
fn behind(year: i64) -> i64 {
    year.div_euclid(100).saturating_sub(year.div_euclid(400)).saturating_sub(2)
}

/// The day that others know by the name that Java's calendar has for `stored`.
fn shown_day(stored: i64) -> i64 {
    if stored >= AGREED {
        return stored;
    }
    let year = stored.saturating_add(JULIAN_BASE).saturating_mul(4).saturating_add(3).div_euclid(1461);
    stored.saturating_sub(behind(year))
}

/// The number that Java's calendar has for the day that others call `shown`; none for days that are not in it.
fn stored_day(shown: i64) -> Option<i64> {
    if shown >= AGREED {
        return Some(shown);
    }
    if shown >= AGREED.saturating_sub(LEFT_OUT) {
        return None;
    }
    let day = shown.saturating_add(GREGORIAN_BASE);
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let leaps = (day / 1460).saturating_sub(day / 36_524).saturating_add(day / 146_096);
    let year = era.saturating_mul(400).saturating_add(day.saturating_sub(leaps) / 365);
    Some(shown.saturating_add(behind(year)))
}

fn shown_millis(stored: i64) -> i64 {
    let day = stored.div_euclid(MILLIS_PER_DAY);
    let moved = shown_day(day).saturating_sub(day);
    // Days move towards those of today, so that no time leaves the numbers there are.
    stored.saturating_add(moved.saturating_mul(MILLIS_PER_DAY))
}

fn stored_millis(shown: i64) -> Option<i64> {
    let day = shown.div_euclid(MILLIS_PER_DAY);
    let moved = stored_day(day)?.checked_sub(day)?;
    shown.checked_add(moved.checked_mul(MILLIS_PER_DAY)?)
}

/// Whether a stored day is a leap day that only the Julian calendar has, which leaves as the first of March.
fn is_julian_leap_day(stored: i64) -> bool {
    stored_day(shown_day(stored)) != Some(stored)
}

/// Whether a year has a leap day in the Julian calendar alone, and is one of those that Java counts by it.
fn is_julian_century(year: &str) -> bool {
    year.parse::<i64>().is_ok_and(|year| year < 1582 && year % 100 == 0 && year % 400 != 0)
}

/// A date or a time as a text, for messages.
fn named(data_type: &DataType, value: i64) -> String {
    let (day, rest) = match data_type {
        DataType::Date32 => (value, 0),
        _ => (value.div_euclid(MILLIS_PER_DAY), value.rem_euclid(MILLIS_PER_DAY)),
    };
    // The ten days that are left out, which is all that is ever asked for beside numbers that are too small.
    let of_month = day.saturating_sub(AGREED).saturating_add(15);
    match (of_month, data_type) {
        (5..15, DataType::Date32) => format!("1582-10-{of_month:02}"),
        (5..15, _) => format!("1582-10-{of_month:02}, {rest} milliseconds after midnight"),
        _ => format!("{value}"),
    }
}

impl Calendar {
    /// Values as they leave.
    pub(crate) fn shown(self, array: &ArrayRef) -> Result<ArrayRef> {
        match self {
            Self::Stored => Ok(Arc::clone(array)),
            Self::Shown => Ok(moved(array, &Move::Out)?.unwrap_or_else(|| Arc::clone(array))),
        }
    }

    /// Values as they are stored.
    pub(crate) fn stored(self, array: &ArrayRef, column: &str) -> Result<ArrayRef> {
        match self {
            Self::Stored => Ok(Arc::clone(array)),
            Self::Shown => Ok(moved(array, &Move::In(column))?.unwrap_or_else(|| Arc::clone(array))),
        }
    }

    /// What a text that says a day, and perhaps a time, in Java's calendar is; `parse` reads it in that of today.
    pub(crate) fn of_text(self, text: &str, parse: impl Fn(&str) -> Result<ArrayRef>) -> Result<ArrayRef> {
        // The day before and a day more: the leap day itself is no day to who parses it.
        let leap_day = text.split_once("-02-29").filter(|(year, _)| is_julian_century(year));
        match (self, leap_day) {
            (Self::Shown, None) => parse(text),
            (Self::Shown, Some((year, rest))) => parse(&format!("{year}-03-01{rest}")),
            (Self::Stored, None) => Self::Shown.stored(&parse(text)?, "of a partition"),
            (Self::Stored, Some((year, rest))) => {
                let after = Self::Shown.stored(&parse(&format!("{year}-03-01{rest}"))?, "of a partition")?;
                Ok(match after.data_type() {
                    DataType::Date32 => {
                        let days = after.as_primitive::<Date32Type>();
                        Arc::new(days.unary::<_, Date32Type>(|day| day.saturating_sub(1)))
                    }
                    _ => {
                        let times = after.as_primitive::<TimestampMillisecondType>();
                        let before = times
                            .unary::<_, TimestampMillisecondType>(|time| time.saturating_sub(MILLIS_PER_DAY));
                        Arc::new(before.with_data_type(after.data_type().clone()))
                    }
                })
            }
        }
    }

    /// The texts that say values of this calendar in Java's, out of `texts`, which say what [`Calendar::Shown`] gives for them.
    pub(crate) fn texts_of(self, array: &ArrayRef, texts: StringViewArray) -> StringViewArray {
        if self == Self::Shown {
            return texts;
        }
        let day = |row: usize| match array.data_type() {
            DataType::Date32 => i64::from(array.as_primitive::<Date32Type>().value(row)),
            _ => array.as_primitive::<TimestampMillisecondType>().value(row).div_euclid(MILLIS_PER_DAY),
        };
        let text = |(row, text): (usize, Option<&str>)| {
            let text = text?;
            Some(match is_julian_leap_day(day(row)) {
                true => text.replacen("-03-01", "-02-29", 1),
                false => text.to_string(),
            })
        };
        texts.iter().enumerate().map(text).collect()
    }

    /// The least and the greatest stored day that may leave as `day`, or, of a day that none leaves as, those around it.
    pub(crate) fn stored_days(self, day: i64) -> (i64, i64) {
        match (self, stored_day(day)) {
            // A day of Julian February may be given as the same one.
            (Self::Shown, Some(stored)) if day < AGREED => (stored.saturating_sub(1), stored),
            (Self::Shown, None) => (AGREED.saturating_sub(1), AGREED),
            _ => (day, day),
        }
    }

    /// The same for milliseconds.
    pub(crate) fn stored_times(self, time: i64) -> (i64, i64) {
        let day = time.div_euclid(MILLIS_PER_DAY);
        let (least, greatest) = self.stored_days(day);
        let moved = |to: i64| time.saturating_add(to.saturating_sub(day).saturating_mul(MILLIS_PER_DAY));
        match self.stored_day_is_left_out(day) {
            true => (
                AGREED.saturating_mul(MILLIS_PER_DAY).saturating_sub(1),
                AGREED.saturating_mul(MILLIS_PER_DAY),
            ),
            false => (moved(least), moved(greatest)),
        }
    }

    fn stored_day_is_left_out(self, day: i64) -> bool {
        self == Self::Shown && stored_day(day).is_none()
    }
}

/// Which way values go; into files they are a column's.
enum Move<'a> {
    Out,
    In(&'a str),
}

impl Move<'_> {
    fn values<T: ArrowPrimitiveType>(
        &self,
        array: &PrimitiveArray<T>,
        first_agreed: T::Native,
        out: impl Fn(T::Native) -> T::Native,
        back: impl Fn(T::Native) -> Option<T::Native>,
        number: impl Fn(T::Native) -> i64,
    ) -> Result<Option<ArrayRef>>
    where
        T::Native: PartialOrd,
    {
        if array.values().iter().all(|value| *value >= first_agreed) {
            return Ok(None);
        }
        let moved: PrimitiveArray<T> = match self {
            Self::Out => array.unary(out),
            Self::In(column) => array.try_unary(|value| {
                back(value).ok_or_else(|| {
                    Error::invalid(format!(
                        "column {column:?}: {} is not in CarbonData's calendar, which goes from 1582-10-04 to 1582-10-15 and ends where its numbers do",
                        named(array.data_type(), number(value))
                    ))
                })
            })?,
        };
        Ok(Some(Arc::new(moved.with_data_type(array.data_type().clone()))))
    }
}

/// The values of an array in the other calendar; none if they are the same in both.
fn moved(array: &ArrayRef, way: &Move<'_>) -> Result<Option<ArrayRef>> {
    Ok(match array.data_type() {
        DataType::Date32 => way.values::<Date32Type>(
            array.as_primitive(),
            i32::try_from(AGREED).unwrap_or_default(),
            |day| i32::try_from(shown_day(i64::from(day))).unwrap_or(day),
            |day| i32::try_from(stored_day(i64::from(day))?).ok(),
            i64::from,
        )?,
        DataType::Timestamp(TimeUnit::Millisecond, _) => way.values::<TimestampMillisecondType>(
            array.as_primitive(),
            AGREED.saturating_mul(MILLIS_PER_DAY),
            shown_millis,
            stored_millis,
            |time| time,
        )?,
        DataType::List(field) => {
            let list = array.as_list::<i32>();
            let values = moved(list.values(), way)?;
            values
                .map(|values| {
                    let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
                    ListArray::try_new(Arc::clone(field), offsets, values, nulls)
                })
                .transpose()?
                .map(|list| Arc::new(list) as ArrayRef)
        }
        DataType::Struct(fields) => {
            let parts = array.as_struct();
            let Some(columns) = moved_columns(parts.columns(), way)? else { return Ok(None) };
            Some(Arc::new(StructArray::try_new(fields.clone(), columns, parts.nulls().cloned())?))
        }
        DataType::Map(field, ordered) => {
            let map = array.as_map();
            let entries = map.entries();
            let Some(columns) = moved_columns(entries.columns(), way)? else { return Ok(None) };
            let entries = StructArray::try_new(entries.fields().clone(), columns, entries.nulls().cloned())?;
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Some(Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, nulls, *ordered)?))
        }
        _ => None,
    })
}

fn moved_columns(columns: &[ArrayRef], way: &Move<'_>) -> Result<Option<Vec<ArrayRef>>> {
    let all = columns.iter().map(|column| moved(column, way)).collect::<Result<Vec<_>>>()?;
    if all.iter().all(Option::is_none) {
        return Ok(None);
    }
    let kept = all.into_iter().zip(columns).map(|(moved, kept)| moved.unwrap_or_else(|| Arc::clone(kept)));
    Ok(Some(kept.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Date32Array, Int32Array, TimestampMillisecondArray};
    use arrow_buffer::OffsetBuffer;
    use arrow_schema::{Field, Fields};
    use proptest::prelude::*;

    /// Year, month and day by counting years and months from 1970, in the calendar whose leap years are given.
    fn counted(mut day: i64, is_leap: fn(i64) -> bool, first: (i64, i64)) -> (i64, i64, i64) {
        let (mut year, first_day) = first;
        day -= first_day;
        let length = |year| if is_leap(year) { 366 } else { 365 };
        while day < 0 {
            year -= 1;
            day += length(year);
        }
        while day >= length(year) {
            day -= length(year);
            year += 1;
        }
        let months = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut month = 0;
        while day >= months[month] {
            day -= months[month];
            month += 1;
        }
        (year, month as i64 + 1, day + 1)
    }

    fn gregorian(day: i64) -> (i64, i64, i64) {
        counted(day, |year| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0), (1970, 0))
    }

    /// 1582-10-04 of the Julian calendar is the day before 1582-10-15, so 1582-01-01 is 277 days before that.
    fn julian(day: i64) -> (i64, i64, i64) {
        counted(day, |year| year % 4 == 0, (1582, AGREED - 277))
    }

    #[test]
    fn every_day_leaves_as_java_calls_it() {
        let mut leap_days = 0;
        for stored in -1_200_000..AGREED {
            let (year, month, day) = julian(stored);
            let shown = gregorian(shown_day(stored));
            let is_leap_day = is_julian_leap_day(stored);
            let is_alone = (month, day) == (2, 29) && year % 100 == 0 && year % 400 != 0;
            assert_eq!(is_leap_day, is_alone, "{stored}");
            if is_alone {
                leap_days += i64::from(year > 0);
                assert_eq!(shown, (year, 3, 1), "{stored}");
            } else {
                assert_eq!(shown, (year, month, day), "{stored}");
                assert_eq!(stored_day(shown_day(stored)), Some(stored));
            }
            assert!(shown_day(stored) >= shown_day(stored - 1));
        }
        assert_eq!(leap_days, 12);
        assert_eq!((shown_day(-719_164), stored_day(-719_162)), (-719_162, Some(-719_164)));
        assert_eq!((shown_day(AGREED - 1), shown_day(AGREED)), (AGREED - 11, AGREED));
        assert!((AGREED - 10..AGREED).all(|day| stored_day(day).is_none()));
    }

    #[test]
    fn days_that_are_left_out_are_refused_by_name() {
        let refuse = |array: ArrayRef| Calendar::Shown.stored(&array, "d").unwrap_err().to_string();
        let date: ArrayRef = Arc::new(Date32Array::from(vec![0, -141_428]));
        assert!(
            refuse(Arc::clone(&date)).starts_with("column \"d\": 1582-10-14 is not in CarbonData's calendar")
        );
        assert_eq!(&Calendar::Stored.stored(&date, "d").unwrap(), &date);
        let time = TimestampMillisecondArray::from(vec![-141_437 * MILLIS_PER_DAY + 7]).with_timezone("UTC");
        assert!(refuse(Arc::new(time)).contains("1582-10-05, 7 milliseconds after midnight"));
        assert!(refuse(Arc::new(Date32Array::from(vec![i32::MIN]))).contains("-2147483648"));
        let null: ArrayRef = Arc::new(Date32Array::from(vec![None, Some(-141_438)]));
        assert!(Calendar::Shown.stored(&null, "d").is_ok());
    }

    #[test]
    fn what_lies_in_lists_maps_and_structs_is_moved_too() {
        let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(-719_164), None, Some(5)]));
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let field = |name: &str, array: &ArrayRef| Field::new(name, array.data_type().clone(), true);
        let fields = Fields::from(vec![field("n", &numbers), field("d", &days)]);
        let parts: ArrayRef = Arc::new(StructArray::new(fields, vec![numbers, days], None));
        let offsets = OffsetBuffer::new(vec![0, 1, 3].into());
        let item = Arc::new(Field::new("item", parts.data_type().clone(), true));
        let list: ArrayRef = Arc::new(ListArray::new(item, offsets, parts, None));
        let shown = Calendar::Shown.shown(&list).unwrap();
        let inside = shown.as_list::<i32>().values().as_struct().column(1).clone();
        let expected: ArrayRef = Arc::new(Date32Array::from(vec![Some(-719_162), None, Some(5)]));
        assert_eq!(&inside, &expected);
        assert_eq!(&Calendar::Shown.stored(&shown, "l").unwrap(), &list);
        assert_eq!(&Calendar::Stored.shown(&list).unwrap(), &list);
    }

    proptest! {
        #[test]
        fn times_keep_their_time_of_day_and_come_back(stored in prop_oneof![any::<i64>(), -100_000_000_000_000i64..0]) {
            let shown = shown_millis(stored);
            prop_assert_eq!(shown.rem_euclid(MILLIS_PER_DAY), stored.rem_euclid(MILLIS_PER_DAY));
            let day = stored.div_euclid(MILLIS_PER_DAY);
            if !is_julian_leap_day(day) {
                prop_assert_eq!(stored_millis(shown), Some(stored));
            }
            let (least, greatest) = Calendar::Shown.stored_times(shown);
            prop_assert!(least <= stored && stored <= greatest);
        }

        #[test]
        fn days_around_a_day_hold_all_that_leave_as_it(shown in -1_000_000i64..0) {
            let (least, greatest) = Calendar::Shown.stored_days(shown);
            prop_assert!(shown_day(least - 1) < shown && shown_day(greatest + 1) > shown);
        }

        #[test]
        fn any_number_is_a_day(day in any::<i32>(), time in any::<i64>()) {
            let array: ArrayRef = Arc::new(Date32Array::from(vec![day]));
            prop_assert!(Calendar::Shown.shown(&array).is_ok());
            let _ = Calendar::Shown.stored(&array, "d");
            let _ = (shown_millis(time), stored_millis(time));
        }
    }
}
