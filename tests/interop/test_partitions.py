"""`partition_by` of the file sink: folders as Hive has them, read by DuckDB, pyarrow and Polars with equal values."""

import datetime
import json
import os
import random
import resource
import subprocess

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

NULL = "__HIVE_DEFAULT_PARTITION__"
UTC = datetime.timezone.utc


def run(folder, binary, table, by, more="", chunk=None, **options):
    """Delivers the table's rows, which come in batches of `chunk`."""
    with pa.ipc.new_file(folder / "in.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=chunk)
    text = "pipeline: parts\ncheckpoint: {interval: 1s}\n"
    text += "sources: {rows: {type: file, path: in.arrow}}\n"
    text += f"sinks: {{lake: {{type: file, path: ./lake, partition_by: {json.dumps(by)}{more}}}}}\n"
    (folder / "p.yaml").write_text(text)
    return subprocess.run([binary, "run", folder / "p.yaml", "--json"], capture_output=True, text=True, timeout=120, **options)


def deliver(*arguments, **options):
    done = run(*arguments, **options)
    assert done.returncode == 0, done.stderr


def readers(folder, fields, kinds, frames):
    """(name, rows as dicts) of each reader, given the types of the columns in the folders' names."""
    lake = folder / "lake"
    schema = pa.schema(fields)
    dataset = pyarrow.dataset.dataset(lake, partitioning=pyarrow.dataset.partitioning(schema, flavor="hive"))
    yield "pyarrow", dataset.to_table().to_pylist()
    types = ", ".join(f"'{name}': {kind}" for (name, _), kind in zip(fields, kinds))
    with duckdb.connect() as db:
        db.execute("set timezone = 'UTC'")
        query = f"from read_parquet('{lake}/**/*.parquet', hive_partitioning = true, hive_types = {{{types}}})"
        yield "DuckDB", db.sql(query).to_arrow_table().to_pylist()
    hive = {name: frame for (name, _), frame in zip(fields, frames)}
    yield "Polars", polars.scan_parquet(lake, hive_partitioning=True, hive_schema=hive).collect().to_dicts()


def same(folder, table, fields, kinds, frames):
    want = sorted(table.to_pylist(), key=lambda row: row["id"])
    for name, got in readers(folder, fields, kinds, frames):
        got = [{key: row[key] for key in table.schema.names} for row in got]
        assert sorted(got, key=lambda row: row["id"]) == want, name


TEXTS = ["", "a", "a b", "a/b", "/", "x=y", "50%", "%2F", "c:d", "tab\there", "nl\r\nx", "é ü", "日本", "\U0001f600", "+plus"]
TEXTS += ["a&b?c#d", "q'\"q", "~t,;", "\x7f\x01\x00", ".", "..", "../..", "...", "*", "[a]", "{a}", "\\", "a\u0301", "\u2028", None]
TEXTS += [NULL.lower(), "_", "v" * 250, "/" * 80, "é" * 125]


@pytest.mark.parametrize("kind", ["utf8", "large_utf8", "view", "dictionary", "dictionary of views"])
def test_texts(kind, tmp_path, weir_bin):
    kinds = {"utf8": pa.string(), "large_utf8": pa.large_string(), "view": pa.string_view()}
    values = TEXTS * 3
    random.Random(1).shuffle(values)
    if kind in kinds:
        column = pa.array(values, kinds[kind])
    else:
        column = pa.array(values).dictionary_encode()
        if kind.endswith("views"):
            column = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.string_view()))
    table = pa.table({"id": range(len(values)), "k": column, "more": [f"row {i}" for i in range(len(values))]})
    deliver(tmp_path, weir_bin, table, ["k"])
    same(tmp_path, table, [("k", pa.string())], ["VARCHAR"], [polars.String])
    # As they are inferred, too: no text here looks like a number or a date.
    inferred = polars.read_parquet(tmp_path / "lake", hive_partitioning=True).sort("id")["k"].to_list()
    assert inferred == values
    folders = {path.name for path in (tmp_path / "lake").iterdir()}
    assert len(folders) == len(TEXTS)
    assert {"k=", "k=é%20ü", "k=..", "k=a%2Fb", f"k={NULL}", "k=%7F%01%00"} <= folders


def stamp(*parts, utc=False):
    return datetime.datetime(*parts, tzinfo=UTC if utc else None)


DAY = datetime.date
TYPES = {
    "int8": (pa.int8(), [-128, 0, 127, None], "TINYINT", polars.Int8),
    "int16": (pa.int16(), [-32768, 32767], "SMALLINT", polars.Int16),
    "int32": (pa.int32(), [-(2**31), 2**31 - 1], "INTEGER", polars.Int32),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1, 0, None], "BIGINT", polars.Int64),
    "uint8": (pa.uint8(), [0, 255], "UTINYINT", polars.UInt8),
    "uint16": (pa.uint16(), [0, 65535], "USMALLINT", polars.UInt16),
    "uint32": (pa.uint32(), [0, 2**32 - 1], "UINTEGER", polars.UInt32),
    "uint64": (pa.uint64(), [0, 2**64 - 1], "UBIGINT", polars.UInt64),
    "bool": (pa.bool_(), [True, False, None], "BOOLEAN", polars.Boolean),
    "date32": (pa.date32(), [DAY(1, 1, 1), DAY(1969, 12, 31), DAY(2024, 2, 29), DAY(9999, 12, 31), None], "DATE", polars.Date),
    "seconds": (pa.timestamp("s"), [stamp(1, 1, 1), stamp(1969, 12, 31, 23, 59, 59), stamp(9999, 12, 31)], "TIMESTAMP_S", polars.Datetime("us")),
    "milliseconds": (pa.timestamp("ms"), [stamp(1900, 1, 1, 0, 0, 0, 1000), stamp(2024, 2, 29, 12)], "TIMESTAMP_MS", polars.Datetime("ms")),
    "microseconds": (pa.timestamp("us"), [stamp(1969, 12, 31, 23, 59, 59, 999999), stamp(2024, 2, 29), None], "TIMESTAMP", polars.Datetime("us")),
    "zone": (pa.timestamp("us", "UTC"), [stamp(1969, 12, 31, 23, 59, 59, 999999, utc=True), stamp(2024, 2, 29, utc=True)], "TIMESTAMPTZ", polars.Datetime("us", "UTC")),
    "other zone": (pa.timestamp("ms", "Europe/Berlin"), [stamp(1950, 1, 1, utc=True), stamp(2024, 7, 1, utc=True)], "TIMESTAMPTZ", polars.Datetime("ms", "Europe/Berlin")),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("dictionary", [False, True])
def test_types(name, dictionary, tmp_path, weir_bin):
    kind, values, duck, frame = TYPES[name]
    column = pa.array(values * 3, kind)
    table = pa.table({"id": range(len(column)), "k": column.dictionary_encode() if dictionary else column})
    deliver(tmp_path, weir_bin, table, ["k"])
    same(tmp_path, table, [("k", kind)], [duck], [frame])
    assert len(list((tmp_path / "lake").iterdir())) == len(values)


def test_dates_and_integers_need_no_types(tmp_path, weir_bin):
    table = pa.table({"id": range(4), "d": [DAY(2024, 1, 1), None] * 2, "n": [7, 7, -1, None]})
    deliver(tmp_path, weir_bin, table, ["d", "n"])
    with duckdb.connect() as db:
        got = db.sql(f"select * from read_parquet('{tmp_path}/lake/**/*.parquet', hive_partitioning = true) order by id")
        assert [str(t) for t in got.types] == ["BIGINT", "DATE", "BIGINT"]
        assert got.fetchall() == [tuple(row.values()) for row in table.to_pylist()]
    got = polars.read_parquet(tmp_path / "lake", hive_partitioning=True).sort("id")
    assert got.rows() == [tuple(row.values()) for row in table.to_pylist()]


def wide(rows):
    rng = random.Random(rows)
    return pa.table(
        {
            "first": pa.array([rng.choice(["a", "b/c", None]) for _ in range(rows)]),
            "id": range(rows),
            "l": pa.array([[rng.randrange(9)] * rng.randrange(3) for _ in range(rows)], pa.list_(pa.int8())),
            "s": pa.array([{"x": i, "y": None if i % 3 else str(i)} for i in range(rows)]),
            "d": pa.array([rng.choice(["u", "v", None]) for _ in range(rows)]).dictionary_encode(),
            "n": pa.array([rng.choice([1, 2, 3, None]) for _ in range(rows)], pa.int16()),
            "day": pa.array([rng.choice([DAY(2024, 1, 1), DAY(1960, 1, 1)]) for _ in range(rows)]),
        }
    )


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize("writers", [1, 3])
def test_several_columns(chunk, writers, tmp_path, weir_bin):
    table = wide(40 if chunk == 1 else 600)
    deliver(tmp_path, weir_bin, table, ["day", "first", "n"], f", writers: {writers}, roll: {{rows: 9}}", chunk)
    fields = [("day", pa.date32()), ("first", pa.string()), ("n", pa.int16())]
    same(tmp_path, table, fields, ["DATE", "VARCHAR", "SMALLINT"], [polars.Date, polars.String, polars.Int16])
    for path in (tmp_path / "lake").rglob("*.parquet"):
        data = pa.parquet.read_table(path, partitioning=None)
        assert data.schema.names == ["id", "l", "s", "d"] and data.num_rows <= 9
    names = [path.name for path in (tmp_path / "lake").rglob("*.parquet")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("format", ["arrow", "ndjson", "csv"])
def test_other_formats(format, tmp_path, weir_bin):
    table = wide(300).drop(["l", "s"]) if format == "csv" else wide(300)
    deliver(tmp_path, weir_bin, table, ["first", "n"], f", format: {format}", 64)
    lake = tmp_path / "lake"
    rows = {}
    for path in lake.rglob(f"*.{format}"):
        if format == "arrow":
            found = pa.ipc.open_file(path).read_all()["id"].to_pylist()
        elif format == "csv":
            found = polars.read_csv(path)["id"].to_list()
        else:
            found = [json.loads(line)["id"] for line in path.read_text().splitlines()]
        rows |= dict.fromkeys(found, path.parent.relative_to(lake).as_posix())
    names = {None: NULL, "b/c": "b%2Fc"}
    want = zip(table["id"].to_pylist(), table["first"].to_pylist(), table["n"].to_pylist())
    assert rows == {i: f"first={names.get(first, first)}/n={names.get(n, n)}" for i, first, n in want}


BAD = {
    "what stands for null": (pa.array(["a", None, NULL]), "the text is what stands for null"),
    "too long": (pa.array(["a", "b", "v" * 254]), "too long for a folder's name"),
    "too long encoded": (pa.array(["a", "b", "/" * 85]), "too long for a folder's name"),
    "no UTF-8": (pa.array(["a", "b", "c"]), "the text is not UTF-8"),
    "year 0": (pa.array([0, 1, -719163], pa.int32()).cast(pa.date32()), "the year is not within 1 to 9999"),
    "year 10000": (pa.array([0, 1, 253402300800], pa.timestamp("s")), "the year is not within 1 to 9999"),
    "in a dictionary": (pa.array(["a", "b", NULL]).dictionary_encode(), "the text is what stands for null"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_values(name, tmp_path, weir_bin):
    """What would be read as something else names row and column, and nothing of its epoch is published."""
    column, text = BAD[name]
    table = pa.table({"id": range(3), "k": column})
    if name == "no UTF-8":
        raw = pa.array([b"a", b"b", b"\xff"])
        table = pa.table({"id": range(3), "k": pa.Array.from_buffers(pa.string(), 3, raw.buffers())})
    done = run(tmp_path, weir_bin, table, ["k"])
    assert done.returncode == 6, done.stderr
    assert "row 2 of a batch of 3: sink lake: column 'k', which names the folder (partition_by): " in done.stderr
    assert text in done.stderr
    assert not list((tmp_path / "lake").iterdir())


def test_too_long_together(tmp_path, weir_bin):
    columns = {f"c{i}": ["v" * 250] for i in range(9)}
    done = run(tmp_path, weir_bin, pa.table({"id": [1], **columns}), list(columns))
    assert done.returncode == 6 and "row 0 of a batch of 1: sink lake: column 'c8'" in done.stderr, done.stderr
    assert "the values together are too long" in done.stderr


REFUSED = {
    "float": ({"id": [1], "k": [1.5]}, ["k"], "column 'k' is float64; expected integers, bool, date32, utf8"),
    "decimal": ({"id": [1], "k": pa.array([1]).cast(pa.decimal128(30, 2))}, ["k"], "column 'k' is decimal128(30, 2)"),
    "ns": ({"id": [1], "k": pa.array([1], pa.timestamp("ns"))}, ["k"], "column 'k' is timestamp[ns]"),
    "time": ({"id": [1], "k": pa.array([1], pa.time32("s"))}, ["k"], "column 'k' is time32[s]"),
    "binary": ({"id": [1], "k": [b"x"]}, ["k"], "column 'k' is binary"),
    "list": ({"id": [1], "k": [[1]]}, ["k"], "column 'k' is list<"),
    "null": ({"id": [1], "k": pa.nulls(1)}, ["k"], "column 'k' is null"),
    "absent": ({"id": [1], "k": [1]}, ["day"], "names column 'day', which is not there; there are: id, k"),
    "all": ({"id": [1], "k": [1]}, ["k", "id"], "names every column; at least one must be left"),
    "twice": ({"id": [1], "k": [1]}, ["k", "k"], "names column 'k' twice"),
    "slash": ({"id": [1], "a/b": [1]}, ["a/b"], "column 'a/b' cannot be part of a folder's name"),
    "percent": ({"id": [1], "a%": [1]}, ["a%"], "column 'a%' cannot be part"),
    "equals": ({"id": [1], "a=b": [1]}, ["a=b"], "column 'a=b' cannot be part"),
    "dots": ({"id": [1], "..": [1]}, [".."], "column '..' cannot be part"),
    "hidden": ({"id": [1], "_k": [1]}, ["_k"], "column '_k' cannot be part"),
    "case": ({"id": [1], "K": [1], "k": [2]}, ["k"], "column 'k' and column 'K' are one name"),
    "many": ({"id": [1], **{f"c{i}": [1] for i in range(17)}}, [f"c{i}" for i in range(17)], "at most 16 are allowed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_at_the_start(name, tmp_path, weir_bin):
    columns, by, text = REFUSED[name]
    done = run(tmp_path, weir_bin, pa.table(columns), by)
    assert done.returncode == 2 and text in done.stderr, f"exit {done.returncode}: {done.stderr}"
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("name", ["a b", "é", "日本", "a.b", "a-b", "A"])
def test_names_of_columns(name, tmp_path, weir_bin):
    table = pa.table({"id": [0, 1], name: ["x", None]})
    deliver(tmp_path, weir_bin, table, [name])
    same(tmp_path, table, [(name, pa.string())], ["VARCHAR"], [polars.String])


def test_another_layout_is_refused(tmp_path, weir_bin):
    table = pa.table({"id": [0, 1], "k": ["x", None], "l": [1, 2]})
    deliver(tmp_path, weir_bin, table, ["k"])
    for by in (["l"], ["k", "l"], []):
        done = run(tmp_path, weir_bin, table, by)
        assert done.returncode == 4 and "target partition_by" in done.stderr, done.stderr


def test_more_folders_than_files_may_be_open(tmp_path, weir_bin):
    """The least recently used are finished, others begun: 3,000 folders, 200 descriptors, each folder met twice."""
    n = 3000
    table = pa.table({"id": range(2 * n), "k": [i % n for i in range(2 * n)]})
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))  # noqa: E731
    deliver(tmp_path, weir_bin, table, ["k"], ", format: ndjson", n, preexec_fn=limit)
    found = {}
    for folder in os.scandir(tmp_path / "lake"):
        lines = [line for path in os.scandir(folder) for line in open(path)]
        found[folder.name] = sorted(json.loads(line)["id"] for line in lines)
    assert found == {f"k={i}": [i, i + n] for i in range(n)}
