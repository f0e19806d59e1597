"""What becomes of what programs have written when a commit has to wait, and when the mount ends: it is on disk, or the
program has been told."""

import errno
import fcntl
import os
import struct
import subprocess
import sys
import tempfile
import unittest

import mounting
from mounting import Mount, output, run, wait_for

WRITER = """
import os, struct, sys
file = os.open(sys.argv[1], os.O_CREAT | int(sys.argv[2]))
number = 0
try:
    while True:
        os.pwrite(file, struct.pack("<Q", number + 1) * 8, number % 4000 * 64)
        number += 1
        if number == 5000:
            print("begun", flush=True)
except OSError:
    print(number, flush=True)
"""


class Commits(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-commits-")
        self.addCleanup(work.cleanup)
        self.source = work.name

    def mount(self, *options):
        mount = Mount(self.source, *options)
        self.addCleanup(lambda: mount.log is not None and mount.close())
        return mount

    def lock(self, name, how):
        """A lock of another program, which can only read the file."""
        descriptor = os.open(self.source + "/" + name, os.O_RDONLY)
        self.addCleanup(os.close, descriptor)
        fcntl.flock(descriptor, how)
        return descriptor

    def stored(self, name):
        return output(mounting.CFRAME, "cat", self.source + "/" + name)

    def test_writes_beside_the_end_of_the_mount_are_stored_or_fail(self):
        # semantics: W7
        ways = {"plain.txt": os.O_RDWR, "w": os.O_WRONLY, "rw": os.O_RDWR}
        for option in ("attr_timeout=0", "attr_timeout=60"):
            with open(self.source + "/plain.txt", "w", encoding="ascii"):
                pass
            mount = self.mount("writeback=on", option)
            writers = {name: subprocess.Popen([sys.executable, "-c", WRITER, mount / name, str(flags)],
                                              stdout=subprocess.PIPE, text=True) for name, flags in ways.items()}
            for writer in writers.values():
                self.assertEqual(writer.stdout.readline(), "begun\n")
            mount.close()
            for name, writer in writers.items():
                accepted = int(writer.communicate(timeout=60)[0])
                path = self.source + "/" + name if "." in name else self.source + "/" + name + ".b2frame"
                if "." in name:
                    with open(path, "rb") as file:
                        stored = file.read()
                else:
                    stored = output(mounting.CFRAME, "cat", path)
                last = max(struct.unpack(f"<{len(stored) // 8}Q", stored))
                self.assertGreaterEqual(last, accepted, (name, option))
                os.unlink(path)

    def test_a_frame_that_is_put_anew_shares_its_inode_number_with_no_other_file(self):
        # semantics: S3
        with self.mount() as mount:
            for number in range(8):
                # A commit that takes the last chunk away makes a new file.
                with open(mount / "x", "wb") as frame:
                    frame.write(os.urandom(50_000))
                os.truncate(mount / "x", 0)
                with open(mount / f"new-{number}", "wb") as new:
                    new.write(b"new")
                # Looked up or not: what readdir tells is what stat tells.
                with os.scandir(mount.path) as entries:
                    told = {entry.name: entry.inode() for entry in entries}
                shown = {name: os.lstat(mount / name).st_ino for name in os.listdir(mount.path)}
                self.assertEqual(len(set(shown.values())), number + 2, shown)
                self.assertEqual(told, shown)

    def test_a_line_that_a_lock_keeps_from_the_disk_waits(self):
        # semantics: C4, C5, C9
        mount = self.mount("commit_interval=1")
        with open(mount / "x", "w", encoding="ascii") as file:
            file.write("one\n")
        lock = self.lock("x.b2frame", fcntl.LOCK_EX)
        file = os.open(mount / "x", os.O_WRONLY | os.O_APPEND)
        os.write(file, b"two\n")
        with self.assertRaises(OSError) as told:
            os.close(file)
        self.assertEqual(told.exception.errno, errno.EBUSY)
        output("sh", "-c", "echo 3 > /proc/sys/vm/drop_caches || true")
        with open(mount / "x", "rb") as file:
            self.assertEqual(file.read(), b"one\ntwo\n")
        self.assertEqual(os.stat(mount / "x").st_size, 8)
        self.assertEqual(self.stored("x.b2frame"), b"one\n")
        fcntl.flock(lock, fcntl.LOCK_UN)
        wait_for(lambda: self.stored("x.b2frame") == b"one\ntwo\n")
        wait_for(lambda: len(mount.lines()) == 2)
        self.assertIn("4 uncommitted bytes wait for a commit", mount.lines()[0])
        self.assertIn("is committed", mount.lines()[1])

    def test_a_reader_with_a_lock_stops_nothing(self):
        # semantics: C6
        mount = self.mount()
        for name in "abc":
            with open(mount / name, "w", encoding="ascii") as file:
                file.write("one\n")
            self.lock(name + ".b2frame", fcntl.LOCK_SH)
        for name in "abc":
            output("sh", "-c", f"echo two >> '{mount / name}'")
            self.assertEqual(self.stored(name + ".b2frame"), b"one\ntwo\n")
        self.assertEqual(mount.lines(), [])

    def test_tools_that_make_a_new_file_refuse_while_a_program_writes(self):
        # semantics: C12
        mount = self.mount("commit_interval=1000")
        file = os.open(mount / "x", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, b"one\n")
        os.fsync(file)
        path = self.source + "/x.b2frame"
        for command in (["compact", path], ["set-meta", path, "name", "value"], ["repair", path]):
            done = run(mounting.CFRAME, *command, "--wait", "0.1")
            self.assertEqual(done.returncode, 3, command)
            self.assertIn(b"open for writing in a mount", done.stderr)
        os.write(file, b"two\n")
        os.close(file)
        self.assertEqual(self.stored("x.b2frame"), b"one\ntwo\n")
        output(mounting.CFRAME, "compact", path)
        output(mounting.CFRAME, "set-meta", path, "name", "value")
        with open(mount / "x", "rb") as file:
            self.assertEqual(file.read(), b"one\ntwo\n")


if __name__ == "__main__":
    mounting.main()
