"""Programs that wait in a call on a mount, because what the daemon does for them waits at a gate.

What the kernel lets a signal do to a call whose request the daemon holds (found with a FUSE server that answers after 3 s,
Linux 6.18; "told": the daemon gets INTERRUPT):

| call | SIGKILL, or a signal without a handler | a signal with a handler |
|---|---|---|
| read, mmap by way of the page cache | gone at once, the daemon is not told | goes on waiting, not told |
| read with O_DIRECT, lookup, open, write, fsync, copy_file_range, close (FLUSH) | told, waits for the answer | the same |

So the daemon decides all but reads by way of the page cache. An answer of EINTR becomes that of the call. A program that
ends closes its files: each of them is one more FLUSH, and for a killed program INTERRUPT follows it at once; it is gone when they are answered.
That a reader was killed is seen by the FLUSH of its file alone. RELEASE comes when its last read has been answered.
"""

import os
import pathlib
import signal
import subprocess
import sys

import mounting
from mounting import wait_for

MIB = 1 << 20
DATA = b"written by a program that waits\n" * 1000
# The program under test answers within 0.5 s; machines are slower at times. No gate is opened before.
ANSWER_SECONDS = 2
PLACE = 5 * MIB  # in `large`, what is read or written

PROGRAM = f"""
import ctypes, os, signal, sys, threading, time
mount, caught, gate = sys.argv[1], sys.argv[2] == "caught", sys.argv[3]
target = (mount + "/target").encode()
libc = ctypes.CDLL(None, use_errno=True)
place, room = ctypes.c_long({PLACE}), ctypes.create_string_buffer(4096)
signal.signal(signal.SIGINT, (lambda *_: None) if caught else signal.SIG_DFL)

def file(name, flags=os.O_RDONLY):
    return os.open(mount + "/" + name, flags)

def written():
    descriptor = file("target", os.O_RDWR)
    os.pwrite(descriptor, {DATA[:32]!r} * 1000, 0)
    return descriptor

def ready():
    print("ready", flush=True)
    sys.stdin.readline()

def reached():
    while not os.path.exists(gate + ".reached"):
        time.sleep(0.01)

def tell(result):
    print("done" if result >= 0 else os.strerror(ctypes.get_errno()), flush=True)

"""
# What waits -> the calls of the daemon that the gate is for, their file, the program. What a call needs that is not the
# call itself comes before ready(), when the gate is open.
WAITING = {
    "read": ("pread", "/large", "f = file('large'); ready(); tell(libc.pread(f, room, 4096, place))"),
    "direct": ("pread", "/large", "f = file('large', os.O_RDONLY | os.O_DIRECT); import mmap; page = mmap.mmap(-1, 4096); ready(); "
                                  "tell(libc.pread(f, ctypes.byref(ctypes.c_char.from_buffer(page)), 4096, place))"),
    "open": ("pread", "/unknown", "ready(); tell(libc.open((mount + '/unknown').encode(), os.O_RDONLY))"),
    # Many small pieces of one chunk, each a byte that is there already: the daemon puts the chunk together.
    "write": ("pread", "/large", "f = file('large', os.O_RDWR); ready(); "
                                 f"[os.pwrite(f, bytes([10]), {PLACE // 8 * 8 + 7} + 8 * i) for i in range(100)]; "
                                 "tell(libc.pwrite(f, b'x', 1, place))"),
    "fsync": ("fsync", "", "f = written(); ready(); tell(libc.fsync(f))"),
    "close": ("pwrite", "/target", "f = written(); ready(); tell(libc.close(f))"),
    # Another program's lock, as far as the daemon can tell.
    "locked": ("flock", "/target", "f = written(); ready(); tell(libc.close(f))"),
    "stat": ("pread", "/unknown", "ready(); os.stat(mount + '/unknown'); tell(0)"),
    "setxattr": ("flock", "/target", "ready(); tell(libc.setxattr(target, b'user.blosc2.vlmeta.x', b'text', 4, 0))"),
    "truncate": ("flock", "/target", "ready(); tell(libc.truncate(target, ctypes.c_long(4096)))"),
    # Behind a commit of another thread, which has reached the gate.
    "rename": ("pwrite", "/target", "f = written(); ready(); threading.Thread(target=os.close, args=(f,)).start(); reached(); "
                            "tell(libc.rename(target, target + b'2'))"),
    "unlink": ("pwrite", "/target", "f = written(); ready(); threading.Thread(target=os.close, args=(f,)).start(); reached(); "
                            "tell(libc.unlink(target))"),
    "list": ("list", "/directory", "ready(); tell(len(os.listdir(mount + '/directory')))"),
    "statfs": ("statfs", "", "ready(); os.statvfs(mount); tell(0)"),
    "copy": ("pread", "/large", "a = file('large'); b = written(); ready(); "
                                "tell(libc.copy_file_range(a, None, b, None, 8 << 20, 0))"),
}


class Gate:
    """Holds up calls of a daemon that has environment() in its own."""

    def __init__(self, directory, calls, file=""):
        self.path = os.path.join(directory, "gate")
        self.calls, self.file = calls, file

    def environment(self):
        return {"LD_PRELOAD": os.environ["SLOW_CALLS_LIBRARY"], "GATE": self.path, "GATED_CALLS": self.calls,
                "GATED_FILE": self.file,
                "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}

    def shut(self):
        with open(self.path, "xb"):
            pass

    def open(self):
        for path in (self.path, self.path + ".reached"):
            if os.path.exists(path):
                os.unlink(path)

    def wait_until_reached(self):
        wait_for(lambda: os.path.exists(self.path + ".reached"),
                 what="a call to reach the gate; is SLOW_CALLS_LIBRARY built from this source?")


def make_source(directory):
    """A source with frames that programs wait for: `large`; `unknown`, which no program has looked at; `target`, which is
    written and copied to. Answers what lies in the first and in the last."""
    source, plain = os.path.join(directory, "source"), os.path.join(directory, "plain")
    os.makedirs(source + "/directory")
    large = b"".join(b"%07d\n" % number for number in range(MIB // 8)) * 8
    for name, content in (("large", large), ("unknown", large), ("target", b"before\n" * 100000)):
        with open(plain, "wb") as file:
            file.write(content)
        # Alike, so that chunks can be copied as they are stored.
        how = ("--codec", "lz4", "--filter", "none", "--typesize", "1", "--blocksize", "64K")
        mounting.output(mounting.CFRAME, "pack", *how, plain, f"{source}/{name}.b2frame")
    return source, large, content


class Waiting:
    """A program that waits in a call, at the gate. A context manager: afterwards the gate is open and the program gone."""

    def __init__(self, kind, mount, gate, caught=False):
        self.gate = gate
        command = [sys.executable, "-c", PROGRAM + WAITING[kind][2], mount.path, "caught" if caught else "", gate.path]
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self.begin(kind)
        except BaseException:
            self.close()
            raise

    def begin(self, kind):
        if self.program.stdout.readline() != "ready\n":
            raise AssertionError(f"the program that is to wait in {kind} has failed")
        self.gate.shut()
        self.program.stdin.write("\n")
        self.program.stdin.close()
        self.gate.wait_until_reached()
        if kind in ("rename", "unlink"):
            wait_for(lambda: self.requests() == 2, what=f"{kind} to be asked for")

    def requests(self):
        """How many threads of the program wait for an answer of the daemon."""
        threads = pathlib.Path("/proc", str(self.program.pid), "task").iterdir()
        return sum("request_wait_answer" in (thread / "wchan").read_text(encoding="ascii") for thread in threads)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.gate.open()
        self.program.wait(60)
        self.program.stdout.close()

    def is_gone_soon(self):
        try:
            self.program.wait(ANSWER_SECONDS)
            return True
        except subprocess.TimeoutExpired:
            return False

    def answer(self):
        """What the call has come to: "done" or an error; empty if the program has ended before."""
        return self.program.stdout.readline().rstrip()
