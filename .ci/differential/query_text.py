"""How values are written in a query, where need be for each engine in its own words."""

import datetime
import math
import re

from . import ordered_text
from .random_tables import DAY, INTEGERS, SECOND


def for_engine(text, tables, is_duck):
    """Names tables, and writes what [`either`] made as the engine wants it."""
    for placeholder, name in tables.items():
        text = text.replace(placeholder, name)
    if is_duck:
        # As aggregates they have other names there.
        text = re.sub(r"\b(first|last)_value\(([^()]+ ORDER BY)", r"\1(\2", text)
    return EITHER.sub(r"\2" if is_duck else r"\1", text)


EITHER = re.compile("\u0001([^\u0002]*)\u0002([^\u0003]*)\u0003")


def either(ours, of_duck):
    """What the two engines write differently, inside the text of a query."""
    return f"\u0001{ours}\u0002{of_duck}\u0003"


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def date_text(days):
    return datetime.date.fromordinal(days + DAY).isoformat()


def time_text(micros):
    days, rest = divmod(micros, 86400 * SECOND)
    seconds, micros = divmod(rest, SECOND)
    text = f"{date_text(days)} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{micros:06}" if micros else text


def literal(column, v):
    kind = column.kind
    if kind == "bool":
        return "TRUE" if v else "FALSE"
    if kind in INTEGERS:
        return str(v)
    if kind == "decimal":
        return f"{v:f}"
    if column.is_float():
        name = "DOUBLE" if kind == "float64" else "REAL"
        text = "NaN" if math.isnan(v) else ("Infinity" if v > 0 else "-Infinity") if math.isinf(v) else repr(v)
        return f"CAST('{text}' AS {name})"
    if column.is_text():
        return quoted(v)
    if kind in ordered_text.KINDS:
        return either(quoted(v) if column.is_address() else f"{v:f}", quoted(ordered_text.of(kind, v, column.scale)))
    if column.is_binary():
        return either(f"X'{v.hex()}'", "'" + "".join(f"\\x{byte:02X}" for byte in v) + "'::BLOB")
    if kind == "date":
        return f"DATE '{date_text(v)}'"
    if kind == "time":
        return quoted(time_text(v)[11:])
    return quoted(time_text(v))
