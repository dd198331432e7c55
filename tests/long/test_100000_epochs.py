"""A hundred thousand epochs of three sinks, and the start after them."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from test_many_epochs import calls_of_a_start, folder, run_until  # noqa: E402, F401


def test_nothing_grows(weir_bin, folder):  # noqa: F811
    few, many = folder / "few", folder / "many"
    run_until(weir_bin, few, 12)
    run_until(weir_bin, many, 100_000, seconds=3000)
    assert (many / "state/store.db").stat().st_size < 1 << 20
    assert len(list((many / "out/.weir").rglob("*"))) < 1000
    before, after = calls_of_a_start(weir_bin, few), calls_of_a_start(weir_bin, many)
    for name in before | after:
        assert after[name] <= 2 * before[name] + 10, f"{name}: {before[name]} calls after few epochs, {after[name]} after many"
