"""The base of tests that write: each thing is done in a mount and to a plain file, and both are compared, also after the
source has been mounted again."""

import ctypes
import os
import random
import tempfile
import unittest

import mounting
from mounting import Mount, output

SAMPLE = "matrix/000-blosclz-c1-none-t3.b2frame"
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
LIBC = ctypes.CDLL(None, use_errno=True)


def rename2(one, other, flags):
    if LIBC.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), flags) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def some_bytes(count, seed=1):
    chance = random.Random(seed)
    return b"".join(chance.choice((bytes(1000), chance.randbytes(1000), b"text, " * 166)) for _ in range(count // 1000 + 1))[:count]


class Writing(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-writing-")
        self.addCleanup(work.cleanup)
        self.source = work.name + "/source"
        self.plain = work.name + "/plain"
        for directory in (self.source, self.plain):
            os.mkdir(directory)
        self.options = ["chunksize=64K"]

    def mount(self, *options):
        mount = Mount(self.source, *self.options, *options)
        self.addCleanup(lambda: mount.log is not None and mount.close())
        return mount

    def in_both(self, mount, command):
        for directory in (mount.path, self.plain):
            output("sh", "-ec", f"cd '{directory}'; {command}")

    def check_same(self, mount):
        """Now, after another mount, and for `cframe verify`."""
        output("diff", "-r", mount.path, self.plain)
        said = mount.lines()
        mount.close()
        self.assertEqual(said, [])
        with Mount(self.source, "ro") as again:
            output("diff", "-r", again.path, self.plain)
        output(mounting.CFRAME, "verify", self.source)

    def assert_refused(self, why, call, *arguments):
        with self.assertRaises(OSError) as refused:
            call(*arguments)
        self.assertEqual(refused.exception.errno, why)
