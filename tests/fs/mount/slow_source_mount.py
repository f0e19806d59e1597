"""A source that does not answer: requests that wait for it keep no other one waiting.

The source is a mount itself, whose daemon is stopped for a while. What is asked meanwhile and does not need the source is
answered: bytes that the daemon holds, and its statistics.
"""

import os
import signal
import subprocess
import tempfile
import time
import unittest

import mounting
from mounting import Mount, wait_for

WAITING = (1, 2, 8, 40)
# Far longer than any answer takes here, far shorter than a mount that stands still.
PATIENCE = 20


def in_time(command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, timeout=PATIENCE, check=True).stdout
    except subprocess.TimeoutExpired:
        return None


def stop(pid):
    """Stops a process, and waits until each of its threads stands still."""
    os.kill(pid, signal.SIGSTOP)

    def stands_still():
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", encoding="utf-8") as file:
                if file.read().rsplit(")", 1)[1].split()[0] != "T":
                    return False
        return True

    wait_for(stands_still, what="the daemon below to stop")


class SlowSource(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-test-")
        self.addCleanup(work.cleanup)
        self.disk = work.name + "/disk"
        os.mkdir(self.disk)
        for number in range(max(WAITING)):
            with open(f"{self.disk}/{number}", "wb") as file:
                file.write(b"x" * 1000)

    def ask_beside(self, waiting):
        """Statistics beside so many reads that wait for the source."""
        with Mount(self.disk, "names=keep") as below, Mount(below.path, "names=keep", "stats=on") as mount:
            statistics = os.open(mount / ".cframefs/stats.json", os.O_RDONLY)
            held = [os.open(mount / str(number), os.O_RDONLY) for number in range(waiting)]
            readers = []
            stop(below.daemon.pid)
            try:
                for file in held:
                    readers.append(subprocess.Popen(["head", "-c", "1"], stdin=file, stdout=subprocess.PIPE))
                time.sleep(0.3)
                begin = time.monotonic()
                answer = in_time(["head", "-c", "1", f"/proc/{os.getpid()}/fd/{statistics}"])
                took = time.monotonic() - begin
                waited = [reader.poll() is None for reader in readers]
            finally:
                os.kill(below.daemon.pid, signal.SIGCONT)
                contents = [reader.communicate()[0] for reader in readers]
                for file in [*held, statistics]:
                    os.close(file)
            self.assertEqual(waited, [True] * waiting, "the source was not slow")
            self.assertEqual(contents, [b"x"] * waiting)
            return answer, took

    def test_what_needs_no_source_is_answered(self):
        for waiting in WAITING:
            answer, took = self.ask_beside(waiting)
            self.assertEqual(answer, b"{", f"beside {waiting}: nothing after {took:.1f} s")


if __name__ == "__main__":
    mounting.main()
