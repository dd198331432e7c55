"""Pipelines that are killed: a folder with source files, a pipeline file and a target, and the check that
the target holds each source row once.

The rows are made so that one number tells them apart (id) and the others follow from it, so a torn or
mixed row shows as well as a lost or doubled one.
"""

import json
import os
import pathlib
import signal
import subprocess
import threading

import duckdb
import polars

COLUMNS = "{id: int64, name: utf8, price: float64, at: 'timestamp[us, UTC]', even: bool}"


def row(i):
    return {
        "id": i,
        "name": None if i % 7 == 0 else f"name-{i * 2654435761 % 1000003}",
        "price": i / 8,
        "at": f"2024-01-{1 + i % 28:02d}T{i % 24:02d}:00:00.{i % 1000000:06d}Z",
        "even": i % 2 == 0,
    }


EXPECTED = """
    select count(*) = {n}
       and count(distinct id) = {n} and min(id) = {first} and max(id) = {first} + {n} - 1
       and count(*) filter (where (name is null) <> (id % 7 = 0)) = 0
       and count(*) filter (where name <> 'name-' || (id * 2654435761 % 1000003)) = 0
       and count(*) filter (where price <> id / 8) = 0
       and count(*) filter (where even <> (id % 2 = 0)) = 0
       and count(*) filter (where hour("at" at time zone 'UTC') <> id % 24
                               or microsecond("at" at time zone 'UTC') % 1000000 <> id % 1000000) = 0
    from {source}
"""


def write_ndjson(path, first, n):
    with open(path, "w") as f:
        for i in range(first, first + n):
            f.write(json.dumps(row(i)) + "\n")


class Case:
    """One pipeline of source files into one folder."""

    def __init__(self, folder, binary, rows=12000, files=3, sources=1, writers=2, interval="15ms", text=None):
        self.folder, self.binary, self.rows = pathlib.Path(folder), binary, rows
        self.target = self.folder / "out/lake"
        self.state = self.folder / "state"
        self.folder.mkdir(parents=True, exist_ok=True)
        per_file = rows // (files * sources)
        assert per_file * files * sources == rows
        names = ["orders", "more"][:sources]
        for s, name in enumerate(names):
            (self.folder / name).mkdir(exist_ok=True)
            for f in range(files):
                write_ndjson(self.folder / name / f"{f}.ndjson", (s * files + f) * per_file, per_file)
        self.pipeline = self.folder / "p.yaml"
        self.pipeline.write_text(
            text
            or f"""
pipeline: crash
state: ./state
checkpoint: {{interval: {interval}, timeout: 20s}}
sources:
"""
            + "".join(
                f"  {name}: {{type: file, path: {name}/*.ndjson, batch_rows: 150, schema: {COLUMNS}}}\n" for name in names
            )
            + f"""
sinks:
  lake: {{type: file, path: ./out/lake, writers: {writers}, from: [{", ".join(names)}]}}
"""
        )

    def start(self, faults="", verb="run", **options):
        return subprocess.Popen(
            [self.binary, verb, self.pipeline, "--json"],
            env={**os.environ, "WEIR_FAULTS": faults},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def run(self, faults="", verb="run", timeout=60, **options):
        process = self.start(faults, verb, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"weir {verb} with faults '{faults}' did not end in {timeout} s\n{err[-4000:]}")
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def finish(self):
        done = self.run()
        assert done.returncode == 0, f"exit {done.returncode} after the faults\n{done.stderr[-4000:]}"
        return json.loads(done.stdout)

    def grow(self, name, rows):
        """One more source file behind the others."""
        write_ndjson(self.folder / "orders" / f"{name}.ndjson", self.rows, rows)
        self.rows += rows

    def published(self):
        return sorted(self.target.rglob("*.parquet")) if self.target.is_dir() else []

    def check(self, first=0, rows=None):
        n = self.rows if rows is None else rows
        source = f"read_parquet('{self.target}/**')"
        with duckdb.connect() as db:
            db.execute("set timezone = 'UTC'")
            if not db.execute(EXPECTED.format(source=source, n=n, first=first)).fetchone()[0]:
                found = db.execute(
                    f"select count(*), count(distinct id), min(id), max(id) from {source}"
                ).fetchone()
                raise AssertionError(f"the target differs: (rows, distinct, min, max) = {found}, wanted {n} from {first}")
        foreign = [p for p in self.target.rglob("*") if p.is_file() and p.suffix != ".parquet"]
        assert not foreign, f"files that are not published data under the target: {foreign}"

    def leftovers(self):
        """Data files that nobody owns any more: staged beside the target and not published."""
        beside = self.target.parent / ".weir"
        return sorted(beside.rglob("*.parquet")) if beside.is_dir() else []


def killed(process):
    return process.returncode == -signal.SIGKILL


class Watcher:
    """Reads the target with DuckDB and Polars while weir writes it: whole rows, none of them twice."""

    def __init__(self, case):
        self.case, self.stop, self.error, self.reads = case, threading.Event(), None, 0
        self.thread = threading.Thread(target=self.loop)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.stop.set()
        self.thread.join()
        if exception[0] is None and self.error is not None:
            raise AssertionError("a reader of the target saw what it must not see") from self.error

    def loop(self):
        while not self.stop.wait(0.02) and self.error is None:
            try:
                self.read_once()
            except Exception as error:  # noqa: BLE001: handed to the test's own thread
                self.error = error

    def read_once(self):
        if not self.case.published():
            return
        with duckdb.connect() as db:
            n, distinct, low, high = db.execute(
                f"select count(*), count(distinct id), min(id), max(id) from read_parquet('{self.case.target}/**')"
            ).fetchone()
        assert n == distinct, f"DuckDB reads {n} rows of {distinct} ids"
        assert 0 <= low and high < self.case.rows, f"DuckDB reads ids {low} to {high}"
        frame = polars.scan_parquet(self.case.target).select(polars.len(), polars.col("id").n_unique()).collect()
        assert frame.item(0, 0) == frame.item(0, 1), f"Polars reads {frame.row(0)}"
        assert frame.item(0, 0) >= n, "rows that were published are gone"
        self.reads += 1
