"""Plain files that the kernel writes itself, beside the daemon and beside other programs; and what a program with such a
file gets when the daemon or the mount ends."""

import ctypes
import errno
import fcntl
import mmap
import os
import random
import shutil
import signal
import stat
import struct
import subprocess
import sys
import threading

import mounting
import users
from mounting import Mount, output, run, wait_for
from passed_files import CONTENT, SIZE, Plain, read, write

PAGE = 4096
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2
LIBC = ctypes.CDLL(None, use_errno=True)
# Touches the byte at an offset of a map of a file once another process says so.
PROGRAM = """
import mmap, os, sys
shared = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, prot=mmap.PROT_READ)
print("mapped", flush=True)
sys.stdin.readline()
print(shared[int(sys.argv[2])], flush=True)
"""


class Changes(Plain):
    def test_what_is_written_through_the_mount_is_read_at_once(self):
        # semantics: R14
        mount = self.mount()
        reads, writes = self.open(mount / "plain"), self.open(mount / "plain", os.O_RDWR)
        only_writes = self.open(mount / "plain", os.O_WRONLY)
        expected = bytearray(CONTENT)
        places = random.Random(2)
        with mmap.mmap(reads, SIZE, prot=mmap.PROT_READ) as mapped, mmap.mmap(writes, SIZE) as stored_to:
            for number in range(300):
                at, piece = places.randrange(SIZE - 10_000), places.randbytes(places.randrange(1, 10_000))
                if number % 3 == 0:
                    stored_to[at : at + len(piece)] = piece
                else:
                    os.pwrite((writes, only_writes)[number % 2], piece, at)
                expected[at : at + len(piece)] = piece
                self.assertEqual(os.pread(reads, len(piece), at), piece)
                self.assertEqual(mapped[at : at + len(piece)], piece)
            self.assertEqual(read(self.stored), expected)
            self.assertEqual(mapped[:], expected)

    def test_a_reader_beside_a_writer(self):
        # semantics: R14
        mount = self.mount()
        writes, reads = self.open(mount / "plain", os.O_WRONLY), self.open(mount / "plain")
        acknowledged = [0]
        over = threading.Event()

        def write_on():
            for number in range(1, 5000):
                os.pwrite(writes, b"%08d" % number, 0)
                acknowledged[0] = number
            over.set()

        os.pwrite(writes, b"%08d" % 0, 0)
        thread = threading.Thread(target=write_on)
        thread.start()
        while not over.is_set():
            least = acknowledged[0]
            self.assertGreaterEqual(int(os.pread(reads, 8, 0)), least)
        thread.join()

    def test_what_is_written_behind_the_mount_is_read_at_once(self):
        # semantics: R14
        mount = self.mount("attr_timeout=1000", "entry_timeout=1000")
        reads = self.open(mount / "plain")
        behind = self.open(self.stored, os.O_RDWR)
        with mmap.mmap(reads, SIZE, prot=mmap.PROT_READ) as mapped:
            for number in range(200):
                piece = b"%d" % number
                os.pwrite(behind, piece, number * 10_000)
                self.assertEqual(os.pread(reads, len(piece), number * 10_000), piece)
                self.assertEqual(mapped[number * 10_000 :][: len(piece)], piece)
        os.ftruncate(behind, 100)
        self.assertEqual(len(os.pread(reads, SIZE, 0)), 100)
        os.pwrite(behind, b"grown", SIZE)
        self.assertEqual(os.pread(reads, 10, SIZE), b"grown")

    def test_size_and_times_after_a_write(self):
        # semantics: I1
        mount = self.mount()
        writes, other = self.open(mount / "plain", os.O_WRONLY | os.O_APPEND), self.open(mount / "plain")
        for number in range(1, 50):
            before = os.fstat(other)
            os.write(writes, b"12345")
            after = os.fstat(other)
            self.assertEqual(after.st_size, SIZE + 5 * number)
            self.assertEqual(os.lseek(other, 0, os.SEEK_END), SIZE + 5 * number)
            self.assertGreaterEqual(after.st_mtime_ns, before.st_mtime_ns)
            self.assertEqual(os.stat(mount / "plain").st_mtime_ns, os.stat(self.stored).st_mtime_ns)

    def test_the_time_of_a_store_through_a_map(self):
        # semantics: R18
        for options in ((), ("attr_timeout=0.3",)):
            os.utime(self.stored, ns=(10**18, 10**18))
            with Mount(self.source, *self.OPTIONS, *options) as mount:
                writes = os.open(mount / "plain", os.O_RDWR)
                os.fstat(writes)
                with mmap.mmap(writes, SIZE) as mapped:
                    mapped[:5] = b"store"
                    if options:
                        wait_for(lambda: os.fstat(writes).st_mtime_ns == os.stat(self.stored).st_mtime_ns, what="the time")
                    self.assertEqual(os.fstat(writes).st_mtime_ns, os.stat(self.stored).st_mtime_ns)
                self.assertGreater(os.fstat(writes).st_mtime_ns, 10**18)
                os.close(writes)

    def test_appends_of_several_handles(self):
        # semantics: W3
        mount = self.mount()
        handles = [self.open(path, os.O_WRONLY | os.O_APPEND) for path in (mount / "plain", mount / "plain", self.stored)]
        for number in range(300):
            os.write(handles[number % 3], b"%06d" % number)
        self.assertEqual(read(mount / "plain"), CONTENT + b"".join(b"%06d" % number for number in range(300)))

    def test_a_file_that_is_made_through_the_mount(self):
        mount = self.mount()
        made = self.open(mount / "new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640)
        self.assertEqual(os.write(made, CONTENT), SIZE)
        self.assertEqual(os.pread(made, SIZE, 0), CONTENT)
        status = os.fstat(made)
        self.assertEqual((status.st_size, stat.S_IMODE(status.st_mode)), (SIZE, 0o640))
        self.assertEqual(read(self.source + "/new"), CONTENT)
        again = self.open(mount / "new")
        self.assertEqual(os.pread(again, SIZE, 0), CONTENT)
        self.assertEqual(self.requests(mount), 0)
        cut = self.open(mount / "new", os.O_WRONLY | os.O_TRUNC)
        self.assertEqual(os.fstat(again).st_size, 0)
        os.write(cut, b"short")
        self.assertEqual(os.pread(again, SIZE, 0), b"short")

    def test_calls_on_a_passed_file_are_those_of_the_source(self):
        mount = self.mount()
        file = self.open(mount / "plain", os.O_RDWR)
        LIBC.fallocate(file, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, ctypes.c_long(PAGE), ctypes.c_long(16 * PAGE))
        self.assertEqual(os.pread(file, 16 * PAGE, PAGE), bytes(16 * PAGE))
        behind = self.open(self.stored)
        for whence in (os.SEEK_HOLE, os.SEEK_DATA):
            self.assertEqual(os.lseek(file, PAGE, whence), os.lseek(behind, PAGE, whence))
        os.posix_fallocate(file, SIZE, PAGE)
        self.assertEqual(os.fstat(file).st_size, SIZE + PAGE)
        target = self.open(mount / "copy", os.O_RDWR | os.O_CREAT)
        done = 0
        while done < SIZE + PAGE:
            done += os.copy_file_range(file, target, SIZE + PAGE - done, done, done)
        self.assertEqual(read(mount / "copy"), read(self.stored))
        os.truncate(mount / "plain", 1000)
        self.assertEqual(len(os.pread(file, SIZE, 0)), 1000)
        os.fsync(file)
        os.fdatasync(target)
        synced = self.open(mount / "plain", os.O_WRONLY | os.O_SYNC)
        os.pwrite(synced, b"synced", 0)
        self.assertEqual(read(self.stored)[:6], b"synced")
        fcntl.flock(file, fcntl.LOCK_EX)
        self.assertRaises(BlockingIOError, fcntl.flock, self.open(mount / "plain"), fcntl.LOCK_EX | fcntl.LOCK_NB)
        direct = self.open(mount / "plain", os.O_RDWR | os.O_DIRECT)
        with mmap.mmap(-1, PAGE) as buffer:
            buffer[:] = b"d" * PAGE
            self.assertEqual(os.pwritev(direct, [buffer], 0), PAGE)
        self.assertEqual(os.pread(file, 2 * PAGE, 0), b"d" * PAGE)

    def test_a_file_that_another_replaces(self):
        # semantics: R10
        mount = self.mount()
        old = self.open(mount / "plain")
        for replace in (lambda: os.rename(self.source + "/new", self.stored), lambda: os.rename(mount / "new", mount / "plain")):
            before = os.pread(old, SIZE, 0)
            write(self.source + "/new", b"of the new one")
            with mmap.mmap(old, len(before), prot=mmap.PROT_READ) as mapped:
                replace()
                self.assertEqual(read(mount / "plain"), b"of the new one")
                self.assertEqual(os.pread(old, SIZE, 0), before)
                self.assertEqual(mapped[:], before)
            os.unlink(mount / "plain")
            self.assertEqual(os.pread(old, SIZE, 0), before)
            again = self.open(f"/proc/self/fd/{old}")
            self.assertEqual(os.pread(again, SIZE, 0), before)
            write(self.stored, CONTENT)
            old = self.open(mount / "plain")

    def test_a_page_behind_the_end_after_a_truncation(self):
        # semantics: R7
        mount = self.mount()
        for cut in (self.stored, mount / "plain"):
            write(self.stored, CONTENT)
            with subprocess.Popen([sys.executable, "-c", PROGRAM, mount / "plain", str(SIZE - 1)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True) as toucher:
                self.assertEqual(toucher.stdout.readline(), "mapped\n")
                os.truncate(cut, 10)
                toucher.communicate("\n", timeout=60)
                self.assertEqual(toucher.returncode, -signal.SIGBUS)


class Rights(Plain):
    def setUp(self):
        super().setUp()
        for directory in (self.work, self.source, self.mountpoint):
            os.chmod(directory, 0o755)

    def test_who_may_not_read_does_not(self):
        # semantics: A1
        mount = self.mount("allow_other")
        os.chmod(self.stored, 0o600)
        held = self.open(mount / "plain")
        self.assertEqual(os.pread(held, 10, 0), CONTENT[:10])
        path = mount / "plain"
        for user, rights in (("owner", 0o600), ("other", 0o640)):
            os.chown(self.stored, users.OWNER, users.GROUP)
            os.chmod(self.stored, rights)
            wait_for(lambda rights=rights: self.shown(path) == (users.OWNER, rights), what="the report of the change (F12)")
            may = user == "owner"
            for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
                said = users.as_user(user, lambda flags=flags: users.call(os.open, path, flags))
                self.assertEqual(said, "" if may else "EACCES", (user, flags))

    def test_a_right_that_is_taken_is_refused_at_once(self):
        # semantics: F12
        mount = self.mount("allow_other")
        path = mount / "plain"
        for _ in range(50):
            os.chmod(self.stored, 0o644)
            wait_for(lambda: self.shown(path) == (os.geteuid(), 0o644), what="the report of the change (F12)")
            self.assertEqual(users.as_user("other", lambda: users.call(os.open, path, os.O_RDONLY)), "")
            os.chmod(self.stored, 0o600)
            os.seteuid(users.USERS["other"][0])
            try:
                self.assertEqual(users.call(os.open, path, os.O_RDONLY), "EACCES")
            finally:
                os.seteuid(0)

    def test_a_program_that_may_only_be_executed_is(self):
        # semantics: A1
        mount = self.mount("allow_other")
        shutil.copyfile("/bin/true", self.stored)

        def execute():
            return str(subprocess.run([mount / "plain"], check=False).returncode)

        for rights, answer in ((0o711, "0"), (0o744, "EACCES"), (0o755, "0")):
            os.chmod(self.stored, rights)
            wait_for(lambda rights=rights: self.shown(mount / "plain") == (os.geteuid(), rights), what="the report (F2)")
            self.assertEqual(users.as_user("other", lambda: users.call(execute)), answer)

    def test_who_has_just_lost_a_file_cannot_change_it(self):
        # semantics: F12
        mount = self.mount("allow_other", "suid")
        path = mount / "plain"
        # rwx for the owner, r-x for the group and others
        acl = struct.pack("<I" + "HHI" * 3, 2, 1, 7, 0xFFFFFFFF, 4, 5, 0xFFFFFFFF, 0x20, 5, 0xFFFFFFFF)
        changes = [lambda path: os.chmod(path, 0o4755), lambda path: os.setxattr(path, "system.posix_acl_access", acl)]
        for change in changes * 25:
            os.chown(self.stored, users.OWNER, users.GROUP)
            os.chmod(self.stored, 0o755)
            wait_for(lambda: self.shown(path) == (users.OWNER, 0o755), what="the report of the change (F12)")
            os.chown(self.stored, 0, 0)
            os.seteuid(users.OWNER)
            try:
                self.assertEqual(users.call(change, path), "EPERM")
            finally:
                os.seteuid(0)

    def shown(self, path):
        shown = os.stat(path)
        return shown.st_uid, stat.S_IMODE(shown.st_mode)

    def test_a_write_of_an_ordinary_user_drops_the_set_user_id_bit(self):
        # semantics: W8
        mount = self.mount("allow_other", "suid")
        path = mount / "plain"

        def change(how):
            descriptor = os.open(path, os.O_RDWR)
            how(descriptor)
            os.close(descriptor)
            return True

        for how in (lambda fd: os.write(fd, b"x"), lambda fd: os.ftruncate(fd, 10), lambda fd: os.posix_fallocate(fd, 0, 9000)):
            os.chown(self.stored, 0, 0)
            os.chmod(path, 0o6777)
            users.as_user("other", lambda how=how: change(how))
            self.assertEqual(stat.S_IMODE(os.stat(self.stored).st_mode), 0o777)
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o777)

    def test_nothing_is_written_in_a_mount_that_is_read_only(self):
        # semantics: O6
        mount = self.mount("ro")
        with self.assertRaises(OSError) as refused:
            os.open(mount / "plain", os.O_RDWR)
        self.assertEqual(refused.exception.errno, errno.EROFS)
        self.assertEqual(read(mount / "plain"), CONTENT)
        self.assertEqual(self.requests(mount), 0)


class Ends(Plain):
    def test_a_daemon_that_is_killed_leaves_readers_that_go_on(self):
        # semantics: R15
        mount = Mount(self.source, *self.OPTIONS, mountpoint=self.mountpoint)
        reads = self.open(mount / "plain")
        with mmap.mmap(reads, SIZE, prot=mmap.PROT_READ) as mapped:
            mount.daemon.kill()
            mount.daemon.wait()
            wait_for(lambda: not mounting.is_mounted(self.mountpoint), what="the guard to unmount")
            self.assertEqual(os.pread(reads, SIZE, 0), CONTENT)
            self.assertEqual(mapped[:], CONTENT)
            with self.assertRaises(OSError) as ended:
                os.open(f"/proc/self/fd/{reads}", os.O_RDONLY)
            self.assertIn(ended.exception.errno, (errno.ENOTCONN, errno.ECONNABORTED))

    def test_killed_under_load(self):
        # semantics: J5
        program = ("import os, sys\nwhile True:\n fd = os.open(sys.argv[1], os.O_RDWR)\n os.pread(fd, 100000, 0)\n"
                   " os.pwrite(fd, b'x', 5)\n os.close(fd)\n")
        for _ in range(10):
            mount = Mount(self.source, *self.OPTIONS, mountpoint=self.mountpoint)
            children = [subprocess.Popen([sys.executable, "-c", program, mount / "plain"], stderr=subprocess.DEVNULL)
                        for _ in range(4)]
            wait_for(lambda: read(self.stored)[5:6] == b"x", what="the load")
            mount.daemon.kill()
            for child in children:
                self.assertNotEqual(child.wait(60), 0)
            mount.daemon.wait()
            wait_for(lambda: not mounting.is_mounted(self.mountpoint), what="the guard to unmount")
            write(self.stored, CONTENT)

    def test_a_mount_with_an_open_file_is_busy(self):
        # semantics: R15
        mount = Mount(self.source, *self.OPTIONS, mountpoint=self.mountpoint)
        reads = self.open(mount / "plain")
        mapped = mmap.mmap(reads, SIZE, prot=mmap.PROT_READ)
        os.close(reads)
        self.assertIn(b"busy", run("umount", self.mountpoint).stderr)
        output("umount", "-l", self.mountpoint)
        self.assertEqual(mapped[:], CONTENT)
        mapped.close()
        self.assertEqual(mount.daemon.wait(60), 0)
        mount.close()

    def test_unmounting_right_after_reading(self):
        for _ in range(20):
            mount = Mount(self.source, *self.OPTIONS, mountpoint=self.mountpoint)
            self.assertEqual(read(mount / "plain"), CONTENT)
            output("umount", self.mountpoint)
            self.assertEqual(mount.daemon.wait(60), 0)
            mount.close()

    def test_an_idle_mount_stays_while_a_passed_file_is_open(self):
        # semantics: V5
        mount = Mount(self.source, *self.OPTIONS, "idle_timeout=0.2", mountpoint=self.mountpoint)
        reads = self.open(mount / "plain")
        deadline = threading.Event()
        for _ in range(10):
            deadline.wait(0.1)
            self.assertEqual(os.pread(reads, 10, 0), CONTENT[:10])
        os.close(reads)
        wait_for(lambda: not mounting.is_mounted(self.mountpoint), what="the idle mount to end")
        self.assertEqual(mount.daemon.wait(60), 0)
        mount.close()


if __name__ == "__main__":
    mounting.main()
