"""How much memory the daemon takes while programs write as fast as they can: cache_size, dirty_limit and 64 MiB, however
much they write and however little of it can be compressed. What is looked at is the peak that the kernel has noted, so
nothing here depends on when it is looked at."""

import ctypes
import os
import resource
import tempfile
import threading
import unittest

import mounting
from mounting import Mount

MIB = 1 << 20
WRITERS = 4
BEYOND = 64 * MIB  # what a mount may take for itself


def punch(file, offset, length):
    """fallocate(2) with PUNCH_HOLE and KEEP_SIZE."""
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    if fallocate(file.fileno(), 3, offset, length) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


class Memory(unittest.TestCase):
    def setUp(self):
        if mounting.is_sanitized():
            self.skipTest("the sanitizer's own memory is not the program's")
        work = tempfile.TemporaryDirectory(prefix="cframefs-memory-")
        self.addCleanup(work.cleanup)
        self.source = work.name

    def peak(self, work, *options, writers=WRITERS):
        """Bytes that the daemon took at most while each of the writers did `work(path, number)`."""
        failures = []

        def guarded(path, number):
            try:
                work(path, number)
            except OSError as error:
                failures.append(error)

        with Mount(self.source, *options) as mount:
            threads = [threading.Thread(target=guarded, args=(mount / f"file-{number}", number)) for number in range(writers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            peak = mount.status("VmHWM")
        self.assertEqual(failures, [])
        return peak

    def stream(self, bytes_each, make):
        def work(path, number):
            piece = make(number)
            with open(path, "wb", buffering=0) as file:
                for _ in range(bytes_each // len(piece)):
                    file.write(piece)
                os.fsync(file)

        return work

    def test_streams_that_cannot_be_compressed(self):
        for codec in ("lz4", "zstd"):
            peak = self.peak(self.stream(64 * MIB, lambda _: os.urandom(MIB)), "cache_size=64M", "dirty_limit=64M",
                             f"codec={codec}", "clevel=1")
            self.assertLess(peak, 64 * MIB + 64 * MIB + BEYOND)

    def test_streams_that_are_compressed(self):
        text = b"".join(b"%08d and a few words\n" % number for number in range(40_000))[:MIB]
        peak = self.peak(self.stream(64 * MIB, lambda _: text), "cache_size=64M", "dirty_limit=64M")
        self.assertLess(peak, 64 * MIB + 64 * MIB + BEYOND)

    def test_small_writes_all_over_a_file(self):
        size = 224 * MIB  # more than may be held

        def work(path, _):
            with open(path, "wb", buffering=0) as file:
                for _ in range(size // MIB):
                    file.write(os.urandom(MIB))
            with open(path, "r+b", buffering=0) as file:
                for place in range(0, size, 65_536):
                    os.pwrite(file.fileno(), b"changed" * 100, place)
                os.fsync(file)

        peak = self.peak(work, "cache_size=64M", "dirty_limit=64M", "codec=lz4", "clevel=1", writers=1)
        self.assertLess(peak, 64 * MIB + 64 * MIB + BEYOND)

    def test_many_files_that_are_open(self):
        """Little is written to each, so that little is held of each."""
        count = 2000
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + 200, hard), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

        def work(path, _):
            files = [open(f"{path}-{number}", "wb", buffering=0) for number in range(count)]
            for file in files:
                file.write(b"x" * 100)
            for file in files:
                file.close()

        peak = self.peak(work, "cache_size=16M", "dirty_limit=16M", "commit_interval=60", writers=1)
        self.assertLess(peak, 16 * MIB + 16 * MIB + BEYOND)

    def test_holes_as_long_as_files_can_be(self):
        tib = 1 << 40

        def work(path, _):
            with open(path, "wb", buffering=0) as file:
                for size in (64 * tib, 250 * tib):
                    file.truncate(size)
                    file.seek(0)
                    file.write(b"begin")
                    file.seek(size - 3)
                    file.write(b"end")
                    os.fsync(file)
                    punch(file, 100, size - 200)
                    os.fsync(file)
                    self.assertEqual(os.stat(path).st_size, size)
                file.truncate(1000)

        peak = self.peak(work, "cache_size=16M", "dirty_limit=16M", writers=1)
        self.assertLess(peak, 16 * MIB + 16 * MIB + 2 * BEYOND)


if __name__ == "__main__":
    mounting.main()
