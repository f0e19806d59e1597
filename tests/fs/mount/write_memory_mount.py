"""How much memory the daemon takes while programs write as fast as they can: cache_size, dirty_limit and 64 MiB, however
much they write and however little of it can be compressed. What is looked at is the peak that the kernel has noted, so
nothing here depends on when it is looked at."""

import os
import tempfile
import threading
import unittest

import mounting
from mounting import Mount

MIB = 1 << 20
WRITERS = 4
BEYOND = 64 * MIB  # what a mount may take for itself


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


if __name__ == "__main__":
    mounting.main()
