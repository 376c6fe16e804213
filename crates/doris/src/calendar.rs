//! Dates as Doris packs them and as Arrow counts them.

use pilaster_core::{Error, Result};
use pilaster_encoding::packed_date;

pub(crate) const SECONDS_PER_DAY: i64 = 86_400;
pub(crate) const MICROS_PER_SECOND: i64 = 1_000_000;

/// What stands for 0000-00-00 in arrays of days: a day that no year of four digits has. Cells of nothing but zero bits are no damage,
/// see [`crate::segment`], and smaller than every date, as this is.
pub(crate) const ZERO_DAY: i32 = i32::MIN;
/// What stands for 0000-00-00 00:00:00 in arrays of seconds and microseconds.
pub(crate) const ZERO_TIME: i64 = i64::MIN;

/// Days since 1970-01-01 of a date that must exist.
pub(crate) fn days(year: u32, month: u32, day: u32) -> Result<i32> {
    if year > 9999 || day == 0 || day > days_of_month(year, month) {
        return Err(Error::corrupt("a date of the calendar", format!("{year:04}-{month:02}-{day:02}")));
    }
    // Years begin in March here, so that the leap day is the last one.
    let shifted = i64::from(year).wrapping_sub(i64::from(month <= 2));
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let month = i64::from(month);
    let month_from_march = if month > 2 { month.wrapping_sub(3) } else { month.wrapping_add(9) };
    let day_of_year = (153i64.wrapping_mul(month_from_march).wrapping_add(2) / 5)
        .wrapping_add(i64::from(day))
        .wrapping_sub(1);
    let day_of_era = year_of_era
        .wrapping_mul(365)
        .wrapping_add(year_of_era / 4)
        .wrapping_sub(year_of_era / 100)
        .wrapping_add(day_of_year);
    let days = era.wrapping_mul(146_097).wrapping_add(day_of_era).wrapping_sub(719_468);
    i32::try_from(days).map_err(|_| Error::corrupt("a date of the calendar", days))
}

fn days_of_month(year: u32, month: u32) -> u32 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 0,
    }
}

/// Year, month and day of a day since 1970-01-01.
pub(crate) fn civil(days: i32) -> (i64, u32, u32) {
    let shifted = i64::from(days).wrapping_add(719_468);
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = day_of_era
        .wrapping_sub(day_of_era / 1460)
        .wrapping_add(day_of_era / 36_524)
        .wrapping_sub(day_of_era / 146_096)
        / 365;
    let day_of_year = day_of_era.wrapping_sub(
        year_of_era.wrapping_mul(365).wrapping_add(year_of_era / 4).wrapping_sub(year_of_era / 100),
    );
    let month_from_march = day_of_year.wrapping_mul(5).wrapping_add(2) / 153;
    let day =
        day_of_year.wrapping_sub(153i64.wrapping_mul(month_from_march).wrapping_add(2) / 5).wrapping_add(1);
    let month = if month_from_march < 10 {
        month_from_march.wrapping_add(3)
    } else {
        month_from_march.wrapping_sub(9)
    };
    let year = era.wrapping_mul(400).wrapping_add(year_of_era).wrapping_add(i64::from(month <= 2));
    (year, u32::try_from(month).unwrap_or_default(), u32::try_from(day).unwrap_or_default())
}

/// `year << 9 | month << 5 | day`
pub(crate) fn packed_days(packed: u32) -> Result<i32> {
    if packed == 0 {
        return Ok(ZERO_DAY);
    }
    days(packed >> 9, packed >> 5 & 0xf, packed & 0x1f)
}

/// As [`packed_days`], of many dates at once.
pub(crate) fn all_packed_days(packed: &[[u8; 4]]) -> Result<Vec<i32>> {
    match packed_date::days(packed) {
        Some(days) => Ok(days),
        // Which of them is none is looked for one by one.
        None => packed.iter().map(|packed| packed_days(u32::from_le_bytes(*packed))).collect(),
    }
}

/// The packed form of a day, if its year has a place in it.
pub(crate) fn pack_days(days: i32) -> Option<u32> {
    let (year, month, day) = civil(days);
    let year = u32::try_from(year).ok().filter(|year| *year <= 9999)?;
    Some(year << 9 | month << 5 | day)
}

/// Seconds since 1970 of a date and a time of day, both of which must exist.
fn seconds(days: i32, hour: u32, minute: u32, second: u32) -> Result<i64> {
    if hour > 23 || minute > 59 || second > 59 {
        return Err(Error::corrupt("a time of the day", format!("{hour:02}:{minute:02}:{second:02}")));
    }
    let of_day = i64::from(hour)
        .wrapping_mul(3600)
        .wrapping_add(i64::from(minute).wrapping_mul(60))
        .wrapping_add(i64::from(second));
    Ok(i64::from(days).wrapping_mul(SECONDS_PER_DAY).wrapping_add(of_day))
}

/// Seconds since 1970 of the decimal digits YYYYMMDDhhmmss.
pub(crate) fn digits_seconds(digits: i64) -> Result<i64> {
    let part = |divisor: i64, modulus: i64| {
        u32::try_from(digits.checked_div(divisor).unwrap_or(0).checked_rem(modulus).unwrap_or(0))
            .unwrap_or(u32::MAX)
    };
    if digits == 0 {
        return Ok(ZERO_TIME);
    }
    if digits < 0 {
        return Err(Error::corrupt("a date and time of 14 digits", digits));
    }
    let date = days(part(10_000_000_000, 1_000_000), part(100_000_000, 100), part(1_000_000, 100))?;
    seconds(date, part(10_000, 100), part(100, 100), part(1, 100))
}

/// The decimal digits of a second, if its year has four.
pub(crate) fn second_digits(seconds: i64) -> Option<i64> {
    let days = i32::try_from(seconds.div_euclid(SECONDS_PER_DAY)).ok()?;
    let (year, month, day) = civil(days);
    (0..=9999).contains(&year).then_some(())?;
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    let date = year
        .wrapping_mul(10_000)
        .wrapping_add(i64::from(month).wrapping_mul(100))
        .wrapping_add(i64::from(day));
    let time = (of_day / 3600)
        .wrapping_mul(10_000)
        .wrapping_add((of_day / 60 % 60).wrapping_mul(100))
        .wrapping_add(of_day % 60);
    Some(date.wrapping_mul(1_000_000).wrapping_add(time))
}

/// Microseconds since 1970 of the bit fields of DATETIMEV2 and TIMESTAMPTZ.
pub(crate) fn packed_micros(packed: u64) -> Result<i64> {
    if packed == 0 {
        return Ok(ZERO_TIME);
    }
    let field = |shift: u32, bits: u32| {
        u32::try_from(
            packed.checked_shr(shift).unwrap_or(0) & 1u64.checked_shl(bits).unwrap_or(0).wrapping_sub(1),
        )
        .unwrap_or(u32::MAX)
    };
    let date = days(field(46, 18), field(42, 4), field(37, 5))?;
    let whole = seconds(date, field(32, 5), field(26, 6), field(20, 6))?;
    let micros = field(0, 20);
    if micros >= 1_000_000 {
        return Err(Error::corrupt("less than 1000000 microseconds", micros));
    }
    Ok(whole.wrapping_mul(MICROS_PER_SECOND).wrapping_add(i64::from(micros)))
}

/// The bit fields of a microsecond, if its year has a place in them.
pub(crate) fn pack_micros(micros: i64) -> Option<u64> {
    let seconds = micros.div_euclid(MICROS_PER_SECOND);
    let days = i32::try_from(seconds.div_euclid(SECONDS_PER_DAY)).ok()?;
    let date = u64::from(pack_days(days)?);
    let of_day = u64::try_from(seconds.rem_euclid(SECONDS_PER_DAY)).ok()?;
    let fraction = u64::try_from(micros.rem_euclid(MICROS_PER_SECOND)).ok()?;
    Some(date << 37 | (of_day / 3600) << 32 | (of_day / 60 % 60) << 26 | (of_day % 60) << 20 | fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn many_dates_are_as_each_of_them() {
        let all: Vec<[u8; 4]> = (1..10_001 << 9).map(u32::to_le_bytes).collect();
        let day_of = |packed: &[u8; 4]| packed_days(u32::from_le_bytes(*packed));
        let (real, wrong): (Vec<_>, Vec<_>) = all.iter().partition(|packed| day_of(packed).is_ok());
        let expected: Vec<i32> = real.iter().map(|packed| day_of(packed).unwrap()).collect();
        assert_eq!(all_packed_days(&real).unwrap(), expected);
        for packed in wrong {
            assert!(all_packed_days(&[packed]).is_err(), "{packed:?}");
        }
    }

    #[test]
    fn no_date_is_before_every_other() {
        assert_eq!(
            all_packed_days(&[1970 << 9 | 1 << 5 | 1, 0].map(u32::to_le_bytes)).unwrap(),
            [0, ZERO_DAY]
        );
        assert_eq!(digits_seconds(0).unwrap(), ZERO_TIME);
        assert_eq!(packed_micros(0).unwrap(), ZERO_TIME);
        // Nobody writes them.
        assert_eq!(
            (pack_days(ZERO_DAY), second_digits(ZERO_TIME), pack_micros(ZERO_TIME)),
            (None, None, None)
        );
        // Half of a date is damage.
        assert!(packed_days(1970 << 9).is_err() && digits_seconds(1).is_err() && packed_micros(1).is_err());
    }

    #[test]
    fn known_dates() {
        assert_eq!(days(1970, 1, 1).unwrap(), 0);
        assert_eq!(days(2000, 2, 29).unwrap(), 11_016);
        assert_eq!(days(0, 1, 1).unwrap(), -719_528);
        assert_eq!(digits_seconds(20_380_119_031_407).unwrap(), i64::from(i32::MAX));
        for (year, month, day) in [(2023, 2, 29), (2024, 13, 1), (2024, 0, 1), (2024, 1, 0), (10_000, 1, 1)] {
            assert!(days(year, month, day).is_err(), "{year}-{month}-{day}");
        }
        assert!(digits_seconds(20_240_101_240_000).is_err());
        assert!(digits_seconds(-1).is_err());
    }

    proptest! {
        #[test]
        fn packing_is_reversed(micros in -62_167_219_200_000_000i64..253_402_300_800_000_000) {
            prop_assert_eq!(packed_micros(pack_micros(micros).unwrap()).unwrap(), micros);
            let seconds = micros.div_euclid(MICROS_PER_SECOND);
            prop_assert_eq!(digits_seconds(second_digits(seconds).unwrap()).unwrap(), seconds);
            let day = (seconds.div_euclid(SECONDS_PER_DAY)) as i32;
            prop_assert_eq!(packed_days(pack_days(day).unwrap()).unwrap(), day);
        }

        #[test]
        fn any_bits_are_a_time_or_refused(packed: u64, digits: i64) {
            let _ = packed_micros(packed);
            let _ = digits_seconds(digits);
        }
    }
}
