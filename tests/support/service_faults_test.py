"""The faults of the server of the remote tests, one after the other, and how it ends and starts again."""

import gzip
import hashlib
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import object_service
from object_service_test import CONTENT, Service


class FaultsOnDemand(Service):
    """Each fault does what service_faults.py says, and is over once it has been taken away."""

    options = {"is_public": True}

    def setUp(self):
        super().setUp()
        self.service.put("x", CONTENT)
        self.addCleanup(self.check_that_it_is_over)

    def check_that_it_is_over(self):
        self.service.faults.clear()
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=5)
        connection.request("GET", "/web/x")
        self.assertEqual(connection.getresponse().read(), CONTENT)
        connection.close()

    def fault(self, kind, *place, **how):
        self.service.faults.clear()
        return self.service.faults.add(kind, *place, **how)

    def test_status_and_count(self):
        fault = self.fault("status", "x", code=503, retry_after=2, skip=1, count=1)
        self.assertEqual(self.ask("GET", "/bucket/x")[0], 200)
        self.assertEqual(self.ask("GET", "/web/y")[0], 404)
        answer = self.ask("GET", "/bucket/x")
        self.assertEqual((self.code(answer), answer[1]["Retry-After"]), ((503, "SlowDown"), "2"))
        self.assertEqual(self.ask("GET", "/bucket/x")[0], 200)
        self.assertEqual(fault.met, 1)
        for code in (429, 500, 403):
            self.fault("status", code=code)
            self.assertEqual(self.ask("GET", "/web/x")[0], code)

    def test_only_some_requests(self):
        self.fault("status", "*", method="GET", when=lambda request: request.range == "bytes=5-6", code=500)
        self.assertEqual(self.ask("GET", "/web/x", Range="bytes=5-6")[0], 500)
        self.assertEqual(self.ask("GET", "/web/x", Range="bytes=5-7")[0], 206)
        self.assertEqual(self.ask("HEAD", "/web/x", Range="bytes=5-6")[0], 206)

    def test_headers_that_lie(self):
        ranged = {"Range": "bytes=10-19"}
        size = len(CONTENT)
        for kind, how, name, value in (
            ("content_range", {"by": 3}, "Content-Range", f"bytes 13-22/{size}"),
            ("total", {"by": -5}, "Content-Range", f"bytes 10-19/{size - 5}"),
            ("no_content_range", {}, "Content-Range", None),
            ("no_etag", {}, "ETag", None),
            ("no_date", {}, "Last-Modified", None),
            ("weak_etag", {}, "ETag", f'W/"{hashlib.md5(CONTENT).hexdigest()}"'),
            ("header", {"name": "X-Own", "value": "text"}, "X-Own", "text"),
            ("chunked", {}, "Transfer-Encoding", "chunked"),
        ):
            self.fault(kind, **how)
            status, headers, body = self.ask("GET", "/web/x", **ranged)
            self.assertEqual((status, headers[name], body), (206, value, CONTENT[10:20]), kind)
        self.fault("etag")
        self.assertNotEqual(self.ask("GET", "/web/x")[1]["ETag"], self.ask("GET", "/web/x")[1]["ETag"])

    def test_other_parts(self):
        self.fault("ignore_range")
        self.assertEqual(self.ask("GET", "/web/x", Range="bytes=10-19")[::2], (200, CONTENT))
        self.fault("wrong_suffix")
        status, headers, body = self.ask("GET", "/web/x", Range="bytes=-9")
        self.assertEqual((status, headers["Content-Range"], body), (206, f"bytes 0-9/{len(CONTENT)}", CONTENT[:10]))
        self.fault("gzip")
        _, headers, body = self.ask("GET", "/web/x", Range="bytes=10-19")
        self.assertEqual((headers["Content-Encoding"], gzip.decompress(body)), ("gzip", CONTENT[10:20]))
        self.fault("body", content=b"other")
        self.assertEqual(self.ask("GET", "/web/x")[2], b"other")

    def test_redirects(self):
        self.fault("redirect", "x")
        self.assertEqual(self.ask("GET", "/web/x?q")[1]["Location"], "/web/x?q")
        self.fault("redirect", "moved", to=self.service.url("/web/x"), code=307)
        status, headers, _ = self.ask("GET", "/web/moved")
        self.assertEqual((status, headers["Location"]), (307, self.service.url("/web/x")))

    def test_bodies_that_end_early_or_late(self):
        for kind, how, length, ends in (("cut", {"after": 100}, 100, True), ("cut", {"after": 0}, 0, True),
                                        ("stall", {"after": 100}, 100, None), ("length", {"by": 50}, len(CONTENT), True),
                                        ("length", {"by": -50}, len(CONTENT), True)):
            self.fault(kind, **how)
            data, ended = self.raw("/web/x", 0.3)
            head, _, body = data.partition(b"\r\n\r\n")
            self.assertEqual((body, ended), (CONTENT[:length], ends), kind)
            told = len(CONTENT) + how.get("by", 0)
            self.assertIn(b"Content-Length: %d\r\n" % told, head + b"\r\n")

    def test_no_answer(self):
        self.fault("close")
        self.assertEqual(self.raw("/web/x"), (b"", True))
        self.fault("stall")
        self.assertEqual(self.raw("/web/x", 0.2), (b"", None))
        self.fault("garbage")
        data, ended = self.raw("/web/x")
        self.assertTrue(ended and data and not data.startswith(b"HTTP"))
        self.fault("headers", size=200_000)
        self.assertGreater(len(self.raw("/web/x")[0].partition(b"\r\n\r\n")[0]), 200_000)

    def test_slow_answers(self):
        for kind, how in (("latency", {"seconds": 0.1}), ("trickle", {"rate": 100})):
            self.fault(kind, **how)
            begin = time.monotonic()
            self.assertEqual(self.ask("GET", "/web/x", Range="bytes=0-9")[2], CONTENT[:10])
            self.assertGreater(time.monotonic() - begin, 0.09, kind)

    def test_replaced_before_a_request(self):
        self.fault("call", skip=1, count=1, function=lambda request: self.service.put("x", b"new"))
        self.assertEqual([self.ask("GET", "/web/x")[2] for _ in range(3)], [CONTENT, b"new", b"new"])
        self.service.before = lambda request: self.service.put("x", CONTENT)
        self.assertEqual(self.ask("GET", "/web/x")[2], CONTENT)


class Life(Service):
    options = {"is_public": True}

    def test_it_stops_and_starts_again_at_the_same_port(self):
        self.service.put("x", CONTENT)
        self.assertEqual(self.ask("GET", "/web/x")[0], 200)
        fault = self.service.faults.add("stall", count=1)
        waiting = socket.create_connection(("127.0.0.1", self.service.port), 5)
        self.addCleanup(waiting.close)
        waiting.sendall(b"GET /web/x HTTP/1.1\r\n\r\n")
        while not fault.met:
            time.sleep(0.001)
        port = self.service.port
        self.service.stop()
        self.assertEqual(waiting.recv(1), b"")
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 5)
        self.service.start()
        self.connection.close()
        self.assertEqual((self.ask("GET", "/web/x")[2], self.service.port), (CONTENT, port))

    def test_the_link_is_shared(self):
        self.service.link.rate = 200_000
        self.service.put("x", bytes(20_000))
        begin = time.monotonic()
        threads = [threading.Thread(target=self.raw, args=("/web/x",)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertGreater(time.monotonic() - begin, 0.18)

    def test_as_a_program(self):
        program = [sys.executable, object_service.__file__, "--public", "--pages", "json", os.path.dirname(__file__) or "."]
        with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
            connection = http.client.HTTPConnection("127.0.0.1", int(running.stdout.readline()), timeout=5)
            connection.request("GET", "/web/")
            names = [item["name"] for item in json.loads(connection.getresponse().read())]
            connection.close()
            running.stdin.close()
            self.assertEqual(running.wait(10), 0)
        self.assertIn("object_service.py", names)

    @unittest.skipUnless(shutil.which("openssl"), "needs openssl")
    def test_tls(self):
        with tempfile.TemporaryDirectory() as directory:
            object_service.make_certificate(directory + "/pem")
            with object_service.ObjectService(certificate=directory + "/pem") as service:
                service.put("x", CONTENT)
                connection = http.client.HTTPSConnection("127.0.0.1", service.port, timeout=5,
                                                         context=ssl.create_default_context(cafile=directory + "/pem"))
                connection.request("GET", "/web/x")
                self.assertEqual(connection.getresponse().read(), CONTENT)
                connection.close()
                stranger = http.client.HTTPSConnection("127.0.0.1", service.port, timeout=5,
                                                       context=ssl.create_default_context())
                with self.assertRaises(ssl.SSLCertVerificationError):
                    stranger.request("GET", "/web/x")


if __name__ == "__main__":
    unittest.main()
