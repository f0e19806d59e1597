"""Several filesystems below one source, whose inode numbers coincide: to programs their files are different files."""

import os
import subprocess
import tempfile
import unittest

import mounting
from mounting import Mount, output, run


class Nested(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-nested-")
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.source = work.name + "/source"
        os.mkdir(self.source)
        self.content = {}
        for folder in ("one", "two", "three"):
            path = f"{self.source}/{folder}"
            os.mkdir(path)
            if os.geteuid() != 0 or run("mount", "-t", "tmpfs", "-o", "size=8M", "none", path).returncode != 0:
                self.skipTest("needs the right to mount a small tmpfs")
            self.addCleanup(subprocess.run, ["umount", "-l", path], check=False)
            for name in ("plain", "frame"):
                data = self.content[f"{folder}/{name}"] = os.urandom(300_000)
                with open(f"{path}/plain" if name == "plain" else self.work + "/raw", "wb") as file:
                    file.write(data)
            output(mounting.CFRAME, "pack", self.work + "/raw", path + "/frame.b2frame")
            os.mkdir(path + "/folder")
            os.symlink("plain", path + "/link")

    def test_numbers_are_those_of_one_file_each(self):
        stored = [os.stat(f"{self.source}/{folder}/plain").st_ino for folder in ("one", "two", "three")]
        self.assertEqual(len(set(stored)), 1, "otherwise nothing is tested")
        with Mount(self.source) as mount:
            for _ in range(2):
                seen = {}
                for folder, folders, files in os.walk(mount.path):
                    if folder == mount.path:
                        folders[:] = [name for name in folders if name != ".cframefs"]
                    for name in (*folders, *files):
                        path = os.path.join(folder, name)
                        status = os.lstat(path)
                        self.assertNotIn((status.st_dev, status.st_ino), seen, path)
                        seen[status.st_dev, status.st_ino] = path
                # Three folders with four entries each.
                self.assertEqual(len(seen), 3 * 5)
            self.assertEqual(os.stat(mount / "one/plain").st_ino, os.stat(mount / "one/link").st_ino)

    def test_programs_tell_them_apart(self):
        with Mount(self.source) as mount:
            for name in ("plain", "frame"):
                for other in ("two", "three"):
                    self.assertEqual(run("cmp", mount / f"one/{name}", mount / f"{other}/{name}").returncode, 1)
                    self.assertEqual(run("diff", "-q", mount / f"one/{name}", mount / f"{other}/{name}").returncode, 1)
            output("tar", "cf", self.work + "/a.tar", "-C", mount.path, "one", "two", "three")
            os.mkdir(self.work + "/out")
            output("tar", "xf", self.work + "/a.tar", "-C", self.work + "/out")
            output("cp", "-a", mount / "one", mount / "two", mount / "three", self.work)
            for root in (self.work + "/out", self.work):
                for name, data in self.content.items():
                    with open(f"{root}/{name}", "rb") as file:
                        self.assertTrue(file.read() == data, f"{root}/{name}")
            for name in ("plain", "frame"):
                output("cp", mount / f"one/{name}", mount / f"two/{name}")
                with open(mount / f"two/{name}", "rb") as file:
                    self.assertTrue(file.read() == self.content[f"one/{name}"])


if __name__ == "__main__":
    mounting.main()
