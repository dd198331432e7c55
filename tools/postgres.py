#!/usr/bin/env python3
"""A PostgreSQL server of a test's own: made, started, and gone when whoever asked for it is.

  tools/postgres.py serve      prints the URI of its database once it answers, serves until its standard
                               input ends, then stops and removes all of it

The binaries are the distribution's. The server listens on a Unix socket in a private folder, so no two of
them can meet. initdb refuses root: as root the server runs as user postgres, else as whoever calls. Role
`locked` has the password "s3cr3t-%&-word" and needs it; every other role is let in without.
"""

import ctypes
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

PASSWORD = "s3cr3t-%&-word"
# Durability is the server's own affair; what is tested is what a client makes of its answers.
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "log_min_messages": "warning",
}


def binaries():
    """The folder of the newest initdb there is."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: float(p.parts[-3]))
    if found:
        return found[-1].parent
    name = shutil.which("initdb")
    if not name:
        sys.exit("PostgreSQL's initdb is missing; './dev setup --test' installs it")
    return pathlib.Path(name).parent


class Server:
    def __init__(self):
        self.bin = binaries()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-pg-"))
        self.data = self.folder / "data"
        self.process = None
        self.options = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.uri = f"postgresql:///postgres?host={self.folder}&user=postgres"
        self.settings = dict(SETTINGS)
        self.env = None

    def call(self, *command, **options):
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, cwd=self.folder, **self.options, **options
        )
        if done.returncode:
            raise RuntimeError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def speak_tls(self):
        """Before start(): also on a port of 127.0.0.1, with TLS alone, under a certificate for db.example that an
        authority of its own has signed. Returns the port; the authority is `ca.crt` in its folder."""
        new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj")
        self.call("openssl", *new, "/CN=authority", "-x509", "-days", "2", "-keyout", "ca.key", "-out", "ca.crt")
        self.call("openssl", *new, "/CN=db.example", "-keyout", "server.key", "-out", "server.csr")
        (self.folder / "names").write_text("subjectAltName=DNS:db.example\n")
        sign = ("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial")
        self.call("openssl", *sign, "-days", "2", "-extfile", "names", "-out", "server.crt")
        with open(self.data / "pg_hba.conf", "a") as rules:
            rules.write("hostssl all locked 127.0.0.1/32 scram-sha-256\nhostssl all all 127.0.0.1/32 trust\n")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        files = {"ssl_cert_file": self.folder / "server.crt", "ssl_key_file": self.folder / "server.key"}
        self.settings.update(listen_addresses="127.0.0.1", port=port, ssl="on", **files)
        self.uri += f"&port={port}"
        return port

    def make(self, start=True):
        self.call(
            self.bin / "initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"
        )
        (self.data / "pg_hba.conf").write_text("local all locked scram-sha-256\nlocal all all trust\n")
        if not start:
            return
        self.start()
        self.add_role()

    def add_role(self):
        self.sql(f"create role locked login password '{PASSWORD}'; grant create on database postgres to locked")

    def start(self):
        """Returns when it answers."""
        settings = [f"-c{name}={value}" for name, value in self.settings.items()]
        command = [self.bin / "postgres", "-D", self.data, "-k", self.folder, *settings]
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self.env,
                # Whoever started it may be killed: PR_SET_PDEATHSIG, prctl(2).
                preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGQUIT),
                **self.options,
            )
        for _ in range(600):
            ready = [self.bin / "pg_isready", "-q", "-t", "1", "-h", self.folder, "-p", self.settings.get("port", 5432)]
            if subprocess.run([str(part) for part in ready], **self.options).returncode == 0:
                return
            if self.process.poll() is not None:
                break
            # pg_isready has no way to wait for a server that is not there yet.
            try:
                self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        raise RuntimeError(f"the server does not start:\n{(self.folder / 'log').read_text()}")

    def stop(self, how=signal.SIGINT):
        """SIGINT: a fast shutdown; SIGQUIT: an immediate one, as after a crash."""
        if self.process:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None

    def sql(self, text, uri=None):
        """Each row of the last statement as a line, its columns separated by |."""
        return self.call(self.bin / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", uri or self.uri, "-c", text).strip()

    def remove(self):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    if sys.argv[1:] != ["serve"]:
        sys.exit(__doc__)
    # Whoever asked ends it by closing the pipe, also by dying; a terminal's ^C is for that one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = Server()
    try:
        server.make()
        print(server.uri, flush=True)
        sys.stdin.read()
    finally:
        server.remove()


if __name__ == "__main__":
    main()
