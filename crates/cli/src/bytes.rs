//! Sizes for people.

/// `bytes` with at most four digits: `0 B`, `999 B`, `1.5 KiB`, `12.3 MiB`.
pub(crate) fn human(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// A size as people write it: `4096`, `64K`, `128M`, `2G`, also with `B` or `iB` behind; K is 1024.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = text.get(digits.len()..).unwrap_or_default().trim().to_ascii_lowercase();
    let shift = match unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')).unwrap_or(&unit) {
        "" if unit != "ib" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err("expected a size such as 64M or 2G".into()),
    };
    let number: usize = digits.parse().map_err(|_| "expected a size such as 64M or 2G".to_string())?;
    let bytes = 1usize.checked_shl(shift).and_then(|unit| number.checked_mul(unit));
    match bytes {
        Some(0) => Err("some memory is needed".into()),
        Some(bytes) => Ok(bytes),
        None => Err("more than this machine could address".into()),
    }
}

/// `part` of `whole` in percent with one digit; nothing if there is no whole.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    match tenths_of_percent(part, whole) {
        Some(tenths) => format!("{}.{}%", tenths / 10, tenths % 10),
        None => String::new(),
    }
}

fn tenths_of_percent(part: u64, whole: u64) -> Option<u128> {
    let half = u128::from(whole).checked_div(2)?;
    u128::from(part).checked_mul(1000)?.checked_add(half)?.checked_div(u128::from(whole))
}

/// How many times smaller `stored` is than `plain`.
pub(crate) fn ratio(plain: Option<u64>, stored: u64) -> Option<f64> {
    match (plain, stored) {
        (Some(plain), 1..) => Some(lossy(plain) / lossy(stored)),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio is shown with two digits")]
fn lossy(bytes: u64) -> f64 {
    bytes as f64
}

/// A number of things, in words: `1 file`, `2 files`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_and_nothing_of_nothing_is_nothing() {
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(2, 3), "66.7%");
        assert_eq!(percent(5, 5), "100.0%");
        assert_eq!(percent(0, 0), "");
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("1", 1),
            ("4096", 4096),
            ("64K", 64 << 10),
            ("128M", 128 << 20),
            ("128m", 128 << 20),
            ("128MB", 128 << 20),
            ("128 MiB", 128 << 20),
            ("2g", 2 << 30),
            ("512B", 512),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "M",
            "0",
            "0G",
            "1.5G",
            "-1",
            "12X",
            "12iB",
            "1MM",
            "99999999999999999999",
            "18446744073709551615G",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_carry_units() {
        assert_eq!(human(0), "0 B");
        assert_eq!(human(1536), "1.50 KiB");
    }
}
