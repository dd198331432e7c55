"""The live line of `weir run` on a terminal, here a pseudo-terminal, as a person would see it."""

import os
import pty
import re
import struct
import subprocess
import termios
from fcntl import ioctl

import pytest

YAML = """\
pipeline: p
checkpoint: {interval: 100ms}
sources:
  numbers: {type: generator, rows: 3000, rate: 3000, schema: {n: int64}}
sinks:
  hole: {type: blackhole}
guarantee: best_effort
"""
BAR = re.compile(r"p\.yaml: (\d+) rows?, (\d+) rows/s, [0-9.]+ \w+/s, (\d+) epochs?, ")


def on_terminal(weir_bin, folder, *flags, columns=200, term="xterm"):
    """What a run writes to a terminal of so many columns."""
    (folder / "p.yaml").write_text(YAML)
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**os.environ, "TERM": term}
    process = subprocess.Popen(
        [weir_bin, "run", "p.yaml", *flags], cwd=folder, env=env, stdin=slave, stdout=subprocess.DEVNULL, stderr=slave
    )
    os.close(slave)
    text = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the last writer has closed it (pty(7))
            break
        if not part:
            break
        text += part
    os.close(master)
    assert process.wait(timeout=60) == 0, text
    return text.decode()


def screen(text):
    """The lines that are left: \\r goes back, ESC [ K erases what follows."""
    lines, column = [""], 0
    for piece in re.findall(r"\x1b\[K|\r|\n|[^\x1b\r\n]+", text):
        if piece == "\n":
            lines.append("")
        if piece in "\r\n":
            column = 0
        elif piece == "\x1b[K":
            lines[-1] = lines[-1][:column]
        else:
            lines[-1] = lines[-1][:column] + piece + lines[-1][column + len(piece) :]
            column += len(piece)
    return [line for line in lines if line]


def test_drawn_and_taken_away(weir_bin, tmp_path):
    text = on_terminal(weir_bin, tmp_path)
    rows = [int(found[0]) for found in BAR.findall(text)]
    assert len(rows) >= 2 and rows == sorted(rows) and rows[-1] <= 3000
    (left,) = screen(text)
    assert "all delivered and committed: 3000 rows" in left and not BAR.search(left)


def test_log_lines_stand_above(weir_bin, tmp_path):
    text = on_terminal(weir_bin, tmp_path, "--log-level", "debug")
    left = screen(text)
    assert len(left) > 1 and all(line.startswith("weir: ") for line in left)


def test_never_wraps(weir_bin, tmp_path):
    text = on_terminal(weir_bin, tmp_path, columns=30)
    drawn = [part for part in text.split("\r\x1b[K") if part.startswith("p.yaml")]
    assert drawn and max(len(part.splitlines()[0]) for part in drawn) == 29


@pytest.mark.parametrize("flags", [["--progress", "log"], ["--progress", "none"], ["--log-format", "json"]])
def test_not_when_asked_otherwise(weir_bin, tmp_path, flags):
    assert "\x1b" not in on_terminal(weir_bin, tmp_path, *flags)


def test_not_on_a_dumb_terminal(weir_bin, tmp_path):
    assert "\x1b" not in on_terminal(weir_bin, tmp_path, term="dumb")
