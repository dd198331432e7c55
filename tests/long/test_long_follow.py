"""Ten thousand files that come, grow and are rotated, and fifty kills."""

import pathlib
import sys

CRASH = pathlib.Path(__file__).resolve().parent.parent / "crash"
sys.path.insert(0, str(CRASH))
from follow import Followed  # noqa: E402


def test_exact_rows(tmp_path, weir_bin):
    case = Followed(tmp_path, weir_bin, seed=20261202, files=10_000, families=10, pause=0.008)
    case.run_killed(50, longest=3.0)
    case.check_rows()
