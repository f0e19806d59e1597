"""Directories and files are themselves, wherever their names have gone: moved, replaced, removed, deep, many."""

import ctypes
import os
import shutil
import stat
import tempfile
import threading
import time
import unittest

import mounting
from mounting import Mount, golden_frames, output

FRAME = "matrix/000-blosclz-c1-none-t3.b2frame"
RENAME_EXCHANGE = 2
libc = ctypes.CDLL(None, use_errno=True)


def exchange(one, other):
    if libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2", one)


# Each in a directory that a program holds by a descriptor. "x" and "link" are there.
OPERATIONS = {
    "unlink": lambda at: os.unlink("x", dir_fd=at),
    "create": lambda at: os.close(os.open("made", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=at)),
    "mkdir": lambda at: os.mkdir("made", dir_fd=at),
    "symlink": lambda at: os.symlink("y", "made", dir_fd=at),
    "mkfifo": lambda at: os.mkfifo("made", dir_fd=at),
    "rmdir": lambda at: os.rmdir("sub", dir_fd=at),
    "rename": lambda at: os.rename("x", "made", src_dir_fd=at, dst_dir_fd=at),
    "chmod": lambda at: os.chmod("x", 0o600, dir_fd=at),
    "utime": lambda at: os.utime("x", (1, 1), dir_fd=at),
    "truncate": lambda at: os.close(os.open("x", os.O_WRONLY | os.O_TRUNC, dir_fd=at)),
    "chmod of itself": lambda at: os.fchmod(at, 0o700),
    "fsync": os.fsync,
}


class Tree(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-test-")
        self.addCleanup(work.cleanup)
        self.source, self.mountpoint = work.name + "/source", work.name + "/mnt"
        os.mkdir(self.source)
        os.mkdir(self.mountpoint)

    def fill(self, directory, content):
        os.makedirs(directory + "/sub")
        with open(directory + "/x", "w", encoding="ascii") as file:
            file.write(content)
        os.symlink(content, directory + "/link")

    def look(self, directory):
        return sorted((entry.name, entry.stat(follow_symlinks=False).st_mode, entry.stat(follow_symlinks=False).st_size,
                       int(entry.stat(follow_symlinks=False).st_mtime)) for entry in os.scandir(directory)) \
            + [os.stat(directory).st_mode]

    def replaced(self, *options):
        """A directory is replaced behind the mount: what is done in the old one happens there."""
        with Mount(self.source, *options, mountpoint=self.mountpoint) as mount:
            for number, (name, operation) in enumerate(OPERATIONS.items()):
                with self.subTest(name=name):
                    old, new = f"{self.source}/{number}-old", f"{self.source}/{number}-new"
                    self.fill(f"{self.source}/{number}", "old")
                    self.fill(new, "new")
                    at = os.open(mount / str(number), os.O_RDONLY)
                    os.stat("x", dir_fd=at)
                    os.rename(f"{self.source}/{number}", old)
                    os.rename(new, f"{self.source}/{number}")
                    before, old_before = self.look(f"{self.source}/{number}"), self.look(old)
                    operation(at)
                    self.assertEqual(os.readlink("link", dir_fd=at), "old")
                    made = any(os.path.lexists(old + "/" + stored) for stored in ("made", "made.b2frame"))
                    self.assertEqual("made" in os.listdir(at), made)
                    os.close(at)
                    self.assertEqual(self.look(f"{self.source}/{number}"), before)
                    if name != "fsync":
                        self.assertNotEqual(self.look(old), old_before)

    def test_a_replaced_directory(self):
        self.replaced()

    def test_a_replaced_directory_where_the_kernel_keeps_names(self):
        self.replaced("attr_timeout=60,entry_timeout=60")

    def test_a_moved_directory_goes_on(self):
        # semantics: D4
        os.makedirs(self.source + "/a/deep/er")
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            at = os.open(mount / "a/deep/er", os.O_RDONLY)
            os.rename(self.source + "/a", self.source + "/b")
            with os.fdopen(os.open("made", os.O_CREAT | os.O_WRONLY, dir_fd=at), "wb") as file:
                file.write(b"after the move")
            with open(mount / "b/deep/er/made", "rb") as file:
                self.assertEqual(file.read(), b"after the move")
            os.close(at)

    def test_files_without_a_name(self):
        # semantics: U2
        for options in ((), ("names=keep",)):
            with self.subTest(options=options), Mount(self.source, *options, mountpoint=self.mountpoint) as mount:
                for way in ("unlinked", "renamed", "replaced"):
                    path = str(mount / "file")
                    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
                    os.write(file, b"content")
                    if way == "unlinked":
                        os.unlink(path)
                    elif way == "renamed":
                        os.rename(path, path + "-else")
                    else:
                        with open(path + "-new", "wb") as other:
                            other.write(b"other")
                        os.rename(path + "-new", path)
                    os.fchmod(file, 0o751)
                    os.utime(file, (1000, 2000))
                    os.setxattr(file, "user.colour", b"red")
                    self.assertEqual(os.getxattr(file, "user.colour"), b"red")
                    self.assertIn("user.colour", os.listxattr(file))
                    os.fchown(file, os.getuid(), os.getgid())
                    os.fsync(file)
                    found = os.fstat(file)
                    self.assertEqual((stat.S_IMODE(found.st_mode), found.st_mtime, found.st_size), (0o751, 2000, 7), way)
                    self.assertEqual(os.pread(file, 10, 0), b"content")
                    os.close(file)
                    for name in os.listdir(mount.path):
                        os.unlink(mount / name)

    def test_a_removed_directory_lists_empty(self):
        # semantics: D4
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            os.mkdir(mount / "gone")
            at = os.open(mount / "gone", os.O_RDONLY)
            os.rmdir(mount / "gone")
            self.assertTrue(stat.S_ISDIR(os.fstat(at).st_mode))
            os.fchmod(at, 0o700)
            self.assertEqual(os.listdir(at), [])
            os.close(at)

    def test_rewinding_lists_again(self):
        # semantics: D3
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            with open(mount / "first", "wb"):
                pass
            at = os.open(mount.path, os.O_RDONLY)
            self.assertEqual(os.listdir(at), ["first"])
            with open(mount / "second", "wb"):
                pass
            os.unlink(mount / "first")
            self.assertEqual(os.listdir(at), ["second"])  # listdir(3) of a descriptor rewinds it
            os.close(at)

    def test_listed_inode_numbers_are_those_of_stat(self):
        # semantics: D2
        self.fill(self.source + "/directory", "x")
        for path, _ in golden_frames(FRAME):
            shutil.copy(path, self.source + "/directory/frame.b2frame")
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            for _ in range(2):
                for entry in os.scandir(mount / "directory"):
                    self.assertEqual(entry.inode(), os.lstat(entry.path).st_ino, entry.name)
            with open(mount / "directory/frame", "ab") as file:
                file.write(b"more")
            found = output("find", mount / "directory", "-inum", str(os.stat(mount / "directory/frame").st_ino))
            self.assertEqual(found.decode().strip(), mount / "directory/frame")

    def test_looking_moves_no_time_of_access(self):
        # semantics: I4
        for path, _ in golden_frames(FRAME):
            shutil.copy(path, self.source + "/frame.b2frame")
        os.symlink("frame", self.source + "/link")
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            os.lstat(mount / "link")
            for name in ("frame", "link"):
                os.utime(mount / name, ns=(10**9, 2 * 10**9), follow_symlinks=False)
                for _ in range(3):
                    found = os.lstat(mount / name)
                    self.assertEqual((found.st_atime_ns, found.st_mtime_ns), (10**9, 2 * 10**9), name)
                    with os.scandir(mount.path) as entries:
                        list(entries)
            os.close(os.open(mount / "frame", os.O_RDONLY))
            with open(mount / "frame", "ab"):
                pass
            self.assertEqual(os.stat(mount / "frame").st_atime_ns, 10**9)
            with open(mount / "frame", "rb") as file:
                file.read(1)
            # As on the source, whatever it is mounted with.
            shutil.copy(self.source + "/frame.b2frame", self.source + "/plain")
            os.utime(self.source + "/plain", ns=(10**9, 2 * 10**9))
            with open(self.source + "/plain", "rb") as file:
                file.read(1)
            moved = os.stat(self.source + "/plain").st_atime_ns != 10**9
            self.assertEqual(os.stat(mount / "frame").st_atime_ns != 10**9, moved)

    def test_reading_leaves_the_time_of_access_where_that_is_asked_for(self):
        # semantics: I5
        for path, _ in golden_frames(FRAME):
            shutil.copy(path, self.source + "/frame.b2frame")
        shutil.copy(self.source + "/frame.b2frame", self.source + "/plain")

        def read(path, flags=0):
            descriptor = os.open(path, os.O_RDONLY | flags)
            self.assertEqual(len(os.read(descriptor, 1)), 1)
            os.close(descriptor)

        for options, flags in (("noatime", 0), ("rw", os.O_NOATIME)):
            with Mount(self.source, options, mountpoint=self.mountpoint) as mount:
                for stored, shown in (("plain", "plain"), ("frame.b2frame", "frame")):
                    os.utime(f"{self.source}/{stored}", ns=(10**9, 2 * 10**9))
                    read(mount / shown, flags)
                    self.assertEqual(os.stat(f"{self.source}/{stored}").st_atime_ns, 10**9, f"{options} {shown}")

    def test_trees_deeper_than_a_path_is_long(self):
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            name = "d" * 200
            at = os.open(mount.path, os.O_RDONLY)
            for _ in range(40):
                os.mkdir(name, dir_fd=at)
                below = os.open(name, os.O_RDONLY, dir_fd=at)
                os.close(at)
                at = below
            with os.fdopen(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at), "wb") as file:
                file.write(b"far below")
            with os.fdopen(os.open("file", os.O_RDONLY, dir_fd=at), "rb") as file:
                self.assertEqual(file.read(), b"far below")
            os.close(at)
            output("rm", "-r", mount / name)

    def test_names_may_be_as_long_as_statfs_says(self):
        # semantics: N8
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            longest = os.statvfs(mount.path).f_namemax
            with open(mount / ("n" * longest), "wb") as file:
                file.write(b"x")
            self.assertEqual(os.listdir(mount.path), ["n" * longest])
            with self.assertRaises(OSError):
                open(mount / ("n" * (longest + 1)), "wb")

    def test_the_root_of_one_file_is_not_the_directory_that_holds_it(self):
        # semantics: O10
        os.mkdir(self.source + "/holder")
        for path, _ in golden_frames(FRAME):
            shutil.copy(path, self.source + "/holder/one.b2frame")
        before = os.stat(self.source + "/holder")
        with Mount(self.source + "/holder/one.b2frame", mountpoint=self.mountpoint) as mount:
            for change in (lambda: os.chmod(mount.path, 0o777), lambda: os.chown(mount.path, os.getuid(), os.getgid()),
                           lambda: os.utime(mount.path), lambda: os.setxattr(mount.path, "user.x", b"1")):
                with self.assertRaises(PermissionError):
                    change()
            self.assertEqual(os.listxattr(mount.path), [])
            self.assertEqual(stat.S_IMODE(os.stat(mount.path).st_mode) & 0o222, 0)
            self.assertEqual(os.listdir(mount.path), ["one"])
        after = os.stat(self.source + "/holder")
        self.assertEqual((before.st_mode, before.st_mtime_ns, before.st_ctime_ns),
                         (after.st_mode, after.st_mtime_ns, after.st_ctime_ns))

    def test_exchanges_mislead_nothing(self):
        """Names are exchanged behind the mount all the time: files are changed, read and made where they were meant."""
        # semantics: F7
        for name, content in (("mine", "m"), ("theirs", "t")):
            self.fill(f"{self.source}/{name}", content)
        stop = threading.Event()

        def exchange_on():
            while not stop.is_set():
                exchange(self.source + "/mine", self.source + "/theirs")

        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            mine = os.open(mount / "mine", os.O_RDONLY)
            kept = os.open(self.source + "/theirs", os.O_PATH)
            before = self.look(f"/proc/self/fd/{kept}")
            thread = threading.Thread(target=exchange_on)
            thread.start()
            try:
                end = time.monotonic() + 3
                number = 0
                while time.monotonic() < end:
                    number += 1
                    for work in (lambda: os.chmod("x", 0o600 + number % 64, dir_fd=mine),
                                 lambda: os.close(os.open(f"made{number}", os.O_CREAT | os.O_WRONLY, dir_fd=mine)),
                                 lambda: os.unlink(f"made{number}", dir_fd=mine)):
                        try:
                            work()
                        except OSError:
                            pass
                    self.assertEqual(os.readlink("link", dir_fd=mine), "m")
            finally:
                stop.set()
                thread.join()
            self.assertEqual(self.look(f"/proc/self/fd/{kept}"), before)
            self.assertGreater(number, 50)
            os.close(mine)
            os.close(kept)


class LinksToFrames(unittest.TestCase):
    """A link to a frame shows under the short name and leads to the decoded file. What leads out of the source stays."""

    CONTENT = b"".join(b"line %d\n" % i for i in range(5000))

    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-test-")
        self.addCleanup(work.cleanup)
        self.source, self.mountpoint = work.name + "/source", work.name + "/mnt"
        self.outside = work.name + "/outside"
        for directory in (self.source, self.mountpoint, self.outside, self.source + "/sub", self.source + "/sub/deep"):
            os.mkdir(directory)
        plain = os.path.dirname(self.source) + "/plain"
        with open(plain, "wb") as file:
            file.write(self.CONTENT)
        for frame in (self.source + "/z.b2frame", self.outside + "/o.b2frame"):
            mounting.output(mounting.CFRAME, "pack", plain, frame)

    def link(self, target, name):
        os.symlink(target, f"{self.source}/{name}")

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def test_links_within_the_source_lead_to_the_decoded_file(self):
        # semantics: K1, K2
        self.link("z.b2frame", "in.b2frame")
        self.link("in.b2frame", "twice.b2f")
        self.link("z.b2frame", "named")
        self.link("../../z.b2frame", "sub/deep/up.b2frame")
        self.link(self.source + "/z.b2frame", "absolute.b2frame")
        self.link(self.source + "/z.b2frame", "sub/deep/absolute.b2frame")
        self.link("sub", "directory")
        self.link("directory/deep/../../z.b2frame", "sub/through.b2frame")
        self.link(self.source + "/sub", "sub/absolute-directory")
        shown = {"in": "z", "twice": "in", "named": "z", "sub/deep/up": "../../z", "absolute": "z",
                 "sub/deep/absolute": "../../z"}
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            for name, target in shown.items():
                with self.subTest(name=name):
                    self.assertEqual(os.readlink(mount / name), target)
                    self.assertEqual(os.lstat(mount / name).st_size, len(target))
                    self.assertEqual(self.read(mount / name), self.CONTENT)
            self.assertEqual(sorted(os.listdir(mount.path)), ["absolute", "directory", "in", "named", "sub", "twice", "z"])
            self.assertEqual(os.readlink(mount / "sub/absolute-directory"), "../sub")
            self.assertFalse(os.path.lexists(mount / "in.b2frame"))

    def test_links_out_of_the_source_are_left_as_they_are(self):
        # semantics: K3
        self.link("../outside/o.b2frame", "relative.b2frame")
        self.link(self.outside + "/o.b2frame", "absolute.b2frame")
        self.link("../../outside/o.b2frame", "sub/relative.b2frame")
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            for name in ("relative.b2frame", "absolute.b2frame", "sub/relative.b2frame"):
                self.assertEqual(os.readlink(mount / name), os.readlink(f"{self.source}/{name}"))
            self.assertEqual(self.read(mount / "absolute.b2frame"), self.read(self.outside + "/o.b2frame"))

    def test_names_of_links_are_taken_once_and_kept_while_targets_come_and_go(self):
        # semantics: N5, K1
        self.link("z.b2frame", "both.b2frame")
        with open(self.source + "/both", "wb") as file:
            file.write(b"plain")
        self.link("later.b2frame", "waits.b2frame")
        self.link("z.b2frame", "array.b2nd")
        self.link("both", "other.b2frame")
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            self.assertEqual(sorted(os.listdir(mount.path)),
                             ["array.b2nd", "both", "both.b2frame", "other.b2frame", "sub", "waits", "z"])
            self.assertEqual(self.read(mount / "both"), b"plain")
            self.assertEqual(self.read(mount / "both.b2frame"), self.CONTENT)
            self.assertFalse(os.path.exists(mount / "waits"))
            with open(mount / "later", "wb") as file:
                file.write(b"later")
            self.assertEqual(self.read(mount / "waits"), b"later")
            mounting.output("rm", "-r", mount / "later", mount / "waits")

    def test_links_are_made_renamed_and_removed_by_the_names_that_show(self):
        # semantics: K5
        self.link("z.b2frame", "in.b2frame")
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            os.rename(mount / "in", mount / "out")
            self.assertEqual(os.readlink(self.source + "/out.b2frame"), "z.b2frame")
            os.rename(mount / "out", mount / "out.b2frame")
            self.assertEqual(os.readlink(mount / "out.b2frame"), "z")
            os.symlink("z", mount / "made")
            os.symlink("z", mount / "made.b2frame")
            os.symlink("z.b2frame", mount / "odd.b2frame")
            self.assertEqual(sorted(os.listdir(mount.path)), ["made", "made.b2frame", "odd.b2frame", "out.b2frame", "sub", "z"])
            for name, target in (("made", "z"), ("made.b2frame", "z"), ("odd.b2frame", "z.b2frame"), ("out.b2frame", "z")):
                self.assertEqual(os.readlink(mount / name), target)
            os.rename(mount / "made", mount / "there.b2frame")
            self.assertEqual(os.readlink(mount / "there.b2frame"), "z")
            for name in ("made.b2frame", "odd.b2frame", "out.b2frame", "there.b2frame"):
                os.unlink(mount / name)
            self.assertEqual(sorted(os.listdir(self.source)), ["sub", "z.b2frame"])

    def test_with_names_kept_links_are_kept(self):
        # semantics: K5
        self.link("z.b2frame", "in.b2frame")
        with Mount(self.source, "names=keep", mountpoint=self.mountpoint) as mount:
            self.assertEqual(os.readlink(mount / "in.b2frame"), "z.b2frame")
            self.assertEqual(self.read(mount / "in.b2frame"), self.CONTENT)



if __name__ == "__main__":
    mounting.main()
