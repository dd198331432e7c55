"""The sink adbc, through the drivers of SQLite, PostgreSQL and DuckDB: what arrives, what is refused and why."""

import contextlib
import os
import pathlib
import re
import sqlite3
import subprocess
import sys

import duckdb
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]
import adbc_drivers as drivers


@pytest.fixture(scope="module")
def server(postgres_server):
    return postgres_server


class Target:
    """A database with a table `t`, and a pipeline of a file into it."""

    def __init__(self, name, folder, weir, server):
        self.name, self.folder, self.run_weir, self.server = name, folder, weir, server
        self.env = {"LD_PRELOAD": drivers.PYTHON} if name == "duckdb" else {}
        if name == "sqlite":
            self.where = drivers.options(drivers.SQLITE, uri=folder / "out.db")
        elif name == "duckdb":
            self.where = drivers.options(drivers.DUCKDB, path=folder / "out.duckdb")
        else:
            server.sql("drop table if exists t, weir_cursor")
            self.where = drivers.options(drivers.POSTGRES, uri=server.uri)

    def run(self, lines, schema, more="create: true", **env):
        (self.folder / "in.ndjson").write_text(lines)
        (self.folder / "p.yaml").write_text(
            f"pipeline: p\nsources: {{s: {{type: file, path: in.ndjson, schema: {{{schema}}}}}}}\n"
            f"sinks: {{db: {{{self.where}, table: t, {more}}}}}\n"
        )
        return self.run_weir("run", "p.yaml", cwd=self.folder, env={**self.env, **env})

    def sql(self, text):
        """Rows as texts."""
        if self.name == "postgres":
            return [line.split("|") for line in self.server.sql(text).splitlines()]
        if self.name == "sqlite":
            with contextlib.closing(sqlite3.connect(self.folder / "out.db", isolation_level=None)) as db:
                rows = db.execute(text).fetchall()
        else:
            with duckdb.connect(str(self.folder / "out.duckdb")) as db:
                rows = db.execute(text).fetchall() if text else []
        return [[str(value) for value in row] for row in rows]


@pytest.fixture(params=["sqlite", "postgres", "duckdb"])
def target(request, tmp_path, weir, server):
    return Target(request.param, tmp_path, weir, server)


@pytest.fixture
def sqlite(tmp_path, weir):
    return Target("sqlite", tmp_path, weir, None)


def types():
    """The rows of docs/adbc.md: {driver: {type: what it is made of, or None}}."""
    rows = re.findall(r"^\| `([^|]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", (ROOT / "docs/adbc.md").read_text(), re.M)
    return {
        name: {row[0]: None if row[i] == "-" else row[i] for row in rows} for i, name in enumerate(("sqlite", "postgres", "duckdb"), 1)
    }


def test_types_that_arrive(target):
    """One column of each: the proof has sent the ends of its range there and back, or the run would be refused."""
    takes = [kind for kind, made in types()[target.name].items() if made]
    assert len(takes) > 15
    done = target.run('{"c0": null}\n', ", ".join(f"c{i}: '{kind}'" for i, kind in enumerate(takes)))
    assert done.returncode == 0, done.stderr
    assert target.sql("select count(*) from t") == [["1"]]


def test_types_that_are_refused(target):
    for kind in [kind for kind, made in types()[target.name].items() if not made]:
        refused = target.run('{"v": null}\n', f"n: int64, v: '{kind}'")
        assert refused.returncode != 0 and "column 'v'" in refused.stderr, f"{kind}: {refused.stderr}"
        if target.name == "postgres":
            target.sql("drop table if exists t")
        else:
            for path in target.folder.glob("out.*"):
                path.unlink()
        subprocess.run(["rm", "-rf", target.folder / "weir-state"], check=True)
        if target.name == "postgres":
            target.sql("drop table if exists weir_cursor")


def test_changes_by_key(target):
    lines = ['{"id": 1, "v": "a", "_op": "U"}', '{"id": 2, "v": "b", "_op": "U"}', '{"id": 1, "v": "c", "_op": "U"}']
    schema, more = "id: int64, v: utf8, _op: utf8", "create: true, mode: upsert, key: [id]"
    assert target.run("\n".join(lines) + "\n", schema, more).returncode == 0
    assert target.sql("select id, v from t order by id") == [["1", "c"], ["2", "b"]]
    lines += ['{"id": 2, "_op": "D"}', '{"id": 3, "v": "d", "_op": "U"}', '{"id": 4, "v": "e", "_op": "U"}', '{"id": 4, "_op": "D"}']
    done = target.run("\n".join(lines) + "\n", schema, more)
    assert done.returncode == 0, done.stderr
    assert target.sql("select id, v from t order by id") == [["1", "c"], ["3", "d"]]


def test_the_table_is_authoritative(sqlite):
    refused = sqlite.run('{"a": 1}\n', "a: int64", "create: false")
    assert refused.returncode != 0 and "CREATE TABLE" in refused.stderr and "create: true" in refused.stderr
    assert sqlite.run('{"a": 1}\n', "a: int64").returncode == 0
    refused = sqlite.run('{"a": 1, "b": 2}\n', "a: int64, b: int64")
    assert refused.returncode != 0 and "column 'b'" in refused.stderr


def test_columns_that_narrow(tmp_path, weir, server):
    """The server takes them and makes something else of them, or does not: either way the column is named."""
    for narrow, kind in (("varchar(3)", "utf8"), ("numeric(5,1)", "'decimal128(10, 2)'"), ("smallint", "int32")):
        target = Target("postgres", tmp_path, weir, server)
        target.sql(f"create table t (n bigint, v {narrow})")
        refused = target.run('{"n": 1}\n', f"n: int64, v: {kind}")
        assert refused.returncode != 0 and "column 'v'" in refused.stderr, refused.stderr
        assert target.sql("select count(*) from t") == [["0"]]
        assert target.sql("select count(*) from pg_class where relname like 'weir_scratch%'") == [["0"]]
        subprocess.run(["rm", "-rf", tmp_path / "weir-state"], check=True)


def test_nan_where_there_is_none(sqlite):
    refused = sqlite.run('{"x": "NaN"}\n', "x: float64")
    assert refused.returncode != 0 and "NaN" in refused.stderr and "column 'x'" in refused.stderr


def test_a_row_that_the_table_refuses(sqlite):
    assert sqlite.run('{"a": 1}\n', "a: int64").returncode == 0
    sqlite.sql("create unique index once on t(a)")
    refused = sqlite.run('{"a": 1}\n{"a": 2}\n{"a": 2}\n', "a: int64")
    assert refused.returncode == 6 and "UNIQUE" in refused.stderr, refused.stderr
    assert sqlite.sql("select count(*) from t") == [["1"]]
    sqlite.sql("drop index once")
    assert sqlite.run('{"a": 1}\n{"a": 2}\n{"a": 2}\n', "a: int64").returncode == 0
    assert sqlite.sql("select count(*) from t") == [["3"]]


@pytest.fixture(scope="module")
def liar(tmp_path_factory):
    path = tmp_path_factory.mktemp("driver") / "libliar.so"
    parties = subprocess.run([ROOT / "tools/third_party.sh", "cc"], check=True, capture_output=True, text=True).stdout.strip()
    source = ROOT / "tests/conform/lying_adbc.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", f"-I{parties}/include", "-o", path, source, "-ldl"], check=True)
    return path


@pytest.mark.parametrize(
    "lie, told",
    [("autocommit", "rolled back"), ("refuses", "autocommit off"), ("hollow", "ConnectionRollback")],
)
def test_a_driver_that_keeps_no_transactions(lie, told, liar, sqlite):
    sqlite.where = drivers.options(liar, uri=sqlite.folder / "out.db")
    refused = sqlite.run('{"a": 1}\n', "a: int64", WEIR_TEST_DRIVER=str(drivers.SQLITE), WEIR_TEST_LIE=lie)
    assert refused.returncode != 0 and told in refused.stderr, refused.stderr
    if lie == "autocommit":
        assert sqlite.sql("select count(*) from t") == [["0"]]
        assert sqlite.sql("select count(*) from sqlite_master where name like 'weir_scratch%'") == [["0"]]


@pytest.mark.parametrize(
    "where, told",
    [
        ("driver: ./none.so", "none.so"),
        ("driver: adbc_driver_of_nobody", "adbc_driver_of_nobody"),
        (f"driver: {sys.executable}", "cannot load"),
        (f"driver: {drivers.SQLITE}, entrypoint: Nothing", "'Nothing'"),
        (f"driver: {drivers.SQLITE}, options: {{nonsense: secret-value}}", "nonsense"),
        (f"driver: {drivers.SQLITE}, options: {{uri: /nowhere/secret-value.db}}", "cannot"),
    ],
)
def test_drivers_that_do_not_start(where, told, sqlite):
    sqlite.where = f"type: adbc, {where}"
    refused = sqlite.run('{"a": 1}\n', "a: int64")
    assert refused.returncode != 0 and told in refused.stderr, refused.stderr
    assert "secret-value" not in refused.stderr + refused.stdout
