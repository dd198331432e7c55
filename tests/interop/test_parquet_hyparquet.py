"""What weir writes as Parquet, read by hyparquet, whose decoders (fzstd for zstd) are of nobody else's code, and
compared value by value with what pyarrow reads."""

import io
import json
import pathlib
import random
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_parquet_write import all_types, same
from weirlib import CODECS, write_table

BIN = pathlib.Path(sys.executable).parent
SCRIPT = pathlib.Path(__file__).with_name("read_parquet.mjs")


def through_hyparquet(path):
    command = [BIN / "node", SCRIPT, BIN.parent / "node_modules", path]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def plain(array):
    """The values, times as their numbers."""
    kind = array.type
    if pa.types.is_temporal(kind):
        array = array.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return array.to_pylist()


def agrees(kind, want, have):
    if want is None or have is None:
        return want is have
    if isinstance(want, bytes):
        return have == want.hex()
    if isinstance(want, bool):
        return have == str(want).lower()
    if pa.types.is_decimal(kind):  # hyparquet's are doubles
        return float(have) == pytest.approx(float(want), rel=1e-12)
    if pa.types.is_floating(kind):
        return repr(float(have)) == repr(want)
    return have == str(want)


def check(table, path, **options):
    got = pq.read_table(io.BytesIO(write_table(table, path, **options)))
    same(table, got)
    have = through_hyparquet(path)
    assert list(have) == table.column_names
    for name in table.column_names:
        column = got[name].combine_chunks()
        want = plain(column)
        assert len(want) == len(have[name]) == len(table), name
        wrong = [(i, w, h) for i, (w, h) in enumerate(zip(want, have[name])) if not agrees(column.type, w, h)]
        assert not wrong, (name, wrong[:5])


@pytest.mark.parametrize("codec", CODECS)
def test_all_types(codec, tmp_path):
    check(all_types(300), tmp_path / "t.parquet", codec=codec)


def test_text_without_repeats(tmp_path):
    """Pages of literals only; what they are made of changes from page to page, then libzstd takes over."""
    chance = random.Random(7)

    def lines(letters, n):
        return ["".join(chance.choices(letters, k=chance.randrange(10, 60))) for _ in range(n)]

    text = lines("abcdefghijklmnopqrstuvwxyz      ", 40_000) + ["Größe \U0001f600", None, ""]
    text += lines("0123456789abcdef" + "0" * 40, 20_000) + lines("xyzäöü", 10_000) + text[:99] * 100
    data = [None if line is None else line.encode() for line in text]
    ids = [chance.getrandbits(63) for _ in text]
    check(pa.table({"t": text, "b": pa.array(data, pa.binary()), "n": ids}), tmp_path / "t.parquet", codec="zstd")
