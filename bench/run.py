#!/usr/bin/env python3
"""Benchmarks: weir beside its peers, whole processes, interleaved in one run, printed as ratios.

  bench/run.py [--rounds N] [--rows N] [NAME...]     ./dev bench calls it; without a name all but `memory`

Each line is a command: the median of its CPU seconds (user + system, of all its threads) and of its wall
seconds, and the ratio of the peer's to weir's, so more than 1 means that weir needs less. Where `net` stands,
each was also run on nothing (the same imports and calls, no rows), which is taken off on both sides: what is
left is the work on the data. The machine may be shared: only ratios of one run mean something. Every process is pinned to the same CPUs (--cpus).
"""

import argparse
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent
WEIR = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/release/weir"))
COLUMNS = (
    "{id: int64, ts: 'timestamp[us, UTC]', customer: int32, price: float64, qty: int16, status: utf8, "
    "sku: utf8, note: utf8, flag: bool}"
)


class Measured:
    def __init__(self, name):
        self.name, self.cpu, self.wall, self.rss = name, [], [], []


def timed(command, cpus, env=None):
    """(CPU seconds, wall seconds, peak MB) of a process that must succeed."""
    with tempfile.TemporaryFile() as out:
        start = time.perf_counter()
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=out,
            stderr=out,
            env={**os.environ, **(env or {})},
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            out.seek(0)
            raise SystemExit(f"{command}: exit {process.returncode}\n{out.read().decode()[-3000:]}")
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


def compare(title, commands, rounds, cpus, clean, empty=None):
    """commands: name -> argv; weir's is the first. Prints one line each. empty: name -> argv that does nothing."""
    rows = [Measured(name) for name in commands]
    nothing = {name: Measured(name) for name in empty or {}}
    for _ in range(rounds):
        for row, command in zip(rows, commands.values()):
            clean()
            cpu, wall, rss = timed(command, cpus)
            row.cpu.append(cpu)
            row.wall.append(wall)
            row.rss.append(rss)
            if row.name in nothing:
                clean()
                nothing[row.name].cpu.append(timed(empty[row.name], cpus)[0])
    base_cpu, base_wall = statistics.median(rows[0].cpu), statistics.median(rows[0].wall)
    net = {row.name: statistics.median(row.cpu) - statistics.median(nothing[row.name].cpu) for row in rows if row.name in nothing}
    print(f"\n{title}")
    for row in rows:
        cpu, wall = statistics.median(row.cpu), statistics.median(row.wall)
        alone = f"  net {net[row.name]:6.2f} s  {net[row.name] / net[rows[0].name]:5.2f} x" if row.name in net else ""
        print(
            f"  {row.name:34} cpu {cpu:7.2f} s  {cpu / base_cpu:5.2f} x{alone}   wall {wall:7.2f} s  "
            f"{wall / base_wall:5.2f} x   peak {statistics.median(row.rss):6.0f} MB",
            flush=True,
        )


PEERS = {
    # name -> (what it reads, program); $in and $out are replaced.
    "pyarrow ipc -> parquet": """
import pyarrow as pa, pyarrow.parquet as pq
pa.set_cpu_count(1)
with pa.memory_map("$in") as f:
    r = pa.ipc.open_file(f)
    with pq.ParquetWriter("$out/p.parquet", r.schema, compression="zstd", compression_level=1) as w:
        for i in range(0, r.num_record_batches, 16):
            w.write_table(pa.Table.from_batches([r.get_batch(k) for k in range(i, min(i + 16, r.num_record_batches))]))
""",
    "duckdb ipc -> parquet": """
import duckdb, pyarrow as pa
with pa.memory_map("$in") as f:
    t = pa.ipc.open_file(f).read_all()
    d = duckdb.connect(config={"threads": 1}); d.register("t", t)
    d.execute("copy t to '$out/p.parquet' (format parquet, compression zstd, compression_level 1)")
""",
    "polars ipc -> parquet": """
import polars as pl
pl.scan_ipc("$in").sink_parquet("$out/p.parquet", compression="zstd", compression_level=1)
""",
    "pyarrow ipc => folders": """
import pyarrow as pa, pyarrow.dataset as ds
pa.set_cpu_count(1)
with pa.memory_map("$in") as f:
    r = pa.ipc.open_file(f)
    batches = (r.get_batch(i) for i in range(r.num_record_batches))
    ds.write_dataset(batches, "$out/p", schema=r.schema, format="parquet", partitioning=["$by"], partitioning_flavor="hive",
        use_threads=False, max_partitions=100000, max_open_files=8000,
        file_options=ds.ParquetFileFormat().make_write_options(compression="zstd", compression_level=1))
""",
    "duckdb ipc => folders": """
import duckdb, pyarrow as pa
with pa.memory_map("$in") as f:
    t = pa.ipc.open_file(f).read_all()
    d = duckdb.connect(config={"threads": 1}); d.register("t", t)
    d.execute("copy t to '$out/p' (format parquet, partition_by ($by), compression zstd, compression_level 1)")
""",
    "pyarrow ndjson -> parquet": """
import pyarrow as pa, pyarrow.json as pj, pyarrow.parquet as pq
pa.set_cpu_count(1)
schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("customer", pa.int32()),
    ("price", pa.float64()), ("qty", pa.int16()), ("status", pa.string()), ("sku", pa.string()),
    ("note", pa.string()), ("flag", pa.bool_())])
r = pj.open_json("$in", pj.ReadOptions(use_threads=False, block_size=8 << 20),
    pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"))
with pq.ParquetWriter("$out/p.parquet", schema, compression="zstd", compression_level=1) as w:
    for b in r:
        w.write_batch(b)
""",
    "duckdb ndjson -> parquet": """
import duckdb
d = duckdb.connect(config={"threads": 1})
d.execute("set timezone = 'UTC'")
d.execute('''copy (select * from read_json('$in', format='newline_delimited', columns={id: 'bigint',
  ts: 'timestamptz', customer: 'int', price: 'double', qty: 'smallint', status: 'varchar', sku: 'varchar',
  note: 'varchar', flag: 'boolean'})) to '$out/p.parquet' (format parquet, compression zstd, compression_level 1)''')
""",
    "polars ndjson -> parquet": """
import polars as pl
s = {"id": pl.Int64, "ts": pl.String, "customer": pl.Int32, "price": pl.Float64, "qty": pl.Int64,
     "status": pl.String, "sku": pl.String, "note": pl.String, "flag": pl.Boolean}
(pl.scan_ndjson("$in", schema=s).with_columns(pl.col("ts").str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_zone="UTC"), pl.col("qty").cast(pl.Int16))
   .sink_parquet("$out/p.parquet", compression="zstd", compression_level=1))
""",
}

# Reading alone, into Arrow batches that are dropped; DuckDB counts every column, so that it must read them all.
ARROW_SCHEMA = """
import pyarrow as pa
pa.set_cpu_count(1)
schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("customer", pa.int32()),
    ("price", pa.float64()), ("qty", pa.int16()), ("status", pa.string()), ("sku", pa.string()),
    ("note", pa.string()), ("flag", pa.bool_())])
"""
DUCKDB_READ = """
import duckdb
d = duckdb.connect(config={"threads": 1})
d.execute("set timezone = 'UTC'")
columns = {"id": "bigint", "ts": "timestamptz", "customer": "int", "price": "double", "qty": "smallint",
    "status": "varchar", "sku": "varchar", "note": "varchar", "flag": "boolean"}
counts = ", ".join(f"count({name})" for name in columns)
"""
POLARS_READ = """
import polars as pl
s = {"id": pl.Int64, "ts": pl.String, "customer": pl.Int32, "price": pl.Float64, "qty": pl.Int64,
     "status": pl.String, "sku": pl.String, "note": pl.String, "flag": pl.Boolean}
stamp = pl.col("ts").str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_zone="UTC")
"""
# format -> peer -> (what it does without rows, the reading)
READERS = {
    "csv": {
        "pyarrow streaming": (
            ARROW_SCHEMA + "import pyarrow.csv as pc\n",
            """
for b in pc.open_csv("$in", pc.ReadOptions(use_threads=False),
    convert_options=pc.ConvertOptions(column_types=schema, strings_can_be_null=True)): pass
""",
        ),
        "duckdb": (
            DUCKDB_READ,
            """
d.execute(f"select {counts} from read_csv('$in', header=true, auto_detect=false, columns={columns})").fetchall()
""",
        ),
        "polars": (POLARS_READ, "pl.read_csv('$in', schema=s).with_columns(stamp)\n"),
    },
    "ndjson": {
        "pyarrow streaming": (
            ARROW_SCHEMA + "import pyarrow.json as pj\n",
            """
for b in pj.open_json("$in", pj.ReadOptions(use_threads=False, block_size=8 << 20),
    pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")): pass
""",
        ),
        "duckdb": (
            DUCKDB_READ,
            """
d.execute(f"select {counts} from read_json('$in', format='newline_delimited', columns={columns})").fetchall()
""",
        ),
        "polars": (POLARS_READ, "pl.read_ndjson('$in', schema=s).with_columns(stamp)\n"),
    },
}

# Writing an Arrow file as rows of text; the same two parts.
ARROW_WRITE = "import pyarrow as pa\npa.set_cpu_count(1)\nimport pyarrow.csv as pc\n"
DUCKDB_WRITE = """
import duckdb, pyarrow as pa
d = duckdb.connect(config={"threads": 1})
d.execute("set timezone = 'UTC'")
"""
DUCKDB_TABLE = """
with pa.memory_map("$in") as f:
    t = pa.ipc.open_file(f).read_all()
    d.register("t", t)
    d.execute("copy t to '$out/p.text' (format $format)")
"""
POLARS_WRITE = "import polars as pl\n"
WRITERS = {
    "csv": {
        "pyarrow": (
            ARROW_WRITE,
            """
with pa.memory_map("$in") as f:
    r = pa.ipc.open_file(f)
    with pc.CSVWriter("$out/p.text", r.schema) as w:
        for i in range(r.num_record_batches): w.write_batch(r.get_batch(i))
""",
        ),
        "duckdb": (DUCKDB_WRITE, DUCKDB_TABLE.replace("$format", "csv")),
        "polars": (POLARS_WRITE, "pl.scan_ipc('$in').sink_csv('$out/p.text')\n"),
    },
    "ndjson": {
        "duckdb": (DUCKDB_WRITE, DUCKDB_TABLE.replace("$format", "json")),
        "polars": (POLARS_WRITE, "pl.scan_ipc('$in').sink_ndjson('$out/p.text')\n"),
    },
}


class Bench:
    def __init__(self, folder, rows, rounds, cpus):
        self.folder, self.rows, self.rounds, self.cpus = folder, rows, rounds, cpus
        self.out = folder / "out"

    def data(self, kind):
        """The orders data set as an Arrow file or as NDJSON, made once."""
        path = self.folder / f"orders.{kind}"
        if not path.exists():
            subprocess.run([sys.executable, BENCH / "data.py", kind, path, str(self.rows)], check=True)
        return path

    def clean(self):
        for path in (self.out, self.folder / ".weir", self.folder / "state"):
            shutil.rmtree(path, ignore_errors=True)
        self.out.mkdir()

    def weir(self, name, source, sink, guarantee="exactly_once", interval="10s", **more):
        path = self.folder / f"{name}.yaml"
        path.write_text(
            f"pipeline: bench\nguarantee: {guarantee}\nstate: ./state\ncheckpoint: {{interval: {interval}}}\n"
            f"sources:\n  in: {source}\nsinks:\n  out: {sink}\n"
        )
        return [WEIR, "run", path, "--progress", "none"]

    def peers(self, what, path, by=""):
        for name, program in PEERS.items():
            if what in name:
                program = program.replace("$in", str(path)).replace("$out", str(self.out)).replace("$by", by)
                yield name, [sys.executable, "-c", program]

    def compare(self, title, commands, empty=None):
        # Polars sizes its pool by this alone.
        os.environ["POLARS_MAX_THREADS"] = str(len(self.cpus))
        compare(title, commands, self.rounds, self.cpus, self.clean, empty)

    def pairs(self, peers, verb, path):
        """(commands, empty): programs of peers in two parts, and the first of them alone."""
        commands, empty = {}, {}
        for name, (start, work) in peers.items():
            program = (start + work).replace("$in", str(path)).replace("$out", str(self.out))
            commands[f"{name} {verb}"] = [sys.executable, "-c", program]
            empty[f"{name} {verb}"] = [sys.executable, "-c", start]
        return commands, empty

    # ---- the benchmarks ---------------------------------------------------------------------------

    def ipc_blackhole(self):
        data = self.data("arrow")
        read = f"import pyarrow as pa\nwith pa.memory_map('{data}') as f:\n  r = pa.ipc.open_file(f)\n  n = sum(r.get_batch(i).num_rows for i in range(r.num_record_batches))"
        self.compare(
            f"IPC -> blackhole, {self.rows} rows",
            {
                "weir": self.weir("ib", f"{{type: file, path: {data}}}", "{type: blackhole}", "best_effort"),
                "pyarrow reads": [sys.executable, "-c", read],
                "python starts": [sys.executable, "-c", "import pyarrow"],
            },
        )

    def ipc_parquet(self):
        data = self.data("arrow")
        sink = "{type: file, path: ./out/lake}"
        self.compare(
            f"IPC -> Parquet zstd(1), {self.rows} rows, {len(self.cpus)} CPU",
            {
                "weir": self.weir("ip", f"{{type: file, path: {data}}}", sink),
                **dict(self.peers("ipc ->", data)),
            },
        )

    def partitions(self, by="status", folders=5):
        """Into folders, rows of all folders mixed. Only weir's files are synced."""
        data = self.data("arrow")
        sink = f"{{type: file, path: ./out/lake, partition_by: {by}}}"
        self.compare(
            f"IPC -> Parquet zstd(1) in {folders} folders, {self.rows} rows, {len(self.cpus)} CPU",
            {
                "weir": self.weir("pa", f"{{type: file, path: {data}}}", sink, interval="1h"),
                **dict(self.peers("ipc =>", data, by)),
            },
        )

    def many_partitions(self):
        self.partitions("sku", 5000)

    def ndjson_parquet(self):
        data = self.data("ndjson")
        source = f"{{type: file, path: {data}, schema: {COLUMNS}}}"
        self.compare(
            f"NDJSON -> Parquet zstd(1), {self.rows} rows, {len(self.cpus)} CPU",
            {
                "weir": self.weir("np", source, "{type: file, path: ./out/lake}"),
                **dict(self.peers("ndjson ->", data)),
            },
        )

    def blackhole(self, kind):
        data, nothing = self.data(kind), self.folder / f"nothing.{kind}"
        with open(data) as file:
            nothing.write_text(file.readline() if kind == "csv" else "")
        source, sink = "{{type: file, path: {}, schema: {}}}", "{type: blackhole}"
        commands, empty = self.pairs(READERS[kind], "reads", data)
        self.compare(
            f"{kind.upper()} -> blackhole, {self.rows} rows",
            {
                "weir": self.weir("b", source.format(data, COLUMNS), sink, "best_effort"),
                "weir, inferred": self.weir("bi", f"{{type: file, path: {data}}}", sink, "best_effort"),
                **commands,
            },
            {"weir": self.weir("bn", source.format(nothing, COLUMNS), sink, "best_effort"), **empty},
        )

    def write_text(self, kind):
        data = self.data("arrow")
        sink = f"{{type: file, path: ./out/lake, format: {kind}}}"
        commands, empty = self.pairs(WRITERS[kind], "writes", data)
        self.compare(
            f"IPC -> {kind.upper()}, {self.rows} rows",
            {"weir": self.weir("w", f"{{type: file, path: {data}}}", sink), **commands},
            {"weir": self.weir("wn", "{type: generator, rows: 1}", sink), **empty},
        )

    def postgres(self):
        import postgres_sink

        postgres_sink.run(self, WEIR, timed)

    def ipc_csv(self):
        self.write_text("csv")

    def ipc_ndjson(self):
        self.write_text("ndjson")

    def csv_blackhole(self):
        self.blackhole("csv")

    def ndjson_blackhole(self):
        self.blackhole("ndjson")

    def epochs(self):
        data = self.data("ndjson")
        source = f"{{type: file, path: {data}, schema: {COLUMNS}}}"
        sink = "{type: file, path: ./out/lake}"
        self.compare(
            f"what an epoch costs: NDJSON -> Parquet, {self.rows} rows",
            {
                name: self.weir(f"e{i}", source, sink, interval=interval)
                for i, (name, interval) in enumerate({"no epochs": "1h", "1 s": "1s", "100 ms": "100ms"}.items())
            },
        )

    def syncs(self):
        """System calls that sync, per epoch, counted by strace."""
        counts = {}
        for epochs in (10, 60):
            self.clean()
            source = f"{{type: generator, rows: {epochs * 1000}, batch_rows: 1000, rate: 50000}}"
            command = self.weir("s", source, "{type: file, path: ./out/lake}", interval="20ms")
            log = self.folder / "strace"
            subprocess.run(["strace", "-f", "-y", "-e", "trace=fsync,fdatasync", "-o", log, *command], check=True)
            lines = log.read_text().splitlines()
            done = len({p.name.split("-")[0] for p in (self.out / "lake").iterdir()})
            store = sum("store.db" in line for line in lines)
            counts[epochs] = (done, store, sum("sync(" in line for line in lines) - store)
        (a, store_a, file_a), (b, store_b, file_b) = counts[10], counts[60]
        print(
            f"\nsyncs of one epoch: store {(store_b - store_a) / (b - a):.2f}, "
            f"file sink {(file_b - file_a) / (b - a):.2f}   ({b - a} epochs)"
        )
        self.clean()
        again = self.weir("s0", "{type: generator, rows: 1}", "{type: file, path: ./out/lake}")
        subprocess.run(again, check=True, capture_output=True)
        log = self.folder / "strace"
        subprocess.run(["strace", "-f", "-y", "-o", log, *again], check=True, capture_output=True)
        # Any call that makes, changes, renames or removes something, and succeeded.
        call = re.compile(r"\b(p?writev?(64)?|rename(at2?)?|link(at)?|unlink(at)?|mkdir(at)?|ftruncate|openat)\(")
        touched = [
            line
            for line in log.read_text().splitlines()
            if str(self.folder / "out") in line
            and (found := call.search(line))
            and (found[1] != "openat" or "O_CREAT" in line)
            and not re.search(r"= -1 E", line)
        ]
        print(f"an epoch without rows: {len(touched)} calls that change the target")

    def start(self):
        """From exec to the first write_batch and the end: one row."""
        source, sink = "{type: generator, rows: 1}", "{type: file, path: ./out/lake}"
        command = self.weir("st", source, sink)
        log = self.folder / "strace"
        first = []
        for _ in range(max(5, self.rounds)):
            self.clean()
            subprocess.run(["strace", "-f", "-y", "-ttt", "-e", "trace=execve,openat", "-o", log, *command], check=True, capture_output=True)
            lines = log.read_text().splitlines()
            stamp = [float(line.split()[1]) for line in lines]
            staged = next(i for i, line in enumerate(lines) if "/staged/" in line and "O_CREAT" in line)
            first.append(1000 * (stamp[staged] - stamp[0]))
        walls = []
        for _ in range(max(5, self.rounds)):
            self.clean()
            walls.append(1000 * timed(command, self.cpus)[1])
        print(
            f"\nstart to first write {statistics.median(first):.1f} ms (under strace); "
            f"a whole run of one row {statistics.median(walls):.1f} ms"
        )

    def push(self):
        """What a push costs the host's thread, and what a second lane with a writer of its own brings."""
        program, built = self.folder / "push", WEIR.parent
        subprocess.run(
            ["cc", "-O2", f"-I{ROOT}/include", BENCH / "push.c", "-o", program, f"-L{built}", f"-Wl,-rpath,{built}", "-lweir", "-lpthread"],
            check=True,
        )
        columns = "{id: int64, price: float64, name: utf8}"
        batches = max(20, self.rows >> 16)
        micros, walls = [], {1: [], 2: []}
        for _ in range(self.rounds):
            for lanes, seconds in walls.items():
                self.clean()
                source = f"{{type: push, lanes: {lanes}, schema: {columns}}}"
                sink = f"{{type: file, path: ./out/lake, writers: {lanes}}}"
                config = self.weir("pf", source, sink, interval="1h")[2]
                command = [program, config, str(lanes), str(batches)]
                seconds.append(float(subprocess.run(command, check=True, capture_output=True).stdout.split()[1]))
            self.clean()
            config = self.weir("pb", f"{{type: push, schema: {columns}}}", "{type: blackhole}", "best_effort", "1h")[2]
            output = subprocess.run([program, config, "1", "2000"], check=True, capture_output=True).stdout
            micros.append(float(output.split()[0]))
        gain = 2 * statistics.median(walls[1]) / statistics.median(walls[2])
        print(
            f"\npush of a batch of 64 Ki rows: {statistics.median(micros):.2f} us of the host's thread; "
            f"two lanes into Parquet deliver {gain:.2f} x one"
        )

    def spool(self):
        """A segment of the spool, sealed, beside a plain sequential write of as many bytes with one fdatasync."""
        program, built = self.folder / "spool", WEIR.parent
        subprocess.run(
            ["cc", "-O2", "-D_GNU_SOURCE", f"-I{ROOT}/include", BENCH / "spool.c", "-o", program, f"-L{built}", f"-Wl,-rpath,{built}", "-lweir"],
            check=True,
        )
        done = subprocess.run([program, self.folder, "256", str(self.rounds)], check=True, capture_output=True, text=True)
        rounds = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
        ours, plain = (statistics.median(column) for column in zip(*rounds))
        print(f"\nspool: {ours:.0f} MB/s, write and fdatasync alone {plain:.0f} MB/s: {ours / plain:.2f} (goal 0.9)")

    def coordinator(self):
        """The coordinator's own CPU time of an epoch, everything outside it answering at once."""
        program = self.folder / "coordinator"
        sources = [*ROOT.glob("src/coord/*.c"), *ROOT.glob("src/base/*.c"), ROOT / "src/connector/cursor.c"]
        subprocess.run(
            ["cc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", f"-I{ROOT}/include", f"-I{ROOT}/src", BENCH / "coordinator.c", *sources]
            + ["-o", program, "-lcrypto", "-lpthread"],
            check=True,
        )

        def epoch(sinks, participants):
            command = ["taskset", "-c", str(min(self.cpus)), program, str(sinks), str(participants)]
            return min(float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(self.rounds))

        print(f"\nan epoch of 8 sinks x 16 participants: {epoch(8, 16):.0f} us of the coordinator's CPU (at most 200)")
        print("  entries   sinks x participants         us   us an entry")
        for shape in ((1, 16), (8, 8), (8, 16), (16, 16), (32, 16), (64, 16), (128, 16), (256, 16), (64, 64), (8, 512), (1, 4096)):
            entries, micros = shape[0] * shape[1], epoch(*shape)
            bar = "#" * round(40 * micros / entries)
            print(f"  {entries:7} {shape[0]:7} x {shape[1]:<12} {micros:10.1f} {micros / entries:13.2f}  {bar}", flush=True)

    def recovery(self, many=100_000):
        """A start that finds nothing to do, after ten epochs of three sinks and after many: CPU time, and what is
        kept. In memory where there is such a folder: the epochs are not what is measured."""
        shm = pathlib.Path("/dev/shm")
        with tempfile.TemporaryDirectory(prefix="weir-bench-", dir=shm if shm.is_dir() else None) as temporary:
            starts = {epochs: self.history(pathlib.Path(temporary) / str(epochs), epochs) for epochs in (10, many)}
            cpu, wall = {epochs: [] for epochs in starts}, {epochs: [] for epochs in starts}
            for _ in range(max(25, self.rounds)):
                for epochs, command in starts.items():
                    seconds, elapsed, _ = timed(command, self.cpus)
                    cpu[epochs].append(1000 * seconds)
                    wall[epochs].append(1000 * elapsed)
            print("\na start after so many epochs of three sinks, without work")
            for epochs in starts:
                folder = pathlib.Path(temporary) / str(epochs)
                store = (folder / "state/store.db").stat().st_size
                records = sum(1 for path in (folder / "out/.weir").rglob("*") if path.is_file())
                print(
                    f"  {epochs:7} epochs   cpu {statistics.median(cpu[epochs]):6.2f} ms {statistics.median(cpu[epochs]) / statistics.median(cpu[10]):5.2f} x   "
                    f"wall {statistics.median(wall[epochs]):6.2f} ms {statistics.median(wall[epochs]) / statistics.median(wall[10]):5.2f} x   "
                    f"store {store >> 10} KiB, {records} records beside the targets"
                )

    def history(self, folder, epochs):
        """Runs a pipeline of three sinks for so many epochs; the command that starts it once more."""
        folder.mkdir()
        pipeline = folder / "p.yaml"
        sinks = "".join(f"  {name}: {{type: file, path: ./out/{name}, format: ndjson}}\n" for name in "abc")
        text = "pipeline: many\nstate: ./state\ncheckpoint: {{interval: 1ms}}\nsources:\n  in: {{type: generator, rows: {}, batch_rows: 10, rate: 50000}}\nsinks:\n"
        pipeline.write_text(text.format(0) + sinks)
        command = [WEIR, "run", pipeline, "--progress", "none"]
        process, last = subprocess.Popen(command), 0
        while last < epochs and process.poll() is None:
            time.sleep(0.01)
            for name in "abc":
                files = sorted((folder / "out" / name).glob("*-*"))
                last = int(files[-1].name.split("-")[0]) if files else 0
                for path in files[:-100]:  # as a reader does who is done with them
                    path.unlink()
        process.terminate()
        if process.wait():
            sys.exit("the pipeline of many epochs failed")
        pipeline.write_text(text.format(1) + sinks)
        return command

    def memory(self, seconds=600):
        """RssAnon of a run, sampled each second: its peak in each tenth of the time."""
        self.clean()
        command = self.weir("m", "{type: generator, rows: 0, rate: 100000}", "{type: file, path: ./out/lake}", interval="1s")
        process = subprocess.Popen(command)
        samples = []
        try:
            for _ in range(seconds):
                time.sleep(1)
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                samples.append(int(status.split("RssAnon:")[1].split()[0]) / 1024)
        finally:
            process.terminate()
            process.wait()
        tenth = max(1, len(samples) // 10)
        peaks = [max(samples[i : i + tenth]) for i in range(0, len(samples), tenth)]
        print(f"\nRssAnon over {seconds} s, MiB, peak of each tenth: " + " ".join(f"{p:.1f}" for p in peaks))


NAMES = ["ipc-blackhole", "ipc-parquet", "partitions", "csv-blackhole", "ndjson-blackhole", "ipc-csv", "ipc-ndjson", "ndjson-parquet", "epochs", "syncs", "start", "push", "coordinator", "spool"]
ON_DEMAND = ["postgres", "memory", "many-partitions", "recovery"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES + ON_DEMAND))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--cpus", type=int, default=1, help="how many CPUs each process may use")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for data and output; default a temporary one")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(NAMES + ON_DEMAND)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES + ON_DEMAND)}")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    cpus = set(sorted(os.sched_getaffinity(0))[: arguments.cpus])
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(folder, arguments.rows, arguments.rounds, cpus)
        for name in arguments.names or NAMES:
            getattr(bench, name.replace("-", "_"))()


if __name__ == "__main__":
    main()
