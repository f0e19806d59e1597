"""What lies on a web server or in a bucket shows as it does from a disk: files, single objects, and that nothing can be
changed. Which golden files are compared: about 150 of all kinds, or all with REMOTE_GOLDEN=all in the environment."""

import errno
import os
import struct
import threading
import time
import zipfile

import mounting
from mounting import Mount, output, pread, run
from remote_sources import ComparedWithDisk, MIB, Served, facts, is_error, noise, outcome, tree, whole

HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (500,), }"
NPY = b"\x93NUMPY\x01\x00\x76\x00" + HEADER.ljust(117).encode() + b"\n" + struct.pack("<500d", *range(500))


class Golden(ComparedWithDisk, Served):
    """The golden corpora by way of a disk, a web server and a bucket."""

    def setUp(self):
        self.options = {"directory": mounting.GOLDEN}
        super().setUp()

    def test_a_web_server(self):
        # semantics: P12
        self.check(self.web())

    def test_a_web_server_with_other_pages(self):
        for pages in ("apache", "json"):
            self.service.pages = pages
            with self.subTest(pages), self.mount(self.web("cframe/")) as mount:
                here = [("cframe" if where == "." else "cframe/" + where, directories, files)
                        for where, directories, files in tree(mount.path)]
                self.assertEqual(here, [entry for entry in self.tree if entry[0].split("/")[0] == "cframe"])

    def test_a_bucket(self):
        self.check(self.bucket())

    def test_a_prefix_with_and_without_a_slash(self):
        below = [(os.path.relpath(where, "legacy"), *rest) for where, *rest in self.tree if where.split("/")[0] == "legacy"]
        for prefix in ("legacy", "legacy/"):
            with self.subTest(prefix), self.mount(self.bucket(prefix)) as mount:
                self.assertEqual([tuple(entry) for entry in tree(mount.path)], [tuple(entry) for entry in below])


class Kinds(Served):
    """Sources that are made here: stores, arrays, and files of no known kind."""

    def setUp(self):
        super().setUp()
        self.source = self.work + "/source"
        os.makedirs(self.source + "/sub/deeper")
        self.service.objects.directory = self.source
        frame = self.packed(b"".join(b"line %d\n" % number for number in range(50_000)))
        for name in ("sub/deeper/y.b2frame", "with space & 50%+#?ü.b2frame", "x.b2f"):
            with open(f"{self.source}/{name}", "wb") as file:
                file.write(frame)
        with open(self.work + "/a.npy", "wb") as file:
            file.write(NPY)
        output(mounting.CFRAME, "convert", self.work + "/a.npy", self.source + "/a.b2nd")
        with open(self.source + "/plain.bin", "wb") as file:
            file.write(noise(1, 3 * MIB + 1))
        with open(self.source + "/empty", "wb"):
            pass
        for name, method in (("s.b2z", zipfile.ZIP_STORED), ("z.b2z", zipfile.ZIP_DEFLATED)):
            with zipfile.ZipFile(f"{self.source}/{name}", "w", method) as store:
                store.writestr("group/leaf.b2f", frame)
                store.write(self.source + "/a.b2nd", "array.b2nd")

    def everything(self, mount):
        listed = tree(mount.path)
        return listed, {os.path.join(where, name): facts(os.path.join(mount.path, where, name))
                        for where, _, files in listed for name in files}

    def test_the_statistics_tell_what_was_asked_for(self):
        with Mount(self.source, "ro", "stats=on") as mount:
            self.assertNotIn("server_requests", mount.statistics())
        for address in self.addresses():
            before = len(self.service.log)
            with self.subTest(address), self.mount(address, "stats=on") as mount:
                self.service.faults.add("status", "*plain.bin", count=1, code=503)
                self.assertEqual(whole(mount / "plain.bin"), noise(1, 3 * MIB + 1))
                shown = mount.statistics()
                self.assertEqual(shown["server_requests"], len(self.service.log) - before)
                self.assertEqual((shown["server_retries"], shown["server_hedges"]), (1, 0))
                self.assertGreater(shown["server_bytes"], 3 * MIB)
                self.assertLess(shown["server_bytes"], 4 * MIB)
                self.assertIn(b"cframefs_server_bytes_total{", whole(mount / ".cframefs/metrics"))

    def test_they_show_as_from_a_disk(self):
        for options in ((), ("names=keep", "b2nd=flat"), ("detect=content",)):
            with Mount(self.source, "ro", *options) as mount:
                expected = self.everything(mount)
            self.assertEqual([path for path, found in expected[1].items() if is_error(found[0])], [])
            for address in self.addresses():
                with self.subTest(address, options=options), self.mount(address, *options) as mount:
                    listed, found = self.everything(mount)
                    self.assertEqual(listed, expected[0])
                    for path in found:
                        self.assertTrue(found[path] == expected[1][path], path)

    def test_times_are_those_of_the_objects(self):
        os.utime(self.source + "/x.b2f", (1_500_000_000, 1_400_000_000))
        for address in self.addresses():
            with self.subTest(address), self.mount(address) as mount:
                self.assertEqual(int(os.stat(mount / "x").st_mtime), 1_400_000_000)


class Objects(Served):
    """Sources that are one object."""

    def setUp(self):
        super().setUp()
        self.content = noise(2, 24 * MIB)
        self.service.put("d/x.b2frame", self.packed(self.content, "--codec", "lz4", "--chunksize", "512K"))
        self.target = self.work + "/target"
        with open(self.target, "w", encoding="ascii") as file:
            file.write("what lies beneath")

    def test_on_a_directory(self):
        for address in self.addresses("d/x.b2frame"):
            with self.subTest(address), self.mount(address, mountpoint=self.mountpoint) as mount:
                self.assertEqual(os.listdir(mount.path), ["x"])
                self.assertEqual(os.stat(mount / "x").st_size, len(self.content))
                self.assertTrue(whole(mount / "x") == self.content)
                self.assertFalse(os.path.exists(mount / "x.b2frame"))
            with self.subTest(address), self.mount(address, "names=keep", mountpoint=self.mountpoint) as mount:
                self.assertEqual(os.listdir(mount.path), ["x.b2frame"])

    def test_on_a_regular_file(self):
        for address in self.addresses("d/x.b2frame"):
            with self.subTest(address), self.mount(address, mountpoint=self.target):
                self.assertEqual(os.stat(self.target).st_size, len(self.content))
                self.assertTrue(whole(self.target) == self.content)
                self.assertTrue(os.getxattr(self.target, "user.blosc2.info"))
        self.assertEqual(whole(self.target), b"what lies beneath")

    def test_a_sparse_frame(self):
        content = self.content[: 3 * MIB + 1000]
        self.put_sparse_frame("d/s.b2frame", content, MIB)
        for address in (*self.addresses("d/s.b2frame/"), self.bucket("d/s.b2frame")):
            with self.subTest(address), self.mount(address, mountpoint=self.mountpoint) as mount:
                self.assertEqual(os.listdir(mount.path), ["s"])
                self.assertEqual(os.stat(mount / "s").st_size, len(content))
                self.assertTrue(whole(mount / "s") == content)
            with self.subTest(address), self.mount(address, mountpoint=self.target):
                self.assertTrue(whole(self.target) == content)

    def test_a_directory_that_is_only_named_like_a_frame(self):
        self.service.put("d/n.b2frame/y.b2frame", self.packed(b"text\n" * 1000))
        for address in (*self.addresses("d/n.b2frame/"), self.bucket("d/n.b2frame")):
            with self.subTest(address), self.mount(address, mountpoint=self.mountpoint) as mount:
                self.assertEqual(os.listdir(mount.path), ["y"])

    def test_what_is_not_there_is_not_mounted(self):
        for address in self.addresses("d/absent.b2frame"):
            with self.subTest(address):
                listed, said = self.refused(address)
                self.assertIsNone(listed)
                self.assertIn("No such file or directory", said)
                self.assertIn("d/absent.b2frame", said)

    def test_what_is_no_address(self):
        for address in ("http://", "s3://", "s3:///x", "ftp://host/x", "http://[::1", "https://host:99999/"):
            with self.subTest(address):
                listed, said = self.refused(address)
                self.assertIsNone(listed)
                self.assertTrue(said)

    def first_bytes(self, mount, offset):
        """(bytes, round trips) of opening x and reading 4 KiB there."""
        return self.round_trips_of(mount, lambda: pread(mount / "x", offset, 4096))

    def test_open_and_first_read_take_two_round_trips(self):
        self.service.latency = 0.1
        for offset in (0, 11 * MIB + 12288):
            for address in self.addresses("d/"):
                with self.subTest(address, offset=offset), self.mount(address, "stats=on") as mount:
                    self.assertEqual(os.listdir(mount.path), ["x"])
                    data, trips = self.first_bytes(mount, offset)
                    self.assertEqual(data, self.content[offset : offset + 4096])
                    self.assertLessEqual(trips, 2)
            for address in self.addresses("d/x.b2frame"):
                with self.subTest(address, offset=offset), self.mount(address, "stats=on") as mount:
                    data, trips = self.first_bytes(mount, offset)
                    self.assertEqual(data, self.content[offset : offset + 4096])
                    self.assertLessEqual(trips, 2)

    def test_a_small_frame_takes_one_at_most(self):
        self.service.put("small/x.b2frame", self.packed(b"text\n" * 1000))
        self.service.latency = 0.1
        with self.mount(self.web("small/"), "stats=on") as mount:
            self.assertEqual(os.listdir(mount.path), ["x"])
            data, trips = self.first_bytes(mount, 0)
            self.assertEqual(data, (b"text\n" * 1000)[:4096])
            self.assertLessEqual(trips, 1)

    def test_a_small_read_fetches_little(self):
        with self.mount(self.web("d/"), "readahead=0") as mount:
            with open(mount / "x", "rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
                self.assertEqual(os.pread(file.fileno(), 4096, 7 * MIB), self.content[7 * MIB : 7 * MIB + 4096])
            self.assertLess(sum(request.sent for request in self.service.log), 4 * MIB)

    def test_readers_at_random_and_in_order(self):
        failures = []

        def read(seed, path):
            for number in range(40):
                at = seed * 7919 * number * 4096 % len(self.content)
                if pread(path, at, 70_000) != self.content[at : at + 70_000]:
                    failures.append(at)

        with self.mount(self.bucket("d/")) as mount:
            threads = [threading.Thread(target=read, args=(seed, mount / "x")) for seed in range(1, 9)]
            for thread in threads:
                thread.start()
            self.assertEqual(mounting.sha256(output("cat", mount / "x")), mounting.sha256(self.content))
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
        # What is read in order is not fetched twice for it.
        self.assertLess(sum(request.sent for request in self.service.log), 4 * len(self.content))


class ReadOnly(Served):
    """Nothing can be changed on a server, whatever the options are."""

    def setUp(self):
        super().setUp()
        self.service.put("d/x.b2frame", self.packed(b"text\n" * 1000))
        self.service.put("d/plain.txt", b"plain")
        self.service.put("d/sub/y", b"y")

    def test_every_kind_of_write_is_refused(self):
        # semantics: P12
        for address in self.addresses("d/"):
            with self.mount(address) as mount:
                calls = {
                    "open for writing": lambda: os.open(mount / "x", os.O_WRONLY),
                    "open for reading and writing": lambda: os.open(mount / "plain.txt", os.O_RDWR),
                    "open and truncate": lambda: os.open(mount / "x", os.O_RDONLY | os.O_TRUNC),
                    "create": lambda: os.open(mount / "new", os.O_CREAT | os.O_WRONLY, 0o644),
                    "mkdir": lambda: os.mkdir(mount / "new"),
                    "symlink": lambda: os.symlink("x", mount / "new"),
                    "link": lambda: os.link(mount / "x", mount / "new"),
                    "unlink": lambda: os.unlink(mount / "x"),
                    "rmdir": lambda: os.rmdir(mount / "sub"),
                    "rename": lambda: os.rename(mount / "x", mount / "y"),
                    "chmod": lambda: os.chmod(mount / "x", 0o600),
                    "utime": lambda: os.utime(mount / "x", (1, 1)),
                    "truncate": lambda: os.truncate(mount / "plain.txt", 1),
                    "setxattr": lambda: os.setxattr(mount / "x", "user.a", b"b"),
                    "removexattr": lambda: os.removexattr(mount / "x", "user.blosc2.info"),
                }
                for name, call in calls.items():
                    with self.subTest(address, call=name):
                        self.assertEqual(outcome(call), "error EROFS")
                self.assertTrue(os.statvfs(mount.path).f_flag & os.ST_RDONLY)
                self.assertEqual(sorted(os.listdir(mount.path)), ["plain.txt", "sub", "x"])
            self.assertEqual({request.method for request in self.service.log} - {"GET", "HEAD"}, set())

    def test_rw_is_refused_or_changes_nothing_and_the_reason_is_told(self):
        for address in self.addresses("d/"):
            with self.subTest(address):
                log = self.work + "/log"
                done = mounting.background(address, self.mountpoint, "rw", "log=" + log, *self.all_options(address, ()),
                                           env={**os.environ, **self.environment()})
                said = done.stderr.decode()
                if done.returncode == 0:
                    self.assertEqual(outcome(os.mkdir, self.mountpoint + "/new"), "error EROFS")
                    mounting.unmount(self.mountpoint)
                    said += whole(log).decode()
                self.assertIn("read-only", said)

    def test_it_cannot_be_mounted_writable_again(self):
        if os.geteuid() != 0:
            self.skipTest("only root can remount")
        with self.mount(self.web("d/")) as mount:
            run("mount", "-o", "remount,rw", mount.path)
            self.assertEqual(outcome(os.mkdir, mount / "new"), "error EROFS")
            self.assertEqual(outcome(os.open, mount / "x", os.O_WRONLY), "error EROFS")

    def test_modes_have_no_right_to_write(self):
        with self.mount(self.web("d/")) as mount:
            for name in ("x", "plain.txt", "sub", "sub/y"):
                self.assertEqual(os.stat(mount / name).st_mode & 0o222, 0, name)
            self.assertEqual(outcome(lambda: os.access(mount / "x", os.W_OK)), False)


class NoServer(Served):
    def test_a_server_that_is_not_there(self):
        address = self.web("x.b2frame")
        self.service.stop()
        before = time.monotonic()
        listed, said = self.refused(address, "remote_timeout=2")
        self.assertIsNone(listed)
        self.assertIn("127.0.0.1", said)
        self.assertTrue(any(os.strerror(number) in said for number in (errno.EHOSTUNREACH, errno.ECONNREFUSED)), said)
        self.assertLess(time.monotonic() - before, 20)


if __name__ == "__main__":
    mounting.main(hang_seconds=600)
