"""Little memory: the daemon's defaults follow the limit of its control group or of its address space, and it lives within
it, whatever programs ask of it at once; and what it takes under a load of all kinds is bounded by its options.

Where there is no control group of memory that this test may make, RLIMIT_AS is the limit."""

import hashlib
import json
import os
import pathlib
import random
import tempfile
import threading
import unittest

import mounting
from mounting import Mount, output

MIB = 1 << 20
FILE_BYTES = 160 * MIB
READS = 1500
BEYOND = 64 * MIB  # what a mount may take for itself


class Group:
    """A control group of its own, with a limit of memory. `before`: what puts a daemon into it."""

    def __init__(self, limit):
        self.limit = limit
        self.directory = None
        self.before = ("prlimit", f"--as={limit}")
        for parent, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"),
                             ("/sys/fs/cgroup/unified", "memory.max")):
            if self.make(parent, name):
                break

    def make(self, parent, name):
        directory = f"{parent}/cframefs-test-{os.getpid()}"
        try:
            os.mkdir(directory)
        except OSError:
            return False
        try:
            pathlib.Path(directory, name).write_text(str(self.limit), encoding="ascii")
        except OSError:
            os.rmdir(directory)
            return False
        self.directory = directory
        self.before = ("sh", "-c", f'echo $$ > {directory}/cgroup.procs && exec "$@"', "sh")
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.directory:
            mounting.wait_for(self.is_removed, what="the control group to be empty")

    def is_removed(self):
        try:
            os.rmdir(self.directory)
        except OSError:
            return False
        return True


class Memory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if mounting.is_sanitized():
            raise unittest.SkipTest("the sanitizer's own memory is not the program's")
        cls.work = tempfile.TemporaryDirectory(prefix="cframefs-memory-")
        cls.source = pathlib.Path(cls.work.name, "source")
        cls.source.mkdir()
        cls.plain = pathlib.Path(cls.work.name, "plain")
        piece = random.Random(1).randbytes(48 << 10) + bytes(16 << 10)
        with open(cls.plain, "wb") as file:
            for number in range(FILE_BYTES // len(piece)):
                file.write(number.to_bytes(8, "little") + piece[8:])
        with open(cls.plain, "rb") as file:
            cls.digest = hashlib.file_digest(file, "sha256").hexdigest()
        for name, chunk, block in (("large", "16M", "16M"), ("small", "16M", "256K"), ("usual", "1M", "64K")):
            output(mounting.CFRAME, "pack", "--codec", "lz4", "--chunksize", chunk, "--blocksize", block, str(cls.plain),
                   str(cls.source / f"{name}.b2frame"))

    @classmethod
    def tearDownClass(cls):
        cls.work.cleanup()

    def setUp(self):
        self.failures = []
        self.written = {}

    def load(self, mount, works):
        """All of them at once. What goes wrong is kept in failures."""

        def guarded(work, number):
            try:
                work(mount, number)
            except OSError as error:
                self.failures.append(error)

        threads = [threading.Thread(target=guarded, args=(work, number)) for number, work in enumerate(works)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def reads_at_random(self, mount, number):
        name = "large" if number % 2 else "small"
        places = random.Random(number)
        plain, shown = os.open(self.plain, os.O_RDONLY), os.open(mount / name, os.O_RDONLY)
        try:
            for _ in range(READS // 30 if name == "large" else READS):
                at = places.randrange(FILE_BYTES)
                if os.pread(plain, 65_536, at) != os.pread(shown, 65_536, at):
                    self.failures.append(f"{name} differs at {at}")
        finally:
            os.close(plain)
            os.close(shown)

    def reads_in_order(self, mount, number):
        with open(self.plain, "rb") as plain, open(mount / ("large" if number % 2 else "small"), "rb") as shown:
            while True:
                wanted = plain.read(MIB)
                if shown.read(MIB) != wanted:
                    self.failures.append("differs in order")
                if not wanted:
                    return

    def writes(self, mount, number):
        """Files of what cannot be compressed, some synced and some not."""
        for file_number in range(4):
            name = f"written-{number}-{file_number}"
            digest = hashlib.sha256()
            with open(mount / name, "wb", buffering=0) as file:
                for _ in range(24):
                    piece = os.urandom(MIB)
                    file.write(piece)
                    digest.update(piece)
                if file_number % 2:
                    os.fsync(file)
            self.written[name] = digest.hexdigest()

    def changes_here_and_there(self, mount, number):
        """Small writes all over a file."""
        name = f"changed-{number}"
        content = bytearray(os.urandom(MIB) * 48)
        with open(mount / name, "w+b", buffering=0) as file:
            for at in range(0, len(content), MIB):
                file.write(content[at : at + MIB])
            for at in range(0, len(content), 40_000):
                content[at : at + 7] = b"changed"
                os.pwrite(file.fileno(), b"changed", at)
        self.written[name] = hashlib.sha256(content).hexdigest()

    def copies(self, mount, number):
        """Of a frame, as it is stored, into a new file."""
        name, left = f"copied-{number}", FILE_BYTES
        with open(mount / "usual", "rb") as shown, open(mount / name, "wb") as copy:
            while left > 0:
                copied = os.copy_file_range(shown.fileno(), copy.fileno(), left)
                if copied == 0:
                    self.failures.append(f"{left} bytes are not copied")
                    return
                left -= copied
        self.written[name] = self.digest

    def check_stored(self):
        self.assertEqual(self.failures, [])
        for name, digest in self.written.items():
            stored = self.source / f"{name}.b2frame"
            self.assertEqual(hashlib.sha256(output(mounting.CFRAME, "cat", str(stored))).hexdigest(), digest, name)
            stored.unlink()

    def under(self, limit, works):
        """With default options in so much memory."""
        with Group(limit) as group, Mount(self.source, "stats=on", before=group.before) as mount:
            self.assertEqual(mount.statistics()["cache_bound_bytes"], limit // 8)
            self.load(mount, works)
            self.assertTrue(mount.is_alive())
        self.check_stored()

    def test_eight_that_read_at_random_in_256_mib(self):
        self.under(256 * MIB, [self.reads_at_random] * 8)

    def test_eight_that_write_in_256_mib(self):
        self.under(256 * MIB, [self.writes] * 8)

    def test_all_at_once_in_512_mib(self):
        self.under(512 * MIB, [self.writes] * 4 + [self.changes_here_and_there] * 2 + [self.reads_in_order] * 4 +
                   [self.reads_at_random] * 4)

    def within(self, cache, dirty, *more):
        with Mount(self.source, f"cache_size={cache}", f"dirty_limit={dirty}", "stats=on") as mount:
            self.load(mount, [self.writes] * 4 + [self.changes_here_and_there] * 2 + [self.reads_in_order] * 4 +
                      [self.reads_at_random] * 4 + list(more))
            taken = {"peak": mount.status("VmHWM"), "bound": cache + 2 * dirty + BEYOND, **mount.statistics()}
        self.check_stored()
        print(f"peak {taken['peak'] / MIB:.1f} of {taken['bound'] / MIB:.0f} MiB", flush=True)
        self.assertLessEqual(taken["peak"], taken["bound"], json.dumps(taken))
        return taken

    def test_all_at_once_within_what_the_options_say(self):
        self.within(cache=32 * MIB, dirty=32 * MIB)

    def test_copies_beside_all_else(self):
        """They hold a share of what may be dirty together, not each."""
        taken = self.within(16 * MIB, 160 * MIB, *[self.copies] * 8)
        self.assertGreater(taken["chunks_copied"], 0)


class Requests(unittest.TestCase):
    def test_requests_wait_while_there_is_no_memory_to_receive_them(self):
        with tempfile.TemporaryDirectory(prefix="cframefs-memory-") as work:
            source, gate = pathlib.Path(work, "source"), pathlib.Path(work, "gate")
            source.mkdir()
            environment = {"LD_PRELOAD": os.environ["SLOW_CALLS_LIBRARY"], "NO_MEMORY": str(gate)}
            with Mount(source, environment=environment) as mount:
                with open(mount / "file", "wb", buffering=0) as file:
                    file.write(b"not committed yet")
                    gate.touch()
                    asker = threading.Thread(target=lambda: [os.statvfs(mount.path) for _ in range(100)])
                    asker.start()
                    mounting.wait_for(pathlib.Path(f"{gate}.reached").exists, what="a request that cannot be received")
                    gate.unlink()
                    asker.join()
                    self.assertTrue(mount.is_alive())
                with open(mount / "file", "rb") as file:
                    self.assertEqual(file.read(), b"not committed yet")
                # Of libfuse.
                self.assertEqual(set(mount.lines()), {"fuse: reading device: Cannot allocate memory"})


if __name__ == "__main__":
    mounting.main()
