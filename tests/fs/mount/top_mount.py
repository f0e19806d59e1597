"""cframe top: what it shows of mounts in a pipe and on a terminal, and that it leaves the terminal as it was."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import mounting
from mounting import golden_frames, output, pread, run
from mounted_directory import Directory, LARGE

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """A pseudo terminal of 30 rows and 100 columns with a program in it."""

    def __init__(self, *command):
        self.leader, self.follower = pty.openpty()
        fcntl.ioctl(self.follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.before = termios.tcgetattr(self.follower)
        self.seen = b""
        self.program = subprocess.Popen(
            command, stdin=self.follower, stdout=self.follower, stderr=self.follower, start_new_session=True,
            env={**os.environ, "TERM": "xterm"}, preexec_fn=self.take_terminal)

    def take_terminal(self):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def read(self, seconds):
        if select.select([self.leader], [], [], seconds)[0]:
            self.seen += os.read(self.leader, 65536)

    def wait_for(self, text, times=1, seconds=20):
        end = time.monotonic() + seconds
        while self.seen.count(text) < times:
            if time.monotonic() > end:
                raise AssertionError(f"no {text!r} in {self.seen!r}")
            self.read(0.1)

    def type(self, keys):
        os.write(self.leader, keys)

    def end(self):
        """The exit status, once the program has ended."""
        end = time.monotonic() + 20
        while self.program.poll() is None and time.monotonic() < end:
            self.read(0.05)
        self.read(0)
        return self.program.wait(1)

    def is_restored(self):
        return termios.tcgetattr(self.follower) == self.before and self.seen.endswith(LEAVE)

    def close(self):
        if self.program.poll() is None:
            self.program.kill()
            self.program.wait()
        os.close(self.leader)
        os.close(self.follower)


class Top(Directory):
    def setUp(self):
        super().setUp()
        (self.frame, self.content), = golden_frames(LARGE)
        self.put(self.frame)

    def terminal(self, *arguments):
        terminal = Terminal(mounting.CFRAME, "top", *arguments)
        self.addCleanup(terminal.close)
        return terminal

    def test_once_prints_a_line_for_each_mount(self):
        with mounting.Mount(self.source, "stats=on") as first, mounting.Mount(self.source, "stats=on", "ro") as second:
            with open(first / "x", "rb") as file:
                file.read()
            lines = output(mounting.CFRAME, "top", "--once", first.path, second.path).decode().splitlines()
        self.assertEqual([line.split()[1] for line in lines], [first.path, second.path])
        self.assertRegex(lines[0], r"\A\d\d:\d\d:\d\d \S+ read \S+ \S+/s \(\d+/s\) write 0 bytes/s \(0/s\) hits ")
        self.assertIn("errors none", lines[0])
        self.assertNotIn("read 0 bytes/s", lines[0])

    def test_a_pipe_gets_a_line_for_each_look(self):
        mount = self.mount("stats=on")
        began = time.monotonic()
        program = subprocess.Popen([mounting.CFRAME, "top", "--interval", "0.3", "--count", "3", mount.path],
                                   stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        # All the time, because the program begins to look when it has a processor.
        with open(mount / "written", "wb", buffering=0) as file:
            while program.poll() is None:
                file.seek(0)
                file.write(bytes(3_000_000))
                time.sleep(0.01)
        lines = program.communicate(timeout=60)[0].decode().splitlines()
        self.assertEqual((program.returncode, len(lines)), (0, 3))
        self.assertGreater(time.monotonic() - began, 0.8)
        self.assertFalse(any("\x1b" in line for line in lines))
        self.assertTrue(any(re.search(r"write [\d.]+ MiB/s", line) for line in lines), lines)

    def test_a_mount_without_statistics_is_told_apart(self):
        mount = self.mount()
        os.mkdir(self.source + "/directory")
        plain = self.work + "/plain"
        os.mkdir(plain)
        over = self.work + "/over"
        open(over, "w", encoding="ascii").close()
        with mounting.Mount(self.source + "/x.b2frame", "stats=on", mountpoint=over):
            for path, message in ((mount.path, "-o stats=on"), (mount / "directory", "name its mount point"),
                                  (plain, "is no mount of cframefs"), (over, "over a file"),
                                  (self.work + "/missing", "No such file")):
                done = run(mounting.CFRAME, "top", "--once", path)
                self.assertEqual(done.returncode, 2, path)
                self.assertIn(message, done.stderr.decode())
                self.assertIn(path, done.stderr.decode())
                self.assertEqual(done.stdout, b"")

    def test_the_screen_ends_with_q_and_is_restored(self):
        mount = self.mount("stats=on")
        terminal = self.terminal("--interval", "0.2", mount.path)
        terminal.wait_for(b"cframe top")
        pread(mount / "x", 0, 4096)
        terminal.wait_for(b"\x1b[H", times=4)
        terminal.wait_for(b"x.b2frame")
        self.assertTrue(terminal.seen.startswith(ENTER))
        self.assertNotEqual(termios.tcgetattr(terminal.follower), terminal.before)
        for line in re.split(rb"\r\n|\x1b\[H", terminal.seen):
            self.assertLessEqual(len(re.sub(rb"\x1b\[[?\d]*[a-zA-Z]|\r", b"", line).decode()), 100)
        terminal.type(b"q")
        self.assertEqual(terminal.end(), 0)
        self.assertTrue(terminal.is_restored(), terminal.seen[-60:])

    def test_ctrl_c_restores_the_screen(self):
        mount = self.mount("stats=on")
        terminal = self.terminal(mount.path)
        terminal.wait_for(b"cframe top")
        terminal.type(b"\x03")
        self.assertEqual(terminal.end(), -signal.SIGINT)
        self.assertTrue(terminal.is_restored(), terminal.seen[-60:])

    def test_a_mount_that_ends_is_shown_as_gone(self):
        with mounting.Mount(self.source, "stats=on") as other:
            gone = self.mountpoint
            mount = mounting.Mount(self.source, "stats=on", mountpoint=gone)
            terminal = self.terminal("--interval", "0.2", "--count", "1000", gone, other.path)
            terminal.wait_for(b"cframe top")
            mount.close()
            terminal.wait_for(b"is no mount of cframefs")
            terminal.type(b"q")
            self.assertEqual(terminal.end(), 2)
            self.assertTrue(terminal.is_restored())

    def test_a_reader_that_has_enough_ends_it(self):
        mount = self.mount("stats=on")
        done = run("sh", "-c", f"{mounting.CFRAME} top --interval 0.1 {mount.path} | head -n 2; echo $?")
        self.assertEqual(len(done.stdout.splitlines()), 3)
        self.assertEqual(done.stderr, b"")


if __name__ == "__main__":
    mounting.main()
