"""The first command of the README on bare machines: minimal roots of Debian 12 and 13 with nothing but git's
share, the checkout. Needs root and debootstrap; takes minutes, so it is part of the long tier.

WEIR_BARE_VERB runs another verb of ./dev than `demo` in the roots.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap and chroot need root"),
    pytest.mark.skipif(shutil.which("debootstrap") is None, reason="debootstrap is not installed"),
]


def debian_mirror():
    """Where this machine's own apt gets Debian from."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"], capture_output=True, text=True
    )
    for site in done.stdout.split():
        if site.rstrip("/").endswith("/debian"):
            return site
    pytest.skip("apt on this machine has no Debian source")


def copy_checkout(target):
    """What git would give a person who clones: tracked and new files, without what is ignored."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout.split(b"\0")
    for name in filter(None, map(os.fsdecode, names)):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


@pytest.fixture
def bare_root(request, tmp_path_factory):
    """A fresh minbase root; the packages that debootstrap fetched are kept between runs."""
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


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("bare_root", ["bookworm", "trixie"], indirect=True)
def test_the_first_command_works_on_a_bare_machine(bare_root):
    checkout = bare_root / "root/weir"
    copy_checkout(checkout)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    if CERTIFICATES.is_file():
        # Networks with a proxy of their own have its certificate here; installing the root's own
        # ca-certificates would not bring it, so it goes by a name of its own.
        shutil.copy(CERTIFICATES, bare_root / "etc/test-certificates.crt")
        for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"):
            environment[name] = "/etc/test-certificates.crt"
    # A mount namespace of its own: /proc and /dev go away with it, whatever happens.
    inside = f"cd /root/weir && ./dev {os.environ.get('WEIR_BARE_VERB', 'demo')}"
    script = 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$1" /bin/sh -c "$2"'
    done = subprocess.run(
        ["unshare", "--mount", "--fork", "sh", "-c", script, "sh", bare_root, inside],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(done.stdout[-8000:])
    assert done.returncode == 0, done.stdout[-8000:]
    if "WEIR_BARE_VERB" not in os.environ:
        assert "Each of the rows is there once" in done.stdout
