"""What the daemon says, and where: a file, standard error, the system log, or a file in its place."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
import zipfile

import mounting
from mounting import Mount, background, daemons_of, golden_frames, unmount, wait_for
from mounted_directory import Directory, SMALL
from stores_mount import embed_frame

LINE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} cframefs\[(\d+)\]: (\w+): (.*)$")

# Where lines go while there is no system log, if the daemon is root's.
SYSTEM_FILE = "/run/cframefs.log"

# Runs in a mount namespace with a /dev of its own, in which a socket takes the place of the system log. In a chroot / may
# be no mount.
WITH_SYSTEM_LOG = r"""
import os, signal, socket, subprocess, sys, time
program, source, mountpoint, devices = sys.argv[1:]
if all(subprocess.run(["mount", "--make-rprivate", place], stderr=subprocess.DEVNULL).returncode != 0 for place in ("/", "/dev")):
    print("cannot keep a mount on /dev to itself")
    sys.exit()
for name in ("fuse", "null", "urandom"):
    open(f"{devices}/{name}", "w").close()
    subprocess.run(["mount", "--bind", f"/dev/{name}", f"{devices}/{name}"], check=True)
subprocess.run(["mount", "--rbind", devices, "/dev"], check=True)
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind("/dev/log")
log.settimeout(20)
done = subprocess.run([program, "-o", "log_level=info", source, mountpoint], capture_output=True)
print("said", done.returncode, done.stderr)
line = log.recv(1 << 16)
print("log", line)
pid = int(line.split(b"[")[1].split(b"]")[0])
os.unlink("/dev/log")
log.close()
os.kill(pid, signal.SIGUSR2)
time.sleep(1)
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind("/dev/log")
log.settimeout(20)
os.kill(pid, signal.SIGTERM)
print("log", log.recv(1 << 16))
"""


class Log(Directory):
    def setUp(self):
        super().setUp()
        (frame, _), = golden_frames(SMALL)
        self.put(frame)
        self.file = self.work + "/log"
        # The lines of earlier mounts, whose process numbers come again.
        self.system_file_start = os.path.getsize(SYSTEM_FILE) if os.path.exists(SYSTEM_FILE) else 0

    @staticmethod
    def sandbox():
        """What the line of a mount says of the sandbox, with all that this kernel has."""
        if not mounting.has_sandbox():
            return ""
        return f"; sandbox: Landlock {mounting.landlock_version()}, system calls, capabilities"

    def parsed(self, path=None):
        """[(process, level, text)] of the log file, each line of which must be whole."""
        with open(path or self.file, encoding="utf-8") as log:
            return [LINE.match(line).groups() for line in log]

    def lines_in_system_file(self, pid):
        """The texts that the process has written to the file in place of the system log during this test."""
        with open(SYSTEM_FILE, encoding="utf-8") as log:
            log.seek(self.system_file_start)
            lines = [LINE.match(line).groups() for line in log]
        return [text for process, _, text in lines if process == str(pid)]

    def refuse(self, name="x"):
        """A request that is refused."""
        with self.assertRaises(OSError):
            os.link(f"{self.mountpoint}/{name}", f"{self.mountpoint}/{name}-link")

    def test_a_file_gets_the_lines_of_the_background(self):
        self.assertEqual(background(self.source, self.mountpoint, f"log={self.file}").returncode, 0)
        (pid,) = daemons_of(self.mountpoint)
        self.refuse()
        unmount(self.mountpoint)
        self.assertEqual(self.parsed(), [
            (str(pid), "info", f"mounted {self.source} on {self.mountpoint} (read-write{self.sandbox()})"),
            (str(pid), "info", "x.b2frame: refused: link: Operation not permitted (a frame has one name only)"),
            (str(pid), "info", f"unmounted {self.mountpoint}: by umount or fusermount3")])
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o640)

    def test_lines_are_appended_and_a_relative_name_is_of_the_caller(self):
        with open(self.file, "w", encoding="utf-8") as log:
            log.write("2026-01-01 00:00:00.000 cframefs[1]: info: before\n")
        where = os.getcwd()
        os.chdir(self.work)
        try:
            with Mount(self.source, "log=log", mountpoint=self.mountpoint) as mount:
                self.refuse()
        finally:
            os.chdir(where)
        self.assertEqual([text.split()[0] for _, _, text in self.parsed()],
                         ["before", "mounted", "x.b2frame:", "unmounted"])
        self.assertEqual(mount.said, [])

    def test_levels(self):
        shutil.copy(self.source + "/x.b2frame", self.source + "/damaged.b2frame")
        os.truncate(self.source + "/damaged.b2frame", 200)
        for level, wanted in (("error", {"error"}), ("warning", {"error"}), ("info", {"error", "info"}),
                              ("debug", {"error", "info", "debug"})):
            with self.subTest(level):
                with Mount(self.source, f"log={self.file}", f"log_level={level}", mountpoint=self.mountpoint):
                    self.refuse()

                    def is_reported():
                        # A file that has just changed may be in the middle of a change.
                        self.assertFalse(os.path.exists(self.mountpoint + "/damaged"))
                        return any(level == "error" for _, level, _ in self.parsed())

                    wait_for(is_reported, what="the line about damage")
                self.assertLessEqual({level for _, level, _ in self.parsed()}, wanted)
                self.assertEqual({level for _, level, _ in self.parsed()} - {"debug"}, wanted - {"debug"})
                os.unlink(self.file)

    def test_a_log_that_cannot_be_is_an_error(self):
        for place, reason in (("/nowhere/log", "open the log file: No such file"),
                              (self.work, "open the log file: Is a directory"),
                              (self.mountpoint + "/log", "lies inside the mount point")):
            done = background(self.source, self.mountpoint, f"log={place}")
            self.assertIn(done.returncode, (2, 3))
            self.assertIn(reason, done.stderr.decode())
            self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_a_hangup_opens_the_file_again(self):
        with Mount(self.source, f"log={self.file}", mountpoint=self.mountpoint) as mount:
            os.rename(self.file, self.file + ".1")
            mount.daemon.send_signal(signal.SIGHUP)
            wait_for(lambda: os.path.exists(self.file) and len(self.parsed()) == 1, what="a line in the new file")
            self.assertEqual(self.parsed()[0][2], "SIGHUP: caches dropped")
        self.assertEqual(len(self.parsed(self.file + ".1")), 1)

    def test_lines_that_a_full_disk_did_not_take_are_counted(self):
        os.symlink("/dev/full", self.file)
        with Mount(self.source, f"log={self.file}", mountpoint=self.mountpoint) as mount:
            self.refuse()
            os.unlink(self.file)
            mount.daemon.send_signal(signal.SIGHUP)
            wait_for(lambda: os.path.exists(self.file) and len(self.parsed()) == 2, what="lines in the new file")
        self.assertEqual(self.parsed()[0][1:], ("warning", "2 lines before this one could not be written to the log"))

    def test_refusals_have_a_reason_and_are_few(self):
        for number in range(300):
            shutil.copy(self.source + "/x.b2frame", f"{self.source}/{number}.b2frame")
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            for _ in range(50):
                self.refuse()
            with self.assertRaises(OSError):
                os.mkdir(self.mountpoint + "/" + "n" * 250)
            with self.assertRaises(OSError):
                os.setxattr(self.mountpoint + "/x", "user.blosc2.info", b"")
            for number in range(300):
                self.refuse(str(number))
        lines = [line for line in mount.said if "refused" in line]
        self.assertEqual(len(lines), 101)
        self.assertEqual(sum("a frame has one name only" in line for line in lines), 98)
        self.assertEqual(sum("the name has 250 bytes; a new file may have 247" in line for line in lines), 1)
        self.assertIn("cframefs: info: x.b2frame: refused: setxattr: Operation not permitted (only metalayers can be set, and only "
                      "variable-length ones removed)", lines)
        self.assertEqual(lines[-1], "cframefs: info: 252 more refused requests were not logged")

    def test_what_is_not_written_is_logged_with_the_reason_and_as_no_error(self):
        shutil.copy(mounting.GOLDEN + "/legacy/bp-codec-lz4.blp", self.source + "/b.blp")
        with zipfile.ZipFile(self.source + "/s.b2z", "w") as store:
            store.write(self.source + "/x.b2frame", "leaf.b2f")
            store.writestr("embed.b2e", embed_frame({}))
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            for change in (lambda: os.open(self.mountpoint + "/b", os.O_RDWR), lambda: os.mkdir(self.mountpoint + "/s.b2z/new"),
                           lambda: os.open(self.mountpoint + "/s.b2z/leaf", os.O_RDWR)):
                with self.assertRaises(OSError) as caught:
                    change()
                self.assertEqual(caught.exception.errno, errno.EROFS)
        self.assertEqual([line for line in mount.said if "mounted" not in line], [
            "cframefs: info: b.blp: refused: open: Read-only file system (neither a contiguous nor a sparse frame: only these can "
            "be changed)",
            "cframefs: info: s.b2z/new: refused: mkdir: Read-only file system (a store cannot be changed)",
            "cframefs: info: s.b2z/leaf.b2f: refused: open: Read-only file system (a store cannot be changed)"])

    def test_a_refused_write_is_logged_without_what_was_written(self):
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            file = os.open(self.mountpoint + "/x", os.O_WRONLY)
            with self.assertRaises(OSError):
                os.pwrite(file, b"secret " * 20000, 1 << 62)
            os.close(file)
        (line,) = mount.refusals()
        self.assertTrue(line.startswith("cframefs: info: x.b2frame: refused: "), line[:200])

    @unittest.skipIf(os.path.exists("/dev/log") or os.geteuid() != 0, "there is a system log, or this is not root")
    def test_without_a_system_log_lines_go_to_a_file(self):
        # semantics: V7
        done = subprocess.run([mounting.CFRAMEFS, self.source, self.mountpoint], capture_output=True, timeout=60, check=False)
        (pid,) = daemons_of(self.mountpoint)
        self.assertEqual((done.returncode, done.stderr), (
            0, f"cframefs: warning: there is no system log (/dev/log): messages go to {SYSTEM_FILE}\n".encode()))
        self.refuse()
        unmount(self.mountpoint)
        self.assertEqual(len(self.lines_in_system_file(pid)), 3)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "only root may have a /dev of its own")
    def test_the_system_log_and_what_happens_while_it_is_away(self):
        os.mkdir(self.work + "/dev")
        command = ["unshare", "-m", "--propagation", "unchanged", sys.executable, "-c", WITH_SYSTEM_LOG, mounting.CFRAMEFS, self.source, self.mountpoint,
                   self.work + "/dev"]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        said = done.stdout.decode().splitlines()
        if len(said) == 1 and done.returncode == 0:
            self.skipTest(said[0])
        self.assertEqual(len(said), 3, (said, done.stderr))
        self.assertEqual(said[0], "said 0 b''")
        self.assertRegex(said[1], r"log b'<30>.* cframefs\[\d+\]: mounted ")
        self.assertRegex(said[2], r"log b'<30>.* cframefs\[\d+\]: unmounted .*: SIGTERM")
        (pid,) = re.findall(r"cframefs\[(\d+)\]", said[1])
        self.assertEqual([text.split()[0] for text in self.lines_in_system_file(pid)], ["statistics:"])


if __name__ == "__main__":
    mounting.main()
