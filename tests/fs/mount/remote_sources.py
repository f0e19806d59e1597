"""The bases of tests that mount what lies on a server: mounts of addresses, without anything that the user's own
environment says of servers and credentials; an ObjectService, mounted as a web server and as a bucket; and the comparison
of the golden corpora with what a disk shows.

The service runs in threads of the test program, so a test must not wait for the mount while it holds Python's lock: files
of a mount are not mapped here.
"""

import errno
import functools
import os
import random
import re
import sys
import tempfile
import time
import unittest
import urllib.parse

import mounting
from mounting import Mount, pread, run
from sparse_frames import make_sparse_frame

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))

# pylint: disable=wrong-import-position
from object_service import ObjectService, round_trips  # noqa: E402
from sigv4_check import Key  # noqa: E402

KEY, SECRET = "AKIDOFTHESETESTS", "Secret/of+these=tests/0123456789abcdef"
MIB = 1 << 20
MOST_FILES = 150

for variable in list(os.environ):
    if variable.startswith("AWS_") or variable.lower().endswith("_proxy") or variable == "NETRC":
        del os.environ[variable]


def outcome(function, *arguments):
    """What a call returns, or the name of its error."""
    try:
        return function(*arguments)
    except OSError as error:
        # Python's name of this number is ENOTSUP.
        return "error " + ("EOPNOTSUPP" if error.errno == errno.EOPNOTSUPP else errno.errorcode[error.errno])


def is_error(answer):
    return isinstance(answer, str) and answer.startswith("error ")


def whole(path):
    with open(path, "rb") as file:
        return file.read()


@functools.lru_cache(maxsize=2)
def noise(seed, size):
    """Bytes that no codec makes shorter, so that a frame of them is as long."""
    return random.Random(seed).randbytes(size)


def attributes(path):
    return {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith("user.")}


def facts(path):
    """What a program finds out about a file: its size before the first read, its attributes, its bytes."""
    size = outcome(lambda: os.stat(path).st_size)
    found = [size, outcome(attributes, path)]
    if is_error(size) or size < MIB:
        return found + [outcome(whole, path)]
    return found + [outcome(pread, path, at, 1 << 16) for at in (0, size // 2 & ~4095, size - (1 << 16), size)]


def tree(directory):
    """[(directory, names of directories, names of files)] of all that is shown, without looking at any file."""
    listed = []

    def fail(error):
        raise error

    for where, directories, files in os.walk(directory, onerror=fail):
        listed.append((os.path.relpath(where, directory), sorted(directories), sorted(files)))
    return sorted(listed)


class Remote(unittest.TestCase):
    """Mounts of addresses. `service`: what serves the buckets, if there are any."""

    service = None
    credentials = {}

    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-remote-")
        self.addCleanup(work.cleanup)
        self.work = os.path.realpath(work.name)
        self.mountpoint = self.work + "/mnt"
        self.home = self.work + "/home"
        for directory in (self.mountpoint, self.home):
            os.mkdir(directory)

    def environment(self, **more):
        """What a program has in its environment, beside ours."""
        return {"HOME": self.home, "AWS_EC2_METADATA_DISABLED": "true", **self.credentials, **more}

    def all_options(self, address, options):
        """The options of a mount: those of the service first, which the others may replace."""
        place = (f"endpoint={self.service.url()}", "region=us-east-1") if address.startswith("s3://") else ()
        return (*place, *options)

    def mount(self, address, *options, environment=None, **how):
        mount = Mount(address, *self.all_options(address, options), environment=self.environment(**(environment or {})), **how)
        if mounting.has_sandbox() and "before" not in how and not any(option.startswith("sandbox=") for option in options):
            self.assertEqual((mount.status("NoNewPrivs"), mount.status("Seccomp")), (1, 2))
        return mount

    def packed(self, content, *options):
        """The bytes of a frame that has this content."""
        plain, frame = self.work + "/plain", self.work + "/packed.b2frame"
        with open(plain, "wb") as file:
            file.write(content)
        mounting.output(mounting.CFRAME, "pack", "--force", *(options or ("--codec", "lz4")), plain, frame)
        return whole(frame)

    def put_sparse_frame(self, name, content, chunksize):
        """Serves a sparse frame of this content under the names of its directory's files."""
        directory = self.work + "/sparse"
        make_sparse_frame(directory, content, chunksize)
        for file in os.listdir(directory):
            self.service.put(f"{name}/{file}", whole(f"{directory}/{file}"))

    def refused(self, address, *options, environment=None, mountpoint=None):
        """What the program says of an address that it cannot serve: when it mounts, or when its mount is listed. Answers
        (error of the listing; None if nothing was mounted, text)."""
        log, mountpoint = self.work + "/log", mountpoint or self.mountpoint
        done = mounting.background(address, mountpoint, "log=" + log, *self.all_options(address, options),
                                   env={**os.environ, **self.environment(**(environment or {}))})
        said = done.stderr.decode(errors="replace")
        if done.returncode != 0:
            self.assertFalse(mounting.is_mounted(mountpoint))
            return None, said
        listed = outcome(os.listdir, mountpoint)
        mounting.unmount(mountpoint)
        self.assertTrue(is_error(listed), f"{address} is mounted and lists {listed}")
        with open(log, encoding="utf-8", errors="replace") as file:
            return listed, said + file.read()


class Served(Remote):
    """A service, and mounts of what it serves. `options`: of the service."""

    options = {}

    def setUp(self):
        super().setUp()
        self.service = ObjectService(**{"keys": {KEY: Key(SECRET)}, **self.options})
        self.service.start()
        self.addCleanup(self.service.stop)
        self.credentials = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}

    def web(self, path=""):
        return self.service.url("/web/" + urllib.parse.quote(path))

    @staticmethod
    def bucket(path=""):
        return "s3://bucket/" + path

    def addresses(self, path=""):
        return self.web(path), self.bucket(path)

    def place(self, **more):
        """The environment of cframe, which finds the service by it."""
        return {**os.environ, **self.environment(AWS_ENDPOINT_URL=self.service.url(), AWS_REGION="us-east-1", **more)}

    def cframe(self, *arguments, **more):
        return run(mounting.CFRAME, *arguments, env=self.place(**more), cwd=self.work)

    def done(self, *arguments):
        ran = self.cframe(*arguments)
        self.assertEqual((ran.returncode, ran.stderr), (0, b""), arguments)
        return ran.stdout

    def round_trips_of(self, mount, read):
        """(What `read` returns, the round trips that it takes.) A request that is sent again because its answer is late,
        as on a busy machine, is not one more. `mount`: with stats=on."""
        hedges = mount.statistics()["server_hedges"]
        self.service.clear_log()
        data = read()
        trips = round_trips(self.service.log, until=time.monotonic())
        return data, trips - (mount.statistics()["server_hedges"] - hedges)

    def objects(self, pattern=""):
        """The requests for objects so far, without those for listings and, unless the pattern names it, for the index,
        which stands for listings."""
        return [request for request in self.service.log if not request.is_listing and pattern in request.name
                and (pattern or not request.name.endswith(".cframefs-index"))]


def kind(path):
    """What a golden file is there for: its directory, or of a legacy file what its name begins with."""
    where, name = os.path.split(path)
    return where if where != "legacy" else "legacy/" + re.match("[a-z0-9]*(?:-[a-z]*)?", name)[0]


def some_of_each_kind(paths):
    """The first file of each kind, and of the others every so often one."""
    if os.environ.get("REMOTE_GOLDEN") == "all":
        return paths
    first = {}
    for path in paths:
        first.setdefault(kind(path), path)
    others = [path for path in paths if path not in first.values()]
    step = -(-len(others) // max(1, MOST_FILES - len(first)))
    return sorted([*first.values(), *others[::step]])


class ComparedWithDisk(unittest.TestCase):
    """The golden corpora by way of a disk, and the comparison with what another mount shows. With a Remote."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with Mount(mounting.GOLDEN, "ro") as mount:
            cls.tree = tree(mount.path)
            paths = [os.path.normpath(os.path.join(where, name)) for where, _, files in cls.tree for name in files]
            cls.facts = {path: facts(mount / path) for path in some_of_each_kind(paths)}

    def check(self, address, *options):
        self.assertGreater(len(self.facts), 80)
        self.assertGreater(sum(not is_error(found[0]) for found in self.facts.values()), 60)
        with self.mount(address, *options) as mount:
            self.assertEqual(tree(mount.path), self.tree)
            for path, expected in self.facts.items():
                found = facts(mount / path)
                for what, here, there in zip(("size", "attributes", *["bytes"] * 4), expected, found):
                    with self.subTest(path, what=what):
                        # Bytes by their equality: a difference would fill the screen.
                        self.assertTrue(here == there, f"{str(there)[:200]}, on a disk {str(here)[:200]}")
