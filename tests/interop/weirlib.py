"""libweir's Parquet writer by ctypes: pyarrow batches in through the Arrow C data interface, bytes out."""

import ctypes
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIBRARY = pathlib.Path(os.environ.get("WEIR_LIB", ROOT / "build/release/libweir.so")).resolve()

CODECS = {"none": 0, "zstd": 1, "snappy": 2, "lz4": 3, "gzip": 4}
BAD_DATA = 14


class Error(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("vendor_code", ctypes.c_int32),
        ("column", ctypes.c_int32),
        ("row", ctypes.c_int64),
        ("sqlstate", ctypes.c_char * 6),
        ("message", ctypes.c_char * 994),
    ]


class KeyValue(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("codec", ctypes.c_int32),
        ("level", ctypes.c_int32),
        ("encodings", ctypes.c_int32),
        ("effort", ctypes.c_int32),
        ("threads", ctypes.c_uint32),
        ("row_group_rows", ctypes.c_uint64),
        ("row_group_bytes", ctypes.c_uint64),
        ("page_bytes", ctypes.c_uint64),
        ("metadata", ctypes.POINTER(KeyValue)),
        ("n_metadata", ctypes.c_size_t),
        ("data_page_version", ctypes.c_uint32),
    ]


class Result(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("row_groups", ctypes.c_uint64)]


class ArrowSchema(ctypes.Structure):
    _fields_ = [("raw", ctypes.c_uint64 * 9)]


class ArrowArray(ctypes.Structure):
    _fields_ = [("raw", ctypes.c_uint64 * 10)]


WRITE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(Error))


class WeirError(Exception):
    def __init__(self, error):
        super().__init__(error.message.decode())
        self.code, self.flags, self.row, self.column = error.code, error.flags, error.row, error.column


def _load():
    lib = ctypes.CDLL(str(LIBRARY))
    pointer, error = ctypes.c_void_p, ctypes.POINTER(Error)
    signatures = {
        "weir_schema_new": [pointer, ctypes.POINTER(pointer), error],
        "weir_schema_copy": [pointer, ctypes.POINTER(pointer), error],
        "weir_schema_unref": [pointer],
        "weir_batch_new": [pointer, pointer, ctypes.POINTER(pointer), error],
        "weir_batch_unref": [pointer],
        "weir_parquet_options_init": [ctypes.POINTER(Options)],
        "weir_parquet_writer_new": [pointer, ctypes.POINTER(Options), WRITE, pointer, ctypes.POINTER(pointer), error],
        "weir_parquet_writer_bloom_filter": [pointer, ctypes.c_char_p, error],
        "weir_parquet_writer_encoding": [pointer, ctypes.c_char_p, ctypes.c_char_p, error],
        "weir_parquet_writer_write": [pointer, pointer, error],
        "weir_parquet_writer_finish": [pointer, ctypes.POINTER(Result), error],
        "weir_parquet_writer_free": [pointer],
        "weir_parquet_writer_written": [pointer],
        "weir_parquet_writer_buffered": [pointer],
        "weir_parquet_codec_parse": [ctypes.c_char_p, ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_int32), error],
    }
    for name, arguments in signatures.items():
        function = getattr(lib, name)
        function.argtypes = arguments
        function.restype = ctypes.c_int32
    for name in ("weir_parquet_writer_written", "weir_parquet_writer_buffered"):
        getattr(lib, name).restype = ctypes.c_uint64
    return lib


LIB = _load()


def check(call, *arguments):
    error = Error()
    if call(*arguments, ctypes.byref(error)) != 0:
        raise WeirError(error)


class Schema:
    def __init__(self, schema):
        raw, self.pointer = ArrowSchema(), ctypes.c_void_p()
        schema._export_to_c(ctypes.addressof(raw))
        check(LIB.weir_schema_new, ctypes.addressof(raw), ctypes.byref(self.pointer))

    def __del__(self):
        if self.pointer:
            LIB.weir_schema_unref(self.pointer)


class Batch:
    def __init__(self, schema, batch):
        raw, self.pointer = ArrowArray(), ctypes.c_void_p()
        batch._export_to_c(ctypes.addressof(raw))
        check(LIB.weir_batch_new, schema.pointer, ctypes.addressof(raw), ctypes.byref(self.pointer))

    def __del__(self):
        if self.pointer:
            LIB.weir_batch_unref(self.pointer)


class Writer:
    """Collects the file in memory, or calls a write callback of its own."""

    def __init__(self, schema, codec="zstd", metadata=(), callback=None, bloom_filter=(), encoding=(), **options):
        self.data, self.pointer = bytearray(), ctypes.c_void_p()
        self.schema = schema if isinstance(schema, Schema) else Schema(schema)

        def collect(_ctx, data, size, _error):
            self.data.extend(ctypes.string_at(data, size))
            return 0

        self._write = WRITE(callback or collect)
        given = Options(ctypes.sizeof(Options))
        LIB.weir_parquet_options_init(ctypes.byref(given))
        given.codec = CODECS[codec]
        pairs = [KeyValue(k.encode(), None if v is None else v.encode()) for k, v in metadata]
        given.metadata = (KeyValue * len(pairs))(*pairs)
        given.n_metadata = len(pairs)
        for name, value in options.items():
            setattr(given, name, value)
        check(LIB.weir_parquet_writer_new, self.schema.pointer, ctypes.byref(given), self._write, None,
              ctypes.byref(self.pointer))
        for name in bloom_filter:
            check(LIB.weir_parquet_writer_bloom_filter, self.pointer, name.encode())
        for name, text in dict(encoding).items():
            check(LIB.weir_parquet_writer_encoding, self.pointer, name.encode(), text.encode())

    def write(self, batch):
        batch = batch if isinstance(batch, Batch) else Batch(self.schema, batch)
        check(LIB.weir_parquet_writer_write, self.pointer, batch.pointer)

    def finish(self):
        result = Result()
        check(LIB.weir_parquet_writer_finish, self.pointer, ctypes.byref(result))
        return result

    def written(self):
        return LIB.weir_parquet_writer_written(self.pointer)

    def buffered(self):
        return LIB.weir_parquet_writer_buffered(self.pointer)

    def __del__(self):
        if self.pointer:
            LIB.weir_parquet_writer_free(self.pointer)


def write_table(table, path=None, batch_rows=None, **options):
    """The file's bytes; also to `path` if given."""
    writer = Writer(table.schema, **options)
    for batch in table.to_batches(max_chunksize=batch_rows):
        writer.write(batch)
    result = writer.finish()
    assert result.bytes == len(writer.data)
    if path is not None:
        pathlib.Path(path).write_bytes(writer.data)
    return bytes(writer.data)
