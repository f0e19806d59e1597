#!/usr/bin/env python3
"""Measures the mount beside its peers, and holds it against what is demanded of it.

    suite.py --data DIR --client PROGRAM --floor PROGRAM --cframefs PROGRAM --cframe PROGRAM [--only SECTION,...] ...

Method. Every measurement has a fresh server; the order of measurements is shuffled again in each repetition, so that
what else the machine does falls on all alike. "Cold" means that no page of the presented file is in the page cache and
the server has decoded nothing yet, while the compressed file lies in the page cache: it is the work of decoding and of
the file system that is compared, not the disk. Free memory is touched first (a virtual machine that gave free pages
back to its host would charge the first program). Figures are medians; a ratio is that of two medians of this run.
Where the host of a virtual machine takes much of the processors' time during a measurement, it is made again, and the
one that lost least counts (--steal): what the neighbours do falls on those hardest who sleep and wake most.

Data. What is missing in DIR is made first (bench_data.py; about 5 GB and some minutes, once). A peer whose program or
file system is missing is left out, with a line saying why. No frame may have a second name (hard link): such a file
could change unnoticed, so that the kernel must ask for its attributes before each read.

Sections (--only): sequential, random, first-byte, directories, readers, memory. With --merge, sections that are not
measured keep what the JSON file of an earlier run says of them; each section holds its own peers, so that a ratio is
always of one run. With --append, what is measured adds to the samples of the same section there: many repetitions in
many short runs.

Exit status: 0 all demands met, 1 one is not met or a measurement failed, 77 one could not be judged.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from bench_data import Data
from bench_demands import DEMANDS
from bench_report import NOT_PART, Results, demand_table, picture, subject_table
from bench_sections import CAT, SECTIONS, random_metric
from bench_servers import BenchError, Mounted, Programs, bdi_path, our_mount, reading_subjects

CLIENT_TIMEOUT = 300
SKIPPED = 77
SPARE_MIB = 256  # free memory touched beyond the size of what is read
MOST_COLUMNS = 5
ATTEMPTS = 3  # at a measurement that the host disturbs
SHOWN = (CAT, random_metric("4K", 1), random_metric("4K", 4))  # in the picture


class Bench:
    """Runs single measurements and collects their results."""

    def __init__(self, arguments: argparse.Namespace, work: pathlib.Path):
        self.arguments = arguments
        self.programs = Programs(arguments.floor, arguments.client, arguments.cframefs, arguments.reference)
        self.data: pathlib.Path = arguments.data
        self.work = work
        self.mount_point = work / "mount"
        self.results = Results()
        self.failed = False
        self.read_ahead_kb: int | None = None
        self.lost: list[float] = []  # percent of the processors' time, of each measurement

    def client(self, *words: object, pid: int | None = None) -> dict:
        command = [self.programs.client, *map(str, words), *([f"--pid={pid}"] if pid else [])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_TIMEOUT, check=False)
        if done.returncode != 0:
            raise BenchError(done.stderr.strip() or f"{command[1]} failed")
        return json.loads(done.stdout)

    def reference_rate(self, frame: pathlib.Path) -> float:
        """MB/s at which the reference library decodes a frame in process, by the program that --reference names."""
        self.prewarm(1 << 30)
        done = subprocess.run([self.programs.reference, str(frame)], capture_output=True, text=True,
                              timeout=CLIENT_TIMEOUT, check=False)
        if done.returncode != 0:
            raise BenchError(f"{self.programs.reference}: {done.stderr.strip()}")
        return float(done.stdout)

    def prewarm(self, size: int) -> None:
        self.client("prewarm", (size >> 20) + SPARE_MIB)

    def reading_subjects(self) -> dict:
        return reading_subjects(self.programs, self.data, self.our_read_ahead_kb())

    def our_read_ahead_kb(self) -> int:
        """What our mount gives itself, so that the floor gets the same; 0 if it cannot be told."""
        if self.read_ahead_kb is None:
            self.read_ahead_kb = 0
            subject = our_mount(self.programs, "probe", self.data / "a-lz4-1m.b2frame")
            if not subject.missing():
                with Mounted(subject, self.mount_point) as mounted:
                    self.read_ahead_kb = int(bdi_path(mounted.mount_point).read_text(encoding="ascii"))
        return self.read_ahead_kb

    def run(self, subject, measurement) -> None:
        reason = subject.missing()
        if reason:
            self.results.skip(subject.label, reason)
            return
        try:
            if subject.backing.is_file():
                self.client("fill", subject.backing)
            for metric, value in self.undisturbed(subject, measurement).items():
                self.results.add(subject.label, metric, value)
        except (BenchError, OSError, ValueError, subprocess.TimeoutExpired) as error:
            self.failed = True
            self.results.skip(subject.label, f"failed: {error}")
            print(f"{subject.label}: {error}", file=sys.stderr)


    def undisturbed(self, subject, measurement) -> dict:
        """What a measurement says, of the attempt that lost least to the host."""
        best: dict = {}
        least = float("inf")
        for _ in range(ATTEMPTS):
            with Mounted(subject, self.mount_point) as mounted:
                before = processor_times()
                found = measurement(mounted)
                lost = stolen_percent(before, processor_times())
            if lost < least:
                least, best = lost, found
            if lost <= self.arguments.steal:
                break
        self.lost.append(least)
        return best


def processor_times() -> tuple[int, int]:
    """Ticks that all processors worked, and that their host gave to others."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _wait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return user + nice + system + irq + softirq, steal


def stolen_percent(before: tuple[int, int], after: tuple[int, int]) -> float:
    worked, stolen = after[0] - before[0], after[1] - before[1]
    return 100 * stolen / max(1, worked + stolen)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="directory of the files that are read")
    parser.add_argument("--client", required=True, help="the measuring client, bench_client")
    parser.add_argument("--floor", required=True, help="the in-memory server, bench_floor")
    parser.add_argument("--cframefs", default="cframefs", help="the mount program")
    parser.add_argument("--cframe", default="cframe", help="the program that makes frames")
    parser.add_argument("--reference", default="", metavar="PROGRAM",
                        help="decodes the frame it is given with the reference library and prints MB/s")
    parser.add_argument("--only", default=",".join(SECTIONS), metavar="SECTION,...", help="just these sections")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a random run")
    parser.add_argument("--steal", type=float, default=5, metavar="PERCENT",
                        help="measure again where the host took more of the processors' time (5)")
    parser.add_argument("--limit", type=float, default=900, metavar="SECONDS",
                        help="start nothing after that, and report what there is (900)")
    parser.add_argument("--make-only", action="store_true", help="make the data and measure nothing")
    parser.add_argument("--json", type=pathlib.Path, help="write every sample and verdict here")
    parser.add_argument("--merge", action="store_true", help="keep what the JSON file says of other sections")
    parser.add_argument("--append", action="store_true", help="as --merge, and add to the sections that are measured")
    parser.add_argument("--also", type=pathlib.Path, action="append", default=[], metavar="JSON",
                        help="take in the verdicts of another benchmark (write_bench.py --json)")
    parser.add_argument("--svg", type=pathlib.Path, help="write a picture here")
    parser.add_argument("--work", type=pathlib.Path, help="where the temporary mount point is made")
    arguments = parser.parse_args()
    arguments.only = arguments.only.split(",")
    unknown = set(arguments.only) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    return arguments


def describe_machine(bench: Bench) -> str:
    memcpy = bench.client("memcpy")["MBps"]
    now = datetime.datetime.now(datetime.timezone.utc)
    return (f"{now:%Y-%m-%d %H:%M} UTC, kernel {os.uname().release}, {os.cpu_count()} processors, "
            f"memcpy {memcpy:,.0f} MB/s, {statistics.median(bench.lost or [0]):.0f} % lost to the host")


def measure(bench: Bench) -> dict[str, dict]:
    """Everything asked for; for each section what was sampled, beneath its name."""
    plans = {section: SECTIONS[section][0](bench) for section in bench.arguments.only}
    pairs = [(section, *pair) for section, plan in plans.items() for pair in plan]
    results = {section: Results() for section in plans}
    end = time.monotonic() + bench.arguments.limit
    for repetition in range(bench.arguments.repetitions):
        random.shuffle(pairs)
        for section, subject, measurement in pairs:
            if time.monotonic() > end:
                print(f"stopped in repetition {repetition + 1}: --limit")
                break
            bench.results = results[section]
            bench.run(subject, measurement)
    machine = describe_machine(bench)
    return {section: {"machine": machine, "samples": found.samples, "skipped": found.skipped}
            for section, found in results.items()}


def appended(earlier: dict, found: dict) -> dict:
    """One section of two runs of it."""
    samples = {label: {metric: list(values) for metric, values in metrics.items()}
               for label, metrics in earlier["samples"].items()}
    for label, metrics in found["samples"].items():
        for metric, values in metrics.items():
            samples.setdefault(label, {}).setdefault(metric, []).extend(values)
    return {**found, "samples": samples}


def joined(sections: dict[str, dict]) -> Results:
    results = Results()
    for found in sections.values():
        for label, metrics in found["samples"].items():
            results.samples.setdefault(label, {}).update(metrics)
        for label, reason in found["skipped"].items():
            results.skip(label, reason)
    return results


def print_section(name: str, found: dict) -> None:
    results = Results()
    results.samples, results.skipped = found["samples"], found["skipped"]
    metrics = list(dict.fromkeys(metric for sampled in results.samples.values() for metric in sampled))
    print(f"\n{name} ({found['machine']})")
    for begin in range(0, len(metrics), MOST_COLUMNS):
        print("\n".join(["", *subject_table(results, list(results.samples), metrics[begin:begin + MOST_COLUMNS])]))
    for label, reason in results.skipped.items():
        print(f"skipped: {label}: {reason}")


def report(arguments: argparse.Namespace, sections: dict[str, dict], failed: bool) -> int:
    results = joined(sections)
    verdicts = [demand.judge(results) for demand in DEMANDS]
    for other in arguments.also:
        verdicts += json.loads(other.read_text(encoding="utf-8"))["verdicts"]
    for name, found in sections.items():
        print_section(name, found)
    judged = [verdict for verdict in verdicts if not verdict["reason"].endswith(NOT_PART)]
    print("\n".join(["", *demand_table(judged)]))
    if len(judged) < len(verdicts):
        print(f"{len(verdicts) - len(judged)} demands are about what was not part of this run")
    if arguments.json:
        document = {"verdicts": verdicts, "sections": sections}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if arguments.svg:
        labels = [label for label in results.samples if "zlib" not in label]
        arguments.svg.write_text(picture(results, labels, list(SHOWN), verdicts), encoding="utf-8")
    outcomes = {verdict["verdict"] for verdict in verdicts}
    if failed or "short" in outcomes:
        return 1
    return SKIPPED if "not measured" in outcomes else 0


def stop(_signal, _frame) -> None:
    raise SystemExit("stopped")  # through every context manager: nothing stays mounted


def main() -> int:
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, stop)
    arguments.data = arguments.data.resolve()
    groups = set().union(*(SECTIONS[section][1] for section in arguments.only))
    Data(arguments.data, arguments.client, arguments.cframe, arguments.cframefs).make(groups)
    if arguments.make_only:
        return 0
    sections = {}
    if (arguments.merge or arguments.append) and arguments.json and arguments.json.exists():
        sections = json.loads(arguments.json.read_text(encoding="utf-8"))["sections"]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cframefs-bench-", dir=arguments.work) as work:
        bench = Bench(arguments, pathlib.Path(work))
        for name, found in measure(bench).items():
            sections[name] = appended(sections[name], found) if arguments.append and name in sections else found
    print(f"measured for {time.monotonic() - begin:.0f} s")
    return report(arguments, sections, bench.failed)


if __name__ == "__main__":
    sys.exit(main())
