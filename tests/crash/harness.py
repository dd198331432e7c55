"""Pipelines that are killed: a folder with source files, a pipeline file and a target, and the check that
the target holds each source row once.

The rows are made so that one number tells them apart (id) and the others follow from it, so a torn or
mixed row shows as well as a lost or doubled one.
"""

import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

import duckdb
import polars
import pyarrow.parquet

FORMAT = os.environ.get("WEIR_CRASH_FORMAT", "parquet")
COLUMNS = "{id: int64, name: utf8, price: float64, moment: 'timestamp[us, UTC]', even: bool}"
SECONDS = 120  # that nothing here comes near to, also on a busy machine: a hang, not a measure
# A source that takes its time, so that a run of few rows has many epochs.
PACE = "task.read=sleep:2ms"

EXPECTED = """
    select count(*) = {n}
       and count(distinct id) = {n} and min(id) = {first} and max(id) = {first} + {n} - 1
       and count(*) filter (where (name is null) <> (id % 7 = 0)) = 0
       and count(*) filter (where name <> 'name-' || (id * 2654435761 % 1000003)) = 0
       and count(*) filter (where price <> id / 8) = 0
       and count(*) filter (where even <> (id % 2 = 0)) = 0
       and count(*) filter (where hour(moment at time zone 'UTC') <> id % 24
                               or microsecond(moment at time zone 'UTC') % 1000000 <> id % 1000000) = 0
    from {source}
"""


@functools.lru_cache(maxsize=64)
def ndjson(first, n):
    def row(i):
        return {
            "id": i,
            "name": None if i % 7 == 0 else f"name-{i * 2654435761 % 1000003}",
            "price": i / 8,
            "moment": f"2024-01-{1 + i % 28:02d}T{i % 24:02d}:00:00.{i % 1000000:06d}Z",
            "even": i % 2 == 0,
        }

    return "".join(json.dumps(row(i)) + "\n" for i in range(first, first + n))


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []


def killed(process):
    return process.returncode == -signal.SIGKILL


def wait_until(condition, what):
    limit = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < limit, f"weir did not come to {what}"
        time.sleep(0.002)


def is_stopped(process):
    """Whether SIGSTOP took hold: the state behind the name in /proc/PID/stat, see proc(5)."""
    return pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


class Case:
    """One pipeline of source files into one folder."""

    def __init__(self, folder, binary, rows=3600, files=3, sources=1, reads="ndjson", **options):
        self.folder, self.binary, self.rows = pathlib.Path(folder), binary, rows
        self.target = self.folder / "out/lake"
        self.state = self.folder / "state"
        self.sources = ["orders", "more"][:sources]
        self.parts, self.reads = 0, reads
        self.folder.mkdir(parents=True, exist_ok=True)
        per_file = rows // (files * sources)
        assert per_file * files * sources == rows
        for s, name in enumerate(self.sources):
            (self.folder / name).mkdir(exist_ok=True)
            for f in range(files):
                self.put(name, str(f), (s * files + f) * per_file, per_file)
        self.pipeline = self.folder / "p.yaml"
        self.configure(**options)

    def put(self, source, name, first, n):
        """A source file; of Parquet with row groups that end within batches."""
        part = self.folder / source / f"{name}.{self.reads}"
        if self.reads == "ndjson":
            part.write_text(ndjson(first, n))
            return
        rows = polars.read_ndjson(ndjson(first, n).encode())
        rows = rows.with_columns(polars.col("moment").str.to_datetime(time_unit="us", time_zone="UTC"))
        pyarrow.parquet.write_table(rows.to_arrow(), part, row_group_size=130, data_page_size=1000, write_batch_size=20)

    def configure(self, writers=2, interval="5ms", timeout="60s", batch_rows=60, sinks="lake", more="", top=()):
        """`more` are further options of each sink, in braces' own spelling. Of `partition_by` even is all that the
        check knows to read. `top` are lines at the top of the file."""
        self.partitioned = "partition_by: even" in more
        lines = ["pipeline: crash", "state: ./state", f"checkpoint: {{interval: {interval}, timeout: {timeout}}}", *top]
        lines += ["sources:"]
        for name in self.sources:
            path = f"path: {name}/*.{self.reads}, batch_rows: {batch_rows}"
            path += f", schema: {COLUMNS}" if self.reads == "ndjson" else ""
            lines += [f"  {name}: {{type: file, {path}}}"]
        lines += ["sinks:"]
        for sink in sinks.split():
            path = f"path: ./out/{sink}, format: {FORMAT}"
            options = ", ".join(filter(None, [path, f"writers: {writers}", f"from: [{', '.join(self.sources)}]", more]))
            lines += [f"  {sink}: {{type: file, {options}}}"]
        self.pipeline.write_text("\n".join(lines) + "\n")

    def start(self, faults="", verb="run", arguments=(), env=None, **options):
        return subprocess.Popen(
            [self.binary, verb, self.pipeline, "--json", *arguments],
            env={**os.environ, **(env or {}), "WEIR_FAULTS": faults},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def end(self, process, what=""):
        """Waits for the end of a process that start() gave."""
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"weir {what} did not end\n{err[-4000:]}") from None
        assert "Sanitizer" not in err, err[-8000:]
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def run(self, faults="", verb="run", **options):
        return self.end(self.start(faults, verb, **options), f"{verb} with faults '{faults}'")

    def reach(self, start):
        """What `start` gives, once it is not an ordinary end: how many epochs a run has is a matter of time, so a
        run that has come to its end before the fault gets more rows and another try."""
        for _ in range(8):
            process = start()
            if process.returncode != 0:
                return process
            self.grow(self.rows)
        raise AssertionError(f"{process.args} ends before the fault")

    def kill(self, faults, **options):
        """A run that the faults kill."""
        process = self.reach(lambda: self.run(f"{faults},{PACE}", **options))
        assert killed(process), f"{faults}: exit {process.returncode}\n{process.stderr[-4000:]}"

    def stop(self, faults, **options):
        """A run that has sent itself SIGSTOP."""

        def start():
            process = self.start(f"{faults},{PACE}", **options)
            wait_until(lambda: process.poll() is not None or is_stopped(process), faults)
            return process if process.returncode is None else self.end(process)

        process = self.reach(start)
        assert process.returncode is None, f"{faults}: exit {process.returncode}\n{process.stderr[-4000:]}"
        return process

    def go_on(self, process):
        process.send_signal(signal.SIGCONT)
        return self.end(process, "after SIGCONT")

    def finish(self, **options):
        done = self.run(**options)
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-4000:]}"
        return json.loads(done.stdout)

    def grow(self, rows=60):
        """One more source file behind the others."""
        self.parts += 1
        self.put(self.sources[-1], f"part-{self.parts:05d}", self.rows, rows)
        self.rows += rows

    def published(self, sink="lake"):
        return files_of(self.folder / "out" / sink)

    def source(self, sink="lake"):
        target = self.folder / "out" / sink
        if FORMAT == "parquet" and self.partitioned:
            return f"read_parquet('{target}/**/*.parquet', hive_partitioning = true, hive_types = {{even: BOOLEAN}})"
        if FORMAT == "parquet":
            return f"read_parquet('{target}/**')"
        types = "{id: 'BIGINT', name: 'VARCHAR', price: 'DOUBLE', moment: 'TIMESTAMPTZ', even: 'BOOLEAN'}"
        return f"read_json('{target}/**', format = 'newline_delimited', columns = {types})"

    def check(self, first=0, rows=None, sink="lake"):
        """The target holds the source's rows, each once, and nothing else lies there."""
        n = self.rows if rows is None else rows
        foreign = [path for path in self.published(sink) if path.suffix != f".{FORMAT}"]
        assert not foreign, f"files that are not published data under the target: {foreign}"
        if n == 0:
            assert not self.published(sink)
            return
        with duckdb.connect() as db:
            db.execute("set timezone = 'UTC'")
            if not db.execute(EXPECTED.format(source=self.source(sink), n=n, first=first)).fetchone()[0]:
                what = "count(*), count(distinct id), min(id), max(id)"
                found = db.execute(f"select {what} from {self.source(sink)}").fetchone()
                raise AssertionError(f"the target has ({what}) = {found}, wanted {n} rows from {first}")

    def leftovers(self):
        """What lies beside the targets and belongs to no epoch, no owner and no commit. A manifest's temporary
        file may lie there until the next commit that prunes (docs/protocol.md, F16)."""
        own = re.compile(r"owner\.json|deployment-\d+\.json|namespace\.json|\d{20}\.json|\d{20}-[0-9a-f]{16}\.done|\.tmp-\d{20}-[0-9a-f]{32}")
        return [path for path in files_of(self.folder / "out/.weir") if not own.fullmatch(path.name)]

    def check_goes_on(self):
        self.grow()
        self.finish()
        self.check()

    def check_clean(self):
        """After one more epoch nothing is owed any more: what earlier runs left is gone."""
        self.check_goes_on()
        assert not self.leftovers(), [str(path) for path in self.leftovers()]

    def copy_state(self, name):
        shutil.copytree(self.state, self.folder / name)
        return ("--set", f"state={self.folder / name}")


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
        if exception[0] is not None:
            return
        if self.error is None:
            self.read_once()
        if self.error is not None:
            raise AssertionError("a reader of the target saw what it must not see") from self.error

    def loop(self):
        while not self.stop.wait(0.03) and self.error is None:
            try:
                self.read_once()
            except Exception as error:  # noqa: BLE001: handed to the test's own thread
                self.error = error

    def read_once(self):
        # Nothing published yet is no table yet, for either reader.
        if not self.case.published():
            return
        with duckdb.connect(config={"threads": 1}) as db:
            n, distinct, low, high = db.execute(
                f"select count(*), count(distinct id), min(id), max(id) from {self.case.source()}"
            ).fetchone()
        assert n == distinct, f"DuckDB reads {n} rows of {distinct} ids"
        assert 0 <= low and high < self.case.rows, f"DuckDB reads ids {low} to {high}"
        scan = polars.scan_parquet if FORMAT == "parquet" else polars.scan_ndjson
        frame = scan(self.case.target).select(polars.len(), polars.col("id").n_unique()).collect()
        assert frame.item(0, 0) == frame.item(0, 1), f"Polars reads {frame.row(0)}"
        assert frame.item(0, 0) >= n, "rows that were published are gone"
        self.reads += 1
