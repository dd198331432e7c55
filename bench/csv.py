#!/usr/bin/env python3
"""CSV into Arrow columns, the reading alone: weir's decoder beside DuckDB, pyarrow and Polars.

  bench/csv.py [--rows N] [--rounds N] [FILE]

One thread each, interleaved, in one process; CPU seconds (user + system). Weir reads the file in blocks of
1 MiB, as its file source does. DuckDB counts every column, so that it must read them all but build no
result. FILE: take these rows (of the schema below) instead of made-up ones. The machine may be shared: only
the ratios of one run mean something.
"""

import argparse
import ctypes
import os
import pathlib
import statistics
import sys
import tempfile
import time

# this file would hide the module csv from those below
sys.path[:] = [p for p in sys.path if p != str(pathlib.Path(__file__).resolve().parent)]
os.environ["POLARS_MAX_THREADS"] = "1"

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/interop"))

from weir_ipc import LIB
from weir_csv import make_options
from weir_ndjson import check, make_schema, pointer, ref

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "customer_id": pa.int64(),
        "status": pa.string(),
        "amount": pa.float64(),
        "weight": pa.float64(),
        "quantity": pa.int32(),
        "created_at": pa.timestamp("us"),
        "note": pa.string(),
        "express": pa.bool_(),
    }
)
DUCKDB = "id:'BIGINT',customer_id:'BIGINT',status:'VARCHAR',amount:'DOUBLE',weight:'DOUBLE',quantity:'INTEGER',created_at:'TIMESTAMP',note:'VARCHAR',express:'BOOLEAN'"
BLOCK = 1 << 20


def make_file(path, rows):
    duckdb.sql(f"""copy (select i as id, i * 37 % 100000 as customer_id,
        ['new', 'paid', 'shipped', 'returned'][1 + i % 4] as status, (hash(i) % 100000) / 100.0::double as amount,
        (hash(i * 3) / 18446744073709551616.0)::double as weight, (i % 50)::int as quantity,
        make_timestamp(1704067200000000 + i * 1234567) as created_at,
        'customer number ' || (i * 7919 % 100003) as note, i % 3 = 0 as express
        from range({rows}) t(i)) to '{path}' (format csv, header, timestampformat '%Y-%m-%dT%H:%M:%S.%f')""")


def read_weir(path):
    """Rows of the file, all decoded to batches."""
    schema, decoder, rows = make_schema(SCHEMA), pointer(), 0
    check(LIB.weir_csv_decoder_new, schema, ref(make_options()), ref(decoder))
    space = bytearray(2 * BLOCK)
    base = ctypes.addressof(ctypes.c_char.from_buffer(space))
    view, have = memoryview(space), 0
    with open(path, "rb", buffering=0) as file:
        while True:
            more = file.readinto(view[have : have + BLOCK])
            have, at = have + more, 0
            while True:
                used, batch = ctypes.c_size_t(), pointer()
                data, size = pointer(base + at), ctypes.c_size_t(have - at)
                check(LIB.weir_csv_decoder_feed, decoder, data, size, int(more == 0), ref(used), ref(batch))
                at += used.value
                if not batch:
                    break
                rows += LIB.weir_batch_rows(batch)
                LIB.weir_batch_unref(batch)
            view[: have - at], have = view[at:have], have - at
            if more == 0:
                break
    batch = pointer()
    check(LIB.weir_csv_decoder_flush, decoder, ref(batch))
    if batch:
        rows += LIB.weir_batch_rows(batch)
        LIB.weir_batch_unref(batch)
    LIB.weir_csv_decoder_free(decoder)
    LIB.weir_schema_unref(schema)
    return rows


def read_duckdb(path):
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    counts = ", ".join(f"count({name})" for name in SCHEMA.names)
    query = f"select count(*), {counts} from read_csv('{path}', header=true, auto_detect=false, columns={{{DUCKDB}}})"
    return connection.execute(query).fetchone()[0]


def read_pyarrow(path):
    read = pyarrow.csv.ReadOptions(use_threads=False)
    convert = pyarrow.csv.ConvertOptions(column_types=SCHEMA)
    return sum(batch.num_rows for batch in pyarrow.csv.open_csv(path, read_options=read, convert_options=convert))


def read_polars(path):
    schema = {
        "id": pl.Int64,
        "customer_id": pl.Int64,
        "status": pl.String,
        "amount": pl.Float64,
        "weight": pl.Float64,
        "quantity": pl.Int32,
        "created_at": pl.Datetime("us"),
        "note": pl.String,
        "express": pl.Boolean,
    }
    return pl.read_csv(path, schema=schema).height


READERS = {"weir": read_weir, "duckdb": read_duckdb, "pyarrow": read_pyarrow, "polars": read_polars}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("file", nargs="?")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    seconds = {name: [] for name in READERS}
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.file or f"{folder}/rows.csv"
        if not arguments.file:
            make_file(path, arguments.rows)
        rows = set()
        for _ in range(arguments.rounds):
            for name, read in READERS.items():
                start = time.process_time()
                rows.add(read(path))
                seconds[name].append(time.process_time() - start)
        size = os.path.getsize(path) / 1e6
    if len(rows) != 1:
        raise SystemExit(f"the readers count different rows: {rows}")
    (count,) = rows
    print(f"CSV -> Arrow, one thread, {count} rows, {size:.0f} MB, median of {arguments.rounds}")
    weir = statistics.median(seconds["weir"])
    for name, values in seconds.items():
        cpu = statistics.median(values)
        print(f"  {name:8} {cpu:7.3f} s CPU  {count / cpu / 1e3:7.0f} krows/s  {size / cpu:6.0f} MB/s  {cpu / weir:5.2f}")


if __name__ == "__main__":
    main()
