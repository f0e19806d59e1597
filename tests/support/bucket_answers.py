"""How an ObjectService answers as a service of buckets (S3), with path-style addresses: /bucket/key."""

import base64
import datetime
import hashlib
import html
import threading
import uuid
import xml.etree.ElementTree
from urllib.parse import quote

import sigv4_check
from object_answers import answer_object, failed_condition
from service_messages import Answer, error_answer
from stored_objects import in_order

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
MOST_KEYS = 1000
SMALLEST_PART = 5 << 20  # of all parts but the last


def xml_answer(root, inner, status=200):
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{NAMESPACE}">{inner}</{root}>'
    return Answer(status, [("Content-Type", "application/xml"), ("x-amz-request-id", "TEST")],
                  text.encode("utf-8", "surrogateescape"))


def iso_date(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def url_encoded(text):
    """As encoding-type=url asks: like a query, so a space is a plus sign; slashes stay."""
    return quote(text, safe="/* ", errors="surrogateescape").replace(" ", "+")


def xml_text(text):
    """XML 1.0 has no control characters: a bucket sends them as character references, which no parser has to take."""
    return "".join(f"&#{ord(char)};" if ord(char) < 32 else html.escape(char) for char in text)


def metadata_of(request):
    return {name: value for name, value in request.headers.items() if name.startswith("x-amz-meta-")}


class Buckets:
    """One bucket. `keys`: name of an access key -> sigv4_check.Key; `is_public`: requests without a signature are served.
    `conditions`: what becomes of conditions of requests that make objects: "kept", "refused" (501) or "ignored"."""

    def __init__(self, objects, bucket="bucket", keys=None, is_public=False, region="us-east-1"):
        self.objects, self.bucket, self.keys, self.is_public, self.region = objects, bucket, dict(keys or {}), is_public, region
        self.conditions = "kept"
        self.lock = threading.Lock()  # makes condition and change of a PUT one

    def answer(self, request, now):
        try:
            self.check_signature(request, now)
            if request.area != self.bucket:
                raise sigv4_check.Refused(404, "NoSuchBucket", "The specified bucket does not exist")
            return self.of_object(request) if request.name else self.of_bucket(request)
        except sigv4_check.Refused as refused:
            headers = [("x-amz-bucket-region", refused.region)] if refused.region else []
            return error_answer(request, refused.status, refused.code, refused.message, headers)

    def check_signature(self, request, now):
        if "authorization" in request.headers:
            sigv4_check.check(request, self.keys, self.region, now)
        elif not self.is_public:
            raise sigv4_check.Refused(403, "AccessDenied", "Access Denied")

    def of_bucket(self, request):
        if request.method == "HEAD":
            return Answer(200, [("x-amz-bucket-region", self.region)])
        if request.method != "GET":
            return error_answer(request, 405)
        if "location" in request.query:
            return xml_answer("LocationConstraint", "" if self.region == "us-east-1" else self.region)
        if request.query.get("list-type") == "2":
            return self.listing(request.query)
        return error_answer(request, 501, message="Of listings there is list-type=2 alone.")

    def listing(self, query):
        """ListObjectsV2."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        encode = url_encoded if query.get("encoding-type") == "url" else xml_text
        try:
            most = min(int(query.get("max-keys", MOST_KEYS)), MOST_KEYS)
            after = query.get("start-after", "")
            if "continuation-token" in query:
                token = base64.b64decode(query["continuation-token"].encode(), b"-_", validate=True)
                after = token.decode("utf-8", "surrogateescape")
        except ValueError:
            raise sigv4_check.Refused(400, "InvalidArgument", "The continuation token or max-keys is wrong") from None
        items, last, is_truncated = self.page(prefix, delimiter, after, most)
        fields = [("Name", self.bucket), ("Prefix", encode(prefix)), ("KeyCount", len(items)), ("MaxKeys", most),
                  ("IsTruncated", "true" if is_truncated else "false")]
        if delimiter:
            fields.append(("Delimiter", encode(delimiter)))
        if "encoding-type" in query:
            fields.append(("EncodingType", query["encoding-type"]))
        if is_truncated:
            token = base64.urlsafe_b64encode(last.encode("utf-8", "surrogateescape")).decode()
            fields.append(("NextContinuationToken", token))
        inner = "".join(f"<{name}>{value}</{name}>" for name, value in fields)
        return xml_answer("ListBucketResult", inner + "".join(self.item(name, stored, encode) for name, stored in items))

    def page(self, prefix, delimiter, after, most):
        """([(key or common prefix, state; None for a prefix)], the last of them, whether there are more)"""
        items, last = [], ""
        for name in self.objects.names(prefix):
            cut = name.find(delimiter, len(prefix)) if delimiter else -1
            common = name[: cut + len(delimiter)] if cut >= 0 else None
            if in_order(common or name) <= in_order(after) or (common and common == last):
                continue
            if len(items) == most:
                return items, last, most > 0
            stored = None if common else self.objects.find(name, is_opened=False)
            if common or stored:
                last = common or name
                items.append((last, stored))
        return items, last, False

    @staticmethod
    def item(name, stored, encode):
        if stored is None:
            return f"<CommonPrefixes><Prefix>{encode(name)}</Prefix></CommonPrefixes>"
        return (f"<Contents><Key>{encode(name)}</Key><LastModified>{iso_date(stored.modified)}</LastModified>"
                f"<ETag>&quot;{stored.etag}&quot;</ETag><Size>{stored.length}</Size>"
                "<StorageClass>STANDARD</StorageClass></Contents>")

    def of_object(self, request):
        method, query = request.method, request.query
        if method == "GET" and "uploadId" in query:
            return self.list_parts(request)
        if method in ("GET", "HEAD"):
            return self.read(request)
        if method == "PUT":
            return self.put_part(request) if "uploadId" in query else self.put(request)
        if method == "POST" and "uploads" in query:
            return self.begin_upload(request)
        if method == "POST" and "uploadId" in query:
            return self.complete_upload(request)
        if method == "DELETE" and "uploadId" in query:
            self.upload(request)
            del self.objects.uploads[query["uploadId"]]
            return Answer(204)
        if method == "DELETE":
            self.objects.delete(request.name)
            return Answer(204)
        return error_answer(request, 405)

    def read(self, request):
        version = request.query.get("versionId")
        stored = self.objects.find(request.name, version)
        if stored is None:
            code = "NoSuchKey" if version is None else "NoSuchVersion"
            return error_answer(request, 404, code, "The specified key does not exist.")
        return answer_object(request, stored)

    def check_condition(self, request):
        if self.conditions == "ignored":
            return
        if self.conditions == "refused" and {"if-match", "if-none-match"} & set(request.headers):
            raise sigv4_check.Refused(501, "NotImplemented", "Conditional object PUTs are not supported.")
        stored = self.objects.find(request.name, is_opened=False)
        if stored is None and "if-match" in request.headers:
            raise sigv4_check.Refused(404, "NoSuchKey", "The specified key does not exist.")
        if failed_condition(request, stored):
            raise sigv4_check.Refused(412, "PreconditionFailed", "At least one of the pre-conditions did not hold")

    def stored_answer(self, stored):
        return [("ETag", f'"{stored.etag}"')] + ([("x-amz-version-id", stored.version)] if stored.version else [])

    def put(self, request):
        if "content-length" not in request.headers:
            return error_answer(request, 411)
        with self.lock:
            self.check_condition(request)
            stored = self.objects.put(request.name, request.body, metadata=metadata_of(request))
        return Answer(200, self.stored_answer(stored))

    def begin_upload(self, request):
        number = uuid.uuid4().hex
        self.objects.uploads[number] = (request.name, {}, metadata_of(request))
        return xml_answer("InitiateMultipartUploadResult", f"<Bucket>{self.bucket}</Bucket>"
                          f"<Key>{xml_text(request.name)}</Key><UploadId>{number}</UploadId>")

    def upload(self, request):
        """The parts of the upload that the request names."""
        name, parts, _ = self.objects.uploads.get(request.query["uploadId"], (None, None, None))
        if name != request.name:
            raise sigv4_check.Refused(404, "NoSuchUpload", "The specified multipart upload does not exist.")
        return parts

    def put_part(self, request):
        parts = self.upload(request)
        number = request.query.get("partNumber", "")
        if not number.isdecimal() or not 1 <= int(number) <= 10_000:
            raise sigv4_check.Refused(400, "InvalidArgument", "Part number must be an integer between 1 and 10000")
        etag = hashlib.md5(request.body).hexdigest()
        parts[int(number)] = (etag, request.body)
        return Answer(200, [("ETag", f'"{etag}"')])

    def list_parts(self, request):
        """ListParts, all on one page."""
        listed = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{etag}&quot;</ETag><Size>{len(content)}</Size></Part>"
                         for number, (etag, content) in sorted(self.upload(request).items()))
        return xml_answer("ListPartsResult", f"<UploadId>{request.query['uploadId']}</UploadId>{listed}")

    def complete_upload(self, request):
        parts = self.upload(request)
        try:
            root = xml.etree.ElementTree.fromstring(request.body)
            told = [(int(part.findtext("{*}PartNumber")), part.findtext("{*}ETag").strip('"')) for part in root.iter()
                    if part.tag.endswith("Part")]
        except (xml.etree.ElementTree.ParseError, TypeError, ValueError, AttributeError):
            raise sigv4_check.Refused(400, "MalformedXML", "The XML is not well-formed") from None
        if [number for number, _ in told] != sorted({number for number, _ in told}) or not told:
            raise sigv4_check.Refused(400, "InvalidPartOrder", "The list of parts was not in ascending order.")
        if any(parts.get(number, (None,))[0] != etag for number, etag in told):
            raise sigv4_check.Refused(400, "InvalidPart", "One or more of the specified parts could not be found.")
        contents = [parts[number][1] for number, _ in told]
        if any(len(content) < SMALLEST_PART for content in contents[:-1]):
            raise sigv4_check.Refused(400, "EntityTooSmall", "A part is smaller than the minimum allowed size.")
        digests = b"".join(bytes.fromhex(etag) for _, etag in told)
        with self.lock:
            self.check_condition(request)
            _, _, metadata = self.objects.uploads.pop(request.query["uploadId"])
            stored = self.objects.put(request.name, b"".join(contents), metadata=metadata,
                                      etag=f"{hashlib.md5(digests).hexdigest()}-{len(told)}")
        answer = xml_answer("CompleteMultipartUploadResult", f"<Bucket>{self.bucket}</Bucket><Key>{xml_text(request.name)}</Key>"
                            f"<ETag>&quot;{stored.etag}&quot;</ETag>")
        answer.headers += self.stored_answer(stored)[1:]
        return answer
