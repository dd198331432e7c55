"""What weir writes as Parquet, read back by pyarrow, DuckDB and Polars and compared value by value."""

import datetime
import decimal
import io
import math
import random
import struct

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import weirlib
from weirlib import CODECS, WeirError, Writer, write_table

D = decimal.Decimal
UTC = datetime.timezone.utc


def decimals(scale, *texts):
    return [None if t is None else D(f"{t}E-{scale}") for t in texts]


# name -> (Arrow type, values with every edge that the type has). None stands for null.
TYPES = {
    "bool": (pa.bool_(), [True, False, None, True]),
    "int8": (pa.int8(), [-128, 127, 0, None]),
    "uint8": (pa.uint8(), [0, 255, None, 7]),
    "int16": (pa.int16(), [-32768, 32767, None, 0]),
    "uint16": (pa.uint16(), [0, 65535, None, 1]),
    "int32": (pa.int32(), [-(2**31), 2**31 - 1, None, 0]),
    "uint32": (pa.uint32(), [0, 2**32 - 1, None, 5]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1, None, 0]),
    "uint64": (pa.uint64(), [0, 2**64 - 1, None, 9]),
    "float16": (pa.float16(), [0.0, -2.5, math.inf, None]),
    "float32": (pa.float32(), [0.0, -1.5, math.inf, None]),
    "float64": (pa.float64(), [-0.0, 1e308, -math.inf, None]),
    "decimal32": (pa.decimal32(9, 2), decimals(2, "-999999999", "999999999", None, "0")),
    "decimal64": (pa.decimal64(18, 4), decimals(4, "-999999999999999999", "1", None, "0")),
    "decimal128_5": (pa.decimal128(5, 2), decimals(2, "-99999", "99999", None, "-1")),
    "decimal128_18": (pa.decimal128(18, 0), decimals(0, "-999999999999999999", "1", None, "-1")),
    "decimal128_38": (pa.decimal128(38, 10), decimals(10, "-" + "9" * 38, "9" * 38, None, "-1")),
    "decimal256_76": (pa.decimal256(76, 0), decimals(0, "-" + "9" * 76, "9" * 76, None, "-1")),
    "date32": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None, datetime.date(1970, 1, 1)]),
    "date64": (pa.date64(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None, datetime.date(1969, 12, 31)]),
    "time32_s": (pa.time32("s"), [0, 86399, None, 1]),
    "time32_ms": (pa.time32("ms"), [0, 86399999, None, 1]),
    "time64_us": (pa.time64("us"), [0, 86399999999, None, 1]),
    "time64_ns": (pa.time64("ns"), [0, 86399999999000, None, 1000]),
    "timestamp_s": (pa.timestamp("s"), [0, -62135596800, None, 253402300799]),
    "timestamp_ms": (pa.timestamp("ms"), [0, -62135596800000, None, 1]),
    "timestamp_us": (pa.timestamp("us"), [0, -62135596800000000, None, 1]),
    "timestamp_ns": (pa.timestamp("ns"), [0, -(2**62), None, 2**62]),
    "timestamp_s_utc": (pa.timestamp("s", "UTC"), [0, -1, None, 253402300799]),
    "timestamp_us_zone": (pa.timestamp("us", "Europe/Berlin"), [0, -1, None, 1]),
    "timestamp_ns_utc": (pa.timestamp("ns", "UTC"), [0, -1, None, 1]),
    "duration_s": (pa.duration("s"), [0, -(2**40), None, 2**40]),
    "duration_ns": (pa.duration("ns"), [0, -(2**62), None, 2**62]),
    "utf8": (pa.utf8(), ["", "a", None, "\u20ac" * 40]),
    "large_utf8": (pa.large_utf8(), ["", "a", None, "x" * 300]),
    "utf8_view": (pa.string_view(), ["", "twelve bytes", None, "more than twelve bytes"]),
    "binary": (pa.binary(), [b"", b"\x00\xff", None, b"\xff" * 100]),
    "large_binary": (pa.large_binary(), [b"", b"\x00", None, b"q" * 70]),
    "binary_view": (pa.binary_view(), [b"", b"\x00" * 13, None, b"q" * 70]),
    "fixed_size_binary": (pa.binary(5), [b"\x00" * 5, b"\xff" * 5, None, b"abcde"]),
    "null": (pa.null(), [None, None, None, None]),
}
NO_DUCKDB = {"null"}  # known to neither as a column type of its own; still to be read without an error
NO_POLARS = {"decimal256_76"}  # its decimals end at 38 digits
CASTS = {  # what Parquet has no type for comes back as this, then as itself
    "date64": pa.date32(),
    "time32_s": pa.time32("ms"),
    "timestamp_s": pa.timestamp("ms"),
    "timestamp_s_utc": pa.timestamp("ms", "UTC"),
}


def column(name):
    kind, values = TYPES[name]
    if pa.types.is_float16(kind):
        return pa.array(values, pa.float32()).cast(kind)
    if all(v is None or isinstance(v, int) for v in values) and pa.types.is_temporal(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    return pa.array(values, kind)


def all_types(repeat=1):
    return pa.table({name: pa.concat_arrays([column(name)] * repeat) for name in TYPES})


def bits(value):
    """Values that compare equal only when they are the same: NaN equals itself, -0.0 not 0.0."""
    return struct.pack("<d", value) if isinstance(value, float) else value


def decoded(chunks):
    array = chunks.combine_chunks()
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def same(table, got):
    assert table.column_names == got.column_names
    for name in table.column_names:
        want, have = decoded(table[name]), decoded(got[name])
        if have.type != want.type:
            have = have.cast(want.type)
        if pa.types.is_temporal(want.type):  # beyond what Python's types can hold
            width = pa.int32() if want.type.bit_width == 32 else pa.int64()
            want, have = want.cast(width), have.cast(width)
        assert [bits(v) for v in want.to_pylist()] == [bits(v) for v in have.to_pylist()], name


def read(data):
    """The table as pyarrow reads it, page checksums verified."""
    return pq.read_table(io.BytesIO(data), page_checksum_verification=True)


def ask(query):
    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()


def through_duckdb(path, name):
    with duckdb.connect() as connection:
        return connection.sql(f"select \"{name}\" from '{path}'").to_arrow_table()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("codec", CODECS)
def test_all_types(codec, version, tmp_path):
    table = all_types()
    data = write_table(table, tmp_path / "t.parquet", codec=codec, data_page_version=version)
    same(table, read(data))
    for name in TYPES:
        if name not in CASTS:
            assert read(data).schema.field(name).type == table.schema.field(name).type, name


def encoded_types():
    """The types that pyarrow makes dictionaries of."""
    return [name for name in TYPES if not ("view" in name or name in ("null", "float16", "decimal32", "decimal64"))]


SHAPES = ["mixed", "nulls", "filled", "empty", "slice", "batches", "v2"]
CASES = [(name, False) for name in TYPES] + [(name, True) for name in encoded_types()]


@pytest.mark.parametrize("name, encoded", CASES, ids=[f"{n}-{'dictionary' if e else 'plain'}" for n, e in CASES])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_type(name, encoded, shape, tmp_path):
    array = column(name)
    if shape == "nulls":
        array = pa.nulls(1000, array.type)
    elif shape == "filled":
        array = pa.array([v for v in array if v.is_valid], array.type)
    elif shape == "empty":
        array = array.slice(0, 0)
    elif shape in ("slice", "batches", "v2"):
        array = pa.concat_arrays([array] * 700)
    if encoded:
        array = array.dictionary_encode()
    if shape == "slice":
        array = array.slice(3, 2001)
    table = pa.table({name: array})
    path = tmp_path / "t.parquet"
    batch_rows = 997 if shape in ("batches", "v2") else None
    data = write_table(table, path, batch_rows=batch_rows, data_page_version=2 if shape == "v2" else 1)
    same(table, read(data))
    if name not in NO_POLARS:
        assert polars.read_parquet(path).height == len(array)
    plain = pa.table({name: array.cast(TYPES[name][0])}) if encoded else table
    if name not in NO_DUCKDB:
        same_duckdb(plain, path, name)
        same_polars(plain, path, name)


def same_duckdb(table, path, name):
    got = ask(f"select count(*), count(\"{name}\") from '{path}'")[0]
    assert got == (len(table), len(table) - table[name].null_count)
    kind = table.schema.field(name).type
    if pa.types.is_decimal256(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        return  # DuckDB has no such type; counted above
    have = through_duckdb(path, name)
    if pa.types.is_timestamp(kind) and kind.tz:
        have = pa.table({name: have[name].cast(pa.timestamp(kind.unit, kind.tz), safe=False)})
        if kind.unit == "ns":
            return  # DuckDB has microseconds with a zone
    if pa.types.is_float16(kind):
        have = pa.table({name: have[name].cast(pa.float32())})
        table = pa.table({name: table[name].cast(pa.float32())})
    same(table, have)


def same_polars(table, path, name):
    kind = table.schema.field(name).type
    if name in NO_POLARS or pa.types.is_fixed_size_binary(kind) or pa.types.is_float16(kind):
        return
    have = polars.read_parquet(path).to_arrow()
    if pa.types.is_decimal(kind):
        have = pa.table({name: have[name].cast(kind)})
    same(table, have)


def test_text_without_repeats(tmp_path):
    """Frames of literals only, which weir makes itself; a fifth of the way in come bytes that no text before had,
    and lines that come again and again, at which libzstd takes over."""
    chance = random.Random(5)
    letters = "abcdefghijklmnopqrstuvwxyz      "
    lines = ["".join(chance.choices(letters, k=chance.randrange(10, 60))) for _ in range(60_000)]
    lines[12_000] = "Größe \U0001f600"
    lines[13_000] = None
    text, again = pa.table({"t": pa.array(lines)}), pa.table({"t": pa.array(lines + lines[:99] * 3000)})
    path = tmp_path / "t.parquet"
    data = write_table(text, path, codec="zstd")
    same_everywhere(text, path, data)
    plain = sum(len(line or "") for line in lines)
    assert len(data) < plain * 0.62  # 4.6 of 8 bits; LZ4 leaves all of it
    data = write_table(again, path, codec="zstd")
    same_everywhere(again, path, data)
    assert len(data) < plain * 0.75


def same_everywhere(table, path, data):
    assert read(data).equals(table)
    assert through_duckdb(path, "t")["t"].to_pylist() == table["t"].to_pylist()
    assert polars.read_parquet(path)["t"].to_list() == table["t"].to_pylist()


def test_field_ids(tmp_path):
    def with_id(name, kind, number):
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number), "other": "x"})

    schema = pa.schema([
        with_id("a", pa.int64(), 0),
        pa.field("b", pa.string()),
        with_id("c", pa.struct([with_id("d", pa.int32(), 2147483647), pa.field("e", pa.bool_())]), 7),
        with_id("f", pa.list_(with_id("element", pa.string(), 9)), 8),
        with_id("g", pa.dictionary(pa.int32(), pa.string()), 12),
    ])
    write_table(pa.table([[], [], [], [], []], schema=schema), tmp_path / "x.parquet")
    rows = duckdb.sql(f"select name, field_id from parquet_schema('{tmp_path}/x.parquet')").fetchall()
    assert rows == [("schema", None), ("a", 0), ("b", None), ("c", 7), ("d", 2147483647), ("e", None), ("f", 8),
                    ("list", None), ("element", 9), ("g", 12)]
    for wrong in ("", "x", "-1", "2147483648", "1" * 40):
        with pytest.raises(WeirError, match="'a'.*PARQUET:field_id is not a number"):
            Writer(pa.schema([with_id("a", pa.int64(), wrong)]))
