//! Unions of opaque values: bitmaps, HyperLogLog sketches and states of quantiles.

mod bitmap;
mod hll;
mod quantile;
mod tdigest;

use pilaster_core::{Error, Result};

/// The union of values of a column that is aggregated by `name`, from the newest to the oldest, as Doris takes them;
/// `None` if there is no such union here.
pub(super) fn union<'a>(name: &str, values: impl Iterator<Item = &'a [u8]>) -> Option<Result<Vec<u8>>> {
    match name {
        "BITMAP_UNION" => Some(bitmap::union(values)),
        "HLL_UNION" => Some(hll::union(values)),
        "QUANTILE_UNION" => Some(quantile::union(values)),
        _ => None,
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count).ok_or_else(|| {
        Error::corrupt(format!("{count} bytes of an opaque value"), format!("{} bytes", rest.len()))
    })?;
    *rest = after;
    Ok(taken)
}

/// Some bytes of fixed number.
fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    Ok(take(rest, N)?.first_chunk().copied().unwrap_or([0; N]))
}

fn word(rest: &mut &[u8]) -> Result<u32> {
    Ok(u32::from_le_bytes(array(rest)?))
}

fn longs(rest: &mut &[u8], count: usize) -> Result<impl Iterator<Item = u64>> {
    let bytes = take(rest, count.saturating_mul(8))?;
    Ok(bytes.as_chunks::<8>().0.iter().map(|eight| u64::from_le_bytes(*eight)))
}

fn end(rest: &[u8], what: &str) -> Result<()> {
    if rest.is_empty() {
        Ok(())
    } else {
        Err(Error::corrupt(format!("the end of {what}"), format!("{} more bytes", rest.len())))
    }
}
