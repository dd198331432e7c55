"""ADBC drivers of the test environment, as the sink adbc is given them."""

import sysconfig
from pathlib import Path

SITE = Path(sysconfig.get_paths()["purelib"])
SQLITE = SITE / "adbc_driver_sqlite/libadbc_driver_sqlite.so"
POSTGRES = SITE / "adbc_driver_postgresql/libadbc_driver_postgresql.so"
# The wheel of DuckDB is an extension of Python, whose symbols it wants to find in the process.
DUCKDB = SITE / f"_duckdb{sysconfig.get_config_var('EXT_SUFFIX')}"
PYTHON = sysconfig.get_config_var("INSTSONAME")


def options(driver, **database):
    given = ", ".join(f"{key}: '{value}'" for key, value in database.items())
    entry = ", entrypoint: duckdb_adbc_init" if driver == DUCKDB else ""
    return f"type: adbc, driver: {driver}{entry}, options: {{{given}}}"
