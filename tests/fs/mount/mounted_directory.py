"""The base of tests that mount a directory of frames."""

import os
import shutil
import tempfile
import unittest

from mounting import Mount, golden_frames

SMALL = "matrix/000-blosclz-c1-none-t3.b2frame"
LARGE = "large/zstd.b2frame"


class Directory(unittest.TestCase):
    """A source directory and an empty directory to mount on, both removed afterwards."""

    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-test-")
        self.addCleanup(work.cleanup)
        self.work = os.path.realpath(work.name)
        self.source = self.work + "/source"
        self.mountpoint = self.work + "/mnt"
        os.mkdir(self.source)
        os.mkdir(self.mountpoint)

    def put(self, frame, name="x.b2frame"):
        shutil.copy(frame, os.path.join(self.source, name))

    def mount(self, *options, **how):
        mount = Mount(self.source, *options, mountpoint=self.mountpoint, **how)
        self.addCleanup(mount.close)
        return mount


class ServedFrame(Directory):
    """The source has one frame, which shows as x."""

    def setUp(self):
        super().setUp()
        (self.frame, self.content), = golden_frames(SMALL)
        self.put(self.frame)

    def check_serves(self, mountpoint=None):
        with open((mountpoint or self.mountpoint) + "/x", "rb") as file:
            self.assertEqual(file.read(), self.content)
