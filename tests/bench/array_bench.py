"""How fast arrays and the older formats read through a mount.

usage: array_bench.py CFRAMEFS CFRAME --data DIRECTORY [--repeats N] [--mib N]

DIRECTORY keeps the files that are read; those that are missing are made: an empty array is written byte by byte, filled
through a writable mount, and packed, and its chunks are put into files of the older formats. NumPy is needed for that.
Each file is read once from beginning to end after a fresh mount, the files in turn; medians and ratios are printed.
Rows: what is to be reached (issue 4) stands beside what was measured.
"""

import argparse
import json
import os
import random
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

STEP = 1 << 20
CHUNK = 1 << 20


class Mount:
    def __init__(self, program, directory, *options):
        self.program, self.directory, self.options = program, directory, options

    def __enter__(self):
        self.place = tempfile.mkdtemp(prefix="cframefs-bench-")
        command = [self.program, "-f", "-o", ",".join(("stats=on",) + self.options), self.directory, self.place]
        self.daemon = subprocess.Popen(command)
        while not os.path.ismount(self.place):
            if self.daemon.poll() is not None:
                sys.exit(f"the mount ended with {self.daemon.returncode}")
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.daemon.send_signal(signal.SIGTERM)
        self.daemon.wait()
        os.rmdir(self.place)

    def path(self, name):
        return os.path.join(self.place, name)

    def counters(self):
        with open(self.path(".cframefs/stats.json"), encoding="utf-8") as file:
            return json.load(file)


def empty_array(shape, chunks, blocks, dtype, itemsize):
    """A frame that is an array without rows; lz4, level 5, shuffle."""
    listed = bytes([0x90 + len(shape)])
    layer = bytes([0x97, 0, len(shape)]) + listed + b"".join(b"\xd3" + struct.pack(">q", n) for n in (0,) + shape[1:])
    for extents in (chunks, blocks):
        layer += listed + b"".join(b"\xd2" + struct.pack(">i", n) for n in extents)
    layer += b"\0\xdb" + struct.pack(">I", len(dtype)) + dtype.encode()
    blocksize = chunksize = itemsize
    for chunk, block in zip(chunks, blocks):
        blocksize *= block
        chunksize *= -(-chunk // block) * block
    meta = b"\x93\xcd" + struct.pack(">H", 17) + b"\xde\x00\x01\xa4b2nd\xd2" + struct.pack(">i", 87 + 20)
    meta += b"\xdc\x00\x01\xc6" + struct.pack(">I", len(layer)) + layer
    trailer = b"\x94\x01\x93\xcd\x00\x07\xde\x00\x00\xdc\x00\x00"
    trailer += b"\xce" + struct.pack(">I", len(trailer) + 23) + b"\xd8\0" + bytes(16)
    head_length = 87 + len(meta)
    head = b"\x9e\xa8b2frame\0\xd2" + struct.pack(">i", head_length)
    head += b"\xcf" + struct.pack(">Q", head_length + len(trailer)) + b"\xa4\x12\x00\x51\x03\xd3" + bytes(8)
    head += b"\xd3" + bytes(8) + b"".join(b"\xd2" + struct.pack(">i", n) for n in (itemsize, blocksize, chunksize))
    head += b"\xd1\x00\x01\xd1\x00\x01\xc2\xd8\x06" + bytes([0, 0, 0, 0, 0, 1, 0, 0]) + bytes(8)
    return head + meta + trailer


def make_cube(program, directory, mib):
    """Smooth data with noise in the low bits, as measurements have it."""
    import numpy

    with open(os.path.join(directory, "cube.b2nd"), "wb") as file:
        file.write(empty_array((mib, 512, 512), (256, 256, 256), (64, 64, 64), "<f4", 4))
    rng = numpy.random.default_rng(1)
    y, z = numpy.meshgrid(numpy.linspace(0, 9, 512), numpy.linspace(0, 7, 512), indexing="ij")
    with Mount(program, directory) as mount, open(mount.path("cube.npy"), "ab", buffering=0) as file:
        for row in range(0, mib, 16):
            x = numpy.arange(row, row + 16)[:, None, None] / 50
            noise = rng.integers(0, 64, (16, 512, 512)) / 4096
            items = numpy.round((numpy.sin(x + y) * numpy.cos(z - x) + noise) * 4096) / 4096
            file.write(items.astype("<f4").tobytes())


def make_rows(program, directory):
    """100,000 rows of 10,000 float64, zeros but for the thousand in the middle."""
    import numpy

    with open(os.path.join(directory, "rows.b2nd"), "wb") as file:
        file.write(empty_array((100000, 10000), (1000, 1000), (100, 100), "<f8", 8))
    rng = numpy.random.default_rng(2)
    row = 10000 * 8
    with Mount(program, directory, "b2nd=flat") as mount, open(mount.path("rows"), "r+b", buffering=0) as file:
        file.truncate(100000 * row)
        for at in range(50000, 51000, 100):
            file.seek(at * row)
            items = numpy.sin(numpy.arange(100 * 10000) / 300) + rng.integers(0, 64, 100 * 10000) / 4096
            file.write(items.astype("<f8").tobytes())


def make_plain(program, frames, directory):
    """The cube's bytes as a frame, and that frame's chunks as Bloscpack and as a frame of 2.0.0-beta.1."""
    with Mount(program, directory) as mount:
        options = ["--codec", "lz4", "--filter", "shuffle", "--typesize", "4", "--chunksize", str(CHUNK)]
        subprocess.run([frames, "pack", *options, mount.path("cube.npy"), os.path.join(directory, "plain.b2frame")], check=True)
    with open(os.path.join(directory, "plain.b2frame"), "rb") as file:
        frame = file.read()
    at, = struct.unpack_from(">i", frame, 11)
    nbytes, = struct.unpack_from(">q", frame, 30)
    count = -(-nbytes // CHUNK)
    chunks = []
    for _ in range(count):
        length, = struct.unpack_from("<i", frame, at + 12)
        chunks.append(frame[at : at + length])
        at += length
    body = b"".join(chunks)
    places, place = [], 0
    for chunk in chunks:
        places.append(place)
        place += len(chunk)
    head = b"blpk\x03\x01\x00\x04" + struct.pack("<iiqq", CHUNK, nbytes - (count - 1) * CHUNK, count, 0)
    begin = len(head) + 8 * count
    with open(os.path.join(directory, "pack.blp"), "wb") as file:
        file.write(head + struct.pack(f"<{count}q", *(begin + p for p in places)) + body)
    index = struct.pack(f"<{count}q", *places)
    index = struct.pack("<BBBBiii", 5, 1, 0x07, 8, len(index), len(index), len(index) + 32) + bytes(16) + index
    head = b"\x9b\xa8b2frame\0\xd2" + struct.pack(">i", 64) + b"\xcf" + struct.pack(">Q", 64 + len(body) + len(index))
    head += b"\xa4\x24\x06\x51\x00\xd3" + struct.pack(">q", nbytes) + b"\xd3" + struct.pack(">q", len(body))
    head += b"\xd2" + struct.pack(">i", 4) + b"\xd2" + struct.pack(">i", CHUNK) + b"\xd1\x00\x01\xd1\x00\x01\xc2"
    with open(os.path.join(directory, "legacy.b2frame"), "wb") as file:
        file.write(head + body + index)


def make_missing(arguments):
    there = set(os.listdir(arguments.data))
    if "cube.b2nd" not in there:
        make_cube(arguments.cframefs, arguments.data, arguments.mib)
    if not {"plain.b2frame", "pack.blp", "legacy.b2frame"} <= there:
        make_plain(arguments.cframefs, arguments.cframe, arguments.data)
    if "rows.b2nd" not in there:
        make_rows(arguments.cframefs, arguments.data)


def read_once(program, directory, name):
    """Bytes a second, and blocks decoded."""
    with Mount(program, directory) as mount:
        buffer = bytearray(STEP)
        with open(mount.path(name), "rb", buffering=0) as file:
            begin, length = time.monotonic(), 0
            while step := file.readinto(buffer):
                length += step
            seconds = time.monotonic() - begin
        return length / seconds, mount.counters()["blocks_decoded"]


def read_slabs(program, directory, name, mib):
    """By slices along the slowest axis, of a block's height: bytes a second."""
    with Mount(program, directory, "b2nd=flat") as mount:
        slab = 64 * 512 * 512 * 4
        with open(mount.path(name), "rb", buffering=0) as file:
            buffer = bytearray(b"\1") * slab  # no page of it is touched for the first time below
            length = 0
            begin = time.monotonic()
            for at in range(0, mib, 64):
                file.seek(at * 512 * 512 * 4)
                length += file.readinto(buffer)
            seconds = time.monotonic() - begin
        return length / seconds


def read_rows(program, directory):
    """Milliseconds for each MiB of the blocks decoded, and blocks for each row, of rows at random."""
    rng = random.Random(3)
    row = 10000 * 8
    block = 100 * 100 * 8
    found = []
    with Mount(program, directory, "b2nd=flat") as mount:
        descriptor = os.open(mount.path("rows"), os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        for band in rng.sample(range(10), 10):
            at = 50000 + band * 100 + rng.randrange(100)
            before = mount.counters()
            begin = time.monotonic()
            os.pread(descriptor, row, at * row)
            seconds = time.monotonic() - begin
            after = mount.counters()
            blocks = after["blocks_decoded"] - before["blocks_decoded"]
            found.append((seconds * 1e3 / (blocks * block / (1 << 20)), blocks))
        os.close(descriptor)
    return statistics.median(ms for ms, _ in found), sorted(blocks for _, blocks in found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cframefs")
    parser.add_argument("cframe")
    parser.add_argument("--data", required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--make", action="store_true", help="make the files and no more")
    arguments = parser.parse_args()
    make_missing(arguments)
    if arguments.make:
        return
    names = ["plain", "cube.npy", "pack", "legacy"]
    speeds = {name: [] for name in names + ["slabs", "plain slabs"]}
    blocks = {name: set() for name in names}
    for _ in range(arguments.repeats):
        for name in names:
            speed, decoded = read_once(arguments.cframefs, arguments.data, name)
            speeds[name].append(speed)
            blocks[name].add(decoded)
        for name, file in (("slabs", "cube"), ("plain slabs", "plain")):
            speeds[name].append(read_slabs(arguments.cframefs, arguments.data, file, arguments.mib))
    median = {name: statistics.median(found) for name, found in speeds.items()}
    print(f"plain frame, cold sequential: {median['plain'] / 1e6:.0f} MB/s")
    for name, beside, what, least in (
        ("cube.npy", "plain", "3-d array as .npy, cold sequential", 0.6),
        ("slabs", "plain slabs", "3-d array, slices along the slowest axis", 0.8),
        ("pack", "plain", "Bloscpack of the same chunks", 0.9),
        ("legacy", "plain", "frame of a beta of the same chunks", 0.9),
    ):
        decoded = f", blocks decoded {sorted(blocks[name])}" if name in blocks else ""
        ratio = median[name] / median[beside]
        print(f"{what}: {median[name] / 1e6:.0f} MB/s, {ratio:.2f} x plain read so ({least}){decoded}")
    ms, counts = read_rows(arguments.cframefs, arguments.data)
    print(f"one row of 100,000 x 10,000 float64: {ms:.2f} ms for each MiB decoded (1), blocks decoded {counts} (100)")


if __name__ == "__main__":
    main()
