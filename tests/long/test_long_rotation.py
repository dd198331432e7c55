"""Seeds of the folder that moves while it is read for which the unit tests have no time: WEIR_ROTATION_SEEDS of them."""

import os
import pathlib
import subprocess

import pytest

SEEDS = int(os.environ.get("WEIR_ROTATION_SEEDS", "20000"))
EACH = 5000
FIRST = 101  # those before are of the `unit` tier


@pytest.mark.parametrize("first", range(FIRST, FIRST + SEEDS, EACH))
def test_each_row_once(first, weir_bin):
    test = pathlib.Path(weir_bin).parent / "tests/test_file_rotation"
    last = min(first + EACH, FIRST + SEEDS) - 1
    run = subprocess.run([test, str(first), str(last)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
