"""More power cuts than tests/power has time for, and all the syncs that they would miss."""

import os
import pathlib
import sys

import pytest

POWER = pathlib.Path(__file__).resolve().parent.parent / "power"
sys.path.insert(0, str(POWER))
from power_steps import CAUGHT  # noqa: E402
from simulated_disk import Disk  # noqa: E402
from test_power import find  # noqa: E402
from world import VARIANTS, Story, World, build_recorder, recorded  # noqa: E402

SEEDS = int(os.environ.get("WEIR_POWER_SEEDS", "600"))


@pytest.fixture(scope="session")
def recorder(tmp_path_factory):
    return build_recorder(tmp_path_factory.mktemp("recorder"))


@pytest.mark.parametrize("group", range(SEEDS // 10))
def test_power_cuts(group, tmp_path, weir_bin, recorder):
    variant = list(VARIANTS)[group % len(VARIANTS)]
    world = recorded(tmp_path / "world", weir_bin, recorder, variant, 1000 + group)
    for seed in range(1000 + 10 * group, 1010 + 10 * group):
        Story(*world, seed).tell()


def test_power_cuts_of_a_long_run(tmp_path, weir_bin, recorder):
    """So long that SQLite copies its WAL into the database and begins it again, and that manifests are pruned."""
    options = dict(format="ndjson", sinks=("lake", "pond"), files=240, per_file=1, pace=3000, sync=100)
    world = World(tmp_path / "world", weir_bin, recorder, **options)
    world.new_disk()
    inode, disk = os.stat(world.disk).st_ino, Disk(world.disk)
    records = world.record()
    world.play(disk, records)
    world.check_recording(disk)
    for seed in range(60):
        Story(world, inode, records, seed).tell()


@pytest.mark.parametrize("step", CAUGHT)
def test_a_missing_sync_is_found(step, tmp_path, weir_bin, recorder):
    for group in range(40):
        variant = list(VARIANTS)[group % len(VARIANTS)]
        world = recorded(tmp_path / f"world{group}", weir_bin, recorder, variant, group)
        if find(world, step, range(10 * group, 10 * group + 10), tmp_path):
            return
    raise AssertionError(f"without the sync of {step} no seed has failed")
