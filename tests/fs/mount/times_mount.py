"""Times of frames that programs write: mtime and ctime move with each write and each change of the size, as those of a
plain file do; a commit leaves the time of the last write, and a time that was set before the close stays."""

import os
import tempfile
import time
import unittest

import mounting
from mounting import Mount, wait_for
from sparse_frames import make_sparse_frame

LONG_AGO = 10**18


class Times(unittest.TestCase):
    OPTIONS = ("commit_interval=1000",)

    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-times-")
        self.addCleanup(work.cleanup)
        make_sparse_frame(work.name + "/sparse.b2frame", bytes(range(250)) * 40, 4096)
        with open(work.name + "/plain", "wb") as file:
            file.write(bytes(10000))
        self.source = work.name
        self.mount = Mount(work.name, *self.OPTIONS)
        self.addCleanup(lambda: self.mount.log is not None and self.mount.close())
        with open(self.mount / "frame", "wb") as file:
            file.write(bytes(range(250)) * 40)
        self.names = ("frame", "sparse", "plain")

    def changes(self):
        """Each moves both times, also where it leaves the bytes or the size as they are."""
        return {
            "write": lambda fd: os.pwrite(fd, b"w", 3),
            "write behind the end": lambda fd: os.pwrite(fd, b"w", os.fstat(fd).st_size + 100),
            "grow": lambda fd: os.ftruncate(fd, os.fstat(fd).st_size + 100),
            "cut": lambda fd: os.ftruncate(fd, os.fstat(fd).st_size - 50),
            "same size": lambda fd: os.ftruncate(fd, os.fstat(fd).st_size),
            "allocate": lambda fd: os.posix_fallocate(fd, 0, os.fstat(fd).st_size + 500),
        }

    def assert_moved(self, before, after, what):
        self.assertGreater(after.st_mtime_ns, before.st_mtime_ns, f"mtime, {what}")
        self.assertGreater(after.st_ctime_ns, before.st_ctime_ns, f"ctime, {what}")

    def test_each_change_moves_both(self):
        # semantics: I1
        for name in self.names:
            for what, change in self.changes().items():
                with self.subTest(name, change=what):
                    descriptor = os.open(self.mount / name, os.O_RDWR)
                    self.addCleanup(os.close, descriptor)
                    before = os.fstat(descriptor)
                    time.sleep(0.02)  # more than a tick of the clock that stamps files
                    change(descriptor)
                    self.assert_moved(before, os.fstat(descriptor), "by the handle")
                    self.assert_moved(before, os.stat(self.mount / name), "by the name")

    def test_truncate_by_name_moves_both(self):
        for name in self.names:
            for size in (20000, 100, 50, 5000, 0):
                with self.subTest(name, size=size):
                    before = os.stat(self.mount / name)
                    time.sleep(0.02)
                    os.truncate(self.mount / name, size)
                    self.assert_moved(before, os.stat(self.mount / name), "")

    def test_close_and_fsync_leave_the_time_of_the_last_write(self):
        # semantics: I2
        for name in self.names:
            for commit in (os.fsync, None):
                with self.subTest(name, commit=commit):
                    descriptor = os.open(self.mount / name, os.O_RDWR)
                    os.pwrite(descriptor, b"last", 10)
                    written = os.fstat(descriptor).st_mtime_ns
                    time.sleep(0.1)
                    if commit:
                        commit(descriptor)
                        self.assertEqual(os.fstat(descriptor).st_mtime_ns, written)
                    os.close(descriptor)
                    self.assertEqual(os.stat(self.mount / name).st_mtime_ns, written)
                    self.assert_on_disk(name, written)

    def assert_on_disk(self, name, mtime):
        stored = {"frame": "frame.b2frame", "sparse": "sparse.b2frame/chunks.b2frame", "plain": "plain"}[name]
        path = os.path.join(self.source, stored)
        # The last release comes after close(2) has returned.
        wait_for(lambda: os.stat(path).st_mtime_ns == mtime, 5, "the time on disk")

    def test_a_commit_by_the_timer_leaves_the_time_of_the_last_write(self):
        with Mount(self.source, "commit_interval=0.05") as mount:
            for name in self.names[1:]:
                with self.subTest(name):
                    descriptor = os.open(mount / name, os.O_RDWR)
                    os.pwrite(descriptor, b"timer", 10)
                    written = os.fstat(descriptor).st_mtime_ns
                    self.assert_on_disk(name, written)
                    self.assertEqual(os.fstat(descriptor).st_mtime_ns, written)
                    os.close(descriptor)
                    self.assertEqual(os.stat(mount / name).st_mtime_ns, written)

    def test_a_time_that_is_set_before_the_close_stays(self):
        # semantics: I3
        for name in self.names:
            with self.subTest(name):
                descriptor = os.open(self.mount / name, os.O_RDWR)
                os.pwrite(descriptor, b"before", 10)
                os.utime(descriptor, ns=(LONG_AGO, LONG_AGO + 1))
                self.assertEqual(os.fstat(descriptor).st_mtime_ns, LONG_AGO + 1)
                os.close(descriptor)
                self.assertEqual(os.stat(self.mount / name).st_mtime_ns, LONG_AGO + 1)
                self.assert_on_disk(name, LONG_AGO + 1)
        self.mount.close()
        with Mount(self.source, "ro") as mount:
            for name in self.names:
                self.assertEqual(os.stat(mount / name).st_mtime_ns, LONG_AGO + 1)

    def test_a_write_after_a_time_was_set_moves_it(self):
        # semantics: I3
        for name in self.names:
            with self.subTest(name):
                descriptor = os.open(self.mount / name, os.O_RDWR)
                os.pwrite(descriptor, b"before", 10)
                os.utime(descriptor, ns=(LONG_AGO, LONG_AGO))
                os.pwrite(descriptor, b"after", 10)
                written = os.fstat(descriptor).st_mtime_ns
                self.assertGreater(written, LONG_AGO)
                os.close(descriptor)
                self.assertEqual(os.stat(self.mount / name).st_mtime_ns, written)

    def test_reading_moves_nothing(self):
        for name in self.names:
            before = os.stat(self.mount / name)
            descriptor = os.open(self.mount / name, os.O_RDWR)
            os.pread(descriptor, 100, 0)
            os.close(descriptor)
            after = os.stat(self.mount / name)
            self.assertEqual((before.st_mtime_ns, before.st_ctime_ns), (after.st_mtime_ns, after.st_ctime_ns), name)


class TimesWithWriteback(Times):
    OPTIONS = ("commit_interval=1000", "writeback=on")


if __name__ == "__main__":
    mounting.main()
