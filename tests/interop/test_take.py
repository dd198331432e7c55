"""Rows and columns that libweir takes out of a batch, of every type, compared with what the batch holds."""

import ctypes
import random

import pyarrow as pa
import pytest

from test_ipc import all_columns
from weir_ipc import LIB, WeirError, call, export_batch, import_batch


def taken(batch, rows, cut=None):
    """weir_batch_take of a batch, or of a slice that weir cut."""
    whole, out = export_batch(batch), ctypes.c_void_p()
    if cut:
        part = ctypes.c_void_p()
        call("weir_batch_slice", whole, ctypes.c_int64(cut[0]), ctypes.c_int64(cut[1]), ctypes.byref(part))
        LIB.weir_batch_unref(whole)
        whole = part
    try:
        call("weir_batch_take", whole, (ctypes.c_int64 * len(rows))(*rows), ctypes.c_int64(len(rows)), ctypes.byref(out))
    finally:
        LIB.weir_batch_unref(whole)
    return import_batch(out)


def expect(got, batch, rows):
    got.validate(full=True)
    assert got.schema.equals(batch.schema, check_metadata=True)
    for name, have, want in zip(batch.schema.names, got.columns, batch.columns):
        for at, row in enumerate(rows):
            assert have.slice(at, 1).equals(want.slice(row, 1)), f"{name}, row {row}"


def test_every_type_and_slice():
    batch, rng = pa.record_batch(all_columns()), random.Random(1)
    n = batch.num_rows
    for at in range(n):
        for length in range(n - at + 1):
            rows = rng.sample(range(length), rng.randint(0, length))
            expect(taken(batch.slice(at, length), rows), batch.slice(at, length), rows)
            expect(taken(batch, rows, (at, length)), batch.slice(at, length), rows)


def test_many_rows():
    rng = random.Random(2)
    n = 3000
    ints = [rng.choice([None, rng.getrandbits(60)]) for _ in range(n)]
    lists = [None if rng.random() < 0.1 else [rng.randrange(9) for _ in range(rng.randrange(4))] for _ in range(n)]
    batch = pa.record_batch(
        {
            "i": ints,
            "s": [None if x is None else str(x)[: x % 19] for x in ints],
            "l": pa.array(lists, pa.list_(pa.int16())),
            "n": pa.array([{"a": x, "b": l} for x, l in zip(ints, lists)]),
            "r": pa.RunEndEncodedArray.from_arrays(pa.array(range(3, n + 3, 3), pa.int32()), pa.array(range(n // 3))),
        }
    )
    rows = rng.sample(range(n), n)
    expect(taken(batch, rows), batch, rows)
    expect(taken(batch.slice(7, 1000), rows_below(rows, 1000)), batch.slice(7, 1000), rows_below(rows, 1000))


def rows_below(rows, limit):
    return [row for row in rows if row < limit]


@pytest.mark.parametrize("rows", [[3], [-1], [0, 1, 2, 0]])
def test_rows_that_are_not_there(rows):
    with pytest.raises(WeirError, match="to take of 3"):
        taken(pa.record_batch({"a": [1, 2, 3]}), rows)


def selected(batch, columns):
    whole, schema, out = export_batch(batch), ctypes.c_void_p(), ctypes.c_void_p()
    numbers = (ctypes.c_int64 * len(columns))(*columns)
    try:
        of = ctypes.c_void_p(LIB.weir_batch_schema(whole))
        call("weir_schema_select", of, numbers, ctypes.c_int64(len(columns)), ctypes.byref(schema))
        call("weir_batch_select", whole, schema, numbers, ctypes.byref(out))
    finally:
        LIB.weir_schema_unref(schema)
        LIB.weir_batch_unref(whole)
    return import_batch(out)


def test_columns():
    batch = pa.record_batch(all_columns())
    batch = batch.replace_schema_metadata({b"kept": b"yes"})
    names = batch.schema.names
    for columns in ([], [0], [len(names) - 1, 0, 5], list(range(len(names)))):
        got = selected(batch.slice(2, 4), columns)
        got.validate(full=True)
        assert got.schema.metadata == {b"kept": b"yes"}
        assert got.schema.names == [names[i] for i in columns]
        for i, have in zip(columns, got.columns):
            assert have.equals(batch.slice(2, 4).column(i)), names[i]
    with pytest.raises(WeirError):
        selected(batch, [len(names)])
