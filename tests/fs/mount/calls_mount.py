"""fs/doc/semantics.md: calls that a mount refuses, or answers in another way than a plain directory, and with which errno."""

import ctypes
import errno
import fcntl
import os
import shutil
import struct
import threading
import time
import unittest

import mounting
import users
from mounting import Mount, output
from written_directory import RENAME_EXCHANGE, Writing, rename2, some_bytes

FALLOC_FL_KEEP_SIZE, FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE, FALLOC_FL_UNSHARE_RANGE = 1, 8, 0x20, 0x40
AT_EMPTY_PATH, MOUNT_ATTR_IDMAP, OPEN_TREE_CLONE = 0x1000, 0x100000, 1
SYS_OPEN_TREE, SYS_MOUNT_SETATTR = 428, 442
# linux/fs.h, linux/fsverity.h, linux/fscrypt.h
FS_IOC_FIEMAP, FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FICLONE = 0xC020660B, 0x80086601, 0x40086602, 0x40049409
FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY, FIFREEZE = 0x40806685, 0x800C6613, 0xC0045877
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


class Handle(ctypes.Structure):
    """struct file_handle"""

    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("handle", ctypes.c_ubyte * 128)]


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def drop_caches():
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("2")


class Calls(Writing):
    def setUp(self):
        super().setUp()
        self.content = some_bytes(300_000)
        with open(self.source + "/plain.txt", "wb") as file:
            file.write(self.content)

    def work_file(self, name):
        return os.path.join(os.path.dirname(self.source), name)

    def shown(self, *options):
        """A mount with a frame and a plain file."""
        mount = self.mount(*options)
        with open(mount / "frame", "wb") as file:
            file.write(self.content)
        return mount

    def descriptors(self, mount):
        for name in ("frame", "plain.txt"):
            descriptor = os.open(mount / name, os.O_RDWR)
            try:
                with self.subTest(name):
                    yield descriptor
            finally:
                os.close(descriptor)

    def test_temporary_files(self):
        # semantics: O9
        self.assert_refused(errno.EOPNOTSUPP, os.open, self.mount().path, os.O_TMPFILE | os.O_RDWR)

    def test_ranges_are_not_taken_out_or_put_in(self):
        # semantics: W9
        for descriptor in self.descriptors(self.shown()):
            for mode in (FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE, FALLOC_FL_UNSHARE_RANGE):
                self.assert_refused(errno.EOPNOTSUPP, lambda d=descriptor, m=mode: checked(LIBC.fallocate(d, m, 0, 4096)))
            self.assertEqual(os.pread(descriptor, 400_000, 0), self.content)

    def test_requests_of_files_on_disk(self):
        # semantics: Y3, E4, E5, E6
        mount = self.shown()
        for descriptor in self.descriptors(mount):
            extents = bytearray(struct.pack("QQIIII", 0, 1 << 62, 0, 0, 10, 0) + bytes(560))
            self.assert_refused(errno.EOPNOTSUPP, fcntl.ioctl, descriptor, FS_IOC_FIEMAP, extents)
            for request in (FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY):
                self.assert_refused(errno.ENOTTY, fcntl.ioctl, descriptor, request, bytearray(128))
            with open(mount / "clone", "wb") as clone:
                self.assert_refused(errno.EOPNOTSUPP, fcntl.ioctl, clone, FICLONE, descriptor)
        if os.geteuid() == 0:
            for name in ("frame", "plain.txt"):
                self.assert_refused(errno.EINVAL, lambda n=name: checked(LIBC.swapon(os.fsencode(mount / n), 0)))

    @unittest.skipIf(os.geteuid() != 0, "only root may freeze and map")
    def test_freezing_and_mapping_of_users(self):
        # semantics: E7, E8
        mount = self.mount()
        root = os.open(mount.path, os.O_RDONLY)
        self.addCleanup(os.close, root)
        self.assert_refused(errno.EOPNOTSUPP, fcntl.ioctl, root, FIFREEZE, 0)
        told, tells = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(tells, b"no" if LIBC.unshare(0x10000000) != 0 else b"ok")  # CLONE_NEWUSER
            time.sleep(60)
            os._exit(0)
        try:
            self.addCleanup(os.close, told)
            self.addCleanup(os.close, tells)
            if os.read(told, 2) == b"no":
                self.skipTest("user namespaces are refused here, as in a chroot")
            with open(f"/proc/{child}/uid_map", "w", encoding="ascii") as file:
                file.write("0 1000 1000")
            with open(f"/proc/{child}/gid_map", "w", encoding="ascii") as file:
                file.write("0 1000 1000")
            with open(f"/proc/{child}/ns/user", "rb") as users_of_child:
                tree = checked(LIBC.syscall(SYS_OPEN_TREE, -100, os.fsencode(mount.path), OPEN_TREE_CLONE))
                self.addCleanup(os.close, tree)
                mapped = struct.pack("QQQQ", MOUNT_ATTR_IDMAP, 0, 0, users_of_child.fileno())
                self.assert_refused(errno.EINVAL, lambda: checked(
                    LIBC.syscall(SYS_MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, mapped, len(mapped))))
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)

    @unittest.skipIf(os.geteuid() != 0, "only root may open by handle")
    def test_file_handles(self):
        # semantics: E1
        mount = self.shown()
        root = os.open(mount.path, os.O_RDONLY)
        self.addCleanup(os.close, root)
        handle, mount_id = Handle(128), ctypes.c_int()
        checked(LIBC.name_to_handle_at(-100, os.fsencode(mount / "frame"), ctypes.byref(handle), ctypes.byref(mount_id), 0))

        def reopen():
            return checked(LIBC.open_by_handle_at(root, ctypes.byref(handle), os.O_RDONLY))

        with open(mount / "frame", "rb"):
            again = reopen()
            self.assertEqual(os.pread(again, 400_000, 0), self.content)
            os.close(again)
        drop_caches()
        self.assert_refused(errno.ESTALE, reopen)

    def test_rights_that_a_mount_lends(self):
        # semantics: U3
        lent = os.ST_NOSUID | os.ST_NODEV
        self.assertEqual(os.statvfs(self.mount().path).f_flag & lent, lent)
        if os.geteuid() != 0:
            return
        with Mount(self.source, "suid,dev") as mount:
            self.assertEqual(os.statvfs(mount.path).f_flag & lent, 0)
            os.mknod(mount / "null", 0o666 | 0o020000, os.makedev(1, 3))
            with open(mount / "null", "r+b", buffering=0) as null:
                self.assertEqual((null.write(b"text"), null.read(10)), (4, b""))

    def test_attributes_of_metalayers(self):
        # semantics: X5, X11
        shutil.copy(mounting.GOLDEN + "/cframe/meta/fixed-several.b2frame", self.source + "/x.b2frame")
        output(mounting.CFRAME, "convert", self.array(), self.source + "/a.b2nd")
        mount = self.mount()
        name = "user.blosc2.meta.json"
        layer = os.getxattr(mount / "x", name)
        os.setxattr(mount / "x", name, layer[::-1])
        self.assertEqual(os.getxattr(mount / "x", name), layer[::-1])
        self.assert_refused(errno.EINVAL, os.setxattr, mount / "x", name, layer + b"x")
        self.assert_refused(errno.ENODATA, os.setxattr, mount / "x", "user.blosc2.meta.none", b"x")
        self.assert_refused(errno.EPERM, os.removexattr, mount / "x", name)
        shape = os.getxattr(mount / "a.npy", "user.blosc2.meta.b2nd")
        self.assert_refused(errno.EINVAL, os.setxattr, mount / "a.npy", "user.blosc2.meta.b2nd", shape)

    def array(self):
        header = "{'descr': '<f8', 'fortran_order': False, 'shape': (500,), }".ljust(117).encode() + b"\n"
        with open(self.work_file("a.npy"), "wb") as file:
            file.write(b"\x93NUMPY\x01\x00\x76\x00" + header + bytes(4000))
        return self.work_file("a.npy")

    @unittest.skipIf(os.geteuid() != 0, "only root may set trusted attributes")
    def test_trusted_attributes_of_links_and_devices(self):
        # semantics: X12
        mount = self.mount()
        os.symlink("plain.txt", mount / "link")
        os.mkfifo(mount / "pipe")
        for name in ("link", "pipe"):
            with self.assertRaises(PermissionError):
                os.setxattr(mount / name, "trusted.a", b"x", follow_symlinks=False)

    def test_locks_of_ranges(self):
        # semantics: Q1, Q2
        mount = self.shown()
        with Mount(self.source) as other:
            for kind in ("posix", "ofd"):
                with open(mount / "frame", "r+b") as holder:
                    lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 10, 10, 0)
                    if kind == "posix":
                        fcntl.fcntl(holder, fcntl.F_SETLK, lock)
                    else:
                        fcntl.fcntl(holder, fcntl.F_OFD_SETLK, lock)
                    for path, taken in ((mount / "frame", True), (other / "frame", False)):
                        with self.subTest(kind, path=path):
                            self.assertEqual(self.is_locked(path, lock), taken)

    def is_locked(self, path, lock):
        """Whether another process may not lock the range."""
        child = os.fork()
        if child == 0:
            try:
                with open(path, "r+b") as file:
                    fcntl.fcntl(file, fcntl.F_SETLK, lock)
                os._exit(0)
            except OSError as error:
                os._exit(1 if error.errno in (errno.EAGAIN, errno.EACCES) else 2)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        self.assertIn(code, (0, 1))
        return code == 1

    def test_a_listing_moves_the_time_of_access_as_on_the_source(self):
        # semantics: I6
        for option in ("rw", "nodiratime"):
            with self.subTest(option), Mount(self.source, option) as mount:
                moved = []
                for path in (self.source + "/there", mount / "here"):
                    os.makedirs(path)
                    stored = f"{self.source}/{os.path.basename(path)}"
                    os.utime(stored, ns=(10**9, 10**9))
                    os.listdir(path)
                    moved.append(os.stat(stored).st_atime_ns != 10**9)
                    os.rmdir(path)
                self.assertEqual(moved[0], moved[1])

    def test_a_removed_file_is_opened_again(self):
        # semantics: U2
        mount = self.shown()
        for descriptor in self.descriptors(mount):
            os.unlink(os.readlink(f"/proc/self/fd/{descriptor}"))
            again = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR)
            os.pwrite(again, b"again", 5)
            os.ftruncate(descriptor, 100_000)
            self.assertEqual(os.pread(again, 400_000, 0), self.content[:5] + b"again" + self.content[10:100_000])
            os.fsync(again)
            os.close(again)

    def test_a_file_that_was_removed_behind_the_mount_is_not(self):
        # semantics: U4
        mount = self.shown()
        with open(mount / "plain.txt", "rb") as file:
            os.unlink(self.source + "/plain.txt")
            self.assertEqual(file.read(), self.content)
            self.assert_refused(errno.ESTALE, os.open, f"/proc/self/fd/{file.fileno()}", os.O_RDONLY)

    @unittest.skipIf(os.geteuid() != 0, "only root can be two users")
    def test_a_set_group_id_bit_without_execute_stays(self):
        # semantics: W14
        for directory in (os.path.dirname(self.source), self.source):
            os.chmod(directory, 0o777)
        mount = self.shown("allow_other")
        os.chmod(mount.path, 0o777)
        for name in ("frame", "plain.txt"):
            os.chown(mount / name, users.OWNER, users.GROUP)
            os.chmod(mount / name, 0o2666)

            def write(path=mount / name):
                descriptor = os.open(path, os.O_WRONLY)
                os.pwrite(descriptor, b"x", 0)
                os.close(descriptor)

            users.as_user("other", write)
            self.assertEqual(os.stat(mount / name).st_mode & 0o7777, 0o2666, name)

    def test_a_written_frame_keeps_its_parameters(self):
        # semantics: O2
        with open(self.work_file("raw"), "wb") as file:
            file.write(self.content)
        output(mounting.CFRAME, "pack", "--codec", "lz4", "--clevel", "9", "--filter", "bitshuffle", "--typesize", "8",
               "--chunksize", "40000", self.work_file("raw"), self.source + "/x.b2frame")
        mount = self.mount("codec=zlib", "clevel=1", "filter=none", "typesize=4")
        for content in (self.content[::-1], self.content[:1000]):
            with open(mount / "x", "wb") as file:
                file.write(content)
            info = os.getxattr(mount / "x", "user.blosc2.info").decode()
            for part in ('"codec":"lz4"', '"clevel":9', '"filters":"bitshuffle"', '"typesize":8', '"chunksize":40000'):
                self.assertIn(part, info)

    def test_programs_that_create_one_file_at_once(self):
        # semantics: O4
        failures = []
        with self.mount() as mount, Mount(self.source) as other:
            barrier = threading.Barrier(4)

            def create(directory):
                for number in range(100):
                    barrier.wait(60)
                    try:
                        os.close(os.open(f"{directory}/{number}", os.O_CREAT | os.O_RDWR, 0o644))
                    except OSError as error:
                        failures.append((number, error))

            threads = [threading.Thread(target=create, args=(path,)) for path in (mount.path, other.path) * 2]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            self.assertEqual(len(os.listdir(mount.path)), 101)

    def test_appends_through_two_mounts(self):
        # semantics: C13
        with self.mount() as mount, Mount(self.source) as other:
            with open(mount / "log", "wb"):
                pass
            acknowledged = [[], []]

            def append(which, path):
                for number in range(60):
                    record = b"%d-%03d\n" % (which, number)
                    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
                    try:
                        os.write(descriptor, record)
                        os.fsync(descriptor)
                        acknowledged[which].append(record)
                    except OSError as error:
                        self.assertEqual(error.errno, errno.ESTALE)
                    try:
                        os.close(descriptor)
                    except OSError as error:
                        self.assertEqual(error.errno, errno.ESTALE)

            threads = [threading.Thread(target=append, args=arguments)
                       for arguments in ((0, mount / "log"), (1, other / "log"))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        stored = output(mounting.CFRAME, "cat", self.source + "/log.b2frame").splitlines(keepends=True)
        self.assertGreater(min(map(len, acknowledged)), 0)
        for records in acknowledged:
            for record in records:
                self.assertEqual(stored.count(record), 1, record)

    def test_write_only_handles_bypass_the_page_cache(self):
        # semantics: W6
        kernel = tuple(int(number) for number in os.uname().release.split("-")[0].split(".")[:2])
        mount = self.shown("stats=on")
        for flags, bypass in ((os.O_WRONLY, kernel >= (6, 18)), (os.O_RDWR, False), (os.O_WRONLY | os.O_SYNC, False)):
            with self.subTest(flags=flags):
                descriptor = os.open(mount / "x", flags | os.O_CREAT | os.O_TRUNC)
                os.write(descriptor, self.content)
                before = mount.statistics()["bytes_served"]
                with open(mount / "x", "rb") as file:
                    self.assertEqual(file.read(), self.content)
                served = mount.statistics()["bytes_served"] - before
                self.assertEqual(served >= len(self.content), bypass, served)
                os.close(descriptor)

    def test_the_block_size_is_that_of_a_chunk(self):
        # semantics: S1
        for option, size in (("chunksize=64K", 65536), ("chunksize=auto", 1 << 20)):
            with self.subTest(option), Mount(self.source, option) as mount:
                with open(mount / "x", "wb") as file:
                    file.write(bytes(10))
                self.assertEqual(os.stat(mount / "x").st_blksize, size)
                os.unlink(mount / "x")

    def test_a_commit_moves_the_time_of_change(self):
        # semantics: I2
        mount = self.shown("commit_interval=1000")
        with open(mount / "frame", "r+b", buffering=0) as file:
            file.write(b"changed")
            before = os.fstat(file.fileno())
            time.sleep(0.05)
            os.fsync(file.fileno())
            after = os.fstat(file.fileno())
        self.assertEqual(after.st_mtime_ns, before.st_mtime_ns)
        self.assertGreater(after.st_ctime_ns, before.st_ctime_ns)

    def test_exchanges(self):
        # semantics: M2, M4
        mount = self.shown("names=keep")
        os.symlink("anywhere", mount / "link")
        for name, content in (("a", b"one"), ("b", b"two"), ("a.b2frame", b"three"), ("b.b2frame", b"four")):
            with open(mount / name, "wb") as file:
                file.write(content)
        for one, other in (("a", "b"), ("a.b2frame", "b.b2frame")):
            before = [self.read(mount / name) for name in (one, other)]
            rename2(mount / one, mount / other, RENAME_EXCHANGE)
            self.assertEqual([self.read(mount / name) for name in (other, one)], before)
        for name in ("link", "a"):
            self.assert_refused(errno.EINVAL, rename2, mount / "a.b2frame", mount / name, RENAME_EXCHANGE)

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def test_second_names_of_plain_files(self):
        # semantics: L1
        mount = self.shown()
        os.link(mount / "plain.txt", mount / "second.txt")
        with open(mount / "second.txt", "ab") as file:
            file.write(b"more")
        found = [os.stat(mount / name) for name in ("plain.txt", "second.txt")]
        self.assertEqual([(status.st_nlink, status.st_ino) for status in found], [(2, found[0].st_ino)] * 2)
        self.assertEqual(self.read(mount / "plain.txt"), self.content + b"more")
        os.unlink(mount / "plain.txt")
        self.assertEqual(os.stat(mount / "second.txt").st_nlink, 1)

    def test_parts_of_metalayers(self):
        # semantics: X7
        mount = self.shown()
        part = "user.blosc2.vlpart.{:02}.layer"
        for number, value in enumerate((b"a" * 65536, b"b" * 65536, b"c" * 10)):
            os.setxattr(mount / "frame", part.format(number), value)
        self.assertEqual(os.listxattr(mount / "frame"), [part.format(number) for number in range(3)])
        os.setxattr(mount / "frame", part.format(1), b"d" * 20)
        self.assertEqual(os.listxattr(mount / "frame"), [part.format(number) for number in range(2)])
        os.removexattr(mount / "frame", part.format(7))
        stored = output(mounting.CFRAME, "get-meta", "--raw", self.source + "/frame.b2frame", "layer")
        self.assertEqual(stored, b"a" * 65536 + b"d" * 20)

    def test_damage_that_decodes_is_not_detected(self):
        # semantics: Z3
        with open(self.work_file("raw"), "wb") as file:
            file.write(self.content)
        output(mounting.CFRAME, "pack", "--clevel", "0", "--checksums", "off", self.work_file("raw"),
               self.source + "/x.b2frame")
        with open(self.source + "/x.b2frame", "r+b") as file:
            at = file.read().index(self.content[100_000:100_100])
            file.seek(at)
            file.write(bytes([self.content[100_000] ^ 1]))
        with open(self.mount() / "x", "rb") as file:
            found = file.read()
        self.assertEqual(found[:100_000] + found[100_001:], self.content[:100_000] + self.content[100_001:])
        self.assertNotEqual(found[100_000], self.content[100_000])

    def test_damage_of_a_sealed_frame_is_an_error(self):
        # semantics: Z4
        with open(self.mount("chunksize=1M", "blocksize=64K", "clevel=0") / "x", "wb") as file:
            file.write(self.content)
        with open(self.source + "/x.b2frame", "r+b") as file:
            at = file.read().index(self.content[100_000:100_100])
            file.seek(at)
            file.write(bytes([self.content[100_000] ^ 1]))
        fd = os.open(self.mount() / "x", os.O_RDONLY)
        self.addCleanup(os.close, fd)
        self.assertEqual(os.pread(fd, 65_536, 0), self.content[:65_536])
        with self.assertRaises(OSError) as raised:
            os.pread(fd, 4096, 98_304)
        self.assertEqual(raised.exception.errno, errno.EIO)
        self.assertEqual(os.pread(fd, 65_536, 131_072), self.content[131_072:196_608])


if __name__ == "__main__":
    mounting.main()
