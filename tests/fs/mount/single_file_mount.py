"""A source that is one frame, on a directory and on a regular file."""

import errno
import os

import mounting
from mounting import Mount, background, golden_frames, output, unmount
from mounted_directory import Directory, LARGE, SMALL


class SingleFile(Directory):
    def setUp(self):
        super().setUp()
        (self.frame, self.content), (self.other, self.other_content) = golden_frames(SMALL, LARGE)
        self.put(self.frame)
        self.target = self.work + "/target"
        with open(self.target, "w", encoding="ascii") as file:
            file.write("what lies beneath")

    def test_on_a_directory(self):
        with Mount(self.source + "/x.b2frame", mountpoint=self.mountpoint) as mount:
            self.assertEqual(os.listdir(mount.path), ["x"])
            with open(mount / "x", "rb") as file:
                self.assertEqual(file.read(), self.content)
            self.assertFalse(os.path.exists(mount / "x.b2frame"))

    def test_on_a_directory_keeping_names(self):
        with Mount(self.source + "/x.b2frame", "names=keep", mountpoint=self.mountpoint) as mount:
            self.assertEqual(os.listdir(mount.path), ["x.b2frame"])

    def test_on_a_regular_file(self):
        with Mount(self.source + "/x.b2frame", "ro", mountpoint=self.target):
            self.assertEqual(os.stat(self.target).st_size, len(self.content))
            with open(self.target, "rb") as file:
                self.assertEqual(file.read(), self.content)
            self.assertEqual(output("tail", "-c", "5", self.target), self.content[-5:])
            self.assertTrue(os.getxattr(self.target, "user.blosc2.info"))
            with self.assertRaises(OSError) as refused:
                os.open(self.target, os.O_WRONLY)
            self.assertEqual(refused.exception.errno, errno.EROFS)
        with open(self.target, encoding="ascii") as file:
            self.assertEqual(file.read(), "what lies beneath")

    def test_on_a_regular_file_in_the_background(self):
        self.assertEqual(background(self.source + "/x.b2frame", self.target).returncode, 0)
        with open(self.target, "rb") as file:
            self.assertEqual(file.read(), self.content)
        unmount(self.target)

    def test_a_sparse_frame_on_both(self):
        (stored, content), = golden_frames("sframe/lz4.b2frame")
        with Mount(stored, mountpoint=self.mountpoint) as mount:
            self.assertEqual(os.listdir(mount.path), ["lz4"])
            with open(mount / "lz4", "rb") as file:
                self.assertEqual(file.read(), content)
        with Mount(stored, mountpoint=self.target), open(self.target, "rb") as file:
            self.assertEqual(file.read(), content)

    def test_a_name_without_suffix_is_taken_for_a_frame(self):
        self.put(self.frame, "nameless")
        with Mount(self.source + "/nameless", mountpoint=self.target), open(self.target, "rb") as file:
            self.assertEqual(file.read(), self.content)

    def test_offset(self):
        row = next(r for r in mounting.manifest("cframe/MANIFEST.tsv") if r["path"] == "offset/junk-prefix.bin")
        stored = mounting.GOLDEN + "/cframe/" + row["path"]
        with Mount(stored, f"offset={row['offset']}", mountpoint=self.target), open(self.target, "rb") as file:
            self.assertEqual(mounting.sha256(file.read()), row["sha256"])

    def test_replaced_behind_a_mount_on_a_file(self):
        self.check_replaced(self.target, self.target)

    def test_replaced_behind_a_mount_on_a_directory(self):
        self.check_replaced(self.mountpoint, self.mountpoint + "/x")

    def check_replaced(self, mountpoint, path):
        with Mount(self.source + "/x.b2frame", mountpoint=mountpoint):
            for _ in range(10):
                for frame, content in ((self.other, self.other_content), (self.frame, self.content)):
                    self.put(frame, "new")
                    os.rename(self.source + "/new", self.source + "/x.b2frame")
                    # An open sees the change at once, stat once the system has reported it.
                    with open(path, "rb") as file:
                        self.assertEqual(os.fstat(file.fileno()).st_size, len(content))
                        self.assertEqual(file.read(), content)
                    mounting.wait_for(lambda size=len(content): os.stat(path).st_size == size)


if __name__ == "__main__":
    mounting.main()
