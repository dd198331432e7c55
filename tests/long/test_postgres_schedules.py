"""A hundred random schedules of crashes, cuts and zombies between weir and a PostgreSQL server."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))
from postgres_schedules import run_schedule  # noqa: E402
from test_postgres_sink import StandbyCase  # noqa: E402


@pytest.mark.parametrize("seed", range(1000, 1100))
def test_a_schedule(seed, tmp_path, weir_faults_bin, postgres_server):
    run_schedule(StandbyCase(tmp_path, weir_faults_bin, postgres_server, rows=1800), seed)
