#!/usr/bin/env python3
"""What the fuzzers begin with: tests/fuzz/seeds.py FOLDER writes FOLDER/TARGET/*.

fuzz_ipc: each nested type and each kind of dictionary alone, as a stream and as a file, plain and compressed,
written by pyarrow. fuzz_ndjson: rows of every column of that target, whose first byte chooses blocks and batches.
fuzz_infer: the same rows, and records of each type of column; the first byte chooses the format and blocks.
"""

import pathlib
import sys

import pyarrow as pa

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop"))

from test_ipc import dictionary_columns, growing_dictionaries, nested_columns, write

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


def main():
    folder = pathlib.Path(sys.argv[1])
    ipc, ndjson, infer = (folder / name for name in ("fuzz_ipc", "fuzz_ndjson", "fuzz_infer"))
    for path in (ipc, ndjson, infer):
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
    for i in range(3):
        (infer / f"seed-csv-{i}").write_text(f"{'ACO'[i]}{CSV}")


if __name__ == "__main__":
    main()
