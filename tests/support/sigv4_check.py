"""The check of AWS Signature Version 4 in the header of a request, as a bucket makes it. Shares no code with what signs.

AWS's documentation of the signature ("Authenticating Requests: Using the Authorization Header") is what it follows.
"""

import dataclasses
import datetime
import hashlib
import hmac
import re
from urllib.parse import quote, unquote

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
MOST_SKEW = 15 * 60  # seconds
CREDENTIAL = re.compile(r"([^/,\s]+)/(\d{8})/([^/,\s]+)/([^/,\s]+)/aws4_request")


@dataclasses.dataclass
class Key:
    """What belongs to an access key. With a token the key is temporary; once it is expired the token is."""

    secret: str
    token: str = None
    is_expired: bool = False


class Refused(Exception):
    """Why a request is not served. `region`: of the bucket, if the request names another one."""

    def __init__(self, status, code, message, region=None):
        super().__init__(code)
        self.status, self.code, self.message, self.region = status, code, message, region


def encoded(text, safe=""):
    return quote(text, safe=safe + "-_.~", errors="surrogateescape")


def canonical_query(query):
    pairs = []
    for pair in query.split("&") if query else []:
        name, _, value = pair.partition("=")
        pairs.append((encoded(unquote(name)), encoded(unquote(value))))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def canonical_request(request, signed):
    path, _, query = request.target.partition("?")
    lines = [request.method, encoded(unquote(path, errors="surrogateescape"), "/"), canonical_query(query)]
    lines += [f"{name}:{' '.join(request.received[name].split())}" for name in signed]
    lines += ["", ";".join(signed), request.headers["x-amz-content-sha256"]]
    return "\n".join(lines)


def signature(secret, date, scope, canonical):
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogateescape")).hexdigest()
    return hmac.new(key, "\n".join((ALGORITHM, date, scope, digest)).encode(), hashlib.sha256).hexdigest()


def parts_of(authorization):
    """(access key, scope, names of the signed headers, signature)"""
    algorithm, _, rest = authorization.partition(" ")
    fields = dict(field.strip().partition("=")[::2] for field in rest.split(","))
    credential = CREDENTIAL.fullmatch(fields.get("Credential", ""))
    if algorithm != ALGORITHM or not credential or not {"SignedHeaders", "Signature"} <= set(fields):
        raise Refused(400, "AuthorizationHeaderMalformed", "The authorization header is malformed.")
    access_key, _, scope = fields["Credential"].partition("/")
    return access_key, scope, fields["SignedHeaders"].split(";"), fields["Signature"]


def check_date(request, scope, now):
    date = request.headers.get("x-amz-date", "")
    try:
        then = datetime.datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    except ValueError:
        raise Refused(403, "AccessDenied", "The request needs a valid x-amz-date.") from None
    if abs(then.timestamp() - now) > MOST_SKEW:
        raise Refused(403, "RequestTimeTooSkewed", "The time of the request and the time of the server differ too much.")
    if not scope.startswith(date[:8] + "/"):
        raise Refused(400, "AuthorizationHeaderMalformed", "The date of the credential is not that of the request.")
    return date


def check_scope(scope, region):
    _, told, service, _ = scope.split("/")
    if told != region:
        raise Refused(400, "AuthorizationHeaderMalformed", f"The region '{told}' is wrong; expecting '{region}'",
                      region)
    if service != "s3":
        raise Refused(400, "AuthorizationHeaderMalformed", f"The service '{service}' is wrong; expecting 's3'")


def check_token(request, key):
    told = request.headers.get("x-amz-security-token")
    if told != key.token:
        raise Refused(400 if told else 403, "InvalidToken" if told else "InvalidAccessKeyId", "The token is not valid.")
    if key.is_expired:
        raise Refused(400, "ExpiredToken", "The provided token has expired.")


def check_body(request):
    digest = request.headers["x-amz-content-sha256"]
    if digest.startswith("STREAMING-"):
        raise Refused(501, "NotImplemented", "A body in signed chunks is not read here.")
    if digest != UNSIGNED and digest != hashlib.sha256(request.body).hexdigest():
        raise Refused(400, "XAmzContentSHA256Mismatch", "x-amz-content-sha256 does not match the body.")


def check(request, keys, region, now):
    """Raises Refused unless one of the keys, by name, has signed the request."""
    access_key, scope, signed, told = parts_of(request.headers["authorization"])
    date = check_date(request, scope, now)
    check_scope(scope, region)
    if access_key not in keys:
        raise Refused(403, "InvalidAccessKeyId", "The access key does not exist.")
    key = keys[access_key]
    if "x-amz-content-sha256" not in request.headers:
        raise Refused(400, "InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
    must = {"host"} | {name for name in request.headers if name.startswith("x-amz-")}
    if signed != sorted(signed) or not must <= set(signed) <= set(request.received):
        raise Refused(403, "AccessDenied", "There were headers present in the request which were not signed")
    check_token(request, key)
    right = signature(key.secret, date, scope, canonical_request(request, signed))
    if not hmac.compare_digest(right, told):
        raise Refused(403, "SignatureDoesNotMatch", "The signature that was calculated does not match the one provided.")
    check_body(request)
