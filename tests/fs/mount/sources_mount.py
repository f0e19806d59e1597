"""Mounts over sources of other kinds: SOURCE_KIND in the environment says which.

What programs do with files works, or the answer is the source's own error; what was acknowledged is there for the next
mount and for `cframe`. Where the source's program is not installed the test says so and is reported as skipped.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

import mounting
import sparse_frames
from mounting import Mount, output

NOREPLACE, EXCHANGE = 1, 2
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2
MIB = 1 << 20
SFTP_SERVER = "/usr/lib/openssh/sftp-server"

libc = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def rename(old, new, flags):
    check(libc.renameat2(-100, old.encode(), -100, new.encode(), flags))


def fallocate(path, mode, offset, length):
    with open(path, "r+b") as file:
        check(libc.fallocate(file.fileno(), mode, ctypes.c_long(offset), ctypes.c_long(length)))


def write(path, data, mode="wb"):
    with open(path, mode) as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Kind:
    """A kind of source, made in `work`. What it lacks are the errors that programs get."""

    programs = ()
    needs_root = True
    exchanges = True
    links = True
    symlinks = True
    pipes = True
    attributes = True
    modes = True
    holes = True
    sparse = True
    folds_case = False

    def why_not(self):
        for program in self.programs:
            if not shutil.which(program) and not os.path.exists(program):
                return f"{program} is not installed"
        return "only root may mount this kind of source" if self.needs_root and os.geteuid() != 0 else None

    def make(self, work):
        os.mkdir(work + "/real")
        os.mkdir(work + "/source")
        self.mount(work + "/real", work + "/source")
        return work + "/source"

    def mount(self, real, source):
        raise NotImplementedError

    def unmount(self, source):
        command = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
        if subprocess.run([*command, source], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            subprocess.run([*command, "-l" if command[0] == "umount" else "-z", source], check=False)


class Bindfs(Kind):
    programs = ("bindfs",)
    exchanges = holes = False
    options = ()

    def mount(self, real, source):
        output("bindfs", *self.options, real, source)


class PoorBindfs(Bindfs):
    """Without attributes and changes of modes and owners; the time of change is that of modification."""

    attributes = modes = False
    options = ("--xattr-none", "--chown-deny", "--chmod-deny", "--hide-hard-links", "--ctime-from-mtime")


class Sshfs(Kind):
    """The server of sshfs without a network in between."""

    programs = ("sshfs", SFTP_SERVER)
    exchanges = attributes = pipes = holes = False

    def mount(self, real, source):
        connect = os.path.dirname(real) + "/connect"
        write(connect, f"#!/bin/sh\nexec {SFTP_SERVER}\n".encode())
        os.chmod(connect, 0o755)
        # What changes behind sshfs it does not show for as long as it keeps names and attributes.
        options = f"ssh_command={connect},dcache_timeout=0,attr_timeout=0,entry_timeout=0"
        output("sshfs", "-o", options, f"here:{real}", source)


class MountOfMount(Kind):
    links = False
    options = ()

    def mount(self, real, source):
        self.lower = Mount(real, *self.options, mountpoint=source)

    def unmount(self, source):
        self.lower.close()


class MountOfMountKeep(MountOfMount):
    """The lower one shows frames as they are called on disk."""

    links = True
    sparse = False
    options = ("names=keep",)


class Tmpfs(Kind):
    def mount(self, real, source):
        output("mount", "-t", "tmpfs", "-o", "size=200M", "none", source)


class Overlay(Kind):
    programs = ("mount",)

    def mount(self, real, source):
        output("mount", "-t", "tmpfs", "-o", "size=200M", "none", real)
        for name in ("lower", "upper", "work"):
            os.mkdir(f"{real}/{name}")
        write(real + "/lower/below", b"of the lower layer")
        output("mount", "-t", "overlay", "-o",
               f"lowerdir={real}/lower,upperdir={real}/upper,workdir={real}/work", "none", source)

    def unmount(self, source):
        super().unmount(source)
        super().unmount(os.path.dirname(source) + "/real")


class Exfat(Kind):
    programs = ("mount.exfat-fuse", "mkfs.exfat", "losetup")
    exchanges = links = symlinks = pipes = attributes = modes = holes = False
    folds_case = True

    def why_not(self):
        if reason := super().why_not():
            return reason
        return None if os.path.exists("/dev/loop-control") else "there are no loop devices"

    def mount(self, real, source):
        image = real + "/image"
        with open(image, "wb") as file:
            file.truncate(64 * MIB)
        output("mkfs.exfat", image)
        self.device = output("losetup", "-f", "--show", image).decode().strip()
        output("mount.exfat-fuse", self.device, source)
        for name in ("/one", "/other"):
            write(source + name, b"")
        try:
            rename(source + "/one", source + "/other", EXCHANGE)
        except OSError:
            os.unlink(source + "/one")
            os.unlink(source + "/other")
            return
        self.unmount(source)
        raise unittest.SkipTest("exfat-fuse ignores the flags of renameat2 here")

    def unmount(self, source):
        super().unmount(source)
        subprocess.run(["losetup", "-d", self.device], check=False)


KINDS = {
    "bindfs": Bindfs,
    "poor_bindfs": PoorBindfs,
    "sshfs": Sshfs,
    "mount_of_mount": MountOfMount,
    "mount_of_mount_keep": MountOfMountKeep,
    "tmpfs": Tmpfs,
    "overlay": Overlay,
    "exfat": Exfat,
}
KIND = KINDS[os.environ["SOURCE_KIND"]]()


class Sources(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-sources-")
        self.addCleanup(work.cleanup)
        self.source = KIND.make(work.name)
        self.addCleanup(KIND.unmount, self.source)
        self.mount = Mount(self.source)
        self.addCleanup(lambda: self.mount.close())
        self.random = random.Random(3)

    def at(self, name):
        return self.mount / name

    def check(self, name, content):
        """What the mount shows, what is on disk without it, and what the next mount shows."""
        self.assertTrue(read(self.at(name)) == content, f"{name} as the mount has it")
        self.assertTrue(output(mounting.CFRAME, "cat", f"{self.source}/{name}.b2frame") == content, f"{name} on disk")

    def remount(self):
        self.mount.close()
        self.mount = Mount(self.source)

    def expect(self, works, call, *arguments, errors=(errno.EINVAL, errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EIO)):
        if works:
            return call(*arguments)
        with self.assertRaises(OSError) as raised:
            call(*arguments)
        self.assertIn(raised.exception.errno, errors)
        return None

    def test_files_are_made_written_and_cut(self):
        # semantics: P9
        content = bytearray(self.random.randbytes(3 * MIB))
        write(self.at("x"), content)
        self.check("x", content)
        fd = os.open(self.at("x"), os.O_RDWR)
        os.pwrite(fd, b"abc" * 1000, 1000)
        os.fsync(fd)
        with mmap.mmap(fd, len(content)) as shared:
            shared[50:55] = b"STORE"
            shared.flush()
        os.close(fd)
        content[1000:4000] = b"abc" * 1000
        content[50:55] = b"STORE"
        self.check("x", content)
        os.truncate(self.at("x"), MIB + 5)
        del content[MIB + 5 :]
        self.check("x", content)
        fallocate(self.at("x"), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, MIB)
        content[:MIB] = bytes(MIB)
        self.check("x", content)
        os.truncate(self.at("x"), 0)
        write(self.at("x"), b"short")
        for number in range(5):
            write(self.at("x"), b"line %d\n" % number, "ab")
        content = b"short" + b"".join(b"line %d\n" % number for number in range(5))
        self.check("x", content)
        self.remount()
        self.check("x", content)
        self.assertEqual([name for name in os.listdir(self.source) if name.startswith(".")], [])

    def test_names_are_moved_taken_and_exchanged(self):
        write(self.at("a"), b"one" * 100)
        write(self.at("b"), b"two" * 100)
        with self.assertRaises(FileExistsError):
            rename(self.at("a"), self.at("b"), NOREPLACE)
        rename(self.at("a"), self.at("c"), NOREPLACE)
        rename(self.at("c"), self.at("a"), 0)
        self.expect(KIND.exchanges, rename, self.at("a"), self.at("b"), EXCHANGE)
        one, two = (b"two", b"one") if KIND.exchanges else (b"one", b"two")
        self.check("a", one * 100)
        self.check("b", two * 100)
        # As editors do it.
        write(self.at("a.new"), b"three" * 100)
        os.rename(self.at("a.new"), self.at("a"))
        self.check("a", b"three" * 100)
        os.makedirs(self.at("d/e"))
        write(self.at("d/e/f"), b"deep")
        os.rename(self.at("d"), self.at("g"))
        self.check("g/e/f", b"deep")
        os.unlink(self.at("g/e/f"))
        os.removedirs(self.at("g/e"))

    def test_an_open_file_outlives_its_name(self):
        write(self.at("u"), b"U" * 30000)
        fd = os.open(self.at("u"), os.O_RDWR)
        os.unlink(self.at("u"))
        write(self.at("u"), b"new")
        os.pwrite(fd, b"more", 0)
        os.fsync(fd)
        self.assertEqual(os.pread(fd, 40000, 0), b"more" + b"U" * 29996)
        os.ftruncate(fd, 10)
        self.assertEqual(os.fstat(fd).st_size, 10)
        os.close(fd)
        self.check("u", b"new")
        write(self.at("v"), b"other")
        fd = os.open(self.at("u"), os.O_RDONLY)
        os.rename(self.at("v"), self.at("u"))
        self.assertEqual(os.pread(fd, 100, 0), b"new")
        os.close(fd)
        self.check("u", b"other")

    def test_what_the_source_lacks_is_told(self):
        # semantics: P2
        write(self.at("x"), b"text")
        self.expect(KIND.attributes, os.setxattr, self.at("x"), "user.a", b"1")
        os.setxattr(self.at("x"), "user.blosc2.vlmeta.a", b"2")
        self.assertEqual(os.getxattr(self.at("x"), "user.blosc2.vlmeta.a"), b"2")
        self.assertIn(b"chunks", os.getxattr(self.at("x"), "user.blosc2.info"))
        self.expect(KIND.symlinks, os.symlink, "x", self.at("l"))
        self.expect(KIND.pipes, os.mkfifo, self.at("p"))
        if KIND.modes:
            os.chmod(self.at("x"), 0o600)
            self.assertEqual(os.stat(self.at("x")).st_mode & 0o777, 0o600)
        os.utime(self.at("x"), (10**9, 10**9))
        self.assertEqual(os.stat(self.at("x")).st_mtime, 10**9)
        with open(self.source + "/plain", "wb") as file:
            file.write(b"p" * 20000)
        self.assertEqual(read(self.at("plain")), b"p" * 20000)
        self.expect(KIND.links, os.link, self.at("plain"), self.at("second"))
        self.expect(KIND.holes, fallocate, self.at("plain"), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096)
        write(self.at("plain"), b"written", "r+b")
        os.truncate(self.at("plain"), 3)
        self.assertEqual(read(self.at("plain")), b"wri")
        self.check("x", b"text")

    def test_changes_behind_the_mount_are_seen(self):
        raw = os.path.dirname(self.source) + "/raw"
        for number in range(6):
            content = bytes([65 + number]) * 50000
            write(raw, content)
            output(mounting.CFRAME, "pack", "--force", "--codec", "lz4", raw, self.source + "/f.b2frame")
            self.assertTrue(read(self.at("f")) == content, f"change {number}")
            write(self.source + "/plain", content)
            self.assertTrue(read(self.at("plain")) == content, f"change {number} of the plain file")
        os.mkdir(self.source + "/d")
        self.assertEqual(os.listdir(self.at("d")), [])
        write(self.source + "/d/new", b"")
        self.assertEqual(os.listdir(self.at("d")), ["new"])

    def test_two_programs_write_one_file(self):
        write(self.at("x"), b"0123456789")
        one, other = os.open(self.at("x"), os.O_RDWR), os.open(self.at("x"), os.O_RDWR)
        fcntl.flock(one, fcntl.LOCK_EX)
        with self.assertRaises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(one, b"AA", 0)
        os.pwrite(other, b"BB", 4)
        os.close(one)
        os.close(other)
        self.check("x", b"AA23BB6789")

    def test_a_sparse_frame_is_written(self):
        if not KIND.sparse:
            return self.assertTrue(KIND.links, "a sparse frame in the lower mount is no directory")
        content = bytearray(b"S" * 300000)
        sparse_frames.make_sparse_frame(self.source + "/s.b2frame", bytes(content), 65536)
        fd = os.open(self.at("s"), os.O_RDWR)
        os.pwrite(fd, b"xyz", 100000)
        os.ftruncate(fd, 250000)
        os.close(fd)
        content[100000:100003] = b"xyz"
        self.check("s", content[:250000])
        os.rename(self.at("s"), self.at("t"))
        self.check("t", content[:250000])
        os.unlink(self.at("t"))
        self.assertFalse(os.path.exists(self.source + "/t.b2frame"))

    def test_programs_compact_and_change_frames(self):
        write(self.at("x"), b"text" * 1000)
        output(mounting.CFRAME, "compact", self.source + "/x.b2frame")
        output(mounting.CFRAME, "set-meta", self.source + "/x.b2frame", "key", "value")
        self.check("x", b"text" * 1000)

    def test_many_files(self):
        for number in range(40):
            write(self.at(f"many{number}"), b"%d" % number * 100)
        self.assertEqual(sorted(os.listdir(self.mount.path)),
                         sorted([f"many{number}" for number in range(40)] + ["below"] * (KIND.__class__ is Overlay)))
        for number in range(40):
            self.assertEqual(read(self.at(f"many{number}")), b"%d" % number * 100)
            os.unlink(self.at(f"many{number}"))

    def test_spellings_are_one_file(self):
        write(self.at("Notes"), b"0123456789")
        if not KIND.folds_case:
            return self.assertFalse(os.path.exists(self.at("notes")))
        self.assertEqual(os.stat(self.at("nOTES")).st_ino, os.stat(self.at("Notes")).st_ino)
        one, other = os.open(self.at("Notes"), os.O_RDWR), os.open(self.at("NOTES"), os.O_RDWR)
        os.pwrite(one, b"AA", 0)
        os.pwrite(other, b"BB", 4)
        os.close(one)
        os.close(other)
        self.check("Notes", b"AA23BB6789")
        self.assertEqual(os.listdir(self.mount.path), ["Notes"])
        # The kernel takes two spellings for two names of one file, and leaves both.
        os.rename(self.at("Notes"), self.at("NOTES"))
        self.assertEqual(os.listdir(self.mount.path), ["Notes"])
        os.rename(self.at("Notes"), self.at("other"))
        os.rename(self.at("other"), self.at("NOTES"))
        self.assertEqual(os.listdir(self.mount.path), ["NOTES"])
        os.rename(self.source + "/NOTES.b2frame", self.source + "/other")
        os.rename(self.source + "/other", self.source + "/NOTES.B2FRAME")
        self.assertEqual(os.listdir(self.mount.path), ["NOTES"])
        self.assertEqual(read(self.at("notes")), b"AA23BB6789")
        with self.assertRaises(FileNotFoundError):
            os.stat(self.at("NOTES.B2FRAME"))


if __name__ == "__main__":
    if (why := KIND.why_not()) is not None:
        sys.stderr.write(f"skipped: {why}\n")
        sys.exit(mounting.SKIPPED)
    mounting.main()
