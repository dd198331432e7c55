"""The documents with commands are run: each `sh` block in order, in one folder, and what it prints is compared
with the `text` block behind it. `*` stands for any text within a line, `...` for any number of lines."""

import os
import pathlib
import re
import subprocess

import pytest
from test_cases import matches

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCKS = re.compile(r"^```sh\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.M | re.S)


@pytest.mark.parametrize("page", ["tutorial.md", "operations.md"])
def test_every_command(page, weir_bin, tmp_path):
    env = {"PATH": f"{weir_bin.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    blocks = BLOCKS.findall((ROOT / "docs" / page).read_text())
    assert blocks
    for script, expected in blocks:
        # dash of Debian's /bin/sh: what people paste is not for one shell alone
        done = subprocess.run(
            ["sh", "-c", script], cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60
        )
        assert matches(expected, done.stdout), f"{script}\nprinted:\n{done.stdout}\nexpected:\n{expected}"
