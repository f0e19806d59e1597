"""A program that waits in a call ends when it is told to, while the daemon cannot finish what the call is about; what it
has written is kept and committed. How the kernel hands signals on: waiting_calls.py."""

import os
import select
import signal
import tempfile
import unittest

import mounting
import waiting_calls
from mounting import Mount, wait_for
from waiting_calls import ANSWER_SECONDS, DATA, WAITING, Gate, Waiting, make_source


class Interrupts(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-interrupts-", dir=mounting.fast_directory())
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.source, self.large, before = make_source(work.name)
        self.written = DATA + before[len(DATA) :]

    def mount(self, kind, *options):
        self.gate = Gate(self.work, *WAITING[kind][:2])
        mount = Mount(self.source, *options, environment=self.gate.environment())
        self.addCleanup(lambda: mount.log is not None and mount.close())
        self.addCleanup(self.gate.open)
        return mount

    def stored(self, name):
        return mounting.output(mounting.CFRAME, "cat", f"{self.source}/{name}.b2frame")

    def ends_while_it_waits(self, kind):
        for number in (signal.SIGKILL, signal.SIGINT):
            with self.subTest(number=number):
                mount = self.mount(kind, "commit_interval=1000")
                with Waiting(kind, mount, self.gate) as waiting:
                    waiting.program.send_signal(number)
                    self.assertTrue(waiting.is_gone_soon(), f"still there after {ANSWER_SECONDS} s")
                    self.assertEqual(waiting.program.returncode, -number)
                mount.close()
                place, stored = waiting_calls.PLACE, self.stored("large")
                self.assertEqual(stored[:place] + stored[place + 1 :], self.large[:place] + self.large[place + 1 :])
                if stored[place] != self.large[place]:
                    self.assertEqual((kind, stored[place : place + 1]), ("write", b"x"))

    def test_a_reader_ends(self):
        # semantics: J3
        self.ends_while_it_waits("read")

    def test_a_reader_past_the_page_cache_ends(self):
        # semantics: J3
        self.ends_while_it_waits("direct")

    def test_an_open_ends(self):
        # semantics: J3
        self.ends_while_it_waits("open")

    def test_a_writer_ends(self):
        # semantics: J3
        self.ends_while_it_waits("write")

    def test_fsync_ends(self):
        # semantics: J3
        self.ends_while_it_waits("fsync")

    def test_close_ends(self):
        # semantics: J3
        self.ends_while_it_waits("close")

    def test_a_close_that_waits_for_a_lock_ends(self):
        # semantics: J3
        self.ends_while_it_waits("locked")

    def test_a_stat_ends(self):
        # semantics: J3
        self.ends_while_it_waits("stat")

    def test_setxattr_ends(self):
        self.ends_while_it_waits("setxattr")

    def test_a_truncation_ends(self):
        self.ends_while_it_waits("truncate")

    def test_a_rename_ends(self):
        self.ends_while_it_waits("rename")

    def test_a_removal_ends(self):
        self.ends_while_it_waits("unlink")

    def test_a_listing_ends(self):
        self.ends_while_it_waits("list")

    def test_statfs_ends(self):
        self.ends_while_it_waits("statfs")

    def test_a_copy_ends(self):
        # semantics: J3
        self.ends_while_it_waits("copy")

    def test_what_a_killed_program_was_closing_is_committed(self):
        # semantics: J3
        mount = self.mount("close", "commit_interval=1")
        with Waiting("close", mount, self.gate) as waiting:
            waiting.program.kill()
        wait_for(lambda: self.stored("target") == self.written, what="the commit")
        mount.close()
        self.assertEqual(self.stored("target"), self.written)
        self.assertEqual(mount.lines(), [])

    def is_interrupted(self, kind):
        """Until the signal is answered the gate stays shut."""
        mount = self.mount(kind, "commit_interval=1000")
        with Waiting(kind, mount, self.gate, caught=True) as waiting:
            waiting.program.send_signal(signal.SIGINT)
            told = select.select([waiting.program.stdout], [], [], ANSWER_SECONDS)[0]
            self.assertTrue(told, f"no answer after {ANSWER_SECONDS} s")
            self.assertEqual(waiting.answer(), "Interrupted system call")
        return mount

    def target_is_committed_by_fsync(self, mount):
        descriptor = os.open(mount / "target", os.O_RDWR)
        os.fsync(descriptor)
        self.assertEqual(self.stored("target"), self.written)
        os.close(descriptor)
        mount.close()
        with Mount(self.source) as again:
            with open(again / "target", "rb") as file:
                self.assertEqual(file.read(), self.written)

    def test_fsync_is_interrupted(self):
        # semantics: J4
        self.target_is_committed_by_fsync(self.is_interrupted("fsync"))

    def test_a_read_past_the_page_cache_is_interrupted(self):
        # semantics: J4
        self.is_interrupted("direct").close()

    def test_close_is_interrupted(self):
        # semantics: J4
        mount = self.is_interrupted("close")
        self.gate.open()
        wait_for(lambda: self.stored("target") == self.written, what="the commit")
        mount.close()

    def test_a_copy_is_interrupted(self):
        # semantics: J4
        self.target_is_committed_by_fsync(self.is_interrupted("copy"))


if __name__ == "__main__":
    mounting.main()
