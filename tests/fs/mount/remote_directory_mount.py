"""Directories on servers: pages of listings, many names, strange names; and the disk cache that mounts share."""

import hashlib
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse

import mounting
from mounting import large_directory, output, wait_for
# First of the two: it says where the other one is.
from remote_sources import MIB, Served, is_error, noise, outcome, whole
from object_service import most_at_once


class Listing(Served):
    def listings(self):
        return [request for request in self.service.log if request.is_listing]

    def test_two_pages_of_a_bucket(self):
        # semantics: P17
        names = [f"{number:04}" for number in range(1500)]
        for name in names:
            self.service.put("d/" + name, b"x" * (int(name) % 7))
            self.service.put(f"d/deep/{name}", b"below")
        with self.mount(self.bucket("d/")) as mount:
            self.assertEqual(sorted(os.listdir(mount.path)), [*names, "deep"])
            self.assertEqual({name: os.stat(mount / name).st_size for name in names[::10]},
                             {name: int(name) % 7 for name in names[::10]})
            log = self.listings()
            self.assertEqual(len(log), 2)
            self.assertTrue(all(request.query.get("delimiter") == "/" for request in log))
            self.assertIn("continuation-token", log[1].query)
            self.assertEqual(sorted(os.listdir(mount / "deep")), names)

    def test_ten_thousand_objects(self):
        names = [f"{number:05}.bin" for number in range(large_directory())]
        for name in names:
            self.service.put("d/" + name, b"x" * (int(name[:5]) % 100))
        for address, pages, kind in ((self.bucket("d/"), len(names) // 1000, None), (self.web("d/"), 1, "json"), (self.web("d/"), 1, "nginx")):
            self.service.pages = kind or "nginx"
            self.service.clear_log()
            with self.subTest(address, kind=kind), self.mount(address) as mount:
                self.assertEqual(sorted(os.listdir(mount.path)), names)
                with os.scandir(mount.path) as entries:
                    self.assertTrue(all(entry.is_file(follow_symlinks=False) for entry in entries))
                sizes = {name: os.stat(mount / name).st_size for name in names}
                self.assertEqual(sizes, {name: int(name[:5]) % 100 for name in names})
                self.assertLessEqual(len(self.listings()), pages)
                # The listing of a bucket tells states; a page does not, so each object is asked once.
                self.assertLessEqual(len(self.objects()), 0 if kind is None else 1.1 * len(names))

    def test_ten_thousand_frames(self):
        """The sizes are those of what the frames hold, so each must be looked at: many at once."""
        frames = [self.packed(b"x" * size) for size in (1000, 2000, 3000)]
        count = large_directory()
        for number in range(count):
            self.service.put(f"d/{number:05}.b2frame", frames[number % 3])
        self.service.latency = 0.02
        for address in self.addresses("d/"):
            self.service.clear_log()
            with self.subTest(address), self.mount(address) as mount:
                begin = time.monotonic()
                listed = output("ls", "-l", mount.path).decode().splitlines()[1:]
                took = time.monotonic() - begin
                self.assertEqual([(line.split()[8], int(line.split()[4])) for line in listed],
                                 [(f"{number:05}", 1000 * (number % 3 + 1)) for number in range(count)])
                log = self.objects()
                self.assertGreater(most_at_once(log), 16)
                self.assertLessEqual(most_at_once(log), 128)
                self.assertLess(len(log), 2.1 * count)
                self.assertLess(took, 0.015 * count, "a frame takes 20 ms if they are asked for one after the other")
                # Once known, they are not asked for again.
                self.service.clear_log()
                output("ls", "-l", mount.path)
                self.assertLess(len(self.service.log), 100)

    def test_names_that_buckets_may_have(self):
        shown = ["with space", "per%cent", "per%41cent", "plus+", "amp&lt;", "<tag>", 'quo"te', "apos'", "ha#sh", "que?ry", "semi;colon",
                 "co:lon", "back\\slash", "ümlaut", "日本", "e\u0301", "-dash", "~", "*", "a" * 255, "line\nfeed", "x.y.z"]
        for name in shown:
            self.service.put("d/" + name, name.encode())
            self.service.put(f"d/sub {name[:200]}/{name}", b"below")
        self.service.put("d/.hidden", b".hidden")
        for address, kind in ((self.bucket("d/"), None), *((self.web("d/"), kind) for kind in ("nginx", "apache", "json"))):
            self.service.pages = kind
            # Web servers list no names that begin with a dot.
            names = shown if kind else [*shown, ".hidden"]
            with self.subTest(address, kind=kind), self.mount(address) as mount:
                self.assertEqual(sorted(os.listdir(mount.path)), sorted(names + ["sub " + name[:200] for name in shown]))
                for name in names:
                    self.assertEqual(outcome(whole, mount / name), name.encode())
                for name in shown:
                    self.assertEqual(outcome(whole, mount / f"sub {name[:200]}/{name}"), b"below")

    def test_names_that_no_directory_can_have(self):
        # semantics: P17
        """They are left out, whatever a server lists, and nothing leaves the mount."""
        names = ["d/../up", "d/..", "d/.", "d/./x", "d//double", "d/" + "b" * 300, "d/a/../../up", "d/good"]
        for name in names:
            self.service.put(name, b"x")
        self.service.put("d/both", b"an object")
        self.service.put("d/both/below", b"and a directory")
        self.service.put("d/marker/", b"")
        for address in (self.bucket("d/"), self.web("d/")):
            with self.subTest(address), self.mount(address) as mount:
                found = set(os.listdir(mount.path))
                self.assertLessEqual({"both", "good"}, found)
                self.assertLessEqual(found, {"both", "good", "a", "marker"})
                self.assertEqual(whole(mount / "both/below"), b"and a directory")
                if address.startswith("s3:"):
                    self.assertEqual(os.listdir(mount / "marker"), [])
                self.assertEqual(whole(mount / "good"), b"x")

    def test_pages_with_hostile_links(self):
        links = ["../x", "/etc/passwd", "http://other.example/x", "//other.example/x", "javascript:x", "a/b", "%2e%2e/", "..%2fx",
                 "x%00y", "?C=N", "#top", "", ".", "%2e", "good", "good", "sub/"]
        page = "<html><pre>" + "".join(f'<a href="{link}">{link}</a>  01-Jan-2024 00:00  5\n' for link in links) + "</pre></html>"
        self.service.put("d/good", b"12345")
        self.service.put("d/sub/y", b"y")
        self.service.faults.add("body", "d/", content=page.encode())
        with self.mount(self.web("d/")) as mount:
            self.assertEqual(sorted(os.listdir(mount.path)), ["good", "sub"])
            self.assertEqual(whole(mount / "good"), b"12345")

    def test_changes_show_after_the_time_to_live(self):
        self.service.put("d/a", b"a")
        for address in self.addresses("d/"):
            for ttl in (0, 2):
                with self.subTest(address, ttl=ttl), self.mount(address, f"remote_ttl={ttl}") as mount:
                    self.assertEqual(os.listdir(mount.path), ["a"])
                    self.service.put("d/b", b"bb")
                    wait_for(lambda: sorted(os.listdir(mount.path)) == ["a", "b"], seconds=10, what="the new name")
                    self.assertEqual(whole(mount / "b"), b"bb")
                    self.service.delete("d/b")
                    wait_for(lambda: os.listdir(mount.path) == ["a"], seconds=10, what="the name to be gone")
                    wait_for(lambda: outcome(os.stat, mount / "b") == "error ENOENT", seconds=10, what="the object to be gone")

    def test_a_listing_is_asked_for_once(self):
        for number in range(100):
            self.service.put(f"d/{number}", b"x")
        for address in self.addresses("d/"):
            with self.subTest(address), self.mount(address) as mount:
                os.listdir(mount.path)
                self.service.clear_log()
                for number in range(100):
                    self.assertEqual(os.stat(mount / str(number)).st_size, 1)
                    self.assertEqual(outcome(os.stat, mount / f"absent-{number}"), "error ENOENT")
                os.listdir(mount.path)
                self.assertLess(len(self.listings()), 3)
                # Pages of web servers tell no states of objects.
                self.assertLessEqual(len(self.objects()), 0 if address.startswith("s3://") else 110)

    def test_a_server_without_listings(self):
        self.service.pages = None
        self.service.put("d/x.b2frame", self.packed(b"text\n" * 1000))
        listed, said = self.refused(self.web("d/"))
        self.assertTrue(listed is None or is_error(listed))
        self.assertIn("403", said)
        with self.mount(self.web("d/x.b2frame")) as mount:
            self.assertEqual(whole(mount / "x"), b"text\n" * 1000)

    def test_an_empty_prefix(self):
        listed, said = self.refused(self.bucket("nothing/here/"))
        self.assertTrue(listed is None or is_error(listed), said)


class DiskCache(Served):
    """`cache_dir`: what was fetched is kept, for later mounts and for other ones."""

    def setUp(self):
        super().setUp()
        self.cache = self.work + "/cache"
        self.contents = {f"{number}": noise(number, 5 * MIB + number) for number in range(3)}
        for name, content in self.contents.items():
            self.service.put(f"d/{name}.b2frame", self.packed(content, "--codec", "lz4", "--chunksize", "512K"))
        self.contents["plain"] = noise(99, 3 * MIB + 7)
        self.service.put("d/plain", self.contents["plain"])

    def cached(self, address, *options, **how):
        os.makedirs(self.cache, mode=0o700, exist_ok=True)
        return self.mount(address, "cache_dir=" + self.cache, *options, **how)

    def check_all(self, mount):
        self.assertEqual(sorted(os.listdir(mount.path)), sorted(self.contents))
        for name, content in self.contents.items():
            self.assertTrue(whole(mount / name) == content, name)

    def files(self):
        return [os.path.join(where, name) for where, _, names in os.walk(self.cache) for name in names]

    def size(self):
        return sum(os.lstat(path).st_blocks * 512 for path in self.files())

    def fetched(self):
        """Bytes of objects that were sent."""
        return sum(request.sent for request in self.objects() if request.status in (200, 206))

    def test_a_second_mount_fetches_nothing(self):
        # semantics: P16
        for address in self.addresses("d/"):
            shutil.rmtree(self.cache, ignore_errors=True)
            for options in ((), (), ("remote_ttl=0",), ("cache_size=8M", "readahead=0")):
                with self.subTest(address, options=options):
                    is_first = not os.path.isdir(self.cache)
                    self.service.clear_log()
                    with self.cached(address, *options) as mount:
                        self.check_all(mount)
                    if is_first:
                        self.assertGreater(self.fetched(), sum(map(len, self.contents.values())) - 1)
                        self.assertLess(self.fetched(), 2 * sum(map(len, self.contents.values())))
                    else:
                        self.assertEqual(self.fetched(), 0, [(request.target, request.range) for request in self.objects()])

    def test_without_it_nothing_is_written(self):
        os.mkdir(self.cache)
        with self.mount(self.web("d/")) as mount:
            self.check_all(mount)
        self.assertEqual((self.files(), os.listdir(self.home)), ([], []))

    def test_its_directory_is_made(self):
        """Those above it, too: a new user has no ~/.cache."""
        with self.mount(self.web("d/"), f"cache_dir={self.work}/a/b/cache/") as mount:
            self.check_all(mount)
        for path in ("a", "a/b", "a/b/cache"):
            self.assertEqual(os.stat(f"{self.work}/{path}").st_mode & 0o777, 0o700)

    def test_two_mounts_share_it_at_the_same_time(self):
        with self.cached(self.web("d/")) as one, self.cached(self.web("d/")) as other:
            threads = [threading.Thread(target=self.check_all, args=(mount,)) for mount in (one, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.check_all(one)
            self.check_all(other)
        self.service.clear_log()
        with self.cached(self.web("d/")) as mount:
            self.check_all(mount)
        self.assertEqual(self.fetched(), 0)

    def test_a_changed_object_is_fetched(self):
        with self.cached(self.web("d/")) as mount:
            self.check_all(mount)
        self.contents["1"] = noise(1000, 5 * MIB + 1)
        self.service.put("d/1.b2frame", self.packed(self.contents["1"], "--codec", "lz4", "--chunksize", "512K"))
        self.service.clear_log()
        with self.cached(self.web("d/")) as mount:
            self.check_all(mount)
        self.assertEqual({request.name for request in self.objects() if request.sent > 100_000}, {"d/1.b2frame"})

    def test_damage_is_noticed(self):
        # semantics: P16
        with self.cached(self.web("d/")) as mount:
            self.check_all(mount)
        chance = random.Random(8)

        def flip(file, size):
            at = chance.randrange(size)
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << chance.randrange(8)]))

        def garbage(file, size):
            file.write(os.urandom(size))

        for damage in (flip, lambda file, size: file.truncate(size // 2), lambda file, _: file.truncate(0), garbage,
                       lambda file, size: file.truncate(size + 4096), lambda file, _: file.write(bytes(512))):
            for path in self.files():
                size = os.path.getsize(path)
                if size:
                    with open(path, "r+b") as file:
                        damage(file, size)
            with self.cached(self.web("d/")) as mount:
                self.check_all(mount)
                self.assertEqual([line for line in mount.lines() if "corrupt" in line], [])

    def test_files_that_change_places(self):
        """Whole and in order, but those of another part or another object."""
        with self.cached(self.web("d/")) as mount:
            self.check_all(mount)
        paths = [path for path in self.files() if os.path.getsize(path) > 100_000]
        self.assertGreater(len(paths), 10)
        for one, other in zip(paths, paths[1:] + paths[:1]):
            shutil.copy(other, one + ".aside")
        for path in paths:
            os.rename(path + ".aside", path)
        with self.cached(self.web("d/")) as mount:
            self.check_all(mount)

    def test_entries_that_are_no_files(self):
        with self.cached(self.web("d/")) as mount:
            self.check_all(mount)
        for number, path in enumerate(self.files()):
            os.unlink(path)
            if number % 3 == 0:
                os.mkdir(path)
            elif number % 3 == 1:
                os.symlink("/dev/zero", path)
            else:
                os.mkfifo(path)
        with self.cached(self.web("d/")) as mount:
            self.check_all(mount)

    def test_it_is_removed_while_it_is_used(self):
        with self.cached(self.web("d/"), "cache_size=8M") as mount:
            self.check_all(mount)
            shutil.rmtree(self.cache)
            self.check_all(mount)

    def test_killed_while_it_is_written(self):
        chance = random.Random(9)
        paths = [f"{name}.b2frame" if name != "plain" else name for name in self.contents]
        for number in range(int(os.environ.get("KILL_ROUNDS", "50")) // 5):
            with self.subTest(round=number):
                mount = self.cached(self.web("d/"), "names=keep", "cache_size=8M")
                readers = [subprocess.Popen(["cat", mount / path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                           for path in paths]
                time.sleep(chance.uniform(0, 0.15))
                mount.daemon.kill()
                mount.daemon.wait()
                for reader in readers:
                    reader.wait(30)
                subprocess.run(["umount", "-l", mount.path], check=False, stderr=subprocess.DEVNULL)
                subprocess.run(["fusermount3", "-u", "-z", "-q", mount.path], check=False, stderr=subprocess.DEVNULL)
                with self.cached(self.web("d/")) as again:
                    self.check_all(again)
                if number % 2 == 0:
                    shutil.rmtree(self.cache)
        self.service.clear_log()
        with self.cached(self.web("d/")) as mount:
            self.check_all(mount)
            self.assertEqual(self.fetched(), 0)

    def test_it_is_bounded(self):
        bound = 64 * MIB
        digests = {}
        for number in range(12):
            content = noise(100 + number, 16 * MIB)
            digests[f"large{number}"] = hashlib.sha256(content).hexdigest()
            self.service.put(f"d/large{number}", content)
        with self.cached(self.web("d/"), "cache_disk=64M") as mount:
            for _ in range(2):
                for name, digest in digests.items():
                    self.assertEqual(output("sha256sum", mount / name).split()[0].decode(), digest)
                self.assertLess(self.size(), bound + 16 * MIB)
        self.assertGreater(self.size(), bound // 4, "nothing is kept")

    def test_a_full_disk(self):
        if os.geteuid() != 0:
            self.skipTest("only root can mount a small disk")
        disk = tempfile.mkdtemp(dir=self.work)
        output("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk)
        self.addCleanup(lambda: output("umount", "-l", disk))
        self.cache = disk + "/cache"
        for _ in range(2):
            with self.cached(self.web("d/")) as mount:
                self.check_all(mount)

    def test_other_users_cannot_read_it(self):
        shutil.rmtree(self.cache, ignore_errors=True)
        with self.cached(self.web("d/")) as mount:
            self.check_all(mount)
        self.assertGreater(len(self.files()), 10)
        self.assertEqual([path for path in self.files() if os.stat(path).st_mode & 0o077], [])

    def test_an_address_with_a_secret_leaves_none_in_it(self):
        address = self.web("d/0.b2frame") + "?sig=" + urllib.parse.quote("secret-query")
        with self.cached(address) as mount:
            self.assertTrue(whole(mount / "0") == self.contents["0"])
        for path in self.files():
            self.assertNotIn(b"secret-query", whole(path))
            self.assertNotIn("secret-query", path)


if __name__ == "__main__":
    mounting.main(hang_seconds=1500)
