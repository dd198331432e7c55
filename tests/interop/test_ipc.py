"""What pyarrow writes as Arrow IPC, weir reads: every type, both formats, both codecs, dictionaries."""

import datetime
import decimal
import os
import struct
import threading

import pyarrow as pa
import pytest

from weir_ipc import Reader, WeirError

TEXT = ["", "a", None, "twelve bytes", "more than twelve bytes, so not inline", "größe", None, "z" * 300]
INTS = [0, 1, None, -1, 100, 7, None, -128]


def flat_columns():
    n = len(TEXT)
    ts = [None if v is None else v * 1_000_003 for v in INTS]
    columns = {"null": pa.nulls(n), "bool": pa.array([True, False, None, True, True, False, None, False])}
    for bits in (8, 16, 32, 64):
        columns[f"int{bits}"] = pa.array(INTS, getattr(pa, f"int{bits}")())
        columns[f"uint{bits}"] = pa.array([None if v is None else abs(v) for v in INTS], getattr(pa, f"uint{bits}")())
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        columns[str(kind)] = pa.array(INTS, pa.float64()).cast(kind)
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()):
        columns[str(kind)] = pa.array(TEXT, pa.string()).cast(kind)
    columns["fixed_size_binary"] = pa.array([b"abc", None] * 4, pa.binary(3))
    for kind in (pa.date32(), pa.time32("s"), pa.time32("ms")):
        columns[str(kind)] = pa.array([None if v is None else abs(v) for v in INTS], pa.int32()).cast(kind)
    columns["date64"] = pa.array([None if v is None else v * 86_400_000 for v in INTS], pa.int64()).cast(pa.date64())
    for unit in ("us", "ns"):
        columns[f"time64{unit}"] = pa.array([None if v is None else abs(v) for v in INTS], pa.int64()).cast(
            pa.time64(unit)
        )
    for unit in ("s", "ms", "us", "ns"):
        columns[f"timestamp_{unit}"] = pa.array(ts, pa.timestamp(unit))
        columns[f"timestamptz_{unit}"] = pa.array(ts, pa.timestamp(unit, "Europe/Berlin"))
        columns[f"duration_{unit}"] = pa.array(ts, pa.duration(unit))
    columns["interval"] = pa.array([pa.MonthDayNano([1, -2, 3]), None] * 4)
    for make, digits in ((pa.decimal32, 9), (pa.decimal64, 18), (pa.decimal128, 38), (pa.decimal256, 76)):
        columns[f"decimal{digits}"] = pa.array(
            [None if v is None else decimal.Decimal(v) / 100 for v in INTS], make(digits, 2)
        )
    return columns


def nested_columns():
    lists = [[1, None], [], None, [3], [4, 5, 6], None, [7], []]
    structs = [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 3, "b": None}] * 2
    columns = {
        "list": pa.array(lists, pa.list_(pa.int32())),
        "large_list": pa.array(lists, pa.large_list(pa.int32())),
        "list_view": pa.array(lists, pa.list_view(pa.int32())),
        "large_list_view": pa.array(lists, pa.large_list_view(pa.int32())),
        "fixed_list": pa.array([[1, 2], None, [3, None], [4, 5]] * 2, pa.list_(pa.int16(), 2)),
        "struct": pa.array(structs, pa.struct({"a": pa.int64(), "b": pa.string_view()})),
        "list_struct": pa.array([[s, None] for s in structs], pa.list_(pa.struct({"a": pa.int8(), "b": pa.string()}))),
        "map": pa.array([[("k", [1])], None, [], [("a", None), ("b", [2, 3])]] * 2, pa.map_(pa.string(), pa.list_(pa.int8()))),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([3, 4, 8], pa.int32()), pa.array(["x", None, "y"])),
    }
    types = pa.array([0, 1, 0, 1, 0, 0, 1, 0], pa.int8())
    ints, texts = pa.array(INTS, pa.int64()), pa.array(TEXT)
    columns["sparse"] = pa.UnionArray.from_sparse(types, [ints, texts], ["i", "t"])
    offsets = pa.array([0, 0, 1, 1, 2, 3, 2, 4], pa.int32())
    columns["dense"] = pa.UnionArray.from_dense(types, offsets, [ints, texts], ["i", "t"])
    return columns


def dictionary_columns():
    plain = pa.array(["x", "y", None, "x", "z", "z", None, "y"])
    inner = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0], pa.int8()), pa.array(["in", "out"]))
    nested = pa.ListArray.from_arrays(pa.array([0, 1, 2, 4], pa.int32()), inner)
    columns = {
        f"dict_{index}": plain.dictionary_encode().cast(pa.dictionary(index, pa.string()))
        for index in (pa.int8(), pa.uint16(), pa.int64())
    }
    columns["dict_ordered"] = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 1, 0, 0, 1, 0], pa.int8()), pa.array([2.5, 7.5]), ordered=True
    )
    columns["dict_view"] = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 1, 0, 0, 1, 0], pa.int8()), pa.array([TEXT[4], "b"], pa.string_view())
    )
    columns["list_dict"] = pa.ListArray.from_arrays(pa.array([0, 1, 1, 2, 3, 4, 4, 4, 4], pa.int32()), inner)
    columns["dict_list_dict"] = pa.DictionaryArray.from_arrays(pa.array([2, 1, 0, 0, None, 1, 2, 0], pa.int16()), nested)
    return columns


def all_columns():
    return {**flat_columns(), **nested_columns(), **dictionary_columns()}


def variants():
    """Batches of one schema: whole, empty, of one row, a slice from the middle, all null."""
    schema = pa.schema(
        [
            pa.field(name, column.type, metadata={b"of": name.encode(), b"": b"\x00\xff"})
            for name, column in all_columns().items()
        ],
        metadata={b"weir": b"test", b"more": b""},
    )
    whole = pa.record_batch(list(all_columns().values()), schema=schema)
    return schema, [whole, whole.slice(0, 0), whole.slice(3, 1), whole.slice(1, 5)]


def write(path, batches, schema, file, **options):
    options = pa.ipc.IpcWriteOptions(**options)
    new = pa.ipc.new_file if file else pa.ipc.new_stream
    with new(path, schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


def expect(reader, batches, schema):
    assert reader.schema().equals(schema, check_metadata=True)
    got = list(reader)
    assert len(got) == len(batches)
    for have, want in zip(got, batches):
        have.validate(full=True)
        assert have.num_rows == want.num_rows
        for name, x, y in zip(schema.names, have.columns, want.columns):
            assert x.equals(y), name
    return got


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("file", [False, True])
@pytest.mark.parametrize("version", ["V4", "V5"])
def test_every_type(tmp_path, file, compression, version):
    schema, batches = variants()
    path = tmp_path / "all.arrow"
    options = {"compression": compression, "metadata_version": pa.ipc.MetadataVersion[version]}
    write(path, batches, schema, file, **options)
    expect(Reader(path), batches, schema)
    expect(Reader(data=path.read_bytes()), batches, schema)


@pytest.mark.parametrize("file", [False, True])
def test_legacy_format(tmp_path, file):
    batch = pa.record_batch(flat_columns())
    write(tmp_path / "old", [batch], batch.schema, file, use_legacy_format=True)
    expect(Reader(tmp_path / "old"), [batch], batch.schema)


def test_fifo(tmp_path):
    schema, batches = variants()
    write(tmp_path / "stream", batches, schema, False)
    os.mkfifo(tmp_path / "fifo")
    data = (tmp_path / "stream").read_bytes()
    thread = threading.Thread(target=lambda: (tmp_path / "fifo").write_bytes(data))
    thread.start()
    expect(Reader(tmp_path / "fifo"), batches, schema)
    thread.join()


def growing_dictionaries():
    """Batches whose dictionaries grow (deltas), then change for good (a replacement)."""
    values = [["a", "b"], ["a", "b", "long enough to be out of line", None], list("abcdefgh")]
    values += [["x"], ["x", "y"]]
    for kind in (pa.string(), pa.large_binary(), pa.string_view(), pa.list_(pa.string())):
        made = []
        for v in values:
            plain = pa.array([[x] if pa.types.is_list(kind) else x for x in v], kind)
            index = pa.array([len(v) - 1, None, 0, len(v) // 2], pa.int8())
            made.append(pa.record_batch({"d": pa.DictionaryArray.from_arrays(index, plain)}))
        yield kind, made


@pytest.mark.parametrize("deltas", [False, True])
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_dictionaries_that_change_in_a_stream(tmp_path, deltas, compression):
    for kind, batches in growing_dictionaries():
        path = tmp_path / f"{kind}"
        schema = batches[0].schema
        write(path, batches, schema, False, emit_dictionary_deltas=deltas, compression=compression)
        got = expect(Reader(path), batches, schema)
        assert [len(b["d"].dictionary) for b in got] == [2, 4, 8, 1, 2]
        expect(Reader(data=path.read_bytes()), batches, schema)
        reader = Reader(path)
        for index in (4, 0, 2, 3, 1):
            reader.seek(index)
            assert reader.tell() == index
            assert reader.next().equals(batches[index])


def test_deltas_in_a_file(tmp_path):
    for kind, batches in growing_dictionaries():
        path, batches = tmp_path / f"{kind}", batches[:2]
        write(path, batches, batches[0].schema, True, emit_dictionary_deltas=True)
        # Deltas of a file are in force for all of it, so the first batch has the longer dictionary too.
        for got, want in zip(Reader(path), batches, strict=True):
            got.validate(full=True)
            assert len(got.column(0).dictionary) == 4
            assert got.column(0).to_pylist() == want.column(0).to_pylist()


def test_replacements_in_a_file(tmp_path):
    """No writer makes them, but the bytes can be had: deltas with their isDelta flag unset."""
    batches = [
        pa.record_batch({"d": pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(v))})
        for v in (["a", "b"], ["a", "b", "c", "d"], ["a", "b", "c", "d", "e"])
    ]
    path = tmp_path / "file"
    write(path, batches, batches[0].schema, True, emit_dictionary_deltas=True)
    data = bytearray(path.read_bytes())
    for block in delta_flags(data):
        data[block] = 0
    path.write_bytes(data)
    reader = Reader(path)
    want = [["a", "b"], ["c", "d"], None]
    assert reader.next().column(0).to_pylist() == want[0]
    assert reader.next().column(0).to_pylist() == want[1]
    with pytest.raises(WeirError, match="CORRUPT.*column 0 'd'.*slot 1 is outside the dictionary of 1"):
        reader.next()
    reader = Reader(path)
    for index in (1, 0, 1):
        reader.seek(index)
        assert reader.next().column(0).to_pylist() == want[index]


def delta_flags(data):
    """Where in a file's DictionaryBatch tables isDelta is set (vtable slot 2, Message.fbs)."""
    at, found = 8, []
    while True:
        mark, size = struct.unpack_from("<II", data, at)
        if size == 0:
            return found
        assert mark == 0xFFFFFFFF
        base = at + 8
        message = base + struct.unpack_from("<I", data, base)[0]
        vtable = message - struct.unpack_from("<i", data, message)[0]

        def field(table, vtable, slot):
            size = struct.unpack_from("<H", data, vtable)[0]
            offset = struct.unpack_from("<H", data, vtable + 4 + 2 * slot)[0] if 4 + 2 * slot < size else 0
            return table + offset if offset else None

        kind = data[field(message, vtable, 1)]
        header = field(message, vtable, 2)
        header += struct.unpack_from("<I", data, header)[0]
        length = field(message, vtable, 3)
        body = struct.unpack_from("<q", data, length)[0] if length else 0
        if kind == 2:
            flag = field(header, header - struct.unpack_from("<i", data, header)[0], 2)
            if flag is not None and data[flag]:
                found.append(flag)
        at = base + size + body


def test_null_lists_with_items_behind_them(tmp_path):
    """Null slots may own items (fault BL-48): they stay where they are, and no later row shifts."""
    child = pa.array(["", "hello", "hi", ""])
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3, 4], pa.int32()), child, mask=pa.array([True, False, False, True])
    )
    fixed = pa.array([[1, 2], None, [3, 4], None], pa.list_(pa.int32(), 2))
    batch = pa.record_batch({"l": lists, "f": fixed})
    for file in (False, True):
        write(tmp_path / "nulls", [batch], batch.schema, file)
        got = Reader(tmp_path / "nulls").next()
        assert got.column(0).to_pylist() == [None, ["hello"], ["hi"], None]
        assert got.column(1).to_pylist() == [[1, 2], None, [3, 4], None]


def mapping_of(path):
    with open("/proc/self/maps") as maps:
        for line in maps:
            if line.rstrip().endswith(str(path)):
                low, high = (int(x, 16) for x in line.split()[0].split("-"))
                return low, high
    return None


def buffers_of(array):
    found = [b for b in array.buffers() if b is not None and b.size > 0]
    if pa.types.is_dictionary(array.type):
        found += buffers_of(array.dictionary)
    return found


@pytest.mark.parametrize("file", [False, True])
def test_mapped_buffers_are_not_copied(tmp_path, file):
    """Buffers lie in the mapping, which goes with the last batch. Sizes of views are the reader's own
    array, and pyarrow keeps it out of buffers()."""
    path = tmp_path / "mapped.arrow"
    columns = {k: v for k, v in all_columns().items() if k not in ("dict_list_dict",)}
    batch = pa.record_batch(columns)
    write(path, [batch, batch], batch.schema, file)
    reader = Reader(path)
    first, second = reader.next(), reader.next()
    low, high = mapping_of(path)
    count = 0
    for name, column in zip(columns, first.columns):
        for buffer in buffers_of(column):
            assert low <= buffer.address and buffer.address + buffer.size <= high, name
            count += 1
    assert count > 100
    del reader, first, buffer, column
    assert second.equals(batch)
    assert mapping_of(path) is not None
    del second
    assert mapping_of(path) is None


def test_random_access(tmp_path):
    schema = pa.schema({"n": pa.int64()})
    batches = [pa.record_batch([pa.array(range(i, 2 * i), pa.int64())], schema=schema) for i in range(20)]
    for file in (True, False):
        write(tmp_path / "many", batches, schema, file)
        reader = Reader(tmp_path / "many")
        assert reader.batches() == (20 if file else -1)
        for index in (7, 0, 19, 19, 3):
            reader.seek(index)
            assert reader.next().equals(batches[index])
            assert reader.tell() == index + 1
        reader.seek(20)
        assert reader.next() is None
        with pytest.raises(WeirError, match="INVALID_STATE.*there is no batch 21; it has 20 batches"):
            reader.seek(21)
    stream = Reader(data=(tmp_path / "many").read_bytes())
    stream.seek(3)
    assert stream.next().equals(batches[3])
    with pytest.raises(WeirError, match="INVALID_STATE.*cannot go back"):
        stream.seek(2)


@pytest.mark.parametrize("file", [False, True])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_cut_anywhere(tmp_path, file, compression):
    """Each prefix gives the batches that are whole in it, or an error that names file and offset;
    only between two messages may a stream simply end."""
    columns = {k: all_columns()[k] for k in ("int64", "string_view", "list_struct", "dict_list_dict")}
    batch = pa.record_batch(columns)
    path = tmp_path / "cut.arrow"
    write(path, [batch, batch], batch.schema, file, compression=compression)
    data = path.read_bytes()
    whole = 0
    for size in range(0, len(data), 1 if len(data) < 3000 else 7):
        path.write_bytes(data[:size])
        try:
            got = list(Reader(path))
            assert not file
            assert all(b.equals(batch) for b in got)
            whole += 1
        except WeirError as error:
            assert error.status == "CORRUPT", error
            assert str(path) in error.message
            assert size == 0 or "offset " in error.message, error
    assert whole <= 8


def test_names_what_is_wrong(tmp_path):
    path = tmp_path / "x.arrow"

    def message(data):
        path.write_bytes(data)
        with pytest.raises(WeirError) as caught:
            list(Reader(path))
        return str(caught.value)

    batch = pa.record_batch({"a": [1, 2, 3]})
    write(path, [batch], batch.schema, False)
    stream = path.read_bytes()
    write(path, [batch], batch.schema, True)
    file = path.read_bytes()
    assert "no Arrow IPC stream or file" in message(b"")
    assert "no Arrow IPC stream or file" in message(b'{"a": 1}\n{"a": 2}\n')
    assert "no footer: it was cut short or is still being written" in message(file[:-1])
    assert "cut short" in message(stream[:-30])
    assert f"offset {len(stream)}: 8 bytes behind the end of the stream" in message(stream + b"12345678")
    with pytest.raises(WeirError, match="NOT_FOUND.*missing"):
        Reader(tmp_path / "missing")


def test_refuses_big_endian(tmp_path):
    batch = pa.record_batch({"a": [1, 2, 3]})
    write(tmp_path / "x", [batch], batch.schema, False)
    data = bytearray((tmp_path / "x").read_bytes())
    # Schema.endianness (slot 0) is left out by default: point its slot at a non-zero int16 instead.
    base = 8
    root = base + struct.unpack_from("<I", data, base)[0]
    vtable = root - struct.unpack_from("<i", data, root)[0]
    header = root + struct.unpack_from("<H", data, vtable + 8)[0]
    schema = header + struct.unpack_from("<I", data, header)[0]
    schema_vtable = schema - struct.unpack_from("<i", data, schema)[0]
    slot = struct.unpack_from("<H", data, schema_vtable + 4)[0]
    if slot == 0:
        fields = struct.unpack_from("<H", data, schema_vtable + 6)[0]
        struct.pack_into("<H", data, schema_vtable + 4, fields)
        with pytest.raises(WeirError, match="NOT_IMPLEMENTED.*big-endian|CORRUPT"):
            Reader(data=bytes(data))
    else:
        struct.pack_into("<h", data, schema + slot, 1)
        with pytest.raises(WeirError, match="NOT_IMPLEMENTED.*big-endian"):
            Reader(data=bytes(data))


def test_values_out_of_bounds(tmp_path):
    """Indices, offsets and views that point outside are found before anybody follows them."""
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0, 1], pa.int8()), pa.array(["a", "b"]))
    lists = pa.array([[1], [2, 3]], pa.list_(pa.int8()))
    views = pa.array(["a view of twenty byte"], pa.string_view())
    for array, old, new, message in (
        (dictionary, b"\0\1\1\0\1", b"\0\1\2\0\1", "slot 2 is outside the dictionary of 2 values"),
        (dictionary, b"\0\1\1\0\1", b"\0\xff\1\0\1", "slot 1 is outside the dictionary of 2 values"),
        (pa.array(["abc", "defg"]), [0, 3, 7], [0, 3, 70], "the last offset 70 is past the data of 7 bytes"),
        (pa.array(["abc", "defg"]), [0, 3, 7], [0, 8, 7], "falling offset at slot 1"),
        (pa.array(["abc", "defg"]), [0, 3, 7], [-1, 3, 7], "negative offset"),
        (lists, [0, 1, 3], [0, 1, 4], "the last offset 4 is past the child's 3 slots"),
        (views, [21], [22], "view past its data buffer"),
        (views, [21], [-21], "view of negative size"),
    ):
        batch = pa.RecordBatch.from_arrays([array], ["c"])
        if isinstance(old, list):
            old, new = (struct.pack(f"<{len(v)}i", *v) for v in (old, new))
        for file in (False, True):
            path = tmp_path / "bad"
            write(path, [batch], batch.schema, file)
            data = path.read_bytes()
            at = data.rindex(old)
            path.write_bytes(data[:at] + new + data[at + len(new) :])
            with pytest.raises(WeirError, match=f"CORRUPT.*offset.*column 0 'c'.*{message}"):
                list(Reader(path))


def test_nulls_where_there_may_be_none(tmp_path):
    batch = pa.record_batch([pa.array([1, None])], schema=pa.schema([pa.field("a", pa.int64(), nullable=False)]))
    write(tmp_path / "bad", [batch], batch.schema, True)
    with pytest.raises(WeirError, match="BAD_DATA.*column 0 'a' is declared not null, but row 1 is null"):
        list(Reader(tmp_path / "bad"))


def test_days_of_pandas(tmp_path):
    """A table as analysts write it: several chunks, dates, categories, metadata."""
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(1000)]
    table = pa.table({"day": days, "kind": pa.array(["a", "b"] * 500).dictionary_encode(), "v": [0.5] * 1000})
    with pa.ipc.new_file(tmp_path / "t.feather", table.schema) as writer:
        writer.write_table(table, max_chunksize=128)
    got = pa.Table.from_batches(list(Reader(tmp_path / "t.feather")))
    assert got.equals(table)
