"""Rules of Parquet files that values alone do not show: statistics, page indexes, row groups, refusals."""

import decimal
import io
import math
import random
import struct
import zlib

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thrift_compact import read_struct
from weirlib import BAD_DATA, CODECS, WeirError, Writer, write_table

NOT_IMPLEMENTED, SCHEMA, INVALID_CONFIG, INVALID_STATE = 3, 5, 1, 2


def ask(query):
    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()


def footer(data):
    size = int.from_bytes(data[-8:-4], "little")
    return read_struct(data[-8 - size : -8])[0]


def chunk_statistics(data, group=0, column=0):
    return footer(data)[4][group][1][column][3].get(12, {})


# ---- statistics


def test_bl42_nan_is_no_bound(tmp_path):
    path = tmp_path / "t.parquet"
    for values in ([3.0, math.nan, 3.0], [math.nan] * 3, [None, math.nan]):
        for kind in (pa.float32(), pa.float64(), pa.float16()):
            column = pa.array(values, pa.float64()).cast(kind)
            statistics = chunk_statistics(write_table(pa.table({"x": column}), path))
            assert 5 not in statistics and 6 not in statistics
    data = write_table(pa.table({"x": [3.0, math.nan, 3.0]}), path)
    assert ask(f"select count(*) from '{path}' where x <> 3") == [(1,)]
    assert ask(f"select count(*) from '{path}' where x > 1000") == [(1,)]  # NaN is DuckDB's greatest
    assert ds.dataset(path).count_rows(filter=ds.field("x") != 3) == 1
    assert pq.read_table(io.BytesIO(data), filters=ds.field("x") != 3).num_rows == 1


def test_bl44_long_bounds_are_cut_upward(tmp_path):
    path = tmp_path / "t.parquet"
    texts = ["a" * 199 + c for c in "xyz"] + ["\u20ac" * 90, "\U0010ffff" * 50]
    for n in range(1, len(texts) + 1):
        data = write_table(pa.table({"s": texts[:n]}), path)
        statistics = chunk_statistics(data)
        low, high = (t.encode() for t in (min(texts[:n]), max(texts[:n])))
        assert statistics[5] >= high and statistics[7] == (statistics[5] == high)
        assert statistics[6] <= low and statistics[8] == (statistics[6] == low)
        statistics[5].decode(), statistics[6].decode()
        for text in texts[:n]:
            assert ask(f"select count(*) from '{path}' where s = '{text}'") == [(1,)]
            assert ds.dataset(path).count_rows(filter=ds.field("s") == text) == 1
            assert polars.scan_parquet(path).filter(polars.col("s") == text).collect().height == 1
    ones = chunk_statistics(write_table(pa.table({"b": [b"\xff" * 100]})))
    assert ones[5] == b"\xff" * 100 and ones[7]


@pytest.mark.parametrize("kind", [pa.decimal128(38, 0), pa.decimal128(5, 2), pa.decimal256(60, 1)], ids=str)
def test_bl45_decimals_have_a_sign(kind):
    column = pa.array([decimal.Decimal(n) for n in (0, 1, -1)], kind)
    data = write_table(pa.table({"d": column}))
    statistics = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).statistics
    assert statistics.min == -1 and statistics.max == 1
    index = column_index(data, footer(data)[4][0][1][0])
    byte_order = "big" if len(index[2][0]) > 8 else "little"
    scale = 10**kind.scale
    assert [int.from_bytes(v, byte_order, signed=True) for v in index[2] + index[3]] == [-scale, scale]


def test_bl47_no_empty_row_group(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"x": list(range(200))})
    for rows in (50, 100, 200, 1000, 7):
        data = write_table(table, batch_rows=50, row_group_rows=rows)
        groups = [g[3] for g in footer(data)[4]]
        assert sum(groups) == 200 and min(groups) > 0 and max(groups) <= rows
        assert len(groups) == -(-200 // rows)
    empty = pa.table({"x": pa.array([], pa.int64()), "s": pa.array([], pa.string())})
    for batches in ([], empty.to_batches() or [pa.record_batch([[], []], schema=empty.schema)]):
        writer = Writer(empty.schema)
        for batch in batches:
            writer.write(batch)
        assert writer.finish().row_groups == 0
        path.write_bytes(writer.data)
        assert pq.read_table(path).schema.equals(empty.schema)
        assert ask(f"select count(*) from '{path}'") == [(0,)]
        assert [row[:2] for row in ask(f"describe select * from '{path}'")] == [("x", "BIGINT"), ("s", "VARCHAR")]
        assert polars.read_parquet(path).schema == {"x": polars.Int64, "s": polars.String}


def test_bl53_columns_without_a_value(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"i": pa.nulls(70000, pa.int64()), "n": pa.nulls(70000), "s": pa.nulls(70000, pa.string())})
    data = write_table(table, path)
    for column in range(3):
        assert chunk_statistics(data, column=column) == {3: 70000}
    assert pq.read_table(path).equals(table)
    assert ask(f"select count(*), count(i), count(n), count(s) from '{path}'") == [(70000, 0, 0, 0)]
    assert polars.read_parquet(path).null_count().row(0) == (70000, 70000, 70000)
    assert set(column_index(data, footer(data)[4][0][1][0])[1]) == {True}


def test_unsigned_and_zero_bounds(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table(
        {
            "u": pa.array([1, 2**64 - 1, 2**63], pa.uint64()),
            "b": pa.array([1, 255, 128], pa.uint8()),
            "z": pa.array([0.0, -0.0, 0.0]),
            "t": [True, True, True],
        }
    )
    data = write_table(table, path)
    meta = pq.ParquetFile(path).metadata.row_group(0)
    assert (meta.column(0).statistics.min, meta.column(0).statistics.max) == (1, 2**64 - 1)
    assert (meta.column(1).statistics.min, meta.column(1).statistics.max) == (1, 255)
    zero = chunk_statistics(data, column=2)
    assert (zero[6], zero[5]) == (struct.pack("<d", -0.0), struct.pack("<d", 0.0))
    assert (meta.column(3).statistics.min, meta.column(3).statistics.max) == (True, True)
    assert ask(f"select count(*) from '{path}' where u > 9223372036854775807") == [(2,)]
    assert ask(f"select count(*) from '{path}' where z = 0") == [(3,)]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.timestamp("us"), pa.float32(), pa.float64()], ids=str
)
def test_bounds_of_later_pages(kind):
    """They are found while the values are encoded; the greatest and the least are in the third page."""
    draw = random.Random(8)
    whole = not pa.types.is_floating(kind)
    low, high = (-100, 100) if kind == pa.int8() else (10**6, 2 * 10**6)
    values = [draw.randrange(low, high) if whole else draw.random() for _ in range(200_000)]
    edge = 127 if kind == pa.int8() else 3_000_000_000 if kind == pa.uint32() else 2**23
    values[150_000], values[150_001] = edge, 5 if "uint" in str(kind) else -128
    values[13] = None
    column = pa.array(values, pa.int64() if kind == pa.timestamp("us") else kind)
    data = write_table(pa.table({"x": column.cast(kind)}), batch_rows=65536)
    statistics = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).statistics
    assert pa.array([statistics.min, statistics.max], kind).cast(column.type).to_pylist() == [
        column[150_001].as_py(), column[150_000].as_py()]
    if not whole:
        values[199_999] = math.nan
        data = write_table(pa.table({"x": pa.array(values, kind)}), batch_rows=65536)
        assert not pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).statistics.has_min_max


def test_interval_has_no_bounds(tmp_path):
    values = struct.pack("<iiii", 3, 86400000, 0, 5)
    column = pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(values)])
    raw = column  # pyarrow cannot make day-time intervals; the C interface can say what the bytes are
    data = write_as(raw, "tiD")
    statistics = chunk_statistics(data)
    assert 5 not in statistics and 6 not in statistics
    path = tmp_path / "t.parquet"
    path.write_bytes(data)
    assert ask(f"select datepart('day', x), datepart('millisecond', x) from '{path}'") == [(3, 86400000), (0, 5)] or ask(
        f"select epoch_ms(x) from '{path}'"
    ) == [(4 * 86400000,), (5,)]


def write_as(array, format):
    """A one-column file of the array's buffers under another format string of the C data interface."""
    import ctypes

    import weirlib

    table = pa.table({"x": array})
    raw, pointer = weirlib.ArrowSchema(), ctypes.c_void_p()
    table.schema._export_to_c(ctypes.addressof(raw))
    child = ctypes.cast(raw.raw[5], ctypes.POINTER(ctypes.c_uint64))[0]
    text = ctypes.create_string_buffer(format.encode())
    ctypes.cast(child, ctypes.POINTER(ctypes.c_uint64))[0] = ctypes.addressof(text)
    schema = weirlib.Schema.__new__(weirlib.Schema)
    weirlib.check(weirlib.LIB.weir_schema_copy, ctypes.addressof(raw), ctypes.byref(pointer))
    schema.pointer = pointer
    writer = Writer(schema)
    for batch in table.to_batches():
        writer.write(batch)
    writer.finish()
    return bytes(writer.data)


# ---- pages and their indexes


def offset_index(data, chunk):
    return read_struct(data[chunk[4] : chunk[4] + chunk[5]])[0]


def column_index(data, chunk):
    return read_struct(data[chunk[6] : chunk[6] + chunk[7]])[0] if 6 in chunk else None


@pytest.mark.parametrize("codec", CODECS)
def test_data_pages_v2_keep_levels_plain_and_what_does_not_shrink(codec, tmp_path):
    rnd = random.Random(1)
    n = 40_000
    table = pa.table({
        "noise": pa.array([rnd.getrandbits(63) if i % 7 else None for i in range(n)]),
        "text": pa.array([f"the {i % 3} same" if i % 5 else None for i in range(n)]),
        "list": pa.array([[i % 11] * (i % 3) if i % 4 else None for i in range(n)], pa.list_(pa.int32())),
        "none": pa.nulls(n, pa.string()),
        "sure": pa.array(range(n), pa.uint16()),
    }, schema=pa.schema([("noise", pa.int64()), ("text", pa.string()), ("list", pa.list_(pa.int32())), ("none", pa.string()),
                         pa.field("sure", pa.uint16(), nullable=False)]))
    data = write_table(table, tmp_path / "t.parquet", batch_rows=5000, page_bytes=1 << 16, codec=codec, data_page_version=2)
    compressed = {}
    for chunk, name in zip(footer(data)[4][0][1], table.column_names):
        headers = [header for _, header, _ in pages_of(data, chunk) if header[1] != 2]
        assert {header[1] for header in headers} == {3} and 3 in [stats[1] for stats in chunk[3][13]]
        pages = [header[8] for header in headers]
        assert sum(page[3] for page in pages) == n
        assert sum(page[2] for page in pages) == chunk[3][12][3]
        assert all((page[6] > 0) == (name == "list") and (page[5] > 0) == (name != "sure") for page in pages)
        compressed[name] = {page[7] for page in pages}
    assert compressed["noise"] == compressed["none"] == {False}
    assert codec == "none" or compressed["list"] == {True}
    assert pq.read_table(io.BytesIO(data), page_checksum_verification=True).equals(table)
    assert polars.read_parquet(tmp_path / "t.parquet").to_arrow().cast(table.schema).equals(table)
    got = duckdb.sql(f"select * from '{tmp_path}/t.parquet'").to_arrow_table()
    assert got.cast(pa.schema([field.with_nullable(True) for field in table.schema])).to_pylist() == table.to_pylist()


def levels_of(rows):
    """Repetition and definition levels of nullable lists of nullable texts, as LogicalTypes.md has them."""
    levels = []
    for row in rows:
        if not row:
            levels.append((0, 0 if row is None else 1))
        else:
            levels += [(int(i > 0), 2 if text is None else 3) for i, text in enumerate(row)]
    return levels


def histogram(levels, most):
    return [levels.count(level) for level in range(most + 1)]


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_size_statistics_count_bytes_and_levels(kind):
    rnd = random.Random(5)
    texts = [rnd.choice([None, "", "a", "\u20ac" * 9, "x" * rnd.randrange(40)]) for _ in range(150_000)]
    lists = [rnd.choice([None, [], texts[i : i + 1], texts[i : i + 3]]) for i in range(len(texts))]
    table = pa.table({"t": pa.array(texts).cast(kind), "l": pa.array(lists, pa.list_(pa.string())), "n": range(len(texts))})
    data = write_table(table, batch_rows=7000, row_group_rows=100_000)
    for group, first in zip(footer(data)[4], (0, 100_000)):
        text, nested, number = group[1]
        part = slice(first, first + group[3])
        size = sum(len(value.encode()) for value in texts[part] if value)
        assert text[3][16] == {1: size}
        assert 16 not in number[3] and 2 not in offset_index(data, number)
        size = sum(len(value.encode()) for row in lists[part] if row for value in row if value)
        rep, definition = map(list, zip(*levels_of(lists[part])))
        assert nested[3][16] == {1: size, 2: histogram(rep, 1), 3: histogram(definition, 3)}
        for chunk, column in ((text, [[value] for value in texts]), (nested, lists)):
            index, offsets = column_index(data, chunk), offset_index(data, chunk)
            starts = [first + page[3] for page in offsets[1]] + [first + group[3]]
            assert first or len(starts) > 2
            for i, rows in enumerate(column[a:b] for a, b in zip(starts, starts[1:])):
                assert offsets[2][i] == sum(len(value.encode()) for row in rows if row for value in row if value)
                if chunk is nested:
                    rep, definition = map(list, zip(*levels_of(rows)))
                    assert index[6][2 * i : 2 * i + 2] == histogram(rep, 1)
                    assert index[7][4 * i : 4 * i + 4] == histogram(definition, 3)


def pages_of(data, chunk):
    """(offset, header, size with header) of every page of a chunk, checksums verified."""
    meta = chunk[3]
    at = meta.get(11, meta[9])
    end = at + meta[7]
    while at < end:
        header, body = read_struct(data, at)
        stored = data[body : body + header[3]]
        assert zlib.crc32(stored) == header[4] & 0xFFFFFFFF
        yield at, header, body + header[3] - at
        at = body + header[3]
    assert at == end


@pytest.mark.parametrize("codec", CODECS)
def test_pages_match_their_indexes(codec):
    random.seed(5)
    rows = 150000
    table = pa.table(
        {
            "sorted": pa.array(range(rows), pa.int64()),
            "falling": pa.array(range(rows, 0, -1), pa.int32()),
            "nulls": pa.array([None if i < 70000 else random.randrange(10**9) for i in range(rows)], pa.int64()),
            "text": pa.array([random.choice(["a", "bb", "ccc"]) for _ in range(rows)]),
            "long": pa.array([f"{i:070d}" for i in range(rows)]),
        }
    )
    data = write_table(table, codec=codec, row_group_rows=100000)
    row = 0
    for group in footer(data)[4]:
        for name, chunk in zip(table.column_names, group[1]):
            pages = [p for p in pages_of(data, chunk) if p[1][1] == 0]
            places = offset_index(data, chunk)[1]
            assert [(p[1], p[2]) for p in places] == [(at, size) for at, _, size in pages]
            starts = [p[3] for p in places] + [group[3]]
            assert [b - a for a, b in zip(starts, starts[1:])] == [header[5][1] for _, header, _ in pages]
            check_index(column_index(data, chunk), table[name].slice(row, group[3]), starts)
            assert sum(size for _, _, size in pages_of(data, chunk)) == chunk[3][7]
        row += group[3]


def as_number(raw, kind):
    return int.from_bytes(raw, "little", signed=True) if pa.types.is_integer(kind) else raw.decode()


def check_index(index, column, starts):
    null_pages, lows, highs, order, nulls = (index[i] for i in range(1, 6))
    bounds = []
    for page, (first, last) in enumerate(zip(starts, starts[1:])):
        values = [v for v in column.slice(first, last - first).to_pylist() if v is not None]
        assert nulls[page] == last - first - len(values)
        assert null_pages[page] == (not values)
        if values:
            low, high = as_number(lows[page], column.type), as_number(highs[page], column.type)
            assert low <= min(values) and high >= max(values)
            if not isinstance(low, str) or len(min(values)) <= 64:
                assert (low, high) == (min(values), max(values))
            bounds.append((low, high))
    rising = all(a[0] <= b[0] and a[1] <= b[1] for a, b in zip(bounds, bounds[1:]))
    falling = all(a[0] >= b[0] and a[1] >= b[1] for a, b in zip(bounds, bounds[1:]))
    assert order in ([1] if rising else [2] if falling else [0])


def encodings(data, column=0):
    return set(pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(column).encodings)


def test_encodings_come_from_the_data():
    random.seed(1)
    rows = 70000
    cases = {
        "DELTA_BINARY_PACKED": [random.randrange(10**6) for _ in range(rows)],
        "PLAIN": [random.randrange(-(2**63), 2**63) for _ in range(rows)],
        "RLE_DICTIONARY": [random.choice([3, 10**12, 7]) for _ in range(rows)],
        "BYTE_STREAM_SPLIT": [random.random() for _ in range(rows)],
        "DELTA_LENGTH_BYTE_ARRAY": [str(random.random()) for _ in range(rows)],
    }
    for encoding, values in cases.items():
        data = write_table(pa.table({"x": values}))
        assert encoding in encodings(data)
        assert (encoding == "RLE_DICTIONARY") == ("RLE_DICTIONARY" in encodings(data))
        assert pq.read_table(io.BytesIO(data))["x"].to_pylist() == values


def test_chunk_that_does_not_shrink_is_stored():
    random.seed(2)
    table = pa.table({"x": [random.randrange(-(2**63), 2**63) for _ in range(70000)], "y": [1] * 70000})
    for codec in CODECS:
        meta = pq.ParquetFile(io.BytesIO(write_table(table, codec=codec))).metadata.row_group(0)
        assert meta.column(0).compression == "UNCOMPRESSED"
        assert meta.column(1).compression == codec.upper().replace("NONE", "UNCOMPRESSED")


def test_dictionary_that_fills_up_gives_way():
    """Many values that come twice, far apart: the first pages look well, the later ones do not."""
    random.seed(3)
    rows = 400000
    few = [random.randrange(1000) * 10**12 for _ in range(100000)]
    many = [random.randrange(2**62) for _ in range(rows - 100000)]
    for values in (few + many, [f"value {v}" for v in few + many]):
        data = write_table(pa.table({"x": values}), batch_rows=65536)
        assert "RLE_DICTIONARY" in encodings(data) and len(encodings(data)) > 3
        assert pq.read_table(io.BytesIO(data))["x"].to_pylist() == values


def encodings_of(data, column=0):
    meta = pq.ParquetFile(io.BytesIO(data)).metadata
    return [set(meta.row_group(g).column(column).encodings) for g in range(meta.num_row_groups)]


def test_first_page_forgets_a_dictionary_that_will_not_pay():
    """Few values come often, most seldom: a sample of 4096 cannot tell, a page can."""
    draw = random.Random(5)
    table = pa.table({"x": pa.array([int(draw.random() ** 4 * 1_000_000) for _ in range(200_000)])})
    for batch_rows in (65536, 1000):
        data = write_table(table, batch_rows=batch_rows)
        assert pq.read_table(io.BytesIO(data)).equals(table)
        assert encodings_of(data) == [{"RLE", "DELTA_BINARY_PACKED"}]


@pytest.mark.parametrize("codec", ["zstd", "lz4", "snappy"])
@pytest.mark.parametrize("holes", [False, True])
def test_planes_that_do_not_shrink_are_stored(codec, holes):
    """A random walk: noise in the low bytes; then a stretch in which they are zeros, too."""
    draw, value, values = random.Random(6), 5000.0, []
    for i in range(150_000):
        value += draw.random() - 0.5
        values.append(round(value) + draw.random() / 1024 * 2**-20 if i > 120_000 else value)
    column = pa.array([None if holes and draw.random() < 0.1 else v for v in values], pa.float64())
    table = pa.table({"x": column})
    for batch_rows in (65536, 7000):
        data = write_table(table, batch_rows=batch_rows, codec=codec)
        assert pq.read_table(io.BytesIO(data)).equals(table)
        assert "BYTE_STREAM_SPLIT" in encodings_of(data)[0]
        by_peer = io.BytesIO()
        pq.write_table(table, by_peer, compression=codec, compression_level=1 if codec == "zstd" else None,
                       use_dictionary=False, column_encoding={"x": "BYTE_STREAM_SPLIT"})
        assert len(data) < 1.02 * by_peer.tell()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("codec", ["zstd", "none"])
def test_null_slots_with_bytes(kind, codec):
    draw = random.Random(7)
    for size, letters in ((40, "abcdefghijklmnopqrstuvwxyz "), (9, "ab"), (2000, "etaoin")):
        words = ["".join(draw.choices(letters, k=draw.randrange(size))) for _ in range(1_200_000 // size)]
        full = pa.array(words, pa.string() if kind == pa.string_view() else kind)
        valid = pa.array([draw.random() > 0.1 for _ in words])
        hidden = pa.Array.from_buffers(full.type, len(full), [valid.buffers()[1], *full.buffers()[1:]]).cast(kind)
        for table in (pa.table({"x": hidden}), pa.table({"x": hidden[13:-5]}), pa.table({"x": full.cast(kind)})):
            data = write_table(table, batch_rows=65536, codec=codec)
            assert pq.read_table(io.BytesIO(data)).equals(table)


def test_arrow_dictionary_that_fills_up_gives_way():
    words = pa.array([f"word number {i}" for i in range(200000)])
    indices = pa.array([i * 7 % 200000 for i in range(300000)], pa.int32())
    table = pa.table({"x": pa.DictionaryArray.from_arrays(indices, words)})
    data = write_table(table, batch_rows=65536)
    got = pq.read_table(io.BytesIO(data))["x"]
    assert got.cast(pa.string()).equals(table["x"].cast(pa.string()))


def test_dictionaries_may_differ_between_batches():
    schema = pa.schema([("x", pa.dictionary(pa.int8(), pa.string()))])
    writer = Writer(schema)
    for words, indices in ((["a", "b"], [0, 1, None]), (["c", "a"], [1, 0, 1]), (["b", None], [1, 0, None])):
        column = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(words))
        writer.write(pa.record_batch([column], schema=schema))
    writer.finish()
    got = pq.read_table(io.BytesIO(writer.data))["x"].cast(pa.string()).to_pylist()
    assert got == ["a", "b", None, "a", "c", "a", None, "b", None]


# ---- row groups, options, memory


def test_batches_of_any_size_make_one_row_group():
    table = pa.table({"x": range(100000), "s": [f"{i % 97}" for i in range(100000)]})
    for rows in (1, 7, 1000, 65536, 100000):
        part = table.slice(0, 3000) if rows < 10 else table
        data = write_table(part, batch_rows=rows)
        assert len(footer(data)[4]) == 1
        assert pq.read_table(io.BytesIO(data)).equals(part)


def test_row_group_bytes_bound_what_is_buffered():
    random.seed(4)
    batch = pa.record_batch([pa.array([random.randbytes(50) for _ in range(20000)])], ["x"])
    writer = Writer(batch.schema, row_group_bytes=3 << 20)
    seen = []
    for _ in range(20):
        writer.write(batch)
        seen.append(writer.buffered())
    assert max(seen) < 3 << 20
    assert max(seen) > 1 << 20
    before = writer.written() + writer.buffered()
    result = writer.finish()
    assert result.rows == 400000 and result.row_groups >= 5
    assert abs(result.bytes - before) < 100000
    assert writer.buffered() == 0


def test_metadata_is_kept():
    table = pa.table({"x": [1]})
    data = write_table(table, metadata=[("a", "b"), ("empty", ""), ("bare", None), ("\u00fc", "\u00df")])
    meta = pq.ParquetFile(io.BytesIO(data)).metadata.metadata
    assert meta[b"a"] == b"b" and meta[b"empty"] == b"" and meta["\u00fc".encode()] == "\u00df".encode()
    assert {1: b"bare"} in footer(data)[5]


def test_not_nullable_columns_are_required():
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False), pa.field("y", pa.string(), nullable=False)])
    table = pa.table([[1, 2], ["a", "b"]], schema=schema)
    data = write_table(table)
    assert pq.ParquetFile(io.BytesIO(data)).schema.column(0).max_definition_level == 0
    assert pq.read_table(io.BytesIO(data)).equals(table)
    assert pq.read_table(io.BytesIO(data)).schema.equals(schema)


# ---- refusals


@pytest.mark.parametrize(
    "kind",
    [
        pa.struct([]),
        pa.list_(pa.struct([])),
        pa.sparse_union([pa.field("a", pa.int32())]),
        pa.dense_union([pa.field("a", pa.int32())]),
        pa.map_(pa.string(), pa.dense_union([pa.field("a", pa.int32())])),
    ],
    ids=str,
)
def test_refused_by_name(kind):
    with pytest.raises(WeirError, match="column 1 'bad") as caught:
        Writer(pa.schema([("good", pa.int64()), ("bad", kind)]))
    assert caught.value.code == NOT_IMPLEMENTED and caught.value.column == 1


def refused(kind, values):
    """The error for the last value of `values` (integers behind `kind`); the batch leaves no trace."""
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    schema = pa.schema([("a", pa.int64()), ("x", kind)])
    writer = Writer(schema)
    good = pa.record_batch([[1], pa.array([0], width).cast(kind)], schema=schema)
    column = pa.Array.from_buffers(kind, len(values), pa.array(values, width).buffers())
    writer.write(good)
    with pytest.raises(WeirError) as caught:
        writer.write(pa.record_batch([list(range(len(values))), column], schema=schema))
    writer.write(good)
    assert writer.finish().rows == 2
    assert pq.read_table(io.BytesIO(writer.data))["a"].to_pylist() == [1, 1]
    assert (caught.value.code, caught.value.column, caught.value.row) == (BAD_DATA, 1, len(values) - 1)
    return str(caught.value)


def test_values_that_do_not_fit():
    assert "whole number of days" in refused(pa.date64(), [0, None, 86400001])
    assert "milliseconds" in refused(pa.timestamp("s"), [0, 2**62])
    assert "milliseconds" in refused(pa.time32("s"), [0, 2**30])


def test_decimal_beyond_its_precision():
    schema = pa.schema([("x", pa.decimal128(5, 0))])
    raw = (10**20).to_bytes(16, "little", signed=True)
    column = pa.Array.from_buffers(pa.decimal128(5, 0), 1, [None, pa.py_buffer(raw)])
    with pytest.raises(WeirError, match="precision") as caught:
        Writer(schema).write(pa.record_batch([column], schema=schema))
    assert caught.value.code == BAD_DATA


def test_another_schema_is_refused():
    writer = Writer(pa.schema([("x", pa.int64())]))
    import weirlib

    other = pa.record_batch([["a"]], ["x"])
    with pytest.raises(WeirError) as caught:
        writer.write(weirlib.Batch(weirlib.Schema(other.schema), other))
    assert caught.value.code == SCHEMA
    writer.write(pa.record_batch([[1]], ["x"]))
    assert writer.finish().rows == 1


def test_options_are_checked():
    schema = pa.schema([("x", pa.int64())])
    for options in ({"level": 99}, {"encodings": 2}, {"effort": -1}, {"page_bytes": 1 << 40}):
        with pytest.raises(WeirError) as caught:
            Writer(schema, **options)
        assert caught.value.code == INVALID_CONFIG
    with pytest.raises(WeirError):
        Writer(pa.schema([]))


def test_finish_is_the_last_call():
    writer = Writer(pa.schema([("x", pa.int64())]))
    writer.finish()
    for call in (writer.finish, lambda: writer.write(pa.record_batch([[1]], ["x"]))):
        with pytest.raises(WeirError) as caught:
            call()
        assert caught.value.code == INVALID_STATE


def test_failing_callback_stops_the_writer():
    calls = []

    def write(_ctx, _data, size, error):
        calls.append(size)
        if len(calls) < 2:
            return 0
        error[0].code = 6
        error[0].message = b"disk full"
        return 6

    writer = Writer(pa.schema([("x", pa.int64())]), callback=write)
    writer.write(pa.record_batch([[1]], ["x"]))
    with pytest.raises(WeirError, match="disk full"):
        writer.finish()
    with pytest.raises(WeirError) as caught:
        writer.finish()
    assert caught.value.code == INVALID_STATE and len(calls) == 2


# ---- anything


SCALARS = {
    pa.int8(): st.integers(-128, 127),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=80),
    pa.large_binary(): st.binary(max_size=80),
    pa.string_view(): st.text(max_size=20),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.date32(): st.dates(),
    pa.decimal128(38, 6): st.decimals(-(10**30), 10**30, places=6),
}


@st.composite
def columns(draw, rows):
    kind = draw(st.sampled_from(list(SCALARS)))
    values = draw(st.lists(SCALARS[kind], min_size=1, max_size=12))
    pick = draw(st.randoms(use_true_random=False))
    holes = draw(st.sampled_from([0, 0.1, 0.9, 1]))
    column = [None if pick.random() < holes else pick.choice(values) for _ in range(rows)]
    array = pa.array(column, kind)
    if draw(st.booleans()) and kind not in (pa.string_view(), pa.bool_()):
        array = array.dictionary_encode()
    return array


@st.composite
def tables(draw):
    rows = draw(st.integers(0, 400))
    n = draw(st.integers(1, 4))
    return pa.table({f"c{i}": draw(columns(rows)) for i in range(n)})


def plain(table):
    def bits(v):
        return struct.pack("<d", v) if isinstance(v, float) else v

    return [
        [bits(v) for v in c.combine_chunks().to_pylist()]
        for c in (c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns)
    ]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    tables(),
    st.sampled_from(list(CODECS)),
    st.integers(1, 300),
    st.integers(1, 500),
    st.sampled_from([64, 1000, 1 << 19]),
    st.integers(1, 2),
    st.integers(0, 20),
)
def test_anything_comes_back(table, codec, batch_rows, group_rows, page_bytes, version, skip):
    table = table.slice(skip)
    data = write_table(table, batch_rows=batch_rows, codec=codec, row_group_rows=group_rows, page_bytes=page_bytes,
                       data_page_version=version)
    assert plain(pq.read_table(io.BytesIO(data), page_checksum_verification=True)) == plain(table)
    assert polars.read_parquet(io.BytesIO(data)).height == table.num_rows
