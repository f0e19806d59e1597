"""What a mount shows of its source, and what a read-only mount refuses."""

import errno
import os
import stat

import mounting
from mounting import Mount, golden_frames, output
from mounted_directory import Directory, SMALL


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
        # semantics: O6
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
        # semantics: S1, S2
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
        # semantics: S8
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
        # semantics: D1
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
        # semantics: N7
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


if __name__ == "__main__":
    mounting.main()
