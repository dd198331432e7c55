"""`weir verify` and `weir clean` beside runs that live, that were stopped anywhere, and that were killed: what is
in flight is no fault and nobody's leftover, what is gone is told, and only what no epoch owns is removed.
"""

import gzip
import json
import os
import re
import shutil
import signal
import time

import pytest
from harness import PACE, Case, killed

# A run stopped at each has something in flight: staged, decided, named by a manifest, published in part.
IN_FLIGHT = (
    "file.staged.created file.staged.written file.prepared store.decide.before store.decide.after file.manifest.written "
    "file.manifest.linked file.published.one file.published.synced store.commit.sync"
).split()


def document(done):
    return json.loads(done.stdout)


def verify(case, *arguments, status=0):
    done = case.run(verb="verify", arguments=arguments)
    assert done.returncode == status, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    found = document(done)
    assert found["agreed"] == (status == 0)
    return found["sinks"]["lake"]


def kinds(sink):
    return {fault["kind"] for fault in sink["faults"]}


def clean(case, *arguments, status=0, faults=""):
    done = case.run(faults, verb="clean", arguments=arguments)
    assert done.returncode == status, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return document(done)["sinks"]["lake"] if status == 0 else done.stderr


def staged(case):
    return sorted(case.folder.glob("out/.weir/lake/*/staged/*"))


def plant(case, n=1, attempt=1, days=0):
    """Files as a generation writes them that was given up and came back late."""
    folder = next(case.folder.glob("out/.weir/lake/*/staged"))
    planted = []
    for i in range(n):
        path = folder / f"{attempt:012d}-0001-{i + 1:05d}-{'ab' * 16}.parquet"
        path.write_bytes(b"late" * 100)
        os.utime(path, (time.time() - days * 86400,) * 2)
        planted.append(path)
    return planted


@pytest.mark.parametrize("point", IN_FLIGHT)
def test_beside_a_run_that_was_stopped(point, tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    process = case.stop(f"{point}=stop@4")
    try:
        in_flight = staged(case)
        sink = verify(case, "--deep")
        assert sink["orphans"] == {"artifacts": 0, "bytes": 0}
        assert not sink["faults"]
        assert clean(case, "--dry-run", "--older-than", "0")["artifacts"] == 0
        assert str(process.pid) in clean(case, "--older-than", "0", status=4)
        assert staged(case) == in_flight
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert not verify(case)["faults"]
    # Linked already, its temporary name is nobody's.
    assert clean(case, "--older-than", "0")["artifacts"] == (point == "file.manifest.linked")
    case.finish()
    case.check()
    assert verify(case, "--deep")["checked"] == ["cursor", "artifacts", "content", "rows"]
    case.check_clean()


def test_beside_a_run_that_goes_on(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    process = case.start(PACE)
    looks = 0
    while process.poll() is None:
        done = case.run(verb="verify")
        # Before the run has made its folders, there is nothing to look at.
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        looks += 1
    assert case.end(process).returncode == 0
    assert looks
    sink = verify(case)
    assert sink["rows"] == case.rows and sink["rows_since"] == 0


def test_a_staged_file_of_a_decided_epoch_is_gone(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    case.kill("store.decide.after=kill@3")
    sink = verify(case)
    assert sink["pending"] >= 1 and not sink["faults"]
    for path in staged(case):
        path.unlink()
    sink = verify(case, status=4)
    assert kinds(sink) == {"missing"}
    assert "before they could be published" in sink["faults"][0]["text"]


def test_a_clean_that_is_killed_and_run_again(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    case.finish()
    planted = plant(case, 5)
    assert verify(case)["orphans"]["artifacts"] == 5
    assert clean(case)["young"] == 5  # an hour is the default
    assert clean(case, "--dry-run", "--older-than", "0")["artifacts"] == 5
    assert staged(case) == planted
    assert killed(case.run("file.swept.one=kill@2", verb="clean", arguments=("--older-than", "0")))
    assert len(staged(case)) == 3
    assert clean(case, "--older-than", "0")["artifacts"] == 3
    assert clean(case, "--older-than", "0")["artifacts"] == 0
    case.check()
    case.check_clean()


def test_what_is_owned_or_foreign_or_of_a_later_epoch_stays(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    case.kill("file.staged.written=kill@7")
    left = staged(case)
    assert left
    later = plant(case, attempt=10**6)
    foreign = later[0].with_name("notes.txt")
    foreign.write_text("mine")
    # A copy of the state folder may be working on numbers that this one has not come to.
    sink = clean(case, "--older-than", "0")
    assert sink["artifacts"] == 0
    assert [item["artifact"] for item in sink["unknown"]] == [str(foreign)]
    assert set(left + later + [foreign]) == set(staged(case))
    later[0].unlink()
    foreign.unlink()
    case.finish()
    case.check()


def test_two_copies_of_the_state_folder(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    case.finish()
    copy = case.copy_state("copy")
    case.grow()
    case.finish()
    verify(case)
    planted = plant(case)
    sink = verify(case, *copy, status=4)
    assert kinds(sink) == {"cursor"}
    assert "has decided no more than" in sink["faults"][0]["text"]
    assert "nothing was removed" in clean(case, "--older-than", "0", *copy, status=4)
    # The copy decides an epoch of the same number and is refused at the target.
    assert case.run(arguments=copy).returncode == 4
    assert kinds(verify(case, *copy, status=4)) == {"cursor"}
    assert "nothing was removed" in clean(case, "--older-than", "0", *copy, status=4)
    assert set(planted) <= set(staged(case))
    verify(case)
    case.check()


def test_the_state_folder_is_lost(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    assert case.run(verb="verify").returncode == 0, "nothing was ever delivered"
    case.finish()
    deployment = document(case.run(verb="status"))["deployment"]
    shutil.rmtree(case.state)
    planted = plant(case)
    sink = verify(case, status=4)
    assert kinds(sink) == {"foreign"} and deployment in sink["faults"][0]["text"]
    assert "no state folder" in clean(case, "--older-than", "0", status=4)
    assert not case.state.exists()
    assert staged(case) == planted


def test_a_target_that_was_put_back(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    case.finish()
    shutil.copytree(case.folder / "out", case.folder / "backup")
    case.grow()
    case.finish()
    shutil.rmtree(case.folder / "out")
    sink = verify(case, status=4)
    assert "cursor" in kinds(sink) and "no cursor" in sink["faults"][-1]["text"]
    assert sink["pending"] == 0
    shutil.copytree(case.folder / "backup", case.folder / "out")
    sink = verify(case, status=4)
    assert "cursor" in kinds(sink) and "put back" in sink["faults"][-1]["text"]
    # So little is filled up again from the store and the staged files, or refused; never cleaned.
    clean(case, "--older-than", "0", status=4)


def test_what_a_replaced_deployment_left(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    case.finish()
    old, young = plant(case, 2, attempt=10**6, days=3)
    os.utime(young)
    shutil.rmtree(case.target)
    case.finish(arguments=("--new-deployment",))
    assert clean(case, "--older-than", "0")["artifacts"] == 0
    assert case.run(verb="clean", arguments=("--all",)).returncode == 2
    assert case.run(verb="clean", arguments=("--all", "--older-than", "23h")).returncode == 2
    sink = clean(case, "--all", "--older-than", "24h")
    assert (sink["artifacts"], sink["young"]) == (1, 1)
    assert not old.exists() and young.exists()
    case.check()
    verify(case)


def test_status_says_where_a_source_stands(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, rows=1800, files=2)
    case.kill("store.decide.after=kill@4")
    position = document(case.run(verb="status"))["sources"]["orders"]["position"]
    assert re.fullmatch(r"\d files? read(; .*orders/\d\.ndjson at byte \d+)?", position), position
    case.finish()
    assert document(case.run(verb="status"))["sources"]["orders"]["position"].endswith("files read")


def test_status_counts_the_text_of_a_compressed_file(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin, rows=1800, files=1)
    plain = case.folder / "orders/0.ndjson"
    size = plain.stat().st_size
    plain.with_suffix(".ndjson.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    case.pipeline.write_text(case.pipeline.read_text().replace("*.ndjson", "*.ndjson.gz"))
    done = case.run(f"store.decide.after=kill@2,{PACE}")
    assert killed(done), done.stderr
    position = document(case.run(verb="status"))["sources"]["orders"]["position"]
    found = re.fullmatch(r"0 files read; .*orders/0\.ndjson\.gz at byte (\d+) of its text", position)
    assert found and 0 < int(found[1]) < size, position
    case.finish()
    case.check()
