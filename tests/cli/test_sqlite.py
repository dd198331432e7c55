"""Sink sqlite: what it makes of a table, of each type and of what it cannot take."""

import contextlib
import json
import pathlib
import sqlite3
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pipeline(folder, sink, schema, rows, name="out.db"):
    (folder / "in.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "p.yaml").write_text(
        f"pipeline: p\nsources: {{in: {{type: file, path: in.ndjson, schema: {json.dumps(schema)}}}}}\n"
        f"sinks: {{db: {{type: sqlite, path: {name}, table: t, {sink}}}}}\n"
    )


def query(folder, sql):
    with contextlib.closing(sqlite3.connect(folder / "out.db")) as db:
        return db.execute(sql).fetchall()


def execute(folder, sql):
    with contextlib.closing(sqlite3.connect(folder / "out.db")) as db:
        db.executescript(sql)


def refused(weir, folder, status):
    done = weir("run", "p.yaml", cwd=folder)
    assert done.returncode == status, done.stderr
    return done.stderr


def delivered(weir, folder):
    done = weir("run", "p.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr


# type, what stands in the file, declared as, what SQLite gives back
TYPES = [
    ("bool", True, "INTEGER", 1),
    ("int8", -128, "INTEGER", -128),
    ("int64", -(2**63), "INTEGER", -(2**63)),
    ("uint8", 255, "INTEGER", 255),
    ("uint32", 2**32 - 1, "INTEGER", 2**32 - 1),
    ("uint64", 2**63 - 1, "INTEGER", 2**63 - 1),
    ("float32", 0.25, "REAL", 0.25),
    ("float64", -1.5e300, "REAL", -1.5e300),
    ("utf8", "", "TEXT", ""),
    ("large_utf8", "zwölf €", "TEXT", "zwölf €"),
    ("binary", "AAH/", "BLOB", b"\x00\x01\xff"),
    ("binary", "", "BLOB", b""),
    ("date32", "2024-02-29", "TEXT", "2024-02-29"),
    ("timestamp[us, UTC]", "2024-02-29T12:00:00.000001Z", "TEXT", "2024-02-29T12:00:00.000001Z"),
    ("timestamp[ms]", "1969-12-31T23:59:59.999", "TEXT", "1969-12-31T23:59:59.999"),
    ("time64[us]", "23:59:59.5", "TEXT", "23:59:59.500000"),
    ("decimal128(20, 6)", 12345678901234.5, "TEXT", None),
    ("list<int64>", [1, None, 3], "TEXT", "[1,null,3]"),
    ("struct<a: int64, b: utf8>", {"a": 1, "b": 'x"'}, "TEXT", '{"a":1,"b":"x\\""}'),
]


def test_types(weir, tmp_path):
    schema = {f"c{i}": row[0] for i, row in enumerate(TYPES)}
    row = {f"c{i}": t[1] for i, t in enumerate(TYPES)}
    pipeline(tmp_path, "create: true", schema, [row, {}])
    delivered(weir, tmp_path)
    declared = query(tmp_path, "select type from pragma_table_info('t')")
    assert [d[0] for d in declared] == [t[2] for t in TYPES]
    full, empty = query(tmp_path, "select * from t order by c1 is null")
    for (name, _, _, want), got in zip(TYPES, full, strict=True):
        if name.startswith("decimal"):
            assert got.startswith("12345678901234.5") and type(got) is str
        else:
            assert (type(got), got) == (type(want), want), name
    assert set(empty) == {None}
    assert query(tmp_path, "pragma integrity_check") == [("ok",)]


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("utf8", "a\0b", "NUL"),
        ("uint64", 2**63, "9223372036854775807"),
        ("int64 not null", None, "c"),
    ],
)
def test_values_that_have_no_place(weir, tmp_path, kind, value, words):
    pipeline(tmp_path, "create: true", {"c": kind}, [{"c": "x" if kind == "utf8" else 1}, {"c": value}])
    message = refused(weir, tmp_path, 6)
    assert words in message and "c" in message
    assert query(tmp_path, "select count(*) from sqlite_schema where name = 't'") in ([(0,)], [(1,)])
    assert query(tmp_path, "select count(*) from t") == [(0,)]


CONSTRAINTS = {
    "not null": ("create table t(c integer, d integer not null);", {"c": 2, "d": None}, "column 1"),
    "unique": ("create table t(c integer unique, d integer);", {"c": 1, "d": 9}, "UNIQUE"),
    "check": ("create table t(c integer check (c < 5), d integer);", {"c": 7, "d": 9}, "CHECK"),
    "foreign key": (
        "create table p(id integer primary key); insert into p values (1), (3);"
        "create table t(c integer, d integer references p(id));",
        {"c": 7, "d": 9},
        "FOREIGN KEY",
    ),
    "deferred": (
        "create table p(id integer primary key); insert into p values (1), (3);"
        "create table t(c integer, d integer references p(id) deferrable initially deferred);",
        {"c": 7, "d": 9},
        "FOREIGN KEY",
    ),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints_are_found_before_the_decision(weir, tmp_path, name):
    ddl, bad, words = CONSTRAINTS[name]
    execute(tmp_path, ddl)
    good = [{"c": 1, "d": 1}, {"c": 3, "d": 3}]
    pipeline(tmp_path, "create: true", {"c": "int64", "d": "int64"}, [*good, bad])
    message = refused(weir, tmp_path, 6)
    assert (words in message or "NOT NULL" in message) and "sink db" in message
    assert query(tmp_path, "select count(*) from t") == [(0,)]
    pipeline(tmp_path, "create: true", {"c": "int64", "d": "int64"}, good)
    delivered(weir, tmp_path)
    assert query(tmp_path, "select c, d from t order by c") == [(1, 1), (3, 3)]


def test_what_is_missing_is_refused_with_what_makes_it(weir, tmp_path):
    schema = {"id": "int64 not null", 'odd "name"': "utf8"}
    pipeline(tmp_path, "create: false", schema, [{"id": 1, 'odd "name"': "x"}])
    assert "cannot open it" in refused(weir, tmp_path, 1)
    for _ in range(2):
        execute(tmp_path, "pragma user_version = 1")
        message = refused(weir, tmp_path, 2)
        assert "create: true" in message
        execute(tmp_path, message.split("or run: ", 1)[1])
    delivered(weir, tmp_path)
    assert query(tmp_path, "select * from t") == [(1, "x")]


@pytest.mark.parametrize(
    ("ddl", "words"),
    [
        ("create table t(id integer)", "no column 'name'"),
        ("create table t(id text, name text)", "'id'"),
        ("create table t(id integer, name integer)", "expected TEXT"),
        ("create table t(id integer, name text, more text not null)", "'more'"),
        ("create table t(id integer, name text as (id))", "generated"),
    ],
)
def test_a_table_that_does_not_fit(weir, tmp_path, ddl, words):
    execute(tmp_path, ddl)
    pipeline(tmp_path, "create: true", {"id": "int64", "name": "utf8"}, [{"id": 1, "name": "x"}])
    done = weir("run", "p.yaml", cwd=tmp_path)
    assert done.returncode not in (0, 1) and words in done.stderr and "table 't'" in done.stderr, done.stderr


def test_a_table_that_fits_in_its_own_way(weir, tmp_path):
    execute(tmp_path, "create table T(more text default 'd', NAME varchar(3), gen as (id + 1), id bigint)")
    pipeline(tmp_path, "create: true", {"id": "int64", "name": "utf8"}, [{"id": 1, "name": "x"}])
    delivered(weir, tmp_path)
    assert query(tmp_path, "select more, name, gen, id from t") == [("d", "x", 2, 1)]


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        ("mode: upsert", "needs a `key`"),
        ("key: [id]", "has no effect"),
        ("table: weir_x", "are taken"),
        ("table: sqlite_x", "are taken"),
    ],
)
def test_options_that_do_not_go_together(weir, tmp_path, sink, words):
    pipeline(tmp_path, "create: true", {"id": "int64"}, [{"id": 1}])
    text = (tmp_path / "p.yaml").read_text()
    text = text.replace("table: t", sink) if sink.startswith("table") else text.replace("create: true", sink)
    (tmp_path / "p.yaml").write_text(text)
    assert words in refused(weir, tmp_path, 2)


def test_two_sinks_on_one_table(weir, tmp_path):
    pipeline(tmp_path, "create: true", {"id": "int64"}, [{"id": 1}])
    text = (tmp_path / "p.yaml").read_text()
    again = "sinks: {two: {type: sqlite, path: out.db, table: t, create: true}, "
    (tmp_path / "p.yaml").write_text(text.replace("sinks: {", again))
    done = weir("run", "p.yaml", cwd=tmp_path)
    assert done.returncode in (2, 3), done.stderr


def test_two_tables_of_one_file_and_a_writer_beside(weir, tmp_path):
    """Nothing is kept open between the epochs, so neither waits for the other."""
    pipeline(tmp_path, "create: true", {"id": "int64"}, [{"id": i} for i in range(100)])
    text = (tmp_path / "p.yaml").read_text()
    again = "sinks: {two: {type: sqlite, path: out.db, table: u, create: true}, "
    (tmp_path / "p.yaml").write_text(text.replace("sinks: {", again))
    delivered(weir, tmp_path)
    assert query(tmp_path, "select (select count(*) from t), (select count(*) from u)") == [(100, 100)]


def test_a_small_spool(weir, tmp_path):
    """No checkpoint is due for an hour: half of the limit asks for each, and all of it holds the source."""
    (tmp_path / "p.yaml").write_text(
        "pipeline: p\ncheckpoint: {interval: 1h}\nspool_limit: 1MiB\nspool_keep: 0\nqueue_bytes: 64KiB\n"
        "sources: {numbers: {type: generator, rows: 100000}}\n"
        "sinks: {db: {type: sqlite, path: out.db, table: t, create: true, writers: 2}}\n"
    )
    done = weir("run", "p.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epochs"] >= 2
    assert query(tmp_path, "select count(*), count(distinct id) from t") == [(100000, 100000)]
    assert not list(tmp_path.glob("weir-state/p/spool/*/*.spool"))


def test_a_second_state_is_refused(weir, tmp_path):
    pipeline(tmp_path, "create: true", {"id": "int64"}, [{"id": 1}])
    delivered(weir, tmp_path)
    (tmp_path / "weir-state").rename(tmp_path / "elsewhere")
    assert "deployment" in refused(weir, tmp_path, 4)
    assert query(tmp_path, "select count(*) from t") == [(1,)]
    adopted = weir("adopt", "p.yaml", cwd=tmp_path)
    assert adopted.returncode == 0, adopted.stderr
    delivered(weir, tmp_path)
    assert query(tmp_path, "select count(*) from t") == [(1,)]


def test_files_to_sqlite(weir, tmp_path):
    """examples/files-to-sqlite.yaml as it stands."""
    (tmp_path / "p.yaml").write_text((ROOT / "examples/files-to-sqlite.yaml").read_text())
    (tmp_path / "data/orders").mkdir(parents=True)
    for part in range(3):
        rows = [{"id": part * 100 + i, "customer": f"c{i}", "amount": i, "ts": "2024-02-29T12:00:00Z"} for i in range(100)]
        (tmp_path / f"data/orders/{part}.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for _ in range(2):
        done = weir("run", "p.yaml", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    shown = subprocess.run(["sqlite3", "out/orders.db", "select count(*), count(distinct id) from orders"], cwd=tmp_path, capture_output=True, text=True)
    assert shown.stdout == "300|300\n"
