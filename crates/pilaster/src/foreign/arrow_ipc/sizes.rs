//! What a message unpacks to, told by its buffers before they are: each begins with its length unpacked, -1 if it is stored as it is.

use pilaster_core::{Error, ErrorKind, Limits, Result};

/// Record batches are decoded whole. One that is larger than a scan may hold is read if it is large in the file too: writers make batches
/// of any number of rows, and compress them to a fraction of their size, but not to so small a one.
const MOST_TIMES: u64 = 32;

/// The bytes of a message's buffers when they are unpacked, of which the body is behind `head` bytes of metadata.
fn unpacked_bytes(message: &[u8], head: usize) -> u64 {
    let (metadata, body) = message.split_at_checked(head).unwrap_or((message, &[]));
    // The mark of newer writers, and the length of what follows.
    let metadata = metadata.strip_prefix(&[0xff; 4]).unwrap_or(metadata).get(4..).unwrap_or_default();
    let Ok(message) = arrow_ipc::root_as_message(metadata) else { return 0 };
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let Some(batch) = message.header_as_record_batch().or(dictionary) else { return 0 };
    let (Some(_), Some(buffers)) = (batch.compression(), batch.buffers()) else { return 0 };
    let buffers = buffers.iter().map(|buffer| {
        let start = usize::try_from(buffer.offset()).ok();
        let length = start.and_then(|start| body.get(start..)?.first_chunk::<8>());
        match length.map(|length| u64::try_from(i64::from_le_bytes(*length))) {
            Some(Ok(unpacked)) if buffer.length() > 0 => unpacked,
            _ => u64::try_from(buffer.length()).unwrap_or(0),
        }
    });
    buffers.fold(0, u64::saturating_add)
}

/// Counts what the dictionaries of a scan take, which stay, and refuses what is too large.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    words: u64,
    stored_words: u64,
}

impl Unpacked {
    /// Adds a dictionary.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`]
    pub(super) fn add_dictionary(&mut self, message: &[u8], head: usize, limits: &Limits) -> Result<()> {
        self.stored_words = self.stored_words.saturating_add(message.len() as u64);
        self.words = self.words.saturating_add(unpacked_bytes(message, head));
        check(self.words, self.stored_words, limits)
    }

    /// Checks a record batch.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`]
    pub(super) fn check_batch(&self, message: &[u8], head: usize, limits: &Limits) -> Result<()> {
        check(unpacked_bytes(message, head), message.len() as u64, limits)
    }
}

fn check(found: u64, stored: u64, limits: &Limits) -> Result<()> {
    let max = limits.scan_bytes.max(stored.saturating_mul(MOST_TIMES));
    if found <= max {
        return Ok(());
    }
    Err(Error::new(ErrorKind::LimitExceeded { limit: "scan_bytes", max, found }))
}
