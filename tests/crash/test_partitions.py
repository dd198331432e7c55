"""`partition_by` under kills: files come to lie in folders below the target, each row in its own, once."""

import os

import pytest
from harness import PACE, Case, Watcher, files_of, killed

POINTS = ["file.staged.created", "file.staged.written", "file.staged.synced", "file.manifest.written", "file.manifest.linked"]
POINTS += ["file.published.one", "file.published.synced", "store.decide.after"]


@pytest.mark.parametrize("point", POINTS)
def test_kill_at(point, tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, more="partition_by: even, roll: {rows: 50}")
    with Watcher(case):
        for nth in (1, 3, 9):
            process = case.run(f"{point}=kill@{nth},{PACE}")
            assert killed(process) or (process.returncode == 0 and nth > 1), f"{point}: {process.stderr[-4000:]}"
            case.grow(900)
        case.finish()
        case.check()
        case.check_clean()


def test_two_writers_meet_in_each_folder(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, writers=4, interval="1ms", more="partition_by: even, commit_interval: 20ms")
    case.finish(faults=PACE)
    case.check()
    for folder in ("even=true", "even=false"):
        assert len({path.name.split("-")[1] for path in files_of(case.target / folder)}) > 1


def test_folders_that_someone_removes_are_made_again(tmp_path, weir_faults_bin):
    """Killed with its folders made and empty, which somebody tidies away."""
    case = Case(tmp_path, weir_faults_bin, more="partition_by: even")
    case.kill("file.folders.synced=kill@1")
    for folder in case.target.iterdir():
        folder.rmdir()
    case.finish()
    case.check()
    case.check_clean()


def test_a_link_out_of_the_target_is_not_followed(tmp_path, weir_faults_bin):
    """Where a folder is a link, or a file, the decided attempt waits until that is mended."""
    case = Case(tmp_path, weir_faults_bin, more="partition_by: even")
    case.kill("file.folders.synced=kill@1")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = next(case.target.iterdir())
    folder.rmdir()
    folder.symlink_to(elsewhere)
    process = case.run(verb="recover")
    assert process.returncode == 1 and f"cannot make folder '{folder}'" in process.stderr, process.stderr
    assert not os.listdir(elsewhere)
    folder.unlink()
    case.finish()
    case.check()
