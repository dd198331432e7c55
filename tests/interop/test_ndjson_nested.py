"""Lists, structs and maps as NDJSON: what weir writes, Python reads; what Python writes, weir reads as pyarrow does."""

import decimal
import io
import json
import string

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.json
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test_ipc import dictionary_columns, nested_columns
from weir_ipc import WeirError
from weir_ndjson import decode_table, encode

REFUSED = ("runs", "sparse", "dense")  # what rows of JSON cannot hold


def lines_of(batch):
    return [json.loads(line) for line in encode(batch).splitlines()]


def plain(value, kind):
    """A Python value of pyarrow as JSON has it."""
    if value is None:
        return None
    if pa.types.is_dictionary(kind):
        return plain(value, kind.value_type)
    if pa.types.is_map(kind):
        items = [(key, plain(of, kind.item_type)) for key, of in value]
        return dict(items) if pa.types.is_string(kind.key_type) else [{"key": k, "value": v} for k, v in items]
    if pa.types.is_struct(kind):
        return {field.name: plain(value[field.name], field.type) for field in kind}
    if isinstance(value, list):
        return [plain(of, kind.value_type) for of in value]
    return value


@pytest.mark.parametrize("name", [n for n in {**nested_columns(), **dictionary_columns()} if n not in REFUSED])
def test_slices_of_every_type(name):
    column = {**nested_columns(), **dictionary_columns()}[name]
    batch = pa.record_batch({"c": column})
    want = [{"c": plain(value, column.type)} for value in column.to_pylist()]
    for at in range(len(column) + 1):
        for n in range(len(column) - at + 1):
            assert lines_of(batch.slice(at, n)) == want[at : at + n]


@pytest.mark.parametrize("name", REFUSED)
def test_what_rows_cannot_hold_is_named(name):
    for column in (nested_columns()[name], pa.ListArray.from_arrays(pa.array([0, 8], pa.int32()), nested_columns()[name])):
        with pytest.raises(WeirError, match=r"NOT_IMPLEMENTED.*column 'c(\[\])?': type .* cannot be written as NDJSON"):
            encode(pa.record_batch({"c": column}))


def test_views_in_any_order_and_nulls_with_items():
    items = pa.array([10, 20, 30, 40], pa.int32())
    views = pa.ListViewArray.from_arrays(pa.array([2, 0, 1, 4], pa.int32()), pa.array([2, 3, 0, 0], pa.int32()), items)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), items, mask=pa.array([True, False, False, True]))
    struct = pa.StructArray.from_arrays([items, lists], ["i", "l"], mask=pa.array([False, True, False, True]))
    batch = pa.record_batch({"v": views, "l": lists, "s": struct})
    assert lines_of(batch) == [
        {"v": [30, 40], "l": None, "s": {"i": 10, "l": None}},
        {"v": [10, 20, 30], "l": [20], "s": None},
        {"v": [], "l": [30], "s": {"i": 30, "l": [30]}},
        {"v": [], "l": None, "s": None},
    ]


def test_a_key_twice_in_a_map():
    kind = pa.map_(pa.string(), pa.int8())
    batch = pa.record_batch({"m": pa.array([[("a", 1)], [("a", 1), ("b", 2), ("a", 3)]], kind)})
    with pytest.raises(WeirError, match=r"BAD_DATA.*column 'm\[\"a\"\]': the map has this key twice"):
        encode(batch)
    assert lines_of(batch.slice(0, 1)) == [{"m": {"a": 1}}]
    many = [(f"{i * 7 % 100}", i) for i in range(100)]
    assert lines_of(pa.record_batch({"m": pa.array([many], kind)})) == [{"m": dict(many)}]
    with pytest.raises(WeirError, match=r"column 'm\[\"35\"\]'"):
        encode(pa.record_batch({"m": pa.array([[*many, ("35", 1), ("21", 1)]], kind)}))


def test_bad_strings_deep_inside():
    bad = pa.array([b"ok", b"\xff"]).view(pa.string())
    struct = pa.StructArray.from_arrays([bad], ["s"])
    lists = pa.ListArray.from_arrays(pa.array([0, 0, 2], pa.int32()), struct)
    with pytest.raises(WeirError, match=r"column 'c\[1\].s': the string is not valid UTF-8"):
        encode(pa.record_batch({"c": lists}))


def kinds():
    """Types, each with values of it as Python and JSON have them."""
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    flat = st.sampled_from(
        [
            (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
            (pa.string(), text),
            (pa.bool_(), st.booleans()),
            (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
        ]
    )

    def wider(inner):
        def lists(of):
            kind, values = of
            make = st.sampled_from([pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
            return make.map(lambda list_of: (list_of(kind), st.lists(st.none() | values, max_size=4)))

        def fixed(of):
            kind, values = of
            return st.integers(1, 3).map(lambda n: (pa.list_(kind, n), st.lists(st.none() | values, min_size=n, max_size=n)))

        def structs(members):
            names = string.ascii_lowercase[: len(members)]
            fields = [pa.field(name, kind) for name, (kind, _) in zip(names, members)]
            return pa.struct(fields), st.fixed_dictionaries({n: st.none() | v for n, (_, v) in zip(names, members)})

        def maps(of):
            return pa.map_(pa.string(), of[0]), st.dictionaries(text, st.none() | of[1], max_size=3)

        return inner.flatmap(lists) | inner.flatmap(fixed) | st.lists(inner, min_size=1, max_size=3).map(structs) | inner.map(maps)

    return st.recursive(flat, wider, max_leaves=6)


@st.composite
def tables(draw):
    members = draw(st.lists(kinds(), min_size=1, max_size=3))
    names = [f"column {i}" for i in range(len(members))]
    rows = draw(st.lists(st.fixed_dictionaries({n: st.none() | v for n, (_, v) in zip(names, members)}), max_size=5))
    return pa.schema([(n, kind) for n, (kind, _) in zip(names, members)]), rows


@settings(max_examples=60, deadline=None)
@given(tables(), st.booleans(), st.integers(1, 200), st.integers(1, 4))
def test_what_python_writes_is_read_and_written_again(case, spaces, block, batch_rows):
    schema, rows = case
    separators = (" , ", "\t: ") if spaces else (",", ":")
    text = "".join(json.dumps(row, separators=separators, ensure_ascii=spaces) + "\n" for row in rows).encode()
    table = decode_table(text, schema, block=block, batch_rows=batch_rows)
    table.validate(full=True)
    assert [plain(row, pa.struct(schema)) for row in table.to_pylist()] == rows
    for batch in table.to_batches():
        again = decode_table(encode(batch), schema)
        assert again.to_pylist() == pa.Table.from_batches([batch]).to_pylist()


ROWS = [
    {"i": 1, "tags": ["a", None], "who": {"name": "x", "zip": [1, 2]}},
    {"i": 2, "tags": [], "who": None},
    {"i": 3, "tags": None, "who": {"name": None, "zip": []}},
]
KIND = pa.schema([("i", pa.int64()), ("tags", pa.list_(pa.string())), ("who", pa.struct([("name", pa.string()), ("zip", pa.list_(pa.int64()))]))])


def test_others_read_what_is_written(tmp_path):
    text = encode(pa.RecordBatch.from_pylist(ROWS, schema=KIND))
    assert pyarrow.json.read_json(io.BytesIO(text), parse_options=pyarrow.json.ParseOptions(explicit_schema=KIND)).to_pylist() == ROWS
    assert pl.read_ndjson(text).to_dicts() == ROWS
    (tmp_path / "x.ndjson").write_bytes(text)
    got = duckdb.sql(f"select * from read_json('{tmp_path}/x.ndjson', format='newline_delimited')")
    assert [dict(zip(got.columns, row)) for row in got.fetchall()] == ROWS


def test_what_others_write_is_read(tmp_path):
    rows = pa.Table.from_pylist(ROWS, schema=KIND)
    assert decode_table(pl.from_arrow(rows).write_ndjson().encode(), KIND).to_pylist() == ROWS
    duckdb.sql(f"copy (select *, map {{'k': i * 2}} as m from rows) to '{tmp_path}/x.ndjson' (format json)")
    got = decode_table((tmp_path / "x.ndjson").read_bytes(), KIND.append(pa.field("m", pa.map_(pa.string(), pa.int64()))))
    assert got.to_pylist() == [{**row, "m": [("k", row["i"] * 2)]} for row in ROWS]


def test_decimals_inside_stay_exact():
    schema = pa.schema([("a", pa.list_(pa.decimal128(38, 10)))])
    want = decimal.Decimal("9007199254740993.0000000001")
    assert decode_table(b'{"a":[9007199254740993.0000000001]}\n', schema)["a"].to_pylist() == [[want]]
