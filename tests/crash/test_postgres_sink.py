"""The sink postgres: weir killed at each step of its transactions, the server killed, the connection cut on either
side of a COMMIT, owners that were paused. After each the table holds each source row once.
"""

import itertools
import signal
import socket
import threading
import time

import pytest
from harness import PACE, Case, killed, wait_until
from postgres_schedules import run_schedule

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
def server(postgres_server):
    return postgres_server


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

    def has_rows(self):
        return self.sql("select to_regclass('lake') is not null") == "t" and self.sql("select count(*) > 0 from lake") == "t"

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
    """Between weir and the server. What befalls the `nth` commit of an epoch, and with it its connection:

    dropped      it never reaches the server
    answer lost  the server commits, and nobody hears of it
    late         weir hears that the connection is gone, and then the server gets the commit
    silent       nothing comes through any more; much later the server hears that its client is gone

    Then it lets everything through. `turns` counts, of each connection, how often an answer was waited for from
    `prepare` to the end of a commit.
    """

    PREPARE, COMMIT = b"SET CONSTRAINTS ALL IMMEDIATE\x00", b"; COMMIT\x00"

    def __init__(self, server, nth=0, how="dropped"):
        self.target = str(server.folder / ".s.PGSQL.5432")
        self.left, self.how, self.turns = nth, how, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def uri(self, case):
        return f"postgresql://postgres@127.0.0.1:{self.port}/{case.database}"

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(self.target)
            pair = {"client": client, "upstream": upstream, "cut": False, "asked": None, "turns": 0}
            threading.Thread(target=self.carry, args=(client, upstream, pair, True), daemon=True).start()
            threading.Thread(target=self.carry, args=(upstream, client, pair, False), daemon=True).start()

    def count(self, data, pair, from_client):
        if from_client and self.PREPARE in data:
            pair["asked"], pair["turns"] = False, 0
        if pair["asked"] is None or pair["asked"] == from_client:
            return
        pair["asked"] = from_client
        pair["turns"] += from_client
        if from_client and self.COMMIT in data:
            self.turns.append(pair["turns"])
            pair["asked"] = None

    def befall(self, data, pair):
        """Of a commit that comes from the client: whether the connection ends with it."""
        pair["cut"] = True
        if self.how == "late":
            self.end(pair["client"])
            time.sleep(0.7)
        if self.how == "silent":
            time.sleep(1.5)
        if self.how in ("answer lost", "late"):
            pair["upstream"].sendall(data)
        if self.how == "late":
            time.sleep(0.3)  # that the server has read it before it hears of the end
        return self.how != "answer lost"

    @staticmethod
    def end(one):
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def carry(self, source, sink, pair, from_client):
        try:
            while data := source.recv(1 << 20):
                self.count(data, pair, from_client)
                if from_client and self.COMMIT in data:
                    self.left -= 1
                    if self.left == 0:
                        if self.befall(data, pair):
                            break
                        continue
                if pair["cut"] and not from_client:
                    break
                sink.sendall(data)
        except OSError:
            pass
        if pair["cut"] and self.how == "late" and not from_client:
            return  # the other direction is not done with it
        self.end(pair["client"])
        self.end(pair["upstream"])


@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize("how", ["dropped", "answer lost", "late", "silent"])
def test_connection_cut_at_commit(how, nth, case):
    proxy = Proxy(case.server, nth, how)
    settings = ["--set", f"sinks.lake.uri={proxy.uri(case)}"]
    if how == "silent":
        settings += ["--set", "checkpoint.timeout=1s"]
    done = case.run(PACE, arguments=settings)
    proxy.listener.close()
    assert proxy.left < 0 and done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-4000:]}"
    case.check()
    case.check_clean()


def test_two_answers_are_waited_for(case):
    """From a whole epoch to the end of its commit: one for what prepares it, one for the cursor and COMMIT."""
    proxy = Proxy(case.server)
    done = case.run(PACE, arguments=["--set", f"sinks.lake.uri={proxy.uri(case)}"])
    proxy.listener.close()
    assert done.returncode == 0 and len(proxy.turns) > 3 and set(proxy.turns) == {2}, (proxy.turns, done.stderr[-2000:])
    case.check()


def test_a_server_that_is_away(case):
    """For longer than five checkpoint timeouts: the run waits for it."""
    process = case.start(PACE, arguments=["--set", "checkpoint.timeout=200ms"])
    wait_until(case.has_rows, "its first epoch")
    case.server.stop(signal.SIGQUIT)
    try:
        aborted = 0
        while aborted < 6:
            line = process.stderr.readline()
            assert line, "the run ended"
            aborted += "is aborted" in line
    finally:
        case.server.start()
    done = case.end(process)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-4000:]}"
    case.check()
    case.check_clean()


# ---- what others do to the table ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "change, back, message",
    [
        ("alter table lake rename price to cost", "alter table lake rename cost to price", "price"),
        ("alter table lake rename to gone", "alter table gone rename to lake", "lake"),
        ("alter table lake add must int not null default 0; alter table lake alter must drop default", "alter table lake drop must", "must"),
    ],
)
def test_the_table_changes_in_mid_run(change, back, message, case):
    case.sql("create table lake (id int8, name text, price float8, moment timestamptz, even bool, more int)")
    owner = case.stop("txn.begin=stop@3")
    seen = case.sql("select count(*) from lake")
    case.sql(change)
    done = case.go_on(owner)
    assert done.returncode in (1, 2, 6) and message in done.stderr and "lake" in done.stderr, f"exit {done.returncode}\n{done.stderr[-4000:]}"
    case.sql(back)
    assert case.sql("select count(*) from lake") == seen
    case.finish()
    case.check()


def test_a_column_that_no_row_needs_goes_in_mid_run(case):
    """A new session reads the table again, and the epoch goes there."""
    case.sql("create table lake (id int8, name text, price float8, moment timestamptz, even bool, more int)")
    owner = case.stop("txn.begin=stop@3")
    case.sql("alter table lake drop column more")
    done = case.go_on(owner)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-4000:]}"
    case.check()


def test_a_row_of_somebody_elses_after_the_decision(case):
    """The one thing that is not found before it: the epoch stays decided, nothing of it shows, and it goes on once
    the alien row is gone."""
    case.sql("create table lake (id int8 primary key, name text, price float8, moment timestamptz, even bool)")
    case.kill("store.decide.after=kill@3")
    missing = "select min(n) from generate_series(0, (select coalesce(max(id), 0) + 1 from lake)) n where not exists (select from lake where id = n)"
    alien, seen = case.sql(missing), case.sql("select count(*) from lake")
    case.sql(f"insert into lake values ({alien})")
    for _ in range(2):
        done = case.run(PACE)
        assert done.returncode == 4 and f"Key (id)=({alien}) already exists" in done.stderr and "lake" in done.stderr, f"exit {done.returncode}\n{done.stderr[-4000:]}"
        assert case.sql("select count(*) - 1 from lake") == seen
    case.sql(f"delete from lake where id = {alien}")
    case.finish()
    case.check()


# ---- owners that were paused -------------------------------------------------------------------------


class StandbyCase(SinkCase):
    """With the store on the server too, and a spool for every owner: another may take over while the first is stopped."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        text = self.pipeline.read_text().replace("state: ./state", f"state: ./state\nstore: '{self.uri}'\nstore_lease: 60s\nspool: ./spool")
        self.pipeline.write_text(text)

    def expire(self):
        if self.sql("select to_regclass('weir.lease') is not null") == "t":
            self.sql("update weir.lease set expires = '-infinity'")

    def nothing_twice(self):
        return not self.has_rows() or self.sql("select count(*) = count(distinct id) from lake") == "t"

    def proxy(self, nth, how):
        return Proxy(self.server, nth, how)


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


@pytest.mark.parametrize("seed", range(3))
def test_random_schedules(seed, tmp_path, weir_faults_bin, server):
    """tests/long has a hundred."""
    run_schedule(StandbyCase(tmp_path, weir_faults_bin, server, rows=1800), seed)
