//! Text changed on its way to a parser.

use std::io::{self, BufRead, Read};

/// What becomes of each byte.
pub(super) trait Rewrite {
    /// Takes the next byte and puts what it becomes behind `out`.
    ///
    /// # Errors
    /// If no text of this kind can have the byte here.
    fn take(&mut self, byte: u8, out: &mut Vec<u8>) -> io::Result<()>;

    /// Takes the end.
    ///
    /// # Errors
    /// If no text of this kind can end here.
    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()>;
}

/// Reads what a rewriter makes of an input.
pub(super) struct Rewritten<R, W> {
    input: R,
    rewrite: W,
    out: Vec<u8>,
    given: usize,
    is_over: bool,
}

impl<R: BufRead, W: Rewrite> Rewritten<R, W> {
    pub fn new(input: R, rewrite: W) -> Self {
        Self { input, rewrite, out: Vec::new(), given: 0, is_over: false }
    }
}

impl<R: BufRead, W: Rewrite> Read for Rewritten<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.out.len() && !self.is_over {
            self.out.clear();
            self.given = 0;
            let chunk = self.input.fill_buf()?;
            let length = chunk.len();
            for byte in chunk {
                self.rewrite.take(*byte, &mut self.out)?;
            }
            if length == 0 {
                self.rewrite.end(&mut self.out)?;
                self.is_over = true;
            }
            self.input.consume(length);
        }
        let left = self.out.get(self.given..).unwrap_or_default();
        let length = left.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..length), left.get(..length)) {
            to.copy_from_slice(from);
        }
        self.given = self.given.saturating_add(length);
        Ok(length)
    }
}
