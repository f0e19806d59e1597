#!/usr/bin/env python3
"""Measures plain files: each way of reading in the source itself and through mounts, in one run.

    passthrough_bench.py --cframefs PROGRAM --client PROGRAM [--directory DIR] [--rounds N] [--json FILE]

Method. A file of 512 MiB is read in order, at random in pieces of 4 KiB, and through a map; cold, that is with nothing of
it in memory, and warm, when it has been read before; of warm reads the best of five counts. A round does all this in the
source, in a mount with passthrough=auto and in one with passthrough=off, in random order; each mount is fresh. The table
has the median speed in the source and the medians of the ratios mount to source, with the least and the largest. Cold reads
of a virtual disk vary more than warm ones.

Exit status: 0, or 1 if a program failed.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

MIB = 1 << 20
SIZE = 512 * MIB
SECONDS = 0.5
WARM = 5
READS = {"in order": ("sequential", "--block=1M"), "random 4 KiB": ("random", "--block=4K", f"--seconds={SECONDS}"),
         "mapped": ("mmap",)}
MOUNTS = ("passthrough=auto", "passthrough=off")


class Plain:
    def __init__(self, arguments, work):
        self.arguments = arguments
        self.source, self.view = work / "source", work / "view"
        self.source.mkdir()
        self.view.mkdir()
        with open(self.source / "file", "wb") as file:
            for _ in range(SIZE // MIB):
                file.write(random.randbytes(MIB))
            os.fsync(file.fileno())

    def forget(self):
        with open(self.source / "file", "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def speed(self, directory, words, seed):
        """Operations or bytes for each second."""
        if words[0] == "random":
            words = (*words, f"--seed={seed}")
        said = json.loads(subprocess.run([self.arguments.client, *words, directory / "file"], check=True,
                                         stdout=subprocess.PIPE).stdout)
        return said["ops"] if "ops" in said else SIZE / said["seconds"]

    def speeds_in(self, directory, words, seed):
        cold = self.speed(directory, words, seed)
        self.speed(directory, READS["in order"], 0)
        return cold, max(self.speed(directory, words, seed) for _ in range(WARM))

    def speeds(self, subject, words, seed):
        """Cold and warm."""
        self.forget()
        if subject == "source":
            return self.speeds_in(self.source, words, seed)
        with subprocess.Popen([self.arguments.cframefs, "-f", "-o", subject, self.source, self.view],
                              stderr=subprocess.DEVNULL) as daemon:
            while not os.path.ismount(self.view):
                time.sleep(0.002)
            found = self.speeds_in(self.view, words, seed)
            daemon.terminate()
        if daemon.returncode != 0:
            raise SystemExit(f"the daemon failed with {subject}")
        return found


def described(ratios):
    return f"{statistics.median(ratios):6.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def measure(plain, words, rounds):
    """The speeds of each subject, cold and warm, one of each round."""
    found = {subject: [] for subject in ("source", *MOUNTS)}
    for seed in range(rounds):
        for subject in random.sample(list(found), len(found)):
            found[subject].append(plain.speeds(subject, words, seed))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for program in ("--cframefs", "--client"):
        parser.add_argument(program, required=True)
    parser.add_argument("--directory", help="where the file is made: a disk, for cold reads")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = {}
    with tempfile.TemporaryDirectory(prefix="cframefs-passthrough-", dir=arguments.directory) as directory:
        plain = Plain(arguments, pathlib.Path(directory))
        print(f"{'reads':22} {'source':>14} " + "".join(f"{mount:>24}" for mount in MOUNTS))
        for name, words in READS.items():
            found = measure(plain, words, arguments.rounds)
            for at, state in enumerate(("cold", "warm")):
                source = [pair[at] for pair in found["source"]]
                row = {mount: [pair[at] / its for pair, its in zip(found[mount], source)] for mount in MOUNTS}
                rows[f"{name}, {state}"] = row
                median = statistics.median(source)
                speed = f"{median / 1000:8.1f} k/s" if words[0] == "random" else f"{median / MIB:8.0f} MiB/s"
                print(f"{name + ', ' + state:22} {speed:>14} " + "".join(f"{described(row[mount]):>24}" for mount in MOUNTS),
                      flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
