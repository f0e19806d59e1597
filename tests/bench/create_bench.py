#!/usr/bin/env python3
"""What small new files cost: mounts beside the plain directory and gocryptfs (Debian's package), on the same disk.

    create_bench.py --directory DIR --mount NAME=PROGRAM[,OPTIONS] ... [--files N] [--rounds N] [--json FILE]

Each round creates the files in each subject, in shuffled order, with one program and with four at once. Every run has a
new directory, and nothing is removed before the end: ext4 searches long for a free inode in the seconds after many
files were removed. The table has medians in microseconds for a file, and the median of the ratios to gocryptfs in the
same round: below 1 is faster.
"""

import argparse
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from listing_bench import PLAIN, Mount, mount_command

BYTES = 1000
PROGRAMS = (1, 4)
PEER = "gocryptfs"
CREATE = """
import sys
content = b"x" * int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    with open(f"{sys.argv[1]}-{number}.dat", "wb") as file:
        file.write(content)
print("done", flush=True)
"""


def command(subject: str, program: str, options: str, source: pathlib.Path, at: pathlib.Path) -> list[str]:
    if subject != PEER:
        return mount_command(program, options, source, at)
    password = source.parent / "password"
    password.write_text("a password")
    quiet = ["-q", "-passfile", str(password)]
    subprocess.run([program, "-init", "-scryptn", "10", *quiet, str(source)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return [program, "-fg", *quiet, str(source), str(at)]


def microseconds(directory: pathlib.Path, programs: int, files: int) -> float:
    """Creates the files with this number of programs at once. Returns the time for one file."""
    directory.mkdir()
    each = files // programs
    words = [[sys.executable, "-c", CREATE, str(directory / f"p{number}"), str(each), str(BYTES)]
             for number in range(programs)]
    children = [subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for line in words]
    for child in children:
        child.stdout.readline()
    begin = time.monotonic()
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    answers = [child.stdout.readline() for child in children]
    taken = time.monotonic() - begin
    for child in children:
        child.communicate()
    if answers != ["done\n"] * programs:
        raise RuntimeError("a program has failed")
    return taken / (each * programs) * 1e6


def measure(work: pathlib.Path, subject: str, program: str, options: str, arguments: argparse.Namespace) -> dict:
    source, at = work / "source", work / "mnt"
    source.mkdir(parents=True)
    at.mkdir()
    mount = Mount(command(subject, program, options, source, at), at) if program else None
    try:
        return {count: microseconds((at if mount else source) / f"by-{count}", count, arguments.files)
                for count in PROGRAMS}
    finally:
        if mount:
            mount.close()


def run(arguments: argparse.Namespace, work: pathlib.Path) -> dict:
    subjects = {PLAIN: ("", "")}
    if peer := shutil.which(PEER):
        subjects[PEER] = (peer, "")
    for text in arguments.mount:
        name, _, rest = text.partition("=")
        program, _, options = rest.partition(",")
        subjects[name] = (program, options)
    taken: dict[str, dict[int, list[float]]] = {name: {count: [] for count in PROGRAMS} for name in subjects}
    for turn in range(arguments.rounds):
        for place, name in enumerate(random.sample(list(subjects), len(subjects))):
            found = measure(work / f"{turn}-{place}", name, *subjects[name], arguments)
            for count, value in found.items():
                taken[name][count].append(value)
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", required=True, help="on the disk to measure")
    parser.add_argument("--mount", action="append", required=True, metavar="NAME=PROGRAM[,OPTIONS]")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    pathlib.Path(arguments.directory).mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="create-", dir=arguments.directory))
    try:
        taken = run(arguments, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for name, found in taken.items():
        line = f"{name:20}"
        for count, values in found.items():
            line += f"  {count} programs: {statistics.median(values):6.1f} us ({min(values):.0f} to {max(values):.0f})"
            if PEER in taken and name not in (PEER, PLAIN):
                ratios = [mine / theirs for mine, theirs in zip(values, taken[PEER][count])]
                line += f", {statistics.median(ratios):.2f} of {PEER}"
        print(line, flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(taken, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
