"""A folder that is followed while its files are rotated and weir is killed. tests/long has the large version."""

import pytest
from follow import Followed, MovedIn


@pytest.mark.parametrize("seed", range(2))
def test_exact_rows(seed, tmp_path, weir_bin):
    case = Followed(tmp_path, weir_bin, seed, files=60)
    case.run_killed(6, longest=0.5)
    case.check_rows()


@pytest.mark.parametrize("extension", [".ndjson.gz", ".arrows", ".arrow.gz"])
def test_files_moved_into_place(extension, tmp_path, weir_bin):
    case = MovedIn(tmp_path, weir_bin, seed=7, files=40, extension=extension)
    case.run_killed(5, longest=0.4)
    case.check_rows()
