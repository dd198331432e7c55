"""`commit_interval`: decided checkpoints wait and are published together; none of them is lost by any kill."""

import json
import signal

import pytest
from harness import PACE, Case, Watcher, killed, wait_until


def manifests(case):
    return [json.loads(path.read_text()) for path in sorted(case.folder.glob("out/.weir/lake/*/commits/*.json"))]


def gathered(case):
    """Checkpoints with rows that are staged and not published."""
    return {path.name.split("-")[0] for path in case.folder.glob("out/.weir/lake/*/staged/*")}


def test_the_end_publishes_what_was_gathered(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, more="commit_interval: 1h")
    case.finish(faults=PACE)
    (manifest,) = manifests(case)
    assert len(manifest["attempts"]) > 3
    case.check()
    case.check_clean()


def test_a_signal_publishes_what_was_gathered(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, more="commit_interval: 1h")
    process = case.start("task.read=sleep:20ms")
    wait_until(lambda: len(gathered(case)) > 3 or process.poll() is not None, "gather a few checkpoints")
    assert not case.published()
    process.send_signal(signal.SIGTERM)
    done = case.end(process)
    assert done.returncode == 0, done.stderr
    assert len(manifests(case)) == 1
    case.check(rows=json.loads(done.stdout)["rows"])
    case.check_goes_on()


def test_they_are_published_when_their_time_has_come(tmp_path, weir_faults_bin):
    """Also when no decision follows: the source stands still after a few batches."""
    case = Case(tmp_path, weir_faults_bin, more="commit_interval: 1s")
    process = case.start("task.read=sleep:1h@12,task.read=sleep:50ms")
    wait_until(lambda: case.published() or process.poll() is not None, "publish what it gathered")
    assert process.poll() is None
    process.kill()
    case.end(process)
    case.finish()
    case.check()
    case.check_clean()


def test_recover_publishes_what_was_gathered(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, more="commit_interval: 1h")
    case.kill("store.decide.after=kill@6")
    assert not case.published()
    before = json.loads(case.run(verb="status").stdout)
    assert len(before["unresolved"]) > 3
    assert case.run(verb="recover").returncode == 0
    after = json.loads(case.run(verb="status").stdout)
    assert not after["unresolved"] and after["committed"] == before["decided"]
    assert len(manifests(case)) == 1
    case.check(rows=after["sinks"]["lake"]["rows"])
    case.check_goes_on()


POINTS = ["store.decide.before", "store.decide.after", "file.staged.synced", "file.manifest.written"]
POINTS += ["file.manifest.linked", "file.published.one", "file.published.synced"]


@pytest.mark.parametrize("point", POINTS)
def test_kills_while_it_gathers(point, tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, more="commit_interval: 25ms")
    with Watcher(case):
        for nth in (1, 2, 6):
            process = case.run(f"{point}=kill@{nth},{PACE}")
            assert killed(process) or process.returncode == 0, process.stderr[-4000:]
            case.grow(600)
        case.finish()
        case.check()
        case.check_clean()
