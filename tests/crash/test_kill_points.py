"""SIGKILL at every named fault point, then a restart: each recovers to the exact rows.

points.txt is the one list of points; a point that no test here reaches fails its test.
"""

import pathlib
import re

import pytest
from harness import PACE, Case, Watcher, killed

ROOT = pathlib.Path(__file__).resolve().parents[2]
POINTS = pathlib.Path(__file__).with_name("points.txt").read_text().split()

# Failures before a decision, so that a run has rewinds to be killed in.
REWINDS = "task.write=fail@10,task.write=fail@25,task.write=fail@40"
# What a run needs besides to come to a point that an ordinary one does not pass.
WAYS = {
    "store.abort.before": REWINDS,
    "store.abort.after": REWINDS,
    "file.clean": REWINDS,
    "file.cleaned": REWINDS,
    "file.rollback": REWINDS,
    "task.seek": REWINDS,
}
# Passed by sinks that make folders only.
FOLDERS = ("file.folders",)
# Passed every thousand pages of the WAL.
LONG = ["store.checkpoint.before"]
# Not a run's: test_audits.py and test_ways_out.py kill there.
AUDITS = ["file.swept.one", "store.adopt.after", "store.adopt.before"]
# Not this sink's: test_transactions.py and test_postgres_sink.py kill there.
TRANSACTIONS = [point for point in POINTS if point.startswith(("spool.", "txn.", "postgres."))]


# Passed once a run: before its first epoch, or after its last one.
ONCE = ("store.create", "store.flush", "store.lease", "store.lock", "store.open", "store.pin", "store.reserve", "base.sync")
ONCE += ("file.owner", "file.claim", "file.namespace")


def test_list_is_complete():
    found = []
    for room in ("src", "connectors", "cli", "include"):
        for path in sorted((ROOT / room).rglob("*.[ch]")):
            found += re.findall(r'WEIR_FAULT\("([^"]+)"\)', path.read_text()) if path.name != "fault.h" else []
    assert sorted(set(found)) == POINTS, "tests/crash/points.txt must name every fault point, and no other, in order"


def options_of(point):
    return {"more": "partition_by: even"} if point.startswith(FOLDERS) else {}


def faults_of(point, nth):
    return ",".join(filter(None, [f"{point}=kill@{nth}", WAYS.get(point)]))


@pytest.mark.parametrize("point", [point for point in POINTS if point not in LONG + AUDITS + TRANSACTIONS])
def test_kill_at(point, tmp_path, weir_faults_bin):
    """At the first, the second and the seventh time, each with rows to deliver."""
    case = Case(tmp_path, weir_faults_bin, **options_of(point))
    with Watcher(case):
        for nth in (1, 2, 7):
            process = case.run(f"{faults_of(point, nth)},{PACE}")
            assert killed(process) or (process.returncode == 0 and nth > 1), f"{point}: {process.stderr[-4000:]}"
            case.grow(900)
        case.finish()
        case.check()
        case.check_clean()


@pytest.mark.parametrize("point", [point for point in POINTS if point not in LONG + AUDITS + TRANSACTIONS])
def test_kill_at_again(point, tmp_path, weir_faults_bin):
    """Killed again at the same point by the recovery that follows, or as soon as it is come to again."""
    case = Case(tmp_path, weir_faults_bin, rows=1800, **options_of(point))
    with Watcher(case):
        case.kill(faults_of(point, 1 if point.startswith(ONCE) or point in WAYS else 4))
        for _ in range(3):
            case.grow(60 if point not in WAYS else 900)
            process = case.run(f"{faults_of(point, 1)},{PACE}")
            assert killed(process) or process.returncode == 0, f"{point}: {process.stderr[-4000:]}"
        case.finish()
        case.check()
        case.check_clean()


@pytest.mark.parametrize("point", LONG)
def test_kill_at_a_rare_point(point, tmp_path, weir_faults_bin):
    """Many epochs of few rows; many participants make each of them large in the store."""
    case = Case(tmp_path, weir_faults_bin, writers=24, interval="1ms", batch_rows=30)
    with Watcher(case):
        for _ in range(2):
            case.kill(f"{point}=kill@1,task.read=sleep:10ms")
        case.finish()
        case.check()
        case.check_clean()


@pytest.mark.parametrize("nth", range(2, 8))
def test_kill_between_barriers(nth, tmp_path, weir_faults_bin):
    """Two sources into one sink, killed when one has sent its barrier and the other has not."""
    case = Case(tmp_path, weir_faults_bin, sources=2, writers=3)
    with Watcher(case):
        case.kill(f"task.barrier=sleep:20ms@{nth - 1},task.barrier=kill@{nth}")
        case.finish()
        case.check()
        case.check_clean()
