"""Each row of the type table of sink `postgres`, and random tables, through `weir run`, a real server and back.

What is read back are texts that PostgreSQL makes of its values, chosen so that nothing is lost: numbers since an
epoch for times, hex for bytes.
"""

import ctypes
import datetime as dt
import decimal
import json
import math
import pathlib
import re
import struct
import sys
import uuid

import pyarrow as pa
import pytest
from flat_values import FLAT, UNITS, array
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

DAY = 86400
MIN_US, MAX_DATE = -210866803200000000, 2145042905


@pytest.fixture(scope="module")
def server(postgres_server):
    return postgres_server


class Target:
    def __init__(self, weir, server, folder):
        self.weir, self.server, self.folder, self.number = weir, server, folder, 0

    def deliver(self, table, ddl=None, extra=""):
        """The pyarrow table as a new table of the server, made by `ddl` or by weir. Returns its name."""
        self.number += 1
        folder = self.folder / str(self.number)
        folder.mkdir()
        name = f"t{self.number}"
        self.server.sql(f"drop table if exists {name}; drop table if exists weir_cursor")
        if ddl:
            self.server.sql(f"create table {name} ({ddl})")
        with pa.OSFile(str(folder / "in.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            if isinstance(table, pa.RecordBatch):
                writer.write_batch(table)
            else:
                writer.write_table(table, max_chunksize=7)
        (folder / "p.yaml").write_text(
            f"pipeline: types\nsources:\n  in: {{type: file, path: in.arrow}}\nsinks:\n"
            f"  out: {{type: postgres, uri: '{self.server.uri}', table: public.{name}, create: true{extra}}}\n"
        )
        done = self.weir("run", folder / "p.yaml", "--json")
        return name, done

    def columns(self, name, what):
        """what: column -> expression. Its texts by row, of each."""
        parts = ", ".join(f"coalesce(json_agg(({expression})::text order by id), '[]')" for expression in what.values())
        return dict(zip(what, json.loads(self.server.sql(f"select json_build_array({parts}) from {name}"))))

    def column(self, name, what):
        return self.columns(name, {"": what})[""]


@pytest.fixture
def target(weir, server, tmp_path):
    return Target(weir, server, tmp_path)


# ---- what is read of a type, and what it must be --------------------------------------------------------

MICROS = "(extract(epoch from {}) * 1000000)::numeric(30, 0)"
TYPES = {
    # PostgreSQL type -> what is selected, and the text as a value as FLAT has it, of an Arrow type
    "boolean": ("{}", lambda text, kind: text == "true"),
    "integers": ("{}", lambda text, kind: int(text)),
    "numeric": ("{}", lambda text, kind: decimal.Decimal(text)),
    "floats": ("{}", lambda text, kind: float(text)),
    "text": ("{}", lambda text, kind: text),
    "bytea": ("encode({}, 'hex')", lambda text, kind: bytes.fromhex(text)),
    "uuid": ("{}", lambda text, kind: uuid.UUID(text).bytes),
    "date": ("{} - date '1970-01-01'", lambda text, kind: int(text) * (DAY * 1000 if kind.bit_width == 64 else 1)),
    "times": (MICROS, lambda text, kind: int(text) * UNITS[kind.unit] // 10**6),
}
GROUP = {
    "smallint": "integers", "integer": "integers", "bigint": "integers", "real": "floats", "double precision": "floats",
    "time": "times", "timestamp": "times", "timestamptz": "times", "interval": "times",
}


def real(kind, bits):
    return pa.array([bits], {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[kind.bit_width]).view(kind)[0].as_py()


def reachable(kind, name, values):
    """Those that PostgreSQL can hold."""
    if name.startswith("date"):
        low, high = -2440588, MAX_DATE
        return [v for v in values if low <= v // (DAY * 1000 if kind.bit_width == 64 else 1) <= high]
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        # extract() rounds at the very end
        return [v for v in values if MIN_US <= v * 10**6 // UNITS[kind.unit] < 2**63 - 10**15]
    if (pa.types.is_temporal(kind)) and kind.unit == "ns":
        return [v // 1000 * 1000 for v in values if v // 1000 * 1000 >= -(2**63)]
    if pa.types.is_duration(kind):
        return [v for v in values if abs(v * 10**6 // UNITS[kind.unit]) < 2**63]
    return [v for v in values if v != "\x00"]


def kinds_of(kind):
    """The PostgreSQL types of the table for an Arrow type, the one that is created first."""
    integers = {"int8": 0, "uint8": 0, "int16": 0, "uint16": 1, "int32": 1, "uint32": 2, "int64": 2, "uint64": 3}
    name = str(kind)
    if name in integers:
        return ["smallint", "integer", "bigint", "numeric"][integers[name] :]
    if pa.types.is_boolean(kind):
        return ["boolean"]
    if pa.types.is_floating(kind):
        return ["double precision", "numeric"] if kind.bit_width == 64 else ["real", "double precision", "numeric"]
    if pa.types.is_decimal(kind):
        return ["numeric"]
    if pa.types.is_date(kind):
        return ["date"]
    if pa.types.is_time(kind):
        return ["time"]
    if pa.types.is_timestamp(kind):
        return ["timestamptz" if kind.tz else "timestamp"]
    if pa.types.is_duration(kind):
        return ["interval"]
    if pa.types.is_fixed_size_binary(kind):
        return ["bytea", "uuid"] if kind.byte_width == 16 else ["bytea"]
    return ["bytea"] if "binary" in name else ["text"]


def same(got, want, kind, to):
    if want is None or got is None:
        return got is want
    if pa.types.is_floating(kind):
        want, got = real(kind, want), float(got)
        if kind.bit_width < 64 and to != "double precision":  # the fewest digits that give a float32 back
            got = struct.unpack("f", struct.pack("f", got))[0]
        if to == "numeric":  # has no -0
            return got == want or got != got and want != want
        return got == want and math.copysign(1, got) == math.copysign(1, want) or got != got and want != want
    if pa.types.is_decimal(kind):
        return got == want and got.as_tuple().exponent == -kind.scale
    return got == want


def test_each_type(target):
    """One table with a column for each Arrow type and each type that it may go into; null in each."""
    columns, ddl = {"id": pa.array(range(40))}, ["id bigint"]
    checks = {}
    for name, (kind, values) in FLAT.items():
        values = reachable(kind, name, values)
        if not values:
            continue
        cells = [values[i % len(values)] if i % 5 else None for i in range(40)]
        for to in kinds_of(kind):
            column = f"{name}_{to.replace(' ', '_')}"
            columns[column] = array(kind, cells)
            ddl.append(f'"{column}" {to}')
            checks[column] = (kind, to, cells)
    name, done = target.deliver(pa.table(columns), ", ".join(ddl))
    assert done.returncode == 0, done.stderr
    found = target.columns(name, {c: TYPES[GROUP.get(to, to)][0].format(f'"{c}"') for c, (_, to, _) in checks.items()})
    for column, (kind, to, cells) in checks.items():
        parse = TYPES[GROUP.get(to, to)][1]
        got = [v if v is None else parse(v, kind) for v in found[column]]
        wrong = [(g, c) for g, c in zip(got, cells) if not same(g, c, kind, to)]
        assert len(got) == 40 and wrong == [], (column, wrong[:3])


def test_created_types(target):
    """The same without a table: weir makes one of these types."""
    flat = {n: (k, reachable(k, n, v)) for n, (k, v) in FLAT.items()}
    columns = {n: array(k, (v * 3)[:3]) for n, (k, v) in flat.items() if v}
    columns["id"] = pa.array(range(3))
    columns["json"] = pa.array(['{"a":1}', "[]", None], pa.string()).cast(pa.json_())
    columns["uuid"] = pa.array([uuid.UUID(int=n).bytes for n in range(3)], pa.uuid())
    columns["list"] = pa.array([[1, None], [], None], pa.list_(pa.int16()))
    columns["struct"] = pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int8())]))
    name, done = target.deliver(pa.table(columns))
    assert done.returncode == 0, done.stderr
    made = target.server.sql(f"select attname, format_type(atttypid, -1) from pg_attribute where attrelid = '{name}'::regclass and attnum > 0")
    made = dict(line.split("|") for line in made.splitlines())
    long = {"time": "time without time zone", "timestamp": "timestamp without time zone", "timestamptz": "timestamp with time zone"}
    for column in columns:
        want = {"json": "jsonb", "uuid": "uuid", "list": "smallint[]", "struct": "jsonb"}.get(column)
        want = want or (kinds_of(flat[column][0])[0] if column in flat else "bigint")
        assert made[column] == long.get(want, want), column


def test_nested_and_indirect_types(target):
    words = pa.array(["a", "größe", None, "", "x" * 300])
    lists = [["a", None, "größe"], [], None, [""], ["b"]]
    table = pa.table(
        {
            "id": pa.array(range(5)),
            "dict": pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 4, 3], pa.int8()), words),
            "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 4, 5], pa.int32()), pa.array([7, None, 9], pa.int64())),
            "list": pa.array(lists, pa.list_(pa.utf8())),
            "large_list": pa.array(lists, pa.large_list(pa.utf8())),
            "list_view": pa.array(lists, pa.list_view(pa.utf8())),
            "fixed": pa.array([[1, 2], None, [3, None], [4, 5], [6, 7]], pa.list_(pa.float64(), 2)),
            "of_dict": pa.array(lists, pa.list_(pa.dictionary(pa.int8(), pa.utf8()))),
            "of_decimal": pa.array([[decimal.Decimal("1.50")], None, [], [None], [decimal.Decimal("-0.01")]], pa.list_(pa.decimal128(9, 2))),
            "nested": pa.array([[[1], []], None, [], [None], [[2, None]]], pa.list_(pa.list_(pa.int8()))),
            "struct": pa.array([{"a": 1, "b": "ü"}, None, {"a": None, "b": '"\\'}, {"a": 2, "b": None}, {"a": 3, "b": ""}]),
            "map": pa.array([[("k", 1)], None, [], [("a", 2), ("b", None)], []], pa.map_(pa.utf8(), pa.int64())),
            "null": pa.nulls(5),
            "interval": pa.array([pa.MonthDayNano(v) for v in [(1, -2, 3000), (0, 0, 0), (-(2**31), 2**31 - 1, 2**62 // 1000 * 1000)]] + [None] * 2),
        }
    )
    ddl = (
        "id bigint, dict text, runs bigint, list text[], large_list text[], list_view varchar[], fixed float8[], of_dict text[], "
        'of_decimal numeric(9,2)[], nested jsonb, struct jsonb, map json, "null" int, interval interval'
    )
    name, done = target.deliver(table, ddl)
    assert done.returncode == 0, done.stderr

    def read(column, convert=json.loads):
        return [v if v is None else convert(v) for v in target.column(name, f'to_json("{column}")')]

    assert read("dict") == ["größe", "a", None, "x" * 300, ""]
    assert read("runs") == [7, 7, None, None, 9]
    for column in ("list", "large_list", "list_view", "of_dict"):
        assert read(column) == lists, column
    assert read("fixed") == [[1, 2], None, [3, None], [4, 5], [6, 7]]
    assert read("of_decimal", lambda v: json.loads(v, parse_float=str)) == [["1.50"], None, [], [None], ["-0.01"]]
    assert read("nested") == [[[1], []], None, [], [None], [[2, None]]]
    assert read("struct") == table["struct"].to_pylist()
    assert read("map") == [{"k": 1}, None, {}, {"a": 2, "b": None}, {}]
    assert read("null") == [None] * 5
    parts = [target.column(name, f"extract({what} from interval)") for what in ("year", "month", "day", "microseconds", "hour", "minute")]
    months = [y if y is None else int(y) * 12 + int(m) for y, m in zip(parts[0], parts[1])]
    assert months == [1, 0, -(2**31), None, None]
    assert parts[2] == ["-2", "0", str(2**31 - 1), None, None]
    clock = [[int(v) for v in c[:3]] for c in (parts[4], parts[5], parts[3])]
    assert [h * 3600 * 10**6 + m * 60 * 10**6 + us for h, m, us in zip(*clock)] == [3, 0, 2**62 // 1000]


def test_texts_and_nested_values_as_json(target):
    """The rest of the table: what goes into uuid, json and jsonb."""
    ids = ["00112233-4455-6677-8899-aabbccddeeff", None, str(uuid.UUID(int=2**128 - 1))]
    texts, values = ['{"b": 1, "a": [null, "ü"]}', None, '"x"'], [{"b": 1, "a": [None, "ü"]}, None, "x"]
    lists = [[[1], []], None, [None, [2, None]]]
    columns, ddl, want = {"id": pa.array(range(3))}, ["id bigint"], {}

    def add(name, to, made, expected):
        columns[f"{name}_{to}"] = made
        ddl.append(f'"{name}_{to}" {to}')
        want[f"{name}_{to}"] = expected

    for name, kind in {"utf8": pa.utf8(), "large_utf8": pa.large_utf8(), "utf8_view": pa.string_view()}.items():
        add(name, "uuid", pa.array(ids, kind), ids)
        add(name, "json", pa.array(texts, kind), values)
        add(name, "jsonb", pa.array(texts, kind), values)
    inner = pa.list_(pa.int8())
    kinds = {"list": pa.list_(inner), "large_list": pa.large_list(inner), "list_view": pa.list_view(inner)}
    kinds.update(large_list_view=pa.large_list_view(inner), fixed_size_list=pa.list_(inner, 2))
    for to in ("json", "jsonb"):
        for name, kind in kinds.items():
            add(name, to, pa.array(lists, kind), lists)
        structs = [{"a": 1, "b": "ü"}, None, {"a": None, "b": ""}]
        add("struct", to, pa.array(structs), structs)
        add("map", to, pa.array([[("k", 1)], None, []], pa.map_(pa.utf8(), pa.int64())), [{"k": 1}, None, {}])
    columns["large_list_view_array"] = pa.array([[1, None], None, []], pa.large_list_view(pa.int16()))
    ddl.append("large_list_view_array smallint[]")
    want["large_list_view_array"] = [[1, None], None, []]
    name, done = target.deliver(pa.table(columns), ", ".join(ddl))
    assert done.returncode == 0, done.stderr
    found = target.columns(name, {column: f'to_json("{column}")' for column in want})
    for column, expected in want.items():
        assert [v if v is None else json.loads(v) for v in found[column]] == expected, column


class CSchema(ctypes.Structure):
    """ArrowSchema of the C data interface."""


CSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(CSchema))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


def test_short_intervals(target):
    """Months, and days with milliseconds: pyarrow has no name for these types, so integers are called so."""
    months, days = [14, None, -(2**31)], [(3, -4), None, (-(2**31), 2**31 - 1)]
    packed = [v if v is None else struct.unpack("<q", struct.pack("<ii", *v))[0] for v in days]
    batch = pa.record_batch({"id": pa.array(range(3)), "m": pa.array(months, pa.int32()), "d": pa.array(packed, pa.int64())})
    schema, array_of = CSchema(), (ctypes.c_char * 80)()
    batch._export_to_c(ctypes.addressof(array_of), ctypes.addressof(schema))
    formats = [b"tiM", b"tiD"]
    for i, form in enumerate(formats):
        schema.children[i + 1].contents.format = form
    made = pa.RecordBatch._import_from_c(ctypes.addressof(array_of), ctypes.addressof(schema))
    name, done = target.deliver(made, "id bigint, m interval, d interval")
    assert done.returncode == 0, done.stderr
    what = "extract(year from m) * 12 + extract(month from m)"
    assert [v if v is None else int(float(v)) for v in target.column(name, what)] == months
    got = target.columns(name, {"days": "extract(day from d)", "ms": "extract(epoch from d - extract(day from d) * interval '1 day') * 1000"})
    assert [v if v is None else int(v) for v in got["days"]] == [3, None, -(2**31)]
    assert [v if v is None else int(float(v)) for v in got["ms"]] == [-4, None, 2**31 - 1]


def test_every_row_of_the_table_is_tested():
    """Of docs/postgres.md, which is made of the code's own table: each pair of types is in a test above."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs/postgres.md").read_text()
    rows = [line.split("|")[1:3] for line in text.split("<!-- types -->")[1].split("<!-- end of types -->")[0].splitlines() if line.startswith("|")][2:]
    documented = {(kind.strip(), to.strip()) for kinds, tos in rows for kind in kinds.split(",") for to in tos.split(",")}
    texts, lists = ("utf8", "large_utf8", "utf8_view"), ("list", "large_list", "list_view", "large_list_view", "fixed_size_list")
    tested = {("null", "any"), ("struct", "jsonb"), ("struct", "json"), ("map", "jsonb"), ("map", "json")}
    tested |= {(kind, to) for kind in texts for to in ("text", "uuid", "json", "jsonb")}
    tested |= {(kind, to) for kind in lists for to in ("an array of what its items may go into", "jsonb", "json")}
    tested |= {(f"interval_{kind}", "interval") for kind in ("months", "day_time", "month_day_nano")}
    names = {"string": "utf8", "large_string": "large_utf8", "string_view": "utf8_view", "halffloat": "float16", "float": "float32", "double": "float64"}
    for kind, _ in FLAT.values():
        name = str(kind)
        if pa.types.is_timestamp(kind):
            name = "timestamp[unit, zone]" if kind.tz else "timestamp[unit]"
        name = "fixed_size_binary" if pa.types.is_fixed_size_binary(kind) else name
        name = names.get(name, name if name.startswith("timestamp") else re.sub(r"[(\[].*", "", name))
        tested |= {(name, to) for to in kinds_of(kind)}
    commas = {("timestamp[unit", "timestamptz"), ("zone]", "timestamptz")}  # split at its comma
    assert documented - tested - commas == set()


# ---- bad data -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values, ddl, message",
    [
        (pa.array(["a", "b\0"]), "text", "column 'v' is no UTF-8, or holds a NUL character"),
        (pa.array(["a", "abcd"]), "varchar(3)", "column 'v' is longer than"),
        (pa.array([1, None]), "bigint not null", "column 'v' is null"),
        (pa.array([1, 1]), "bigint unique", "duplicate key value violates unique constraint"),
        (pa.array([1, 2]), "bigint check (v < 2)", "violates check constraint"),
        (pa.array([1, 2]), "bigint references parent", "violates foreign key constraint"),
        (pa.array(["{}", "{"]), "jsonb", "row 1, column 'v'"),
        (pa.array(["ok", "odd"]), "mood", "row 1, column 'v'"),
        (pa.array([0, 1], pa.timestamp("ns")), "timestamp", "column 'v' is no whole number of microseconds"),
    ],
)
def test_bad_data(target, values, ddl, message):
    target.server.sql(
        "drop table if exists parent cascade; create table parent(v bigint primary key); insert into parent values (1); "
        "drop type if exists mood cascade; create type mood as enum ('ok')"
    )
    name, done = target.deliver(pa.table({"id": pa.array(range(2)), "v": values}), f"id bigint, v {ddl}")
    assert done.returncode == 6, done.stderr
    assert message in done.stderr and "sink out" in done.stderr
    assert target.server.sql(f"select count(*) from {name}") == "0"


# ---- random tables --------------------------------------------------------------------------------------------

text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
LEAVES = {
    "boolean": (pa.bool_(), st.booleans()),
    "smallint": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "integer": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "numeric": (pa.decimal128(38, 9), st.decimals(-(10**28), 10**28, allow_nan=False, places=9)),
    "text": (pa.utf8(), text),
    "bytea": (pa.binary(), st.binary(max_size=20)),
    "timestamp": (pa.timestamp("us"), st.integers(MIN_US, 2**63 - 10**15)),
    "date": (pa.date32(), st.integers(-2440588, MAX_DATE)),
}


@st.composite
def tables(draw):
    rows = draw(st.integers(1, 25))
    columns, kinds = {"id": pa.array(range(rows))}, {}
    for i in range(draw(st.integers(1, 6))):
        to = draw(st.sampled_from(list(LEAVES)))
        kind, values = LEAVES[to]
        cells = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        form = draw(st.sampled_from(["plain", "dictionary", "runs", "list", "slice"]))
        made = array(kind, cells)
        if form == "dictionary" and rows < 120:
            made = pa.DictionaryArray.from_arrays(pa.array(range(rows), pa.int8()), made)
        elif form == "runs":
            made = pa.RunEndEncodedArray.from_arrays(pa.array(range(1, rows + 1), pa.int32()), made)
        elif form == "list":
            made = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), made)
        elif form == "slice":
            made = pa.concat_arrays([array(kind, cells[:3]), made, made])[min(3, rows) : min(3, rows) + rows]
        columns[f"c{i}"] = made
        kinds[f"c{i}"] = (to, kind, cells, form)
    return columns, kinds


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables())
def test_random_tables(target, made):
    columns, kinds = made
    name, done = target.deliver(pa.table(columns))
    assert done.returncode == 0, done.stderr
    what = {}
    for column, (to, _, _, form) in kinds.items():
        what[column] = TYPES[GROUP.get(to, to)][0].format(f"{column}[1]" if form == "list" else column)
    found = target.columns(name, what)
    for column, (to, kind, cells, form) in kinds.items():
        parse = TYPES[GROUP.get(to, to)][1]
        assert [v if v is None else parse(v, kind) for v in found[column]] == cells, (column, form)
