"""HTTP/1.1 requests and answers of the servers in these tests: read, described and sent by hand, so that an answer can be
wrong in every way that it can be on a network."""

import dataclasses
import html
import select
import socket
import time
from urllib.parse import unquote

REASONS = {
    100: "Continue", 200: "OK", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found",
    304: "Not Modified", 307: "Temporary Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
    404: "Not Found", 405: "Method Not Allowed", 409: "Conflict", 411: "Length Required", 412: "Precondition Failed",
    416: "Range Not Satisfiable", 429: "Too Many Requests", 500: "Internal Server Error", 501: "Not Implemented",
    503: "Service Unavailable",
}
# What a bucket calls an error when the caller does not say.
CODES = {
    400: "InvalidRequest", 403: "AccessDenied", 404: "NoSuchKey", 405: "MethodNotAllowed", 411: "MissingContentLength",
    412: "PreconditionFailed", 416: "InvalidRange", 429: "TooManyRequests", 500: "InternalError", 501: "NotImplemented",
    503: "SlowDown",
}
MOST_LINE = 1 << 16
PIECE = 1 << 18


class BadRequest(Exception):
    """What a client has sent is no request."""


@dataclasses.dataclass
class Request:
    """A request, and once it has been answered what became of it: an entry of the log."""

    method: str
    target: str  # as the client spelled it
    headers: dict  # names in lower case
    body: bytes = b""
    begin: float = 0.0  # time.monotonic() when the request had arrived
    answered: float = None  # when the first byte of the answer was sent; None: never
    status: int = None
    sent: int = 0  # bytes of the body

    def __post_init__(self):
        self.received = self.headers  # which a fault does not change, for the signature
        path, _, query = self.target.partition("?")
        self.path = unquote(path, errors="surrogateescape")
        # Parameters as pairs: a plus sign is a plus sign.
        pairs = [pair.partition("=") for pair in query.split("&") if pair]
        self.query = {unquote(name): unquote(value) for name, _, value in pairs}
        area, _, self.name = self.path.lstrip("/").partition("/")
        self.area = area  # "web", or the bucket

    @property
    def is_web(self):
        return self.area == "web"

    @property
    def range(self):
        return self.headers.get("range")

    @property
    def is_listing(self):
        """Whether it asks what there is, not for an object."""
        return self.name.endswith("/") or not self.name


class FilePart:
    """A part of an open file, the body of an answer."""

    def __init__(self, file, begin, length):
        self.file, self.begin, self.length = file, begin, length

    def __len__(self):
        return self.length

    def content(self):
        self.file.seek(self.begin)
        return self.file.read(self.length)

    def pieces(self):
        with self.file:
            self.file.seek(self.begin)
            left = self.length
            while left > 0:
                piece = self.file.read(min(left, PIECE))
                if not piece:
                    return  # another program has cut the file
                left -= len(piece)
                yield piece


class Answer:
    """An answer. The fields after the body say how it is sent; only faults change them."""

    def __init__(self, status, headers=(), body=b""):
        self.status = status
        self.headers = [list(header) for header in headers]
        self.body = body  # bytes or FilePart
        self.declared = None  # the length that the header tells, if it is another
        self.cut_after = None  # bytes of the body, then the connection is closed
        self.stall_after = None  # bytes of the body, then nothing more is sent
        self.rate = None  # bytes a second
        self.is_chunked = False
        self.raw = None  # sent instead of all else; then the connection is closed

    def get(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def remove(self, name):
        self.headers = [header for header in self.headers if header[0].lower() != name.lower()]

    def set(self, name, value):
        self.remove(name)
        self.headers.append([name, value])

    def content(self):
        return self.body if isinstance(self.body, bytes) else self.body.content()

    def pieces(self):
        if not isinstance(self.body, bytes):
            yield from self.body.pieces()
            return
        for begin in range(0, len(self.body), PIECE):
            yield self.body[begin : begin + PIECE]

    def close(self):
        """Closes the file of a body that is not sent."""
        if isinstance(self.body, FilePart):
            self.body.file.close()

    def head(self):
        lines = [f"HTTP/1.1 {self.status} {REASONS.get(self.status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.is_chunked:
            lines.append("Transfer-Encoding: chunked")
        elif self.get("Content-Length") is None and self.status not in (204, 304):
            lines.append(f"Content-Length: {len(self.body) if self.declared is None else self.declared}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def error_answer(request, status, code=None, message="", headers=()):
    """An error as the server words it: XML from a bucket, a page from a web server."""
    code = code or CODES.get(status, "Error")
    if request.is_web:
        page = f"<html><body><h1>{status} {REASONS.get(status, '')}</h1>{html.escape(message)}</body></html>\n"
        return Answer(status, [("Content-Type", "text/html"), *headers], page.encode())
    text = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{html.escape(message)}</Message>'
            f"<Resource>{html.escape(request.path)}</Resource><RequestId>TEST</RequestId></Error>")
    return Answer(status, [("Content-Type", "application/xml"), ("x-amz-request-id", "TEST"), *headers],
                  text.encode("utf-8", "replace"))


def read_request(reader, connection):
    """The next request of a connection; None if there is none."""
    line = reader.readline(MOST_LINE)
    if not line:
        return None
    words = line.decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        raise BadRequest(line)
    headers = {}
    while True:
        line = reader.readline(MOST_LINE)
        if line in (b"\r\n", b"\n"):
            break
        name, colon, value = line.decode("utf-8", "surrogateescape").partition(":")
        if not colon or name != name.strip():
            raise BadRequest(line)
        key, value = name.lower(), value.strip()
        headers[key] = f"{headers[key]},{value}" if key in headers else value
    if words[2] == "HTTP/1.0":
        headers.setdefault("connection", "close")
    return Request(words[0], words[1], headers, read_body(headers, reader, connection), time.monotonic())


def read_body(headers, reader, connection):
    if headers.get("expect", "").lower() == "100-continue":
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    if headers.get("transfer-encoding", "").lower() != "chunked":
        length = int(headers.get("content-length", "0"))
        body = reader.read(length)
        if len(body) != length:
            raise BadRequest(b"the body is short")
        return body
    body = b""
    while True:
        length = int(reader.readline(MOST_LINE).split(b";")[0], 16)
        body += reader.read(length)
        reader.readline(MOST_LINE)
        if length == 0:
            return body


class Link:
    """What all connections share: the bytes that pass in a second."""

    def __init__(self, lock, rate=None):
        self.lock, self.rate = lock, rate
        self.free_at = 0.0

    def wait_for(self, count):
        if not self.rate:
            return
        with self.lock:
            now = time.monotonic()
            self.free_at = max(self.free_at, now) + count / self.rate
            wait = self.free_at - now
        time.sleep(wait)


def stall(connection, stopped):
    """Sends nothing, until the client has closed the connection or the service ends."""
    while not stopped.is_set():
        if not select.select([connection], [], [], 0.05)[0]:
            continue
        try:
            if type(connection) is not socket.socket or not connection.recv(1, socket.MSG_PEEK):
                return
        except OSError:
            return
        stopped.wait(0.05)


def send(answer, request, connection, link, stopped):
    """Sends an answer; returns whether the connection can carry another one."""
    request.answered = time.monotonic()
    request.status = answer.status
    if answer.raw is not None:
        connection.sendall(answer.raw)
        return False
    out = answer.head()
    if request.method == "HEAD" or answer.status in (204, 304):
        answer.close()
        connection.sendall(out)
        return True
    ends = [end for end in (answer.cut_after, answer.stall_after) if end is not None]
    left = min(ends) if ends else len(answer.body)
    for piece in answer.pieces():
        piece = piece[:left]
        left -= len(piece)
        for part in ([piece] if not answer.rate else [piece[at : at + 1] for at in range(len(piece))]):
            link.wait_for(len(part))
            if answer.rate and stopped.wait(1 / answer.rate):
                return False
            out += b"%x\r\n%s\r\n" % (len(part), part) if answer.is_chunked and part else part
            connection.sendall(out)
            request.sent += len(part)
            out = b""
        if left <= 0:
            break
    if answer.is_chunked and not ends:
        out += b"0\r\n\r\n"
    connection.sendall(out)
    if answer.stall_after is not None:
        stall(connection, stopped)
    is_whole = not ends and answer.declared is None and request.sent == len(answer.body)
    return is_whole and request.headers.get("connection", "").lower() != "close"
