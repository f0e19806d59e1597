"""kill -9 of the daemon at random moments under four writers: no frame is damaged, nothing fsynced is missing.

Two writers append records, two overwrite records of a file in place, one of them in a sparse frame; each notes what fsync
has acknowledged. A reader beside them sees no record at another's place. After the kill every frame must verify, be a
state that there was, and be at least as new as what was acknowledged. The number of rounds is 50, or KILL_ROUNDS of the
environment.
"""

import errno
import os
import random
import shutil
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import mounting
from mounting import Mount, run
from sparse_frames import make_sparse_frame

ROUNDS = int(os.environ.get("KILL_ROUNDS", "50"))
RECORD = struct.Struct("<QQ84x")  # number, version
RECORDS = 3000  # of the files that are overwritten
CHUNK = 4096  # of the sparse frame


class Writer(threading.Thread):
    """Changes one file until the mount is gone."""

    def __init__(self, path, seed):
        super().__init__(daemon=True)
        self.path = path
        self.random = random.Random(seed)
        self.error = None

    def run(self):
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            while True:
                self.change(descriptor)
                if self.random.random() < 0.3:
                    os.fsync(descriptor)
                    self.acknowledge()
                if self.random.random() < 0.1:
                    os.close(descriptor)
                    descriptor = os.open(self.path, os.O_RDWR)
        except OSError as error:
            self.error = error


class Appender(Writer):
    def __init__(self, path, seed):
        super().__init__(path, seed)
        self.written = self.acknowledged = 0

    def change(self, descriptor):
        count = self.random.choice((1, 10, 100, 2000))
        records = b"".join(RECORD.pack(self.written + i, 0) for i in range(count))
        # Counted before: of a write that fails a part may be there.
        begin = self.written
        self.written += count
        os.pwrite(descriptor, records, begin * RECORD.size)

    def acknowledge(self):
        self.acknowledged = self.written

    def check(self, content):
        # A write that fsync has not acknowledged may be there in part.
        if not self.acknowledged * RECORD.size <= len(content) <= self.written * RECORD.size:
            raise AssertionError(f"{len(content)} bytes; {self.acknowledged} records were acknowledged, {self.written} written")
        expected = b"".join(RECORD.pack(i, 0) for i in range(len(content) // RECORD.size + 1))
        if content != expected[: len(content)]:
            raise AssertionError("records are not those that were written")


class Overwriter(Writer):
    def __init__(self, path, seed):
        super().__init__(path, seed)
        self.version = 0
        self.written = [0] * RECORDS
        self.acknowledged = None  # nothing yet

    def change(self, descriptor):
        if self.version == 0:
            os.pwrite(descriptor, b"".join(RECORD.pack(i, 0) for i in range(RECORDS)), 0)
        self.version += 1
        begin = self.random.randrange(RECORDS)
        count = min(self.random.choice((1, 5, 300)), RECORDS - begin)
        for number in range(begin, begin + count):
            self.written[number] = self.version
        os.pwrite(descriptor, b"".join(RECORD.pack(i, self.version) for i in range(begin, begin + count)), begin * RECORD.size)

    def acknowledge(self):
        self.acknowledged = list(self.written)

    def check(self, content):
        if self.acknowledged is None and len(content) < RECORDS * RECORD.size:
            return
        if len(content) != RECORDS * RECORD.size:
            raise AssertionError(f"{len(content)} bytes")
        for number in range(RECORDS):
            found, version = RECORD.unpack_from(content, number * RECORD.size)
            oldest = self.acknowledged[number] if self.acknowledged else 0
            if found != number or not oldest <= version <= self.written[number]:
                raise AssertionError(f"record {number} is {found}, version {version} of {oldest} to {self.written[number]}")


class Reader(threading.Thread):
    """Reads a file of records until the mount is gone; a record's number says its place, whatever is written meanwhile."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.misplaced = None

    def run(self):
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
            while self.misplaced is None:
                content = os.pread(descriptor, RECORDS * RECORD.size, 0)
                for number in range(len(content) // RECORD.size):
                    if RECORD.unpack_from(content, number * RECORD.size)[0] != number:
                        self.misplaced = number
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            self.error = error


class Kill(unittest.TestCase):
    def test_killed_at_random_moments(self):
        # semantics: T2, C2, C3
        print(f"{ROUNDS} rounds", flush=True)
        acknowledged = 0
        for number in range(ROUNDS):
            with self.subTest(round=number):
                acknowledged += self.round(number)
        # Otherwise nothing was tested.
        self.assertGreater(acknowledged, ROUNDS)

    def round(self, seed):
        source = tempfile.mkdtemp(prefix="cframefs-kill-")
        self.addCleanup(shutil.rmtree, source, ignore_errors=True)
        chance = random.Random(seed)
        make_sparse_frame(source + "/d.b2frame", b"".join(RECORD.pack(i, 0) for i in range(RECORDS)), CHUNK)
        mount = Mount(source, "chunksize=" + chance.choice(("16K", "64K", "1M")), "codec=" + chance.choice(("lz4", "zstd")),
                      f"commit_interval={chance.choice((0.01, 0.1, 5))}", "dirty_limit=" + chance.choice(("1M", "4M")))
        writers = [kind(mount / name, seed * 4 + i) for i, (kind, name) in enumerate(
            ((Appender, "a"), (Appender, "b"), (Overwriter, "c"), (Overwriter, "d")))]
        reader = Reader(mount / "d")
        for thread in (*writers, reader):
            thread.start()
        time.sleep(chance.uniform(0.02, 0.5))
        mount.daemon.kill()
        mount.daemon.wait()
        for writer in writers:
            writer.join(30)
            self.assertFalse(writer.is_alive())
            self.assertIsNotNone(writer.error)
        reader.join(30)
        self.assertIsNone(reader.misplaced)
        # It ended because the mount did, not by an error before.
        self.assertIn(reader.error.errno, (errno.ENOTCONN, errno.ECONNABORTED))
        subprocess.run(["umount", "-l", mount.path], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["fusermount3", "-u", "-z", "-q", mount.path], check=False, stderr=subprocess.DEVNULL)
        self.check(source, writers)
        shutil.rmtree(source)
        return sum(1 for writer in writers if writer.acknowledged)

    def check(self, source, writers):
        frames = [name for name in os.listdir(source) if name.endswith(".b2frame") and not name.startswith(".")]
        for name in frames:
            done = run(mounting.CFRAME, "verify", os.path.join(source, name))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with Mount(source) as mount:
            self.assertEqual(sorted(os.listdir(mount.path)), sorted(name.removesuffix(".b2frame") for name in frames))
            for writer in writers:
                name = os.path.basename(writer.path)
                if not os.path.exists(mount / name):
                    self.assertFalse(writer.acknowledged)
                    continue
                with open(mount / name, "rb") as file:
                    writer.check(file.read())


if __name__ == "__main__":
    mounting.main(hang_seconds=600)
