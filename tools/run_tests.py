#!/usr/bin/env python3
"""Runs the tiers of tests, in order of cost, and sums what passed and failed over all of them.

  tools/run_tests.py [TIER...]      ./dev test calls it; without a tier all but those on demand run

A tier is C tests (ctest label of that name, in the presets listed below), Python tests (tests/TIER), or
both. Each prints its seconds; the last line is "N passed, N failed". A tier that a failed build takes
away counts as failed.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from xml.etree import ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
CMAKE = os.environ.get("CMAKE", "cmake")
CTEST = str(pathlib.Path(shutil.which(CMAKE) or CMAKE).with_name("ctest"))
RESULTS = ROOT / "build/test-results"
JOBS = str(os.cpu_count() or 2)

# tier -> [(preset, ctest label)]; tests/TIER/test_*.py run beside them.
TIERS = {
    "build": [],
    "lint": [],
    "unit": [("release", "unit"), ("asan", "unit"), ("tsan", "threads")],
    "sim": [("release", "sim"), ("asan", "sim-small")],
    "model": [("release", "model")],
    "conform": [("asan", "conform")],
    "cli": [],
    "crash": [],
    "power": [],
    "interop": [],
}
# `long` is all of them and tests/long
ON_DEMAND = {"bare": [], "corpus": [], "coverage": [], "fuzz": [], "mutations": [], "long": []}
PYTEST_SECONDS = {"long": 3600, "bare": 3600}


class Count:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add_junit(self, path):
        """Counts one result file; False when it is not there or holds no test."""
        try:
            cases = list(ElementTree.parse(path).getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError):
            return False
        for case in cases:
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed += 1
            elif case.find("skipped") is not None:
                self.skipped += 1
            else:
                self.passed += 1
        return bool(cases)


def run(command, **options):
    return subprocess.run([str(part) for part in command], cwd=ROOT, **options).returncode


def build_preset(preset, count):
    build = ROOT / "build" / preset
    build.mkdir(parents=True, exist_ok=True)
    log = RESULTS / f"build-{preset}.log"
    with open(log, "w") as out:
        # Configured each time: a build made before the tests' packages were there has no tests.
        failed = run([CMAKE, "--preset", preset], stdout=out, stderr=out)
        failed = failed or run([CMAKE, "--build", build], stdout=out, stderr=out)
    if failed:
        print(f"build of {preset} failed:\n" + "\n".join(log.read_text().splitlines()[-60:]), flush=True)
        count.failed += 1
    else:
        count.passed += 1
    return not failed


def run_ctest(tier, preset, label, count):
    result = RESULTS / f"{tier}-{preset}.xml"
    result.unlink(missing_ok=True)
    command = [CTEST, "--test-dir", ROOT / "build" / preset, "-L", f"^{label}$", "-j", JOBS]
    command += ["--output-on-failure", "--quiet", "--output-junit", result, "-O", RESULTS / f"{tier}-{preset}.log"]
    if run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        text = (RESULTS / f"{tier}-{preset}.log").read_text(errors="replace")
        print(re.sub(r"(?m)^.*Passed +[0-9.]+ sec\n", "", text), flush=True)
    count.add_junit(result)


def run_pytest(tier, folder, count, arguments=()):
    result = RESULTS / f"{tier}-pytest.xml"
    result.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-n", JOBS]
    command += ["--dist", "worksteal", "--timeout", PYTEST_SECONDS.get(tier, 300), "--junitxml", result]
    code = run([*command, *arguments, folder])
    # 5: nothing was collected. Anything else without a result file is a failure of the tier itself.
    if not count.add_junit(result) and code != 5:
        count.failed += 1


def run_lint(count):
    result = RESULTS / "lint.xml"
    result.unlink(missing_ok=True)
    run([sys.executable, "tools/lint.py", "--junit", result])
    if not count.add_junit(result):
        count.failed += 1


def run_fuzz(count):
    """Each fuzz target for WEIR_FUZZ_SECONDS (60), from what seeds.py makes and tests/fuzz/corpus/NAME; its finds
    stay in build/fuzz."""
    if not build_preset("fuzz", count):
        return
    work = ROOT / "build/fuzz"
    count.failed += bool(run([sys.executable, "tests/fuzz/seeds.py", work / "corpus"]))
    for target in sorted((work / "fuzz").glob("fuzz_*")):
        corpus = work / "corpus" / target.name
        corpus.mkdir(parents=True, exist_ok=True)
        seeds = ROOT / "tests/fuzz/corpus" / target.name
        command = [target, f"-max_total_time={os.environ.get('WEIR_FUZZ_SECONDS', '60')}", "-print_final_stats=1"]
        command += [f"-artifact_prefix={work}/{target.name}-", corpus, *([seeds] if seeds.is_dir() else [])]
        log = RESULTS / f"{target.name}.log"
        with open(log, "w") as out:
            failed = run(command, stdout=out, stderr=out)
        if failed:
            print("\n".join(log.read_text(errors="replace").splitlines()[-40:]), flush=True)
        count.failed += bool(failed)
        count.passed += not failed


def run_mutations(count, *arguments):
    result = RESULTS / "mutations.xml"
    result.unlink(missing_ok=True)
    run([sys.executable, "tools/mutate.py", "--junit", result, "--markdown", RESULTS / "mutations.md", *arguments])
    if not count.add_junit(result):
        count.failed += 1


def run_coverage(count):
    """The quick C tests once more, counted; then no room may be below its floor (tools/coverage.py)."""
    if not build_preset("coverage", count):
        return
    build = ROOT / "build/coverage"
    for old in build.rglob("*.gcda"):
        old.unlink()
    for label in ("unit", "sim-small", "conform"):
        run_ctest("coverage", "coverage", label, count)
    failed = run([sys.executable, "tools/coverage.py"])
    count.failed += bool(failed)
    count.passed += not failed


def presets_of(tiers):
    """What has to be built for these tiers; Python tiers use release, and asan for its fault points."""
    wanted = {"release"}
    for tier in tiers:
        if tier in ("build", "cli", "crash", "interop", "conform", "bare", "mutations", "long"):
            wanted |= {"asan"} if tier not in ("bare",) else set()
        wanted |= {preset for preset, _ in TIERS.get(tier, [])}
        if tier in ("build", "crash"):
            wanted |= {"tsan"}
    return [preset for preset in ("release", "asan", "tsan") if preset in wanted]


def main():
    tiers = sys.argv[1:] or list(TIERS)
    for tier in tiers:
        if tier not in TIERS and tier not in ON_DEMAND:
            print(f"no tier '{tier}'; there are {' '.join([*TIERS, *ON_DEMAND])}", file=sys.stderr)
            return 2
    RESULTS.mkdir(parents=True, exist_ok=True)
    total, built, started = Count(), set(), time.monotonic()

    def report(tier, count, since):
        skipped = f", {count.skipped} skipped" if count.skipped else ""
        seconds = time.monotonic() - since
        print(f"{tier}: {count.passed} passed, {count.failed} failed{skipped} ({seconds:.1f} s)", flush=True)
        total.passed += count.passed
        total.failed += count.failed

    since, count = time.monotonic(), Count()
    for preset in presets_of(tiers):
        if build_preset(preset, count):
            built.add(preset)
    report("build", count, since)

    for tier in tiers:
        if tier == "build":
            continue
        since, count = time.monotonic(), Count()
        if tier == "lint":
            run_lint(count)
        for preset, label in TIERS.get(tier, []):
            if preset in built:
                run_ctest(tier, preset, label, count)
        folder = ROOT / "tests" / tier
        if any(folder.glob("test_*.py")):
            run_pytest(tier, folder, count)
        if tier in ("fuzz", "long"):
            run_fuzz(count)
        if tier == "sim":
            run_mutations(count, "--by", "sim")
        if tier in ("mutations", "long"):
            run_mutations(count)
        if tier in ("coverage", "long"):
            run_coverage(count)
        if tier == "long":
            run_pytest("bare", ROOT / "tests/bare", count)
        if count.passed + count.failed + count.skipped == 0:
            print(f"{tier}: has no tests yet", flush=True)
            continue
        report(tier, count, since)

    print(f"all tiers: {time.monotonic() - started:.0f} s")
    print(f"{total.passed} passed, {total.failed} failed")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
