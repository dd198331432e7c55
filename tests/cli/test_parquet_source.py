"""Parquet files as input of whole pipelines: every row once, by row group and row, judged by pyarrow."""

import datetime
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from place import Place

PIPELINE = """\
pipeline: parquet
state: ./state
sources:
  rows:
    type: file
    path: in/*.parquet
sinks:
  lake:
    type: file
    path: ./out/lake
    format: {format}
"""


@pytest.fixture
def place(tmp_path, weir_bin):
    return Place(tmp_path, weir_bin)


def table(first, n):
    ids = range(first, first + n)
    return pa.table({
        "id": pa.array(ids, pa.int64()),
        "name": [None if i % 7 == 0 else f"n{i}" for i in ids],
        "price": pa.array([decimal.Decimal(i) / 4 for i in ids], pa.decimal128(12, 2)),
        "at": pa.array([datetime.datetime(2024, 2, 29, 1, 2, 3, i % 1000) for i in ids], pa.timestamp("us", "UTC")),
    })


def put(place, name, rows, **options):
    pq.write_table(rows, place.folder / "in" / name, **options)
    return place.folder / "in" / name


def delivered(place):
    files = sorted(place.target.rglob("*.parquet"))
    return pa.concat_tables([pq.ParquetFile(f).read() for f in files]).sort_by("id")


def test_parquet_to_parquet(place):
    rows = table(0, 5000)
    put(place, "a.parquet", rows.slice(0, 3000), row_group_size=700, compression="snappy")
    put(place, "b.parquet", rows.slice(3000), data_page_version="2.0")
    place.write_pipeline(PIPELINE.format(format="parquet"))
    result = place.run()
    assert result.returncode == 0, result.stderr
    assert delivered(place).equals(rows)
    assert place.run().returncode == 0  # nothing is left to read
    assert delivered(place).num_rows == 5000
    put(place, "c.parquet", table(5000, 10))
    assert place.run().returncode == 0
    assert delivered(place).equals(table(0, 5010))


def test_parquet_to_csv(place):
    put(place, "a.parquet", table(0, 100))
    place.write_pipeline(PIPELINE.format(format="csv"))
    assert place.run().returncode == 0
    text = "".join(f.read_text() for f in place.target.rglob("*.csv"))
    assert text.splitlines()[0] == "id,name,price,at"
    assert len(text.splitlines()) == 101


@pytest.mark.parametrize("cut", [1, 200, 2000])
def test_a_truncated_file(place, cut):
    path = put(place, "a.parquet", table(0, 3000))
    path.write_bytes(path.read_bytes()[:-cut])
    place.write_pipeline(PIPELINE.format(format="parquet"))
    result = place.run()
    assert result.returncode != 0
    assert "a.parquet: this is no Parquet file" in result.stderr


def test_a_damaged_page_stops_where_it_is(place):
    path = put(place, "a.parquet", table(0, 3000), row_group_size=1000, compression="none", use_dictionary=False,
               write_page_checksum=True)
    place.write_pipeline(PIPELINE.format(format="parquet"))
    whole = path.read_bytes()
    at = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset + 500
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
    result = place.run()
    assert result.returncode != 0
    assert "a.parquet: row group 1: column 'id': a page's checksum is wrong" in result.stderr
    path.write_bytes(whole)


def test_what_is_refused(place):
    put(place, "a.parquet", table(0, 10)).rename(place.folder / "in/a.parquet.gz")
    place.write_pipeline(PIPELINE.format(format="parquet").replace("*.parquet", "*.gz"))
    result = place.run()
    assert result.returncode != 0
    assert "Parquet is compressed page by page" in result.stderr
    result = place.run("--set", "sources.rows.compression=none")
    assert result.returncode == 0, result.stderr
    assert delivered(place).equals(table(0, 10))


def test_files_that_do_not_agree(place):
    put(place, "a.parquet", table(0, 10))
    put(place, "b.parquet", pa.table({"id": ["x"]}))
    place.write_pipeline(PIPELINE.format(format="parquet"))
    result = place.run()
    assert result.returncode != 0
    assert "the files of one source must agree" in result.stderr
