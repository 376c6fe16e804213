"""Random queries in the words that DuckDB and DataFusion give the same meaning.

Where the two dialects differ by design, queries say what they mean:

| left out or written otherwise | because |
| --- | --- |
| `/` between numbers | DuckDB divides integers and decimals as real numbers; operands are cast to DOUBLE |
| `%` and CAST of real numbers or decimals to integers | one rounds, the other cuts off |
| literals with fractions beside integers of 64 bits | DataFusion compares them as doubles, DuckDB as decimals |
| sums of integers beyond 64 bits | an error here, so that a sum has the type that DataFusion says; DuckDB has 128 bits. `answers.py` knows |
| `coalesce` of a date and a text | DataFusion makes no date of the text there |
| literals with fractions beside FLOAT | DuckDB compares as FLOAT, DataFusion as DOUBLE; literals are cast to the type of the column |
| LIKE patterns with a backslash and no ESCAPE | only DataFusion takes it as an escape then |
| ORDER BY of real numbers with -0.0, and groups of them | DataFusion orders -0.0 before 0.0 |
| sum and avg of real numbers that are not multiples of a quarter | the sum depends on the order of the rows |
| `coalesce` of bytes and a literal | DataFusion knows no type for both |
| `coalesce` of DECIMAL(38, 38) and a literal | it has 39 digits with its zero, and is a double for DuckDB |
| `avg` of a column and of nothing but a cast of it | DataFusion has one name for both |
| CAST of a decimal of nothing but fraction digits to text | DuckDB writes `-.1`, DataFusion `-0.1` |
| division by zero | NULL in DuckDB, an error in DataFusion |
| INTERSECT ALL, EXCEPT ALL | refused here |
| LIKE and ILIKE whose pattern ends with its escape sign | an error in DuckDB |
| a date and an interval | a time in DuckDB, a date in DataFusion; cast to a date |
| casts of texts to numbers that are not whole | `1e2` and `1.5` are integers in DuckDB |
| TIMESTAMP | microseconds in DuckDB, nanoseconds in DataFusion; `TIMESTAMP(6)` is the former in both |
| FILTER of first_value and last_value | DataFusion subtracts from no rows, which ends builds that check for it |
| CAST of dates that are stored as milliseconds to text | DataFusion writes the time of the day too |
| `IS DISTINCT FROM TIME '…'` | refused by DataFusion inside NOT, beside other units than nanoseconds; texts are times there |
| bits of unsigned integers of 64 bits | LARGEINT of Doris is a decimal here |
| `week` before the year 1 | DuckDB counts years without the year 0 |
"""

from dataclasses import dataclass, field
from decimal import Decimal
import re

from . import nested, ordered_text
from .query_text import date_text, literal, quoted, time_text
from .random_tables import INTEGERS, LAST_DAY, tame, value

COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]


@dataclass
class Query:
    """A query in parts, so that it can be made smaller."""

    select: list
    source: str = "@T@"
    where: list = field(default_factory=list)
    tail: str = ""
    is_ordered: bool = False
    inexact: tuple = ()
    distinct: bool = False
    # Columns an ORDER BY or GROUP BY needs cannot be left out.
    can_shrink: bool = True

    def text(self):
        where = " WHERE " + " AND ".join(f"({part})" for part in self.where) if self.where else ""
        return f"SELECT {'DISTINCT ' if self.distinct else ''}{', '.join(self.select)} FROM {self.source}{where}{self.tail}"

    def smaller(self):
        """The same query with one part less."""
        for at in range(len(self.where)):
            yield Query(self.select, self.source, self.where[:at] + self.where[at + 1 :], self.tail, self.is_ordered, self.inexact, self.distinct, self.can_shrink)
        if self.can_shrink and len(self.select) > 1:
            for at in range(len(self.select)):
                yield Query(self.select[:at] + self.select[at + 1 :], self.source, self.where, self.tail, self.is_ordered, self.inexact, self.distinct)


class Queries:
    """Queries over a table T (and U), drawn from its values."""

    def __init__(self, random, table, other):
        self.random, self.table, self.other = random, table, other

    def pick(self, *tests, table=None):
        """A column with which anything can be done."""
        columns = [c for c in (table or self.table).scalars if all(test(c) for test in tests)]
        return self.random.choice(columns) if columns else None

    def operand(self, column):
        """A literal to compare a column with: of its values, near them, any of the type, or outside of the type."""
        random, chance = self.random, self.random.random()
        known = [v for v in random.sample(column.values, min(5, len(column.values))) if v is not None]
        v = known[0] if known and chance < 0.7 else value(random, column)
        if column.kind in INTEGERS and chance > 0.85:
            fraction = f"{max(-(10**6), min(10**6, v))}.5" if INTEGERS[column.kind][0] < 64 else "2"
            return random.choice([str(v + 1), fraction, "300", "-129", "70000", "5000000000", "-5000000000", "20000000000000000000", "-1"])
        if column.kind == "decimal" and chance > 0.8:
            if column.precision <= 18:
                return random.choice([f"{v:f}" + ("5" if column.scale else ".5"), "12345", "0.5", "-1", "99999999999999999999", f"{v + Decimal(1).scaleb(-column.scale):f}"])
            return random.choice(["12345", "-1", "0"])
        if column.kind == "date" and chance > 0.6:
            return quoted(date_text(v))
        if column.kind == "time" and chance > 0.5:
            return f"TIME {literal(column, v)}"
        if column.is_time() and chance > 0.9:
            return "'2019-06-01 00:00:00'"
        return literal(column, v)

    def pattern(self, column):
        random = self.random
        known = [v for v in column.values if v] or ["abc"]
        base = random.choice(known)[:4].replace("\\", "")
        escaped = re.sub(r"([%_\\])", r"\\\1", base)
        plain = base.replace("%", "").replace("_", "")
        cut = random.randrange(len(plain) + 1)
        shape = random.randrange(9)
        if shape == 0:
            return quoted(f"{escaped}%") + " ESCAPE '\\'"
        if shape == 1:
            return quoted(f"%{escaped}%") + " ESCAPE '\\'"
        if shape > 6:
            sign = random.choice("!#x")
            escaped = re.sub(f"([%_{sign}])", rf"{sign}\1", base)
            return quoted(f"{escaped}%" if shape == 7 else f"%{escaped}") + f" ESCAPE '{sign}'"
        return quoted([None, None, f"{plain[:cut]}%", f"%{plain[cut:]}", f"%{plain[:cut]}_{plain[cut:]}%", plain, f"{plain[:1]}%{plain[1:]}"][shape])

    def condition(self, depth=0, table=None, alias=""):
        random = self.random
        if depth < 2 and random.random() < 0.25:
            parts = [self.condition(depth + 1, table, alias) for _ in range(random.randint(2, 3))]
            joined = random.choice([" AND ", " OR "]).join(f"({part})" for part in parts)
            if random.random() < 0.3:
                return f"NOT ({joined})"
            return f"({joined}) IS {random.choice(['TRUE', 'NOT TRUE', 'FALSE', 'NOT FALSE'])}" if random.random() < 0.2 else joined
        shape = random.random()
        no = random.choice(["", "", "NOT "])
        whole = [c for c in (table or self.table).columns if c.is_nested()]
        if whole and random.random() < 0.1:
            return self.of_nested(random.choice(whole), alias, no)
        column = self.pick(table=table)
        name, kind = alias + column.name, column.kind
        if shape < 0.08:
            return f"{name} IS {no}NULL"
        if shape < 0.13:
            return f"{name} IS {no}DISTINCT FROM {self.operand(column).removeprefix('TIME ')}"
        if column.is_text() and shape < 0.45:
            return f"{name} {no}{random.choice(['LIKE', 'LIKE', 'LIKE', 'ILIKE'])} {self.pattern(column)}"
        if kind == "bool":
            return random.choice([f"{no}{name}", f"{name} = {self.operand(column)}", f"{name} IS {no}TRUE", f"{name} IS {no}FALSE"])
        if shape < 0.20:
            # Two comparisons of one column, with it on both sides.
            v = self.operand(column)
            return f"({name} {random.choice(COMPARISONS)} {v} AND {v} {random.choice(COMPARISONS)} {name})"
        if shape < 0.60:
            return f"{name} {random.choice(COMPARISONS)} {self.operand(column)}" if random.random() < 0.85 else f"{self.operand(column)} {random.choice(COMPARISONS)} {name}"
        if shape < 0.70:
            return f"{name} {no}BETWEEN {self.operand(column)} AND {self.operand(column)}"
        if shape < 0.82:
            items = [self.operand(column) for _ in range(random.choice([1, 2, 3, 4, 6, 12]))]
            if random.random() < 0.15:
                items.append("NULL")
            return f"{name} {no}IN ({', '.join(items)})"
        if shape < 0.87:
            twin = self.pick(lambda c: c.kind == kind and c.scale == column.scale and c.precision == column.precision, table=table)
            return f"{name} {random.choice(COMPARISONS)} {alias}{twin.name}"
        return self.computed(column, name)

    def of_nested(self, column, alias, no):
        """A condition on a whole list, map or struct."""
        random, name = self.random, alias + column.name
        if column.kind == "list" and random.random() < 0.3:
            return f"{no}array_has({name}, {random.randrange(5)})"
        if column.kind in nested.LISTS and random.random() < 0.4:
            return f"array_length({name}) {random.choice(COMPARISONS)} {random.randrange(1, 4)}"
        if column.kind in nested.MAPS and random.random() < 0.5:
            return f"cardinality({name}) {random.choice(COMPARISONS)} {random.randrange(4)}"
        return f"{name} IS {no}NULL"

    def computed(self, column, name):
        random, kind = self.random, column.kind
        if column.is_text():
            return random.choice([
                f"length({name}) {random.choice(COMPARISONS)} {random.randrange(5)}",
                f"upper({name}) = {quoted(random.choice(['A', 'ABC', 'AB', '']))}",
                f"coalesce({name}, 'a') = 'a'",
                f"{name} || 'x' = {quoted(random.choice(['ax', 'x', 'abx']))}",
                f"substr({name}, 1, 2) IN ('a', 'ab', 'zz')",
            ])
        if kind in INTEGERS and not kind.startswith("u"):
            return random.choice([
                f"{name} % 7 = {random.randrange(7)}",
                f"CAST({name} AS VARCHAR) LIKE '%{random.randrange(10)}%'",
                f"CAST({name} AS DOUBLE) > {random.randint(-500, 500)}",
                f"coalesce({name}, 0) = 0",
                f"CASE WHEN {name} > 0 THEN 1 WHEN {name} IS NULL THEN 2 ELSE 3 END = {random.randint(1, 3)}",
                f"nullif({name}, 1) IS NULL",
            ])
        if kind == "date" or column.is_time():
            return random.choice([
                f"extract(YEAR FROM {name}) {random.choice(COMPARISONS)} {random.choice([1, 1970, 1999, 2005, 9999])}",
                f"extract(MONTH FROM {name}) IN (1, 12)",
                f"CAST({name} AS DATE) {random.choice(COMPARISONS)} {quoted(date_text(random.choice([0, 18000, LAST_DAY])))}",
            ])
        if kind == "decimal" and column.precision <= 18:
            return random.choice([
                f"{name} + 1 > {random.choice(['0', '1', '10'])}",
                f"CAST({name} AS DOUBLE) > {random.randint(-500, 500)}",
                f"abs({name}) > {random.randint(0, 50)}",
                f"-{name} < {self.operand(column)}",
            ])
        return f"coalesce({name} = {self.operand(column)}, TRUE)"

    def conditions(self, **where):
        return [self.condition(**where) for _ in range(self.random.choice([0, 1, 1, 1, 2, 3]))]

    def aggregate(self, at):
        """One aggregate, and whether its value may differ by rounding."""
        random = self.random
        column = self.pick()
        name, kind = column.name, column.kind
        name_of = f"x{at}"
        if random.random() < 0.15:
            return f"count(*) AS {name_of}", False
        shapes = [f"count({name})", f"min({name})", f"max({name})"]
        if kind in ("bool",):
            shapes = [f"count({name})", f"bool_and({name})", f"bool_or({name})"]
        if column.is_binary():
            shapes = [f"count({name})"]
        if not column.has_negative_zero():
            shapes.append(f"count(DISTINCT {name})")
        if self.has_id() and not column.is_binary():
            shapes.append(f"{random.choice(['first_value', 'last_value'])}({name} ORDER BY id)")
        if self.has_id() and column.is_text():
            shapes.append(f"string_agg({name}, '/' ORDER BY id)")
        if self.has_id() and kind in ("int32", "int64"):
            shapes.append(f"array_agg({name} ORDER BY id)")
        if kind in INTEGERS:
            shapes.append(f"sum(DISTINCT {name})")
        if kind in INTEGERS and kind != "uint64":
            shapes.append(f"{random.choice(['bit_and', 'bit_or', 'bit_xor'])}({name})")
        if column.is_tame and (kind in INTEGERS or column.is_float()):
            shapes += [f"{random.choice(['stddev_pop', 'var_pop', 'median'])}({name})"]
        if kind in INTEGERS or kind == "decimal":
            shapes += [f"sum({name})"] * 2
        if column.is_tame and column.is_float():
            shapes += [f"sum({name})", f"avg({name})"]
        if column.is_tame and (kind in INTEGERS or kind == "decimal"):
            shapes += [f"avg(CAST({name} AS DOUBLE) + 0)"]
            if kind == "decimal" and column.precision <= 15:
                shapes += [f"sum({name} * 2)", f"sum({name} + 1)", f"sum({name} * {name})", f"avg({name})"]
        shape = random.choice(shapes)
        if random.random() < 0.15 and not shape.startswith(("first_value", "last_value")):
            shape += f" FILTER (WHERE {self.condition(1)})"
        return f"{shape} AS {name_of}", any(word in shape for word in ("avg", "stddev", "var_pop", "median"))

    def plain(self):
        random = self.random
        columns = random.sample(self.table.columns, random.randint(1, len(self.table.columns)))
        query = Query([f"{c.name} AS x{at}" for at, c in enumerate(columns)], where=self.conditions())
        if self.has_id() and random.random() < 0.4:
            return self.limited(query)
        return query

    def has_id(self):
        return self.table.columns[0].name == "id"

    def limited(self, query):
        random = self.random
        order = []
        column = self.pick(lambda c: not c.has_negative_zero() and not c.is_binary())
        if column and random.random() < 0.6:
            order = [f"{column.name} {random.choice(['ASC', 'DESC'])} NULLS {random.choice(['FIRST', 'LAST'])}"]
        order.append(f"id {random.choice(['ASC', 'DESC'])}")
        limit = f" LIMIT {random.choice([0, 1, 5, 50])}" if random.random() < 0.8 else ""
        offset = f" OFFSET {random.choice([0, 1, 7, 400])}" if limit and random.random() < 0.4 else ""
        query.tail, query.is_ordered = f" ORDER BY {', '.join(order)}{limit}{offset}", True
        return query

    def totals(self):
        made = [self.aggregate(at) for at in range(self.random.randint(1, 4))]
        inexact = tuple(f"x{at}" for at, (_, rounds) in enumerate(made) if rounds)
        return Query([text for text, _ in made], where=self.conditions(), inexact=inexact)

    def grouped(self):
        random = self.random
        whole = [c for c in self.table.columns if c.is_nested()]
        column = random.choice(whole) if whole and random.random() < 0.15 else self.pick(lambda c: not c.has_negative_zero())
        query = self.totals()
        if column is None:
            return query
        query.select.append(f"{column.name} AS g")
        having = random.choice(["", "", " HAVING count(*) > 1", " HAVING count(*) = 1"])
        by = column.name
        second = self.pick(lambda c: not c.has_negative_zero() and c is not column)
        if second is not None and random.random() < 0.35:
            query.select.append(f"{second.name} AS h")
            both = f"{column.name}, {second.name}"
            by = random.choice([both, both, f"ROLLUP ({both})", f"CUBE ({both})", f"GROUPING SETS (({column.name}), ({second.name}))"])
        query.tail, query.can_shrink = f" GROUP BY {by}{having}", False
        return query

    def distinct(self):
        columns = [c for c in (*self.table.scalars, *self.table.columns) if not c.has_negative_zero()]
        columns = self.random.sample(columns, min(len(columns), self.random.randint(1, 3)))
        if not columns:
            return self.plain()
        return Query([f"{c.name} AS x{at}" for at, c in enumerate(columns)], where=self.conditions(), distinct=True)

    def joined(self):
        random = self.random
        # A join of most rows with most rows would only take long.
        is_rare = lambda c: c.values and not c.is_float() and max(map(c.values.count, random.sample(c.values, min(8, len(c.values))))) < 30
        left = self.pick(is_rare)
        right = left and self.pick(lambda c: c.kind == left.kind and c.scale == left.scale, is_rare, table=self.other)
        if right is None:
            return self.window()
        other_column = self.pick(table=self.other)
        conditions = self.conditions(alias="t.") + ([self.condition(table=self.other, alias="u.")] if random.random() < 0.4 else [])
        on = f"t.{left.name} = u.{right.name}"
        again = self.pick(lambda c: c is not left and not c.is_float())
        twin = again and self.pick(lambda c: c is not right and c.kind == again.kind and c.scale == again.scale, table=self.other)
        if twin and random.random() < 0.3:
            on += f" AND t.{again.name} {random.choice(['=', '=', '<>', '<', 'IS NOT DISTINCT FROM'])} u.{twin.name}"
        mine = self.pick()
        if random.random() < 0.3:
            exists = random.choice(["EXISTS", "NOT EXISTS"])
            conditions = self.conditions(alias="t.") + [f"{exists} (SELECT 1 FROM @U@ u WHERE {on})"]
            return Query([f"t.{mine.name} AS x0", f"t.{left.name} AS x1"], "@T@ t", conditions)
        if random.random() < 0.3:
            conditions = self.conditions(alias="t.") + [f"t.{left.name} {random.choice(['IN', 'NOT IN'])} (SELECT u.{right.name} FROM @U@ u WHERE u.{right.name} IS NOT NULL)"]
            return Query([f"t.{mine.name} AS x0", f"t.{left.name} AS x1"], "@T@ t", conditions)
        kind = random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        selected = [f"t.{mine.name} AS x0", f"u.{other_column.name} AS x1", f"u.{right.name} AS x2"]
        return Query(selected, f"@T@ t {kind} @U@ u ON {on}", conditions)

    def crossed(self):
        """Joins without an equality, of few rows; queries inside conditions."""
        random = self.random
        if not self.has_id():
            return self.totals()
        mine, shape = self.pick(), random.random()
        if shape < 0.3:
            twin = self.pick(lambda c: c.kind == mine.kind and c.scale == mine.scale and c.precision == mine.precision)
            few = [f"(SELECT * FROM @T@ ORDER BY id LIMIT {random.choice([3, 20])} OFFSET {random.choice([0, 7])}) {alias}" for alias in "ab"]
            kind = random.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
            on = f"a.{mine.name} {random.choice(COMPARISONS)} b.{twin.name}"
            return Query([f"a.{mine.name} AS x0", "b.id AS x1", "a.id AS x2"], f"{few[0]} {kind} {few[1]} ON {on}")
        if shape < 0.55 and not mine.is_binary() and mine.kind != "bool":
            best = random.choice(["min", "max"])
            inner = Query([f"{best}({mine.name})"], where=self.conditions())
            return Query(["id AS x0", f"{mine.name} AS x1"], where=[f"{mine.name} {random.choice(COMPARISONS)} ({inner.text()})", *self.conditions()])
        if shape < 0.75:
            inner = Query(["*"], where=self.conditions())
            if random.random() < 0.5:
                return Query([f"{mine.name} AS x0"], f"({inner.text()}) q", self.conditions())
            return Query([f"{mine.name} AS x0", "id AS x1"], f"(WITH q AS ({inner.text()}) SELECT * FROM q) r", self.conditions())
        limit = f" LIMIT {random.choice([0, 3, 100, 10_000])}" + random.choice(["", f" OFFSET {random.choice([0, 2, 300])}"])
        inner = Query([mine.name], where=self.conditions(), tail=limit)
        return Query(["count(*) AS x0"], f"({inner.text()}) q")

    def window(self):
        random = self.random
        if not self.has_id():
            return self.totals()
        column = self.pick(lambda c: not c.has_negative_zero())
        partition = f"PARTITION BY {column.name} " if random.random() < 0.6 else ""
        order = f"ORDER BY id {random.choice(['ASC', 'DESC'])}"
        mine = self.pick()
        calls = [f"row_number() OVER ({partition}{order})", f"lag({mine.name}) OVER ({partition}{order})",
                 f"lead({mine.name}, 2) OVER ({partition}{order})", f"count({mine.name}) OVER ({partition}{order})",
                 f"first_value({mine.name}) OVER ({partition}{order})", f"last_value({mine.name}) OVER ({partition}{order})",
                 f"ntile(4) OVER ({partition}{order})", f"lag({mine.name}, 3, {self.default(mine)}) OVER ({partition}{order})",
                 f"nth_value({mine.name}, 2) OVER ({partition}{order} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"]
        if not mine.is_binary() and mine.kind != "bool" and not mine.has_negative_zero():
            frame = random.choice(["ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING", "RANGE BETWEEN 3 PRECEDING AND CURRENT ROW", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"])
            calls += [f"{random.choice(['min', 'max', 'count'])}({mine.name}) OVER ({partition}{order} {frame})"]
        ranked = self.pick(lambda c: not c.has_negative_zero() and not c.is_binary())
        calls += [f"{random.choice(['rank', 'dense_rank'])}() OVER ({partition}ORDER BY {ranked.name} NULLS LAST)"]
        summed = self.pick(lambda c: c.is_tame and (c.is_float() or c.kind in INTEGERS or c.kind == "decimal"))
        if summed:
            calls += [f"sum({summed.name}) OVER ({partition}{order} ROWS BETWEEN {random.randrange(4)} PRECEDING AND {random.choice(['CURRENT ROW', '1 FOLLOWING'])})"]
        return Query(["id AS x0", *(f"{call} AS x{at + 1}" for at, call in enumerate(random.sample(calls, 2)))], where=self.conditions())

    def default(self, column):
        """A value of the column's own type."""
        v = tame(self.random, column)
        return f"CAST({quoted(time_text(v))} AS TIMESTAMP(6))" if column.kind == "timestamp" else literal(column, v) if column.kind == "int64" else "NULL"

    def unnested(self):
        """What is in lists, row by row."""
        lists = [c for c in self.table.columns if c.kind in nested.LISTS]
        if not lists:
            return self.plain()
        column = self.random.choice(lists)
        return Query([f"{self.pick().name} AS x0", f"unnest({column.name}) AS x1"], where=self.conditions(), can_shrink=False)

    def combined(self):
        column = self.pick(lambda c: not c.has_negative_zero())
        if column is None:
            return self.plain()
        word = self.random.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
        second = Query([f"{column.name} AS x0"], where=self.conditions())
        first = Query([f"{column.name} AS x0"], where=self.conditions(), tail=f" {word} {second.text()}", can_shrink=False)
        return first

    def expressions(self):
        """What is computed of columns."""
        random, made, inexact = self.random, [], []
        for at in range(random.randint(1, 3)):
            column = self.random.choice(self.table.columns)
            if column.is_nested() and random.random() < 0.5:
                made.append(f"{self.nested_expression(column)} AS x{at}")
                continue
            if column.is_nested():
                column = random.choice(list(column.parts()))
            name, kind = column.name, column.kind
            shapes = [f"{name} IS NULL", f"coalesce({name}, {self.operand(column) if kind not in INTEGERS and kind not in ('decimal', 'date', 'time') and not column.is_time() else literal(column, value(random, column))})",
                      f"CASE WHEN {self.condition(1)} THEN {name} END"]
            if column.is_time() or column.is_binary() or kind in ("time", *ordered_text.KINDS) or column.scale == 38:
                shapes = shapes[::2]
            twin = self.pick(lambda c: c.kind == kind and c.scale == column.scale and c.precision == column.precision)
            if not column.has_negative_zero() and not twin.has_negative_zero() and not column.is_binary() and kind != "bool":
                of_two = ["nullif", "coalesce"] if column.is_address() else ["greatest", "least", "nullif", "coalesce"]
                shapes += [f"{random.choice(of_two)}({name}, {twin.name})"]
            if kind in INTEGERS:
                shapes += [f"TRY_CAST({name} AS {random.choice(['TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'BOOLEAN'])})",
                           f"CAST({name} AS {random.choice(['SMALLINT', 'INTEGER', 'BIGINT'])})", f"TRY_CAST({name} AS DECIMAL(9,2))",
                           f"CASE {name} WHEN 0 THEN 'none' WHEN 1 THEN 'one' END"]
            if kind == "decimal" and column.precision <= 18:
                shapes += [f"TRY_CAST({name} AS DECIMAL(9,{min(2, column.scale)}))", f"CAST({name} AS DOUBLE)", f"{name} - {self.operand(column)}"]
            if column.is_text():
                shapes += [f"TRY_CAST({name} AS {random.choice(['INTEGER', 'DATE', 'DOUBLE'])})", f"upper({name})", f"strpos({name}, 'a')",
                           f"left({name}, 2)", f"reverse({name})", f"concat({name}, 'x', {name})"]
            if kind in ("timestamp", "timestamp_ms", "timestamp_s"):
                word = random.choice(["year", "quarter", "month", "week", "day", "hour", "minute", "second"])
                shapes += [f"date_trunc('{word}', {name})", f"extract({random.choice(['YEAR', 'MONTH', 'DAY', 'HOUR', 'MINUTE', 'DOW', 'DOY', 'QUARTER'])} FROM {name})",
                           f"CAST({name} AS DATE)", f"{name} + INTERVAL '1 day'", f"{name} - INTERVAL '2 hours'"]
            if kind == "date":
                shapes += [f"CAST(date_trunc('{random.choice(['year', 'quarter', 'month', 'week'])}', {name}) AS DATE)",
                           f"CAST({name} + INTERVAL '1 month' AS DATE)", f"CAST({name} - INTERVAL '40 days' AS DATE)", f"CAST({name} AS TIMESTAMP(6))",
                           f"extract({random.choice(['DAY', 'DOW', 'DOY', 'QUARTER'])} FROM {name})"]
            if kind in INTEGERS:
                shapes += [f"CAST({name} AS VARCHAR)", f"CAST({name} AS DECIMAL(25,2))", f"CAST({name} AS DOUBLE)", f"{name} % 13"]
            if kind in INTEGERS and column.is_tame:
                shapes += [f"CAST({name} AS BIGINT) * 3 - 1", f"CAST({name} AS DOUBLE) / 8"]
            if kind == "decimal" and column.precision <= 18:
                shapes += [f"1 - {name}", f"{name} * 2", f"{name} + {name}", f"{name} * (1 + {name})", f"-{name}", f"abs({name})",
                           f"CAST({name} AS DECIMAL(38,{column.scale}))"]
            if kind == "decimal":
                shapes.append(f"nullif({name}, 0)")
            if kind == "decimal" and column.precision > column.scale:
                shapes.append(f"CAST({name} AS VARCHAR)")
            if column.is_text():
                shapes += [f"length({name})", f"{name} || '!'", f"substr({name}, 2, 3)", f"replace({name}, 'a', 'bb')", f"trim({name})"]
            if kind == "date":
                shapes += [f"extract(YEAR FROM {name})", f"extract(MONTH FROM {name})"]
                if not column.in_milliseconds:
                    shapes.append(f"CAST({name} AS VARCHAR)")
            if column.is_float() and column.is_tame:
                shapes += [f"{name} * 2 + 1", f"abs({name})"]
            made.append(f"{random.choice(shapes)} AS x{at}")
        return Query(made, where=self.conditions(), inexact=tuple(inexact))

    def nested_expression(self, column):
        random, name = self.random, column.name
        shapes = [name, f"CASE WHEN {self.condition(1)} THEN {name} END"]
        if column.kind in nested.LISTS:
            shapes += [f"array_length({name})", f"{name}[2]"]
        if column.kind in nested.MAPS:
            shapes += [f"cardinality({name})", f"map_keys({name})", f"map_values({name})"]
        return random.choice(shapes)

    def next(self):
        make = self.random.choices(
            [self.plain, self.totals, self.grouped, self.distinct, self.joined, self.crossed, self.window, self.combined, self.expressions, self.unnested],
            [27, 19, 12, 6, 10, 7, 8, 5, 14, 3],
        )[0]
        return make()
