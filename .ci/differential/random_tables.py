"""Random tables of every type: values from the edges of their types, in orders and shares that make pruning matter."""

import datetime
import ipaddress
import json
import math
import struct
from dataclasses import dataclass
from decimal import Decimal, getcontext

import pyarrow

from . import nested, ordered_text

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
ARROW = [*COMMON, *SIGNED, *UNSIGNED, *OTHER_TIMES, "float16", "float32", "binary", "fixed_binary", "timestamp", "timestamp_utc",
         "wide_decimal", "dictionary", *nested.TYPES]
KUDU_LISTS = ["list", "list_text", "list_date", "list_decimal"]
TYPES = {
    "parquet": ARROW,
    "arrow": ARROW,
    "redfile": ARROW,
    "kudu": [*COMMON, "int8", "float32", "binary", "fixed_binary", "dictionary", "timestamp_utc", *KUDU_LISTS],
    "cfile-set": [*COMMON, "int8", *UNSIGNED, "float32", "binary", "timestamp_utc", *KUDU_LISTS],
    "cfile": ["bool", *SIGNED, "float32", "float64", "binary", "list"],
    "doris": [*COMMON, "int8", *UNSIGNED, "float16", "float32", "dictionary", "timestamp", "timestamp_s", "timestamp_utc", "wide_decimal", "largeint",
              "ipv4", "ipv6", "json", "variant", *nested.TYPES],
    "carbondata": [*COMMON, "int8", *UNSIGNED, "float16", "float32", "dictionary", "timestamp", "binary", "fixed_binary",
                   "list", "list_text", "list_date", "map", "map_date", "struct"],
}
# Points in time count microseconds here, whatever they are counted in where they are stored.
TIMES = {"timestamp": ("us", None), "timestamp_utc": ("us", "UTC"), "timestamp_s": ("s", None), "timestamp_ms": ("ms", None),
         "timestamp_ns": ("ns", None)}
MICROS = {"s": SECOND, "ms": 1000, "us": 1, "ns": 1}
TEXT_KINDS = ("string", "dictionary", "json", "variant")
FLOAT_KINDS = ("float16", "float32", "float64")
BINARY_KINDS = ("binary", "fixed_binary")
ADDRESSES = ("ipv4", "ipv6")


@dataclass
class Column:
    name: str
    kind: str
    values: list
    # Numbers of which any sum is exact, and small.
    is_tame: bool
    precision: int = 0
    scale: int = 0
    # Where dates are stored as milliseconds.
    in_milliseconds: bool = False

    def arrow_type(self):
        plain = {"date": pyarrow.date32(), "time": pyarrow.time64("us"), "bool": pyarrow.bool_(), "binary": pyarrow.binary(),
                 "fixed_binary": pyarrow.binary(3), "float16": pyarrow.float16(), **nested.TYPES}
        if self.kind == "decimal":
            return pyarrow.decimal128(self.precision, self.scale)
        if self.kind in ("wide_decimal", "largeint"):
            return pyarrow.decimal256(self.precision, self.scale)
        if self.is_text() or self.is_address():
            return pyarrow.string()
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
        return pyarrow.array([nested.arrow_value(self.kind, v) for v in self.values], kind)

    def array_for_duck(self):
        if self.kind in ordered_text.KINDS:
            return pyarrow.array([ordered_text.of(self.kind, v, self.scale) for v in self.values], pyarrow.string())
        return self.array()

    def parts(self):
        """What is inside of a nested column, as columns."""
        for written, path, kind in nested.PARTS[self.kind]:
            values = [nested.part_of(v, path) for v in self.values]
            yield Column(self.name + written, kind, values, False, *((12, 2) if kind == "decimal" else ()))

    def has_negative_zero(self):
        return any(isinstance(v, float) and v == 0 and math.copysign(1, v) < 0 for v in self.values)

    def is_float(self):
        return self.kind in FLOAT_KINDS

    def is_time(self):
        return self.kind in TIMES

    def is_nested(self):
        return self.kind in nested.TYPES

    def is_text(self):
        return self.kind in TEXT_KINDS

    def is_binary(self):
        return self.kind in BINARY_KINDS

    def is_address(self):
        return self.kind in ADDRESSES


@dataclass
class Table:
    columns: list

    def __post_init__(self):
        self.scalars = [c for c in self.columns if not c.is_nested()]
        self.scalars += [part for c in self.columns if c.is_nested() for part in c.parts()]

    def arrow(self):
        fields = [pyarrow.field(c.name, c.arrow_type(), nullable=c.name != "id") for c in self.columns]
        return pyarrow.table([c.array() for c in self.columns], schema=pyarrow.schema(fields))

    def arrow_for_duck(self):
        return pyarrow.table([c.array_for_duck() for c in self.columns], names=[c.name for c in self.columns])

    def needs_another_for_duck(self):
        return any(c.kind in ordered_text.KINDS for c in self.columns)

    def has_addresses(self):
        return any(c.is_address() for c in self.columns)


def value(random, column):
    """Any value of a type; half of them from its edges."""
    kind, edge = column.kind, random.random() < 0.5
    if kind in INTEGERS:
        bits, signed = INTEGERS[kind]
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        return random.choice([low, low + 1, high, high - 1, 0, 1]) if edge else random.randint(max(low, -1000), min(high, 1000))
    if kind == "largeint" and edge:
        return Decimal(random.choice([2**127 - 1, -(2**127), 10**38, -(10**38), 0, 1, -1]))
    if kind in ("decimal", "wide_decimal", "largeint"):
        top = min(10**column.precision - 1, 2**127 - 1) if kind == "largeint" else 10**column.precision - 1
        digits = random.choice([top, -top, top - 1, 0, 1, -1]) if edge else random.randint(-top, top) // 10 ** random.randrange(column.precision)
        return Decimal(digits).scaleb(-column.scale)
    if kind == "float64":
        if edge:
            return random.choice([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, 1.7976931348623157e308, 0.1])
        return random.choice([random.uniform(-1e6, 1e6), random.randint(-50, 50) / 4])
    if kind == "float32":
        if edge:
            return random.choice([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 2.0**127, -(2.0**127), 2.0**-149])
        return struct.unpack("f", struct.pack("f", random.uniform(-1e4, 1e4)))[0]
    if kind == "float16":
        return random.choice([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 65504.0, -65504.0, 2.0**-24]) if edge else random.randint(-400, 400) / 4
    if kind == "ipv4":
        known = ["0.0.0.0", "9.0.0.0", "10.0.0.1", "127.0.0.1", "192.168.1.1", "255.255.255.254", "255.255.255.255"]
        return random.choice(known) if edge else str(ipaddress.IPv4Address(random.randrange(2**32)))
    if kind == "ipv6":
        known = [0, 1, 2**128 - 1, 0xFE80 << 112, 0x20010DB8 << 96, 0xFFFF0A000001, 0xFFFF09000000, 1 << 64]
        return ordered_text.ipv6_text(random.choice(known) if edge else random.getrandbits(random.choice([16, 64, 128])))
    if kind in ("json", "variant"):
        return json.dumps(document(random, edge), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    if kind == "bool":
        return random.random() < 0.5
    if kind in ("string", "dictionary"):
        return random.choice(TEXTS) if edge else "".join(random.choice("abcxyz%_") for _ in range(random.randrange(8)))
    if kind == "fixed_binary":
        return random.choice([b"\0\0\0", b"\xff\xff\xff", b"abc"]) if edge else random.randbytes(3)
    if kind == "binary":
        return random.choice([b"", b"\0", b"\xff\xff", b"ab"]) if edge else random.randbytes(random.randrange(6))
    if kind == "date":
        return random.choice([FIRST_DAY, LAST_DAY, 0, -1, 18000]) if edge else random.randint(10_000, 20_000)
    if kind == "time":
        return random.choice([0, 1, 86400 * SECOND - 1, 43200 * SECOND]) if edge else random.randrange(86400) * SECOND
    if kind in nested.TYPES:
        return nested.value(random, kind, lambda of: value(random, Column("", of, [], False, 12, 2)))
    unit = MICROS[TIMES[kind][0]]
    if kind == "timestamp_ns":
        # Nanoseconds end in 2262.
        return random.randint(-9 * 10**9, 9 * 10**9) * SECOND + random.choice([0, 1, 999_999])
    return moment(random, edge) // unit * unit


def document(random, edge):
    if edge:
        return random.choice([{}, [], 5, "x", {"a": 1}, {"a": "1"}, {"a": None}, [1, None, "a"], {"a.b": True}, {"a": {"b": [1, 2]}}])
    members = [1, 2, "x", "é", "1", True, 2**63 - 1, -1, [1, 2], ["a"], {"c": 1}]
    return {key: random.choice(members) for key in random.sample("abcd", random.randrange(4))}


def moment(random, edge):
    if edge:
        return random.choice([FIRST_MICROS, LAST_MICROS, LAST_MICROS - LAST_MICROS % SECOND, 0, -1, 1_600_000_000_000_001])
    return random.randint(1_500_000_000, 1_600_000_000) * SECOND + random.choice([0, 0, 1, 999_999])


def tame(random, column):
    if column.kind in INTEGERS:
        return random.randint(0 if column.kind.startswith("u") else -100, 100)
    if column.kind in ("decimal", "wide_decimal", "largeint"):
        top = min(10**column.precision - 1, 10**6)
        return Decimal(random.randint(-top, top)).scaleb(-column.scale)
    if column.is_float():
        return random.randint(-400, 400) / 4 if column.kind == "float16" else random.randint(-4000, 4000) / 4
    return value(random, column)


def sort_key(v):
    return (2, 0) if isinstance(v, float) and math.isnan(v) else (1, repr(v) if isinstance(v, (list, dict)) else v)


def digits(random, column):
    """Gives a decimal its precision and scale."""
    if column.kind == "largeint":
        column.precision = 39
        return
    wide = column.kind == "wide_decimal"
    column.precision = random.choice([39, 45, 57, 76] if wide else [1, 4, 9, 10, 15, 18, 19, 27, 38])
    column.scale = random.choice([0, 2, column.precision // 2, column.precision])
    column.scale = min(column.scale, column.precision)
    if not wide and column.precision == 27 and random.random() < 0.5:
        # As DECIMAL had them in old releases of Doris.
        column.scale = 9


def random_column(random, name, kind, rows, may_be_null=True):
    column = Column(name, kind, [], random.random() < 0.5)
    if kind in ("decimal", "wide_decimal", "largeint"):
        digits(random, column)
    make = tame if column.is_tame else value
    values = [make(random, column) for _ in range(rows)]
    shape = random.choice(["any", "any", "few", "sorted", "runs"])
    if shape == "few":
        pool = values[:3] or [None]
        values = [random.choice(pool) for _ in range(rows)]
    elif shape == "sorted":
        values.sort(key=(lambda v: ordered_text.of(kind, v)) if column.is_address() else sort_key)
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
            elif column.kind in nested.LISTS:
                # A list of one null is null to it, and so is a struct of nothing else.
                column.values = [[] if v == [None] else v for v in column.values]
            elif column.kind == "struct":
                column.values = [v if v and any(part is not None for part in v.values()) else None for v in column.values]
    return Table(columns)
