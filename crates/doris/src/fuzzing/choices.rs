//! Choices out of bytes: first the bytes themselves, then numbers that look random.

/// Takes choices from the bytes of a fuzzer.
#[derive(Debug)]
pub(super) struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
    state: u64,
}

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        let state = bytes.iter().fold(0x9e37_79b9_7f4a_7c15u64, |state, byte| {
            (state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        Self { bytes: bytes.iter(), state }
    }

    /// A number below 256.
    fn byte(&mut self) -> u8 {
        match self.bytes.next() {
            Some(byte) => *byte,
            None => self.random() as u8,
        }
    }

    /// Any number; it takes no bytes, so that values do not use up what shapes tables.
    pub fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}
