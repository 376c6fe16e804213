"""Lists, maps and structs: their types, random values, and the parts of them that both engines can name."""

import pyarrow

STRUCT = pyarrow.struct([("a", pyarrow.int32()), ("b", pyarrow.string())])
TYPES = {
    "list": pyarrow.list_(pyarrow.int64()),
    "list_text": pyarrow.list_(pyarrow.string()),
    "list_date": pyarrow.list_(pyarrow.date32()),
    "list_decimal": pyarrow.list_(pyarrow.decimal128(12, 2)),
    "list_list": pyarrow.list_(pyarrow.list_(pyarrow.int64())),
    "list_struct": pyarrow.list_(STRUCT),
    "map": pyarrow.map_(pyarrow.string(), pyarrow.int64()),
    "map_date": pyarrow.map_(pyarrow.string(), pyarrow.date32()),
    "struct": STRUCT,
    "struct_deep": pyarrow.struct([("n", pyarrow.list_(pyarrow.int64())), ("s", pyarrow.struct([("x", pyarrow.date32()), ("y", pyarrow.string())]))]),
}
LISTS = tuple(kind for kind in TYPES if kind.startswith("list"))
MAPS = ("map", "map_date")
# What SQL writes behind the column, the way there through a value, and the kind of what is there.
PARTS = {
    "list": [("[1]", (0,), "int64"), ("[2]", (1,), "int64"), ("[3]", (2,), "int64")],
    "list_text": [("[1]", (0,), "string"), ("[2]", (1,), "string")],
    "list_date": [("[1]", (0,), "date")],
    "list_decimal": [("[1]", (0,), "decimal"), ("[2]", (1,), "decimal")],
    "list_list": [("[1][1]", (0, 0), "int64"), ("[2][1]", (1, 0), "int64")],
    "list_struct": [("[1]['a']", (0, "a"), "int32"), ("[2]['b']", (1, "b"), "string")],
    "map": [("['a']", ("a",), "int64"), ("['b']", ("b",), "int64")],
    "map_date": [("['a']", ("a",), "date")],
    "struct": [("['a']", ("a",), "int32"), ("['b']", ("b",), "string")],
    "struct_deep": [("['n'][1]", ("n", 0), "int64"), ("['s']['x']", ("s", "x"), "date"), ("['s']['y']", ("s", "y"), "string")],
}


def value(random, kind, scalar):
    """A value; `scalar` makes one of a kind that is not nested."""
    part = lambda of: None if random.random() < 0.2 else scalar(of)
    several = lambda make: [make() for _ in range(random.randrange(4))]
    if kind == "list":
        return several(lambda: random.choice([None, random.randrange(5), 2**63 - 1, -(2**63)]))
    if kind in ("list_text", "list_date", "list_decimal"):
        of = {"list_text": "string", "list_date": "date", "list_decimal": "decimal"}[kind]
        return several(lambda: part(of))
    if kind == "list_list":
        return several(lambda: None if random.random() < 0.2 else value(random, "list", scalar))
    if kind == "list_struct":
        return several(lambda: None if random.random() < 0.2 else value(random, "struct", scalar))
    if kind in MAPS:
        return {key: part("int64" if kind == "map" else "date") for key in random.sample(["a", "b", "é", "", "zz"], random.randrange(4))}
    if kind == "struct":
        return {"a": part("int32"), "b": part("string")}
    return {"n": None if random.random() < 0.2 else value(random, "list", scalar), "s": None if random.random() < 0.2 else {"x": part("date"), "y": part("string")}}


def part_of(value, path):
    """What is at a path of a value; null where there is nothing."""
    for step in path:
        if value is None or isinstance(step, int) and step >= len(value):
            return None
        value = value.get(step) if isinstance(value, dict) else value[step]
    return value


def arrow_value(kind, value):
    """The value as PyArrow takes it: the entries of maps are pairs."""
    return list(value.items()) if kind in MAPS and value is not None else value
