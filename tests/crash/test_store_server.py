"""The checkpoint store in PostgreSQL: weir killed at each of its steps, the server killed, the connection cut on
either side of a COMMIT, owners that were paused, standbys that take over. After each: the exact rows.

A lease lasts a minute here and a test lets it expire by a statement, so that none waits for a clock; where
the expiry itself is what is tested, it lasts a second.
"""

import itertools
import json
import pathlib
import re
import signal
import socket
import sys
import threading

import pytest
from harness import PACE, Case, killed, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import postgres

REWINDS = "task.write=fail@10,task.write=fail@25"
STEPS = ["lease.before", "lease.after", "pin.before", "pin.after", "reserve.before", "reserve.after", "decide.before"]
STEPS += ["decide.after", "abort.before", "abort.after", "flush.before", "flush.after", "commit.before", "commit.sync"]
LAST = ["store.decide.after", "file.manifest.written", "file.manifest.linked", "file.published.one"]
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server():
    server = postgres.Server()
    try:
        server.make()
        yield server
    finally:
        server.remove()


class ServerCase(Case):
    """A case whose store is a database of its own."""

    def __init__(self, folder, binary, server, lease="60s", uri=None, **options):
        self.server, self.database = server, f"case_{next(NUMBERS)}"
        server.sql(f"create database {self.database} owner locked")
        self.uri = server.uri.replace("/postgres?", f"/{self.database}?")
        self.top = [f"store: '{uri(self) if uri else self.uri}'", f"store_lease: {lease}"]
        super().__init__(folder, binary, **{"rows": 3600, "batch_rows": 30, "more": "shared: true", "top": self.top, **options})

    def sql(self, text):
        return self.server.sql(text, self.uri)

    def expire(self):
        """The lease has run out, whoever holds it."""
        self.sql("do $$ begin if to_regclass('weir.lease') is not null then "
                 "update weir.lease set expires = '-infinity'; end if; end $$")

    def run(self, faults="", verb="run", expired=True, **options):
        if expired and verb == "run":
            self.expire()
        return super().run(faults, verb, **options)

    def decided(self):
        if self.sql("select to_regclass('weir.cursor') is null") == "t":
            return 0
        return int(self.sql("select coalesce(max(checkpoint), 0) from weir.cursor where kind = 1"))


@pytest.fixture
def case(tmp_path, weir_faults_bin, server):
    return ServerCase(tmp_path, weir_faults_bin, server)


@pytest.mark.parametrize("step", STEPS)
def test_kill_at(step, case):
    more = f",{REWINDS}" if step.startswith("abort") else ""
    for nth in (1, 3):
        process = case.run(f"store.{step}=kill@{nth}{more},{PACE}")
        assert killed(process) or (process.returncode == 0 and nth > 1), process.stderr[-4000:]
        case.grow(300)
    case.finish()
    case.check()
    case.check_clean()


@pytest.mark.parametrize("step,status", [("commit.sync", 5), ("decide.after", 5), ("commit.before", 1), ("decide.before", 1)])
def test_failure_at(step, status, case):
    process = case.run(f"store.{step}=fail@4,{PACE}")
    assert process.returncode == status, f"exit {process.returncode}\n{process.stderr[-4000:]}"
    case.finish()
    case.check()
    case.check_clean()


# ---- the server goes away ----------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["task.write=stop@9", "file.prepared=stop@4", "store.decide.before=stop@3"])
@pytest.mark.parametrize("comes_back", [True, False])
def test_server_is_killed(point, comes_back, case):
    owner = case.stop(point)
    case.server.stop(signal.SIGQUIT)
    if comes_back:
        case.server.start()
    owner = case.go_on(owner)
    assert owner.returncode == 1, f"exit {owner.returncode}\n{owner.stderr[-4000:]}"
    assert "checkpoint store postgresql://" in owner.stderr
    if not comes_back:
        refused = Case.run(case)
        assert refused.returncode == 1 and "connecting failed" in refused.stderr, refused.stderr
        case.server.start()
    case.finish()
    case.check()
    case.check_clean()


class Proxy:
    """Between weir and the server. The `nth` COMMIT is the last that weir sees sent: it is dropped before it reaches
    the server, or its answer is, and every connection is cut."""

    COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"

    def __init__(self, server, nth, answer_lost):
        self.target = str(server.folder / ".s.PGSQL.5432")
        self.left, self.answer_lost, self.cut = nth, answer_lost, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.cut:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(self.target)
            pair = client, upstream
            threading.Thread(target=self.carry, args=(client, upstream, pair, True), daemon=True).start()
            threading.Thread(target=self.carry, args=(upstream, client, pair, False), daemon=True).start()

    def close(self, pair):
        for end in pair:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def carry(self, source, sink, pair, from_client):
        try:
            while data := source.recv(65536):
                last = False
                if from_client and self.COMMIT in data:
                    self.left -= 1
                    last = self.left == 0
                if last and not self.answer_lost:
                    break
                if last:
                    self.cut = True
                if self.cut and not from_client:
                    break
                sink.sendall(data)
        except OSError:
            pass
        self.cut = self.cut or self.left <= 0
        self.close(pair)


@pytest.mark.parametrize("nth", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("answer_lost", [False, True])
def test_connection_cut_at_commit(answer_lost, nth, case):
    """1: the tables are made, 2: the lease is taken, 3: the binding is pinned, 4: the first attempt is reserved, 6: the
    second one is decided."""
    proxy = Proxy(case.server, nth, answer_lost)
    uri = f"postgresql://postgres@127.0.0.1:{proxy.port}/{case.database}"
    process = case.run(PACE, arguments=["--set", f"store={uri}"])
    proxy.listener.close()
    assert process.returncode == (1 if nth < 3 else 5), f"exit {process.returncode}\n{process.stderr[-4000:]}"
    if nth >= 3:
        assert "the next start asks the store" in process.stderr
    assert case.decided() == (0 if nth < 5 else 2 if answer_lost else 1)
    case.finish()
    case.check()
    case.check_clean()


# ---- owners that were paused -------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["task.write", "file.prepared", "store.decide.before", *LAST])
def test_paused_owner(point, case):
    zombie = case.stop(f"{point}=stop@3")
    second = case.run()
    assert second.returncode == 0, second.stderr
    case.check()
    zombie = case.go_on(zombie)
    # The last epoch, which the other has published with the same bytes, is delivered for the zombie too.
    allowed = (0, 4) if point in LAST else (4,)
    assert zombie.returncode in allowed, f"exit {zombie.returncode}\n{zombie.stderr[-4000:]}"
    assert "lease" in zombie.stderr or "newer" in zombie.stderr, zombie.stderr
    case.check()
    case.check_goes_on()


def test_paused_within_a_transaction(tmp_path, weir_faults_bin, server):
    """It holds the lease row's lock: the server ends its session when the lease has run out."""
    case = ServerCase(tmp_path, weir_faults_bin, server, lease="1s")
    zombie = case.stop("store.commit.before=stop@4")
    second = case.run(expired=False)
    assert second.returncode == 0, second.stderr
    case.check()
    zombie = case.go_on(zombie)
    assert zombie.returncode in (1, 4), f"exit {zombie.returncode}\n{zombie.stderr[-4000:]}"
    case.check()
    case.check_goes_on()


def test_paused_beyond_its_lease_and_nobody_came(tmp_path, weir_faults_bin, server):
    case = ServerCase(tmp_path, weir_faults_bin, server, lease="1s")
    owner = case.stop("task.write=stop@7")
    wait_until(lambda: case.sql("select expires < now() from weir.lease") == "t", "the end of its lease")
    owner = case.go_on(owner)
    assert owner.returncode == 0, owner.stderr
    case.check()
    case.check_clean()


# ---- standbys ----------------------------------------------------------------------------------------


def standby(case):
    """Another instance, once it has said that it stands by."""
    process = Case.start(case)
    for line in process.stderr:
        if "standing by" in line:
            return process
        assert "error" not in line, line
    raise AssertionError(f"exit {process.wait()}")


def test_standby_takes_over_from_the_dead(tmp_path, weir_faults_bin, server):
    case = ServerCase(tmp_path, weir_faults_bin, server, lease="2s")
    owner = case.stop("store.decide.before=stop@3")
    # Before it has expired: the owner cannot renew it.
    second = standby(case)
    owner.kill()
    case.end(owner)
    second = case.end(second)
    assert second.returncode == 0 and "takes over" in second.stderr, second.stderr
    assert "standing by" not in second.stderr, "it says so once"
    case.check()
    case.check_clean()


def test_first_starts_together(case):
    """The tables are made once, and each row is delivered by whoever comes first."""
    together = [Case.start(case) for _ in range(4)]
    done = [case.end(process) for process in together]
    assert [process.returncode for process in done] == [0] * 4, "\n".join(process.stderr for process in done)
    assert sorted(json.loads(process.stdout)["rows"] for process in done) == [0, 0, 0, case.rows]
    case.check()
    case.check_clean()


def test_standby_takes_over_from_one_that_ends(case):
    owner = case.stop("task.write=stop@3")
    second = standby(case)
    assert second.poll() is None
    owner.send_signal(signal.SIGTERM)
    owner = case.go_on(owner)
    assert owner.returncode == 0, owner.stderr
    second = case.end(second)
    assert second.returncode == 0 and "takes over" in second.stderr, second.stderr
    case.check()


def test_a_stopped_standby_has_done_nothing(case):
    owner = case.stop("task.write=stop@3")
    second = standby(case)
    second.send_signal(signal.SIGTERM)
    second = case.end(second)
    assert second.returncode == 5 and "standing by" in second.stderr, second.stderr
    # What cannot wait says so at once.
    for verb, more in (("recover", []), ("run", ["--new-deployment"])):
        refused = Case.run(case, verb=verb, arguments=more)
        assert refused.returncode == 4 and f"pid {owner.pid} on " in refused.stderr, refused.stderr
    assert Case.run(case, verb="status").returncode == 0
    owner = case.go_on(owner)
    assert owner.returncode == 0, owner.stderr
    case.check()


# ---- other promises ----------------------------------------------------------------------------------


def test_other_verbs(case):
    case.finish()
    for verb in ("status", "verify", "clean", "recover", "check"):
        done = case.run(verb=verb)
        assert done.returncode == 0, f"{verb}: exit {done.returncode}\n{done.stderr}"
    case.check_goes_on()


def test_new_deployment(case):
    case.finish()
    for path in case.published():
        path.unlink()
    assert case.finish(arguments=["--new-deployment"])["rows"] == case.rows
    case.check()
    case.check_clean()


def test_store_lost(case):
    """The database is gone and the target is not: refused, as with a lost state folder."""
    case.finish()
    case.sql("drop schema weir cascade")
    refused = case.run()
    assert refused.returncode == 4 and "--new-deployment" in refused.stderr, refused.stderr
    case.check()


def test_places_of_one_machine_are_refused(case):
    case.configure(top=case.top)
    for verb in ("check", "run"):
        refused = case.run(verb=verb)
        assert refused.returncode == 3 and "shared: true" in refused.stderr + refused.stdout, refused.stderr


def test_password_is_nowhere(tmp_path, weir_faults_bin, server):
    word = re.sub(r"[^A-Za-z0-9-]", lambda m: f"%{ord(m[0]):02X}", postgres.PASSWORD)
    secret = postgres.PASSWORD.encode(), word.encode(), b"s3cr3t"

    def uri(case):
        return f"postgresql://locked:{word}@/{case.database}?host={server.folder}"

    case = ServerCase(tmp_path, weir_faults_bin, server, uri=uri)
    said = []
    for verb in ("check", "run", "status"):
        done = Case.run(case, verb=verb, arguments=["--log-level", "debug"])
        assert done.returncode == 0, done.stderr
        said += [done.stdout, done.stderr]
    case.pipeline.write_text(case.pipeline.read_text().replace(word, f"{word}x"))
    for faults in ("", "store.decide.before=kill@1"):
        said += [(done := Case.run(case, faults)).stderr, done.stdout]
    assert "connecting failed" in done.stderr
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path != case.pipeline]
    kept.append(server.call(server.bin / "pg_dump", case.uri).encode())
    for text in [line.encode() for line in said] + kept:
        assert not any(form in text for form in secret)
