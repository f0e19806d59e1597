#!/usr/bin/python3
"""A web server and a service of buckets (S3) for tests, on 127.0.0.1, with every fault on demand (service_faults.py).

    with ObjectService(DIRECTORY, keys={"AKID": Key("secret")}) as service:
        service.put("dir/x.b2frame", content)
        service.url("/web/dir/x.b2frame")     # the web server shows the objects below /web/
        service.url("/bucket/dir/x.b2frame")  # and the bucket `bucket` has the same
        service.faults.add("status", "dir/*", count=1, code=503)
        service.log[-1].status                # every request (service_messages.Request)

As a program it prints the port and serves until its standard input ends:

    object_service.py [--port N] [--latency SECONDS] [--rate BYTES] [--pages nginx|apache|json|none] [--key NAME:SECRET]
                      [--public] [DIRECTORY]

It serves HTTP/1.1 with connections that stay open, a thread for each. Objects: stored_objects.py.
"""

import argparse
import socket
import ssl
import subprocess
import sys
import threading
import time
import traceback

from bucket_answers import Buckets
from object_answers import answer_directory, answer_object, http_date
from service_faults import Closed, Faults
from service_messages import Answer, BadRequest, Link, error_answer, read_request, send
from sigv4_check import Key
from stored_objects import StoredObjects


def round_trips(requests, until=None):
    """How many times requests waited for each other: the longest chain in which each began after the answer to the one
    before. `until`: time.monotonic() after which answers do not count."""
    chain, end = 0, 0.0
    answered = [request for request in requests if request.answered and (until is None or request.answered <= until)]
    for request in sorted(answered, key=lambda request: request.answered):
        if request.begin >= end:
            chain, end = chain + 1, request.answered
    return chain


def most_at_once(requests):
    """The largest number of requests that waited for their answers at the same time."""
    changes = sorted(change for request in requests if request.answered
                     for change in ((request.begin, 1), (request.answered, -1)))
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def make_certificate(path):
    """Writes a PEM file with a key and a certificate for 127.0.0.1 that it signs itself. Needs openssl."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path + ".key", "-out", path], check=True,
                   capture_output=True)
    with open(path, "a", encoding="ascii") as file, open(path + ".key", encoding="ascii") as key:
        file.write(key.read())


class ObjectService:
    """Serves between start() and stop(); a context manager does both. After stop() it can start again, on the same port.

    `latency`: seconds before each answer; `rate`: bytes a second that all connections share; `pages`: how the web server
    lists directories (object_answers.PAGES; None: not at all); `web_token`: what a bearer must have, as a web server's
    `Authorization`; `web_user`: "user:password" in base64, for the same; `certificate`: a PEM file with key and
    certificate, for TLS; `clock`: seconds that the server's clock is ahead. These may change while it serves.
    `before`: a function that is called with each request before it is answered.
    """

    def __init__(self, directory=None, *, keys=None, is_public=False, region="us-east-1", is_versioned=False, pages="nginx",
                 latency=0.0, rate=None, certificate=None):
        self.objects = StoredObjects(directory, is_versioned)
        self.buckets = Buckets(self.objects, keys=keys, is_public=is_public, region=region)
        self.faults = Faults()
        self.pages, self.latency, self.certificate = pages, latency, certificate
        self.web_token = self.web_user = self.before = None
        self.clock = 0
        self.lock = threading.Lock()
        self.link = Link(self.lock, rate)
        self.port = 0
        self.requests = []
        self.connections = set()
        self.opened = 0  # connections since the beginning
        self.listener = self.stopped = self.acceptor = None

    def start(self):
        if self.listener is not None:
            return self
        self.stopped = threading.Event()
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(512)
        self.port = self.listener.getsockname()[1]
        self.acceptor = threading.Thread(target=self.accept, args=(self.listener, self.stopped), daemon=True)
        self.acceptor.start()
        return self

    def stop(self):
        """Closes all connections; later ones are refused."""
        if self.listener is None:
            return
        self.stopped.set()
        # Wakes the thread that waits in accept().
        self.listener.shutdown(socket.SHUT_RDWR)
        self.acceptor.join()
        self.listener.close()
        self.listener = None
        self.cut_connections()

    def cut_connections(self):
        with self.lock:
            connections = list(self.connections)
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def url(self, path=""):
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}{path}"

    def put(self, name, content, modified=None):
        return self.objects.put(name, content, modified)

    def delete(self, name):
        self.objects.delete(name)

    @property
    def keys(self):
        return self.buckets.keys

    @property
    def log(self):
        """The requests so far, in the order in which they came."""
        with self.lock:
            return list(self.requests)

    def clear_log(self):
        with self.lock:
            self.requests = []

    def accept(self, listener, stopped):
        while not stopped.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection, stopped), daemon=True).start()

    def serve(self, connection, stopped):
        """Answers the requests of one connection."""
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.certificate:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(self.certificate)
                connection = context.wrap_socket(connection, server_side=True)
            with self.lock:
                self.connections.add(connection)
                self.opened += 1
            with connection.makefile("rb") as reader:
                while not stopped.is_set():
                    request = read_request(reader, connection)
                    if request is None or not self.handle(request, connection, stopped):
                        break
        except BadRequest:
            self.say(connection, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        except (OSError, Closed):
            pass
        finally:
            with self.lock:
                self.connections.discard(connection)
            # Not close() alone: a child process of the test may have the socket, too.
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()

    @staticmethod
    def say(connection, data):
        try:
            connection.sendall(data)
        except OSError:
            pass

    def handle(self, request, connection, stopped):
        """Answers one request; returns whether the connection can carry another one."""
        with self.lock:
            self.requests.append(request)
        faults = self.faults.of(request)
        if self.latency:
            stopped.wait(self.latency)
        if self.before:
            self.before(request)
        answer = None
        for fault in faults:
            answer = fault.before(request, connection, stopped) or answer
        if answer is None:
            answer = self.answer(request)
        answer.set("Date", http_date(time.time() + self.clock))
        for fault in faults:
            fault.after(request, answer)
        return send(answer, request, connection, self.link, stopped)

    def answer(self, request):
        try:
            if request.is_web:
                return self.web_answer(request)
            return self.buckets.answer(request, time.time() + self.clock)
        except Exception:  # pylint: disable=broad-exception-caught
            traceback.print_exc()
            return error_answer(request, 500)

    def web_answer(self, request):
        wanted = [f"Bearer {self.web_token}"] * bool(self.web_token) + [f"Basic {self.web_user}"] * bool(self.web_user)
        if wanted and request.headers.get("authorization") not in wanted:
            return error_answer(request, 401, message="Not known.", headers=[("WWW-Authenticate", 'Basic realm="test"')])
        if request.method not in ("GET", "HEAD"):
            return error_answer(request, 405, headers=[("Allow", "GET, HEAD")])
        if request.is_listing and request.path.startswith("/web/"):
            entries = self.objects.entries(request.name)
            return error_answer(request, 404) if entries is None else answer_directory(request, entries, self.pages)
        stored = self.objects.find(request.name) if request.name else None
        if stored is not None:
            return answer_object(request, stored)
        if self.objects.entries(request.name + "/" if request.name else "") is not None:
            return Answer(301, [("Location", self.url(request.target.partition("?")[0] + "/"))])
        return error_answer(request, 404, message="There is no such page.")


def main():
    parser = argparse.ArgumentParser(description="A web server and a service of buckets for tests.")
    parser.add_argument("directory", nargs="?", help="what is served; nothing by default")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--rate", type=float, help="bytes a second")
    parser.add_argument("--pages", choices=("nginx", "apache", "json", "none"), default="nginx")
    parser.add_argument("--key", action="append", default=[], help="NAME:SECRET[:TOKEN]")
    parser.add_argument("--public", action="store_true", help="serve requests without a signature, too")
    given = parser.parse_args()
    keys = {name: Key(*rest) for name, *rest in (key.split(":", 2) for key in given.key)}
    service = ObjectService(given.directory, keys=keys, is_public=given.public, latency=given.latency, rate=given.rate,
                            pages=None if given.pages == "none" else given.pages)
    service.port = given.port
    with service:
        print(service.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
