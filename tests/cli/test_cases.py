"""The command as its users meet it: each folder in cases/ is one script and what it must print.

  cmd       a sh script, run in a copy of its folder; `weir` is the command under test
  exit      its exit status; absent: 0
  stdout    what it prints, or absent: nothing; stderr alike
  others    files that the script uses

In stdout and stderr `*` stands for any text within a line, and a line `...` for any number of lines.
`pytest tests/cli --set-exact-output` writes the files of cases that fail as the command printed them.
"""

import pathlib
import re
import shutil
import subprocess

import pytest

CASES = pathlib.Path(__file__).parent / "cases"


def pattern_of(expected):
    """A regular expression for a whole output."""
    parts = []
    for line in expected.splitlines():
        if line == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(r"[^\n]*".join(re.escape(text) for text in line.split("*")) + "\n")
    return re.compile("".join(parts))


def matches(expected, printed):
    return pattern_of(expected).fullmatch(printed) is not None


def read(path, default=""):
    return path.read_text() if path.exists() else default


def write(path, text, default):
    if text == default:
        path.unlink(missing_ok=True)
    else:
        path.write_text(text)


def case_names():
    return sorted(path.parent.name for path in CASES.glob("*/cmd"))


@pytest.mark.parametrize("name", case_names())
def test_case(name, weir_bin, tmp_path, request):
    case = CASES / name
    work = tmp_path / "work"
    shutil.copytree(case, work)
    done = subprocess.run(
        ["sh", "cmd"],
        cwd=work,
        env={"PATH": f"{weir_bin.parent}:/usr/bin:/bin", "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    printed = {"exit": f"{done.returncode}\n", "stdout": done.stdout, "stderr": done.stderr}
    printed = {key: text.replace(str(work), "WORK") for key, text in printed.items()}
    expected = {"exit": read(case / "exit", "0\n"), "stdout": read(case / "stdout"), "stderr": read(case / "stderr")}
    wrong = [key for key in printed if not matches(expected[key], printed[key])]
    if wrong and request.config.getoption("--set-exact-output", default=False):
        for key in wrong:
            write(case / key, printed[key], "0\n" if key == "exit" else "")
        return
    for key in wrong:
        assert printed[key] == expected[key], f"{key} of {name}"


def test_the_matcher_can_say_no():
    assert matches("a*c\n", "abc\n")
    assert not matches("a*c\n", "ab\n")
    assert not matches("a*c\n", "a\nc\n")
    assert matches("a\n...\nz\n", "a\nb\nc\nz\n")
    assert not matches("a\n...\nz\n", "a\nb\n")
    assert not matches("", "anything\n")
    assert not matches("a.c\n", "abc\n")
