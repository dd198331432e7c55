"""The sink postgres: weir killed at each step of its transactions, the server killed, the connection cut on either
side of a COMMIT, owners that were paused. After each the table holds each source row once.
"""

import itertools
import pathlib
import signal
import socket
import sys
import threading

import pytest
from harness import PACE, Case, killed

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import postgres

STEPS = ["txn.open", "txn.read_cursor", "txn.begin", "txn.apply", "postgres.rows_sent", "txn.prepare", "txn.prepared"]
STEPS += ["txn.commit", "txn.committed"]
# Around them, where the decision is.
BESIDE = ["task.write", "spool.write", "spool.synced", "store.decide.before", "store.decide.after"]
NUMBERS = itertools.count()
EXPECTED = """
    select count(*) = {n} and count(distinct id) = {n} and min(id) = 0 and max(id) = {n} - 1
       and count(*) filter (where (name is null) <> (id % 7 = 0)) = 0
       and count(*) filter (where name <> 'name-' || (id * 2654435761 % 1000003)) = 0
       and count(*) filter (where price <> id / 8.0) = 0
       and count(*) filter (where even <> (id % 2 = 0)) = 0
       and count(*) filter (where extract(hour from moment at time zone 'UTC') <> id % 24
                               or extract(microseconds from moment) <> id % 1000000) = 0
    from lake
"""


@pytest.fixture(scope="module")
def server():
    server = postgres.Server()
    try:
        server.make()
        yield server
    finally:
        server.remove()


class SinkCase(Case):
    """A case whose target is a table in a database of its own."""

    def __init__(self, folder, binary, server, **options):
        self.server, self.database = server, f"sink_{next(NUMBERS)}"
        server.sql(f"create database {self.database}")
        self.uri = server.uri.replace("/postgres?", f"/{self.database}?")
        super().__init__(folder, binary, **{"rows": 3600, "batch_rows": 30, **options})

    def configure(self, more="", top=(), **options):
        super().configure(top=top, **options)
        text = self.pipeline.read_text()
        lines = [line for line in text.splitlines() if "lake:" not in line]
        target = f"uri: '{self.uri}', table: public.lake, create: true, writers: 2"
        lines.append(f"  lake: {{type: postgres, {target}{', ' + more if more else ''}}}")
        self.pipeline.write_text("\n".join(lines) + "\n")

    def sql(self, text):
        return self.server.sql(text, self.uri)

    def check(self):
        if self.sql(EXPECTED.format(n=self.rows)) != "t":
            raise AssertionError(f"of {self.rows} rows: " + self.sql("select count(*), count(distinct id), min(id), max(id) from lake"))

    def check_clean(self):
        self.check_goes_on()
        left = [path for path in (self.state).rglob("*") if path.is_file() and "spool" in path.parts]
        assert len(left) < 64, left  # those that are kept for a target that loses its tail


@pytest.fixture
def case(tmp_path, weir_faults_bin, server):
    return SinkCase(tmp_path, weir_faults_bin, server)


@pytest.mark.parametrize("point", STEPS + BESIDE)
def test_kill_at(point, case):
    for nth in (1, 4):
        process = case.run(f"{point}=kill@{nth},{PACE}")
        assert killed(process) or (process.returncode == 0 and nth > 1), process.stderr[-4000:]
        case.grow(300)
    case.finish()
    case.check()
    case.check_clean()


@pytest.mark.parametrize("point", STEPS)
def test_failure_at(point, case):
    """A session that is lost at that step: a new one, the cursor, and the same epoch again from the spool."""
    done = case.run(f"{point}=fail@3,{PACE}")
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-4000:]}"
    case.check()
    case.check_clean()


@pytest.mark.parametrize("point", ["txn.apply", "postgres.rows_sent", "txn.prepared", "store.decide.after", "txn.commit", "txn.committed"])
def test_server_is_killed(point, case):
    """An immediate stop, as in a crash, with weir at that step; it goes on once the server is back."""
    owner = case.stop(f"{point}=stop@3")
    case.server.stop(signal.SIGQUIT)
    case.server.start()
    owner = case.go_on(owner)
    assert owner.returncode == 0, f"exit {owner.returncode}\n{owner.stderr[-4000:]}"
    case.check()
    case.check_clean()


class Proxy:
    """Between weir and the server. The `nth` commit of an epoch is dropped before it reaches the server, or its answer
    is, and all connections are cut. Then it lets everything through."""

    COMMIT = b"; COMMIT\x00"

    def __init__(self, server, nth, answer_lost):
        self.target = str(server.folder / ".s.PGSQL.5432")
        self.left, self.answer_lost = nth, answer_lost
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(self.target)
            pair = [client, upstream, False]
            threading.Thread(target=self.carry, args=(client, upstream, pair, True), daemon=True).start()
            threading.Thread(target=self.carry, args=(upstream, client, pair, False), daemon=True).start()

    def carry(self, source, sink, pair, from_client):
        try:
            while data := source.recv(1 << 20):
                if from_client and self.COMMIT in data:
                    self.left -= 1
                    if self.left == 0:
                        pair[2] = True
                        if not self.answer_lost:
                            break
                if pair[2] and not from_client:
                    break
                sink.sendall(data)
        except OSError:
            pass
        for end in pair[:2]:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize("answer_lost", [False, True])
def test_connection_cut_at_commit(answer_lost, nth, case):
    proxy = Proxy(case.server, nth, answer_lost)
    uri = f"postgresql://postgres@127.0.0.1:{proxy.port}/{case.database}"
    done = case.run(PACE, arguments=["--set", f"sinks.lake.uri={uri}"])
    proxy.listener.close()
    assert proxy.left < 0 and done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-4000:]}"
    case.check()
    case.check_clean()


# ---- owners that were paused -------------------------------------------------------------------------


class StandbyCase(SinkCase):
    """With the store on the server too, and a spool for every owner: another may take over while the first is stopped."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        text = self.pipeline.read_text().replace("state: ./state", f"state: ./state\nstore: '{self.uri}'\nstore_lease: 60s\nspool: ./spool")
        self.pipeline.write_text(text)

    def expire(self):
        self.sql("update weir.lease set expires = '-infinity'")


@pytest.mark.parametrize(
    "point", ["txn.open", "txn.apply", "postgres.rows_sent", "txn.prepared", "store.decide.before", "store.decide.after", "txn.commit", "txn.committed"]
)
def test_paused_owner(point, tmp_path, weir_faults_bin, server):
    """It wakes up when its successor has delivered all, and adds nothing."""
    case = StandbyCase(tmp_path, weir_faults_bin, server)
    zombie = case.stop(f"{point}=stop@{1 if point == 'txn.open' else 3}")
    case.expire()
    second = case.run()
    assert second.returncode == 0, second.stderr
    case.check()
    zombie = case.go_on(zombie)
    # An epoch that the other one has published with the same bytes is delivered for the zombie too.
    assert zombie.returncode == 4 or (zombie.returncode in (0, 5) and point in ("store.decide.after", "txn.commit", "txn.committed")), (
        f"exit {zombie.returncode}\n{zombie.stderr[-4000:]}"
    )
    case.check()
    case.expire()
    case.check_goes_on()
