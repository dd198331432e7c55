"""libweir's Parquet reader through ctypes; batches come out through the Arrow C data interface."""

import ctypes

import pyarrow as pa
from weir_ipc import LIB, SCHEMA, WeirError, call, import_batch  # noqa: F401

READ = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
)


class Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("batch_rows", ctypes.c_int32),
        ("max_batch_bytes", ctypes.c_uint64),
        ("columns", ctypes.POINTER(ctypes.c_char_p)),
        ("n_columns", ctypes.c_size_t),
    ]


for _name, _result in {
    "weir_parquet_reader_schema": ctypes.c_void_p,
    "weir_parquet_reader_rows": ctypes.c_uint64,
    "weir_parquet_reader_row_groups": ctypes.c_uint64,
    "weir_parquet_reader_group_rows": ctypes.c_uint64,
}.items():
    getattr(LIB, _name).restype = _result


class Reader:
    """Of a file's bytes, or of what a callback of its own reads."""

    def __init__(self, data, columns=(), batch_rows=0, max_batch_bytes=0, read=None, size=None):
        self.data, self.pointer = bytes(data or b""), ctypes.c_void_p()
        address = ctypes.cast(ctypes.c_char_p(self.data), ctypes.c_void_p).value

        def copy(_ctx, offset, to, size, _error):
            assert offset + size <= len(self.data)
            ctypes.memmove(to, address + offset, size)
            return 0

        self._read = READ(read or copy)
        names = (ctypes.c_char_p * len(columns))(*[name.encode() for name in columns])
        options = Options(ctypes.sizeof(Options), batch_rows, max_batch_bytes, names, len(columns))
        call("weir_parquet_reader_new", self._read, None, ctypes.c_uint64(size or len(self.data)), b"test",
             ctypes.byref(options), ctypes.byref(self.pointer))

    @property
    def schema(self):
        schema = SCHEMA()
        call("weir_schema_export", ctypes.c_void_p(LIB.weir_parquet_reader_schema(self.pointer)), ctypes.byref(schema))
        return pa.Schema._import_from_c(ctypes.addressof(schema))

    def rows(self):
        return LIB.weir_parquet_reader_rows(self.pointer)

    def groups(self):
        return [LIB.weir_parquet_reader_group_rows(self.pointer, ctypes.c_uint64(i))
                for i in range(LIB.weir_parquet_reader_row_groups(self.pointer))]

    def seek(self, group, row):
        call("weir_parquet_reader_seek", self.pointer, ctypes.c_uint64(group), ctypes.c_uint64(row))

    def tell(self):
        group, row = ctypes.c_uint64(), ctypes.c_uint64()
        LIB.weir_parquet_reader_tell(self.pointer, ctypes.byref(group), ctypes.byref(row))
        return group.value, row.value

    def next(self):
        batch = ctypes.c_void_p()
        call("weir_parquet_reader_next", self.pointer, ctypes.byref(batch))
        return import_batch(batch) if batch else None

    def skip(self):
        """Reads a batch and drops it; False at the end."""
        batch = ctypes.c_void_p()
        call("weir_parquet_reader_next", self.pointer, ctypes.byref(batch))
        LIB.weir_batch_unref(batch)
        return bool(batch)

    def table(self):
        batches = list(iter(self.next, None))
        return pa.Table.from_batches(batches, self.schema)

    def __del__(self):
        if self.pointer:
            LIB.weir_parquet_reader_free(self.pointer)


def read_table(data, **options):
    table = Reader(data, **options).table()
    table.validate(full=True)
    return table
