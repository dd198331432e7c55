"""The rooms check finds what it is there for: a small tree with one offence at a time."""

import importlib.util
import pathlib

import pytest

LINT = pathlib.Path(__file__).resolve().parents[2] / "tools/lint.py"
spec = importlib.util.spec_from_file_location("lint", LINT)
lint = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lint)


def write_tree(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def tree(tmp_path):
    files = {
        "tools/rooms.txt": "base:\narrow: base\ncoord: base\ncli:\nconnectors:\n",
        "include/weir/error.h": "",
        "src/base/base.h": "#include <weir/error.h>\n",
        "src/base/inner.h": "",
        "src/arrow/arrow.h": '#include "base/base.h"\n#include <stdio.h>\n#include <nanoarrow/nanoarrow.h>\n',
        "src/arrow/part.h": "",
        "src/arrow/part.c": '#include "arrow/part.h"\n#include "part.h"\n',
        "src/coord/coord.c": '#include "base/base.h"\n',
        "connectors/file/sink.c": '#include "file.h"\n#include <weir/error.h>\n',
        "connectors/file/file.h": "",
        "cli/main.c": "#include <weir/error.h>\n",
    }
    return write_tree(tmp_path, files)


def test_a_clean_tree_is_clean(tree):
    assert lint.check_rooms(tree) == []


@pytest.mark.parametrize(
    ("path", "line", "finding"),
    [
        ("src/coord/coord.c", '#include "arrow/arrow.h"', "coord may not include arrow"),
        ("src/coord/coord.c", '#include "base/inner.h"', "private to the room base"),
        ("src/coord/coord.c", '#include "../base/inner.h"', "private to the room base"),
        ("src/coord/coord.c", '#  include "arrow/arrow.h"', "coord may not include arrow"),
        ("src/coord/coord.c", '#include "base/gone.h"', "no such header"),
        ("src/coord/coord.c", "#include <base/inner.h>", "private to the room base"),
        ("src/base/base.h", '#include "arrow/arrow.h"', "base may not include arrow"),
        ("connectors/file/sink.c", '#include "base/base.h"', "<weir/*.h> and its own headers only"),
        ("cli/main.c", '#include "base/base.h"', "<weir/*.h> and its own headers only"),
        ("src/new/new.c", "", "'new' is not in tools/rooms.txt"),
        ("tools/rooms.txt", "task: attic", "'attic', which is not listed"),
    ],
)
def test_an_offence_is_named(tree, path, line, finding):
    target = tree / path
    target.parent.mkdir(exist_ok=True)
    with open(target, "a") as out:
        out.write(line + "\n")
    findings = lint.check_rooms(tree)
    assert len(findings) == 1
    assert finding in findings[0]


def test_two_connectors_share_no_headers(tree):
    (tree / "connectors/kafka").mkdir()
    (tree / "connectors/kafka/kafka.c").write_text('#include "../file/file.h"\n')
    assert len(lint.check_rooms(tree)) == 1


def test_files_are_bounded_and_licensed(tree):
    for name in ("dev", ".ci/run"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("true\n")
    (tree / "src/base/long.c").write_text("/* SPDX-License-Identifier: Apache-2.0 */\n" + "\n" * 900)
    findings = [f for f in lint.check_files(tree) if "long.c" in f]
    assert len(findings) == 1 and "901 lines" in findings[0]
    assert any("cli/main.c" in f and "licence" in f for f in lint.check_files(tree))
