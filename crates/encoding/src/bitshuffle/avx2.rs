//! Placeholder that is never available.
use super::scalar;
pub(super) fn is_available() -> bool {
    false
}
pub(super) fn shuffle(element_size: usize, src: &[u8], dst: &mut [u8]) {
    scalar::shuffle(element_size, src, dst, 0);
}
pub(super) fn unshuffle(element_size: usize, src: &[u8], dst: &mut [u8]) {
    scalar::unshuffle(element_size, src, dst, 0);
}
