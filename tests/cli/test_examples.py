"""The programs of examples/ do what the README says, also when they are killed and started again."""

import pathlib
import shutil
import signal
import subprocess

import duckdb
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PUSH = ROOT / "build/release/weir_example_push"


@pytest.fixture
def folder(tmp_path):
    shutil.copy(ROOT / "examples/push.yaml", tmp_path)
    return tmp_path


def delivered(folder):
    query = f"SELECT count(*), count(DISTINCT n), sum(n), count(*) FILTER (even) FROM '{folder}/out/readings/**/*.parquet'"
    return duckdb.sql(query).fetchall()[0]


ALL = (1_000_000, 1_000_000, 999_999 * 1_000_000 // 2, 500_000)


def test_push_delivers_every_row(folder):
    done = subprocess.run([PUSH], cwd=folder, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert delivered(folder) == ALL
    again = subprocess.run([PUSH], cwd=folder, capture_output=True, text=True, timeout=60)
    assert (again.returncode, again.stderr) == (0, "")
    assert delivered(folder) == ALL


def test_push_goes_on_after_kills(folder):
    yaml = (folder / "push.yaml").read_text()
    (folder / "push.yaml").write_text(yaml + "checkpoint:\n  interval: 10ms\n")
    killed = 0
    # Each run lives a little longer than the one before, so the kills fall all over its life.
    for milliseconds in range(2, 200, 2):
        process = subprocess.Popen([PUSH], cwd=folder, stderr=subprocess.DEVNULL)
        try:
            process.wait(milliseconds / 1000)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
    if process.returncode < 0:
        process = subprocess.run([PUSH], cwd=folder, timeout=60)
    assert killed > 0
    assert process.returncode == 0
    assert delivered(folder) == ALL
