#!/usr/bin/env python3
"""CPU time and size of weir's Parquet writer against pyarrow's, DuckDB's and Polars', of its reader against
pyarrow's, interleaved in one process.

  bench/parquet.py [--rows N] [--rounds N] [--codec zstd|lz4|...] [--columns] [--read] [SET...]

Sets: orders, metrics, wide, all made from a seed. weir is given batches of 64 Ki rows through the C data
interface; pyarrow the whole table with row groups of 1 Mi rows, once with its defaults and once with
encodings set by hand. `small` and `newest` are weir itself, with that effort, and those encodings, too. Ratios are of
the medians. --columns: each column as a file of its own.
--read: those three files are read instead, in batches of 64 Ki rows, by weir and by pyarrow, which also reads each
at once.
"""

import argparse
import ctypes
import os
import pathlib
import random
import statistics
import string
import sys
import tempfile
import time

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/interop"))
import weir_parquet
import weirlib

BATCH_ROWS = 65536
GROUP_ROWS = 1 << 20


def uniform(rows, seed):
    return pc.random(rows, initializer=seed)


def integers(rows, seed, low, high, kind=None):
    scaled = pc.add(pc.multiply(uniform(rows, seed), high - low), low)
    return pc.floor(scaled).cast(kind or pa.int64())


def running(array):
    return pc.cumulative_sum(array)


def holes(array, seed, share):
    return pc.if_else(pc.less(uniform(len(array), seed), share), None, array)


def chosen(words, rows, seed, power=1):
    index = pc.floor(pc.multiply(pc.power(uniform(rows, seed), power), len(words))).cast(pa.int32())
    return pa.DictionaryArray.from_arrays(index, pa.array(words))


def text(rows, seed, low, high):
    """Random words of `low` to `high` characters, as strings."""
    letters = (string.ascii_lowercase + " " * 6).encode()
    table = bytes(letters[i % len(letters)] for i in range(256))
    sizes = integers(rows, seed, low, high + 1, pa.int32())
    ends = running(sizes)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends.combine_chunks() if hasattr(ends, "combine_chunks") else ends])
    data = random.Random(seed).randbytes(offsets[-1].as_py()).translate(table)
    return pa.StringArray.from_buffers(rows, offsets.buffers()[1], pa.py_buffer(data))


def orders(rows):
    skus = [f"SKU-{n * 7919 % 99991:05d}" for n in range(20000)]
    return pa.table(
        {
            "id": pc.add(running(pa.array([1] * rows, pa.int64())), 10_000_000),
            "ts": pc.add(running(integers(rows, 1, 0, 2000)), 1_700_000_000_000_000).cast(pa.timestamp("us", "UTC")),
            "customer": pc.floor(pc.multiply(pc.power(uniform(rows, 2), 4), 1_000_000)).cast(pa.int64()),
            "price": holes(pc.divide(integers(rows, 3, 100, 60_000).cast(pa.float64()), 100), 4, 0.05),
            "qty": integers(rows, 5, 1, 100, pa.int32()),
            "status": chosen(["new", "paid", "packed", "shipped", "returned"], rows, 6, 2).dictionary_decode(),
            "sku": chosen(skus, rows, 7, 2).dictionary_decode(),
            "note": holes(text(rows, 8, 10, 60), 9, 0.05),
            "flag": pc.less(uniform(rows, 10), 0.5),
        }
    )


def metrics(rows):
    hosts = [f"host-{n:04d}.example.net" for n in range(200)]
    names = ["cpu.user", "cpu.system", "mem.free", "net.in", "net.out"]
    index = pa.array(range(rows), pa.int64())
    per_tick = len(hosts) * len(names)
    tick = pc.divide(index, per_tick)
    host = pc.divide(pc.subtract(index, pc.multiply(tick, per_tick)), len(names)).cast(pa.int32())
    name = pc.subtract(index, pc.multiply(pc.divide(index, len(names)), len(names))).cast(pa.int32())
    return pa.table(
        {
            "ts": pc.add(pc.multiply(tick, 1_000_000), 1_700_000_000_000_000).cast(pa.timestamp("us")),
            "host": pa.DictionaryArray.from_arrays(host, pa.array(hosts)),
            "metric": pa.DictionaryArray.from_arrays(name, pa.array(names)).dictionary_decode(),
            "value": pc.add(running(pc.subtract(uniform(rows, 11), 0.5)), 5000.0),
        }
    )


def wide(rows):
    return pa.table({f"c{n}": integers(rows, 20 + n, 0, 1_000_000) for n in range(10)})


SETS = {"orders": orders, "metrics": metrics, "wide": wide}
BY_HAND = {
    "orders": {"id": "DELTA_BINARY_PACKED", "ts": "DELTA_BINARY_PACKED", "note": "DELTA_LENGTH_BYTE_ARRAY", "flag": "PLAIN"},
    "metrics": {"value": "BYTE_STREAM_SPLIT"},
    "wide": {f"c{n}": "DELTA_BINARY_PACKED" for n in range(10)},
}


def by_weir(batches, schema, path, codec, **options):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def write(_ctx, data, size, _error):
        os.write(descriptor, (ctypes.c_char * size).from_address(data))
        return 0

    writer = weirlib.Writer(schema, codec=codec, callback=write, **options)
    for batch in batches:
        writer.write(batch)
    writer.finish()
    os.close(descriptor)


def by_pyarrow(table, path, codec, hand=None):
    options = {"compression": codec, "compression_level": 1 if codec == "zstd" else None}
    if hand is not None:
        given = {name: encoding for name, encoding in hand.items() if name in table.column_names}
        options["column_encoding"] = given
        options["use_dictionary"] = [name for name in table.column_names if name not in given]
        options["data_page_version"] = "1.0"
    pq.write_table(table, path, row_group_size=GROUP_ROWS, **options)


def by_duckdb(connection, path, codec):
    named = {"zstd": "codec zstd, compression_level 1", "lz4": "codec lz4_raw", "none": "codec uncompressed"}
    connection.execute(
        f"copy arrow_table to '{path}' (format parquet, {named.get(codec, f'codec {codec}')}, "
        f"row_group_size {GROUP_ROWS}, parquet_version v2)"
    )


def by_polars(frame, path, codec):
    level = 1 if codec == "zstd" else None
    name = "uncompressed" if codec == "none" else codec
    frame.write_parquet(path, compression=name, compression_level=level, row_group_size=GROUP_ROWS, statistics=True)


def read_by_weir(path):
    descriptor = os.open(path, os.O_RDONLY)

    def read(_ctx, offset, to, size, _error):
        return 0 if os.preadv(descriptor, [(ctypes.c_char * size).from_address(to)], offset) == size else 6

    reader = weir_parquet.Reader(None, read=read, size=os.path.getsize(path), batch_rows=BATCH_ROWS)
    while reader.skip():
        pass
    os.close(descriptor)


def read_by_pyarrow(path):
    for _ in pq.ParquetFile(path).iter_batches(batch_size=BATCH_ROWS, use_threads=False):
        pass


def measure_reads(table, name, codec, rounds, folder):
    """Rows of the report: by whom the file was written."""
    schema = weirlib.Schema(table.schema)
    batches = [weirlib.Batch(schema, b) for b in table.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)]
    writers = {
        "weir's": lambda path: by_weir(batches, schema, path, codec),
        "pyarrow's": lambda path: by_pyarrow(table, path, codec),
        "by hand": lambda path: by_pyarrow(table, path, codec, BY_HAND[name]),
    }
    readers = {
        "weir": read_by_weir,
        "pyarrow": read_by_pyarrow,
        "at once": lambda path: pq.read_table(path, use_threads=False),
    }
    for whose, write in writers.items():
        path = os.path.join(folder, "t.parquet")
        write(path)
        seconds = {which: [] for which in readers}
        for _ in range(rounds):
            for which, read in readers.items():
                before = time.process_time()
                read(path)
                seconds[which].append(time.process_time() - before)
        yield whose, seconds


def report_reads(label, table, whose, seconds):
    weir = statistics.median(seconds["weir"])
    ratios = " | ".join(f"{which} {statistics.median(seconds[which]) / weir:4.1f}x" for which in ("pyarrow", "at once"))
    print(f"{label:22s} {whose:9s} weir {weir:.3f} s {table.nbytes / weir / 1e6:6.0f} MB/s | {ratios}", flush=True)


def measure(table, name, codec, rounds, folder):
    schema = weirlib.Schema(table.schema)
    batches = [weirlib.Batch(schema, b) for b in table.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)]
    path = os.path.join(folder, "t.parquet")
    runs = {
        "weir": lambda: by_weir(batches, schema, path, codec),
        "small": lambda: by_weir(batches, schema, path, codec, effort=1),
        "newest": lambda: by_weir(batches, schema, path, codec, effort=1, encodings=1),
        "pyarrow": lambda: by_pyarrow(table, path, codec),
        "by hand": lambda: by_pyarrow(table, path, codec, BY_HAND[name]),
        "duckdb": lambda: by_duckdb(connection, path, codec),
        "polars": lambda: by_polars(frame, path, codec),
    }
    connection = duckdb.connect(config={"threads": 1})
    connection.register("arrow_table", table)
    frame = polars.from_arrow(table)
    seconds = {which: [] for which in runs}
    size = {}
    for _ in range(rounds):
        for which, run in runs.items():
            pathlib.Path(path).unlink(missing_ok=True)  # else the next writer pays for dropping it
            before = time.process_time()
            run()
            seconds[which].append(time.process_time() - before)
            size[which] = os.path.getsize(path)
    return seconds, size


def report(label, table, seconds, size):
    weir = statistics.median(seconds["weir"])
    parts = [f"{label:22s} weir {weir:.3f} s {table.nbytes / weir / 1e6:6.0f} MB/s {size['weir'] / 1e6:8.2f} MB"]
    for which in size:
        if which != "weir":
            median = statistics.median(seconds[which])
            parts.append(f"{which} {median / weir:4.1f}x, size {size['weir'] / size[which]:5.3f}")
    print(" | ".join(parts), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2 << 20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--codec", default="zstd")
    parser.add_argument("--columns", action="store_true")
    parser.add_argument("--read", action="store_true")
    parser.add_argument("sets", nargs="*", default=list(SETS))
    arguments = parser.parse_args()
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for name in arguments.sets:
            table = SETS[name](arguments.rows)
            shown = [(f"{name} {arguments.codec}", table)]
            if arguments.columns:
                shown = [(f"{name}.{column}", table.select([column])) for column in table.column_names]
            for label, part in shown:
                if arguments.read:
                    for whose, seconds in measure_reads(part, name, arguments.codec, arguments.rounds, folder):
                        report_reads(label, part, whose, seconds)
                    continue
                report(label, part, *measure(part, name, arguments.codec, arguments.rounds, folder))


if __name__ == "__main__":
    main()
