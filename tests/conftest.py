"""What all Python tests share: where the command is, and how it is run.

WEIR_BIN names the command under test (default build/release/weir); WEIR_FAULTS_BIN one with fault points
(default build/asan/weir), WEIR_TSAN_BIN one under ThreadSanitizer (default build/tsan/weir).
"""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def command_path(variable, default):
    path = pathlib.Path(os.environ.get(variable, ROOT / default)).resolve()
    if not path.is_file():
        pytest.fail(f"{path} is missing; build it with ./dev build {path.parent.name}")
    return path


@pytest.fixture(scope="session")
def weir_bin():
    return command_path("WEIR_BIN", "build/release/weir")


@pytest.fixture(scope="session")
def weir_faults_bin():
    return command_path("WEIR_FAULTS_BIN", "build/asan/weir")


@pytest.fixture(scope="session")
def weir_tsan_bin():
    return command_path("WEIR_TSAN_BIN", "build/tsan/weir")


@pytest.fixture
def weir(weir_bin):
    """weir("run", "pipeline.yaml", cwd=..., env={...}) -> CompletedProcess with text output."""
    return lambda *arguments, **options: run_weir(weir_bin, *arguments, **options)


@pytest.fixture
def weir_faults(weir_faults_bin):
    """As `weir`, on the build with fault points; faults="store.decided=kill@2" sets its rules."""

    def run(*arguments, faults="", env=None, **options):
        return run_weir(weir_faults_bin, *arguments, env={**(env or {}), "WEIR_FAULTS": faults}, **options)

    return run


def run_weir(path, *arguments, env=None, timeout=120, **options):
    return subprocess.run(
        [str(path), *map(str, arguments)],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        **options,
    )


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A Kafka broker. Each worker has its own, so that tests may kill it."""
    from broker import Broker

    made = Broker(tmp_path_factory.mktemp("kafka"))
    yield made
    made.remove()


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server. Each worker has its own; who kills it brings it back."""
    sys.path.insert(0, str(ROOT / "tools"))
    from postgres import Server

    made = Server()
    try:
        made.make()
        yield made
    finally:
        made.remove()
