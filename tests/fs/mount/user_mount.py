"""Mounts made by an ordinary user, through fusermount3.

Where root runs the tests, they become an unprivileged user, in a mount namespace of their own in which /dev/fuse is open to everybody,
as it is on an ordinary Debian.
"""

import ctypes
import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import mounting
from mounting import Mount, background, is_mounted, unmount

UNPRIVILEGED = 65534
FUSE_DEVICE = os.makedev(10, 229)
CLONE_NEWNS = 0x00020000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
FRAME = "matrix/000-blosclz-c1-none-t3.b2frame"


class OrdinaryUser(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-test-")
        self.addCleanup(work.cleanup)
        self.source = work.name + "/source"
        self.mountpoint = work.name + "/mnt"
        os.mkdir(self.source)
        os.mkdir(self.mountpoint)
        shutil.copy(os.path.join(mounting.GOLDEN, "cframe", FRAME), self.source + "/x.b2frame")
        digests = {row["path"]: row["sha256"] for row in mounting.manifest("cframe/MANIFEST.tsv")}
        self.digest = digests[FRAME]

    def content(self):
        with open(self.mountpoint + "/x", "rb") as file:
            return file.read()

    def test_in_the_background(self):
        self.assertNotEqual(os.geteuid(), 0)
        done = background(self.source, self.mountpoint)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(mounting.sha256(self.content()), self.digest)
        self.assertEqual(os.stat(self.mountpoint + "/x").st_uid, os.getuid())
        unmount(self.mountpoint)

    def test_in_the_foreground(self):
        with Mount(self.source, mountpoint=self.mountpoint):
            self.assertEqual(mounting.sha256(self.content()), self.digest)
        self.assertFalse(is_mounted(self.mountpoint))

    def test_no_process_fills_pages(self):
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            self.assertEqual(mounting.sha256(self.content()), self.digest)
            self.assertEqual(mounting.fillers_of(self.mountpoint), [])
            self.assertEqual(mount.lines(), [])

    def test_what_the_user_may_not_read_is_refused(self):
        # semantics: S6
        os.chmod(self.source + "/x.b2frame", 0)
        with Mount(self.source, mountpoint=self.mountpoint):
            for call in (self.content, lambda: os.stat(self.mountpoint + "/x")):
                with self.assertRaises(PermissionError) as refused:
                    call()
                self.assertEqual(refused.exception.errno, errno.EACCES)
            self.assertEqual(os.listdir(self.mountpoint), ["x"])

    def test_what_the_user_writes_is_there_after_a_new_mount(self):
        for mode, expected in (("wb", b"new"), ("ab", b"newnew")):
            with Mount(self.source, mountpoint=self.mountpoint):
                with open(self.mountpoint + "/x", mode) as file:
                    file.write(b"new")
            with Mount(self.source, mountpoint=self.mountpoint):
                self.assertEqual(self.content(), expected)

    def test_another_users_directory_is_no_mount_point(self):
        done = background(self.source, "/")
        self.assertNotEqual(done.returncode, 0)
        lines = done.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("no write access", lines[0])


def keep_mounts_private(libc):
    """Later mounts of this namespace do not appear in others. Recursive from the root, or, where the root is no mount point (in a
    chroot), for each mount point below it."""
    if libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) == 0:
        return
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        for line in table:
            libc.mount(None, mounting.unescape(line.split()[4]).encode(), None, MS_PRIVATE, None)


def become_nobody(tools, cframefs):
    """In a new mount namespace: /dev/fuse for everybody, the program where everybody may read it, and no rights."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    keep_mounts_private(libc)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", tools], check=True)
    os.umask(0)
    os.mknod(tools + "/fuse", 0o666 | stat.S_IFCHR, FUSE_DEVICE)
    subprocess.run(["mount", "--bind", tools + "/fuse", "/dev/fuse"], check=True)
    os.umask(0o022)
    # Where the system has not mounted it, no test can abort the connection of a daemon that hangs.
    subprocess.run(["mount", "-t", "fusectl", "none", "/sys/fs/fuse/connections"], check=False, stderr=subprocess.DEVNULL)
    shutil.copy(cframefs, tools + "/cframefs")
    shutil.copy(os.path.join(os.path.dirname(cframefs), "cframe"), tools + "/cframe")
    golden = tools + "/golden/cframe"
    os.makedirs(os.path.dirname(os.path.join(golden, FRAME)))
    for name in (FRAME, "MANIFEST.tsv"):
        shutil.copy(os.path.join(mounting.GOLDEN, "cframe", name), os.path.join(golden, name))
    # Python's own files may be out of reach from here on.
    mounting.unescape("x")
    os.setgroups([])
    os.setgid(UNPRIVILEGED)
    os.setuid(UNPRIVILEGED)
    os.chdir("/")
    return tools + "/cframefs", tools + "/golden"


def as_unprivileged(work):
    """Does the work in a process of an unprivileged user, with the program and the frames that the command line names. Its exit
    status."""
    mounting.GOLDEN = os.path.abspath(sys.argv[2])
    tools = tempfile.mkdtemp(prefix="cframefs-user-")
    os.chmod(tools, 0o755)
    child = os.fork()
    if child == 0:
        sys.argv[1:3] = become_nobody(tools, os.path.abspath(sys.argv[1]))
        work()
    status = os.waitpid(child, 0)[1]
    # A chroot's root that is no mount point stays shared, and the mount appears here, too.
    if os.path.ismount(tools):
        subprocess.run(["umount", tools], check=True)
    os.rmdir(tools)
    return os.waitstatus_to_exitcode(status)


def main():
    """usage: user_mount.py CFRAMEFS GOLDEN"""
    if os.geteuid() == 0:
        reason = mounting.why_no_mount()
        if not reason and not (shutil.which("fusermount3") and os.stat(shutil.which("fusermount3")).st_mode & stat.S_ISUID):
            reason = "fusermount3 is not set-user-ID"
        if reason:
            sys.stderr.write(f"skipped: {reason}\n")
            sys.exit(mounting.SKIPPED)
        sys.exit(as_unprivileged(mounting.main))
    mounting.main()


if __name__ == "__main__":
    main()
