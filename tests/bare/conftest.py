import os
import pathlib
import shutil
import subprocess

import pytest
from roots import debian_mirror


@pytest.fixture
def bare_root(request, tmp_path_factory):
    """A fresh minbase root; the packages that debootstrap fetched are kept between runs."""
    if os.geteuid() != 0:
        pytest.fail("debootstrap and chroot need root: run this tier as root")
    if shutil.which("debootstrap") is None:
        pytest.fail("debootstrap is not installed: ./dev test bare installs it")
    suite = request.param
    cache = pathlib.Path(os.environ.get("WEIR_CACHE", pathlib.Path.home() / ".cache/weir")) / "debootstrap"
    cache.mkdir(parents=True, exist_ok=True)
    root = tmp_path_factory.mktemp(suite) / "root"
    command = ["debootstrap", "--variant=minbase", f"--cache-dir={cache}", suite, root, debian_mirror()]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    yield root
    shutil.rmtree(root, ignore_errors=True)
