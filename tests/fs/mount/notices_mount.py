"""A file that changes while it is read slowly: no other file is held up, and none shows an older state than it has shown.

The slow read is one that the daemon is held in, by a library that is loaded into it.
"""

import os
import tempfile
import threading
import time
import unittest

import mounting
from mounting import Mount, output, wait_for

SMALL = 10
SIZE = 4 << 20
HELD_AT = 2 << 20
KEPT = "attr_timeout=3600,entry_timeout=3600"
# Far shorter than the second that each of them took, far longer than it takes.
AT_ONCE = 0.5


class WhileOneIsHeld(unittest.TestCase):
    options = ()

    def setUp(self):
        if "SLOW_CALLS_LIBRARY" not in os.environ:
            self.skipTest("SLOW_CALLS_LIBRARY is not set")
        work = tempfile.TemporaryDirectory(prefix="cframefs-test-")
        self.addCleanup(work.cleanup)
        self.work = os.path.realpath(work.name)
        self.source = self.work + "/source"
        os.mkdir(self.source)
        self.plain, self.frames = [], []
        for state in range(2):
            self.plain.append(os.urandom(SIZE))
            self.frames.append(self.pack(self.plain[-1], f"large{state}"))
        self.small = [self.pack(byte * 5000, f"small{byte}") for byte in (b"a", b"b")]
        self.assertEqual(len(self.frames[0]), len(self.frames[1]))
        self.put("held", self.frames[0])
        for number in range(SMALL):
            self.put(str(number), self.small[0])
        self.gate = self.work + "/gate"
        library = ["env", f"LD_PRELOAD={os.environ['SLOW_CALLS_LIBRARY']}", f"HELD_READ={self.gate}"]
        self.mount = Mount(self.source, *self.options, before=library)
        self.addCleanup(self.mount.close)
        self.addCleanup(self.release)

    def pack(self, plain, name):
        with open(f"{self.work}/{name}", "wb") as file:
            file.write(plain)
        output(mounting.CFRAME, "pack", f"{self.work}/{name}", f"{self.work}/{name}.b2frame")
        with open(f"{self.work}/{name}.b2frame", "rb") as file:
            return file.read()

    def put(self, name, frame):
        """Over the bytes that are there."""
        file = os.open(f"{self.source}/{name}.b2frame", os.O_WRONLY | os.O_CREAT)
        os.pwrite(file, frame, 0)
        os.ftruncate(file, len(frame))
        os.close(file)

    def release(self):
        if os.path.exists(self.gate):
            os.unlink(self.gate)

    def open(self, name):
        """One page at a time is read, and kept by the kernel."""
        file = os.open(self.mount / name, os.O_RDONLY)
        self.addCleanup(os.close, file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
        return file

    def begin_held_read(self, file):
        """A read of a page in the middle, which does not end before release()."""
        with open(self.gate, "wb"):
            pass
        found = []
        reader = threading.Thread(target=lambda: found.append(os.pread(file, 4096, HELD_AT)))
        reader.start()
        wait_for(lambda: os.path.exists(self.gate + ".reached"), what="the read to be held")
        return reader, found

    def touch_held(self):
        os.utime(f"{self.source}/held.b2frame")

    def held_stat(self):
        begin = time.monotonic()
        os.stat(self.mount / "held")
        return time.monotonic() - begin


class Others(WhileOneIsHeld):
    options = ("attr_timeout=0",)

    def test_are_seen_at_once_and_exactly(self):
        files = [self.open(str(number)) for number in range(SMALL)]
        for number, file in enumerate(files):
            self.assertEqual(os.pread(file, 5000, 0), b"a" * 5000)
            os.stat(self.mount / str(number))
        held = self.open("held")
        os.stat(self.mount / "held")
        reader, found = self.begin_held_read(held)
        # Twice: the watcher may be the one that sees the first change, and a stat then sees the second.
        self.touch_held()
        time.sleep(0.2)
        self.touch_held()
        took = [self.held_stat()]
        for number, file in enumerate(files):
            self.put(str(number), self.small[1])
            begin = time.monotonic()
            os.stat(self.mount / str(number))
            took.append(time.monotonic() - begin)
            self.assertEqual(os.pread(file, 5000, 0), b"b" * 5000, number)
        self.assertEqual(found, [], "the read was not held")
        self.release()
        reader.join()
        self.assertEqual(found, [self.plain[0][HELD_AT : HELD_AT + 4096]])
        self.assertLess(max(took), AT_ONCE)


class OthersThatTheKernelKeeps(WhileOneIsHeld):
    options = (KEPT,)

    def test_are_seen_a_moment_later(self):
        for number in range(SMALL):
            for _ in range(2):
                os.stat(self.mount / str(number))
        held = self.open("held")
        os.stat(self.mount / "held")
        reader, found = self.begin_held_read(held)
        self.touch_held()
        time.sleep(0.2)
        for number in range(SMALL):
            self.put(str(number), self.small[1] + b"longer")
            times = os.stat(f"{self.source}/{number}.b2frame")
            wait_for(lambda: os.stat(self.mount / str(number)).st_mtime_ns == times.st_mtime_ns, what="the change")
        self.assertEqual(found, [], "the read was not held")
        self.release()
        reader.join()


class TheOneThatIsHeld(WhileOneIsHeld):
    options = ("attr_timeout=0",)

    def test_shows_no_older_state(self):
        # semantics: F1
        held = self.open("held")
        self.assertEqual(os.pread(held, 4096, 0), self.plain[0][:4096])
        self.assertEqual(os.pread(held, 4096, SIZE - 4096), self.plain[0][-4096:])
        os.stat(self.mount / "held")
        reader, found = self.begin_held_read(held)
        self.put("held", self.frames[1])
        took = self.held_stat()
        self.assertEqual(os.pread(held, 4096, 0), self.plain[1][:4096])
        self.assertEqual(os.pread(held, 4096, SIZE - 4096), self.plain[1][-4096:])
        self.assertEqual(found, [], "the read was not held")
        self.release()
        reader.join()
        self.assertEqual(found, [self.plain[1][HELD_AT : HELD_AT + 4096]])
        self.assertEqual(os.pread(held, 4096, HELD_AT), self.plain[1][HELD_AT : HELD_AT + 4096])
        self.assertLess(took, AT_ONCE)


if __name__ == "__main__":
    mounting.main()
