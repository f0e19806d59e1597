"""How long reads of frames on a server wait: how many requests follow each other until a read of a large chunk has its
bytes, whatever codec and geometry the frame has, and what an answer that never comes costs."""

import os
import random
import threading
import time
import unittest

import mounting
from mounting import pread
from pages_mount import resident
# First of the two: it says where the other one is.
from remote_sources import MIB, Served, noise
from object_service import most_at_once, round_trips

BLOCK = 4096
OLD = 1_500_000_000  # a time: a file that has just changed is opened again for each read
# Codec, further options of `cframe pack`. A chunk stores more than 1 MiB of what numbers() makes.
GEOMETRIES = [
    ("lz4", "--chunksize", "4M"),
    ("lz4", "--chunksize", "16M"),
    ("zstd", "--chunksize", "8M", "--blocksize", "256K"),
    ("blosclz", "--chunksize", "4M", "--filter", "none"),
    ("lz4", "--chunksize", "8M", "--blocksize", "16K", "--filter", "bitshuffle"),
    ("lz4", "--chunksize", "4M", "--checksums", "off", "--filter", "delta+shuffle"),
    ("lz4", "--clevel", "0", "--chunksize", "8M"),
]


def numbers(seed, size):
    """Numbers of 4 bytes whose upper two bytes compress well: all blocks are compressed alike."""
    noise = random.Random(seed).randbytes(size // 2)
    content = bytearray(size)
    content[0::4], content[1::4] = noise[0::2], noise[1::2]
    return bytes(content)


def uneven(seed, size):
    """The same, but of each 4 MiB the first half is nothing but zeros."""
    content = bytearray(numbers(seed, size))
    for at in range(0, size, 4 * MIB):
        content[at : at + 2 * MIB] = bytes(2 * MIB)
    return bytes(content)


class LargeChunks(Served):
    SIZE = 48 * MIB

    def trips(self, mount, offset):
        """How many round trips opening x and reading there takes. The bytes are checked."""
        data, trips = self.round_trips_of(mount, lambda: pread(mount / "x", offset, BLOCK))
        self.assertEqual(data, self.content[offset : offset + BLOCK])
        return trips

    def serve(self, content, *options):
        self.content = content
        self.service.put("d/x.b2frame", self.packed(content, "--typesize", "4", "--codec", *options), OLD)
        self.service.latency = 0.1

    def test_a_read_takes_one_round_trip(self):
        content = numbers(1, self.SIZE)
        for number, geometry in enumerate(GEOMETRIES):
            self.service.latency = 0
            self.serve(content, *geometry)
            for address in self.addresses("d/")[number % 2 :][:1]:
                with self.subTest(address, geometry=geometry), self.mount(address, "stats=on", "readahead=0") as mount:
                    self.assertEqual(os.listdir(mount.path), ["x"])
                    # Opening, and the first read.
                    self.assertLessEqual(self.trips(mount, 9 * MIB + 3 * BLOCK), 2)
                    # Other chunks.
                    for offset in (21 * MIB, 34 * MIB + 7 * BLOCK, 47 * MIB):
                        self.assertLessEqual(self.trips(mount, offset), 1)
                    # Other places of a chunk that is open.
                    for offset in (20 * MIB, 23 * MIB + BLOCK, 22 * MIB):
                        self.assertLessEqual(self.trips(mount, offset), 1)

    def test_a_wrong_guess_takes_one_more(self):
        self.serve(uneven(2, self.SIZE), "lz4", "--chunksize", "16M")
        with self.mount(self.web("d/"), "stats=on", "readahead=0") as mount:
            self.assertEqual(os.listdir(mount.path), ["x"])
            for offset in (3 * MIB, 18 * MIB + 3 * BLOCK, 38 * MIB):
                self.assertLessEqual(self.trips(mount, offset), 2 if offset > 16 * MIB else 3)
            # Where the blocks of a chunk are is asked once.
            for offset in (23 * MIB, 46 * MIB, 27 * MIB):
                self.assertLessEqual(self.trips(mount, offset), 1)

    def test_a_read_fetches_little(self):
        self.serve(numbers(3, self.SIZE), "lz4", "--chunksize", "16M")
        with self.mount(self.web("d/"), "stats=on", "readahead=0") as mount:
            self.trips(mount, 9 * MIB)
            self.service.clear_log()
            self.trips(mount, 25 * MIB)
            self.assertLess(sum(request.sent for request in self.service.log), MIB)

    def test_many_readers_fetch_little(self):
        self.serve(numbers(5, self.SIZE), "lz4", "--chunksize", "1M", "--blocksize", "64K")
        places = [[(chunk * MIB + chunk * 5 * BLOCK) for chunk in range(first, 48, 16)] for first in range(16)]
        wrong = []

        def read(mount, offsets):
            for offset in offsets:
                if pread(mount / "x", offset, BLOCK) != self.content[offset : offset + BLOCK]:
                    wrong.append(offset)

        with self.mount(self.web("d/"), "stats=on", "readahead=0") as mount:
            self.trips(mount, 0)
            self.service.clear_log()
            threads = [threading.Thread(target=read, args=(mount, offsets)) for offsets in places]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])
            # One reader gets half a mebibyte, the chunk, for each read.
            self.assertLess(sum(request.sent for request in self.service.log), 12 * MIB)

    def test_all_bytes_are_right(self):
        for geometry in GEOMETRIES[::3]:
            self.serve(uneven(4, self.SIZE), *geometry)
            self.service.latency = 0
            with self.subTest(geometry=geometry), self.mount(self.bucket("d/")) as mount:
                self.assertEqual(mounting.sha256(mounting.output("cat", mount / "x")), mounting.sha256(self.content))


class ManyBlocks(Served):
    """Frames whose index and seal, 8 bytes for each block, are longer than 64 KiB."""

    def check(self, content, addresses, *options, most):
        """How many round trips for the object a read takes; those of a web server open it when they are listed."""
        frame = self.packed(content, "--codec", "lz4", "--filter", "none", *options)
        self.service.put("d/x.b2frame", frame, OLD)
        self.service.latency = 0.1
        for address in addresses:
            self.service.clear_log()
            with self.subTest(address), self.mount(address, "stats=on", "readahead=0") as mount:
                self.assertEqual(os.listdir(mount.path), ["x"])
                if address.startswith("s3://"):
                    self.service.clear_log()
                offset = len(content) // 2
                data = pread(mount / "x", offset, BLOCK)
                trips = round_trips(self.objects(), until=time.monotonic()) - mount.statistics()["server_hedges"]
                self.assertEqual(data, content[offset : offset + BLOCK])
                self.assertLessEqual(trips, most, [(request.name, request.range) for request in self.objects()])

    def test_a_listed_length_tells_how_much_to_ask_for(self):
        content = noise(10, 160 * MIB)
        self.check(content, [self.bucket("d/"), self.bucket("d/x.b2frame")], "--chunksize", "128K", "--blocksize", "16K",
                   most=2)

    def test_without_a_listed_length(self):
        content = noise(11, 40 * MIB)
        self.check(content, [self.web("d/"), self.web("d/x.b2frame")], "--chunksize", "4K", "--blocksize", "1K", most=2)

    def test_an_index_before_what_was_asked_for_is_one_request(self):
        content = noise(12, 60 * MIB)
        self.check(content, [self.bucket("d/")], "--chunksize", "4K", "--blocksize", "1K", most=3)
        # Both ends, the rest of index and seal, the chunk.
        self.assertEqual(len(self.objects()), 4, [(request.name, request.range) for request in self.objects()])


class ManyReaders(Served):
    def test_readers_wait_for_the_server_at_the_same_time(self):
        # More than there are threads that decode.
        content = numbers(6, 32 * MIB)
        frame = self.packed(content, "--typesize", "4", "--codec", "lz4", "--chunksize", "16M")
        self.service.put("d/x.b2frame", frame, OLD)
        with self.mount(self.web("d/"), "stats=on", "readahead=0") as mount:
            # Opened before: the kernel lets an open() wait for the reads of others.
            places = [at * 2 * MIB + MIB for at in range(16)]
            descriptors = [os.open(mount / "x", os.O_RDONLY) for _ in places]
            for at in (0, 16 * MIB):  # chunks that are open: only blocks are missing
                self.assertEqual(os.pread(descriptors[0], BLOCK, at), content[at : at + BLOCK])
            self.service.clear_log()
            self.service.latency = 0.3
            wrong = []

            def read(descriptor, at):
                if os.pread(descriptor, BLOCK, at) != content[at : at + BLOCK]:
                    wrong.append(at)

            threads = [threading.Thread(target=read, args=pair) for pair in zip(descriptors, places)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for descriptor in descriptors:
                os.close(descriptor)
            self.assertEqual(wrong, [])
            self.assertGreaterEqual(most_at_once(self.service.log), 12)


class PageCache(Served):
    @unittest.skipUnless(os.geteuid() == 0, "only root may copy a mount")
    def test_a_block_that_is_read_twice_is_filled(self):
        content = noise(14, 4 * MIB)
        self.service.put("d/x.b2frame", self.packed(content, "--codec", "lz4", "--chunksize", "1M", "--blocksize", "128K"))
        with self.mount(self.bucket("d/")) as mount:
            self.assertEqual(len(mounting.fillers_of(mount.path)), 1)
            with open(mount / "x", "rb", buffering=0) as file:
                for at in (0, 3 * MIB, MIB, 3 * MIB + 5 * BLOCK):
                    self.assertEqual(os.pread(file.fileno(), BLOCK, at), content[at:at + BLOCK])
                pages = set(range(3 * MIB // BLOCK, (3 * MIB + (128 << 10)) // BLOCK))
                mounting.wait_for(lambda: pages <= resident(file.fileno()), what="the block")


class LateAnswers(Served):
    def setUp(self):
        super().setUp()
        self.content = numbers(5, 8 * MIB)
        self.service.put("d/x.b2frame", self.packed(self.content, "--codec", "lz4", "--chunksize", "512K"))

    def test_an_answer_that_never_comes_is_asked_for_again_soon(self):
        # An attempt without a byte ends after 10 s.
        for address in self.addresses("d/"):
            self.service.faults.clear()
            with self.subTest(address), self.mount(address, "remote_timeout=60", "readahead=0") as mount:
                self.assertEqual(pread(mount / "x", 0, BLOCK), self.content[:BLOCK])
                fault = self.service.faults.add("stall", "d/x.b2frame", count=1)
                begin = time.monotonic()
                self.assertEqual(pread(mount / "x", 5 * MIB, BLOCK), self.content[5 * MIB : 5 * MIB + BLOCK])
                self.assertLess(time.monotonic() - begin, 8)
                self.assertEqual(fault.met, 1)


if __name__ == "__main__":
    mounting.main(hang_seconds=600)
