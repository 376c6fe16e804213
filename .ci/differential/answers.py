"""Answers of different engines, brought to the same values and compared."""

import math
from decimal import Decimal

import pyarrow
import pyarrow.compute
from pyarrow import types

from . import ordered_text

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
# Only for columns that a division, an average or a function of real numbers made; all others must be equal.
RELATIVE = 1e-9


def cells(column):
    """Values that compare across types: numbers by value, points in time as nanoseconds, dates as days."""
    kind = column.type
    if types.is_dictionary(kind):
        return cells(column.cast(kind.value_type))
    if types.is_timestamp(kind):
        return scaled(column.cast(pyarrow.int64()), NANOSECONDS[kind.unit])
    if types.is_date(kind):
        return column.cast(pyarrow.date32()).cast(pyarrow.int32()).to_pylist()
    if types.is_string(kind) or types.is_string_view(kind) or types.is_large_string(kind):
        return [ordered_text.value_of(text) for text in column.to_pylist()]
    if types.is_time32(kind):
        return scaled(column.cast(pyarrow.int32()), NANOSECONDS[kind.unit])
    if types.is_time64(kind):
        return scaled(column.cast(pyarrow.int64()), NANOSECONDS[kind.unit])
    return column.to_pylist()


def scaled(column, factor):
    return [None if value is None else value * factor for value in column.to_pylist()]


def rows(table):
    columns = [cells(column) for column in table.columns]
    return list(zip(*columns)) if columns else [()] * table.num_rows


def difference(expected, found, is_ordered, inexact=()):
    """The first row in which two answers differ, as a text; nothing if they are equal.

    `inexact` are the names of columns whose values may differ by rounding.
    """
    names = expected.column_names
    if len(names) != found.num_columns:
        return f"{len(names)} columns expected, {found.num_columns} found"
    inexact = [
        step(expected.column(at).type, found.column(at).type) if name in inexact else None
        for at, name in enumerate(names)
    ]
    expected, found = rows(expected), rows(found)
    if not is_ordered:
        order = lambda row: [place(cell, step) for cell, step in zip(row, inexact)]
        expected.sort(key=order)
        found.sort(key=order)
    for at, (one, other) in enumerate(zip(expected, found)):
        for name, a, b, step_ in zip(names, one, other, inexact):
            if not same(a, b, step_):
                return f"row {at}, {name}:\n  expected {one}\n  found    {other}"
    if len(expected) != len(found):
        longer = "expected" if len(expected) > len(found) else "found"
        first = max(expected, found, key=len)[min(len(expected), len(found))]
        return f"{len(expected)} rows expected, {len(found)} found; only {longer}: {first}"
    return None


def exceeds_integers(table):
    """Whether an answer of DuckDB holds a sum of integers that 64 bits do not: an error for us."""
    for column in table.columns:
        if column.type == pyarrow.decimal128(38, 0):
            if any(value is not None and not -(2**63) <= value < 2**63 for value in column.to_pylist()):
                return True
    return False


def step(*kinds):
    """What rounding may change besides a share of the value: the last digit of a decimal."""
    scales = [kind.scale for kind in kinds if types.is_decimal(kind)]
    return 10.0 ** -min(scales) if scales else 0.0


def same(a, b, inexact):
    if a is None or b is None:
        return a is b
    if inexact is not None and is_number(a) and is_number(b):
        a, b = float(a), float(b)
        return (math.isnan(a) and math.isnan(b)) or a == b or abs(a - b) <= max(RELATIVE * max(abs(a), abs(b)), inexact)
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return a == b


def is_number(value):
    return isinstance(value, (int, float, Decimal))


def place(cell, inexact):
    """Where a row goes when rows are sorted; values that may differ by rounding come to the same place."""
    if cell is None:
        return (0, 0)
    if isinstance(cell, float) and math.isnan(cell):
        return (2, 0)
    if is_number(cell):
        return (1, float(f"{float(cell):.6g}") if inexact is not None else cell)
    return (3, cell if isinstance(cell, (str, bytes)) else repr(cell))
