"""cframe pack and convert into a bucket: the object is what a file would be, or there is none, and no upload is left."""

import array
import json
import os
import signal
import subprocess

import mounting
from mounting import wait_for
from remote_sources import MIB, Served, noise, whole

BIG = 20 * MIB  # three parts
KINDS = {"HEAD": "look", "GET": "read back", "DELETE": "abort"}


def kind_of(request):
    """What a request of an upload is for."""
    if request.method == "PUT":
        return "part" if "partNumber" in request.query else "put"
    if request.method == "POST":
        return "begin" if "uploads" in request.query else "complete"
    return KINDS[request.method]


class Publishing(Served):
    def setUp(self):
        super().setUp()
        self.small, self.big = self.work + "/small", self.work + "/big"
        for path, content in ((self.small, b"a line\n" * 20_000), (self.big, noise(1, BIG))):
            with open(path, "wb") as file:
                file.write(content)
        self.address = self.bucket("d/x.b2frame")

    def content(self, name="d/x.b2frame"):
        """The bytes of an object; None if there is none."""
        stored = self.service.objects.find(name)
        return stored.content if stored else None

    def as_file(self, *arguments, name="local.b2frame"):
        """What the same arguments write into a file."""
        mounting.output(mounting.CFRAME, *arguments, "--force", self.work + "/" + name)
        return whole(self.work + "/" + name)

    def kinds(self):
        return [kind_of(request) for request in self.service.log]

    def begun(self, *arguments, **how):
        return subprocess.Popen([mounting.CFRAME, *arguments], env=self.place(), cwd=self.work, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)

    def assert_nothing_left(self):
        self.assertEqual(self.service.objects.uploads, {})


class Uploads(Publishing):
    def test_an_object_is_what_a_file_would_be(self):
        for path in (self.small, self.big):
            for options in ((), ("--checksums", "off"), ("--codec", "lz4", "--chunksize", "100000")):
                with self.subTest(path, options=options):
                    self.service.clear_log()
                    printed = json.loads(self.done("pack", "--force", "--json", *options, path, self.address))
                    self.assertTrue(self.content() == self.as_file("pack", *options, path), "other bytes")
                    self.assertEqual(printed["out"], self.address)
                    self.assertEqual(printed["stored"], len(self.content()))
                    self.assertEqual(printed["etag"], f'"{self.service.objects.find("d/x.b2frame").etag}"')
                    self.assertTrue(self.done("cat", self.address) == whole(path))
                    self.done("verify", self.address)
                    self.assert_nothing_left()

    def test_the_requests_of_an_upload(self):
        self.done("pack", self.small, self.address)
        self.assertEqual(self.kinds(), ["look", "look", "put", "read back"])
        self.service.clear_log()
        self.done("pack", "--force", self.big, self.address)
        kinds = self.kinds()
        self.assertEqual(sorted(kinds), sorted(["look", "begin", "part", "part", "part", "look", "complete", "read back"]))
        self.assertEqual(kinds[-3:], ["look", "complete", "read back"])
        parts = [request.query["partNumber"] for request in self.service.log if kind_of(request) == "part"]
        self.assertEqual(sorted(parts), ["1", "2", "3"])
        for request in self.service.log:
            self.assertRegex(request.headers["x-amz-content-sha256"], "^[0-9a-f]{64}$")

    def test_through_a_mount(self):
        self.done("pack", self.big, self.address)
        with self.mount(self.bucket("d/")) as mount:
            self.assertTrue(whole(mount / "x") == whole(self.big))

    def test_standard_input(self):
        ran = subprocess.run([mounting.CFRAME, "pack", "-", self.address], env=self.place(), input=whole(self.big),
                             capture_output=True, check=False)
        self.assertEqual((ran.returncode, ran.stderr), (0, b""))
        self.assertTrue(self.done("cat", self.address) == whole(self.big))

    def test_convert(self):
        head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3000, 1000), }"
        head = b"\x93NUMPY\x01\x00\x76\x00" + head + b" " * (117 - len(head)) + b"\n"
        plain = head + array.array("d", range(3_000_000)).tobytes()
        with open(self.work + "/a.npy", "wb") as out:
            out.write(plain)
        self.done("convert", "a.npy", self.bucket("a.b2nd"))
        self.assertTrue(self.content("a.b2nd") == self.as_file("convert", self.work + "/a.npy", name="a.b2nd"))
        self.done("convert", self.bucket("a.b2nd"), self.bucket("b.npy"))
        self.assertTrue(self.content("b.npy") == plain)
        self.as_file("pack", self.big)
        self.done("convert", "--codec", "lz4", "local.b2frame", self.address)
        self.assertTrue(self.done("cat", self.address) == whole(self.big))

    def test_an_array_keeps_its_chunks(self):
        with open(self.work + "/a.npy", "wb") as file:
            file.write(b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }".ljust(117)
                       + b"\nabcd")
        self.done("convert", "a.npy", "a.b2nd")
        for command, name in (("pack", "a.npy"), ("convert", "a.npy"), ("convert", "a.b2nd")):
            ran = self.cframe(command, "--tune=remote", name, self.bucket("b.b2nd"))
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertIn(b"--tune cannot be used for an array", ran.stderr)
        self.assertEqual(self.service.log, [])

    def test_many_files(self):
        for name in ("t/a", "t/below/b"):
            os.makedirs(os.path.dirname(self.work + "/" + name), exist_ok=True)
            with open(self.work + "/" + name, "wb") as file:
                file.write(name.encode() * 1000)
        for to in (self.bucket("p/"), self.bucket("p"), self.bucket()):
            self.done("pack", "--quiet", "-r", "--force", "--to", to, "t")
        names = ["p/t/a.b2frame", "p/t/below/b.b2frame", "t/a.b2frame", "t/below/b.b2frame"]
        self.assertEqual(sorted(self.service.objects.names()), names)
        self.assertEqual(self.done("cat", self.bucket("p/t/below/b.b2frame")), b"t/below/b" * 1000)
        self.assertEqual(self.cframe("pack", "--quiet", "-r", "--to", self.bucket("p"), "t").returncode, 2)

    def test_the_input_is_removed_after_the_upload(self):
        self.service.faults.add("status", "*", method="PUT", code=403)
        self.assertNotEqual(self.cframe("pack", "--rm", self.small, self.address).returncode, 0)
        self.assertTrue(os.path.exists(self.small))
        self.service.faults.clear()
        self.done("pack", "--rm", self.small, self.address)
        self.assertFalse(os.path.exists(self.small))
        self.assertEqual(self.done("cat", self.address), b"a line\n" * 20_000)

    def test_what_is_no_object_of_a_bucket(self):
        for out, why in ((self.web("d/x.b2frame"), b"only objects of buckets"), (self.bucket(), b"names no object"),
                         (self.bucket("d/"), b"names no object"), ("s3://b", b"bucket"), (self.bucket("x.b2z"), b"suffix")):
            ran = self.cframe("pack", self.small, out)
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertIn(why, ran.stderr)
        ran = self.cframe("pack", "-m", "--to", self.web("d"), self.small)
        self.assertEqual(ran.returncode, 2, ran.stderr)
        self.as_file("pack", self.small)
        for command in ("unpack", "map"):
            ran = self.cframe(command, "local.b2frame", *(["-o"] if command == "map" else []), self.bucket("plain.svg"))
            self.assertIn(b"only pack and convert write", ran.stderr)
        self.assertEqual(self.service.log, [])
        self.assertEqual([name for name in os.listdir(self.work) if name.startswith(("http", "s3"))], [])

    def test_a_frame_is_not_replaced_by_itself(self):
        self.done("pack", self.small, self.address)
        self.assertEqual(self.cframe("convert", "--force", self.address, self.address).returncode, 2)


class Existing(Publishing):
    def setUp(self):
        super().setUp()
        self.before = self.packed(b"before")

    def refused(self, *arguments):
        ran = self.cframe("pack", *arguments)
        self.assertNotEqual(ran.returncode, 0)
        self.assert_nothing_left()
        return ran.stderr

    def test_an_object_is_not_replaced(self):
        self.service.put("d/x.b2frame", self.before)
        for path in (self.small, self.big):
            self.service.clear_log()
            self.assertIn(b"exists already; --force replaces it", self.refused(path, self.address))
            self.assertEqual(self.kinds(), ["look"])
            self.assertEqual(self.content(), self.before)
            self.done("pack", "--force", path, self.address)
            self.assertTrue(self.done("cat", self.address) == whole(path))
            self.service.put("d/x.b2frame", self.before)

    def test_an_object_that_appears_meanwhile_is_not_replaced(self):
        for conditions in ("kept", "ignored"):
            for path, last in ((self.small, "put"), (self.big, "complete")):
                with self.subTest(path, conditions=conditions):
                    self.service.delete("d/x.b2frame")
                    self.service.faults.clear()
                    self.service.buckets.conditions = conditions
                    # A service without conditions is asked just before.
                    function = lambda _: self.service.put("d/x.b2frame", self.before)  # noqa: E731
                    if conditions == "ignored":
                        self.service.faults.add("call", "d/*", count=1, skip=1, method="HEAD", function=function)
                    else:
                        self.service.faults.add("call", "d/*", count=1, when=lambda request, last=last: kind_of(request) == last,
                                                function=function)
                    self.assertIn(b"exists already; --force replaces it", self.refused(path, self.address))
                    self.assertEqual(self.content(), self.before)

    def test_a_service_that_knows_no_conditions(self):
        self.service.buckets.conditions = "refused"
        for path in (self.small, self.big):
            said = self.refused(path, self.address)
            self.assertIn(b"cannot promise that no other object is replaced", said)
            self.assertIn(b"--force", said)
            self.assertIsNone(self.content())
            self.done("pack", "--force", path, self.address)
            self.assertTrue(self.done("cat", self.address) == whole(path))
            self.service.delete("d/x.b2frame")

    def test_an_object_that_is_replaced_at_once(self):
        self.service.faults.add("call", "d/*", count=1, method="GET", function=lambda _: self.service.put("d/x.b2frame", self.before))
        self.assertIn(b"cannot be read back", self.refused(self.big, self.address))

    def test_other_bytes_are_read_back(self):
        self.service.faults.add("body", "d/*", count=1, method="GET", content=b"x" * (64 << 10))
        self.assertIn(b"other bytes are read back", self.refused(self.big, self.address))

    def test_without_rights(self):
        ran = self.cframe("pack", self.big, self.address, AWS_SECRET_ACCESS_KEY="wrong")
        self.assertIn(b"SignatureDoesNotMatch", ran.stderr)
        self.assertEqual(ran.returncode, 3)
        # Who may not list the bucket learns nothing of an absent object.
        self.service.faults.add("status", "d/*", method="HEAD", code=403)
        self.done("pack", self.big, self.address)
        self.assertTrue(self.content() == self.as_file("pack", self.big))


class Faults(Publishing):
    def passes(self, path, expected, kind, skip, **how):
        """Whether an upload succeeds although the request of this number meets the fault once."""
        self.service.faults.clear()
        self.service.delete("d/x.b2frame")
        fault = self.service.faults.add(kind, "d/*", count=1, skip=skip, **how)
        self.service.clear_log()
        self.done("pack", path, self.address)
        self.service.faults.clear()
        self.assertTrue(self.content() == expected, (kind, skip))
        return fault.met == 0

    def test_one_failure_of_each_request(self):
        for path in (self.small, self.big):
            expected = self.as_file("pack", path)
            for kind, how in (("status", {"code": 503}), ("close", {}), ("lost", {})):
                skip = 0
                while not self.passes(path, expected, kind, skip, **how):
                    is_begin = kind == "lost" and self.kinds().count("begin") > 1
                    # An upload whose identifier was lost cannot be removed: nothing tells it from those of others.
                    self.assertEqual(len(self.service.objects.uploads), 1 if is_begin else 0)
                    self.service.objects.uploads.clear()
                    skip += 1
                self.assertGreaterEqual(skip, 4)

    def test_an_error_with_status_200(self):
        def is_end(request):
            return kind_of(request) == "complete"

        self.service.faults.add("status", "d/*", count=1, when=is_end, code=200, name="InternalError")
        self.done("pack", self.big, self.address)
        self.assertTrue(self.content() == self.as_file("pack", self.big))
        self.service.delete("d/x.b2frame")
        self.service.faults.add("status", "d/*", when=is_end, code=200, name="InternalError")
        ran = self.cframe("pack", self.big, self.address)
        self.assertEqual(ran.returncode, 3)
        self.assertIn(b"InternalError", ran.stderr)
        self.assertIsNone(self.content())
        self.assert_nothing_left()

    def test_a_part_that_is_refused(self):
        for number in ("1", "2", "3"):
            self.service.faults.clear()
            self.service.faults.add("status", "d/*", when=lambda request, number=number: request.query.get("partNumber") == number,
                                    code=403)
            ran = self.cframe("pack", self.big, self.address)
            self.assertEqual(ran.returncode, 3)
            self.assertIn(b"AccessDenied", ran.stderr)
            self.assertIsNone(self.content())
            self.assert_nothing_left()

    def test_an_upload_that_cannot_be_aborted(self):
        self.service.faults.add("status", "d/*", method="DELETE", code=403)
        self.service.faults.add("status", "d/*", when=lambda request: kind_of(request) == "complete", code=400)
        ran = self.cframe("pack", self.big, self.address)
        self.assertEqual(ran.returncode, 3)
        self.assertIn(b"parts of an upload stay in the bucket", ran.stderr)


class Interrupted(Publishing):
    def interrupted(self, number, sign):
        """Sends a signal when the request of this number has come. (exit status, whether there was such a request)"""
        self.service.delete("d/x.b2frame")
        self.service.clear_log()
        seen = []

        def before(_):
            seen.append(None)
            if len(seen) == number:
                os.kill(process.pid, sign)

        self.service.latency = 0.02  # so that the program is known when its first request is answered
        self.service.before = before
        process = self.begun("pack", self.big, self.address)
        said = process.communicate()[1]
        self.service.before = None
        # A service goes on with the request of a killed program.
        wait_for(lambda: not self.service.connections, what="the end of all requests")
        self.assertIn(self.content(), (None, self.whole), "half an object")
        return process.returncode, len(seen) >= number, said

    def test_by_a_signal_at_each_request(self):
        self.whole = self.as_file("pack", self.big)
        for sign in (signal.SIGINT, signal.SIGTERM):
            number = 1
            while True:
                status, is_met, said = self.interrupted(number, sign)
                if not is_met:
                    break
                self.assertIn(status, (0, -sign), said)
                self.assertEqual(self.content() is not None, status == 0, said)
                self.assertEqual(said, b"")
                self.assert_nothing_left()
                number += 1
            self.assertEqual(status, 0)
            self.assertGreater(number, 8)

    def test_while_a_part_stalls(self):
        self.service.faults.add("stall", "d/*", when=lambda request: kind_of(request) == "part", after=None)
        process = self.begun("pack", self.big, self.address)
        wait_for(lambda: "part" in self.kinds(), what="a part")
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
        self.assertEqual((process.returncode, said), (-signal.SIGINT, b""))
        self.assertIsNone(self.content())
        self.assert_nothing_left()

    def test_by_kill_at_each_request(self):
        self.whole = self.as_file("pack", self.big)
        number = 1
        while self.interrupted(number, signal.SIGKILL)[1]:
            number += 1
        self.assertGreater(number, 8)


if __name__ == "__main__":
    mounting.main()
