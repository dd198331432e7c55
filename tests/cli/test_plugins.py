"""The connectors of examples/ are built apart, against an installed weir, as their authors' users would,
and run; and those written against the first ABI are still run by this loader."""

import json
import os
import pathlib
import shutil
import sqlite3
import subprocess

import pytest
from kills import run_through_kills

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = 100_000


def weir(prefix, *arguments, cwd):
    done = subprocess.run([prefix / "bin/weir", *arguments], cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def build(prefix, tmp_path):
    """build("sink-c") -> a copy of the example's folder with its plugin made by its Makefile."""

    def make(name):
        folder = tmp_path / name
        shutil.copytree(ROOT / "examples" / name, folder)
        (pc,) = prefix.rglob("weir.pc")
        env = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent)}
        done = subprocess.run(["make"], cwd=folder, env=env, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return folder

    return make


def test_the_least_sink(build, prefix):
    folder = build("sink-c")
    weir(prefix, "run", "pipeline.yaml", cwd=folder)
    rows = [json.loads(line) for line in (folder / "lines.ndjson").read_text().splitlines()]
    assert [row["n"] for row in rows] == list(range(ROWS))


def test_source(build, prefix):
    folder = build("source-c")
    weir(prefix, "run", "pipeline.yaml", cwd=folder)
    lines = [line for path in sorted(folder.glob("out/*.ndjson")) for line in path.read_text().splitlines()]
    assert sorted((row["n"], row["square"]) for row in map(json.loads, lines)) == [(n, n * n) for n in range(ROWS)]


def lines_of(folder):
    """(rows, different rows, the sum of n), by SQLite itself."""
    with sqlite3.connect(folder / "lines.db") as db:
        return db.execute("SELECT count(*), count(DISTINCT row), sum(row ->> 'n') FROM line").fetchone()


def test_exactly_once_sink_after_kills(build, prefix):
    folder = build("sink-exactly-once")
    command = [prefix / "bin/weir", "run", "pipeline.yaml", "--set", "sources.numbers.rate=200000"]
    status, killed = run_through_kills(command, folder, range(5, 500, 5))
    assert status == 0
    assert killed > 0
    assert lines_of(folder) == (ROWS, ROWS, (ROWS - 1) * ROWS // 2)


def test_a_second_deployment_is_refused(build, prefix):
    """The state folder is lost: the file at the target says whose it is."""
    folder = build("sink-exactly-once")
    weir(prefix, "run", "pipeline.yaml", cwd=folder)
    shutil.rmtree(folder / "weir-state")
    command = [prefix / "bin/weir", "run", "pipeline.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4 and "--new-deployment" in done.stderr
    weir(prefix, "run", "pipeline.yaml", "--new-deployment", cwd=folder)
    assert lines_of(folder)[:2] == (2 * ROWS, ROWS)


def test_listed_with_its_options(build, prefix):
    folder = build("sink-exactly-once")
    env = {**os.environ, "WEIR_PLUGIN_PATH": str(folder)}
    done = subprocess.run([prefix / "bin/weir", "connectors", "sqlite-lines"], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "The SQLite file." in done.stdout


@pytest.mark.parametrize("version", sorted(path.name for path in (ROOT / "tests/abi").iterdir() if path.is_dir()))
def test_plugins_of_every_abi_are_run(prefix, version, tmp_path):
    """Against the headers of that version, as a plugin that nobody compiled again would be."""
    frozen = ROOT / "tests/abi" / version
    libraries = [f"-L{next(prefix.rglob('libweir.so')).parent}", "-lweir", "-lsqlite3"]
    for source, example, plugin in (
        ("sqlite_lines.c", "sink-exactly-once", "weir-sqlite-lines.so"),
        ("squares.c", "source-c", "weir-squares.so"),
    ):
        folder = tmp_path / f"{example}-{version}"
        folder.mkdir()
        shutil.copy(ROOT / "examples" / example / "pipeline.yaml", folder)
        command = ["cc", "-std=c11", "-shared", "-fPIC", "-I", frozen, "-o", folder / plugin, frozen / source, *libraries]
        subprocess.run(command, check=True)
        weir(prefix, "run", "pipeline.yaml", cwd=folder)
    assert lines_of(tmp_path / f"sink-exactly-once-{version}") == (ROWS, ROWS, (ROWS - 1) * ROWS // 2)
    lines = [path.read_text().count("\n") for path in (tmp_path / f"source-c-{version}/out").glob("*.ndjson")]
    assert sum(lines) == ROWS
