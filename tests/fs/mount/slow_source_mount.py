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
from mounting import Mount, output, wait_for
from waiting_calls import Gate

WAITING = (1, 2, 8, 40)
# Far longer than any answer takes here, far shorter than a mount that stands still.
PATIENCE = 10


def in_time(command):
    """What the command prints; None if it is still at it, perhaps where no signal ends it."""
    program = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        return program.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired:
        program.kill()
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
        """Reads the statistics beside this number of reads that wait for the source."""
        # Without passthrough=off the kernel would read past both daemons.
        served = ("names=keep", "passthrough=off")
        with Mount(self.disk, *served) as below, Mount(below.path, *served, "stats=on") as mount:
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


class SlowListing(unittest.TestCase):
    """Listings of a huge directory that stand still, at their beginning or among its entries, keep no request waiting
    but those for names in it, which the kernel holds back (fs/doc/threads-and-locks.md)."""

    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-test-", dir=mounting.fast_directory())
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.source = work.name + "/source"
        os.makedirs(self.source + "/huge")
        os.mkdir(self.source + "/small")
        for number in range(20_000):
            with open(f"{self.source}/huge/{number}", "wb"):
                pass
        with open(work.name + "/data", "wb") as file:
            file.write(b"x" * 99_999 + b"\n")
        for name in ("x", "huge/x"):
            output(mounting.CFRAME, "pack", work.name + "/data", f"{self.source}/{name}.b2frame")

    def requests(self, mount, inside):
        """One of each kind: commands, each with what it prints. `inside`: an open file of the directory."""
        yield ["stat", "-c", "%s", mount / "x"], b"100000\n"
        yield ["head", "-c", "1", mount / "x"], b"x"
        yield ["sh", "-c", 'echo text > "$1" && cat "$1"', "sh", mount / "made"], b"text\n"
        yield ["mv", mount / "made", mount / "small/moved"], b""
        yield ["ls", mount / "small"], b"moved\n"
        yield ["rm", mount / "small/moved"], b""
        yield ["sh", "-c", 'mkdir "$1" && rmdir "$1"', "sh", mount / "d"], b""
        yield ["head", "-c", "1", f"/proc/{os.getpid()}/fd/{inside}"], b"x"
        yield ["stat", "-L", "-c", "%s", f"/proc/{os.getpid()}/fd/{inside}"], b"100000\n"
        yield ["sh", "-c", 'df "$1" > /dev/null && head -c 1 "$1/.cframefs/stats.json"', "sh", mount.path], b"{"

    def ask_beside(self, waiting, call):
        gate = Gate(self.work, call, "/huge")
        with Mount(self.source, "stats=on", environment=gate.environment()) as mount:
            inside = os.open(mount / "huge/x", os.O_RDONLY)
            self.addCleanup(os.close, inside)
            gate.shut()
            listings = [subprocess.Popen(["ls", "-f", mount / "huge"], stdout=subprocess.PIPE) for _ in range(waiting)]
            try:
                gate.wait_until_reached()
                time.sleep(0.2)
                for command, expected in self.requests(mount, inside):
                    self.assertEqual(in_time(command), expected, f"{command} beside {waiting} listings")
                waited = [listing.poll() is None for listing in listings]
            finally:
                gate.open()
                counts = [listing.communicate()[0].count(b"\n") for listing in listings]
            self.assertEqual(waited, [True] * waiting, "the listings did not wait")
            self.assertEqual(counts, [20_003] * waiting)

    def test_all_else_is_answered(self):
        for call in ("list", "entries"):
            for waiting in WAITING:
                with self.subTest(call=call, waiting=waiting):
                    self.ask_beside(waiting, call)


if __name__ == "__main__":
    mounting.main()
