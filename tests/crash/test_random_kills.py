"""Random kills of one pipeline, and of two sources that feed one sink."""

import random
import time

import pytest
from harness import Case, Watcher

KILLS = 200


def kill_at_random(case, kills, rng):
    """Runs until the end; each run is killed after a random time. The number of kills that hit."""
    done = 0
    while done < kills:
        process = case.start()
        time.sleep(rng.uniform(0.0, 0.12))
        if process.poll() is None:
            done += 1
        process.kill()
        out, err = process.communicate()
        if process.returncode == 0:
            return done
        assert process.returncode in (-9, 0), f"exit {process.returncode}\n{err[-4000:]}"
    return done


def test_200_kills_in_one_run(tmp_path, weir_bin):
    rng = random.Random(20240521)
    rows, kills, part = 30000, 0, 0
    # One pipeline, grown by a file whenever it has delivered all, so that every kill hits a run at work.
    case = Case(tmp_path, weir_bin, rows=rows, files=3, interval="5ms")
    with Watcher(case):
        while kills < KILLS:
            kills += kill_at_random(case, KILLS - kills, rng)
            if kills < KILLS:
                part += 1
                case.grow(f"more-{part}", 10000)
        case.finish()
    case.check()


@pytest.mark.parametrize("seed", range(4))
def test_two_sources_into_one_sink(seed, tmp_path, weir_bin):
    """Killed between the barriers of the two: aligned, so exact."""
    case = Case(tmp_path, weir_bin, rows=24000, sources=2, interval="5ms")
    kill_at_random(case, 15, random.Random(seed))
    case.finish()
    case.check()
