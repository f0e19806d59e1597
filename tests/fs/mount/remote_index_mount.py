"""The index of a directory on a server: `cframe index` writes it, and mounts list and look up by it."""

import contextlib
import json
import os
import subprocess
import time

import mounting
from mounting import output, run, wait_for
# First of the two: it says where the other one is.
from remote_sources import Served, attributes, is_error, noise, outcome, tree, whole
from object_service import most_at_once

INDEX = ".cframefs-index"
# As a bucket, and as a web server with pages and without.
PLACES = (("bucket", "nginx"), ("web", "nginx"), ("web", None))


class Indexed(Served):
    def place(self, **more):
        """The environment of a program that finds the service."""
        return {**os.environ, **self.environment(AWS_ENDPOINT_URL=self.service.url(), AWS_REGION="us-east-1", **more)}

    def cframe(self, *arguments, **more):
        return run(mounting.CFRAME, *arguments, env=self.place(**more), cwd=self.work)

    def index(self, directory="d/", *options):
        """Makes the index of the directory, as of a bucket, where it is uploaded."""
        ran = self.cframe("index", *options, self.bucket(directory))
        self.assertEqual((ran.returncode, ran.stderr), (0, b""))
        return ran.stdout

    @contextlib.contextmanager
    def mounted(self, place, *options):
        """A mount of the directory d/ at one of PLACES, with an empty log."""
        kind, self.service.pages = place
        self.service.clear_log()
        address = self.bucket("d/") if kind == "bucket" else self.web("d/")
        with self.subTest(address, pages=self.service.pages), self.mount(address, *options) as mount:
            yield mount
        self.service.pages = "nginx"

    def put_tree(self):
        self.contents = {"x": b"x\n" * 5000, "deep/y": noise(1, 300_000), "deep/er/z": b"z" * 77}
        for name, content in self.contents.items():
            self.service.put(f"d/{name}.b2frame", self.packed(content))
        self.contents["plain"] = noise(2, 200_000)
        self.service.put("d/plain", self.contents["plain"])

    def check_contents(self, mount):
        for name, content in self.contents.items():
            self.assertEqual(os.stat(mount / name).st_size, len(content), name)
            self.assertTrue(whole(mount / name) == content, name)


class Listing(Indexed):
    def test_ten_thousand_frames(self):
        # semantics: P18
        sizes = (1000, 2000, 3000)
        frames = [self.packed(b"x" * size) for size in sizes]
        count = mounting.large_directory()
        for number in range(count):
            self.service.put(f"d/{number:05}.b2frame", frames[number % 3])
        self.service.clear_log()
        self.service.latency = 0.02
        told = json.loads(self.index("d/", "--json"))
        self.assertEqual((told["objects"], told["frames"], told["left_out"]), (count, count, 0))
        log = self.objects()
        self.assertGreater(most_at_once(log), 16)
        self.assertLessEqual(most_at_once(log), 64)
        self.assertLess(len(log), 1.1 * count)
        self.assertLess(told["bytes"], 100 * count)
        for place in PLACES:
            with self.mounted(place) as mount:
                listed = output("ls", "-l", mount.path).decode().splitlines()[1:]
                self.assertEqual([(line.split()[8], int(line.split()[4])) for line in listed],
                                 [(f"{number:05}", sizes[number % 3]) for number in range(count)])
                self.assertLessEqual(len(self.service.log), 3, [request.target for request in self.service.log])

    def test_a_tree_of_all_kinds_needs_no_further_request(self):
        count = 0
        for where, _, names in os.walk(mounting.GOLDEN):
            for name in names:
                path = os.path.relpath(os.path.join(where, name), mounting.GOLDEN)
                if count < 400 and "malformed" not in path and not name.startswith("."):
                    self.service.put("d/" + path, whole(os.path.join(where, name)))
                    count += 1
        self.service.pages = "nginx"
        with self.mount(self.bucket("d/"), "remote_index=off") as mount:
            shown = tree(mount.path)
            sizes = {path: outcome(os.stat, mount / path) for path in self.paths(shown)}
        self.index()
        for place in PLACES:
            with self.mounted(place) as mount:
                self.assertEqual(tree(mount.path), shown)
                for path, status in sizes.items():
                    found = outcome(os.stat, mount / path)
                    if is_error(status) or is_error(found):
                        self.assertEqual(found, status, path)
                    else:
                        self.assertEqual((found.st_size, found.st_mode), (status.st_size, status.st_mode), path)
                self.assertLess(len(self.service.log), 20, [request.target for request in self.service.log])

    @staticmethod
    def paths(shown):
        return [os.path.join(where, name) for where, _, names in shown for name in names]

    def test_contents_are_those_of_the_objects(self):
        self.put_tree()
        array = mounting.GOLDEN + "/b2nd"
        names = [name for name in sorted(os.listdir(array)) if name.endswith(".b2nd")][:5] if os.path.isdir(array) else []
        for name in names:
            self.service.put("d/arrays/" + name, whole(os.path.join(array, name)))
        with self.mount(self.bucket("d/"), "remote_index=off") as mount:
            arrays = {name: (whole(mount / "arrays" / name), attributes(mount / "arrays" / name))
                      for name in (os.listdir(mount / "arrays") if names else [])}
        self.index()
        for place in PLACES:
            with self.mounted(place) as mount:
                self.assertEqual(sorted(os.listdir(mount.path)), sorted(["deep", "plain", "x"] + ["arrays"] * bool(names)))
                self.check_contents(mount)
                for name, (content, attached) in arrays.items():
                    self.assertTrue(whole(mount / "arrays" / name) == content, name)
                    self.assertEqual(attributes(mount / "arrays" / name), attached)

    def test_the_index_is_in_no_listing(self):
        self.put_tree()
        self.index()
        self.index("d/deep/")
        self.assertIsNotNone(self.service.objects.find("d/" + INDEX))
        for options in ((), ("remote_index=off",), ("remote_ttl=0",)):
            for address in self.addresses("d/"):
                self.service.pages = "nginx"
                with self.subTest(address, options=options), self.mount(address, *options) as mount:
                    self.assertEqual(sorted(os.listdir(mount.path)), ["deep", "plain", "x"])
                    self.assertEqual(sorted(os.listdir(mount / "deep")), ["er", "y"])
                    for path in (INDEX, "deep/" + INDEX):
                        self.assertEqual(outcome(os.stat, mount / path), "error ENOENT")
        # Made again, it does not tell itself.
        self.assertEqual(json.loads(self.index("d/", "--json"))["objects"], 4)

    def test_it_is_asked_for_once(self):
        """A directory without index costs one request more; that of a user who may not list a bucket is 403."""
        self.put_tree()
        for code in (404, 403):
            for address in self.addresses("d/"):
                self.service.faults.clear()
                self.service.faults.add("status", "d/" + INDEX, code=code)
                self.service.clear_log()
                with self.subTest(address, code=code), self.mount(address) as mount:
                    self.check_contents(mount)
                    self.assertEqual([request.status for request in self.objects(INDEX)], [code])
                    self.assertEqual([line for line in mount.lines() if "index" in line], [])

    def test_a_later_mount_asks_only_whether_it_holds(self):
        self.put_tree()
        self.index()
        for place in PLACES:
            cache = f"cache_dir={self.work}/cache-{place[0]}-{place[1]}"
            sent = []
            for _ in range(2):
                with self.mounted(place, cache) as mount:
                    self.assertEqual(sorted(os.listdir(mount.path)), ["deep", "plain", "x"])
                    asked = [request for request in self.service.log if request.path.endswith(INDEX)]
                    self.assertEqual(len(asked), 1)
                    sent.append((asked[0].status, asked[0].sent))
                    self.check_contents(mount)
            self.assertEqual((sent[0][0], sent[1]), (200, (304, 0)))

    def test_it_is_not_asked_for_if_it_is_not_wanted(self):
        self.put_tree()
        self.index()
        self.service.put("d/new", b"new")
        for option in ("remote_index=off", "remote_ttl=0"):
            for address in self.addresses("d/"):
                self.service.clear_log()
                with self.subTest(address, option=option), self.mount(address, option) as mount:
                    self.assertEqual(sorted(os.listdir(mount.path)), ["deep", "new", "plain", "x"])
                    self.check_contents(mount)
                    self.assertEqual(self.objects(INDEX), [])


class Changes(Indexed):
    """What a mount shows of changes since the index was written."""

    def test_a_replaced_object(self):
        # semantics: P18
        self.put_tree()
        self.index()
        self.contents["x"], self.contents["plain"] = b"other\n" * 999, noise(3, 100_001)
        self.service.put("d/x.b2frame", self.packed(self.contents["x"]))
        self.service.put("d/plain", self.contents["plain"])
        for place in PLACES:
            with self.mounted(place) as mount:
                self.assertEqual(os.stat(mount / "x").st_size, 10_000, "that of the index")
                # The first open goes to the new object.
                self.assertTrue(whole(mount / "x") == self.contents["x"])
                self.assertTrue(whole(mount / "plain") == self.contents["plain"])
                self.check_contents(mount)

    def test_an_object_that_is_replaced_while_it_is_open(self):
        self.service.put("d/x.b2frame", self.packed(noise(4, 3_000_000), "--codec", "lz4", "--chunksize", "256K"))
        self.index()
        content = noise(4, 3_000_000)
        for place in PLACES:
            with self.mounted(place, "readahead=0") as mount:
                self.service.put("d/x.b2frame", self.packed(content, "--codec", "lz4", "--chunksize", "256K"))
                with open(mount / "x", "rb", buffering=0) as file:
                    self.assertEqual(file.read(4096), content[:4096])
                    content = noise(int(time.monotonic() * 1000), 3_000_000)
                    self.service.put("d/x.b2frame", self.packed(content, "--codec", "lz4", "--chunksize", "256K"))
                    self.assertEqual(outcome(os.pread, file.fileno(), 4096, 2_000_000), "error ESTALE")
                self.assertTrue(whole(mount / "x") == content)

    def test_a_removed_object(self):
        # semantics: P18
        self.put_tree()
        self.index()
        for name in ("d/x.b2frame", "d/plain"):
            self.service.delete(name)
        for place in PLACES:
            with self.mounted(place) as mount:
                self.assertEqual(sorted(os.listdir(mount.path)), ["deep", "plain", "x"])
                for name in ("x", "plain"):
                    self.assertEqual(outcome(whole, mount / name), "error ENOENT")
                    self.assertEqual(outcome(os.stat, mount / name), "error ENOENT")
                wait_for(lambda path=mount.path: os.listdir(path) == ["deep"], seconds=10, what="the names to be gone")

    def test_an_added_object(self):
        # semantics: P18
        self.put_tree()
        self.index()
        self.service.put("d/new.b2frame", self.packed(b"new" * 1000))
        self.service.put("d/deep/new", b"plain")
        self.service.put("d/fresh/below", b"in a new directory")
        for place in PLACES:
            with self.mounted(place) as mount:
                self.service.clear_log()
                self.assertEqual(whole(mount / "new"), b"new" * 1000)
                self.assertEqual(whole(mount / "deep/new"), b"plain")
                self.assertEqual(sorted(os.listdir(mount.path)), ["deep", "plain", "x"])
                if self.service.pages:
                    self.assertEqual(whole(mount / "fresh/below"), b"in a new directory")
                    self.assertEqual(os.listdir(mount / "fresh"), ["below"])

    def test_an_absent_name_is_one_request(self):
        self.put_tree()
        self.index()
        for place in PLACES:
            with self.mounted(place) as mount:
                os.stat(mount / "x")
                for name in (".git", "absent", "deep/absent"):
                    self.service.clear_log()
                    self.assertEqual(outcome(os.stat, mount / name), "error ENOENT")
                    if self.service.pages:
                        self.assertLessEqual(len(self.service.log), 1, [request.target for request in self.service.log])

    def test_a_second_process_writes_another_index(self):
        self.put_tree()
        self.index()
        self.service.put("d/new.b2frame", self.packed(b"new" * 1000))
        for place in PLACES:
            with self.mounted(place, "remote_ttl=1") as mount:
                self.service.pages = "nginx"
                self.assertNotIn("new", os.listdir(mount.path))
                self.wait_until_asked_again(mount)
                self.index()
                wait_for(lambda path=mount.path: "new" in os.listdir(path), seconds=10, what="the new name")
                self.assertEqual(os.stat(mount / "new").st_size, 3000)
                self.service.delete("d/new.b2frame")
                self.index()
                wait_for(lambda path=mount.path: "new" not in os.listdir(path), seconds=10, what="the name to be gone")
                self.check_contents(mount)
                self.service.delete("d/" + INDEX)
                self.service.put("d/new.b2frame", self.packed(b"new" * 1000))
                wait_for(lambda path=mount.path: "new" in os.listdir(path), seconds=10, what="the listing of the server")
                self.index()
                self.service.delete("d/new.b2frame")
                self.index()
                self.service.put("d/new.b2frame", self.packed(b"new" * 1000))

    def wait_until_asked_again(self, mount):
        def is_held():
            os.listdir(mount.path)
            return 304 in [request.status for request in self.objects(INDEX)]
        wait_for(is_held, seconds=10, what="the index to be asked for again")


class Hostile(Indexed):
    def test_a_damaged_index_is_as_none(self):
        # semantics: P18
        self.put_tree()
        self.index()
        index = self.service.objects.find("d/" + INDEX).content
        flipped = bytearray(index)
        flipped[len(index) // 2] ^= 1
        for content in (bytes(flipped), index[: len(index) // 2], b"", b"<html>a page for everything</html>", index + b"x",
                        index[:8] + b"\2" + index[9:], index[:16] + b"\xff" * 8 + index[24:]):
            self.service.put("d/" + INDEX, content)
            for address in self.addresses("d/"):
                self.service.pages = "nginx"
                with self.subTest(content=content[:40], address=address), self.mount(address) as mount:
                    self.assertEqual(sorted(os.listdir(mount.path)), ["deep", "plain", "x"])
                    self.check_contents(mount)
                    self.assertEqual(len([line for line in mount.lines() if "the index is not used: " in line]), 1, mount.lines())

    def test_an_index_that_is_too_long_is_not_fetched(self):
        self.put_tree()
        self.service.put("d/" + INDEX, bytes((64 << 20) + 1))
        with self.mount(self.web("d/")) as mount:
            self.check_contents(mount)
            self.assertTrue([line for line in mount.lines() if "the index is not used: " in line], mount.lines())
        self.assertLess(sum(request.sent for request in self.objects(INDEX)), 8 << 20)

    def test_a_server_that_fails_for_the_index_alone(self):
        self.put_tree()
        self.index()
        self.service.faults.add("status", "d/" + INDEX, code=400)
        with self.mount(self.bucket("d/")) as mount:
            self.check_contents(mount)


class Writing(Indexed):
    def test_a_web_server_takes_no_upload(self):
        self.put_tree()
        ran = self.cframe("index", self.web("d/"))
        self.assertEqual(ran.returncode, 2)
        self.assertIn(b"-o FILE", ran.stderr)
        self.assertEqual(self.service.log, [])
        ran = self.cframe("index", self.web("d/"), "-o", "made")
        self.assertEqual((ran.returncode, ran.stderr), (0, b""))
        self.assertIn(b"4 objects", ran.stdout)
        self.assertEqual({request.method for request in self.service.log}, {"GET"})
        # The server's administrator places it.
        self.service.put("d/" + INDEX, whole(self.work + "/made"))
        for place in PLACES:
            with self.mounted(place) as mount:
                self.check_contents(mount)
        self.assertEqual(self.cframe("index", self.web("d/"), "-o", "made").returncode, 2, "it exists")
        ran = self.cframe("index", self.web("d/"), "--force", "-o", "made")
        self.assertEqual((ran.returncode, ran.stderr), (0, b""))

    def test_standard_output(self):
        self.put_tree()
        ran = self.cframe("index", self.bucket("d/"), "-o", "-")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue(ran.stdout.startswith(b"cfindex\0"))
        self.assertNotIn("PUT", {request.method for request in self.service.log})
        self.assertEqual(self.cframe("index", "--json", self.bucket("d/"), "-o", "-").returncode, 2)

    def test_one_request_uploads_it(self):
        self.put_tree()
        for _ in range(2):
            self.service.clear_log()
            self.index()
            self.assertEqual([(request.name, request.status) for request in self.service.log if request.method == "PUT"],
                             [("d/" + INDEX, 200)])

    def test_what_cannot_be_done(self):
        self.put_tree()
        for arguments, status, why in (
                ([self.work], 2, b"no address"), ([self.bucket("d/x.b2frame")], 2, b"one object"),
                ([self.bucket("nothing/here/")], 2, b"prefix"), ([self.web("absent/"), "-o", "made"], 2, b"404"),
                ([self.bucket("d/"), "-o", "absent/made"], 2, b"absent/made")):
            ran = self.cframe("index", *arguments)
            self.assertEqual(ran.returncode, status, (arguments, ran.stderr))
            self.assertIn(why, ran.stderr)
        self.service.faults.add("status", "d/" + INDEX, code=403, method="PUT")
        ran = self.cframe("index", self.bucket("d/"))
        self.assertEqual(ran.returncode, 3, ran.stderr)
        self.assertIn(b"403", ran.stderr)
        self.assertEqual([name for name in os.listdir(self.work) if "made" in name], [])

    def test_objects_that_cannot_be_looked_at_are_left_out(self):
        self.put_tree()
        self.service.faults.add("status", "d/x.b2frame", code=403)
        told = json.loads(self.index("d/", "--json"))
        self.assertEqual((told["objects"], told["left_out"]), (3, 1))
        damaged = json.loads(self.index("d/deep/", "--json"))
        self.assertEqual((damaged["objects"], damaged["left_out"]), (2, 0))

    def test_a_damaged_frame_is_told_as_it_is(self):
        self.service.put("d/x.b2frame", b"no frame at all" * 100)
        self.service.put("d/empty.b2frame", b"")
        self.service.put("d/y.b2nd", self.packed(b"y" * 1000)[:200])
        shown = {}
        for options in (("remote_index=off",), ()):
            self.index()
            with self.mount(self.bucket("d/"), *options) as mount:
                shown[options] = [(name, outcome(lambda path: os.stat(path).st_size, mount / name), outcome(whole, mount / name))
                                  for name in sorted(os.listdir(mount.path))]
        self.assertEqual(*shown.values())

    def test_an_interrupt_leaves_nothing(self):
        self.put_tree()
        self.service.latency = 0.3
        for out in ((), ("-o", self.work + "/made")):
            with subprocess.Popen([mounting.CFRAME, "index", self.bucket("d/"), *out], env=self.place(),
                                  stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                wait_for(lambda: self.objects("x.b2frame"), seconds=20, what="the objects to be asked for")
                process.send_signal(2)
                process.communicate(timeout=30)
                self.assertEqual(process.returncode, -2)
            self.assertFalse(os.path.exists(self.work + "/made"))
            self.assertIsNone(self.service.objects.find("d/" + INDEX))
            self.service.clear_log()


if __name__ == "__main__":
    mounting.main(hang_seconds=600)
