"""Every damaged golden frame, through a real mount: the outcome that its manifest allows, and the mount stays up."""

import errno
import os
import unittest

import mounting
from mounting import Mount, manifest, pread, ranges, sha256, shown

DAMAGED = (errno.EIO, errno.EOPNOTSUPP)
# The manifest tells of nothing in it that must be readable: with an index of the wrong length no chunk has a place.
WITHOUT_INDEX = "index/short.b2frame"


def base_of(row):
    """The stored path of the undamaged frame that a row derives from."""
    return "sframe/good.b2frame" if row["path"].startswith("sframe/") else "good/" + row["base"]


class MalformedMount(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mount = Mount(mounting.GOLDEN + "/malformed")
        cls.addClassCleanup(cls.mount.close)
        cls.rows = manifest("malformed/MANIFEST.tsv")
        cls.bases = {}
        with Mount(mounting.GOLDEN + "/malformed") as other:
            for row in cls.rows:
                path = base_of(row)
                if path not in cls.bases and not path.startswith("good/none"):
                    if os.path.exists(other / shown(path)):
                        with open(other / shown(path), "rb") as file:
                            cls.bases[path] = file.read()

    def expected(self, row, offset, length, digest):
        content = self.bases[base_of(row)][offset : offset + length]
        if digest:
            self.assertEqual(sha256(content), digest)
        return content

    def read(self, row, offset, length):
        """The bytes, or the errno."""
        try:
            return pread(self.mount / shown(row["path"]), offset, length)
        except OSError as error:
            return error.errno

    def size(self, row):
        """As stat tells it: what the header says, unless that cannot be read. None: stat fails."""
        try:
            return os.stat(self.mount / shown(row["path"])).st_size
        except OSError as error:
            self.assertIn(error.errno, DAMAGED)
            return None

    def opens(self, row):
        """True if it opens as a file; otherwise the error must be one that tells of damage."""
        path = self.mount / shown(row["path"])
        if os.path.isdir(self.mount / row["path"]):
            return False  # a directory without what makes it a frame is a directory
        try:
            os.close(os.open(path, os.O_RDONLY))
            return True
        except OSError as error:
            self.assertIn(error.errno, DAMAGED)
            return False

    def each(self, *policies):
        count = 0
        for row in self.rows:
            if row["policy"] in policies:
                with self.subTest(row["path"]):
                    yield row
                count += 1
                self.assertTrue(self.mount.is_alive(), row["path"])
        self.assertGreater(count, 20)

    def check_intact(self, row):
        for offset, length, digest in ranges(row["intact"]):
            self.assertEqual(self.read(row, offset, length), self.expected(row, offset, length, digest), offset)
            # A byte at either end, which shares its page with what is damaged.
            for at in (offset, offset + length - 1):
                self.assertEqual(self.read(row, at, 1), self.expected(row, at, 1, None), at)

    def test_a_file_that_must_not_open_does_not(self):
        # semantics: S5
        for row in self.each("open-error"):
            self.assertFalse(self.opens(row))
            if os.path.isdir(self.mount / row["path"]):
                continue
            directory, name = os.path.split(self.mount / shown(row["path"]))
            self.assertIn(name, os.listdir(directory))
            self.assertNotEqual(self.size(row), 0, "an archive would hold an empty file")

    def test_damaged_ranges_fail_and_the_others_are_exact(self):
        # semantics: T1, T2, R2
        for row in self.each("read-error"):
            if not self.opens(row):
                continue
            size = os.stat(self.mount / shown(row["path"])).st_size
            affected = ranges(row["affected"]) or [(0, size, None)]
            for _ in range(2):
                for offset, length, _ in affected:
                    for at, count in ((offset, length), (offset, 1), (offset + length - 1, 1)):
                        self.assertIn(self.read(row, at, count), DAMAGED, (at, count))
                self.check_intact(row)

    def test_single_damaged_chunks_leave_the_file_open(self):
        # semantics: T2
        opened = 0
        for row in self.each("read-error"):
            if row["intact"] != "-":
                self.assertTrue(self.opens(row))
                opened += 1
        self.assertGreater(opened, 80)

    def test_what_may_go_either_way_keeps_its_intact_ranges(self):
        for row in self.each("any"):
            if row["affected"] == "all" or row["path"] == WITHOUT_INDEX:
                # Error or data, as long as it comes to an end.
                if self.opens(row):
                    for at in (0, 100, 443, 5999):
                        self.read(row, at, 200)
            else:
                self.assertTrue(self.opens(row))
                for offset, length, _ in ranges(row["affected"]):
                    self.read(row, offset, length)
                self.check_intact(row)

    def test_what_does_not_matter_changes_nothing(self):
        for row in self.each("same"):
            if base_of(row) in self.bases:
                size = len(self.bases[base_of(row)])
                self.assertEqual(os.stat(self.mount / shown(row["path"])).st_size, size)
            self.check_intact(row)

    def test_listing_and_attributes_of_damaged_files(self):
        for directory, _, names in os.walk(self.mount.path):
            for name in names:
                path = os.path.join(directory, name)
                try:
                    os.stat(path)
                except OSError as error:
                    self.assertIn(error.errno, DAMAGED)
                    self.assertRaises(OSError, os.open, path, os.O_RDONLY)
                for attribute in os.listxattr(path):
                    try:
                        os.getxattr(path, attribute)
                    except OSError as error:
                        self.assertIn(error.errno, (errno.ERANGE, errno.E2BIG, *DAMAGED))
        self.assertTrue(self.mount.is_alive())

    def test_memory_stays_what_small_files_justify(self):
        for row in self.rows:
            if self.opens(row):
                self.read(row, 0, 1 << 20)
        # The address sanitizer keeps what was freed for a while.
        limit = 600 << 20 if mounting.is_sanitized() else 100 << 20
        self.assertLess(self.mount.status("VmHWM"), limit)


class MalformedLog(unittest.TestCase):
    def setUp(self):
        self.mount = Mount(mounting.GOLDEN + "/malformed")
        self.addCleanup(self.mount.close)

    def fail_to_read(self, path, offset, length):
        with self.assertRaises(OSError) as failed:
            pread(self.mount / path, offset, length)
        self.assertIn(failed.exception.errno, DAMAGED)

    def test_a_damaged_chunk_is_told_once_with_its_place(self):
        rows = [row for row in manifest("malformed/MANIFEST.tsv") if row["policy"] == "read-error"]
        rows = [row for row in rows if len(ranges(row["affected"])) == 1]
        self.assertGreater(len(rows), 80)
        for row in rows[::4]:
            with self.subTest(row["path"]):
                offset, length, _ = ranges(row["affected"])[0]
                for _ in range(3):
                    self.fail_to_read(shown(row["path"]), offset, length)
                    self.fail_to_read(shown(row["path"]), offset + length // 2, 1)
                told = [line for line in self.mount.lines() if row["path"] in line]
                self.assertEqual(len(told), 1, told)
                self.assertIn("chunk", told[0])

    def test_a_file_that_does_not_open_is_told_once(self):
        rows = [row for row in manifest("malformed/MANIFEST.tsv") if row["policy"] == "open-error"]
        for row in rows:
            path = shown(row["path"])
            if os.path.isdir(self.mount / row["path"]):
                continue
            with self.subTest(row["path"]):
                for _ in range(3):
                    try:
                        os.stat(self.mount / path)
                    except OSError as error:
                        self.assertIn(error.errno, DAMAGED)
                    self.fail_to_read(path, 0, 1)
                told = [line for line in self.mount.lines() if row["path"] + ":" in line]
                self.assertEqual(len(told), 1, told)

    def test_no_line_comes_twice(self):
        for _ in range(2):
            for row in manifest("malformed/MANIFEST.tsv"):
                try:
                    pread(self.mount / shown(row["path"]), 0, 10000)
                except OSError:
                    pass
        lines = self.mount.lines()
        self.assertGreater(len(lines), 100)
        self.assertEqual(len(lines), len(set(lines)))

    def test_good_files_are_not_told_of(self):
        for row in manifest("malformed/MANIFEST.tsv"):
            if row["path"].startswith("good/"):
                with open(self.mount / shown(row["path"]), "rb") as file:
                    file.read()
        self.assertEqual(self.mount.lines(), [])


if __name__ == "__main__":
    mounting.main()
