#!/usr/bin/env python3
"""What programs that look at many files cost: a mount of 100,000 small frames beside a directory of the plain files.

    listing_bench.py --data DIR --cframe PROGRAM --mount NAME=PROGRAM[,OPTIONS] ... [--floor PROGRAM]

Each round mounts afresh, in shuffled order, and runs each command once on the new mount ("first") and then --repeats
times ("again"). The table has the medians, and how many times as long the plain directory takes: 1 is as fast as it,
0.5 half as fast. The files are made once: all are copies of one frame, and of its content.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

TEMPLATE_BYTES = 5000
PLAIN = "plain directory"
DEADLINE_S = 60


def commands(at: pathlib.Path, git: pathlib.Path) -> dict[str, list[str]]:
    return {
        "ls -l": ["ls", "-l", str(at)],
        "find -size +1k": ["find", str(at), "-size", "+1k"],
        "du -s": ["du", "-s", str(at)],
        "git status": ["git", f"--git-dir={git}", f"--work-tree={at}", "status", "--short"],
        "ls": ["ls", "-f", str(at)],
    }


def make_files(data: pathlib.Path, cframe: str, count: int) -> None:
    """A directory of frames, and one of what they hold. Fresh ones: a directory that lost many files stays slow."""
    data.mkdir(parents=True, exist_ok=True)
    template = data / "template"
    template.write_bytes(bytes(number % 251 for number in range(TEMPLATE_BYTES)))
    subprocess.run([cframe, "pack", "-f", template, data / "template.b2frame"], check=True, stdout=subprocess.DEVNULL)
    for name, source, suffix in (("plain", template, ""), ("frames", data / "template.b2frame", ".b2frame")):
        content = source.read_bytes()
        (data / name).mkdir()
        for number in range(count):
            (data / name / f"file{number:06}{suffix}").write_bytes(content)
    (data / "count").write_text(str(count))


def make_repository(git: pathlib.Path, work: pathlib.Path) -> None:
    """Commits all files; the mount gets an index of its own, because attributes are part of it."""
    if git.exists():
        shutil.rmtree(git)
    run = ["git", f"--git-dir={git}", f"--work-tree={work}"]
    for words in (["init", "-q"], ["config", "core.trustctime", "true"], ["add", "."],
                  ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-q", "-m", "all"]):
        subprocess.run([*run, *words], check=True)


def mount_command(program: str, options: str, source: pathlib.Path, at: pathlib.Path) -> list[str]:
    return [program, "-f", *(["-o", options] if options else []), str(source), str(at)]


class Mount:
    """A mount made by a program that stays in the foreground."""

    def __init__(self, words: list[str], at: pathlib.Path) -> None:
        self.at = at
        at.mkdir(exist_ok=True)
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        end = time.monotonic() + DEADLINE_S
        while not os.path.ismount(at):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{words[0]} does not mount")
            time.sleep(0.01)

    def close(self) -> None:
        subprocess.run(["umount", self.at], check=True)
        self.process.wait()


def seconds_of(words: list[str]) -> float:
    begin = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def measure(at: pathlib.Path, git: pathlib.Path, repeats: int, what: str, into: dict) -> None:
    words = commands(at, git)[what]
    into.setdefault((what, "first"), []).append(seconds_of(words))
    for _ in range(repeats):
        into.setdefault((what, "again"), []).append(seconds_of(words))


def run(arguments: argparse.Namespace) -> dict:
    data = pathlib.Path(arguments.data).resolve()
    if not (data / "count").exists():
        make_files(data, arguments.cframe, arguments.files)
    mount_point = data / "mnt"
    make_repository(data / "git-plain", data / "plain")
    subjects = {PLAIN: None}
    for text in arguments.mount:
        name, _, rest = text.partition("=")
        program, _, options = rest.partition(",")
        subjects[name] = (program, options, data / "frames")
    # The inode numbers of a source are those of its mounts, so that all programs share one index.
    mount = Mount(mount_command(*next(subject for subject in subjects.values() if subject), mount_point), mount_point)
    make_repository(data / "git-frames", mount_point)
    mount.close()
    taken: dict[str, dict] = {name: {} for name in subjects}
    for _ in range(arguments.rounds):
        plan = [(name, what) for name in subjects for what in commands(data, data)]
        random.shuffle(plan)
        for name, what in plan:
            if subjects[name] is None:
                measure(data / "plain", data / "git-plain", arguments.repeats, what, taken[name])
                continue
            mount = Mount(mount_command(*subjects[name], mount_point), mount_point)
            try:
                measure(mount_point, data / "git-frames", arguments.repeats, what, taken[name])
            finally:
                mount.close()
    return {name: {f"{what}, {when}": statistics.median(values) for (what, when), values in found.items()}
            for name, found in taken.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--cframe", required=True)
    parser.add_argument("--mount", action="append", required=True, metavar="NAME=PROGRAM[,OPTIONS]")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    found = run(arguments)
    plain = found[PLAIN]
    for metric in sorted(plain):
        print(f"{metric:24}" + "".join(f"  {name}: {values[metric]:.3f} s ({plain[metric] / values[metric]:.2f})"
                                       for name, values in found.items()), flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
