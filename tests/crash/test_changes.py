"""Configs that change between runs, with and without something unresolved."""

import json
import shutil

from harness import PACE, Case, Watcher


def test_number_of_writers_changes_after_kills(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, writers=4)
    with Watcher(case):
        for writers, faults in [
            (4, "file.published.one=kill@5"),
            (1, "file.manifest.linked=kill@2"),
            (3, "store.decide.after=kill@2"),
            (1, "file.prepared=kill@2"),
            (4, "task.write=kill@20"),
        ]:
            case.configure(writers=writers)
            case.kill(faults)
        case.configure(writers=3)
        case.finish()
        case.check()
        case.check_clean()


def test_sink_removed_with_something_unresolved(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, sinks="lake pond")
    case.kill("store.decide.after=kill@3")
    unresolved = json.loads(case.run(verb="status").stdout)["unresolved"]
    assert unresolved
    case.configure(sinks="lake")
    for verb in ("run", "recover"):
        refused = case.run(verb=verb)
        assert refused.returncode == 2, refused.stderr
        assert "sink pond is no longer in the pipeline" in refused.stderr and "weir recover" in refused.stderr, refused.stderr
    # The way out that the message names.
    case.configure(sinks="lake pond")
    assert case.run(verb="recover").returncode == 0
    assert not json.loads(case.run(verb="status").stdout)["unresolved"]
    case.configure(sinks="lake")
    case.finish()
    case.check()
    case.check_clean()


def test_sink_repointed_is_refused(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    case.kill("store.decide.after=kill@3")
    text = case.pipeline.read_text()
    case.pipeline.write_text(text.replace("./out/lake", "./out/elsewhere"))
    refused = case.run()
    assert refused.returncode in (2, 4), refused.stderr
    assert "lake" in refused.stderr
    assert not case.published("elsewhere")
    case.pipeline.write_text(text)
    case.finish()
    case.check()


def test_sink_added_later_starts_at_the_present_position(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    case.finish()
    old = case.rows
    case.configure(sinks="lake pond")
    case.grow(600)
    done = case.run(PACE)
    assert done.returncode == 0, done.stderr
    assert "starts at the present position" in done.stderr, done.stderr
    case.check()
    case.check(first=old, rows=600, sink="pond")
    again = case.run()
    assert again.returncode == 0 and "present position" not in again.stderr, again.stderr


def test_two_sinks_killed_between_their_commits(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, sinks="lake pond")
    for nth in (3, 4, 1, 2):
        case.kill(f"file.manifest.linked=kill@{nth}")
        case.grow(600)
    case.finish()
    case.check()
    case.check(sink="pond")
    case.check_clean()


def test_target_emptied_of_its_records_is_refused(tmp_path, weir_faults_bin):
    """Not a guess: a target whose commits are gone is another target."""
    case = Case(tmp_path, weir_faults_bin)
    case.kill("file.published.synced=kill@3")
    rows = len(case.published())
    (case.target.parent / ".weir").rename(tmp_path / "aside")
    case.grow()
    refused = case.run()
    assert refused.returncode == 4, f"exit {refused.returncode}\n{refused.stderr}"
    assert len(case.published()) == rows
    shutil.rmtree(case.target.parent / ".weir", ignore_errors=True)
    (tmp_path / "aside").rename(case.target.parent / ".weir")
    case.finish()
    case.check()


def test_recover_settles_and_reads_nothing(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    with Watcher(case):
        case.kill("store.decide.after=kill@4")
        shutil.move(case.folder / "orders", tmp_path / "away")
        (case.folder / "orders").mkdir()
        assert case.run(verb="recover").returncode == 0
        status = json.loads(case.run(verb="status").stdout)
        assert not status["unresolved"] and status["committed"] == 4, status
        case.check(rows=status["sinks"]["lake"]["rows"])
        (case.folder / "orders").rmdir()
        shutil.move(tmp_path / "away", case.folder / "orders")
        case.finish()
        case.check()
        case.check_clean()


def test_old_manifests_and_temporary_files_go(tmp_path, weir_faults_bin):
    """Beside the target lies what the protocol says and no more, also after many epochs."""
    case = Case(tmp_path, weir_faults_bin, rows=12000, batch_rows=30)
    case.kill("file.manifest.written=kill@2")
    epochs = 0
    while epochs < 100:
        epochs += case.finish(faults=PACE)["epochs"]
        case.grow(6000)
    case.check_clean()
    beside = [path.name for path in (case.target.parent / ".weir").rglob("*") if path.is_file()]
    assert not [name for name in beside if name.startswith(".tmp-") and int(name[5:25]) < epochs - 16], beside
    assert len([name for name in beside if name.endswith(".json")]) <= 64 + 16 + 2
