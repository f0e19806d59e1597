"""The statistics that a mount serves, and the reads that move them."""

import json
import os
import stat
import time

import mounting
from mounting import golden_frames, output, pread, wait_for
from mounted_directory import Directory, LARGE


class Statistics(Directory):
    def setUp(self):
        super().setUp()
        (self.frame, self.content), = golden_frames(LARGE)
        self.put(self.frame)

    def test_the_directory_is_there_but_not_listed(self):
        mount = self.mount("stats=on")
        self.assertEqual(os.listdir(mount.path), ["x"])
        self.assertEqual(sorted(os.listdir(mount / ".cframefs")), ["metrics", "stats.json"])
        self.assertTrue(stat.S_ISDIR(os.stat(mount / ".cframefs").st_mode))
        self.assertTrue(stat.S_ISREG(os.stat(mount / ".cframefs/metrics").st_mode))

    def test_off_by_default(self):
        mount = self.mount()
        self.assertFalse(os.path.exists(mount / ".cframefs"))

    def test_reading_moves_the_counters(self):
        mount = self.mount("stats=on", "readahead=0")
        before = mount.statistics()
        self.assertEqual((before["reads"], before["blocks_decoded"]), (0, 0))
        with open(mount / "x", "rb") as file:
            self.assertEqual(file.read(), self.content)
        after = mount.statistics()
        self.assertGreaterEqual(after["reads"], 1)
        self.assertGreaterEqual(after["bytes_served"], len(self.content))
        self.assertGreaterEqual(after["bytes_decoded"], len(self.content))
        self.assertGreater(after["bytes_fetched"], 0)
        self.assertGreater(after["cache_misses"], 0)
        self.assertGreater(after["opens"], before["opens"])
        self.assertEqual(after["errors"], 0)

    def test_a_listing_looks_up_none_of_its_entries(self):
        for number in range(500):
            open(f"{self.source}/plain-{number}", "w", encoding="utf-8").close()
        mount = self.mount("stats=on")
        before = mount.statistics()["lookups"]
        self.assertEqual(len(os.listdir(mount.path)), 501)
        self.assertLess(mount.statistics()["lookups"] - before, 10)

    def test_a_warm_read_reaches_nobody(self):
        # semantics: T3
        mount = self.mount("stats=on")
        # What was changed a moment ago is not trusted to be cached yet.
        wait_for(lambda: time.time() - os.stat(self.source + "/x.b2frame").st_ctime > 0.5, what="the file to settle")
        for _ in range(2):
            with open(mount / "x", "rb") as file:
                self.assertEqual(file.read(), self.content)
        before = mount.statistics()
        for _ in range(3):
            with open(mount / "x", "rb") as file:
                self.assertEqual(file.read(), self.content)
            output("cat", mount / "x")
        after = mount.statistics()
        # The statistics themselves are read, too: each reading is one request or two.
        for counter in ("blocks_decoded", "cache_misses", "cache_hits", "bytes_fetched"):
            self.assertEqual(after[counter], before[counter], counter)
        self.assertLessEqual(after["reads"] - before["reads"], 2)

    def test_a_small_read_decodes_what_it_touches(self):
        # semantics: T3
        mount = self.mount("stats=on")
        self.assertEqual(pread(mount / "x", 1_000_000, 4096), self.content[1_000_000 : 1_000_000 + 4096])
        counted = mount.statistics()
        self.assertGreater(counted["bytes_decoded"], 0)
        self.assertLess(counted["bytes_decoded"], len(self.content))

    def test_metrics_are_what_prometheus_reads(self):
        mount = self.mount("stats=on")
        with open(mount / "x", "rb") as file:
            file.read()
        with open(mount / ".cframefs/metrics", encoding="ascii") as file:
            lines = file.read().splitlines()
        names = {line.split()[2] for line in lines if line.startswith("# TYPE ")}
        values = dict(line.split() for line in lines if not line.startswith("#"))
        self.assertEqual(names, set(values))
        self.assertGreater(int(values["cframefs_blocks_decoded_total"]), 0)
        self.assertEqual(len(values), len(json.loads(pread(mount / ".cframefs/stats.json", 0, 65536))))


if __name__ == "__main__":
    mounting.main()
