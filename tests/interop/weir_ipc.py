"""libweir's IPC reader through ctypes; batches come out through the Arrow C data interface."""

import ctypes
import os
import pathlib

import pyarrow as pa

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STATUS = {
    0: "OK",
    2: "INVALID_STATE",
    3: "NOT_IMPLEMENTED",
    5: "SCHEMA",
    6: "IO",
    11: "CORRUPT",
    14: "BAD_DATA",
    15: "NOT_FOUND",
}

# struct ArrowArray and struct ArrowSchema, of which only the size matters here.
ARRAY, SCHEMA = ctypes.c_int64 * 10, ctypes.c_int64 * 9


class ErrorStruct(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("vendor_code", ctypes.c_int32),
        ("column", ctypes.c_int32),
        ("row", ctypes.c_int64),
        ("sqlstate", ctypes.c_char * 6),
        ("message", ctypes.c_char * 994),
    ]


class WeirError(Exception):
    def __init__(self, status, struct):
        self.status = STATUS.get(status, str(status))
        self.message = struct.message.decode()
        super().__init__(f"{self.status}: {self.message}")


def load():
    binary = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/release/weir"))
    lib = ctypes.CDLL(str(binary.parent / "libweir.so"))
    for name, result in {
        "weir_ipc_reader_schema": ctypes.c_void_p,
        "weir_ipc_reader_tell": ctypes.c_uint64,
        "weir_ipc_reader_offset": ctypes.c_uint64,
        "weir_ipc_reader_batches": ctypes.c_int64,
        "weir_batch_bytes": ctypes.c_uint64,
        "weir_batch_rows": ctypes.c_int64,
        "weir_batch_schema": ctypes.c_void_p,
        "weir_ipc_writer_bytes": ctypes.c_uint64,
    }.items():
        getattr(lib, name).restype = result
    return lib


LIB = load()


def call(function, *arguments):
    error = ErrorStruct()
    status = getattr(LIB, function)(*arguments, ctypes.byref(error))
    if status:
        raise WeirError(status, error)


def import_batch(batch):
    """A weir_batch, consumed, as a pyarrow.RecordBatch."""
    array, schema = ARRAY(), SCHEMA()
    try:
        call("weir_schema_export", ctypes.c_void_p(LIB.weir_batch_schema(batch)), ctypes.byref(schema))
        call("weir_batch_export", batch, ctypes.byref(array))
    finally:
        LIB.weir_batch_unref(batch)
    return pa.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))


class Reader:
    """One weir_ipc_reader; iterating gives pyarrow record batches."""

    def __init__(self, path=None, fd=None, data=None):
        self.handle = ctypes.c_void_p()
        out = ctypes.byref(self.handle)
        if path is not None:
            call("weir_ipc_reader_open_file", str(path).encode(), None, out)
        elif fd is not None:
            call("weir_ipc_reader_open_fd", fd, b"fd", None, out)
        else:
            call("weir_ipc_reader_open_stream", read_callback(data), None, b"stream", None, out)

    def schema(self):
        schema = SCHEMA()
        call("weir_schema_export", ctypes.c_void_p(LIB.weir_ipc_reader_schema(self.handle)), ctypes.byref(schema))
        return pa.Schema._import_from_c(ctypes.addressof(schema))

    def next(self):
        batch = ctypes.c_void_p()
        call("weir_ipc_reader_next", self.handle, ctypes.byref(batch))
        return import_batch(batch) if batch.value else None

    def __iter__(self):
        while (batch := self.next()) is not None:
            yield batch

    def seek(self, index):
        call("weir_ipc_reader_seek_batch", self.handle, ctypes.c_uint64(index))

    def tell(self):
        return LIB.weir_ipc_reader_tell(self.handle)

    def batches(self):
        return LIB.weir_ipc_reader_batches(self.handle)

    def __del__(self):
        LIB.weir_ipc_reader_free(self.handle)


CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.c_void_p,
)
KEPT = []  # callbacks live as long as the process: a reader may call them at any time


def read_callback(data, most=1000):
    """Gives `data` in pieces of at most `most` bytes."""
    at = 0

    def read(_ctx, buf, size, got, _err):
        nonlocal at
        piece = data[at : at + min(size, most)]
        ctypes.memmove(buf, piece, len(piece))
        got[0] = len(piece)
        at += len(piece)
        return 0

    KEPT.append(CALLBACK(read))
    return KEPT[-1]


class WriterOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("file", ctypes.c_int32),
        ("codec", ctypes.c_int32),
        ("level", ctypes.c_int32),
    ]


WRITE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


def export_batch(batch):
    """A pyarrow.RecordBatch as a new weir_batch."""
    array, schema = ARRAY(), SCHEMA()
    batch._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
    weir_schema, out = ctypes.c_void_p(), ctypes.c_void_p()
    call("weir_schema_new", ctypes.byref(schema), ctypes.byref(weir_schema))
    try:
        call("weir_batch_new", weir_schema, ctypes.byref(array), ctypes.byref(out))
    finally:
        LIB.weir_schema_unref(weir_schema)
    return out


def write_ipc(batches, file=False, codec=0, slices=None):
    """What weir writes of these batches; slices: (offset, length) of each, cut by weir."""
    written = bytearray()

    def write(_ctx, data, size, _err):
        written.extend(ctypes.string_at(data, size))
        return 0

    callback, handle = WRITE(write), ctypes.c_void_p()
    options = WriterOptions(ctypes.sizeof(WriterOptions), int(file), codec, 0)
    exported = [export_batch(b) for b in batches]
    try:
        schema = ctypes.c_void_p(LIB.weir_batch_schema(exported[0]))
        call("weir_ipc_writer_new", schema, ctypes.byref(options), callback, None, ctypes.byref(handle))
        for index, batch in enumerate(exported):
            if slices:
                part = ctypes.c_void_p()
                call("weir_batch_slice", batch, *(ctypes.c_int64(x) for x in slices[index]), ctypes.byref(part))
                call("weir_ipc_writer_write", handle, part)
                LIB.weir_batch_unref(part)
            else:
                call("weir_ipc_writer_write", handle, batch)
        call("weir_ipc_writer_finish", handle)
        assert LIB.weir_ipc_writer_bytes(handle) == len(written)
    finally:
        LIB.weir_ipc_writer_free(handle)
        for batch in exported:
            LIB.weir_batch_unref(batch)
    return bytes(written)
