"""Compressed files and standard input through whole pipelines."""

import gzip
import io
import json
import signal
import subprocess
import time

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

ROWS = 5000
PACK = {
    "gz": lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
    "zst": lambda data: b"".join(pa.compress(part, codec="zstd", asbytes=True) for part in (data[:1000], data[1000:])),
}


def text_of(form, rows=ROWS):
    if form == "csv":
        return ("id,name\r\n" + "".join(f'{i},"größe ""{i}"""\r\n' for i in range(rows))).encode()
    if form == "ndjson":
        return "".join(json.dumps({"id": i, "name": f'größe "{i}"'}) + "\n" for i in range(rows)).encode()
    sink = io.BytesIO()
    table = pa.table({"id": range(rows), "name": [f'größe "{i}"' for i in range(rows)]})
    if form == "feather":
        pyarrow.feather.write_feather(table, sink, chunksize=700)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=700)
    return sink.getvalue()


def pipeline(folder, source, **more):
    schema = {} if "arrow" in str(source) or "feather" in str(source) else {"schema": {"id": "int64", "name": "utf8"}}
    document = {
        "pipeline": "packed",
        "state": "./state",
        "sources": {"in": {"type": "file", **schema, **source}},
        "sinks": {"out": {"type": "file", "path": "./out", "format": "parquet"}},
        **more,
    }
    (folder / "p.yaml").write_text(json.dumps(document))
    return folder / "p.yaml"


def ids(folder):
    files = sorted((folder / "out").glob("*.parquet")) if (folder / "out").exists() else []
    return sorted(i for file in files for i in pq.read_table(file, partitioning=None)["id"].to_pylist())


@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize("form", ["csv", "ndjson", "feather", "arrows"])
def test_every_format(form, pack, weir, tmp_path):
    (tmp_path / f"x.{form}.{pack}").write_bytes(PACK[pack](text_of(form)))
    done = weir("run", pipeline(tmp_path, {"path": f"x.{form}.{pack}"}))
    assert done.returncode == 0, done.stderr
    table = pa.concat_tables(pq.read_table(file) for file in (tmp_path / "out").glob("*.parquet"))
    assert sorted(table["id"].to_pylist()) == list(range(ROWS))
    assert table["name"].to_pylist() == [f'größe "{i}"' for i in table["id"].to_pylist()]


@pytest.mark.parametrize("form, pack", [("ndjson", "gz"), ("arrows", "zst")])
def test_a_file_cut_short_then_made_whole(form, pack, weir, tmp_path):
    whole = PACK[pack](text_of(form))
    name = f"x.{form}.{pack}"
    (tmp_path / name).write_bytes(whole[:-30])
    run = pipeline(tmp_path, {"path": name})
    done = weir("run", run)
    assert done.returncode == 6, done.stderr
    assert name in done.stderr and "it ends within it" in done.stderr
    assert ids(tmp_path) == []
    (tmp_path / name).write_bytes(whole)
    assert weir("run", run).returncode == 0
    assert ids(tmp_path) == list(range(ROWS))


def test_a_bomb_takes_little_memory(weir_bin, tmp_path):
    """A line of 256 MiB, packed into some hundred KiB, ends at max_line, also where there is less memory than that."""
    packer = io.BytesIO()
    with gzip.GzipFile(fileobj=packer, mode="wb", compresslevel=1) as out:
        for _ in range(64):
            out.write(b" x" * (2 << 20))
    (tmp_path / "bomb.ndjson.gz").write_bytes(packer.getvalue())
    run = pipeline(tmp_path, {"path": "bomb.ndjson.gz", "max_line": "1MiB"})
    command = ["sh", "-c", 'ulimit -d 163840; exec "$0" run "$1"', weir_bin, run]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 6, done.stderr
    assert "bomb.ndjson.gz" in done.stderr and "longer than" in done.stderr


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_standard_input_cannot_be_read_again(guarantee, weir, tmp_path):
    done = weir("run", pipeline(tmp_path, {"path": "-", "format": "ndjson"}, guarantee=guarantee), stdin=subprocess.DEVNULL)
    assert done.returncode == 3, done.stderr
    assert guarantee in done.stderr and "ephemeral" in done.stderr and "best_effort" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["csv", "ndjson"])
@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_standard_input(form, compression, weir_bin, tmp_path):
    data = {"none": lambda d: d, "gzip": PACK["gz"], "zstd": PACK["zst"]}[compression](text_of(form))
    source = {"path": "-", "format": form, "compression": compression}
    run = pipeline(tmp_path, source, guarantee="best_effort")
    done = subprocess.run([weir_bin, "run", run], input=data, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert ids(tmp_path) == list(range(ROWS))


def test_standard_input_without_a_byte(weir, tmp_path):
    run = pipeline(tmp_path, {"path": "-", "format": "ndjson"}, guarantee="best_effort")
    done = weir("run", run, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert ids(tmp_path) == []


@pytest.mark.parametrize("path", ["-", "/dev/stdin"])
@pytest.mark.parametrize("verb", ["check", "run"])
def test_pipeline_and_rows_cannot_both_come_from_standard_input(verb, path, weir, tmp_path):
    """The pipeline is read up to the end, where rows would begin: none would ever come."""
    run = pipeline(tmp_path, {"path": path, "format": "ndjson"}, guarantee="best_effort")
    done = weir(verb, "-", input=run.read_text(), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "put the pipeline in a file and type `weir run FILE`" in done.stderr
    assert not (tmp_path / "out").exists()


def test_standard_input_has_no_sample(weir, tmp_path):
    run = pipeline(tmp_path, {"path": "-", "format": "ndjson", "schema": "infer"}, guarantee="best_effort")
    for verb in "check", "run":
        done = weir(verb, run, stdin=subprocess.DEVNULL)
        assert done.returncode == 2, done.stderr
        assert "give option schema a mapping" in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_aborted_epoch_is_lost_and_counted(weir_faults, tmp_path):
    """Its rows cannot come again: the run goes on, and says how many they were."""
    source = {"path": "-", "format": "ndjson", "batch_rows": 100}
    run = pipeline(tmp_path, source, guarantee="best_effort", checkpoint={"interval": "1ms"})
    done = weir_faults("run", run, "--json", faults="task.write=fail@2", input=text_of("ndjson").decode())
    assert done.returncode == 0, done.stderr
    lost = json.loads(done.stdout)["sources"]["in"]["lost"]
    assert 0 < lost <= ROWS and ROWS - lost == len(ids(tmp_path)) == len(set(ids(tmp_path)))


def test_a_bad_row_of_standard_input(weir, tmp_path):
    run = pipeline(tmp_path, {"path": "-", "format": "ndjson"}, guarantee="best_effort")
    done = weir("run", run, input='{"id":1}\n{"id":"x"}\n{"id":3}\n')
    assert done.returncode == 6, done.stderr
    assert "(standard input)" in done.stderr and "line 2" in done.stderr
    assert 3 not in ids(tmp_path)


def test_check_leaves_standard_input_alone(weir_bin, tmp_path):
    """The next reader of the same pipe gets every byte."""
    run = pipeline(tmp_path, {"path": "-", "format": "ndjson"}, guarantee="best_effort")
    done = subprocess.run(["sh", "-c", '"$0" check "$1" >&2 && cat', weir_bin, run], input=b'{"id":1}\n', capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b'{"id":1}\n'


@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_a_schema_from_packed_files(form, pack, weir, tmp_path):
    (tmp_path / f"x.{form}.{pack}").write_bytes(PACK[pack](text_of(form)))
    done = weir("run", pipeline(tmp_path, {"path": f"x.{form}.{pack}", "schema": "infer"}))
    assert done.returncode == 0, done.stderr
    table = pq.read_table(next((tmp_path / "out").glob("*.parquet")), partitioning=None)
    assert (table.schema.field("id").type, table.schema.field("name").type) == (pa.int64(), pa.string())
    assert ids(tmp_path) == list(range(ROWS))


def wait_for(condition, process):
    end = time.monotonic() + 60
    while not condition():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)


def test_a_slow_writer_and_a_stop_between_its_lines(weir_bin, tmp_path):
    """What came is delivered at the next checkpoint, the half line is not, and SIGTERM ends the wait for more."""
    run = pipeline(tmp_path, {"path": "-", "format": "ndjson"}, guarantee="best_effort", checkpoint={"interval": "20ms"})
    process = subprocess.Popen([weir_bin, "run", run], stdin=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    for i in range(3):
        process.stdin.write(b'{"id":%d,"na' % i)
        assert i not in ids(tmp_path)
        process.stdin.write(b'me":"x"}\n')
        wait_for(lambda n=i: ids(tmp_path) == list(range(n + 1)), process)
    process.stdin.write(b'{"id":99')
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0, process.stderr.read()
    assert ids(tmp_path) == [0, 1, 2]
