"""libweir's NDJSON decoder and encoder through ctypes; batches go through the Arrow C data interface."""

import ctypes

import pyarrow as pa

from weir_ipc import ARRAY, LIB, SCHEMA, ErrorStruct, WeirError

LIB.weir_ndjson_decoder_offset.restype = ctypes.c_uint64
LIB.weir_ndjson_decoder_line.restype = ctypes.c_uint64
ref, pointer = ctypes.byref, ctypes.c_void_p


def check(function, *arguments):
    error = ErrorStruct()
    status = function(*arguments, ref(error))
    if status != 0:
        raise WeirError(status, error)


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("batch_rows", ctypes.c_int64), ("max_line", ctypes.c_uint64)]


def make_schema(schema):
    """A weir_schema of a pyarrow schema, to weir_schema_unref."""
    moved, made = SCHEMA(), pointer()
    schema._export_to_c(ctypes.addressof(moved))
    check(LIB.weir_schema_new, moved, ref(made))
    return made


def take_batch(batch, schema):
    array = ARRAY()
    check(LIB.weir_batch_export, batch, array)
    LIB.weir_batch_unref(batch)
    return pa.RecordBatch._import_from_c(ctypes.addressof(array), schema)


def decode(data, schema, batch_rows=0, block=1 << 20):
    """The batches of `data`, fed in blocks as they would come from a file."""
    made, decoder = make_schema(schema), pointer()
    batches, held, at = [], b"", 0
    try:
        options = Options(ctypes.sizeof(Options), batch_rows, 0)
        check(LIB.weir_ndjson_decoder_new, made, ref(options), ref(decoder))
        while True:
            held += data[at : at + block]
            at += block
            last = at >= len(data)
            while True:
                used, batch = ctypes.c_size_t(), pointer()
                check(LIB.weir_ndjson_decoder_feed, decoder, held, ctypes.c_size_t(len(held)), int(last), ref(used), ref(batch))
                held = held[used.value :]
                if not batch:
                    break
                batches.append(take_batch(batch, schema))
            if last:
                break
        batch = pointer()
        check(LIB.weir_ndjson_decoder_flush, decoder, ref(batch))
        if batch:
            batches.append(take_batch(batch, schema))
        assert held == b"" and LIB.weir_ndjson_decoder_offset(decoder) == len(data)
        return batches
    finally:
        LIB.weir_ndjson_decoder_free(decoder)
        LIB.weir_schema_unref(made)


def decode_table(data, schema, **options):
    return pa.Table.from_batches(decode(data, schema, **options), schema)


def encode(batch):
    """The lines of a pyarrow record batch."""
    made, encoder, counted = make_schema(batch.schema), pointer(), pointer()
    array, text, size = ARRAY(), pointer(), ctypes.c_size_t()
    batch._export_to_c(ctypes.addressof(array))
    try:
        check(LIB.weir_batch_new, made, array, ref(counted))
        check(LIB.weir_ndjson_encoder_new, made, ref(encoder))
        check(LIB.weir_ndjson_encoder_write, encoder, counted, ref(text), ref(size))
        return ctypes.string_at(text.value, size.value) if size.value else b""
    finally:
        LIB.weir_ndjson_encoder_free(encoder)
        LIB.weir_batch_unref(counted)
        LIB.weir_schema_unref(made)
