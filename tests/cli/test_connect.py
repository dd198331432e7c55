"""`weir check --connect`: what sources and targets say to a pipeline, without anything being changed there."""

import json
import shutil

import pytest
from place import PIPELINE, Place, lines


@pytest.fixture
def place(tmp_path, weir_bin):
    place = Place(tmp_path, weir_bin)
    place.source("a.ndjson", lines(0, 10))
    return place


def check(place, *arguments, status=0):
    done = place.run("--connect", *arguments, verb="check")
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_targets_answer_and_nothing_is_made(place):
    before = sorted(place.folder.rglob("*"))
    assert f"lake: takes 5 columns; path={place.target}\n" in check(place).stdout
    assert sorted(place.folder.rglob("*")) == before
    found = json.loads(check(place, "--json").stdout)
    assert found["targets"]["lake"]["identity"] == f"path={place.target}"
    assert found["targets"]["lake"]["columns"]["day"] == "date32"
    assert found["schemas"] == {}
    assert place.run().returncode == 0
    check(place)
    assert "targets" not in json.loads(place.run("--json", verb="check").stdout)


def test_the_target_is_another_deployments(place):
    assert place.run().returncode == 0
    shutil.rmtree(place.folder / "state")
    done = check(place, status=4)
    assert "lake: refuses, see below" in done.stdout
    assert "pipeline bad: sink lake: the target belongs to deployment" in done.stderr
    assert "there is no state folder" in done.stderr
    assert not (place.folder / "state").exists()


def test_two_sinks_with_one_target(place):
    place.write_pipeline(PIPELINE + "  more: {type: file, path: ./out/../out/lake}\n")
    assert "it has the target of sink lake" in check(place, status=2).stderr


def test_a_schema_that_one_sink_refuses(place):
    place.source("a.ndjson", '{"tags": ["x"]}\n')
    place.write_pipeline(
        """
        pipeline: tags
        sources: {rows: {type: file, path: in/*.ndjson, schema: {tags: list<utf8>}}}
        sinks:
          table: {type: file, path: ./out/table, format: csv}
          lake: {type: file, path: ./out/lake}
        """
    )
    done = check(place, "--json", status=2)
    found = json.loads(done.stdout)["targets"]
    assert found["table"] is None and found["lake"]["columns"] == {"tags": "list<utf8>"}
    assert "tags" in done.stderr


def test_a_source_without_files_says_so(place):
    place.write_pipeline(PIPELINE.replace("in/*.ndjson", "none/*.ndjson").replace("schema: {", "schema: infer # {"))
    assert check(place, status=1).stderr.count("error:") == 1
