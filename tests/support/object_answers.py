"""How a server answers for an object, the same for web servers and buckets: conditions and ranges (RFC 9110); and the
pages by which web servers list directories."""

import email.utils
import html
import json
import re
import time
from urllib.parse import quote

from service_messages import Answer, error_answer

RANGE = re.compile(r"bytes=(\d*)-(\d*)")
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def http_date(seconds):
    return email.utils.formatdate(seconds, usegmt=True)


def seconds_of(date):
    """Seconds since 1970; None for what is no date, which a server ignores."""
    try:
        return email.utils.parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError, IndexError):
        return None


def tags(text):
    return [tag.strip() for tag in text.split(",")]


def failed_condition(request, stored):
    """The status if a condition of the request does not hold; None if all hold. `stored`: None if there is no object."""
    headers = request.headers
    tag = f'"{stored.etag}"' if stored else None
    if "if-match" in headers:
        if stored is None or (headers["if-match"] != "*" and tag not in tags(headers["if-match"])):
            return 412
    elif "if-unmodified-since" in headers and stored:
        date = seconds_of(headers["if-unmodified-since"])
        if date is not None and stored.modified > date:
            return 412
    is_read = request.method in ("GET", "HEAD")
    if "if-none-match" in headers:
        asked = [one.removeprefix("W/") for one in tags(headers["if-none-match"])]
        if stored and (asked == ["*"] or tag in asked):
            return 304 if is_read else 412
    elif "if-modified-since" in headers and stored and is_read:
        date = seconds_of(headers["if-modified-since"])
        if date is not None and stored.modified <= date:
            return 304
    return None


def asked_range(text, length):
    """(begin, count) of a Range header; None: the whole object; (0, 0): there is no such part."""
    found = RANGE.fullmatch(text.strip()) if text else None
    if not found or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        count = min(int(last), length)
        return length - count, count
    begin, end = int(first), min(int(last), length - 1) if last else length - 1
    if last and int(last) < begin:
        return None
    return (begin, end - begin + 1) if begin < length else (0, 0)


def answer_object(request, stored):
    """GET and HEAD of an object that there is."""
    headers = [("ETag", f'"{stored.etag}"'), ("Last-Modified", http_date(stored.modified)), ("Accept-Ranges", "bytes")]
    if stored.version:
        headers.append(("x-amz-version-id", stored.version))
    failed = failed_condition(request, stored)
    if failed == 304:
        stored.close()
        return Answer(304, headers)
    if failed:
        stored.close()
        return error_answer(request, failed, message="At least one of the conditions does not hold.")
    headers.append(("Content-Type", "application/octet-stream"))
    headers += stored.metadata.items()
    part = asked_range(request.range, stored.length)
    if part is None:
        return Answer(200, headers, stored.part(0, stored.length))
    begin, count = part
    if count == 0:
        stored.close()
        return error_answer(request, 416, message="The range is not satisfiable.",
                            headers=[("Content-Range", f"bytes */{stored.length}")])
    headers.append(("Content-Range", f"bytes {begin}-{begin + count - 1}/{stored.length}"))
    return Answer(206, headers, stored.part(begin, count))


def nginx_date(seconds):
    date = time.gmtime(seconds)
    return f"{date.tm_mday:02}-{MONTHS[date.tm_mon - 1]}-{date.tm_year} {date.tm_hour:02}:{date.tm_min:02}"


def nginx_page(path, entries):
    """The page of nginx's module autoindex."""
    title = "Index of " + html.escape(path)
    lines = [f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<h1>{title}</h1><hr><pre><a href=\"../\">../</a>\r\n"]
    for name, stored in entries:
        name = name if stored else name + "/"
        shown = name if len(name) <= 50 else name[:47] + "..>"
        date = nginx_date(stored.modified if stored else 0)
        size = str(stored.length) if stored else "-"
        href = quote(name, safe="/", errors="surrogateescape")
        lines.append(f'<a href="{href}">{html.escape(shown)}</a>{" " * (51 - len(shown))}{date}{size:>20}\r\n')
    return "text/html", "".join(lines) + "</pre><hr></body>\r\n</html>\r\n"


def apache_size(length):
    """What Apache shows: three places at most."""
    if length < 1000:
        return f"{length:3d} "
    for unit in "KMGT":
        length /= 1024
        if length < 9.95:
            return f"{length:.1f}{unit}"
        if length < 999.5:
            return f"{length:3.0f}{unit}"
    return "****"


def apache_page(path, entries):
    """The page of Apache's module autoindex with FancyIndexing HTMLTable."""
    title = "Index of " + html.escape(path.rstrip("/"))
    sorting = "".join(f'<th><a href="?C={column};O=A">{text}</a></th>' for column, text in
                      (("N", "Name"), ("M", "Last modified"), ("S", "Size"), ("D", "Description")))
    parent = html.escape(quote(path.rstrip("/").rpartition("/")[0] + "/", errors="surrogateescape"))
    lines = ['<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">\n<html>\n <head>\n', f"  <title>{title}</title>\n </head>\n"
             f" <body>\n<h1>{title}</h1>\n  <table>\n   <tr>{sorting}</tr>\n"
             '   <tr><th colspan="5"><hr></th></tr>\n'
             f'<tr><td><a href="{parent}">Parent Directory</a></td><td>&nbsp;</td><td align="right">  - </td></tr>\n']
    for name, stored in entries:
        name = name if stored else name + "/"
        shown = name if len(name) <= 23 else name[:20] + "..>"
        date = time.strftime("%Y-%m-%d %H:%M", time.gmtime(stored.modified if stored else 0))
        size = apache_size(stored.length) if stored else "  - "
        lines.append(f'<tr><td><a href="{html.escape(quote(name, errors="surrogateescape"))}">{html.escape(shown)}</a></td>'
                     f'<td align="right">{date}  </td><td align="right">{size}</td><td>&nbsp;</td></tr>\n')
    lines.append('   <tr><th colspan="5"><hr></th></tr>\n</table>\n<address>Apache/2.4 Server</address>\n</body></html>\n')
    return "text/html;charset=UTF-8", "".join(lines)


def json_page(_path, entries):
    """nginx's module autoindex with `autoindex_format json`."""
    items = []
    for name, stored in entries:
        item = {"name": name, "type": "file" if stored else "directory", "mtime": http_date(stored.modified if stored else 0)}
        if stored:
            item["size"] = stored.length
        items.append(item)
    return "application/json", json.dumps(items, indent=0, ensure_ascii=False)


PAGES = {"nginx": nginx_page, "apache": apache_page, "json": json_page}


def answer_directory(request, entries, kind):
    """The page of a directory, without names that begin with a dot, as those servers do; `kind` None: the server lists none."""
    if kind is None:
        return error_answer(request, 403, message="This server lists no directories.")
    content_type, text = PAGES[kind](request.path, [entry for entry in entries if not entry[0].startswith(".")])
    return Answer(200, [("Content-Type", content_type)], text.encode("utf-8", "surrogateescape"))
