"""A secret of the configuration, wherever it is written and however it gets there, is in no byte that weir
leaves or says: store, target, output of every command, arguments of the process."""

import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import postgres

OPTION = ".text = \"The file that lines are added to.\"},\n"
SECRETS = '{.name = "password", .type = WEIR_OPT_STRING, .flags = WEIR_OPT_SECRET, .text = "x"},'
SECRETS += '{.name = "uri", .type = WEIR_OPT_STRING, .flags = WEIR_OPT_SECRET, .text = "x"},'
URI = "postgres://user:{}@host/db"


@pytest.fixture(scope="module")
def plugin(prefix, tmp_path_factory):
    """The example's sink with two options that are secrets."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(ROOT / "examples/sink-c", folder, dirs_exist_ok=True)
    text = (folder / "append_lines.c").read_text()
    assert OPTION in text
    (folder / "append_lines.c").write_text(text.replace(OPTION, OPTION + SECRETS))
    (pc,) = prefix.rglob("weir.pc")
    subprocess.run(["make", "-s"], cwd=folder, env={**os.environ, "PKG_CONFIG_PATH": str(pc.parent)}, check=True)
    return folder / "weir-append-lines.so"


@pytest.fixture(scope="module")
def server():
    server = postgres.Server()
    try:
        server.make()
        yield server
    finally:
        server.remove()


class Place:
    def __init__(self, folder, binary):
        self.token = "q" + secrets.token_hex(12)
        self.binary, self.conf, self.work = binary, folder / "conf", folder / "work"
        self.conf.mkdir()
        self.work.mkdir()
        self.env = {**os.environ, "PLANTED": self.token, "PLANTED_URI": URI.format(self.token)}

    def written(self, how, text):
        """`text`, which holds the token, as a value of the configuration."""
        if how == "file":
            path = self.conf / f"secret-{len(list(self.conf.iterdir()))}"
            path.write_text(text)
            path.chmod(0o600)
            return f"file:{path}"
        return text.replace(self.token, "${PLANTED}") if how == "variable" else text

    def configure(self, text):
        (self.conf / "p.yaml").write_text(text)

    def weir(self, verb, *arguments):
        command = [self.binary, verb, *arguments]
        done = subprocess.run(command, cwd=self.conf, env=self.env, capture_output=True, text=True, timeout=120)
        assert self.token not in done.stdout + done.stderr, f"{verb} shows it: {done.stdout}{done.stderr}"
        return done

    def kill_a_run(self):
        """Killed when it has committed."""
        command = [self.binary, "run", "p.yaml", "--log-level", "debug", "--set", "sources.g.rows=1000000000"]
        process = subprocess.Popen(command, cwd=self.conf, env=self.env, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        limit = time.monotonic() + 60
        while not list(self.work.glob("lake/*.parquet")) and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.01)
        arguments = pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes()
        process.kill()
        out, err = process.communicate()
        assert process.returncode == -signal.SIGKILL, err
        assert self.token.encode() not in arguments + out + err

    def search(self):
        files = [path for path in self.work.rglob("*") if path.is_file()]
        assert len(files) > 1
        for path in files:
            assert self.token.encode() not in path.read_bytes() + str(path).encode(), f"{path} holds it"


@pytest.fixture
def place(tmp_path, prefix):
    return Place(tmp_path, prefix / "bin/weir")


@pytest.mark.parametrize(
    "store, how", [("sqlite", "plain"), ("sqlite", "file"), ("postgres", "plain"), ("postgres", "variable"), ("postgres", "file")]
)
def test_no_byte_holds_it(store, how, place, plugin, request):
    top = "state: ../work/state"
    if store == "postgres":
        server = request.getfixturevalue("server")
        server.sql(f"alter role locked password '{place.token}'")
        server.sql(f"create database secret_{how} owner locked")
        top = f"store: '{place.written(how, f'postgresql://locked:{place.token}@/secret_{how}?host={server.folder}')}'\nstore_lease: 1s"
    password, uri = place.written(how, place.token), place.written(how, URI.format(place.token))
    append = f"password: '{password}', uri: '{uri}'"
    shared = ", shared: true" if store == "postgres" else ""
    place.configure(
        f"pipeline: secrets\n{top}\nguarantee: at_least_once\ncheckpoint: {{interval: 20ms}}\n"
        "sources:\n  g: {type: generator, rows: 20000, schema: {n: int64, word: utf8}}\n"
        f"sinks:\n  lines: {{type: {plugin}, path: ../work/lines, {append}}}\n"
        f"  lake: {{type: file, path: ../work/lake{shared}}}\n"
    )
    place.kill_a_run()
    if store == "postgres":
        server.sql("update weir.lease set expires = '-infinity'", server.uri.replace("/postgres?", f"/secret_{how}?"))
    for verb in ("check", "status", "verify", "clean", "recover"):
        for more in ([], ["--json"], ["--log-level", "debug", "--log-format", "json"]):
            done = place.weir(verb, "p.yaml", *more)
            assert done.returncode == 0, done.stdout + done.stderr
    done = place.weir("run", "p.yaml", "--set", "sources.g.rows=1", "--log-level", "debug")
    assert done.returncode == 0, done.stderr
    (place.conf / "conform.yaml").write_text(f"path: ../work/kit\n{append.replace(', ', chr(10))}\n")
    for more in ([], ["--json"]):
        done = place.weir("conform", plugin, "--config", "conform.yaml", "--only", "secrets", *more)
        assert done.returncode in (0, 1) and "no secret stands in" in done.stdout, done.stdout + done.stderr
    if store == "postgres":
        assert place.token not in server.call(server.bin / "pg_dump", server.uri.replace("/postgres?", f"/secret_{how}?"))
    place.search()


GOOD = {
    "pipeline": "a",
    "store": None,
    "state": "../work/state",
    "source": "type: generator, rows: 10",
    "sink": "type: blackhole",
}
WRONG = [
    {"sink": "type: blackhole, password: X"},
    {"sink": "type: blackhole, from: [X]"},
    {"sink": "type: X"},
    {"sink": "type: file, path: X"},
    {"sink": "type: file, path: ../work/x, writers: X"},
    {"sink": "type: file, path: ../work/x, format: X"},
    {"sink": "type: file, path: ../work/x, partition_by: X"},
    {"source": "type: file, format: ndjson, path: X"},
    {"source": "type: generator, rows: X"},
    {"source": "type: generator, schema: {a: X}"},
    {"pipeline": "X"},
    {"state": "X"},
    {"store": "[X]"},
    {"store": "{uri: X}"},
    {"store": "X"},
    {"store": "postgres://u:TOKEN@127.0.0.1:1/db"},
    {"store": "postgres://u:TOKEN@127.0.0.1:none/db"},
    {"store": "postgres://u:TOKEN@127.0.0.1:1/db?passwurd=TOKEN"},
    {"store": "postgres://u:TOKEN@[bad"},
    {"store": "mysql://u:TOKEN@127.0.0.1:1/db"},
    {"store": "host=127.0.0.1 password=TOKEN"},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
@pytest.mark.parametrize("value", ["'URI'", "'${PLANTED_URI}'"])
def test_no_error_repeats_it(value, wrong, place):
    place.env["PLANTED_URI"] = URI.format(place.token).replace("@host", "@127.0.0.1:1")
    texts = {name: text.replace("X", value) for name, text in {**GOOD, **wrong}.items() if text}
    place.configure(
        f"pipeline: {texts['pipeline']}\n"
        + (f"store: {texts['store']}\n" if "store" in texts else f"state: {texts['state']}\n")
        + f"guarantee: best_effort\nsources: {{g: {{{texts['source']}}}}}\nsinks: {{o: {{{texts['sink']}}}}}\n"
    )
    path = place.conf / "p.yaml"
    path.write_text(path.read_text().replace("URI'", f"{URI.format(place.token)}'").replace("TOKEN", place.token))
    codes = [place.weir(verb, "p.yaml", *more).returncode for verb in ("check", "run") for more in ([], ["--json"])]
    assert 0 not in codes[2:]
