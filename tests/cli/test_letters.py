"""Bad rows that go to a sink of their own: what is told, what is counted, and what is refused."""

import gzip
import json
import subprocess

import pytest

OK, USAGE, ADMISSION, BAD_DATA = 0, 2, 3, 6
SCHEMA = "schema: {id: int64, name: utf8}"


class Bench:
    def __init__(self, folder, binary):
        self.folder, self.binary = folder, binary
        (folder / "in").mkdir()

    def put(self, name, text):
        data = text if isinstance(text, bytes) else text.encode()
        (self.folder / "in" / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    def pipeline(self, source=f"path: in/*, {SCHEMA}", bad="type: file, path: out/bad, format: ndjson", top="", name="bad", more=""):
        (self.folder / "p.yaml").write_text(f"""
pipeline: letters
state: ./state
{top}
sources:
  rows: {{type: file, {source}, on_bad_row: {{dead_letter: {name}}}}}
sinks:
  lake: {{type: file, path: out/lake, format: ndjson{more}}}
  bad: {{{bad}}}
""")

    def call(self, *arguments, **options):
        return subprocess.run([self.binary, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=60, **options)

    def run(self, status=OK, verb="run", **options):
        done = self.call(verb, "p.yaml", *(["--json"] if verb != "check" else []), **options)
        assert done.returncode == status, done.stderr + done.stdout
        return json.loads(done.stdout) if done.stdout.startswith("{") else done

    def lines(self, sink):
        folder = self.folder / "out" / sink
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        return [json.loads(line) for path in files for line in path.open()]


@pytest.fixture
def bench(tmp_path, weir_bin):
    return Bench(tmp_path, weir_bin)


def test_counts_and_words(bench):
    bench.put("a.ndjson", '{"id":1}\nno row\n{"id":2.5}\n{"id":3}\n')
    bench.pipeline()
    checked = bench.call("check", "p.yaml")
    assert checked.returncode == OK
    assert "rows -> bad: after a kill -9, every bad row of rows is in bad exactly once" in checked.stdout
    assert "rows -> lake: after a kill -9, every good row of rows is in lake exactly once" in checked.stdout
    done = bench.run()
    assert (done["rows"], done["dead_letters"]) == (2, 2)
    assert done["sources"]["rows"]["rows"] == 4 and done["sinks"]["bad"]["rows"] == 2
    assert [row["id"] for row in bench.lines("lake")] == [1, 3]
    assert [(letter["line"], letter["text"]) for letter in bench.lines("bad")] == [(2, "no row"), (3, '{"id":2.5}')]
    bench.put("b.ndjson", "[]\n")
    again = bench.call("run", "p.yaml")
    assert "all delivered and committed: 0 rows, 1 dead letter, " in again.stderr
    assert bench.run(verb="status")["dead_letters"] == 3
    assert "dead letters: 3\n" in bench.call("status", "p.yaml").stdout
    assert len(bench.lines("bad")) == 3
    assert bench.run(verb="verify")["agreed"]


def test_no_bad_row_no_letter(bench):
    bench.put("a.csv", "id,name\n1,a\n")
    bench.pipeline()
    done = bench.run()
    assert done["dead_letters"] == 0 and done["sinks"]["bad"]["cursor"] is None
    assert not bench.lines("bad")


def test_compressed(bench):
    bench.put("a.csv.gz", 'id,name\r\n1,a\r\n2,"b\r\nc",d\r\nx,y\r\n3,c\r\n')
    bench.pipeline()
    bench.run()
    assert [row["id"] for row in bench.lines("lake")] == [1, 3]
    assert [letter["text"] for letter in bench.lines("bad")] == ['2,"b\r\nc",d', "x,y"]


def test_an_inferred_schema_is_of_the_good_rows(bench):
    bench.put("a.ndjson", '{"id":1}\nno row\n{"id":3}\n')
    bench.pipeline(source="path: in/*")
    bench.run()
    assert bench.lines("lake") == [{"id": 1}, {"id": 3}]
    assert len(bench.lines("bad")) == 1


def test_standard_input(bench):
    bench.pipeline(source=f"path: '-', format: ndjson, {SCHEMA}", top="guarantee: best_effort")
    done = bench.run(input='{"id":1}\nno row\n{"id":3}')
    assert done["rows"] == 2 and done["dead_letters"] == 1


@pytest.mark.parametrize("text, says", [('id,name\n1,a\n2,"b\n3,c\n', "never closed"), ("id,other\n1,a\n", "header lacks column")])
def test_broken_framing_is_an_error(bench, text, says):
    bench.put("a.csv", text)
    bench.pipeline()
    done = bench.call("run", "p.yaml")
    assert done.returncode == BAD_DATA and says in done.stderr
    assert not bench.lines("lake") and not bench.lines("bad")


def test_a_name_that_is_no_sink(bench):
    bench.put("a.csv", "id,name\n")
    bench.pipeline(name="bat")
    done = bench.run(USAGE, "check")
    for part in ("p.yaml:", "source rows", "'on_bad_row.dead_letter'", "no sink 'bat'", "did you mean 'bad'"):
        assert part in done.stderr


def test_a_sink_of_letters_takes_nothing_else(bench):
    bench.put("a.csv", "id,name\n")
    bench.pipeline(bad="type: file, path: out/bad, from: rows")
    done = bench.run(USAGE, "check")
    assert "sink bad" in done.stderr and "'from'" in done.stderr and "dead letters" in done.stderr
    bench.pipeline(name="lake", bad="type: blackhole", top="guarantee: best_effort")
    done = bench.run(verb="check")
    assert "every bad row of rows is in lake" in done.stdout


def test_the_only_sink_cannot_take_letters(bench):
    bench.put("a.csv", "id,name\n")
    (bench.folder / "p.yaml").write_text(
        f"pipeline: letters\nsources: {{rows: {{type: file, path: in/*, {SCHEMA}, on_bad_row: {{dead_letter: lake}}}}}}\n"
        "sinks: {lake: {type: file, path: out}}\n"
    )
    done = bench.run(USAGE, "check")
    assert "source rows feeds no sink" in done.stderr


def test_a_sink_of_letters_keeps_the_guarantee(bench):
    bench.put("a.csv", "id,name\n")
    bench.pipeline(bad="type: blackhole")
    done = bench.run(ADMISSION, "check")
    assert "sink bad" in done.stdout + done.stderr and "committable" in done.stdout + done.stderr


def test_a_source_without_bad_rows(bench):
    (bench.folder / "p.yaml").write_text(
        "pipeline: letters\nsources: {rows: {type: generator, rows: 1, on_bad_row: {dead_letter: bad}}}\n"
        "sinks: {lake: {type: file, path: out/lake}, bad: {type: file, path: out/bad}}\n"
    )
    done = bench.run(USAGE, "check")
    assert "source rows" in done.stderr and "'on_bad_row.dead_letter'" in done.stderr


KIND = "schema: {id: int64, kind: utf8}"
NO_FOLDER = "__HIVE_DEFAULT_PARTITION__"


def test_rows_that_a_sink_cannot_map(bench):
    """The file sink has no folder for a text that stands for null in the names of folders."""
    kinds = ["a", NO_FOLDER, "b", NO_FOLDER, "a"]
    bench.put("a.ndjson", "".join(f'{{"id":{i},"kind":"{kind}"}}\n' for i, kind in enumerate(kinds)) + "no row\n")
    more = ", partition_by: kind, on_bad_row: {dead_letter: bad}"
    bench.pipeline(source=f"path: in/*, {KIND}", more=more)
    done = bench.run()
    assert (done["rows"], done["dead_letters"], done["sources"]["rows"]["rows"]) == (3, 3, 6)
    letters = {letter["text"]: letter for letter in bench.lines("bad")}
    letter = letters.pop(f'{{"id":1,"kind":"{NO_FOLDER}"}}')
    assert (letter["kind"], letter["name"], letter["column"], letter["part"], letter["line"]) == ("sink", "lake", "kind", None, None)
    assert NO_FOLDER not in letter["reason"] and "stands for null" in letter["reason"]
    assert set(letters) == {f'{{"id":3,"kind":"{NO_FOLDER}"}}', "no row"}
    assert letters["no row"]["kind"] == "source"
    assert bench.run(verb="verify")["agreed"]


def test_every_row_is_bad(bench):
    bench.put("a.ndjson", "".join(f'{{"id":{i},"kind":"{NO_FOLDER}"}}\n' for i in range(20000)))
    bench.pipeline(source=f"path: in/*, {KIND}, batch_rows: 20000", more=", partition_by: kind, on_bad_row: {dead_letter: bad}")
    done = bench.run()
    assert (done["rows"], done["dead_letters"]) == (0, 20000)
    assert sorted(json.loads(letter["text"])["id"] for letter in bench.lines("bad")) == list(range(20000))


def test_letters_of_letters_but_in_no_circle(bench):
    bench.put("a.csv", "id,name\n")
    bench.pipeline(more=", on_bad_row: {dead_letter: lake}")
    assert "a sink cannot take its own bad rows" in bench.run(USAGE, "check").stderr
    bench.pipeline(bad="type: file, path: out/bad, on_bad_row: {dead_letter: bad}")
    assert "a sink cannot take its own bad rows" in bench.run(USAGE, "check").stderr
    bench.pipeline(bad="type: file, path: out/bad, on_bad_row: {dead_letter: last}", more="}\n  last: {type: file, path: out/last, on_bad_row: {dead_letter: bad}")
    assert "would come back to it" in bench.run(USAGE, "check").stderr
    bench.pipeline(bad="type: file, path: out/bad, on_bad_row: {dead_letter: last}", more="}\n  last: {type: file, path: out/last")
    assert "every bad row of rows is in last" in bench.run(verb="check").stdout
    assert bench.run()["dead_letters"] == 0


def test_a_sink_for_letters_may_be_added_after_a_stop(bench):
    bench.put("a.ndjson", '{"id":1}\n{"id":2}\n')
    bench.pipeline()
    whole = (bench.folder / "p.yaml").read_text()
    without = whole.replace(", on_bad_row: {dead_letter: bad}", "").replace("  bad: {type: file, path: out/bad, format: ndjson}\n", "")
    (bench.folder / "p.yaml").write_text(without)
    assert bench.run()["rows"] == 2
    bench.put("b.ndjson", '{"id":3}\nno row\n{"id":4}\n')
    assert bench.call("run", "p.yaml").returncode == BAD_DATA
    (bench.folder / "p.yaml").write_text(whole)
    done = bench.run()
    assert (done["rows"], done["dead_letters"]) == (2, 1)
    assert sorted(row["id"] for row in bench.lines("lake")) == [1, 2, 3, 4]
    assert [letter["text"] for letter in bench.lines("bad")] == ["no row"]
    bench.put("c.ndjson", '{"id":5}\n')
    (bench.folder / "p.yaml").write_text(without)
    assert bench.run()["rows"] == 1
