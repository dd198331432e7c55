"""The data set `orders`: times, keys, skewed integers, prices, short and long strings, nulls.

  bench/data.py arrow|csv|ndjson PATH ROWS     every value follows from its row's number
"""

import sys

import duckdb
import pyarrow as pa

QUERY = """
select i as id,
       make_timestamp(1700000000000000 + i * 1000 + (hash(i * 2) % 900)::bigint)::timestamptz as ts,
       (hash(i) % 75000)::int as customer,
       case when hash(i * 23) % 20 = 0 then null else (hash(i * 3) % 100000) / 100.0 end::double as price,
       (1 + hash(i * 5) % 19)::smallint as qty,
       ['new', 'paid', 'packed', 'shipped', 'done'][1 + (hash(i * 7) % 5)::int] as status,
       'sku-' || (hash(i * 11) % 5000)::int as sku,
       case when hash(i * 13) % 20 = 0 then null
            else 'note ' || hash(i) || ' from ' || hash(i * 17) end as note,
       hash(i * 19) % 2 = 0 as flag
from range({rows}) t(i)
"""


def main(kind, path, rows):
    db = duckdb.connect()
    db.execute("set timezone = 'UTC'")
    query = QUERY.format(rows=rows)
    if kind in ("csv", "ndjson"):
        stamp = "strftime(ts at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')"
        form = "format csv, header" if kind == "csv" else "format json"
        db.execute(f"copy (select * replace ({stamp} as ts) from ({query})) to '{path}' ({form})")
        return
    reader = db.sql(query).to_arrow_reader(65536)
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
