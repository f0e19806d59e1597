"""cframe at work in a mount and beside one: it writes into a mount, and it takes nothing away that the mount has accepted."""

import os
import subprocess
import tempfile
import unittest

import mounting
from mounting import Mount, output, run


class ToolsAndMounts(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-tools-")
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.source = self.work + "/source"
        os.mkdir(self.source)
        self.content = b"".join(b"line %d\n" % i for i in range(100_000))
        with open(self.work + "/data", "wb") as file:
            file.write(self.content)
        output(mounting.CFRAME, "pack", self.work + "/data", self.work + "/x.b2frame")

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def test_what_is_made_in_a_mount_is_what_is_read(self):
        for names in ("strip", "keep"):
            with self.subTest(names=names), Mount(self.source, f"names={names}") as mount:
                folder = mount / names
                os.mkdir(folder)
                output(mounting.CFRAME, "unpack", self.work + "/x.b2frame", folder + "/data")
                self.assertEqual(self.read(folder + "/data"), self.content)
                output(mounting.CFRAME, "pack", self.work + "/data", folder + "/y.b2frame")
                self.assertEqual(output(mounting.CFRAME, "cat", folder + "/y.b2frame"), self.content)
                output(mounting.CFRAME, "convert", "--codec", "lz4", self.work + "/x.b2frame", folder + "/z.b2frame")
                self.assertEqual(output(mounting.CFRAME, "cat", folder + "/z.b2frame"), self.content)
                self.assertEqual(sorted(os.listdir(folder)), ["data", "y.b2frame", "z.b2frame"])
                refused = run(mounting.CFRAME, "unpack", self.work + "/x.b2frame", folder + "/data")
                self.assertEqual(refused.returncode, 2, "it is there already")
                output(mounting.CFRAME, "unpack", "--force", self.work + "/x.b2frame", folder + "/data")
                self.assertEqual(self.read(folder + "/data"), self.content)
        with Mount(self.source) as mount:
            self.assertEqual(self.read(mount / "strip/data"), self.content)
            self.assertEqual(sorted(os.listdir(mount / "strip")), ["data", "y.b2frame", "z.b2frame"])

    def test_a_run_that_fails_leaves_nothing_in_the_mount(self):
        with open(self.work + "/x.b2frame", "r+b") as file:
            file.seek(os.path.getsize(self.work + "/x.b2frame") // 2)
            file.write(b"damage" * 100)
        with Mount(self.source) as mount:
            failed = run(mounting.CFRAME, "unpack", self.work + "/x.b2frame", mount / "data")
            self.assertEqual(failed.returncode, 1, failed.stderr)
            self.assertEqual(os.listdir(mount.path), [])
        self.assertEqual(os.listdir(self.source), [])

    def test_changing_a_frame_that_is_being_written_loses_nothing(self):
        commands = (["compact"], ["set-meta"], ["repair"])
        for number, command in enumerate(commands):
            with self.subTest(command=command[0]), Mount(self.source) as mount:
                name = f"f{number}"
                expected = b""
                descriptor = os.open(mount / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
                for i in range(6):
                    line = b"line %d\n" % i
                    self.assertEqual(os.write(descriptor, line), len(line))
                    expected += line
                    if i == 1:
                        os.fsync(descriptor)
                    if i in (2, 4):
                        stored = f"{self.source}/{name}.b2frame"
                        arguments = [stored, "note", "text"] if command[0] == "set-meta" else [stored]
                        words = [mounting.CFRAME, command[0], *arguments]
                        done = subprocess.run(words, capture_output=True, check=False)
                        self.assertIn(done.returncode, (0, 3), done.stderr)
                        if done.returncode == 3:
                            self.assertIn(stored.encode(), done.stderr, "the message names the frame")
                os.close(descriptor)
                self.assertEqual(self.read(mount / name), expected)
            self.assertEqual(output(mounting.CFRAME, "cat", f"{self.source}/{name}.b2frame"), expected)


if __name__ == "__main__":
    mounting.main()
