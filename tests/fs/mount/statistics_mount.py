"""The statistics that a mount serves, and the reads that move them."""

import errno
import json
import math
import os
import re
import stat
import time

import mounting
import openmetrics
import users
from mounting import golden_frames, output, pread, run, wait_for
from mounted_directory import Directory, LARGE

NAMES = ["busiest.json", "config", "drop_caches", "metrics", "stats.json"]


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Statistics(Directory):
    def setUp(self):
        super().setUp()
        (self.frame, self.content), = golden_frames(LARGE)
        self.put(self.frame)

    def test_the_directory_is_there_but_not_listed(self):
        mount = self.mount("stats=on")
        self.assertEqual(os.listdir(mount.path), ["x"])
        self.assertEqual(sorted(os.listdir(mount / ".cframefs")), NAMES)
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
        for counter in ("reads", "blocks_decoded", "cache_misses", "cache_hits", "bytes_fetched"):
            self.assertEqual(after[counter], before[counter], counter)

    def test_a_small_read_decodes_what_it_touches(self):
        # semantics: T3
        mount = self.mount("stats=on")
        self.assertEqual(pread(mount / "x", 1_000_000, 4096), self.content[1_000_000 : 1_000_000 + 4096])
        counted = mount.statistics()
        self.assertGreater(counted["bytes_decoded"], 0)
        self.assertLess(counted["bytes_decoded"], len(self.content))

    def metrics(self, mount):
        return openmetrics.parse(text(mount / ".cframefs/metrics"))

    def test_metrics_are_valid_openmetrics(self):
        mount = self.mount("stats=on", "workers=2")
        # Open, because the cache gives back what it holds of a file soon after close().
        with open(mount / "x", "rb") as file:
            file.read()
            shown = mount.statistics()
            families = self.metrics(mount)
        for family in families.values():
            self.assertTrue(family.help.endswith(tuple("abcdefghijklmnopqrstuvwxyz)0")), family.help)
            for suffix, labels, _ in family.samples:
                self.assertEqual(labels["mountpoint"], self.mountpoint, family.name + suffix)
            unit = family.name.rsplit("_", 1)[1]
            self.assertEqual(family.unit, unit if unit in ("bytes", "seconds") else None, family.name)
        self.assertEqual(families["cframefs_blocks_decoded"].value("_total"), shown["blocks_decoded"])
        self.assertGreater(shown["cache_bytes"], 0)
        self.assertEqual(families["cframefs_cache_bytes"].value(), shown["cache_bytes"])
        plain = {"cframefs_" + name for name, value in shown.items() if isinstance(value, int) and
                 name not in ("read_only", "errors")}
        self.assertEqual(plain - set(families), set())
        self.assertEqual({name for name, family in families.items() if family.type == "histogram"},
                         {"cframefs_" + name for name in shown["latency"] if name != "bounds_seconds"})

    def test_the_parser_of_the_test_is_strict(self):
        """A parser that takes anything would prove nothing."""
        mount = self.mount("stats=on")
        good = text(mount / ".cframefs/metrics")
        openmetrics.parse(good)
        read = "cframefs_read_seconds"
        for old, new in (("# EOF\n", ""), ("# EOF\n", "# EOF\nx 1\n"), ("# TYPE cframefs_reads counter\n", ""),
                         ("cframefs_reads_total{", "cframefs_reads{"), (" counter\n", " count\n"),
                         ("# UNIT cframefs_write_bytes bytes", "# UNIT cframefs_write_bytes seconds"),
                         ('le="+Inf"', 'le="inf"'), ('le="1.024e-06"', 'le="1.024e-6"'), (f"{read}_sum", f"{read}_total"),
                         ("cframefs_build_info{", "cframefs_build{"), ("\n# HELP cframefs_opens", "\n\n# HELP cframefs_opens")):
            self.assertIn(old, good)
            with self.assertRaises((ValueError, KeyError, IndexError), msg=(old, new)):
                openmetrics.parse(good.replace(old, new, 1))

    def test_the_mount_says_what_and_where_it_is(self):
        awkward = self.work + '/mount "\\\n\u00e9'
        os.mkdir(awkward)
        began = time.time()
        mount = mounting.Mount(self.source, "stats=on", mountpoint=awkward)
        self.addCleanup(mount.close)
        families = self.metrics(mount)
        shown = mount.statistics()
        self.assertEqual((shown["mountpoint"], shown["source"]), (awkward, self.source))
        self.assertEqual(families["cframefs_mount"].value("_info", mountpoint=awkward, source=self.source, read_only="false"), 1)
        version = output(mounting.CFRAMEFS, "-V").decode().split()[1]
        self.assertEqual(shown["version"], version)
        self.assertEqual(families["cframefs_build"].value("_info", version=version, libfuse=shown["libfuse"]), 1)
        self.assertRegex(shown["libfuse"], r"\A3\.\d+")
        for start in (shown["start_time_seconds"], families["cframefs_start_time_seconds"].value()):
            self.assertLess(abs(start - began), 20)

    def test_errors_count_by_kind(self):
        with open(self.source + "/x.b2frame", "r+b") as file:
            frame = bytearray(file.read())
            header = int.from_bytes(frame[11:15], "big")
            frame[header + 40 : header + 4000] = os.urandom(3960)
            file.seek(0)
            file.write(frame)
        wait_for(lambda: time.time() - os.stat(self.source + "/x.b2frame").st_ctime > 0.5, what="the file to settle")
        mount = self.mount("stats=on")
        for _ in range(3):
            with self.assertRaises(OSError):
                pread(mount / "x", 0, 4096)
        shown = mount.statistics()
        self.assertGreaterEqual(shown["errors_by_kind"]["read"]["corrupt"], 3)
        self.assertEqual(shown["errors"], sum(shown["errors_by_kind"]["read"].values()))
        self.assertEqual(shown["damaged_chunks"], 1)
        errors = self.metrics(mount)["cframefs_errors"]
        self.assertEqual(errors.value("_total", operation="read", kind="corrupt"), shown["errors_by_kind"]["read"]["corrupt"])
        self.assertEqual(errors.value("_total", operation="write", kind="no_space"), 0)
        with self.assertRaises(OSError) as refused:
            open(mount / ".cframefs/metrics", "w", encoding="ascii").close()
        self.assertIn(refused.exception.errno, (errno.EROFS, errno.EACCES))
        self.assertEqual(shown["errors_by_kind"]["open"]["denied"] + 1, mount.statistics()["errors_by_kind"]["open"]["denied"])

    def test_latencies_count_each_request_once(self):
        mount = self.mount("stats=on", "readahead=0")
        pread(mount / "x", 0, 4096)
        with open(mount / "new", "wb") as file:
            file.write(bytes(100_000))
        shown = mount.statistics()
        latency = shown["latency"]
        bounds = latency["bounds_seconds"]
        self.assertEqual(bounds, sorted(bounds))
        self.assertLess(bounds[0], 2e-6)
        self.assertGreater(bounds[-1], 16)
        self.assertEqual(sum(latency["read_seconds"]["counts"]), shown["reads"])
        self.assertEqual(sum(latency["commit_seconds"]["counts"]), shown["commits"])
        self.assertGreater(shown["commits"], 0)
        for name in ("read_seconds", "lookup_seconds", "open_seconds", "write_seconds", "sync_seconds", "decode_seconds",
                     "commit_seconds"):
            counts, total = latency[name]["counts"], latency[name]["sum"]
            self.assertEqual(len(counts), len(bounds) + 1)
            self.assertGreater(sum(counts), 0, name)
            least = sum(count * bound for count, bound in zip(counts, [0] + bounds))
            most = sum(count * bound for count, bound in zip(counts, bounds + [math.inf]) if count)
            self.assertLessEqual(least, total, name)
            self.assertGreaterEqual(most * 1.001, total, name)

    def test_the_busiest_files(self):
        for number in range(200):
            with open(f"{self.source}/small-{number}", "wb") as file:
                file.write(bytes(100))
        mount = self.mount("stats=on")
        with open(mount / "x", "rb") as file:
            file.read()
        for number in range(200):
            pread(mount / f"small-{number}", 0, 100)
        with open(mount / "written", "wb") as file:
            file.write(bytes(500_000))
        os.rename(mount / "written", mount / "renamed")
        busiest = json.loads(text(mount / ".cframefs/busiest.json"))
        self.assertLessEqual(len(busiest), 64)
        self.assertEqual([file["path"] for file in busiest[:2]], ["x.b2frame", "renamed.b2frame"])
        self.assertGreaterEqual(busiest[0]["read_bytes"], len(self.content))
        self.assertEqual((busiest[1]["read_bytes"], busiest[1]["write_bytes"]), (0, 500_000))
        self.assertGreater(busiest[0]["requests"], 1)

    def option_names(self):
        usage = output(mounting.CFRAMEFS, "-h").decode()
        block = usage[usage.index("\nMount options") : usage.index("\nOptions of FUSE")]
        return set(re.findall(r"\n  (\w+)", block)) - {"ro", "rw"}

    def test_config_has_every_option_in_effect(self):
        mount = self.mount("stats=on", "cache_size=7M", "workers=3", "clevel=7", "fsname=some", "ro")
        lines = text(mount / ".cframefs/config").splitlines()
        named = {re.match(r"(?:# )?(\w+)[=:]", line).group(1) for line in lines if re.match(r"(?:# )?\w+[=:]", line)}
        # Options of servers have no effect on a directory of the system (remote_mount.py has those of servers).
        servers = {"endpoint", "region", "profile", "unsigned", "token_file", "ca_file", "cache_dir", "cache_disk", "remote_ttl",
                   "remote_timeout", "remote_index"}
        self.assertEqual(self.option_names() - named, servers & self.option_names())
        for line in ("ro", "cache_size=7340032", "workers=3", "readahead=4194304", "clevel=7", "codec=zstd", "typesize=auto",
                     "stats=on", "fsname=some", "names=strip", "# attr_timeout: 1 for directories, 60 for files that are watched"):
            self.assertIn(line, lines)
        self.assertIn(f"# source: {self.source}", lines)

    def test_config_mounts_the_same_again(self):
        with mounting.Mount(self.source, "stats=on", "attr_timeout=2.5", "names=keep", "dirty_limit=9M", "codec=lz4",
                            "commit_interval=0.5", mountpoint=self.mountpoint) as first:
            config = text(first / ".cframefs/config")
        options = ",".join(line for line in config.splitlines() if not line.startswith("#"))
        second = self.mount(options)
        self.assertEqual(text(second / ".cframefs/config"), config)

    def test_drop_caches(self):
        mount = self.mount("stats=on")
        wait_for(lambda: time.time() - os.stat(self.source + "/x.b2frame").st_ctime > 0.5, what="the file to settle")
        with open(mount / "x", "rb") as file:
            file.read()
        full = mount.statistics()
        self.assertGreater(full["cache_bytes"] + full["cache_idle_bytes"], 0)
        with open(mount / "x", "rb") as file:
            file.read()
            self.assertEqual(mount.statistics()["blocks_decoded"], full["blocks_decoded"])  # the kernel has it all
            output("sh", "-c", f"echo 1 >{mount.path}/.cframefs/drop_caches")
            empty = mount.statistics()
            # What the reads of the statistics themselves take.
            self.assertLess(empty["cache_bytes"] + empty["cache_idle_bytes"], 1 << 20)
            self.assertEqual(file.seek(0), 0)
            self.assertEqual(file.read(), self.content)
        self.assertGreater(mount.statistics()["blocks_decoded"], full["blocks_decoded"])
        for wrong in (b"0", b"2\n", b"11", b""):
            with self.subTest(wrong=wrong):
                done = run("sh", "-c", f"printf '{wrong.decode()}' >{mount.path}/.cframefs/drop_caches")
                self.assertEqual(done.returncode, 0 if wrong == b"" else 1)
        self.assertEqual(os.stat(mount / ".cframefs/drop_caches").st_mode & 0o777, 0o200)

    def test_secrets_are_those_of_the_owner(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be all users")
        os.chmod(self.work, 0o755)
        mount = self.mount("stats=on", "allow_other")
        for user, expected in (("other", "EACCES"), ("root", "")):
            for name, flags in (("busiest.json", os.O_RDONLY), ("drop_caches", os.O_WRONLY)):
                tried = users.as_user(user, lambda name=name, flags=flags: users.call(os.open, mount / f".cframefs/{name}", flags))
                self.assertEqual(tried, expected, (user, name))
            self.assertEqual(users.as_user(user, lambda: users.call(os.open, mount / ".cframefs/metrics", os.O_RDONLY)), "")

    def test_a_read_only_mount_shows_its_statistics(self):
        mount = self.mount("stats=on", "ro")
        self.assertTrue(mount.statistics()["read_only"])
        with self.assertRaises(OSError) as refused:
            os.open(mount / ".cframefs/drop_caches", os.O_WRONLY)
        self.assertEqual(refused.exception.errno, errno.EROFS)


if __name__ == "__main__":
    mounting.main()
