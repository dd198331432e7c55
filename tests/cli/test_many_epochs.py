"""What epochs leave behind: nothing that grows with their number, nothing that a start has to read, and one
sync of the checkpoint store each.
"""

import collections
import pathlib
import re
import subprocess
import tempfile
import time

import pytest

PIPELINE = """
pipeline: many
state: ./state
checkpoint: {interval: 1ms}
sources:
  numbers: {type: generator, rows: %d, batch_rows: 10, rate: 50000}
sinks:
  a: {type: file, path: ./out/a, format: ndjson}
  b: {type: file, path: ./out/b, format: ndjson}
  c: {type: file, path: ./out/c, format: csv}
"""
# All that reads, writes, finds or syncs a file.
CALLS = "openat,newfstatat,statx,getdents64,read,pread64,write,pwrite64,unlink,unlinkat,rename,renameat,renameat2,fsync,fdatasync"
SECONDS = 120


@pytest.fixture
def folder():
    """In memory where there is such a folder: thousands of syncs of a real disk prove nothing here."""
    shm = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="weir-many-", dir=shm if shm.is_dir() else None) as path:
        yield pathlib.Path(path)


def published(folder, sink="a"):
    """Its files, and the attempts of which they are: numbers with which their names begin."""
    return {int(path.name.split("-")[0]): path for path in (folder / "out" / sink).glob("*-*")}


def decided(folder):
    return max(published(folder), default=0)


def take_away(folder, keep):
    """As a reader does who is done with all but the newest files."""
    for sink in "abc":
        files = published(folder, sink)
        for attempt in sorted(files)[:-keep]:
            files[attempt].unlink()


def run_until(weir_bin, folder, epochs, *before, seconds=SECONDS):
    """A run without end, ended once there are that many epochs. What comes before the command becomes it."""
    folder.mkdir(exist_ok=True)
    pipeline = folder / "p.yaml"
    pipeline.write_text(PIPELINE % 0)
    process = subprocess.Popen([*before, weir_bin, "run", pipeline, "--progress", "none"], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + seconds
    while decided(folder) < epochs and process.poll() is None and time.monotonic() < until:
        take_away(folder, 100)
        time.sleep(0.02)
    process.terminate()
    _, complaint = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, complaint
    assert decided(folder) >= epochs, complaint


def calls_of_a_start(weir_bin, folder):
    """How often each system call is made by a run that recovers, finds no row and ends."""
    pipeline, log = folder / "p.yaml", folder / "strace"
    pipeline.write_text(PIPELINE % 1)
    subprocess.run(["strace", "-f", "-o", log, "-e", f"trace={CALLS}", weir_bin, "run", pipeline, "--progress", "none"], check=True, timeout=SECONDS)
    return collections.Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.MULTILINE))


def test_a_start_does_not_see_how_many_there_were(weir_bin, folder):
    few, many = folder / "few", folder / "many"
    run_until(weir_bin, few, 12)
    run_until(weir_bin, many, max(500, 10 * decided(few)))
    assert (many / "state/store.db").stat().st_size <= 128 << 10
    for sink in "abc":
        records = [path for path in (many / "out/.weir" / sink).rglob("*") if path.is_file()]
        assert len(records) < 250, f"sink {sink} keeps {len(records)} records of 500 epochs"
    before, after = calls_of_a_start(weir_bin, few), calls_of_a_start(weir_bin, many)
    assert sum(before.values()) > 100, before
    for name in before | after:
        assert after[name] <= 2 * before[name] + 10, f"{name}: {before[name]} calls after few epochs, {after[name]} after many"


def test_an_epoch_syncs_the_store_once(weir_bin, folder):
    """As many syncs as epochs, from the first file to the twentieth: their numbers tell the epochs. One more may
    be that of the next epoch, decided while the twentieth is published. After it the run may be ending, which
    decides an epoch without rows. The WAL is copied into the database, with syncs of its own, only where it has
    a thousand pages: these few epochs do not come to that."""
    log = folder / "strace"
    run_until(weir_bin, folder / "p", 20, "strace", "-D", "-f", "-y", "-o", log, "-e", "trace=fsync,fdatasync,renameat2")
    syncs, epochs, after_first = 0, [], 0
    for line in log.read_text().splitlines():
        syncs += "sync(" in line and "/state/store.db" in line
        file = re.search(r'/out/a>, "(\d+)-', line)
        if not file or int(file[1]) in epochs:
            continue
        epochs.append(int(file[1]))
        after_first = after_first or syncs
        if epochs[-1] >= 20:
            break
    assert epochs[0] <= 2 and epochs[-1] >= 20, epochs
    assert syncs - after_first - (epochs[-1] - epochs[0]) in (0, 1), epochs
