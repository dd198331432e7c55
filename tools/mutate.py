#!/usr/bin/env python3
"""Breaks one rule of docs/protocol.md at a time, in one line of the code, and looks whether the tests find it.

  tools/mutate.py [--check] [--by KIND] [--markdown FILE] [--junit FILE] [WORD...]

The rules and lines are in tools/mutations.toml. Each line is changed in a copy of its file, which is compiled
alone and linked before the library of build/release or build/asan; what is there stays as it is. Then what is to
find it runs, and must fail, which without the change it does not:

  sim         the simulation of the coordinator, SEEDS worlds
  kit CHECK   that check of `weir conform` of the file sink
  unit NAME   build/asan/tests/NAME
  power       tests/power, the power cuts
  crash TEST  that test, with fault points

Prints a table and exits 1 when a mutation survived, or its line is not in its file exactly once. With words:
only mutations with one of them in rule, file or line; --by: only those that KIND finds. --check looks for the lines
alone.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from xml.etree import ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "tools/mutations.toml"
WORK = ROOT / "build/mutations"
SEEDS = 20000
SECONDS = 300
PRESETS = {"sim": "release", "kit": "release", "unit": "asan", "power": "release", "crash": "asan"}
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # no power is cut in the kit: syncs show nothing


class Wrong(Exception):
    """What is wrong with a mutation, or with the build that it needs."""


def load():
    mutations = tomllib.loads(TABLE.read_text())["mutation"]
    for number, mutation in enumerate(mutations, 1):
        mutation["number"] = number
    return mutations


def lines_of(mutation, lines):
    """The lines of its function, where that is said, else all."""
    name = mutation.get("in")
    if not name:
        return range(len(lines))
    for i, line in enumerate(lines):
        if re.match(rf"\w.*\b{name}\(", line) and not line.endswith(";"):
            return range(i, next((k for k in range(i, len(lines)) if lines[k] == "}"), i))
    return range(0)


def place(mutation):
    """Index of the line in its file."""
    lines = (ROOT / mutation["file"]).read_text().splitlines()
    below = mutation.get("below")
    at = [i for i in lines_of(mutation, lines) if lines[i].strip() == mutation["line"]]
    at = [i for i in at if not below or lines[i - 1].strip() == below]
    if len(at) != 1:
        raise Wrong(f"{mutation['file']}: {len(at)} times, not once: `{mutation['line']}`")
    return at[0]


# ---- building


class Build:
    """One preset's compile and link commands."""

    def __init__(self, preset):
        self.folder = ROOT / "build" / preset
        if not (self.folder / "build.ninja").is_file():
            raise Wrong(f"build/{preset} is missing: ./dev build {preset}")
        entries = json.loads((self.folder / "compile_commands.json").read_text())
        self.compile = {entry["file"]: entry["command"] for entry in entries}
        self.links = {}
        self.lock = threading.Lock()

    def link(self, target):
        with self.lock:
            if target not in self.links:
                text = subprocess.check_output(["ninja", "-t", "commands", target], cwd=self.folder, text=True)
                self.links[target] = text.splitlines()[-1]
            return self.links[target]

    def command(self, text, output, extra):
        """The words of a command with another output, and `extra` behind it."""
        words = [word for word in shlex.split(text) if word not in (":", "&&")]
        at = words.index("-o")
        return [*words[:at], "-o", str(output), *map(str, extra), *words[at + 2 :]]

    def run(self, command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise Wrong(f"{' '.join(command)}\n{done.stderr}")

    def changed_object(self, mutation, folder):
        source, changed = ROOT / mutation["file"], folder / pathlib.Path(mutation["file"]).name
        lines = source.read_text().splitlines()
        lines[place(mutation)] = mutation["to"]
        changed.write_text("\n".join(lines) + "\n")
        made = folder / (self.folder.name + ".o")
        words = self.command(self.compile[str(source)], made, ["-w", "-iquote", source.parent])
        self.run([str(changed) if word == str(source) else word for word in words])
        return made

    def program(self, target, made, folder):
        """An archive's member is not taken for what an object before it defines."""
        output = folder / f"{self.folder.name}-{pathlib.Path(target).name}"
        words = self.command(self.link(target), output, made)
        if any("libweir.so" in word for word in words):
            library = next(word for word in words if "libweir.so" in word)
            third = [w for w in shlex.split(self.link("tests/sim")) if w.endswith((".a", ".so")) or w.startswith("-l")]
            words[words.index(library) : words.index(library) + 1] = third
        self.run(words)
        return output


# ---- finders: how it shows, or None


def out_of_time(seconds):
    return f"does not end within {seconds} s"


def run(command, seconds=SECONDS, **options):
    try:
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace",
                              timeout=seconds, **options)  # fmt: skip
    except subprocess.TimeoutExpired:
        return None


def sim(program, _folder, _what):
    done = run([program, "--seeds", f"1..{SEEDS}"])
    if done is None:
        return out_of_time(SECONDS)
    if done.returncode == 0:
        return None
    told = re.search(r"seed (\d+), turn \d+: (.*)", done.stderr)
    return f"seed {told[1]}: {told[2]}" if told else f"exit {done.returncode}"


def kit(program, _folder, check):
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        pathlib.Path(place, "options.yaml").write_text("path: out\nformat: ndjson\n")
        command = [program, "conform", "file", "--config", "options.yaml", "--json"]
        done = run([*command, "--count", "cat out/* 2>/dev/null | wc -l"], cwd=place)
    if done is None:
        return out_of_time(SECONDS)
    wrong = [f"{c['group']}/{c['name']}" for c in json.loads(done.stdout)["checks"] if c["outcome"] == "failed"]
    return ", ".join(wrong) if check in wrong else None


def unit(program, folder, _what):
    done = run([program], cwd=folder)
    if done is None:
        return out_of_time(SECONDS)
    if done.returncode == 0:
        return None
    failed = re.findall(r"\[  FAILED  \] ([a-z]\w+)", done.stdout + done.stderr)
    return ", ".join(dict.fromkeys(failed)) or f"exit {done.returncode}"


def pytest(program, folder, node):
    environment = {**os.environ, "WEIR_BIN": str(program), "WEIR_FAULTS_BIN": str(program)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--basetemp={folder}/pytest"]
    done = run([*command, node], cwd=ROOT, env=environment, seconds=2 * SECONDS)
    if done is None:
        return out_of_time(2 * SECONDS)
    if done.returncode == 0:
        return None
    failed = re.search(r"FAILED \S+?::(\S+)", done.stdout)
    if done.returncode != 1 or not failed:
        raise Wrong(f"pytest {node}: {done.stdout[-500:]}")
    return failed[1]


def power(program, folder, _what):
    return pytest(program, folder, "tests/power/test_power.py::test_power_cuts")


FINDERS = {"sim": sim, "kit": kit, "unit": unit, "power": power, "crash": pytest}


def ask(builds, finder, folder, mutation=None):
    """How it shows, or None."""
    kind, _, what = finder.partition(" ")
    build = builds[PRESETS[kind]]
    folder.mkdir(parents=True, exist_ok=True)
    changed = [build.changed_object(mutation, folder)] if mutation else []
    target = {"sim": "tests/sim", "unit": f"tests/{what}"}.get(kind, "weir")
    return FINDERS[kind](build.program(target, changed, folder), folder, what)


def control(builds, finder):
    """A finder that fails without a change finds nothing."""
    shown = ask(builds, finder, WORK / re.sub(r"[^\w.-]", "-", finder))
    if shown:
        raise Wrong(f"'{finder}' fails without a change: {shown}")


# ---- the table


def outcome(shown, wrong):
    how = wrong or shown or "SURVIVED"
    return how if len(how) <= 110 else how[:107] + "..."


def write_markdown(path, results):
    lines = ["| rule | file | found by | how it shows |", "|---|---|---|---|"]
    for mutation, shown, wrong, _ in results:
        cells = [mutation["rule"], f"`{mutation['file']}`", mutation["found_by"], outcome(shown, wrong)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def write_junit(path, results):
    suite = ElementTree.Element("testsuite", name="mutations")
    for mutation, shown, wrong, seconds in results:
        name = f"{mutation['number']} {mutation['file']}: {mutation['rule']}"
        case = ElementTree.SubElement(suite, "testcase", classname="mutations", name=name, time=f"{seconds:.1f}")
        if wrong or not shown:
            ElementTree.SubElement(case, "failure", message=wrong or "survived")
    ElementTree.ElementTree(suite).write(path)


def run_all(mutations):
    finders = list(dict.fromkeys(mutation["found_by"] for mutation in mutations))
    builds = {preset: Build(preset) for preset in {PRESETS[finder.partition(" ")[0]] for finder in finders}}

    def one(mutation, checked):
        since, shown, wrong = time.monotonic(), None, None
        try:
            checked.result()
            shown = ask(builds, mutation["found_by"], WORK / str(mutation["number"]), mutation)
        except Wrong as error:
            wrong = str(error)
        change = f"{mutation['line']} -> {mutation['to'].strip() or '(nothing)'}"
        cells = [str(mutation["number"]), mutation["rule"], f"{mutation['file']}: {change}", mutation["found_by"]]
        print(" | ".join([*cells, outcome(shown, wrong)]), flush=True)
        return mutation, shown, wrong, time.monotonic() - since

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        checked = {finder: pool.submit(control, builds, finder) for finder in finders}
        return [f.result() for f in [pool.submit(one, m, checked[m["found_by"]]) for m in mutations]]


def option(words, name):
    if name not in words:
        return None
    at = words.index(name)
    value = words[at + 1]
    del words[at : at + 2]
    return value


def main():
    words = sys.argv[1:]
    markdown, junit, kind = (option(words, name) for name in ("--markdown", "--junit", "--by"))
    mutations = load()
    if "--check" in words:
        wrong = []
        for mutation in mutations:
            try:
                place(mutation)
            except Wrong as error:
                wrong.append(str(error))
        print("\n".join(wrong) if wrong else f"{len(mutations)} mutations have their line")
        return 1 if wrong else 0
    if words:
        mutations = [m for m in mutations if any(word in f"{m['rule']} {m['file']} {m['line']}" for word in words)]
    if kind:
        mutations = [m for m in mutations if m["found_by"].split()[0] == kind]
    results = run_all(mutations)
    if markdown:
        write_markdown(markdown, results)
    if junit:
        write_junit(junit, results)
    found = sum(bool(shown) for _, shown, _, _ in results)
    print(f"{found} of {len(results)} mutations were found")
    return 0 if found == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
