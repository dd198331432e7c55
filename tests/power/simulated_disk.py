"""A disk that loses its power. It is told what a process did (recorder.c) and gives back what may lie there
afterwards. docs/protocol.md, "The simulated disk", says what it takes for granted; all else may happen.
"""

import dataclasses
import os
import struct

RECORD = struct.Struct("<IIIIQQQQ")
CREATE, MKDIR, WRITE, TRUNCATE, LINK, UNLINK, RENAME, SYNC_BEGIN, SYNC_END = range(1, 10)
RUN = 100  # a process begins; in no log


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    kind: int
    inode: int = 0
    folder: int = 0
    new_folder: int = 0
    offset: int = 0
    name: str = ""
    new_name: str = ""
    data: bytes = b""


def read_log(path):
    """The records of one process. The last one may be cut off: it was killed."""
    log, at, records = path.read_bytes(), 0, []
    while at + RECORD.size <= len(log):
        kind, name, new_name, data, inode, folder, new_folder, offset = RECORD.unpack_from(log, at)
        at += RECORD.size
        names = log[at : at + name].decode(), log[at + name : at + name + new_name].decode()
        at += name + new_name
        records.append(Record(kind, inode, folder, new_folder, offset, *names, log[at : at + data]))
        at += data
    return records


class File:
    def __init__(self, path, durable=b""):
        self.path, self.durable, self.pending = path, bytearray(durable), []

    def put(self, content, change, part=slice(None)):
        at = change.record.offset + (part.start or 0)
        data = change.record.data[part]
        if len(content) < at:
            content.extend(bytes(at - len(content)))
        content[at : at + len(data)] = data

    def apply(self, content, change):
        if change.record.kind == TRUNCATE:
            size = change.record.offset
            del content[size:]
            content.extend(bytes(size - len(content)))
        else:
            self.put(content, change)

    def content(self):
        content = bytearray(self.durable)
        for change in self.pending:
            self.apply(content, change)
        return content

    def sync(self, since):
        while self.pending and self.pending[0].number < since:
            self.apply(self.durable, self.pending.pop(0))


class Folder:
    def __init__(self, path):
        self.path, self.durable, self.now, self.pending = path, {}, {}, []

    def set(self, change):
        self.pending.append(change)
        self.apply(self.now, change)

    def apply(self, entries, change):
        if change.node is None:
            entries.pop(change.name, None)
        else:
            entries[change.name] = change.node

    def settle(self, name, since):
        """Makes the changes of one name durable, those before number `since`."""
        for change in [c for c in self.pending if c.name == name and c.number < since]:
            self.pending.remove(change)
            self.apply(self.durable, change)

    def sync(self, since):
        done = [change for change in self.pending if change.number < since]
        self.pending = self.pending[len(done) :]
        for change in done:
            self.apply(self.durable, change)
        for change in done:
            if change.moved_to is not None:  # a rename never loses both names
                change.moved_to.settle(change.new_name, change.number + 1)


@dataclasses.dataclass(eq=False, slots=True)
class Change:
    """What a sync has not covered yet: a write or truncate of a file, or a name in a folder set or removed."""

    number: int
    place: object  # the file or folder
    record: Record = None
    name: str = ""
    node: object = None
    moved_to: object = None  # the folder of the new name, in the half of a rename that removes the old one
    new_name: str = ""


class Disk:
    def __init__(self, root=None, ignored_sync=lambda disk, node: False):
        """`root` is an existing folder; all in it is durable. ignored_sync(disk, node) says that a sync is to
        have no effect, as if weir had not asked for it."""
        self.number = self.run_began = 0
        self.syncs, self.nodes, self.ignored_sync = {}, {}, ignored_sync
        self.root = self.scan(root, "") if root else None

    @staticmethod
    def empty(inode, ignored_sync):
        """An empty folder that had this inode when it was recorded."""
        disk = Disk(None, ignored_sync)
        disk.root = disk.nodes[inode] = Folder("")
        return disk

    def scan(self, path, name):
        info = os.lstat(path)
        if not os.path.isdir(path):
            if info.st_ino not in self.nodes:
                with open(path, "rb") as file:
                    self.nodes[info.st_ino] = File(name, file.read())
            return self.nodes[info.st_ino]
        folder = self.nodes[info.st_ino] = Folder(name)
        for entry in os.listdir(path):
            folder.durable[entry] = self.scan(os.path.join(path, entry), f"{name}/{entry}")
        folder.now = dict(folder.durable)
        return folder

    def name(self, folder, name, node, **moved):
        folder.set(Change(self.number, folder, None, name, node, **moved))
        if node is not None:
            node.path = f"{folder.path}/{name}"

    def play(self, record):
        self.number += 1
        kind, folder = record.kind, self.nodes.get(record.folder)
        if kind == RUN:
            self.run_began, self.syncs = self.number, {}
        elif kind in (CREATE, MKDIR) and folder:
            node = self.nodes[record.inode] = File("") if kind == CREATE else Folder("")
            self.name(folder, record.name, node)
        elif kind in (WRITE, TRUNCATE) and record.inode in self.nodes:
            file = self.nodes[record.inode]
            file.pending.append(Change(self.number, file, record))
        elif kind == LINK and folder:
            self.name(folder, record.name, self.nodes[record.inode])
        elif kind == UNLINK and folder:
            self.name(folder, record.name, None)
        elif kind == RENAME and folder:
            to, node = self.nodes[record.new_folder], folder.now[record.name]
            self.name(folder, record.name, None, moved_to=to, new_name=record.new_name)
            self.name(to, record.new_name, node)
        elif kind == SYNC_BEGIN and record.inode in self.nodes:
            node = self.nodes[record.inode]
            if not self.ignored_sync(self, node):
                self.syncs[record.offset] = node, self.number
        elif kind == SYNC_END and record.offset in self.syncs:
            node, since = self.syncs.pop(record.offset)
            node.sync(since)

    def pending(self):
        """All changes that a power cut may undo."""
        nodes = {id(node): node for node in self.nodes.values()}
        return sorted((c for node in nodes.values() for c in node.pending), key=lambda c: c.number)

    def tree(self):
        """What lies there without one."""

        def of(node):
            if isinstance(node, File):
                return File(node.path, node.content())
            return {name: of(child) for name, child in node.now.items()}

        return of(self.root)


STYLES = (
    *("lost", "kept", "coins", "biased", "names", "data", "journal", "newest lost"),
    *("one lost", "one kept", "place lost", "place kept"),
)


class PowerCut:
    """tree: what lies there after a power cut, {name: dict or File}; a File that is in it twice has two names."""

    def __init__(self, disk, rng, style=None):
        self.rng, self.style, self.files = rng, style or rng.choice(STYLES), {}
        self.sector = rng.choice((512, 4096))
        self.tears, self.garbage = rng.random() < 0.5, rng.random() < 0.2
        pending = disk.pending()
        self.one = rng.choice(pending) if pending else None
        places = list({id(change.place): change.place for change in pending}.values())
        self.one_place = rng.choice(places) if places else None
        # Near the cut, where what is pending matters most.
        self.border = rng.randint(max(disk.number - 40, 0), disk.number) if pending else 0
        self.names_kept, self.data_kept = rng.random(), rng.random()
        self.entries, self.chosen = {}, set()
        self.choose_entries(disk.root)
        self.tree = self.folder(disk.root)

    def keeps(self, change, is_name):
        style, coin = self.style, self.rng.random()
        if style in ("lost", "kept"):
            return style == "kept"
        if style == "coins":
            return coin < 0.5
        if style == "biased":
            return coin < (self.names_kept if is_name else self.data_kept)
        if style in ("names", "data"):
            return is_name == (style == "names")
        if style == "journal":  # names come to the disk in order, bytes as they like
            return change.number < self.border if is_name else coin < self.data_kept
        if style == "newest lost":
            return change.number < self.border
        if style in ("place lost", "place kept"):
            return (change.place is self.one_place) == (style == "place kept")
        return (change is self.one) == (style == "one kept")

    def choose_entries(self, folder):
        """Each name is as one of its changes left it. A rename never loses both names."""
        self.chosen.add(id(folder))
        kept = [change for change in folder.pending if self.keeps(change, True)]
        entries = self.entries.setdefault(id(folder), (dict(folder.durable), {}))
        for change in kept:
            self.keep_entry(folder, entries, change)
        for name, node in {**folder.now, **folder.durable}.items():
            if isinstance(node, Folder) and id(node) not in self.chosen:
                self.choose_entries(node)

    def keep_entry(self, folder, entries, change):
        names, newest = entries
        if newest.get(change.name, 0) > change.number:
            return
        newest[change.name] = change.number
        folder.apply(names, change)
        if change.moved_to is not None:
            to = change.moved_to
            others = self.entries.setdefault(id(to), (dict(to.durable), {}))
            for other in to.pending:
                if other.name == change.new_name and other.number == change.number:
                    self.keep_entry(to, others, other)

    def folder(self, folder):
        tree = {}
        for name, node in self.entries[id(folder)][0].items():
            tree[name] = self.folder(node) if isinstance(node, Folder) else self.file(node)
        return tree

    def file(self, file):
        if id(file) not in self.files:
            self.files[id(file)] = File(file.path, self.bytes_of(file))
        return self.files[id(file)]

    def bytes_of(self, file):
        rng, sector = self.rng, self.sector
        if file.path.endswith("-shm"):  # written through a mapping: anything
            return rng.randbytes(len(file.content())) if rng.random() < 0.7 else b""
        # Each sector is as one of the writes to it left it, with all before that one.
        newest = {}
        for i, change in enumerate(file.pending):
            kept = self.keeps(change, False)
            if change.record.kind == TRUNCATE:
                newest[i, "truncate"] = kept
                continue
            first = change.record.offset // sector
            for s in range(first, (change.record.offset + len(change.record.data) - 1) // sector + 1):
                if self.keeps(change, False) if self.tears else kept:
                    newest[s] = i
        content, now, sizes = bytearray(file.durable), bytearray(file.durable), [len(file.durable)]
        for i, change in enumerate(file.pending):
            file.apply(now, change)
            sizes.append(len(now))
            if change.record.kind == TRUNCATE:
                if newest[i, "truncate"]:
                    file.apply(content, change)
                continue
            self.put_sectors(file, content, i, change, newest)
        if not file.pending or self.style == "kept":
            return content
        # The size is metadata, and may be older or newer than the bytes.
        if rng.random() < 0.3:
            size = rng.choice(sizes)
            del content[size:]
            more = size - len(content)
            content.extend(rng.randbytes(more) if self.garbage else bytes(more))
        return content

    def put_sectors(self, file, content, i, change, newest):
        at, end = change.record.offset, change.record.offset + len(change.record.data)
        while at < end:
            s = at // self.sector
            stop = min(end, (s + 1) * self.sector)
            if newest.get(s, -1) >= i:
                if newest[s] == i and self.tears and self.rng.random() < 0.1:
                    torn = self.rng.randint(at, stop)
                    file.put(content, change, slice(at - change.record.offset, torn - change.record.offset))
                else:
                    file.put(content, change, slice(at - change.record.offset, stop - change.record.offset))
            at = stop


def write_tree(tree, path, made=None):
    """Makes the folder `path` of a tree."""
    made = {} if made is None else made
    os.mkdir(path)
    for name, node in tree.items():
        there = os.path.join(path, name)
        if isinstance(node, dict):
            write_tree(node, there, made)
        elif id(node) in made:
            os.link(made[id(node)], there)
        else:
            made[id(node)] = there
            with open(there, "wb") as file:
                file.write(node.durable)
