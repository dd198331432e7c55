"""Parquet files of pyarrow, DuckDB, Polars and weir itself, read by weir and compared value by value."""

import decimal
import io
import random

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import test_parquet_nested
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_parquet_write import TYPES, all_types, column, same
from weir_parquet import Reader, WeirError, read_table
from weirlib import write_table


def written(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def values_of(kind):
    """The type that dictionaries and list views come as."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind):
        return pa.large_list(kind.value_field.with_type(values_of(kind.value_type)))
    if pa.types.is_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(kind.value_field.with_type(values_of(kind.value_type)))
    return kind


def shaped(array, shape):
    if shape == "nulls":
        return pa.nulls(1000, array.type)
    if shape == "filled":
        return pa.array([v for v in array if v.is_valid], array.type)
    if shape == "empty":
        return array.slice(0, 0)
    return array if shape == "few" else pa.concat_arrays([array] * 700)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", ["few", "many", "nulls", "filled", "empty"])
def test_what_weir_wrote(name, shape):
    table = pa.table({name: shaped(column(name), shape)})
    got = read_table(write_table(table, batch_rows=997), batch_rows=600)
    assert got.schema.equals(table.schema)
    same(table, got)


def pyarrow_types():
    """Without those that it cannot write."""
    names = []
    for name in TYPES:
        try:
            written(pa.table({name: column(name)}))
            names.append(name)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            pass
    return names


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_what_pyarrow_wrote(codec, version):
    names = pyarrow_types()
    assert len(names) > 30
    table = pa.table({name: pa.concat_arrays([column(name)] * 300) for name in names})
    for schema in (True, False):
        data = written(table, compression=codec, data_page_version=version, data_page_size=500, write_batch_size=100,
                       store_schema=schema, row_group_size=700, write_page_checksum=True)
        got = read_table(data, batch_rows=333)
        same(pq.read_table(io.BytesIO(data)), got)
        if schema:
            theirs = pq.read_table(io.BytesIO(data)).schema
            for name in names:
                assert got.schema.field(name).type in (theirs.field(name).type, TYPES[name][0])


RANDOM = random.Random(7)
N = 5000
ENCODINGS = {
    "DELTA_BINARY_PACKED": {
        "steps": pa.array([i * 3 - 7 for i in range(N)], pa.int32()),
        "wide": pa.array([RANDOM.randrange(-(2**63), 2**63) for _ in range(N)], pa.int64()),
        "small": pa.array([RANDOM.randrange(-(2**31), 2**31) if i % 3 else None for i in range(N)], pa.int32()),
        "one": pa.array([5] * N, pa.int64()),
    },
    "DELTA_LENGTH_BYTE_ARRAY": {"text": pa.array([None if i % 7 == 0 else "x" * (i % 50) for i in range(N)])},
    "DELTA_BYTE_ARRAY": {
        "path": pa.array([f"/a/{i // 100}/{i}" for i in range(N)]),
        "bytes": pa.array([None if i % 3 == 0 else b"\0" * (i % 9) for i in range(N)], pa.binary()),
        "fixed": pa.array([f"{i:08d}".encode() for i in range(N)], pa.binary(8)),
    },
    "BYTE_STREAM_SPLIT": {
        "f32": pa.array([RANDOM.random() for _ in range(N)], pa.float32()),
        "f64": pa.array([RANDOM.random() if i % 2 else None for i in range(N)], pa.float64()),
        "i32": pa.array([RANDOM.randrange(-(2**31), 2**31) for _ in range(N)], pa.int32()),
        "i64": pa.array(range(N), pa.int64()),
        "fixed": pa.array([f"{i:05d}".encode() for i in range(N)], pa.binary(5)),
    },
    "PLAIN": {"flag": pa.array([None if i % 5 == 0 else i % 3 == 0 for i in range(N)])},
    "RLE": {
        "flag": pa.array([None if i % 5 == 0 else i % 3 == 0 for i in range(N)]),
        "runs": pa.array([i // 900 % 2 == 0 for i in range(N)]),
    },
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_encodings(encoding, version):
    table = pa.table(ENCODINGS[encoding])
    data = written(table, use_dictionary=False, column_encoding=dict.fromkeys(table.column_names, encoding),
                   data_page_version=version, data_page_size=3000, write_batch_size=700)
    same(table, read_table(data, batch_rows=1234))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_dictionary_that_was_full(version):
    words = [f"word {RANDOM.randrange(4000)}" for _ in range(20000)]
    table = pa.table({"s": words, "n": pa.array([len(w) * 7919 % 5000 + i for i, w in enumerate(words)])})
    data = written(table, dictionary_pagesize_limit=5000, data_page_size=2000, data_page_version=version)
    assert len(pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).encodings) > 2
    same(table, read_table(data))


def test_int96_beyond_nanoseconds_is_refused(tmp_path):
    """Spark writes the year 9999; as nanoseconds since 1970 it would come back as some other year."""
    low, high = -(2**63), 2**63 - 1
    table = pa.table({"t": pa.array([low + 1, high], pa.timestamp("ns"))})
    pq.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True, use_dictionary=False, compression="none")
    data = (tmp_path / "t.parquet").read_bytes()
    assert read_table(data)["t"].cast(pa.int64()).to_pylist() == [low + 1, high]
    day = (106751 + 2440588).to_bytes(4, "little")
    assert data.count(day) == 1
    with pytest.raises(WeirError, match="column 't': a timestamp is beyond the years 1677 to 2262"):
        read_table(data.replace(day, (106752 + 2440588).to_bytes(4, "little")))


def test_int96():
    values = [0, -1, 10**18, None, -(10**18)]
    table = pa.table({"t": pa.array(values, pa.timestamp("ns"))})
    data = written(table, use_deprecated_int96_timestamps=True)
    same(table, read_table(data))


@pytest.mark.parametrize("name", test_parquet_nested.COLUMNS)
@pytest.mark.parametrize("by", ["weir", "pyarrow", "pyarrow-2.0"])
def test_nested(name, by):
    kind, values = test_parquet_nested.COLUMNS[name]
    table = pa.table({"before": pa.array(range(len(values) * 900)), name: pa.concat_arrays([pa.array(values, kind)] * 900)})
    if by == "weir":
        data = write_table(table, batch_rows=997, page_bytes=2000)
    else:
        if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
            table = table.set_column(1, name, pa.array(table[name].to_pylist(), values_of(kind)))
        data = written(table, data_page_version="2.0" if "2.0" in by else "1.0", data_page_size=700, write_batch_size=50,
                       row_group_size=1500)
    got = read_table(data, batch_rows=411)
    assert test_parquet_nested.as_lists(got[name]) == test_parquet_nested.as_lists(table[name])
    assert got["before"].equals(table["before"])
    assert got.schema.field(name).type == values_of(kind)


FIXED = {
    "of_list": (pa.list_(pa.list_(pa.int32()), 2), [[[1], []], None, [None, [2, None, 3]]]),
    "of_fixed": (pa.list_(pa.list_(pa.utf8(), 2), 3), [[["a", "b"], None, ["c", None]], None, [None, None, ["", "d"]]]),
    "of_struct": (pa.list_(pa.struct([("a", pa.int8()), ("b", pa.list_(pa.bool_(), 1))]), 1), [[{"a": 1, "b": [True]}], None, [None]]),
    "in_list": (pa.list_(pa.list_(pa.float32(), 2)), [[[1.0, 2.0], None], [], None, [[None, 3.0]]]),
    "in_struct": (pa.struct([("f", pa.list_(pa.int64(), 2)), ("g", pa.utf8())]), [{"f": [1, 2], "g": "x"}, None, {"f": None, "g": None}]),
}


@pytest.mark.parametrize("name", FIXED)
def test_fixed_size_lists(name):
    kind, values = FIXED[name]
    table = pa.table({"c": pa.array(values * 700, kind)})
    for data in (write_table(table, page_bytes=2000, batch_rows=997), written(table, data_page_size=700, write_batch_size=50)):
        got = read_table(data, batch_rows=411)
        assert got.schema.equals(table.schema)
        assert got["c"].to_pylist() == table["c"].to_pylist()


def test_random_nested():
    inner = pa.struct([("a", pa.list_(pa.list_(pa.int32()))), pa.field("b", pa.utf8(), nullable=False)])
    kind = pa.list_(pa.struct([("s", inner), ("m", pa.map_(pa.utf8(), pa.list_(inner)))]))
    pick = random.Random(3)

    def maybe(make):
        return None if pick.random() < 0.2 else make()

    def some(make):
        return [make() for _ in range(pick.choice([0, 0, 1, 2, 5]))]

    def struct():
        return {"a": maybe(lambda: some(lambda: maybe(lambda: some(lambda: maybe(lambda: pick.randrange(99)))))),
                "b": "x" * pick.randrange(20)}

    def entry():
        return {"s": maybe(struct), "m": maybe(lambda: [(str(i), maybe(lambda: some(struct))) for i in range(pick.randrange(3))])}

    table = pa.table({"c": pa.array([maybe(lambda: some(lambda: maybe(entry))) for _ in range(3000)], kind)})
    for data in (written(table, data_page_size=999, write_batch_size=64), write_table(table, page_bytes=999, batch_rows=700)):
        for rows in (1, 17, 5000):
            assert read_table(data, batch_rows=rows)["c"].to_pylist() == table["c"].to_pylist()


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(test_parquet_nested.tables(), st.sampled_from(["none", "zstd", "snappy"]), st.sampled_from(["1.0", "2.0"]),
       st.integers(1, 150), st.integers(1, 400), st.integers(1, 60), st.integers(0, 9))
def test_anything_comes_back(table, codec, version, batch_rows, group_rows, page_rows, skip):
    table = table.slice(skip)
    try:
        theirs = written(table, compression=codec, data_page_version=version, row_group_size=group_rows, data_page_size=64,
                         write_batch_size=page_rows)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # what pyarrow cannot write
        theirs = None
    ours = write_table(table, codec=codec, row_group_rows=group_rows, page_bytes=300)
    for data in filter(None, (theirs, ours)):
        got = read_table(data, batch_rows=batch_rows)
        for name in table.column_names:
            assert test_parquet_nested.as_lists(got[name]) == test_parquet_nested.as_lists(table[name])


def test_columns_and_row_groups():
    table = pa.table({"a": range(1000), "l": [[i] * (i % 4) for i in range(1000)], "b": [str(i) for i in range(1000)]})
    data = written(table, row_group_size=300, data_page_size=100, write_batch_size=10)
    assert read_table(data, columns=["b"]).equals(table.select(["b"]))
    assert read_table(data, columns=["b", "l"], batch_rows=7).equals(table.select(["l", "b"]))
    with pytest.raises(WeirError, match="NOT_FOUND: .*no column 'c'"):
        Reader(data, columns=["c"])
    reader = Reader(data, batch_rows=128)
    assert (reader.rows(), reader.groups()) == (1000, [300, 300, 300, 100])
    for group, row in [(1, 0), (2, 299), (0, 150), (3, 99), (2, 57), (1, 300), (4, 0)]:
        reader.seek(group, row)
        start = min(group * 300 + row, 1000)
        assert reader.tell() == divmod(start, 300) if start < 1000 else (4, 0)
        got = reader.next()
        if start == 1000:
            assert got is None
        else:
            assert pa.Table.from_batches([got]).equals(table.slice(start, min(128, (start // 300 + 1) * 300 - start)))
    for group, row in [(0, 301), (4, 1), (5, 0)]:
        with pytest.raises(WeirError, match="INVALID_STATE"):
            reader.seek(group, row)


def test_no_rows_and_no_row_groups():
    table = all_types().slice(0, 0)
    assert read_table(write_table(table)).num_rows == 0
    assert read_table(written(pa.table({"a": pa.array([], pa.int64())}))).num_rows == 0


def test_what_duckdb_wrote(tmp_path):
    query = """
        select i::tinyint as t, i::usmallint as us, i::ubigint as ub, (i * 1.5)::float as f, i / 7 as d,
               (i / 100)::decimal(9, 2) as d9, (i / 100)::decimal(18, 3) as d18, (i / 100)::decimal(38, 4) as d38,
               date '2024-02-29' + i::int as day, timestamp '2024-02-29 01:02:03.000004' + interval (i) hour as at,
               timestamptz '2024-02-29 01:02:03Z' as atz, time '01:02:03' as clock, 'word ' || i % 10 as word,
               case when i % 3 = 0 then null else 'text ' || i end as text, [i, null, i + 1] as l,
               {'a': i, 'b': [{'c': i::varchar}]} as s, map {i::varchar: i} as m, 'x'::blob as bytes, i % 2 = 0 as flag
        from range(100) r(i)"""
    for options in ("", ", parquet_version v2", ", compression zstd", ", compression uncompressed"):
        path = tmp_path / "d.parquet"
        with duckdb.connect() as connection:
            connection.execute(f"set timezone = 'UTC'; copy ({query}) to '{path}' (format parquet{options})")
        want, got = pq.read_table(path), read_table(path.read_bytes())
        assert got.to_pylist() == want.to_pylist()


def test_intervals_and_uuids_of_duckdb(tmp_path):
    path = tmp_path / "d.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"""copy (select interval '14 months 3 days 5 seconds' as i,
                               '00112233-4455-6677-8899-aabbccddeeff'::uuid as u) to '{path}' (format parquet)""")
    got = read_table(path.read_bytes())
    assert got.schema.field("i").type == pa.month_day_nano_interval()
    assert got["i"][0].as_py() == (14, 3, 5 * 10**9)
    assert got["u"][0].as_py() == bytes.fromhex("00112233445566778899aabbccddeeff")


def test_what_polars_wrote(tmp_path):
    frame = polars.DataFrame({
        "i": list(range(3000)),
        "s": [None if i % 5 == 0 else f"a text that is longer than twelve, {i}" for i in range(3000)],
        "c": polars.Series([f"c{i % 3}" for i in range(3000)], dtype=polars.Categorical),
        "l": [[i, None] if i % 2 else None for i in range(3000)],
        "st": [{"a": i, "b": str(i)} for i in range(3000)],
        "t": polars.Series(range(3000), dtype=polars.Datetime("us", "Europe/Berlin")),
        "d": polars.Series(range(3000), dtype=polars.Duration("ms")),
    })
    for options in ({}, {"compression": "snappy", "row_group_size": 1000}, {"data_page_size": 999}):
        frame.write_parquet(tmp_path / "p.parquet", **options)
        got = read_table((tmp_path / "p.parquet").read_bytes())
        want = pq.read_table(tmp_path / "p.parquet")
        assert got.to_pylist() == want.to_pylist()


def test_codecs_that_are_refused():
    table = pa.table({"a": range(100)})
    with pytest.raises(WeirError, match="NOT_IMPLEMENTED: .*brotli"):
        read_table(written(table, compression="brotli"))


def test_a_wrong_checksum_is_told():
    data = bytearray(written(pa.table({"a": pa.array(range(1000))}), compression="none", use_dictionary=False,
                             write_page_checksum=True))
    data[2000] ^= 1
    with pytest.raises(WeirError, match="CORRUPT: test: row group 0: column 'a': a page's checksum is wrong"):
        read_table(data)


def test_a_first_level_that_repeats_nothing():
    data = written(pa.table({"l": [[i] for i in range(8)]}), compression="none", use_dictionary=False)
    levels = b"\x02\0\0\0\x10\0"  # of length 2: a run of 8 zeros
    assert data.count(levels) == 1
    with pytest.raises(WeirError, match="CORRUPT: .*its first level repeats a row that is not there"):
        read_table(data.replace(levels, levels[:-1] + b"\1"))


def test_a_batch_has_a_bound():
    table = pa.table({"s": pa.DictionaryArray.from_arrays(pa.array([0] * 10000, pa.int32()), ["x" * 10000])})
    data = written(table)
    with pytest.raises(WeirError, match="ask for fewer rows"):
        read_table(data, max_batch_bytes=1 << 20)
    assert read_table(data, max_batch_bytes=1 << 20, batch_rows=50).num_rows == 10000


def as_decimals(data, name, precision, scale):
    """The file with a column of bytes called a decimal: no writer at hand makes such (parquet-mr may)."""
    size = int.from_bytes(data[-8:-4], "little")
    start = b"\x18" + bytes([len(name)]) + name.encode()  # SchemaElement, field 4
    footer = data[-8 - size : -8]
    assert footer.count(start + b"\0") == 1
    # Fields 6, 7, 8: converted_type DECIMAL, scale, precision, as zigzag
    footer = footer.replace(start + b"\0", start + b"\x25\x0a\x15" + bytes([2 * scale]) + b"\x15" + bytes([2 * precision]) + b"\0")
    return data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize("encoding", ["plain", "dictionary", "delta_length_byte_array", "delta_byte_array"])
@pytest.mark.parametrize("precision, scale", [(9, 2), (38, 10), (60, 0)])
def test_decimals_of_bytes(precision, scale, encoding):
    rnd = random.Random(precision)
    values = [None if i % 7 == 3 else rnd.randrange(-(10**precision) + 1, 10**precision) >> rnd.randrange(190) for i in range(5000)]
    # As few bytes as there can be, or some more of the sign; none at all is 0
    sizes = [0 if v in (None, 0) else (v.bit_length() + 8) // 8 + rnd.randrange(3) for v in values]
    column = [None if v is None else v.to_bytes(size, "big", signed=True) for v, size in zip(values, sizes)]
    data = write_table(pa.table({"value": pa.array(column, pa.binary())}), encoding={"value": encoding}, page_bytes=4000)
    got = read_table(as_decimals(data, "value", precision, scale))["value"]
    assert got.type == (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)
    with decimal.localcontext(prec=80):
        assert got.to_pylist() == [None if v is None else decimal.Decimal(v).scaleb(-scale) for v in values]


def test_decimals_of_too_many_bytes_are_refused():
    data = write_table(pa.table({"value": pa.array([b"\1" + bytes(16)], pa.binary())}))
    with pytest.raises(WeirError, match="column 'value': a value does not fit its type"):
        read_table(as_decimals(data, "value", 20, 2))
