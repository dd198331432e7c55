"""The postgres sink beside its peers and the server's own limit, for bench/run.py.

Wall time is what a user sees, but with two CPUs a busy machine makes it a matter of luck: the server works
beside the client. So the server's own CPU seconds stand beside it (of all its processes, as the kernel counts them
for the postmaster): where client and server have a CPU each, the rate is the server's.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import time

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent
sys.path.insert(0, str(ROOT / "tools"))
import postgres

COPY_OBJECTS = ("column", "conn", "encoder", "numeric", "target", "text", "types", "values")  # what bench/postgres_copy.c needs
TYPES = "id int8, ts timestamptz, customer int, price float8, qty int2, status text, sku text, note text, flag bool"
PEERS = {
    "adbc_driver_postgresql ingest": """
import adbc_driver_postgresql.dbapi as d, pyarrow as pa
with pa.memory_map("$in") as f, d.connect("$uri") as c:
    r = pa.ipc.open_file(f)
    batches = pa.RecordBatchReader.from_batches(r.schema, (r.get_batch(i) for i in range(r.num_record_batches)))
    c.cursor().adbc_ingest("orders", batches, mode="append"); c.commit()
""",
    "pgpq": """
import pgpq, psycopg, pyarrow as pa
with pa.memory_map("$in") as f, psycopg.connect("$uri") as c:
    r = pa.ipc.open_file(f); e = pgpq.ArrowToPostgresBinaryEncoder(r.schema)
    with c.cursor() as k, k.copy("COPY orders FROM STDIN WITH (FORMAT BINARY)") as copy:
        copy.write(e.write_header())
        for i in range(r.num_record_batches): copy.write(e.write_batch(r.get_batch(i)))
        copy.write(e.finish())
""",
    "psycopg COPY BINARY": """
import psycopg, pyarrow as pa
with pa.memory_map("$in") as f, psycopg.connect("$uri") as c:
    r = pa.ipc.open_file(f)
    with c.cursor() as k, k.copy("COPY orders FROM STDIN WITH (FORMAT BINARY)") as copy:
        copy.set_types("int8 timestamptz int4 float8 int2 text text text bool".split())
        for i in range(r.num_record_batches):
            for row in zip(*(column.to_pylist() for column in r.get_batch(i).columns)): copy.write_row(row)
""",
}


class Server(postgres.Server):
    def cpu(self):
        """Seconds of the postmaster's processes that have ended: fields 16 and 17 of /proc/PID/stat, proc(5)."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    def settled(self):
        """Once no client's process is left."""
        query = "select count(*) from pg_stat_activity where backend_type in ('client backend', 'parallel worker')"
        while self.sql(query) != "1":
            time.sleep(0.02)
        return self.cpu()


def measure(title, server, commands, rounds, cpus, clean, timed):
    """commands: name -> argv, the last one is the limit."""
    found = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            clean()
            before = server.settled()
            cpu, wall, _ = timed(command, cpus)
            found[name].append((wall, cpu, server.settled() - before))
    print(f"\n{title}; rates against the last line's, by wall time and by the server's CPU time")
    limit = [statistics.median(column) for column in zip(*found[name])]
    for name, rows in found.items():
        wall, cpu, of_server = [statistics.median(column) for column in zip(*rows)]
        print(
            f"  {name:34} wall {wall:6.2f} s  {limit[0] / wall:5.2f}   server's cpu {of_server:6.2f} s  "
            f"{limit[2] / max(of_server, 0.01):5.2f}   own cpu {cpu:6.2f} s",
            flush=True,
        )


def compile_copy(weir, program):
    build = weir.resolve().parent
    objects = [build / f"CMakeFiles/weir_postgres_objects.dir/connectors/postgres/{name}.c.o" for name in COPY_OBJECTS]
    third_party = subprocess.run([ROOT / "tools/third_party.sh", "cc"], check=True, capture_output=True, text=True).stdout.strip()
    flags = subprocess.run(["pkg-config", "--cflags", "libpq"], check=True, capture_output=True, text=True).stdout.split()
    libraries = [f"-L{build}", f"-Wl,-rpath,{build}", "-lweir", "-lpq", f"{third_party}/lib/libnanoarrow.a", "-lm"]
    includes = [f"-I{ROOT}/include", f"-I{third_party}/include", *flags]
    command = ["cc", "-std=c11", "-D_GNU_SOURCE", "-O3", *includes, BENCH / "postgres_copy.c", *objects, "-o", program, *libraries]
    subprocess.run(command, check=True)


def append(bench, server, weir, timed):
    data, program, ready = bench.data("arrow"), bench.folder / "postgres_copy", bench.folder / "orders.copy"
    compile_copy(weir, program)

    def clean():
        bench.clean()
        server.sql(f"drop table if exists orders, weir_cursor; create table orders ({TYPES}); checkpoint")

    clean()
    copy = [program, data, server.uri, "public", "orders"]
    subprocess.run([*copy, "encode", ready], check=True)
    for path in (bench.folder, ready):
        path.chmod(0o755)
    sink = f"{{type: postgres, uri: '{server.uri}', table: public.orders, create: true}}"
    commands = {"weir, exactly once": bench.weir("pg", f"{{type: file, path: {data}}}", sink, interval="1s")}
    commands["its encoder and COPY alone"] = [*copy, "copy"]
    for name, text in PEERS.items():
        commands[name] = [sys.executable, "-c", text.replace("$in", str(data)).replace("$uri", server.uri)]
    commands["server-side COPY of a ready file"] = [server.bin / "psql", "-Xq", server.uri, "-c", f"copy orders from '{ready}' (format binary)"]
    measure(f"IPC -> PostgreSQL, {bench.rows} rows", server, commands, bench.rounds, bench.cpus, clean, timed)


def run(bench, weir, timed):
    server = Server()
    try:
        server.make()
        append(bench, server, weir, timed)
    finally:
        server.remove()
