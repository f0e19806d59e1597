"""The life of a mount: made and covered mount points, descriptors as mount points, remount, idle mounts, signals that end
nothing, and owners and rights that are shown."""

import contextlib
import ctypes
import fcntl
import mmap
import os
import random
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest

import mounting
from mounting import Mount, background, golden_frames, is_mounted, run, unmount, wait_for
from mounted_directory import LARGE, ServedFrame

MIB = 1 << 20


def is_root():
    return os.geteuid() == 0


class Life(ServedFrame):
    def stored(self):
        """What the frame y holds on disk."""
        return mounting.output(mounting.CFRAME, "cat", self.source + "/y.b2frame")

    @contextlib.contextmanager
    def locked_with_waiting_data(self):
        """A lock of another program on the frame y, because of which what a program has written cannot be committed."""
        with open(self.mountpoint + "/y", "wb") as file:
            file.write(b"committed, ")
        with open(self.source + "/y.b2frame", "rb") as locked:
            fcntl.flock(locked, fcntl.LOCK_EX)
            file = os.open(self.mountpoint + "/y", os.O_WRONLY | os.O_APPEND)
            os.write(file, b"waits")
            with self.assertRaises(OSError):
                os.close(file)
            yield

    def warnings(self, *options, mountpoint=None, source=None):
        """What a mount in the foreground warns of."""
        with Mount(source or self.source, *options, mountpoint=mountpoint or self.mountpoint) as mount:
            return mount.lines()


class MountPoints(Life):
    def test_a_missing_mount_point_is_made_on_request(self):
        # semantics: V2
        for option in ("mkdir", "X-mount.mkdir", "X-mount.mkdir=0700"):
            with self.subTest(option):
                place = self.work + "/a/b/c"
                self.assertEqual(background(self.source, place).returncode, 2)
                self.assertFalse(os.path.exists(self.work + "/a"))
                self.assertEqual(background(self.source, place, option).returncode, 0)
                self.check_serves(place)
                unmount(place)
                self.assertEqual(stat.S_IMODE(os.stat(place).st_mode), 0o700 if "=" in option else 0o755)
                shutil.rmtree(self.work + "/a")

    def test_a_mount_that_fails_removes_what_it_has_made(self):
        # semantics: V2
        done = background(self.work + "/missing", self.work + "/a/b", "mkdir")
        self.assertEqual(done.returncode, 2)
        self.assertFalse(os.path.exists(self.work + "/a"))
        done = background(self.source, self.source + "/inside", "mkdir")
        self.assertIn(b"inside the source", done.stderr)
        self.assertEqual(os.listdir(self.source), ["x.b2frame"])

    def test_what_cannot_be_made_is_named(self):
        with open(self.work + "/file", "w", encoding="ascii"):
            pass
        done = background(self.source, self.work + "/file/b", "mkdir")
        self.assertEqual(done.returncode, 2)
        self.assertIn(self.work.encode() + b"/file/b: ", done.stderr)

    def test_a_mount_point_that_is_not_empty_is_warned_of(self):
        # semantics: V1
        self.assertEqual(self.warnings(), [])
        with open(self.mountpoint + "/kept", "w", encoding="ascii"):
            pass
        (line,) = self.warnings()
        self.assertIn(f"warning: {self.mountpoint}: the directory is not empty", line)
        self.assertEqual(self.warnings("nonempty"), [])
        self.assertEqual(os.listdir(self.mountpoint), ["kept"])
        # A mount over its source hides nothing.
        self.assertEqual(self.warnings(mountpoint=self.source), [])

    def test_a_mount_point_where_something_is_mounted_is_warned_of(self):
        # semantics: V1
        with Mount(self.source, mountpoint=self.mountpoint):
            done = background(self.source, self.mountpoint)
            self.assertEqual(done.returncode, 0)
            self.assertIn(b"covers a filesystem of type fuse.cframefs", done.stderr)
            run("fusermount3", "-u", self.mountpoint)
            self.assertEqual(background(self.source, self.mountpoint, "nonempty").stderr, b"")
            run("fusermount3", "-u", self.mountpoint)
            self.check_serves()

    def test_the_table_of_mounts_has_the_absolute_source(self):
        where = os.getcwd()
        os.chdir(self.work)
        try:
            for source in ("source", "./source/", "mnt/../source", "."):
                place = tempfile.mkdtemp(prefix="cframefs-mnt-")
                with Mount(source, mountpoint=place):
                    with open("/proc/self/mounts", encoding="utf-8") as table:
                        (line,) = [line for line in table if f" {place} " in line]
                    self.assertEqual(line.split()[0], self.work if source == "." else self.source)
                os.rmdir(place)
        finally:
            os.chdir(where)


@unittest.skipUnless(is_root(), "only root may mount without fusermount3")
class Descriptors(Life):
    """/dev/fd/N: the parent process has made the mount."""

    def make_mount(self):
        fuse = os.open("/dev/fuse", os.O_RDWR)
        self.addCleanup(os.close, fuse)
        data = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other"
        libc = ctypes.CDLL(None, use_errno=True)
        flags = 2 | 4  # MS_NOSUID, MS_NODEV
        done = libc.mount(b"parent", self.mountpoint.encode(), b"fuse.cframefs", flags, data.encode())
        self.assertEqual(done, 0, os.strerror(ctypes.get_errno()))
        self.addCleanup(run, "umount", "-l", self.mountpoint)
        return fuse

    def start(self, fuse, *options):
        command = [mounting.CFRAMEFS, *options, self.source, f"/dev/fd/{fuse}"]
        return subprocess.Popen(command, pass_fds=[fuse], stderr=subprocess.PIPE, cwd="/")

    def test_in_the_foreground_until_it_is_unmounted(self):
        # semantics: V3
        daemon = self.start(self.make_mount(), "-f")
        self.check_serves()
        with open(self.mountpoint + "/new", "wb") as file:
            file.write(b"new" * 1000)
        self.assertEqual(run("umount", self.mountpoint).returncode, 0)
        said = daemon.communicate(timeout=20)[1].decode()
        self.assertEqual(daemon.returncode, 0, said)
        self.assertTrue(os.path.exists(self.source + "/new.b2frame"))
        self.assertNotIn("warning", said)

    def test_in_the_background(self):
        # semantics: V3
        fuse = self.make_mount()
        daemon = self.start(fuse, "-o", "log=" + self.work + "/log")
        said = daemon.communicate(timeout=20)[1]
        self.assertEqual((daemon.returncode, said), (0, b""))
        self.check_serves()
        (pid,) = mounting.daemons_of(f"/dev/fd/{fuse}")
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not mounting.daemons_of(f"/dev/fd/{fuse}"), what="the daemon to end")
        with open(self.work + "/log", encoding="utf-8") as log:
            self.assertIn(f"unmounted /dev/fd/{fuse}: SIGTERM", log.read())

    def test_other_descriptors_are_refused(self):
        with open(self.work + "/file", "wb") as file:
            for place in ("/dev/fd/77", f"/dev/fd/{file.fileno()}", "/dev/fd/x", "/dev/fd/", "/dev/fd/2"):
                done = run(mounting.CFRAMEFS, "-f", self.source, place, pass_fds=[file.fileno()])
                self.assertEqual(done.returncode, 2, place)
                self.assertIn(place.encode() + b": not a descriptor of /dev/fuse", done.stderr)
        fuse = self.make_mount()
        daemon = self.start(fuse, "-f", "-o", "idle_timeout=1")
        self.assertIn(b"idle_timeout= needs a mount that cframefs makes", daemon.communicate(timeout=20)[1])


@unittest.skipUnless(is_root(), "only root may remount")
class Remount(Life):
    def remount(self, options):
        # What mount(8) passes on for `mount -o remount,...`.
        table = "nosuid,nodev,relatime,user_id=0,group_id=0,default_permissions,max_read=524288,"
        return run(mounting.CFRAMEFS, "-o", table + "remount," + options, self.source, self.mountpoint)

    def flags(self):
        with open("/proc/self/mounts", encoding="utf-8") as table:
            (line,) = [line for line in table if f" {self.mountpoint} " in line]
        return line.split()[3].split(",")

    def write(self, name, content=b"content"):
        with open(f"{self.mountpoint}/{name}", "wb") as file:
            file.write(content)

    def test_a_writable_mount_becomes_read_only_and_writable_again(self):
        with Mount(self.source, mountpoint=self.mountpoint):
            self.write("one")
            with open(self.mountpoint + "/one", "rb"):
                self.assertEqual(self.remount("ro").returncode, 0)
            self.assertTrue({"ro", "nosuid", "nodev"} <= set(self.flags()))
            with self.assertRaises(OSError):
                self.write("two")
            self.check_serves()
            self.assertEqual(self.remount("rw,noexec").returncode, 0)
            self.assertTrue({"rw", "nosuid", "nodev", "noexec"} <= set(self.flags()))
            self.write("two")
        self.assertEqual(sorted(os.listdir(self.source)), ["one.b2frame", "two.b2frame", "x.b2frame"])

    def test_a_mount_with_a_writer_stays_writable(self):
        # semantics: V8
        with Mount(self.source, mountpoint=self.mountpoint):
            with open(self.mountpoint + "/one", "wb") as file:
                file.write(b"one")
                done = self.remount("ro")
                self.assertEqual(done.returncode, 3)
                self.assertIn(b"a program has a file open for writing", done.stderr)
                file.write(b"two")
            with open(self.mountpoint + "/one", "rb") as file:
                self.assertEqual(file.read(), b"onetwo")

    def test_what_waits_to_be_committed_is_committed_after_it(self):
        # semantics: V8
        with Mount(self.source, "commit_interval=1", mountpoint=self.mountpoint):
            with self.locked_with_waiting_data():
                self.assertEqual(self.remount("ro").returncode, 0)
                self.assertNotIn(b"waits", self.stored())
            wait_for(lambda: self.stored() == b"committed, waits", what="the commit")
            with open(self.mountpoint + "/y", "rb") as shown:
                self.assertEqual(shown.read(), b"committed, waits")

    def test_a_mount_made_read_only_becomes_writable(self):
        # semantics: V4
        with Mount(self.source, "ro", mountpoint=self.mountpoint) as mount:
            with self.assertRaises(OSError):
                self.write("one")
            self.assertEqual(self.remount("rw").returncode, 0)
            self.write("one")
            os.setxattr(self.mountpoint + "/x", "user.blosc2.vlmeta.a", b"a")
            self.assertIn("cframefs: info: the mount is read-write since a remount", mount.all_lines())
            self.assertEqual(self.remount("ro").returncode, 0)
            with self.assertRaises(OSError):
                self.write("two")
        self.assertEqual(sorted(os.listdir(self.source)), ["one.b2frame", "x.b2frame"])

    def test_a_frame_in_a_file_stays_read_only(self):
        # semantics: V9
        with open(self.work + "/archive", "wb") as archive:
            archive.write(b"\0" * 4096)
            with open(self.frame, "rb") as frame:
                archive.write(frame.read())
        with Mount(self.work + "/archive", "offset=4096", mountpoint=self.mountpoint) as mount:
            (name,) = os.listdir(self.mountpoint)
            self.assertEqual(self.remount("rw").returncode, 0)
            with self.assertRaises(OSError):
                os.truncate(f"{self.mountpoint}/{name}", 0)
            self.assertTrue(any("a mount with offset= is read-only" in line for line in mount.all_lines()))

    def test_what_is_no_mount_is_refused(self):
        done = self.remount("ro")
        self.assertEqual(done.returncode, 2)
        self.assertIn(self.mountpoint.encode() + b": cannot remount: no cframefs is mounted there", done.stderr)


class IdleMounts(Life):
    def wait_for_end(self):
        """The mount must end here. Copies in mount namespaces of other programs on the machine may keep its daemon."""
        wait_for(lambda: not is_mounted(self.mountpoint), seconds=60, what="the mount to end")
        mounting._mountpoints.discard(self.mountpoint)

    def test_an_unused_mount_ends(self):
        # semantics: V5
        self.assertEqual(background(self.source, self.mountpoint, "idle_timeout=0.5", f"log={self.work}/log").returncode, 0)
        self.check_serves()
        self.wait_for_end()

        def is_logged():
            with open(self.work + "/log", encoding="utf-8") as log:
                return f"unmounted {self.mountpoint}: idle for 0.5 seconds" in log.read()

        wait_for(is_logged, seconds=60, what="the last line of the log")

    def test_a_mount_in_use_stays(self):
        # semantics: V5
        with open(self.work + "/log", "wb"):
            pass
        self.assertEqual(background(self.source, self.mountpoint, "idle_timeout=0.5", f"log={self.work}/log").returncode, 0)
        with open(self.mountpoint + "/x", "rb"):
            with self.assertRaises(AssertionError):
                wait_for(lambda: not is_mounted(self.mountpoint), seconds=2)
        with subprocess.Popen(["sleep", "2"], cwd=self.mountpoint) as sleeper:
            with self.assertRaises(AssertionError):
                wait_for(lambda: not is_mounted(self.mountpoint), seconds=1.7)
            sleeper.wait()
        self.wait_for_end()

    def test_uncommitted_data_keeps_a_mount(self):
        options = ["idle_timeout=0.5", "commit_interval=0.2", f"log={self.work}/log"]
        self.assertEqual(background(self.source, self.mountpoint, *options).returncode, 0)
        with self.locked_with_waiting_data():
            with self.assertRaises(AssertionError):
                wait_for(lambda: not is_mounted(self.mountpoint), seconds=2)
        self.wait_for_end()
        self.assertEqual(self.stored(), b"committed, waits")

    def test_cached_memory_is_given_back(self):
        # semantics: V6
        if mounting.is_sanitized():
            self.skipTest("resident memory is that of the sanitizer")
        piece = random.Random(1).randbytes(48 << 10) + bytes(16 << 10)
        with open(self.work + "/plain", "wb") as file:
            for number in range(128 * MIB // len(piece)):
                file.write(number.to_bytes(8, "little") + piece[8:])
        mounting.output(mounting.CFRAME, "pack", "--codec", "lz4", "--chunksize", "1M", "--blocksize", "64K",
                        self.work + "/plain", self.source + "/large.b2frame")
        os.unlink(self.work + "/plain")
        with Mount(self.source, "cache_timeout=5,stats=on", mountpoint=self.mountpoint) as mount:
            # Blocks of a file that no program has open are dropped anyway.
            file = self.read_parts(self.mountpoint + "/large")
            self.addCleanup(os.close, file)
            cached = mount.statistics()["cache_bytes"]
            before = mount.status("VmRSS")
            self.assertGreater(cached, 64 * MIB)
            wait_for(lambda: mount.status("VmRSS") < before - cached * 3 // 4, what="memory to be given back")
            time.sleep(1)  # until the release is complete
            after = mount.status("VmRSS")
            print(f"{before / MIB:.0f} MiB, {cached / MIB:.0f} MiB of them cache; when idle {after / MIB:.0f} MiB")
            statistics = mount.statistics()
            self.assertEqual((statistics["cache_bytes"], statistics["cache_idle_bytes"]), (0, 0))
            self.check_serves()

    @staticmethod
    def read_parts(path):
        """Reads a small part of each block six times, past the kernel's pages. The daemon keeps a block from the fourth
        time on, until programs have read all of its bytes. Returns the open file."""
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        part = mmap.mmap(-1, 4096)
        places = list(range(0, os.fstat(file).st_size, 64 << 10))
        for turn in range(6):
            random.Random(turn).shuffle(places)
            for at in places:
                os.preadv(file, [part], at)
        return file


class Signals(Life):
    def test_a_hangup_drops_the_caches_of_daemon_and_kernel(self):
        # semantics: J2
        self.put(golden_frames(LARGE)[0][0], "large.b2frame")
        os.utime(self.source + "/large.b2frame", (1, 1))
        with Mount(self.source, "stats=on", mountpoint=self.mountpoint) as mount:
            with open(mount / "large", "rb") as file:
                first = file.read()

            def served_again():
                """How many bytes the daemon serves for another reader."""
                before = mount.statistics()["bytes_served"]
                with open(mount / "large", "rb") as file:
                    self.assertEqual(file.read(), first)
                return mount.statistics()["bytes_served"] - before

            wait_for(lambda: served_again() < MIB, what="the kernel to keep pages")
            mount.daemon.send_signal(signal.SIGHUP)
            wait_for(lambda: any("caches dropped" in line for line in mount.all_lines()), what="the log")
            self.assertEqual(mount.statistics()["cache_bytes"], 0)
            wait_for(lambda: served_again() >= len(first), what="the kernel to ask again")

    def test_hangups_while_files_are_written_lose_nothing(self):
        # semantics: J2
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            content = os.urandom(4 * MIB)
            for flags in (os.O_RDWR, os.O_WRONLY):
                file = os.open(mount / "written", flags | os.O_CREAT | os.O_TRUNC)
                for at in range(0, len(content), 1 << 14):
                    os.pwrite(file, content[at : at + (1 << 14)], at)
                    mount.daemon.send_signal(signal.SIGHUP)
                os.close(file)
                with open(mount / "written", "rb") as file:
                    self.assertEqual(file.read(), content)
            self.assertEqual(mount.lines(), [])

    def test_usr2_logs_the_statistics_in_one_line(self):
        # semantics: J2
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            self.check_serves()
            mount.daemon.send_signal(signal.SIGUSR2)
            find = lambda: [line for line in mount.all_lines() if "statistics:" in line]
            (line,) = wait_for(find, what="the line")
            self.assertRegex(line, r'^cframefs: info: statistics: \{.*"opens":1,')
            self.assertTrue(line.endswith("}"))


@unittest.skipUnless(is_root(), "only root can be all users")
class ShownRights(Life):
    """uid=, gid=, umask=: what is shown, and what an ordinary user may do then."""

    USER = 65534

    def as_user(self, *command):
        return subprocess.run(["setpriv", f"--reuid={self.USER}", f"--regid={self.USER}", "--clear-groups", *command],
                              capture_output=True, timeout=60, check=False, cwd="/")

    def setUp(self):
        super().setUp()
        os.chmod(self.work, 0o755)
        os.mkdir(self.source + "/directory", 0o700)
        shutil.copy("/bin/true", self.source + "/program")
        os.chmod(self.source + "/program", 0o4755)
        with open(self.source + "/plain", "wb") as file:
            file.write(b"plain")
        os.chmod(self.source + "/plain", 0o600)
        os.chmod(self.source + "/x.b2frame", 0o600)
        os.symlink("plain", self.source + "/link")

    def shown(self, name):
        status = os.lstat(f"{self.mountpoint}/{name}")
        return status.st_uid, status.st_gid, oct(stat.S_IMODE(status.st_mode))

    def test_what_is_shown(self):
        with Mount(self.source, "uid=1000,gid=1001,umask=027", mountpoint=self.mountpoint):
            self.assertEqual(self.shown("x"), (1000, 1001, "0o640"))
            self.assertEqual(self.shown("plain"), (1000, 1001, "0o640"))
            self.assertEqual(self.shown("program"), (1000, 1001, "0o750"))
            self.assertEqual(self.shown("directory"), (1000, 1001, "0o750"))
            self.assertEqual(self.shown("link"), (1000, 1001, "0o777"))
            self.assertEqual(self.shown("."), (1000, 1001, "0o750"))
        with Mount(self.source, "gid=1001", mountpoint=self.mountpoint):
            self.assertEqual(self.shown("x"), (0, 1001, "0o600"))
            self.assertEqual(self.shown("program"), (0, 1001, "0o755"))
        with Mount(self.source, mountpoint=self.mountpoint):
            self.assertEqual(self.shown("x"), (0, 0, "0o600"))
            self.assertEqual(self.shown("program"), (0, 0, "0o4755"))
        self.assertEqual(stat.S_IMODE(os.stat(self.source + "/x.b2frame").st_mode), 0o600)

    def test_the_kernel_decides_by_what_is_shown(self):
        # semantics: V10
        with Mount(self.source, "allow_other", mountpoint=self.mountpoint):
            self.assertNotEqual(self.as_user("cat", self.mountpoint + "/x").returncode, 0)
        with Mount(self.source, f"allow_other,uid={self.USER}", mountpoint=self.mountpoint):
            self.assertEqual(self.as_user("cat", self.mountpoint + "/x").stdout, self.content)
            self.assertEqual(self.as_user("sh", "-c", f"echo new > {self.mountpoint}/new").returncode, 0)
            self.assertEqual(os.stat(self.source + "/new.b2frame").st_uid, self.USER)
        with Mount(self.source, "allow_other,umask=077", mountpoint=self.mountpoint):
            self.assertNotEqual(self.as_user("cat", self.mountpoint + "/program").returncode, 0)

    def test_a_shown_owner_gets_no_programs_of_the_real_one(self):
        # semantics: V11
        program = self.source + "/program"
        with Mount(self.source, f"allow_other,suid,uid={self.USER}", mountpoint=self.mountpoint):
            shown = self.mountpoint + "/program"
            done = self.as_user("chmod", "4755", self.mountpoint + "/plain")
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(stat.S_IMODE(os.stat(self.source + "/plain").st_mode), 0o600)
            for change in (f"echo >> {shown}", f"truncate -s 10 {shown}", f": > {shown}",
                           f"dd if=/dev/zero of={shown} bs=1 count=1 conv=notrunc"):
                with self.subTest(change):
                    os.chmod(program, 0o6755)
                    done = self.as_user("sh", "-c", change)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(oct(stat.S_IMODE(os.stat(program).st_mode)), "0o755")

    def test_access_control_lists_do_not_count(self):
        # semantics: V12
        if not shutil.which("setfacl"):
            self.skipTest("there is no setfacl")
        if run("setfacl", "-m", f"u:{self.USER}:rw", self.source + "/plain").returncode != 0:
            self.skipTest("no ACLs on this filesystem")
        with Mount(self.source, "allow_other", mountpoint=self.mountpoint):
            self.assertEqual(self.as_user("cat", self.mountpoint + "/plain").stdout, b"plain")
        with Mount(self.source, "allow_other,uid=0,umask=077", mountpoint=self.mountpoint):
            self.assertNotEqual(self.as_user("cat", self.mountpoint + "/plain").returncode, 0)
            self.assertEqual(os.listxattr(self.mountpoint + "/plain"), [])
            self.assertNotEqual(run("setfacl", "-m", "u:1:rw", self.mountpoint + "/plain").returncode, 0)


if __name__ == "__main__":
    mounting.main()
