"""Servers that fail, lie, change objects and die: a read gives the right bytes or an error, never other bytes, and the mount
is as before once the server is. The faults are those of tests/support/service_faults.py."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import mounting
from mounting import wait_for
from remote_sources import MIB, Served, is_error, noise, outcome, whole

SIZE = 12 * MIB
PIECE = 1 << 16
LATER = 6 * MIB  # what is read after a fault began; not fetched before
GEOMETRY = ("--codec", "lz4", "--filter", "none", "--chunksize", "512K")
# Without it a machine that is busy would count as a server that is.
PATIENCE = 10

# Faults that end: kind, arguments.
PASSING = [
    ("latency", {"seconds": 0.3, "count": 3}),
    ("status", {"code": 503, "count": 2, "retry_after": 0}),
    ("status", {"code": 503, "count": 3}),
    ("status", {"code": 500, "count": 2}),
    ("status", {"code": 429, "count": 2, "retry_after": 1}),
    ("cut", {"after": 1000, "count": 1}),
    ("cut", {"after": 0, "count": 2}),
    ("close", {"count": 2}),
]
# What servers do that is no reason for an error.
ODD = [("chunked", {}), ("wrong_suffix", {}), ("weak_etag", {}), ("no_etag", {}), ("no_date", {}),
       ("header", {"name": "X-Many", "value": "x" * 2000})]
# Of these, what must be so from the beginning: no suffix is asked for later, and another tag is another object.
AT_OPEN = ("wrong_suffix", "weak_etag", "no_etag")
# Faults that stay: kind, arguments, errors when the object is opened and when it is read; None: any but ENOENT; "either": the
# right bytes will do, too, since all answers tell the same.
REFUSING = [
    ("status", {"code": 403}, {"EACCES"}, {"EACCES"}),
    ("status", {"code": 404}, {"ENOENT"}, {"ENOENT", "ESTALE"}),
    ("status", {"code": 412}, {"ESTALE"}, {"ESTALE"}),
    ("status", {"code": 416}, None, {"ESTALE"}),
    ("status", {"code": 501}, {"EOPNOTSUPP"}, {"EOPNOTSUPP"}),
    ("gzip", {}, {"EOPNOTSUPP", "EIO"}, {"EOPNOTSUPP", "EIO"}),
    ("ignore_range", {}, {"EOPNOTSUPP"}, {"EOPNOTSUPP", "EIO"}),
    ("redirect", {}, None, None),
    ("content_range", {"by": 7}, None, None),
    ("content_range", {"by": -7}, None, None),
    ("total", {"by": 1}, "either", {"ESTALE", "EIO"}),
    ("total", {"by": -PIECE}, "either", {"ESTALE", "EIO"}),
    ("no_content_range", {}, None, None),
    ("length", {"by": -100}, None, None),
    ("etag", {}, {"ESTALE", "EIO"}, {"ESTALE", "EIO"}),
    ("garbage", {}, None, None),
]
# Those that the daemon tries to outlast.
LASTING = [
    ("status", {"code": 503}, {"EIO", "ETIMEDOUT"}),
    ("status", {"code": 500}, {"EIO", "ETIMEDOUT"}),
    ("status", {"code": 429, "retry_after": 30}, {"EIO", "ETIMEDOUT"}),
    ("stall", {}, {"ETIMEDOUT"}),
    ("stall", {"after": 1000}, {"ETIMEDOUT", "EIO"}),
    ("trickle", {"rate": 100}, {"ETIMEDOUT", "EIO"}),
    ("latency", {"seconds": 8}, {"ETIMEDOUT"}),
    ("close", {}, None),
    ("cut", {"after": 1000}, None),
    ("length", {"by": 100}, None),
]
EITHER = [("headers", {"size": MIB}), ("headers", {"size": 200_000})]  # no byte may be wrong


def is_later(request):
    """Whether a request asks for bytes of the middle."""
    found = re.match(r"bytes=(\d+)-", request.range or "")
    return found is not None and MIB < int(found[1]) < SIZE - MIB


def read_pieces(descriptor, begin, content):
    """Reads to the end; None, or the error that ended it. Bytes that are not the content's raise AssertionError."""
    for at in range(begin, len(content), PIECE):
        data = outcome(os.pread, descriptor, PIECE, at)
        if is_error(data):
            return data
        if data != content[at : at + PIECE]:
            raise AssertionError(f"{len(data)} bytes at {at} are not those of the object")
    return None


class Faults(Served):
    """The base of the classes below: an object, and two moments at which a fault can begin."""

    address = None  # of the directory

    @classmethod
    def setUpClass(cls):
        cls.content = noise(4, SIZE)

    def setUp(self):
        super().setUp()
        self.service.put("d/x.b2frame", self.packed(self.content, *GEOMETRY))
        self.service.put("d/other", b"another object")

    def open_and_read(self, path):
        descriptor = outcome(os.open, path, os.O_RDONLY)
        if is_error(descriptor):
            return descriptor
        try:
            return read_pieces(descriptor, 0, self.content)
        finally:
            os.close(descriptor)

    def is_well(self, mount):
        return outcome(whole, mount / "x") == self.content

    def met_at_open(self, timeout, kind, how):
        """The outcome of reading an object when each answer has the fault."""
        self.service.faults.clear()
        with self.mount(self.where(), f"remote_timeout={timeout}", "remote_ttl=0") as mount:
            fault = self.service.faults.add(kind, "d/x.b2frame", **how)
            found = self.open_and_read(mount / "x")
            self.service.faults.clear()
            self.assertGreater(fault.met, 0)
            wait_for(lambda: self.is_well(mount), what=f"the mount to be well after {kind}")
            self.assertEqual(whole(mount / "other"), b"another object")
        return found

    def met_at_read(self, timeout, kind, how):
        """The outcome of reading on in an object that was open when the fault began."""
        self.service.faults.clear()
        with self.mount(self.where(), f"remote_timeout={timeout}", "remote_ttl=0", "readahead=0") as mount:
            descriptor = os.open(mount / "x", os.O_RDONLY)
            try:
                self.assertEqual(os.pread(descriptor, 4096, 0), self.content[:4096])
                fault = self.service.faults.add(kind, "d/x.b2frame", **how)
                found = read_pieces(descriptor, LATER, self.content)
                self.service.faults.clear()
                self.assertGreater(fault.met, 0)
                wait_for(lambda: self.is_well(mount), what=f"the mount to be well after {kind}")
            finally:
                os.close(descriptor)
        return found

    def where(self):
        return self.web("d/")

    def check(self, found, allowed, kind, how):
        if allowed == "either":
            self.assertNotEqual(found, "error ENOENT")
        elif allowed is None:
            self.assertTrue(is_error(found) and found != "error ENOENT", f"{kind} {how}: {found}")
        else:
            self.assertIn(found, {"error " + name for name in allowed}, f"{kind} {how}")


class WebFaults(Faults):
    def test_faults_that_pass_are_not_noticed(self):
        for kind, how in PASSING + ODD:
            for meet in (self.met_at_open, self.met_at_read):
                if kind in AT_OPEN and meet == self.met_at_read:
                    continue
                with self.subTest(kind, how=how, meet=meet.__name__):
                    self.assertIsNone(meet(PATIENCE, kind, dict(how)))

    def test_lies_are_errors(self):
        for kind, how, opening, reading in REFUSING:
            for meet, allowed in ((self.met_at_open, opening), (self.met_at_read, reading)):
                with self.subTest(kind, how=how, meet=meet.__name__):
                    self.check(meet(2, kind, dict(how)), allowed, kind, how)

    def test_what_lasts_is_an_error_in_the_end(self):
        for kind, how, allowed in LASTING:
            for meet in (self.met_at_open, self.met_at_read):
                with self.subTest(kind, how=how, meet=meet.__name__):
                    begin = time.monotonic()
                    self.check(meet(1, kind, dict(how)), allowed, kind, how)
                    self.assertLess(time.monotonic() - begin, 2 * PATIENCE)

    def test_right_bytes_or_an_error(self):
        # semantics: P14
        for kind, how in EITHER:
            for meet in (self.met_at_open, self.met_at_read):
                with self.subTest(kind, how=how, meet=meet.__name__):
                    meet(2, kind, dict(how))

    def test_neither_tag_nor_date(self):
        self.service.faults.add("no_etag", "d/*")
        self.service.faults.add("no_date", "d/*")
        with self.mount(self.where()) as mount:
            found = self.open_and_read(mount / "x")
            self.assertTrue(found is None or is_error(found))

    def test_a_redirect_to_another_place(self):
        self.service.put("moved/x.b2frame", self.service.objects.find("d/x.b2frame").content)
        for code in (301, 302, 307):
            with self.subTest(code=code):
                how = {"to": self.service.url("/web/moved/x.b2frame"), "code": code}
                self.assertIsNone(self.met_at_open(PATIENCE, "redirect", how))

    def test_a_small_object_may_come_whole(self):
        text = b"text\n" * 20_000
        self.service.put("d/small.b2frame", self.packed(text))
        self.service.put("d/plain", text)
        self.service.faults.add("ignore_range", "d/*")
        with self.mount(self.where()) as mount:
            self.assertEqual(whole(mount / "small"), text)
            self.assertEqual(whole(mount / "plain"), text)

    def test_objects_that_are_no_frames(self):
        """What a plain file gives is not verified by any decoder."""
        self.service.put("d/plain.bin", self.content)
        for kind, how in (("content_range", {"by": 7}), ("total", {"by": 5}), ("length", {"by": -100}), ("gzip", {}),
                          ("ignore_range", {}), ("etag", {}), ("cut", {"after": 1000}), ("wrong_suffix", {})):
            with self.subTest(kind), self.mount(self.where(), "remote_timeout=1", "remote_ttl=0") as mount:
                fault = self.service.faults.add(kind, "d/plain.bin", **how)
                found = self.open_and_read(mount / "plain.bin")
                self.service.faults.clear()
                if kind != "wrong_suffix":
                    self.assertGreater(fault.met, 0)
                    self.assertTrue(is_error(found))
                wait_for(lambda: outcome(whole, mount / "plain.bin") == self.content, what="the mount to be well")


class BucketFaults(Faults):
    def where(self):
        return self.bucket("d/")

    def test_faults_that_pass_are_not_noticed(self):
        for kind, how in PASSING + [("wrong_suffix", {}), ("weak_etag", {})]:
            with self.subTest(kind, how=how):
                self.assertIsNone(self.met_at_open(PATIENCE, kind, dict(how)))

    def test_lies_are_errors(self):
        for kind, how, opening, reading in REFUSING:
            with self.subTest(kind, how=how):
                self.check(self.met_at_read(2, kind, dict(how)), reading, kind, how)
        self.check(self.met_at_open(2, "status", {"code": 403}), {"EACCES"}, "status", 403)

    def test_archived_objects(self):
        how = {"code": 403, "name": "InvalidObjectState"}
        self.check(self.met_at_open(2, "status", how), {"EACCES"}, "status", how)


class ListingFaults(Served):
    """What a listing cannot tell is an error, never a directory without files."""

    def setUp(self):
        super().setUp()
        for number in range(20):
            self.service.put(f"d/{number:02}", b"x" * number)
        self.names = [f"{number:02}" for number in range(20)]

    def listed(self, address, kind, **how):
        """What is listed while each listing has this fault."""
        self.service.faults.clear()
        with self.mount(address, "remote_ttl=0", "remote_timeout=2") as mount:
            fault = self.service.faults.add(kind, when=lambda request: request.is_listing, **how)
            found = outcome(lambda: sorted(os.listdir(mount.path)))
            self.service.faults.clear()
            self.assertGreater(fault.met, 0)
            wait_for(lambda: outcome(lambda: sorted(os.listdir(mount.path))) == self.names, what="the listing")
        return found

    def test_faults_that_pass(self):
        for address in self.addresses("d/"):
            for kind, how in PASSING:
                if how.get("code") != 429:
                    with self.subTest(address, kind=kind, how=how):
                        self.assertEqual(self.listed(address, kind, **how), self.names)

    def test_faults_that_stay(self):
        garbage = b"<html><?xml <ListBucketResult>" + bytes(range(256)) * 20
        for address in self.addresses("d/"):
            for kind, how in (("status", {"code": 500}), ("status", {"code": 403}), ("status", {"code": 429}), ("stall", {}),
                              ("cut", {"after": 100}), ("body", {"content": garbage}), ("body", {"content": b""}),
                              ("gzip", {}), ("redirect", {}), ("close", {}), ("length", {"by": -50}), ("garbage", {})):
                # A page cut off where Content-Length says is all that there is; a page of a web server has no end mark.
                if kind == "length" and not address.startswith("s3:"):
                    continue
                with self.subTest(address, kind=kind, how=how):
                    found = self.listed(address, kind, **how)
                    self.assertTrue(is_error(found) and found != "error ENOENT", found)
        for address in self.addresses("d/"):
            self.assertEqual(self.listed(address, "status", code=403), "error EACCES")

    def test_a_listing_without_end(self):
        """A server that answers each page with a token for the same one."""
        page = (b'<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>d/a</Key><Size>1</Size>'
                b"<ETag>&quot;a&quot;</ETag></Contents><NextContinuationToken>again</NextContinuationToken></ListBucketResult>")
        found = self.listed(self.bucket("d/"), "body", content=page)
        self.assertTrue(is_error(found), found)


class Replacement(Served):
    """An object is replaced between any two requests: bytes of one state only, then ESTALE; the next open has the new one."""

    def setUp(self):
        super().setUp()
        self.old, self.new = noise(5, 3 * MIB), noise(6, 3 * MIB)
        geometry = ("--codec", "lz4", "--filter", "none", "--chunksize", "256K")
        self.frames = {content: self.packed(content, *geometry) for content in (self.old, self.new, self.new[: 2 * MIB])}
        self.time = int(time.time()) - 10_000

    def put(self, content):
        self.time += 10
        return self.service.put("d/x.b2frame", self.frames[content], modified=self.time)

    def read_once(self, address, number, new, options):
        """Reads with one handle while the object is replaced before the request of this number. Returns what ended the
        reading, and how many requests there were; the state of the bytes and the next open are checked."""
        self.put(self.old)
        with self.mount(address, "remote_ttl=0", "readahead=0", "cache_size=8M", *options) as mount:
            count = [0]
            replaced = []
            lock = threading.Lock()

            def before(request):
                with lock:
                    count[0] += 0 if request.is_listing else 1
                    if count[0] == number and not replaced and not request.is_listing:
                        replaced.append(True)
                        self.put(new)

            self.service.before = before
            descriptor = outcome(os.open, mount / "x", os.O_RDONLY)
            ended = descriptor if is_error(descriptor) else None
            states = {content: True for content in (self.old, new)}
            at = 0
            while ended is None and at < len(self.old):
                data = outcome(os.pread, descriptor, PIECE, at)
                ended = data if is_error(data) else None
                if ended is None:
                    states = {content: states[content] and data == content[at : at + PIECE] for content in states}
                    if not data:
                        break
                at += PIECE
            self.service.before = None
            if not is_error(descriptor):
                os.close(descriptor)
            self.assertTrue(any(states.values()), f"bytes of two states, replaced before request {number}")
            if not replaced:
                self.put(new)
            # Programs see it as soon as they open it again.
            self.assertEqual(os.stat(mount / "x").st_size, len(new))
            self.assertTrue(whole(mount / "x") == new, f"old bytes after a new open, replaced before request {number}")
        return ended, count[0]

    def check(self, address, new, allowed, has_cache=False):
        number = requests = 1
        while number <= requests:
            with self.subTest(address, number=number):
                # Each has its own, or nothing would be asked for.
                cache = tempfile.mkdtemp(dir=self.work) if has_cache else None
                ended, requests = self.read_once(address, number, new, [f"cache_dir={cache}"] if cache else [])
                self.assertIn(ended, allowed)
            number += 1
            self.assertLess(number, 200)
        self.assertGreater(number, 3, "there were too few requests to replace anything between them")

    def test_by_tags(self):
        # semantics: P13
        for address in self.addresses("d/"):
            for new in (self.new, self.new[: 2 * MIB]):
                self.check(address, new, (None, "error ESTALE"))

    def test_by_dates(self):
        for kind in ("no_etag", "weak_etag"):
            self.service.faults.clear()
            self.service.faults.add(kind)
            self.check(self.web("d/"), self.new, (None, "error ESTALE"))

    def test_versions_stay_readable(self):
        self.service.objects.is_versioned = True
        self.check(self.bucket("d/"), self.new, (None,))

    def test_with_a_disk_cache(self):
        self.check(self.web("d/"), self.new, (None, "error ESTALE"), has_cache=True)

    def test_removed(self):
        self.put(self.old)
        with self.mount(self.web("d/"), "remote_ttl=0", "readahead=0") as mount:
            descriptor = os.open(mount / "x", os.O_RDONLY)
            self.assertEqual(os.pread(descriptor, 4096, 0), self.old[:4096])
            self.service.delete("d/x.b2frame")
            self.assertIn(outcome(os.pread, descriptor, 4096, 2 * MIB), ("error ENOENT", "error ESTALE"))
            os.close(descriptor)
            wait_for(lambda: outcome(os.stat, mount / "x") == "error ENOENT", what="the name to be gone")


class DeadServer(Served):
    """A server that does not answer, or is not there: errors after the deadline, no program that cannot be ended, no mount
    that must be mounted again."""

    def setUp(self):
        super().setUp()
        self.content = noise(7, SIZE)
        self.service.put("d/x.b2frame", self.packed(self.content, *GEOMETRY))

    def read_later(self, descriptor):
        return outcome(os.pread, descriptor, 4096, LATER)

    def check_dies_and_lives(self, die, live, errors):
        for address in self.addresses("d/"):
            live()
            with self.subTest(address), self.mount(address, "remote_timeout=2", "readahead=0", "remote_ttl=0") as mount:
                descriptor = os.open(mount / "x", os.O_RDONLY)
                self.assertEqual(os.pread(descriptor, 4096, 0), self.content[:4096])
                die()
                for ask in (lambda: self.read_later(descriptor), lambda: outcome(os.listdir, mount.path),
                            lambda: outcome(os.stat, mount / "unknown")):
                    begin = time.monotonic()
                    answer = ask()
                    self.assertTrue(answer in errors, str(answer)[:100])
                    self.assertLess(time.monotonic() - begin, 10)
                live()
                wait_for(lambda: self.read_later(descriptor) == self.content[LATER : LATER + 4096], what="the open file")
                wait_for(lambda: outcome(os.listdir, mount.path) == ["x"], what="the listing")
                self.assertTrue(whole(mount / "x") == self.content)
                os.close(descriptor)

    def test_no_answers(self):
        self.check_dies_and_lives(lambda: self.service.faults.add("stall"), self.service.faults.clear, ("error ETIMEDOUT",))

    def test_no_server(self):
        # semantics: P14
        self.check_dies_and_lives(self.service.stop, self.service.start,
                                  ("error EHOSTUNREACH", "error ETIMEDOUT", "error ECONNREFUSED", "error EIO"))

    def waiting_program(self, mount, name):
        """A program that waits for the server in the call of this name."""
        self.service.faults.clear()
        fault = self.service.faults.add("stall", when=is_later if name in ("read", "direct") else None)
        program = "import mmap, os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); path = sys.argv[1]; "
        process = subprocess.Popen([sys.executable, "-c", program + self.PROGRAMS[name], mount / "x"], stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_for(lambda: fault.met > 0, what="the program to wait for the server")
        time.sleep(0.1)
        self.assertIsNone(process.poll())
        return process

    PROGRAMS = {
        "open": "os.open(path, os.O_RDONLY)",
        "stat": "os.stat(path)",
        "read": f"os.pread(os.open(path, os.O_RDONLY), 4096, {LATER})",
        "direct": f"os.preadv(os.open(path, os.O_RDONLY | os.O_DIRECT), [mmap.mmap(-1, 4096)], {LATER})",
        "list": "os.listdir(os.path.dirname(path))",
    }

    def test_programs_that_wait_can_be_ended(self):
        # semantics: P14
        for name in self.PROGRAMS:
            for number in (signal.SIGKILL, signal.SIGINT):
                self.service.faults.clear()
                with self.subTest(name, number=number), \
                        self.mount(self.web("d/"), "remote_timeout=8", "remote_ttl=0", "readahead=0") as mount:
                    process = self.waiting_program(mount, name)
                    begin = time.monotonic()
                    process.send_signal(number)
                    process.wait(PATIENCE)
                    self.assertLess(time.monotonic() - begin, 3)
                    self.service.faults.clear()
                    self.assertEqual(mounting.pread(mount / "x", 0, 4096), self.content[:4096])

    def test_unmounting_does_not_wait(self):
        for name in ("read", "open", "list"):
            self.service.faults.clear()
            with self.subTest(name):
                mount = self.mount(self.web("d/"), "remote_timeout=60", "remote_ttl=0", "readahead=0")
                process = self.waiting_program(mount, name)
                begin = time.monotonic()
                mount.close()
                self.assertLess(time.monotonic() - begin, PATIENCE)
                process.wait(PATIENCE)
                self.service.faults.clear()

    def test_other_files_are_read_beside_it(self):
        # semantics: P14
        self.service.put("d/other.b2frame", self.packed(b"text\n" * 1000))
        with self.mount(self.web("d/"), "remote_timeout=60", "readahead=0") as mount:
            self.assertEqual(sorted(os.listdir(mount.path)), ["other", "x"])
            fault = self.service.faults.add("stall", "d/x.b2frame")
            readers = [subprocess.Popen(["cat", mount / "x"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                       for _ in range(20)]
            wait_for(lambda: fault.met > 0, what="the readers to wait")
            begin = time.monotonic()
            self.assertEqual(mounting.output("cat", mount / "other"), b"text\n" * 1000)
            self.assertLess(time.monotonic() - begin, PATIENCE)
            for reader in readers:
                reader.kill()  # all: no signal reaches those that wait in the kernel for the look-up of another
            for reader in readers:
                reader.wait(PATIENCE)


if __name__ == "__main__":
    mounting.main(hang_seconds=1500)
