"""What a user can get wrong, one by one: a clear error, the right exit status, nothing half-visible, and a
run after the cause is gone delivers the rest exactly."""

import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

import pyarrow
import pytest

from place import PIPELINE, Place, line, lines, small_files, without_override

HERE = pathlib.Path(__file__).parent
FAILED, USAGE, FENCED, UNFINISHED, BAD_DATA = 1, 2, 4, 5, 6


@pytest.fixture
def place(tmp_path, weir_bin):
    return Place(tmp_path, weir_bin)


@pytest.fixture
def begun(place):
    """Ten rows are delivered already."""
    place.source("a.ndjson", lines(0, 10))
    place.finish(range(10))
    return place


# ---- files that are not there, or cannot be read


@pytest.mark.parametrize("path", ["in/*.ndjson", "in/a.ndjson", "[in/a.ndjson, in/*.jsonl]"])
def test_no_file(place, path):
    place.write_pipeline(PIPELINE.replace("in/*.ndjson", path))
    place.refused(FAILED, "pipeline bad", "source rows", "path", f"{place.folder}/in/", "no ")
    place.source("a.ndjson", lines(0, 10))
    place.finish(range(10))


def test_one_of_several_files_is_missing(begun):
    begun.write_pipeline(PIPELINE.replace("in/*.ndjson", "[in/a.ndjson, in/b.ndjson]"))
    begun.refused(FAILED, "pipeline bad", "source rows", "in/b.ndjson", "no such file")
    begun.source("b.ndjson", lines(10, 10))
    begun.finish(range(20))


def test_a_file_that_may_not_be_read(begun):
    path = begun.source("b.ndjson", lines(10, 10))
    path.chmod(0)
    begun.refused(FAILED, "pipeline bad", "source rows", str(path), "Permission denied", preexec_fn=without_override)
    path.chmod(0o644)
    begun.finish(range(20))


def test_a_folder_that_may_not_be_listed(begun):
    (begun.folder / "in").chmod(0)
    begun.refused(FAILED, "pipeline bad", "source rows", "in/*.ndjson", "Permission denied", preexec_fn=without_override)
    (begun.folder / "in").chmod(0o755)
    begun.source("b.ndjson", lines(10, 10))
    begun.finish(range(20))


def test_a_folder_instead_of_a_file(place):
    place.write_pipeline(PIPELINE.replace("in/*.ndjson", "in"))
    place.refused(USAGE, "pipeline bad", "source rows", "is a folder", f"{place.folder}/in/*.ndjson")


# ---- rows that are not what was said of them

BAD_LINES = {
    "malformed": (b'{"id":15,"name":"x\n', ["malformed JSON", '{"id":15,"name":"x']),
    "not an object": (b"[15]\n", ["not a JSON object"]),
    "two on one line": (b'{"id":15}{"id":16}\n', ["malformed JSON"]),
    "wrong type": (line(15, id="x"), ["column 'id' (int64)", "whole number"]),
    "object in a text": (line(15, name={"a": 7}), ["column 'name'"]),
    "fraction in an integer": (line(15, id=1.5), ["column 'id' (int64)", "whole number"]),
    "beyond int8": (line(15, part=128), ["column 'part' (int8)", "out of range"]),
    "beyond int64": (b'{"id":9223372036854775808}\n', ["column 'id' (int64)", "out of range"]),
    "beyond float64": (b'{"id":15,"price":1e999}\n', ["column 'price'", "out of range"]),
    "no such day": (line(15, day="2023-02-29"), ["column 'day' (date32)", "date"]),
    "invalid UTF-8": (b'{"id":15,"name":"\xff"}\n', ["UTF-8"]),
    "invalid UTF-8 in a key": (b'{"id":15,"\xc0\x80":1}\n', ["UTF-8"]),
    "half a surrogate pair": (b'{"id":15,"name":"\\ud800"}\n', ["malformed JSON"]),
    "a column twice": (b'{"id":15,"id":16}\n', ["column 'id' (int64)", "twice"]),
    "a NUL byte": (b'{"id":15}\0\n', ["malformed JSON"]),
}


@pytest.mark.parametrize("replaced", [False, True], ids=["in place", "replaced"])
@pytest.mark.parametrize("what", BAD_LINES)
def test_a_bad_row(begun, what, replaced):
    bad, words = BAD_LINES[what]
    bad = bad if isinstance(bad, bytes) else bad.encode()
    good = lines(10, 5).encode(), lines(16, 4).encode()
    path = begun.source("b.ndjson", good[0] + bad + good[1])
    error = begun.refused(BAD_DATA, "pipeline bad", "source rows", str(path), "line 6", *words)
    assert re.search(r"byte \d+", error)
    # Again: still refused, and nothing more of it is there.
    begun.refused(BAD_DATA, str(path), "line 6")
    if replaced:  # as editors do: another file takes the name
        path.unlink()
    path.write_bytes(good[0] + line(15).encode() + good[1])
    begun.finish(range(20))


def test_a_bad_row_behind_delivered_ones_of_its_file(begun):
    """With small batches and epochs a part of the file is delivered; correcting the rest is enough."""
    begun.write_pipeline(
        PIPELINE.replace("type: file\n", "type: file\n    batch_rows: 50\n", 1).replace(
            "sources:", "checkpoint: {interval: 1ms}\nsources:"
        )
    )
    path = begun.source("b.ndjson", lines(10, 30000) + line(30010, part=1000) + lines(30011, 10))
    begun.refused(BAD_DATA, "pipeline bad", str(path), "line 30001", "column 'part' (int8)")
    assert begun.ids() == list(range(len(begun.ids())))
    begun.source("b.ndjson", lines(10, 30011))
    begun.finish(range(30021))


def test_a_line_beyond_the_limit(begun):
    long = line(10, name="x" * 5000)
    path = begun.source("b.ndjson", long)
    begun.refused(
        BAD_DATA, "pipeline bad", "source rows", str(path), "line 1", "max_line",
        arguments=begun.set("sources.rows.max_line=1KiB"),
    )  # fmt: skip
    begun.finish(range(11))


def test_a_file_that_grew_behind_a_line_without_end(place):
    path = place.source("a.ndjson", lines(0, 9) + line(9).rstrip("\n"))
    place.finish(range(10))
    old = path.read_bytes()
    path.write_bytes(old + b"\n" + line(10).encode())
    place.refused(BAD_DATA, "pipeline bad", "source rows", str(path), "grew", "file of its own")
    path.write_bytes(old)
    place.source("b.ndjson", line(10))
    place.finish(range(11))


def test_a_file_whose_delivered_rows_changed(begun):
    path = begun.folder / "in/a.ndjson"
    old = path.read_bytes()
    path.write_bytes(old.replace(b"n3", b"n4"))
    begun.refused(BAD_DATA, "pipeline bad", "source rows", str(path), "changed since it was read")
    path.write_bytes(old[:-5])
    begun.refused(BAD_DATA, "pipeline bad", str(path), "became shorter")
    path.write_bytes(old + line(10).encode())
    begun.finish(range(11))


def test_another_file_in_the_place_of_a_half_read_one(begun):
    """Its unread rows would be lost."""
    begun.write_pipeline(PIPELINE.replace("batch_rows", "").replace("type: file\n", "type: file\n    batch_rows: 50\n", 1)
                         .replace("sources:", "checkpoint: {interval: 1ms}\nsources:"))  # fmt: skip
    path = begun.source("b.ndjson", lines(10, 30000) + "no row\n")
    begun.refused(BAD_DATA, "line 30001")
    assert len(begun.ids()) > 10, "a part of the file is delivered"
    path.rename(begun.folder / "kept")
    begun.source("b.ndjson", lines(900000, 10))
    begun.refused(BAD_DATA, "pipeline bad", "source rows", str(path), "replaced by another file", "bring the old file")
    path.unlink()
    begun.refused(FAILED, "pipeline bad", "source rows", str(path), "is gone", "bring it back")
    (begun.folder / "kept").write_text(lines(10, 30000))
    (begun.folder / "kept").rename(path)
    begun.finish(range(30010))


# ---- Arrow files

ARROW = PIPELINE.replace("in/*.ndjson", "in/*.arrow*").replace(
    "    schema: {id: int64, name: utf8, price: float64, day: date32, part: int8}\n", ""
)


def arrow_bytes(first, n, stream, **options):
    ids = pyarrow.array(range(first, first + n), pyarrow.int64())
    table = pyarrow.table({"id": ids, "name": [f"n{i}" for i in range(n)]})
    out = pyarrow.BufferOutputStream()
    new = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    with new(out, table.schema, options=pyarrow.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=100)
    return out.getvalue().to_pybytes()


@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
@pytest.mark.parametrize("cut", [0, 1, 7, 100, 0.5, 0.9, -20, -1])
def test_a_truncated_arrow_file(place, stream, cut):
    place.write_pipeline(ARROW)
    place.source("a.arrow", arrow_bytes(0, 10, False))
    place.finish(range(10))
    whole = arrow_bytes(10, 1000, stream)
    size = int(len(whole) * cut) if isinstance(cut, float) else cut % len(whole)
    path = place.source("b.arrow", whole[:size])
    place.refused(BAD_DATA, "pipeline bad", "source rows", str(path))
    path.write_bytes(whole)
    place.finish(range(1010))


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_damaged_arrow_files(place, codec):
    """Bytes turned over in many places: refused, or delivered where no reader could see it; never a crash,
    never a part of it, and the good file is delivered after."""
    place.write_pipeline(ARROW)
    whole = arrow_bytes(0, 300, False, compression=codec)
    path = place.source("b.arrow", whole)
    for at in range(8, len(whole), len(whole) // 25):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        done = place.run()
        assert done.returncode in (0, BAD_DATA), done.stderr
        if done.returncode == 0:
            shutil.rmtree(place.folder / "out")
            shutil.rmtree(place.folder / "state")
        else:
            assert str(path) in done.stderr, done.stderr
            assert place.ids() == []
    path.write_bytes(whole)
    place.finish(range(300))


def test_arrow_files_that_do_not_agree(place):
    place.write_pipeline(ARROW)
    place.source("a.arrow", arrow_bytes(0, 10, False))
    place.finish(range(10))
    table = pyarrow.table({"id": pyarrow.array(["x"]), "name": ["y"]})
    path = place.folder / "in/b.arrow"
    with pyarrow.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    place.refused(BAD_DATA, "pipeline bad", "source rows", str(path), "id", "int64", "utf8")
    path.write_bytes(arrow_bytes(10, 10, True))
    place.finish(range(20))


# ---- no room, no right to write


@pytest.fixture(scope="session")
def full_disk(tmp_path_factory):
    library = tmp_path_factory.mktemp("full") / "full_disk.so"
    subprocess.run(["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-o", library, HERE / "full_disk.c"], check=True)
    return library


@pytest.mark.parametrize("room", [0, 10, 5000, 30000, 50000, 65000, 70000, 80000, 90000, 110000, 130000, 160000])
def test_a_full_disk(place, full_disk, room):
    place.write_pipeline(PIPELINE.replace("schema:", "batch_rows: 500\n    schema:", 1))
    place.source("a.ndjson", lines(0, 20000))
    env = {"LD_PRELOAD": str(full_disk), "FULL_AFTER": str(room)}
    done = place.run(env=env)
    if room < 160000:
        assert done.returncode in (FAILED, UNFINISHED), done.stderr
        place.refused(done.returncode, "pipeline bad", run=done)
        assert re.search("No space left|disk is full", done.stderr), done.stderr
        assert place.ids() in ([], list(range(20000)))
    place.finish(range(20000))


@pytest.mark.parametrize("size", [100, 1000, 20000])
def test_files_that_may_not_grow(place, size):
    place.source("a.ndjson", lines(0, 20000))
    done = place.run(preexec_fn=small_files(size), restore_signals=False)
    assert done.returncode in (FAILED, UNFINISHED), done.stderr
    place.refused(done.returncode, "pipeline bad", run=done)
    place.finish(range(20000))


@pytest.mark.parametrize("which", [".", "out", "out/lake", "out/.weir/lake", "state"])
def test_a_folder_that_may_not_be_written(place, which):
    place.source("a.ndjson", lines(0, 10))
    if which != ".":
        place.finish(range(10))
        place.source("b.ndjson", lines(10, 10))
    folder = place.folder / which
    if which == "out/.weir/lake":  # what weir made there is not for others, and so is what lies below
        folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    else:
        folders = [folder]
    if which == "out":
        shutil.rmtree(folder / "lake")  # a user's right; made again, were it not for the folder
    modes = [path.stat().st_mode for path in folders]
    for path in reversed(folders):
        path.chmod(0o555)
    done = place.run(preexec_fn=without_override)
    for path, mode in zip(folders, modes):
        path.chmod(mode)
    place.refused(FAILED, "pipeline bad", str(place.folder), run=done)
    assert re.search("Permission denied|readonly|read-only", done.stderr), done.stderr
    place.finish(range(10, 20) if which == "out" else range(10) if which == "." else range(20))


def test_a_read_only_file_system(place):
    place.source("a.ndjson", lines(0, 10))
    place.refused(FAILED, "pipeline bad", "sink lake", "/proc/x", arguments=place.set("sinks.lake.path=/proc/x"))
    place.refused(FAILED, "pipeline bad", "state", "/proc/x", arguments=place.set("state=/proc/x/y"))
    place.finish(range(10))


# ---- targets that cannot be


def test_a_target_that_is_a_file(place):
    place.source("a.ndjson", lines(0, 10))
    (place.folder / "file").write_text("mine")
    for path in ("file", "file/below"):
        place.refused(USAGE, "pipeline bad", "sink lake", f"{place.folder}/file", "folder",
                      arguments=place.set(f"sinks.lake.path={path}"))  # fmt: skip
    assert (place.folder / "file").read_text() == "mine"
    place.finish(range(10))


def test_a_target_that_is_a_mount(place):
    mount = next(path for path in ("/dev/shm", "/dev", "/run", "/proc") if os.path.ismount(path))
    before = sorted(os.listdir(os.path.dirname(mount)))
    place.source("a.ndjson", lines(0, 10))
    place.refused(USAGE, "pipeline bad", "sink lake", mount, "another mount", "name a folder inside it",
                  arguments=place.set(f"sinks.lake.path={mount}"))  # fmt: skip
    assert sorted(os.listdir(os.path.dirname(mount))) == before
    place.finish(range(10))


def test_staged_files_on_another_file_system_than_the_target(place):
    """Were it not refused, its first epoch would be decided and could never be published."""
    place.source("a.ndjson", lines(0, 10))
    away = pathlib.Path("/dev/shm") / f"weir-test-{os.getpid()}"
    assert os.stat("/dev/shm").st_dev != os.stat(place.folder).st_dev
    away.mkdir()
    try:
        (place.folder / "out").mkdir()
        (place.folder / "out/.weir").symlink_to(away)
        place.refused(USAGE, "pipeline bad", "sink lake", f"{place.folder}/out/lake", "another mount")
    finally:
        shutil.rmtree(away)
    (place.folder / "out/.weir").unlink()
    place.finish(range(10))


def test_a_target_within_another(begun):
    begun.write_pipeline(PIPELINE.replace("bad", "other").replace("./state", "./other-state").replace("out/lake", "out/lake/in"))
    begun.refused(USAGE, "pipeline other", "sink lake", "out/lake/in", "within")
    begun.write_pipeline(PIPELINE)
    begun.finish(range(10))


def test_two_sinks_of_one_pipeline_on_one_folder(place):
    place.source("a.ndjson", lines(0, 10))
    second = "  also: {type: file, path: ./out/nowhere/../lake/}\n"
    place.write_pipeline(PIPELINE + second)
    place.refused(USAGE, "pipeline bad", "sink also", "sink lake", f"{place.folder}/out/lake", "of its own")
    assert not (place.folder / "out").exists()
    place.write_pipeline(PIPELINE + second.replace("/nowhere/../lake/", "/also"))
    place.finish(range(10))


def test_two_pipelines_on_one_folder(begun):
    begun.write_pipeline(PIPELINE.replace("bad", "other").replace("./state", "./other-state"))
    error = begun.refused(USAGE, "pipeline other", "sink lake", f"{begun.folder}/out/lake", "pipeline 'bad'", "`path`")
    begun.write_pipeline(PIPELINE)
    begun.source("b.ndjson", lines(10, 10))
    begun.finish(range(20))
    assert "owner.json" in error


def test_another_target_than_that_of_the_deployment(begun):
    begun.source("b.ndjson", lines(10, 10))
    begun.refused(FENCED, "pipeline bad", "sink lake", "target", "--new-deployment",
                  arguments=begun.set("sinks.lake.path=./out/elsewhere"))  # fmt: skip
    begun.finish(range(20))


def test_a_target_that_was_removed(begun):
    """The rows that are gone are not quietly left out; all are delivered again when told so."""
    begun.source("b.ndjson", lines(10, 10))
    shutil.rmtree(begun.folder / "out")
    begun.refused(FENCED, "pipeline bad", "sink lake", "--new-deployment")
    assert begun.run("--new-deployment").returncode == 0
    begun.finish(range(20))


# ---- configs

CONFIGS = {
    "unknown option": ("sinks.lake.formt=parquet", ["sink lake", "'formt'", "did you mean 'format'"]),
    "unknown source option": ("sources.rows.pth=x", ["source rows", "'pth'", "did you mean 'path'"]),
    "unknown key": ("chekpoint.interval=1s", ["'chekpoint'", "did you mean 'checkpoint'"]),
    "unknown key below": ("checkpoint.intervall=1s", ["intervall'", "did you mean 'checkpoint.interval'"]),
    "unknown type": ("sources.rows.type=fiel", ["source rows", "'fiel'", "did you mean 'file'"]),
    "unknown column type": ("sources.rows.schema.id=int65", ["source rows", "schema", "'id'", "int65", "'int64'"]),
    "unknown source": ("sinks.lake.from=[row]", ["sink lake", "'row'", "did you mean 'rows'"]),
    "unknown value": ("sinks.lake.format=parket", ["sink lake", "'format'", "parquet, arrow, ndjson", "'parket'"]),
    "unknown codec": ("sinks.lake.compression=zst", ["sink lake", "compression", "'zst'", "zstd"]),
    "level of a codec": ("sinks.lake.compression=zstd(99)", ["sink lake", "compression", "zstd(99)", "22"]),
    "size": ("sinks.lake.roll.size=12Q", ["sink lake", "'roll.size'", "64MiB", "'12Q'"]),
    "duration": ("checkpoint.interval=soon", ["'checkpoint.interval'", "10s", "'soon'"]),
    "beyond bounds": ("sinks.lake.writers=0", ["sink lake", "'writers'", "from 1 to 1024", "'0'"]),
    "without effect": ("sinks.lake.flush_interval=1s", ["sink lake", "flush_interval"]),
    "guarantee": ("guarantee=exactly_onse", ["'guarantee'", "exactly_once", "'exactly_onse'"]),
    "name": ("pipeline=Bad", ["pipeline", "'Bad'", "a-z"]),
}  # fmt: skip


@pytest.mark.parametrize("what", CONFIGS)
def test_a_bad_config(place, what):
    setting, words = CONFIGS[what]
    place.source("a.ndjson", lines(0, 10))
    place.refused(USAGE, *words, arguments=place.set(setting))
    checked = place.run(*place.set(setting), verb="check")
    assert checked.returncode == USAGE, checked.stderr
    assert not (place.folder / "out").exists()
    place.finish(range(10))


@pytest.mark.parametrize("key, where", [
    ("pipeline: bad\n", "pipeline"),
    ("sinks:\n  other: {type: blackhole}\n", "sinks"),
])  # fmt: skip
def test_a_duplicate_key(place, key, where):
    place.source("a.ndjson", lines(0, 10))
    place.write_pipeline(PIPELINE + key)
    place.refused(USAGE, "p.yaml:", f"'{where}' is given twice", "first at line")
    place.write_pipeline(PIPELINE)
    place.finish(range(10))


def test_a_duplicate_sink(place):
    place.source("a.ndjson", lines(0, 10))
    place.write_pipeline(PIPELINE + "  lake: {type: blackhole}\n")
    place.refused(USAGE, "p.yaml:", "'lake'", "twice")
    place.write_pipeline(PIPELINE)
    place.finish(range(10))


def test_a_guarantee_that_cannot_be_kept(place):
    place.source("a.ndjson", lines(0, 10))
    place.write_pipeline(PIPELINE + "  screen: {type: stdout}\n")
    done = place.run()
    assert done.returncode == 3 and done.stdout == "", done.stderr
    place.refused(3, "pipeline bad", "screen", "exactly_once", run=done)
    assert not (place.folder / "out").exists()
    place.write_pipeline(PIPELINE)
    place.finish(range(10))


# ---- after a restart


@pytest.mark.parametrize("old, new, words", [
    ("price: float64", "price: int64", ["column", "price", "was float64 and is now int64"]),
    ("part: int8", "part: int8, extra: utf8", ["column", "extra", "(utf8) is new"]),
    (", part: int8", "", ["column", "part", "(int8) is gone"]),
    ("id: int64, name: utf8", "name: utf8, id: int64", ["another order"]),
])  # fmt: skip
def test_a_changed_schema(begun, old, new, words):
    begun.source("b.ndjson", lines(10, 10))
    begun.write_pipeline(PIPELINE.replace(old, new))
    begun.refused(USAGE, "pipeline bad", "sink lake", *words)
    begun.write_pipeline(PIPELINE)
    begun.finish(range(20))


def test_the_state_folder_of_another_pipeline(begun):
    begun.write_pipeline(PIPELINE.replace("bad", "other").replace("out/lake", "out/other"))
    begun.refused(USAGE, "pipeline other", f"{begun.folder}/state", "pipeline 'bad'", "of its own")
    assert not (begun.folder / "out/other").exists()
    begun.write_pipeline(PIPELINE)
    begun.source("b.ndjson", lines(10, 10))
    begun.finish(range(20))


def test_a_state_folder_that_is_a_file(place):
    place.source("a.ndjson", lines(0, 10))
    (place.folder / "state").write_text("mine")
    place.refused(USAGE, "pipeline bad", "state", f"{place.folder}/state", "in the way")
    assert (place.folder / "state").read_text() == "mine"
    (place.folder / "state").unlink()
    place.finish(range(10))


def overwrite(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def edit_store(sql):
    def edit(path):
        with sqlite3.connect(path) as db:
            db.execute(sql)

    return edit


BROKEN_STORES = {
    "no database": lambda path: path.write_bytes(b"something else" * 1000),
    "cut short": lambda path: os.truncate(path, 5000),
    "head overwritten": lambda path: overwrite(path, 0, b"\xff" * 100),
    "pages overwritten": lambda path: overwrite(path, 4096, os.urandom(path.stat().st_size - 4096)),
    "another's database": lambda path: (path.unlink(), edit_store("create table mine(a)")(path)),
    "position changed": edit_store("update position set rows = rows + 1"),
    "binding changed": edit_store("update binding set data = x'00'"),
    "cursor changed": edit_store("update cursor set checkpoint = checkpoint + 1"),
    "lease changed": edit_store("update lease set last_attempt = 0"),
    "meta lost": edit_store("delete from meta"),
    "table lost": edit_store("drop table entry"),
}


@pytest.mark.parametrize("how", BROKEN_STORES)
def test_a_broken_store(begun, how):
    begun.source("b.ndjson", lines(10, 10))
    store = begun.folder / "state/store.db"
    begun.run()
    kept = begun.folder / "kept"
    shutil.copytree(begun.folder / "state", kept)
    begun.source("c.ndjson", lines(20, 10))
    BROKEN_STORES[how](store)
    done = begun.run()
    assert done.returncode in (FAILED, FENCED), done.stderr
    begun.refused(done.returncode, "pipeline bad", str(store), run=done)
    status = begun.run(verb="status")
    assert status.returncode != 0 and str(store) in status.stderr, status
    assert begun.ids() == list(range(20))
    shutil.rmtree(begun.folder / "state")
    kept.rename(begun.folder / "state")
    begun.finish(range(30))


def test_a_broken_store_is_put_aside(begun):
    """The way out when there is no copy, which the error names."""
    store = begun.folder / "state/store.db"
    store.write_bytes(b"something else" * 1000)
    begun.refused(FAILED, "pipeline bad", str(store), "damaged", "--new-deployment")
    shutil.rmtree(begun.folder / "out")
    assert begun.run("--new-deployment").returncode == 0
    assert list(begun.folder.glob("state.before-*"))
    begun.finish(range(10))


def test_an_empty_store_beside_a_target_with_rows(begun):
    (begun.folder / "state/store.db").write_bytes(b"")
    begun.source("b.ndjson", lines(10, 10))
    begun.refused(FENCED, "pipeline bad", "sink lake", f"{begun.folder}/state", "--new-deployment")


def test_a_position_of_another_source(begun):
    begun.write_pipeline(
        """
        pipeline: bad
        state: ./state
        sources:
          rows: {type: generator, rows: 10, schema: {id: int64, name: utf8, price: float64, day: date32, part: int8}}
        sinks:
          lake: {type: file, path: ./out/lake}
        """
    )
    begun.refused(USAGE, "pipeline bad", "source rows", "position", "type back", "--new-deployment")
    begun.write_pipeline(PIPELINE)
    begun.source("b.ndjson", lines(10, 10))
    begun.finish(range(20))


def test_a_file_that_was_begun_in_another_format(begun):
    """Its position counts lines; an Arrow file has batches."""
    begun.write_pipeline(PIPELINE.replace("in/*.ndjson", "in/*").replace("schema:", "format: arrow\n    schema:"))
    begun.source("a.ndjson", lines(0, 20))
    begun.refused(USAGE, "pipeline bad", "source rows", f"{begun.folder}/in/a.ndjson", "another format", "`format`")
    begun.write_pipeline(PIPELINE)
    begun.finish(range(20))
