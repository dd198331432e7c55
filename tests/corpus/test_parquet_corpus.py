"""Every file of apache/parquet-testing, which stands in the folder WEIR_CORPUS: its data reads as pyarrow reads it, its
bad data gives an error. Run by `WEIR_CORPUS=DIR ./dev test corpus`; what each lesson became is in tests/interop and
tests/unit."""

import io
import os
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from weir_parquet import WeirError, read_table

CORPUS = pathlib.Path(os.environ.get("WEIR_CORPUS", "WEIR_CORPUS is not set"))
DATA = sorted(CORPUS.glob("data/**/*.parquet"))
BAD = sorted(CORPUS.glob("bad_data/*.parquet"))

REFUSED = {
    # Their README says that these checksums are wrong; pyarrow looks at them only when it is told to
    "datapage_v1-corrupt-checksum": "a page's checksum is wrong",
    "rle-dict-uncompressed-corrupt-checksum": "a page's checksum is wrong",
    # Deprecated: LZ4 with a framing of Hadoop's or without one, which readers have to guess
    "hadoop_lz4_compressed": "codec 5 .lz4, the old framing. cannot be read",
    "hadoop_lz4_compressed_larger": "codec 5 .lz4, the old framing. cannot be read",
    "non_hadoop_lz4_compressed": "codec 5 .lz4, the old framing. cannot be read",
    # pyarrow lets the year 9999 overflow its nanoseconds
    "int96_from_spark": "column 'a': a timestamp is beyond the years",
    "large_string_map.brotli": "codec 4 .brotli. cannot be read",
    # parquet-mr before 1.2.9 left the dictionary's header out of a chunk's size
    "nation.dict-malformed": "a page is larger than the bytes that are there",
}
# pyarrow refuses them; weir reads their plain annotations
ONLY_WEIR = {"incorrect_map_schema"}
# A map without values: a list of keys to pyarrow, what the schema's elements say to weir
OTHER_TYPE = {"map_no_value": "my_map_no_v"}
# All indices are 0, so that a width of 0 bits tells them
GOOD_AFTER_ALL = {"ARROW-GH-43605"}


def same(want, got):
    if want.type == got.type:
        return want.equals(got) or repr(want.to_pylist()) == repr(got.to_pylist())  # NaN
    try:
        return want.cast(got.type).equals(got)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return repr(want.to_pylist()) == repr(got.to_pylist())


def test_the_corpus_is_there():
    assert len(DATA) > 50 and len(BAD) > 5, f"{CORPUS} is no checkout of apache/parquet-testing"


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.stem)
def test_data(path):
    data, name = path.read_bytes(), path.name.removesuffix(".parquet")
    if name in REFUSED:
        with pytest.raises(WeirError, match=REFUSED[name]):
            read_table(data)
        return
    try:
        want = pq.read_table(io.BytesIO(data))
    except (OSError, pa.ArrowException):
        # What neither reads (encrypted files, shredded variants that are wrong on purpose) is refused; no crash
        if name in ONLY_WEIR:
            assert read_table(data).num_rows > 0
        else:
            with pytest.raises(WeirError):
                read_table(data)
        return
    got = read_table(data)
    assert got.column_names == want.column_names and got.num_rows == want.num_rows
    assert [n for n in want.column_names if not same(want[n], got[n])] == [n for n in [OTHER_TYPE.get(name)] if n]


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_data(path):
    data = path.read_bytes()
    if path.stem in GOOD_AFTER_ALL:
        assert read_table(data).num_rows > 0
        return
    with pytest.raises(WeirError):
        read_table(data)
