//! Sizes for people.

/// `bytes` with at most four digits: `0 B`, `999 B`, `1.5 KiB`, `12.3 MiB`.
pub(crate) fn human(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
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
    fn sizes_carry_units() {
        assert_eq!(human(0), "0 B");
        assert_eq!(human(1536), "1.50 KiB");
    }
}
