"""Sinks whose targets have transactions of their own, on SQLite: SIGKILL and failures at every point of the spool
and of the adapter, then a restart. The table holds each row of the source once, with its values."""

import contextlib
import pathlib
import sqlite3

import pytest

POINTS = pathlib.Path(__file__).with_name("points.txt").read_text().split()
POINTS = [point for point in POINTS if point.startswith(("spool.", "txn."))]
ROWS = 4000
# A source that takes its time, so that few rows are many epochs.
PACE = "task.read=sleep:2ms"


class Place:
    """A pipeline of a generator into a table, run again and again until all is there."""

    TARGET = {"type": "sqlite", "path": "out.db"}

    def __init__(self, folder, weir, **sink):
        self.folder, self.weir = folder, weir
        options = {**self.TARGET, "table": "t", "create": "true", **sink}
        (folder / "p.yaml").write_text(
            "pipeline: p\ncheckpoint: {interval: 10ms}\n"
            f"sources: {{numbers: {{type: generator, rows: {ROWS}, rate: 20000, seed: 7}}}}\n"
            "sinks: {db: {writers: 2, "
            + ", ".join(f"{k}: {v}" for k, v in options.items())
            + "}}\n"
        )

    def run(self, faults, rows=ROWS, **settings):
        """The source as if it had so many rows: what is behind them comes with a later run."""
        settings = {"sources.numbers.rows": rows, **settings}
        arguments = [f"{name}={value}" for name, value in settings.items()]
        arguments = [word for setting in arguments for word in ("--set", setting)]
        return self.weir("run", "p.yaml", *arguments, faults=f"{faults},{PACE}", cwd=self.folder)

    def leave_decided(self):
        """An epoch that is decided and not at the target, behind others that are: a segment of it. There may be some of
        the epoch after it, too, which is not decided."""
        assert self.run("", rows=1000).returncode == 0
        before = set(segments(self))
        assert self.run("txn.commit=kill@1", rows=2000).returncode == -9
        return next(path for path in segments(self) if path not in before)

    def query(self, sql):
        with contextlib.closing(sqlite3.connect(f"file:{self.folder}/out.db?mode=ro", uri=True, timeout=30)) as db:
            return db.execute(sql).fetchall()

    def finish(self):
        for _ in range(2):
            done = self.weir("run", "p.yaml", cwd=self.folder)
            assert done.returncode == 0, done.stderr
        assert self.query("select * from t order by id") == self.expected()
        (verified,) = [self.weir("verify", "p.yaml", cwd=self.folder)]
        assert verified.returncode == 0, verified.stdout + verified.stderr
        segments = list(self.folder.glob("weir-state/p/spool/*/*.spool"))
        assert 1 <= len(segments) <= 20  # the last 10 epochs of two writers

    def expected(self):
        with contextlib.closing(sqlite3.connect(self.folder / "clean" / "out.db")) as db:
            return db.execute("select * from t order by id").fetchall()


@pytest.fixture(scope="module")
def clean(tmp_path_factory, weir_bin):
    """What an undisturbed run delivers."""
    from conftest import run_weir

    folder = tmp_path_factory.mktemp("clean")
    place = Place(folder, lambda *a, faults="", **o: run_weir(weir_bin, *a, **o))
    done = place.run("")
    assert done.returncode == 0, done.stderr
    assert place.query("select count(*), count(distinct id), min(id), max(id) from t") == [(ROWS, ROWS, 0, ROWS - 1)]
    return folder


@pytest.fixture
def place(tmp_path, weir_faults, clean):
    (tmp_path / "clean").symlink_to(clean)
    return Place(tmp_path, weir_faults)


@pytest.mark.parametrize("point", POINTS)
def test_kill_at(point, place):
    for nth in (1, 2, 5):
        done = place.run(f"{point}=kill@{nth}", rows=800 * nth)
        assert done.returncode in (-9, 0) and (nth > 1 or done.returncode == -9), f"{point}: {done.stderr[-2000:]}"
    place.finish()


@pytest.mark.parametrize("point", POINTS)
def test_failures_cost_no_row(point, place):
    """An answer that is lost, a session that ends, a disk that fails: whether the run goes on or stops."""
    done = place.run(f"{point}=fail@2,{point}=fail@3,{point}=fail@7")
    if not point.startswith("spool."):
        assert done.returncode == 0, done.stderr
    place.finish()


def test_a_commit_whose_answer_is_lost_and_a_kill(place):
    place.run("txn.committed=fail@2,txn.read_cursor=kill@4")
    place.run("txn.commit=fail@1,txn.apply=kill@30")
    place.finish()


def segments(place):
    return sorted(place.folder.glob("weir-state/p/spool/*/*.spool"), key=lambda path: int(path.name.split("-")[0]))


@pytest.mark.parametrize("harm", ["cut", "flip", "gone"])
def test_a_harmed_segment_of_a_decided_epoch(harm, place):
    """Its file is named, nothing of the epoch is delivered, and the way out is weir resolve."""
    harmed, before = place.leave_decided(), place.query("select count(*) from t")
    content = harmed.read_bytes()
    if harm == "cut":
        harmed.write_bytes(content[:-64])
    elif harm == "flip":
        harmed.write_bytes(content[:-200] + bytes([content[-200] ^ 1]) + content[-199:])
    else:
        harmed.unlink()
    refused = place.run("")
    assert refused.returncode == 4 and harmed.name in refused.stderr, refused.stderr
    assert place.query("select count(*) from t") == before
    harmed.write_bytes(content)
    place.finish()


def test_a_target_that_lost_its_tail_is_refilled(place):
    """A backup from before the last commits is put back: the kept segments bring it up to date."""
    once = {"checkpoint.interval": "1h"}  # an epoch a run
    assert place.run("", rows=1000, **once).returncode == 0
    kept = {path.name: path.read_bytes() for path in place.folder.glob("out.db*")}
    for rows in (1500, 2000):
        assert place.run("", rows=rows, **once).returncode == 0
    for path in place.folder.glob("out.db*"):
        path.unlink()
    for name, content in kept.items():
        (place.folder / name).write_bytes(content)
    assert place.query("select count(*) from t") == [(1000,)]
    place.finish()


def test_an_epoch_that_the_table_refuses(place):
    """Found before the decision: nothing is decided, nothing is there, and once the cause is gone a rerun completes."""
    assert place.run("", rows=1000).returncode == 0
    with contextlib.closing(sqlite3.connect(place.folder / "out.db")) as db:
        db.execute(f"create trigger no before insert on t when new.id = {ROWS - 1} begin select raise(abort, 'no'); end")
    refused = place.run("")
    assert refused.returncode == 6 and "sink db" in refused.stderr, refused.stderr
    assert place.query(f"select count(*) from t where id = {ROWS - 1}") == [(0,)]
    with contextlib.closing(sqlite3.connect(place.folder / "out.db")) as db:
        db.execute("drop trigger no")
    place.finish()


def test_a_cursor_that_does_not_move_takes_no_rows_along(place):
    """A trigger makes the cursor's statement change nothing: rows alone must not be committed."""
    place.leave_decided()
    before = place.query("select count(*) from t")
    with contextlib.closing(sqlite3.connect(place.folder / "out.db")) as db:
        for when in ("update", "insert"):
            db.execute(f"create trigger still_{when} before {when} on weir_cursor begin select raise(ignore); end")
    refused = place.run("")
    assert refused.returncode == 4 and "weir_cursor" in refused.stderr, refused.stderr
    assert place.query("select count(*) from t") == before
    with contextlib.closing(sqlite3.connect(place.folder / "out.db")) as db:
        db.execute("drop trigger still_update")
        db.execute("drop trigger still_insert")
    place.finish()


def test_somebody_else_changes_the_table_behind_the_decision(place):
    """What closes only with a two-phase commit: the decided rows are refused, kept, and delivered once the cause is gone."""
    place.leave_decided()
    ((last,),) = place.query("select max(id) from t")
    with contextlib.closing(sqlite3.connect(place.folder / "out.db")) as db:
        db.execute("create unique index alien on t(id)")
        db.execute("insert into t (id) values (?)", (last + 1,))
        db.commit()
    for _ in range(2):
        refused = place.run("")
        assert refused.returncode == 4 and "UNIQUE" in refused.stderr and "resolve" in refused.stderr, refused.stderr
    assert place.query(f"select count(*) from t where id > {last}") == [(1,)]
    with contextlib.closing(sqlite3.connect(place.folder / "out.db")) as db:
        db.execute("delete from t where id = ?", (last + 1,))
        db.execute("drop index alien")
        db.commit()
    place.finish()
