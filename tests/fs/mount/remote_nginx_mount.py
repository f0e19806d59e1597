"""What nginx serves, over HTTP/1.1 and HTTP/2: a server that is not ours. Which golden files are compared is as in
remote_mount.py."""

import os
import re
import shutil
import sys
import tempfile
import threading
import urllib.parse

import mounting
from mounting import pread, wait_for
# First of the two: it says where the other one is.
from remote_sources import ComparedWithDisk, MIB, Remote, is_error, noise, outcome, whole
from nginx_server import Nginx, most_at_once, program
from object_service import make_certificate

USER, PASSWORD = "reader", "pass word/of@nginx"
GEOMETRY = ("--codec", "lz4", "--filter", "none", "--chunksize", "512K")


class ByNginx(Remote):
    """An nginx that serves a directory, and mounts of it. `shown`: the directory, if it is not `data`; `more`: lines of the
    configuration."""

    shown = None
    more = ""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        directory = tempfile.TemporaryDirectory(prefix="cframefs-certificate-")
        cls.addClassCleanup(directory.cleanup)
        cls.certificate = directory.name + "/pem"
        make_certificate(cls.certificate)

    def setUp(self):
        super().setUp()
        self.data = self.work + "/data"
        os.mkdir(self.data)
        os.mkdir(self.work + "/nginx")
        self.nginx = Nginx(self.work + "/nginx", self.shown or self.data, certificate=self.certificate, more=self.more)
        self.nginx.start()
        self.addCleanup(self.nginx.stop)

    def put(self, name, content):
        """Replaces it as programs do: under another name, then renamed."""
        path = os.path.join(self.data, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(self.work + "/unfinished", "wb") as file:
            file.write(content)
        os.rename(self.work + "/unfinished", path)
        return path

    def put_frame(self, name, content):
        self.put(name, self.packed(content, *GEOMETRY))
        return content

    def address(self, path="", scheme="http", kind="html"):
        return self.nginx.url(f"{kind}/" + urllib.parse.quote(path), scheme)

    def addresses(self, path=""):
        return self.address(path), self.address(path, "https", "json")

    def all_options(self, address, options):
        trusted = ("ca_file=" + self.certificate,) if address.startswith("https:") else ()
        return (*trusted, *super().all_options(address, options))

    def answered(self):
        """All requests of mounts that have ended."""
        self.nginx.stop()
        return self.nginx.requests


class Golden(ComparedWithDisk, ByNginx):
    """The golden corpora."""

    def setUp(self):
        self.shown = mounting.GOLDEN
        super().setUp()

    def check_protocol(self, expected):
        requests = self.answered()
        self.assertGreater(len(requests), 80)
        self.assertEqual({request["server_protocol"] for request in requests}, {expected})

    def test_http(self):
        # semantics: P12
        self.check(self.address())
        self.check_protocol("HTTP/1.1")

    def test_https(self):
        self.check(self.address(scheme="https", kind="json"))
        self.check_protocol("HTTP/2.0")


class Reading(ByNginx):
    def setUp(self):
        super().setUp()
        self.content = self.put_frame("d/x.b2frame", noise(20, 12 * MIB))

    def check_at(self, path, at):
        self.assertTrue(pread(path, at, 4096) == self.content[at : at + 4096], at)

    def read_at_random(self, path, readers, reads):
        """The places where a reader saw other bytes or an error."""
        failures = []

        def read(seed):
            for number in range(reads):
                at = (seed * 7919 + number * 104_729) * 4096 % len(self.content)
                if outcome(pread, path, at, 4096) != self.content[at : at + 4096]:
                    failures.append(at)

        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(readers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return failures

    def test_many_readers_share_a_connection(self):
        """HTTP/2: requests of one connection are answered at the same time."""
        # Answers of 512 KiB that take a quarter of a second.
        self.nginx.configure("limit_rate 2m;")
        with self.mount(self.address("d/", "https"), "readahead=0") as mount:
            self.assertEqual(self.read_at_random(mount / "x", 32, 1), [])
        requests = self.answered()
        self.assertEqual({request["server_protocol"] for request in requests}, {"HTTP/2.0"})
        self.assertLessEqual(len({request["connection"] for request in requests}), 2)
        self.assertGreater(most_at_once(requests), 8)

    def test_many_objects_by_few_connections(self):
        names = [f"small-{number}" for number in range(300)]
        for name in names:
            self.put("small/" + name, name.encode())
        with self.mount(self.address("small/")) as mount:
            for name in names:
                self.assertEqual(whole(mount / name), name.encode())
        requests = self.answered()
        self.assertGreaterEqual(len(requests), len(names))
        self.assertLessEqual(len({request["connection"] for request in requests}), 64)

    def test_gzip(self):
        self.nginx.configure("gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any; gzip_http_version 1.0;")
        text = b"".join(b"line %d\n" % number for number in range(20_000))
        self.put("d/plain.txt", text)
        for address in self.addresses("d/"):
            with self.subTest(address), self.mount(address) as mount:
                self.assertTrue(whole(mount / "plain.txt") == text)
                self.assertTrue(whole(mount / "x") == self.content)

    def test_a_slow_transfer(self):
        self.nginx.configure("limit_rate 1m;")
        small = self.put_frame("d/small.b2frame", noise(21, 3 * MIB // 2))
        for address in self.addresses("d/small.b2frame"):
            with self.subTest(address), self.mount(address) as mount:
                self.assertTrue(whole(mount / "small") == small)
        self.assertGreater(max(float(request["request_time"]) for request in self.answered()), 0.2)

    def test_ignored_ranges(self):
        self.nginx.configure("max_ranges 0;")
        small = self.put_frame("d/small.b2frame", noise(22, MIB // 2))
        for address in self.addresses("d/"):
            with self.subTest(address), self.mount(address) as mount:
                self.assertEqual(outcome(whole, mount / "x"), "error EOPNOTSUPP")
                self.assertTrue(whole(mount / "small") == small)
                wait_for(lambda: any("the server ignores ranges" in line for line in mount.all_lines()), what="the reason")

    def check_replaced(self, address, *, replacement):
        """It is replaced between open and read. Both have one length; nginx's tags tell them apart by the second."""
        path = self.put("d/y.b2frame", whole(self.data + "/d/x.b2frame"))
        os.utime(path, (1_500_000_000, 1_500_000_000))
        with self.mount(address, "readahead=0", "remote_ttl=0") as mount:
            with open(mount / "y", "rb", buffering=0) as file:
                self.assertTrue(os.pread(file.fileno(), 4096, 0) == self.content[:4096])
                os.utime(self.put("d/y.b2frame", replacement), (1_500_000_001, 1_500_000_001))
                self.assertEqual(outcome(os.pread, file.fileno(), 4096, 9 * MIB), "error ESTALE")
                self.assertEqual(outcome(os.pread, file.fileno(), 4096, 11 * MIB), "error ESTALE")
            self.assertTrue(whole(mount / "y") == self.other)

    def test_replaced_between_open_and_read(self):
        self.other = noise(23, len(self.content))
        replacement = self.packed(self.other, *GEOMETRY)
        for more in ("", "etag off;"):
            self.nginx.configure(more)
            for address in self.addresses("d/"):
                with self.subTest(address, more=more):
                    self.check_replaced(address, replacement=replacement)
        # By the conditions of the requests, not by what the answers say.
        self.assertIn("412", {request["status"] for request in self.answered()})

    def test_restarted_while_mounted(self):
        for address in self.addresses("d/"):
            with self.subTest(address), self.mount(address, "readahead=0") as mount:
                self.check_at(mount / "x", 0)
                self.nginx.stop()
                failures = []
                reader = threading.Thread(target=lambda: failures.extend(self.read_at_random(mount / "x", 4, 3)))
                reader.start()
                # The readers' connections are refused meanwhile.
                reader.join(0.1)
                self.assertTrue(reader.is_alive())
                self.nginx.start()
                reader.join()
                self.assertEqual(failures, [])
                self.check_at(mount / "x", 7 * MIB)

    def test_stopped_longer_than_readers_wait(self):
        for address in self.addresses("d/"):
            with self.subTest(address), self.mount(address, "readahead=0", "remote_timeout=1") as mount:
                self.check_at(mount / "x", 0)
                self.nginx.stop()
                self.assertTrue(is_error(outcome(pread, mount / "x", 7 * MIB, 4096)))
                self.nginx.start()
                self.check_at(mount / "x", 7 * MIB)

    def test_configured_anew_while_it_is_read(self):
        """Workers end and close their connections in order (GOAWAY): no reader notices."""
        names = [f"copy-{number}" for number in range(5)]
        for name in names:
            self.put(f"copies/{name}.b2frame", whole(self.data + "/d/x.b2frame"))
        for address in self.addresses("copies/"):
            with self.subTest(address), self.mount(address, "readahead=0") as mount:
                failures = []
                for name in names:
                    workers = self.nginx.workers()
                    reader = threading.Thread(target=lambda: failures.extend(self.read_at_random(mount / name, 8, 5)))
                    reader.start()
                    self.nginx.reload()
                    reader.join()
                    # So that new ones serve the next file.
                    wait_for(lambda: not workers & self.nginx.workers(), what="new workers")  # pylint: disable=W0640
                self.assertEqual(failures, [])
                self.assertGreater(len({request["pid"] for request in self.nginx.requests}), 2)


class Listing(ByNginx):
    def test_ten_thousand_objects(self):
        for number in range(10_000):
            self.put(f"d/object-{number:05}", b"x" * (number % 100))
        with self.mount(self.address("d/", kind="json")) as mount:
            names = os.listdir(mount.path)
            self.assertEqual(sorted(names), [f"object-{number:05}" for number in range(10_000)])
            for number in range(0, 10_000, 101):
                self.assertEqual(os.stat(mount / f"object-{number:05}").st_size, number % 100)
            self.assertEqual(outcome(os.stat, mount / "absent"), "error ENOENT")
        listings = [request for request in self.answered() if request["uri"] == "/json/d/"]
        self.assertEqual([request["status"] for request in listings], ["200"])

    def test_an_index(self):
        contents = {f"d/{name}.b2frame": noise(number, 50_000) for number, name in enumerate(("x", "y y", "deep/z"))}
        for name, content in contents.items():
            self.put_frame(name, content)
        self.put("d/plain", b"plain\n")
        ran = mounting.run(mounting.CFRAME, "index", "-o", self.data + "/d/.cframefs-index", self.address("d/"))
        self.assertEqual((ran.returncode, ran.stderr), (0, b""))
        for number, address in enumerate(self.addresses("d/")):
            for _ in range(2):
                with self.subTest(address), self.mount(address, f"cache_dir={self.work}/cache-{number}") as mount:
                    self.assertEqual(sorted(os.listdir(mount.path)), ["deep", "plain", "x", "y y"])
                    for name, content in contents.items():
                        self.assertTrue(whole(mount / name[2:].removesuffix(".b2frame")) == content, name)
        asked = [request["status"] for request in self.answered() if request["uri"].endswith("/.cframefs-index")]
        self.assertEqual([status for status in asked if status != "404"], 2 * ["200", "304"])

    def test_names(self):
        names = ["with space", "per%cent", "per%41cent", "plus+", "amp&lt;", "<tag>", 'quo"te', "apos'", "ha#sh", "que?ry",
                 "semi;colon", "co:lon", "back\\slash", "ümlaut", "日本", "e\u0301", "-dash", "~", "*", "a" * 255, "line\nfeed"]
        for name in names:
            self.put("d/" + name, name.encode())
            self.put(f"d/sub {name[:200]}/{name}", b"below")
        for kind in ("html", "json"):
            with self.subTest(kind), self.mount(self.address("d/", kind=kind)) as mount:
                self.assertEqual(sorted(os.listdir(mount.path)), sorted(names + ["sub " + name[:200] for name in names]))
                for name in names:
                    self.assertEqual(outcome(whole, mount / name), name.encode())
                    self.assertEqual(outcome(whole, mount / f"sub {name[:200]}/{name}"), b"below")


class Rights(ByNginx):
    def setUp(self):
        super().setUp()
        self.content = self.put_frame("d/x.b2frame", noise(24, 3 * MIB))

    def ask_for_password(self):
        with open(self.work + "/passwords", "w", encoding="ascii") as file:
            file.write(f"{USER}:{{PLAIN}}{PASSWORD}\n")
        self.nginx.configure(f'auth_basic "test"; auth_basic_user_file "{self.work}/passwords";')

    def check_denied(self, address):
        listed, said = self.refused(address)
        if listed is None:
            self.assertIn("Permission denied", said)
        else:
            self.assertEqual(listed, "error EACCES")
        self.assertIn("401", said)

    def test_a_password_of_netrc(self):
        self.ask_for_password()
        for address in self.addresses("d/"):
            self.check_denied(address)
        with open(self.home + "/.netrc", "w", encoding="ascii") as file:
            file.write(f'machine 127.0.0.1\nlogin {USER}\npassword "{PASSWORD}"\n')
        os.chmod(self.home + "/.netrc", 0o600)
        for address in self.addresses("d/"):
            with self.subTest(address), self.mount(address) as mount:
                self.assertTrue(whole(mount / "x") == self.content)

    def test_a_password_of_the_address(self):
        self.ask_for_password()
        quoted = urllib.parse.quote(PASSWORD, safe="")
        for address in self.addresses("d/"):
            with self.subTest(address):
                with self.mount(address.replace("://", f"://{USER}:{quoted}@")) as mount:
                    self.assertTrue(whole(mount / "x") == self.content)
                self.check_denied(address.replace("://", f"://{USER}:wrong@"))

    def test_a_certificate_that_nobody_vouches_for(self):
        stranger = self.work + "/stranger"
        make_certificate(stranger)
        address = self.address("d/x.b2frame", "https")
        for options in (("ca_file=" + stranger,), ("ca_file=/etc/ssl/certs/ca-certificates.crt",)):
            with self.subTest(options):
                # The time of an attempt does not matter: what ends the request is the number of handshakes.
                listed, said = self.refused(address, *options)
                self.assertIn(listed, (None, "error EPROTO"))
                self.assertIn(os.strerror(71), said)
                self.assertIn("after 3 attempts", said)
                self.assertTrue(re.search("(?i)certificate", said), said)
        self.assertEqual(self.answered(), [])


if __name__ == "__main__":
    for name, found in (("nginx", program()), ("openssl", shutil.which("openssl"))):
        if found is None:
            sys.stderr.write(f"skipped: {name} is not installed\n")
            sys.exit(mounting.SKIPPED)
    mounting.main(hang_seconds=300)
