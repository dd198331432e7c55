#!/usr/bin/env python3
"""What the fuzzers begin with: tests/fuzz/seeds.py FOLDER writes FOLDER/TARGET/*.

fuzz_ipc: each nested type and each kind of dictionary alone, as a stream and as a file, plain and compressed,
written by pyarrow. fuzz_ndjson: rows of every column of that target, whose first byte chooses blocks and batches.
fuzz_parquet: each type, encoding and kind of nesting alone, by pyarrow and by weir (WEIR_LIB).
fuzz_infer: the same rows, and records of each type of column; the first byte chooses the format and blocks.
fuzz_spool: those streams as a segment's frames; the first byte says how many rows.
fuzz_source_input: members and frames one behind the other, empty, cut, padded, skippable, with and without checksum;
the first byte chooses packing, stream and reads.
"""

import gzip
import pathlib
import sys
import zlib

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop"))

from test_ipc import dictionary_columns, growing_dictionaries, nested_columns, write
from test_parquet_nested import COLUMNS
from test_parquet_read import ENCODINGS, pyarrow_types
from test_parquet_write import TYPES, column
from weirlib import write_table

NDJSON = """\
{"i":1,"u":2,"b":true,"d":1.5,"f":0.25,"s":"x\\n","L":"\\u00e9","x":"AAE=","n":12.5,"D":"2024-02-29"}
{"t":"23:59:59.5","T":"2024-02-29T01:02:03.004","z":"2024-02-29T01:02:03Z","F":"AAEC","l":["a",null]}
{"m":{"k":1,"j":null},"o":{"i":5,"s":{"l":[true,false]}},"k":[[{"key":1,"value":{"u":"x","b":true}}],null]}
{"w":[{"f":1.0,"l":[1,2]},null],"l":[],"m":{},"o":null,"k":[]}
{"m":[{"key":"a","value":1}],"o":{"i":1,"y":[{}]},"w":[{"l":[1]},{"f":2}]}
"""

CSV = """\
id,zip,price,day,at,local,big,ok,"no\nte"
1,007,2.5,2024-02-29,2024-02-29T10:00:00Z,2024-02-29 10:00:00.5,18446744073709551615,true,
2,10,3,2024-03-01,2024-03-01 11:00:00+01:00,2024-02-29,1,FALSE,"a ""b"", c"
-9223372036854775808,+1,1e3,,nan,-inf,1,1,x
"""


def packed():
    """Packing and bytes."""
    text = NDJSON.encode()
    stored = zlib.compressobj(0, wbits=31)
    named = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x03\x00abcname\x00comment\x00"
    named += (zlib.crc32(named) & 0xFFFF).to_bytes(2, "little") + gzip.compress(text, mtime=0)[10:]
    member = gzip.compress(text, mtime=0)
    frame = pa.compress(text, codec="zstd", asbytes=True)
    skipped = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    # RFC 8878, 3.1.1.1: no content size, a window of 2^28 bytes
    wide = bytes([0x28, 0xB5, 0x2F, 0xFD, 0, 18 << 3, 1 << 3 | 1, 0, 0, 32])
    # a checksum (of one space, XXH64) and a raw block
    checked = bytes([0x28, 0xB5, 0x2F, 0xFD, 0x24, 1, 1 << 3 | 1, 0, 0, 32]) + bytes(4)
    bomb = bytes(3 << 20)
    for data in (member, member + gzip.compress(b"") + member, member + bytes(600), member[:-9], named):
        yield 0, data
    yield 0, stored.compress(text) + stored.flush()
    yield 0, gzip.compress(bomb, mtime=0)
    for data in (frame, frame + skipped + frame, skipped, frame[:-2], wide, checked):
        yield 1, data
    yield 1, pa.compress(bomb, codec="zstd", asbytes=True)


def parquet(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for i, name in enumerate(pyarrow_types()):
        table = pa.table({name: pa.concat_arrays([column(name)] * 3)})
        codec = ["none", "snappy", "gzip", "zstd", "lz4"][i % 5]
        pq.write_table(table, folder / f"seed-{name}", compression=codec, data_page_version=["1.0", "2.0"][i % 2])
    for name in TYPES:
        write_table(pa.table({name: column(name)}), folder / f"seed-weir-{name}", codec="none")
    for encoding, columns in ENCODINGS.items():
        for name, values in columns.items():
            pq.write_table(pa.table({name: values.slice(0, 300)}), folder / f"seed-{encoding}-{name}", use_dictionary=False,
                           column_encoding={name: encoding}, compression="none", data_page_size=400, write_batch_size=40)
    for name, (kind, values) in COLUMNS.items():
        write_table(pa.table({name: pa.array(values * 5, kind)}), folder / f"seed-nested-{name}", codec="none")


def spool(folder, ipc):
    """Streams as a frame's content, with checksums that are right; the first byte holds the rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in ipc.glob("seed-*-stream-None"):
        (folder / path.name).write_bytes(bytes([1 | 8 << 1]) + path.read_bytes())


def main():
    folder = pathlib.Path(sys.argv[1])
    names = ("fuzz_ipc", "fuzz_ndjson", "fuzz_infer", "fuzz_source_input")
    ipc, ndjson, infer, source_input = (folder / name for name in names)
    for path in (ipc, ndjson, infer, source_input):
        path.mkdir(parents=True, exist_ok=True)
    for name, column in {**nested_columns(), **dictionary_columns()}.items():
        batch = pa.record_batch({"c": column})
        for file in (False, True):
            for codec in (None, "lz4", "zstd"):
                path = ipc / f"seed-{name}-{'file' if file else 'stream'}-{codec}"
                write(path, [batch, batch.slice(3, 4)], batch.schema, file, compression=codec)
    for kind, batches in growing_dictionaries():
        for deltas in (False, True):
            write(ipc / f"seed-dict-{kind}-{deltas}", batches, batches[0].schema, False, emit_dictionary_deltas=deltas)
    for i, line in enumerate([NDJSON, *NDJSON.splitlines()]):
        (ndjson / f"seed-{i}").write_text(f"{'!#1'[i % 3]}{line}\n{line}")
        (infer / f"seed-{i}").write_text(f"{'@D'[i % 2]}{line}\n{line}")
    spool(folder / "fuzz_spool", ipc)
    parquet(folder / "fuzz_parquet")
    for i in range(3):
        (infer / f"seed-csv-{i}").write_text(f"{'ACO'[i]}{CSV}")
    for i, (packing, data) in enumerate(packed()):
        for choice in (packing, packing | 2 | 16 << 2, packing | 40 << 2):
            (source_input / f"seed-{i}-{choice}").write_bytes(bytes([choice]) + data)


if __name__ == "__main__":
    main()
