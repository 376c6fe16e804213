//! Values of fixed width, little-endian, back to back.
//!
//! ```text
//! i16 values 1, -2   ->   01 00 | fe ff
//! ```
//!
//! On a little-endian machine both directions are one memory copy.

use crate::{DecodeError, Result};

mod sealed {
    pub trait Sealed {}
}

/// A number that stands in a file as [`WIDTH`](Fixed::WIDTH) little-endian bytes.
pub trait Fixed: Copy + Default + PartialEq + Send + Sync + sealed::Sealed + 'static {
    /// Bytes of one value.
    const WIDTH: usize;

    /// The value in the first [`WIDTH`](Fixed::WIDTH) bytes, `None` if there are fewer.
    fn from_le(bytes: &[u8]) -> Option<Self>;

    /// Appends the value.
    fn write_le(self, out: &mut Vec<u8>);

    #[doc(hidden)]
    fn read_slice(bytes: &[u8], out: &mut [Self]);

    #[doc(hidden)]
    fn write_slice(values: &[Self], out: &mut [u8]);
}

macro_rules! fixed {
    ($($t:ty),*) => {$(
        impl sealed::Sealed for $t {}
        impl Fixed for $t {
            const WIDTH: usize = size_of::<$t>();

            #[inline]
            fn from_le(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|chunk| <$t>::from_le_bytes(*chunk))
            }

            #[inline]
            fn write_le(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn read_slice(bytes: &[u8], out: &mut [Self]) {
                let (chunks, _) = bytes.as_chunks::<{ size_of::<$t>() }>();
                for (value, chunk) in out.iter_mut().zip(chunks) {
                    *value = <$t>::from_le_bytes(*chunk);
                }
            }

            #[inline]
            fn write_slice(values: &[Self], out: &mut [u8]) {
                let (chunks, _) = out.as_chunks_mut::<{ size_of::<$t>() }>();
                for (value, chunk) in values.iter().zip(chunks) {
                    *chunk = value.to_le_bytes();
                }
            }
        }
    )*};
}

fixed!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

/// Fills `out` from `bytes`.
///
/// # Errors
/// If `bytes` is not exactly as long as `out` needs.
///
/// ```
/// let mut values = [0i16; 2];
/// pilaster_encoding::plain::decode_into(&[1, 0, 0xfe, 0xff], &mut values)?;
/// assert_eq!(values, [1, -2]);
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
pub fn decode_into<T: Fixed>(bytes: &[u8], out: &mut [T]) -> Result<()> {
    if bytes.len() != size_of_val(out) {
        let expected = format!("{} bytes for {} values of {}", size_of_val(out), out.len(), T::WIDTH);
        return Err(DecodeError::new(bytes.len().min(size_of_val(out)), expected, bytes.len().to_string()));
    }
    T::read_slice(bytes, out);
    Ok(())
}

/// Appends the bytes of `values`.
pub fn encode<T: Fixed>(values: &[T], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start.saturating_add(size_of_val(values)), 0);
    T::write_slice(values, out.get_mut(start..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_example() -> Result<()> {
        let mut out = Vec::new();
        encode(&[1i16, -2], &mut out);
        assert_eq!(out, [1, 0, 0xfe, 0xff]);
        // The `plain` column of the tiny table: INT32 -5 to 4.
        let mut bytes = Vec::new();
        encode(&[-5i32, -4], &mut bytes);
        assert_eq!(bytes, [0xfb, 0xff, 0xff, 0xff, 0xfc, 0xff, 0xff, 0xff]);
        Ok(())
    }

    #[test]
    fn length_must_be_exact() {
        assert!(decode_into(&[0; 7], &mut [0u32; 2]).is_err());
        assert!(decode_into(&[0; 9], &mut [0u32; 2]).is_err());
        assert_eq!(decode_into::<u32>(&[], &mut []), Ok(()));
    }

    fn round_trip<T: Fixed + std::fmt::Debug>(bytes: &[u8]) {
        let bytes = &bytes[..bytes.len() / T::WIDTH * T::WIDTH];
        let mut values = vec![T::default(); bytes.len() / T::WIDTH];
        decode_into(bytes, &mut values).unwrap();
        let mut again = Vec::new();
        encode(&values, &mut again);
        assert_eq!(again, bytes);
        let mut one_by_one = Vec::new();
        for chunk in bytes.chunks(T::WIDTH) {
            T::from_le(chunk).unwrap().write_le(&mut one_by_one);
        }
        assert_eq!(one_by_one, bytes);
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn round_trips(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            round_trip::<u8>(&bytes);
            round_trip::<i16>(&bytes);
            round_trip::<u32>(&bytes);
            round_trip::<f32>(&bytes);
            round_trip::<f64>(&bytes);
            round_trip::<i64>(&bytes);
            round_trip::<i128>(&bytes);
        }

        #[test]
        fn any_bytes_are_values_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100), count in 0usize..30) {
            let mut values = vec![7u32; count];
            let decoded = decode_into(&bytes, &mut values);
            prop_assert_eq!(decoded.is_ok(), bytes.len() == count * 4);
            if let Err(error) = decoded {
                prop_assert!(error.at <= bytes.len());
                prop_assert!(values.iter().all(|value| *value == 7));
            }
            prop_assert_eq!(<u128 as Fixed>::from_le(&bytes).is_some(), bytes.len() >= 16);
            prop_assert_eq!(<u8 as Fixed>::from_le(&bytes), bytes.first().copied());
        }
    }
}
