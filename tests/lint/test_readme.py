"""What README.md shows is what examples/ holds, so that it compiles and runs."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_blocks_are_the_examples():
    blocks = re.findall(r"<!-- (\S+) -->\n```\w+\n(.*?)```\n", (ROOT / "README.md").read_text(), re.S)
    assert [name for name, _ in blocks] == ["examples/orders.yaml", "examples/push.c"]
    for name, text in blocks:
        example = (ROOT / name).read_text().removeprefix("/* SPDX-License-Identifier: Apache-2.0 */\n")
        assert text == example, f"{name} and its copy in README.md differ"


def test_the_program_stays_short():
    text = (ROOT / "README.md").read_text()
    assert len(re.search(r"```c\n(.*?)```", text, re.S)[1].splitlines()) <= 30


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
