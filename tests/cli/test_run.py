"""Runs of the command from the outside: documents, signals, standard error."""

import json
import re
import signal
import subprocess

import pytest

PIPELINE = """\
pipeline: numbers
guarantee: best_effort
checkpoint: {interval: 100ms, timeout: 20s}
sources:
  numbers: {type: generator, rows: 1000}
sinks:
  hole: {type: blackhole}
"""


@pytest.fixture
def pipeline(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE)
    return path


class Run:
    """A run under way, whose lines on standard error can be waited for."""

    def __init__(self, weir_bin, *arguments):
        command = [weir_bin, "run", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []

    def wait_for(self, pattern):
        for line in self.process.stderr:
            self.lines.append(line)
            if re.search(pattern, line):
                return
        pytest.fail(f"no line matched {pattern}: {self.lines}")

    def finish(self):
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, "".join(self.lines) + err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def test_the_document_of_a_run(weir, pipeline):
    done = weir("run", pipeline, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert set(document) == {
        "pipeline", "deployment", "guarantee", "epochs", "rows", "bytes", "dead_letters", "seconds", "sources", "sinks",
    }  # fmt: skip
    assert document["rows"] == 1000
    assert document["sources"] == {"numbers": {"rows": 1000, "lost": 0}}
    assert set(document["sinks"]) == {"hole"}
    assert set(document["sinks"]["hole"]) == {"rows", "bytes", "cursor"}
    assert document["sinks"]["hole"]["rows"] == 1000


def test_bytes_are_about_what_the_files_hold(weir, pipeline):
    pipeline.write_text(
        PIPELINE.replace("best_effort", "exactly_once")
        .replace("1000}", "200000}")
        .replace("{type: blackhole}", "{type: file, path: ./lake}")
    )
    done = weir("run", pipeline, "--json")
    assert done.returncode == 0, done.stderr
    held = sum(path.stat().st_size for path in (pipeline.parent / "lake").iterdir())
    said = json.loads(done.stdout)["sinks"]["hole"]["bytes"]
    # An estimate: values of an open page count before they are encoded.
    in_memory = 200000 * 40
    assert 0.5 * held < said < in_memory


def test_the_document_of_status(weir, pipeline):
    assert weir("run", pipeline).returncode == 0
    done = weir("status", pipeline, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert set(document) == {
        "pipeline", "deployment", "decided", "committed", "unresolved", "resolved", "sinks", "dead_letters", "sources",
    }  # fmt: skip
    assert document["unresolved"] == []


def test_recover_has_nothing_to_do_and_ends(weir, pipeline):
    assert weir("run", pipeline).returncode == 0
    done = weir("recover", pipeline, "--json")
    assert done.returncode == 0, done.stderr
    assert "run" not in json.loads(done.stdout)


def test_nothing_on_stdout_and_a_summary_on_stderr(weir, pipeline):
    done = weir("run", pipeline)
    assert done.stdout == ""
    assert re.search(r"weir: info: p\.yaml: all delivered and committed: 1000 rows, ", done.stderr)


def test_progress_none_is_quiet(weir, pipeline):
    done = weir("run", pipeline, "--progress", "none", "--log-level", "warn")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_logs_as_json(weir, pipeline):
    done = weir("run", pipeline, "--log-format", "json")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert lines
    assert all({"time", "level", "text"} <= set(line) for line in lines)
    assert any("all delivered and committed" in line["text"] for line in lines)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_endless_run(weir_bin, pipeline, number):
    with Run(weir_bin, pipeline, "--set", "sources.numbers.rows=0", "--json") as run:
        run.wait_for("rows/s")
        run.process.send_signal(number)
        code, out, err = run.finish()
    assert code == 0, err
    assert f"{number.name}: one last checkpoint" in err
    assert json.loads(out)["rows"] > 0


def test_usr1_asks_for_a_checkpoint(weir_bin, pipeline):
    endless = ("--set", "sources.numbers.rows=0", "--set", "checkpoint.interval=1h")
    with Run(weir_bin, pipeline, *endless) as run:
        run.wait_for("rows/s")
        run.process.send_signal(signal.SIGUSR1)
        run.wait_for(r"SIGUSR1: checkpoint \d+")
        run.process.send_signal(signal.SIGTERM)
        code, _, err = run.finish()
    assert code == 0, err
