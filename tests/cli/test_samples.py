"""Each sample of `weir init` is what a user would type: it is checked, and run on files as it expects them."""

import json

import duckdb
import pytest

NDJSON = '{"id": 1, "customer": "Ada", "amount": 12.50, "at": "2024-02-29T23:59:59.5Z"}\n{"id": 2}\n'
CSV = "id,name,started,km\n1,Ada,2024-02-29T10:00:00,1.5\n2,,,\n"
FILES = {"ndjson": {"a.ndjson": NDJSON}, "look": {"a.ndjson": NDJSON}, "csv": {"a.csv": CSV}}
# sample -> the rows that `run` leaves, as a query; what is not here is not run
LEAVES = {
    "numbers": ("SELECT count(*), count(DISTINCT id) FROM 'out/numbers/*.parquet'", (1_000_000, 1_000_000)),
    "ndjson": ("SELECT sum(id), sum(amount), max(customer) FROM 'out/orders/*.parquet'", (3, 12.5, "Ada")),
    "csv": ("SELECT (SELECT count(km) FROM 'out/parquet/*.parquet'), count(*) FROM 'out/ndjson/*.ndjson'", (1, 2)),
}


def samples(weir):
    done = weir("init", "--json")
    return {sample["name"]: sample for sample in json.loads(done.stdout)["samples"]}


def test_all_are_checked(weir, tmp_path):
    known = samples(weir)
    assert set(known) >= {"numbers", "ndjson", "csv", "look", "push", "follow"}
    listed = weir("init").stdout
    for name, sample in known.items():
        assert f"  {name} " in listed and sample["text"] in listed
        (tmp_path / f"{name}.yaml").write_text(sample["yaml"])
        assert weir("init", name).stdout == sample["yaml"]
        done = weir("check", f"{name}.yaml", cwd=tmp_path)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [*LEAVES, "look"])
def test_runs(weir, tmp_path, name, monkeypatch):
    (tmp_path / "data").mkdir()
    for file, text in FILES.get(name, {}).items():
        (tmp_path / "data" / file).write_text(text)
    (tmp_path / "sample.yaml").write_text(weir("init", name).stdout)
    done = weir("run", "sample.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    if name == "look":
        assert done.stdout == "id,customer,amount,at\n1,Ada,12.50,2024-02-29T23:59:59.500000Z\n2,,,\n"
        return
    monkeypatch.chdir(tmp_path)
    query, expected = LEAVES[name]
    (row,) = duckdb.sql(query).fetchall()
    assert tuple(map(float, row[:-1])) + row[-1:] == tuple(map(float, expected[:-1])) + expected[-1:]
