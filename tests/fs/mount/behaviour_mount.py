"""What a mount does beside giving the right bytes: read-only, coming and going, failing, single files, statistics."""

import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest

import mounting
from mounting import Mount, background, daemons_of, golden_frames, is_mounted, output, pread, unmount, wait_for

SMALL = "matrix/000-blosclz-c1-none-t3.b2frame"
LARGE = "large/zstd.b2frame"


class Directory(unittest.TestCase):
    """A source directory and an empty directory to mount on, both removed afterwards."""

    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-test-")
        self.addCleanup(work.cleanup)
        self.work = os.path.realpath(work.name)
        self.source = self.work + "/source"
        self.mountpoint = self.work + "/mnt"
        os.mkdir(self.source)
        os.mkdir(self.mountpoint)

    def put(self, frame, name="x.b2frame"):
        shutil.copy(frame, os.path.join(self.source, name))

    def mount(self, *options, **how):
        mount = Mount(self.source, *options, mountpoint=self.mountpoint, **how)
        self.addCleanup(mount.close)
        return mount


class ReadOnly(Directory):
    def setUp(self):
        super().setUp()
        (self.frame, self.content), = golden_frames(SMALL)
        self.put(self.frame)
        os.mkdir(self.source + "/directory")
        with open(self.source + "/plain.txt", "w", encoding="ascii") as file:
            file.write("plain")
        os.symlink("plain.txt", self.source + "/link")

    def test_every_kind_of_write_is_refused(self):
        mount = self.mount("ro")
        calls = {
            "open for writing": lambda: os.open(mount / "x", os.O_WRONLY),
            "open for reading and writing": lambda: os.open(mount / "x", os.O_RDWR),
            "open for appending": lambda: os.open(mount / "plain.txt", os.O_WRONLY | os.O_APPEND),
            "open and truncate": lambda: os.open(mount / "x", os.O_RDONLY | os.O_TRUNC),
            "create": lambda: os.open(mount / "new", os.O_CREAT | os.O_WRONLY, 0o644),
            "mkdir": lambda: os.mkdir(mount / "new"),
            "mknod": lambda: os.mknod(mount / "new"),
            "mkfifo": lambda: os.mkfifo(mount / "new"),
            "symlink": lambda: os.symlink("x", mount / "new"),
            "link": lambda: os.link(mount / "x", mount / "new"),
            "unlink": lambda: os.unlink(mount / "x"),
            "rmdir": lambda: os.rmdir(mount / "directory"),
            "rename": lambda: os.rename(mount / "x", mount / "y"),
            "chmod": lambda: os.chmod(mount / "x", 0o600),
            "chown": lambda: os.chown(mount / "x", 1, 1),
            "utime": lambda: os.utime(mount / "x", (1, 1)),
            "truncate": lambda: os.truncate(mount / "x", 1),
            "setxattr": lambda: os.setxattr(mount / "x", "user.a", b"b"),
            "removexattr": lambda: os.removexattr(mount / "x", "user.blosc2.info"),
        }
        before = output("find", self.source, "-printf", "%p %s %T@ %m\n")
        for name, call in calls.items():
            with self.subTest(name):
                with self.assertRaises(OSError) as refused:
                    call()
                self.assertEqual(refused.exception.errno, errno.EROFS)
        self.assertEqual(output("find", self.source, "-printf", "%p %s %T@ %m\n"), before)

    def test_ro_is_what_the_kernel_is_told_and_rw_is_the_default(self):
        for options, read_only in (([], False), (["rw"], False), (["ro"], True)):
            with self.subTest(options=options), Mount(self.source, *options, mountpoint=self.mountpoint) as mount:
                self.assertEqual(bool(os.statvfs(mount.path).f_flag & os.ST_RDONLY), read_only)
                if read_only:
                    with self.assertRaises(OSError) as refused:
                        os.mkdir(mount / "new")
                    self.assertEqual(refused.exception.errno, errno.EROFS)
                else:
                    os.mkdir(mount / "new")
                    os.rmdir(self.source + "/new")

    def test_access_and_modes(self):
        os.chmod(self.source + "/x.b2frame", 0o640)
        os.utime(self.source + "/x.b2frame", ns=(1_500_000_000_123_456_789, 1_400_000_000_987_654_321))
        mount = self.mount("ro")
        self.assertTrue(os.access(mount / "x", os.R_OK))
        self.assertFalse(os.access(mount / "x", os.W_OK))
        self.assertFalse(os.access(mount / "x", os.X_OK))
        self.assertFalse(os.access(mount / "absent", os.F_OK))
        shown = os.stat(mount / "x")
        stored = os.stat(self.source + "/x.b2frame")
        self.assertEqual(shown.st_mode, stat.S_IFREG | 0o640)
        self.assertEqual((shown.st_uid, shown.st_gid), (stored.st_uid, stored.st_gid))
        self.assertEqual(shown.st_mtime_ns, 1_400_000_000_987_654_321)
        self.assertEqual(shown.st_size, len(self.content))
        self.assertEqual(shown.st_blocks, stored.st_blocks)
        self.assertGreaterEqual(shown.st_blksize, 4096)

    def test_statfs_is_that_of_the_source(self):
        mount = self.mount()
        shown, stored = os.statvfs(mount.path), os.statvfs(self.source)
        for field in ("f_bsize", "f_frsize", "f_blocks", "f_files", "f_namemax"):
            # A file that is made gets a suffix on disk.
            suffix = len(".b2frame") if field == "f_namemax" else 0
            self.assertEqual(getattr(shown, field), getattr(stored, field) - suffix, field)

    def test_other_files_pass_through(self):
        with open(self.source + "/random.bin", "wb") as file:
            file.write(os.urandom(3_000_001))
        os.setxattr(self.source + "/x.b2frame", "user.mine", b"kept")
        mount = self.mount()
        output("cmp", self.source + "/random.bin", mount / "random.bin")
        self.assertEqual(os.readlink(mount / "link"), "plain.txt")
        with open(mount / "link", encoding="ascii") as file:
            self.assertEqual(file.read(), "plain")
        self.assertEqual(os.getxattr(mount / "x", "user.mine"), b"kept")
        self.assertIn("user.mine", os.listxattr(mount / "x"))
        with self.assertRaises(OSError) as absent:
            os.getxattr(mount / "x", "user.absent")
        self.assertEqual(absent.exception.errno, errno.ENODATA)

    def test_a_link_to_a_frame_leads_to_its_bytes(self):
        os.symlink("x.b2frame", self.source + "/to-frame")
        os.symlink("../x.b2frame", self.source + "/directory/up.b2frame")
        mount = self.mount()
        for name in ("to-frame", "directory/up"):
            with self.subTest(name), open(mount / name, "rb") as file:
                self.assertEqual(file.read(), self.content)

    def test_links_that_leave_the_source_are_only_links(self):
        with open(self.work + "/outside", "w", encoding="ascii") as file:
            file.write("secret")
        os.symlink(self.work, self.source + "/out")
        mount = self.mount()
        self.assertEqual(os.readlink(mount / "out"), self.work)
        self.assertTrue(stat.S_ISLNK(os.lstat(mount / "out").st_mode))

    def test_special_files_do_not_hang(self):
        os.mkfifo(self.source + "/pipe")
        os.mkfifo(self.source + "/pipe.b2frame")
        mount = self.mount("detect=content")
        self.assertTrue(stat.S_ISFIFO(os.stat(mount / "pipe").st_mode))
        self.assertTrue(stat.S_ISFIFO(os.stat(mount / "pipe.b2frame").st_mode))
        self.assertIn("pipe.b2frame", os.listdir(mount.path))

    def test_ten_thousand_files(self):
        os.mkdir(self.source + "/many")
        for number in range(10_000):
            os.link(self.source + "/x.b2frame", f"{self.source}/many/{number:05}.b2frame")
        expected = [f"{number:05}" for number in range(10_000)]
        mount = self.mount()
        self.assertEqual(sorted(os.listdir(mount / "many")), expected)
        entries = {entry.name: entry for entry in os.scandir(mount / "many")}
        self.assertEqual(sorted(entries), expected)
        self.assertTrue(all(entry.is_file(follow_symlinks=False) for entry in entries.values()))
        self.assertEqual({entries[name].stat().st_size for name in expected[::50]}, {len(self.content)})

    def test_names_that_programs_may_use(self):
        names = ["with space", "semi;colon", "new\nline", "ümlaut", "a" * 247, "-dash", "per%cent", "back\\slash", "x.y.z"]
        for name in names:
            self.put(self.frame, name + ".b2frame")
        mount = self.mount()
        for name in names:
            with self.subTest(name), open(mount / name, "rb") as file:
                self.assertEqual(file.read(), self.content)
        self.assertLess(set(names), set(os.listdir(mount.path)))

    def test_a_directory_tree_and_dot_entries(self):
        os.makedirs(self.source + "/a/b/c")
        self.put(self.frame, "a/b/c/deep.b2frame")
        mount = self.mount()
        with open(mount / "a/b/../b/./c/deep", "rb") as file:
            self.assertEqual(file.read(), self.content)
        self.assertEqual(output("find", mount / "a", "-type", "f", "-printf", "%P"), b"b/c/deep")
        self.assertEqual(output("find", mount / "a", "-type", "d", "-printf", "%P "), b" b b/c ")


class ComingAndGoing(Directory):
    def setUp(self):
        super().setUp()
        (self.frame, self.content), = golden_frames(SMALL)
        self.put(self.frame)

    def check_serves(self, mountpoint=None):
        with open((mountpoint or self.mountpoint) + "/x", "rb") as file:
            self.assertEqual(file.read(), self.content)

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
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name):
                self.assertEqual(background(self.source, self.mountpoint).returncode, 0)
                self.check_serves()
                (daemon,) = daemons_of(self.mountpoint)
                os.kill(daemon, number)
                wait_for(lambda: not daemons_of(self.mountpoint), what="the daemon to end")
                self.assertFalse(is_mounted(self.mountpoint))

    def test_signals_unmount_the_foreground(self):
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


class Failing(Directory):
    """Each failure prints exactly one line that says what and why, exits non-zero, and leaves no mount."""

    def setUp(self):
        super().setUp()
        (self.frame, self.content), = golden_frames(SMALL)
        self.put(self.frame)
        with open(self.work + "/file", "w", encoding="ascii") as file:
            file.write("a regular file")

    def check_fails(self, *arguments, says=(), status=None):
        before = self.own_mounts()
        for extra in ([], ["-f"]):
            done = mounting.run(mounting.CFRAMEFS, *extra, *arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertGreater(done.returncode, 0, "ended by a signal")
            if status is not None:
                self.assertEqual(done.returncode, status, done.stderr)
            lines = done.stderr.decode().splitlines()
            self.assertEqual(len(lines), 1, lines)
            self.assertTrue(lines[0].startswith("cframefs: "), lines)
            for word in says:
                self.assertIn(word, lines[0])
            self.assertEqual(done.stdout, b"")
        self.assertEqual(self.own_mounts(), before)

    def own_mounts(self):
        return [place for place in mounting.mounts() if place.startswith(self.work + "/")]

    def test_missing_source(self):
        self.check_fails(self.work + "/absent", self.mountpoint, says=[self.work + "/absent", "No such file"])

    def test_missing_mount_point(self):
        self.check_fails(self.source, self.work + "/absent", says=[self.work + "/absent", "No such file"])

    def test_mount_point_inside_the_source(self):
        os.mkdir(self.source + "/inside")
        self.check_fails(self.source, self.source + "/inside", says=["inside the source"])

    def test_mount_point_inside_the_source_through_a_link(self):
        os.mkdir(self.source + "/inside")
        os.symlink(self.source + "/inside", self.work + "/link")
        self.check_fails(self.source, self.work + "/link", says=["inside the source"])

    def test_directory_on_a_file(self):
        self.check_fails(self.source, self.work + "/file", says=["file", "directory"])

    def test_a_file_over_itself(self):
        frame = self.source + "/x.b2frame"
        self.check_fails(frame, frame, says=["source itself"])

    def test_a_sparse_frame_over_itself(self):
        shutil.copytree(mounting.GOLDEN + "/cframe/sframe/lz4.b2frame", self.work + "/s.b2frame")
        self.check_fails(self.work + "/s.b2frame", self.work + "/s.b2frame", says=["source itself"])
        self.check_fails(self.work + "/s.b2frame", self.work + "/s.b2frame/chunks.b2frame", says=["inside the source"])

    def test_offset_with_a_directory(self):
        self.check_fails("-o", "offset=10", self.source, self.mountpoint, says=["offset"])

    def test_one_file_that_is_no_frame(self):
        """The data are damaged: exit status 1, and one line that says what is wrong with which file, where."""
        frame = self.source + "/x.b2frame"
        with open(frame, "rb") as file:
            stored = file.read()
        contents = {"text.b2frame": b"no frame at all\n" * 100, "nameless": b"no frame at all\n" * 100, "empty.b2frame": b"", "short.b2frame": stored[:20],
                    "cut.b2frame": stored[:80], "damaged.b2frame": stored[:20] + b"\xff" * 60 + stored[80:]}
        for name, content in contents.items():
            with open(f"{self.work}/{name}", "wb") as file:
                file.write(content)
            for place in (self.mountpoint, self.work + "/file"):
                with self.subTest(name, place=place):
                    self.check_fails(f"{self.work}/{name}", place, says=[f"{self.work}/{name}"], status=1)
        for offset in (5, len(stored) - 3, len(stored), len(stored) + 5, 1 << 50):
            with self.subTest(offset=offset):
                self.check_fails("-o", f"offset={offset}", frame, self.mountpoint, says=[frame, str(offset)], status=1)

    def test_a_sparse_frame_without_an_index_that_is_right(self):
        directory = self.work + "/s.b2frame"
        shutil.copytree(mounting.GOLDEN + "/cframe/sframe/lz4.b2frame", directory)
        os.truncate(directory + "/chunks.b2frame", 30)
        self.check_fails(directory, self.mountpoint, says=[directory], status=1)

    def test_bad_options(self):
        for option in ("names=sideways", "cache_size=lots", "cache_size=-1", "detect=", "nonsense", "offset=x", "workers=0", "stats=maybe"):
            with self.subTest(option):
                self.check_fails("-o", option, self.source, self.mountpoint, says=[option.split("=")[0]])

    def test_missing_arguments(self):
        self.check_fails()
        self.check_fails(self.source)
        self.check_fails(self.source, self.mountpoint, "third")

    def test_mount_point_that_is_neither_file_nor_directory(self):
        os.mkfifo(self.work + "/pipe")
        self.check_fails(self.source, self.work + "/pipe", says=[self.work + "/pipe"])

    def test_source_that_is_a_pipe(self):
        os.mkfifo(self.work + "/pipe.b2frame")
        done = mounting.run(mounting.CFRAMEFS, self.work + "/pipe.b2frame", self.mountpoint)
        self.addCleanup(lambda: is_mounted(self.mountpoint) and unmount(self.mountpoint))
        self.assertNotEqual(done.returncode, 0)

    def test_without_proc(self):
        """Files are reopened by /proc/self/fd; a mount in which every call fails must not come about."""
        # Only /proc becomes private, because the root of a chroot is no mount point.
        alone = ["unshare", "--mount", "--propagation", "unchanged"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
        done = mounting.run(*alone, "sh", "-c", 'mount --make-private /proc && mount -t tmpfs none /proc && exec "$0" "$@"',
                            mounting.CFRAMEFS, self.source, self.mountpoint)
        self.assertEqual(done.returncode, 1, done.stderr)
        # A sanitizer has its own to say of that.
        said = [line for line in done.stderr.decode().splitlines() if not line.startswith("==")]
        self.assertEqual(said, ["cframefs: /proc is not mounted, but files are reopened through /proc/self/fd"])


class SingleFile(Directory):
    def setUp(self):
        super().setUp()
        (self.frame, self.content), (self.other, self.other_content) = golden_frames(SMALL, LARGE)
        self.put(self.frame)
        self.target = self.work + "/target"
        with open(self.target, "w", encoding="ascii") as file:
            file.write("what lies beneath")

    def test_on_a_directory(self):
        with Mount(self.source + "/x.b2frame", mountpoint=self.mountpoint) as mount:
            self.assertEqual(os.listdir(mount.path), ["x"])
            with open(mount / "x", "rb") as file:
                self.assertEqual(file.read(), self.content)
            self.assertFalse(os.path.exists(mount / "x.b2frame"))

    def test_on_a_directory_keeping_names(self):
        with Mount(self.source + "/x.b2frame", "names=keep", mountpoint=self.mountpoint) as mount:
            self.assertEqual(os.listdir(mount.path), ["x.b2frame"])

    def test_on_a_regular_file(self):
        with Mount(self.source + "/x.b2frame", "ro", mountpoint=self.target):
            self.assertEqual(os.stat(self.target).st_size, len(self.content))
            with open(self.target, "rb") as file:
                self.assertEqual(file.read(), self.content)
            self.assertEqual(output("tail", "-c", "5", self.target), self.content[-5:])
            self.assertTrue(os.getxattr(self.target, "user.blosc2.info"))
            with self.assertRaises(OSError) as refused:
                os.open(self.target, os.O_WRONLY)
            self.assertEqual(refused.exception.errno, errno.EROFS)
        with open(self.target, encoding="ascii") as file:
            self.assertEqual(file.read(), "what lies beneath")

    def test_on_a_regular_file_in_the_background(self):
        self.assertEqual(background(self.source + "/x.b2frame", self.target).returncode, 0)
        with open(self.target, "rb") as file:
            self.assertEqual(file.read(), self.content)
        unmount(self.target)

    def test_a_sparse_frame_on_both(self):
        (stored, content), = golden_frames("sframe/lz4.b2frame")
        with Mount(stored, mountpoint=self.mountpoint) as mount:
            self.assertEqual(os.listdir(mount.path), ["lz4"])
            with open(mount / "lz4", "rb") as file:
                self.assertEqual(file.read(), content)
        with Mount(stored, mountpoint=self.target), open(self.target, "rb") as file:
            self.assertEqual(file.read(), content)

    def test_a_name_without_suffix_is_taken_for_a_frame(self):
        self.put(self.frame, "nameless")
        with Mount(self.source + "/nameless", mountpoint=self.target), open(self.target, "rb") as file:
            self.assertEqual(file.read(), self.content)

    def test_offset(self):
        row = next(r for r in mounting.manifest("cframe/MANIFEST.tsv") if r["path"] == "offset/junk-prefix.bin")
        stored = mounting.GOLDEN + "/cframe/" + row["path"]
        with Mount(stored, f"offset={row['offset']}", mountpoint=self.target), open(self.target, "rb") as file:
            self.assertEqual(mounting.sha256(file.read()), row["sha256"])

    def test_replaced_behind_a_mount_on_a_file(self):
        self.check_replaced(self.target, self.target)

    def test_replaced_behind_a_mount_on_a_directory(self):
        self.check_replaced(self.mountpoint, self.mountpoint + "/x")

    def check_replaced(self, mountpoint, path):
        with Mount(self.source + "/x.b2frame", mountpoint=mountpoint):
            for _ in range(10):
                for frame, content in ((self.other, self.other_content), (self.frame, self.content)):
                    self.put(frame, "new")
                    os.rename(self.source + "/new", self.source + "/x.b2frame")
                    self.assertEqual(os.stat(path).st_size, len(content))
                    with open(path, "rb") as file:
                        self.assertEqual(file.read(), content)


class Statistics(Directory):
    def setUp(self):
        super().setUp()
        (self.frame, self.content), = golden_frames(LARGE)
        self.put(self.frame)

    def test_the_directory_is_there_but_not_listed(self):
        mount = self.mount("stats=on")
        self.assertEqual(os.listdir(mount.path), ["x"])
        self.assertEqual(sorted(os.listdir(mount / ".cframefs")), ["metrics", "stats.json"])
        self.assertTrue(stat.S_ISDIR(os.stat(mount / ".cframefs").st_mode))
        self.assertTrue(stat.S_ISREG(os.stat(mount / ".cframefs/metrics").st_mode))

    def test_off_by_default(self):
        mount = self.mount()
        self.assertFalse(os.path.exists(mount / ".cframefs"))

    def test_reading_moves_the_counters(self):
        mount = self.mount("stats=on", "readahead=0")
        before = mount.statistics()
        self.assertEqual((before["reads"], before["blocks_decoded"]), (0, 0))
        with open(mount / "x", "rb") as file:
            self.assertEqual(file.read(), self.content)
        after = mount.statistics()
        self.assertGreaterEqual(after["reads"], 1)
        self.assertGreaterEqual(after["bytes_served"], len(self.content))
        self.assertGreaterEqual(after["bytes_decoded"], len(self.content))
        self.assertGreater(after["bytes_fetched"], 0)
        self.assertGreater(after["cache_misses"], 0)
        self.assertGreater(after["opens"], before["opens"])
        self.assertEqual(after["errors"], 0)

    def test_a_warm_read_reaches_nobody(self):
        mount = self.mount("stats=on")
        # What was changed a moment ago is not trusted to be cached yet.
        wait_for(lambda: time.time() - os.stat(self.source + "/x.b2frame").st_ctime > 0.5, what="the file to settle")
        for _ in range(2):
            with open(mount / "x", "rb") as file:
                self.assertEqual(file.read(), self.content)
        before = mount.statistics()
        for _ in range(3):
            with open(mount / "x", "rb") as file:
                self.assertEqual(file.read(), self.content)
            output("cat", mount / "x")
        after = mount.statistics()
        # The statistics themselves are read, too: each reading is one request or two.
        for counter in ("blocks_decoded", "cache_misses", "cache_hits", "bytes_fetched"):
            self.assertEqual(after[counter], before[counter], counter)
        self.assertLessEqual(after["reads"] - before["reads"], 2)

    def test_a_small_read_decodes_what_it_touches(self):
        mount = self.mount("stats=on")
        self.assertEqual(pread(mount / "x", 1_000_000, 4096), self.content[1_000_000 : 1_000_000 + 4096])
        counted = mount.statistics()
        self.assertGreater(counted["bytes_decoded"], 0)
        self.assertLess(counted["bytes_decoded"], len(self.content))

    def test_metrics_are_what_prometheus_reads(self):
        mount = self.mount("stats=on")
        with open(mount / "x", "rb") as file:
            file.read()
        with open(mount / ".cframefs/metrics", encoding="ascii") as file:
            lines = file.read().splitlines()
        names = {line.split()[2] for line in lines if line.startswith("# TYPE ")}
        values = dict(line.split() for line in lines if not line.startswith("#"))
        self.assertEqual(names, set(values))
        self.assertGreater(int(values["cframefs_blocks_decoded_total"]), 0)
        self.assertEqual(len(values), len(json.loads(pread(mount / ".cframefs/stats.json", 0, 65536))))


if __name__ == "__main__":
    mounting.main()
