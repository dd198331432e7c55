"""The power goes: at any point of a run, of its first start and of what follows a power cut, what was not
synced is lost, torn or reordered at random, and in the end each row is at the target once.

Threads make each recording another one, so a seed alone does not bring a failure back. The failure says where
the cuts were, and the disk as the last one left it, with the log of the last process, is in the test's folder.
"""

import random

import pytest
from power_steps import CAUGHT, Steps
from simulated_disk import MKDIR, Disk, PowerCut
from world import VARIANTS, Story, World, recorded

SEEDS = 10


@pytest.mark.parametrize("group", range(16))
def test_power_cuts(group, tmp_path, weir_bin, recorder):
    variant = list(VARIANTS)[group % len(VARIANTS)]
    world = recorded(tmp_path / "world", weir_bin, recorder, variant, group)
    for seed in range(group * SEEDS, (group + 1) * SEEDS):
        Story(*world, seed).tell()


@pytest.mark.parametrize("made", [1, 2, 3])
def test_killed_between_making_the_state_folder_and_its_sync(made, tmp_path, weir_bin, recorder):
    """The next process finds the folders there, and must not take them for durable."""
    world = World(tmp_path / "world", weir_bin, recorder, files=3)
    world.new_disk()
    disk = Disk(world.disk)
    world.play(disk, world.record([f"{made}:{MKDIR}"]))
    world.new_disk(PowerCut(disk, random.Random(0), "lost").tree)
    world.check_visible(world.rows)
    world.check_complete()


@pytest.mark.parametrize("step", ["F6", "F7", "F11", "F12a", "C8"])
def test_a_missing_sync_is_found(step, tmp_path, weir_bin, recorder):
    """The simulation can fail. tests/long goes through all steps."""
    variant = "folders" if step == "F12a" else "one writer"
    world = recorded(tmp_path / "world", weir_bin, recorder, variant, 0)
    assert step in CAUGHT
    assert find(world, step, range(60), tmp_path), f"without the sync of {step} no seed has failed"


def find(world, step, seeds, folder):
    """What the first seed says that fails when the syncs of a step are not made."""
    for seed in seeds:
        steps = Steps(folder)
        try:
            Story(*world, seed, lambda disk, node, steps=steps: steps(disk, node) == step).tell()
        except AssertionError as error:
            return f"seed {seed}: {error}"
    return None
