"""A folder whose files appear, grow and are rotated while a pipeline that follows it is killed, and the check
that each line that was written is delivered once.

A family is a log and what its rotation leaves. Half of them are named by the pattern with their rotations
(`wide*`), half without (`narrow?.log`): those must have been seen before they are rotated first.
"""

import gzip
import json
import os
import random
import signal
import threading
import time

import pyarrow as pa
from harness import Case, killed, wait_until


def row(i):
    return json.dumps({"id": i, "text": f"text-{i * 2654435761 % 1000003}"}) + "\n"


class Family:
    def __init__(self, folder, name, rng):
        self.folder, self.name, self.rng = folder, name, rng
        self.file = None  # open behind a rename, as by a program that was not told yet
        self.rotations = 0
        self.dated = rng.random() < 0.4

    def path(self, n=0):
        return self.folder / (self.name if n == 0 else f"{self.name}.{n}")

    def append(self, text):
        if self.file is None:
            self.file = open(self.path(), "a")
        self.file.write(text)
        self.file.flush()

    def make_room(self):
        """Where the next rotation goes."""
        self.rotations += 1
        if self.dated:
            return self.folder / f"{self.name}-{20260000 + self.rotations}"
        n = 1
        while self.path(n).exists():
            n += 1
        for i in range(n, 1, -1):
            self.path(i - 1).rename(self.path(i))
        return self.path(1)

    def rename(self, late):
        if self.file is None:
            self.append("")
        to = self.make_room()
        self.path().rename(to)
        self.append(late)  # into the file that was renamed
        self.file.close()
        self.file = None

    def copy_and_cut(self):
        if not self.path().exists():
            return
        to = self.make_room()
        with open(self.path()) as source, open(to, "w") as copy:
            while part := source.read(self.rng.choice((7, 100, 4000))):
                copy.write(part)
                copy.flush()
        os.truncate(self.path(), 0)


class Writer:
    """Writes rows 0, 1, ... as `files` files appear."""

    def __init__(self, folder, seed, files, families, pause):
        self.folder, self.rng, self.files, self.pause = folder, random.Random(seed), files, pause
        self.rows = self.parts = 0
        self.may_rotate = threading.Event()
        self.error = None
        names = [f"{kind}{i}.log" for kind in ("narrow", "wide") for i in range(families)]
        self.families = [Family(folder, name, self.rng) for name in names]
        for family in self.families:
            family.append(self.more(3))
        self.thread = threading.Thread(target=self.loop)

    def more(self, n):
        self.rows += n
        return "".join(row(i) for i in range(self.rows - n, self.rows))

    def add_part(self):
        path = self.folder / f"wide-part-{self.parts:05d}.log"
        self.parts += 1
        if self.rng.random() < 0.3:
            (self.folder / "coming").write_text(self.more(self.rng.randint(1, 9)))
            (self.folder / "coming").rename(path)
        else:
            path.write_text(self.more(self.rng.randint(1, 3)))
            with open(path, "a") as file:
                file.write(self.more(2))

    def step(self):
        family, dice = self.rng.choice(self.families), self.rng.random()
        if dice < 0.5:
            text = self.more(self.rng.randint(1, 12))
            cut = self.rng.randint(0, len(text)) if self.rng.random() < 0.3 else len(text)
            family.append(text[:cut])
            family.append(text[cut:])
        elif dice < 0.8:
            self.add_part()
        elif dice < 0.9:
            family.rename(self.more(self.rng.randint(0, 2)))
        else:
            family.copy_and_cut()

    def loop(self):
        try:
            self.may_rotate.wait()
            while self.parts + sum(family.rotations for family in self.families) < self.files:
                self.step()
                time.sleep(self.rng.random() * self.pause)
        except Exception as error:  # noqa: BLE001: handed to the test's own thread
            self.error = error


class Followed(Case):
    def __init__(self, folder, binary, seed, files, families=3, pause=0.02):
        self.folder, self.binary = folder, binary
        self.target, self.state = folder / "out", folder / "state"
        self.inbox = folder / "in"
        self.inbox.mkdir(parents=True)
        self.rng = random.Random(seed)
        self.pipeline = folder / "p.yaml"
        self.pipeline.write_text(
            "pipeline: follow\nstate: ./state\ncheckpoint: {interval: 20ms}\n"
            "sources:\n  logs:\n    type: file\n    path: [in/narrow?.log, in/wide*]\n    format: ndjson\n"
            "    schema: {id: int64, text: utf8}\n    follow: true\n"
            "sinks:\n  lake: {type: file, path: ./out, format: ndjson, from: [logs]}\n"
        )
        self.writer = Writer(self.inbox, seed, files, families, pause)

    def delivered(self):
        """Complete lines, by id."""
        count = {}
        for path in self.target.glob("*.ndjson") if self.target.is_dir() else ():
            for line in path.read_text().splitlines(keepends=True):
                i = json.loads(line)["id"]
                assert line.replace(" ", "") == row(i).replace(" ", ""), line
                count[i] = count.get(i, 0) + 1
        return count

    def run_until(self, condition):
        if condition():
            return
        process = self.start()
        try:
            wait_until(lambda: process.poll() is not None or condition(), "all rows")
        finally:
            process.send_signal(signal.SIGTERM)
            done = self.end(process)
        assert done.returncode == 0, done.stderr[-4000:]

    def run_killed(self, kills, longest):
        self.run_until(lambda: len(self.delivered()) >= self.writer.rows)
        self.writer.thread.start()
        self.writer.may_rotate.set()
        for _ in range(kills):
            process = self.start()
            time.sleep(self.rng.uniform(0.0, longest))
            process.kill()
            process = self.end(process)
            assert killed(process), f"exit {process.returncode}\n{process.stderr[-4000:]}"
        self.writer.thread.join()
        assert self.writer.error is None, self.writer.error

    def check_rows(self):
        want = self.writer.rows
        limit = time.monotonic() + 60
        self.run_until(lambda: len(self.delivered()) >= want or time.monotonic() > limit)
        count = self.delivered()
        lost = [i for i in range(want) if i not in count]
        twice = [i for i, n in count.items() if n > 1]
        assert not lost and not twice and len(count) == want, f"of {want} rows lost {lost}, doubled {twice}"


class MovedIn(Followed):
    """Compressed or Arrow files, which are moved into place complete, while the pipeline is killed."""

    def __init__(self, folder, binary, seed, files, extension):
        super().__init__(folder, binary, seed, files)
        text = self.pipeline.read_text().replace("[in/narrow?.log, in/wide*]", f"in/*{extension}")
        if "ndjson" not in extension:
            text = text.replace("    format: ndjson\n    schema", "    format: arrow\n    schema")
        self.pipeline.write_text(text)
        self.writer = Mover(self.inbox, seed, files, extension)


class Mover(Writer):
    def __init__(self, folder, seed, files, extension):
        self.extension = extension
        super().__init__(folder, seed, files, families=0, pause=0.02)
        self.step()

    def step(self):
        rows = [row(i) for i in range(self.rows, self.rows + self.rng.randint(1, 400))]
        data = "".join(rows).encode()
        if self.extension.startswith(".arrow"):
            data = arrow_stream(rows)
        if self.extension.endswith(".gz"):
            half = len(data) // 2
            data = gzip.compress(data[:half]) + gzip.compress(data[half:])
        (self.folder / "coming").write_bytes(data)
        (self.folder / "coming").rename(self.folder / f"{self.parts:05d}{self.extension}")
        self.parts += 1
        self.rows += len(rows)


def arrow_stream(rows):
    table = pa.Table.from_pylist([json.loads(text) for text in rows])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    return sink.getvalue().to_pybytes()
