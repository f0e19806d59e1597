"""The server of the remote tests does what the tests take for granted: asked with http.client and with signatures that
are made here, and with bytes by hand where an answer is no HTTP."""

import base64
import datetime
import hashlib
import hmac
import http.client
import json
import os
import re
import socket
import tempfile
import threading
import unittest
import xml.etree.ElementTree
from urllib.parse import quote, unquote_plus

import service_messages
import sigv4_check
from object_service import ObjectService, most_at_once, round_trips
from sigv4_check import Key

CONTENT = bytes(range(256)) * 40
EMPTY = hashlib.sha256(b"").hexdigest()
SECRET = "the secret of the tests"


def signed(port, method, target, body=b"", headers=None, secret=SECRET, token=None, date=None, **changed):
    """The headers of a request to the bucket, with a signature. `target`: canonical already, the query sorted."""
    when = date or datetime.datetime.now(datetime.timezone.utc)
    stamp, day = when.strftime("%Y%m%dT%H%M%SZ"), when.strftime("%Y%m%d")
    all_headers = {"host": f"127.0.0.1:{port}", "x-amz-content-sha256": hashlib.sha256(body).hexdigest(), "x-amz-date": stamp}
    all_headers.update({"x-amz-security-token": token} if token else {})
    all_headers.update({name.lower(): value for name, value in (headers or {}).items()})
    all_headers.update({name.replace("_", "-"): value for name, value in changed.items()})
    path, _, query = target.partition("?")
    names = sorted(all_headers)
    canonical = "\n".join([method, path, query, *(f"{name}:{all_headers[name]}" for name in names), "", ";".join(names),
                           all_headers["x-amz-content-sha256"]])
    scope = f"{day}/us-east-1/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = b"AWS4" + secret.encode()
    for part in (day, "us-east-1", "s3", "aws4_request", text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return {**all_headers, "Authorization": f"AWS4-HMAC-SHA256 Credential=AKID/{scope}, SignedHeaders={';'.join(names)}, "
                                            f"Signature={key.hex()}"}


class Service(unittest.TestCase):
    options = {}

    def setUp(self):
        self.service = ObjectService(**self.options)
        self.service.start()
        self.addCleanup(self.service.stop)
        self.connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=10)
        self.addCleanup(self.connection.close)

    def ask(self, method, target, body=None, **headers):
        """(status, headers, body); underscores in names are hyphens."""
        self.connection.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = self.connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def ask_signed(self, method, target, body=b"", **how):
        self.connection.request(method, target, body, signed(self.service.port, method, target, body, **how))
        answer = self.connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def code(self, answer):
        return answer[0], xml.etree.ElementTree.fromstring(answer[2]).findtext("Code")

    def raw(self, target, seconds=5, headers=""):
        """All bytes of the answer until the connection is closed; None in the end if it is not."""
        with socket.create_connection(("127.0.0.1", self.service.port), seconds) as connection:
            connection.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n".encode())
            data = b""
            try:
                while piece := connection.recv(1 << 16):
                    data += piece
            except TimeoutError:
                return data, None
            except ConnectionResetError:
                pass
            return data, True


class Reading(Service):
    options = {"is_public": True}

    def setUp(self):
        super().setUp()
        self.service.put("d/x", CONTENT, modified=1_000_000_000)

    def test_ranges(self):
        size = len(CONTENT)
        for asked, begin, end in (("0-0", 0, 1), ("5-99", 5, 100), ("100-", 100, size), ("-7", size - 7, size),
                                  ("-99999999", 0, size), (f"{size - 1}-{size + 50}", size - 1, size)):
            for target in ("/web/d/x", "/bucket/d/x"):
                status, headers, body = self.ask("GET", target, Range="bytes=" + asked)
                self.assertEqual((status, body), (206, CONTENT[begin:end]), asked)
                self.assertEqual(headers["Content-Range"], f"bytes {begin}-{end - 1}/{size}")
        for asked in (f"{size}-", "-0"):
            status, headers, _ = self.ask("GET", "/bucket/d/x", Range="bytes=" + asked)
            self.assertEqual((status, headers["Content-Range"]), (416, f"bytes */{size}"))
        for asked in ("0-1,4-5", "5-3", "x"):
            self.assertEqual(self.ask("GET", "/web/d/x", Range="bytes=" + asked)[0], 200)

    def test_head_has_the_headers_alone(self):
        status, headers, body = self.ask("HEAD", "/web/d/x")
        self.assertEqual((status, headers["Content-Length"], body), (200, str(len(CONTENT)), b""))
        self.assertEqual(headers["Last-Modified"], "Sun, 09 Sep 2001 01:46:40 GMT")
        self.assertEqual(self.ask("GET", "/web/d/x")[2], CONTENT)  # the connection is in order
        self.assertEqual(self.service.opened, 1)

    def test_conditions(self):
        tag = '"' + hashlib.md5(CONTENT).hexdigest() + '"'
        before, after = "Sun, 09 Sep 2001 01:46:39 GMT", "Sun, 09 Sep 2001 01:46:40 GMT"
        for headers, status in (({"If-Match": tag}, 206), ({"If-Match": '"other"'}, 412), ({"If-Match": "W/" + tag}, 412),
                                ({"If-Match": '"a", ' + tag}, 206), ({"If-None-Match": tag}, 304), ({"If-None-Match": "W/" + tag}, 304),
                                ({"If-None-Match": '"other"'}, 206), ({"If-Unmodified-Since": after}, 206),
                                ({"If-Unmodified-Since": before}, 412), ({"If-Modified-Since": after}, 304),
                                ({"If-Match": tag, "If-Unmodified-Since": before}, 206)):
            for target in ("/web/d/x", "/bucket/d/x"):
                self.assertEqual(self.ask("GET", target, Range="bytes=0-9", **headers)[0], status, headers)

    def test_what_is_not_there(self):
        self.assertEqual(self.ask("GET", "/web/absent")[0], 404)
        self.assertEqual(self.code(self.ask("GET", "/bucket/absent")), (404, "NoSuchKey"))
        self.assertEqual(self.code(self.ask("GET", "/other/x")), (404, "NoSuchBucket"))
        self.assertEqual(self.ask("POST", "/web/d/x")[0], 405)
        status, headers, _ = self.ask("GET", "/web/d")
        self.assertEqual((status, headers["Location"]), (301, self.service.url("/web/d/")))
        self.service.delete("d/x")
        self.assertEqual(self.ask("GET", "/web/d/x")[0], 404)

    def test_what_is_no_http(self):
        for line in (b"nonsense\r\n\r\n", b"GET x HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", self.service.port), 5) as connection:
                connection.sendall(line)
                self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 400 "))

    def test_pages(self):
        names = ["a b", "per%cent", "amp&<q>.b2frame", "ü", "x" * 60, "plus+", "ha#sh", "que?ry"]
        for name in names:
            self.service.put("p/" + name, b"12345", modified=1_000_000_000)
        self.service.put("p/sub/deep/y", b"")
        for kind, sizes in (("nginx", r"(?m)5\r$"), ("apache", r"  5 <")):
            self.service.pages = kind
            status, headers, body = self.ask("GET", "/web/p/")
            self.assertEqual((status, headers["Content-Type"].split(";")[0]), (200, "text/html"))
            links = [quote(name) for name in names] + ["sub/"]
            found = [link for link in re.findall('href="([^"]*)"', body.decode()) if link[0] not in "?./"]
            self.assertEqual(sorted(found), sorted(links))
            self.assertEqual(len(re.findall(sizes, body.decode())), len(names))
        self.service.pages = "json"
        items = json.loads(self.ask("GET", "/web/p/")[2])
        self.assertEqual({item["name"]: item.get("size") for item in items}, {**{name: 5 for name in names}, "sub": None})
        self.service.pages = None
        self.assertEqual(self.ask("GET", "/web/p/")[0], 403)
        self.assertEqual(self.ask("GET", "/web/absent/")[0], 404)

    def test_who_may_read_the_web_server(self):
        self.service.web_token = "open sesame"
        self.service.web_user = base64.b64encode(b"me:password").decode()
        self.assertEqual(self.ask("GET", "/web/d/x")[0], 401)
        self.assertEqual(self.ask("GET", "/web/d/x", Authorization="Bearer open sesame")[0], 200)
        self.assertEqual(self.ask("GET", "/web/d/x", Authorization="Basic bWU6cGFzc3dvcmQ=")[0], 200)
        self.assertEqual(self.ask("GET", "/web/d/x", Authorization="Bearer other")[0], 401)

    def test_the_log_and_round_trips(self):
        self.service.latency = 0.05
        self.ask("GET", "/web/d/x", Range="bytes=0-9")

        def ask_beside():
            beside = http.client.HTTPConnection("127.0.0.1", self.service.port)
            beside.request("GET", "/web/d/x")
            beside.getresponse().read()
            beside.close()

        threads = [threading.Thread(target=ask_beside) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        log = self.service.log
        self.assertEqual([(entry.method, entry.path, entry.status) for entry in log[:1]], [("GET", "/web/d/x", 206)])
        self.assertEqual((log[0].range, log[0].sent), ("bytes=0-9", 10))
        self.assertEqual((round_trips(log), most_at_once(log)), (2, 3))
        self.assertEqual(round_trips(log, until=log[0].answered), 1)
        self.service.clear_log()
        self.assertEqual(self.service.log, [])


class OnDisk(Service):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="object-service-")
        self.addCleanup(work.cleanup)
        self.directory = work.name
        self.options = {"directory": work.name, "is_public": True}
        super().setUp()
        os.makedirs(work.name + "/d/empty")
        self.write(CONTENT)

    def write(self, content):
        with open(self.directory + "/new", "wb") as file:
            file.write(content)
        os.rename(self.directory + "/new", self.directory + "/d/x")

    def test_files_are_as_they_are_now(self):
        _, headers, body = self.ask("GET", "/web/d/x")
        self.assertEqual(body, CONTENT)
        for content in (CONTENT[::-1], b"short"):
            self.write(content)
            status, now, body = self.ask("GET", "/bucket/d/x")
            self.assertEqual(body, content)
            self.assertNotEqual(now["ETag"], headers["ETag"])
            self.assertEqual(self.ask("GET", "/web/d/x", If_Match=headers["ETag"])[0], 412)
        self.assertEqual(status, 200)

    def test_memory_hides_the_disk(self):
        self.service.put("d/x", b"memory")
        self.assertEqual(self.ask("GET", "/web/d/x")[2], b"memory")
        self.assertEqual(self.service.objects.names("d/"), ["d/x"])
        self.service.delete("d/x")
        self.assertEqual(self.ask("GET", "/web/d/x")[0], 404)
        self.assertEqual(self.service.objects.names(), [])
        self.assertEqual(self.service.objects.entries("d/"), [("empty", None)])
        self.assertTrue(os.path.exists(self.directory + "/d/x"))

    def test_nothing_outside_is_served(self):
        for target in ("/web/../object_service_test.py", "/web/%2e%2e/etc/passwd", "/bucket/d/../../x", "/web//etc/passwd", "/web/d%00"):
            self.assertEqual(self.ask("GET", target)[0], 404, target)


class Signatures(Service):
    options = {"keys": {"AKID": Key(SECRET)}}

    def test_the_published_examples(self):
        host = "examplebucket.s3.amazonaws.com"
        for target, headers, expected in (
            ("/test.txt", {"range": "bytes=0-9"}, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
            ("/?lifecycle", {}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
            ("/?max-keys=2&prefix=J", {}, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
        ):
            headers = {"host": host, "x-amz-content-sha256": EMPTY, "x-amz-date": "20130524T000000Z", **headers}
            canonical = sigv4_check.canonical_request(service_messages.Request("GET", target, headers), sorted(headers))
            self.assertEqual(sigv4_check.signature("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524T000000Z",
                                                   "20130524/us-east-1/s3/aws4_request", canonical), expected)

    def test_right_and_wrong(self):
        self.service.put("a b/ü+(1).x", CONTENT)
        target = "/bucket/" + quote("a b/ü+(1).x", safe="/-_.~")
        self.assertEqual(self.ask_signed("GET", target, headers={"Range": "bytes=0-9"})[2], CONTENT[:10])
        self.assertEqual(self.ask_signed("HEAD", target, x_amz_content_sha256="UNSIGNED-PAYLOAD")[0], 200)
        self.assertEqual(self.ask_signed("GET", "/bucket?list-type=2&prefix=a%20b%2F")[0], 200)
        now = datetime.datetime.now(datetime.timezone.utc)
        for expected, how in (
            ((403, "SignatureDoesNotMatch"), {"secret": "wrong"}),
            ((403, "RequestTimeTooSkewed"), {"date": now - datetime.timedelta(minutes=16)}),
            ((403, "RequestTimeTooSkewed"), {"date": now + datetime.timedelta(minutes=16)}),
            ((400, "InvalidToken"), {"token": "unknown"}),
            ((400, "XAmzContentSHA256Mismatch"), {"x_amz_content_sha256": hashlib.sha256(b"x").hexdigest()}),
        ):
            self.assertEqual(self.code(self.ask_signed("GET", target, **how)), expected, how)
        self.assertEqual(self.ask_signed("GET", target, date=now - datetime.timedelta(minutes=14))[0], 200)
        self.assertEqual(self.code(self.ask("GET", target)), (403, "AccessDenied"))
        self.assertEqual(self.code(self.ask("GET", target, Authorization="AWS4-HMAC-SHA256 nonsense")),
                         (400, "AuthorizationHeaderMalformed"))

    def test_what_is_not_signed_is_refused(self):
        headers = signed(self.service.port, "GET", "/bucket/x")
        self.connection.request("GET", "/bucket/x", headers={**headers, "x-amz-more": "not signed"})
        answer = self.connection.getresponse()
        self.assertEqual(answer.status, 403)
        self.assertIn(b"not signed", answer.read())
        self.connection.request("GET", "/bucket/y", headers=headers)
        self.assertIn(b"SignatureDoesNotMatch", self.connection.getresponse().read())

    def test_temporary_keys(self):
        self.service.keys["AKID"] = Key(SECRET, "the token")
        self.assertEqual(self.ask_signed("GET", "/bucket?list-type=2", token="the token")[0], 200)
        self.assertEqual(self.ask_signed("GET", "/bucket?list-type=2")[0], 403)
        self.service.keys["AKID"].is_expired = True
        self.assertEqual(self.code(self.ask_signed("GET", "/bucket?list-type=2", token="the token")), (400, "ExpiredToken"))
        del self.service.keys["AKID"]
        self.assertEqual(self.code(self.ask_signed("GET", "/bucket?list-type=2")), (403, "InvalidAccessKeyId"))


class Buckets(Service):
    options = {"is_public": True}

    def listed(self, **query):
        """(keys, common prefixes, token) of a page."""
        text = "&".join(f"{name.replace('_', '-')}={quote(value, safe='')}" for name, value in query.items())
        status, _, body = self.ask("GET", "/bucket?list-type=2&" + text)
        self.assertEqual(status, 200, body)
        root = xml.etree.ElementTree.fromstring(body)
        return ([key.text for key in root.findall("{*}Contents/{*}Key")],
                [prefix.text for prefix in root.findall("{*}CommonPrefixes/{*}Prefix")], root.findtext("{*}NextContinuationToken"))

    def test_listings_have_pages(self):
        for number in range(25):
            self.service.put(f"p/{number:02}", b"x")
            self.service.put(f"p/{number:02}/below", b"x")
        self.service.put("q", b"x")
        keys, prefixes, pages, more = [], [], 0, {}
        while pages == 0 or more:
            found = self.listed(prefix="p/", delimiter="/", max_keys="7", **more)
            self.assertLessEqual(len(found[0]) + len(found[1]), 7)
            more = {"continuation_token": found[2]} if found[2] else {}
            keys, prefixes, pages = keys + found[0], prefixes + found[1], pages + 1
        self.assertEqual(keys, [f"p/{number:02}" for number in range(25)])
        self.assertEqual(prefixes, [f"p/{number:02}/" for number in range(25)])
        self.assertEqual(pages, 8)
        self.assertEqual(self.listed(delimiter="/"), (["q"], ["p/"], None))
        self.assertEqual(len(self.listed(prefix="p/0")[0]), 20)
        self.assertEqual(self.listed(start_after="p/24/below")[0], ["q"])
        self.assertEqual(self.ask("GET", "/bucket?list-type=2&continuation-token=%21")[0], 400)

    def test_a_thousand_keys_are_a_page(self):
        for number in range(1500):
            self.service.put(f"{number:04}", b"")
        keys, _, token = self.listed(max_keys="5000")
        self.assertEqual((len(keys), len(self.listed(continuation_token=token)[0])), (1000, 500))

    def test_names_are_encoded(self):
        names = ["a b+c%20&<>\"", "line\nfeed", "ü/~*"]
        for name in names:
            self.service.put(name, b"x")
        self.assertEqual([unquote_plus(key) for key in self.listed(encoding_type="url")[0]], names)
        self.service.delete("line\nfeed")
        self.assertEqual(self.listed()[0], [names[0], names[2]])

    def test_conditional_put(self):
        status, headers, _ = self.ask("PUT", "/bucket/x", b"1", If_None_Match="*")
        self.assertEqual(status, 200)
        self.assertEqual(self.code(self.ask("PUT", "/bucket/x", b"2", If_None_Match="*")), (412, "PreconditionFailed"))
        self.assertEqual(self.ask("PUT", "/bucket/x", b"3", If_Match=headers["ETag"])[0], 200)
        self.assertEqual(self.ask("PUT", "/bucket/x", b"4", If_Match=headers["ETag"])[0], 412)
        self.assertEqual(self.ask("PUT", "/bucket/y", b"5", If_Match=headers["ETag"])[0], 404)
        self.assertEqual(self.ask("GET", "/bucket/x")[2], b"3")
        self.assertEqual(self.ask("DELETE", "/bucket/x")[0], 204)
        self.assertEqual(self.ask("HEAD", "/bucket/x")[0], 404)

    def test_multipart(self):
        first, last = bytes(5 << 20), b"end"
        number = xml.etree.ElementTree.fromstring(self.ask("POST", "/bucket/m?uploads=")[2]).findtext("{*}UploadId")
        tags = [self.ask("PUT", f"/bucket/m?partNumber={part}&uploadId={number}", body)[1]["ETag"]
                for part, body in ((1, first), (2, last), (3, last))]

        def complete(parts, **headers):
            body = "".join(f"<Part><PartNumber>{part}</PartNumber><ETag>{tags[part - 1]}</ETag></Part>" for part in parts)
            return self.ask("POST", f"/bucket/m?uploadId={number}",
                            f"<CompleteMultipartUpload>{body}</CompleteMultipartUpload>".encode(), **headers)

        self.assertEqual(self.ask("GET", f"/bucket/m?uploadId={number}")[2].count(b"<PartNumber>"), 3)
        self.assertEqual(self.code(complete([2, 1])), (400, "InvalidPartOrder"))
        self.assertEqual(self.code(complete([2, 3])), (400, "EntityTooSmall"))
        self.service.put("m", b"there")
        self.assertEqual(complete([1, 2], If_None_Match="*")[0], 412)
        self.assertEqual(complete([1, 2])[0], 200)
        self.assertEqual(self.ask("GET", "/bucket/m")[2], first + last)
        self.assertEqual(self.code(complete([1, 2])), (404, "NoSuchUpload"))
        number = xml.etree.ElementTree.fromstring(self.ask("POST", "/bucket/m?uploads=")[2]).findtext("{*}UploadId")
        self.assertEqual(self.ask("DELETE", f"/bucket/m?uploadId={number}")[0], 204)
        self.assertEqual(self.service.objects.uploads, {})
        self.assertEqual(self.code(self.ask("GET", f"/bucket/m?uploadId={number}")), (404, "NoSuchUpload"))

    def test_metadata_of_objects(self):
        self.ask("PUT", "/bucket/x", b"1", x_amz_meta_note="put")
        self.assertEqual(self.ask("HEAD", "/bucket/x")[1]["x-amz-meta-note"], "put")
        begun = self.ask("POST", "/bucket/m?uploads=", x_amz_meta_note="parts")[2]
        number = xml.etree.ElementTree.fromstring(begun).findtext("{*}UploadId")
        tag = self.ask("PUT", f"/bucket/m?partNumber=1&uploadId={number}", b"1")[1]["ETag"]
        self.ask("POST", f"/bucket/m?uploadId={number}", f"<C><Part><PartNumber>1</PartNumber><ETag>{tag}</ETag></Part></C>".encode())
        self.assertEqual(self.ask("GET", "/bucket/m")[1]["x-amz-meta-note"], "parts")

    def test_services_without_conditions(self):
        self.ask("PUT", "/bucket/x", b"1")
        self.service.buckets.conditions = "refused"
        self.assertEqual(self.code(self.ask("PUT", "/bucket/x", b"2", If_None_Match="*")), (501, "NotImplemented"))
        self.assertEqual(self.ask("PUT", "/bucket/x", b"2")[0], 200)
        self.service.buckets.conditions = "ignored"
        self.assertEqual(self.ask("PUT", "/bucket/x", b"3", If_None_Match="*")[0], 200)
        self.assertEqual(self.ask("GET", "/bucket/x")[2], b"3")

    def test_an_answer_that_is_lost(self):
        self.service.faults.add("lost", "x", count=1)
        with self.assertRaises(http.client.RemoteDisconnected):
            self.ask("PUT", "/bucket/x", b"1")
        self.assertEqual(self.ask("GET", "/bucket/x")[2], b"1")

    def test_versions(self):
        self.service.objects.is_versioned = True
        first = self.ask("PUT", "/bucket/v", b"first")[1]["x-amz-version-id"]
        second = self.ask("PUT", "/bucket/v", b"second")[1]["x-amz-version-id"]
        self.service.delete("v")
        self.assertEqual(self.ask("GET", "/bucket/v")[0], 404)
        self.assertEqual(self.ask("GET", f"/bucket/v?versionId={first}")[2], b"first")
        self.assertEqual(self.ask("GET", f"/bucket/v?versionId={second}", Range="bytes=0-0")[2], b"s")
        self.assertEqual(self.ask("GET", "/bucket/v?versionId=none")[0], 404)


if __name__ == "__main__":
    unittest.main()
