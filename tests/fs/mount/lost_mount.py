"""What a mount shows of a file whose last close could not commit: either what programs wrote, for as long as the mount
tries again, or what is on disk; by every way to read one and the same of both, and stat's size is that of the bytes.

The commit fails because the disk is full, or because another program holds the frame's lock.
"""

import errno
import fcntl
import mmap
import os
import random
import subprocess
import tempfile
import time
import unittest

import mounting
from mounting import Mount, output, run, wait_for
from sparse_frames import make_sparse_frame

MEBIBYTE = 1 << 20
OLD = random.Random(1).randbytes(4 * MEBIBYTE)
NEW = random.Random(2).randbytes(4 * MEBIBYTE)


def write_over(path):
    with open(path, "r+b", buffering=0) as file:
        file.write(NEW)
        os.pread(file.fileno(), 10, 0)


def append(path):
    with open(path, "ab", buffering=0) as file:
        file.write(NEW[: 3 * MEBIBYTE])


def cut(path):
    with open(path, "wb", buffering=0) as file:
        file.write(NEW[: 3 * MEBIBYTE])
        os.fstat(file.fileno())


def change_map(path):
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:] = NEW


# How a program changes the file, and what it holds then.
CHANGES = {
    "overwrite": (write_over, NEW),
    "append": (append, OLD + NEW[: 3 * MEBIBYTE]),
    "cut": (cut, NEW[: 3 * MEBIBYTE]),
    "map": (change_map, NEW),
}


class Lost(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-lost-")
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.source = work.name + "/source"
        os.mkdir(self.source)
        self.stored = self.source + "/x.b2frame"

    def start(self, kind, *options):
        if kind == "sparse":
            make_sparse_frame(self.stored, OLD, 65536)
        else:
            with open(self.work + "/raw", "wb") as file:
                file.write(OLD)
            output(mounting.CFRAME, "pack", self.work + "/raw", self.stored)
        self.mount = Mount(self.source, "commit_interval=1", *options)
        self.addCleanup(lambda: self.mount.log is not None and self.mount.close())
        self.path = self.mount / "x"
        # A handle and a map from before, with every page in the kernel's cache.
        self.reader = open(self.path, "rb", buffering=0)
        self.addCleanup(self.reader.close)
        self.map = mmap.mmap(self.reader.fileno(), 0, prot=mmap.PROT_READ)
        self.assertTrue(self.map[:] == OLD)
        self.assertTrue(self.reader.read() == OLD)

    def on_disk(self):
        return output(mounting.CFRAME, "cat", self.stored)

    def close_fails(self, change, *causes):
        """Whether the close told that the commit failed."""
        try:
            change(self.path)
        except OSError as error:
            self.assertIn(error.errno, causes)
            return True
        return False

    def shown(self):
        """What a fresh open reads; all other ways must agree, and the size."""
        with open(self.path, "rb") as file:
            shown = file.read()
        self.assertEqual(os.stat(self.path).st_size, len(shown), "stat")
        self.assertEqual(os.fstat(self.reader.fileno()).st_size, len(shown), "fstat")
        self.assertTrue(mounting.pread(self.path, 0, len(OLD) * 3) == shown, "pread")
        self.assertTrue(os.pread(self.reader.fileno(), len(OLD) * 3, 0) == shown, "the handle from before")
        both = min(len(shown), len(self.map))
        self.assertTrue(self.map[:both] == shown[:both], "the map from before")
        with open(self.path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
            self.assertTrue(memory[:] == shown, "a fresh map")
        output("cp", self.path, self.work + "/copy")
        with open(self.work + "/copy", "rb") as file:
            self.assertTrue(file.read() == shown, "cp")
        return shown

    def check(self, written):
        """While the commit cannot be made: one state, that of the disk or that of the programs."""
        shown = self.shown()
        self.assertTrue(shown in (written, self.on_disk()), f"a mixture of {len(shown)} bytes")
        return shown

    def check_afterwards(self, shown):
        """The cause is gone: what the mount shows reaches the disk, and further writes go on from there."""
        wait_for(lambda: self.on_disk() == shown, 20, "what is shown to be on disk")
        self.assertTrue(self.shown() == shown)
        with open(self.path, "r+b", buffering=0) as file:
            os.pwrite(file.fileno(), b"more", 5)
        shown = shown[:5] + b"more" + shown[9:]
        self.assertTrue(self.shown() == shown)
        self.end(shown)

    def end(self, expected):
        self.map.close()
        self.reader.close()
        self.mount.close()
        self.assertTrue(self.on_disk() == expected)
        output(mounting.CFRAME, "verify", self.stored)
        with Mount(self.source, "ro") as mount, open(mount / "x", "rb") as file:
            self.assertEqual(os.stat(mount / "x").st_size, len(expected))
            self.assertTrue(file.read() == expected)


class FullDisk(Lost):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or run("mount", "-t", "tmpfs", "-o", "size=32M", "none", self.source).returncode != 0:
            self.skipTest("needs the right to mount a small tmpfs")
        self.addCleanup(subprocess.run, ["umount", "-l", self.source], check=False)

    def fill(self):
        with open(self.source + "/ballast", "wb", buffering=0) as file:
            try:
                while file.write(bytes(65536)):
                    pass
            except OSError as error:
                self.assertEqual(error.errno, errno.ENOSPC)

    def each(self, kind, *options):
        for name, (change, written) in CHANGES.items():
            with self.subTest(name):
                self.start(kind, *options)
                self.fill()
                # What is cut off a frame makes room for what is written after that.
                has_room = kind == "frame" and name == "cut"
                self.assertNotEqual(self.close_fails(change, errno.ENOSPC), has_room, "the close told something else")
                self.check(written)
                # Not another one for what was looked at.
                shown = self.check(written)
                if has_room:
                    self.assertTrue(shown == written == self.on_disk())
                os.unlink(self.source + "/ballast")
                self.check_afterwards(shown)
            self.leave()

    def leave(self):
        """The next one begins with an empty disk, whatever became of this one."""
        self.map.close()
        self.reader.close()
        if self.mount.log is not None:
            self.mount.close()
        output("sh", "-c", f"rm -rf '{self.source}'/*")

    def test_frames(self):
        self.each("frame")

    def test_sparse_frames(self):
        self.each("sparse")

    def test_frames_with_writeback(self):
        self.each("frame", "writeback=on")

    def test_with_kept_attributes(self):
        self.each("frame", "attr_timeout=60", "entry_timeout=60")

    def test_the_mount_ends_before_there_is_room(self):
        # semantics: C5
        for kind in ("frame", "sparse"):
            with self.subTest(kind):
                self.start(kind)
                self.fill()
                self.assertTrue(self.close_fails(write_over, errno.ENOSPC))
                self.check(NEW)
                said = len(self.mount.lines())
                self.map.close()
                self.reader.close()
                # That bytes are lost is said; the exit status may tell it, too.
                try:
                    self.mount.close()
                except AssertionError:
                    self.assertFalse(mounting.is_mounted(self.mount.path))
                self.assertGreater(max(said, len(self.mount.lines())), 0)
                os.unlink(self.source + "/ballast")
                with Mount(self.source) as mount, open(mount / "x", "rb") as file:
                    self.assertEqual(os.stat(mount / "x").st_size, len(OLD))
                    self.assertTrue(file.read() == OLD)
                self.assertTrue(self.on_disk() == OLD)
            self.leave()


class HeldLock(Lost):
    """The commit fails before it has touched the file."""

    def check_change(self, name, *options):
        change, written = CHANGES[name]
        self.start("frame", *options)
        with open(self.stored, "rb") as frame, open(self.stored + ".b2lock", "wb") as lock:
            fcntl.flock(frame, fcntl.LOCK_EX)
            fcntl.flock(lock, fcntl.LOCK_EX)
            told = self.close_fails(change, errno.EBUSY, errno.EAGAIN, errno.EIO, errno.ETIMEDOUT)
            # For longer than any attempt of the mount's own may last.
            end = time.monotonic() + 12
            while time.monotonic() < end:
                shown = self.check(written)
                time.sleep(0.5)
        self.assertTrue(told or shown == written, "the close told nothing")
        self.check_afterwards(shown)

    def test_cut(self):
        self.check_change("cut")

    def test_append(self):
        self.check_change("append", "attr_timeout=60")


if __name__ == "__main__":
    mounting.main()
