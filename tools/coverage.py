#!/usr/bin/env python3
"""Says which branches of some rooms the C tests take, and fails when a room sinks below its floor.

  tools/coverage.py                    what the tests of build/coverage have taken; ./dev test coverage runs them first
  tools/coverage.py --tests RE ROOM... builds, runs only the tests whose names fit RE, and shows the lines of these
                                       rooms (or files: src/store/pq.c) with branches that were not taken

Floors, and what is left out of the count for what reason, stand in tools/coverage.toml.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "tools/coverage.toml"
BUILD = ROOT / "build/coverage"


def run(command, **options):
    return subprocess.run([str(part) for part in command], cwd=ROOT, check=True, **options)


def run_tests(fitting):
    for old in BUILD.rglob("*.gcda"):  # what earlier runs have taken
        old.unlink()
    run([os.environ.get("CMAKE", "cmake"), "--build", BUILD, "--", "-j2"], stdout=subprocess.DEVNULL)
    run(["ctest", "--test-dir", BUILD, "-R", fitting, "--output-on-failure", "--no-tests=error"])


def measure(rooms, left_out):
    """file -> [(line, branches, taken)] of the lines with branches."""
    command = [sys.executable, "-m", "gcovr", "--root", ROOT, "--json", "-", "-j", os.cpu_count() or 2]
    command += ["--exclude-branches-by-pattern", "|".join(f".*(?:{one['pattern']})" for one in left_out)]
    for room in rooms:
        command += ["--filter", f"src/{room}/"]
    told = run([*command, *(BUILD / f"CMakeFiles/weir_objects.dir/src/{room}" for room in rooms)],
               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    files = {}
    for file in json.loads(told.stdout)["files"]:
        files[file["file"]] = lines = []
        for line in file["lines"]:
            branches = [b for b in line["branches"] if not b.get("gcovr/excluded")]
            if branches:
                lines.append((line["line_number"], len(branches), sum(b["count"] > 0 for b in branches)))
    return files


def percent(lines):
    branches = sum(line[1] for line in lines)
    taken = sum(line[2] for line in lines)
    share = 100 * taken / branches if branches else 100
    return share, f"{share:6.1f} %  {taken:4} of {branches:4}"


def show_untaken(name, lines):
    text = (ROOT / name).read_text().splitlines()
    for number, branches, taken in lines:
        if taken < branches:
            print(f"  {name}:{number}: {taken} of {branches}: {text[number - 1].strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", metavar="RE", help="build, and run these tests first")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help="show the lines of these rooms or files")
    arguments = parser.parse_args()
    table = tomllib.loads(TABLE.read_text())
    shown = [re.sub(r"^src/", "", room).rstrip("/") for room in arguments.rooms]
    rooms = list(dict.fromkeys(room.split("/")[0] for room in shown)) or list(table["floor"])
    if arguments.tests:
        run_tests(arguments.tests)
    files, low = measure(rooms, table["left_out"]), False
    for room in rooms:
        of_room = {name: lines for name, lines in sorted(files.items()) if name.startswith(f"src/{room}/")}
        for name, lines in of_room.items():
            print(f"{percent(lines)[1]}  {name}")
            if any(f"{name}/".startswith(f"src/{one}/") for one in shown):
                show_untaken(name, lines)
        share, text = percent(sum(of_room.values(), []))
        floor = 0 if arguments.tests else table["floor"].get(room, 0)
        low |= share < floor or not of_room
        print(f"{text}  src/{room}, floor {floor} %{': SUNK' if share < floor else ''}")
    return low


if __name__ == "__main__":
    sys.exit(main())
