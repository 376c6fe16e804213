//! Which row each stored value belongs to: run lengths and the row ids of an inverted index.

use pilaster_encoding::{DecodeError, Result};

fn numbers(bytes: &[u8], what: &'static str) -> Result<impl ExactSizeIterator<Item = u16> + Clone> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if rest.is_empty() {
        Ok(pairs.iter().map(|pair| u16::from_be_bytes(*pair)))
    } else {
        Err(DecodeError::new(bytes.len(), what, "half a number"))
    }
}

/// Each stored value as often as its run is long; pairs of start and count.
pub(crate) fn expand_runs<T: Copy>(page: &[u8], stored: &[T], max_rows: usize) -> Result<Vec<T>> {
    let numbers = numbers(page, "run lengths of two bytes")?;
    if numbers.len() != stored.len().saturating_mul(2) {
        let expected = format!("runs of {} values", stored.len());
        return Err(DecodeError::new(0, expected, format!("{} bytes", page.len())));
    }
    let total: usize = numbers.clone().skip(1).step_by(2).map(usize::from).sum();
    if total > max_rows {
        return Err(DecodeError::new(0, format!("runs of at most {max_rows} rows"), total.to_string()));
    }
    let mut values = Vec::with_capacity(total);
    for (number, (value, count)) in stored.iter().zip(numbers.skip(1).step_by(2)).enumerate() {
        if count == 0 {
            return Err(DecodeError::new(number.saturating_mul(4), "a run of at least one row", "none"));
        }
        values.extend(std::iter::repeat_n(*value, usize::from(count)));
    }
    Ok(values)
}

/// For each of `rows` rows, which of the stored values it has.
///
/// ```text
/// i32 n | n bytes: list A | list B        B: places in A where a pair first, last stands for all ids between
/// ```
pub(crate) fn row_order(page: &[u8], rows: usize) -> Result<Vec<u32>> {
    let short = || DecodeError::new(0, "a row-id page with its length", format!("{} bytes", page.len()));
    let (length, body) = page.split_first_chunk::<4>().ok_or_else(short)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    let (ids, pairs) = body.split_at_checked(length).ok_or_else(short)?;
    let mut pairs = numbers(pairs, "places of two bytes")?.peekable();
    let mut order = vec![u32::MAX; rows];
    let mut stored = 0u32;
    let mut place = |id: u32| -> Result<()> {
        let slot = usize::try_from(id).ok().and_then(|id| order.get_mut(id));
        match slot {
            Some(slot) if *slot == u32::MAX => *slot = stored,
            _ => {
                return Err(DecodeError::new(4, format!("each row id below {rows} once"), id.to_string()));
            }
        }
        stored = stored.saturating_add(1);
        Ok(())
    };
    let mut ids = numbers(ids, "row ids of two bytes")?.enumerate();
    while let Some((at, id)) = ids.next() {
        let is_pair = pairs.peek().is_some_and(|pair| usize::from(*pair) == at);
        if !is_pair {
            place(u32::from(id))?;
            continue;
        }
        pairs.next();
        let Some((_, last)) = ids.next().filter(|(_, last)| *last >= id) else {
            return Err(DecodeError::new(4, format!("the last id of the run that begins with {id}"), "none"));
        };
        (u32::from(id)..=u32::from(last)).try_for_each(&mut place)?;
    }
    if pairs.next().is_some() {
        return Err(DecodeError::new(4, "ascending places inside the list of ids", "another one"));
    }
    match usize::try_from(stored) {
        Ok(count) if count == rows => Ok(order),
        _ => Err(DecodeError::new(4, format!("{rows} row ids"), stored.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn be(numbers: &[u16]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
    }

    #[test]
    fn reads_the_worked_example() {
        let page = [&[0, 0, 0, 4][..], &be(&[0, 899, 0])].concat();
        assert_eq!(row_order(&page, 900).unwrap(), (0..900).collect::<Vec<_>>());
        assert!(row_order(&page, 899).is_err());
        assert!(row_order(&page, 901).is_err());
    }

    #[test]
    fn ids_say_the_row_of_each_value() {
        let page = [&[0, 0, 0, 8][..], &be(&[3, 0, 1, 2]), &be(&[1])].concat();
        assert_eq!(row_order(&page, 4).unwrap(), [1, 2, 3, 0]);
        let twice = [&[0, 0, 0, 4][..], &be(&[1, 1])].concat();
        assert!(row_order(&twice, 2).is_err());
    }

    #[test]
    fn runs_repeat_values() {
        assert_eq!(expand_runs(&be(&[0, 2, 2, 1, 3, 3]), b"abc", 6).unwrap(), b"aabccc");
        assert!(expand_runs(&be(&[0, 2, 2, 1]), b"abc", 6).is_err());
        assert!(expand_runs(&be(&[0, 2, 2, 0]), b"ab", 6).is_err());
        assert!(expand_runs(&be(&[0, 2, 2, 9]), b"ab", 6).is_err());
    }

    proptest! {
        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60), rows in 0usize..40) {
            let _ = row_order(&bytes, rows);
            let _ = expand_runs(&bytes, &vec![0; rows], 1000);
        }
    }
}
