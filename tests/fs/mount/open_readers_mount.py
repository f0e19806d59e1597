"""fs/doc/semantics.md: what a program sees of a file that changes behind the mount while it has the file open,
and of locks and notices between programs on both sides."""

import ctypes
import errno
import fcntl
import mmap
import os
import select
import shutil
import subprocess
import tempfile
import threading
import unittest

import mounting
from mounting import Mount, output

REQUEST = 512 << 10  # what the kernel asks for at once
SIZE = 4 * REQUEST
STATES = 30


def state(number):
    return bytes([65 + number]) * SIZE


class OpenReaders(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-readers-", dir=mounting.fast_directory())
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.source = work.name + "/source"
        os.mkdir(self.source)
        self.pack(0, self.source + "/x.b2frame")

    def pack(self, number, frame):
        with open(self.work + "/plain", "wb") as file:
            file.write(state(number))
        output(mounting.CFRAME, "pack", "--force", "--codec", "lz4", "--chunksize", "256K", self.work + "/plain", frame)

    def requests(self, descriptor, room):
        """Each request past the page cache: what it read, or nothing where the file kept changing."""
        for begin in range(0, SIZE, REQUEST):
            try:
                self.assertEqual(os.preadv(descriptor, [room], begin), REQUEST)
            except OSError as error:
                self.assertEqual(error.errno, errno.ESTALE)
                continue
            yield room[:]

    def test_a_file_that_is_replaced_stays_as_it_was_for_those_that_have_it_open(self):
        # semantics: R10, F3
        with Mount(self.source) as mount:
            with open(mount / "x", "rb", buffering=0) as reader, \
                    mmap.mmap(reader.fileno(), SIZE, prot=mmap.PROT_READ) as shared:
                for number in range(1, 6):
                    self.pack(number, self.work + "/new.b2frame")
                    os.rename(self.work + "/new.b2frame", self.source + "/x.b2frame")
                    with open(mount / "x", "rb") as later:
                        self.assertTrue(later.read() == state(number))
                    self.assertTrue(os.pread(reader.fileno(), SIZE, 0) == state(0))
                    self.assertTrue(shared[:] == state(0))

    def read_while_it_changes(self, mount, change):
        """Requests of an open reader while `change` makes one state after the other: the numbers of the states."""
        room = mmap.mmap(-1, REQUEST)
        reader = os.open(mount / "x", os.O_RDONLY | os.O_DIRECT)
        try:
            return self.read_beside(reader, room, change)
        finally:
            os.close(reader)

    def read_beside(self, reader, room, change):
        thread = threading.Thread(target=lambda: [change(number) for number in range(1, STATES)])
        thread.start()
        seen = []
        while thread.is_alive():
            for part in self.requests(reader, room):
                self.assertEqual(part, part[:1] * REQUEST, "one request, two states")
                seen.append(part[0] - 65)
        thread.join()
        for part in self.requests(reader, room):
            self.assertEqual(part[0] - 65, STATES - 1)
        return seen

    def test_each_request_is_of_one_state_and_none_of_an_older_one_than_before(self):
        """Another mount commits to the frame in place."""
        # semantics: F4
        with Mount(self.source) as mount, Mount(self.source, "commit_interval=1000") as other:
            with open(other / "x", "r+b", buffering=0) as writer:

                def change(number):
                    os.pwrite(writer.fileno(), state(number), 0)
                    os.fsync(writer.fileno())

                seen = self.read_while_it_changes(mount, change)
        self.assertEqual(seen, sorted(seen))
        self.assertGreater(len(set(seen)), 2, "the reader was too slow to see anything")

    def test_a_read_of_several_requests_may_hold_several_states(self):
        """As the README says; were it otherwise, this would tell that it may promise more."""
        # semantics: F5
        with Mount(self.source) as mount, Mount(self.source, "commit_interval=1000") as other:
            with open(mount / "x", "rb", buffering=0) as reader, open(other / "x", "r+b", buffering=0) as writer:
                first = os.pread(reader.fileno(), REQUEST, 0)
                writer.write(state(1))
                os.fsync(writer.fileno())
                os.stat(mount / "x")
                rest = os.pread(reader.fileno(), SIZE - REQUEST, REQUEST)
        self.assertEqual((first, rest), (state(0)[:REQUEST], state(1)[REQUEST:]))

    def test_locks_count_in_one_mount(self):
        # semantics: Q1, Q2
        with Mount(self.source) as mount, Mount(self.source) as other:
            descriptors = [os.open(path, os.O_RDWR) for path in (mount / "x", mount / "x", other / "x")]
            holder, beside, elsewhere = descriptors
            fcntl.flock(holder, fcntl.LOCK_EX)
            with self.assertRaises(BlockingIOError):
                fcntl.flock(beside, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(elsewhere, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for descriptor in descriptors:
                os.close(descriptor)
            with open(self.source + "/plain", "wb") as stored, open(mount / "plain", "rb") as shown:
                fcntl.flock(shown, fcntl.LOCK_EX)
                fcntl.flock(stored, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_inotify_tells_of_what_is_done_in_the_mount_alone(self):
        # semantics: Q3
        libc = ctypes.CDLL(None, use_errno=True)
        shutil.copy(self.source + "/x.b2frame", self.work + "/copy")
        with Mount(self.source) as mount:
            notices = libc.inotify_init1(os.O_NONBLOCK)
            self.addCleanup(os.close, notices)
            self.assertGreaterEqual(libc.inotify_add_watch(notices, mount.path.encode(), 0x100), 0)  # IN_CREATE
            shutil.copy(self.work + "/copy", self.source + "/behind.b2frame")
            self.assertTrue(os.path.exists(mount / "behind"))
            self.assertEqual(select.select([notices], [], [], 0.3)[0], [])
            subprocess.run(["touch", mount / "made"], check=True)
            self.assertEqual(select.select([notices], [], [], 10)[0], [notices])
            self.assertIn(b"made\0", os.read(notices, 4096))


if __name__ == "__main__":
    mounting.main()
