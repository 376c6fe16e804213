"""A random table written in a format, with random options: small pages, blocks and row groups, several files, tablets, segments."""

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from . import doris_schema
from .random_tables import INTEGERS, MICROS

FORMATS = ["parquet", "arrow", "redfile", "kudu", "cfile-set", "cfile", "doris", "carbondata"]


def write_source(random, table, path):
    """The Parquet file both other engines read: what it holds, and the file of DuckDB, which lacks types."""
    rows, for_duck = table.arrow(), path
    pyarrow.parquet.write_table(rows, path, row_group_size=random.choice([64, 500, 10_000]), data_page_size=random.choice([128, 4096]),
                                use_dictionary=random.random() < 0.5, write_page_index=random.random() < 0.5)
    if table.needs_another_for_duck():
        for_duck = path.with_name(f"{path.stem}-duck.parquet")
        pyarrow.parquet.write_table(table.arrow_for_duck(), for_duck)
    return rows, for_duck


def write(random, programs, format, table, rows, source, target):
    """Writes the table, and gives what stands in FROM and how it was made."""
    made = {"kudu": kudu, "doris": doris, "carbondata": carbondata, "redfile": redfile, "cfile-set": cfile_set, "cfile": cfile, "arrow": arrow, "parquet": parquet}[format]
    return made(random, programs, table, rows, source, target)


def convert(programs, *arguments):
    programs.run("convert", "-q", *arguments)
    return " ".join(map(str, arguments))


def parquet(random, _programs, table, rows, _source, target):
    """Several files in a folder."""
    target.mkdir()
    # An older version has no nanoseconds; files of one table have the same types.
    pieces, version = random.choice([1, 2, 5]), random.choice(["2.4", "2.6"])
    encodings = parquet_encodings(random, table)
    for piece in range(pieces):
        start, end = rows.num_rows * piece // pieces, rows.num_rows * (piece + 1) // pieces
        pyarrow.parquet.write_table(rows.slice(start, end - start), target / f"part-{piece}.parquet", row_group_size=random.choice([50, 333, 5000]),
                                    data_page_size=random.choice([64, 1024]), write_page_index=random.random() < 0.5,
                                    write_statistics=random.random() < 0.9, version=version, data_page_version=random.choice(["1.0", "2.0"]),
                                    compression=random.choice(["none", "snappy", "zstd", "lz4", "gzip", "brotli"]), **encodings)
    return f"{target}/*.parquet" if pieces > 1 else f"{target}/part-0.parquet", f"{pieces} files"


def parquet_encodings(random, table):
    """How columns are encoded: as PyArrow does by itself, or by an encoding of their own."""
    if random.random() < 0.5:
        return {"store_decimal_as_integer": random.random() < 0.5}
    fitting = {"string": ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"], "float64": ["PLAIN", "BYTE_STREAM_SPLIT"],
               "float32": ["PLAIN", "BYTE_STREAM_SPLIT"], "fixed_binary": ["PLAIN", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"], "bool": ["PLAIN", "RLE"]}
    fitting |= {kind: ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"] for kind in (*INTEGERS, "date", "timestamp", "time")}
    chosen = {c.name: random.choice(fitting[c.kind]) for c in table.columns if c.kind in fitting}
    return {"use_dictionary": False, "column_encoding": chosen}


def arrow(random, _programs, table, rows, _source, target):
    target = target.with_suffix(".arrow")
    rows = in_other_types(random, table, rows)
    write_arrow(random, rows, target)
    return target, str(rows.schema).replace("\n", ", ")


def write_arrow(random, rows, target):
    with pyarrow.OSFile(str(target), "wb") as file, pyarrow.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=random.choice([40, 500, 10_000]))


def redfile(random, programs, table, rows, source, target):
    if random.random() < 0.6:
        source = target.with_name(f"{target.name}-source.arrow")
        write_arrow(random, in_other_types(random, table, rows), source)
    target = target.with_suffix(".red")
    options = ["--redfile-page-size", random.choice([64, 512, 8192]), "--redfile-row-group-size", random.choice([2000, 20_000, 10**8]),
               "--redfile-codec", random.choice(["none", "snappy", "gzip"])]
    if random.random() < 0.15:
        options.append("--redfile-no-index")
    return target, convert(programs, *options, source, target)


def in_other_types(random, table, rows):
    """The same rows in other Arrow types that hold them."""
    for at, column in enumerate(table.columns):
        other = in_other_type(random, column, rows.column(at))
        if other is not None:
            field = rows.schema.field(at)
            rows = rows.set_column(at, pyarrow.field(field.name, other.type, field.nullable), other)
    return rows


def in_other_type(random, column, values):
    kind = column.kind
    if kind == "dictionary" or kind in ("int16", "int32", "int64", "uint32", "float32", "float64", "date") and column.name != "id" and random.random() < 0.1:
        return values.combine_chunks().dictionary_encode()
    if kind in ("int32", "string", "float64", "date") and random.random() < 0.1:
        return pyarrow.compute.run_end_encode(values.combine_chunks())
    if kind == "decimal" and column.precision <= 18 and random.random() < 0.5:
        narrow = pyarrow.decimal32 if column.precision <= 9 and random.random() < 0.5 else pyarrow.decimal64
        return values.cast(narrow(column.precision, column.scale))
    if kind == "string" and random.random() < 0.3:
        return values.cast(random.choice([pyarrow.large_string(), pyarrow.string_view()]))
    if kind == "binary" and random.random() < 0.4:
        return values.cast(random.choice([pyarrow.large_binary(), pyarrow.binary_view()]))
    if kind == "date" and random.random() < 0.2:
        column.in_milliseconds = True
        return values.cast(pyarrow.date64())
    if kind == "time" and random.random() < 0.7:
        units = [unit for unit in ("s", "ms") if all(v is None or v % MICROS[unit] == 0 for v in column.values)]
        unit = random.choice([*units, "ns"])
        return values.cast(pyarrow.time64(unit) if unit == "ns" else pyarrow.time32(unit))
    if kind == "list" and random.random() < 0.5:
        item = pyarrow.field("item", pyarrow.int64())
        # PyArrow casts to none of the views.
        return pyarrow.array(column.values, random.choice([pyarrow.large_list(item), pyarrow.list_view(item), pyarrow.large_list_view(item)]))
    return None


def kudu(random, programs, table, rows, source, target):
    """Hash partitions, ranges, or both; small blocks; encodings of some columns."""
    options = ["--kudu-table", "t", "--kudu-key", "id", "--kudu-block-size", random.choice([1024, 4096, 262144]),
               "--kudu-codec", random.choice(["no_compression", "lz4", "snappy", "zlib"]), "--kudu-block-manager", random.choice(["log", "file"])]
    if random.random() < 0.6:
        options += ["--kudu-hash", f"id:{random.choice([2, 3])}"]
    if random.random() < 0.5:
        ids = table.columns[0].values
        splits = sorted({ids[len(ids) // 3], ids[len(ids) * 2 // 3]})
        options += ["--kudu-range", "id:" + "|".join(map(str, splits))]
    for column in table.columns[1:]:
        if (column.is_text() or column.is_binary()) and random.random() < 0.6:
            options += ["--kudu-encoding", f"{column.name}={random.choice(['plain_encoding', 'dict_encoding', 'prefix_encoding'])}"]
        elif column.kind in ("int16", "int32", "int64", "date") and random.random() < 0.5:
            options += ["--kudu-encoding", f"{column.name}={random.choice(['plain_encoding', 'rle', 'bit_shuffle'])}"]
    made = convert(programs, "-f", "kudu", *options, source, target)
    return f"{target}#t", made


def cfile_set(random, programs, _table, _rows, source, target):
    options = ["--cfile-block-size", random.choice([512, 2048, 262144]), "--cfile-codec", random.choice(["no_compression", "lz4", "zlib"])]
    if random.random() < 0.6:
        options += ["--cfile-key", "id", "--cfile-index-block-size", random.choice([512, 32768])]
    return target, convert(programs, "-f", "cfile-set", *options, source, target)


def cfile(random, programs, _table, _rows, source, target):
    target = target.with_suffix(".cfile")
    return target, convert(programs, "--cfile-block-size", random.choice([512, 2048, 262144]), "--cfile-codec", random.choice(["no_compression", "lz4"]), source, target)


def doris(random, programs, table, rows, source, target):
    """A tablet of any model; where rows are merged, some have an earlier version that must not be seen."""
    model = random.choice(["duplicate", "unique", "unique", "aggregate"])
    options = ["--doris-page-size", random.choice([256, 2048, 65536]),
               "--doris-segment-rows", random.choice([100, 700, 10**6]), "--doris-format", random.choice(["v2", "v3"]),
               "--doris-short-key-rows", random.choice([16, 1024])]
    is_merge_on_write = model == "unique" and random.random() < 0.5
    by_schema = any(c.kind in doris_schema.ONLY_BY_SCHEMA for c in table.columns) or random.random() < 0.4
    if by_schema:
        schema = target.with_name(f"{target.name}-schema.json")
        doris_schema.write(random, table, model, is_merge_on_write, schema)
        options += ["--doris-schema", schema]
    else:
        options += ["--doris-model", model, "--doris-key", "id"]
        if model == "unique" and not is_merge_on_write:
            options.append("--doris-merge-on-read")
        blooms = [c.name for c in table.columns if c.kind in ("int32", "int64", "string", "date") and random.random() < 0.3]
        if blooms:
            options += ["--doris-bloom", ",".join(blooms)]
    if model != "duplicate":
        earlier = [at for at in range(rows.num_rows) if random.random() < 0.3]
        other = list(earlier)
        random.shuffle(other)
        old = rows.take(other).set_column(0, rows.schema.field(0), rows.column(0).take(earlier)) if earlier else rows.slice(0, 0)
        source = target.with_name(f"{target.name}-versions.parquet")
        pyarrow.parquet.write_table(pyarrow.concat_tables([old, rows]), source)
        if model == "aggregate" and not by_schema:
            options += rules(random, table)
            if "--doris-aggregate" in options:
                # An aggregate of old and new values is another table; rows are only there once then.
                pyarrow.parquet.write_table(rows, source)
    return target, convert(programs, "-f", "doris", *options, source, target)


def rules(random, table):
    chosen = []
    for column in table.columns[1:]:
        if column.kind in ("int16", "int32", "int64", "decimal", "date") and random.random() < 0.3:
            rule = random.choice(["min", "max"] if column.kind == "date" else ["sum", "min", "max"])
            chosen += ["--doris-aggregate", f"{column.name}={rule}"]
    return chosen


def carbondata(random, programs, table, rows, source, target):
    """Loads, sort columns, partitions, buckets, dictionaries; some tables are compacted."""
    options = []
    sortable = [c.name for c in table.columns if c.kind in ("int16", "int32", "int64", "string", "date")]
    if random.random() < 0.6:
        options += ["--carbon-sort", ",".join(random.sample(sortable, min(2, len(sortable))))]
    few = [c for c in table.columns if c.kind in ("int16", "int32", "string", "date") and len(set(c.values)) < 8]
    layout = random.random()
    # An empty text is no value of a partition: it would be read as null.
    few = [c for c in few if c.name not in str(options) and "" not in c.values]
    if few and layout < 0.5:
        options += ["--carbon-partition", random.choice(few).name]
    elif layout < 0.7:
        options += ["--carbon-buckets", "id:3"]
    files = ["--carbon-page-rows", random.choice([40, 500, 32_000]), "--carbon-compressor", random.choice(["snappy", "zstd", "gzip"])]
    if random.random() < 0.3:
        files += ["--carbon-no-local-dictionary"]
    loads = random.choice([1, 2, 3]) if rows.num_rows > 3 else 1
    made = []
    for load in range(loads):
        start, end = rows.num_rows * load // loads, rows.num_rows * (load + 1) // loads
        first = options if load == 0 else ["--carbon-append"]
        made.append(convert(programs, "-f", "carbondata", *first, *files, "--rows", f"{start}..{end}", source, target))
    if loads > 1 and random.random() < 0.4:
        programs.run("compact", "-q", target)
        made.append("compact")
    return target, "; ".join(made)
