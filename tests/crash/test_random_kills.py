"""Kills at random times, of the release build."""

import random
import time

import pytest
from harness import Case, Watcher, killed

KILLS = 200


def kill_at_random(case, kills, rng):
    """Starts and kills `case` again and again, and gives it a further file whenever it has delivered all."""
    done = 0
    while done < kills:
        process = case.start()
        time.sleep(rng.uniform(0.0, 0.12))
        process.kill()
        process = case.end(process)
        assert killed(process) or process.returncode == 0, f"exit {process.returncode}\n{process.stderr[-4000:]}"
        done += killed(process)
        if process.returncode == 0:
            case.grow(6000)


def test_200_kills_in_one_run(tmp_path, weir_bin):
    case = Case(tmp_path, weir_bin, rows=18000, interval="2ms")
    with Watcher(case):
        kill_at_random(case, KILLS, random.Random(20240521))
        case.finish()
        case.check()
        case.check_clean()


@pytest.mark.parametrize("seed", range(3))
def test_two_sources_into_one_sink(seed, tmp_path, weir_bin):
    case = Case(tmp_path, weir_bin, rows=18000, sources=2, interval="2ms", writers=3)
    with Watcher(case):
        kill_at_random(case, 12, random.Random(seed))
        case.finish()
        case.check()
        case.check_clean()


def test_parquet_files_to_read(tmp_path, weir_bin):
    case = Case(tmp_path, weir_bin, rows=18000, reads="parquet", interval="2ms")
    with Watcher(case):
        kill_at_random(case, 12, random.Random(11))
        case.finish()
        case.check()
        case.check_clean()
