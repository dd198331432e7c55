import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """weir as `./dev install` lays it down."""
    path = tmp_path_factory.mktemp("prefix")
    command = [os.environ.get("CMAKE", "cmake"), "--install", ROOT / "build/release", "--prefix", path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


def pytest_addoption(parser):
    parser.addoption(
        "--set-exact-output",
        action="store_true",
        help="write what the cases print into their exit, stdout and stderr files; look at the difference",
    )
