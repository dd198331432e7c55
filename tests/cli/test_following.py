"""`follow: true` from the outside: a run that waits, reads on and stops when told."""

import json
import signal
import subprocess
import time

import pytest

PIPELINE = """\
pipeline: logs
checkpoint: {{interval: 20ms}}
sources:
  logs: {{type: file, path: logs/app.log, format: ndjson, follow: true{more}}}
sinks:
  out: {{type: file, path: ./out, format: ndjson}}
"""


class Follower:
    def __init__(self, weir_bin, folder, *arguments):
        self.folder = folder
        command = [weir_bin, "run", *arguments]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)

    def ids(self):
        files = sorted((self.folder / "out").rglob("*.ndjson"))
        return sorted(json.loads(line)["id"] for file in files for line in file.read_text().splitlines())

    def wait_for(self, ids):
        limit = time.monotonic() + 60
        while self.ids() != ids:
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < limit, f"{self.ids()}, not {ids}"
            time.sleep(0.01)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        err = self.process.communicate(timeout=60)[1]
        assert self.process.returncode == 0, err
        return err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def log(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "p.yaml").write_text(PIPELINE.format(more=", schema: {id: int64}"))
    return tmp_path / "logs/app.log"


def add(path, *ids):
    with open(path, "a") as file:
        file.write("".join(f'{{"id": {i}}}\n' for i in ids))


def test_it_waits_reads_on_and_stops(weir, weir_bin, tmp_path, log):
    with Follower(weir_bin, tmp_path, "p.yaml") as run:
        add(log, 1, 2)
        run.wait_for([1, 2])
        with open(log, "a") as file:
            file.write('{"id": 3')
        log.rename(f"{log}.1")
        add(log, 4)
        run.wait_for([1, 2, 4])
        run.stop()
    assert f"1 file read; {log.resolve()}.1 at byte 20" in weir("status", "p.yaml", cwd=tmp_path).stdout
    with open(f"{log}.1", "a") as file:
        file.write("}\n")
    with Follower(weir_bin, tmp_path, "p.yaml") as run:
        run.wait_for([1, 2, 3, 4])
        assert "stopped as asked" in run.stop()
    assert "2 files read" in weir("status", "p.yaml", cwd=tmp_path).stdout


@pytest.mark.parametrize("path", ["logs/app.log", "logs/*.log", "lo{gs,x}/app.log*"])
def test_a_folder_named_like_a_pattern(path, weir, weir_bin, tmp_path):
    folder = tmp_path / "a[b]*{c,d}?\\e"
    (folder / "logs").mkdir(parents=True)
    pipeline = PIPELINE.format(more=", schema: {id: int64}").replace("logs/app.log", f"'{path}'")
    (folder / "p.yaml").write_text(pipeline)
    log = folder / "logs/app.log"
    add(log, 1)
    with Follower(weir_bin, folder, "p.yaml") as run:
        run.wait_for([1])
        log.rename(f"{log}.1")
        add(folder / "logs/app.log.1", 2)
        add(log, 3)
        run.wait_for([1, 2, 3])
        run.stop()


def test_a_loss_stops_it_until_it_is_accepted(weir, weir_bin, tmp_path, log):
    add(log, 1)
    with Follower(weir_bin, tmp_path, "p.yaml") as run:
        run.wait_for([1])
        run.stop()
    add(log, 2)
    log.write_text('{"id": 3}\n{"id": 4}\n')
    done = weir("run", "p.yaml", cwd=tmp_path)
    assert done.returncode == 6
    assert "app.log was cut, and no copy of what was read is in its folder" in done.stderr
    with Follower(weir_bin, tmp_path, "p.yaml", "--set", "sources.logs.on_loss=skip") as run:
        run.wait_for([1, 3, 4])
        assert "app.log was cut" in run.stop()


def test_no_file_to_infer_from(weir, weir_bin, tmp_path, log):
    (tmp_path / "p.yaml").write_text(PIPELINE.format(more=""))
    done = weir("run", "p.yaml", cwd=tmp_path)
    assert done.returncode != 0
    assert "no file to infer the schema from; write it down in option schema" in done.stderr
    add(log, 1)
    with Follower(weir_bin, tmp_path, "p.yaml") as run:
        run.wait_for([1])
        run.stop()
    log.rename(f"{log}.1")
    with Follower(weir_bin, tmp_path, "p.yaml") as run:  # its schema is kept
        add(log, 2)
        run.wait_for([1, 2])
        run.stop()


def test_the_sample(weir, weir_bin, tmp_path):
    (tmp_path / "follow.yaml").write_text(weir("init", "follow").stdout)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/app.ndjson.1").write_text('{"at": "2026-12-02T10:00:00Z", "level": "info"}\n')
    rows = "sinks.lake.format=ndjson"
    with Follower(weir_bin, tmp_path, "follow.yaml", "--set", rows, "--set", "checkpoint.interval=20ms") as run:
        (tmp_path / "logs/app.ndjson").write_text('{"at": "2026-12-02T11:00:00Z", "message": "m"}\n')
        limit = time.monotonic() + 60
        out = tmp_path / "out/logs"
        while sum(len(file.read_text().splitlines()) for file in out.rglob("*.ndjson")) < 2:
            assert time.monotonic() < limit and run.process.poll() is None
            time.sleep(0.01)
        run.stop()
