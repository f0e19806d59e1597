"""What a program gets that touches a page of a map which cannot be read: SIGBUS, and never zeros."""

import errno
import os
import random
import signal
import subprocess
import sys

import mounting
from mounting import Mount, output, pread, wait_for
from mounted_directory import Directory

CHUNK = 65536
SIZE = 16 * CHUNK
CONTENT = random.Random(5).randbytes(SIZE)
# Maps a file, and when it is told to prints the byte at an offset.
PROGRAM = """
import mmap, os, sys
shared = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2]), prot=mmap.PROT_READ)
print("mapped", flush=True)
sys.stdin.readline()
print(shared[int(sys.argv[3])], flush=True)
"""


class Toucher:
    """A program that has mapped a file, and what comes of touching one of its pages."""

    def __init__(self, test, path, at):
        self.program = subprocess.Popen([sys.executable, "-c", PROGRAM, path, str(SIZE), str(at)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.program.kill)
        if self.program.stdout.readline() != "mapped\n":
            raise AssertionError("the program has not mapped the file")

    def touch(self):
        """The byte, or the number of the signal that ended the program."""
        said, _ = self.program.communicate("\n", timeout=60)
        return int(said) if self.program.returncode == 0 else signal.Signals(-self.program.returncode)


class Maps(Directory):
    def setUp(self):
        super().setUp()
        self.stored = self.source + "/x.b2frame"
        self.pack(CONTENT, self.stored)

    def pack(self, content, frame):
        with open(self.work + "/raw", "wb") as file:
            file.write(content)
        output(mounting.CFRAME, "pack", "--force", "--codec", "lz4", "--chunksize", str(CHUNK), self.work + "/raw", frame)

    def expect_bus_error(self, toucher):
        self.assertEqual(toucher.touch(), signal.SIGBUS)

    def test_a_damaged_chunk(self):
        # semantics: R2, R6
        with open(self.stored, "r+b") as file:
            at = file.read().index(CONTENT[8 * CHUNK : 8 * CHUNK + 64])
            file.seek(at - 32)  # the header of the chunk
            file.write(b"\xff" * 32)
        mount = self.mount()
        with self.assertRaises(OSError) as failed:
            pread(mount / "x", 8 * CHUNK, 10)
        self.assertIn(failed.exception.errno, (errno.EIO, errno.EOPNOTSUPP))
        self.expect_bus_error(Toucher(self, mount / "x", 8 * CHUNK + 5))
        for at in (0, 8 * CHUNK - 1, 9 * CHUNK, SIZE - 1):
            self.assertEqual(Toucher(self, mount / "x", at).touch(), CONTENT[at])

    def test_a_file_that_is_cut_in_the_mount(self):
        # semantics: R7
        mount = self.mount()
        for at, is_read in ((SIZE - 1, False), (SIZE - 1, True), (8 * CHUNK, False)):
            with open(mount / "x", "wb") as file:
                file.write(CONTENT)
            toucher, within = Toucher(self, mount / "x", at), Toucher(self, mount / "x", 5)
            if is_read:
                pread(mount / "x", 0, SIZE)
            os.truncate(mount / "x", 8 * CHUNK)
            self.expect_bus_error(toucher)
            self.assertEqual(within.touch(), CONTENT[5])

    def test_a_frame_that_is_shortened_behind_the_mount(self):
        # semantics: R8
        self.pack(CONTENT[: 8 * CHUNK], self.work + "/short.b2frame")
        with open(self.work + "/short.b2frame", "rb") as file:
            short = file.read()
        mount = self.mount()
        toucher = Toucher(self, mount / "x", SIZE - 1)
        with open(self.stored, "r+b") as file:
            file.write(short)
            file.truncate(len(short))
        wait_for(lambda: os.stat(mount / "x").st_size == 8 * CHUNK, what="the new size")
        self.expect_bus_error(toucher)
        self.assertEqual(pread(mount / "x", 0, SIZE), CONTENT[: 8 * CHUNK])

    def test_a_backing_file_that_is_cut_off(self):
        # semantics: R9
        mount = self.mount()
        touchers = [Toucher(self, mount / "x", at) for at in (0, SIZE - 1)]
        os.truncate(self.stored, os.path.getsize(self.stored) // 3)
        for toucher in touchers:
            self.expect_bus_error(toucher)

    def test_a_file_that_is_replaced(self):
        # semantics: R10
        mount = self.mount()
        toucher = Toucher(self, mount / "x", SIZE - 1)
        self.pack(bytes(100), self.work + "/other.b2frame")
        os.rename(self.work + "/other.b2frame", self.stored)
        self.assertEqual(pread(mount / "x", 0, SIZE), bytes(100))
        self.assertEqual(toucher.touch(), CONTENT[-1])

    def test_a_daemon_that_is_killed(self):
        # semantics: R11, J5
        mount = Mount(self.source, mountpoint=self.mountpoint)
        toucher = Toucher(self, mount / "x", SIZE - 1)
        descriptor = os.open(mount / "x", os.O_RDONLY)
        self.addCleanup(os.close, descriptor)
        mount.daemon.kill()
        mount.daemon.wait()
        wait_for(lambda: not mounting.is_mounted(self.mountpoint), what="the guard to unmount")
        self.expect_bus_error(toucher)
        with self.assertRaises(OSError) as failed:
            os.pread(descriptor, 10, 8 * CHUNK)
        self.assertIn(failed.exception.errno, (errno.ENOTCONN, errno.ECONNABORTED))


if __name__ == "__main__":
    mounting.main()
