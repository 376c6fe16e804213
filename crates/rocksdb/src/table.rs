//! A table (`.sst`): blocks of entries in order, an index of them, and what the table says of itself.
//!
//! ```text
//! file:          data blocks | meta blocks: properties, range deletes, dictionary, filters | index | list of meta blocks | footer
//!                the index may stand among the meta blocks; filters only save work to those who look for one key
//! list:          name of a meta block -> handle
//! properties:    name -> number or text
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, SourceRef};
use pilaster_encoding::varint;

use crate::block::BlockCursor;
use crate::checksum::context;
use crate::content::decompress;
use crate::edit::TableFile;
use crate::footer::{Footer, Handle, MOST_BYTES};
use crate::key::{self, MAX_SEQUENCE, Place, RANGE_DELETE, RangeDelete};

const PART: &str = "rocksdb table";
const PROPERTIES: &str = "rocksdb.properties";
const RANGE_DELETES: &str = "rocksdb.range_del";
const DICTIONARY: &str = "rocksdb.compression_dict";
const INDEX: &str = "rocksdb.index";
const GLOBAL_SEQUENCE: &str = "rocksdb.external_sst_file.global_seqno";
/// What the codec names of tables begin with whose codecs are RocksDB's own.
const OWN_CODECS: &[u8] = b"BuiltinV2;";
const NO_CODECS: &[u8] = b";";

/// How the index of a table is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct IndexShape {
    /// Whether its blocks point to other blocks of the index.
    pub is_of_two_levels: bool,
    /// Whether keys have no sequence number.
    pub has_user_keys: bool,
    /// Whether a value says how much longer a block is than the one before it.
    pub has_distances: bool,
    /// Whether values also have the first key of their block.
    pub has_first_keys: bool,
}

/// An open table.
#[derive(Debug)]
pub(crate) struct Table {
    source: SourceRef,
    limits: Limits,
    footer: Footer,
    pub index: Handle,
    pub shape: IndexShape,
    dictionary: Bytes,
    /// Of tables that were made elsewhere: the number of all entries.
    global_sequence: Option<u64>,
    /// How many entries it says it has, and how many of them are range deletes.
    pub count: Option<(u64, u64)>,
    range_deletes: Option<Handle>,
    /// Number and name, as far as the table says them.
    pub family: Option<(u32, Vec<u8>)>,
    pub comparator: Option<Vec<u8>>,
}

impl Table {
    /// Opens a table; `file` is what the manifest says of it, if there is one.
    pub fn open(source: SourceRef, file: Option<&TableFile>, limits: &Limits) -> Result<Arc<Self>> {
        let (name, size) = (source.name().to_string(), source.size());
        if let Some(file) = file
            && file.bytes != size
        {
            let found = format!("a file of {size} bytes");
            return Err(Error::corrupt(format!("{} bytes, as the manifest says", file.bytes), found)
                .at(&name, size, PART));
        }
        let start = size.saturating_sub(MOST_BYTES as u64);
        let tail = source.read_at(start..size)?;
        let footer = Footer::parse(&tail, size).at(&name, start, "rocksdb table footer")?;
        let mut table = Self {
            source,
            limits: limits.clone(),
            index: footer.index.unwrap_or(footer.metas),
            footer,
            shape: IndexShape::default(),
            dictionary: Bytes::new(),
            global_sequence: None,
            count: None,
            range_deletes: None,
            family: None,
            comparator: None,
        };
        table.read_metas(file).at(&name, start, PART)?;
        Ok(Arc::new(table))
    }

    fn read_metas(&mut self, file: Option<&TableFile>) -> Result<()> {
        let metas = self.read_plain(self.footer.metas)?;
        let metas = self.pairs(metas)?;
        let handle =
            |name: &str| metas.get(name.as_bytes()).map(|(bytes, _)| Handle::read(bytes, &mut 0)).transpose();
        self.range_deletes = handle(RANGE_DELETES)?;
        if let Some(index) = handle(INDEX)?.or(self.footer.index) {
            self.index = index;
        } else {
            return Err(Error::corrupt(format!("a meta block \"{INDEX}\""), "none of that name"));
        }
        match handle(PROPERTIES)? {
            Some(properties) => {
                let properties = self.read_properties(properties)?;
                self.take_properties(&properties, file)?;
            }
            // Tables that are older than properties have none of what they can say.
            None if self.footer.version == 0 => {}
            None => {
                return Err(Error::corrupt(format!("a meta block \"{PROPERTIES}\""), "none of that name"));
            }
        }
        if let Some(dictionary) = handle(DICTIONARY)? {
            self.dictionary = self.read_plain(dictionary)?;
        }
        Ok(())
    }

    /// All keys and values of a meta block, and where in it a value stands.
    fn pairs(&self, block: Bytes) -> Result<BTreeMap<Vec<u8>, (Bytes, usize)>> {
        let mut cursor = BlockCursor::new(block)?;
        let mut pairs = BTreeMap::new();
        while cursor.advance()? {
            pairs.insert(cursor.key().to_vec(), (cursor.value(), cursor.value_range().start));
        }
        Ok(pairs)
    }

    /// RocksDB writes the sequence number of a table that was made elsewhere over a 0, and leaves the checksum as it was.
    fn read_properties(&self, handle: Handle) -> Result<BTreeMap<Vec<u8>, (Bytes, usize)>> {
        let error = match self.read_plain(handle) {
            Ok(block) => return self.pairs(block),
            Err(error) => error,
        };
        let Ok(stored) = self.stored(handle) else { return Err(error) };
        let mut stored = stored.to_vec();
        let length = usize::try_from(handle.bytes).unwrap_or(usize::MAX);
        let content = Bytes::copy_from_slice(stored.get(..length).unwrap_or_default());
        let Ok(pairs) = self.pairs(content) else { return Err(error) };
        let Some((value, at)) = pairs.get(GLOBAL_SEQUENCE.as_bytes()) else { return Err(error) };
        stored.iter_mut().skip(*at).take(value.len()).for_each(|byte| *byte = 0);
        match self.check(handle, &stored) {
            Ok((0, _)) => Ok(pairs),
            _ => Err(error),
        }
    }

    fn take_properties(
        &mut self,
        properties: &BTreeMap<Vec<u8>, (Bytes, usize)>,
        file: Option<&TableFile>,
    ) -> Result<()> {
        let text = |name: &str| properties.get(name.as_bytes()).map(|(value, _)| value);
        let number = |name: &str| {
            let value = text(name)?;
            varint::read_u64(value, &mut 0).ok()
        };
        let fixed = |name: &str| text(name)?.first_chunk().map(|four| u32::from_le_bytes(*four));
        let is_set = |name: &str| number(name).is_some_and(|value| value != 0);
        let kind = fixed("rocksdb.block.based.table.index.type").unwrap_or(0);
        if kind > 3 {
            return Err(Error::unsupported(format!("an index of type {kind}")));
        }
        if is_set("rocksdb.udi.is.primary.index") {
            return Err(Error::unsupported("an index of the program that wrote the database"));
        }
        self.shape = IndexShape {
            is_of_two_levels: kind == 2,
            has_first_keys: kind == 3,
            has_user_keys: is_set("rocksdb.index.key.is.user.key"),
            has_distances: is_set("rocksdb.index.value.is.delta.encoded"),
        };
        if let Some(codecs) = text("rocksdb.compression").filter(|_| self.footer.version >= 7)
            && !codecs.starts_with(OWN_CODECS)
            && !codecs.starts_with(NO_CODECS)
        {
            return Err(Error::unsupported(format!(
                "codecs of the program that wrote the database: \"{}\"",
                codecs.escape_ascii()
            )));
        }
        self.count = number("rocksdb.num.entries")
            .map(|all| (all, number("rocksdb.num.range-deletions").unwrap_or(0)));
        let family = number("rocksdb.column.family.id").and_then(|id| u32::try_from(id).ok());
        self.family = family.zip(text("rocksdb.column.family.name").map(|name| name.to_vec()));
        self.comparator = text("rocksdb.comparator").map(|name| name.to_vec());
        self.global_sequence = match fixed("rocksdb.external_sst_file.version") {
            Some(2..) => {
                let own = text(GLOBAL_SEQUENCE).and_then(|value| value.first_chunk());
                let own = own.map_or(0, |eight| u64::from_le_bytes(*eight));
                let known = file.and_then(|file| file.sequences).map(|(_, largest)| largest);
                match known {
                    Some(known) if own != 0 && own != known => {
                        let found = format!("{own} in the table");
                        return Err(Error::corrupt(
                            format!("the sequence number {known}, as the manifest says"),
                            found,
                        ));
                    }
                    known => Some(known.unwrap_or(own).min(MAX_SEQUENCE)),
                }
            }
            _ => None,
        };
        Ok(())
    }

    /// A block of entries, decompressed.
    pub fn read_data(&self, handle: Handle) -> Result<Bytes> {
        self.read_block(handle, &self.dictionary)
    }

    /// A block of the index or a meta block: these share no dictionary.
    pub fn read_plain(&self, handle: Handle) -> Result<Bytes> {
        self.read_block(handle, &[])
    }

    fn read_block(&self, handle: Handle, dictionary: &[u8]) -> Result<Bytes> {
        let (name, offset) = (self.source.name(), handle.offset);
        let stored = self.stored(handle)?;
        let (codec, length) = self.check(handle, &stored).at(name, offset, "rocksdb table block")?;
        decompress(codec, stored.slice(..length), self.footer.version, dictionary, &self.limits).at(
            name,
            offset,
            "rocksdb table block",
        )
    }

    /// What stands in the file, with codec and checksum.
    fn stored(&self, handle: Handle) -> Result<Bytes> {
        let (name, offset) = (self.source.name(), handle.offset);
        self.limits.block(handle.bytes).at(name, offset, PART)?;
        if handle.end() > self.footer.offset {
            let found = format!("a block of {} bytes from byte {offset} on", handle.bytes);
            let expected = format!("blocks before the footer at {}", self.footer.offset);
            return Err(Error::corrupt(expected, found).at(name, offset, PART));
        }
        self.source.read_at(offset..handle.end())
    }

    /// The codec and the length of the content.
    fn check(&self, handle: Handle, stored: &[u8]) -> Result<(u8, usize)> {
        let short = || Error::corrupt("a block with its checksum", format!("{} bytes", stored.len()));
        let (checked, checksum) = stored.split_last_chunk::<4>().ok_or_else(short)?;
        let (codec, content) = checked.split_last().ok_or_else(short)?;
        let context = context(self.footer.base, handle.offset);
        self.footer.checksum.check(checked, u32::from_le_bytes(*checksum), context)?;
        Ok((*codec, content.len()))
    }

    /// Ties an error of a block to its place.
    pub fn place<T>(&self, handle: Handle, result: Result<T>) -> Result<T> {
        result.at(self.source.name(), handle.offset, "rocksdb table block")
    }

    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// The tag of an entry: tables that were made elsewhere have all their entries at one sequence number.
    pub fn tag(&self, own: u64) -> u64 {
        self.global_sequence.map_or(own, |sequence| sequence << 8 | own & 0xff)
    }

    /// Its range deletes, over all keys.
    pub fn range_deletes(&self) -> Result<Vec<RangeDelete>> {
        let Some(handle) = self.range_deletes else { return Ok(Vec::new()) };
        let mut deletes = Vec::new();
        let block = self.read_plain(handle)?;
        let mut read = || {
            let mut cursor = BlockCursor::new(block.clone())?;
            while cursor.advance()? {
                let (start, tag) = key::split(cursor.key())?;
                let tag = self.tag(tag);
                if tag & 0xff != u64::from(RANGE_DELETE) {
                    return Err(Error::corrupt(format!("kind {RANGE_DELETE}"), tag & 0xff));
                }
                deletes.push(RangeDelete {
                    start: Place::before(start),
                    end: Place::before(&cursor.value()),
                    sequence: key::sequence(tag),
                });
            }
            Ok(())
        };
        self.place(handle, read())?;
        Ok(deletes)
    }
}
