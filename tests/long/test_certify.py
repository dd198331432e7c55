"""What takes the kit minutes: changes by key into PostgreSQL."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conform"))
from test_conform import certify, quick_path, rows_table, server  # noqa: F401: fixtures


def test_postgres_by_key(weir, server, quick_path):  # noqa: F811
    with rows_table(server, quick_path, "upsert, key: [id]") as (config, command):
        certify(weir, "postgres", quick_path, config, command)
