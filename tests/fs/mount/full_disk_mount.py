"""A full disk under a mount: a small tmpfs of its own, and a small ext4 in a file. What is cut off, punched or truncated
makes room; what is promised must be there."""

import ctypes
import errno
import mmap
import os
import subprocess
import tempfile
import unittest

import mounting
from mounting import Mount, output, run

MIB = 1 << 20
CHUNK = 256 << 10
SIZE = 24 * CHUNK


def free(path):
    os.sync()  # ext4 gives blocks back with its journal
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def fill(path):
    """Takes all room that is left there."""
    with open(path, "ab", buffering=0) as file:
        for piece in (MIB, 4096, 512, 1):
            try:
                while True:
                    if file.write(os.urandom(piece)) < piece:
                        break
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
    os.sync()


def fallocate(descriptor, mode, offset, length):
    call = ctypes.CDLL(None, use_errno=True).fallocate
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    if call(descriptor, mode, offset, length) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


class FullDisk(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-full-")
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.disk = os.path.join(work.name, "disk")
        os.mkdir(self.disk)

    def mount_disk(self, kind):
        if kind == "tmpfs":
            made = run("mount", "-t", "tmpfs", "-o", "size=32M", "none", self.disk)
        else:
            image = os.path.join(self.work, "image")
            with open(image, "wb") as file:
                file.truncate(48 * MIB)
            run("mkfs.ext4", "-q", "-m", "0", image)
            made = run("mount", "-o", "loop", image, self.disk)
        if made.returncode != 0:
            self.skipTest("needs the right to mount a small " + kind)
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=False)
        return Mount(self.disk, "chunksize=256K", "commit_interval=1000")

    def assert_room(self, wanted):
        """What the last close leaves to be done is done after it has answered."""
        mounting.wait_for(lambda: free(self.disk) > wanted, 20, f"room for {wanted} bytes")

    def check(self, mount, name, data):
        self.assertEqual(output(mounting.CFRAME, "cat", f"{self.disk}/{name}.b2frame"), data)
        with open(mount / name, "rb") as file:
            self.assertEqual(file.read(), data)

    def test_what_is_cut_off_makes_room(self):
        # semantics: C14, C16
        for kind in ("tmpfs", "ext4"):
            with self.subTest(kind), self.mount_disk(kind) as mount:
                data = os.urandom(SIZE)
                for name in ("half", "hole", "all", "again"):
                    with open(mount / name, "wb") as file:
                        file.write(data)
                fill(self.disk + "/ballast")
                self.assertLess(free(self.disk), MIB)

                os.truncate(mount / "half", SIZE // 2)
                self.assert_room(SIZE // 2 - CHUNK)
                self.check(mount, "half", data[:SIZE // 2])
                fill(self.disk + "/ballast")

                descriptor = os.open(mount / "hole", os.O_RDWR)
                fallocate(descriptor, 3, 0, SIZE // 2)
                os.fsync(descriptor)
                os.close(descriptor)
                self.assert_room(SIZE // 2 - CHUNK)
                self.check(mount, "hole", bytes(SIZE // 2) + data[SIZE // 2:])
                fill(self.disk + "/ballast")

                with open(mount / "all", "rb", buffering=0) as reader:
                    self.assertEqual(reader.read(10), data[:10])
                    os.truncate(mount / "all", 0)
                    self.assert_room(SIZE - CHUNK)
                    self.assertEqual(reader.read(), b"")
                self.check(mount, "all", b"")
                fill(self.disk + "/ballast")
                with open(mount / "again", "wb") as file:
                    file.write(data[:SIZE // 2])
                self.check(mount, "again", data[:SIZE // 2])
                self.assertEqual([name for name in os.listdir(self.disk) if name.startswith(".")], [])

    def stored(self, name):
        return output(mounting.CFRAME, "cat", f"{self.disk}/{name}.b2frame")

    def refused(self, call):
        with self.assertRaises(OSError) as error:
            call()
        self.assertEqual(error.exception.errno, errno.ENOSPC)

    def test_a_map_of_a_file_whose_data_waits_for_room(self):
        """Each close and msync says that there is no room for what waits, of whatever handle it is; nothing is lost of it,
        and readers are told nothing of it."""
        # semantics: C10
        with self.mount_disk("tmpfs") as mount:
            old, new, newer = (os.urandom(SIZE) for _ in range(3))
            with open(mount / "x", "wb") as file:
                file.write(old)
            fill(self.disk + "/ballast")
            writer = os.open(mount / "x", os.O_RDWR)
            self.assertEqual(os.pwrite(writer, new, 0), SIZE)
            self.refused(lambda: os.close(writer))
            self.assertEqual(self.stored("x"), old)

            mapper = os.open(mount / "x", os.O_RDWR)
            shared = mmap.mmap(mapper, SIZE)
            self.refused(lambda: os.close(mapper))  # it has written nothing, and what was written before waits
            self.assertEqual(shared[:], new)
            shared[: SIZE // 2] = newer[: SIZE // 2]
            self.refused(shared.flush)
            with open(mount / "x", "rb") as reader:
                self.assertEqual(reader.read(), newer[: SIZE // 2] + new[SIZE // 2 :])
            self.assertEqual(self.stored("x"), old)

            os.unlink(self.disk + "/ballast")
            shared.flush()
            self.check(mount, "x", newer[: SIZE // 2] + new[SIZE // 2 :])
            fill(self.disk + "/ballast")
            shared[:] = new
            shared.close()  # the kernel tells of no error here
            os.unlink(self.disk + "/ballast")
            mounting.wait_for(lambda: self.stored("x") == new, what="what waits to be committed")

    def test_no_more_is_promised_than_there_is(self):
        # semantics: W10
        with self.mount_disk("tmpfs") as mount:
            with open(mount / "x", "wb", buffering=0) as file:
                room = free(self.disk)
                for length in (2 * room, 1 << 60):
                    with self.assertRaises(OSError) as refused:
                        os.posix_fallocate(file.fileno(), 0, length)
                    self.assertEqual(refused.exception.errno, errno.ENOSPC)
                self.assertEqual(os.fstat(file.fileno()).st_size, 0)
                os.posix_fallocate(file.fileno(), 0, room // 2)
                self.assertEqual(os.fstat(file.fileno()).st_size, room // 2)

    def test_no_room_is_reserved(self):
        # semantics: W11
        with self.mount_disk("tmpfs") as mount, open(mount / "x", "wb", buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, free(self.disk) // 2)
            fill(self.disk + "/ballast")
            file.write(os.urandom(SIZE))
            self.refused(lambda: os.fsync(file.fileno()))
            os.unlink(self.disk + "/ballast")
            os.fsync(file.fileno())


if __name__ == "__main__":
    mounting.main()
