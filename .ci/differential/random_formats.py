"""A random table written in a format, with random options: small pages, blocks and row groups, several files, tablets, segments."""


import pyarrow
import pyarrow.parquet

FORMATS = ["parquet", "arrow", "redfile", "kudu", "cfile-set", "cfile", "doris", "carbondata"]


def write_source(random, table, path):
    """The Parquet file both other engines read."""
    rows = table.arrow()
    pyarrow.parquet.write_table(rows, path, row_group_size=random.choice([64, 500, 10_000]), data_page_size=random.choice([128, 4096]),
                                use_dictionary=random.random() < 0.5, write_page_index=random.random() < 0.5)
    return rows


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
    for piece in range(pieces):
        start, end = rows.num_rows * piece // pieces, rows.num_rows * (piece + 1) // pieces
        pyarrow.parquet.write_table(rows.slice(start, end - start), target / f"part-{piece}.parquet", row_group_size=random.choice([50, 333, 5000]),
                                    data_page_size=random.choice([64, 1024]), write_page_index=random.random() < 0.5,
                                    write_statistics=random.random() < 0.9, version=version)
    return f"{target}/*.parquet" if pieces > 1 else f"{target}/part-0.parquet", f"{pieces} files"


def arrow(random, _programs, table, rows, _source, target):
    target = target.with_suffix(".arrow")
    for at, column in enumerate(table.columns):
        if column.kind == "dictionary":
            rows = rows.set_column(at, column.name, rows.column(at).combine_chunks().dictionary_encode())
        elif column.kind == "decimal" and column.precision <= 18 and random.random() < 0.5:
            narrow = pyarrow.decimal32 if column.precision <= 9 and random.random() < 0.5 else pyarrow.decimal64
            rows = rows.set_column(at, column.name, rows.column(at).cast(narrow(column.precision, column.scale)))
        elif column.kind == "string" and random.random() < 0.3:
            rows = rows.set_column(at, column.name, rows.column(at).cast(random.choice([pyarrow.large_string(), pyarrow.string_view()])))
    with pyarrow.OSFile(str(target), "wb") as file, pyarrow.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=random.choice([40, 500, 10_000]))
    return target, str(rows.schema).replace("\n", ", ")


def redfile(random, programs, _table, _rows, source, target):
    target = target.with_suffix(".red")
    options = ["--redfile-page-size", random.choice([64, 512, 8192]), "--redfile-row-group-size", random.choice([2000, 20_000, 10**8]),
               "--redfile-codec", random.choice(["none", "snappy", "gzip"])]
    if random.random() < 0.15:
        options.append("--redfile-no-index")
    return target, convert(programs, *options, source, target)


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
        if column.kind in ("string", "binary") and random.random() < 0.6:
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
    options = ["--doris-model", model, "--doris-key", "id", "--doris-page-size", random.choice([256, 2048, 65536]),
               "--doris-segment-rows", random.choice([100, 700, 10**6]), "--doris-format", random.choice(["v2", "v3"]),
               "--doris-short-key-rows", random.choice([16, 1024])]
    if model == "unique" and random.random() < 0.5:
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
        if model == "aggregate":
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
