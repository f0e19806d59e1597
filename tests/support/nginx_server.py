"""nginx of this system as a server for tests, on 127.0.0.1, with all its files in one directory.

    with Nginx(WORK, SHOWN, certificate=PEM) as nginx:
        nginx.url("html/x.b2frame")                  # HTTP/1.1; directories as pages
        nginx.url("json/x.b2frame", scheme="https")  # HTTP/2; directories as JSON
        nginx.configure("max_ranges 0;")             # more lines of its configuration, from now on

It runs in the foreground as the user that starts it, its workers too. `requests` reads the access log, which nginx writes
when an answer is sent: complete after stop() only.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time

START_SECONDS = 20
START_ATTEMPTS = 5
# nginx numbers the milliseconds; all that it logs is text of ours or a number.
FIELDS = ("connection", "server_protocol", "request_method", "uri", "http_range", "status", "body_bytes_sent", "msec",
          "request_time", "pid")

CONFIGURATION = """\
daemon off;
worker_processes 1;
pid "{work}/pid";
{user}
error_log "{work}/error.log" notice;
events {{ worker_connections 512; }}
http {{
  {temporary}
  log_format requests escape=json '{fields}';
  access_log "{work}/access.log" requests;
  default_type application/octet-stream;
  server {{
    listen 127.0.0.1:{http};
    {tls}
    location /html/ {{ alias "{shown}/"; autoindex on; }}
    location /json/ {{ alias "{shown}/"; autoindex on; autoindex_format json; }}
    {more}
  }}
}}
"""


def program():
    """The path of nginx, or None. Ordinary users often have no /usr/sbin in their path."""
    return shutil.which("nginx", path=os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/sbin")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def most_at_once(requests):
    """The largest number of requests that nginx answered at the same time, to a millisecond."""
    changes = []
    for request in requests:
        end, took = float(request["msec"]), float(request["request_time"])
        if took > 0:
            changes += [(end - took, 1), (end, -1)]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


class Nginx:
    """Serves `shown` between start() and stop(), also again, on the same ports. `work`: an empty directory for its files;
    `certificate`: a PEM file with key and certificate, for https, which has HTTP/2; `more`: lines of its configuration, of
    the context `server`."""

    def __init__(self, work, shown, *, certificate=None, more=""):
        self.work, self.shown, self.certificate, self.more = work, shown, certificate, more
        self.ports = {}
        self.process = None

    def start(self):
        """Another program may take a port that was free: then others are tried, unless it has served before."""
        attempts = 1 if self.ports else START_ATTEMPTS
        for attempt in range(attempts):
            if not self.ports or attempt:
                self.ports = {"http": free_port(), "https": free_port()}
            self.write_configuration()
            with open(self.work + "/said", "ab") as said:
                self.process = subprocess.Popen(
                    [program(), "-p", self.work, "-e", self.work + "/error.log", "-c", self.work + "/nginx.conf"],
                    stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            if self.is_ready():
                return self
        with open(self.work + "/said", encoding="utf-8", errors="replace") as said:
            raise AssertionError("nginx does not start: " + said.read())

    def is_ready(self):
        """Waits until it serves; False: it has ended."""
        end = time.monotonic() + START_SECONDS
        while self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.ports["http"]), 1).close()
                # The port may be another program's, on which nginx is about to end.
                if os.path.exists(self.work + "/pid") and os.path.getsize(self.work + "/pid"):
                    return True
            except OSError:
                pass
            if time.monotonic() > end:
                self.stop()
                raise AssertionError(f"nginx does not serve after {START_SECONDS} s")
            time.sleep(0.005)
        return False

    def write_configuration(self):
        fields = ",".join(f'"{name}":"${name}"' for name in FIELDS)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        # The form of `listen` that 1.22 and 1.26 know; the newer one warns of it.
        tls = f"""listen 127.0.0.1:{self.ports["https"]} ssl http2;
    ssl_certificate "{self.certificate}"; ssl_certificate_key "{self.certificate}";""" if self.certificate else ""
        with open(self.work + "/nginx.conf", "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(
                work=self.work, shown=self.shown, http=self.ports["http"], tls=tls, more=self.more,
                fields="{" + fields + "}", user="user root;" if os.geteuid() == 0 else "",
                temporary=" ".join(f'{kind}_temp_path "{self.work}/{kind}";' for kind in kinds)))

    def configure(self, more):
        """Restarts it with these lines of its configuration."""
        self.stop()
        self.more = more
        self.start()

    def reload(self):
        """New workers take over; the old ones end when their requests are answered."""
        self.process.send_signal(signal.SIGHUP)

    def workers(self):
        """Process ids of the workers, those that are ending as well."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            return set(map(int, children.read().split()))

    def stop(self):
        """Ends it; what it had not yet answered is cut off."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(START_SECONDS)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def url(self, path="", scheme="http"):
        return f"{scheme}://127.0.0.1:{self.ports[scheme]}/{path}"

    @property
    def requests(self):
        """The requests that are answered, as dicts of text."""
        try:
            with open(self.work + "/access.log", encoding="utf-8", errors="replace") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def clear_log(self):
        """Only while it is stopped, or has no requests."""
        with open(self.work + "/access.log", "w", encoding="utf-8"):
            pass
