"""Mounts for tests: starts cframefs, waits until it serves, and takes everything down again whatever happens.

A test program calls main(), which gives unittest the checks of its module. Where no mount can be had, main() says why on
standard error and exits with 77, which meson reports as skipped.
"""

import atexit
import contextlib
import csv
import ctypes
import functools
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

CFRAMEFS = None  # the program under test
CFRAME = None  # the other one, built beside it
GOLDEN = None  # tests/golden

SKIPPED = 77
CAP_SYS_ADMIN = 21
# A mount that does not answer would hang the test program in the kernel; its daemon is then killed.
HANG_SECONDS = 240

_daemons = set()  # process ids
_mountpoints = set()
_directories = set()  # made to mount on


def why_no_mount():
    """What keeps this machine from mounting, or None. Asks the system, not the program under test."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"/dev/fuse cannot be opened: {error.strerror}"
    if os.geteuid() != 0:
        return None if shutil.which("fusermount3") else "not root, and there is no fusermount3"
    with open("/proc/self/status", encoding="ascii") as status:
        capabilities = next(int(line.split()[1], 16) for line in status if line.startswith("CapEff"))
    return None if capabilities >> CAP_SYS_ADMIN & 1 else "root here may not mount (no CAP_SYS_ADMIN)"


def wait_for(condition, seconds=20, what="it"):
    """Waits until condition() is true; the answer to "not yet" is another look, not a guess of how long it takes."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.002)


def unescape(field):
    return field.encode().decode("unicode_escape").encode("latin-1").decode()


def mounts():
    """The places of all FUSE mounts of the program, from the kernel's table."""
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        return [unescape(line.split()[4]) for line in table if " - fuse.cframefs " in line]


def is_mounted(mountpoint):
    return os.path.realpath(os.path.dirname(mountpoint)) + "/" + os.path.basename(mountpoint) in mounts()


def children_of(name, mountpoint):
    """Process ids of programs of this name that have the mount point on their command line."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            words = pathlib.Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words and words[0].endswith(name.encode()) and str(mountpoint).encode() in words:
            found.append(int(entry))
    return found


def clean_up():
    for pid in list(_daemons):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    for mountpoint in list(_mountpoints):
        for command in (["umount", "-l"], ["fusermount3", "-u", "-z", "-q"]):
            if is_mounted(mountpoint):
                subprocess.run(command + [mountpoint], stderr=subprocess.DEVNULL, check=False)
    for directory in _directories:
        with contextlib.suppress(OSError):
            os.rmdir(directory)
    _daemons.clear()
    _mountpoints.clear()
    _directories.clear()


def on_hang():
    sys.stderr.write("no answer for too long: killing the daemons\n")
    sys.stderr.flush()
    for pid in list(_daemons):
        os.kill(pid, signal.SIGKILL)


def daemons_of(mountpoint):
    """Process ids of the daemons that were called with this mount point."""
    return [pid for pid in children_of("cframefs", mountpoint) if pid != os.getpid()]


def helpers_of(title, mountpoint):
    """Process ids of helpers of the mount point that have not ended. What `ps` shows is what is looked for."""
    place = os.path.realpath(os.path.dirname(mountpoint)) + "/" + os.path.basename(mountpoint)
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                if file.read().rstrip(b"\0") == f"cframefs: {title} of {place}".encode():
                    found.append(int(entry))
        except OSError:
            continue
    return found


def guards_of(mountpoint):
    return helpers_of("guard", mountpoint)


def fillers_of(mountpoint):
    """Those that have the kernel fill its page cache."""
    return helpers_of("page cache", mountpoint)


def background(source, mountpoint, *options, **how):
    """Mounts in the background: the completed call. What it leaves behind is cleaned up at the end of the program."""
    _mountpoints.add(str(mountpoint))
    command = [CFRAMEFS, *sandboxed(how.get("env"))]
    for option in options:
        command += ["-o", option]
    done = subprocess.run(
        command + [str(source), str(mountpoint)], capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL, **how
    )
    _daemons.update(daemons_of(mountpoint))
    # A machine for tests may have no system log, which the program then says.
    lines = done.stderr.splitlines(keepends=True)
    done.stderr = b"".join(line for line in lines if b"there is no system log" not in line)
    return done


def unmount(mountpoint):
    """Unmounts as a user does, and requires that nothing is left: no mount, no process."""
    output("fusermount3", "-u", mountpoint)
    wait_for(lambda: not is_mounted(mountpoint) and not daemons_of(mountpoint), what="the daemon to end")
    _mountpoints.discard(str(mountpoint))


class Mount:
    """A mount in the foreground, with what it says on standard error. A context manager. `before`: a program with its
    arguments that becomes the daemon. `environment`: what the daemon has in its environment beside ours."""

    def __init__(self, source, *options, mountpoint=None, flags=(), before=(), environment=None):
        self.own_directory = None
        if mountpoint is None:
            self.own_directory = tempfile.mkdtemp(prefix="cframefs-mnt-")
            _directories.add(self.own_directory)
            mountpoint = self.own_directory
        self.path = str(mountpoint)
        self.log, log_name = tempfile.mkstemp(prefix="cframefs-log-")
        os.unlink(log_name)
        command = [*before, CFRAMEFS, "-f", *flags, *sandboxed(environment, before)]
        for option in options:
            command += ["-o", option]
        self.daemon = subprocess.Popen(command + [str(source), self.path], stderr=self.log,
                                       env={**os.environ, **(environment or {})})
        _daemons.add(self.daemon.pid)
        _mountpoints.add(self.path)
        wait_for(lambda: self.serves() or self.daemon.poll() is not None, what="the mount")
        if self.daemon.poll() is not None:
            raise AssertionError(f"the daemon ended with {self.daemon.returncode}: {self.lines()}")

    def serves(self):
        """Whether it is there and answers. A mount that a dead daemon has left does not; when it has been taken away, the
        directory does, which is no mount."""
        try:
            # The kernel may answer stat(2) from its memory when the daemon is dead, but not this.
            os.statvfs(self.path)
            here = os.stat(self.path).st_dev
            return here != os.stat(os.path.dirname(os.path.abspath(self.path))).st_dev and is_mounted(self.path)
        except OSError:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __truediv__(self, name):
        return os.path.join(self.path, name)

    def all_lines(self):
        """What the daemon has said so far."""
        if self.log is not None:
            self.said = os.pread(self.log, 1 << 24, 0).decode(errors="replace").splitlines()
        return self.said

    def lines(self):
        """What it has said of faults: without the lines of mere information."""
        return [line for line in self.all_lines() if not line.startswith("cframefs: info: ")]

    def refusals(self):
        """The lines about requests that were refused."""
        return [line for line in self.all_lines() if ": refused: " in line]

    def is_alive(self):
        return self.daemon.poll() is None and is_mounted(self.path)

    def statistics(self):
        with open(self / ".cframefs/stats.json", encoding="utf-8") as file:
            return json.load(file)

    def status(self, field):
        """A field of /proc/PID/status, in bytes where it is in kB."""
        with open(f"/proc/{self.daemon.pid}/status", encoding="ascii") as status:
            for line in status:
                name, value = line.split(":", 1)
                if name == field:
                    words = value.split()
                    return int(words[0]) * (1024 if words[-1] == "kB" else 1)
        raise AssertionError(f"no {field}")

    def close(self):
        """Asks it to end and requires that it does, in order."""
        if self.daemon.poll() is None:
            self.daemon.send_signal(signal.SIGTERM)
        try:
            code = self.daemon.wait(60)
        finally:
            _daemons.discard(self.daemon.pid)
            if self.daemon.poll() is None:
                self.daemon.kill()
                self.daemon.wait()
        left = is_mounted(self.path)
        if left:
            subprocess.run(["umount", "-l", self.path], check=False)
        _mountpoints.discard(self.path)
        if self.own_directory and not left:
            os.rmdir(self.own_directory)
        said = self.lines()
        os.close(self.log)
        self.log = None
        if code != 0 or left:
            raise AssertionError(f"exit status {code}, mount left: {left}, it said: {said}")


@functools.lru_cache(maxsize=None)
def is_sanitized():
    """Whether the program under test is built with the address sanitizer."""
    return b"__asan_init" in pathlib.Path(CFRAMEFS).read_bytes()


def large_directory():
    """The number of entries of a large directory: 10,000. Fewer where a sanitizer takes several times as long for each."""
    return 2_000 if is_sanitized() else 10_000


def visited(count):
    """How many entries a file gets that programs visit one by one: COUNT, or an eighth of it, as in large_directory()."""
    return count // 8 if is_sanitized() else count


def landlock_version():
    landlock_create_ruleset = 444
    return ctypes.CDLL(None).syscall(landlock_create_ruleset, None, 0, 1)


@functools.lru_cache(maxsize=None)
def has_sandbox():
    """Whether the program under test can enter its sandbox here: not with sanitizers, nor without Landlock 2."""
    program = pathlib.Path(CFRAMEFS).read_bytes()
    return landlock_version() >= 2 and b"__asan_init" not in program and b"__tsan_init" not in program


def sandboxed(environment=None, before=()):
    """The arguments that all mounts of these tests have first, so that the whole suite runs in the sandbox. A library that
    is preloaded makes files of its own beside the source."""
    if "LD_PRELOAD" in (environment or {}) or any(word.startswith("LD_PRELOAD=") for word in before):
        return ["-o", "sandbox=off"]
    return ["-o", "sandbox=strict"] if has_sandbox() else []


def manifest(name):
    with open(os.path.join(GOLDEN, name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def ranges(text):
    """[(offset, length, sha256 or None)] of a manifest's list."""
    found = []
    if text not in ("-", "none", "all", ""):
        for part in text.split(";"):
            place, _, digest = part.partition(":")
            offset, length = place.split("+")
            found.append((int(offset), int(length), digest or None))
    return found


def shown(path):
    """The name of the mount for a stored path."""
    for suffix in (".b2frame", ".b2f", ".b2"):
        if path.endswith(suffix):
            return path[: -len(suffix)]
    return path


def fast_directory():
    """Memory, if there is some: for tests of what is no matter of the disk."""
    return "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else None


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def golden_frames(*paths):
    """[(stored path, plain bytes)] of good golden frames, confirmed by the manifest's hashes."""
    digests = {row["path"]: row["sha256"] for row in manifest("cframe/MANIFEST.tsv")}
    frames = []
    with Mount(GOLDEN + "/cframe") as mount:
        for path in paths:
            with open(mount / shown(path), "rb") as file:
                content = file.read()
            if sha256(content) != digests[path]:
                raise AssertionError(path)
            frames.append((os.path.join(GOLDEN, "cframe", path), content))
    return frames


def pread(path, offset, length):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        data = b""
        while len(data) < length:
            more = os.pread(descriptor, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data
    finally:
        os.close(descriptor)


def run(*command, **options):
    """A program with its output; it must end by itself within a minute."""
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **options)


def output(*command):
    """The output of a program that must succeed."""
    done = run(*command)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def main(hang_seconds=HANG_SECONDS):
    """usage: TEST CFRAMEFS GOLDEN [unittest's own arguments]"""
    global CFRAMEFS, CFRAME, GOLDEN
    CFRAMEFS, GOLDEN = map(os.path.abspath, sys.argv[1:3])
    CFRAME = os.path.join(os.path.dirname(CFRAMEFS), "cframe")
    reason = why_no_mount()
    if reason:
        sys.stderr.write(f"skipped: {reason}\n")
        sys.exit(SKIPPED)
    atexit.register(clean_up)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # The process that runs the tests may ignore these (nohup, a shell's background); a daemon would inherit that.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    watchdog = threading.Timer(hang_seconds, on_hang)
    watchdog.daemon = True
    watchdog.start()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
