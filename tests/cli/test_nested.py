"""Lists, structs and maps through whole pipelines: Arrow IPC and NDJSON in and out, judged by pyarrow."""

import datetime
import decimal
import json

import pyarrow as pa
import pytest

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("big", pa.large_list(pa.int16())),
        pa.field("views", pa.list_view(pa.float64())),
        pa.field("place", pa.list_(pa.float32(), 2)),
        pa.field(
            "who",
            pa.struct(
                [
                    pa.field("name", pa.string(), nullable=False),
                    pa.field("born", pa.date32()),
                    pa.field("home", pa.struct([("zip", pa.int32()), ("lines", pa.list_(pa.string()))])),
                ]
            ),
        ),
        pa.field("prices", pa.map_(pa.string(), pa.decimal128(10, 2))),
        pa.field("codes", pa.map_(pa.int32(), pa.list_(pa.map_(pa.string(), pa.bool_())))),
    ]
)
TYPES = {
    "id": "int64 not null",
    "tags": "list<utf8>",
    "big": "large_list<int16>",
    "views": "list_view<float64>",
    "place": "fixed_size_list<float32, 2>",
    "who": "struct<name: utf8 not null, born: date32, home: struct<zip: int32, lines: list<utf8>>>",
    "prices": "map<utf8, decimal128(10, 2)>",
    "codes": "map<int32, list<map<utf8, bool>>>",
}


def row(i):
    home = None if i % 4 == 0 else {"zip": i, "lines": ["a", None, "größe"][: i % 4]}
    born = datetime.date(2020, 1, 1) + datetime.timedelta(i)
    return {
        "id": i,
        "tags": None if i % 7 == 0 else [f"tag {j}" if j % 3 else None for j in range(i % 5)],
        "big": [i % 100] * (i % 3),
        "views": None if i % 11 == 0 else [i / 2, None][: i % 3],
        "place": None if i % 5 == 0 else [float(i), None],
        "who": None if i % 6 == 0 else {"name": f"n{i}", "born": born, "home": home},
        "prices": None if i % 9 == 0 else [(f"k{j}", decimal.Decimal(i * j) / 100) for j in range(i % 4)],
        "codes": [(j, [[("x", True), ("y", None)], None, []][: i % 4]) for j in range(i % 3)],
    }


TABLE = pa.Table.from_pylist([row(i) for i in range(1000)], schema=SCHEMA)


@pytest.fixture
def deliver(weir, tmp_path):
    """deliver({source options}, format) -> the files of a sink `file`."""

    def run(source, output, name):
        sink = {"type": "file", "path": f"./{name}", "format": output, "compression": "none"}
        pipeline = {"pipeline": name, "state": f"./state-{name}", "sources": {"in": {"type": "file", **source}}, "sinks": {"out": sink}}
        (tmp_path / f"{name}.yaml").write_text(json.dumps(pipeline))
        done = weir("run", tmp_path / f"{name}.yaml")
        assert done.returncode == 0, done.stderr
        return sorted((tmp_path / name).iterdir())

    return run


def write_arrow(path):
    """In batches that are slices, so that offsets do not begin at 0."""
    with pa.ipc.new_file(path, SCHEMA) as writer:
        for batch in TABLE.to_batches(max_chunksize=300):
            writer.write_batch(batch)


def read_arrow(files):
    return pa.concat_tables([pa.ipc.open_file(path).read_all() for path in files]).sort_by("id")


def test_arrow_to_arrow(deliver, tmp_path):
    write_arrow(tmp_path / "in.arrow")
    got = read_arrow(deliver({"path": "in.arrow", "batch_rows": 77}, "arrow", "copy"))
    got.validate(full=True)
    assert got.schema.equals(SCHEMA)
    assert got.equals(TABLE)


def as_json(value):
    """What NDJSON has of a value of a row: maps with string keys are objects, other maps arrays of pairs."""
    if isinstance(value, dict):
        return {name: as_json(of) for name, of in value.items()}
    if isinstance(value, list):
        pairs = [of for of in value if isinstance(of, tuple)]
        if value and len(pairs) == len(value):
            if isinstance(pairs[0][0], str):
                return {key: as_json(of) for key, of in pairs}
            return [{"key": key, "value": as_json(of)} for key, of in pairs]
        return [as_json(of) for of in value]
    return str(value) if isinstance(value, datetime.date) else value


def empty_maps(rows):
    """An empty map cannot be told from an empty list in Python: written down by hand."""
    for line in rows:
        line["prices"] = {} if line["prices"] == [] else line["prices"]
        for code in line["codes"]:
            code["value"] = [{} if of == [] else of for of in code["value"]]
    return rows


def test_arrow_to_ndjson_and_back(deliver, tmp_path):
    write_arrow(tmp_path / "in.arrow")
    (lines,) = deliver({"path": "in.arrow"}, "ndjson", "lines")
    rows = [json.loads(line, parse_float=decimal.Decimal) for line in lines.read_text().splitlines()]
    assert sorted(rows, key=lambda of: of["id"]) == empty_maps([as_json(of) for of in TABLE.to_pylist()])
    back = read_arrow(deliver({"path": str(lines), "schema": TYPES}, "arrow", "back"))
    back.validate(full=True)
    assert [field.type for field in back.schema] == [field.type for field in SCHEMA]
    assert back.to_pylist() == TABLE.to_pylist()


def test_a_bad_value_deep_inside_is_named(weir, tmp_path):
    good = '{"id": 1, "who": {"name": "n", "home": {"lines": ["x"]}}}\n'
    bad = '{"id": 2, "who": {"name": "n", "home": {"lines": ["x", [5]]}}}\n'
    (tmp_path / "in.ndjson").write_text(good + bad + good)
    source = {"type": "file", "path": "in.ndjson", "schema": TYPES}
    pipeline = {"pipeline": "bad", "sources": {"in": source}, "sinks": {"out": {"type": "file", "path": "./out", "format": "arrow"}}}
    (tmp_path / "p.yaml").write_text(json.dumps(pipeline))
    done = weir("run", tmp_path / "p.yaml")
    assert done.returncode == 6, done.stderr
    assert "line 2, byte " in done.stderr and "column 'who.home.lines[1]' (utf8) has a value of another type" in done.stderr
    assert not list((tmp_path / "out").glob("*"))


def test_csv_refuses_and_says_what_to_use(weir, tmp_path):
    (tmp_path / "in.csv").write_text("id,tags\n1,2\n")
    write_arrow(tmp_path / "in.arrow")
    advice = "format ndjson, arrow or parquet holds nested ones"
    source = {"type": "file", "path": "in.csv", "schema": {"id": "int64", "tags": "list<utf8>"}}
    (tmp_path / "read.yaml").write_text(json.dumps({"pipeline": "p", "sources": {"in": source}, "sinks": {"hole": {"type": "blackhole"}}}))
    done = weir("check", tmp_path / "read.yaml")
    assert done.returncode == 2
    assert f"column 'tags': type list<utf8> cannot be read from CSV; flat types can; {advice}" in done.stderr
    for sink in ({"type": "file", "path": "./out", "format": "csv"}, {"type": "stdout", "format": "csv"}):
        pipeline = {"pipeline": "p", "guarantee": "best_effort", "sources": {"in": {"type": "file", "path": "in.arrow"}}, "sinks": {"out": sink}}
        (tmp_path / "write.yaml").write_text(json.dumps(pipeline))
        done = weir("run", tmp_path / "write.yaml")
        assert done.returncode == 2
        assert f"column 'tags': type list<utf8> cannot be written as CSV; flat types can; {advice}" in done.stderr


def test_stdout_writes_ndjson(weir, tmp_path):
    write_arrow(tmp_path / "in.arrow")
    pipeline = {"pipeline": "p", "guarantee": "best_effort", "sources": {"in": {"type": "file", "path": "in.arrow"}}, "sinks": {"out": {"type": "stdout"}}}
    (tmp_path / "p.yaml").write_text(json.dumps(pipeline))
    done = weir("run", tmp_path / "p.yaml")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line, parse_float=decimal.Decimal) for line in done.stdout.splitlines()]
    assert rows == empty_maps([as_json(of) for of in TABLE.to_pylist()])
