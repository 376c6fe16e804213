//! Dates as bit fields, and as days since 1970-01-01.
//!
//! ```text
//! packed = year << 9 | month << 5 | day
//! ```
//!
//! The way to days has no branch and no table, so that compilers make vectors of it; where there are wider ones than every machine
//! has, it is compiled for those too.

/// Years that are written with four digits end here.
const END_OF_YEARS: u32 = 10_000;

/// The days of little-endian packed dates; `None` if one of them is in no calendar.
///
/// ```
/// let packed = |year: u32, month: u32, day: u32| (year << 9 | month << 5 | day).to_le_bytes();
/// assert_eq!(pilaster_encoding::packed_date::days(&[packed(1970, 1, 1), packed(1969, 2, 28)]), Some(vec![0, -307]));
/// assert_eq!(pilaster_encoding::packed_date::days(&[packed(1969, 2, 29)]), None);
/// ```
#[must_use]
pub fn days(packed: &[[u8; 4]]) -> Option<Vec<i32>> {
    let mut days = vec![0; packed.len()];
    convert(packed, &mut days).then_some(days)
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use convert_all as convert;

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn convert(packed: &[[u8; 4]], days: &mut [i32]) -> bool {
    #[target_feature(enable = "avx2")]
    fn with_avx2(packed: &[[u8; 4]], days: &mut [i32]) -> bool {
        convert_all(packed, days)
    }

    if is_x86_feature_detected!("avx2") {
        // SAFETY: the check above names the one feature the function is compiled for.
        unsafe { with_avx2(packed, days) }
    } else {
        convert_all(packed, days)
    }
}

/// Whether all are dates.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled again for what the caller is compiled for")]
fn convert_all(packed: &[[u8; 4]], days: &mut [i32]) -> bool {
    let mut are_dates = true;
    for (day, packed) in days.iter_mut().zip(packed) {
        let (is_date, of_date) = day_of(u32::from_le_bytes(*packed));
        are_dates &= is_date;
        *day = of_date;
    }
    are_dates
}

/// Whether it is a date, and its day; of what is none, some number.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as above")]
const fn day_of(packed: u32) -> (bool, i32) {
    // Narrow enough for multiplications of 16 bits, which are the fast ones.
    let (year, month, day) = (packed >> 9 & 0x3fff, packed >> 5 & 0xf, packed & 0x1f);

    let century = century_of(year);
    let is_leap = (year & 3 == 0) & ((century.wrapping_mul(100) != year) | (century & 3 == 0));
    let february = if is_leap { 29 } else { 28 };
    // Odd months have 31 days; from August, even ones.
    let length = if month == 2 { february } else { 30 | (month ^ (month >> 3)) };
    let is_date = (month != 0) & (month <= 12) & (day != 0) & (day <= length) & (packed < END_OF_YEARS << 9);

    // Years begin in March here, so that the leap day is the last one. 400 years more, so that January 0000 is no negative year.
    let (years, months) = if month < 3 { (399, 12) } else { (400, 0) };
    let (year, month) = (year.wrapping_add(years), month.wrapping_add(months));
    let century = century_of(year);
    let days = year
        .wrapping_mul(365)
        .wrapping_add(year >> 2)
        .wrapping_sub(century)
        .wrapping_add(century >> 2)
        // Days before a month since March, 3 to 14: 153 in five months.
        .wrapping_add(month.wrapping_mul(979).wrapping_sub(2919) >> 5)
        .wrapping_add(day);
    (is_date, days.cast_signed().wrapping_sub(719_469 + 146_097))
}

/// `year / 100` of a year below 43,699.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as above")]
const fn century_of(year: u32) -> u32 {
    year.wrapping_mul(5243) >> 19
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every date there is, and whatever else the bits can say.
    #[test]
    fn days_follow_each_other() {
        let years = if cfg!(miri) { 1999..2001 } else { 0..END_OF_YEARS + 400 };
        let (mut next, mut dates) = (None, Vec::new());
        for year in years {
            for (month, day) in (0..16).flat_map(|month| (0..32).map(move |day| (month, day))) {
                let length = match month {
                    _ if year >= END_OF_YEARS => 0,
                    2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
                    2 => 28,
                    4 | 6 | 9 | 11 => 30,
                    1..=12 => 31,
                    _ => 0,
                };
                let packed = year << 9 | month << 5 | day;
                let (is_date, days) = day_of(packed);
                assert_eq!(is_date, (1..=length).contains(&day), "{year}-{month}-{day}");
                assert_eq!(super::days(&[packed.to_le_bytes()]).is_some(), is_date);
                if is_date {
                    assert_eq!(days, next.unwrap_or(days), "{year}-{month}-{day}");
                    next = Some(days + 1);
                    dates.push(packed);
                }
            }
        }
        assert_eq!(day_of(1970 << 9 | 1 << 5 | 1), (true, 0));
        assert_eq!((day_of(u32::MAX).0, day_of(1 << 23 | 1 << 5 | 1).0), (false, false));
        // As vectors, as one by one.
        let cells: Vec<[u8; 4]> = dates.iter().map(|packed| packed.to_le_bytes()).collect();
        let expected: Vec<i32> = dates.iter().map(|packed| day_of(*packed).1).collect();
        assert_eq!(days(&cells), Some(expected));
    }
}
