"""libweir's CSV decoder and encoder through ctypes; batches go through the Arrow C data interface."""

import ctypes

import pyarrow as pa

from weir_ipc import ARRAY, LIB
from weir_ndjson import check, make_schema, pointer, ref, take_batch

LIB.weir_csv_decoder_offset.restype = ctypes.c_uint64
LIB.weir_csv_decoder_line.restype = ctypes.c_uint64


class Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("no_header", ctypes.c_int32),
        ("batch_rows", ctypes.c_int64),
        ("max_line", ctypes.c_uint64),
        ("delimiter", ctypes.c_char_p),
        ("quote", ctypes.c_char_p),
        ("null_text", ctypes.c_char_p),
    ]


def make_options(header=True, delimiter=None, quote=None, null=None, batch_rows=0, max_line=0):
    texts = [None if text is None else text.encode() for text in (delimiter, quote, null)]
    return Options(ctypes.sizeof(Options), not header, batch_rows, max_line, *texts)


def decode(data, schema, block=1 << 20, **options):
    """The batches of `data`, fed in blocks as they would come from a file."""
    made, decoder = make_schema(schema), pointer()
    batches, held, at = [], b"", 0
    try:
        check(LIB.weir_csv_decoder_new, made, ref(make_options(**options)), ref(decoder))
        while True:
            held += data[at : at + block]
            at += block
            last = at >= len(data)
            while True:
                used, batch = ctypes.c_size_t(), pointer()
                size = ctypes.c_size_t(len(held))
                check(LIB.weir_csv_decoder_feed, decoder, held, size, int(last), ref(used), ref(batch))
                held = held[used.value :]
                if not batch:
                    break
                batches.append(take_batch(batch, schema))
            if last:
                break
        batch = pointer()
        check(LIB.weir_csv_decoder_flush, decoder, ref(batch))
        if batch:
            batches.append(take_batch(batch, schema))
        assert held == b"" and LIB.weir_csv_decoder_offset(decoder) == len(data)
        return batches
    finally:
        LIB.weir_csv_decoder_free(decoder)
        LIB.weir_schema_unref(made)


def decode_table(data, schema, **options):
    return pa.Table.from_batches(decode(data, schema, **options), schema)


def encode(batch, **options):
    """The header and records of a pyarrow record batch."""
    made, encoder, counted = make_schema(batch.schema), pointer(), pointer()
    array, text, size = ARRAY(), pointer(), ctypes.c_size_t()
    batch._export_to_c(ctypes.addressof(array))
    try:
        check(LIB.weir_batch_new, made, array, ref(counted))
        check(LIB.weir_csv_encoder_new, made, ref(make_options(**options)), ref(encoder))
        LIB.weir_csv_encoder_header(encoder, ref(text), ref(size))
        header = ctypes.string_at(text.value, size.value) if size.value else b""
        check(LIB.weir_csv_encoder_write, encoder, counted, ref(text), ref(size))
        return header + (ctypes.string_at(text.value, size.value) if size.value else b"")
    finally:
        LIB.weir_csv_encoder_free(encoder)
        LIB.weir_batch_unref(counted)
        LIB.weir_schema_unref(made)
