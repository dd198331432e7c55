#!/usr/bin/env python3
"""Checks that need no run: format, rooms, the look of files, clang-tidy.

  tools/lint.py [--rewrite] [CHECK...]     checks: format rooms files exports promises mutations tidy (all by default)

Prints one line per check, findings below it; exits 1 if any failed. With --junit FILE the checks are
written as test cases. clang-tidy remembers in the cache what was clean, starts with what changed, and
stops after WEIR_TIDY_SECONDS (default 150), saying how many files it did not reach.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from xml.etree import ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(sys.prefix) / "bin"
C_FOLDERS = ("include", "src", "connectors", "cli", "tests", "bench", "examples")
LINES_MAX = 900


def c_files(root=ROOT):
    for folder in C_FOLDERS:
        yield from sorted(p for p in (root / folder).rglob("*") if p.suffix in (".c", ".h", ".cc"))


def check_format(rewrite=False):
    files = [str(p) for p in c_files()]
    how = ["-i"] if rewrite else ["--dry-run", "-Werror"]
    done = subprocess.run([BIN / "clang-format", *how, *files], capture_output=True, text=True)
    bad = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error:", done.stderr, re.M)))
    findings = [f"{os.path.relpath(p, ROOT)}: not formatted; run ./dev format" for p in bad]
    if done.returncode and not findings:
        findings = [done.stderr.strip()]
    return findings


def read_rooms(root):
    rooms = {}
    for line in (root / "tools/rooms.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            room, _, allowed = line.partition(":")
            rooms[room.strip()] = set(allowed.split())
    return rooms


def room_of(path, root):
    """(room, folder) of a source; folder is where its own headers lie."""
    parts = path.relative_to(root).parts
    if parts[0] == "src" and len(parts) > 2:
        return parts[1], root / "src" / parts[1]
    if parts[0] == "connectors" and len(parts) > 2:
        return "connectors", root / "connectors" / parts[1]
    if parts[0] == "cli":
        return "cli", root / "cli"
    return None, None


def check_rooms(root=ROOT):
    rooms = read_rooms(root)
    findings = []
    for room, allowed in rooms.items():
        for other in sorted(allowed - rooms.keys()):
            findings.append(f"tools/rooms.txt: {room} names the room '{other}', which is not listed")
    for path in c_files(root):
        room, folder = room_of(path, root)
        if room is None:
            continue
        where = path.relative_to(root)
        if room not in rooms:
            findings.append(f"{where}: the room '{room}' is not in tools/rooms.txt")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            angle = re.match(r"\s*#\s*include\s*<([^>]+)>", line)
            name = include.group(1) if include else angle.group(1) if angle else None
            if name is None or (angle and name.startswith("weir/")):
                continue
            found = [p for p in (path.parent / name, root / "src" / name, root / name) if p.is_file()]
            if angle and not found:
                continue  # the system's or a third party's
            if not found:
                findings.append(f"{where}:{number}: no such header in this repository: {name}")
                continue
            target = found[0].resolve()
            if folder in target.parents:
                continue
            other, _ = room_of(target, root)
            if other is None or room in ("cli", "connectors"):
                findings.append(f"{where}:{number}: {room} may include <weir/*.h> and its own headers only")
            elif target != root / "src" / other / f"{other}.h":
                findings.append(f"{where}:{number}: {name} is private to the room {other}")
            elif other not in rooms[room]:
                findings.append(f"{where}:{number}: {room} may not include {other} (tools/rooms.txt)")
    return findings


def check_files(root=ROOT):
    findings = []
    for path in c_files(root):
        text = path.read_text()
        where = path.relative_to(root)
        lines = text.count("\n")
        if lines > LINES_MAX:
            findings.append(f"{where}: {lines} lines; past {LINES_MAX}, find the seam and split")
        if "SPDX-License-Identifier: Apache-2.0" not in text[:200]:
            findings.append(f"{where}: the first line is to be the SPDX licence identifier")
    for script in [root / "dev", root / ".ci/run", *sorted((root / "tools").glob("*.sh"))]:
        done = subprocess.run(["sh", "-n", script], capture_output=True, text=True)
        if done.returncode:
            findings.append(f"{script.relative_to(root)}: {done.stderr.strip()}")
    for script in sorted([*root.glob("tools/*.py"), *root.glob("tests/**/*.py"), *root.glob("bench/*.py")]):
        try:
            compile(script.read_text(), str(script), "exec")
        except SyntaxError as error:
            findings.append(f"{script.relative_to(root)}: {error}")
    return findings


def project_dependencies(build):
    """Object file -> the sources and headers of this repository that it was made from, by ninja."""
    ninja = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True)
    dependencies, current = {}, None
    for line in ninja.stdout.splitlines():
        if line and not line.startswith((" ", "ninja:")):
            current = dependencies.setdefault(line.split(":")[0], [])
        elif line.strip() and current is not None:
            path = (build / line.strip()).resolve()
            if ROOT in path.parents and build not in path.parents:
                current.append(path)
    return dependencies


def changed_files():
    names = set()
    for command in (["git", "diff", "--name-only", "HEAD~1"], ["git", "ls-files", "-om", "--exclude-standard"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        names |= {ROOT / name for name in done.stdout.split()}
    return names


def without_notes(text):
    """Drops the analyzer's path, dozens of lines a finding: `clang-tidy -p build/release FILE` shows it."""
    kept, note = [], False
    for line in text.splitlines():
        note = ": note: " in line or (note and not re.search(r": (error|warning): ", line))
        kept += [] if note else [line]
    return "\n".join(kept)


def check_tidy():
    build = ROOT / "build/release"
    database = build / "compile_commands.json"
    if not database.is_file():
        return ["build/release/compile_commands.json is missing; run ./dev build"]
    version = subprocess.run([BIN / "clang-tidy", "--version"], capture_output=True, text=True).stdout
    rules = "".join((ROOT / name).read_text() for name in (".clang-tidy", "tests/.clang-tidy"))
    base = hashlib.sha256((rules + version).encode()).hexdigest()
    dependencies = project_dependencies(build)
    cache = pathlib.Path(os.environ.get("WEIR_CACHE", pathlib.Path.home() / ".cache/weir"))
    stamps = cache / "lint"
    stamps.mkdir(parents=True, exist_ok=True)
    todo = []
    for entry in json.loads(database.read_text()):
        source = pathlib.Path(entry["file"])
        if source.suffix != ".c" or build in source.parents or not source.is_file():
            continue
        # Without this checkout's own path, so that every clone profits.
        key = hashlib.sha256((base + entry["command"].replace(str(ROOT), ".")).encode())
        for path in sorted({source, *dependencies.get(entry.get("output", ""), [])}):
            key.update(path.read_bytes() if path.is_file() else b"")
        stamp = stamps / key.hexdigest()
        if not stamp.exists():
            todo.append((source, stamp))
    changed = changed_files()
    todo.sort(key=lambda item: (item[0] not in changed, item[0]))
    deadline = time.monotonic() + float(os.environ.get("WEIR_TIDY_SECONDS", "150"))
    findings, skipped = [], 0

    def run(item):
        source, stamp = item
        if time.monotonic() > deadline:
            return None
        done = subprocess.run([BIN / "clang-tidy", "--quiet", "-p", build, source], capture_output=True, text=True)
        if done.returncode == 0:
            stamp.touch()
            return ""
        return without_notes(done.stdout.replace(f"{ROOT}/", "")).strip() or done.stderr.strip()

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for answer in pool.map(run, todo):
            skipped += answer is None
            if answer:
                findings.append(answer)
    if skipped:
        print(f"  clang-tidy: {skipped} of {len(todo)} files not reached in time", flush=True)
    return findings


def exported(library):
    done = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return [line.split()[-1].split("@")[0] for line in done.stdout.splitlines()]


def check_exports():
    """The release library shows weir_* alone, and no fault points; connectors beside it show their init."""
    library = ROOT / "build/release/libweir.so"
    if not library.is_file():
        return ["build/release/libweir.so is missing; run ./dev build"]
    names = exported(library)
    findings = [f"libweir.so exports {name}" for name in names if not name.startswith("weir_")]
    for connector in sorted(library.parent.glob("weir-*.so")):
        if exported(connector) != ["weir_plugin_init"]:
            findings.append(f"{connector.name} exports not weir_plugin_init alone: {' '.join(exported(connector))}")
    findings += [f"the release library has the fault point function {n}" for n in names if n.startswith("weir_fault")]
    return findings if names else ["libweir.so exports nothing"]


def promise_shown(root, item):
    """Whether `FILE: TEST` or `conform: GROUP/CHECK` exists."""
    file, _, name = item.partition(": ")
    if file == "conform":
        group, _, check = name.partition("/")
        checks = (root / "src/conform/checks.c").read_text()
        return re.search(r'\{"%s",\s*"%s",' % (re.escape(group), re.escape(check)), checks) is not None
    word = re.escape(name)
    for path in root.glob(f"tests/*/{file}.c"):
        text = path.read_text()
        # Defined, and named once more, where it is registered.
        if re.search(rf"^static void {word}\(", text, re.M) and len(re.findall(rf"\b{word}\b", text)) > 1:
            return True
    return any(re.search(rf"^def {word}\(", p.read_text(), re.M) for p in root.glob(f"tests/*/{file}.py"))


def check_promises(root=ROOT):
    """The table at the end of docs/protocol.md: a promise, and the tests that show it."""
    findings = []
    _, found, table = (root / "docs/protocol.md").read_text().partition("\n## The promises\n")
    rows = [line.strip().strip("|").split("|") for line in table.splitlines() if line.startswith("|")][2:]
    rows = [[cell.strip() for cell in row] for row in rows]
    for row in rows:
        promise, shown = row[0], row[-1]
        if promise.startswith("**") and not shown:
            continue  # a heading
        items = re.findall(r"`([^`]+)`", shown)
        if not items or len(row) != 2:
            findings.append(f"docs/protocol.md: nothing shows the promise '{promise}'")
        for item in items:
            if not promise_shown(root, item):
                findings.append(f"docs/protocol.md: there is no test '{item}'")
    if not found or not rows:
        findings.append("docs/protocol.md: the table under '## The promises' is gone")
    return findings


def check_mutations():
    """Each line of tools/mutations.toml is in its file, once."""
    done = subprocess.run([sys.executable, ROOT / "tools/mutate.py", "--check"], capture_output=True, text=True)
    return done.stdout.splitlines() + done.stderr.splitlines() if done.returncode else []


CHECKS = {
    "format": check_format,
    "rooms": check_rooms,
    "files": check_files,
    "exports": check_exports,
    "promises": check_promises,
    "mutations": check_mutations,
    "tidy": check_tidy,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checks", nargs="*", metavar="CHECK")
    parser.add_argument("--rewrite", action="store_true", help="with the check format: rewrite the files")
    parser.add_argument("--junit", help="write the results as JUnit XML")
    options = parser.parse_args()
    unknown = [name for name in options.checks if name not in CHECKS]
    if unknown:
        parser.error(f"no check '{unknown[0]}'; there are {' '.join(CHECKS)}")
    suite = ElementTree.Element("testsuite", name="lint")
    failed = 0
    for name in options.checks or CHECKS:
        started = time.monotonic()
        findings = check_format(options.rewrite) if name == "format" else CHECKS[name]()
        seconds = time.monotonic() - started
        print(f"lint {name}: {'ok' if not findings else str(len(findings)) + ' findings'} ({seconds:.1f} s)", flush=True)
        for finding in findings:
            print("  " + finding.replace("\n", "\n  "))
        failed += bool(findings)
        case = ElementTree.SubElement(suite, "testcase", classname="lint", name=name, time=f"{seconds:.3f}")
        if findings:
            ElementTree.SubElement(case, "failure", message=f"{len(findings)} findings")
    if options.junit:
        ElementTree.ElementTree(suite).write(options.junit)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
