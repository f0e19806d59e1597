"""Changes made behind the mount: seen by the next open, and by stat once the system has reported them. Where the kernel
keeps nothing of files (attr_timeout=0,entry_timeout=0, or a source that cannot be watched) stat sees them, too."""

import errno
import mmap
import os
import pathlib
import shutil
import tempfile
import threading
import time
import unittest

import mounting
from mounting import Mount, golden_frames, wait_for

FRAMES = ("matrix/000-blosclz-c1-none-t3.b2frame", "large/zstd.b2frame")
ROUNDS = 200
NOTHING_KEPT = "attr_timeout=0,entry_timeout=0"
KEPT = "attr_timeout=3600,entry_timeout=3600"  # nothing runs out while a test runs


def keeps_names():
    """Since Linux 6.16 the kernel can forget names without waiting for requests."""
    return tuple(int(number) for number in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 16)


def write_in_place(path, content):
    with open(path, "wb") as file:
        file.write(content)


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


class Shortened(Behind):
    """Files that another program shortens in place while a program of the mount has them open."""

    options = ("passthrough=off",)

    def shorten_while_open(self, name, stored, size):
        """`stored`: the bytes before and after. `size`: what the mount shows after."""
        for number in range(150):
            write_in_place(f"{self.source}/{name}", stored[0])
            with open(self.mount / name.removesuffix(".b2frame"), "rb", buffering=0) as file:
                os.pread(file.fileno(), 10, 0)
                time.sleep(0.002 * (number % 2))
                write_in_place(f"{self.source}/{name}", stored[1])
                # Not readall(), which asks for the size first. The kernel may know the size of the moment between the
                # truncation and the write.
                shown = 0
                try:
                    while part := os.pread(file.fileno(), 3_000_000, shown):
                        shown += len(part)
                except OSError as error:
                    self.assertEqual(error.errno, errno.EIO)
                self.assertLessEqual(shown, size, number)

    def test_a_read_shows_no_zeros_behind_the_end_of_a_frame(self):
        # semantics: T1, F11
        small, large = sorted(self.frames, key=lambda frame: len(frame[1]))
        self.shorten_while_open("x.b2frame", [pathlib.Path(frame[0]).read_bytes() for frame in (large, small)],
                                len(small[1]))

    def test_a_read_shows_no_zeros_behind_the_end_of_a_plain_file(self):
        # semantics: T1, F11
        self.shorten_while_open("plain", [b"a" * 600_000, b"b" * 73_000], 73_000)


class AtOnce(Behind):
    """Without times for which the kernel may keep anything, each call sees each change."""

    options = (NOTHING_KEPT,)

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


class ByDefault(Behind):
    """The kernel keeps what it knows of files until a change is reported; open(2) sees each change at once."""

    options = ("stats=on",)

    def test_open_sees_each_change_at_once(self):
        # semantics: F1
        for turn in range(ROUNDS):
            self.ask_twice(self.x)
            self.put(turn % 2)
            with open(self.x, "rb") as file:
                self.assertEqual(os.fstat(file.fileno()).st_size, self.size(turn % 2))
                self.assertEqual(file.read(), self.frames[turn % 2][1])

    def test_open_sees_each_change_of_a_plain_file(self):
        # semantics: F1
        for turn in range(ROUNDS):
            with open(self.source + "/plain", "ab") as file:
                file.write(b"one more")
            with open(self.mount / "plain", "rb") as file:
                self.assertEqual(file.seek(0, os.SEEK_END), 8 * (turn + 1))
            self.ask_twice(self.mount / "plain")

    def test_a_removed_file_is_created_again_at_once(self):
        # semantics: F1
        for turn in range(ROUNDS):
            self.ask_twice(self.x)
            os.unlink(self.source + "/x.b2frame")
            with open(self.x, "wb") as file:
                file.write(b"made again")
            self.assertEqual(os.stat(self.source + "/x.b2frame").st_nlink, 1, turn)

    def test_open_beside_a_writer_sees_that_the_file_is_gone(self):
        # semantics: F1
        for turn in range(ROUNDS):
            self.ask_twice(self.x)
            with open(self.x, "ab", buffering=0) as writer:
                writer.write(b"one more")
                os.fsync(writer.fileno())
                os.unlink(self.source + "/x.b2frame")
                with open(self.x, "wb") as file:
                    file.write(b"made again")
            self.assertEqual(os.stat(self.source + "/x.b2frame").st_nlink, 1, turn)

    def test_open_beside_a_writer_sees_a_replacement(self):
        # semantics: F1
        for turn in range(ROUNDS):
            self.ask_twice(self.x)
            with open(self.x, "ab", buffering=0) as writer:
                writer.write(b"one more")
                os.fsync(writer.fileno())
                self.put(turn % 2)
                with open(self.x, "rb") as file:
                    self.assertEqual(file.read(), self.frames[turn % 2][1])

    def test_open_sees_a_mode_and_times(self):
        # semantics: F1
        for turn in range(ROUNDS):
            self.ask_twice(self.x)
            os.utime(self.source + "/x.b2frame", ns=(turn, 1_000_000_000 + turn))
            os.chmod(self.source + "/x.b2frame", 0o600 + turn % 8)
            with open(self.x, "rb") as file:
                found = os.fstat(file.fileno())
            self.assertEqual((found.st_mtime_ns, found.st_mode & 0o777), (1_000_000_000 + turn, 0o600 + turn % 8))

    def test_an_append_to_a_file_that_has_grown(self):
        # semantics: F1, W3
        for turn in range(ROUNDS):
            with open(self.source + "/plain", "ab") as file:
                file.write(b"behind")
            if turn > 0:
                self.ask_twice(self.mount / "plain")
            with open(self.mount / "plain", "ab") as file:
                file.write(b"through")
            with open(self.source + "/plain", "rb") as file:
                self.assertEqual(file.read(), b"behindthrough" * (turn + 1))

    def test_a_name_that_did_not_exist_is_looked_up(self):
        # semantics: F1
        for turn in range(ROUNDS):
            self.assertFalse(os.path.exists(self.mount / f"new{turn}"))
            self.put(0, f"new{turn}.b2frame")
            self.assertTrue(os.path.exists(self.mount / f"new{turn}"))

    def test_stat_sees_a_change_once_it_is_reported(self):
        # semantics: F2
        for turn in range(50):
            self.ask_twice(self.x)
            self.put(turn % 2)
            wait_for(lambda turn=turn: os.stat(self.x).st_size == self.size(turn % 2), what="the change")
        os.unlink(self.source + "/x.b2frame")
        wait_for(lambda: not os.path.exists(self.x), what="the removal")

    def test_first_answers_are_taken_back(self):
        # semantics: F2
        # Each name is looked up for the first time while its file changes.
        sizes = {}
        for number in range(300):
            name = f"{self.source}/first{number}"
            with open(name, "wb") as file:
                file.write(b"a")
            other = threading.Thread(target=lambda number=number: os.stat(self.mount / f"first{number}"))
            other.start()
            with open(name, "ab") as file:
                file.write(b"b" * number)
            other.join()
            sizes[number] = number + 1
        for number, size in sizes.items():
            wait_for(lambda number=number, size=size: os.stat(self.mount / f"first{number}").st_size == size,
                     what=f"the size of file {number}")

    def test_stat_of_files_that_are_known_makes_no_requests(self):
        # semantics: F2
        for number in range(100):
            self.put(0, f"known{number}.b2frame")
        names = [f"known{number}" for number in range(100)]
        wait_for(lambda: self.requests_for(names) < 10, what="the kernel to keep what it knows")

    def requests_for(self, names):
        before = self.mount.statistics()["lookups"]
        for name in names:
            os.stat(self.mount / name)
        return 0 if not keeps_names() else self.mount.statistics()["lookups"] - before

    def test_new_names_leave_others_known(self):
        # semantics: F2
        if not keeps_names():
            self.skipTest("the kernel keeps no names")
        for number in range(100):
            self.put(0, f"known{number}.b2frame")
        names = [f"known{number}" for number in range(100)]
        # A name that is in use stays when a test that runs beside this one drops the caches of the system.
        for name in names:
            self.addCleanup(os.close, os.open(self.mount / name, os.O_PATH))
        wait_for(lambda: self.requests_for(names) < 10, what="the kernel to keep what it knows")
        for number in range(20):
            self.put(0, f"behind{number}.b2frame")
            with open(self.mount / f"through{number}", "wb") as file:
                file.write(b"new")
            os.unlink(self.mount / f"through{number}")
        time.sleep(0.05)
        self.assertLess(self.requests_for(names), 10)

    def test_a_file_that_gets_a_second_name_unseen(self):
        # semantics: F9
        os.mkdir(self.source + "/unseen")
        self.ask_twice(self.x)
        os.link(self.source + "/x.b2frame", self.source + "/unseen/x.b2frame")
        os.utime(self.source + "/unseen/x.b2frame", ns=(5, 2_000_000_005))
        # No report tells of it; open(2) looks.
        with open(self.x, "rb") as file:
            self.assertEqual(os.fstat(file.fileno()).st_mtime_ns, 2_000_000_005)
        self.assertEqual(os.stat(self.x).st_mtime_ns, 2_000_000_005)

    def test_a_change_by_the_other_name_of_a_frame(self):
        # semantics: L2, F2
        self.ask_twice(self.x)
        os.link(self.source + "/x.b2frame", self.source + "/y.b2frame")
        self.assertEqual(os.stat(self.mount / "y").st_size, self.size(0))
        os.truncate(self.x, 0)
        self.assertEqual(os.stat(self.source + "/y.b2frame").st_nlink, 1)
        with open(self.mount / "y", "rb") as file:
            self.assertEqual(file.read(), self.frames[0][1])

    def test_a_store_through_a_map_is_seen_when_the_writer_closes(self):
        # semantics: F9
        with open(self.source + "/plain", "wb") as file:
            file.write(bytes(4096))
        self.ask_twice(self.mount / "plain")
        with open(self.source + "/plain", "r+b") as file:
            with mmap.mmap(file.fileno(), 4096) as area:
                area[0] = 1
                area.flush()
            written = os.fstat(file.fileno()).st_mtime_ns
        wait_for(lambda: os.stat(self.mount / "plain").st_mtime_ns == written, what="the time of the store")


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

    def test_what_another_mount_writes_to_a_file_that_it_has_created(self):
        # semantics: F2
        with Mount(self.source) as other, open(other / "y", "wb", buffering=0) as file:
            for turn in range(10):
                file.write(b"z" * 1000)
                os.fsync(file.fileno())
                self.sees(lambda size=1000 * turn + 1000: os.stat(self.mount / "y").st_size == size)
                self.ask_twice(self.mount / "y")

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
        # Otherwise the names, though not the attributes, are asked for each time.
        if keeps_names():
            self.assertLess(self.mount.statistics()["lookups"] - before, 10)


class WithoutWatches(AtOnce):
    """No directory can be watched: the kernel asks each time, whatever it was told to keep."""

    options = (KEPT,)

    def environment(self):
        return {"LD_PRELOAD": os.environ["SLOW_CALLS_LIBRARY"], "NO_INOTIFY": "1",
                "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}

    def test_an_open_reader_sees_the_next_state(self):
        # semantics: P6, F10
        with open(self.source + "/plain", "wb") as file:
            file.write(b"a" * 100_000)
        with open(self.mount / "plain", "rb", buffering=0) as reader:
            for letter in b"bcdefgh":
                with open(self.source + "/plain", "r+b") as file:
                    file.write(bytes([letter]) * 100_000)
                os.stat(self.mount / "plain")
                self.assertEqual(os.pread(reader.fileno(), 100_000, 0), bytes([letter]) * 100_000)


class WithoutWatchesByDefault(WithoutWatches):
    options = ()


if __name__ == "__main__":
    mounting.main()
