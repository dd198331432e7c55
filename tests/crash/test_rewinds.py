"""Failures before a decision: the sources go back within the process, and nothing that was queued before
is written after. A row of an old generation that slips through shows as a doubled one."""

import pytest
from harness import PACE, Case, Watcher

AGAIN = [  # the next try may succeed
    "task.write=fail@7",
    "task.write=fail@1",
    "task.write=fail@5,task.write=fail@31,task.write=fail@32,task.write=fail@90",
    "task.read=fail@9",
    "task.read=fail@2,task.read=fail@40,task.read=fail@80",
    "task.barrier=fail@3",
    "task.seek=fail@1,task.seek=fail@3,task.write=fail@12",
    "file.write=fail@20",  # within pre_commit: the disk is full for a moment
    "file.begin=fail@5",
    "store.decide.before=sleep:30ms@2,task.write=fail@20",
]
FINAL = [  # the run stops, and the next one goes on
    "file.staged.synced=fail@3",
    "file.prepared=fail@4",
    "file.sync=fail@40",
    "file.rollback=fail@1,task.write=fail@12",
    "store.decide.before=fail@3",
    "store.decide.after=fail@3",
    "store.commit.sync=fail@5",
    "store.commit.before=fail@4",
    "store.abort.before=fail@1,task.write=fail@12",
    "store.abort.after=fail@1,task.write=fail@12",
    "task.write=fail@9+",
]
# After the decision: the same commit again.
DECIDED = [
    "file.manifest.written=fail@2",
    "file.manifest.linked=fail@2",
    "file.manifest.synced=fail@3",
    "file.published.one=fail@3",
    "file.published.synced=fail@2",
]


def several(tmp_path, binary):
    return Case(tmp_path, binary, rows=3600, sources=2, writers=3)


@pytest.mark.parametrize("faults", AGAIN)
def test_rewind_in_process(faults, tmp_path, weir_faults_bin):
    case = several(tmp_path, weir_faults_bin)
    with Watcher(case):
        process = case.run(f"{faults},{PACE}")
        assert process.returncode == 0, process.stderr[-4000:]
        assert "is aborted: " in process.stderr
        case.check()
        case.check_clean()


@pytest.mark.parametrize("faults", FINAL)
def test_failure_that_stops_the_run(faults, tmp_path, weir_faults_bin):
    case = several(tmp_path, weir_faults_bin)
    with Watcher(case):
        process = case.reach(lambda: case.run(f"{faults},{PACE}"))
        # 5 where the store's answer was lost: the next start asks it.
        assert process.returncode in (1, 5), f"exit {process.returncode}\n{process.stderr[-4000:]}"
        case.finish()
        case.check()
        case.check_clean()


def test_source_that_never_recovers(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    process = case.run(f"task.read=fail@9+,{PACE}")
    assert process.returncode == 1, f"exit {process.returncode}\n{process.stderr[-4000:]}"
    assert process.stderr.count("is aborted: ") == 5, process.stderr
    case.finish()
    case.check()
    case.check_clean()


@pytest.mark.parametrize("faults", DECIDED)
def test_failure_after_the_decision(faults, tmp_path, weir_faults_bin):
    case = several(tmp_path, weir_faults_bin)
    with Watcher(case):
        process = case.run(f"{faults},{PACE}")
        assert process.returncode in (0, 1), f"exit {process.returncode}\n{process.stderr[-4000:]}"
        assert "is aborted: " not in process.stderr, "what is decided is never rolled back"
        if process.returncode:
            case.finish()
        case.check()
        case.check_clean()


def test_queued_rows_die_with_their_attempt(tmp_path, weir_faults_bin):
    """The writers are slow, so the queues are full of old rows when the rewind comes."""
    case = Case(tmp_path, weir_faults_bin, rows=3600, writers=3, batch_rows=20)
    process = case.run("task.write=sleep:2ms,task.write=fail@15,task.write=fail@60")
    assert process.returncode == 0, process.stderr[-4000:]
    assert process.stderr.count("is aborted: ") == 2
    case.check()
    case.check_clean()
