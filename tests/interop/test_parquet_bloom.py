"""Bloom filters that weir writes, as DuckDB and pyarrow see them."""

import datetime
import decimal
import io

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from weir_parquet import read_table
from weirlib import WeirError, write_table

N = 3000
DAY = datetime.date(2000, 1, 1)
# name -> (Arrow type, the i-th value, its SQL literal as a pattern). Some repeat, others do not.
COLUMNS = {
    "i32": (pa.int32(), lambda i: i * 7 - 9000, "{}::INTEGER"),
    "i64": (pa.int64(), lambda i: i * 1_000_003, "{}::BIGINT"),
    "u64": (pa.uint64(), lambda i: 2**64 - 1 - 3 * i, "{}::UBIGINT"),
    "text": (pa.string(), lambda i: f"key {i * 3}", "'{}'"),
    "few": (pa.string(), lambda i: f"group {i % 50 * 3}", "'{}'"),
    "date": (pa.date32(), lambda i: DAY + datetime.timedelta(days=3 * i), "DATE '{}'"),
}


def table(start=0, rows=N):
    columns = {name: pa.array([None if i % 11 == 5 else make(i) for i in range(start, start + rows)], kind)
               for name, (kind, make, _) in COLUMNS.items()}
    columns["coded"] = columns["few"].dictionary_encode()
    return pa.table(columns)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("bloom") / "bloom.parquet"
    file.write_bytes(write_table(table(), row_group_rows=N // 2, bloom_filter=[*COLUMNS, "coded"]))
    return file


def excluded(path, name, literals):
    """How many (row group, value) pairs the filter excludes."""
    return sum(duckdb.sql(f"SELECT count(*) FILTER (bloom_filter_excludes) FROM "
                          f"parquet_bloom_probe('{path}', '{name}', {literal})").fetchall()[0][0] for literal in literals)


@pytest.mark.parametrize("name", [*COLUMNS, "coded"])
def test_a_filter_excludes_what_is_not_there_and_nothing_else(path, name):
    _, make, literal = COLUMNS["few" if name == "coded" else name]
    per_group = [set(), set()]
    for row, value in enumerate(table()[name].to_pylist()):
        if value is not None:
            per_group[row // (N // 2)].add(value)
    for value in sorted(per_group[0] | per_group[1])[::20]:
        rows = duckdb.sql(f"SELECT row_group_id, bloom_filter_excludes FROM parquet_bloom_probe('{path}', '{name}', "
                          f"{literal.format(value)})").fetchall()
        assert len(rows) == 2
        assert not [group for group, out in rows if out and value in per_group[group]]
    others = [make(N * 2 + i) for i in range(100)]
    if name in ("few", "coded"):
        others = [f"group {3 * i + 1}" for i in range(100)]
    assert excluded(path, name, [literal.format(value) for value in others]) >= 190  # 198 of 200 to be expected


@pytest.mark.parametrize("name", COLUMNS)
def test_filters_find_what_a_scan_finds(path, name):
    _, make, literal = COLUMNS[name]
    whole = table()[name].to_pylist()
    for i in [0, 1, 5, N // 2 - 1, N // 2, N - 1, N + 7]:
        found = duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE {name} = {literal.format(make(i))}").fetchall()[0][0]
        assert found == whole.count(make(i))


def test_the_file_reads_as_without(path):
    assert pq.read_table(path).to_pylist() == table().to_pylist()
    assert read_table(path.read_bytes()).to_pylist() == table().to_pylist()


def test_metadata_tells_of_asked_columns_only():
    data = write_table(table(), bloom_filter=["i64"])
    file = io.BytesIO(data)
    assert pq.ParquetFile(file).metadata.num_row_groups == 1
    plain = write_table(table())
    assert 0 < len(data) - len(plain) < 8192 + 100  # 2728 values at 9.68 bits in a power of two


def test_nulls_only_and_no_rows_have_no_filter():
    for rows in (pa.table({"a": pa.array([None] * 10, pa.int64())}), pa.table({"a": pa.array([], pa.int64())})):
        data = write_table(rows, bloom_filter=["a"])
        assert pq.read_table(io.BytesIO(data)).equals(rows)
        assert len(data) == len(write_table(rows))


@pytest.mark.parametrize("kind, value", [
    (pa.bool_(), True), (pa.float64(), 0.0), (pa.float32(), 0.0), (pa.float16(), 0.0), (pa.null(), None),
    (pa.list_(pa.int64()), [1]), (pa.struct([("b", pa.int64())]), {"b": 1}),
])
def test_a_column_that_cannot_have_one_is_refused_by_name(kind, value):
    with pytest.raises(WeirError, match="'a' cannot have a Bloom filter"):
        write_table(pa.table({"a": pa.array([value], kind)}), bloom_filter=["a"])


def test_an_unknown_column_is_refused_by_name():
    with pytest.raises(WeirError, match="no column 'nope'"):
        write_table(pa.table({"a": [1]}), bloom_filter=["nope"])


def test_decimals_and_bytes_read_back():
    rows = pa.table({"d": pa.array([decimal.Decimal(i) for i in range(99)], pa.decimal128(30, 0)),
                     "b": pa.array([bytes([i] * 16) for i in range(99)], pa.binary(16))})
    data = write_table(rows, bloom_filter=["d", "b"])
    assert pq.read_table(io.BytesIO(data)).equals(rows)
    assert read_table(data).equals(rows)
