"""CSV both ways against Python's own csv, pyarrow, DuckDB and Polars."""

import base64
import csv
import datetime as dt
import decimal
import io
import math

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir_csv import decode, decode_table, encode
from weir_ipc import WeirError

UTC = dt.timezone.utc


def integers(bits, signed):
    low = -(1 << (bits - 1)) if signed else 0
    return st.integers(low, low + (1 << bits) - 1)


def decimals(precision, scale):
    top = 10**precision - 1
    context = decimal.Context(prec=100)
    return st.integers(-top, top).map(lambda v: context.scaleb(decimal.Decimal(v), -scale))


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
# texts made of what CSV is about
TRICKY = st.text(st.sampled_from('a",\n\r\t;é😀 NA'), max_size=60)

# name: (type, values, their texts)
COLUMNS = {
    "i8": (pa.int8(), integers(8, True), str),
    "i64": (pa.int64(), integers(64, True), str),
    "u64": (pa.uint64(), integers(64, False), str),
    "f64": (pa.float64(), st.floats(allow_nan=False), repr),
    "f32": (pa.float32(), st.floats(allow_nan=False, allow_infinity=False, width=32), repr),
    "flag": (pa.bool_(), st.booleans(), lambda v: str(v)),
    "text": (pa.string(), TEXT | TRICKY, None),
    "long, text": (pa.large_string(), TRICKY, None),
    "d38": (pa.decimal128(38, 10), decimals(38, 10), str),
    "d76": (pa.decimal256(76, 38), decimals(76, 38), lambda v: f"{v:f}"),
    "blob": (pa.binary(), st.binary(), lambda v: base64.b64encode(v).decode()),
    "day": (pa.date32(), st.dates(), lambda v: v.isoformat()),
    "time": (pa.time64("us"), st.times(), lambda v: v.isoformat()),
    "ts": (pa.timestamp("us"), st.datetimes(), lambda v: v.isoformat(sep=" ")),
    "tz": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC)), lambda v: v.isoformat()),
    "span": (pa.duration("s"), integers(40, True).map(lambda v: dt.timedelta(seconds=v)), lambda v: f"{v.days * 86400 + v.seconds}"),
}
SCHEMA = pa.schema({name: type for name, (type, _, _) in COLUMNS.items()})
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, (_, values, _) in COLUMNS.items()}), max_size=12)


def table_of(rows, schema=SCHEMA):
    return pa.table({name: pa.array([row[name] for row in rows], schema.field(name).type) for name in schema.names}, schema)


def text_of(rows, dialect, order):
    """What Python's csv writes; null is an empty field, a text is always quoted."""
    out = io.StringIO()
    writer = csv.writer(out, **dialect)
    writer.writerow(order)
    for row in rows:
        texts = [None if row[n] is None else row[n] if COLUMNS[n][2] is None else COLUMNS[n][2](row[n]) for n in order]
        writer.writerow(texts)
    return out.getvalue().encode()


@settings(max_examples=60, deadline=None)
@given(ROWS, st.permutations(list(COLUMNS)), st.sampled_from([",", ";", "\t", "|"]), st.sampled_from(["\n", "\r\n"]),
       st.integers(20, 300), st.integers(1, 5))
def test_python_writes_weir_reads(rows, order, delimiter, end, block, batch_rows):
    # QUOTE_NOTNULL is not in every Python: an empty text and null are both empty there, so take it as null
    rows = [{k: None if v in ("", b"") else v for k, v in row.items()} for row in rows]
    if end == "\n":  # it leaves CR without quotes then
        rows = [{k: v.replace("\r", "~") if isinstance(v, str) else v for k, v in row.items()} for row in rows]
    data = text_of(rows, {"delimiter": delimiter, "lineterminator": end}, order)
    got = decode_table(data, SCHEMA, delimiter=delimiter, block=block, batch_rows=batch_rows)
    assert got.equals(table_of(rows))


@settings(max_examples=60, deadline=None)
@given(ROWS, st.sampled_from([",", ";", "\t", ":", "/"]), st.sampled_from([None, "'"]), st.sampled_from(["", "NA", "\\N"]),
       st.booleans(), st.integers(20, 300))
def test_weir_writes_weir_reads(rows, delimiter, quote, null, header, block):
    table = table_of(rows)
    options = {"delimiter": delimiter, "quote": quote, "null": null, "header": header}
    data = encode(pa.RecordBatch.from_pylist(rows, SCHEMA), **options)
    assert decode_table(data, SCHEMA, block=block, **options).equals(table)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.none() | TRICKY, st.none() | TEXT, st.none() | integers(64, True)), min_size=1, max_size=12))
def test_weir_writes_others_read(rows):
    schema = pa.schema({"a": pa.string(), "b": pa.string(), "c": pa.int64()})
    batch = pa.RecordBatch.from_pylist([dict(zip("abc", row)) for row in rows], schema)
    data = encode(batch)
    got = list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))
    assert got == [["a", "b", "c"]] + [["" if v is None else str(v) for v in row] for row in rows]
    convert = pa.csv.ConvertOptions(column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""])
    parse = pa.csv.ParseOptions(newlines_in_values=True)
    assert pa.csv.read_csv(io.BytesIO(data), parse_options=parse, convert_options=convert).equals(pa.Table.from_batches([batch]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.none() | TRICKY, st.none() | integers(64, True), st.none() | st.floats(allow_nan=False, allow_infinity=False)), max_size=12))
def test_pyarrow_writes_weir_reads(rows):
    schema = pa.schema({"a": pa.string(), "b": pa.int64(), "c": pa.float64()})
    table = pa.Table.from_pylist([dict(zip("abc", row)) for row in rows], schema)
    out = io.BytesIO()
    pa.csv.write_csv(table, out)
    assert decode_table(out.getvalue(), schema).equals(table)


def test_duckdb_and_polars_write_weir_reads(tmp_path):
    schema = pa.schema({"i": pa.int64(), "d": pa.decimal128(18, 3), "f": pa.float64(), "s": pa.string(), "b": pa.bool_(),
                        "day": pa.date32(), "ts": pa.timestamp("us")})
    made = duckdb.sql("""select (i * 1234567890123)::bigint as i, (i / 7)::decimal(18, 3) as d, (hash(i) / 3.7)::double as f,
        case when i % 5 = 0 then null else 'text "' || i || E'",\\r\\n é' end as s, i % 2 = 0 as b,
        date '1969-12-25' + i::int as day, timestamp '2024-02-29 23:59:59.5' + interval (i) hour as ts
        from range(5000) t(i)""").to_arrow_table().cast(schema)
    path = tmp_path / "rows.csv"
    duckdb.sql(f"copy (select * from made) to '{path}' (format csv, header)")
    assert decode_table(path.read_bytes(), schema, block=4099).equals(made)
    pl.from_arrow(made).write_csv(path)
    assert decode_table(path.read_bytes(), schema, block=4099).equals(made)
    path.write_bytes(b"".join(encode(b, header=i == 0) for i, b in enumerate(made.combine_chunks().to_batches())))
    types = "{'i': 'BIGINT', 'd': 'DECIMAL(18,3)', 'f': 'DOUBLE', 's': 'VARCHAR', 'b': 'BOOLEAN', 'day': 'DATE', 'ts': 'TIMESTAMP'}"
    read = f"read_csv('{path}', header=true, auto_detect=false, columns={types}, quote='\"', escape='\"', new_line='\\n', allow_quoted_nulls=false)"
    back = duckdb.sql(f"select * from {read}").to_arrow_table().cast(schema)
    assert back.equals(made)


def test_not_a_number_and_one_column():
    schema = pa.schema({"f": pa.float64()})
    batch = pa.RecordBatch.from_pylist([{"f": v} for v in (math.inf, None, -math.inf, math.nan)], schema)
    assert encode(batch) == b"f\nInfinity\n\n-Infinity\nNaN\n"
    got = decode_table(encode(batch), schema)["f"].to_pylist()
    assert got[:3] == [math.inf, None, -math.inf] and math.isnan(got[3])


def test_errors_carry_column_and_place():
    schema = pa.schema({"a": pa.int64(), "b": pa.string()})
    with pytest.raises(WeirError, match=r"line 3, byte 8: column 'a' \(int64\) has a text that spells no such value"):
        decode(b"b,a\nx,1\n", schema) and decode(b"a,b\n1,x\nq,y\n", schema)
