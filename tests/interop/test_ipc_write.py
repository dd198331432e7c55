"""What weir writes as Arrow IPC, pyarrow and weir itself read: types, slices, codecs, dictionaries."""

import io

import polars
import pyarrow as pa
import pytest

from test_ipc import all_columns, dictionary_columns, flat_columns, growing_dictionaries, variants
from weir_ipc import Reader, WeirError, write_ipc


def readers(data, file, tmp_path):
    """Batches as pyarrow and as weir give them, from a file and from a stream."""
    opened = pa.ipc.open_file(data) if file else pa.ipc.open_stream(data)
    batches = [opened.get_batch(i) for i in range(opened.num_record_batches)] if file else list(opened)
    yield opened.schema, batches
    (tmp_path / "x").write_bytes(data)
    reader = Reader(tmp_path / "x")
    yield reader.schema(), list(reader)
    if not file:
        reader = Reader(data=data)
        yield reader.schema(), list(reader)


def expect(data, file, tmp_path, want, schema):
    for got_schema, got in readers(data, file, tmp_path):
        assert got_schema.equals(schema, check_metadata=True)
        assert len(got) == len(want)
        for x, y in zip(got, want):
            x.validate(full=True)
            assert x.num_rows == y.num_rows
            for name, a, b in zip(schema.names, x.columns, y.columns):
                assert a.equals(b) or a.to_pylist() == b.to_pylist(), name


@pytest.mark.parametrize("codec", [0, 1, 2])
@pytest.mark.parametrize("file", [False, True])
def test_every_type(tmp_path, file, codec):
    schema, batches = variants()
    expect(write_ipc(batches, file, codec), file, tmp_path, batches, schema)


@pytest.mark.parametrize("file", [False, True])
def test_slices(tmp_path, file):
    """Cut by weir at every place, so that offsets, bits and runs are rebased."""
    batch = pa.record_batch(all_columns())
    cuts = [(at, n) for at in range(9) for n in range(9 - at)]
    data = write_ipc([batch] * len(cuts), file, slices=cuts)
    expect(data, file, tmp_path, [batch.slice(*cut) for cut in cuts], batch.schema)


def test_slices_are_cut_down():
    batch = pa.record_batch({k: pa.array(["x" * 1000] * 1000, t) for k, t in (("s", pa.string()), ("v", pa.string_view()))})
    assert len(write_ipc([batch])) > 2_000_000
    assert len(write_ipc([batch], slices=[(500, 2)])) < 6_000


@pytest.mark.parametrize("codec", [0, 2])
@pytest.mark.parametrize("file", [False, True])
def test_dictionaries_that_change(tmp_path, file, codec):
    """Faults BL-50: in files too every index means the value it meant in its batch."""
    for kind, batches in growing_dictionaries():
        data = write_ipc(batches, file, codec)
        if file and pa.types.is_list(kind):
            (tmp_path / "x").write_bytes(data)  # pyarrow joins no deltas of nested values
            got = list(Reader(tmp_path / "x"))
            assert [b.to_pydict() for b in got] == [b.to_pydict() for b in batches]
        elif pa.types.is_list(kind):
            got = list(Reader(data=data))
            assert [b.to_pydict() for b in got] == [b.to_pydict() for b in batches]
        else:
            expect(data, file, tmp_path, batches, batches[0].schema)


def test_change_of_dictionary_in_a_file():
    batches = [
        pa.record_batch({"d": pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(v))})
        for v in (["a", "b"], ["c", "d"])
    ]
    for file in (False, True):
        data = write_ipc(batches, file)
        table = (pa.ipc.open_file if file else pa.ipc.open_stream)(data).read_all()
        assert table["d"].to_pylist() == ["a", "b", "c", "d"]


def test_nested_dictionaries_that_change(tmp_path):
    def batch(inner, outer_index):
        values = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0], pa.int8()), pa.array(inner))
        lists = pa.ListArray.from_arrays(pa.array([0, 1, 4], pa.int32()), values)
        return pa.record_batch({"d": pa.DictionaryArray.from_arrays(pa.array(outer_index, pa.int8()), lists)})

    batches = [batch(["a", "b"], [0, 1]), batch(["c", "d"], [1, 0]), batch(["c", "d", "e"], [1, 1])]
    for file in (False, True):
        (tmp_path / "x").write_bytes(write_ipc(batches, file))
        assert [b.to_pydict() for b in Reader(tmp_path / "x")] == [b.to_pydict() for b in batches]


def test_same_dictionary_is_written_once():
    batch = pa.record_batch({"d": pa.array(["value" * 100] * 10).dictionary_encode()})
    once, thrice = len(write_ipc([batch])), len(write_ipc([batch] * 3))
    assert thrice - once < 2 * 400


def test_indices_too_small_for_all_dictionaries():
    def batch(word):
        values = pa.array([f"{word}{i}" for i in range(100)])
        return pa.record_batch({"d": pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), values)})

    assert write_ipc([batch("a"), batch("b")])
    with pytest.raises(WeirError, match="NOT_IMPLEMENTED.*column 'd'.*more values than a dictionary<int8, utf8>"):
        write_ipc([batch("a"), batch("b")], file=True)


def test_another_schema_is_refused():
    with pytest.raises(WeirError, match="SCHEMA.*column 0 'a' is declared int64, got utf8"):
        write_ipc([pa.record_batch({"a": [1]}), pa.record_batch({"a": ["x"]})])


def test_polars_reads_the_file():
    columns = {k: v for k, v in flat_columns().items() if k in ("int64", "string", "bool", "timestamp_us", "float64")}
    columns["dict"] = dictionary_columns()["dict_uint16"]
    batch = pa.record_batch(columns)
    frame = polars.read_ipc(io.BytesIO(write_ipc([batch, batch], file=True, codec=2)))
    want = polars.from_arrow(pa.Table.from_batches([batch, batch]))
    assert frame.with_columns(polars.col("dict").cast(polars.String)).equals(
        want.with_columns(polars.col("dict").cast(polars.String))
    )
