"""The ways out: `weir resolve` and `weir adopt`, killed at each of their durable steps, repeated, refused beside an owner; and
what the runs behind them deliver."""

import json
import shutil
import signal

import pytest
from harness import PACE, Case, is_stopped, killed, wait_until
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


@pytest.mark.parametrize("step", ["", "store.pin.after", "file.published.one", "file.published.synced"])
def test_published_by_halves(step, tmp_path, weir_faults_bin):
    """The target shows the epoch and cannot finish publishing it, since some of its files were taken away: what is
    still there is published, nothing else is touched, and the next run goes on."""
    # Long enough for each writer to have rows in each epoch.
    case = Case(tmp_path, weir_faults_bin, writers=3, interval="40ms")
    case.kill("file.manifest.linked=kill@2")
    [item] = [item for item in look(case, "resolve")["unresolved"] if item["state"] == "decided"]
    attempt = item["attempt"]
    gone, *kept = [path for path in staged(case) if path.name.startswith(f"{attempt:012d}-")]
    assert kept
    stray = gone.rename(gone.with_name(gone.name.replace(f"{attempt:012d}-", f"{1:012d}-")))
    stuck = case.run()
    assert stuck.returncode == 4 and "cannot be published in full" in stuck.stderr and "weir resolve" in stuck.stderr
    assert case.run(verb="recover").returncode == 4
    assert look(case, "verify", status=4)["sinks"]["lake"]["faults"]
    said = answer(case, attempt, faults=f"{step}=kill@1" if step else "")
    assert killed(said) == bool(step)
    resolved = document(answer(case, attempt))["resolved"]
    assert [item["attempt"] for item in resolved] == [attempt]
    assert not look(case, "verify")["sinks"]["lake"]["faults"]
    assert stray.exists()
    case.finish()
    assert {path.name for path in kept} <= {path.name for path in case.published()}
    rows, ids = rows_in(case)
    assert case.rows - item["rows"] < rows == ids < case.rows
    look(case, "verify", "--deep")
    assert document(answer(case, attempt))["resolved"] == resolved


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
    # Nor when the target cannot be asked: the store knows.
    (case.folder / "out").rename(case.folder / "away")
    said = answer(case, 1)
    assert said.returncode == 2 and "was published" in said.stderr
    (case.folder / "away").rename(case.folder / "out")
    assert "this is pipeline crash" in answer(case, 1, confirm="crush").stderr
    assert answer(case, "x").returncode == 2
    assert case.run(verb="resolve", arguments=("--sink", "lake")).returncode == 2
    assert case.run(verb="run", arguments=("--why", "so")).returncode == 2
    case.finish()
    case.check()


def apart(folder, binary):
    """Two sinks, each with a source of its own."""
    case = Case(folder, binary, rows=1200, sources=2, sinks="lake pond")
    text = case.pipeline.read_text()
    lake, pond = text.replace("from: [orders, more]", "from: [orders]", 1), "from: [orders, more]"
    case.pipeline.write_text(lake.replace(pond, "from: [more]"))
    case.finish()
    return case


def test_what_has_no_rows_is_not_resolved(tmp_path, weir_faults_bin):
    case = apart(tmp_path, weir_faults_bin)
    case.grow()
    case.kill("store.decide.after=kill@1")
    [item] = [item for item in look(case, "resolve")["unresolved"] if item["state"] == "decided"]
    assert item["sink"] == "pond"
    said = answer(case, item["attempt"])
    assert said.returncode == 2 and "no rows for sink lake" in said.stderr
    case.finish()
    case.check(rows=600)
    case.check(first=600, rows=case.rows - 600, sink="pond")


# ---- adopt -------------------------------------------------------------------------------------------

ADOPT = ["store.lease.before", "store.lease.after", "store.adopt.before", "store.commit.before", "store.commit.sync", "store.adopt.after"]


def lose_state(case):
    if isinstance(case, ServerCase):
        case.sql("drop schema weir cascade")
    else:
        shutil.rmtree(case.state)


def adopt(case, *arguments, faults=""):
    if isinstance(case, ServerCase):
        case.expire()
    return case.run(faults, verb="adopt", arguments=arguments)


def goes_on(case):
    """All rows once, and what the lost state had under way is nobody's."""
    case.finish()
    case.check()
    case.check_goes_on()
    look(case, "verify", "--deep")
    look(case, "clean", "--older-than", "0")
    assert not case.leftovers(), [str(path) for path in case.leftovers()]


@pytest.mark.parametrize("step", ["store.create.before", "store.create.after", *ADOPT])
def test_adopt_killed_and_repeated(step, case):
    if step.startswith("store.create") and isinstance(case, ServerCase):
        return
    case.kill("store.decide.after=kill@5")
    deployment = look(case, "status")["deployment"]
    lose_state(case)
    told = document(adopt(case, "--dry-run"))
    assert told["dry_run"] and not told["adopted"]
    assert killed(adopt(case, faults=f"{step}=kill@1"))
    again = document(adopt(case))
    assert again["deployment"] == deployment and again["agreed"] == (step == "store.adopt.after")
    assert again["sinks"]["lake"] == told["sinks"]["lake"] and again["sinks"]["lake"]["rows"] > 0
    assert document(adopt(case))["agreed"]
    found = look(case, "status")
    assert found["deployment"] == deployment and not found["unresolved"]
    assert found["sinks"]["lake"] == again["sinks"]["lake"]
    assert found["sources"]["orders"]["position"] == told["sources"]["orders"]["position"]
    look(case, "verify")
    goes_on(case)


def test_a_run_that_was_refused_first(case):
    """It has made a store of its own, of another deployment, in which there is nothing."""
    case.kill("file.manifest.linked=kill@4")
    lose_state(case)
    for _ in range(2):
        refused = case.run()
        assert refused.returncode == 4 and "weir adopt" in refused.stderr
    assert document(adopt(case))["adopted"]
    goes_on(case)


def test_adopt_after_a_new_deployment(tmp_path, weir_faults_bin):
    """The target has cursors of two deployments, and says which one owns it."""
    case = Case(tmp_path, weir_faults_bin, rows=600)
    case.finish()
    for path in case.published():
        path.unlink()
    case.finish(arguments=("--new-deployment",))
    deployment = look(case, "status")["deployment"]
    lose_state(case)
    assert document(adopt(case))["deployment"] == deployment
    goes_on(case)


@pytest.mark.parametrize("fault", ["", "store.lease.after=kill@1", "store.create.before=kill@1", "store.lease.after=kill@2",
                                   "store.adopt.before=kill@1", "store.adopt.after=kill@1"])
def test_a_copy_that_lost_is_set_aside(fault, tmp_path, weir_faults_bin):
    """Two copies of a state folder, of which the other one has published: its state is worth nothing any more."""
    case = Case(tmp_path, weir_faults_bin, rows=600)
    case.finish()
    copy = case.copy_state("copy")
    case.grow()
    case.finish()
    case.grow()
    assert case.run(arguments=copy).returncode == 4
    refused = adopt(case, *copy)
    assert refused.returncode == 4 and "--set-aside" in refused.stderr
    assert killed(adopt(case, "--set-aside", *copy, faults=fault)) == bool(fault)
    done = document(adopt(case, "--set-aside", *copy))
    assert list(tmp_path.glob("copy.before-*")) and done["agreed"] == (fault in ("", "store.adopt.after=kill@1"))
    case.finish(arguments=copy)
    case.check()
    # Now this one is ahead, and the other one is refused, not doubled.
    case.grow()
    assert case.run().returncode == 4
    case.finish(arguments=copy)
    case.check()


def test_rows_of_a_server_are_set_aside(tmp_path, weir_faults_bin, server):  # noqa: F811
    case = ServerCase(tmp_path, weir_faults_bin, server, rows=600)
    case.finish()
    shutil.copytree(tmp_path / "out", tmp_path / "backup")
    for _ in range(12):
        case.grow()
        case.finish()
    put_back(case)
    assert killed(adopt(case, "--set-aside", faults="store.adopt.before=kill@1"))
    case.expire()
    assert document(adopt(case))["adopted"]
    goes_on(case)
    assert int(case.sql("select count(*) from weir.meta")) == 2


def put_back(case):
    shutil.rmtree(case.folder / "out")
    shutil.copytree(case.folder / "backup", case.folder / "out")
    assert case.run().returncode == 4


def token_of(case):
    return look(case, "status")["sinks"]["lake"]["cursor"]["token"]


def test_a_target_that_was_put_back_too_far(tmp_path, weir_faults_bin):
    """Further than the store can fill it up: the rows behind the backup are read and delivered again."""
    case = Case(tmp_path, weir_faults_bin, rows=600)
    case.finish()
    shutil.copytree(tmp_path / "out", tmp_path / "backup")
    for _ in range(12):
        case.grow()
        case.finish()
    last, token = (look(case, "status")["decided"], token_of(case))
    put_back(case)
    assert document(adopt(case, "--set-aside", "--dry-run"))["sinks"]["lake"]["rows"] == 600
    assert not list(tmp_path.glob("state.before-*"))
    assert document(adopt(case, "--set-aside"))["adopted"]
    goes_on(case)
    # No number is used twice, and whoever still runs with the old state is fenced.
    assert look(case, "status")["decided"] > last and token_of(case) > token


def test_a_state_that_needs_nothing_is_left_alone(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    case.kill("store.decide.after=kill@4")
    before = look(case, "status")
    assert document(adopt(case, "--set-aside"))["agreed"]
    assert look(case, "status")["unresolved"] == before["unresolved"]
    case.finish()
    case.check()
    case.check_clean()


def test_a_damaged_state(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, rows=600)
    case.finish()
    for name in ("store.db-wal", "store.db-shm"):
        (case.state / name).unlink(missing_ok=True)
    (case.state / "store.db").write_bytes(b"no database at all " * 100)
    refused = adopt(case)
    assert refused.returncode == 1 and "--set-aside" in refused.stderr
    assert document(adopt(case, "--set-aside"))["adopted"]
    goes_on(case)


def test_sinks_that_agree_and_sinks_that_do_not(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, sinks="lake pond")
    case.finish()
    lose_state(case)
    assert document(adopt(case))["adopted"]
    case.grow(900)
    # One target shows an epoch that the other one lacks: its rows are known to the state alone.
    case.kill("file.manifest.linked=kill@3")
    cursors = {item["cursor"]["checkpoint"] for item in look(case, "verify")["sinks"].values()}
    case.state.rename(tmp_path / "kept")
    done = adopt(case)
    assert done.returncode == (0 if len(cursors) == 1 else 4), done.stderr
    if done.returncode:
        assert "do not agree" in done.stderr and not case.state.exists()
        (tmp_path / "kept").rename(case.state)
    case.finish()
    for sink in ("lake", "pond"):
        case.check(sink=sink)


def test_a_sink_that_owes_nothing_since(tmp_path, weir_faults_bin):
    """It stands behind the other one, and nothing was read for it in between."""
    case = apart(tmp_path, weir_faults_bin)
    case.grow()
    case.finish()
    lose_state(case)
    cursors = {name: item["cursor"]["checkpoint"] for name, item in document(adopt(case))["sinks"].items()}
    assert cursors["lake"] < cursors["pond"]
    case.grow()
    case.finish()
    case.check(rows=600)
    case.check(first=600, rows=case.rows - 600, sink="pond")
    look(case, "verify", "--deep")


def test_a_target_that_lost_its_cursor(tmp_path, weir_faults_bin):
    """One of two was emptied: neither the state nor the other target's record says what to do."""
    case = Case(tmp_path, weir_faults_bin, rows=600, sinks="lake pond")
    case.finish()
    shutil.rmtree(tmp_path / "out/pond")
    shutil.rmtree(tmp_path / "out/.weir/pond")
    for arguments, word in (((), "do not agree with it"), (("--set-aside",), "between which there were rows")):
        done = adopt(case, *arguments)
        assert done.returncode == 4 and word in done.stderr, done.stderr
    assert not list(tmp_path.glob("state.before-*"))


def test_two_histories_do_not_agree(tmp_path, weir_faults_bin):
    """The targets of two sinks stand at the same number, which two copies of a state gave to different epochs."""
    case = Case(tmp_path, weir_faults_bin, rows=600, sinks="lake pond", interval="60s")
    case.finish()
    copy = case.copy_state("copy")
    shutil.copytree(tmp_path / "out", tmp_path / "backup")
    case.grow()
    case.finish()
    (tmp_path / "out").rename(tmp_path / "first")
    (tmp_path / "backup").rename(tmp_path / "out")
    case.run(verb="recover", arguments=copy)  # its token is another one from here on
    case.finish(arguments=copy)
    for name in ("lake", ".weir/lake"):
        shutil.rmtree(tmp_path / "out" / name)
        shutil.copytree(tmp_path / "first" / name, tmp_path / "out" / name)
    lose_state(case)
    done = adopt(case)
    assert done.returncode == 4 and "do not agree" in done.stderr, done.stderr


def test_a_target_that_moves_meanwhile(tmp_path, weir_faults_bin):
    """Somebody goes on with the state that seemed to be lost while another one is made."""
    case = Case(tmp_path, weir_faults_bin, rows=600)
    case.finish()
    case.state.rename(tmp_path / "kept")
    process = case.start("store.lease.after=stop@1", verb="adopt")
    wait_until(lambda: process.poll() is not None or is_stopped(process), "the lease")
    case.grow()
    case.finish(arguments=("--set", f"state={tmp_path / 'kept'}"))
    done = case.go_on(process)
    assert done.returncode == 4 and "moves on" in done.stderr, done.stderr
    # The store of nothing is refused, as is a second history.
    assert case.run().returncode == 4
    case.finish(arguments=("--set", f"state={tmp_path / 'kept'}"))
    case.check()


def test_adopt_is_refused_beside_an_owner(case):
    process = case.stop("file.manifest.linked=stop@3")
    try:
        for arguments in ((), ("--set-aside",)):
            done = case.run(verb="adopt", arguments=arguments)
            assert done.returncode == 4 and str(process.pid) in done.stderr
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    case.finish()
    case.check()


def test_what_cannot_be_adopted(tmp_path, weir_faults_bin):
    case = Case(tmp_path / "none", weir_faults_bin)
    done = adopt(case)
    assert done.returncode == 4 and "no target has a cursor" in done.stderr and not case.state.exists()
    # A record has room for 16 KiB of positions: a source of many files has more.
    case = Case(tmp_path / "many", weir_faults_bin, rows=600, files=600)
    case.finish()
    lose_state(case)
    done = adopt(case)
    assert done.returncode == 4 and "carries no source positions" in done.stderr and not case.state.exists()
