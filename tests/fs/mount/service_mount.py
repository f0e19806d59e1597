"""What a daemon in the foreground sends to the service manager that $NOTIFY_SOCKET names: READY=1 once the mount serves,
STOPPING=1 when it ends. No service manager runs here; the test is at the other end of the socket."""

import os
import pathlib
import shutil
import socket
import tempfile
import unittest

import mounting
from mounting import Mount, background, run, unmount


class Service(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="cframefs-service-")
        self.addCleanup(shutil.rmtree, self.work)
        self.source = os.path.join(self.work, "source")
        os.mkdir(self.source)
        pathlib.Path(self.source, "plain").write_bytes(b"plain")
        self.mountpoint = os.path.join(self.work, "mnt")
        os.mkdir(self.mountpoint)

    def manager(self, address):
        """A socket of a service manager; '@' begins an abstract name."""
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind("\0" + address[1:] if address[0] == "@" else address)
        manager.settimeout(20)
        return manager

    def check_messages(self, address):
        manager = self.manager(address)
        mount = Mount(self.source, mountpoint=self.mountpoint, environment={"NOTIFY_SOCKET": address})
        self.assertEqual(manager.recv(100), b"READY=1")
        self.assertEqual(pathlib.Path(mount / "plain").read_bytes(), b"plain")
        manager.setblocking(False)
        with self.assertRaises(BlockingIOError):
            manager.recv(100)
        manager.settimeout(20)
        mount.close()
        self.assertEqual(manager.recv(100), b"STOPPING=1")
        self.assertEqual(mount.lines(), [])

    def test_a_path(self):
        self.check_messages(os.path.join(self.work, "notify"))

    def test_an_abstract_name(self):
        self.check_messages("@cframefs-" + os.path.basename(self.work))

    def test_the_longest_path(self):
        self.check_messages(os.path.join(self.work, "").ljust(107, "x"))

    def test_the_longest_abstract_name(self):
        self.check_messages(("@" + os.path.basename(self.work)).ljust(108, "x"))

    def test_a_mount_that_fails_is_not_ready(self):
        address = os.path.join(self.work, "notify")
        manager = self.manager(address)
        failed = run(mounting.CFRAMEFS, "-f", self.source, os.path.join(self.source, "plain"),
                     env={**os.environ, "NOTIFY_SOCKET": address})
        self.assertNotEqual(failed.returncode, 0)
        manager.setblocking(False)
        with self.assertRaises(BlockingIOError):
            manager.recv(100)

    def test_a_daemon_in_the_background_sends_nothing(self):
        # It is not the main process of the service whose environment it has.
        address = os.path.join(self.work, "notify")
        manager = self.manager(address)
        done = background(self.source, self.mountpoint, env={**os.environ, "NOTIFY_SOCKET": address})
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        unmount(self.mountpoint)
        manager.setblocking(False)
        with self.assertRaises(BlockingIOError):
            manager.recv(100)

    def test_a_mount_without_the_manager_it_was_told_of(self):
        for address, reason in ((os.path.join(self.work, "missing"), "No such file or directory"),
                                ("vsock:2:1234", "the address must begin with '/' or '@'"),
                                ("/" + "x" * 107, "the address has 108 bytes, at most 107"),
                                ("@" + "x" * 108, "the address has 109 bytes, at most 108")):
            with self.subTest(address):
                mount = Mount(self.source, mountpoint=self.mountpoint, environment={"NOTIFY_SOCKET": address})
                self.assertEqual(pathlib.Path(mount / "plain").read_bytes(), b"plain")
                mount.close()
                self.assertEqual(len(mount.lines()), 2, mount.lines())
                for state, line in zip(("READY=1", "STOPPING=1"), mount.lines()):
                    self.assertIn(f"send {state} to $NOTIFY_SOCKET '{address}'", line)
                    self.assertIn(reason, line)

    def test_a_manager_that_does_not_read_is_waited_for_no_longer_than_seconds(self):
        address = os.path.join(self.work, "notify")
        manager = self.manager(address)
        # The first socket that cannot send its first message finds the queue full, not its own buffer.
        full = False
        while not full:
            filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.addCleanup(filler.close)
            filler.setblocking(False)
            sent = 0
            with self.assertRaises(BlockingIOError):
                while True:
                    filler.sendto(b"x", address)
                    sent += 1
            full = sent == 0
        mount = Mount(self.source, mountpoint=self.mountpoint, environment={"NOTIFY_SOCKET": address})
        self.assertEqual(pathlib.Path(mount / "plain").read_bytes(), b"plain")
        mount.close()
        self.assertIn("READY=1", mount.lines()[0])
        self.assertIn("Resource temporarily unavailable", mount.lines()[0])
        self.assertIsNotNone(manager)

    def test_the_versions_of_libraries(self):
        lines = run(mounting.CFRAMEFS, "-V").stdout.decode().splitlines()
        self.assertRegex(lines[0], r"\Acframefs \d+\.\d+\.\d+\Z")
        self.assertEqual([line.split()[0] for line in lines[1:]],
                         ["libfuse", "zstd", "lz4", "libdeflate", "snappy", "zfp", "zlib", "OpenSSL", "xxHash"])
        for line in lines[1:]:
            self.assertRegex(line, r"\A\w+ \d+\.\d+[\w.]*\Z")


if __name__ == "__main__":
    mounting.main()
