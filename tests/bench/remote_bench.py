#!/usr/bin/env python3
"""Measures mounts of servers beside rclone, s3fs and httpdirfs on the same objects, in one run.

    remote_bench.py --cframefs PROGRAM --cframe PROGRAM [--size MIB] [--rounds N] [--only REGEX] [--json FILE]

Method. The service of the tests answers each request after --latency seconds and sends at most --rate bytes a second
("in order" and "random"). Its connections are made at once, for all alike. The objects: a file that lz4 makes 2.4
times shorter, as a frame, as a squashfs image of the same codec and block size, and as it is; 10,000 small frames. A
round measures each subject once, in random order, in a fresh mount; the table has medians. A peer counts with the
better one of the plain file and the image, which squashfuse reads. Random reads are at places of which no two are in
one MiB. First reads by TLS are those of a fresh mount by HTTP/1.1, where each reader has a connection of its own. A
warm disk cache is measured after the first read, which asks whether the object is still the same.

What the link carries is what curl gets of the same frame. Exit status: 0 all demands met, 1 one is not met or a measurement
failed.
"""

import argparse
import contextlib
import functools
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from bench_readers import read_at_random, read_in_order, read_in_parts
from bench_servers import BenchError
from remote_service import Service, make_certificate

MIB = 1 << 20
KEY, SECRET = "AKIDOFTHEBENCHMARK", "secret-of-the-benchmark"
FILES = 10_000
BEGIN_SECONDS = 30
for variable in [name for name in os.environ if name.startswith("AWS_") or name.lower().endswith("_proxy")]:
    del os.environ[variable]
PLACES = 32  # reads of each of 16 readers
NOISE, PERIOD = 410, 1024  # bytes of noise in each PERIOD
BESIDE_CACHE = 64 * MIB
SYSTEM_CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
CACHE = 64 * MIB

# What must be reached: (row, metric) -> (at least?, bound).
DEMANDS = {
    ("open and 4 KiB", "round trips"): (False, 2),
    ("open and 4 KiB", "time ÷ their time"): (False, 1.3),
    ("in order", "of what the link carries"): (True, 0.9),
    ("in order", "÷ best peer"): (True, 2),
    **{("readers of parts, in order", f"of what the link carries, {readers}{cache}"): (True, 0.8)
       for readers in (4, 16, 64) for cache in ("", ", disk cache")},
    ("random 4 KiB", "16 readers ÷ 1, chunks of 1M"): (True, 10),
    ("random 4 KiB", "16 readers ÷ 1, chunks of 128K"): (True, 10),
    ("random 4 KiB", "÷ best peer, 16 readers, chunks of 1M"): (True, 3),
    ("random 4 KiB", "÷ best peer, 16 readers, chunks of 128K"): (True, 3),
    ("warm disk cache ÷ local frame", "in order"): (True, 0.8),
    ("warm disk cache ÷ local frame", "random 4 KiB"): (True, 0.8),
    ("ls -l of 10,000 frames", "headers in flight"): (True, 64),
    ("ls -l of 10,000 frames", "requests, with an index"): (False, 3),
    ("first reads by TLS, 16 readers", "the system's certificates ÷ one"): (False, 2),
    ("memory, 64 readers", "MiB above cache_size"): (False, BESIDE_CACHE / MIB),
}


def quiet(*command, **how):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, check=False, **how)
    if done.returncode != 0:
        raise BenchError(f"{command[0]}: {done.stderr.strip()[-300:]}")


class Objects:
    """What is served."""

    def __init__(self, work, arguments):
        self.directory = work / "objects"
        self.size = arguments.size * MIB
        image = self.directory / "image"
        names = self.directory / "names"
        for directory in (self.directory, image, names):
            directory.mkdir()
        self.plain = image / "plain"
        self.make_plain()
        for name, chunk in (("large", "1M"), ("small", "128K")):
            quiet(arguments.cframe, "pack", "--codec=lz4", "--filter=none", f"--chunksize={chunk}", self.plain,
                  self.directory / f"{name}.b2frame")
        quiet("mksquashfs", self.plain, self.directory / "image.sqfs", "-comp", "lz4", "-b", "1M", "-no-xattrs")
        (work / "piece").write_bytes(b"piece of text\n" * 300)
        quiet(arguments.cframe, "pack", "--codec=lz4", work / "piece", names / "0.b2frame")
        for number in range(1, FILES):
            shutil.copyfile(names / "0.b2frame", names / f"{number}.b2frame")

    def make_plain(self):
        source = random.Random(7)
        filler = (b"0123456789abcdef" * (PERIOD // 16))[NOISE:]
        with open(self.plain, "wb") as file:
            for _ in range(self.size // MIB):
                noise = source.randbytes(NOISE * (MIB // PERIOD))
                file.write(b"".join(noise[at : at + NOISE] + filler for at in range(0, len(noise), NOISE)))

    def length(self, name):
        return (self.directory / name).stat().st_size

    def places(self, count, seed):
        """No two in one mebibyte."""
        chance = random.Random(seed)
        return [chunk * MIB + chance.randrange(256) * 4096 for chunk in chance.sample(range(self.size // MIB), count)]


class Bench:
    def __init__(self, arguments, work):
        self.arguments, self.work = arguments, work
        self.objects = Objects(work, arguments)
        self.service = Service(self.objects.directory, KEY, SECRET)
        self.cache = work / "cache"
        (work / "password").write_text(f"{KEY}:{SECRET}\n", encoding="ascii")
        (work / "password").chmod(0o600)
        self.rows = {}
        self.failed = False

    def link(self, is_limited=False):
        """Latency for all that follows; the rate of the link, too, if it is limited."""
        self.service.ask(latency=self.arguments.latency, rate=self.arguments.rate if is_limited else None)

    @contextlib.contextmanager
    def mounted(self, command, environment=None):
        mount = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        log = open(self.work / "log", "wb")
        process = subprocess.Popen([str(word).replace("{mount}", str(mount)) for word in command], stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, env={**os.environ, "HOME": str(self.work), **(environment or {})})
        try:
            end = time.monotonic() + BEGIN_SECONDS
            while not os.path.ismount(mount):
                if process.poll() is not None or time.monotonic() > end:
                    raise BenchError(f"{command[0]} does not mount: " +
                                     (self.work / "log").read_text(errors="replace").strip()[-300:])
                time.sleep(0.005)
            yield mount, process
        finally:
            subprocess.run(["fusermount3", "-u", "-z", "-q", mount], stderr=subprocess.DEVNULL, check=False)
            try:
                process.wait(BEGIN_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            log.close()
            mount.rmdir()

    def ours(self, address, *options, environment=None):
        words = ["-o", ",".join(("ro", f"cache_size={CACHE}", *options))]
        place = {"AWS_ENDPOINT_URL": self.service.url(), "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": KEY,
                 "AWS_SECRET_ACCESS_KEY": SECRET}
        return self.mounted([self.arguments.cframefs, "-f", *words, address, "{mount}"], {**place, **(environment or {})})

    def web(self, path=""):
        return self.service.url("/web/" + path)

    def peers(self):
        """Name, command and environment of all that are installed."""
        s3 = {"RCLONE_S3_PROVIDER": "Other", "RCLONE_S3_ENDPOINT": self.service.url(), "RCLONE_S3_REGION": "us-east-1",
              "RCLONE_S3_ACCESS_KEY_ID": KEY, "RCLONE_S3_SECRET_ACCESS_KEY": SECRET, "RCLONE_S3_FORCE_PATH_STYLE": "true",
              "RCLONE_S3_LIST_VERSION": "2"}
        rclone = ("mount", "--read-only", "--config", "/dev/null")
        found = [("rclone http", ("rclone", *rclone, ":http:", "{mount}", "--http-url", self.web()), {}),
                 ("rclone s3", ("rclone", *rclone, ":s3:bucket", "{mount}"), s3),
                 ("s3fs", ("s3fs", "bucket", "{mount}", "-f", "-o", f"ro,url={self.service.url()},use_path_request_style,"
                           f"endpoint=us-east-1,listobjectsv2,passwd_file={self.work}/password"), {}),
                 ("httpdirfs", ("httpdirfs", "-f", self.web(), "{mount}"), {}),
                 ("httpdirfs --cache", ("httpdirfs", "-f", "--cache", "--cache-location", "{cache}", self.web(), "{mount}"),
                  {})]
        return [peer for peer in found if shutil.which(peer[1][0])]

    @contextlib.contextmanager
    def peer_file(self, command, environment, is_image):
        """The plain content by way of a peer."""
        with tempfile.TemporaryDirectory(dir=self.work) as cache:
            command = [word.replace("{cache}", cache) for word in command]
            with self.mounted(command, environment) as (mount, _):
                if not is_image:
                    yield mount / "image/plain"
                    return
                with self.mounted(["squashfuse", "-f", mount / "image.sqfs", "{mount}"]) as (image, _):
                    yield image / "plain"

    def of_peers(self, measure):
        """{name: function} of each peer with the plain file and with the image."""
        return {f"{name}, {'image' if is_image else 'plain'}": lambda what=(command, environment, is_image): measure(*what)
                for name, command, environment in self.peers() for is_image in (False, True)}

    def rounds(self, subjects):
        """{name: medians of what the function gives}, of rounds in random order. A subject that fails is left out."""
        found = {name: [] for name in subjects}
        for _ in range(self.arguments.rounds):
            for name in random.sample(list(subjects), len(subjects)):
                if found[name] is None:
                    continue
                try:
                    found[name].append(subjects[name]())
                except (BenchError, OSError) as error:
                    print(f"{name}: {error}", file=sys.stderr)
                    self.failed = self.failed or name.startswith("cframefs")
                    found[name] = None
        return {name: statistics.median(values) for name, values in found.items() if values}

    def add(self, row, metric, value):
        self.rows.setdefault(row, {})[metric] = value
        at_least, bound = DEMANDS.get((row, metric), (True, None))
        verdict = ""
        if bound is not None:
            is_met = value >= bound if at_least else value <= bound
            self.failed = self.failed or not is_met
            verdict = f"{'at least' if at_least else 'at most'} {bound:g}: {'met' if is_met else 'MISSED'}"
        print(f"{row:30} {metric:42} {value:10.2f}  {verdict}", flush=True)

    def open_and_read(self):
        row = "open and 4 KiB"

        def once(address):
            with self.ours(address) as (mount, _):
                os.listdir(mount)
                self.link()
                begin = time.monotonic()
                read_at_random(mount / "large", 1, self.objects.places(1, begin))
                took = time.monotonic() - begin
                trips.append(self.service.ask()["trips"])
                return took

        trips = []
        self.link()
        found = self.rounds({f"cframefs {address}": lambda address=address: once(address)
                             for address in (self.web(), "s3://bucket/")})
        self.add(row, "round trips", max(trips))
        for address, took in found.items():
            self.add(row, f"ms, {address.split()[1].split(':')[0]}", took * 1e3)
        self.add(row, "time ÷ their time", max(found.values()) / (2 * self.arguments.latency))

    def in_order(self):
        row = "in order"

        def ours(address):
            with self.ours(address) as (mount, _):
                os.listdir(mount)
                return read_in_order(mount / "large")

        def peer(command, environment, is_image):
            with self.peer_file(command, environment, is_image) as path:
                return read_in_order(path)

        def curl():
            begin = time.monotonic()
            quiet("curl", "-sfo", "/dev/null", self.web("large.b2frame"))
            return self.objects.length("large.b2frame") / (time.monotonic() - begin)

        subjects = {"cframefs http": lambda: ours(self.web()), "cframefs s3": lambda: ours("s3://bucket/"), "curl": curl}
        subjects.update(self.of_peers(peer))
        self.link(is_limited=True)
        found = self.rounds(subjects)
        for name, speed in found.items():
            self.add(row, f"MB/s, {name}", speed / 1e6)
        ratio = self.objects.size / self.objects.length("large.b2frame")
        ours_now = min(found["cframefs http"], found["cframefs s3"])
        self.add(row, "plain ÷ compressed", ratio)
        self.add(row, "of what the link carries", ours_now / ratio / found["curl"])
        self.add(row, "plain bytes ÷ link", ours_now / self.arguments.rate)
        self.add_best_peer(row, "÷ best peer", ours_now, found)

    def in_parts(self):
        row = "readers of parts, in order"
        length = self.objects.length("large.b2frame")
        sent = {}

        def ours(readers, options, name):
            with self.ours(self.web(), *options) as (mount, _):
                os.listdir(mount)
                self.link(is_limited=True)
                speed = read_in_parts(mount / "large", readers, self.objects.size)
                sent.setdefault(name, []).append(self.service.ask()["sent"] / length)
                return speed / self.objects.size * length / self.arguments.rate

        def with_cache(readers, name):
            self.cache.mkdir(mode=0o700)
            try:
                return ours(readers, (f"cache_dir={self.cache}",), name)
            finally:
                shutil.rmtree(self.cache)

        subjects = {}
        for readers in (4, 16, 64):
            subjects[f"{readers}"] = functools.partial(ours, readers, (), f"{readers}")
            subjects[f"{readers}, disk cache"] = functools.partial(with_cache, readers, f"{readers}, disk cache")
        for name, speed in self.rounds(subjects).items():
            self.add(row, f"of what the link carries, {name}", speed)
            self.add(row, f"bytes fetched ÷ bytes, {name}", statistics.median(sent[name]))

    def add_best_peer(self, row, metric, ours_now, found):
        peers = {name: value for name, value in found.items() if not name.startswith(("cframefs", "curl", "local"))}
        if peers:
            self.add(row, metric, ours_now / max(peers.values()))

    def at_random(self):
        row = "random 4 KiB"
        seeds = iter(range(1 << 20))

        def reads(path, readers):
            self.link(is_limited=True)
            return read_at_random(path, readers, self.objects.places(PLACES * readers, next(seeds)))

        def ours(address, name, readers):
            with self.ours(address) as (mount, _):
                os.listdir(mount)
                return reads(mount / name, readers)

        def peer(command, environment, is_image, readers):
            with self.peer_file(command, environment, is_image) as path:
                os.stat(path)
                return reads(path, readers)

        found = {}
        for readers in (1, 16):
            subjects = {f"cframefs {kind}, {chunk}": lambda what=(address, name, readers): ours(*what)
                        for kind, address in (("http", self.web()), ("s3", "s3://bucket/"))
                        for name, chunk in (("large", "chunks of 1M"), ("small", "chunks of 128K"))}
            subjects.update(self.of_peers(lambda *what, readers=readers: peer(*what, readers)))
            found[readers] = self.rounds(subjects)
            for name, speed in found[readers].items():
                self.add(row, f"reads/s, {readers}, {name}", speed)
        for chunk in ("chunks of 1M", "chunks of 128K"):
            ours_of = {readers: min(speed for name, speed in speeds.items() if name.endswith(chunk))
                       for readers, speeds in found.items()}
            self.add(row, f"16 readers ÷ 1, {chunk}", ours_of[16] / ours_of[1])
            self.add_best_peer(row, f"÷ best peer, 16 readers, {chunk}", ours_of[16], found[16])
            self.add_best_peer(row, f"÷ best peer, 1 reader, {chunk}", ours_of[1], found[1])

    def warm(self):
        row = "warm disk cache ÷ local frame"
        self.cache.mkdir(mode=0o700)
        self.service.ask(latency=0.0, rate=None)
        with self.ours(self.web(), f"cache_dir={self.cache}") as (mount, _):
            read_in_order(mount / "large")
        self.link()
        seeds = iter(range(1 << 20))

        def both(source, options, read):
            with self.ours(source, *options) as (mount, _):
                os.listdir(mount)
                # The question whether the object is still the same takes round trips; the other reads take none.
                read_at_random(mount / "large", 1, [0])
                return read(mount / "large")

        for what, read in (("in order", read_in_order),
                           ("random 4 KiB", lambda path: read_at_random(path, 1, self.objects.places(400, next(seeds))))):
            found = self.rounds({
                "cframefs with its cache": lambda: both(self.web(), (f"cache_dir={self.cache}",), read),
                "local": lambda: both(self.objects.directory, (), read)})
            for name, speed in found.items():
                self.add(row, f"{what}, {name}", speed / (1e6 if what == "in order" else 1))
            self.add(row, what, found["cframefs with its cache"] / found["local"])
        self.add(row, "bytes fetched", self.service.ask()["sent"])
        shutil.rmtree(self.cache)

    def by_tls(self):
        row = "first reads by TLS, 16 readers"
        one, many = self.work / "one.pem", self.work / "many.pem"
        make_certificate(str(one))
        many.write_bytes(one.read_bytes() + SYSTEM_CERTIFICATES.read_bytes())
        service = Service(self.objects.directory, KEY, SECRET, one)
        service.ask(latency=self.arguments.latency, rate=None)
        seeds = iter(range(1 << 20))

        def first_reads(certificates):
            with self.ours(service.url("/web/"), f"ca_file={certificates}") as (mount, _):
                os.stat(mount / "large")
                begin = time.monotonic()
                read_at_random(mount / "large", 16, self.objects.places(16, next(seeds)))
                return time.monotonic() - begin

        try:
            found = self.rounds({f"cframefs, {name}": functools.partial(first_reads, file)
                                 for name, file in (("one", one), ("the system's", many))})
        finally:
            service.stop()
        for name, took in found.items():
            self.add(row, f"ms, {name}", took * 1e3)
        self.add(row, "the system's certificates ÷ one", found["cframefs, the system's"] / found["cframefs, one"])

    def names(self):
        row = "ls -l of 10,000 frames"

        def listed(address):
            self.link()
            with self.ours(address) as (mount, _):
                begin = time.monotonic()
                for entry in os.scandir(mount):
                    entry.stat()
                took = time.monotonic() - begin
                return took, self.service.ask()

        for kind, address in (("http", self.web("names/")), ("s3", "s3://bucket/names/")):
            took, asked = listed(address)
            self.add(row, f"s, {kind}", took)
            self.add(row, f"requests, {kind}", asked["requests"])
            self.add(row, "headers in flight", asked["at_once"])
        commands = subprocess.run([self.arguments.cframe, "--help"], capture_output=True, text=True, check=True).stdout
        if not re.search(r"^\s+index\s", commands, re.MULTILINE):
            return
        quiet(self.arguments.cframe, "index", "-o", self.objects.directory / "names/.cframefs-index", self.web("names/"))
        for kind, address in (("http", self.web("names/")), ("s3", "s3://bucket/names/")):
            took, asked = listed(address)
            self.add(row, f"s, {kind}, with an index", took)
            self.add(row, "requests, with an index", asked["requests"])

    def memory(self):
        row = "memory, 64 readers"
        self.link()
        with self.ours(self.web()) as (mount, process):
            read_in_parts(mount / "large", 64, self.objects.size)
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        most = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024
        self.add(row, "MiB at most", most / MIB)
        self.add(row, "MiB above cache_size", (most - CACHE) / MIB)

    def run(self):
        print(f"kernel {os.uname().release}, {len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}; "
              f"{self.arguments.size} MiB, latency {self.arguments.latency * 1e3:g} ms, "
              f"link {self.arguments.rate / 1e6:g} MB/s, {self.arguments.rounds} rounds")
        for name in ("open_and_read", "in_order", "in_parts", "at_random", "warm", "by_tls", "names", "memory"):
            if re.search(self.arguments.only, name):
                getattr(self, name)()
        if self.arguments.json:
            self.arguments.json.write_text(json.dumps(self.rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cframefs", required=True)
    parser.add_argument("--cframe", required=True)
    parser.add_argument("--size", type=int, default=1024, help="MiB of the plain file (1024)")
    parser.add_argument("--latency", type=float, default=0.02, help="seconds (0.02)")
    parser.add_argument("--rate", type=float, default=125e6, help="bytes a second (125e6, 1 Gbit/s)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", metavar="REGEX",
                        help="open_and_read, in_order, in_parts, at_random, warm, by_tls, names, memory")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="cframefs-remote-", dir=memory) as directory:
        bench = Bench(arguments, pathlib.Path(directory))
        try:
            return bench.run()
        finally:
            bench.service.stop()


if __name__ == "__main__":
    sys.exit(main())
