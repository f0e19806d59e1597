"""Crafted files through what programs do unasked and asked: each takes a moment and little memory, and other files are
answered meanwhile.

The demands are 1 s and 64 MiB. The 1 s is asserted of the time on processors, of the program and of the daemon together,
which other programs of the machine prolong by little: a machine that takes longer than the reference seconds for some
arithmetic, or for programs that wake each other, has that much longer. What slows it for an instant (other virtual
machines on its processors) is in one of several attempts, what the product does too much is in all of them. A listing is
tens of thousands of requests, each of which wakes the daemon and then ls. What waking another processor costs is the
machine's: 6 to 60 us, by what else runs. So ls and the daemon have one processor then. Of the time by the clock ten times the demand is asserted, less the time that the two have waited for a
processor which other programs had: one of the two may also have waited while the other one ran. That is far from the
minutes that such files have taken; what it took is printed. Where a sanitizer takes its own, only HANG_SECONDS is asserted.

The 64 MiB are what one file may cost above the idle daemon, so each file has a mount of its own: in a mount of all of them
what caches keep of one (up to their bounds) and the names that the kernel remembers (1 KiB each) would count for the next.
That they are bounded has a test of its own, which goes through the same files again and again.
"""

import collections
import contextlib
import functools
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib

import bombs_chunks
import bombs_stores
import mounting
from bombs_stores import LARGE

MIB = 1 << 20
MOST_SECONDS = 10
HANG_SECONDS = 60  # by the clock; a program that takes longer is killed
MOST_CPU = 1
ATTEMPTS = 3  # at MOST_CPU; the last one counts
# Of processor time for what slowness() does, on the machine that MOST_CPU was set for.
ARITHMETIC_SECONDS = 0.11
WAKING_SECONDS = 0.1
WAKINGS = 20_000
# Tens of thousands of entries, for each of which ls asks several times: it is the kernel that takes the time.
CPU_OF_LISTING = {"groups.b2z": 3, "overlapping.b2z": 3, "the directory": 10}
MOST_ABOVE = 64 * MIB
MOST_LATENCY = 5
CALM_BYTES = 32 * MIB
# One block that is larger than all this is decoded whole, by whatever has to see what is in it.
BLOCKS = {"slow.b2e": 64 * MIB}
OF_BLOCK = 8 * MIB  # what else is beside such a block
ROUNDS = 4
MOST_GROWTH = 16 * MIB

HOLES = ("import os, sys\nf = os.open(sys.argv[1], os.O_RDONLY)\n"
         "for how in (os.SEEK_HOLE, os.SEEK_DATA):\n"
         "    for at in (0, os.fstat(f).st_size // 2):\n"
         "        try: os.lseek(f, at, how)\n        except OSError: pass\n")

ANSWER = ("import os, time\nbegan = time.thread_time()\nwhile os.read(0, 1): os.write(1, b'x')\n"
          "print(time.thread_time() - began)\n")


def arithmetic_seconds():
    numbers = random.Random(1)
    text = b" ".join(b"%d" % numbers.randrange(100_000) for _ in range(200_000))
    began = time.thread_time()
    zlib.compress(text, 6)
    return time.thread_time() - began


def waking_seconds():
    """Processor time of two programs on one processor that wake each other WAKINGS times."""
    with on_one_processor(os.getpid()), subprocess.Popen([sys.executable, "-c", ANSWER], stdin=subprocess.PIPE,
                                                         stdout=subprocess.PIPE) as other:
        there, back = other.stdin.fileno(), other.stdout.fileno()
        began = time.thread_time()
        for _ in range(WAKINGS):
            os.write(there, b"x")
            os.read(back, 1)
        took = time.thread_time() - began
        other.stdin.close()
        return took + float(other.stdout.read())


def slowness():
    """How many times the reference seconds this machine takes at the moment for the same work, at least 1."""
    return max(1, arithmetic_seconds() / ARITHMETIC_SECONDS, waking_seconds() / WAKING_SECONDS)


@contextlib.contextmanager
def on_one_processor(pid):
    """This thread, the programs that it starts, and the threads of the process share one processor."""

    def bind(processors):
        os.sched_setaffinity(0, processors)
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), processors)

    processors = os.sched_getaffinity(0)
    bind({min(processors)})
    try:
        yield
    finally:
        bind(processors)


Ended = collections.namedtuple("Ended", "took waited cpu code peak said")


class Reader(threading.Thread):
    """Reads another file of the mount, at places that no cache holds for long, and notes how long each read takes."""

    def __init__(self, path, content):
        super().__init__(daemon=True)
        self.path, self.content = path, content
        self.over = threading.Event()
        self.worst, self.reads, self.wrong = 0.0, 0, 0

    def run(self):
        places = random.Random(3)
        while not self.over.wait(0.005):
            began = time.monotonic()
            descriptor = os.open(self.path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            at = places.randrange(CALM_BYTES - 4096)
            self.wrong += os.pread(descriptor, 4096, at) != self.content[at:at + 4096]
            os.close(descriptor)
            self.worst = max(self.worst, time.monotonic() - began)
            self.reads += 1


class Bombs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.limited = not mounting.is_sanitized()
        if cls.limited:
            # What a tool takes more than it may is a fault, not a reason to take all memory of the machine.
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.RLIM_INFINITY))
        cls.directory = tempfile.TemporaryDirectory(prefix="cframefs-bombs-")
        cls.source = pathlib.Path(cls.directory.name)
        cls.content = b"".join(random.Random(i).randbytes(512) * 2 for i in range(CALM_BYTES // 1024))
        (cls.source / "data").write_bytes(cls.content)
        mounting.output(mounting.CFRAME, "pack", str(cls.source / "data"), str(cls.source / "calm.b2frame"))
        os.unlink(cls.source / "data")
        cls.names = [os.path.basename(path) for module in (bombs_chunks, bombs_stores) for path in module.make(cls.directory.name)]
        if only := os.environ.get("CFRAMEFS_BOMBS"):
            cls.names = only.split(",")

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    @staticmethod
    def cpu_of(pid):
        """Seconds that the program has had a processor for."""
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def waited_of(pid):
        """Seconds that the threads of the program have waited for a processor. 0 if the kernel does not count them."""
        waited = 0
        for thread in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                waited += int(thread.read_text(encoding="ascii").split()[1])
        return waited / 1e9

    @staticmethod
    def peak_of(pid):
        """Of the program's resident memory so far. What rusage tells begins with that of this program."""
        try:
            with open(f"/proc/{pid}/status", encoding="ascii") as status:
                return max((int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")), default=0)
        except OSError:
            return 0

    def ended(self, command):
        """Runs it: how long it took by the clock, waited for processors and had them, its exit status, its peak of
        resident memory, what it said."""
        with tempfile.TemporaryFile() as said:
            began = time.monotonic()
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
            peak = waited = looked = 0
            while not (ended := os.wait4(child.pid, os.WNOHANG))[0] and time.monotonic() - began < HANG_SECONDS:
                peak = max(peak, self.peak_of(child.pid))
                if time.monotonic() - looked > 0.1:
                    looked = time.monotonic()
                    waited = self.waited_of(child.pid)
                time.sleep(0.002)
            took = time.monotonic() - began
            if not ended[0]:
                os.kill(child.pid, signal.SIGKILL)
                ended = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(ended[1])
            said.seek(0)
            return Ended(took, waited, ended[2].ru_utime + ended[2].ru_stime, child.returncode, peak,
                         said.read(1 << 16).decode(errors="replace"))

    def check(self, name, step, ended, above, most=MOST_ABOVE, last=True):
        """Whether the time on processors is what it may be. Asserts that of the last attempt, and the rest of each."""
        took, waited, cpu = ended.took, ended.waited, ended.cpu
        self.worst = max(self.worst, (took, f"{step} {name}"))
        self.most = max(self.most, (above, f"{step} {name}"))
        if took > 0.5 or cpu > 0.5 or above > MOST_ABOVE // 2:
            print(f"{name:32} {step:8} {took:6.2f} s, {waited:5.2f} s waiting, {cpu:5.2f} s on processors "
                  f"{above / MIB:7.0f} MiB", flush=True)
        self.assertLess(took, HANG_SECONDS)
        if not self.limited:
            return True
        self.assertLess(took - max(0, waited - cpu), MOST_SECONDS)
        self.assertLessEqual(above, most)
        most_cpu = CPU_OF_LISTING.get(name, MOST_CPU) if step == "ls" else MOST_CPU
        if cpu >= most_cpu:
            most_cpu *= slowness()
        if last:
            self.assertLess(cpu, most_cpu)
        return cpu < most_cpu

    def mount(self, source, *flags):
        """With a small cache, so that what the reads of another file fill it with counts for little."""
        return mounting.Mount(source, "names=keep", "ro", "cache_size=8M", *flags)

    def go(self, mount, idle, name, step, command, last):
        """Runs the command and checks it, as check() does."""
        with self.subTest(name=name, step=step):
            pathlib.Path(f"/proc/{mount.daemon.pid}/clear_refs").write_text("5", encoding="ascii")
            before, waited = self.cpu_of(mount.daemon.pid), self.waited_of(mount.daemon.pid)
            with on_one_processor(mount.daemon.pid) if step == "ls" else contextlib.nullcontext():
                ended = self.ended(command)
            self.assertGreaterEqual(ended.code, 0, ended.said)
            cpu = ended.cpu + self.cpu_of(mount.daemon.pid) - before
            waited = ended.waited + self.waited_of(mount.daemon.pid) - waited
            return self.check(name, step, ended._replace(waited=waited, cpu=cpu), mount.status("VmHWM") - idle, last=last)
        return True

    def go_through(self, names, last):
        """Goes through the files in a mount of their own. Whether the time on processors is what it may be."""
        within = True
        with self.idle_mount() as (mount, idle):
            for name in names:
                path = mount / name
                for step, command in (("ls", ["ls", "-l", path]), ("head", ["head", "-c", "1", path]),
                                      ("getfattr", ["getfattr", "-d", "--absolute-names", path]),
                                      ("holes", [sys.executable, "-c", HOLES, path])):
                    within = self.go(mount, idle, name, step, command, last) and within
        return within

    def list_directory(self, last):
        """Lists all but the large files. What is in those is so much that it takes its time, as in any such directory."""
        large = [word for name in LARGE for word in ("-I", name)]
        with self.idle_mount() as (mount, idle):
            return self.go(mount, idle, "the directory", "ls", ["ls", "-lR", *large, mount.path], last)

    @staticmethod
    def attempt(run):
        """Calls it until it returns true, at most ATTEMPTS times, and tells it which time is the last one."""
        any(run(number + 1 == ATTEMPTS) for number in range(ATTEMPTS))

    @contextlib.contextmanager
    def idle_mount(self):
        """A mount in which another file is read all the time, and its resident memory."""
        with self.mount(self.source) as mount:
            reader = Reader(mount / "calm.b2frame", self.content)
            reader.start()
            try:
                mounting.wait_for(lambda: reader.reads >= 30, what="reads of another file")
                yield mount, mount.status("VmRSS")
            finally:
                reader.over.set()
                reader.join()
            self.assertEqual(reader.wrong, 0)
            self.assertLess(reader.worst, MOST_LATENCY)
            self.slowest = max(self.slowest, reader.worst)

    def test_through_a_mount(self):
        # semantics: T2
        self.worst = self.most = (0, "")
        self.slowest = 0
        # A mount of its own for each file is what its memory is measured in; a sanitizer takes seconds for each.
        for names in [[name] for name in self.names] if self.limited else [self.names]:
            self.attempt(functools.partial(self.go_through, names))
        self.attempt(self.list_directory)
        print(f"mount: worst {self.worst[0]:.2f} s ({self.worst[1]}), most {self.most[0] / MIB:.0f} MiB above idle "
              f"({self.most[1]}); the slowest other read {self.slowest:.3f} s", flush=True)

    def test_metalayers_of_one_name_are_listed_once(self):
        layers = [(name, bombs_stores.plain_chunk(content)) for name, content in ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))]
        path = self.source / "twice.b2frame"
        path.write_bytes(bombs_stores.frame([bombs_stores.plain_chunk(b"x")], 1, 1, (), layers))
        self.addCleanup(path.unlink)
        with self.mount(self.source) as mount:
            self.assertEqual(sorted(os.listxattr(mount / path.name)), ["user.blosc2.vlmeta.a", "user.blosc2.vlmeta.b"])
            self.assertEqual(os.getxattr(mount / path.name, "user.blosc2.vlmeta.a"), b"1")

    def test_many_files_take_no_more_than_some(self):
        # semantics: Z2
        names = [name for name in self.names if name not in LARGE]
        with tempfile.TemporaryDirectory(prefix="cframefs-copies-") as directory:
            for turn in range(ROUNDS):
                os.mkdir(f"{directory}/{turn}")
                subprocess.run(["cp", "--sparse=always", *(self.source / name for name in names), f"{directory}/{turn}"],
                               check=True)
            with self.mount(directory) as mount:
                taken = []
                for turn in range(ROUNDS):
                    for name in names:
                        path = f"{mount.path}/{turn}/{name}"
                        self.ended(["ls", "-ld", path])
                        self.ended(["head", "-c", "1", path])
                        self.ended(["getfattr", "-d", "--absolute-names", path])
                    taken.append(mount.status("VmRSS"))
            print("resident after each round:", *(f"{bytes_ / MIB:.0f}" for bytes_ in taken), "MiB", flush=True)
            # What is held for the moment comes and goes; what grows with the files is in all later rounds.
            self.assertLess(min(taken[ROUNDS // 2:]) - min(taken[:ROUNDS // 2]), MOST_GROWTH)

    def run_tool(self, name, step, command, saved, usual, last):
        """Runs a subcommand, which may make the file `saved`, and checks it, as check() does. Its memory is that above
        `usual`, in bytes."""
        saved.unlink(missing_ok=True)
        ended = self.ended([mounting.CFRAME, *command])
        self.assertIn(ended.code, range(0, 4), ended.said)
        most = BLOCKS[name] + OF_BLOCK if name in BLOCKS else MOST_ABOVE
        return self.check(name, step, ended, ended.peak - usual, most, last)

    def test_tools(self):
        self.worst = self.most = (0, "")
        usual = self.ended([mounting.CFRAME, "info", self.source / "calm.b2frame"]).peak
        for number, name in enumerate(self.names):
            path = self.source / name
            saved = self.source / f"saved-{number}.b2frame"
            for step, command in (("info", ["info", path]), ("verify", ["verify", path]),
                                  ("repair", ["repair", path, saved]), ("cut", ["repair", path]),
                                  ("cat", ["cat", "--length", "1", path])):
                with self.subTest(name=name, step=step):
                    if step == "cut":  # a second attempt would meet what the first one has left
                        self.run_tool(name, step, command, saved, usual, last=True)
                    else:
                        self.attempt(functools.partial(self.run_tool, name, step, command, saved, usual))
            saved.unlink(missing_ok=True)
        print(f"tools: worst {self.worst[0]:.2f} s ({self.worst[1]}), most {self.most[0] / MIB:.0f} MiB above "
              f"cframe info ({self.most[1]})", flush=True)


def load_tests(loader, _tests, _pattern):
    names = loader.getTestCaseNames(Bombs)
    if mounting.is_sanitized():
        # A sanitizer keeps memory of its own: what grows cannot be told.
        names.remove("test_many_files_take_no_more_than_some")
    return unittest.TestSuite(map(Bombs, names))


if __name__ == "__main__":
    mounting.main(hang_seconds=3000)
