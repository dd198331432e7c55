"""A pipeline on a simulated disk: recorded, cut off, started again, and looked at."""

import copy
import functools
import hashlib
import io
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess

import pyarrow.parquet
from simulated_disk import (
    LINK,
    MKDIR,
    RENAME,
    RUN,
    SYNC_BEGIN,
    SYNC_END,
    UNLINK,
    Disk,
    PowerCut,
    Record,
    read_log,
    write_tree,
)

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = "{id: int64, name: utf8}"
FOLDERED = "{id: int64, name: utf8, day: utf8, even: bool}"
SECONDS = 120
DATA_FILE = re.compile(r"(\d{12,})-(\d{4,})-(\d{5,})-[0-9a-f]{32}\.(parquet|ndjson)")


def never(disk, node):
    return False


def build_recorder(folder):
    library = folder / "recorder.so"
    options = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *options, "-o", library, HERE / "recorder.c", "-ldl"], check=True)
    return library


def columns_of_folders(i):
    return {"day": f"d{i // 9 % 4}", "even": i % 2 == 0}


def folder_of(i):
    day, even = columns_of_folders(i).values()
    return f"day={day}/even={str(even).lower()}"


def row(i):
    return {"id": i, "name": None if i % 7 == 0 else f"name-{i * 2654435761 % 1000003}"}


@functools.lru_cache(maxsize=4096)
def ids_of(content, extension):
    """The ids in a published file, whose rows must be the source's. Most disks of a recording share their files."""
    if extension == "parquet":
        rows = pyarrow.parquet.read_table(io.BytesIO(content)).to_pylist()
    else:
        rows = [json.loads(line) for line in content.splitlines()]
    for found in rows:
        assert found == row(found["id"]), f"a row that no source has: {found}"
    return tuple(found["id"] for found in rows)


def files_of(manifest):
    try:
        return [file for attempt in json.loads(manifest.read_text())["attempts"] for file in attempt["files"]]
    except ValueError as error:
        raise AssertionError(f"{manifest} is torn: {error}") from None


class World:
    """A folder with `source/`, the pipeline, and `disk/`, where state and targets lie."""

    def __init__(self, folder, binary, recorder, *, format="parquet", writers=1, sinks=("lake",), files=24, per_file=6,
                 roll=0, pace=1500, sync=400, commit_interval=None, foldered=False):  # fmt: skip
        self.folder, self.binary, self.recorder = pathlib.Path(folder), binary, recorder
        self.format, self.sinks, self.pace, self.sync = format, sinks, pace, sync
        self.foldered = foldered
        self.disk, self.source = self.folder / "disk", self.folder / "source"
        self.source.mkdir(parents=True)
        self.rows = self.parts = 0
        for _ in range(files):
            self.grow(per_file)
        lines = ["pipeline: power", "state: ./disk/a/b/state", "checkpoint: {interval: 1ms}", "sources:"]
        columns = FOLDERED if foldered else COLUMNS
        lines += [f"  orders: {{type: file, path: source/*.ndjson, batch_rows: 2, schema: {columns}}}", "sinks:"]
        for sink in sinks:
            more = f", roll: {{rows: {roll}}}" if roll else ""
            more += f", commit_interval: {commit_interval}" if commit_interval else ""
            more += ", partition_by: [day, even]" if foldered else ""
            path = f"path: ./disk/c/out/{sink}, format: {format}"
            lines += [f"  {sink}: {{type: file, {path}, writers: {writers}, from: orders{more}}}"]
        self.pipeline = self.folder / "p.yaml"
        self.pipeline.write_text("\n".join(lines) + "\n")

    def grow(self, rows):
        part = self.source / f"{self.parts:05d}.ndjson"
        more = columns_of_folders if self.foldered else lambda i: {}
        part.write_text("".join(json.dumps(row(i) | more(i)) + "\n" for i in range(self.rows, self.rows + rows)))
        self.parts += 1
        self.rows += rows
        return part

    def shrink(self, part, rows):
        part.unlink()
        self.parts -= 1
        self.rows -= rows

    def run(self, kill="", quick=False):
        """One process: its exit status, its records, and what it said."""
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        env = {**os.environ, "LD_PRELOAD": str(self.recorder), "RECORDER_LOG": str(log), "RECORDER_KILL": kill}
        if not quick:
            env |= {"RECORDER_PACE": str(self.pace), "RECORDER_SYNC": str(self.sync)}
        done = subprocess.run(
            [self.binary, "run", self.pipeline, "--json"], env=env, capture_output=True, text=True, timeout=SECONDS
        )
        assert log.exists() and (done.returncode in (0, -signal.SIGKILL) or not kill), done.stderr[-3000:]
        return done, [Record(RUN), *read_log(log)]

    def new_disk(self, tree=None):
        shutil.rmtree(self.disk, ignore_errors=True)
        write_tree(tree or {}, self.disk)

    def record(self, kills=(), quick=False):
        """From the disk as it lies there: runs that are killed (RECORDER_KILL), and one to the end."""
        records = []
        for kill in [*kills, ""]:
            done, more = self.run(kill, quick)
            records += more
            if done.returncode != -signal.SIGKILL:
                break
        assert done.returncode == 0, done.stderr[-3000:]
        return records

    def play(self, disk, records):
        for record in records:
            disk.play(record)

    def check_recording(self, disk):
        """What the disk was told is all there is."""

        def of(tree):
            return {
                name: of(node) if isinstance(node, dict) else bytes(node.durable)
                for name, node in tree.items()
                if not name.endswith("-shm")
            }

        assert of(disk.tree()) == of(Disk(self.disk).tree()), "the recorder has missed something"

    def published(self, sink):
        """Files under the target, by their names there."""
        target = self.target(sink)
        found = (path for path in target.rglob("*") if not path.is_dir()) if target.is_dir() else ()
        return {path.relative_to(target).as_posix(): path for path in sorted(found)}

    # ---- what must hold --------------------------------------------------------------------------

    def target(self, sink):
        return self.disk / "c/out" / sink

    def decided(self):
        """Whether an attempt was decided, as another reader of the store sees it; the store stays as it lies."""
        store = self.disk / "a/b/state/store.db"
        assert store.exists(), "rows are visible, and the store is gone"
        beside = self.folder / "copy"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        for name in ("store.db", "store.db-wal"):
            if store.with_name(name).exists():
                shutil.copyfile(store.with_name(name), beside / name)
        db = sqlite3.connect(beside / "store.db")
        try:
            assert db.execute("pragma integrity_check").fetchall() == [("ok",)], "the store is damaged"
            states = dict(db.execute("select attempt, state from attempt"))
        finally:
            db.close()
        oldest = min((attempt for attempt, state in states.items() if state == 2), default=0)
        return lambda attempt: states.get(attempt) == 2 or attempt < oldest

    def check_visible(self, delivered=None):
        """No row twice, no file that is torn or foreign, nothing of an attempt that was not decided; and, after
        a run that has said so, every row."""
        decided = None
        for sink in self.sinks:
            published = self.published(sink)
            if published and decided is None:
                decided = self.decided()
            manifests = sorted(self.target(sink).parent.glob(f".weir/{sink}/*/commits/*.json"))
            named = {file["name"]: file["sha256"] for manifest in manifests for file in files_of(manifest)}
            # What is older than the newest manifest's floor is named by none, or by one that a cut has brought back.
            floor = json.loads(manifests[-1].read_text())["floor"] if manifests else 0
            kept = [file["name"] for m in manifests if int(m.stem) >= floor for file in files_of(m)]
            oldest = min((DATA_FILE.fullmatch(pathlib.PurePath(name).name)[1] for name in kept), default="")
            ids = []
            for name, path in published.items():
                match = DATA_FILE.fullmatch(path.name)
                assert match, f"{path} is no published file"
                content = path.read_bytes()
                assert name in named or match[1] < oldest, f"{path} is named by no manifest"
                if name in named:
                    assert hashlib.sha256(content).hexdigest() == named[name], f"{path} is torn"
                assert decided(int(match[1])), f"{path} is visible, and its attempt is not decided"
                found = ids_of(content, match[4])
                folders = {folder_of(i) if self.foldered else "." for i in found}
                assert folders == {pathlib.PurePath(name).parent.as_posix()}, f"{path} holds rows of {folders}"
                ids += found
            assert len(ids) == len(set(ids)), f"{sink}: rows are there twice"
            assert delivered is None or len(ids) == delivered, f"{sink}: {len(ids)} rows of {delivered} delivered"

    def check_complete(self):
        done, _ = self.run(quick=True)
        assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-3000:]}"
        for sink in self.sinks:
            ids = sorted(i for p in self.published(sink).values() for i in ids_of(p.read_bytes(), self.format))
            assert ids == list(range(self.rows)), f"{sink}: {len(ids)} rows, {len(set(ids))} of them apart, of {self.rows}"

    def check_clean(self):
        """Once more rows went through, nothing is left of what was cut off. A second name of a published file may
        be left in staged/ (docs/protocol.md, F14)."""
        part = self.grow(3)
        try:
            self.check_complete()
        finally:
            self.shrink(part, 3)
        for sink in self.sinks:
            names = {path.name for path in self.published(sink).values()}
            left = [p.name for p in self.target(sink).parent.glob(f".weir/{sink}/*/staged/*") if p.name not in names]
            assert not left, f"left in staged/ for ever: {left}"


def some_kill(rng):
    """The end of a process, for RECORDER_KILL: soon after its start, anywhere, or right behind a step."""
    pick = rng.random()
    if pick < 0.5:
        return str(rng.randrange(1, 90 if pick < 0.25 else 600))
    kind = rng.choice((MKDIR, LINK, RENAME, SYNC_BEGIN, SYNC_BEGIN, UNLINK))
    return f"{rng.randrange(1, 8 if kind == MKDIR else 30)}:{kind}"


def ignored_in(disk, records):
    """Where the disk ignores a sync."""
    places, ignored = [], disk.ignored_sync

    def remember(disk, node):
        places.extend([at] if (found := ignored(disk, node)) else [])
        return found

    disk.ignored_sync = remember
    for at, record in enumerate(records):
        disk.play(record)
    return places


VARIANTS = {
    "one writer": dict(writers=1),
    "three writers": dict(writers=3),
    "rolls": dict(writers=3, roll=3),
    "ndjson": dict(writers=1, format="ndjson"),
    "ndjson, three writers, rolls": dict(writers=3, format="ndjson", roll=4),
    "gathers": dict(writers=2, roll=3, commit_interval="4ms"),
    "folders": dict(writers=2, foldered=True),
    "two sinks": dict(writers=2, sinks=("lake", "pond")),
}


def recorded(folder, binary, recorder, variant, seed):
    """A new world and what a few processes did in it: (world, inode of its disk, records)."""
    rng = random.Random(seed)
    world = World(folder, binary, recorder, **VARIANTS[variant])
    world.new_disk()
    inode, disk = os.stat(world.disk).st_ino, Disk(world.disk)
    records = world.record([some_kill(rng) for _ in range(rng.choice((0, 1, 1, 2, 3)))])
    world.play(disk, records)
    world.check_recording(disk)
    world.check_visible(world.rows)
    return world, inode, records


class Story:
    """One seed: power cuts in a recorded run and in what came after it, and at the end every row once."""

    def __init__(self, world, inode, records, seed, ignored_sync=never):
        """`records` is what World.record gave, from an empty disk whose folder was `inode`."""
        self.world, self.inode, self.records, self.ignored_sync = world, inode, records, ignored_sync
        self.rng, self.told = random.Random(seed), []

    def place(self, records, near):
        """Where to cut: anywhere, more often than not at the end of a sync or soon after a process began."""
        pick = self.rng.random()
        if near and pick < 0.9:
            return min(self.rng.choice(near) + self.rng.randrange(60), len(records))
        if pick < 0.35:
            syncs = [i for i, record in enumerate(records) if record.kind == SYNC_END]
            return min(self.rng.choice(syncs) + self.rng.choice((0, 0, 1, 2, 3, 4)), len(records))
        if pick < 0.5:
            starts = [i for i, record in enumerate(records) if record.kind == RUN]
            return min(self.rng.choice(starts) + self.rng.randrange(150), len(records))
        return self.rng.randint(0, len(records)) if pick < 0.95 else len(records)

    def cut(self, disk, records):
        """The power goes in the middle of `records`; behind a sync that is ignored, if there is one."""
        near = ignored_in(copy.deepcopy(disk), records) if self.ignored_sync is not never else []
        at = self.place(records, near)
        self.world.play(disk, records[:at])
        cut = PowerCut(disk, self.rng)
        self.told.append(f"{cut.style} at {at} of {len(records)}")
        self.world.new_disk(cut.tree)
        self.world.check_visible(self.world.rows if at == len(records) else None)

    def tell(self):
        try:
            self.cut(Disk.empty(self.inode, self.ignored_sync), self.records)
            for _ in range(self.rng.choice((0, 0, 0, 1, 1, 2))):
                disk = Disk(self.world.disk, self.ignored_sync)
                kills = [some_kill(self.rng)] if self.rng.random() < 0.3 else []
                self.cut(disk, self.world.record(kills, quick=self.rng.random() < 0.5))
            self.world.check_complete()
            self.world.check_visible(self.world.rows)
            if self.rng.random() < 0.5:
                self.world.check_clean()
        except (AssertionError, sqlite3.Error) as error:
            raise AssertionError(f"{'; '.join(self.told)}: {error}") from error
