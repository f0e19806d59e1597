#!/usr/bin/env python3
"""Measures the mount beside its peers and holds it against what is demanded of it.

    mount_bench.py --data DIR --client PROGRAM --floor PROGRAM [--cframefs PROGRAM] [--table must|all] ...

Method. Every measurement has a fresh server; the order of measurements is shuffled anew in each repetition, so that
what else the machine does falls on all alike. "Cold" means that no page of the presented file is in the page cache and
the server has decoded nothing yet, while the compressed file lies in the page cache: it is the work of decoding and of
the file system that is compared, not the disk. Free memory is touched first (a virtual machine that gave free pages
back to its host would charge whoever comes first). Figures are medians; a ratio is that of two medians of this run.

Data. DIR holds one file presented in many ways (those that are missing are left out, with a line saying so):
    a.f32                                   the plain bytes
    a-lz4-1m.b2frame  a-zstd5-1m.b2frame    frames of it, shuffle, typesize 4, chunks of 1 MiB; -16m: of 16 MiB
    a-lz4-1m.sqfs a-lz4-128k.sqfs a-zstd5-1m.sqfs a-zstd5-128k.sqfs a-lz4.erofs   images with a.f32 in them
    many-1k.b2frame  many-1m.b2frame        frames of 1,000 and of 1,000,000 chunks of 4 KiB
No frame may have a second name (hard link): such a file could change unnoticed, so that the kernel must ask for its
attributes before each read.

Exit status: 0 all demands met, 1 one is not met or a measurement failed, 77 one could not be judged.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from bench_report import Demand, Results, demand_table, picture, subject_tables
from bench_servers import BenchError, Mounted, Programs, all_subjects, bdi_path, our_mount

CLIENT_TIMEOUT = 300
SKIPPED = 77
MIB = 1 << 20
CACHE_SIZES_MIB = (64, 256)  # of the memory rows
MEMORY_READERS = 8

CAT = "cat MB/s"
WARM = "warm MB/s"
WARM_REQUESTS = "warm requests"
CPU = "cat server CPU s"
RANDOM_1 = "random 4K, 1 job ops/s"
RANDOM_4 = "random 4K, 4 jobs ops/s"
FIRST_BYTE = "open + first byte µs"
LZ4, ZSTD = "cframefs lz4 1M", "cframefs zstd 1M"
SMALL, LARGE = "cframefs 1,000 chunks", "cframefs 1,000,000 chunks"

DEMANDS = [
    Demand("cold cat, lz4: squashfuse_ll lz4 1M", (LZ4, CAT), ("squashfuse_ll lz4 1M", CAT), 2.0),
    Demand("cold cat, lz4: in-memory server", (LZ4, CAT), ("floor", CAT), 0.65),
    Demand("cold cat, zstd: squashfuse_ll zstd 1M", (ZSTD, CAT), ("squashfuse_ll zstd 1M", CAT), 2.0),
    Demand("cold cat, zstd: in-memory server", (ZSTD, CAT), ("floor", CAT), 0.5),
    Demand("warm read, lz4: in-memory server", (LZ4, WARM), ("floor", WARM), 0.9),
    # Open, attributes and release may reach the daemon; reading 1 GiB would be a thousand requests and more.
    Demand("warm read, lz4: requests to the daemon", (LZ4, WARM_REQUESTS), None, 8, False, ""),
    Demand("random 4K, 1 job, lz4: squashfuse_ll lz4 128K", (LZ4, RANDOM_1), ("squashfuse_ll lz4 128K", RANDOM_1), 1.1),
    Demand("random 4K, 4 jobs, lz4: squashfuse_ll lz4 128K", (LZ4, RANDOM_4), ("squashfuse_ll lz4 128K", RANDOM_4), 1.8),
    Demand("random 4K, 1 job, zstd: squashfuse_ll zstd 128K", (ZSTD, RANDOM_1), ("squashfuse_ll zstd 128K", RANDOM_1),
           1.8),
    Demand("open + first byte: 1,000,000 against 1,000 chunks", (LARGE, FIRST_BYTE), (SMALL, FIRST_BYTE), 3.0, False),
]


def memory_label(size_mib: int) -> str:
    return f"cframefs zstd 16M, cache_size={size_mib}M"


def memory_metric(pattern: str) -> str:
    return f"peak above cache_size MiB, {pattern}"


DEMANDS += [
    Demand(f"memory above cache_size={size}M, {MEMORY_READERS} {pattern} readers, 16M chunks",
           (memory_label(size), memory_metric(pattern)), None, 64, False, "MiB")
    for size in CACHE_SIZES_MIB for pattern in ("sequential", "random")
]


class Bench:
    """Runs single measurements and collects their results."""

    def __init__(self, arguments: argparse.Namespace, work: pathlib.Path):
        self.arguments = arguments
        self.programs = Programs(arguments.floor, arguments.client, arguments.cframefs)
        self.data: pathlib.Path = arguments.data
        self.work = work
        self.mount_point = work / "mount"
        self.results = Results()
        self.failed = False

    def client(self, *words: object, pid: int | None = None) -> dict:
        command = [self.programs.client, *map(str, words), *([f"--pid={pid}"] if pid else [])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_TIMEOUT, check=False)
        if done.returncode != 0:
            raise BenchError(done.stderr.strip() or f"{command[1]} failed")
        return json.loads(done.stdout)

    def prewarm(self, size: int) -> None:
        self.client("prewarm", (size >> 20) + 256)

    # Each of these has a fresh server, with the compressed file in the page cache.

    def measure_cat(self, mounted: Mounted) -> dict:
        self.prewarm(mounted.file.stat().st_size)
        cold = self.client("cat", mounted.file, pid=mounted.pid)
        warm = self.client("sequential", mounted.file, pid=mounted.pid)
        result = {CAT: cold["MBps"], WARM: warm["MBps"]}
        if mounted.pid:
            result.update({CPU: cold["server_cpu_s"], WARM_REQUESTS: warm["server_requests"],
                           "cat peak memory MiB": warm["server_peak_mib"]})
        return result

    def measure_sequential(self, mounted: Mounted, command: str, metric: str, *words: str) -> dict:
        self.prewarm(mounted.file.stat().st_size)
        return {metric: self.client(command, mounted.file, *words)["MBps"]}

    def measure_random(self, mounted: Mounted, metric: str, block: str, jobs: int) -> dict:
        seed = random.randrange(1, 1 << 20)
        got = self.client("random", mounted.file, f"--block={block}", f"--jobs={jobs}", f"--seed={seed}",
                          f"--seconds={self.arguments.seconds}", pid=mounted.pid)
        stem = metric.removesuffix(" ops/s")
        return {metric: got["ops"], f"{stem} p50 µs": got["p50_us"], f"{stem} p99 µs": got["p99_us"]}

    def run(self, subject, measurement) -> None:
        reason = subject.missing()
        if reason:
            self.results.skip(subject.label, reason)
            return
        try:
            self.client("fill", subject.backing)
            with Mounted(subject, self.mount_point) as mounted:
                for metric, value in measurement(mounted).items():
                    self.results.add(subject.label, metric, value)
        except (BenchError, OSError, subprocess.TimeoutExpired) as error:
            self.failed = True
            self.results.skip(subject.label, f"failed: {error}")
            print(f"{subject.label}: {error}", file=sys.stderr)

    def our_read_ahead_kb(self) -> int:
        """What our mount gives itself, so that the floor gets the same; 0 if it cannot be told."""
        subject = our_mount(self.programs, "probe", self.data / "a-lz4-1m.b2frame")
        if subject.missing():
            return 1024 if os.geteuid() == 0 else 0
        try:
            with Mounted(subject, self.mount_point) as mounted:
                return int(bdi_path(mounted.mount_point).read_text(encoding="ascii"))
        except (BenchError, OSError):
            return 0


def reading_plan(bench: Bench) -> list[tuple]:
    """(subject, measurement) pairs of the table asked for."""
    subjects = all_subjects(bench.programs, bench.data, bench.our_read_ahead_kb())

    def random_reads(metric: str, block: str, jobs: int):
        return metric, lambda mounted: bench.measure_random(mounted, metric, block, jobs)

    def in_order(metric: str, command: str, *words: str):
        return metric, lambda mounted: bench.measure_sequential(mounted, command, metric, *words)

    measurements = dict([
        (CAT, bench.measure_cat),
        random_reads(RANDOM_1, "4K", 1),
        random_reads(RANDOM_4, "4K", 4),
        in_order("sequential 128K MB/s", "sequential", "--block=128K"),
        in_order("sequential 1M MB/s", "sequential", "--block=1M"),
        in_order("mmap MB/s", "mmap"),
        random_reads("random 64K, 1 job ops/s", "64K", 1),
        random_reads("random 64K, 4 jobs ops/s", "64K", 4),
    ])
    if bench.arguments.table == "all":
        wanted = [(label, metric) for label in subjects for metric in measurements]
    else:
        # WARM comes with CAT.
        places = [place for demand in DEMANDS for place in (demand.ours, demand.peer) if place]
        wanted = list(dict.fromkeys(place for place in places if place[0] in subjects and place[1] in measurements))
    return [(subjects[label], measurements[metric]) for label, metric in wanted]


def opening_plan(bench: Bench) -> list[tuple]:
    """Open and first byte of a small and a large frame. Another frame is read first: starting up is not opening."""
    other = "a-lz4-1m.b2frame"
    plan = []
    for label, name in ((SMALL, "many-1k.b2frame"), (LARGE, "many-1m.b2frame")):
        subject = our_mount(bench.programs, label, bench.data / name)

        def measure(mounted: Mounted, offset: int, metric: str) -> dict:
            if (mounted.mount_point / other).exists():
                bench.client("open", mounted.mount_point / other)
            return {metric: bench.client("open", mounted.file, f"--offset={offset}")["first_byte_us"]}

        def first(mounted: Mounted, measure=measure) -> dict:
            return measure(mounted, 0, FIRST_BYTE)

        def middle(mounted: Mounted, measure=measure) -> dict:
            return measure(mounted, mounted.file.stat().st_size // 2, "open + byte in the middle µs")

        plan += [(subject, first)] * 3 + [(subject, middle)]
    return plan


def memory_plan(bench: Bench) -> list[tuple]:
    """Peak memory of the daemon, each pattern on a daemon of its own."""
    plan = []
    for size in CACHE_SIZES_MIB:
        subject = our_mount(bench.programs, memory_label(size), bench.data / "a-zstd5-16m.b2frame",
                            f"cache_size={size}M")

        def sequential(mounted: Mounted, size=size) -> dict:
            got = bench.client("sequential", mounted.file, f"--jobs={MEMORY_READERS}", pid=mounted.pid)
            return {memory_metric("sequential"): got["server_peak_mib"] - size, "8 readers MB/s": got["MBps"]}

        def scattered(mounted: Mounted, size=size) -> dict:
            got = bench.client("random", mounted.file, "--block=64K", f"--jobs={MEMORY_READERS}", "--seconds=2",
                               pid=mounted.pid)
            return {memory_metric("random"): got["server_peak_mib"] - size}

        plan += [(subject, sequential), (subject, scattered)]
    return plan


def walking_plan(bench: Bench) -> list[tuple]:
    """Listing and stat of a folder of small frames, beside the floor's folder of as many files."""
    small, count = bench.arguments.small_frame, bench.arguments.walk_files
    if bench.arguments.table != "all" or not small or not small.exists():
        return []
    folder = bench.work / "frames"
    folder.mkdir()
    for index in range(count):
        shutil.copyfile(small, folder / f"{index:06}.b2frame")
    subjects = all_subjects(bench.programs, bench.data, 0)
    floor = subjects["floor"]
    floor = type(floor)(f"floor, {count} files", (*floor.command[:-1], f"--many={count}", "{mount}"), "many",
                        floor.backing)
    ours = our_mount(bench.programs, f"cframefs, {count} frames", folder / "000000.b2frame")

    def walk(mounted: Mounted) -> dict:
        at = mounted.file if mounted.file.is_dir() else mounted.mount_point
        cold, warm = bench.client("walk", at), bench.client("walk", at)
        return {"stat, cold entries/s": cold["ops"], "stat, warm entries/s": warm["ops"]}

    return [(ours, walk), (floor, walk)]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder with the files named above")
    parser.add_argument("--client", required=True, help="the measuring client, bench_client")
    parser.add_argument("--floor", required=True, help="the in-memory server, bench_floor")
    parser.add_argument("--cframefs", default="cframefs", help="the mount program")
    parser.add_argument("--table", choices=("must", "all"), default="must",
                        help="what is needed to judge the demands, or every subject in every way")
    parser.add_argument("--only", default="", metavar="REGEX", help="just the subjects whose label matches")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a random run")
    parser.add_argument("--small-frame", type=pathlib.Path, help="a small frame, copied for the walk (--table=all)")
    parser.add_argument("--walk-files", type=int, default=2000)
    parser.add_argument("--json", type=pathlib.Path, help="write every sample and verdict here")
    parser.add_argument("--svg", type=pathlib.Path, help="write a picture here")
    parser.add_argument("--work", type=pathlib.Path, help="where the temporary mount point is made")
    return parser.parse_args()


def describe_machine(bench: Bench) -> str:
    load = os.getloadavg()[0]
    memcpy = bench.client("memcpy")["MBps"]
    now = datetime.datetime.now(datetime.timezone.utc)
    return (f"{now:%Y-%m-%d %H:%M} UTC, kernel {os.uname().release}, {os.cpu_count()} processors, "
            f"memcpy {memcpy:,.0f} MB/s, {bench.arguments.repetitions} repetitions, load before {load:.1f}")


def report(bench: Bench, machine: str, labels: list[str]) -> int:
    verdicts = [demand.judge(bench.results) for demand in DEMANDS]
    metrics = sorted({metric for label in bench.results.samples.values() for metric in label})
    print(machine)
    print()
    print("\n".join([*demand_table(verdicts), "", *subject_tables(bench.results, labels, metrics)]))
    if bench.arguments.json:
        document = {"machine": machine, "verdicts": verdicts, "samples": bench.results.samples,
                    "skipped": bench.results.skipped}
        bench.arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if bench.arguments.svg:
        bench.arguments.svg.write_text(picture(bench.results, labels, metrics, verdicts), encoding="utf-8")
    outcomes = {verdict["verdict"] for verdict in verdicts}
    if bench.failed or "short" in outcomes:
        return 1
    return SKIPPED if "not measured" in outcomes else 0


def main() -> int:
    arguments = parse_arguments()
    arguments.data = arguments.data.resolve()
    with tempfile.TemporaryDirectory(prefix="cframefs-bench-", dir=arguments.work) as work:
        bench = Bench(arguments, pathlib.Path(work))
        machine = describe_machine(bench)
        plan = [*reading_plan(bench), *opening_plan(bench), *memory_plan(bench), *walking_plan(bench)]
        plan = [pair for pair in plan if re.search(arguments.only, pair[0].label)]
        for repetition in range(arguments.repetitions):
            order = plan[:]
            random.Random(repetition).shuffle(order)
            for subject, measurement in order:
                bench.run(subject, measurement)
        machine += f", after {os.getloadavg()[0]:.1f} (1 to 2 is the measuring itself)"
        return report(bench, machine, list(dict.fromkeys(subject.label for subject, _ in plan)))


if __name__ == "__main__":
    sys.exit(main())
