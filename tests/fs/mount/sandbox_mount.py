"""The sandbox of the daemon: what an attacker inside of it cannot do, and that what works without it works within.

All mounts of the other tests run in the sandbox, too (mounting.sandboxed)."""

import errno
import os
import signal
import subprocess
import tempfile
import unittest

import mounting
from mounting import Mount, background, run, wait_for

# Holes that end in an error, and those that end the daemon.
REFUSED = {"read": errno.EACCES, "overwrite": errno.EACCES, "create": errno.EACCES, "remove": errno.EACCES}
ENDED = ("execute", "connect", "mount", "trace")
SCOPES = 6  # the version of Landlock that restricts signals


class Sandbox(unittest.TestCase):
    def setUp(self):
        if not mounting.has_sandbox():
            self.skipTest("no Landlock here")
        work = tempfile.TemporaryDirectory(prefix="cframefs-sandbox-")
        self.addCleanup(work.cleanup)
        self.source = os.path.join(work.name, "source")
        self.outside = os.path.join(work.name, "outside")
        self.mountpoint = os.path.join(work.name, "mount")
        for directory in (self.source, self.outside, self.mountpoint):
            os.mkdir(directory)
        for name in ("secret", "removed"):
            with open(f"{self.outside}/{name}", "wb") as file:
                file.write(b"of another program")
        self.sleeper = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(self.sleeper.wait)
        self.addCleanup(self.sleeper.kill)

    def mount(self, *options):
        # The holes are in the daemon's reads of plain files.
        return Mount(self.source, *options, "passthrough=off", mountpoint=self.mountpoint,
                     environment={"LD_PRELOAD": os.environ["HOLES_LIBRARY"], "HOLE_DIRECTORY": self.outside,
                                  "HOLE_PROCESS": str(self.sleeper.pid)})

    def go_through(self, mount, hole):
        """What the hole ends with: the errno, which is ENOTUNIQ for a hole that is open."""
        with open(f"{self.source}/hole-{hole}", "wb") as file:
            file.write(b"x")
        with self.assertRaises(OSError) as failed, open(mount / f"hole-{hole}", "rb") as file:
            file.read()
        return failed.exception.errno

    def test_the_holes_are_open_without_it(self):
        with self.mount("sandbox=off") as mount:
            for hole in (*REFUSED, *ENDED, "signal", "code", "fork"):
                self.assertEqual(self.go_through(mount, hole), errno.ENOTUNIQ, hole)
        self.assertFalse(os.path.exists(self.outside + "/removed"))

    def test_a_call_elsewhere_is_refused(self):
        with self.mount("sandbox=auto") as mount:
            for hole, why in REFUSED.items():
                self.assertEqual(self.go_through(mount, hole), why, hole)
            for hole in ("code", "fork"):
                self.assertEqual(self.go_through(mount, hole), errno.ENOSYS, hole)
            if mounting.landlock_version() >= SCOPES:
                self.assertEqual(self.go_through(mount, "signal"), errno.EPERM)
        self.assertEqual(sorted(os.listdir(self.outside)), ["removed", "secret"])

    def test_a_call_that_only_an_attacker_makes_ends_the_daemon(self):
        for mode in ("auto", "strict"):
            for hole in ENDED if mode == "auto" else (*ENDED, "code", "fork"):
                log = f"{self.outside}/log-{mode}-{hole}"
                mount = self.mount("sandbox=" + mode, "log=" + log)
                with self.assertRaises(AssertionError) as ended:
                    self.go_through(mount, hole)
                    mount.close()
                self.assertIn(f"exit status {-signal.SIGSYS}", str(ended.exception), hole)
                # Its guard takes the mount away, and tells why.
                wait_for(lambda: not mounting.is_mounted(self.mountpoint), what="the guard to unmount")
                with open(log, encoding="utf-8") as text:
                    self.assertRegex(text.read(), f"{self.mountpoint}: the sandbox has ended the daemon, because it made "
                                                  "the system call [a-z0-9_]*[a-z]")

    def test_a_mount_whose_guard_was_killed_says_that_it_stays(self):
        mount = Mount(self.source, mountpoint=self.mountpoint)
        for guard in mounting.guards_of(self.mountpoint):
            os.kill(guard, signal.SIGKILL)
        with self.assertRaisesRegex(AssertionError, "mount left: True"):
            mount.close()
        self.assertIn(f"cframefs: error: {self.mountpoint}: not unmounted: the guard, which does it for a daemon in its "
                      "sandbox, is gone", mount.said)

    def test_no_capability_is_kept_that_acting_for_callers_does_not_need(self):
        with self.mount("sandbox=auto") as mount:
            self.assertEqual(mount.status("NoNewPrivs"), 1)
            self.assertEqual(mount.status("Seccomp"), 2)
            with open(f"/proc/{mount.daemon.pid}/status", encoding="ascii") as status:
                sets = {line.split(":")[0]: int(line.split()[1], 16) for line in status if line.startswith("Cap")}
            kept = 0x882000DF if os.geteuid() == 0 else 0
            self.assertEqual(sets["CapPrm"] & ~kept, 0)
            self.assertEqual(sets["CapInh"], 0)

    def test_the_log_says_what_is_in_force(self):
        with self.mount("sandbox=auto") as mount:
            wait_for(lambda: any("sandbox: Landlock" in line for line in mount.all_lines()), what="the line")
        with self.mount("sandbox=off") as mount:
            self.assertFalse(any("sandbox:" in line for line in mount.all_lines()))

    def test_strict_does_not_mount_where_something_is_missing(self):
        # A filter that answers ENOSYS stands for a kernel without Landlock.
        without = [os.environ["NO_LANDLOCK"], mounting.CFRAMEFS]
        refused = run(*without, "-o", "sandbox=strict", self.source, self.mountpoint)
        self.assertEqual(refused.returncode, 1)
        self.assertEqual(refused.stderr.decode(), "cframefs: sandbox=strict: the kernel lacks Landlock 2 or later\n")
        self.assertFalse(mounting.is_mounted(self.mountpoint))
        with Mount(self.source, "sandbox=auto", mountpoint=self.mountpoint, before=[os.environ["NO_LANDLOCK"]]) as mount:
            wait_for(lambda: any(line.endswith("; sandbox: system calls, capabilities)") for line in mount.all_lines()),
                     what="the line")
            with open(mount / "x", "wb") as file:
                file.write(b"written")
            with open(mount / "x", "rb") as file:
                self.assertEqual(file.read(), b"written")

    def test_auto_serves_with_a_warning_where_a_part_is_refused(self):
        refused = {"REFUSED_CALL": "446"}  # landlock_restrict_self
        with Mount(self.source, "sandbox=auto", mountpoint=self.mountpoint, before=[os.environ["NO_LANDLOCK"]],
                   environment=refused) as mount:
            self.assertEqual(mount.lines(), ["cframefs: warning: the sandbox is not complete: landlock_restrict_self: "
                                             "Function not implemented"])
            with open(mount / "x", "wb") as file:
                file.write(b"written")
        with self.assertRaises(AssertionError) as ended:
            Mount(self.source, "sandbox=strict", mountpoint=self.mountpoint, before=[os.environ["NO_LANDLOCK"]],
                  environment=refused)
        self.assertIn("landlock_restrict_self", str(ended.exception))
        self.assertFalse(mounting.is_mounted(self.mountpoint))

    def test_a_single_file_is_written_in_its_directory(self):
        with Mount(self.source) as mount, open(mount / "one", "wb") as file:
            file.write(b"before")
        place = self.mountpoint + "/file"
        with open(place, "wb"):
            pass
        self.assertEqual(background(self.source + "/one.b2frame", place, "sandbox=strict").returncode, 0)
        for content in (b"after", b"after that, and longer"):
            with open(place, "wb") as file:
                file.write(content)
            with open(place, "rb") as file:
                self.assertEqual(file.read(), content)
        mounting.unmount(place)


if __name__ == "__main__":
    mounting.main()
