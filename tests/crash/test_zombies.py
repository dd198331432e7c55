"""An owner that is stopped while another goes on, and then wakes: at every fault point, with the lock file
removed, so that both have one store, and with the state folder copied. The target stays exact."""

import json
import shutil

import pytest
from harness import Case, Watcher
from test_kill_points import AUDITS, LONG, ONCE, POINTS, TRANSACTIONS, WAYS, options_of

# After the last epoch, besides those passed once a run: all is delivered, and only cleaning is left.
LAST = ("file.clean",)
# Within a transaction of the store.
HELD = ["store.commit.before", "store.commit.sync", "store.lease.before"]


def stop_at(case, point):
    nth = 1 if point.startswith(ONCE) or point in WAYS else 4
    return case.stop(",".join(filter(None, [f"{point}=stop@{nth}", WAYS.get(point)])))


def ended_there(zombie):
    """On a slow machine the epoch that it was stopped in may be the last one."""
    return zombie.returncode == 0 and json.loads(zombie.stdout)["epochs"] == 4


def check_exit(zombie, point):
    # Whoever wakes before its first epoch has another's work before it; after its last one, none.
    allowed = (0, 4) if point.startswith(ONCE + LAST) else (4,)
    if point == "store.create.before":
        allowed = (1,)  # the file that it was making is another's by now
    if point == "base.sync":
        allowed = (0, 1, 4)  # the first sync may be that of the folders above the file it is making
    assert zombie.returncode in allowed or ended_there(zombie), f"exit {zombie.returncode}\n{zombie.stderr[-4000:]}"


@pytest.mark.parametrize("point", [point for point in POINTS if point not in LONG + AUDITS + TRANSACTIONS + HELD])
def test_lock_removed(point, tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, **options_of(point))
    with Watcher(case):
        zombie = stop_at(case, point)
        (case.state / "lock").unlink(missing_ok=True)
        second = case.run()
        if second.returncode == 4 and "another process" in second.stderr:
            # Its thread of checkpoints was within a transaction just then.
            assert case.go_on(zombie).returncode == 0
        else:
            assert second.returncode == 0, second.stderr
            case.check()
            check_exit(case.go_on(zombie), point)
        case.check()
        # What the zombie staged after its attempt was cleaned is nobody's: it must not touch the target itself.
        case.check_goes_on()


@pytest.mark.parametrize("point", HELD[1:])
def test_lock_removed_within_a_transaction(point, tmp_path, weir_faults_bin):
    """Nobody can take the lease from one that is stopped there, so there is no zombie."""
    case = Case(tmp_path, weir_faults_bin)
    with Watcher(case):
        first = stop_at(case, point)
        (case.state / "lock").unlink()
        second = case.run()
        assert second.returncode == 4, second.stderr
        assert "another process" in second.stderr, second.stderr
        first = case.go_on(first)
        assert first.returncode == 0, first.stderr
        case.check()
        case.check_clean()


@pytest.mark.parametrize("point", [point for point in POINTS if point not in LONG + AUDITS + TRANSACTIONS])
def test_state_copied(point, tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, **options_of(point))
    with Watcher(case):
        zombie = stop_at(case, point)
        copy = case.copy_state("copy")
        case.finish(arguments=copy)
        case.check()
        zombie = case.go_on(zombie)
        # Each store is its own: the zombie finds the other's deployment or commits at the target.
        allowed = (0, 4) if point.startswith(ONCE + LAST) else (4,)
        assert zombie.returncode in allowed or ended_there(zombie), f"exit {zombie.returncode}\n{zombie.stderr[-4000:]}"
        case.check()
        shutil.rmtree(case.state)
        (tmp_path / "copy").rename(case.state)
        # What the zombie staged after the copy was made is known to its own store alone.
        case.check_goes_on()
