"""The databases of `testdata/rocksdb`: small ones, one for each thing that a reader can get wrong, with their pairs."""

import random
import shutil

from .engines import Newest, Settings, System

PLAIN = dict(
    codec="none",
    bottom_codec=None,
    dictionary_bytes=0,
    checksum=1,
    index="binary_search",
    hash_in_blocks=False,
    block_bytes=200,
    restart_interval=4,
    index_restart_interval=1,
    metadata_block_bytes=64,
    bloom=False,
    write_buffer_bytes=64 << 20,
    table_bytes=64 << 20,
    level_bytes=256 << 20,
    universal=False,
    reuse_logs=0,
    compressed_log=False,
    manifest_bytes=1 << 30,
    auto_compaction=False,
)

# Name, engine, what differs from a plain table.
TABLES = [
    ("v0", System, dict(format_version=0, codec="lz4")),
    ("v1-zlib", System, dict(format_version=1, codec="zlib", checksum=2)),
    ("v2-snappy", System, dict(format_version=2, codec="snappy")),
    ("v2-zlib", System, dict(format_version=2, codec="zlib")),
    ("v3-xxhash64", System, dict(format_version=3, checksum=3)),
    ("v4-lz4", System, dict(format_version=4, codec="lz4", index_restart_interval=4)),
    ("v5-zstd-xxh3", System, dict(format_version=5, codec="zstd", checksum=4, hash_in_blocks=True)),
    ("v5-hash-index", System, dict(format_version=5, index="hash_search", bloom=True)),
    ("v5-two-levels", System, dict(format_version=5, index="two_level_index_search", index_restart_interval=4)),
    ("v5-zstd-dictionary", System, dict(format_version=5, codec="zstd", dictionary_bytes=1024)),
    ("v5-lz4-dictionary", System, dict(format_version=5, codec="lz4", dictionary_bytes=1024)),
    ("v5-zlib-dictionary", System, dict(format_version=5, codec="zlib", dictionary_bytes=1024)),
    ("v6", Newest, dict(format_version=6)),
    ("v6-xxh3-two-levels", Newest, dict(format_version=6, checksum=4, index="two_level_index_search", codec="zstd")),
    ("v6-no-checksum", Newest, dict(format_version=6, checksum=0)),
]


def fill(engine, family="default", count=60, salt=""):
    for number in range(count):
        engine.put(family, b"key%04d" % number, f"value {number}{salt} ".encode() * 3)


def make(target):
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    rng = random.Random(1)

    def case(name, engine_class, changes, write, families=("default",), close=True, refused=None):
        folder = target / name / "database"
        folder.parent.mkdir()
        settings = Settings(rng, engine_class, **{"format_version": 5, **PLAIN, **changes})
        engine = engine_class(folder, settings, families)
        write(engine, folder)
        pairs = {family: engine.pairs(family) for family in engine.families}
        if not close:
            copy = target / name / "copy"
            shutil.copytree(folder, copy)
        engine.close()
        if not close:
            shutil.rmtree(folder)
            copy.rename(folder)
        for path in folder.iterdir():
            # What no reader needs, and what says where and when it was made.
            if not (path.suffix in (".sst", ".log") or path.name == "CURRENT" or path.name.startswith("MANIFEST")):
                path.unlink()
        with open(target / name / "pairs", "w") as file:
            if refused:
                file.write(f"refused {refused}\n")
                return
            for family, known in sorted(pairs.items()):
                file.write(f"family {family}\n")
                file.writelines(f"{key.hex()} {value.hex()}\n" for key, value in sorted(known.items()))

    def one_table(engine, _):
        fill(engine)
        engine.flush("default")

    for name, engine, changes in TABLES:
        # A dictionary is only made for the lowest level.
        bottom = dict(bottom_codec=changes["codec"]) if changes.get("dictionary_bytes") else {}

        def write(engine, folder):
            one_table(engine, folder)
            if bottom:
                engine.put("default", b"key0000", b"again")
                engine.flush("default")
                engine.compact("default")

        case(name, engine, {**changes, **bottom}, write)

    def levels(engine, _):
        fill(engine)
        engine.flush("default")
        engine.compact("default")
        fill(engine, count=20, salt=" second")
        for number in range(5, 15):
            engine.delete("default", b"key%04d" % number)
        engine.flush("default")
        engine.put("default", b"key0007", b"third")
        engine.delete("default", b"key0050")
        engine.delete("default", b"no such key")

    case("levels", System, {}, levels)

    def ranges(engine, _):
        fill(engine)
        engine.flush("default")
        engine.delete_range("default", b"key0010", b"key0020")
        engine.put("default", b"key0015", b"after")
        engine.flush("default")
        engine.delete_range("default", b"key0040", b"key0045")
        engine.put("default", b"key0042", b"after, in the log")

    case("range-deletes", System, {}, ranges)

    def cut_ranges(engine, _):
        engine.put("default", b"key0000", b"low")
        engine.put("default", b"key9999", b"high")
        engine.flush("default")
        engine.compact("default")
        engine.hold_snapshot()
        fill(engine, count=30)
        engine.delete_range("default", b"key0005", b"key0025")
        fill(engine, count=12, salt=" after")
        engine.flush("default")
        engine.compact("default")
        engine.release_snapshots()

    case("range-deletes-in-several-tables", System, dict(table_bytes=400), cut_ranges)

    def single(engine, _):
        fill(engine, count=10)
        engine.flush("default")
        engine.single_delete("default", b"key0003")
        engine.flush("default")
        engine.single_delete("default", b"key0004")

    case("single-deletes", System, {}, single)

    def families(engine, _):
        for name in ("default", "doris", "meta"):
            fill(engine, name, 10, f" of {name}")
        engine.flush("meta")
        engine.batch([("meta", b"key0001", b"in a batch"), ("doris", b"key0001", None), ("default", b"new", b"")])
        engine.add_family("later")
        engine.put("later", b"a", b"b")
        engine.add_family("dropped")
        engine.put("dropped", b"c", b"d")
        engine.drop_family("dropped")

    case("families", Newest, {}, families, ("default", "doris", "meta"))
    case("log-only", System, {}, lambda engine, _: fill(engine, count=20))
    case("compressed-log", System, dict(compressed_log=True), lambda engine, _: fill(engine, count=20))

    def reused(engine, _):
        for turn in range(4):
            fill(engine, count=20 - turn * 5, salt=f" {turn}")
            engine.flush("default")
        engine.put("default", b"last", b"in a log that was used again")

    case("reused-log", System, dict(reuse_logs=2), reused, close=False)

    def made_elsewhere(engine, folder):
        fill(engine, count=10)
        engine.ingest("default", folder.parent, {b"key0003": b"made elsewhere", b"zebra": b"too"})
        engine.put("default", b"key0004", b"after")
        (folder.parent / "made-elsewhere.sst").unlink(missing_ok=True)

    case("made-elsewhere", System, {}, made_elsewhere)

    def entity(engine, _):
        engine.put("default", b"a", b"1")
        engine.families["default"].put_entity(b"b", [b"x", b"y"], [b"1", b"2"])

    case("entity", Newest, {}, entity, refused="an entity of several columns")
