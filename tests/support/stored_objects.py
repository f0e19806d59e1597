"""The objects of an ObjectService: those of a directory on disk, as it is at each request, and those that a test or a
client puts into memory, which hide the former. A name is a path without a slash at its beginning.

The ETag of an object in memory is the MD5 of its content, as that of a bucket; of a file it is made of inode, length and
time of the last change in nanoseconds, so that each replacement has another one.
"""

import bisect
import dataclasses
import hashlib
import io
import itertools
import os
import threading
import time

from service_messages import FilePart


@dataclasses.dataclass
class Stored:
    """One state of an object."""

    length: int
    etag: str  # without quotes
    modified: int  # seconds since 1970
    content: bytes = None  # None: in a file
    path: str = None
    version: str = None
    file: io.BufferedReader = None
    metadata: dict = dataclasses.field(default_factory=dict)  # headers x-amz-meta-*

    def part(self, begin, length):
        """The body of an answer."""
        if self.content is not None:
            return self.content[begin : begin + length]
        return FilePart(self.file, begin, length)

    def close(self):
        if self.file is not None:
            self.file.close()


def stored_file(path, is_opened):
    try:
        file = open(path, "rb") if is_opened else None
        status = os.fstat(file.fileno()) if file else os.stat(path)
    except OSError:
        return None
    tag = hashlib.md5(f"{status.st_ino} {status.st_size} {status.st_mtime_ns}".encode()).hexdigest()
    return Stored(status.st_size, tag, int(status.st_mtime), path=path, file=file)


def in_order(name):
    """The key by which names are sorted: a bucket's order is that of their bytes."""
    return name.encode("utf-8", "surrogateescape")


class StoredObjects:
    """Thread-safe. Files are never changed: an object that is deleted or put hides its file."""

    def __init__(self, directory=None, is_versioned=False):
        self.directory = directory
        self.is_versioned = is_versioned
        self.lock = threading.RLock()
        self.states = {}  # name -> states, the newest last; None: deleted
        self.order = None  # the names in memory, sorted, until one is put
        self.uploads = {}  # id -> (name, {number: (etag, content)}, metadata)
        self.numbers = itertools.count(1)

    def put(self, name, content, modified=None, etag=None, metadata=None):
        """Replaces an object. `modified`: seconds since 1970, now by default."""
        stored = Stored(len(content), etag or hashlib.md5(content).hexdigest(), int(time.time() if modified is None else modified),
                        bytes(content), metadata=dict(metadata or {}))
        with self.lock:
            if self.is_versioned:
                stored.version = f"version{next(self.numbers):06}"
            self.add(name, stored)
        return stored

    def delete(self, name):
        with self.lock:
            self.add(name, None)

    def add(self, name, state):
        if name not in self.states:
            self.order = None
        kept = self.states.get(name, []) if self.is_versioned else []
        self.states[name] = [*kept, state]

    def path_of(self, name):
        """The file of an object, if the name can be that of one."""
        parts = name.split("/")
        if self.directory is None or "\0" in name or any(part in ("", ".", "..") for part in parts):
            return None
        return os.path.join(self.directory, name)

    def find(self, name, version=None, is_opened=True):
        """The state of an object; None if there is none. A file is open if `is_opened`, and is closed with its body."""
        with self.lock:
            states = self.states.get(name)
        if states is not None:
            if version is not None:
                return next((state for state in states if state is not None and state.version == version), None)
            return states[-1]
        path = self.path_of(name)
        if version is not None or path is None or not os.path.isfile(path):
            return None
        return stored_file(path, is_opened)

    def names_in_memory(self, prefix):
        with self.lock:
            if self.order is None:
                self.order = sorted(self.states, key=in_order)
            begin = bisect.bisect_left(self.order, in_order(prefix), key=in_order)
            found = itertools.takewhile(lambda name: name.startswith(prefix), itertools.islice(self.order, begin, None))
            return {name: self.states[name][-1] for name in found}

    def names(self, prefix=""):
        """The names of all objects with this prefix, in the order of a bucket: that of their bytes."""
        found = self.names_in_memory(prefix)
        names = {name for name, state in found.items() if state is not None}
        top = self.path_of(prefix.rpartition("/")[0]) if "/" in prefix else self.directory
        for where, _, files in os.walk(top) if top else ():
            below = os.path.relpath(where, self.directory)
            for file in files:
                name = file if below == "." else f"{below}/{file}"
                if name.startswith(prefix) and name not in found:
                    names.add(name)
        return sorted(names, key=in_order)

    def entries(self, directory):
        """What a web server lists of a directory ("" or a name with a slash at its end): [(name, state; None for a
        directory)]; None if there is no such directory."""
        found = {}
        path = self.directory if not directory else self.path_of(directory[:-1])
        is_there = path is not None and os.path.isdir(path)
        if is_there:
            with os.scandir(path) as entries:
                for entry in entries:
                    found[entry.name] = None if entry.is_dir() else stored_file(entry.path, False)
        for name, state in self.names_in_memory(directory).items():
            first, slash, _ = name[len(directory) :].partition("/")
            if state is None:
                if not slash:
                    found.pop(first, None)
                continue
            is_there = True
            if first and (slash or found.get(first, state) is not None):
                found[first] = None if slash else state
        return sorted(found.items(), key=lambda entry: in_order(entry[0])) if is_there or not directory else None
