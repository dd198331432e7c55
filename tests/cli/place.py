"""A folder with source files, a pipeline and its target, as a user has them, and what must hold whatever
the user does wrong: the target shows whole rows only, none twice, and a run after the cause is gone
delivers the rest.
"""

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import textwrap

import duckdb

PIPELINE = """
pipeline: bad
state: ./state
sources:
  rows:
    type: file
    path: in/*.ndjson
    schema: {id: int64, name: utf8, price: float64, day: date32, part: int8}
sinks:
  lake: {type: file, path: ./out/lake}
"""


def line(i, **values):
    return json.dumps({"id": i, "name": f"n{i}", "price": i / 4, "day": "2024-02-29", "part": i % 100} | values) + "\n"


def lines(first, n):
    return "".join(line(i) for i in range(first, first + n))


class Place:
    def __init__(self, folder, binary):
        self.folder, self.binary = pathlib.Path(folder), binary
        self.pipeline = self.folder / "p.yaml"
        self.target = self.folder / "out/lake"
        (self.folder / "in").mkdir(parents=True)
        self.write_pipeline(PIPELINE)

    def write_pipeline(self, text):
        self.pipeline.write_text(textwrap.dedent(text))

    def source(self, name, content):
        path = self.folder / "in" / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def set(self, *pairs):
        return [word for pair in pairs for word in ("--set", pair)]

    def run(self, *arguments, verb="run", pipeline=None, env=None, timeout=60, **options):
        return subprocess.run(
            [self.binary, verb, pipeline or self.pipeline, *arguments],
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
            **options,
        )

    def refused(self, status, *words, run=None, **options):
        """A run that must end with `status` and name all `words`, with the target as it was or grown by
        whole rows."""
        before = self.ids()
        done = run or self.run(*options.pop("arguments", ()), **options)
        assert done.returncode == status, f"exit {done.returncode}, wanted {status}\n{done.stderr}"
        errors = [text for text in done.stderr.splitlines() if "error:" in text]
        assert len(errors) == 1, done.stderr
        for word in words:
            assert word in errors[0], f"no '{word}' in: {errors[0]}"
        after = self.ids()
        assert set(before) <= set(after)
        return errors[0]

    def ids(self):
        """The ids that a reader sees, in order; each once, and no file but published ones."""
        if not self.target.is_dir():
            return []
        files = sorted(path for path in self.target.rglob("*") if path.is_file())
        assert all(path.suffix == ".parquet" for path in files), files
        if not files:
            return []
        with duckdb.connect() as db:
            found = db.execute(f"select id from read_parquet('{self.target}/**') order by id").fetchall()
        ids = [row[0] for row in found]
        assert len(set(ids)) == len(ids), "rows are there twice"
        return ids

    def finish(self, ids):
        """A run that delivers all that is left, so that exactly `ids` are there."""
        done = self.run()
        assert done.returncode == 0, done.stderr
        assert self.ids() == list(ids)
        assert not list(self.target.parent.glob(".weir/**/*.parquet")), "staged files are left"


def without_override():
    """For preexec_fn: root without the capabilities by which it passes over modes of files. Its children
    then see them as anyone else does."""
    pr_capbset_drop = 24
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        if os.geteuid() == 0 and libc.prctl(pr_capbset_drop, capability, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "cannot drop a capability")


def small_files(size):
    """For preexec_fn: no file may become larger than `size` bytes."""
    import resource

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit
