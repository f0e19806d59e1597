"""Faults of an ObjectService on demand: what it does wrong, for which objects, and how many times.

    service.faults.add("status", "dir/x.b2frame", count=2, code=503, retry_after=1)

A pattern is that of fnmatch for the name of the object; the root of a listing has the name "". The kinds:

| kind | arguments | what happens |
|---|---|---|
| latency | seconds | the answer comes later |
| call | function | the function is called with the request, before it is answered |
| status | code, name, retry_after, message | this status instead; `name` is the code in a bucket's XML |
| redirect | to, code | another place; without `to` the same again, a loop |
| close | | the connection is closed instead of an answer |
| garbage | | what comes is no status line |
| headers | size | a header of this many bytes |
| stall | after | nothing more is sent after this many bytes of the body; None: no answer at all |
| lost | | the request does its work, and the connection is closed instead of an answer |
| cut | after | the connection is closed after this many bytes of the body |
| trickle | rate | the body comes byte by byte, this many a second |
| length | by | Content-Length is wrong by this |
| content_range | by | begin and end in Content-Range are wrong by this |
| total | by | the total in Content-Range is wrong by this |
| no_content_range | | 206 without Content-Range |
| ignore_range | | 200 and the whole object |
| wrong_suffix | | the first N + 1 bytes for `bytes=-N`, as s3rver answers |
| gzip | | Content-Encoding: gzip |
| chunked | | Transfer-Encoding: chunked, which is no fault |
| weak_etag, no_etag, no_date | | ETag and Last-Modified are weak or missing |
| etag | | another ETag in each answer |
| header | name, value | the answer has this header |
| body | content | the body is this |
"""

import fnmatch
import gzip
import threading
import time

from service_messages import Answer, error_answer, stall

GARBAGE = b"\x00\xffwhat is this\r\nContent-Length: 4\r\n\r\nbody"


class Closed(Exception):
    """The connection is closed without an answer."""


class Fault:
    """One fault. `met`: how many requests it has met."""

    def __init__(self, kind, pattern, count, skip, method, when, how):
        if kind not in BEFORE and kind not in AFTER:
            raise ValueError(f"there is no fault {kind}")
        self.kind, self.pattern, self.count, self.skip = kind, pattern, count, skip
        self.method, self.when, self.how = method, when, how
        self.met = 0

    def takes(self, request):
        """Whether it is for this request, which it then counts."""
        if self.count == 0 or (self.method and request.method != self.method):
            return False
        if not fnmatch.fnmatchcase(request.name, self.pattern) or (self.when and not self.when(request)):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.count is not None:
            self.count -= 1
        self.met += 1
        return True

    def before(self, request, connection, stopped):
        """What happens before the answer; an answer that takes the place of the right one, or None."""
        if self.kind == "stall" and self.how.get("after") is None:
            stall(connection, stopped)
            raise Closed
        return BEFORE[self.kind](request, **self.how) if self.kind in BEFORE else None

    def after(self, request, answer):
        if self.kind in AFTER and answer.raw is None:
            AFTER[self.kind](request, answer, **self.how)


class Faults:
    """The faults of a service, in the order in which they were added."""

    def __init__(self):
        self.lock = threading.Lock()
        self.faults = []

    def add(self, kind, pattern="*", count=None, skip=0, method=None, when=None, **how):
        """`count`: how many requests it is for (None: all), after the first `skip`; `when`: a condition on the request."""
        fault = Fault(kind, pattern, count, skip, method, when, how)
        with self.lock:
            self.faults.append(fault)
        return fault

    def clear(self):
        with self.lock:
            self.faults = []

    def of(self, request):
        with self.lock:
            return [fault for fault in self.faults if fault.takes(request)]


def before_latency(_request, seconds):
    time.sleep(seconds)


def before_call(request, function):
    function(request)


def before_status(request, code, name=None, retry_after=None, message="asked for by the test"):
    headers = [] if retry_after is None else [("Retry-After", str(retry_after))]
    return error_answer(request, code, name, message, headers)


def before_redirect(request, to=None, code=302):
    return Answer(code, [("Location", to or request.target)])


def before_close(_request):
    raise Closed


def before_garbage(_request):
    answer = Answer(0)
    answer.raw = GARBAGE
    return answer


def before_ignore_range(request):
    request.headers = {name: value for name, value in request.headers.items() if name != "range"}


def before_wrong_suffix(request):
    asked = request.headers.get("range", "")
    if asked.startswith("bytes=-"):
        request.headers = {**request.headers, "range": "bytes=0-" + asked.removeprefix("bytes=-")}


def after_headers(_request, answer, size=1 << 20):
    answer.set("X-Long", "x" * size)


def after_stall(_request, answer, after):
    answer.stall_after = after


def after_lost(_request, answer):
    answer.close()
    answer.raw = b""


def after_cut(_request, answer, after):
    answer.cut_after = after


def after_trickle(_request, answer, rate):
    answer.rate = rate


def after_length(_request, answer, by):
    if len(answer.body) + by >= 0:
        answer.declared = len(answer.body) + by


def told_range(answer):
    """(begin, end, total) of Content-Range; None if there is none."""
    told = answer.get("Content-Range")
    if not told or "*" in told:
        return None
    part, _, total = told.removeprefix("bytes ").partition("/")
    begin, _, end = part.partition("-")
    return int(begin), int(end), int(total)


def after_content_range(_request, answer, by):
    told = told_range(answer)
    if told:
        answer.set("Content-Range", f"bytes {max(0, told[0] + by)}-{max(0, told[1] + by)}/{told[2]}")


def after_total(_request, answer, by):
    told = told_range(answer)
    if told:
        answer.set("Content-Range", f"bytes {told[0]}-{told[1]}/{max(1, told[2] + by)}")


def after_no_content_range(_request, answer):
    answer.remove("Content-Range")


def after_gzip(_request, answer):
    if answer.status in (200, 206):
        content = answer.content()
        answer.close()
        answer.body = gzip.compress(content, 1)
        answer.set("Content-Encoding", "gzip")


def after_chunked(_request, answer):
    answer.is_chunked = answer.status in (200, 206)


def after_weak_etag(_request, answer):
    tag = answer.get("ETag")
    if tag:
        answer.set("ETag", "W/" + tag)


def after_no_etag(_request, answer):
    answer.remove("ETag")


def after_no_date(_request, answer):
    answer.remove("Last-Modified")


def after_etag(_request, answer):
    if answer.get("ETag"):
        answer.set("ETag", f'"{time.monotonic_ns():x}"')


def after_header(_request, answer, name, value):
    answer.set(name, value)


def after_body(_request, answer, content):
    answer.close()
    answer.body = content


def named(prefix):
    return {name.removeprefix(prefix): function for name, function in globals().items() if name.startswith(prefix)}


BEFORE = named("before_")
AFTER = named("after_")
