#!/usr/bin/env python3
"""Measures random reads of 4 KiB from a fresh mount: the first ones, on end, and with a file larger than the memory.

    random_bench.py --cframefs PROGRAM --cframe PROGRAM --client PROGRAM [--size MIB] [--rounds N] [--only REGEX] [--json FILE]

Method. Float32 data (512 MiB) are stored as frames, with the default blocks and with those of --tune=random, and as
squashfs images with blocks of 128 KiB, by lz4 and by zstd. The ratios of both come first. A round measures each subject
once, in random order, each in a fresh mount, with the stored file in the page cache: the first 400 reads by one job and
by four, then reads for 3 seconds. Subjects: this mount with fill_pages on and off, and with frames of --tune=random;
squashfuse, and the squashfs of the kernel. The last work has the memory of reader and mount limited to a quarter of the
file (memory cgroup, version 1), from its beginning on. The table has medians, in reads for each second, and the ratio
of fill_pages=on to each other subject.

Exit status: 0, or 1 if a work failed.
"""

import argparse
import contextlib
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

MIB = 1 << 20
CODECS = ("lz4", "zstd")
CGROUP = pathlib.Path("/sys/fs/cgroup/memory")


class Bench:
    def __init__(self, arguments, work):
        self.arguments = arguments
        self.size = arguments.size * MIB
        self.view = work / "view"
        self.view.mkdir()
        self.frames = work / "frames"
        self.frames.mkdir()
        data = work / "data"
        data.mkdir()
        subprocess.run([arguments.client, "generate", f"--size={self.size}", "--kind=field", data / "x"], check=True)
        self.images = {}
        for codec in CODECS:
            for name, tune in ((codec, ()), (codec + "-random", ("--tune=random",))):
                subprocess.run([arguments.cframe, "pack", "--quiet", f"--codec={codec}", "--typesize=4", *tune, data / "x",
                                self.frames / f"{name}.b2frame"], check=True, stdout=subprocess.DEVNULL)
            image = self.images[codec] = work / f"{codec}.squashfs"
            if shutil.which("mksquashfs"):
                subprocess.run(["mksquashfs", data, image, "-comp", codec, "-b", "128K", "-quiet", "-no-progress"],
                               check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(data)
        os.sync()
        stored = {path.name: path.stat().st_size for path in [*self.frames.iterdir(), *self.images.values()] if path.exists()}
        print("ratios: " + ", ".join(f"{name} {self.size / size:.2f}" for name, size in stored.items()))

    @contextlib.contextmanager
    def mounted(self, subject, codec, before):
        """The path of the file in a fresh mount; none: the subject is not installed."""
        if subject.startswith("cframefs"):
            kind = subject.split()[1]
            option = "fill_pages=" + ("off" if kind == "off" else "on")
            command = [*before, self.arguments.cframefs, "-f", "-o", f"ro,{option}", self.frames, self.view]
            name = codec + ("-random" if kind == "random" else "")
        elif subject == "squashfuse" and shutil.which("squashfuse_ll") and self.images[codec].exists():
            command = [*before, "squashfuse_ll", "-f", self.images[codec], self.view]
            name = "x"
        elif subject == "kernel" and self.images[codec].exists():
            done = subprocess.run(["mount", "-t", "squashfs", "-o", "ro,loop", self.images[codec], self.view],
                                  stderr=subprocess.DEVNULL, check=False)
            command = None
            name = "x"
            if done.returncode != 0:
                yield None
                return
        else:
            yield None
            return
        daemon = command and subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while not os.path.ismount(self.view):
            if daemon and daemon.poll() is not None:
                raise SystemExit(f"{subject} failed")
            time.sleep(0.002)
        try:
            os.stat(self.view / name)
            yield self.view / name
        finally:
            subprocess.run(["umount", self.view], check=True)
            if daemon:
                daemon.wait()

    def rate(self, subject, codec, options, group=None):
        """Reads for each second."""
        before = ["sh", "-c", f"echo $$ > {group}/cgroup.procs; exec \"$@\"", "sh"] if group else []
        with self.mounted(subject, codec, before) as path:
            if path is None:
                return None
            done = subprocess.run([*before, self.arguments.client, "random", path, "--block=4K",
                                   f"--seed={random.randrange(1, 1 << 20)}", *options], capture_output=True, check=True)
            return json.loads(done.stdout)["ops"]

    @contextlib.contextmanager
    def limited(self):
        """A control group with a quarter of the file as memory."""
        group = CGROUP / "cframefs-bench"
        group.mkdir(exist_ok=True)
        try:
            (group / "memory.limit_in_bytes").write_text(str(self.size // 4), encoding="ascii")
            yield group
        finally:
            for _ in range(100):
                with contextlib.suppress(OSError):
                    group.rmdir()
                    break
                time.sleep(0.05)

    def works(self):
        """Name, and what measures a subject."""
        for codec in CODECS:
            for jobs in (1, 4):
                yield f"{codec}, first 400, {jobs} job(s)", lambda subject, codec=codec, jobs=jobs: self.rate(
                    subject, codec, (f"--jobs={jobs}", f"--operations={400 // jobs}", "--seconds=60"))
            for jobs in (1, 4):
                yield f"{codec}, 3 seconds, {jobs} job(s)", lambda subject, codec=codec, jobs=jobs: self.rate(
                    subject, codec, (f"--jobs={jobs}", "--seconds=3"))
            if CGROUP.is_dir() and os.geteuid() == 0:
                yield f"{codec}, 10 seconds, 4 x memory", lambda subject, codec=codec: self.in_little_memory(subject, codec)

    def in_little_memory(self, subject, codec):
        with self.limited() as group:
            return self.rate(subject, codec, ("--jobs=1", "--seconds=10"), group)


SUBJECTS = ("cframefs on", "cframefs off", "cframefs random", "squashfuse", "kernel")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for program in ("--cframefs", "--cframe", "--client"):
        parser.add_argument(program, required=True)
    parser.add_argument("--size", type=int, default=512, help="MiB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = {}
    with tempfile.TemporaryDirectory(prefix="cframefs-random-", dir="/var/tmp") as directory:
        bench = Bench(arguments, pathlib.Path(directory))
        print(f"{'work':32}" + "".join(f"{subject:>22}" for subject in SUBJECTS))
        for name, rate in bench.works():
            if not re.search(arguments.only, name):
                continue
            rates = {subject: [] for subject in SUBJECTS}
            for _ in range(arguments.rounds):
                for subject in random.sample(SUBJECTS, len(SUBJECTS)):
                    rates[subject].append(rate(subject))
            row = rows[name] = {subject: statistics.median(each) if None not in each else None
                                for subject, each in rates.items()}
            ours = row[SUBJECTS[0]]
            print(f"{name:32}" + "".join("                     –" if value is None else f"{value:12.0f} ({ours / value:6.2f})"
                                         for value in row.values()), flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
