"""The schema of a Doris tablet for a random table: also the types that no Arrow type becomes by itself."""

import json

import pyarrow
from pyarrow import types

NAMES = {"bool": ["BOOLEAN"], "int8": ["TINYINT"], "int16": ["SMALLINT"], "int32": ["INT"], "int64": ["BIGINT"], "uint8": ["SMALLINT"], "uint16": ["INT"],
         "uint32": ["BIGINT"], "uint64": ["LARGEINT"], "float16": ["FLOAT"], "float32": ["FLOAT"], "float64": ["DOUBLE"], "date": ["DATE", "DATEV2"],
         "timestamp": ["DATETIMEV2"], "timestamp_s": ["DATETIME", "DATETIMEV2"], "timestamp_utc": ["TIMESTAMPTZ"], "string": ["STRING", "VARCHAR", "CHAR"],
         "dictionary": ["STRING", "VARCHAR"], "wide_decimal": ["DECIMAL256"], "largeint": ["LARGEINT"], "ipv4": ["IPV4"], "ipv6": ["IPV6"],
         "json": ["JSONB"], "variant": ["VARIANT"]}
# Of these kinds there is nothing else than a schema that says so.
ONLY_BY_SCHEMA = ("largeint", "ipv4", "ipv6", "json", "variant")
PARTS = {"int32": "INT", "int64": "BIGINT", "string": "STRING", "date32[day]": "DATEV2"}


def write(random, table, model, is_merge_on_write, path):
    ids = iter(range(1000, 10_000))
    columns = [column(random, at, c, model, ids) for at, c in enumerate(table.columns)]
    keys = {"duplicate": "DUP_KEYS", "unique": "UNIQUE_KEYS", "aggregate": "AGG_KEYS"}[model]
    schema = {"keys_type": keys, "num_short_key_columns": 1, "merge_on_write": is_merge_on_write, "columns": columns}
    path.write_text(json.dumps(schema))


def column(random, at, of, model, ids):
    is_key = of.name == "id"
    made = {"unique_id": at, "name": of.name, "is_key": is_key, "is_nullable": not is_key}
    if model == "aggregate" and not is_key:
        made["aggregation"] = "REPLACE"
    if of.is_nested():
        return {**made, **part(of.arrow_type(), ids)}
    if of.kind == "decimal":
        made["type"] = decimal(of.precision) if (of.precision, of.scale) != (27, 9) else random.choice(["DECIMAL", "DECIMAL128I"])
    else:
        made["type"] = random.choice(NAMES[of.kind])
    if of.precision:
        made |= {"precision": of.precision, "frac": of.scale}
    elif of.kind.startswith("timestamp") and made["type"] != "DATETIME":
        made["frac"] = 6
    if of.kind == "int64":
        made |= {"length": 8, "index_length": 8}
    elif made["type"] in ("VARCHAR", "CHAR"):
        made |= {"length": 200, "index_length": 20}
    if made["type"] not in ("JSONB", "VARIANT", "BOOLEAN", "DOUBLE", "FLOAT") and not of.is_address() and random.random() < 0.2:
        made["is_bf_column"] = True
    return made


def decimal(precision):
    return "DECIMAL32" if precision <= 9 else "DECIMAL64" if precision <= 18 else "DECIMAL128I"


def part(kind, ids):
    """The type of what is nested, with children of their own ids."""
    if types.is_list(kind):
        return {"type": "ARRAY", "children": [child("item", kind.value_type, ids)]}
    if types.is_map(kind):
        return {"type": "MAP", "children": [child("key", kind.key_type, ids), child("value", kind.item_type, ids)]}
    if types.is_struct(kind):
        return {"type": "STRUCT", "children": [child(kind.field(at).name, kind.field(at).type, ids) for at in range(kind.num_fields)]}
    if types.is_decimal(kind):
        return {"type": decimal(kind.precision), "precision": kind.precision, "frac": kind.scale}
    return {"type": PARTS[str(kind)]}


def child(name, kind: pyarrow.DataType, ids):
    return {"unique_id": next(ids), "name": name, "is_nullable": True, **part(kind, ids)}
