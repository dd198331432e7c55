"""Who owns a state folder and a target: two instances, two working directories, state lost or copied."""

import json
import shutil
import subprocess

from harness import Case, killed


def deployment(case):
    status = subprocess.run(
        [case.binary, "status", case.pipeline, "--json"], capture_output=True, text=True, check=True
    )
    return json.loads(status.stdout)["deployment"]


def test_second_instance_is_refused(tmp_path, weir_faults_bin):
    case = Case(tmp_path, weir_faults_bin)
    first = case.start("file.begin=sleep:3s")
    try:
        while not (case.state).is_dir() and first.poll() is None:
            pass
        for _ in range(50):
            second = case.run()
            if second.returncode == 4:
                break
        assert second.returncode == 4, second.stderr
        assert "another" in second.stderr and str(first.pid) in second.stderr, second.stderr
    finally:
        out, err = first.communicate(timeout=60)
    assert first.returncode == 0, err
    case.check()


def test_two_working_directories_are_one_deployment(tmp_path, weir_bin):
    case = Case(tmp_path / "p", weir_bin)
    (tmp_path / "elsewhere").mkdir()
    assert case.run(cwd=tmp_path / "elsewhere").returncode == 0
    one = deployment(case)
    case.grow("more", 3000)
    assert case.run(cwd=tmp_path / "p").returncode == 0
    assert deployment(case) == one
    case.check()


def test_lost_state_is_refused(tmp_path, weir_bin):
    case = Case(tmp_path, weir_bin)
    case.finish()
    old = deployment(case)
    shutil.rmtree(case.state)
    case.grow("more", 3000)
    refused = case.run()
    assert refused.returncode == 4, refused.stderr
    assert old in refused.stderr and "--new-deployment" in refused.stderr, refused.stderr
    case.check(rows=12000)


def test_copied_state_stops_at_the_digest(tmp_path, weir_faults_bin):
    """Two histories from one state: what the second publishes meets a cursor that is not its own."""
    case = Case(tmp_path, weir_faults_bin)
    # Some attempts are decided and published, then the folder is copied.
    assert killed(case.run("file.published.synced=kill@4"))
    shutil.copytree(case.state, tmp_path / "copy")
    case.finish()
    case.check()
    shutil.rmtree(case.state)
    (tmp_path / "copy").rename(case.state)
    second = case.run()
    assert second.returncode == 4, second.stderr
    case.check()


def test_nothing_new_touches_nothing(tmp_path, weir_bin):
    case = Case(tmp_path, weir_bin)
    case.finish()
    before = {p: p.stat().st_mtime_ns for p in case.target.parent.rglob("*")}
    again = case.finish()
    assert again["epochs"] == 0 and again["rows"] == 0
    after = {p: p.stat().st_mtime_ns for p in case.target.parent.rglob("*")}
    assert before == after
