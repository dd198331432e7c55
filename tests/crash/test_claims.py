"""Which deployment a target belongs to: first starts at one moment with state folders of their own, and new
deployments that are killed, that meet each other, or that replace one that runs."""

import json
import shutil

import pytest
from harness import Case, Watcher, is_stopped, killed, wait_until
from test_kill_points import ONCE, POINTS

# Of a start, in order, up to the claim and behind it.
BEFORE = ["store.create.before", "store.lease.after", "file.owner.folders", "file.owner.taken", "file.claim.read"]
BEHIND = ["file.claim.linked", "file.namespace.folders", "store.pin.before", "store.reserve.after", "task.write"]


def other_state(case, name="other"):
    return ("--set", f"state={case.folder / name}")


def deployment(case, arguments=()):
    return json.loads(case.run(verb="status", arguments=arguments).stdout)["deployment"]


def refused(process, *texts):
    assert process.returncode == 4, f"exit {process.returncode}\n{process.stderr[-4000:]}"
    for text in texts:
        assert text in process.stderr, f"no '{text}' in\n{process.stderr[-4000:]}"


def empty(case):
    for path in case.published():
        path.unlink()


# ---- first starts at one moment ----------------------------------------------------------------------


@pytest.mark.parametrize("point", BEFORE)
def test_second_first_start_comes_first(point, tmp_path, weir_faults_bin):
    """One is held before its claim; the other delivers everything; the one that wakes is refused."""
    case = Case(tmp_path, weir_faults_bin, rows=600)
    with Watcher(case):
        held = case.stop(f"{point}=stop@1")
        case.finish(arguments=other_state(case))
        owner = deployment(case, other_state(case))
        case.check()
        refused(case.go_on(held), owner, str(case.state), "--new-deployment")
        refused(case.run(), owner, str(case.state), "--new-deployment")
        case.check()
    # The way out: the state of the deployment that has the target.
    shutil.rmtree(case.state)
    (case.folder / "other").rename(case.state)
    case.check_clean()


@pytest.mark.parametrize("point", BEHIND)
def test_second_first_start_comes_second(point, tmp_path, weir_faults_bin):
    """One is held behind its claim, before its first commit; the other is refused and the first goes on."""
    case = Case(tmp_path, weir_faults_bin, rows=600)
    with Watcher(case):
        held = case.stop(f"{point}=stop@1")
        second = case.run(arguments=other_state(case))
        refused(second, deployment(case), str(case.folder / "other"), "--new-deployment")
        held = case.go_on(held)
        assert held.returncode == 0, held.stderr
        case.check()
        case.check_clean()


@pytest.mark.parametrize("point", BEFORE[2:])
@pytest.mark.parametrize("sinks", ["lake", "lake pond"])
def test_first_starts_from_one_point(point, sinks, tmp_path, weir_faults_bin):
    """Both are held at one point, and go on at the same moment: one gets all sinks."""
    case = Case(tmp_path, weir_faults_bin, rows=600, sinks=sinks)
    starts = [case.start(f"{point}=stop@1", arguments=other_state(case, name)) for name in ("one", "two")]
    for process in starts:
        wait_until(lambda process=process: process.poll() is not None or is_stopped(process), point)
    for process in starts:
        process.send_signal(18)
    ends = [case.end(process) for process in starts]
    assert sorted(end.returncode for end in ends) == [0, 4], "\n".join(end.stderr for end in ends)
    for sink in sinks.split():
        case.check(sink=sink)


# ---- a new deployment that is killed -------------------------------------------------------------------


# The first of the store's points are passed in the old state, which is put aside; the second in the new one.
KILLS = [(point, 1) for point in POINTS if point.startswith((*ONCE, "file.manifest", "file.published"))]
KILLS += [(point, 2) for point, _ in KILLS if point.startswith(("store.", "base."))]


@pytest.mark.parametrize("point, nth", KILLS)
def test_new_deployment_killed(point, nth, tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, rows=600)
    case.finish()
    old = deployment(case)
    empty(case)
    with Watcher(case):
        process = case.run(f"{point}=kill@{nth}", arguments=["--new-deployment"])
        assert killed(process) or process.returncode == 0, process.stderr[-4000:]
        claims = list((case.target.parent / ".weir/lake").glob("deployment-*.json"))
        again = case.run()
        assert again.returncode in (0, 4), f"exit {again.returncode}\n{again.stderr[-4000:]}"
        if again.returncode == 4:
            # Killed between the new store and its claim: the wish is told again.
            assert len(claims) == 1, again.stderr
            refused(again, old, "--new-deployment")
        if again.returncode == 4 or deployment(case) == old:
            assert not case.published(), "an old deployment has nothing to deliver, one that is refused delivers nothing"
            case.finish(arguments=["--new-deployment"])
        assert deployment(case) != old
        case.check()
        case.check_goes_on()


# ---- a new deployment beside a live owner ----------------------------------------------------------------


@pytest.mark.parametrize("point", ["task.write", "file.prepared", "store.decide.after", "file.manifest.written", "file.manifest.linked"])
def test_replaced_while_it_runs(point, tmp_path, weir_faults_bin):
    """The older one is stopped at its next commit, also where it had passed its first look at the claims and where its
    manifest is there already; the new one has delivered every row."""
    case = Case(tmp_path, weir_faults_bin)
    old = case.stop(f"{point}=stop@5")
    refused(case.run(arguments=["--new-deployment"]), f"pid {old.pid}")
    empty(case)
    with Watcher(case):
        case.finish(arguments=(*other_state(case), "--new-deployment"))
        owner = deployment(case, other_state(case))
        case.check()
        refused(case.go_on(old), owner, "replaced", "state folder")
        case.check()
        # Not lost silently: what it had decided is known to its own store, and the new one has delivered it.
        assert json.loads(case.run(verb="status").stdout)["unresolved"]
        for verb in ("run", "recover"):
            refused(case.run(verb=verb), owner, "replaced")
        case.check()
    shutil.rmtree(case.state)
    (case.folder / "other").rename(case.state)
    case.check_goes_on()


def test_replaced_while_it_publishes(tmp_path, weir_faults_bin):
    """One that was paused between its renames finishes that one attempt when it wakes, and no other."""
    case = Case(tmp_path, weir_faults_bin)
    old = case.stop("file.published.one=stop@5")
    empty(case)
    case.finish(arguments=(*other_state(case), "--new-deployment"))
    case.check()
    before = set(case.published())
    refused(case.go_on(old), deployment(case, other_state(case)), "replaced")
    late = set(case.published()) - before
    assert len({path.name.split("-")[0] for path in late}) <= 1, sorted(late)
    for path in late:
        path.unlink()
    case.check()


def test_new_deployments_at_once(tmp_path, weir_faults_bin):
    """Both have read the same chain: one gets the next number, the other is refused, also when it is run again."""
    case = Case(tmp_path, weir_faults_bin, rows=600)
    case.finish()
    empty(case)
    with Watcher(case):
        held = case.stop("file.claim.read=stop@1", arguments=["--new-deployment"])
        case.finish(arguments=(*other_state(case), "--new-deployment"))
        owner = deployment(case, other_state(case))
        refused(case.go_on(held), owner)
        refused(case.run(), owner)
        case.check()


def test_new_deployments_one_after_the_other(tmp_path, weir_faults_bin):
    """One has its claim and no commit when the next comes: that one has the target, and the first publishes nothing."""
    case = Case(tmp_path, weir_faults_bin, rows=600)
    case.finish()
    empty(case)
    with Watcher(case):
        held = case.stop("file.claim.linked=stop@1", arguments=["--new-deployment"])
        case.finish(arguments=(*other_state(case), "--new-deployment"))
        owner = deployment(case, other_state(case))
        refused(case.go_on(held), owner, "replaced")
        refused(case.run(), owner, "replaced")
        case.check()


# ---- a target within another one ------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["outer", "inner"])
@pytest.mark.parametrize("point", ["file.owner.folders", "file.owner.taken"])
def test_nested_targets_at_once(point, first, tmp_path, weir_faults_bin):
    """One is held between looking for the other and being there itself: only one of them delivers, and goes on."""
    case = Case(tmp_path, weir_faults_bin, rows=600)
    targets = {
        "outer": ("--set", f"state={tmp_path / 'a'}"),
        "inner": ("--set", f"state={tmp_path / 'b'}", "--set", "sinks.lake.path=./out/lake/deep"),
    }
    second = "inner" if first == "outer" else "outer"
    held = case.stop(f"{point}=stop@1", arguments=targets[first])
    ends = {second: case.run(arguments=targets[second]), first: case.go_on(held)}
    codes = {name: end.returncode for name, end in ends.items()}
    assert sorted(codes.values()) == [0, 2], "\n".join(end.stderr for end in ends.values())
    winner = next(name for name, code in codes.items() if code == 0)
    loser = next(end for end in ends.values() if end.returncode == 2)
    assert "within" in loser.stderr, loser.stderr
    case.grow()
    case.finish(arguments=targets[winner])
    assert len(list(case.target.rglob("*.parquet"))) > 0
