"""Which step of docs/protocol.md a sync belongs to, so that a test can take it away."""

import pathlib
import re
import sqlite3

from simulated_disk import File

# Steps without whose sync a power cut does harm.
CAUGHT = {
    "F2": "owner.json is torn",
    "F3": "the target is gone, or the store does not agree with it",
    "F4 record": "namespace.json is torn",
    "F4 names": "manifests are gone, and what they published is not",
    "F6": "a published file is torn",
    "F7": "a decided file is gone",
    "F8": "what a killed process has linked is gone, and what it published is not",
    "F9": "a manifest is torn",
    "F11": "a manifest is gone, and what it published is not",
    "F12a": "a folder is gone, and the files that were moved into it",
    "F14": "rows that were said to be delivered are gone",
    "C5": "staged files that nobody will ever remove",
    "C8": "a decision is gone, and what it published is not",
    "C15": "staged files that nobody will ever remove",
    "store made": "the store is damaged",
    "store's folders": "the store is gone",
    "store's name": "the store is gone",
    "store copied": "the store is damaged",
}
# Steps whose own sync no cut of a whole machine needs, since the next one comes before anything depends on it.
OTHERS = {
    "C1": "an owner with the same token is not alive after a power cut: against late writes to other machines",
    "C4, C12": "aborted again by the next start",
    "C10, C16": "looked up again, cleaned again",
    "binding": "pinned again; nothing was reserved yet",
    "WAL's header": "SQLite's own",
}

NAMESPACE = re.compile(r".*/\.weir/[^/]+/weir-[^/]+")


def file_step(disk, node):
    """Of the file sink. What a folder has pending tells what the sync is for."""
    path, is_file, names = node.path, isinstance(node, File), NAMESPACE.fullmatch(node.path)
    if path.endswith("/staged"):
        removed = any(change.node is None and change.moved_to is None for change in node.pending)
        return "C15" if removed and all(change.node is None for change in node.pending) else "F7"
    if path.endswith("/commits"):
        # F8 is for what another process linked.
        linked = [c.number for c in node.pending if c.node is not None and c.name.endswith(".json")]
        return "F11" if linked and max(linked) > disk.run_began else "F8"
    if is_file and "/staged/" in path:
        return "F6"
    if is_file and "/commits/" in path:
        return "F9"
    if is_file:
        return "F4 record" if NAMESPACE.match(path) else "F2"
    if names:
        return "F4 names"
    if path.startswith("/c/out/") and ".weir" not in path:
        folders = any(not isinstance(change.node, File) and change.node is not None for change in node.pending)
        return "F12a" if folders else "F14"
    return "F3"


class StoreSteps:
    """Of the store: what its rows say that they did not say at the sync before."""

    def __init__(self, folder):
        self.folder, self.before, self.run = folder, None, None

    def rows(self, disk, name):
        state = disk.root.now["a"].now["b"].now["state"].now
        copy = self.folder / "step.db"
        for tail in ("", "-wal", "-shm"):
            pathlib.Path(f"{copy}{tail}").unlink(missing_ok=True)
            if f"{name}{tail}" in state and tail != "-shm":
                pathlib.Path(f"{copy}{tail}").write_bytes(state[f"{name}{tail}"].content())
        db = sqlite3.connect(copy)
        try:
            return {
                "lease": db.execute("select token from lease").fetchall(),
                "binding": db.execute("select count(*) from binding").fetchall(),
                "attempt": dict(db.execute("select attempt, state from attempt")),
            }
        finally:
            db.close()

    def __call__(self, disk, node):
        name = pathlib.PurePath(node.path).name
        if name == "store.db.new":
            return "store made"
        if name in ("", "a", "b", "state"):
            return "store's folders" if "store.db" not in disk_state(disk) else "store's name"
        if self.run != disk.run_began:
            # The first thing a process does is to write again, and sync, what the one before it left.
            self.run, self.before = disk.run_began, None
        if name == "store.db":
            return "store copied"
        if all(change.record.offset == 0 and len(change.record.data) == 32 for change in node.pending):
            return "WAL's header"
        now, before = self.rows(disk, "store.db"), self.before
        self.before = now
        if before is None or before["lease"] != now["lease"]:
            return "C1"
        if before["binding"] != now["binding"]:
            return "binding"
        changed = {a: s for a, s in now["attempt"].items() if before["attempt"].get(a) != s}
        for state, step in ((2, "C8"), (3, "C4, C12"), (1, "C5")):
            if state in changed.values():
                return step
        return "C10, C16"


def disk_state(disk):
    entries = disk.root.now
    for name in ("a", "b", "state"):
        if name not in entries:
            return {}
        entries = entries[name].now
    return entries


class Steps:
    """steps(disk, node) names the step; it is to be asked at every sync, in their order."""

    def __init__(self, folder):
        self.folder, self.of = folder, {}

    def __call__(self, disk, node):
        if node.path.startswith("/c") or (not node.path and "c" in disk.root.now):
            return file_step(disk, node)
        return self.of.setdefault(id(disk), StoreSteps(self.folder))(disk, node)
