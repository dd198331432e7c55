"""Whole pipelines under ThreadSanitizer: a report of it is an error message on stderr and exit status 66."""

import signal

import pytest
from harness import PACE, Case, wait_until

# Rewinds from each side, a commit tried again, an attempt that waits in the store while the next one writes.
FAULTS = [
    "task.write=fail@9,task.read=fail@60,task.barrier=fail@20,task.seek=fail@2",
    "file.write=fail@20,file.published.one=fail@3,file.manifest.linked=fail@4,store.decide.before=sleep:20ms@3",
]


@pytest.fixture
def case(tmp_path, weir_tsan_bin):
    """Two sources into two sinks of four writers each: 11 threads and the watchers beside them."""
    return Case(tmp_path, weir_tsan_bin, rows=2400, files=4, sources=2, writers=4, sinks="lake pond")


@pytest.mark.parametrize("faults", FAULTS)
def test_failures_and_rewinds(faults, case):
    process = case.run(f"{faults},{PACE}")
    assert process.returncode == 0, process.stderr[-4000:]
    assert "is aborted: " in process.stderr
    case.check()
    case.check(sink="pond")


def test_a_signal_in_the_middle(case):
    process = case.start("task.read=sleep:20ms")
    wait_until(lambda: case.published() or process.poll() is not None, "publish a file")
    process.send_signal(signal.SIGTERM)
    process = case.end(process)
    assert process.returncode == 0, process.stderr
    case.finish()
    case.check()
    case.check(sink="pond")
