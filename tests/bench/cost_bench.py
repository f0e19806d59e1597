#!/usr/bin/env python3
"""Measures what checksums and the sandbox cost: each work with and without, in one run.

    cost_bench.py --cframefs PROGRAM --cframe PROGRAM --client PROGRAM [--rounds N] [--only REGEX] [--json FILE]

Method. 256 MiB of float32 are packed with 256 KiB blocks by lz4, zstd, and uncompressed, sealed and unsealed. A round
does each work once with and once without, in random order, each in a fresh mount, with the stored files in the page
cache. What is read is a new copy each time, because the place that a file has in memory changes the time by some
percent and would stay the same for all rounds. The table has the median times, the median of the ratios of the rounds
(above 1: the feature costs nothing), their spread, and the ratio of the processor time of the daemons. The last lines
compare the sizes of the files.

Exit status: 0, or 1 if a work failed.
"""

import argparse
import json
import os
import pathlib
import random
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

MIB = 1 << 20
DATA = 256 * MIB
RANDOM_READS = 4000
NAMES = 5000
CODECS = {"lz4": ("--codec=lz4",), "zstd": ("--codec=zstd",), "raw": ("--clevel=0",)}


def read_in_order(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(MIB):
            pass


def read_at_random(path):
    places = random.Random(5)
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    pages = os.fstat(descriptor).st_size // 4096
    for _ in range(RANDOM_READS):
        os.pread(descriptor, 4096, places.randrange(pages) * 4096)
    os.close(descriptor)


class Costs:
    def __init__(self, arguments, work):
        self.arguments = arguments
        self.data = work / "data"
        self.view = work / "view"
        self.view.mkdir()
        self.sources = {}
        subprocess.run([arguments.client, "generate", f"--size={DATA}", "--kind=field", self.data], check=True)
        self.plain = self.data.read_bytes()
        for mode in ("on", "off"):
            self.sources[mode] = work / mode
            self.sources[mode].mkdir()
            for name, options in CODECS.items():
                subprocess.run([arguments.cframe, "pack", "--typesize=4", "--blocksize=256K", "--chunksize=1M", *options,
                                f"--checksums={mode}", self.data, self.sources[mode] / f"{name}.b2frame"],
                               check=True, stdout=subprocess.DEVNULL)
        self.copy = work / "copy"
        self.copy.mkdir()
        self.names = work / "names"
        self.names.mkdir()
        for number in range(NAMES):
            (self.names / str(number)).write_bytes(b"x")

    def mounted(self, source, options, work):
        """Time of the work, and processor time of the daemon from its beginning to its end."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        # The kernel would read the rest of the blocks, at times of its own.
        daemon = subprocess.Popen([self.arguments.cframefs, "-f", "-o", "fill_pages=off," + options, source, self.view],
                                  stderr=subprocess.DEVNULL)
        while not os.path.ismount(self.view):
            time.sleep(0.002)
        began = time.perf_counter()
        work()
        took = time.perf_counter() - began
        daemon.terminate()
        if daemon.wait() != 0:
            raise SystemExit(f"the daemon failed with {options}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def read_copy(self, mode, name, options, read):
        stored = self.copy / f"{name}.b2frame"
        shutil.copyfile(self.sources[mode] / stored.name, stored)
        try:
            return self.mounted(self.copy, options, lambda: read(self.view / name))
        finally:
            stored.unlink()

    def written(self, options):
        with tempfile.TemporaryDirectory(dir=self.view.parent) as target:
            def write():
                with open(self.view / "new", "wb", buffering=0) as file:
                    for at in range(0, DATA, MIB):
                        file.write(self.plain[at:at + MIB])
            return self.mounted(target, options, write)

    def open_names(self):
        for number in range(NAMES):
            with open(self.view / str(number), "rb", buffering=0) as file:
                file.read(1)

    def stat_names(self):
        for number in range(NAMES):
            os.stat(self.view / str(number))

    def works(self):
        """Name, work with, work without."""
        for name in CODECS:
            for what, read in (("in order", read_in_order), ("random 4 KiB", read_at_random)):
                yield (f"checksums, {name} {what}",
                       *(lambda mode=mode, name=name, read=read: self.read_copy(mode, name, "ro", read)
                         for mode in ("on", "off")))
        for codec in ("lz4", "zstd"):
            yield (f"checksums, {codec} written",
                   *(lambda mode=mode, codec=codec: self.written(f"codec={codec},checksums={mode}") for mode in ("on", "off")))
        for what, work in (("open and read", self.open_names), ("stat", self.stat_names)):
            yield (f"sandbox, {what} of {NAMES} files",
                   *(lambda mode=mode, work=work: self.mounted(self.names, f"sandbox={mode}", work) for mode in ("auto", "off")))
        for what, read in (("in order", read_in_order), ("random 4 KiB", read_at_random)):
            yield (f"sandbox, lz4 {what}",
                   *(lambda mode=mode, read=read: self.read_copy("off", "lz4", f"ro,sandbox={mode}", read)
                     for mode in ("auto", "off")))


def measure(rounds, with_it, without):
    pairs = []
    for _ in range(rounds):
        order = [0, 1]
        random.shuffle(order)
        pair = [None, None]
        for which in order:
            pair[which] = (with_it, without)[which]()
        pairs.append(pair)
    ratios = [without_it[0] / with_it[0] for with_it, without_it in pairs]
    return {"with": statistics.median(pair[0][0] for pair in pairs),
            "without": statistics.median(pair[1][0] for pair in pairs),
            "ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios),
            "processor": sum(pair[1][1] for pair in pairs) / sum(pair[0][1] for pair in pairs)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for program in ("--cframefs", "--cframe", "--client"):
        parser.add_argument(program, required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="cframefs-cost-", dir=memory) as directory:
        costs = Costs(arguments, pathlib.Path(directory))
        print(f"{'work':42} {'with':>8} {'without':>8} {'ratio':>6} {'spread':>12} {'processor':>9}")
        rows = {}
        for name, with_it, without in costs.works():
            if not re.search(arguments.only, name):
                continue
            row = rows[name] = measure(arguments.rounds, with_it, without)
            print(f"{name:42} {row['with']:7.3f}s {row['without']:7.3f}s {row['ratio']:6.3f} "
                  f"{row['least']:5.2f}–{row['most']:5.2f} {row['processor']:9.3f}", flush=True)
        for name in CODECS:
            sizes = [os.path.getsize(costs.sources[mode] / f"{name}.b2frame") for mode in ("on", "off")]
            rows[f"size {name}"] = sizes
            print(f"size {name}: {sizes[0]} sealed, {sizes[1]} unsealed: {(sizes[0] / sizes[1] - 1) * 100:+.4f} %")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
