"""The first command of the README on bare machines: minimal roots of Debian 12 and 13 with nothing but git's
share, the checkout. Needs root and debootstrap; takes minutes, so it is part of the long tier.

WEIR_BARE_VERB runs another verb of ./dev than `demo` in the roots.
"""

import os
import shutil
import subprocess

import pytest
from roots import ROOT, run_in


def copy_checkout(target):
    """What git would give a person who clones: tracked and new files, without what is ignored."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout.split(b"\0")
    for name in filter(None, map(os.fsdecode, names)):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("bare_root", ["bookworm", "trixie"], indirect=True)
def test_the_first_command_works_on_a_bare_machine(bare_root):
    copy_checkout(bare_root / "root/weir")
    status, text = run_in(bare_root, f"cd /root/weir && ./dev {os.environ.get('WEIR_BARE_VERB', 'demo')}")
    print(text[-8000:])
    assert status == 0, text[-8000:]
    if "WEIR_BARE_VERB" not in os.environ:
        assert "Each of the rows is there once" in text
