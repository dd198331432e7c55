"""Encodings of Parquet that are asked for by name, those of `newest`, and what effort `small` makes smaller."""

import decimal
import io
import random

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import weir_parquet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_parquet_rules import INVALID_CONFIG, footer
from weirlib import CODECS, WeirError, Writer, write_table

PLAIN, DICTIONARY, DELTA, LENGTHS, STRINGS, SPLIT = 0, 8, 5, 6, 7, 9
NAMES = {"plain": PLAIN, "dictionary": DICTIONARY, "delta_binary_packed": DELTA, "delta_length_byte_array": LENGTHS,
         "delta_byte_array": STRINGS, "byte_stream_split": SPLIT}
N = 20_000


def maybe(values):
    return [None if i % 11 == 3 else value for i, value in enumerate(values)]


def columns():
    rnd = random.Random(3)
    words = sorted(f"https://example.org/{i // 100}/{i:07d}" for i in range(N))
    return {
        "i8": pa.array(maybe(i % 100 for i in range(N)), pa.int8()),
        "i32": pa.array(maybe(rnd.randrange(-(2**31), 2**31) for _ in range(N)), pa.int32()),
        "u64": pa.array(maybe(rnd.getrandbits(64) for _ in range(N)), pa.uint64()),
        "ts": pa.array(maybe(10**15 + 7 * i for i in range(N)), pa.timestamp("us")),
        "f64": pa.array(maybe(rnd.gauss(0, 1) for _ in range(N)), pa.float64()),
        "f32": pa.array(maybe(float(i) for i in range(N)), pa.float32()),
        "dec": pa.array(maybe(decimal.Decimal(i) * 10**20 for i in range(N)), pa.decimal128(30, 0)),
        "text": pa.array(maybe(words)),
        "bytes": pa.array(maybe(rnd.randbytes(i % 9) for i in range(N)), pa.binary()),
        "flag": pa.array(maybe(i % 3 == 0 for i in range(N))),
        "coded": pa.array(maybe(words)).dictionary_encode(),
    }


# What each column takes under `compatible`, and what `newest` adds
ALLOWED = {
    **{name: {"plain", "dictionary", "delta_binary_packed"} for name in ("i8", "i32", "u64", "ts")},
    **{name: {"plain", "dictionary", "byte_stream_split"} for name in ("f64", "f32")},
    **{name: {"plain", "dictionary", "delta_length_byte_array", "delta_byte_array"} for name in ("text", "bytes")},
    "dec": {"plain", "dictionary"}, "flag": {"plain"}, "coded": {"plain", "dictionary"},
}
NEWEST = {"i8", "i32", "u64", "ts"}


def data_encodings(data, column=0):
    return {stats[2] for group in footer(data)[4] for stats in group[1][column][3][13] if stats[1] != 2}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", columns())
def test_every_encoding_that_is_asked_for(name, version, tmp_path):
    table = pa.table({name: columns()[name]})
    path = tmp_path / "t.parquet"
    for encodings, encoding in [(e, n) for e in (0, 1) for n in NAMES]:
        options = {"encodings": encodings, "encoding": {name: encoding}, "data_page_version": version}
        if encoding not in ALLOWED[name] and not (encodings and encoding == "byte_stream_split" and name in NEWEST):
            with pytest.raises(WeirError, match=f"column '{name}' cannot have encoding {encoding}: ") as refused:
                Writer(table.schema, **options)
            assert refused.value.code == INVALID_CONFIG
            continue
        data = write_table(table, path, batch_rows=3000, page_bytes=20_000, row_group_rows=12_000, **options)
        assert data_encodings(data) == {NAMES[encoding]}
        plain = table.cast(pa.schema([(name, pa.string())])) if name == "coded" else table
        got = pq.read_table(io.BytesIO(data), page_checksum_verification=True)
        assert got.schema == table.schema and got.cast(plain.schema).equals(plain)
        assert weir_parquet.read_table(data).cast(plain.schema).equals(plain)
        got = duckdb.sql(f"select * from '{path}'").to_arrow_table()
        assert got.cast(plain.schema).equals(plain)
        assert polars.read_parquet(path).to_arrow().cast(plain.schema).equals(plain)


def test_wishes_reach_nested_values_by_path():
    lists = [[f"item {i}", f"item {i} again"] for i in range(3000)]
    table = pa.table({"tags": pa.array(lists, pa.list_(pa.string()))})
    data = write_table(table, encoding={"tags.list.element": "delta_byte_array"})
    assert data_encodings(data) == {STRINGS}
    assert pq.read_table(io.BytesIO(data)).equals(table)


def test_unknown_columns_and_encodings_are_named():
    schema = pa.schema([("a", pa.int64())])
    with pytest.raises(WeirError, match="there is no column 'b' for an encoding"):
        Writer(schema, encoding={"b": "plain"})
    with pytest.raises(WeirError, match="column 'a': there is no encoding 'brotli'; expected plain, dictionary, delta"):
        Writer(schema, encoding={"a": "brotli"})


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.none() | st.binary(max_size=5) | st.sampled_from([b"abc" * 50, b"abc" * 49 + b"ab", b"abcabd"])),
       st.integers(1, 40), st.sampled_from([20, 1 << 19]), st.sampled_from(list(CODECS)))
def test_common_prefixes_of_anything(values, batch_rows, page_bytes, codec):
    table = pa.table({"b": pa.array(values, pa.binary())})
    data = write_table(table, batch_rows=batch_rows, page_bytes=page_bytes, codec=codec, encoding={"b": "delta_byte_array"})
    assert pq.read_table(io.BytesIO(data)).equals(table)
    assert weir_parquet.read_table(data).equals(table)


def test_newest_splits_integers_where_that_is_smaller():
    rnd = random.Random(9)
    table = pa.table({"n": pa.array([rnd.randrange(10**6) for _ in range(100_000)], pa.int64())})
    compatible, newest = (write_table(table, encodings=encodings) for encodings in (0, 1))
    assert data_encodings(compatible) == {DELTA} and data_encodings(newest) == {SPLIT}
    assert len(newest) < len(compatible)
    assert pq.read_table(io.BytesIO(newest)).equals(table)
    rising = pa.table({"n": range(100_000)})
    assert data_encodings(write_table(rising, encodings=1)) == {DELTA}
    assert data_encodings(write_table(table, encodings=1, codec="none")) == {DELTA}


@pytest.mark.parametrize("codec", CODECS)
def test_small_is_never_larger(codec):
    """Of each column, whatever its values; and where a better encoding is to be had, smaller."""
    smaller = set()
    for name, column in columns().items():
        table = pa.table({name: column})
        fast, small = (write_table(table, codec=codec, effort=effort) for effort in (0, 1))
        assert pq.read_table(io.BytesIO(small)).to_pydict() == table.to_pydict()
        assert len(small) <= len(fast) * 1.002, name
        if len(small) < len(fast) * 0.9:
            smaller.add(name)
    assert "text" in smaller
