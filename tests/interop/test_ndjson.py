"""NDJSON both ways against Python's own json, pyarrow, DuckDB and Polars."""

import base64
import datetime as dt
import decimal
import io
import json
import math

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.json
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir_ipc import WeirError
from weir_ndjson import decode, decode_table, encode

UTC = dt.timezone.utc
MICROSECONDS = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)


def integers(bits, signed):
    low = -(1 << (bits - 1)) if signed else 0
    return st.integers(low, low + (1 << bits) - 1)


def decimals(precision, scale):
    top = 10**precision - 1
    context = decimal.Context(prec=100)
    return st.integers(-top, top).map(lambda v: context.scaleb(decimal.Decimal(v), -scale))


def single(value):
    return pa.array([value], pa.float32())[0].as_py()


def without_surrogates(**options):
    return st.text(st.characters(exclude_categories=["Cs"]), **options)


# name: (type, values, what JSON holds for a value)
COLUMNS = {
    **{f"i{b}": (getattr(pa, f"int{b}")(), integers(b, True), str) for b in (8, 16, 32, 64)},
    **{f"u{b}": (getattr(pa, f"uint{b}")(), integers(b, False), str) for b in (8, 16, 32, 64)},
    "f64": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False), repr),
    "f32": (pa.float32(), st.floats(allow_nan=False, allow_infinity=False, width=32), repr),
    "flag": (pa.bool_(), st.booleans(), lambda v: "true" if v else "false"),
    "text": (pa.string(), without_surrogates(), None),
    "long text": (pa.large_string(), without_surrogates(), None),
    "d38": (pa.decimal128(38, 10), decimals(38, 10), str),
    "d76": (pa.decimal256(76, 38), decimals(76, 38), lambda v: f'"{v:f}"'),
    "blob": (pa.binary(), st.binary(), lambda v: json.dumps(base64.b64encode(v).decode())),
    "day": (pa.date32(), st.dates(), lambda v: f'"{v.isoformat()}"'),
    "time": (pa.time64("us"), st.times(), lambda v: f'"{v.isoformat()}"'),
    "ts": (pa.timestamp("us"), st.datetimes(*MICROSECONDS), lambda v: f'"{v.isoformat()}"'),
    "tz": (
        pa.timestamp("us", "UTC"),
        st.datetimes(*MICROSECONDS, timezones=st.just(UTC)),
        lambda v: f'"{v.isoformat()}"',
    ),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _, _) in COLUMNS.items()])


def same(got, want):
    """Equal values, with -0.0 and 0.0 told apart."""
    assert got.schema == want.schema and got.num_rows == want.num_rows
    for name in want.schema.names:
        a, b = got[name].to_pylist(), want[name].to_pylist()
        assert a == b, name
        if pa.types.is_floating(want.schema.field(name).type):
            assert [v and math.copysign(1, v) for v in a] == [v and math.copysign(1, v) for v in b]


@st.composite
def rows_and_text(draw):
    rows = draw(st.lists(st.fixed_dictionaries({n: st.none() | v for n, (_, v, _) in COLUMNS.items()}), max_size=6))
    lines = []
    for row in rows:
        names = draw(st.permutations(list(row)))
        blank, ascii = draw(st.sampled_from(["", " ", "\t "])), draw(st.booleans())
        parts = []
        for name in names:
            value, write = row[name], COLUMNS[name][2]
            if value is None:
                if draw(st.booleans()):
                    continue
                text = "null"
            else:
                text = write(value) if write else json.dumps(value, ensure_ascii=ascii)
            parts.append(f"{json.dumps(name)}{blank}:{blank}{text}{blank}")
        if draw(st.booleans()):
            parts.insert(draw(st.integers(0, len(parts))), '"other": ' + draw(st.sampled_from(["1.5e3", '"\\n"', "[{}]"])))
        lines.append("{" + blank + ("," + blank).join(parts) + "}" + draw(st.sampled_from(["\n", "\r\n", "\n\n"])))
    return rows, "".join(lines).encode()


@settings(max_examples=150, deadline=None)
@given(rows_and_text(), st.integers(1, 400), st.integers(1, 4))
def test_what_python_writes_is_read(case, block, batch_rows):
    rows, text = case
    same(decode_table(text, SCHEMA, block=block, batch_rows=batch_rows), pa.Table.from_pylist(rows, SCHEMA))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.fixed_dictionaries({n: st.none() | v for n, (_, v, _) in COLUMNS.items()}), max_size=6))
def test_what_is_written_comes_back(rows):
    table = pa.Table.from_pylist(rows, SCHEMA)
    text = b"".join(encode(batch) for batch in table.to_batches())
    same(decode_table(text, SCHEMA), table)
    for line, row in zip(text.splitlines(), rows, strict=True):
        parsed = json.loads(line, parse_float=decimal.Decimal)
        assert list(parsed) == SCHEMA.names
        for name in ("i64", "u64", "text", "flag"):
            assert parsed[name] == row[name]
        for name in ("d38", "d76"):
            assert row[name] is None or decimal.Decimal(parsed[name]) == row[name]


@settings(max_examples=300, deadline=None)
@given(st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_floats_are_rounded_as_python_does(text):
    want = float(text)
    if math.isinf(want):
        with pytest.raises(WeirError, match="out of range"):
            decode(f'{{"v":{text}}}'.encode(), pa.schema([("v", pa.float64())]))
        return
    got = decode_table(f'{{"v":{text}}}'.encode(), pa.schema([("v", pa.float64())]))["v"][0].as_py()
    assert got == want and math.copysign(1, got) == math.copysign(1, want)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_of_a_string_are_read_as_python_reads_them(raw):
    """A string of any bytes is taken if and only if Python's json takes it, and with the same value."""
    line = b'{"v":"' + raw.replace(b"\n", b" ") + b'"}'
    schema = pa.schema([("v", pa.string())])
    try:
        want = json.loads(line.decode("utf-8"), strict=True)
        # Python lets lone surrogates pass, and keys beside the one asked for
        for value in want.values():
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        if not isinstance(want.get("v"), str | None):
            want = None
    except (ValueError, AttributeError):
        want = None
    try:
        got = decode_table(line, schema)["v"].to_pylist()[0]
    except WeirError as error:
        assert error.status == "BAD_DATA"
        # refused by both, or a column given twice
        assert want is None or line.count(b'"v"') > 1
    else:
        assert want is not None and got == want.get("v")


# BL-56: integers above 2^53 through double, u64 above 2^63 - 1 not read, in two well-known readers.
EXACT = {
    pa.int64(): ["9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808"],
    pa.uint64(): ["9007199254740993", "9223372036854775808", "18446744073709551615"],
    pa.decimal128(38, 10): ["1234567890123456789012345678.0123456789", "-9999999999999999999999999999.9999999999"],
}


@pytest.mark.parametrize("kind", EXACT, ids=str)
def test_numbers_stay_exact(kind):
    schema = pa.schema([("v", kind)])
    text = "".join(f'{{"v":{v}}}\n' for v in EXACT[kind]).encode()
    (batch,) = decode(text, schema)
    assert [str(v) for v in batch["v"].to_pylist()] == EXACT[kind]
    assert encode(batch) == text


@pytest.mark.parametrize(
    "kind, text",
    [
        (pa.int64(), "9223372036854775808"),
        (pa.int64(), "-9223372036854775809"),
        (pa.uint64(), "18446744073709551616"),
        (pa.uint64(), "-1"),
        (pa.int8(), "128"),
        (pa.decimal128(38, 10), "10000000000000000000000000000"),
        (pa.float32(), "3.5e38"),
    ],
    ids=str,
)
def test_numbers_out_of_range_tell_line_and_column(kind, text):
    with pytest.raises(WeirError, match=r"^BAD_DATA: line 2, byte 8: column 'v' \(.*\) is out of range"):
        decode(b'{}\n{"v":' + text.encode() + b"}\n", pa.schema([("v", kind)]))


def plain_table():
    return pa.table(
        {
            "id": pa.array([1, 2, None, -(2**63)], pa.int64()),
            "small": pa.array([None, 0, 127, -128], pa.int8()),
            "x": pa.array([0.1, None, -2.5e300, 5e-324]),
            "text": pa.array(["", "größe \U0001f600", 'quote " back \\ line \n nul \0', None]),
            "flag": pa.array([True, False, None, True]),
            "ts": pa.array([0, None, 1_700_000_000_123_456, -1], pa.timestamp("us")),
            "day": pa.array([0, 19_000, None, -1], pa.date32()),
        }
    )


def test_pyarrow_reads_what_is_written():
    table = plain_table().drop_columns("day")  # which it has no text for
    (batch,) = table.to_batches()
    options = pyarrow.json.ParseOptions(explicit_schema=table.schema)
    same(pyarrow.json.read_json(io.BytesIO(encode(batch)), parse_options=options), table)


def test_duckdb_reads_what_is_written(tmp_path):
    table = plain_table()
    (batch,) = table.to_batches()
    path = tmp_path / "rows.ndjson"
    path.write_bytes(encode(batch))
    columns = "{id:'BIGINT',small:'TINYINT',x:'DOUBLE',text:'VARCHAR',flag:'BOOLEAN',ts:'TIMESTAMP',day:'DATE'}"
    got = duckdb.sql(f"select * from read_json('{path}', format='newline_delimited', columns={columns})").fetchall()
    assert got == [tuple(row.values()) for row in table.to_pylist()]


def test_polars_reads_what_is_written():
    table = plain_table()
    (batch,) = table.to_batches()
    got = pl.read_ndjson(io.BytesIO(encode(batch)), schema_overrides={"ts": pl.String, "day": pl.String})
    want = table.to_pylist()
    assert got["id"].to_list() == [row["id"] for row in want]
    assert got["x"].to_list() == [row["x"] for row in want]
    assert got["text"].to_list() == [row["text"] for row in want]
    assert [v and dt.datetime.fromisoformat(v) for v in got["ts"].to_list()] == [row["ts"] for row in want]


def test_what_duckdb_writes_is_read(tmp_path):
    path = tmp_path / "rows.ndjson"
    table = plain_table()
    connection = duckdb.connect()
    connection.register("rows", table)
    connection.sql(f"copy (select * from rows) to '{path}' (format json)")
    same(decode_table(path.read_bytes(), table.schema), table)


def test_what_polars_writes_is_read():
    table = plain_table()
    same(decode_table(pl.from_arrow(table).write_ndjson().encode(), table.schema), table)
