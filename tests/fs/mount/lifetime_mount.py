"""How a mount begins and ends: background and foreground, signals, mount points, what a killed daemon leaves."""

import errno
import os
import shutil
import signal
import subprocess

import mounting
from mounting import Mount, background, daemons_of, is_mounted, unmount, wait_for
from mounted_directory import ServedFrame


class ComingAndGoing(ServedFrame):
    def test_background_returns_when_it_serves_and_unmounting_leaves_nothing(self):
        for _ in range(5):
            done = background(self.source, self.mountpoint)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
            self.assertTrue(is_mounted(self.mountpoint))
            self.check_serves()
            self.assertEqual(len(daemons_of(self.mountpoint)), 1)
            unmount(self.mountpoint)
            self.assertEqual(os.listdir(self.mountpoint), [])

    def test_signals_unmount_the_background(self):
        # semantics: J1
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name):
                self.assertEqual(background(self.source, self.mountpoint).returncode, 0)
                self.check_serves()
                (daemon,) = daemons_of(self.mountpoint)
                os.kill(daemon, number)
                wait_for(lambda: not daemons_of(self.mountpoint), what="the daemon to end")
                self.assertFalse(is_mounted(self.mountpoint))

    def test_signals_unmount_the_foreground(self):
        # semantics: J1
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name):
                mount = Mount(self.source, mountpoint=self.mountpoint)
                self.check_serves()
                mount.daemon.send_signal(number)
                self.assertEqual(mount.daemon.wait(20), 0)
                self.assertFalse(is_mounted(self.mountpoint))
                self.assertEqual(mount.lines(), [])
                mount.close()

    def test_signals_that_end_nothing(self):
        # semantics: J2
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            content = os.urandom(3 << 20)
            with open(mount / "written", "wb") as file:
                for begin in range(0, len(content), 1 << 16):
                    file.write(content[begin : begin + (1 << 16)])
                    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE):
                        mount.daemon.send_signal(number)
            with open(mount / "written", "rb") as file:
                self.assertEqual(file.read(), content)
            self.check_serves()
            self.assertEqual(mount.lines(), [])

    def test_a_hangup_does_not_unmount_the_background(self):
        # semantics: J2
        self.assertEqual(background(self.source, self.mountpoint).returncode, 0)
        (daemon,) = daemons_of(self.mountpoint)
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            os.kill(daemon, number)
        self.check_serves()
        unmount(self.mountpoint)

    def test_a_signal_whatever_becomes_of_usr1(self):
        # SIGUSR1 wakes the threads that wait for requests; the parent process may have ignored or blocked it.
        for how in (signal.SIG_IGN, signal.SIG_BLOCK):
            for flags in ((), ("-s",)):
                before = signal.getsignal(signal.SIGUSR1)
                if how == signal.SIG_IGN:
                    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
                else:
                    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
                try:
                    mount = Mount(self.source, mountpoint=self.mountpoint, flags=flags)
                finally:
                    signal.signal(signal.SIGUSR1, before)
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
                self.check_serves()
                mount.daemon.send_signal(signal.SIGTERM)
                self.assertEqual(mount.daemon.wait(20), 0)
                mount.close()

    def test_a_signal_while_files_are_open(self):
        mount = Mount(self.source, mountpoint=self.mountpoint)
        file = os.open(mount / "x", os.O_RDONLY)
        mount.close()
        with self.assertRaises(OSError):
            os.pread(file, 10, 0)
        os.close(file)

    def test_mount_points_given_relatively_and_with_slashes(self):
        where = os.getcwd()
        os.chdir(self.work)
        try:
            for mountpoint in ("mnt", "./mnt", "mnt/", "mnt//", self.mountpoint + "/", "source/../mnt"):
                with self.subTest(mountpoint):
                    done = background("source", mountpoint)
                    self.assertEqual((done.returncode, done.stderr), (0, b""))
                    self.check_serves()
                    for daemon in daemons_of(mountpoint):
                        os.kill(daemon, signal.SIGTERM)
                    wait_for(lambda point=mountpoint: not daemons_of(point), what="the daemon to end")
                    self.assertFalse(is_mounted(self.mountpoint))
        finally:
            os.chdir(where)

    def test_mount_points_with_odd_names(self):
        for name in ("with space", "com,ma", "back\\slash", "ümlaut"):
            with self.subTest(name):
                os.mkdir(f"{self.work}/{name}")
                self.assertEqual(background(self.source, f"{self.work}/{name}").returncode, 0)
                self.check_serves(f"{self.work}/{name}")
                unmount(f"{self.work}/{name}")

    def test_sources_with_odd_names(self):
        for name in ("with space", "com,ma", "back\\slash", "ümlaut", "a=b"):
            with self.subTest(name):
                shutil.copytree(self.source, f"{self.work}/{name}")
                with Mount(f"{self.work}/{name}", mountpoint=self.mountpoint):
                    self.check_serves()

    def test_over_the_source_directory_itself(self):
        with Mount(self.source, mountpoint=self.source) as mount:
            self.check_serves(mount.path)
        self.assertEqual(os.listdir(self.source), ["x.b2frame"])

    def test_what_a_killed_daemon_left_is_cleaned_by_the_next_mount(self):
        for flags in ([], ["-f"]):
            self.assertEqual(background(self.source, self.mountpoint).returncode, 0)
            (daemon,) = daemons_of(self.mountpoint)
            # Its guard would take the mount away.
            (guard,) = wait_for(lambda: mounting.guards_of(self.mountpoint), what="the guard")
            os.kill(guard, signal.SIGKILL)
            wait_for(lambda: not mounting.guards_of(self.mountpoint), what="the guard to die")
            os.kill(daemon, signal.SIGKILL)
            wait_for(lambda: not daemons_of(self.mountpoint), what="the daemon to die")
            # A request that was under way when the connection ended gets ECONNABORTED, every later one ENOTCONN.
            wait_for(lambda: self.error_of_stat() == errno.ENOTCONN, what="the connection to end")
            if flags:
                with Mount(self.source, mountpoint=self.mountpoint):
                    self.check_serves()
            else:
                self.assertEqual(background(self.source, self.mountpoint).returncode, 0)
                self.check_serves()
                unmount(self.mountpoint)
            self.assertEqual(mounting.mounts().count(self.mountpoint), 0)

    def error_of_stat(self):
        try:
            os.stat(self.mountpoint)
        except OSError as error:
            return error.errno
        return 0

    def test_two_mounts_of_one_source(self):
        os.mkdir(self.work + "/second")
        with Mount(self.source, mountpoint=self.mountpoint), Mount(self.source, mountpoint=self.work + "/second"):
            self.check_serves()
            self.check_serves(self.work + "/second")

    def test_the_table_of_mounts_names_source_and_type(self):
        for option in ("ro", "rw"):
            with Mount(self.source, option, mountpoint=self.mountpoint):
                with open("/proc/self/mounts", encoding="utf-8") as table:
                    (line,) = [line for line in table if self.mountpoint in line]
                source, mountpoint, kind, options = line.split()[:4]
                self.assertEqual((source, mountpoint, kind), (self.source, self.mountpoint, "fuse.cframefs"))
                self.assertIn(option, options.split(","))

    def test_debug_talks_and_stays_in_front(self):
        with Mount(self.source, mountpoint=self.mountpoint, flags=["-d"]) as mount:
            self.check_serves()
            self.assertTrue(any("LOOKUP" in line for line in mount.lines()))

    def test_the_program_can_be_started_without_standard_streams(self):
        code = subprocess.call(
            ["sh", "-c", f'"{mounting.CFRAMEFS}" "{self.source}" "{self.mountpoint}" <&- >&- 2>&-'], timeout=60
        )
        self.addCleanup(unmount, self.mountpoint)
        self.assertEqual(code, 0)
        self.check_serves()


if __name__ == "__main__":
    mounting.main()
