"""Other filesystems below the source: files that have one inode number there are different files to programs.

Only root may mount what lies below the source; an ordinary user's run says so.
"""

import os
import stat
import subprocess
import sys
import tempfile
import unittest

import mounting
from mounting import Mount, output, run, wait_for


def files_below(directory):
    return [os.path.join(at, name) for at, directories, names in os.walk(directory) for name in directories + names]


class NestedFilesystems(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-nested-")
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.source = self.work + "/source"
        os.mkdir(self.source)
        # Three that number their files alike: the source itself is one of them.
        self.mount_memory(self.source)
        for name in ("one", "two"):
            os.mkdir(f"{self.source}/{name}")
            self.mount_memory(f"{self.source}/{name}")
        self.contents = {}
        for directory in ("", "one/", "two/"):
            self.fill(directory)

    def mount_memory(self, place):
        output("mount", "-t", "tmpfs", "-o", "size=8M", "none", place)
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=False)

    def fill(self, directory):
        for name in ("plain", "frame"):
            content = f"{directory}{name}".encode() * 1000
            with open(f"{self.work}/raw", "wb") as file:
                file.write(content)
            stored = f"{self.source}/{directory}{name}"
            command = ("cp",) if name == "plain" else (mounting.CFRAME, "pack")
            output(*command, f"{self.work}/raw", stored + ("" if name == "plain" else ".b2frame"))
            self.contents[directory + name] = content
        os.link(f"{self.source}/{directory}plain", f"{self.source}/{directory}plain-link")
        self.contents[directory + "plain-link"] = self.contents[directory + "plain"]

    def test_numbers_are_unique_and_stay(self):
        # semantics: S3, L1
        disk = [os.lstat(path) for path in files_below(self.source)]
        self.assertLess(len({status.st_ino for status in disk}), len({(status.st_dev, status.st_ino) for status in disk}))
        with Mount(self.source, "stats=on") as mount:
            paths = files_below(mount.path) + files_below(mount / ".cframefs") + [mount / ".cframefs"]
            numbers = {path: (os.lstat(path).st_dev, os.lstat(path).st_ino) for path in paths}
            # One number for the two names of a file, and one for each other file.
            for directory in ("", "one/", "two/"):
                self.assertEqual(numbers.pop(mount / (directory + "plain-link")), numbers[mount / (directory + "plain")])
            self.assertEqual(len(set(numbers.values())), len(numbers), numbers)
            # What a listing says of a file is what stat says, and nothing changes when the kernel asks once more.
            for path, number in numbers.items():
                self.assertEqual((os.lstat(path).st_dev, os.lstat(path).st_ino), number)
            # The source's own files keep the numbers that they have on disk.
            self.assertEqual(os.lstat(mount / "plain").st_ino, os.lstat(self.source + "/plain").st_ino)

    def test_a_mount_of_a_mount_lists_each_attribute_once(self):
        raw, inner, outer = (f"{self.work}/{name}" for name in ("raw", "inner.b2frame", "outer.b2frame"))
        for at, to, value in ((raw, inner, "of the inner frame"), (inner, outer, "of the outer frame")):
            if at == raw:
                with open(raw, "wb") as file:
                    file.write(b"text" * 1000)
            output(mounting.CFRAME, "pack", at, to)
            output(mounting.CFRAME, "set-meta", to, "notes", value, "--type", "raw")
        output("cp", outer, f"{self.source}/x.b2frame.b2frame")
        notes = "user.blosc2.vlmeta.notes"
        with Mount(self.source) as low, Mount(low.path) as high:
            # os.listxattr() tells what listxattr(2) does, however often.
            for mount, name, value in ((low, "x.b2frame", b"of the outer frame"), (high, "x", b"of the inner frame")):
                self.assertEqual(os.listxattr(mount / name), [notes])
                self.assertEqual(os.getxattr(mount / name, notes), value)

    def test_an_archive_holds_what_the_source_does(self):
        out = self.work + "/out"
        os.mkdir(out)
        with Mount(self.source) as mount:
            self.assertEqual(run("cmp", mount / "one/plain", mount / "two/plain").returncode, 1)
            output("tar", "-C", mount.path, "-cf", self.work + "/all.tar", ".")
        output("tar", "-C", out, "-xf", self.work + "/all.tar")
        found = {}
        for path in files_below(out):
            if stat.S_ISREG(os.lstat(path).st_mode):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, out)] = file.read()
        self.assertEqual(found, self.contents)
        for directory in ("", "one/", "two/"):
            self.assertTrue(os.path.samefile(f"{out}/{directory}plain", f"{out}/{directory}plain-link"))

    def test_a_filesystem_below_the_source_can_be_unmounted(self):
        with Mount(self.source) as mount:
            os.mkdir(self.source + "/one/deep")
            self.assertIn("plain", os.listdir(mount / "one"))
            for name in ("one/plain", "one/frame"):
                with open(mount / name, "rb") as file:
                    self.assertEqual(file.read(), self.contents[name])
            with open(mount / "one/deep/new", "wb") as file:
                file.write(b"new")
            # The kernel tells the mount of a close without waiting for it.
            umount = ["umount", self.source + "/one"]
            wait_for(lambda: subprocess.run(umount, stderr=subprocess.DEVNULL, check=False).returncode == 0, what="umount")
            self.assertEqual(os.listdir(mount / "one"), [])
            with open(mount / "two/plain", "rb") as file:
                self.assertEqual(file.read(), self.contents["two/plain"])


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.stderr.write("skipped: only root may mount other filesystems below a source\n")
        sys.exit(mounting.SKIPPED)
    mounting.main()
