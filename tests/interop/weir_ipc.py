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
