"""`weir verify` and `weir clean` as a person reads them; what is in flight is in tests/crash/test_audits.py."""

import json
import signal
import subprocess

import pytest
from place import Place, lines


@pytest.fixture
def place(tmp_path, weir_bin):
    place = Place(tmp_path, weir_bin)
    place.source("a.ndjson", lines(0, 100))
    assert place.run().returncode == 0
    place.source("b.ndjson", lines(100, 50))
    assert place.run().returncode == 0
    return place


def verify(place, *arguments, status=0):
    done = place.run(*arguments, verb="verify")
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def published(place):
    return sorted(place.target.rglob("*.parquet"))


def test_all_is_there(place):
    text = verify(place, "--deep")
    assert "lake: at epoch 2; 2 artifacts, " in text
    assert ", every byte; 150 rows\n" in text
    assert text.endswith("verified: the targets agree with the store\n")

    def times():
        return sorted((str(path), path.stat().st_mtime_ns) for path in place.folder.rglob("out/**"))

    before = times()
    verify(place)
    assert times() == before, "verify has written something"


def test_the_document(place):
    found = json.loads(verify(place, "--json"))
    assert set(found) == {"pipeline", "deployment", "state", "agreed", "verified", "sinks", "resolved"}
    sink = found["sinks"]["lake"]
    assert sink["checked"] == ["cursor", "artifacts", "rows"]
    assert sink["cursor"]["checkpoint"] == 2 and sink["cursor"]["token"] > 1
    assert (sink["rows"], sink["rows_since"], sink["artifacts"], sink["pending"]) == (150, 0, 2, 0)
    assert sink["orphans"] == {"artifacts": 0, "bytes": 0}


def test_a_published_file_is_deleted(place):
    first, second = published(place)
    first.unlink()
    text = verify(place, status=4)
    assert f"missing: {first} is gone: it was published with 100 rows of epoch 1" in text
    assert str(second) not in text
    assert "do NOT agree" in text
    found = json.loads(verify(place, "--json", status=4))
    assert found["sinks"]["lake"]["faults"][0]["artifact"] == str(first)


def test_a_published_file_is_cut_short(place):
    first = published(place)[0]
    size = first.stat().st_size
    first.write_bytes(first.read_bytes()[:-1])
    assert f"changed: {first} has {size - 1} bytes, and had {size}" in verify(place, status=4)


def test_one_bit_has_changed(place):
    first = published(place)[0]
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 1
    first.write_bytes(content)
    verify(place)
    assert f"changed: {first} has its size, but not the bytes" in verify(place, "--deep", status=4)


def test_manifests_are_missing_or_broken(place):
    first, second = sorted(place.folder.glob("out/.weir/lake/*/commits/*.json"))
    content = first.read_bytes()
    first.unlink()
    assert "its manifest 1 cannot be read" in verify(place, status=4)
    first.write_bytes(content[:-10])
    assert "its manifest 1 cannot be read" in verify(place, status=4)
    first.write_bytes(content)
    second.write_bytes(b"{}")
    assert "newest manifest cannot be read" in verify(place, status=4)
    done = place.run("--older-than", "0", verb="clean")
    assert done.returncode == 4 and "nothing was removed" in done.stderr


def test_files_in_folders_of_partitions(tmp_path, weir_bin):
    place = Place(tmp_path, weir_bin)
    place.source("a.ndjson", lines(0, 100))
    assert place.run(*place.set("sinks.lake.partition_by=[part]")).returncode == 0
    assert len(published(place)) == 100
    argument = place.set("sinks.lake.partition_by=[part]")
    assert "100 artifacts" in verify(place, "--deep", *argument)
    gone = published(place)[7]
    assert gone.parent.name.startswith("part=")
    gone.unlink()
    assert f"missing: {gone} is gone" in verify(place, *argument, status=4)


def test_more_epochs_than_manifests_are_kept(tmp_path, weir_bin):
    place = Place(tmp_path, weir_bin)
    place.write_pipeline(
        """
        pipeline: many
        state: ./state
        checkpoint: {interval: 1ms}
        sources: {n: {type: generator, rows: 0, rate: 20000, batch_rows: 10}}
        sinks: {lake: {type: file, path: ./out/lake, format: ndjson}}
        """
    )
    run = subprocess.Popen([weir_bin, "run", place.pipeline, "--progress", "none"])
    while len(list(place.target.glob("*"))) < 100:
        assert run.poll() is None
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 0
    sink = json.loads(verify(place, "--json"))["sinks"]["lake"]
    assert sink["artifacts"] < 100 + 64
    assert sink["rows_since"] > 0, "only what the store still has can be compared"
    assert "rows since epoch" in verify(place)


def test_a_sink_that_cannot_tell_is_not_verified(tmp_path, weir):
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text(
        "pipeline: p\nguarantee: best_effort\nsources: {n: {type: generator, rows: 10}}\nsinks: {hole: {type: blackhole}}\n"
    )
    assert weir("run", pipeline).returncode == 0
    done = weir("verify", pipeline)
    assert done.returncode == 0
    assert "hole: cannot tell" in done.stdout
    assert "verified: 0 of 1 sinks" in done.stdout
    assert "hole: cannot tell" in weir("clean", pipeline).stdout


def test_clean_says_what_it_does(place):
    folder = next(place.folder.glob("out/.weir/lake/*/staged"))
    late = folder / f"000000000001-0001-00001-{'cd' * 16}.parquet"
    late.write_text("late")
    assert "owned by no epoch: 1 artifact, 4 B" in verify(place)
    assert "kept for its age: 1" in place.run(verb="clean").stdout
    done = place.run("--dry-run", "--older-than", "0", verb="clean")
    assert "nothing is removed" in done.stdout and f"{late}, 4 bytes, " in done.stdout
    assert late.exists()
    done = place.run("--older-than", "0", verb="clean")
    assert "removed 1 artifact, 4 B" in done.stdout
    assert not late.exists()
    place.finish(range(150))


@pytest.mark.parametrize("age", ["x", "-1h", "7", "1y", ""])
def test_ages_that_are_none(place, age):
    done = place.run(f"--older-than={age}", verb="clean")
    assert done.returncode == 2 and "--older-than" in done.stderr
