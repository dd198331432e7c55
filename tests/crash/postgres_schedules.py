"""Random schedules of what may befall a pipeline into PostgreSQL; a seed gives the same one again."""

import random
import signal
import time

from harness import PACE, SECONDS, is_stopped, killed, wait_until

POINTS = ["txn.open", "txn.read_cursor", "txn.begin", "txn.apply", "postgres.rows_sent", "txn.prepare", "txn.prepared"]
POINTS += ["txn.commit", "txn.committed", "spool.synced", "store.decide.before", "store.decide.after"]


def ended(process):
    """Killed, or at its end before the fault came: nothing else."""
    assert killed(process) or process.returncode == 0, f"exit {process.returncode}\n{process.stderr[-4000:]}"


def kill_weir_at(case, chance):
    ended(case.run(f"{chance.choice(POINTS)}=kill@{chance.randint(1, 6)},{PACE}"))


def kill_weir_at_any_time(case, chance):
    process = case.start(PACE)
    time.sleep(chance.uniform(0.05, 0.8))
    process.kill()
    ended(case.end(process))


def lose_sessions(case, chance):
    """A step fails now and then; the run itself must reach its end."""
    points = ",".join(f"{point}=fail@{chance.randint(2, 6)}" for point in chance.sample(POINTS[:9], 2))
    done = case.run(f"{points},{PACE}")
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-4000:]}"


def kill_the_server(case, chance):
    process = case.start(PACE)
    time.sleep(chance.uniform(0.1, 0.6))
    case.server.stop(signal.SIGQUIT)
    time.sleep(chance.uniform(0, 0.5))
    case.server.start()
    done = case.end(process)
    # What is away when a run starts ends it.
    assert done.returncode in (0, 1), f"exit {done.returncode}\n{done.stderr[-4000:]}"


def cut_the_network(case, chance):
    proxy = case.proxy(chance.randint(1, 4), chance.choice(["dropped", "answer lost", "late", "silent"]))
    done = case.run(PACE, arguments=["--set", f"sinks.lake.uri={proxy.uri(case)}", "--set", "checkpoint.timeout=1s"])
    proxy.listener.close()
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-4000:]}"


def wake_a_zombie(case, chance):
    """An owner that is paused, and wakes when its successor is done or in the middle of it."""
    point = chance.choice(POINTS)
    zombie = case.start(f"{point}=stop@{chance.randint(1, 4)},{PACE}", start_new_session=True)
    wait_until(lambda: zombie.poll() is not None or is_stopped(zombie), point)
    if zombie.returncode is not None:
        return ended(case.end(zombie))
    case.expire()
    second = case.start(PACE)
    if chance.random() < 0.5:
        second.wait(SECONDS)
    else:
        time.sleep(chance.uniform(0, 0.5))
    zombie = case.go_on(zombie)
    second = case.end(second)
    assert second.returncode == 0, f"exit {second.returncode}\n{second.stderr[-4000:]}"
    assert zombie.returncode in (0, 4, 5), f"the zombie: exit {zombie.returncode}\n{zombie.stderr[-4000:]}"


STEPS = [kill_weir_at, kill_weir_at_any_time, lose_sessions, kill_the_server, cut_the_network, wake_a_zombie]


def run_schedule(case, seed):
    chance = random.Random(seed)
    names = []
    for _ in range(3):
        step = chance.choice(STEPS)
        names.append(step.__name__)
        case.expire()
        try:
            step(case, chance)
            assert case.nothing_twice()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {names}: {error}") from error
        case.grow(240)
    case.expire()
    case.finish()
    case.check()
