//! Files encrypted at rest.
//!
//! ```text
//! | "kuduenc" | algorithm, 1 | file key, 32, encrypted with the server key | zeros, 24 | AES-CTR body |
//! ```
//!
//! The counter is the file offset / 16, the header included. Zeros were never encrypted: preallocated space. Kudu asks of
//! each stretch it reads whether all of it is zero; here every 16 bytes are asked, because stretches are longer. Where space
//! begins inside 16 bytes the few zeros in them come out as other bytes; who must know reads them alone.

use std::ops::Range;

use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256, Block};
use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::source::{SectionSource, Source};
use pilaster_core::{Error, Result, SourceRef};

use crate::messages::InstanceMetadataPb;

/// What an encrypted file begins with.
pub(super) const MAGIC: &[u8; 7] = b"kuduenc";
/// Bytes before the body of an encrypted file.
pub(crate) const HEADER_BYTES: u64 = 64;
const PART: &str = "encryption header";
/// What the default key provider does to every byte of the key: obfuscation, not secrecy.
const DEFAULT_PROVIDER_MASK: u8 = 42;

/// The key that opens the file keys of a server.
#[derive(Clone)]
pub(crate) struct ServerKey(Vec<u8>);

impl std::fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerKey(…)")
    }
}

impl ServerKey {
    /// The key of an instance whose keys come from the default provider; `None` if it has none.
    pub fn from_instance(instance: &InstanceMetadataPb) -> Option<Self> {
        let tenant = instance.tenants.first().and_then(|tenant| tenant.tenant_key.as_deref());
        let hex = tenant.or(instance.server_key.as_deref())?;
        let mut key = decode_hex(hex)?;
        key.iter_mut().for_each(|byte| *byte ^= DEFAULT_PROVIDER_MASK);
        Self::checked(key)
    }

    /// A clear key in hex, as a key management service gives it.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if it is not hex of 16, 24 or 32 bytes.
    pub fn from_hex(hex: &str) -> Result<Self> {
        decode_hex(hex)
            .and_then(Self::checked)
            .ok_or_else(|| Error::invalid("a server key is 32, 48 or 64 hexadecimal digits"))
    }

    fn checked(key: Vec<u8>) -> Option<Self> {
        matches!(key.len(), 16 | 24 | 32).then_some(Self(key))
    }

    /// Decrypts a file key.
    fn open(&self, wrapped: &[u8]) -> Option<Vec<u8>> {
        let mut key = Vec::with_capacity(wrapped.len());
        for wrapped in wrapped.chunks_exact(16) {
            let mut block = Block::clone_from_slice(wrapped);
            match self.0.len() {
                16 => Aes128::new_from_slice(&self.0).ok()?.decrypt_block(&mut block),
                24 => Aes192::new_from_slice(&self.0).ok()?.decrypt_block(&mut block),
                _ => Aes256::new_from_slice(&self.0).ok()?.decrypt_block(&mut block),
            }
            key.extend_from_slice(&block);
        }
        Some(key)
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim().as_bytes();
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then_some(())?;
    pairs.iter().map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Why there is no key where nothing is wrong.
pub(super) const NO_KEY: &str = "the instance file has no key of the default provider";

/// The key of a server, or why there is none.
pub(crate) type KeyOrWhy<'a> = std::result::Result<&'a ServerKey, &'a str>;

/// Opens a file that may be encrypted: offsets of what comes back are offsets of the file.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Unsupported`] if it is and there is no key.
pub(crate) fn decrypting(source: SourceRef, key: KeyOrWhy<'_>) -> Result<SourceRef> {
    match FileKey::read(&source, key)? {
        None => Ok(source),
        Some(key) => Ok(std::sync::Arc::new(DecryptingSource { inner: source, key })),
    }
}

/// As [`decrypting`], without the header: offset 0 is the first byte of the content.
pub(crate) fn content(source: SourceRef, key: KeyOrWhy<'_>) -> Result<SourceRef> {
    let name = source.name().to_string();
    let size = source.size();
    match FileKey::read(&source, key)? {
        None => Ok(source),
        Some(key) => {
            let whole: SourceRef = std::sync::Arc::new(DecryptingSource { inner: source, key });
            Ok(std::sync::Arc::new(SectionSource::new(name, whole, HEADER_BYTES..size)?))
        }
    }
}

enum FileKey {
    Aes128(Box<Aes128>),
    Aes192(Box<Aes192>),
    Aes256(Box<Aes256>),
}

impl FileKey {
    /// The key of an encrypted file; `None` if it is in clear.
    fn read(source: &SourceRef, key: KeyOrWhy<'_>) -> Result<Option<Self>> {
        if source.size() < HEADER_BYTES {
            return Ok(None);
        }
        let header = source.read_at(0..HEADER_BYTES)?;
        if !header.starts_with(MAGIC) {
            return Ok(None);
        }
        let key = key.map_err(|why| {
            let message = format!("encrypted at rest, and {why}; give the server key in hex");
            Error::unsupported(message).at(source.name(), 0, PART)
        })?;
        let algorithm = header.get(7).copied().unwrap_or_default();
        let bad = || Error::corrupt("algorithm 0, 1 or 2", algorithm).at(source.name(), 7, PART);
        let (wrapped, length) = match algorithm {
            0 => (16, 16),
            1 => (32, 24),
            2 => (32, 32),
            _ => return Err(bad()),
        };
        let wrapped = header.get(8..).and_then(|rest| rest.get(..wrapped)).unwrap_or_default();
        let opened = key.open(wrapped).ok_or_else(bad).at(source.name(), 8, PART)?;
        let opened = opened.get(..length).unwrap_or_default();
        let wrong = |_| bad();
        Ok(Some(match algorithm {
            0 => Self::Aes128(Box::new(Aes128::new_from_slice(opened).map_err(wrong)?)),
            1 => Self::Aes192(Box::new(Aes192::new_from_slice(opened).map_err(wrong)?)),
            _ => Self::Aes256(Box::new(Aes256::new_from_slice(opened).map_err(wrong)?)),
        }))
    }

    /// The key stream of the 16 bytes at `16 · counter`.
    fn stream(&self, counter: u64) -> Block {
        let mut block = Block::default();
        let (_, low) = block.split_at_mut(8);
        low.copy_from_slice(&counter.to_be_bytes());
        match self {
            Self::Aes128(key) => key.encrypt_block(&mut block),
            Self::Aes192(key) => key.encrypt_block(&mut block),
            Self::Aes256(key) => key.encrypt_block(&mut block),
        }
        block
    }
}

/// An encrypted file, decrypted as it is read.
struct DecryptingSource {
    inner: SourceRef,
    key: FileKey,
}

impl std::fmt::Debug for DecryptingSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecryptingSource").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Source for DecryptingSource {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        let stored = self.inner.read_at(range.clone())?;
        if is_zero(&stored) {
            return Ok(stored);
        }
        let mut clear = stored.to_vec();
        let lead = usize::try_from(range.start % 16).unwrap_or_default();
        let mut counter = range.start / 16;
        let first = clear.len().min(16usize.saturating_sub(lead) % 16);
        let (head, body) = clear.split_at_mut(first);
        if !head.is_empty() {
            // A few zeros are chance, unless more follow.
            if !(is_zero(head) && body.get(..16).is_some_and(is_zero)) {
                xor(head, self.key.stream(counter).get(lead..).unwrap_or_default());
            }
            counter = counter.saturating_add(1);
        }
        let mut is_space = false;
        for block in body.chunks_mut(16) {
            is_space = is_zero(block) && (block.len() == 16 || is_space);
            if !is_space {
                xor(block, &self.key.stream(counter));
            }
            counter = counter.saturating_add(1);
        }
        Ok(clear.into())
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn xor(bytes: &mut [u8], stream: &[u8]) {
    for (byte, key) in bytes.iter_mut().zip(stream) {
        *byte ^= key;
    }
}
