"""Minimal roots of Debian, and commands in them."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


def debian_mirror():
    """Where this machine's own apt gets Debian from."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"], capture_output=True, text=True
    )
    for site in done.stdout.split():
        if site.rstrip("/").endswith("/debian"):
            return site
    pytest.fail("apt on this machine has no Debian source, so no root of Debian can be made here")


def run_in(root, command):
    """A shell's line as root's own user in the root: (exit status, all that it printed)."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    if CERTIFICATES.is_file():
        # Networks with a proxy of their own have its certificate here; installing the root's own
        # ca-certificates would not bring it, so it goes by a name of its own.
        shutil.copy(CERTIFICATES, root / "etc/test-certificates.crt")
        for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"):
            environment[name] = "/etc/test-certificates.crt"
    # A mount namespace of its own: /proc and /dev go away with it, whatever happens.
    script = 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$1" /bin/sh -c "$2"'
    done = subprocess.run(
        ["unshare", "--mount", "--fork", "sh", "-c", script, "sh", root, command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout
