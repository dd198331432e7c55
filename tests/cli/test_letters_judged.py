"""Which rows become letters, and what the letters say: the same, however the rows lie in batches. The judge is weir
with one row a batch, and what this test knows of each row, since it made it."""

import base64
import json
import random
import subprocess

import pyarrow as pa
import pytest

NO_FOLDER = "__HIVE_DEFAULT_PARTITION__"
NO_TEXT = b"\xff\xfe"


def texts(values):
    """Texts of any bytes, as a producer may push them."""
    data = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.utf8(), len(data), data.buffers(), data.null_count, data.offset)


class Rows:
    """Columns with a good and a bad value each; every row has none, one or several bad ones."""

    def __init__(self, seed, columns, bad_share, n=200):
        rng = random.Random(seed)
        self.n, self.columns = n, columns
        self.bad = [{name for name in columns if rng.random() < bad_share / len(columns)} for _ in range(n)]
        self.rng = rng

    def table(self):
        made = {"id": pa.array(range(self.n), pa.int64())}
        for name, make in self.columns.items():
            made[name] = make([name in bad for bad in self.bad], self.rng)
        return pa.table(made)


def dictionary(values, rng):
    """Slots that no row names lie among those that rows do, bad ones too."""
    slots = list(dict.fromkeys(values))
    rng.shuffle(slots)
    return [slots.index(value) for value in values], slots


def plain(good, bad, kind):
    def make(flags, rng):
        return pa.array([None if not flag and rng.random() < 0.1 else bad if flag else good(rng) for flag in flags], kind)

    return make


def coded(good, bad, kind):
    def make(flags, rng):
        values = [bad if flag else good(rng) for flag in flags]
        indices, slots = dictionary([bad] + values, rng)
        return pa.DictionaryArray.from_arrays(pa.array(indices[1:], pa.int16()), pa.array(slots, kind))

    return make


def texted(flags, rng):
    return texts([NO_TEXT if flag else f"t{rng.randrange(9)}".encode() for flag in flags])


def listed(item, kind):
    good, bad = item

    def make(flags, rng):
        lists = []
        for flag in flags:
            items = [good(rng) for _ in range(rng.randrange(4))]
            if flag:
                items.insert(rng.randrange(len(items) + 1), bad)
            lists.append(None if not flag and rng.random() < 0.1 else items)
        return pa.array(lists, pa.list_(kind))

    return make


FOLDERS = plain(lambda rng: f"k{rng.randrange(4)}", NO_FOLDER, pa.utf8())
DAY = (lambda rng: rng.randrange(9) * 86400000, 5)
SECONDS = (lambda rng: rng.randrange(86400), 2**31 - 1)
FAR = (lambda rng: rng.randrange(10**9), 2**62)
NEEDS_QUOTES = plain(lambda rng: "x", "a,b", pa.utf8())
UNDATED = {"day": plain(*DAY, pa.date64()), "time": plain(*SECONDS, pa.time32("s")), "far": plain(*FAR, pa.timestamp("s"))}
LISTED = {"days": listed(DAY, pa.date64()), "times": listed(SECONDS, pa.time32("s"))}
CODED = {"day": coded(*DAY, pa.date64()), "time": coded(*SECONDS, pa.time32("s"))}
SINKS = {
    "ndjson": ("format: ndjson", {"text": texted, "far": plain(*FAR, pa.timestamp("s"))}),
    "ndjson-folders": ("format: ndjson, partition_by: [k]", {"k": FOLDERS, "text": texted, "far": plain(*FAR, pa.timestamp("s"))}),
    "csv-folders": ("format: csv, partition_by: [k, l]", {"text": texted, "k": FOLDERS, "far": plain(*FAR, pa.timestamp("s")), "l": FOLDERS}),
    "csv-no-quotes": ('format: csv, csv.quote: "", partition_by: [k]', {"k": FOLDERS, "text": NEEDS_QUOTES}),
    "parquet": ("format: parquet", UNDATED | LISTED),
    "parquet-folders": ("format: parquet, partition_by: [k]", {"k": FOLDERS} | UNDATED | LISTED),
    "parquet-rolls": ("format: parquet, roll.rows: 7, partition_by: [k]", UNDATED | {"k": FOLDERS}),
    "parquet-coded": ("format: parquet", CODED),
    "parquet-coded-folders": ("format: parquet, partition_by: [k]", {"k": FOLDERS} | CODED),
    "ndjson-coded": ("format: ndjson", {"far": coded(*FAR, pa.timestamp("s")), "text": texted}),
}


class Bench:
    def __init__(self, folder, binary, sink):
        self.folder, self.binary, self.sink = folder, binary, sink

    def deliver(self, name, table, sizes, writers=1):
        """What of the rows, in batches of those sizes, arrives: ids, and letters."""
        here = self.folder / name
        here.mkdir()
        with pa.OSFile(str(here / "in.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
            at = 0
            for size in sizes:
                for batch in table.slice(at, size).combine_chunks().to_batches():
                    file.write_batch(batch)
                at += size
        (here / "p.yaml").write_text(f"""
pipeline: judged
sources: {{rows: {{type: file, path: in.arrow, format: arrow}}}}
sinks:
  lake: {{{self.sink}, writers: {writers}, on_bad_row: {{dead_letter: bad}}}}
  bad: {{type: file, path: out/bad, format: ndjson}}
""")
        done = subprocess.run([self.binary, "run", "p.yaml", "--json"], cwd=here, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        letters = [json.loads(line) for path in (here / "out/bad").glob("*") for line in path.open()]
        assert json.loads(done.stdout)["rows"] == table.num_rows - len(letters)
        return {(id_of(letter), letter["column"], letter["reason"], letter["text"]) for letter in letters}, letters


def sizes_of(rng, n):
    while n > 0:
        size = min(n, rng.choice([1, 2, 7, 60, 300]))
        yield size
        n -= size


def id_of(letter):
    if letter["text"]:
        return json.loads(letter["text"])["id"]
    with pa.ipc.open_stream(base64.b64decode(letter["bytes"])) as reader:
        return reader.read_all()["id"][0].as_py()


def judge(bench, rows, rng, writers=1):
    table = rows.table()
    one_by_one, _ = bench.deliver("judge", table, [1] * rows.n)
    together, letters = bench.deliver("batches", table, list(sizes_of(rng, rows.n)), writers)
    named = {}
    for letter in letters:
        assert named.setdefault(id_of(letter), letter["column"]) == letter["column"]
    assert len(letters) == len(named)
    assert set(named) == {i for i, bad in enumerate(rows.bad) if bad}
    for i, column in named.items():
        assert column in rows.bad[i], (i, column, rows.bad[i])
    assert together == one_by_one


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", SINKS)
def test_a_file_sinks_letters_are_those_of_a_row_by_row_judge(name, seed, tmp_path, weir_bin):
    options, columns = SINKS[name]
    bench = Bench(tmp_path, weir_bin, f"type: file, path: out/lake, {options}")
    rows = Rows(seed, columns, 0.15 if seed % 2 else 0.7)
    judge(bench, rows, rows.rng, writers=seed)


def test_a_database_sinks_letters_are_those_of_a_row_by_row_judge(tmp_path, weir_bin):
    bench = Bench(tmp_path, weir_bin, "type: sqlite, path: out.db, table: t, create: true")
    columns = {
        "text": texted,
        "big": plain(lambda rng: rng.randrange(9), 2**63, pa.uint64()),
        "far": plain(*FAR, pa.timestamp("s")),
        "real": plain(lambda rng: 0.5, float("nan"), pa.float64()),
    }
    rows = Rows(3, columns, 0.3)
    judge(bench, rows, rows.rng)


# ---- sources ------------------------------------------------------------------------------------------------

JSON_GOOD = ['{{"id":{i},"name":"a"}}', '{{"name":"ü\\n","id":{i}}}', '{{"id":{i},"s":{{"a":1,"l":[1,2]}},"more":[{{}}]}}', '{{"id":{i}}}  ']
JSON_BAD = [
    ("id", '{{"id":"bad-{i}"}}'),
    ("id", '{{"id":{i}.5,"name":1e0}}'),
    ("name", '{{"id":{i},"name":[]}}'),
    ("s", '{{"id":{i},"s":{{"a":"x"}},"name":{{}}}}'),
    ("s", '{{"name":"b","id":{i},"s":{{"l":[1,null,"y"]}}}}'),
    ("id", '{{"id":{i},"id":{i}}}'),
    (None, "no row {i}"),
    (None, '{{"id":{i}'),
    (None, "[{i}]"),
]
CSV_GOOD = ["{i},a,1.5", '{i},"b\nc",', '"{i}","d""e",-0.1']
CSV_BAD = [("id", "bad-{i},a,1"), ("x", "{i},a,no"), ("id", 'bad-{i},"b\nc",no'), (None, "{i},a"), (None, '{i},"b\r\nc",1,2'), (None, "{i}")]


def read(folder, binary, name, texts, source):
    here = folder / name
    (here / "in").mkdir(parents=True)
    for i, text in enumerate(texts):
        (here / f"in/{i:04}.txt").write_bytes(text)
    (here / "p.yaml").write_text(f"""
pipeline: judged
sources: {{rows: {{type: file, path: in/*, {source}, on_bad_row: {{dead_letter: bad}}}}}}
sinks:
  lake: {{type: file, path: out/lake, format: ndjson}}
  bad: {{type: file, path: out/bad, format: ndjson}}
""")
    done = subprocess.run([binary, "run", "p.yaml"], cwd=here, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows, letters = ([json.loads(line) for path in sorted((here / "out" / sink).glob("*")) for line in path.open()] for sink in ("lake", "bad"))
    return sorted(rows, key=lambda row: row["id"]), letters


def said(letter):
    """Without the place, which the columns have."""
    return letter["column"], letter["reason"].split(": ", 1)[-1], letter["text"]


@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
@pytest.mark.parametrize("form", ["ndjson", "csv"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_sources_letters_are_those_of_a_row_by_row_judge(form, batch_rows, seed, tmp_path, weir_bin):
    rng = random.Random(seed)
    head = b"id,name,x\n" if form == "csv" else b""
    good, bad = (CSV_GOOD, CSV_BAD) if form == "csv" else (JSON_GOOD, JSON_BAD)
    types = "id: int64, name: utf8, x: float64" if form == "csv" else '"id": int64, "name": utf8, "s": "struct<a: int64, l: list<int64>>"'
    source = f"format: {form}, schema: {{{types}}}, batch_rows: "
    texts, expected, at, line = [], [], len(head), 1 + len(head.splitlines())
    for i in range(120):
        is_bad = rng.random() < (0.1 if seed == 1 else 0.6)
        column, text = rng.choice(bad) if is_bad else (None, rng.choice(good))
        ends = rng.choice(["\n", "\r\n"])
        record = text.format(i=i)
        data = (record + ends).encode()
        if is_bad:
            expected.append((at, line, column, record))
        texts.append(data)
        at += len(data)
        line += data.count(b"\n")
    rows, letters = read(tmp_path, weir_bin, "whole", [head + b"".join(texts)], f"{source}{batch_rows}")
    assert [(x["offset"], x["line"], x["column"], x["text"]) for x in sorted(letters, key=lambda x: x["offset"])] == expected
    alone, judged = read(tmp_path, weir_bin, "alone", [head + text for text in texts], f"{source}1000")
    assert rows == alone
    assert sorted(map(str, map(said, letters))) == sorted(map(str, map(said, judged)))
