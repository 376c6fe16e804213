//! Days and seconds since 1970 as text, for every value the types can hold.

/// Appends `value` with at least `width` digits.
pub(super) fn push_padded(out: &mut Vec<u8>, value: u64, width: usize) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value).as_bytes();
    out.resize(out.len().saturating_add(width.saturating_sub(digits.len())), b'0');
    out.extend_from_slice(digits);
}

/// Appends the date `days` after 1970-01-01 in the Gregorian calendar. Years outside 0000 to 9999 carry a sign, as ISO
/// 8601 asks.
pub(super) fn push_date(out: &mut Vec<u8>, days: i64) {
    let (year, month, day) = civil(days);
    if !(0..=9999).contains(&year) {
        out.push(if year < 0 { b'-' } else { b'+' });
    }
    push_padded(out, year.unsigned_abs(), 4);
    out.push(b'-');
    push_padded(out, month, 2);
    out.push(b'-');
    push_padded(out, day, 2);
}

/// Year, month and day. The calendar repeats every 400 years (146,097 days); counting years from March puts the leap
/// day last, so that a month's first day follows from 30.6 days a month.
fn civil(days: i64) -> (i64, u64, u64) {
    const DAYS_IN_ERA: i128 = 146_097;
    // From 0000-03-01 to 1970-01-01.
    let since_march = i128::from(days).saturating_add(719_468);
    let era = since_march.div_euclid(DAYS_IN_ERA);
    let day_of_era = since_march.rem_euclid(DAYS_IN_ERA);
    #[expect(clippy::arithmetic_side_effects, reason = "all values are below 146,097")]
    let (year_of_era, day_of_year, month_from_march) = {
        let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
        let year = (day_of_era - leap_days) / 365;
        let day = day_of_era - (365 * year + year / 4 - year / 100);
        (year, day, (5 * day + 2) / 153)
    };
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "an i64 of days is far fewer years, and the rest is below 400"
    )]
    let (year, month, day) = {
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        (era * 400 + year_of_era + i128::from(month <= 2), month, day)
    };
    let small = |value: i128| u64::try_from(value).unwrap_or(0);
    (i64::try_from(year).unwrap_or(0), small(month), small(day))
}

/// How finely a time is counted, and with how many digits it is printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    /// Units in a second.
    pub(super) per_second: i64,
    /// Nanoseconds print nine digits and all else six, so that nothing is lost and texts of a column line up.
    is_nano: bool,
}

impl Unit {
    pub(super) fn of(unit: &arrow_schema::TimeUnit) -> Self {
        use arrow_schema::TimeUnit;
        let per_second = match unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000_000_000,
        };
        Self { per_second, is_nano: *unit == TimeUnit::Nanosecond }
    }

    /// Whole seconds (rounded down) and the fraction in units.
    fn split(self, value: i64) -> (i64, i64) {
        (value.div_euclid(self.per_second), value.rem_euclid(self.per_second))
    }

    /// Appends `.ffffff`.
    pub(super) fn push_fraction(self, out: &mut Vec<u8>, fraction: u64) {
        let digits_per_second: u64 = if self.is_nano { 1_000_000_000 } else { 1_000_000 };
        let scale = digits_per_second.checked_div(self.per_second.unsigned_abs()).unwrap_or(1);
        out.push(b'.');
        push_padded(out, fraction.saturating_mul(scale), if self.is_nano { 9 } else { 6 });
    }

    /// Appends `YYYY-MM-DDTHH:MM:SS.ffffff`.
    pub(super) fn push_timestamp(self, out: &mut Vec<u8>, value: i64) {
        const SECONDS_IN_DAY: i64 = 86_400;
        let (seconds, fraction) = self.split(value);
        push_date(out, seconds.div_euclid(SECONDS_IN_DAY));
        out.push(b'T');
        push_clock(out, seconds.rem_euclid(SECONDS_IN_DAY).unsigned_abs());
        self.push_fraction(out, fraction.unsigned_abs());
    }

    /// Appends `HH:MM:SS.ffffff`; a time before midnight (which no writer should store) carries a sign.
    pub(super) fn push_time(self, out: &mut Vec<u8>, value: i64) {
        if value < 0 {
            out.push(b'-');
        }
        let per_second = self.per_second.unsigned_abs();
        push_clock(out, value.unsigned_abs().checked_div(per_second).unwrap_or(0));
        self.push_fraction(out, value.unsigned_abs().checked_rem(per_second).unwrap_or(0));
    }

    /// Appends the seconds of a span: `1.500000S`.
    pub(super) fn push_span(self, out: &mut Vec<u8>, value: u64) {
        let per_second = self.per_second.unsigned_abs();
        push_padded(out, value.checked_div(per_second).unwrap_or(0), 1);
        self.push_fraction(out, value.checked_rem(per_second).unwrap_or(0));
        out.push(b'S');
    }
}

/// Appends `HH:MM:SS`.
fn push_clock(out: &mut Vec<u8>, seconds: u64) {
    push_padded(out, seconds / 3600, 2);
    out.push(b':');
    push_padded(out, seconds / 60 % 60, 2);
    out.push(b':');
    push_padded(out, seconds % 60, 2);
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::TimeUnit;
    use proptest::prelude::*;

    fn text(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn dates_of_all_times() {
        let cases = [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11016, "2000-02-29"),
            (-719_162, "0001-01-01"),
            (-719_528, "0000-01-01"),
            (-719_529, "-0001-12-31"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "+10000-01-01"),
            (i64::from(i32::MAX), "+5881580-07-11"),
            (i64::from(i32::MIN), "-5877641-06-23"),
        ];
        for (days, expected) in cases {
            assert_eq!(text(|out| push_date(out, days)), expected);
        }
    }

    #[test]
    fn timestamps_of_all_units() {
        let of = |unit, value| text(|out| Unit::of(&unit).push_timestamp(out, value));
        assert_eq!(of(TimeUnit::Second, 1), "1970-01-01T00:00:01.000000");
        assert_eq!(of(TimeUnit::Millisecond, -1), "1969-12-31T23:59:59.999000");
        assert_eq!(of(TimeUnit::Microsecond, 1_700_000_000_123_456), "2023-11-14T22:13:20.123456");
        assert_eq!(of(TimeUnit::Nanosecond, 1), "1970-01-01T00:00:00.000000001");
        assert_eq!(of(TimeUnit::Nanosecond, i64::MIN), "1677-09-21T00:12:43.145224192");
    }

    proptest! {
        #[test]
        fn days_after_each_other_are_dates_after_each_other(days in -800_000i64..3_000_000) {
            let (a, b) = (civil(days), civil(days + 1));
            prop_assert!(a < b);
            prop_assert!(b.2 == a.2 + 1 || b.2 == 1);
        }

        #[test]
        fn no_value_panics(value in any::<i64>()) {
            for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
                let unit = Unit::of(&unit);
                text(|out| unit.push_timestamp(out, value));
                text(|out| unit.push_time(out, value));
            }
            text(|out| push_date(out, value));
        }
    }
}
