"""The program cframe on pipes that are named as its input, by the file system or by a shell's process substitution.

usage: pipes_test.py CFRAME [unittest's own arguments]
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import program_test
from program_test import PLAIN, Program


class NamedPipes(Program):
    def from_pipe_by_name(self, name, *arguments):
        """Runs it with a pipe that is named as a shell names its process substitution, where the arguments have "-"."""
        reader, writer = os.pipe()
        feeder = subprocess.Popen(["cat", name], cwd=self.directory, stdout=writer)
        os.close(writer)
        try:
            return self.done(*(f"/dev/fd/{reader}" if argument == "-" else argument for argument in arguments), pass_fds=[reader])
        finally:
            os.close(reader)
            feeder.wait()

    def test_a_pipe_may_stand_wherever_standard_input_may(self):
        self.done("pack", "data", "x.b2frame")
        self.done("set-meta", "x.b2frame", "notes", "text")
        given = self.from_pipe_by_name
        self.assertEqual(given("x.b2frame", "cat", "-"), PLAIN)
        self.assertEqual(given("x.b2frame", "get-meta", "-", "notes"), b"text\n")
        self.assertEqual(json.loads(given("x.b2frame", "info", "--json", "-"))["file_bytes"], len(self.read("x.b2frame")))
        self.assertRegex(given("x.b2frame", "verify", "-"), b"^/dev/fd/[0-9]+: ok")
        self.assertEqual(given("data", "diff", "-", "x.b2frame"), b"")
        given("x.b2frame", "map", "-")
        self.assertEqual(json.loads(given("x.b2frame", "ls", "--json", "-"))["plain"], len(PLAIN))
        given("x.b2frame", "convert", "-", "y.b2frame")
        self.assertEqual(self.done("cat", "y.b2frame"), PLAIN)
        given("x.b2frame", "unpack", "-", "out")
        self.assertEqual(self.read("out"), PLAIN)
        given("data", "pack", "-", "z.b2frame")
        self.assertEqual(self.done("cat", "z.b2frame"), PLAIN)
        given("data", "set-meta", "x.b2frame", "data", "--from", "-")
        self.assertEqual(self.done("get-meta", "x.b2frame", "data"), PLAIN)
        umask = os.umask(0)
        os.umask(umask)
        for name in ("out", "y.b2frame"):
            status = os.stat(self.directory / name)
            self.assertEqual(status.st_mode & 0o777, 0o666 & ~umask, name)
            self.assertGreater(status.st_mtime, time.time() - 1000, name)

    def test_what_is_changed_in_place_is_no_pipe(self):
        os.mkfifo(self.directory / "pipe.b2frame")
        for arguments in (["compact"], ["seal"], ["repair"], ["set-meta", "notes", "text"]):
            ran = self.run_cframe(arguments[0], "pipe.b2frame", *arguments[1:])
            self.assertEqual(ran.returncode, 1, arguments)
            self.assertIn(b"neither a regular file nor a directory", ran.stderr)

    @staticmethod
    def catches(pid, number):
        """Whether the process has a handler of the signal."""
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
        return int(caught, 16) >> number - 1 & 1 == 1

    def test_waiting_for_a_pipe_ends_by_one_signal(self):
        self.done("pack", "data", "x.b2frame")
        os.mkfifo(self.directory / "pipe")
        for command in (["pack", "pipe", "o.b2frame"], ["cat", "pipe"], ["verify", "pipe"],
                        ["set-meta", "x.b2frame", "notes", "--from", "pipe"]):
            with self.subTest(command=command):
                program = subprocess.Popen([program_test.CFRAME, *command], cwd=self.directory, stdin=subprocess.DEVNULL,
                                           preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
                try:
                    end = time.monotonic() + 20
                    while not self.catches(program.pid, signal.SIGTERM):
                        self.assertLess(time.monotonic(), end)
                        time.sleep(0.01)
                    time.sleep(0.1)  # until it waits for the pipe
                    program.send_signal(signal.SIGTERM)
                    self.assertEqual(program.wait(20), -signal.SIGTERM)
                finally:
                    program.kill()
                    program.wait()


if __name__ == "__main__":
    program_test.CFRAME = os.path.abspath(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
