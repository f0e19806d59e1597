"""Several programs write and read one frame, through the mount and behind it, at the limits of rights and space."""

import errno
import fcntl
import filecmp
import mmap
import os
import shutil
import subprocess
import tempfile
import threading
import time

import mounting
from mounting import Mount, output, run, wait_for
from written_directory import Writing, some_bytes


class Others(Writing):
    """Other processes, and disks that are full."""

    def frame(self, name, content):
        with tempfile.TemporaryDirectory() as directory, Mount(directory, *self.options) as mount:
            with open(mount / "x", "wb") as file:
                file.write(content)
            shutil.copy(directory + "/x.b2frame", self.source + "/" + name)

    def test_who_reads_sees_what_others_only_write(self):
        # semantics: W2
        # Writes through handles that cannot read may pass the kernel's pages by.
        self.frame("x.b2frame", bytes(100_000))
        mount = self.mount()
        reads = os.open(mount / "x", os.O_RDONLY)
        writes = os.open(mount / "x", os.O_WRONLY)
        self.addCleanup(os.close, reads)
        self.addCleanup(os.close, writes)
        with mmap.mmap(reads, 100_000, prot=mmap.PROT_READ) as mapped:
            self.assertEqual(os.pread(reads, 100_000, 0), bytes(100_000))
            self.assertEqual(mapped[:], bytes(100_000))
            for at, length in ((0, 1), (4095, 2), (50_000, 30_000), (99_999, 1)):
                piece = some_bytes(length, at)
                os.pwrite(writes, piece, at)
                self.assertEqual(os.pread(reads, length, at), piece)
                self.assertEqual(mapped[at : at + length], piece)
        os.pwrite(writes, b"more", 100_000)
        self.assertEqual(os.fstat(reads).st_size, 100_004)
        self.assertEqual(os.pread(reads, 10, 99_999)[1:], b"more")

    def test_a_new_file_is_not_the_removed_one_whose_inode_it_has(self):
        old, new = some_bytes(400_000, 1), some_bytes(25_110, 2)
        for options in ((), ("writeback=on",)):
            reused = 0
            mount = self.mount(*options)
            for number in range(60):
                a, b = f"a{number}", f"b{number}"
                with open(mount / a, "wb") as file:
                    file.write(old)
                with open(mount / a, "rb") as file:
                    file.read()
                inode = os.stat(f"{self.source}/{a}.b2frame").st_ino
                os.unlink(f"{self.source}/{a}.b2frame")
                with open(mount / b, "wb") as file:
                    file.write(new)
                reused += os.stat(f"{self.source}/{b}.b2frame").st_ino == inode
                self.assertEqual(os.stat(mount / b).st_size, len(new), options)
                self.assertEqual(output(mounting.CFRAME, "cat", f"{self.source}/{b}.b2frame"), new, options)
                os.unlink(mount / b)
                if reused == 3:
                    break
            mount.close()
            if reused == 0:
                self.skipTest("the filesystem gives no inode number again")

    def test_a_removed_file_is_opened_again_by_its_descriptor(self):
        # semantics: U2, U5
        def check(path, first, again, remove):
            with open(path, "wb") as file:
                file.write(b"first")
            descriptors = [os.open(path, first)]
            try:
                remove(path)
                descriptors.append(os.open(f"/proc/self/fd/{descriptors[0]}", again))
                if again != os.O_WRONLY:
                    self.assertEqual(os.pread(descriptors[1], 9, 0), b"first")
                if again != os.O_RDONLY:
                    self.assertEqual(os.pwrite(descriptors[1], b"F", 0), 1)
                if first != os.O_WRONLY:
                    self.assertEqual(os.pread(descriptors[0], 9, 0)[1:], b"irst")
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)

        def replace(path):
            with open(f"{path}.new", "wb") as file:
                file.write(b"other")
            os.rename(f"{path}.new", path)

        read, write, both = os.O_RDONLY, os.O_WRONLY, os.O_RDWR
        for options, is_frame in (((), True), (("names=keep",), False)):
            mount = self.mount(*options)
            for remove in (os.unlink, replace):
                for first in (read, write, both):
                    for again in (read, write, both):
                        with self.subTest(options=options, remove=remove.__name__, first=first, again=again):
                            if is_frame and first == read and again != read:
                                self.assert_refused(errno.ESTALE, check, mount / "x", first, again, remove)
                            else:
                                check(mount / "x", first, again, remove)
            mount.close()

    def test_what_is_written_synchronously_is_on_disk(self):
        # semantics: C2
        self.frame("x.b2frame", b"first" * 1000)
        mount = self.mount("commit_interval=1000")

        def stored():
            with open(self.source + "/x.b2frame", "rb") as file:
                return file.read()

        for access in (os.O_WRONLY, os.O_RDWR):
            for opened, of_call in ((os.O_SYNC, 0), (os.O_DSYNC, 0), (0, os.RWF_SYNC), (0, os.RWF_DSYNC), (0, 0)):
                with self.subTest(access=access, opened=opened, of_call=of_call):
                    descriptor = os.open(mount / "x", access | opened)
                    before = stored()
                    os.pwritev(descriptor, [os.urandom(100)], 50, of_call)
                    self.assertEqual(stored() != before, bool(opened or of_call))
                    os.close(descriptor)

    def test_writing_takes_privileges_away(self):
        # semantics: W8
        def write_as_user(path, pipes):
            """In a process of its own: privileged writers need not take them away."""
            child = os.fork()
            if child == 0:
                try:
                    if os.geteuid() == 0:
                        os.setgroups([])
                        os.setgid(65534)
                        os.setuid(65534)
                    descriptor = os.open(path, os.O_WRONLY)
                    os.write(pipes[1], b"1")
                    os.read(pipes[2], 1)
                    os.pwrite(descriptor, b"XX", 0)
                    os._exit(0)
                finally:
                    os._exit(1)
            return child

        os.chmod(self.source, 0o777)
        mount = self.mount(*(["allow_other"] if os.geteuid() == 0 else []))
        for late in (False, True):
            with self.subTest(late=late):
                with open(mount / "x", "wb") as file:
                    file.write(b"first")
                os.chmod(mount / "x", 0o777 if late else 0o6777)
                pipes = (*os.pipe(), *os.pipe())
                child = write_as_user(mount / "x", pipes)
                os.close(pipes[1])
                os.read(pipes[0], 1)
                if late:
                    os.chmod(mount / "x", 0o6777)
                os.write(pipes[3], b"1")
                self.assertEqual(os.waitpid(child, 0)[1], 0)
                for pipe in (pipes[0], *pipes[2:]):
                    os.close(pipe)
                self.assertEqual(oct(os.stat(mount / "x").st_mode & 0o7777), oct(0o777))
                self.assertEqual(oct(os.stat(self.source + "/x.b2frame").st_mode & 0o7777), oct(0o777))

    def test_no_read_that_begins_after_a_write_gives_what_was_before(self):
        # semantics: W2
        self.frame("x.b2frame", bytes(8192))
        mount = self.mount()
        written = [0]
        ended = threading.Event()
        older = []

        def read():
            with open(mount / "x", "rb", buffering=0) as file:
                while not ended.is_set():
                    least = written[0]
                    got = int.from_bytes(os.pread(file.fileno(), 8, 4090), "little")
                    if got < least:
                        older.append((got, least))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        with open(mount / "x", "wb", buffering=0, opener=lambda name, _: os.open(name, os.O_WRONLY)) as file:
            for number in range(1, 3000):
                os.pwrite(file.fileno(), number.to_bytes(8, "little"), 4090)
                written[0] = number
        ended.set()
        for reader in readers:
            reader.join()
        self.assertEqual(older, [])

    def test_a_change_by_somebody_else_under_dirty_data_is_stale(self):
        # semantics: C8
        self.frame("x.b2frame", b"first" * 1000)
        self.frame("other", b"second" * 1000)
        mount = self.mount("commit_interval=1000")
        descriptor = os.open(mount / "x", os.O_RDWR)
        os.pwrite(descriptor, b"mine", 0)
        shutil.copyfile(self.source + "/other", self.source + "/x.b2frame")
        self.assert_refused(errno.ESTALE, os.fsync, descriptor)
        self.assert_refused(errno.ESTALE, os.pwrite, descriptor, b"mine", 0)
        self.assert_refused(errno.ESTALE, os.close, descriptor)
        self.assertTrue(filecmp.cmp(self.source + "/other", self.source + "/x.b2frame", shallow=False))
        with open(mount / "x", "rb") as file:
            self.assertEqual(file.read(), b"second" * 1000)

    def opened(self, path):
        for _ in range(10):
            try:
                return open(path, "r+b", buffering=0)
            except OSError as error:
                if error.errno != errno.ESTALE:
                    raise
        raise AssertionError("stale ten times")

    def test_two_mounts_write_one_frame_in_turns(self):
        # semantics: C13
        # The mount that wrote last compacts the frame after close(2) has returned. An open meanwhile may have to be repeated
        # (F6).
        self.frame("x.b2frame", some_bytes(200_000, 1))
        content = bytearray(some_bytes(200_000, 1))
        mounts = [self.mount(), Mount(self.source)]
        self.addCleanup(mounts[1].close)
        for turn in range(50):
            piece, at = some_bytes(30_000, turn), turn * 7919 % 170_000
            with self.opened(mounts[turn % 2] / "x") as file:
                file.seek(at)
                file.write(piece)
            content[at : at + len(piece)] = piece
        for mount in mounts:
            with open(mount / "x", "rb") as file:
                self.assertEqual(file.read(), content)

    def test_a_commit_that_waits_for_a_lock_keeps_nobody_waiting(self):
        # One thread of the daemon may be serving alone just then (fs/fuse/busy_poll_policy.h).
        self.frame("x.b2frame", b"first" * 1000)
        self.frame("y.b2frame", b"second" * 1000)
        mount = self.mount("commit_interval=1000")
        answers = [0]
        ended = threading.Event()

        def ask():
            while not ended.is_set():
                os.listxattr(mount / "y")
                answers[0] += 1

        def commit_behind_a_lock(descriptor):
            os.pwrite(descriptor, b"mine", 0)
            commits = threading.Thread(target=os.fsync, args=(descriptor,))
            with open(self.source + "/x.b2frame.b2lock", "wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                commits.start()
                time.sleep(0.03)  # by now it waits
                try:
                    wait_for(lambda before=answers[0]: answers[0] > before + 100, seconds=4)
                    self.assertTrue(commits.is_alive())
                finally:
                    fcntl.flock(lock, fcntl.LOCK_UN)
                    commits.join()

        asks = threading.Thread(target=ask)
        asks.start()
        descriptor = os.open(mount / "x", os.O_RDWR)
        try:
            for _ in range(15):
                wait_for(lambda before=answers[0]: answers[0] > before + 100)
                commit_behind_a_lock(descriptor)
        finally:
            ended.set()
            asks.join()
        os.close(descriptor)
        self.assertEqual(output(mounting.CFRAME, "cat", self.source + "/x.b2frame")[:6], b"minetf")

    def test_a_clean_file_follows_somebody_else(self):
        self.frame("x.b2frame", b"first" * 1000)
        self.frame("other", b"second" * 1000)
        mount = self.mount()
        with open(mount / "x", "r+b", buffering=0) as file:
            self.assertEqual(file.read(5), b"first")
            shutil.copyfile(self.source + "/other", self.source + "/x.b2frame")
            wait_for(lambda: os.fstat(file.fileno()).st_size == 6000, 30)
            self.assertEqual(os.pread(file.fileno(), 6, 0), b"second")
            os.pwrite(file.fileno(), b"SECOND", 0)
        with open(mount / "x", "rb") as file:
            self.assertEqual(file.read(), b"SECOND" + b"second" * 999)

    def test_a_full_disk(self):
        # semantics: C4, C10
        if os.geteuid() != 0 or run("mount", "-t", "tmpfs", "-o", "size=1M", "none", self.source).returncode != 0:
            self.skipTest("needs the right to mount a small tmpfs")
        self.addCleanup(subprocess.run, ["umount", "-l", self.source], check=False)
        mount = self.mount("commit_interval=1000")
        with open(mount / "x", "wb") as file:
            file.write(b"old state " * 100)
        with open(self.source + "/ballast", "wb") as file:
            file.write(bytes(700_000))
        descriptor = os.open(mount / "x", os.O_RDWR)
        noise = os.urandom(600_000)
        self.assertEqual(os.pwrite(descriptor, noise, 0), len(noise))
        self.assert_refused(errno.ENOSPC, os.fsync, descriptor)
        output(mounting.CFRAME, "verify", self.source + "/x.b2frame")
        self.assertEqual(output(mounting.CFRAME, "cat", self.source + "/x.b2frame"), b"old state " * 100)
        os.unlink(self.source + "/ballast")
        os.fsync(descriptor)
        os.close(descriptor)
        self.assertEqual(output(mounting.CFRAME, "cat", self.source + "/x.b2frame"), noise)

    def test_what_cannot_be_written_is_read_only(self):
        shutil.copytree(mounting.GOLDEN + "/cframe/variable/chunks-0-s.b2frame", self.source + "/s.b2frame")
        mount = self.mount()
        for _ in range(2):
            self.assert_refused(errno.EROFS, os.open, mount / "s", os.O_RDWR)
            self.assert_refused(errno.EROFS, os.truncate, mount / "s", 5)
        self.assertEqual(mount.lines(), [])  # it is no fault
        self.assertEqual(len(mount.refusals()), 1, mount.refusals())
        os.rename(mount / "s", mount / "t")
        os.unlink(mount / "t")
        self.assertEqual(os.listdir(self.source), [])

    def test_everything_is_committed_when_the_daemon_ends(self):
        # semantics: C1, J1
        mount = self.mount("commit_interval=1000")
        descriptor = os.open(mount / "x", os.O_RDWR | os.O_CREAT)
        os.write(descriptor, b"not closed")
        mount.close()
        with self.assertRaises(OSError):
            os.close(descriptor)
        self.assertEqual(output(mounting.CFRAME, "cat", self.source + "/x.b2frame"), b"not closed")


if __name__ == "__main__":
    mounting.main()
