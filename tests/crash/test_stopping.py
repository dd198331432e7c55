"""SIGTERM and SIGINT: one last checkpoint, drained; a second one stops at once."""

import json
import signal

import pytest
from harness import PACE, Case, Watcher, wait_until

# Slow enough that a signal comes in the middle, whatever the machine.
SLOW = "task.read=sleep:20ms"


def told(process):
    """Reads until weir has said that it took the signal."""
    for line in process.stderr:
        if "one last checkpoint" in line:
            return
    raise AssertionError("weir ended without a word about the signal")


def start(case, faults):
    """A run that has published something."""
    before = len(case.published())
    process = case.start(faults)
    wait_until(lambda: len(case.published()) > before + 2 or process.poll() is not None, "publish a few files")
    assert process.returncode is None, "weir ended before the signal"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("sources", [1, 2])
def test_signal_ends_the_run_and_the_next_goes_on(number, sources, tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, sources=sources)
    delivered = 0
    with Watcher(case):
        for _ in range(2):
            process = start(case, SLOW)
            process.send_signal(number)
            process = case.end(process)
            assert process.returncode == 0, process.stderr
            assert "what was read is committed" in process.stderr
            summary = json.loads(process.stdout)
            delivered += summary["rows"]
            assert 0 < summary["rows"] and delivered < case.rows
            status = json.loads(case.run(verb="status").stdout)
            assert not status["unresolved"] and status["decided"] == status["committed"], status
        assert case.finish()["rows"] == case.rows - delivered
        case.check()
        case.check_clean()


def test_second_signal_stops_at_once(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    process = start(case, f"file.manifest.written=sleep:1h@3+,{PACE}")
    process.send_signal(signal.SIGTERM)
    told(process)
    process.send_signal(signal.SIGTERM)
    process = case.end(process)
    assert process.returncode == 5, process.stderr
    assert "stopped at once" in process.stderr
    case.finish()
    case.check()
    case.check_clean()


def test_commit_that_cannot_finish_in_time(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, timeout="1s")
    process = start(case, f"file.manifest.written=sleep:1h@3+,{PACE}")
    process.send_signal(signal.SIGTERM)
    process = case.end(process)
    assert process.returncode == 5, process.stderr
    assert "not committed within checkpoint.timeout" in process.stderr
    case.configure()
    case.finish()
    case.check()
    case.check_clean()


def test_signal_while_nothing_was_read(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    process = case.start("task.read=sleep:300ms")
    wait_until(lambda: process.poll() is not None or (case.target.parent / ".weir").is_dir(), "open its target")
    process.send_signal(signal.SIGTERM)
    process = case.end(process)
    assert process.returncode in (0, 5), process.stderr
    case.finish()
    case.check()


def test_checkpoint_on_demand(tmp_path, weir_faults_bin):
    """SIGUSR1 publishes what was read, with an interval that would not come."""
    case = Case(tmp_path, weir_faults_bin, interval="1h")
    process = case.start(SLOW)
    wait_until(lambda: process.poll() is not None or case.state.is_dir(), "make its state folder")

    def published():
        if process.poll() is None:
            process.send_signal(signal.SIGUSR1)
        return process.poll() is not None or case.published()

    wait_until(published, "publish on demand")
    assert process.returncode is None, process.stderr.read()
    process.send_signal(signal.SIGTERM)
    assert case.end(process).returncode == 0
    case.finish()
    case.check()


def test_signal_while_recovery_cannot_publish(tmp_path, weir_faults_bin):
    """The target refuses what an earlier run has decided: a signal ends the wait for it."""
    case = Case(tmp_path, weir_faults_bin, timeout="1s")
    case.kill("store.decide.after=kill@3")
    for verb in ("run", "recover"):
        process = case.start("file.manifest.written=fail", verb=verb)
        # The lease is taken once the owner's lock names this process.
        lock = case.state / "lock"
        wait_until(lambda: process.poll() is not None or lock.read_text().strip() == str(process.pid), "take the lease")
        process.send_signal(signal.SIGTERM)
        process = case.end(process)
        assert process.returncode == 5, f"exit {process.returncode}\n{process.stderr}"
    case.configure()
    case.finish()
    case.check()
    case.check_clean()
