"""The base of tests of plain files that the kernel reads, writes and maps itself."""

import os
import random

from mounted_directory import Directory
from mounting import run

SIZE = 3 << 20
CONTENT = random.Random(7).randbytes(SIZE)


def has_passthrough():
    """Whether root's kernel has it: Linux 6.9 with CONFIG_FUSE_PASSTHROUGH, which a kernel may tell."""
    if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) < (6, 9):
        return False
    told = run("sh", "-c", "zcat /proc/config.gz 2>/dev/null || cat /boot/config-$(uname -r) 2>/dev/null").stdout
    return not told or b"CONFIG_FUSE_PASSTHROUGH=y" in told


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Plain(Directory):
    """The source has the plain file `plain`."""

    OPTIONS = ("names=keep", "stats=on")

    def setUp(self):
        if os.geteuid() != 0 or not has_passthrough():
            self.skipTest("no FUSE passthrough here")
        super().setUp()
        self.stored = self.source + "/plain"
        write(self.stored, CONTENT)

    def mount(self, *options, **how):
        return super().mount(*self.OPTIONS, *options, **how)

    def open(self, path, flags=os.O_RDONLY, mode=0o644):
        descriptor = os.open(path, flags, mode)
        self.addCleanup(lambda: self.close(descriptor))
        return descriptor

    @staticmethod
    def close(descriptor):
        try:
            os.close(descriptor)
        except OSError:
            pass

    @staticmethod
    def requests(mount):
        """How many reads the daemon has answered."""
        return mount.statistics()["reads"]
