"""SIGKILL at every named fault point, then a restart: each recovers to the exact rows.

points.txt is the one list of points; a point that no test here reaches fails its test.
"""

import pathlib
import re

import pytest
from harness import Case, Watcher, killed

ROOT = pathlib.Path(__file__).resolve().parents[2]
POINTS = pathlib.Path(__file__).with_name("points.txt").read_text().split()

# How a point is reached that an ordinary run does not pass: faults of the runs before the one that is
# killed, and of that run itself besides the kill.
WAYS = {
    "store.abort.before": ([], "file.write=fail@4"),
    "store.abort.after": ([], "file.write=fail@4"),
    "file.rollback": ([], "file.write=fail@4"),
    "file.clean": (["file.prepared=kill@2"], ""),
    "file.cleaned": (["file.prepared=kill@2"], ""),
}


def test_list_is_complete():
    found = set()
    for room in ("src", "connectors", "cli"):
        for path in sorted((ROOT / room).rglob("*.[ch]")):
            found |= set(re.findall(r'WEIR_FAULT\("([^"]+)"\)', path.read_text()))
    assert sorted(found) == sorted(POINTS), "tests/crash/points.txt must name every fault point, and no other"


@pytest.mark.parametrize("point", POINTS)
def test_kill_at(point, tmp_path, weir_faults_bin):
    before, besides = WAYS.get(point, ([], ""))
    hits = 0
    for nth in (1, 2, 7):
        case = Case(tmp_path / str(nth), weir_faults_bin)
        for faults in before:
            assert killed(case.run(faults)), f"'{faults}' was not reached"
        with Watcher(case):
            process = case.run(",".join(filter(None, [f"{point}=kill@{nth}", besides])))
            hits += killed(process)
            assert killed(process) or process.returncode in (0, 1), process.stderr
            case.finish()
        case.check()
    assert hits, f"no run reached {point}"


@pytest.mark.parametrize("point", [p for p in POINTS if not p.startswith("store.open")])
def test_kill_at_twice(point, tmp_path, weir_faults_bin):
    """Killed again at the same point of the recovery that follows."""
    before, besides = WAYS.get(point, ([], ""))
    case = Case(tmp_path, weir_faults_bin, rows=6000)
    for faults in before:
        case.run(faults)
    for _ in range(3):
        case.run(",".join(filter(None, [f"{point}=kill@1", besides])))
    case.finish()
    case.check()
