"""Changes made behind the mount: at the next call by default; a moment later where the kernel was told to keep what it
knows of files (attr_timeout, entry_timeout)."""

import errno
import os
import shutil
import tempfile
import time
import unittest

import mounting
from mounting import Mount, golden_frames, wait_for

FRAMES = ("matrix/000-blosclz-c1-none-t3.b2frame", "large/zstd.b2frame")
ROUNDS = 200
KEPT = "attr_timeout=3600,entry_timeout=3600"  # nothing runs out while a test runs


class Behind(unittest.TestCase):
    """A source with one frame, x, of two that can take its place."""

    options = ()

    def environment(self):
        return None

    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-test-")
        self.addCleanup(work.cleanup)
        work = os.path.realpath(work.name)
        self.source = work + "/source"
        os.mkdir(self.source)
        os.mkdir(work + "/mnt")
        self.frames = golden_frames(*FRAMES)
        self.put(0)
        self.mount = Mount(self.source, *self.options, mountpoint=work + "/mnt", environment=self.environment())
        self.addCleanup(self.mount.close)
        self.x = self.mount / "x"

    def put(self, which, name="x.b2frame"):
        """One of the frames, whole from one moment to the next."""
        shutil.copy(self.frames[which][0], self.source + "/new.part")
        os.rename(self.source + "/new.part", f"{self.source}/{name}")

    def size(self, which):
        return len(self.frames[which][1])

    def ask_twice(self, path):
        """After this the kernel keeps of a file what it may keep."""
        return [os.stat(path) for _ in range(2)][-1]


class AtOnce(Behind):
    def test_a_file_that_was_just_created(self):
        # semantics: F8
        for number in range(20):
            created = os.open(self.mount / f"new{number}", os.O_RDWR | os.O_CREAT, 0o600)
            os.chmod(f"{self.source}/new{number}.b2frame", 0o640)
            made = time.monotonic()
            while os.fstat(created).st_mode & 0o777 != 0o640:
                self.assertLess(time.monotonic() - made, 5)
            os.fchmod(created, 0o604)
            self.assertEqual(os.fstat(created).st_mode & 0o777, 0o604)
            os.write(created, b"text")
            self.assertEqual(os.fstat(created).st_size, 4)
            os.close(created)

    def test_a_frame_that_is_replaced(self):
        # semantics: F1
        for turn in range(ROUNDS):
            self.put(turn % 2)
            self.assertEqual(os.stat(self.x).st_size, self.size(turn % 2))

    def test_times_and_modes(self):
        for turn in range(ROUNDS):
            os.utime(self.source + "/x.b2frame", ns=(turn, 1_000_000_000 + turn))
            os.chmod(self.source + "/x.b2frame", 0o600 + turn % 8)
            found = os.stat(self.x)
            self.assertEqual((found.st_mtime_ns, found.st_mode & 0o777), (1_000_000_000 + turn, 0o600 + turn % 8))

    def test_frames_that_come_and_go(self):
        for _ in range(ROUNDS):
            os.unlink(self.source + "/x.b2frame")
            self.assertFalse(os.path.exists(self.x))
            self.put(0)
            self.assertTrue(os.path.exists(self.x))
            os.rename(self.source + "/x.b2frame", self.source + "/y.b2frame")
            self.assertFalse(os.path.exists(self.x))
            os.rename(self.source + "/y.b2frame", self.source + "/x.b2frame")

    def test_a_plain_file_that_takes_the_name(self):
        for _ in range(ROUNDS):
            with open(self.source + "/x", "wb") as file:
                file.write(b"plain")
            self.assertEqual(os.stat(self.x).st_size, 5)
            os.unlink(self.source + "/x")
            self.assertEqual(os.stat(self.x).st_size, self.size(0))


class Kept(Behind):
    """The same where the kernel keeps what it knows: nothing is missed, and nothing is asked for meanwhile."""

    options = (KEPT + ",stats=on",)

    def sees(self, condition):
        wait_for(condition, what="the change")

    def test_a_frame_that_is_replaced(self):
        # semantics: F2
        for turn in range(20):
            self.ask_twice(self.x)
            self.put(turn % 2)
            self.sees(lambda turn=turn: os.stat(self.x).st_size == self.size(turn % 2))
            with open(self.x, "rb") as file:
                self.assertEqual(file.read(), self.frames[turn % 2][1])

    def test_times(self):
        for turn in range(20):
            self.ask_twice(self.x)
            os.utime(self.source + "/x.b2frame", ns=(turn, 1_000_000_000 + turn))
            self.sees(lambda turn=turn: os.stat(self.x).st_mtime_ns == 1_000_000_000 + turn)

    def test_a_frame_that_goes_and_one_that_comes(self):
        self.ask_twice(self.x)
        os.unlink(self.source + "/x.b2frame")
        self.sees(lambda: not os.path.exists(self.x))
        self.put(1)
        self.sees(lambda: os.path.exists(self.x))

    def test_a_frame_that_is_renamed(self):
        self.ask_twice(self.x)
        os.rename(self.source + "/x.b2frame", self.source + "/y.b2frame")
        self.sees(lambda: not os.path.exists(self.x))
        self.assertEqual(os.stat(self.mount / "y").st_size, self.size(0))

    def test_a_plain_file_that_takes_the_name(self):
        self.ask_twice(self.x)
        with open(self.source + "/x", "wb") as file:
            file.write(b"plain")
        self.sees(lambda: os.stat(self.x).st_size == 5)
        os.unlink(self.source + "/x")
        self.sees(lambda: os.stat(self.x).st_size == self.size(0))

    def test_a_file_with_two_names_is_asked_for_each_time(self):
        os.mkdir(self.source + "/unseen")
        os.link(self.source + "/x.b2frame", self.source + "/unseen/x.b2frame")
        self.sees(lambda: os.stat(self.x).st_size > 0)
        self.ask_twice(self.x)
        for turn in range(ROUNDS):
            os.utime(self.source + "/unseen/x.b2frame", ns=(turn, 2_000_000_000 + turn))
            self.assertEqual(os.stat(self.x).st_mtime_ns, 2_000_000_000 + turn)

    def test_what_the_mount_itself_writes_shows_at_once(self):
        for turn in range(20):
            with open(self.x, "wb") as file:
                file.write(b"z" * (turn + 1))
            self.assertEqual(os.stat(self.x).st_size, turn + 1)
            os.utime(self.x, ns=(0, turn))
            self.assertEqual(os.stat(self.x).st_mtime_ns, turn)
            os.rename(self.x, self.mount / "z")
            with self.assertRaises(OSError) as gone:
                os.stat(self.x)
            self.assertEqual(gone.exception.errno, errno.ENOENT)
            os.rename(self.mount / "z", self.x)

    def test_stat_of_a_file_that_is_known_asks_nobody(self):
        # semantics: F2
        self.ask_twice(self.x)
        before = self.mount.statistics()["lookups"]
        for _ in range(ROUNDS):
            os.stat(self.x)
        # Before Linux 6.16 the names, though not the attributes, are asked for each time.
        kernel = tuple(int(number) for number in os.uname().release.split("-")[0].split(".")[:2])
        if kernel >= (6, 16):
            self.assertLess(self.mount.statistics()["lookups"] - before, 10)


class WithoutWatches(AtOnce):
    """No directory can be watched: the kernel asks each time, whatever it was told to keep."""

    options = (KEPT,)

    def environment(self):
        return {"LD_PRELOAD": os.environ["SLOW_CALLS_LIBRARY"], "NO_INOTIFY": "1",
                "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}

    def test_an_open_reader_sees_the_next_state(self):
        # semantics: P6
        with open(self.source + "/plain", "wb") as file:
            file.write(b"a" * 100_000)
        with open(self.mount / "plain", "rb", buffering=0) as reader:
            for letter in b"bcdefgh":
                with open(self.source + "/plain", "r+b") as file:
                    file.write(bytes([letter]) * 100_000)
                os.stat(self.mount / "plain")
                self.assertEqual(os.pread(reader.fileno(), 100_000, 0), bytes([letter]) * 100_000)


if __name__ == "__main__":
    mounting.main()
