#!/usr/bin/env python3
"""Measures how long small requests wait while slow ones are under way, against the idle mount of the same run.

    latency_bench.py --client PROGRAM --cframefs PROGRAM --cframe PROGRAM --slow-calls LIBRARY
                     [--only KIND,...] [--counts N,...] [--seconds S] ...
    latency_bench.py --client PROGRAM --cframefs PROGRAM --cframe PROGRAM --old PROGRAM [--rounds N]

Method. For each kind of slow request and each number of them: a fresh mount, as many programs that make such requests one
after the other, and beside them one program with a thread for each kind of small request, which asks every --pause
seconds. What has no answer --patience seconds after the end counts as long as it has waited, and is marked. The daemon is
then killed, so that nothing has to be waited for.

    block       read of a block of --huge MiB, zlib        copy      copy_file_range of 512 MiB
    sequential  reading blocks of 32 MiB in order          readdir   listing 50,000 entries
    fsync       on a disk that takes 3 s                   chunks    first open of a frame of 1,000,000 chunks
    close       of files of zstd 9                         lock      close of a file that another program has locked
    member      read of a deflated member of a store        busy      none: the programs compute, and show what the
                                                                      kernel's scheduler does to the small ones

What is killed: programs in a slow request, 0.3 s after it has begun; how long they stay, how many blocks are decoded in all,
and what the daemon computes until it rests. "copy" reads its source slowly there.

--old: nothing of that, but what a reader and a writer reach without any slow request, with that program and with ours in
turn. The better halves are compared: other work makes a round worse. Two per cent need a machine that does nothing else;
with --old the same program, it shows what can be told here.

Exit status: 0 all demands met, 1 one is not met or a measurement failed.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from bench_servers import BenchError, Mounted, Subject
from latency_data import Data, words
from latency_report import judge, judge_killed, killed_table, latency_table, summary_table, throughput_table

SLOW_DISK_MS = 3000
SLOW_READ_MS = 2
# All programs together write so much before each close, so that none of them takes minutes.
CLOSED_MIB = 16
KINDS = ("busy", "block", "sequential", "fsync", "close", "member", "copy", "readdir", "chunks", "lock")
KILLED = (("fsync", 1), ("close", 1), ("copy", 1), ("block", 1), ("block", 4))
OPTIONS = "stats=on,codec=zstd,clevel=9,cache_size=64M"
BEGIN_TIMEOUT = 60
REST_TIMEOUT = 30
# More than is read at random, so that it comes from the daemon and not from the page cache.
THROUGHPUT_MIB = 1024
FIRST_READS = 7
ROOM = 6 << 30


def processor_times() -> tuple[int, int]:
    """Ticks that all processors worked, and that their host gave to others."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _wait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return user + nice + system + irq + softirq, steal


def processor_seconds(pid: int) -> float:
    words_of_line = pathlib.Path("/proc", str(pid), "stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(words_of_line[11]) + int(words_of_line[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    def __init__(self, arguments: argparse.Namespace, work: pathlib.Path):
        self.arguments, self.work = arguments, work
        self.data = Data(work, arguments.cframe, arguments.huge)
        self.processors = len(os.sched_getaffinity(0))
        self.failed = False
        self.rounds = 0  # slow requests that the loads have finished

    @contextlib.contextmanager
    def mounted(self, program: str, options: str, slow_calls: str = ""):
        """The daemon is killed at the end: what others wait for is answered so."""
        environment = [f"LD_PRELOAD={self.arguments.slow_calls}", f"SLOW_CALLS={slow_calls}"] if slow_calls else []
        command = ("env", *environment, program, "-f", "-o", options, str(self.data.source), "{mount}")
        with Mounted(Subject("cframefs", command, ".", self.data.source), self.work / "mount") as mount:
            try:
                yield mount
            finally:
                mount.process.kill()
                mount.process.wait()
                self.detach(mount.mount_point)

    def detach(self, mount_point: pathlib.Path) -> None:
        """The daemon's guard does so, too."""
        end = time.monotonic() + BEGIN_TIMEOUT
        while os.path.ismount(mount_point) or self.is_dead(mount_point):
            subprocess.run(["fusermount3", "-u", "-z", "-q", str(mount_point)], stderr=subprocess.DEVNULL, check=False)
            if time.monotonic() > end:
                raise BenchError(f"{mount_point} stays mounted")

    @staticmethod
    def is_dead(mount_point: pathlib.Path) -> bool:
        try:
            os.stat(mount_point)
        except OSError:
            return True
        return False

    def client(self, *words_of_call: object) -> dict:
        done = subprocess.run([self.arguments.client, *map(str, words_of_call)], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise BenchError(done.stderr.strip())
        return json.loads(done.stdout)

    @contextlib.contextmanager
    def loads(self, mount: Mounted, kind: str, count: int):
        """Programs that have begun their first slow request. Those that end by themselves have failed."""
        programs = []
        try:
            for index in range(count):
                command = [self.arguments.client, "load", mount.mount_point, f"--kind={kind}", f"--number={index}",
                           f"--source={self.data.source}", f"--mib={max(1, CLOSED_MIB // count)}"]
                programs.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            for program in programs:
                if program.stdout.readline() != "begun\n":
                    raise BenchError(program.stderr.read())
            yield programs
        finally:
            for program in programs:
                program.kill()
            mount.process.kill()
            for program in programs:
                program.wait()
            self.rounds = sum(program.stdout.read().count("round\n") for program in programs)
            for program in programs:
                program.stdout.close()
                program.stderr.close()

    def measure(self, kind: str, count: int, seconds: float) -> dict:
        """{small request: quantiles}, and what the host took of the processors meanwhile."""
        slow_calls = f"fsync={SLOW_DISK_MS}" if kind == "fsync" else ""
        with self.mounted(self.arguments.cframefs, OPTIONS, slow_calls) as mount:
            command = [self.arguments.client, "latency", mount.mount_point, f"--seconds={seconds}",
                       f"--pause={self.arguments.pause}", f"--patience={self.arguments.patience}"]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
                if asking.stdout.readline() != "ready\n":
                    raise BenchError("the client cannot begin")
                with self.loads(mount, kind, count) as programs:
                    before = processor_times()
                    asking.stdin.write("\n")
                    asking.stdin.flush()
                    line = asking.stdout.readline()
                    after = processor_times()
                    failed = [program.stderr.read() for program in programs if program.poll() is not None]
            # The client cannot end before its last answer, which comes when the daemon is killed.
            if failed or not line:
                raise BenchError("".join(failed) or "no answer of the client")
        worked, stolen = after[0] - before[0], after[1] - before[1]
        return {"answers": json.loads(line), "stolen": stolen / max(1, worked + stolen), "rounds": self.rounds}

    def measure_undisturbed(self, kind: str, count: int, seconds: float) -> dict:
        """The one of two attempts that has lost less to the host."""
        found = self.measure(kind, count, seconds)
        if found["stolen"] <= self.arguments.steal / 100:
            return found
        return min(found, self.measure(kind, count, seconds), key=lambda one: one["stolen"])

    def latencies(self) -> list[dict]:
        idle = self.measure_undisturbed("none", 0, 2 * self.arguments.seconds)["answers"]
        rows = [judge("nothing", 0, what, found, found, self.processors) for what, found in idle.items()]
        for kind in self.arguments.only:
            with self.data.of_kind(kind, max(self.arguments.counts)):
                for count in self.arguments.counts:
                    rows += self.latencies_beside(kind, count, idle)
        return rows

    def latencies_beside(self, kind: str, count: int, idle: dict) -> list[dict]:
        try:
            found = self.measure_undisturbed(kind, count, self.arguments.seconds)
        except (BenchError, OSError) as error:
            print(f"{kind}, {count}: {error}", file=sys.stderr)
            self.failed = True
            return []
        if found["stolen"] > self.arguments.steal / 100:
            print(f"{kind}, {count}: the host took {found['stolen']:.0%} of the processors", file=sys.stderr)
        return [{**judge(kind, count, what, one, idle[what], self.processors), "rounds": found["rounds"]}
                for what, one in found["answers"].items()]

    def kill(self, kind: str, count: int) -> dict:
        slow_calls = {"fsync": f"fsync={SLOW_DISK_MS}", "copy": f"pread={SLOW_READ_MS}"}.get(kind, "")
        with self.data.of_kind(kind, count), self.mounted(self.arguments.cframefs, OPTIONS, slow_calls) as mount:
            with self.loads(mount, kind, count) as programs:
                time.sleep(self.arguments.kill_after)
                begin = time.monotonic()
                for program in programs:
                    program.kill()
                for program in programs:
                    program.wait()
                gone = time.monotonic() - begin
                used = self.used_until_rest(mount.process.pid)
                statistics = json.loads((mount.mount_point / ".cframefs/stats.json").read_text(encoding="ascii"))
        return judge_killed({"kind": kind, "count": count, "gone_s": gone, "decoded": statistics["blocks_decoded"],
                             "cpu_s": used}, self.processors)

    @staticmethod
    def used_until_rest(pid: int) -> float:
        """Processor time of the daemon until it has computed nothing for half a second."""
        begin = last = processor_seconds(pid)
        end, rests = time.monotonic() + REST_TIMEOUT, 0
        while rests < 5 and time.monotonic() < end:
            time.sleep(0.1)
            now = processor_seconds(pid)
            rests = 0 if now - last > 0.01 else rests + 1
            last = now
        return last - begin

    def throughput(self, program: str) -> dict[str, float]:
        found = {}
        with self.mounted(program, "stats=off") as mount:
            found["cold, in order MB/s"] = self.client("sequential", mount.mount_point / "plain", "--block=1M")["MBps"]
        first = []
        for seed in range(FIRST_READS):
            with self.mounted(program, "stats=off") as mount:
                first.append(self.client("random", mount.mount_point / "plain", "--operations=400", "--seconds=60",
                                         f"--seed={seed}")["ops"])
        found["first 400 random/s"] = statistics.median(first)
        for jobs in (1, 4):
            with self.mounted(program, "stats=off") as mount:
                reads = self.client("random", mount.mount_point / "plain", "--seconds=3", f"--jobs={jobs}")
                found[f"random 4K for 3 s, {jobs} job{'s' * (jobs > 1)}/s"] = reads["ops"]
        with self.mounted(program, "stats=off") as mount:
            found["writes of 100 bytes/s"] = self.client("small-writes", mount.mount_point / "new", "--seconds=2")["ops"]
        (self.data.source / "new.b2frame").unlink(missing_ok=True)
        return found

    def throughput_pairs(self) -> dict[str, list[tuple[float, float]]]:
        """The two programs in turn, the one that begins changes."""
        self.data.source.mkdir()
        self.data.pack(words(THROUGHPUT_MIB), "plain", "--codec=zstd", "--clevel=1")
        pairs: dict[str, list[tuple[float, float]]] = {}
        programs = {"old": self.arguments.old, "new": self.arguments.cframefs}
        for number in range(self.arguments.rounds):
            order = list(programs) if number % 2 else list(reversed(programs))
            found = {name: self.throughput(programs[name]) for name in order}
            for metric, old in found["old"].items():
                pairs.setdefault(metric, []).append((old, found["new"][metric]))
        return pairs


def listed(kind):
    return lambda text: [kind(word) for word in text.split(",") if word]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", required=True, help="the measuring client, bench_client")
    parser.add_argument("--cframefs", required=True, help="the mount program")
    parser.add_argument("--cframe", required=True, help="the program that packs")
    parser.add_argument("--slow-calls", help="the library that makes calls of the daemon slow, libslow_calls.so")
    parser.add_argument("--only", type=listed(str), default=list(KINDS), metavar="KIND,...", help="kinds of slow requests")
    parser.add_argument("--counts", type=listed(int), default=[1, 2, 4, 16], metavar="N,...", help="how many of them")
    parser.add_argument("--seconds", type=float, default=3, help="how long is asked beside each")
    parser.add_argument("--pause", type=float, default=0.02, help="seconds between two questions of a kind")
    parser.add_argument("--patience", type=float, default=8, help="seconds to wait for the last answers")
    parser.add_argument("--huge", type=int, default=128, metavar="MIB", help="size of the block of the kind block")
    parser.add_argument("--steal", type=float, default=5, metavar="PERCENT",
                        help="measure again where the host took more of the processors' time (5)")
    parser.add_argument("--kill-after", type=float, default=0.3, metavar="SECONDS")
    parser.add_argument("--no-kill", action="store_true", help="kill no programs")
    parser.add_argument("--old", help="another cframefs, to compare throughput with")
    parser.add_argument("--rounds", type=int, default=8, help="of the comparison")
    parser.add_argument("--json", type=pathlib.Path, help="write every line here")
    parser.add_argument("--work", type=pathlib.Path,
                        help="directory for what is read and written (memory, where there is room)")
    arguments = parser.parse_args()
    if unknown := set(arguments.only) - set(KINDS):
        parser.error(f"no such kind: {', '.join(unknown)}")
    if not arguments.old and not arguments.slow_calls:
        parser.error("--slow-calls is missing")
    return arguments


def directory_for_work() -> str | None:
    memory = "/dev/shm"
    return memory if os.path.isdir(memory) and shutil.disk_usage(memory).free >= ROOM else None


def compare(bench: Bench) -> int:
    lines, met = throughput_table(bench.throughput_pairs())
    print("\n".join(lines))
    return 0 if met else 1


def run(bench: Bench) -> int:
    begin = time.monotonic()
    arguments = bench.arguments
    bench.data.make_small()
    rows = bench.latencies()
    killed = [] if arguments.no_kill else [bench.kill(kind, count) for kind, count in KILLED if kind in arguments.only]
    machine = (f"kernel {os.uname().release}, {bench.processors} processors, load {os.getloadavg()[0]:.1f}, "
               f"measured for {time.monotonic() - begin:.0f} s")
    print(machine, "", *latency_table(rows), "", *summary_table(rows), sep="\n")
    if killed:
        print("", *killed_table(killed), sep="\n")
    if arguments.json:
        document = {"machine": machine, "latencies": rows, "killed": killed}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if bench.failed or any(row["missed"] for row in rows + killed) else 0


def stop(_signal, _frame) -> None:
    raise SystemExit("stopped")  # through every context manager: nothing stays mounted


def main() -> int:
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, stop)
    with tempfile.TemporaryDirectory(prefix="cframefs-latency-", dir=arguments.work or directory_for_work()) as work:
        bench = Bench(arguments, pathlib.Path(work))
        return compare(bench) if arguments.old else run(bench)


if __name__ == "__main__":
    sys.exit(main())
