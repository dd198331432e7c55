"""Schedules of the simulation that `./dev test sim` has no time for: WEIR_SIM_SCHEDULES of them (default: 8 million)."""

import os
import pathlib
import subprocess

import pytest

SCHEDULES = int(os.environ.get("WEIR_SIM_SCHEDULES", "8000000"))
EACH = 500_000
FIRST = 1_000_001  # those before are of the `sim` tier


@pytest.mark.parametrize("first", range(FIRST, FIRST + SCHEDULES, EACH))
def test_schedules(first, weir_bin, record_property):
    last = min(first + EACH, FIRST + SCHEDULES) - 1
    sim = pathlib.Path(weir_bin).parent / "tests/sim"
    run = subprocess.run([sim, "--seeds", f"{first}..{last}"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert f"seeds {first}..{last} held" in run.stdout
    record_property("schedules", last - first + 1)
