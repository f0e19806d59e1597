#!/usr/bin/env python3
"""What many programs at once get from one mount: readers of one file, and programs that append and sync.

    crowd_bench.py --directory DIR --cframe PROGRAM --mount NAME=PROGRAM[,OPTIONS] ... [--size MIB] [--codec NAME]
                   [--rounds N] [--busy N] [--json FILE]

Each round measures each row once for each mount, in shuffled order, on a fresh mount: readers that each read their part
of a frame in order; readers of 4 KiB at random; programs that each append 100 bytes to a file of their own and sync it,
also in the plain directory and in gocryptfs, if that is installed. --busy: programs that compute meanwhile (as many as
processors): waiting threads that are woken for nothing then cost the most. The table has medians of MB or calls a
second, and the medians of their ratios to the first mount in the same round: above 1 is faster.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from bench_readers import MIB, read_at_random, read_in_parts, run_threads
from create_bench import PEER, command
from listing_bench import PLAIN, Mount

ORDER, RANDOM, SYNC = "in order, MB/s", "random 4 KiB, 1/s", "append and sync, 1/s"
ROWS = [(ORDER, count) for count in (1, 4, 16, 64)] + [(RANDOM, count) for count in (1, 64)] + [
    (SYNC, count) for count in (1, 4, 16, 64)]
APPENDED = b"x" * 100
SYNC_SECONDS = 3
PLACES = 20_000
PERIOD, NOISE = 1024, 410  # bytes of noise in each PERIOD


def make_frame(directory: pathlib.Path, arguments: argparse.Namespace) -> pathlib.Path:
    generator = random.Random(1)
    plain = directory / "large"
    with open(plain, "wb") as file:
        for _ in range(arguments.size):
            file.write(b"".join(generator.randbytes(NOISE) + bytes(PERIOD - NOISE) for _ in range(MIB // PERIOD)))
    frames = directory / "frames"
    frames.mkdir()
    subprocess.run([arguments.cframe, "pack", "-q", f"--codec={arguments.codec}", plain, frames / "large.b2frame"],
                   check=True)
    plain.unlink()
    return frames


def append_and_sync(directory: pathlib.Path, programs: int) -> float:
    """Returns the calls a second of all together. Each thread has a file of its own."""
    done = [0] * programs
    descriptors = [os.open(directory / f"appended{number}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
                   for number in range(programs)]
    end = time.monotonic() + SYNC_SECONDS

    def append(number: int) -> None:
        while time.monotonic() < end:
            os.write(descriptors[number], APPENDED)
            os.fsync(descriptors[number])
            done[number] += 1

    took = run_threads(append, programs)
    for descriptor in descriptors:
        os.close(descriptor)
    return sum(done) / took


def measure(row: tuple[str, int], at: pathlib.Path) -> float:
    what, count = row
    if what == SYNC:
        return append_and_sync(at, count)
    size = (at / "large").stat().st_size
    if what == ORDER:
        return read_in_parts(at / "large", count, size) / 1e6
    generator = random.Random(2)
    return read_at_random(at / "large", count, [generator.randrange(size // 4096) * 4096 for _ in range(PLACES)])


@contextlib.contextmanager
def mounted(subject: str, program: str, options: str, source: pathlib.Path, at: pathlib.Path):
    mount = Mount(command(subject, program, options, source, at), at)
    try:
        yield
    finally:
        mount.close()


@contextlib.contextmanager
def busy(programs: int):
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(programs)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def run(arguments: argparse.Namespace, work: pathlib.Path) -> dict:
    frames = make_frame(work, arguments)
    mounts = {}
    for text in arguments.mount:
        name, _, rest = text.partition("=")
        mounts[name] = rest.partition(",")[::2]
    taken: dict[tuple[str, int], dict[str, list[float]]] = {row: {} for row in ROWS}
    for turn in range(arguments.rounds):
        for row in random.sample(ROWS, len(ROWS)):
            subjects = dict(mounts)
            if row[0] == SYNC:
                subjects[PLAIN] = ("", "")
                if peer := shutil.which(PEER):
                    subjects[PEER] = (peer, "")
            for place, name in enumerate(random.sample(list(subjects), len(subjects))):
                here = work / f"{turn}-{row[0][:2]}{row[1]}-{place}"
                source = here / "source" if row[0] == SYNC else frames
                at = here / "mnt"
                for directory in (here, source, at):
                    directory.mkdir(exist_ok=True)
                program, options = subjects[name]
                with contextlib.ExitStack() as stack:
                    if program:
                        stack.enter_context(mounted(name, program, options, source, at))
                    value = measure(row, at if program else source)
                taken[row].setdefault(name, []).append(value)
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", required=True, help="on the disk to measure")
    parser.add_argument("--cframe", required=True)
    parser.add_argument("--mount", action="append", required=True, metavar="NAME=PROGRAM[,OPTIONS]")
    parser.add_argument("--size", type=int, default=512, help="MiB of the file that is read")
    parser.add_argument("--codec", default="zstd")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--busy", type=int, default=os.cpu_count())
    parser.add_argument("--json")
    arguments = parser.parse_args()
    pathlib.Path(arguments.directory).mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="crowd-", dir=arguments.directory))
    try:
        with busy(arguments.busy):
            taken = run(arguments, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    first = arguments.mount[0].partition("=")[0]
    for (what, count), found in taken.items():
        for name, values in found.items():
            ratio = statistics.median(mine / theirs for mine, theirs in zip(values, found[first]))
            print(f"{what:22} {count:3} at once  {name:16} {statistics.median(values):9.0f} ({min(values):.0f} to "
                  f"{max(values):.0f})  {ratio:.2f} of {first}", flush=True)
    if arguments.json:
        rows = [{"what": what, "at_once": count, "subjects": found} for (what, count), found in taken.items()]
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
