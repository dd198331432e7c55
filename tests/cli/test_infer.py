"""Schemas that are inferred: printed ready to paste, kept for the deployment, refused where they do not fit."""

import gzip
import json
import signal

import duckdb
import pytest
from place import Place

PIPELINE = """
pipeline: guess
state: ./state
sources:
  rows: {type: file, path: in/*}
sinks:
  lake: {type: file, path: ./out/lake}
"""
CSV = "id,zip,price,day,at,big,ok,note\n1,007,2.5,2024-02-29,2024-02-29T10:00:00Z,18446744073709551615,true,\n2,10,3,2024-03-01,2024-03-01 11:00:00+01:00,1,false,\n"
YAML = '{id: int64, zip: utf8, price: float64, day: date32, at: "timestamp[us, UTC]", big: uint64, ok: bool, note: utf8}'


@pytest.fixture
def place(tmp_path, weir_bin):
    place = Place(tmp_path, weir_bin)
    place.write_pipeline(PIPELINE)
    return place


def check(place):
    done = place.run("--json", verb="check")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_is_printed_can_be_pasted(place):
    place.source("a.csv", CSV)
    found = check(place)["schemas"]["rows"]
    assert (found["kept"], found["yaml"]) == (False, YAML)
    assert f"    schema: {YAML}\n" in place.run(verb="check").stdout
    assert not (place.folder / "state").exists()
    done = place.run()
    assert done.returncode == 0 and f"`schema: {YAML}`" in done.stderr, done.stderr
    # The deployment goes on with the schema written down: it is the same one.
    place.write_pipeline(PIPELINE.replace("path: in/*", f"path: in/*, schema: {YAML}"))
    place.source("b.csv", CSV.replace("\n1,", "\n3,").replace("\n2,", "\n4,"))
    place.finish([1, 2, 3, 4])


def test_the_schema_is_kept(place):
    first = place.source("a.ndjson", '{"id": 1, "v": 1}\n')
    place.finish([1])
    first.unlink()
    assert check(place)["schemas"]["rows"] == {
        "kept": True,
        "columns": {"id": "int64", "v": "int64"},
        "yaml": "{id: int64, v: int64}",
    }
    bad = place.source("b.ndjson", '{"id": 2, "v": 7}\n{"id": 3, "v": "x"}\n')
    place.refused(6, "b.ndjson", "line 2", "column 'v' (int64)", "the sample", "write the schema down")
    bad.unlink()
    place.source("c.ndjson", '{"id": 2, "v": 8}\n')
    place.finish([1, 2])


@pytest.mark.parametrize(
    "name, old, new, words",
    [
        ("b.ndjson", '{"id": 1, "v": 1}\n', '{"id": 2, "v": 8}\n{"id": 3, "v": 8, "w": 1}\n', ["line 2", "column 'w'"]),
        ("b.ndjson.gz", '{"id": 1, "v": 1}\n', '{"w": {}, "id": 2, "v": 8}\n{"id": 3, "v": 8}\n', ["line 1", "column 'w'"]),
        ("b.csv", "id,v\n1,1\n", "w,id,v\nx,2,8\nx,3,9\n", ["line 1", "column 'w', field 1"]),
    ],
)
def test_a_new_column_is_never_left_out_in_silence(name, old, new, words, place):
    pack = gzip.compress if name.endswith(".gz") else bytes
    (place.folder / "in").mkdir(exist_ok=True)
    (place.folder / "in" / f"a{name[1:]}").write_bytes(pack(old.encode()))
    place.finish([1])
    (place.folder / "in" / name).write_bytes(pack(new.encode()))
    place.refused(6, name, *words, "write the schema down", "ignored")
    place.write_pipeline(PIPELINE.replace("path: in/*", "path: in/*, schema: {id: int64, v: int64}"))
    place.finish([1, 2, 3])


def test_a_schema_of_another_deployment_is_inferred_again(place):
    first = place.source("a.ndjson", '{"id": 1, "v": 1}\n')
    place.finish([1])
    first.unlink()
    place.source("b.ndjson", '{"id": 2, "v": "x"}\n')
    done = place.run("--new-deployment")
    assert "was inferred from a sample" in done.stderr and "v: utf8" in done.stderr


@pytest.mark.parametrize("point, kept", [("store.pin.before", False), ("store.pin.after", True)])
def test_killed_while_it_is_kept(place, weir_faults_bin, point, kept):
    place.binary = weir_faults_bin
    first = place.source("a.ndjson", '{"id": 1, "v": 1}\n')
    done = place.run(env={"WEIR_FAULTS": f"{point}=kill"})
    assert done.returncode == -signal.SIGKILL, done.stderr
    first.write_text('{"id": 1, "v": 2.5}\n')
    found = check(place)["schemas"]["rows"]
    assert (found["kept"], found["columns"]["v"]) == ((True, "int64") if kept else (False, "float64"))
    if kept:
        place.refused(6, "column 'v' (int64)")
        first.write_text('{"id": 1, "v": 2}\n')
    place.finish([1])


def test_nested_values(place):
    place.source("a.ndjson", '{"id": 1, "s": {"a": 1, "b": [1, 2.5]}}\n{"id": 2, "s": {"c": "2024-02-29"}, "l": []}\n')
    yaml = '{id: int64, s: "struct<a: int64, b: list<float64>, c: date32>", l: "list<utf8>"}'
    assert check(place)["schemas"]["rows"]["yaml"] == yaml
    done = place.run("--set", "sinks.lake.format=arrow")
    assert done.returncode == 0 and "2 rows" in done.stderr, done.stderr


def test_no_rows(place):
    place.source("a.csv", "id,v\n")
    note = check(place)["notes"]
    assert len(note) == 1 and "no row to infer a schema from" in note[0]
    place.refused(1, "a.csv", "no row to infer a schema from", "write the schema down")


def test_types_agree_with_duckdb(place):
    """Where no exactness is at stake, both readers find the same."""
    path = place.source("a.csv", CSV)
    with duckdb.connect() as db:
        rows = db.execute(f"describe select * exclude (big, zip) from read_csv('{path}')").fetchall()
    names = {
        "BIGINT": "int64",
        "DOUBLE": "float64",
        "DATE": "date32",
        "TIMESTAMP WITH TIME ZONE": "timestamp[us, UTC]",
        "BOOLEAN": "bool",
        "VARCHAR": "utf8",
    }
    columns = check(place)["schemas"]["rows"]["columns"]
    assert {name: names[kind] for name, kind, *_ in rows} == {
        name: kind for name, kind in columns.items() if name not in ("big", "zip")
    }
