"""Random tables of every type: values from the edges of their types, in orders and shares that make pruning matter."""

import datetime
import math
import struct
from dataclasses import dataclass
from decimal import Decimal, getcontext

import pyarrow

# Else digits beyond the 28th are rounded.
getcontext().prec = 100
DAY = datetime.date(1970, 1, 1).toordinal()
FIRST_DAY, LAST_DAY = 1 - DAY, datetime.date(9999, 12, 31).toordinal() - DAY
SECOND = 10**6
FIRST_MICROS, LAST_MICROS = FIRST_DAY * 86400 * SECOND, (LAST_DAY + 1) * 86400 * SECOND - 1
TEXTS = ["", " ", "a", "A", "ab", "abc", "a%b", "a_b", "100%", "_", "%", "é", "日本", "zz", "\U0001f600", "a'b", "~" * 40, "ab\tc"]
INTEGERS = {"int8": (8, True), "int16": (16, True), "int32": (32, True), "int64": (64, True),
            "uint8": (8, False), "uint16": (16, False), "uint32": (32, False), "uint64": (64, False)}
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
COMMON = ["bool", "int16", "int32", "int64", "float64", "string", "date", "decimal", "decimal"]
# What each format can hold; what it cannot is refused by name when it is written, which the tests of its writer see to.
OTHER_TIMES = ["time", "timestamp_s", "timestamp_ms", "timestamp_ns"]
TYPES = {
    "parquet": [*COMMON, *SIGNED, *UNSIGNED, *OTHER_TIMES, "float32", "binary", "timestamp", "timestamp_utc", "list", "struct"],
    "arrow": [*COMMON, *SIGNED, *UNSIGNED, *OTHER_TIMES, "float32", "binary", "timestamp", "timestamp_utc", "dictionary", "list", "struct"],
    "redfile": [*COMMON, "int8", "float32", "binary", "timestamp", "timestamp_utc", "list", "struct"],
    "kudu": [*COMMON, "int8", "float32", "binary", "timestamp_utc"],
    "cfile-set": [*COMMON, "int8", *UNSIGNED, "float32", "binary", "timestamp_utc"],
    "cfile": ["bool", *SIGNED, "float32", "float64", "binary"],
    "doris": [*COMMON, "int8", *UNSIGNED, "float32", "timestamp", "list", "struct"],
    "carbondata": [*COMMON, "float32", "timestamp", "binary", "list", "struct"],
}
# Points in time count microseconds here, whatever they are counted in where they are stored.
TIMES = {"timestamp": ("us", None), "timestamp_utc": ("us", "UTC"), "timestamp_s": ("s", None), "timestamp_ms": ("ms", None),
         "timestamp_ns": ("ns", None)}
MICROS = {"s": SECOND, "ms": 1000, "us": 1, "ns": 1}
NESTED = ("list", "struct")
STRUCT = pyarrow.struct([("a", pyarrow.int32()), ("b", pyarrow.string())])


@dataclass
class Column:
    name: str
    kind: str
    values: list
    # Numbers of which any sum is exact, and small.
    is_tame: bool
    precision: int = 0
    scale: int = 0

    def arrow_type(self):
        plain = {"date": pyarrow.date32(), "time": pyarrow.time64("us"), "bool": pyarrow.bool_(), "string": pyarrow.string(),
                 "binary": pyarrow.binary(), "dictionary": pyarrow.string(), "list": pyarrow.list_(pyarrow.int64()), "struct": STRUCT}
        if self.kind == "decimal":
            return pyarrow.decimal128(self.precision, self.scale)
        if self.kind in TIMES:
            return pyarrow.timestamp(*TIMES[self.kind])
        return plain.get(self.kind) or getattr(pyarrow, self.kind)()

    def array(self):
        kind = self.arrow_type()
        if self.kind in TIMES:
            unit, zone = TIMES[self.kind]
            micros = pyarrow.array(self.values, pyarrow.int64()).cast(pyarrow.timestamp("us", zone))
            return micros.cast(kind)
        if self.kind in ("date", "time"):
            return pyarrow.array(self.values, pyarrow.int32() if self.kind == "date" else pyarrow.int64()).cast(kind)
        return pyarrow.array(self.values, kind)

    def has_negative_zero(self):
        return any(isinstance(v, float) and v == 0 and math.copysign(1, v) < 0 for v in self.values)

    def is_float(self):
        return self.kind in ("float32", "float64")

    def is_time(self):
        return self.kind in TIMES

    def is_nested(self):
        return self.kind in NESTED

    def is_text(self):
        return self.kind in ("string", "dictionary")


@dataclass
class Table:
    columns: list

    def arrow(self):
        fields = [pyarrow.field(c.name, c.arrow_type(), nullable=c.name != "id") for c in self.columns]
        return pyarrow.table([c.array() for c in self.columns], schema=pyarrow.schema(fields))


def value(random, column):
    """Any value of a type; half of them from its edges."""
    kind, edge = column.kind, random.random() < 0.5
    if kind in INTEGERS:
        bits, signed = INTEGERS[kind]
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        return random.choice([low, low + 1, high, high - 1, 0, 1]) if edge else random.randint(max(low, -1000), min(high, 1000))
    if kind == "decimal":
        top = 10**column.precision - 1
        digits = random.choice([top, -top, top - 1, 0, 1, -1]) if edge else random.randint(-top, top) // 10 ** random.randrange(column.precision)
        return Decimal(digits).scaleb(-column.scale)
    if kind == "float64":
        if edge:
            return random.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, 1.7976931348623157e308, 0.1])
        return random.choice([random.uniform(-1e6, 1e6), random.randint(-50, 50) / 4])
    if kind == "float32":
        if edge:
            return random.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 2.0**127, -(2.0**127), 2.0**-149])
        return struct.unpack("f", struct.pack("f", random.uniform(-1e4, 1e4)))[0]
    if kind == "bool":
        return random.random() < 0.5
    if kind in ("string", "dictionary"):
        return random.choice(TEXTS) if edge else "".join(random.choice("abcxyz%_") for _ in range(random.randrange(8)))
    if kind == "binary":
        return random.choice([b"", b"\0", b"\xff\xff", b"ab"]) if edge else random.randbytes(random.randrange(6))
    if kind == "date":
        return random.choice([FIRST_DAY, LAST_DAY, 0, -1, 18000]) if edge else random.randint(10_000, 20_000)
    if kind == "time":
        return random.choice([0, 1, 86400 * SECOND - 1, 43200 * SECOND]) if edge else random.randrange(86400) * SECOND
    if kind == "list":
        return [random.choice([None, random.randrange(5), 2**63 - 1, -(2**63)]) for _ in range(random.randrange(4))]
    if kind == "struct":
        return {"a": random.choice([None, random.randrange(5), -(2**31)]), "b": random.choice([None, *TEXTS])}
    unit = MICROS[TIMES[kind][0]]
    if kind == "timestamp_ns":
        # Nanoseconds end in 2262.
        return random.randint(-9 * 10**9, 9 * 10**9) * SECOND + random.choice([0, 1, 999_999])
    return moment(random, edge) // unit * unit


def moment(random, edge):
    if edge:
        return random.choice([FIRST_MICROS, LAST_MICROS, LAST_MICROS - LAST_MICROS % SECOND, 0, -1, 1_600_000_000_000_001])
    return random.randint(1_500_000_000, 1_600_000_000) * SECOND + random.choice([0, 0, 1, 999_999])


def tame(random, column):
    if column.kind in INTEGERS:
        return random.randint(0 if column.kind.startswith("u") else -100, 100)
    if column.kind == "decimal":
        top = min(10**column.precision - 1, 10**6)
        return Decimal(random.randint(-top, top)).scaleb(-column.scale)
    if column.is_float():
        return random.randint(-4000, 4000) / 4
    return value(random, column)


def sort_key(v):
    return (2, 0) if isinstance(v, float) and math.isnan(v) else (1, repr(v) if isinstance(v, (list, dict)) else v)


def random_column(random, name, kind, rows, may_be_null=True):
    column = Column(name, kind, [], random.random() < 0.5)
    if kind == "decimal":
        column.precision = random.choice([1, 4, 9, 10, 15, 18, 19, 27, 38])
        column.scale = random.choice([0, 2, column.precision // 2, column.precision])
        column.scale = min(column.scale, column.precision)
    make = tame if column.is_tame else value
    values = [make(random, column) for _ in range(rows)]
    shape = random.choice(["any", "any", "few", "sorted", "runs"])
    if shape == "few":
        pool = values[:3] or [None]
        values = [random.choice(pool) for _ in range(rows)]
    elif shape == "sorted":
        values.sort(key=sort_key)
    elif shape == "runs":
        values = [values[at - at % 97] for at in range(rows)]
    if may_be_null:
        share = random.choice([0, 0, 0.1, 0.5, 0.95])
        values = [None if random.random() < share else v for v in values]
        if rows > 200 and share and random.random() < 0.3:
            start = random.randrange(rows - 100)
            values[start : start + 100] = [None] * 100
    column.values = values
    return column


def random_table(random, format, prefix):
    """`id`, which is unique and ascends, and columns of types the format holds."""
    rows = random.choice([1, 40, 300, 1200, 1200, 2500])
    start = random.choice([0, -500, 10**12])
    step = random.choice([1, 1, 3])
    columns = [Column("id", "int64", [start + at * step for at in range(rows)], False)]
    if format == "cfile":
        return Table([random_column(random, "value", random.choice(TYPES[format]), rows)])
    kinds = [random.choice(TYPES[format]) for _ in range(random.randint(3, 8))]
    columns += [random_column(random, f"{prefix}{at}", kind, rows) for at, kind in enumerate(kinds)]
    if format == "carbondata":
        for column in columns:
            if column.kind == "timestamp":
                # It keeps milliseconds.
                column.values = [v if v is None else v - v % 1000 for v in column.values]
            elif column.kind == "binary":
                # Empty bytes are null to it.
                column.values = [b"\0" if v == b"" else v for v in column.values]
            elif column.kind == "list":
                # A list of one null is null to it, and so is a struct of nothing else.
                column.values = [[0] if v == [None] else v for v in column.values]
            elif column.kind == "struct":
                column.values = [v if v and any(part is not None for part in v.values()) else None for v in column.values]
    return Table(columns)
