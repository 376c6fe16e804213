"""Two real RocksDBs behind one face: a new one from PyPI (rocksdict), and the C library of the system, if it has one."""

import ctypes
import ctypes.util
from pathlib import Path

CODECS = ["none", "snappy", "zlib", "lz4", "lz4hc", "zstd"]
CHECKSUMS = ["no_checksum", "crc32c", "xxhash", "xxhash64", "xxh3"]
INDEXES = ["binary_search", "hash_search", "two_level_index_search"]


class Settings:
    """What a database is made with: drawn at random, or said."""

    def __init__(self, random, engine, **said):
        pick = random.choice
        self.format_version = pick(engine.FORMAT_VERSIONS)
        self.codec = pick(CODECS)
        self.bottom_codec = pick([None, *CODECS])
        self.dictionary_bytes = pick([0, 0, 1024, 8192])
        self.checksum = pick([1, 1, 2, 3, 4])
        self.index = pick(INDEXES)
        self.hash_in_blocks = pick([False, False, True])
        self.block_bytes = pick([64, 200, 1000, 4096])
        self.restart_interval = pick([1, 2, 16])
        self.index_restart_interval = pick([1, 1, 4])
        self.metadata_block_bytes = pick([64, 500, 4096])
        self.bloom = pick([False, True])
        self.write_buffer_bytes = pick([64 << 10, 64 << 20])
        self.table_bytes = pick([2 << 10, 20 << 10, 64 << 20])
        self.level_bytes = pick([10 << 10, 256 << 20])
        self.universal = pick([False, False, False, True])
        self.reuse_logs = pick([0, 0, 2])
        self.compressed_log = pick([False, False, True])
        self.manifest_bytes = pick([1, 200, 1 << 30])
        self.auto_compaction = pick([False, True])
        for name, value in said.items():
            if not hasattr(self, name):
                raise KeyError(name)
            setattr(self, name, value)
        if self.index == "hash_search":
            self.index_restart_interval = 1

    def __repr__(self):
        return " ".join(f"{name}={value}" for name, value in vars(self).items())


class Newest:
    """The RocksDB that rocksdict brings."""

    NAME = "rocksdict"
    FORMAT_VERSIONS = [2, 3, 4, 5, 6, 6, 6]
    HAS_SINGLE_DELETE = False

    def __init__(self, folder, settings, families=("default",)):
        import rocksdict

        self.module = rocksdict
        self.options = self.make_options(settings)
        self.settings = settings
        self.database = rocksdict.Rdict(
            str(folder),
            self.options,
            column_families={name: self.make_options(settings) for name in families},
        )
        self.families = {name: self.database.get_column_family(name) for name in families}
        self.kept = []

    def make_options(self, settings):
        module = self.module
        options = module.Options(raw_mode=True)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        table = module.BlockBasedOptions()
        table.set_format_version(settings.format_version)
        table.set_block_size(settings.block_bytes)
        table.set_block_restart_interval(settings.restart_interval)
        table.set_index_block_restart_interval(settings.index_restart_interval)
        table.set_metadata_block_size(settings.metadata_block_bytes)
        table.set_checksum_type(getattr(module.ChecksumType, CHECKSUMS[settings.checksum])())
        table.set_index_type(getattr(module.BlockBasedIndexType, settings.index)())
        if settings.hash_in_blocks:
            table.set_data_block_index_type(module.DataBlockIndexType.binary_and_hash())
        if settings.bloom:
            table.set_bloom_filter(10, False)
        options.set_block_based_table_factory(table)
        if settings.index == "hash_search":
            options.set_prefix_extractor(module.SliceTransform.create_fixed_prefix(1))
        codec = lambda name: getattr(module.DBCompressionType, name)()
        options.set_compression_type(codec(settings.codec))
        if settings.bottom_codec:
            options.set_bottommost_compression_type(codec(settings.bottom_codec))
            options.set_bottommost_compression_options(-14, 3, 0, settings.dictionary_bytes, True)
        options.set_compression_options(-14, 3, 0, settings.dictionary_bytes)
        options.set_write_buffer_size(settings.write_buffer_bytes)
        options.set_target_file_size_base(settings.table_bytes)
        options.set_max_bytes_for_level_base(settings.level_bytes)
        options.set_recycle_log_file_num(settings.reuse_logs)
        options.set_max_manifest_file_size(settings.manifest_bytes)
        options.set_disable_auto_compactions(not settings.auto_compaction)
        if settings.universal:
            options.set_compaction_style(module.DBCompactionStyle.universal())
        return options

    def put(self, family, key, value):
        self.families[family].put(key, value)

    def delete(self, family, key):
        self.families[family].delete(key)

    def delete_range(self, family, start, end):
        self.families[family].delete_range(start, end)

    def batch(self, changes):
        """A list of (family, key, value or None)."""
        batch = self.module.WriteBatch(raw_mode=True)
        for family, key, value in changes:
            handle = self.database.get_column_family_handle(family)
            if value is None:
                batch.delete(key, handle)
            else:
                batch.put(key, value, handle)
        self.database.write(batch)

    def flush(self, family):
        self.families[family].flush()

    def compact(self, family, start=None, end=None):
        self.families[family].compact_range(start, end)

    def add_family(self, name):
        self.families[name] = self.database.create_column_family(name, self.make_options(self.settings))

    def drop_family(self, name):
        self.families.pop(name).close()
        self.database.drop_column_family(name)

    def ingest(self, family, folder, pairs):
        path = str(folder / "made-elsewhere.sst")
        writer = self.module.SstFileWriter(self.make_options(self.settings))
        writer.open(path)
        for key, value in sorted(pairs.items()):
            writer[key] = value
        writer.finish()
        self.families[family].ingest_external_file([path])

    def hold_snapshot(self):
        self.kept.append(self.database.snapshot())

    def release_snapshots(self):
        self.kept.clear()

    def pairs(self, family):
        # A prefix extractor must not hide keys.
        read = self.module.ReadOptions()
        read.set_total_order_seek(True)
        return dict(self.families[family].items(read_opt=read))

    def close(self):
        self.kept.clear()
        for family in self.families.values():
            family.close()
        self.database.close()


class System:
    """The C library of the system."""

    NAME = "librocksdb"
    FORMAT_VERSIONS = [0, 1, 2, 3, 4, 5]
    HAS_SINGLE_DELETE = True
    library = None

    @classmethod
    def load(cls):
        found = ctypes.util.find_library("rocksdb")
        candidates = [found] if found else []
        candidates += sorted(map(str, Path("/usr/lib").glob("*/librocksdb.so*")))
        for name in candidates:
            try:
                cls.library = ctypes.CDLL(name)
                return True
            except OSError:
                continue
        return False

    def call(self, name, *arguments, returns=ctypes.c_void_p):
        function = getattr(self.library, "rocksdb_" + name)
        function.restype = returns
        return function(*map(self.plain, arguments))

    @staticmethod
    def plain(argument):
        if isinstance(argument, bool):
            return ctypes.c_ubyte(argument)
        if isinstance(argument, int):
            return ctypes.c_size_t(argument)
        return argument

    def checked(self, name, *arguments, returns=ctypes.c_void_p):
        error = ctypes.c_char_p()
        result = self.call(name, *arguments, ctypes.byref(error), returns=returns)
        if error.value:
            raise RuntimeError(f"{name}: {error.value.decode(errors='replace')}")
        return result

    def __init__(self, folder, settings, families=("default",), merges=False):
        self.settings = settings
        self.merges = merges
        options = self.make_options(settings)
        names = [name.encode() for name in families]
        handles = (ctypes.c_void_p * len(names))()
        self.database = ctypes.c_void_p(
            self.checked(
                "open_column_families",
                options,
                str(folder).encode(),
                ctypes.c_int(len(names)),
                (ctypes.c_char_p * len(names))(*names),
                (ctypes.c_void_p * len(names))(*[options.value] * len(names)),
                handles,
            )
        )
        self.families = {name: ctypes.c_void_p(handle) for name, handle in zip(families, handles)}
        self.write = ctypes.c_void_p(self.call("writeoptions_create"))
        self.read = ctypes.c_void_p(self.call("readoptions_create"))
        self.call("readoptions_set_total_order_seek", self.read, True)
        self.flushing = ctypes.c_void_p(self.call("flushoptions_create"))
        self.snapshots = []

    def make_options(self, settings):
        make = lambda name: ctypes.c_void_p(self.call(name))
        options, table = make("options_create"), make("block_based_options_create")
        of_table = lambda name, value: self.call("block_based_options_set_" + name, table, value)
        of_table("format_version", ctypes.c_int(settings.format_version))
        of_table("block_size", settings.block_bytes)
        of_table("block_restart_interval", ctypes.c_int(settings.restart_interval))
        of_table("index_block_restart_interval", ctypes.c_int(settings.index_restart_interval))
        of_table("metadata_block_size", ctypes.c_uint64(settings.metadata_block_bytes))
        # Before version 1 there was nowhere to say another one.
        of_table("checksum", ctypes.c_char(settings.checksum if settings.format_version else 1))
        of_table("index_type", ctypes.c_int(INDEXES.index(settings.index)))
        of_table("data_block_index_type", ctypes.c_int(int(settings.hash_in_blocks)))
        if settings.bloom:
            make_filter = self.library.rocksdb_filterpolicy_create_bloom_full
            make_filter.restype, make_filter.argtypes = ctypes.c_void_p, [ctypes.c_double]
            of_table("filter_policy", ctypes.c_void_p(make_filter(10.0)))
        set_option = lambda name, *values: self.call("options_set_" + name, options, *values)
        set_option("block_based_table_factory", table)
        if settings.index == "hash_search":
            prefix = ctypes.c_void_p(self.call("slicetransform_create_fixed_prefix", 1))
            set_option("prefix_extractor", prefix)
        number = {"none": 0, "snappy": 1, "zlib": 2, "lz4": 4, "lz4hc": 5, "zstd": 7}
        integers = lambda *values: map(ctypes.c_int, values)
        set_option("create_if_missing", True)
        set_option("create_missing_column_families", True)
        set_option("compression", *integers(number[settings.codec]))
        set_option("compression_options", *integers(-14, 3, 0, settings.dictionary_bytes))
        if settings.bottom_codec:
            set_option("bottommost_compression", *integers(number[settings.bottom_codec]))
            set_option("bottommost_compression_options", *integers(-14, 3, 0, settings.dictionary_bytes), True)
        set_option("write_buffer_size", settings.write_buffer_bytes)
        set_option("target_file_size_base", ctypes.c_uint64(settings.table_bytes))
        set_option("max_bytes_for_level_base", ctypes.c_uint64(settings.level_bytes))
        set_option("recycle_log_file_num", settings.reuse_logs)
        set_option("max_manifest_file_size", settings.manifest_bytes)
        set_option("disable_auto_compactions", *integers(int(not settings.auto_compaction)))
        if settings.universal:
            set_option("compaction_style", *integers(1))
        if settings.compressed_log:
            set_option("wal_compression", *integers(7))
        if self.merges:
            self.call("options_set_uint64add_merge_operator", options)
        return options

    def put(self, family, key, value):
        self.checked("put_cf", self.database, self.write, self.families[family], key, len(key), value, len(value))

    def delete(self, family, key):
        self.checked("delete_cf", self.database, self.write, self.families[family], key, len(key))

    def single_delete(self, family, key):
        self.checked("singledelete_cf", self.database, self.write, self.families[family], key, len(key))

    def merge(self, family, key, value):
        self.checked("merge_cf", self.database, self.write, self.families[family], key, len(key), value, len(value))

    def delete_range(self, family, start, end):
        self.checked(
            "delete_range_cf", self.database, self.write, self.families[family], start, len(start), end, len(end)
        )

    def batch(self, changes):
        batch = ctypes.c_void_p(self.call("writebatch_create"))
        self.call("writebatch_put_log_data", batch, b"a remark", 8)
        for family, key, value in changes:
            handle = self.families[family]
            if value is None:
                self.call("writebatch_delete_cf", batch, handle, key, len(key))
            else:
                self.call("writebatch_put_cf", batch, handle, key, len(key), value, len(value))
        self.checked("write", self.database, self.write, batch)
        self.call("writebatch_destroy", batch)

    def flush(self, family):
        self.checked("flush_cf", self.database, self.flushing, self.families[family])

    def compact(self, family, start=None, end=None):
        bounds = [part for key in (start, end) for part in (key, len(key or b""))]
        self.call("compact_range_cf", self.database, self.families[family], *bounds)

    def add_family(self, name):
        options = self.make_options(self.settings)
        handle = self.checked("create_column_family", self.database, options, name.encode())
        self.families[name] = ctypes.c_void_p(handle)

    def drop_family(self, name):
        handle = self.families.pop(name)
        self.checked("drop_column_family", self.database, handle)
        self.call("column_family_handle_destroy", handle)

    def ingest(self, family, folder, pairs):
        path = str(folder / "made-elsewhere.sst").encode()
        environment = ctypes.c_void_p(self.call("envoptions_create"))
        writer = ctypes.c_void_p(self.call("sstfilewriter_create", environment, self.make_options(self.settings)))
        self.checked("sstfilewriter_open", writer, path)
        for key, value in sorted(pairs.items()):
            self.checked("sstfilewriter_put", writer, key, len(key), value, len(value))
        self.checked("sstfilewriter_finish", writer)
        options = ctypes.c_void_p(self.call("ingestexternalfileoptions_create"))
        paths = (ctypes.c_char_p * 1)(path)
        self.checked("ingest_external_file_cf", self.database, self.families[family], paths, 1, options)
        self.call("sstfilewriter_destroy", writer)

    def hold_snapshot(self):
        self.snapshots.append(ctypes.c_void_p(self.call("create_snapshot", self.database)))

    def release_snapshots(self):
        while self.snapshots:
            self.call("release_snapshot", self.database, self.snapshots.pop())

    def pairs(self, family):
        iterator = ctypes.c_void_p(self.call("create_iterator_cf", self.database, self.read, self.families[family]))
        pairs, length = {}, ctypes.c_size_t()
        self.call("iter_seek_to_first", iterator)
        while self.call("iter_valid", iterator, returns=ctypes.c_ubyte):
            texts = []
            for part in ("iter_key", "iter_value"):
                start = self.call(part, iterator, ctypes.byref(length))
                texts.append(ctypes.string_at(start, length.value))
            pairs[texts[0]] = texts[1]
            self.call("iter_next", iterator)
        self.checked("iter_get_error", iterator)
        self.call("iter_destroy", iterator)
        return pairs

    def close(self):
        self.release_snapshots()
        for handle in self.families.values():
            self.call("column_family_handle_destroy", handle)
        self.call("close", self.database)
