"""Kills and failures at random fault points, several in one run and run after run. A seed is a story that
can be told again, as far as threads allow."""

import random

import pytest
from harness import PACE, Case, Watcher, killed


def some_faults(rng):
    faults = [f"*=kill@{rng.randrange(1, 400)}"]
    for likely, point, most in [
        (0.5, "task.write", 30),
        (0.3, "task.read", 30),
        (0.3, "file.write", 60),
        (0.3, "*", 300),
    ]:
        if rng.random() < likely:
            faults.append(f"{point}=fail@{rng.randrange(1, most)}")
    return ",".join(faults)


@pytest.mark.parametrize("seed", range(8))
def test_random_faults(seed, tmp_path, weir_faults_bin):
    rng = random.Random(seed)
    sinks = rng.choice(["lake", "lake pond"])
    case = Case(
        tmp_path, weir_faults_bin, rows=1800, sources=rng.choice([1, 2]), writers=rng.choice([1, 2, 4]), sinks=sinks
    )
    with Watcher(case):
        for _ in range(6):
            faults = some_faults(rng)
            process = case.run(f"{faults},{PACE}")
            known = killed(process) or process.returncode in (0, 1, 5)
            assert known, f"{faults}: exit {process.returncode}\n{process.stderr}"
            case.grow(120)
        case.finish()
        for sink in sinks.split():
            case.check(sink=sink)
        case.check_clean()
