"""Nested columns that weir writes as Parquet: read back by pyarrow, DuckDB and Polars, and their rules."""

import io
import random
import struct

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_parquet_rules import chunk_statistics, column_index, encodings, footer, offset_index, pages_of
from weirlib import BAD_DATA, CODECS, WeirError, Writer, write_table


def read(data):
    return pq.read_table(io.BytesIO(data), page_checksum_verification=True)


def plain(value):
    """With values that compare equal only when they are the same."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return struct.pack("<d", value) if isinstance(value, float) else value


def as_lists(column):
    return [plain(v) for chunk in column.chunks for v in chunk.to_pylist()]


def duckdb_lists(path, name):
    with duckdb.connect() as connection:
        return as_lists(connection.sql(f"select \"{name}\" from '{path}'").to_arrow_table()[name])


def polars_lists(path, name):
    return as_lists(polars.read_parquet(path).to_arrow()[name])


def int_list(nullable=True):
    return pa.list_(pa.field("item", pa.int64(), nullable=nullable))


INNER = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.bool_())), pa.field("c", pa.string(), nullable=False)])

# name -> (type, values, nullable)
COLUMNS = {
    "list": (int_list(), [[1, None, 3], None, [], [None], [4]]),
    "large_list": (pa.large_list(pa.utf8()), [["a", ""], None, [], [None], ["b" * 40]]),
    "list_view": (pa.list_view(pa.int16()), [[1, None, 3], None, [], [None], [4]]),
    "large_list_view": (pa.large_list_view(pa.float64()), [[1.5, None, -0.0], None, [], [None], [4.0]]),
    "fixed_size_list": (pa.list_(pa.int8(), 2), [[1, 2], None, [None, 4], [5, 6]]),
    "struct": (INNER, [{"a": 1, "b": [True, None], "c": "x"}, None, {"a": None, "b": None, "c": ""}, {"a": 2, "b": [], "c": "y"}]),
    "list_of_struct": (pa.list_(INNER), [[{"a": 1, "b": [False], "c": "x"}, None], None, [], [{"a": None, "b": [], "c": "z"}]]),
    "list_of_list": (pa.list_(pa.large_list(pa.binary())), [[[b"a", None], [], None], None, [], [None], [[b""]]]),
    "map": (pa.map_(pa.utf8(), pa.int32()), [[("k", 1), ("l", None)], None, [], [("m", 2)]]),
    "map_of_map": (pa.map_(pa.int32(), pa.map_(pa.utf8(), pa.list_(pa.int8()))), [[(1, [("a", [1, None])]), (2, None)], None, []]),
    "struct_of_struct": (pa.struct([("s", pa.struct([("t", pa.date32())]))]), [{"s": {"t": None}}, {"s": None}, None]),
    "list_of_null": (pa.list_(pa.null()), [[None, None], None, []]),
    "list_of_decimal": (pa.list_(pa.decimal128(30, 2)), [[None], [], None]),
    "list_of_fixed": (pa.list_(pa.binary(3)), [[b"abc", None], [], None, [b"\0\0\0"]]),
    "list_of_view": (pa.list_(pa.string_view()), [["short", None, "longer than twelve bytes"], [], None]),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("shape", ["few", "many", "slice", "nulls", "empty"])
def test_read_back(name, shape, tmp_path):
    kind, values = COLUMNS[name]
    array = pa.array(values, kind)
    if shape in ("many", "slice"):
        array = pa.concat_arrays([array] * 900)
    if shape == "slice":
        array = array.slice(3, 2001)
    if shape == "nulls":
        array = pa.nulls(700, kind)
    if shape == "empty":
        array = array.slice(0, 0)
    table, path = pa.table({"n": pa.array(range(len(array))), "x": array}), tmp_path / "t.parquet"
    options = {"page_bytes": 500, "row_group_rows": 1500} if shape != "few" else {}
    data = write_table(table, path, batch_rows=997, **options)
    got, want = read(data), as_lists(table["x"])
    got.validate(full=True)
    assert as_lists(got["x"]) == want
    if "view" not in name:
        assert got.schema.field("x").type == kind
    assert polars_lists(path, "x") == want
    if "null" not in name:
        assert duckdb_lists(path, "x") == want


def test_schema_is_of_three_levels():
    schema = pa.schema([
        pa.field("l", pa.list_(pa.field("odd", pa.int32(), nullable=False)), nullable=False),
        pa.field("m", pa.map_(pa.utf8(), pa.int32())),
        pa.field("s", pa.struct([("a", pa.list_(pa.int64()))])),
    ])
    writer = Writer(schema)
    writer.finish()
    elements = [(bytes(e[4]).decode(), e.get(3), e.get(5), e.get(6)) for e in footer(writer.data)[2]]
    assert elements == [
        ("schema", None, 3, None),
        ("l", 0, 1, 3), ("list", 2, 1, None), ("element", 0, None, None),
        ("m", 1, 1, 1), ("key_value", 2, 2, None), ("key", 0, None, 0), ("value", 1, None, None),
        ("s", 1, 1, None), ("a", 1, 1, 3), ("list", 2, 1, None), ("element", 1, None, None),
    ]  # fmt: skip
    assert pq.read_schema(io.BytesIO(writer.data)).equals(schema)


def test_pages_begin_with_records_and_match_their_indexes():
    random.seed(7)
    lists = [None if random.random() < 0.1 else [random.randrange(1000) or None for _ in range(random.randrange(9))] for _ in range(40000)]
    lists[100] = list(range(90000))  # a record that is longer than a page
    table = pa.table({"x": pa.array(lists, pa.list_(pa.int64()))})
    data = write_table(table, batch_rows=7000, page_bytes=20000, codec="none")
    chunk = footer(data)[4][0][1][0]
    levels = sum(max(len(v or []), 1) for v in lists)
    values = [x for v in lists for x in v or [] if x is not None]
    assert chunk[3][5] == levels and chunk_statistics(data)[3] == levels - len(values)
    places, index = offset_index(data, chunk)[1], column_index(data, chunk)
    starts = [p[3] for p in places] + [len(lists)]
    headers = [header for _, header, _ in pages_of(data, chunk) if header[1] == 0]
    assert len(headers) == len(places) > 20
    for page, (first, last) in enumerate(zip(starts, starts[1:])):
        part = lists[first:last]
        assert headers[page][5][1] == sum(max(len(v or []), 1) for v in part)
        here = [x for v in part for x in v or [] if x is not None]
        assert index[5][page] == headers[page][5][1] - len(here)
        assert int.from_bytes(index[2][page], "little") == min(here)
        assert int.from_bytes(index[3][page], "little") == max(here)
    assert as_lists(read(data)["x"]) == lists


def test_encodings_are_chosen_for_leaves():
    random.seed(1)
    offsets = pa.array(range(0, 70001, 7), pa.int32())
    cases = {
        "DELTA_BINARY_PACKED": pa.array([random.randrange(10**6) for _ in range(70000)]),
        "RLE_DICTIONARY": pa.array([random.choice(["a", "bb", "ccc"]) for _ in range(70000)]),
        "BYTE_STREAM_SPLIT": pa.array([random.random() for _ in range(70000)]),
        "DELTA_LENGTH_BYTE_ARRAY": pa.array([str(random.random()) for _ in range(70000)]),
    }
    for encoding, values in cases.items():
        table = pa.table({"x": pa.ListArray.from_arrays(offsets, values)})
        data = write_table(table)
        assert encoding in encodings(data)
        assert read(data).equals(table)


def test_what_nulls_hide_is_left_out():
    """Null lists and structs over child slots that hold values."""
    values = pa.array(range(12), pa.int64())
    valid = pa.array([True, False, True, False]).buffers()[1]
    lists = pa.Array.from_buffers(pa.list_(pa.int64()), 4, [valid, pa.array([0, 3, 6, 9, 12], pa.int32()).buffers()[1]], children=[values])
    fixed = pa.Array.from_buffers(pa.list_(pa.int64(), 3), 4, [valid], children=[values])
    structs = pa.Array.from_buffers(pa.struct([("a", pa.list_(pa.int64()))]), 4, [valid], children=[lists.fill_null([])])
    table = pa.table({"l": lists, "f": fixed, "s": structs})
    for part in (table, table.slice(1, 3), table.slice(2, 1)):
        data = write_table(part)
        assert [as_lists(c) for c in read(data).columns] == [as_lists(c) for c in part.columns]
    assert chunk_statistics(write_table(table))[5] == struct.pack("<q", 8)


def test_list_views_out_of_order():
    values = pa.array([f"v{i}" for i in range(10)])
    offsets, sizes = pa.array([7, 0, 3, 2, 9], pa.int32()), pa.array([3, 2, 0, 5, 1], pa.int32())
    views = pa.ListViewArray.from_arrays(offsets, sizes, values)
    for words in (values, values.dictionary_encode()):
        views = pa.ListViewArray.from_arrays(offsets, sizes, words)
        got = read(write_table(pa.table({"x": views})))
        assert as_lists(got["x"]) == views.to_pylist()


@pytest.mark.parametrize("values", [["a", None, "b"], [1, None, 3], [[1, 2], None, []]], ids=str)
def test_runs_become_their_values(values, tmp_path):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 7000], pa.int32()), pa.array(values))
    outer = pa.ListArray.from_arrays(pa.array([0, 4, 4, 6], pa.int32()), runs)
    want = [values[0]] * 2 + [values[1]] + [values[2]] * 6997
    for array in (runs, runs.slice(1, 4), outer):
        path = tmp_path / "t.parquet"
        data = write_table(pa.table({"x": array}), path)
        expected = want if len(array) > 4 else want[1:5] if array is not outer else [want[:4], [], want[4:6]]
        assert as_lists(read(data)["x"]) == polars_lists(path, "x") == duckdb_lists(path, "x") == expected


def test_dictionaries_within_lists():
    words = pa.array([f"word {i}" for i in range(150000)] + [None])
    index = [i * 7 % 150001 for i in range(200000)] + [None]
    for size in (5, 150001):
        flat = pa.DictionaryArray.from_arrays(pa.array([i and i % size for i in index], pa.int32()), words[-size:])
        offsets = pa.array([0, 0, 3, *range(1000, 200001, 1000), 200001], pa.int32())
        table = pa.table({"x": pa.ListArray.from_arrays(offsets, flat)})
        data = write_table(table)
        assert as_lists(read(data)["x"]) == as_lists(table["x"])
        assert read(data).schema.field("x").type == table.schema.field("x").type


def test_values_that_do_not_fit_are_refused_where_they_can_be_seen():
    bad = 2**62
    stamps = pa.array([1, bad, 2, bad], pa.int64()).view(pa.timestamp("s"))
    valid = pa.array([True, False, True]).buffers()[1]
    offsets = pa.array([0, 1, 2, 3], pa.int32()).buffers()[1]
    hidden = pa.Array.from_buffers(pa.list_(pa.timestamp("s")), 3, [valid, offsets], children=[stamps])
    seen = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), stamps)
    writer = Writer(pa.schema([("x", hidden.type)]))
    writer.write(pa.record_batch([hidden], ["x"]))
    with pytest.raises(WeirError, match="milliseconds") as caught:
        writer.write(pa.record_batch([seen], ["x"]))
    assert (caught.value.code, caught.value.column, caught.value.row) == (BAD_DATA, 0, 1)
    writer.write(pa.record_batch([hidden.slice(2)], ["x"]))
    assert writer.finish().rows == 4


def test_month_day_nano_intervals(tmp_path):
    kind, path = pa.month_day_nano_interval(), tmp_path / "t.parquet"
    column = pa.array([(1, 2, 3_000_000), None, (0, 0, 0)], kind)
    write_table(pa.table({"x": column}), path)
    with duckdb.connect() as connection:
        got = connection.sql(f"select datepart('month', x), datepart('day', x), datepart('ms', x) from '{path}'").fetchall()
    assert got == [(1, 2, 3), (None, None, None), (0, 0, 0)]
    for values, why in (((0, 0, 1), "whole milliseconds"), ((0, -1, 0), "negative"), ((0, 0, 2**62 // 10**6 * 10**6), "32 bits")):
        with pytest.raises(WeirError, match=why):
            write_table(pa.table({"x": pa.array([values], kind)}))


def test_as_deep_as_pyarrow_reads():
    kind, value = pa.int64(), 5
    for _ in range(48):
        kind, value = pa.list_(kind), [value]
    table = pa.table({"x": pa.array([value, None], kind)})
    assert as_lists(read(write_table(table))["x"]) == [value, None]


# ---- anything


SCALARS = {
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=30),
    pa.large_binary(): st.binary(max_size=30),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.date32(): st.dates(),
    pa.decimal128(25, 3): st.decimals(-(10**20), 10**20, places=3),
}


def field(name, kind, draw):
    """pyarrow cannot read a fixed-size list that is not nullable in a struct that is null."""
    return pa.field(name, kind, nullable=draw(st.booleans()) or pa.types.is_fixed_size_list(kind))


@st.composite
def kinds(draw, depth=3):
    shape = draw(st.sampled_from(["scalar", "list", "large", "fixed", "view", "struct", "map"] if depth > 0 else ["scalar"]))
    if shape == "scalar":
        return draw(st.sampled_from(list(SCALARS)))
    inner = draw(kinds(depth=depth - 1))
    if shape == "struct":
        other = draw(kinds(depth=depth - 1))
        return pa.struct([field("a", inner, draw), field("b", other, draw)])
    if shape == "map":
        return pa.map_(draw(st.sampled_from([pa.string(), pa.int64()])), field("value", inner, draw))
    item = field("item", inner, draw)
    return {"list": pa.list_, "large": pa.large_list, "view": pa.list_view}[shape](item) if shape != "fixed" else pa.list_(item, 2)


def value_of(kind, rng, samples, nullable):
    if nullable and rng.random() < 0.2:
        return None
    if pa.types.is_struct(kind):
        return {f.name: value_of(f.type, rng, samples, f.nullable) for f in kind}
    if pa.types.is_map(kind):
        keys = {rng.choice(samples[kind.key_type]) for _ in range(rng.randrange(3))}
        return [(k, value_of(kind.item_type, rng, samples, kind.item_field.nullable)) for k in keys]
    if pa.types.is_fixed_size_list(kind):
        return [value_of(kind.value_type, rng, samples, kind.value_field.nullable) for _ in range(2)]
    if kind in samples:
        return rng.choice(samples[kind])
    size = rng.choice([0, 0, 1, 2, 3, 7])
    return [value_of(kind.value_type, rng, samples, kind.value_field.nullable) for _ in range(size)]


@st.composite
def tables(draw):
    rng = random.Random(draw(st.integers(0, 2**32)))
    samples = {kind: draw(st.lists(values, min_size=1, max_size=4)) for kind, values in SCALARS.items()}
    rows = draw(st.sampled_from([0, 1, 17, 300]))
    fields = [field(f"c{i}", draw(kinds()), draw) for i in range(draw(st.integers(1, 3)))]
    return pa.table([pa.array([value_of(f.type, rng, samples, f.nullable) for _ in range(rows)], f.type) for f in fields], pa.schema(fields))


def polars_reads(kind):
    """Polars 2 stumbles over nulls among fixed-size lists whose items are not nullable (pages of few rows)."""
    if pa.types.is_fixed_size_list(kind) and not kind.value_field.nullable:
        return False
    return all(polars_reads(kind.field(i).type) for i in range(kind.num_fields))


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(tables(), st.sampled_from(list(CODECS)), st.integers(1, 150), st.integers(1, 400), st.sampled_from([16, 300, 1 << 19]), st.integers(1, 2), st.integers(0, 9))
def test_anything_comes_back(tmp_path_factory, table, codec, batch_rows, group_rows, page_bytes, version, skip):
    path = tmp_path_factory.getbasetemp() / "anything.parquet"
    table = table.slice(skip)
    data = write_table(table, path, batch_rows=batch_rows, codec=codec, row_group_rows=group_rows, page_bytes=page_bytes,
                       data_page_version=version)
    got = read(data)
    got.validate(full=True)
    easy = [f.name for f in table.schema if polars_reads(f.type)]
    other = polars.read_parquet(path, columns=easy).to_arrow() if easy else None
    for name in table.column_names:
        want = as_lists(table[name])
        assert as_lists(got[name]) == want
        if name in easy:
            assert as_lists(other[name]) == want
        assert duckdb_lists(path, name) == want
