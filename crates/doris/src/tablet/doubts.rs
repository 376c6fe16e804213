//! Keys of which nothing can be said, because rows of a segment are lost.

use std::sync::{Mutex, PoisonError};

/// Stretches of keys, from behind a key that is known (or the first) to before another (or the last).
#[derive(Debug, Default)]
pub(crate) struct Doubts(Mutex<Vec<Stretch>>);

#[derive(Debug)]
struct Stretch {
    after: Option<Vec<u8>>,
    before: Option<Vec<u8>>,
}

impl Doubts {
    /// Adds a stretch, before a key in it is asked for.
    pub fn add(&self, after: Option<Vec<u8>>, before: Option<Vec<u8>>) {
        self.stretches().push(Stretch { after, before });
    }

    /// Whether a key is in one of the stretches. Keys are asked for in ascending order: what lies behind is forgotten.
    pub fn cover(&self, key: &[u8]) -> bool {
        let mut stretches = self.stretches();
        if stretches.is_empty() {
            return false;
        }
        stretches.retain(|stretch| stretch.before.as_deref().is_none_or(|before| key < before));
        stretches.iter().any(|stretch| stretch.after.as_deref().is_none_or(|after| key > after))
    }

    fn stretches(&self) -> std::sync::MutexGuard<'_, Vec<Stretch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_lies_between_its_neighbours() {
        let doubts = Doubts::default();
        assert!(!doubts.cover(b"a"));
        doubts.add(Some(b"c".to_vec()), Some(b"f".to_vec()));
        doubts.add(None, Some(b"b".to_vec()));
        doubts.add(Some(b"x".to_vec()), None);
        let covered: Vec<u8> = (b'a'..=b'z').filter(|key| doubts.cover(&[*key])).collect();
        assert_eq!(covered, b"adeyz");
    }
}
