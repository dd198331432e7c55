"""The sink postgres as people meet it: how it connects, and what it says of what cannot go in. After each refusal
nothing of it is in the table, and once the cause is gone the same command completes.
"""

import json
import pathlib
import sys
import urllib.parse

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import postgres

ROWS = [{"id": i, "v": i % 7} for i in range(20)]


class Target:
    """A pipeline of one file into table t, of a database of its own."""

    number = 0

    def __init__(self, weir, server, folder):
        Target.number += 1
        self.weir, self.server, self.folder = weir, server, folder
        self.database = f"cli_{Target.number}"
        server.sql(f"create database {self.database}")
        self.uri = server.uri.replace("/postgres?", f"/{self.database}?")

    def sql(self, text):
        return self.server.sql(text, self.uri)

    def run(self, rows=ROWS, schema="{id: int64, v: int64}", uri=None, more="", env=None, **options):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        if not (self.folder / "in.ndjson").exists():  # else the file that a run has read would be another one
            (self.folder / "in.ndjson").write_text(text)
        (self.folder / "p.yaml").write_text(
            f"pipeline: cli\ncheckpoint: {{interval: 50ms, timeout: 5s}}\n"
            f"sources:\n  in: {{type: file, path: in.ndjson, schema: {schema}, batch_rows: 5}}\n"
            f"sinks:\n  warehouse: {{type: postgres, uri: '{uri or self.uri}', table: public.t, create: true{more}}}\n"
        )
        return self.weir("run", self.folder / "p.yaml", env=env, **options)

    def count(self):
        return int(self.sql("select count(*) from t"))

    def completes(self, rows=ROWS, **options):
        done = self.run(rows, **options)
        assert done.returncode == 0, done.stderr
        assert self.count() == len(rows) and self.sql("select count(distinct id) from t") == str(len(rows))


@pytest.fixture
def target(weir, postgres_server, tmp_path):
    return Target(weir, postgres_server, tmp_path)


# ---- connecting ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls():
    server = postgres.Server()
    try:
        server.make(start=False)
        server.port = server.speak_tls()
        server.start()
        server.add_role()
        yield server
    finally:
        server.remove()


@pytest.fixture
def remote(weir, tls, tmp_path):
    """A target whose server is reached by a name, which a hostaddr stands in for."""
    made = Target(weir, tls, tmp_path)
    made.authority = tls.folder / "ca.crt"

    def uri(host="db.example", user="postgres", **options):
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgresql://{user}@{host}:{tls.port}/{made.database}?hostaddr=127.0.0.1{more}"

    made.remote = uri
    return made


def nothing_made(target):
    return target.sql("select to_regclass('t') is null and to_regclass('weir_cursor') is null") == "t"


def test_a_verified_server(remote):
    remote.completes(uri=remote.remote(sslmode="verify-full", sslrootcert=remote.authority))


@pytest.mark.parametrize("mode", [{"sslmode": "verify-full"}, {}])
def test_a_server_of_another_name(remote, mode):
    done = remote.run(uri=remote.remote("other.example", sslrootcert=remote.authority, **mode))
    assert done.returncode == 1 and "does not match host name" in done.stderr and "sink warehouse" in done.stderr
    assert nothing_made(remote)
    remote.completes(uri=remote.remote(sslrootcert=remote.authority, **mode))


@pytest.mark.parametrize("named", ["uri", "service", "environment"])
def test_a_server_must_prove_its_name_by_default(remote, tmp_path, named):
    """libpq alone would take any certificate. A service and the environment count as the URI does."""
    env = {"HOME": str(tmp_path)}  # no ~/.postgresql/root.crt
    host, port = "db.example", str(remote.server.port)
    service = f"[wh]\nhost={host}\nhostaddr=127.0.0.1\nport={port}\nuser=postgres\ndbname={remote.database}\n"
    (tmp_path / "services").write_text(service)
    if named == "service":
        env["PGSERVICEFILE"], uri = str(tmp_path / "services"), "service=wh"
    elif named == "environment":
        env.update(PGHOST=host, PGHOSTADDR="127.0.0.1", PGPORT=port)
        uri = f"user=postgres dbname={remote.database}"
    else:
        uri = remote.remote()
    done = remote.run(uri=uri, env=env)
    assert done.returncode == 1 and "verify-full" in done.stderr and "sslrootcert" in done.stderr
    assert nothing_made(remote)
    if named == "service":  # what it says counts
        (tmp_path / "services").write_text(service + "sslmode=require\n")
        remote.completes(uri=uri, env=env)
    elif named == "environment":
        remote.completes(uri=uri, env={**env, "PGSSLROOTCERT": str(remote.authority)})
    else:
        remote.completes(uri=remote.remote(sslmode="require"), env=env)


def test_this_machine_needs_no_proof(remote):
    """As with a Unix socket: what does not leave the machine."""
    remote.completes(uri=f"postgresql://postgres@localhost:{remote.server.port}/{remote.database}?hostaddr=127.0.0.1")


@pytest.mark.parametrize("named", ["uri", "service", "environment"])
def test_the_store_follows_the_same_rule(remote, tmp_path, named):
    """What is decided must not be told to whoever answers in the server's place."""
    env = {"HOME": str(tmp_path)}  # no ~/.postgresql/root.crt
    host, port = "db.example", str(remote.server.port)
    service = f"[wh]\nhost={host}\nhostaddr=127.0.0.1\nport={port}\nuser=postgres\ndbname={remote.database}\n"
    (tmp_path / "services").write_text(service)
    (tmp_path / "in.ndjson").write_text("".join(json.dumps(row) + "\n" for row in ROWS))

    def run(uri):
        (tmp_path / "p.yaml").write_text(
            f"pipeline: cli\nstore: '{uri}'\n"
            "sources:\n  in: {type: file, path: in.ndjson, schema: {id: int64, v: int64}}\n"
            "sinks:\n  lake: {type: file, path: lake, format: ndjson, shared: true}\n"
        )
        return remote.weir("run", tmp_path / "p.yaml", env=env)

    if named == "service":
        env["PGSERVICEFILE"], uri = str(tmp_path / "services"), "postgresql://?service=wh"
    elif named == "environment":
        env.update(PGHOST=host, PGHOSTADDR="127.0.0.1", PGPORT=port)
        uri = f"postgresql:///{remote.database}?user=postgres"
    else:
        uri = remote.remote()
    done = run(uri)
    assert done.returncode == 1 and "checkpoint store" in done.stderr, done.stderr
    assert "verify-full" in done.stderr and "sslrootcert" in done.stderr
    assert remote.sql("select to_regclass('weir.lease') is null") == "t"
    if named == "service":
        (tmp_path / "services").write_text(service + "sslmode=require\n")
    elif named == "environment":
        env["PGSSLROOTCERT"] = str(remote.authority)
    else:
        done = run(remote.remote("other.example", sslrootcert=remote.authority))
        assert done.returncode == 1 and "does not match host name" in done.stderr
        uri = remote.remote(sslrootcert=remote.authority)
    done = run(uri)
    assert done.returncode == 0, done.stderr
    assert remote.sql("select count(*) > 0 from weir.lease") == "t"


def test_service_and_passfile(remote, tmp_path):
    """Role `locked` has a password with what is special in URIs and password files."""
    remote.sql("grant all on schema public to locked")
    (tmp_path / "services").write_text(f"[wh]\nhost=db.example\nhostaddr=127.0.0.1\nport={remote.server.port}\nsslrootcert={remote.authority}\n")
    passfile = tmp_path / "passes"
    uri, env = f"service=wh user=locked dbname={remote.database} passfile={passfile}", {"PGSERVICEFILE": str(tmp_path / "services")}
    passfile.write_text("*:*:*:locked:wrong-word\n")
    passfile.chmod(0o600)
    done = remote.run(uri=uri, env=env)
    assert done.returncode == 1 and "password authentication failed" in done.stderr and "sink warehouse" in done.stderr
    assert "wrong-word" not in done.stderr + done.stdout and nothing_made(remote)
    passfile.write_text(f"*:*:*:locked:{postgres.PASSWORD}\n")
    remote.completes(uri=uri, env=env)


def test_a_wrong_password(remote):
    remote.sql("grant all on schema public to locked")
    uri = remote.remote(user="locked:not-this-one", sslrootcert=remote.authority)
    done = remote.run(uri=uri)
    assert done.returncode == 1 and "password authentication failed" in done.stderr and "sink warehouse" in done.stderr
    assert "sslrootcert" not in done.stderr  # the name was proven
    assert "not-this-one" not in done.stderr + done.stdout and nothing_made(remote)
    kept = b"".join(path.read_bytes() for path in remote.folder.rglob("*") if path.is_file() and path.name != "p.yaml")
    assert b"not-this-one" not in kept
    secret = remote.folder / "uri"
    secret.write_text(remote.remote(user=f"locked:{urllib.parse.quote(postgres.PASSWORD)}", sslrootcert=remote.authority))
    remote.completes(uri=f"file:{secret}")


# ---- rows that cannot go in -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ddl, rows, schema, message, mend",
    [
        # what write_batch finds names row and column of its batch, which is of 5 rows
        ("id int8, v text", [{"id": i, "v": "a\0" if i == 13 else "b"} for i in range(20)], "{id: int64, v: utf8}", "row 3 of a batch of 5: sink warehouse: column 'v' ", None),
        ("id int8, v int8 not null", [{"id": i, "v": None if i == 13 else 1} for i in range(20)], "{id: int64, v: int64}", "row 3 of a batch of 5: sink warehouse: column 'v' is null", "alter table t alter v drop not null"),
        # what the server finds
        ("id int8, v int8, g int2 generated always as (v * 1000) stored", [{"id": i, "v": 50 if i == 13 else 1} for i in range(20)], "{id: int64, v: int64}", "smallint out of range", "alter table t alter g drop expression"),
        ("id int8, v int8 unique", [{"id": i, "v": min(i, 12)} for i in range(20)], "{id: int64, v: int64}", "Key (v)=(12) already exists", "alter table t drop constraint t_v_key"),
        ("id int8, v int8 unique deferrable initially deferred", [{"id": i, "v": min(i, 12)} for i in range(20)], "{id: int64, v: int64}", "Key (v)=(12) already exists", "alter table t drop constraint t_v_key"),
        ("id int8, v int8 references parent", [{"id": i, "v": i % 7} for i in range(20)], "{id: int64, v: int64}", "Key (v)=(3) is not present in table", "insert into parent values (3), (4), (5), (6)"),
        ("id int8, v int8 references parent deferrable initially deferred", [{"id": i, "v": i % 7} for i in range(20)], "{id: int64, v: int64}", "Key (v)=(3) is not present in table", "insert into parent values (3), (4), (5), (6)"),
        ("id int8, v int8, check (v < 5)", ROWS, "{id: int64, v: int64}", "violates check constraint", "alter table t drop constraint t_v_check"),
    ],
)
def test_bad_rows(target, ddl, rows, schema, message, mend):
    target.sql(f"create table parent (v int8 primary key); insert into parent values (0), (1), (2); create table t ({ddl})")
    done = target.run(rows, schema)
    assert done.returncode == 6 and message in done.stderr and "warehouse" in done.stderr, done.stderr
    before = target.count()
    assert before < 20 and before == int(target.sql("select coalesce(max(id) + 1, 0) from t"))  # whole epochs
    if not mend:
        return
    target.sql(mend)
    target.completes(rows, schema=schema)


@pytest.mark.parametrize(
    "ddl, schema, message",
    [
        ("id int8, v numeric(4, 2)", "{id: int64, v: float64}", "column 'v': float64 cannot go into type numeric(4,2)"),
        ("id int8, v numeric(3, 0)", "{id: int64, v: int64}", "column 'v': int64 cannot go into type numeric(3,0)"),
        ("id int8, v int4", "{id: int64, v: int64}", "column 'v': int64 cannot go into type integer"),
        ("id int8, w int8", "{id: int64, v: int64}", "column 'v': table public.t has no such column"),
        ("id int8, v int8, w int8 not null", "{id: int64, v: int64}", "column 'w' of table public.t must not be null"),
    ],
)
def test_a_table_that_cannot_hold_all_values(target, ddl, schema, message):
    """Overflow and infinity are refused by type, before a row is read; a wider column takes them."""
    target.sql(f"create table t ({ddl})")
    done = target.run(schema=schema)
    assert done.returncode == 2 and message in done.stderr and "warehouse" in done.stderr, done.stderr
    assert target.count() == 0 and target.sql("select to_regclass('weir_cursor') is null") == "t"
    target.sql("drop table t; create table t (id int8, v numeric)")
    target.completes(schema=schema.replace('float64', 'int64'))


# ---- servers that take nothing ----------------------------------------------------------------------------------


@pytest.fixture
def lone(weir, tmp_path):
    """A server of the test's own, which it may bend."""
    server = postgres.Server()
    try:
        server.make()
        yield Target(weir, server, tmp_path)
    finally:
        server.remove()


def test_a_read_only_standby(lone):
    signal_file = lone.server.data / "standby.signal"
    lone.server.stop()
    signal_file.touch()
    lone.server.start()
    done = lone.run()
    assert done.returncode == 1 and "warehouse" in done.stderr, done.stderr
    assert "hot standby" in done.stderr or "read-only" in done.stderr
    lone.server.stop()
    signal_file.unlink()
    lone.server.start()
    lone.completes()


def test_read_only_transactions(target):
    target.sql(f"alter database {target.database} set default_transaction_read_only = on")
    done = target.run()
    assert done.returncode == 1 and "read-only" in done.stderr and "warehouse" in done.stderr, done.stderr
    uri = target.server.uri
    target.server.sql(f"alter database {target.database} set default_transaction_read_only = off", uri)
    target.completes()
