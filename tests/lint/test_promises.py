"""The promises check finds what it is there for: one offence at a time."""

import pytest

from test_rooms import lint, write_tree

TABLE = """# The protocol

## The promises

| what is promised | shown by |
|---|---|
| **Part** | |
| rows are kept | `test_a: test_kept`, `test_b: test_kept_too` |
| and checked | `conform: rows/kept` |
"""


@pytest.fixture
def tree(tmp_path):
    files = {
        "docs/protocol.md": TABLE,
        "tests/unit/test_a.c": "static void test_kept(void **state) {}\nTEST(test_kept)\n",
        "tests/crash/test_b.py": "def test_kept_too(place):\n    pass\n",
        "src/conform/checks.c": '    {"rows", "kept",\n     "text", 0, check},\n',
    }
    return write_tree(tmp_path, files)


def test_a_table_whose_tests_exist(tree):
    assert lint.check_promises(tree) == []


@pytest.mark.parametrize(
    "old, new",
    [
        ("`test_a: test_kept`", "`test_a: test_kep`"),
        ("`test_b: test_kept_too`", "`test_b: test_kept`"),
        ("`conform: rows/kept`", "`conform: rows/lost`"),
        ("`conform: rows/kept`", ""),
        ("## The promises", "## Promises"),
    ],
)
def test_what_is_missing_is_found(tree, old, new):
    (tree / "docs/protocol.md").write_text(TABLE.replace(old, new))
    assert len(lint.check_promises(tree)) == 1


def test_a_test_that_is_not_registered_is_none(tree):
    (tree / "tests/unit/test_a.c").write_text("static void test_kept(void **state) {}\n")
    assert len(lint.check_promises(tree)) == 1
