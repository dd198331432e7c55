"""Every sink of the library and of examples/ is certified, by rows that other programs count; and the command
itself."""

import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]
import adbc_drivers

@contextlib.contextmanager
def counted(folder, count):
    """A shell command that prints what count() says in this process."""
    ask, answer = folder / "ask", folder / "answer"
    os.mkfifo(ask)
    os.mkfifo(answer)

    def serve():
        while ask.read_text().strip() == "count":
            try:
                text = str(count())
            except Exception as error:
                text = repr(error)
            answer.write_text(text + "\n")

    threading.Thread(target=serve, daemon=True).start()
    yield f"echo count > {ask} && cat {answer}"


def verdict(done):
    """The report, and what of it stands in the way of a certificate."""
    report = json.loads(done.stdout)
    return report, [c for c in report.get("checks", []) if c["outcome"] not in ("passed", "not_claimed")]


def certify(weir, name, folder, config="", count=None):
    (folder / "options.yaml").write_text(config)
    arguments = ["conform", name, "--config", folder / "options.yaml", "--json", *(["--count", count] if count else [])]
    done = weir(*arguments, cwd=folder, timeout=280)
    report, wrong = verdict(done)
    assert wrong == []
    assert done.returncode == 0 and report["certified"]
    return report


def rows_of(path):
    if path.endswith(".parquet"):
        return pq.ParquetFile(path).metadata.num_rows
    if path.endswith(".arrow"):
        with pa.ipc.open_file(path) as reader:
            return sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
    return len(pathlib.Path(path).read_bytes().splitlines())


@pytest.fixture
def quick_path(tmp_path):
    """A folder in memory where there is such: no power is cut here, so syncs show nothing."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path) as path:
        yield pathlib.Path(path)


@pytest.mark.parametrize("form", ["parquet", "arrow", "ndjson", "csv"])
def test_file(weir, quick_path, form):
    out, seen = quick_path / "out", {}  # published files never change

    def count():
        names = os.listdir(out) if out.is_dir() else []
        seen.update({name: rows_of(f"{out}/{name}") for name in names if name not in seen})
        return sum(seen[name] for name in names)

    config = f"path: out\nformat: {form}\n" + ("csv: {header: false}\n" if form == "csv" else "")
    with counted(quick_path, count) as command:
        report = certify(weir, "file", quick_path, config, command)
    assert report["contract"]["claims"] and report["passed"] >= 39


@pytest.mark.parametrize("mode", ["mode: append", "mode: upsert\nkey: [id]"])
def test_sqlite(weir, quick_path, monkeypatch, mode):
    def rows():
        with contextlib.closing(sqlite3.connect(quick_path / "out.db", timeout=30)) as db:
            there = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 't'").fetchone()[0]
            return db.execute("SELECT count(*) FROM t").fetchone()[0] if there else 0

    monkeypatch.setenv("TMPDIR", str(quick_path))  # for the spool
    with counted(quick_path, rows) as count:
        report = certify(weir, "sqlite", quick_path, f"path: out.db\ntable: t\ncreate: true\n{mode}\n", count)
    assert report["contract"]["claims"] and report["passed"] >= 40
    assert not list(quick_path.glob("weir-conform-*"))


@pytest.mark.parametrize("mode", ["", "mode: upsert\nkey: [id]\n"], ids=["append", "upsert"])
def test_adbc(weir, quick_path, monkeypatch, mode):
    def rows():
        with contextlib.closing(sqlite3.connect(quick_path / "out.db", timeout=30)) as db:
            there = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 't'").fetchone()[0]
            return db.execute("SELECT count(*) FROM t").fetchone()[0] if there else 0

    monkeypatch.setenv("TMPDIR", str(quick_path))  # for the spool
    config = f"driver: {adbc_drivers.SQLITE}\noptions: {{uri: '{quick_path}/out.db'}}\ntable: t\ncreate: true\n{mode}"
    with counted(quick_path, rows) as count:
        report = certify(weir, "adbc", quick_path, config, count)
    assert report["contract"]["claims"] and report["passed"] >= 40


@pytest.mark.parametrize("name", ["stdout", "blackhole"])
def test_sinks_that_keep_nothing(weir, tmp_path, name):
    certify(weir, name, tmp_path)


@pytest.fixture(scope="module")
def server(postgres_server):
    return postgres_server


@contextlib.contextmanager
def rows_table(server, folder, mode):
    """(options, command that counts) for a table of a server."""
    server.sql("drop table if exists rows, weir_cursor")

    def count():
        made = server.sql("select to_regclass('public.rows') is not null") == "t"
        return server.sql("select count(*) from rows") if made else 0

    with counted(folder, count) as command:
        yield f"{{uri: '{server.uri}', table: public.rows, create: true, mode: {mode}}}\n", command


def test_postgres(weir, server, quick_path):
    with rows_table(server, quick_path, "append") as (config, command):
        report = certify(weir, "postgres", quick_path, config, command)
    assert report["contract"]["claims"]


def test_postgres_by_key(weir, server, quick_path):
    """tests/long has all of it."""
    with rows_table(server, quick_path, "upsert, key: [id]") as (config, command):
        (quick_path / "options.yaml").write_text(config)
        arguments = ["--config", "options.yaml", "--count", command, "--json", "--only", "rows"]
        report, wrong = verdict(weir("conform", "postgres", *arguments, cwd=quick_path))
    assert wrong == [] and {c["outcome"] for c in report["checks"] if c["group"] == "rows"} == {"passed"}


@pytest.fixture
def plugin(weir_bin, tmp_path):
    """plugin("sink-c/append_lines.c") -> the shared object."""

    def make(source, *libraries):
        path = tmp_path / "weir-plugin.so"
        command = ["cc", "-std=c11", "-shared", "-fPIC", f"-I{ROOT}/include", "-o", path, ROOT / "examples" / source]
        subprocess.run([*command, f"-L{weir_bin.parent}", "-lweir", *libraries], check=True)
        return "./weir-plugin.so"

    return make


def test_the_least_sink(weir, plugin, tmp_path):
    count = f"cat {tmp_path}/lines.ndjson 2>/dev/null | wc -l"
    certify(weir, plugin("sink-c/append_lines.c"), tmp_path, "path: lines.ndjson", count)


def test_the_exactly_once_sink(weir, plugin, tmp_path):
    def lines():
        with contextlib.closing(sqlite3.connect(tmp_path / "lines.db", timeout=30)) as db:
            tables = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'line'").fetchone()[0]
            return db.execute("SELECT count(*) FROM line").fetchone()[0] if tables else 0

    sink = plugin("sink-exactly-once/sqlite_lines.c", "-lsqlite3")
    with counted(tmp_path, lines) as count:
        certify(weir, sink, tmp_path, "path: lines.db", count)


def test_nothing_is_certified_unseen(weir, tmp_path):
    """Without a count the rows of a committable sink are not shown; the report and the status say so."""
    done = weir("conform", "file", "--config", "options.yaml", cwd=tmp_path)
    assert done.returncode == 2 and "options.yaml" in done.stderr
    (tmp_path / "options.yaml").write_text("path: out\n")
    done = weir("conform", "file", "--config", "options.yaml", "--only", "commit", cwd=tmp_path)
    assert done.returncode == 1
    assert "not certified" in done.stdout and "needs --count" in done.stdout
    assert "not_shown    commit/fenced" in done.stdout and "kill/" not in done.stdout


@pytest.mark.parametrize("only", ["cleaner", "live", "cleaned-twice"])
def test_a_claim_stands_without_the_checks_before(weir, quick_path, only):
    """That a sink has a cleaner is known when nothing but the cleaner's checks is asked for."""
    (quick_path / "options.yaml").write_text("path: out\nformat: ndjson\n")
    arguments = ["--config", "options.yaml", "--count", "cat out/* 2>/dev/null | wc -l", "--json", "--only", only]
    report, wrong = verdict(weir("conform", "file", *arguments, cwd=quick_path))
    asked = {c["outcome"] for c in report["checks"] if only in (c["group"], c["name"])}
    assert asked == {"passed"} and wrong == []
    (quick_path / "none.yaml").write_text("{}\n")
    report, _ = verdict(weir("conform", "blackhole", "--config", "none.yaml", "--json", "--only", only, cwd=quick_path))
    assert {c["outcome"] for c in report["checks"] if only in (c["group"], c["name"])} == {"not_claimed"}


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["conform"], "a sink of `weir connectors`"),
        (["conform", "fil"], "file"),
        (["conform", "file"], "path"),
        (["conform", "./none.so"], "none.so"),
        (["conform", "blackhole", "--only", "commits"], "no check"),
        (["conform", "blackhole", "--count", "echo many"], "one number"),
        (["conform", "blackhole", "--count", "echo 1; false"], "one number"),
        (["conform", "blackhole", "--config"], "FILE"),
        (["check", "x.yaml", "--count", "true"], "weir conform"),
    ],
)
def test_usage(weir, tmp_path, arguments, told):
    done = weir(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
