#!/usr/bin/env python3
"""Measures writing through the mount, and `cframe pack`, against what is demanded of them.

    write_bench.py --data DIR --client PROGRAM --encoder PROGRAM --cframefs PROGRAM --cframe PROGRAM
                   [--floor PROGRAM] [--only REGEX] ...

Method. Every measurement has a fresh mount of an empty directory; the order is shuffled again in each repetition. Figures
are medians, a ratio is that of two medians of this run. Free memory is touched first, as in suite.py. "In memory"
means that the backing directory is on tmpfs: there the encoder is all that a writer has to wait for. "On disk" has the
directory in --work and takes in the disk, whose own time for the packed bytes is measured beside it; nothing that is
written can be faster than the slower of the two. The floor is a FUSE server with our settings that throws away what it
is given: nothing can be written faster through a mount. btrfs lies in a file in the same directory and is mounted over a loop
device.

Data. DIR/a.f32, plain items of 4 bytes (1 GiB; --size=BYTES takes less of it).

Exit status: 0 all demands met, 1 one is not met or a measurement failed, 77 one could not be judged.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from bench_report import Demand, Results, demand_table, picture, subject_tables
from bench_servers import BenchError, Mounted, Subject

SKIPPED = 77
TIMEOUT = 300
MIB = 1 << 20
CODECS = {"lz4": ("lz4", 5), "zstd": ("zstd", 5)}

RATE = "MB/s"
RECORD = 100  # bytes
RECORDS, RECORDS_PER_SYNC = 100_000, 1_000
SYNCED_RECORDS = 2_000
OVERWRITES, OVERWRITE = 1024, 4096  # of them, bytes of each

ENCODER, DISK = "encoder alone, {}", "packed bytes to disk, {}"
IN_MEMORY, ON_DISK = "cframefs {}, in memory", "cframefs {}, on disk"
BOUND = "slower of encoder and disk, {}"
FLOOR, FLOOR_BOUND = "FUSE floor, bytes thrown away", "slower of encoder and floor, {}"
BTRFS = "btrfs compress=zstd, on disk"
PACK = "cframe pack {}, in memory"
APPENDS, SYNCED_APPENDS = f"append, fsync every {RECORDS_PER_SYNC}", "append, fsync each"
AMPLIFICATION, WRITTEN = "file / packed", "chunks written per fsync"
OVER, RECODE = "random 4K overwrites {}, in memory", "decode + encode once, {}"
SECONDS = "s"
PEAK = "peak MiB"

DEMANDS = [
    demand
    for name in CODECS
    for demand in (
        Demand(f"sequential write, {name}, in memory: encoder alone", (IN_MEMORY.format(name), RATE),
               (ENCODER.format(name), RATE), 0.8),
        Demand(f"sequential write, {name}, in memory: slower of encoder and floor", (IN_MEMORY.format(name), RATE),
               (FLOOR_BOUND.format(name), RATE), 0.8),
        Demand(f"sequential write, {name}, on disk: slower of encoder and disk", (ON_DISK.format(name), RATE),
               (BOUND.format(name), RATE), 0.8),
        Demand(f"cframe pack, {name}, in memory: encoder alone", (PACK.format(name), RATE),
               (ENCODER.format(name), RATE), 0.95),
        Demand(f"random 4K overwrites, {name}: decode + encode once", (OVER.format(name), SECONDS),
               (RECODE.format(name), SECONDS), 1.2, False),
    )
] + [
    Demand("sequential write, zstd, on disk: btrfs", (ON_DISK.format("zstd"), RATE), (BTRFS, RATE), 1.0),
    Demand("append, fsync every 1,000: file after close / packed", (APPENDS, AMPLIFICATION), None, 2, False),
    Demand("append, fsync every 1,000: written per fsync / a chunk", (APPENDS, WRITTEN), None, 8, False),
    Demand("append, fsync each: file after close / packed", (SYNCED_APPENDS, AMPLIFICATION), None, 4, False),
]


def run(*command: object, **how) -> subprocess.CompletedProcess:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=TIMEOUT,
                          check=False, **how)
    if done.returncode != 0:
        raise BenchError(f"{pathlib.Path(str(command[0])).name}: {done.stderr.strip()[-300:]}")
    return done


def bytes_written_by(pid: int) -> int:
    """What a process has handed to write calls so far; of ours that is frames, and some bytes of each FUSE reply."""
    text = pathlib.Path("/proc", str(pid), "io").read_text(encoding="ascii")
    return int(re.search(r"^wchar: (\d+)", text, re.MULTILINE).group(1))


def peak_mib(pid: int) -> float:
    text = pathlib.Path("/proc", str(pid), "status").read_text(encoding="ascii")
    return int(re.search(r"^VmHWM:\s+(\d+)", text, re.MULTILINE).group(1)) / 1024


def record(number: int) -> bytes:
    """As a logging program writes them: 100 bytes that compress about four times."""
    chance = random.Random(number)
    text = (f"{1_700_000_000 + number * 3:d}.{chance.randrange(1000):03d} sensor-{number % 17:02d} "
            f"level={chance.gauss(20, 3):8.4f} flow={chance.random():10.8f} state=ok node=compute-{number % 5:02d}")
    return text.ljust(RECORD - 1)[:RECORD - 1].encode() + b"\n"


class Bench:
    def __init__(self, arguments: argparse.Namespace, work: pathlib.Path, memory: pathlib.Path):
        self.arguments = arguments
        self.work, self.memory = work, memory
        self.raw: pathlib.Path = arguments.data / "a.f32"
        self.size = min(arguments.size, self.raw.stat().st_size if self.raw.exists() else 0)
        self.results = Results()
        self.failed = False
        self.packed: dict[str, int] = {}  # bytes of the packed file, by codec

    def prewarm(self) -> None:
        run(self.arguments.client, "prewarm", 2 * self.size // MIB + 512)

    @contextlib.contextmanager
    def directory(self, parent: pathlib.Path):
        with tempfile.TemporaryDirectory(prefix="cframefs-write-", dir=parent) as path:
            yield pathlib.Path(path)

    @contextlib.contextmanager
    def mount(self, source: pathlib.Path, *options: str):
        command = (self.arguments.cframefs, "-f", "-o", ",".join(("stats=on", *options)), str(source), "{mount}")
        with Mounted(Subject("cframefs", command, ".", source), self.work / "mount") as mounted:
            yield mounted

    def dd(self, target: pathlib.Path) -> float:
        begin = time.monotonic()
        run("dd", f"if={self.raw}", f"of={target}", "bs=1M", "iflag=count_bytes", f"count={self.size}", "conv=fsync",
            "status=none")
        return time.monotonic() - begin

    # Each measurement gives {(subject, metric): value}.

    def encode_alone(self, name: str) -> dict:
        codec, level = CODECS[name]
        with self.limited_raw() as raw:
            got = json.loads(run(self.arguments.encoder, "encode", raw, f"--codec={codec}",
                                 f"--clevel={level}").stdout)
        self.packed[name] = got["stored"]
        return {(ENCODER.format(name), RATE): got["MBps"]}

    @contextlib.contextmanager
    def limited_raw(self):
        """The data as a file of just the size that is measured."""
        if self.size == self.raw.stat().st_size:
            yield self.raw
            return
        with self.directory(self.memory) as directory:
            run("dd", f"if={self.raw}", f"of={directory / 'a'}", "bs=1M", "iflag=count_bytes", f"count={self.size}",
                "status=none")
            yield directory / "a"

    def write(self, name: str, parent: pathlib.Path, label: str) -> dict:
        codec, level = CODECS[name]
        self.prewarm()
        with self.directory(parent) as source:
            with self.mount(source, f"codec={codec}", f"clevel={level}", "typesize=4") as mounted:
                seconds = self.dd(mounted.mount_point / "x")
                peak = peak_mib(mounted.pid)
            stored = (source / "x.b2frame").stat().st_size
        self.packed.setdefault(name, stored)
        return {(label, RATE): self.size / seconds / 1e6, (label, PEAK): peak,
                (label, "ratio"): self.size / stored}

    def write_floor(self) -> dict:
        if not self.arguments.floor:
            self.results.skip(FLOOR, "no floor server was given (--floor)")
            return {}
        self.prewarm()
        command = (self.arguments.floor, f"--file={self.raw}", "--sink", "{mount}")
        with Mounted(Subject("floor", command, "sink", self.raw), self.work / "mount") as mounted:
            return {(FLOOR, RATE): self.size / self.dd(mounted.mount_point / "sink") / 1e6}

    def write_packed(self, name: str) -> dict:
        """What the disk alone takes for as many bytes."""
        if name not in self.packed:
            self.encode_alone(name)
        with self.directory(self.work) as directory:
            begin = time.monotonic()
            run("dd", f"if={self.raw}", f"of={directory / 'x'}", "bs=1M", "iflag=count_bytes",
                f"count={self.packed[name]}", "conv=fsync", "status=none")
            seconds = time.monotonic() - begin
        return {(DISK.format(name), RATE): self.size / seconds / 1e6}

    def add_bounds(self) -> None:
        for name in CODECS:
            for bound, other in ((BOUND, DISK), (FLOOR_BOUND, FLOOR)):
                rates = [self.results.median(label.format(name), RATE) for label in (other, ENCODER)]
                if all(rates):
                    self.results.add(bound.format(name), RATE, min(rates))

    def write_btrfs(self) -> dict:
        if shutil.which("mkfs.btrfs") is None:
            self.results.skip(BTRFS, "mkfs.btrfs is not installed (package btrfs-progs)")
            return {}
        if os.geteuid() != 0:
            self.results.skip(BTRFS, "kernel mounts need root")
            return {}
        self.prewarm()
        with self.directory(self.work) as directory:
            image, point = directory / "image", directory / "mount"
            point.mkdir()
            with open(image, "wb") as file:
                file.truncate(max(3 * self.size, 512 * MIB))
            run("mkfs.btrfs", "-q", "-f", image)
            try:
                run("mount", "-o", "loop,compress=zstd", image, point)
            except BenchError as error:
                self.results.skip(BTRFS, f"cannot be mounted here: {error}")
                return {}
            try:
                return {(BTRFS, RATE): self.size / self.dd(point / "x") / 1e6}
            finally:
                run("umount", point)

    def pack(self, name: str) -> dict:
        codec, level = CODECS[name]
        self.prewarm()
        with self.limited_raw() as raw, self.directory(self.memory) as directory:
            begin = time.monotonic()
            run(self.arguments.cframe, "pack", f"--codec={codec}", f"--clevel={level}", "--typesize=4",
                "--chunksize=1M", raw, directory / "x.b2frame")
            seconds = time.monotonic() - begin
        return {(PACK.format(name), RATE): self.size / seconds / 1e6}

    def append(self, count: int, per_sync: int, label: str) -> dict:
        """Records at the end, as a logging program writes them; the file afterwards beside one that was packed."""
        records = [record(number) for number in range(count)]
        with self.directory(self.work) as source:
            with self.mount(source) as mounted:
                before = bytes_written_by(mounted.pid)
                begin = time.monotonic()
                fd = os.open(mounted.mount_point / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                for number, text in enumerate(records, 1):
                    os.write(fd, text)
                    if number % per_sync == 0:
                        os.fsync(fd)
                synced = bytes_written_by(mounted.pid)
                os.close(fd)
                seconds = time.monotonic() - begin
            frame = source / "log.b2frame"
            (source / "plain").write_bytes(b"".join(records))
            if run(self.arguments.cframe, "cat", frame).stdout.encode() != b"".join(records):
                raise BenchError(f"{label}: what was appended is not what is there")
            info = json.loads(run(self.arguments.cframe, "info", "--json", frame).stdout)
            packed = source / "packed.b2frame"
            run(self.arguments.cframe, "pack", f"--typesize={info['typesize']}", f"--chunksize={info['chunksize']}",
                source / "plain", packed)
            chunk = min(info["chunksize"], count * RECORD)
            packed_chunk = packed.stat().st_size * chunk / (count * RECORD)
            return {(label, AMPLIFICATION): frame.stat().st_size / packed.stat().st_size,
                    (label, WRITTEN): (synced - before) / (count / per_sync) / packed_chunk,
                    (label, "fsyncs/s"): count / per_sync / seconds}

    def overwrite(self, name: str) -> dict:
        """Random 4 KiB overwrites, then fsync; beside it the touched chunks decoded and encoded once, in process."""
        codec, level = CODECS[name]
        chance = random.Random(len(self.results.get(OVER.format(name), SECONDS)))
        places = [chance.randrange(self.size // OVERWRITE) * OVERWRITE for _ in range(OVERWRITES)]
        with open(self.raw, "rb") as raw:
            # Of the same kind as what is there: else the codec, not the path, would make the difference.
            texts = [os.pread(raw.fileno(), OVERWRITE, (place * 7) % self.size // OVERWRITE * OVERWRITE)
                     for place in places]
        self.prewarm()
        with self.limited_raw() as raw, self.directory(self.memory) as source:
            frame = source / "x.b2frame"
            run(self.arguments.cframe, "pack", f"--codec={codec}", f"--clevel={level}", "--typesize=4",
                "--chunksize=1M", raw, frame)
            touched = sorted({place // MIB for place in places})
            (self.work / "touched").write_text("\n".join(map(str, touched)), encoding="ascii")
            alone = json.loads(run(self.arguments.encoder, "recode", frame, f"--chunks={self.work / 'touched'}").stdout)
            with self.mount(source) as mounted:
                fd = os.open(mounted.mount_point / "x", os.O_WRONLY)
                begin = time.monotonic()
                for place, text in zip(places, texts):
                    os.pwrite(fd, text, place)
                written = time.monotonic()
                os.fsync(fd)
                seconds = time.monotonic() - begin
                os.close(fd)
                peak = peak_mib(mounted.pid)
        label = OVER.format(name)
        return {(label, SECONDS): seconds, (label, "of that writing, s"): written - begin, (label, PEAK): peak,
                (RECODE.format(name), SECONDS): alone["seconds"]}

    def run(self, label: str, measurement) -> None:
        try:
            for (subject, metric), value in measurement().items():
                self.results.add(subject, metric, value)
        except (BenchError, OSError, subprocess.TimeoutExpired) as error:
            self.failed = True
            self.results.skip(label, f"failed: {error}")
            print(f"{label}: {error}", file=sys.stderr)


def plan_of(bench: Bench) -> list[tuple]:
    plan = []
    for name in CODECS:
        plan += [
            (ENCODER.format(name), lambda name=name: bench.encode_alone(name)),
            (IN_MEMORY.format(name), lambda name=name: bench.write(name, bench.memory, IN_MEMORY.format(name))),
            (ON_DISK.format(name), lambda name=name: bench.write(name, bench.work, ON_DISK.format(name))),
            (DISK.format(name), lambda name=name: bench.write_packed(name)),
            (PACK.format(name), lambda name=name: bench.pack(name)),
            (OVER.format(name), lambda name=name: bench.overwrite(name)),
        ]
    return plan + [
        (FLOOR, bench.write_floor),
        (BTRFS, bench.write_btrfs),
        (APPENDS, lambda: bench.append(RECORDS, RECORDS_PER_SYNC, APPENDS)),
        (SYNCED_APPENDS, lambda: bench.append(SYNCED_RECORDS, 1, SYNCED_APPENDS)),
    ]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="directory with a.f32")
    parser.add_argument("--client", required=True, help="the measuring client, bench_client")
    parser.add_argument("--encoder", required=True, help="the encoder alone, bench_encoder")
    parser.add_argument("--cframefs", required=True, help="the mount program")
    parser.add_argument("--cframe", required=True, help="the program that packs")
    parser.add_argument("--floor", help="the FUSE server that throws bytes away, bench_floor")
    parser.add_argument("--only", default="", metavar="REGEX", help="just the measurements whose name matches")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--size", type=int, default=1 << 30, help="bytes of the sequential writes and the overwritten file")
    parser.add_argument("--json", type=pathlib.Path, help="write every sample and verdict here")
    parser.add_argument("--svg", type=pathlib.Path, help="write a picture here")
    parser.add_argument("--work", type=pathlib.Path, help="directory on the disk that is written to")
    parser.add_argument("--memory", type=pathlib.Path, default=pathlib.Path("/dev/shm"), help="directory on a tmpfs")
    return parser.parse_args()


def report(bench: Bench, labels: list[str]) -> int:
    verdicts = [demand.judge(bench.results) for demand in DEMANDS]
    metrics = sorted({metric for label in bench.results.samples.values() for metric in label})
    machine = (f"kernel {os.uname().release}, {os.cpu_count()} processors, {bench.size // MIB} MiB, "
               f"{bench.arguments.repetitions} repetitions, load {os.getloadavg()[0]:.1f}")
    print(machine, "", *demand_table(verdicts), "", *subject_tables(bench.results, labels, metrics), sep="\n")
    if bench.arguments.json:
        document = {"machine": machine, "verdicts": verdicts, "samples": bench.results.samples,
                    "skipped": bench.results.skipped}
        bench.arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if bench.arguments.svg:
        bench.arguments.svg.write_text(picture(bench.results, labels, [RATE], verdicts), encoding="utf-8")
    outcomes = {verdict["verdict"] for verdict in verdicts}
    if bench.failed or "short" in outcomes:
        return 1
    return SKIPPED if "not measured" in outcomes else 0


def main() -> int:
    arguments = parse_arguments()
    arguments.data = arguments.data.resolve()
    if not (arguments.data / "a.f32").exists():
        print(f"no a.f32 in {arguments.data}")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="cframefs-bench-", dir=arguments.work) as work:
        bench = Bench(arguments, pathlib.Path(work), arguments.memory)
        plan = [pair for pair in plan_of(bench) if re.search(arguments.only, pair[0])]
        for repetition in range(arguments.repetitions):
            order = plan[:]
            random.Random(repetition).shuffle(order)
            for label, measurement in order:
                bench.run(label, measurement)
        bench.add_bounds()
        return report(bench, list(bench.results.samples))


if __name__ == "__main__":
    sys.exit(main())
