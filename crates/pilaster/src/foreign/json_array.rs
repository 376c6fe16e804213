//! One JSON array of objects, given as lines: one element on each.

use std::io;

use super::rewrite::Rewrite;

/// Puts each element of an array on a line of its own.
#[derive(Debug, Default)]
pub(super) struct ElementLines {
    place: Place,
    /// Brackets and braces that are open, the outermost included.
    depth: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Before,
    Outside,
    InText {
        is_escaped: bool,
    },
    After,
}

impl ElementLines {
    fn structure(&mut self, byte: u8) -> u8 {
        match byte {
            b',' if self.depth == 1 => return b'\n',
            b'"' => self.place = Place::InText { is_escaped: false },
            b'[' | b'{' => self.depth = self.depth.saturating_add(1),
            b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if self.depth == 0 {
            self.place = Place::After;
            return b'\n';
        }
        byte
    }
}

fn bad(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

impl Rewrite for ElementLines {
    fn take(&mut self, byte: u8, out: &mut Vec<u8>) -> io::Result<()> {
        match self.place {
            Place::InText { is_escaped } => {
                self.place = match byte {
                    b'"' if !is_escaped => Place::Outside,
                    _ => Place::InText { is_escaped: byte == b'\\' && !is_escaped },
                };
                out.push(byte);
            }
            _ if byte.is_ascii_whitespace() => out.push(b' '),
            Place::Before if byte == b'[' => {
                self.place = Place::Outside;
                self.depth = 1;
            }
            Place::Before => return Err(bad("a JSON array that does not begin with [")),
            Place::After => return Err(bad("something behind the end of a JSON array")),
            Place::Outside => out.push(self.structure(byte)),
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<u8>) -> io::Result<()> {
        match self.place {
            Place::After => Ok(()),
            _ => Err(bad("a JSON array that ends before its ]")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rewrite::Rewritten;
    use super::*;
    use std::io::{BufReader, Read};

    fn lines(text: &str) -> io::Result<Vec<String>> {
        let mut lines = String::new();
        let input = BufReader::with_capacity(5, text.as_bytes());
        Rewritten::new(input, ElementLines::default()).read_to_string(&mut lines)?;
        Ok(lines.lines().map(|line| line.trim().to_string()).filter(|line| !line.is_empty()).collect())
    }

    #[test]
    fn each_element_is_a_line() {
        let text = " [\n  {\"a\": [1,\n 2]},{\"b\":\"x],\\\"{\\\\\"} ,\n null ]\n";
        assert_eq!(lines(text).unwrap(), ["{\"a\": [1,  2]}", "{\"b\":\"x],\\\"{\\\\\"}", "null"]);
        assert!(lines("[]").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for text in ["", "[", "[{\"a\":1}", "[{\"a\":1}] x", "{}", "[\"x]"] {
            assert!(lines(text).is_err(), "{text}");
        }
    }
}
