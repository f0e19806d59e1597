"""A daemon that is killed leaves nothing that hangs: its guard aborts the connection and unmounts.

Each round puts a mixed load on a mount (reads, reads through maps, stats, listings, synced writes, and changes of the
frame on disk that make the daemon drop pages), and ends the daemon: by kill -9, SIGSEGV, SIGABRT, or a limit of memory.
Where root runs the tests, an ordinary user does all of it a second time. GUARD_ROUNDS of the environment: rounds of
each; GUARD_DIRECTORY: where the source lies.
"""

import itertools
import mmap
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import mounting
import user_mount
from mounting import Mount, background, guards_of, is_mounted, run, wait_for

ROUNDS = int(os.environ.get("GUARD_ROUNDS", "8"))
RECORD = 100
BIG = 48 << 20
CGROUP = "/sys/fs/cgroup/memory" if os.path.isdir("/sys/fs/cgroup/memory") else "/sys/fs/cgroup"


def state_of(pid):
    """The letters of the states of its threads; "" for a process that has ended."""
    states = ""
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", encoding="utf-8") as file:
                states += file.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        pass
    return states.replace("Z", "").replace("X", "")


def record(number):
    return b"%099d\n" % number


class Load:
    """Processes that use a mount until it fails them."""

    def __init__(self, mountpoint, work):
        self.mountpoint, self.work = mountpoint, work
        self.children = []
        # A program that begins late, when the mount has ended, creates no file in the directory beneath it.
        self.root = os.open(mountpoint, os.O_RDONLY | os.O_DIRECTORY)
        for work_of in (self.read, self.read_ahead, self.map, self.stat, self.list):
            self.start(work_of)
        for name in ("log-a", "log-b"):
            self.start(lambda name=name: self.append(name))
        os.close(self.root)

    def start(self, work):
        pid = os.fork()
        if pid == 0:
            try:
                work()
            except (OSError, ValueError):
                pass
            finally:
                os._exit(0)
        self.children.append(pid)

    def read(self):
        while True:
            descriptor = os.open(self.mountpoint + "/big", os.O_RDONLY)
            os.pread(descriptor, 4096, random.Random(os.getpid()).randrange(BIG))
            os.close(descriptor)

    def read_ahead(self):
        while True:
            with open(self.mountpoint + "/big", "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass

    def map(self):
        while True:
            with open(self.mountpoint + "/big", "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
                for at in range(0, len(view), 1 << 20):
                    view[at]

    def stat(self):
        while True:
            os.stat(self.mountpoint + "/big")

    def list(self):
        # A listing may miss the moment between the end of the connection and that of the mount, and see neither.
        while "big" in os.listdir(self.mountpoint):
            pass

    def append(self, name):
        """Notes how many records are synced, where the daemon's end does not matter."""
        with open(f"{self.work}/{name}.synced", "w+b", buffering=0) as note:
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644, dir_fd=self.root)
            number = os.fstat(descriptor).st_size // RECORD
            while True:
                os.write(descriptor, b"".join(record(number + i) for i in range(50)))
                number += 50
                os.fsync(descriptor)
                os.pwrite(note.fileno(), b"%020d" % number, 0)

    def left(self):
        """What has not ended: [(process id, states)]."""
        for pid in list(self.children):
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                self.children.remove(pid)
        return [(pid, state_of(pid)) for pid in self.children]

    def kill(self):
        for pid in self.children:
            os.kill(pid, signal.SIGKILL)


class MemoryLimit:
    """A control group in which the daemon runs out of memory. Where none can be made, the signal of that end is sent."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.directory = f"{CGROUP}/cframefs-{os.getpid()}"
        try:
            os.mkdir(self.directory)
        except OSError:
            self.directory = None
            return
        for name in ("memory.limit_in_bytes", "memory.max"):
            if os.path.exists(f"{self.directory}/{name}"):
                with open(f"{self.directory}/{name}", "w", encoding="ascii") as file:
                    file.write(str(8 << 20))

    def reach(self):
        if self.directory is None:
            self.daemon.kill()
            return
        with open(f"{self.directory}/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(self.daemon.pid))

    def remove(self):
        if self.directory is not None:
            wait_for(lambda: not pathlib.Path(self.directory, "cgroup.procs").read_text("ascii"), what="the group to be empty")
            os.rmdir(self.directory)


class KilledDaemon(unittest.TestCase):
    def setUp(self):
        # In memory, where there is: a disk makes processes wait, too.
        place = os.environ.get("GUARD_DIRECTORY", "/dev/shm" if os.path.isdir("/dev/shm") else None)
        work = tempfile.TemporaryDirectory(prefix="cframefs-guard-", dir=place, ignore_cleanup_errors=True)
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.source, self.mountpoint = self.work + "/source", self.work + "/mnt"
        os.mkdir(self.source)
        os.mkdir(self.mountpoint)
        self.content = random.Random(7).randbytes(1 << 20) * (BIG >> 20)
        with open(self.work + "/plain", "wb") as file:
            file.write(self.content)
        # Few large blocks: reads take long, so that pages are locked when they are to be dropped.
        done = run(mounting.CFRAME, "pack", "--chunksize", "24M", "--blocksize", "24M", "--codec", "zstd", "--clevel", "1",
                   self.work + "/plain", self.source + "/big.b2frame")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_nothing_hangs_and_nothing_is_lost(self):
        # semantics: J5
        ways = itertools.cycle(("SIGKILL", "SIGSEGV", "memory", "SIGABRT"))
        for number, way in zip(range(ROUNDS), ways):
            with self.subTest(round=number, way=way):
                self.round(number, way)

    def round(self, seed, way):
        # A sanitizer would have another program tell where SIGSEGV came, which takes seconds on a loaded machine.
        plain_end = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":handle_segv=0"}
        mount = Mount(self.source, "commit_interval=1", mountpoint=self.mountpoint, environment=plain_end)
        wait_for(lambda: guards_of(self.mountpoint), what="the guard")
        load = Load(self.mountpoint, self.work)
        try:
            self.end(mount, load, seed, way)
        finally:
            load.kill()
        self.check()

    def end(self, mount, load, seed, way):
        """Ends the daemon, and waits until all that it leaves has ended."""
        limit = MemoryLimit(mount.daemon) if way == "memory" else None
        end = time.monotonic() + random.Random(seed).uniform(0.1, 0.5)
        while time.monotonic() < end:
            os.utime(self.source + "/big.b2frame")
            time.sleep(0.005)
        if limit:
            limit.reach()
        else:
            mount.daemon.send_signal(getattr(signal, way))
        end = time.monotonic() + 1
        while limit and mount.daemon.poll() is None and is_mounted(self.mountpoint):
            os.utime(self.source + "/big.b2frame")
            time.sleep(0.005)
            # The kernel may try for long to find memory that it can take back.
            if time.monotonic() > end:
                mount.daemon.kill()
                break
        self.wait_for_the_end(mount, load)
        if limit:
            limit.remove()

    def wait_for_the_end(self, mount, load):
        """2 seconds after the daemon was killed nothing of it is left, and no process waits for it."""

        def remains():
            hung = [pid for pid, states in load.left() if "D" in states]
            daemon = state_of(mount.daemon.pid) if mount.daemon.poll() is None else ""
            return hung, daemon, is_mounted(self.mountpoint), guards_of(self.mountpoint)

        # A daemon that runs does not wait.
        end, end_of_running = time.monotonic() + 2, time.monotonic() + 20
        left = remains()
        while time.monotonic() < (end_of_running if left[1] == "R" else end) and (any(left) or load.left()):
            time.sleep(0.01)
            left = remains()
        if any(left):
            # What hangs would hang the test, too.
            subprocess.run(["umount", "-f", "-l", self.mountpoint], check=False, stderr=subprocess.DEVNULL)
        waits = []
        for pid in [*left[0], mount.daemon.pid]:
            for wait in pathlib.Path(f"/proc/{pid}/task").glob("*/wchan"):
                waits.append((pid, wait.read_text("ascii")))
        self.assertEqual(left, ([], "", False, []), waits)
        # A program that runs has its errors, and takes its time to end on a loaded machine.
        wait_for(lambda: not load.left(), what="the programs to end")

    def check(self):
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            self.assertEqual(mount.lines(), [])
            with open(self.mountpoint + "/big", "rb") as file:
                self.assertTrue(file.read() == self.content)
            for name in ("log-a", "log-b"):
                with open(f"{self.work}/{name}.synced", "rb") as note:
                    synced = int(note.read() or b"0")
                content = b""
                if synced or os.path.exists(f"{self.mountpoint}/{name}"):
                    with open(f"{self.mountpoint}/{name}", "rb") as file:
                        content = file.read()
                self.assertGreaterEqual(len(content), synced * RECORD)
                self.assertEqual(content, b"".join(map(record, range(len(content) // RECORD + 1)))[: len(content)])
                os.truncate(f"{self.mountpoint}/{name}", 0) if content else None


class Guard(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-guard-")
        self.addCleanup(work.cleanup)
        self.source, self.mountpoint = work.name + "/source", work.name + "/mnt"
        os.mkdir(self.source)
        os.mkdir(self.mountpoint)

    def guard(self):
        return wait_for(lambda: guards_of(self.mountpoint), what="the guard")[0]

    def daemon(self):
        """Of a mount in the background."""
        return wait_for(lambda: [pid for pid in mounting.daemons_of(self.mountpoint) if state_of(pid)], what="the daemon")[0]

    def wait_for_both_ends(self, *pids):
        wait_for(lambda: not any(map(state_of, pids)) and not is_mounted(self.mountpoint), what="daemon and guard to end")

    def test_shows_what_it_is_and_takes_next_to_nothing(self):
        # Its pipes would keep the call waiting if the guard had them.
        done = background(self.source, self.mountpoint)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        guard = self.guard()
        wait_for(lambda: state_of(guard) == "S", what="the guard to wait")
        with open(f"/proc/{guard}/comm", encoding="utf-8") as file:
            self.assertEqual(file.read(), "cframefs-guard\n")
        open_files = {os.readlink(f"/proc/{guard}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{guard}/fd")}
        self.assertEqual(open_files, {"/dev/null", "socket", "pipe"})
        self.assertEqual(os.readlink(f"/proc/{guard}/cwd"), "/")
        self.assertNotEqual(os.getsid(guard), os.getsid(self.daemon()))
        self.assertEqual(len(os.listdir(f"/proc/{guard}/task")), 1)
        if not mounting.is_sanitized():  # a sanitizer's own memory is counted with the program's
            with open(f"/proc/{guard}/status", encoding="ascii") as file:
                private = next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))
            self.assertLess(private, 4096)
        daemon = self.daemon()
        mounting.output("fusermount3", "-u", self.mountpoint)
        self.wait_for_both_ends(daemon, guard)

    def mount_before_its_guard_runs(self):
        slow = {"LD_PRELOAD": os.environ["SLOW_CALLS_LIBRARY"], "SLOW_CALLS": "second_fork=500",
                "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}
        # No pipe for what it says: the caller would wait until the guard, too, has closed it.
        subprocess.run([mounting.CFRAMEFS, self.source, self.mountpoint], env={**os.environ, **slow}, check=True,
                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def test_signals_to_a_guard_that_has_not_run_yet_do_no_harm(self):
        self.mount_before_its_guard_runs()
        guard = self.guard()
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
            os.kill(guard, number)
        daemon = self.daemon()
        time.sleep(1)
        self.assertEqual(state_of(guard), "S")
        mounting.unmount(self.mountpoint)
        self.wait_for_both_ends(daemon, guard)

    def test_is_never_taken_for_the_daemon(self):
        self.mount_before_its_guard_runs()
        self.assertEqual(len(mounting.daemons_of(self.mountpoint)), 1)
        mounting.unmount(self.mountpoint)

    def test_ends_with_a_daemon_that_is_asked_to_end(self):
        for flags in ((), ("-s",), ("-d",)):
            with Mount(self.source, mountpoint=self.mountpoint, flags=flags):
                guard = self.guard()
            self.wait_for_both_ends(guard)

    def test_a_mount_that_fails_leaves_no_guard(self):
        done = background(self.source, self.mountpoint, "no_such_option_of_fuse")
        self.assertNotEqual(done.returncode, 0)
        wait_for(lambda: not any(map(state_of, guards_of(self.mountpoint))), what="the guard to end")

    def test_signals_to_the_guard_do_no_harm(self):
        # A daemon in its sandbox has its guard unmount: sandbox_mount.
        with Mount(self.source, "sandbox=off", mountpoint=self.mountpoint) as mount:
            guard = self.guard()
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
                os.kill(guard, number)
            with open(mount / "x", "wb") as file:
                file.write(b"written")
            wait_for(lambda: state_of(guard) == "S", what="the guard to wait")
            # Without a guard the mount is as good as any, and ends in order.
            os.kill(guard, signal.SIGKILL)
            wait_for(lambda: not state_of(guard), what="the guard to end")
            with open(mount / "x", "rb") as file:
                self.assertEqual(file.read(), b"written")

    def test_a_mount_in_the_place_of_the_dead_one_is_left_alone(self):
        old = Mount(self.source, mountpoint=self.mountpoint)
        guard = self.guard()
        os.kill(guard, signal.SIGSTOP)
        try:
            old.daemon.kill()
            old.daemon.wait()
            # A mount in its place, which may get the numbers of the dead one.
            with Mount(self.source, mountpoint=self.mountpoint) as new:
                os.kill(guard, signal.SIGCONT)
                wait_for(lambda: not state_of(guard), what="the first guard to end")
                self.assertTrue(new.is_alive())
                self.assertEqual(os.listdir(self.mountpoint), [])
                self.assertEqual(mounting.mounts().count(os.path.realpath(self.mountpoint)), 1)
        finally:
            os.kill(guard, signal.SIGCONT) if state_of(guard) else None

    def test_a_mount_that_covers_the_dead_one_is_left_alone(self):
        with open(self.source + "/x", "wb") as file:
            file.write(b"content")
        if os.geteuid() != 0:
            # fusermount3 does not let an ordinary user cover a mount.
            with Mount(self.source, mountpoint=self.mountpoint):
                self.assertNotEqual(background("/", self.mountpoint).returncode, 0)
            return
        mount = Mount(self.source, mountpoint=self.mountpoint)
        guard = self.guard()
        with tempfile.TemporaryDirectory(prefix="cframefs-guard-") as other_source, open(mount / "x", "rb", buffering=0) as below:
            with open(other_source + "/other", "wb") as file:
                file.write(b"of another mount")
            other = Mount(other_source, mountpoint=self.mountpoint)
            wait_for(lambda: os.listdir(self.mountpoint) == ["other"], what="the other mount")
            mount.daemon.kill()
            mount.daemon.wait()
            wait_for(lambda: not state_of(guard), what="the guard to end")
            with open(self.mountpoint + "/other", "rb") as file:
                self.assertEqual(file.read(), b"of another mount")
            # What is beneath answers no more, but does not hang either.
            with self.assertRaises(OSError):
                os.fstat(below.fileno())
            self.assertEqual(mounting.mounts().count(os.path.realpath(self.mountpoint)), 2)
            other.daemon.terminate()
            other.daemon.wait()
        with Mount(self.source, mountpoint=self.mountpoint):
            self.assertEqual(os.listdir(self.mountpoint), ["x"])


def main():
    """usage: guard_mount.py CFRAMEFS GOLDEN"""
    if os.geteuid() == 0 and not mounting.why_no_mount():
        status = user_mount.as_unprivileged(lambda: mounting.main(hang_seconds=600))
        if status not in (0, mounting.SKIPPED):
            sys.exit(status)
    mounting.main(hang_seconds=600)


if __name__ == "__main__":
    main()
