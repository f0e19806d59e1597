"""A mount that has nothing to do: no thread of the daemon wakes up, whatever was done before."""

import contextlib
import os
import shutil
import tempfile
import time
import unittest

import mounting
from mounting import Mount, golden_frames, wait_for

FRAME = "matrix/000-blosclz-c1-none-t3.b2frame"
SECONDS = 3


def switches(daemon):
    """How often each thread has given up its processor or lost it."""
    counts = {}
    for task in os.listdir(f"/proc/{daemon}/task"):
        with open(f"/proc/{daemon}/task/{task}/status", encoding="ascii") as status:
            counts[task] = sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)
    return counts


class Idle(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-test-")
        self.addCleanup(work.cleanup)
        self.source = os.path.realpath(work.name)
        frame = golden_frames(FRAME)[0][0]
        for number in range(20):
            shutil.copy(frame, f"{self.source}/{number}.b2frame")

    @contextlib.contextmanager
    def mounted(self, *options):
        """A mount whose names stay known to the kernel: when other tests drop the caches of the system, it would tell the
        daemon of each name that went."""
        with Mount(self.source, *options) as mount, contextlib.ExitStack() as names:
            for number in range(20):
                names.callback(os.close, os.open(mount / str(number), os.O_PATH))
            yield mount

    def assert_idle(self, mount, what):
        last = {}

        def is_quiet():
            """What was asked has had all its consequences."""
            nonlocal last
            before, last = last, switches(mount.daemon.pid)
            time.sleep(0.5)
            return last == before

        wait_for(is_quiet, what=f"the daemon to come to rest, {what}")
        before = switches(mount.daemon.pid)
        time.sleep(SECONDS)
        after = switches(mount.daemon.pid)
        woken = {task: count - before.get(task, 0) for task, count in after.items() if count != before.get(task, 0)}
        self.assertEqual(woken, {}, what)

    def test_no_thread_wakes_up(self):
        with self.mounted() as mount:
            self.assert_idle(mount, "with no file open")
            held = [os.open(mount / str(number), os.O_RDONLY) for number in range(10)]
            for file in held:
                os.pread(file, 1 << 20, 0)
            self.assert_idle(mount, "with files open for reading")
            held += [os.open(mount / str(number), os.O_RDWR) for number in range(10, 20)]
            self.assert_idle(mount, "with files open for writing")
            os.pwrite(held[-1], b"written", 0)
            os.fsync(held[-1])
            self.assert_idle(mount, "after a write that was synced")
            for number in range(20):
                os.utime(f"{self.source}/{number}.b2frame")
                os.stat(mount / str(number))
            self.assert_idle(mount, "after changes behind it")
            for file in held:
                os.close(file)

    def test_what_is_written_while_it_sleeps_is_committed_in_time(self):
        with self.mounted("commit_interval=1") as mount:
            self.assert_idle(mount, "before anything is written")
            before = os.stat(f"{self.source}/0.b2frame").st_ctime_ns
            file = os.open(mount / "0", os.O_RDWR)
            os.pwrite(file, b"written", 0)
            wait_for(lambda: os.stat(f"{self.source}/0.b2frame").st_ctime_ns != before, what="a commit")
            self.assert_idle(mount, "after the commit")
            os.close(file)


if __name__ == "__main__":
    mounting.main()
