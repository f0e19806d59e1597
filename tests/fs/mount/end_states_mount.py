"""A mount that is to end while a program waits in a call: it does end when the daemon can go on, nothing is left of it, and
what programs have been told to be written or synced is stored."""

import contextlib
import os
import signal
import tempfile
import unittest

import mounting
from mounting import Mount, daemons_of, guards_of, is_mounted, run, wait_for
from waiting_calls import DATA, PLACE, WAITING, Gate, Waiting, make_source

ACKNOWLEDGED = b"written and closed before\n" * 5000
NOT_SYNCED = b"written, neither synced nor closed\n" * 3000


class EndStates(unittest.TestCase):
    def begin(self, *gated, **environment):
        work = tempfile.TemporaryDirectory(prefix="cframefs-end-states-", dir=mounting.fast_directory())
        self.addCleanup(work.cleanup)
        self.source, self.large, before = make_source(work.name)
        self.written = DATA + before[len(DATA) :]
        self.gate = Gate(work.name, *gated)
        self.mount = mount = Mount(self.source, "commit_interval=1000", environment={**self.gate.environment(), **environment})
        self.addCleanup(lambda: mount.log is not None and mount.close())
        with open(self.mount / "acknowledged", "wb") as file:
            file.write(ACKNOWLEDGED)
        self.not_synced = os.open(self.mount / "not synced", os.O_RDWR | os.O_CREAT)
        os.write(self.not_synced, NOT_SYNCED)

    def stored(self, name):
        return mounting.output(mounting.CFRAME, "cat", f"{self.source}/{name}.b2frame")

    def check_ended(self):
        """The daemon and its guard are gone, and the mount with them."""
        wait_for(lambda: self.mount.daemon.poll() is not None, 60, "the daemon to end")
        wait_for(lambda: not guards_of(self.mount.path), what="the guard to end")
        self.assertEqual(daemons_of(self.mount.path), [])
        self.assertFalse(is_mounted(self.mount.path))
        self.mount.close()

    def check_stored(self, kind, answer):
        self.assertEqual(self.stored("acknowledged"), ACKNOWLEDGED)
        self.assertEqual(self.stored("not synced"), NOT_SYNCED)
        if kind == "copy":
            self.assertIn(self.stored("target"), [self.large] if answer == "done" else [self.large, self.written])
        elif kind in ("fsync", "close", "locked"):
            self.assertEqual(self.stored("target"), self.written)
        elif kind == "write" and answer == "done":
            self.assertEqual(self.stored("large")[PLACE : PLACE + 1], b"x")

    def in_each_state(self, end, then=lambda: None, always_done=True):
        for kind in WAITING:
            with self.subTest(kind=kind):
                self.begin(*WAITING[kind][:2])
                with Waiting(kind, self.mount, self.gate) as waiting:
                    end()
                    self.gate.open()
                    answer = waiting.answer()
                    if always_done:
                        self.assertEqual(answer, "done")
                with contextlib.suppress(OSError) if not always_done else contextlib.nullcontext():
                    os.close(self.not_synced)
                then()
                self.check_ended()
                self.check_stored(kind, answer)

    def test_unmounting_is_refused_and_harms_nothing(self):
        def unmount():
            self.assertIn(b"busy", run("fusermount3", "-u", self.mount.path).stderr)
            self.assertTrue(is_mounted(self.mount.path))

        def unmount_again():
            wait_for(lambda: run("fusermount3", "-u", self.mount.path).returncode == 0, what="unmounting")

        self.in_each_state(unmount, unmount_again)

    def test_lazy_unmounting_lets_programs_finish(self):
        def detach():
            self.assertEqual(run("fusermount3", "-u", "-z", self.mount.path).returncode, 0)
            self.assertFalse(is_mounted(self.mount.path))

        self.in_each_state(detach)

    def test_a_request_that_the_end_cuts_off_is_no_failure(self):
        """The kernel aborts one that a thread is just taking, as a RELEASE that the end of the last program has caused."""
        self.begin("pwrite", ABORTED_READS="1")
        self.assertEqual(run("fusermount3", "-u", "-z", self.mount.path).returncode, 0)
        os.close(self.not_synced)
        self.check_ended()
        self.check_stored("", "")

    def test_sigterm_loses_nothing(self):
        """What the daemon has not begun when it is told to end fails, in the program that waits and in others."""
        self.in_each_state(lambda: self.mount.daemon.send_signal(signal.SIGTERM), always_done=False)

    def test_a_second_sigterm_loses_nothing(self):
        self.begin("pwrite")
        self.gate.shut()
        self.mount.daemon.send_signal(signal.SIGTERM)
        self.gate.wait_until_reached()
        self.mount.daemon.send_signal(signal.SIGTERM)
        self.gate.open()
        with contextlib.suppress(OSError):
            os.close(self.not_synced)
        self.check_ended()
        self.check_stored("", "")


if __name__ == "__main__":
    mounting.main()
