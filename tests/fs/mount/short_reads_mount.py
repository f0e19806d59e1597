"""A disk that gives less than was asked for, and interrupts: all bytes come, and nothing is logged."""

import os
import unittest

import mounting
from mounting import Mount, manifest, sha256, shown

NAMELESS = "sframe/no-extension"  # only detect=content tells it from a directory


class ShortReads(unittest.TestCase):
    def test_all_golden_frames_are_read(self):
        library = {"LD_PRELOAD": os.environ["SLOW_CALLS_LIBRARY"], "SHORT_READS": "1",
                   "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}
        rows = [row for row in manifest("cframe/MANIFEST.tsv")
                if row["offset"] == "0" and row["path"] != NAMELESS and row["sha256"] != "-"]
        self.assertGreater(len(rows), 200)
        with Mount(mounting.GOLDEN + "/cframe", environment=library) as mount:
            for row in rows:
                with open(mount / shown(row["path"]), "rb") as file:
                    self.assertEqual(sha256(file.read()), row["sha256"], row["path"])
            self.assertEqual(mount.lines(), [])


if __name__ == "__main__":
    mounting.main()
