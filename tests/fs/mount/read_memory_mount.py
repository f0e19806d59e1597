"""Memory of the daemon while many programs read: it stays within what the mount was given and 64 MiB.

Resident memory says nothing about the program where a sanitizer keeps shadows of it; there the test is skipped.
"""

import os
import pathlib
import random
import tempfile
import threading
import unittest

import mounting

MIB = 1 << 20
READERS = 8
FILE_BYTES = 192 * MIB
CACHE_BYTES = 64 * MIB
MOST_ABOVE = 64 * MIB


def plain_file(path):
    """Bytes that compress, but hold no run that a chunk would store as a special value."""
    piece = random.Random(1).randbytes(48 << 10) + bytes(16 << 10)
    with open(path, "wb") as file:
        for number in range(FILE_BYTES // len(piece)):
            file.write(number.to_bytes(8, "little") + piece[8:])


class Memory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if mounting.is_sanitized():
            raise unittest.SkipTest("resident memory is that of the sanitizer")
        cls.directory = tempfile.TemporaryDirectory(prefix="cframefs-memory-")
        cls.source = pathlib.Path(cls.directory.name)
        plain_file(cls.source / "plain")
        for name, block in (("one-block", "16M"), ("small-blocks", "256K")):
            mounting.output(mounting.CFRAME, "pack", "--codec", "lz4", "--chunksize", "16M", "--blocksize", block,
                            str(cls.source / "plain"), str(cls.source / f"{name}.b2frame"))
        os.unlink(cls.source / "plain")

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def peak_of(self, name, read):
        """The daemon's peak while READERS threads each do read(descriptor, number)."""
        with mounting.Mount(self.source, f"cache_size={CACHE_BYTES}", "ro") as mount:
            def work(number):
                descriptor = os.open(mount / name, os.O_RDONLY)
                try:
                    read(descriptor, number)
                finally:
                    os.close(descriptor)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(READERS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return mount.status("VmHWM")

    @staticmethod
    def in_order(descriptor, number):
        part = FILE_BYTES // READERS
        for at in range(number * part, (number + 1) * part, MIB):
            os.pread(descriptor, MIB, at)

    @staticmethod
    def scattered(descriptor, number):
        places = random.Random(number)
        for _ in range(40):
            os.pread(descriptor, 64 << 10, places.randrange(FILE_BYTES))

    def test_readers_of_one_block_of_16_mib(self):
        for read in (self.in_order, self.scattered):
            with self.subTest(read=read.__name__):
                self.assertLessEqual(self.peak_of("one-block", read), CACHE_BYTES + MOST_ABOVE)

    def test_readers_of_small_blocks(self):
        for read in (self.in_order, self.scattered):
            with self.subTest(read=read.__name__):
                self.assertLessEqual(self.peak_of("small-blocks", read), CACHE_BYTES + MOST_ABOVE)


if __name__ == "__main__":
    mounting.main()
