#!/usr/bin/env python3
"""The service of the tests (tests/support/object_service.py) as a program of its own, so that it takes no time of the
program that measures, and the other end of the pipe to it.

    remote_service.py DIRECTORY KEY SECRET [CERTIFICATE]
        serves DIRECTORY, by TLS if there is a certificate; prints the port; answers each line of JSON with one:
        {"latency": SECONDS, "rate": BYTES A SECOND OR null}   sets them, and forgets the requests so far
        {}                                                     what was asked since then
"""

import json
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))

# pylint: disable=wrong-import-position
from object_service import Key, ObjectService, make_certificate, most_at_once, round_trips  # noqa: E402


class Service:
    """The program, from here."""

    def __init__(self, directory, key, secret, certificate=None):
        words = [str(directory), key, secret, *([str(certificate)] if certificate else [])]
        self.process = subprocess.Popen([sys.executable, __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.scheme = "https" if certificate else "http"
        self.port = int(self.process.stdout.readline())

    def ask(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def url(self, path=""):
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    directory, key, secret, *certificate = sys.argv[1:]
    with ObjectService(directory, keys={key: Key(secret)}, certificate=certificate[0] if certificate else None) as service:
        print(service.port, flush=True)
        for line in sys.stdin:
            told = json.loads(line)
            requests = service.log
            if told:
                service.latency, service.link.rate = told["latency"], told["rate"]
                service.clear_log()
            print(json.dumps({"requests": len(requests), "at_once": most_at_once(requests),
                              "trips": round_trips(requests), "sent": sum(request.sent for request in requests),
                              "opened": service.opened}), flush=True)


if __name__ == "__main__":
    main()
