//! Empty fields told apart: without quotes one is null, with quotes it is an empty text.
//!
//! The parser behind this sees the same nothing for both. So nulls are marked on their way to it: every empty field without
//! quotes, and of columns that are no text also those with quotes, since many programs put everything in quotes.

use std::io;

use super::rewrite::Rewrite;

/// What a null is on its way: characters that no text has, because Unicode keeps them for such use.
pub(super) const NULL: &str = "\u{fdd0}\u{fdd1}\u{fdd0}";

/// Marks the nulls of CSV with a header line.
#[derive(Debug)]
pub(super) struct MarkNulls {
    delimiter: u8,
    is_text: Vec<bool>,
    state: State,
    /// Number of the field in its record.
    field: usize,
    is_header: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first byte of a field.
    Start,
    /// In a field, outside of quotes.
    Bare,
    /// Inside of quotes.
    Quoted { is_empty: bool },
    /// After a quote inside of quotes: their end, or the first half of a quote that is meant.
    Quote { is_empty: bool },
}

impl MarkNulls {
    /// For a file of these columns.
    pub fn new(delimiter: u8, is_text: Vec<bool>) -> Self {
        Self { delimiter, is_text, state: State::Start, field: 0, is_header: true }
    }

    fn mark(&self, out: &mut Vec<u8>) {
        if !self.is_header {
            out.extend_from_slice(NULL.as_bytes());
        }
    }

    /// Ends the quotes that were open.
    fn close(&mut self, is_empty: bool, out: &mut Vec<u8>) {
        if is_empty && !self.is_text.get(self.field).copied().unwrap_or(true) {
            self.mark(out);
        }
        out.push(b'"');
        self.state = State::Bare;
    }

    fn end_field(&mut self, byte: u8, out: &mut Vec<u8>) {
        let is_line_end = byte != self.delimiter;
        let is_empty = self.state == State::Start;
        // A line without anything is no record.
        let is_bare_line = is_empty && is_line_end && self.field == 0;
        if is_empty && !is_bare_line {
            self.mark(out);
        }
        out.push(byte);
        self.state = State::Start;
        if is_line_end {
            self.is_header = self.is_header && is_bare_line;
            self.field = 0;
        } else {
            self.field = self.field.saturating_add(1);
        }
    }
}

impl Rewrite for MarkNulls {
    fn take(&mut self, byte: u8, out: &mut Vec<u8>) -> io::Result<()> {
        if let State::Quote { is_empty } = self.state {
            if byte == b'"' {
                out.extend_from_slice(b"\"\"");
                self.state = State::Quoted { is_empty: false };
                return Ok(());
            }
            self.close(is_empty, out);
        }
        match self.state {
            State::Quoted { is_empty } if byte == b'"' => self.state = State::Quote { is_empty },
            State::Quoted { .. } => {
                out.push(byte);
                self.state = State::Quoted { is_empty: false };
            }
            State::Start if byte == b'"' => {
                out.push(byte);
                self.state = State::Quoted { is_empty: true };
            }
            _ if byte == self.delimiter || matches!(byte, b'\n' | b'\r') => self.end_field(byte, out),
            _ => {
                out.push(byte);
                self.state = State::Bare;
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match self.state {
            State::Quote { is_empty } => self.close(is_empty, out),
            State::Start if self.field > 0 => self.mark(out),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::rewrite::Rewritten;
    use super::*;
    use std::io::{BufReader, Read};

    #[test]
    fn empty_fields_are_null_unless_a_text_has_quotes() {
        for (text, expected) in [
            ("a,b\n1,x\n,\n\"\",\"\"\n", "a,b\n1,x\nNULL,NULL\n\"NULL\",\"\"\n"),
            ("a,b\r\n,x\r\n1,\r\n", "a,b\r\nNULL,x\r\n1,NULL\r\n"),
            ("a,b\n1,", "a,b\n1,NULL"),
            ("a,b\n1,\"\"", "a,b\n1,\"\""),
            // Quotes that are meant, line ends and delimiters inside of quotes.
            ("a,b\n1,\"\"\"\"\n2,\",\n,\"\n", "a,b\n1,\"\"\"\"\n2,\",\n,\"\n"),
            // Nothing is no record, before the header and after it.
            ("\n\r\na,b\n\n1,x\n\n", "\n\r\na,b\n\n1,x\n\n"),
            (",b\n,\n", ",b\nNULL,NULL\n"),
        ] {
            let input = BufReader::with_capacity(3, text.as_bytes());
            let mut marked = String::new();
            let mut read = Rewritten::new(input, MarkNulls::new(b',', vec![false, true]));
            read.read_to_string(&mut marked).unwrap();
            assert_eq!(marked.replace(NULL, "NULL"), expected, "{text:?}");
        }
    }
}
