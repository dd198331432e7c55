"""Who owns a state folder and a target: two instances, two working directories, state lost or copied."""

import itertools
import json
import random
import shutil
import time

import pytest
from harness import PACE, Case, Watcher, is_stopped, wait_until

POINTS = ["task.write", "file.prepared", "store.decide.before", "store.decide.after", "file.manifest.written"]
POINTS += ["file.manifest.linked", "file.published.one"]


def deployment(case):
    return json.loads(case.run(verb="status").stdout)["deployment"]


def test_second_instance_is_refused(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    first = case.stop("store.decide.before=stop@3")
    for verb in ("run", "recover"):
        second = case.run(verb=verb)
        assert second.returncode == 4, second.stderr
        assert f"pid {first.pid}" in second.stderr, second.stderr
    assert json.loads(case.run(verb="status").stdout)["decided"] == 2, "status reads beside a live run"
    first = case.go_on(first)
    assert first.returncode == 0, first.stderr
    case.check()


def test_two_working_directories_are_one_deployment(tmp_path, weir_bin):
    case = Case(tmp_path / "p", weir_bin)
    (tmp_path / "elsewhere").mkdir()
    case.finish(cwd=tmp_path / "elsewhere")
    one = deployment(case)
    case.grow()
    assert case.finish(cwd=tmp_path / "p")["rows"] == 60
    assert deployment(case) == one
    case.check()


def test_lost_state_is_refused(tmp_path, weir_bin):
    case = Case(tmp_path, weir_bin)
    case.finish()
    old, rows = deployment(case), case.rows
    case.state.rename(tmp_path / "elsewhere")
    case.grow()
    for _ in range(2):
        refused = case.run()
        assert refused.returncode == 4, refused.stderr
        assert old in refused.stderr and "--new-deployment" in refused.stderr, refused.stderr
        case.check(rows=rows)
    # The first way out: the folder comes back.
    shutil.rmtree(case.state)
    (tmp_path / "elsewhere").rename(case.state)
    case.finish()
    case.check()


def test_new_deployment_delivers_everything_again(tmp_path, weir_bin):
    case = Case(tmp_path, weir_bin)
    case.finish()
    old = deployment(case)
    for path in case.published():
        path.unlink()
    assert case.finish(arguments=["--new-deployment"])["rows"] == case.rows
    assert deployment(case) != old
    case.check()
    case.check_clean()


def test_nothing_new_touches_nothing(tmp_path, weir_bin):
    case = Case(tmp_path, weir_bin)
    first = case.finish()
    before = {path: path.stat().st_mtime_ns for path in case.target.parent.rglob("*")}
    again = case.run()
    assert again.returncode == 0 and "warn" not in again.stderr, again.stderr
    summary = json.loads(again.stdout)
    assert summary["epochs"] == 0 and summary["rows"] == 0
    assert summary["sinks"]["lake"]["cursor"] == first["sinks"]["lake"]["cursor"]
    assert before == {path: path.stat().st_mtime_ns for path in case.target.parent.rglob("*")}


def test_state_moved_between_opening_and_locking_it(tmp_path, weir_faults_bin):
    """The lock of a folder that a new deployment has moved aside is no lock on the one that is there now."""
    case = Case(tmp_path, weir_faults_bin, rows=600)
    case.finish()
    late = case.stop("store.lock.opened=stop@1")
    for path in case.published():
        path.unlink()
    owner = case.stop("task.write=stop@2", arguments=["--new-deployment"])
    late = case.go_on(late)
    assert late.returncode == 4 and "run again" in late.stderr, f"exit {late.returncode}\n{late.stderr}"
    owner = case.go_on(owner)
    assert owner.returncode == 0, owner.stderr
    case.check()
    case.check_goes_on()


# ---- state folders that were copied ----------------------------------------------------------------


@pytest.mark.parametrize("point", POINTS)
def test_original_first(point, tmp_path, weir_faults_bin):
    """Killed, copied, and the original goes on: the copy is stopped at the digest."""
    case = Case(tmp_path, weir_faults_bin)
    with Watcher(case):
        case.kill(f"{point}=kill@5")
        copy = case.copy_state("copy")
        case.finish()
        case.check()
        second = case.run(arguments=copy)
        assert second.returncode == 4, f"exit {second.returncode}\n{second.stderr}"
        case.check()
        case.check_goes_on()


@pytest.mark.parametrize("first, second", list(itertools.product(POINTS, ["store.decide.after", *POINTS[4:]])))
def test_interleaved(first, second, tmp_path, weir_faults_bin):
    """Two histories from one state, each stopped and woken in turn; the target is exact for one of them."""
    case = Case(tmp_path, weir_faults_bin)
    with Watcher(case):
        original = case.stop(f"{first}=stop@5")
        copy = case.copy_state("copy")
        other = case.start(f"{second}=stop@2,{PACE}", arguments=copy)
        wait_until(lambda: other.poll() is not None or is_stopped(other), second)
        original = case.go_on(original)
        other = case.go_on(other)
        codes = sorted([original.returncode, other.returncode])
        assert codes == [0, 4], f"{codes}\n{original.stderr}\n{other.stderr}"
        if original.returncode:
            shutil.rmtree(case.state)
            (tmp_path / "copy").rename(case.state)
        # What the losing history has staged is known to its own store alone.
        case.check_goes_on()


@pytest.mark.parametrize("seed", range(4))
def test_both_at_once(seed, tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    rng = random.Random(seed)
    with Watcher(case):
        case.kill(f"{rng.choice(POINTS)}=kill@{rng.randrange(2, 8)}")
        copy = case.copy_state("copy")
        case.grow(1800)
        one = case.start(PACE)
        time.sleep(rng.uniform(0, 0.05))
        two = case.start(PACE, arguments=copy)
        one, two = case.end(one), case.end(two)
        codes = sorted([one.returncode, two.returncode])
        assert codes == [0, 4], f"{codes}\n{one.stderr}\n{two.stderr}"
        case.check()
