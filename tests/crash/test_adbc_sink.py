"""The sink adbc with the driver of SQLite: SIGKILL and failures at every point of its transactions, then a restart."""

import pathlib
import sys

import pytest
from test_transactions import POINTS, Place

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import adbc_drivers


class AdbcPlace(Place):
    TARGET = {"type": "adbc", "driver": adbc_drivers.SQLITE, "options": "{uri: out.db}"}

    def expected(self):
        """As many rows as an undisturbed run has, each as the first one made it."""
        clean = AdbcPlace(self.folder / "clean", self.weir)
        assert clean.run("").returncode == 0
        return clean.query("select * from t order by id")


@pytest.mark.parametrize("point", [point for point in POINTS if point.startswith("txn.")])
def test_kill_and_failures_at(point, tmp_path, weir_faults):
    (tmp_path / "clean").mkdir()
    place = AdbcPlace(tmp_path, weir_faults)
    done = place.run(f"{point}=kill@2", rows=1500)
    assert done.returncode in (-9, 0), f"{point}: {done.stderr[-2000:]}"
    done = place.run(f"{point}=kill@1", rows=2500)
    assert done.returncode == -9, f"{point}: {done.stderr[-2000:]}"
    done = place.run(f"{point}=fail@2,{point}=fail@3")
    assert done.returncode == 0, done.stderr
    place.finish()
