"""Every flat type through `weir run`: Arrow files and streams, NDJSON and CSV in; Parquet with every codec,
Arrow, NDJSON and CSV out; compared value by value as pyarrow, DuckDB and Polars read them.

pyarrow cannot make interval_months and interval_day_time; tests/unit has those.
"""

import csv
import decimal
import json

import duckdb
import flat_values
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from flat_values import DAY, FLAT, INDEXES, UNITS, cycle, storage, stored, text_of

ROWS = 90
PARQUET = ["zstd", "zstd(9)", "snappy", "lz4", "gzip", "none"]
ARROW = ["zstd", "lz4", "none"]

# ---- what goes in ------------------------------------------------------------------------------------


def dictionaries():
    """name -> (type, values): every index type, and values of many types."""
    made = {f"dict_{index}": (pa.dictionary(index, pa.utf8()), FLAT["utf8"][1]) for index in INDEXES}
    for name in ("bool", "int8", "uint64", "float16", "float64", "decimal128_38_2", "decimal256_76_76", "date64", "time_s",
                 "timestamp_s_berlin", "timestamp_ns", "duration_us", "large_utf8", "string_view", "binary", "fixed_size_binary_5"):
        kind, values = FLAT[name]
        made[f"dict_of_{name}"] = (pa.dictionary(pa.int16(), kind), values)
    return made


COLUMNS = {
    "id": (pa.int64(), None),
    **FLAT,
    **dictionaries(),
    "null": (pa.null(), [None]),
    "interval": (pa.month_day_nano_interval(), [(0, 0, 0), (1, -2, 3), (2**31 - 1, -(2**31), 2**63 - 1)]),
}
# Not in ...: no type there that could hold it
NO_TEXT = {name for name in COLUMNS if name.endswith("_ends") or name in ("null", "interval")}
NO_PARQUET = {"interval"}
# Rows become columns of these types only when they are read as text; views and dictionaries are written alone
NOT_READ = {name for name in COLUMNS if "view" in name or name.startswith("dict_")} | NO_TEXT


def schema_of(names):
    return pa.schema([pa.field(n, COLUMNS[n][0], nullable=n != "id") for n in names])


def expected(names, rows=ROWS):
    """name -> the values of rows; the last ten rows are null in all columns."""
    made = {"id": list(range(rows))}
    for seed, name in enumerate(n for n in names if n != "id"):
        made[name] = cycle(COLUMNS[name][1], rows - 10, seed) + [None] * 10
    return made


def make(kind, values, reverse):
    """An array, dictionaries in two orders so that batches differ in them, one with a null and unused values."""
    if not pa.types.is_dictionary(kind):
        return flat_values.array(kind, [v and pa.MonthDayNano(v) for v in values] if pa.types.is_interval(kind) else values)
    known = list(dict.fromkeys(v for v in values if v is not None))
    known = known[::-1] + [None] if reverse else known
    indexes = [None if v is None else known.index(v) for v in values]
    return pa.DictionaryArray.from_arrays(pa.array(indexes, kind.index_type), flat_values.array(kind.value_type, known))


def batch_of(values, first, n, reverse=False):
    """A slice out of the middle of longer arrays."""
    whole = {name: make(COLUMNS[name][0], column, reverse) for name, column in values.items()}
    return pa.record_batch(list(whole.values()), schema=schema_of(values)).slice(first, n)


def write_arrow(folder, values):
    """The rows over a file, a stream whose dictionaries are replaced, files of no rows; empty batches between."""
    folder.mkdir()
    schema, empty = schema_of(values), batch_of(values, 0, 0)
    with pa.ipc.new_file(folder / "a.arrow", schema) as file:
        for first, n in ((0, 7), (7, 0), (7, 1), (8, 22)):
            file.write_batch(batch_of(values, first, n))
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(folder / "b.arrow", schema, options=options) as stream:
        for first, n, reverse in ((30, 20, False), (50, 13, True), (63, 0, False), (63, 5, False)):
            stream.write_batch(batch_of(values, first, n, reverse))
    pa.ipc.new_file(folder / "c.arrow", schema).close()
    pa.ipc.new_stream(folder / "d.arrow", schema).close()
    with pa.ipc.new_stream(folder / "e.arrow", schema) as stream:
        stream.write_batch(empty)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(folder / "f.arrow", schema, options=options) as file:
        file.write_batch(batch_of(values, 68, ROWS - 68))


def json_of(kind, value):
    text = text_of(kind, value)
    if text is None:
        return "null"
    if pa.types.is_floating(kind):
        text = repr(as_float(kind, value)).replace("inf", "Infinity").replace("nan", "NaN")
        return json.dumps(text) if text[-1] in "yN" else text
    plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_duration(kind) or pa.types.is_decimal(kind)
    return text if plain else json.dumps(text, ensure_ascii=False)


def as_float(kind, value):
    """The Python float of a float's bits."""
    return pa.array([value], storage(kind)).view(kind).cast(pa.float64())[0].as_py()


def write_ndjson(folder, values):
    folder.mkdir()
    lines = []
    for i in range(ROWS):
        row = [(n, json_of(COLUMNS[n][0], v[i])) for n, v in values.items() if i % 2 or v[i] is not None]
        lines.append("{" + ", ".join(f"{json.dumps(n)}: {text}" for n, text in row) + "}")
    (folder / "a.ndjson").write_text("\n".join(lines[:40]) + "\n", encoding="utf-8")
    (folder / "b.ndjson").write_text("")
    (folder / "c.ndjson").write_bytes("\r\n\n".join(lines[40:]).encode())


def write_csv(folder, values):
    """As spreadsheets and databases do: a text is always quoted, so that the empty one is no null."""
    folder.mkdir()

    def field(kind, value):
        text = text_of(kind, value) if not pa.types.is_floating(kind) or value is None else repr(as_float(kind, value))
        if text is None or not isinstance(value, (str, bytes)):
            return text or ""
        return '"' + text.replace('"', '""') + '"'

    lines = [",".join(field(COLUMNS[n][0], v[i]) for n, v in values.items()) for i in range(ROWS)]
    header = ",".join(values)
    (folder / "a.csv").write_bytes("\n".join([header, *lines[:40]]).encode() + b"\n")
    (folder / "b.csv").write_text(header + "\n")
    (folder / "c.csv").write_bytes("\r\n".join([header, *lines[40:]]).encode())


# ---- what comes out ----------------------------------------------------------------------------------


def same(want, table, form=lambda name, value: value):
    """Whether each column has the values wanted, in the form that this reader has for them."""
    ids = table["id"].to_pylist()
    order = sorted(range(len(ids)), key=ids.__getitem__)
    assert sorted(ids) == want["id"]
    wrong = []
    for name in want:
        column = stored(table[name])
        have, wanted = [column[i] for i in order], [v if v is None else form(name, v) for v in want[name]]
        if have != wanted:
            at = next(i for i, (a, b) in enumerate(zip(have, wanted)) if a != b)
            wrong.append(f"{name} {table[name].type}: row {at} is {have[at]!r} in place of {wanted[at]!r}")
    assert not wrong, "\n".join(wrong)


def value_type(name):
    kind = COLUMNS[name][0]
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def parquet_form(name, value):
    """Parquet has no seconds, and its dates are days."""
    kind = value_type(name)
    if pa.types.is_date64(kind):
        return value // (DAY * 1000)
    seconds = (pa.types.is_timestamp(kind) or pa.types.is_time(kind)) and kind.unit == "s"
    return value * 1000 if seconds else value


def read_pyarrow(folder):
    files = sorted(folder.glob("*.parquet"))
    return pa.concat_tables([pq.read_table(f, page_checksum_verification=True) for f in files])


def compare_pyarrow(want, folder):
    table = read_pyarrow(folder)
    same(want, table, parquet_form)
    for name in want:
        if name in FLAT:  # it looks for what Parquet lacks in plain columns alone, not in dictionaries
            have, wanted = str(table.schema.field(name).type), str(FLAT[name][0])
            assert have == PYARROW_TYPE.get(wanted, wanted), name


PYARROW_TYPE = {  # what was written -> what is read, since Parquet has no seconds and its dates are days
    "date64[ms]": "date32[day]",
    "time32[s]": "time32[ms]",
    "timestamp[s]": "timestamp[ms]",
    "timestamp[s, tz=UTC]": "timestamp[ms, tz=UTC]",
    "timestamp[s, tz=Europe/Berlin]": "timestamp[ms, tz=Europe/Berlin]",
}


def compare_duckdb(want, folder):
    def column(name):
        return f"format('{{:.12e}}', \"{name}\") as \"{name}\"" if is_wide(value_type(name)) else f'"{name}"'

    want = {n: v for n, v in want.items() if not n.endswith("_ends")}  # beyond its years: an error
    with duckdb.connect() as connection:
        connection.sql("set timezone = 'UTC'")
        columns = ", ".join(map(column, want))
        table = connection.sql(f"select {columns} from '{folder}/*.parquet'").to_arrow_table()
    same(want, table, duckdb_form)


def is_wide(kind):
    return pa.types.is_decimal256(kind) and kind.precision > 38


def duckdb_form(name, value):
    kind = value_type(name)
    if pa.types.is_float16(kind):  # a float there
        return flat_values.bits_of("f", [as_float(kind, value)])[0]
    if is_wide(kind):  # a double there
        return f"{float(value):.12e}"
    if (pa.types.is_time(kind) or pa.types.is_timestamp(kind)) and kind.unit in ("s", "ms"):  # microseconds there
        return value * (10**6 // UNITS[kind.unit])
    return parquet_form(name, value)


def compare_polars(want, folder):
    same(want, pl.read_parquet(f"{folder}/*.parquet").to_arrow(), polars_form)


def polars_form(name, value):
    kind = value_type(name)
    if pa.types.is_date64(kind):  # it looks into ARROW:schema: a timestamp in milliseconds
        return value
    if pa.types.is_duration(kind) and kind.unit == "s":  # milliseconds there
        return value * 1000
    if pa.types.is_time(kind):  # nanoseconds there
        return value * (10**9 // UNITS[kind.unit])
    return parquet_form(name, value)


def compare_arrow(want, folder):
    """The very types and values."""
    files = sorted(folder.glob("*.arrow"))
    table = pa.concat_tables([pa.ipc.open_file(path).read_all() for path in files])
    table.validate(full=True)
    assert table.schema.equals(schema_of(want))
    same(want, table)


def compare_arrow_polars(want, folder):
    def form(name, value):
        kind = value_type(name)
        seconds = pa.types.is_timestamp(kind) and kind.unit == "s"  # milliseconds there
        return value * 1000 if seconds else polars_form(name, value)

    same(want, pl.concat([pl.read_ipc(path) for path in sorted(folder.glob("*.arrow"))]).to_arrow(), form)


# ---- as text -----------------------------------------------------------------------------------------


def asked_kind(name, reader):
    """The type that a reader is asked for: utf8 where it cannot make the value of that text."""
    kind = value_type(name)
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_decimal(kind):
        make = pa.decimal128 if kind.precision <= 38 else pa.decimal256
        return TEXT_READERS[reader](make(kind.precision, kind.scale))
    if pa.types.is_date(kind):
        return TEXT_READERS[reader](pa.date32())
    if pa.types.is_timestamp(kind):
        return TEXT_READERS[reader](kind)
    return kind if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) else pa.utf8()


def as_text_if(*tests):
    return lambda kind: pa.utf8() if any(test(kind) for test in tests) else kind


def beyond_microseconds(kind):
    return pa.types.is_timestamp(kind) and (kind.unit != "us" or kind.tz not in (None, "UTC"))


TEXT_READERS = {
    "pyarrow json": as_text_if(pa.types.is_date, pa.types.is_timestamp),
    "pyarrow csv": as_text_if(is_wide, beyond_microseconds),
    "duckdb": as_text_if(is_wide, beyond_microseconds),
    "polars": as_text_if(is_wide, beyond_microseconds),
}


def form_of(reader):
    def form(name, value):
        kind, asked = value_type(name), asked_kind(name, reader)
        if pa.types.is_float16(kind):
            return flat_values.bits_of("f", [as_float(kind, value)])[0]
        if pa.types.is_string(asked):
            return value if isinstance(value, str) else text_of(kind, value)
        return value // (DAY * 1000) if pa.types.is_date64(kind) else value

    return form


def asked(want, reader):
    return pa.schema([(name, asked_kind(name, reader)) for name in want])


def texts_of(folder, extension):
    """File by file; `newline` so that nothing in quotes changes."""
    return [path.open(encoding="utf-8", newline="") for path in sorted(folder.glob(f"*.{extension}"))]


def compare_texts(want, rows):
    """The very texts, floats as the numbers that they spell."""
    rows = sorted(rows, key=lambda row: int(row["id"]))
    for name, column in want.items():
        kind = value_type(name)
        for row, value in zip(rows, column, strict=True):
            have = row[name]
            if pa.types.is_floating(kind) and isinstance(value, int):
                text = have.replace("Infinity", "inf")
                assert stored(pa.array([float(text)]).cast(kind, safe=False)) == [value], (name, have)
            else:
                assert have == (value if isinstance(value, str) else text_of(kind, value)), name


def compare_ndjson(want, folder):
    rows = []
    for file in texts_of(folder, "ndjson"):
        for line in file:
            row = json.loads(line, parse_int=str, parse_float=str)
            assert list(row) == list(want)
            rows.append({k: {True: "true", False: "false"}.get(v, v) for k, v in row.items()})
    compare_texts(want, rows)
    files = sorted(folder.glob("*.ndjson"))
    finite = {n: v for n, v in want.items() if n.endswith("finite") or not pa.types.is_floating(value_type(n))}  # no "NaN"
    options = pa.json.ParseOptions(explicit_schema=asked(finite, "pyarrow json"), unexpected_field_behavior="ignore")
    table = pa.concat_tables([pa.json.read_json(f, parse_options=options) for f in files])
    same(finite, table, form_of("pyarrow json"))
    narrow = {n: v for n, v in want.items() if not is_wide(value_type(n))}  # a double on the way
    compare_rows_duckdb(narrow, f"read_json('{folder}/*.ndjson', format = 'newline_delimited', columns = {duckdb_types(narrow)})")


def duckdb_types(want):
    names = {"bool": "BOOLEAN", "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR", "date32[day]": "DATE",
             "timestamp[us]": "TIMESTAMP", "timestamp[ns]": "TIMESTAMP_NS", "timestamp[us, tz=UTC]": "TIMESTAMPTZ"}
    ints = {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}

    def one(kind):
        if pa.types.is_integer(kind):
            return "U" * pa.types.is_unsigned_integer(kind) + ints[kind.bit_width]
        return f"DECIMAL({kind.precision}, {kind.scale})" if pa.types.is_decimal(kind) else names[str(kind)]

    return "{" + ", ".join(f"'{field.name}': '{one(field.type)}'" for field in asked(want, "duckdb")) + "}"


def compare_rows_duckdb(want, read):
    with duckdb.connect() as connection:
        connection.sql("set timezone = 'UTC'")
        same(want, connection.sql(f"select * from {read}").to_arrow_table(), form_of("duckdb"))


def compare_ndjson_polars(want, folder):
    files = sorted(folder.glob("*.ndjson"))
    same(want, pl.read_ndjson(files, schema=pl.Schema(asked(want, "polars"))).to_arrow(), form_of("polars"))


def compare_csv(want, folder, delimiter=",", null=""):
    rows = []
    for file in texts_of(folder, "csv"):
        got = csv.reader(file, delimiter=delimiter, strict=True)
        assert next(got) == list(want)
        rows += [dict(zip(want, row, strict=True)) for row in got]
    # Python's csv tells null from the empty text by the null text alone
    compare_texts({n: [null if v is None or not null and v == b"" else v for v in column] for n, column in want.items()}, rows)
    files = sorted(folder.glob("*.csv"))
    parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    convert = pa.csv.ConvertOptions(
        column_types=asked(want, "pyarrow csv"), strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[null]
    )
    table = pa.concat_tables([pa.csv.read_csv(f, parse_options=parse, convert_options=convert) for f in files])
    same(want, table, form_of("pyarrow csv"))
    options = f"header = true, auto_detect = false, delim = '{delimiter}', quote = '\"', escape = '\"', new_line = '\\n'"
    options += f", nullstr = '{null}', allow_quoted_nulls = false, columns = {duckdb_types(want)}"
    compare_rows_duckdb(want, f"read_csv('{folder}/*.csv', {options})")
    read = {"separator": delimiter, "schema": pl.Schema(asked(want, "polars")), "null_values": [null], "empty_string_is_null": not null}
    told = {n: [None if not null and v in ("", b"") else v for v in column] for n, column in want.items()}  # quotes or not
    same(told, pl.concat([pl.read_csv(f, **read) for f in files]).to_arrow(), form_of("polars"))


def deliver(weir, folder, source, sinks):
    pipeline = {
        "pipeline": folder.name,
        "sources": {"in": {"type": "file", **source}},
        "sinks": {name: {"type": "file", "path": f"./out/{name}", **options} for name, options in sinks.items()},
    }
    (folder / "p.yaml").write_text(json.dumps(pipeline))
    done = weir("run", folder / "p.yaml")
    assert done.returncode == 0, done.stderr


def parquet_sinks(codecs):
    return {f"parquet{i}": {"format": "parquet", "compression": codec} for i, codec in enumerate(codecs)}


def arrow_sinks(codecs):
    return {f"arrow-{codec}": {"format": "arrow", "compression": codec} for codec in codecs}


def parts():
    """The columns in three parts, for Polars: it opens no Parquet with a decimal of more than 38 digits, and no
    Arrow file with a decimal256 or with a dictionary that grows (by a delta)."""
    made = {"flat": ["id"], "dictionaries": ["id"], "wide": ["id"]}
    for name in COLUMNS:
        grows = name.startswith("dict_") or pa.types.is_decimal256(COLUMNS[name][0])
        if name not in NO_PARQUET | {"id"}:
            made["wide" if is_wide(value_type(name)) else "dictionaries" if grows else "flat"].append(name)
    return made


@pytest.mark.parametrize("part", parts())
def test_arrow_to_parquet(weir, tmp_path, part):
    want = expected(parts()[part])
    write_arrow(tmp_path / "in", want)
    newest = {"format": "parquet", "encodings": "newest", "effort": "small", "roll.rows": 25, "data_page_version": 2,
              "column_encoding": {"id": "byte_stream_split"}}
    arrow = {"format": "arrow", "compression": "lz4"}
    deliver(weir, tmp_path, {"path": "in/*.arrow"}, {**parquet_sinks(PARQUET), "newest": newest, "arrow": arrow})
    for sink in [f"parquet{i}" for i in range(len(PARQUET))] + ["newest"]:
        compare_pyarrow(want, tmp_path / "out" / sink)
        compare_duckdb(want, tmp_path / "out" / sink)
        if part != "wide":
            compare_polars(want, tmp_path / "out" / sink)
    if part == "flat":
        compare_arrow_polars(want, tmp_path / "out/arrow")


def test_arrow_to_arrow(weir, tmp_path):
    want = expected(COLUMNS)
    write_arrow(tmp_path / "in", want)
    sinks = {**arrow_sinks(ARROW), "rolled": {"format": "arrow", "compression": "none", "roll.rows": 25}}
    deliver(weir, tmp_path, {"path": "in/*.arrow", "batch_rows": 11}, sinks)
    for sink in sinks:
        compare_arrow(want, tmp_path / "out" / sink)


def test_arrow_to_text(weir, tmp_path):
    want = expected([n for n in COLUMNS if n not in NO_TEXT])
    write_arrow(tmp_path / "in", want)
    sinks = {
        "ndjson": {"format": "ndjson", "compression": "none", "roll.rows": 40},
        "csv": {"format": "csv", "compression": "none", "roll.rows": 30},
        "tabs": {"format": "csv", "compression": "none", "csv.delimiter": "\t", "csv.null": "\\N"},
    }
    deliver(weir, tmp_path, {"path": "in/*.arrow"}, sinks)
    compare_ndjson(want, tmp_path / "out/ndjson")
    compare_csv(want, tmp_path / "out/csv")
    compare_csv(want, tmp_path / "out/tabs", "\t", "\\N")


def deliver_text(weir, folder, want, source):
    schema = {n: str(COLUMNS[n][0]) + " not null" * (n == "id") for n in want}
    sinks = {**parquet_sinks(["zstd"]), **arrow_sinks(["none"]), **{f: {"format": f, "compression": "none"} for f in ("ndjson", "csv")}}
    deliver(weir, folder, {**source, "schema": schema}, sinks)
    compare_arrow(want, folder / "out/arrow-none")
    compare_pyarrow(want, folder / "out/parquet0")
    compare_duckdb(want, folder / "out/parquet0")
    compare_ndjson(want, folder / "out/ndjson")
    compare_csv(want, folder / "out/csv")


@pytest.mark.parametrize("text", ["ndjson", "csv"])
def test_text_to_all(weir, tmp_path, text):
    want = expected([n for n in COLUMNS if n not in NOT_READ])
    {"ndjson": write_ndjson, "csv": write_csv}[text](tmp_path / "in", want)
    deliver_text(weir, tmp_path, want, {"path": f"in/*.{text}", "batch_rows": 17})


def test_text_to_text_for_polars(weir, tmp_path):
    """It reads no NDJSON with a number beyond 64 bits or a small integer, so the columns that it can read go apart."""
    names = ["id", "bool", "int32", "uint32", "int64", "uint64", "float_finite", "double_finite", "utf8", "binary", "date32", "time_us", "timestamp_us"]
    want = expected(names)
    write_ndjson(tmp_path / "in", want)
    deliver_text(weir, tmp_path, want, {"path": "in/*.ndjson"})
    compare_polars(want, tmp_path / "out/parquet0")
    compare_ndjson_polars(want, tmp_path / "out/ndjson")
