"""Bad rows on their way to a sink of their own, killed at every step: rows and letters together are the source's
rows, each once."""

import json
import re

import pytest
from harness import PACE, Case, files_of, killed

# Failures before a decision, so that letters are rewound, too.
REWINDS = "task.write=fail@6,task.write=fail@15,task.write=fail@30"
POINTS = [
    "task.read",
    "task.write",
    "task.barrier",
    "file.begin",
    "file.staged.written",
    "file.prepared",
    "store.decide.before",
    "store.decide.after",
    "file.manifest.written",
    "file.manifest.linked",
    "file.published.one",
]
REWOUND = ["task.seek", "file.rollback", "store.abort.before", "store.abort.after"]


def is_bad(i):
    """Its source cannot read it."""
    return i % 7 == 3 or i // 100 % 5 == 4


def is_refused(i):
    """Its sink cannot write it: a text that stands for null in the names of folders."""
    return not is_bad(i) and (i % 11 == 5 or i // 50 % 9 == 1)


def kind(i):
    return "__HIVE_DEFAULT_PARTITION__" if is_refused(i) else f"k{i % 2}"


class Letters(Case):
    """Source `orders` of NDJSON and `more` of CSV, both into `lake`, and the bad rows of all three into `bad`."""

    def __init__(self, folder, binary, **options):
        super().__init__(folder, binary, rows=2400, files=2, sources=2, **options)

    def put(self, source, name, first, n):
        if source == "orders":
            rows = [f'{{"id":"bad-{i}"}}\n' if is_bad(i) else f'{{"id":{i},"kind":"{kind(i)}"}}\n' for i in range(first, first + n)]
            (self.folder / source / f"{name}.ndjson").write_text("".join(rows))
        else:
            rows = [f'"bad-{i}","two\nlines"\n' if is_bad(i) else f"{i},{kind(i)}\n" for i in range(first, first + n)]
            (self.folder / source / f"{name}.csv").write_text("id,kind\n" + "".join(rows))

    def configure(self, writers=2):
        self.pipeline.write_text(f"""
pipeline: crash
state: ./state
checkpoint: {{interval: 5ms}}
sources:
  orders: {{type: file, path: orders/*.ndjson, batch_rows: 60, schema: {{id: int64, kind: utf8}}, on_bad_row: {{dead_letter: bad}}}}
  more: {{type: file, path: more/*.csv, batch_rows: 60, schema: {{id: int64, kind: utf8}}, on_bad_row: {{dead_letter: bad}}}}
sinks:
  lake: {{type: file, path: ./out/lake, format: ndjson, partition_by: kind, writers: {writers}, from: [orders, more], on_bad_row: {{dead_letter: bad}}}}
  bad: {{type: file, path: ./out/bad, format: ndjson, writers: {writers}}}
""")

    def lines(self, sink):
        return [json.loads(line) for path in files_of(self.folder / "out" / sink) for line in path.open()]

    def check(self):
        rows = sorted(row["id"] for row in self.lines("lake"))
        assert rows == [i for i in range(self.rows) if not is_bad(i) and not is_refused(i)]
        read, written = [], []
        for letter in self.lines("bad"):
            if letter["kind"] == "sink":
                row = json.loads(letter["text"])
                written.append(row["id"])
                assert (letter["name"], letter["column"], row["kind"]) == ("lake", "kind", kind(row["id"]))
                continue
            read.append(int(re.search(r"bad-(\d+)", letter["text"])[1]))
            assert letter["column"] == "id" and "bad-" in letter["reason"]
            assert letter["part"].startswith(f"{self.folder}/{letter['name']}/")
            with open(letter["part"], "rb") as file:
                file.seek(letter["offset"])
                assert file.read(len(letter["text"])).decode() == letter["text"]
        assert sorted(read) == [i for i in range(self.rows) if is_bad(i)]
        assert sorted(written) == [i for i in range(self.rows) if is_refused(i)]


@pytest.mark.parametrize("point", POINTS + REWOUND)
def test_kill_with_letters_on_the_way(point, tmp_path, weir_faults_bin):
    case = Letters(tmp_path, weir_faults_bin)
    # Failures that fall into one attempt, as on a slow disk, abort it once: no more than one rewind is sure.
    first, second, more = (1, 2, f",{REWINDS}") if point in REWOUND else (2, 6, "")
    case.kill(f"{point}=kill@{first}{more}")
    case.grow(300)
    process = case.run(f"{point}=kill@{second}{more},{PACE}")
    assert killed(process) or process.returncode == 0, process.stderr[-4000:]
    case.grow(300)
    case.finish()
    case.check()
    case.check_clean()


def test_counts_survive_rewinds(tmp_path, weir_faults_bin):
    """An attempt that was given up counts no letter, and neither is told twice."""
    case = Letters(tmp_path, weir_faults_bin)
    done = case.finish(faults=f"{REWINDS},{PACE}")
    bad = sum(is_bad(i) or is_refused(i) for i in range(case.rows))
    assert done["dead_letters"] == done["sinks"]["bad"]["rows"] == bad
    assert done["rows"] == done["sinks"]["lake"]["rows"] == case.rows - bad
    assert sum(source["rows"] for source in done["sources"].values()) == case.rows
    status = json.loads(case.run(verb="status").stdout)
    assert status["dead_letters"] == bad
    case.check()
