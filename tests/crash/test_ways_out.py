"""The ways out: `weir resolve`, killed at each of its durable steps, repeated, refused beside an owner; and what the runs
behind it deliver."""

import json
import shutil
import signal

import pytest
from harness import PACE, Case, killed
from test_store_server import ServerCase, server  # noqa: F401: a fixture

# The steps of a command that opens the store and writes one word.
STEPS = ["store.lease.before", "store.lease.after", "store.pin.before", "store.commit.before", "store.commit.sync", "store.pin.after"]


def document(done, status=0):
    assert done.returncode == status, f"exit {done.returncode}\n{done.stdout}\n{done.stderr[-4000:]}"
    return json.loads(done.stdout)


def staged(case):
    return sorted(case.folder.glob("out/.weir/lake/*/staged/*"))


def look(case, verb, *arguments, status=0):
    return document(case.run(verb=verb, arguments=arguments), status)


def answer(case, attempt, how="given-up", sink="lake", faults="", confirm="crash"):
    word = ("--sink", sink, "--attempt", str(attempt), "--as", how, "--why", "the disk died", "--confirm", confirm)
    return case.run(faults, verb="resolve", arguments=word)


def refuse_for_good(case, keep=None):
    """A decided epoch whose staged files somebody took away, to `keep`: the target refuses it. Its number and rows."""
    case.kill("store.decide.after=kill@3")
    for path in staged(case):
        path.rename(keep / path.name) if keep else path.unlink()
    refused = case.run()
    assert refused.returncode == 4 and "weir resolve" in refused.stderr, refused.stderr
    [item] = [item for item in look(case, "resolve")["unresolved"] if item["state"] == "decided"]
    assert item["sink"] == "lake" and item["rows"] > 0
    return item["attempt"], item["rows"]


def rows_in(case):
    import duckdb

    with duckdb.connect() as db:
        return db.execute(f"select count(*), count(distinct id) from {case.source()}").fetchone()


@pytest.fixture(params=["sqlite", "postgres"])
def case(request, tmp_path, weir_faults_bin):
    if request.param == "sqlite":
        return Case(tmp_path, weir_faults_bin)
    return ServerCase(tmp_path, weir_faults_bin, request.getfixturevalue("server"), batch_rows=60)


@pytest.mark.parametrize("step", STEPS)
def test_resolve_killed_and_repeated(step, case):
    attempt, rows = refuse_for_good(case)
    assert killed(answer(case, attempt, faults=f"{step}=kill@1"))
    if isinstance(case, ServerCase):
        case.expire()
    # Whole or not there at all; what was said is not said twice, and not taken back.
    before = look(case, "status")["resolved"]
    assert len(before) == (step in ("store.pin.after",))
    resolved = document(answer(case, attempt))["resolved"]
    assert [(item["sink"], item["attempt"], item["as"], item["rows"]) for item in resolved] == [("lake", attempt, "given-up", rows)]
    assert resolved[0]["who"] and resolved[0]["when"] and resolved[0]["why"] == "the disk died"
    assert not before or before == resolved
    assert "not taken back" in answer(case, attempt, "published").stderr
    case.finish()
    assert rows_in(case) == (case.rows - rows,) * 2
    found = look(case, "verify")
    assert found["sinks"]["lake"]["rows"] == case.rows - rows and found["resolved"] == resolved
    assert look(case, "status")["resolved"] == resolved
    assert answer(case, attempt).returncode == 0
    assert answer(case, attempt + 1).returncode == 2


def test_resolve_as_published(tmp_path, weir_faults_bin):
    """The rows were brought to the target by hand: nothing is missing and nothing twice."""
    case = Case(tmp_path, weir_faults_bin)
    kept = tmp_path / "kept"
    kept.mkdir()
    attempt, _ = refuse_for_good(case, kept)
    for path in kept.iterdir():
        path.rename(case.target / f"by-hand-{path.name}")
    assert look(case, "verify", status=4)["sinks"]["lake"]["faults"]
    assert answer(case, attempt, "published").returncode == 0
    assert not look(case, "verify")["sinks"]["lake"]["faults"]
    case.finish()
    case.check()
    case.check_clean()
    look(case, "verify", "--deep")


def test_what_was_given_up_is_swept(tmp_path, weir_faults_bin):
    """Its files are an epoch's until the answer, and nobody's once the target is beyond it."""
    case = Case(tmp_path, weir_faults_bin)
    case.kill("store.decide.after=kill@3")
    [item] = [item for item in look(case, "resolve")["unresolved"] if item["state"] == "decided"]
    left = staged(case)
    assert left and look(case, "clean", "--older-than", "0")["sinks"]["lake"]["artifacts"] == 0
    assert answer(case, item["attempt"]).returncode == 0
    assert look(case, "clean", "--older-than", "0")["sinks"]["lake"]["artifacts"] == 0
    case.finish()
    assert set(left) <= set(staged(case))
    assert look(case, "clean", "--older-than", "0")["sinks"]["lake"]["artifacts"] == len(left)
    assert not staged(case)
    look(case, "verify", "--deep")
    assert rows_in(case) == (case.rows - item["rows"],) * 2


def test_the_other_sink_has_all_and_the_lost_one_may_go(tmp_path, weir_faults_bin):
    """A target that is gone for good is taken out of the pipeline, which is refused before the answer."""
    case = Case(tmp_path, weir_faults_bin, sinks="lake pond")
    case.kill("file.manifest.written=kill@3")
    shutil.rmtree(case.target)
    shutil.rmtree(case.folder / "out/.weir/lake")
    case.configure(sinks="pond")
    owed = [item for item in look(case, "resolve")["unresolved"] if item.get("sink") == "lake"]
    refused = case.run()
    assert (refused.returncode == 2) == bool(owed) and ("weir resolve" in refused.stderr) == bool(owed)
    for item in owed:
        assert answer(case, item["attempt"]).returncode == 0
    case.finish()
    case.check(sink="pond")


def test_published_after_all(tmp_path, weir_faults_bin):
    """The target was away and could not be asked; when it is back it shows the epoch, and each row is there once."""
    case = Case(tmp_path, weir_faults_bin)
    case.kill("file.manifest.linked=kill@3")
    [item] = [item for item in look(case, "resolve")["unresolved"] if item["state"] == "decided"]
    said = answer(case, item["attempt"])
    assert said.returncode == 2 and "was published" in said.stderr
    (case.folder / "out").rename(case.folder / "away")
    assert answer(case, item["attempt"]).returncode == 0
    (case.folder / "away").rename(case.folder / "out")
    case.finish()
    case.check()
    case.check_clean()
    look(case, "verify", "--deep")


def test_resolve_is_refused_beside_an_owner(case):
    process = case.stop("store.decide.after=stop@3")
    try:
        [item] = [item for item in look(case, "resolve")["unresolved"] if item["state"] == "decided"]
        said = answer(case, item["attempt"])
        assert said.returncode == 4 and str(process.pid) in said.stderr
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert not look(case, "status")["resolved"]
    case.finish()
    case.check()


def test_what_cannot_be_resolved(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    assert case.run(verb="resolve").returncode == 1  # there is no store
    case.kill(f"store.decide.before=kill@3,{PACE}")
    found = look(case, "resolve")["unresolved"]
    assert found[-1]["state"] == "undecided"
    for attempt, word in ((found[-1]["attempt"], "not decided"), (1, "was published"), (10**6, "no decided attempt")):
        said = answer(case, attempt)
        assert said.returncode == 2 and word in said.stderr, said.stderr
    assert "this is pipeline crash" in answer(case, 1, confirm="crush").stderr
    assert answer(case, "x").returncode == 2
    assert case.run(verb="resolve", arguments=("--sink", "lake")).returncode == 2
    assert case.run(verb="run", arguments=("--why", "so")).returncode == 2
    case.finish()
    case.check()
