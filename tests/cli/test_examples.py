"""The programs of examples/ do what the README says, also when they are killed and started again."""

import os
import pathlib
import shutil
import subprocess

import duckdb
import pytest
from kills import run_through_kills

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ["push", "embed-epoll", "embed-threads", "embed-cpp"]


@pytest.fixture(params=PROGRAMS)
def program(request):
    return ROOT / f"build/release/weir_example_{request.param}"


@pytest.fixture
def folder(tmp_path):
    shutil.copy(ROOT / "examples/push.yaml", tmp_path)
    return tmp_path


def delivered(folder):
    query = f"SELECT count(*), count(DISTINCT n), sum(n), count(*) FILTER (even) FROM '{folder}/out/readings/**/*.parquet'"
    return duckdb.sql(query).fetchall()[0]


ALL = (1_000_000, 1_000_000, 999_999 * 1_000_000 // 2, 500_000)


def test_delivers_every_row(program, folder):
    done = subprocess.run([program], cwd=folder, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert delivered(folder) == ALL
    again = subprocess.run([program], cwd=folder, capture_output=True, text=True, timeout=60)
    assert (again.returncode, again.stderr) == (0, "")
    assert delivered(folder) == ALL


def test_goes_on_after_kills(program, folder):
    yaml = (folder / "push.yaml").read_text()
    (folder / "push.yaml").write_text(yaml + "checkpoint:\n  interval: 10ms\n")
    status, killed = run_through_kills([program], folder, range(2, 200, 2))
    assert killed > 0
    assert status == 0
    assert delivered(folder) == ALL


def test_goes_back_after_an_abort(program, folder, weir_faults_bin, tmp_path):
    """A write that fails aborts the epoch, and the program is told to push it again."""
    yaml = (folder / "push.yaml").read_text()
    (folder / "push.yaml").write_text(yaml + "checkpoint:\n  interval: 10ms\n")
    point = "task.write"
    env = {**os.environ, "WEIR_FAULTS": f"{point}=fail@200,{point}=fail@700", "WEIR_FAULTS_LOG": str(tmp_path / "log")}
    done = subprocess.run([weir_faults_bin.parent / program.name], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "log").read_text().split().count(point) > 1001
    assert delivered(folder) == ALL
