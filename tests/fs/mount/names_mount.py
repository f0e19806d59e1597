"""Which names show for which names on disk, and how long and in which case they may be."""

import errno
import os
import shutil
import signal

import mounting
from mounting import Mount, output, wait_for
from mounted_directory import Directory
from sparse_frames import make_sparse_frame

CONTENT = b"".join(b"line %d\n" % number for number in range(3000))
SUFFIXES = (".b2frame", ".b2f", ".b2", ".b2b")


class PackedFrame(Directory):
    def setUp(self):
        super().setUp()
        with open(self.work + "/raw", "wb") as file:
            file.write(CONTENT)
        self.frame = self.work + "/packed.b2frame"
        output(mounting.CFRAME, "pack", self.work + "/raw", self.frame)
        with open(self.frame, "rb") as file:
            self.stored = file.read()


class Names(PackedFrame):
    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def fails(self, number, call, *arguments):
        with self.assertRaises(OSError) as raised:
            call(*arguments)
        self.assertEqual(raised.exception.errno, number)

    def test_each_suffix_is_taken_away(self):
        # semantics: N1
        for suffix in SUFFIXES:
            self.put(self.frame, "file" + suffix[1:] + suffix)
            make_sparse_frame(f"{self.source}/sparse{suffix[1:]}{suffix}", CONTENT, 4096)
        self.put(self.frame, "other.b2x")
        mount = self.mount()
        expected = {kind + suffix[1:] for kind in ("file", "sparse") for suffix in SUFFIXES}
        self.assertEqual(set(os.listdir(mount.path)), expected | {"other.b2x"})
        for name in expected:
            with self.subTest(name):
                self.assertEqual(self.read(mount / name), CONTENT)
        self.assertEqual(self.read(mount / "other.b2x"), self.stored)

    def test_suffixes_are_lower_case(self):
        # semantics: N3
        for name in ("X.B2FRAME", "A.B2nd", "P.BLP"):
            self.put(self.frame, name)
        for option, created in (("names=strip", "Y.B2FRAME.b2frame"), ("names=keep", "Y.B2FRAME")):
            with self.subTest(option), Mount(self.source, option, mountpoint=self.mountpoint) as mount:
                self.assertEqual(sorted(os.listdir(mount.path)), ["A.B2nd", "P.BLP", "X.B2FRAME"])
                for name in os.listdir(mount.path):
                    self.assertEqual(self.read(mount / name), self.stored)
                self.assertFalse(os.path.exists(mount / "X"))
                with open(mount / "Y.B2FRAME", "wb") as file:
                    file.write(CONTENT)
                self.assertEqual(self.read(mount / "Y.B2FRAME"), CONTENT)
            self.assertIn(created, os.listdir(self.source))
            os.unlink(f"{self.source}/{created}")

    def test_upper_case_is_told_by_content(self):
        # semantics: N4
        self.put(self.frame, "X.B2FRAME")
        self.put(self.frame, "no-suffix")
        mount = self.mount("detect=content")
        self.assertEqual(sorted(os.listdir(mount.path)), ["X.B2FRAME", "no-suffix"])
        for name in ("X.B2FRAME", "no-suffix"):
            self.assertEqual(self.read(mount / name), CONTENT)

    def test_kept_names_are_as_long_as_those_on_disk(self):
        # semantics: N9
        mount = self.mount("names=keep")
        self.assertEqual(os.statvfs(mount.path).f_namemax, os.statvfs(self.source).f_namemax)
        for name in ("n" * 255, "f" * 247 + ".b2frame"):
            with open(mount / name, "wb") as file:
                file.write(CONTENT)
            self.assertEqual(self.read(mount / name), CONTENT)
            self.assertIn(name, os.listdir(self.source))
        self.fails(errno.ENAMETOOLONG, os.stat, mount / ("n" * 256))

    def test_a_directory_that_is_renamed_is_listed_to_its_end(self):
        # semantics: D1
        os.mkdir(self.source + "/many")
        names = {f"{number:04}" + "n" * 100 for number in range(2000)}
        for name in names:
            with open(f"{self.source}/many/{name}", "wb"):
                pass
        mount = self.mount()
        with os.scandir(mount / "many") as entries:
            listed = [next(entries).name for _ in range(300)]
            os.rename(mount / "many", mount / "moved")
            listed += [entry.name for entry in entries]
        self.assertEqual(len(listed), len(names))
        self.assertEqual(set(listed), names)

    def test_an_array_keeps_its_suffix(self):
        # semantics: M6
        shutil.copy(mounting.GOLDEN + "/legacy/bp-np-f8.blp", self.source + "/a.blp")
        mount = self.mount()
        content = self.read(mount / "a.npy")
        self.fails(errno.EXDEV, os.rename, mount / "a.npy", mount / "a")
        os.rename(mount / "a.npy", mount / "b.npy")
        self.assertEqual(self.read(mount / "b.npy"), content)

    def test_links_of_bloscpack_keep_their_names(self):
        # semantics: K4
        shutil.copy(mounting.GOLDEN + "/legacy/bp-ck-md5.blp", self.source + "/b.blp")
        os.symlink("b.blp", self.source + "/named.blp")
        os.symlink("b.blp", self.source + "/other")
        mount = self.mount()
        self.assertEqual(sorted(os.listdir(mount.path)), ["b", "named.blp", "other"])
        self.assertEqual(self.read(mount / "named.blp"), self.read(mount / "b"))

    def test_names_of_one_frame_show_each(self):
        # semantics: S4, L2
        self.put(self.frame)
        os.link(self.source + "/x.b2frame", self.source + "/y.b2frame")
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            self.assertEqual([os.stat(mount / name).st_nlink for name in "xy"], [1, 1])
            self.assertEqual(os.stat(mount / "x").st_ino, os.stat(mount / "y").st_ino)
            os.truncate(mount / "x", 0)
        self.assertNotEqual(os.stat(self.source + "/x.b2frame").st_ino, os.stat(self.source + "/y.b2frame").st_ino)
        with Mount(self.source, mountpoint=self.mountpoint) as mount:
            self.assertEqual(self.read(mount / "x"), b"")
            self.assertEqual(self.read(mount / "y"), CONTENT)

    def test_files_that_cannot_be_written(self):
        # semantics: O7
        for stored, shown in (("legacy/bp-v1.blp", "bp-v1"), ("legacy/blosc1-mixed.cdata", "blosc1-mixed")):
            shutil.copy(f"{mounting.GOLDEN}/{stored}", self.source)
            mount = Mount(self.source, mountpoint=self.mountpoint)
            with self.subTest(stored), mount:
                before = self.read(mount / shown)
                for call in (lambda path: os.open(path, os.O_RDWR), lambda path: os.open(path, os.O_WRONLY | os.O_TRUNC),
                             lambda path: os.truncate(path, 5)):
                    self.fails(errno.EROFS, call, mount / shown)
                self.assertEqual(self.read(mount / shown), before)
                self.assertEqual(mount.lines(), [])  # it is no fault
                self.assertEqual(len(mount.refusals()), 1, mount.refusals())


class WatchedDirectory(PackedFrame):
    """After many look-ups that found nothing the mount knows the names in a directory, and looks for no others."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.source + "/d")
        for number in range(20):
            self.place(f"kept{number}")
        # Each look-up reaches the daemon.
        self.at = str(self.mount("entry_timeout=0") / "d")
        self.look_for_many()

    def place(self, name):
        with open(f"{self.source}/d/{name}", "wb") as file:
            file.write(CONTENT)

    def look_for_many(self):
        for number in range(600):
            self.assertFalse(os.path.exists(f"{self.at}/absent{number}"))

    def check(self, name, *, there):
        self.assertEqual(os.path.lexists(f"{self.at}/{name}"), there, name)

    def test_other_programs_changes_of_names_show_at_once(self):
        # semantics: F1
        source = self.source + "/d"
        for number in range(200):
            name = f"new{number}"
            self.check(name, there=False)
            self.place(name)
            self.check(name, there=True)
            os.rename(f"{source}/{name}", f"{source}/moved{number}")
            self.check(name, there=False)
            self.check(f"moved{number}", there=True)
            os.rename(f"{source}/moved{number}", f"{self.source}/out{number}")
            self.check(f"moved{number}", there=False)
            os.rename(f"{self.source}/out{number}", f"{source}/in{number}")
            self.check(f"in{number}", there=True)
            os.link(f"{source}/in{number}", f"{source}/link{number}")
            self.check(f"link{number}", there=True)
            os.symlink("kept0", f"{source}/symlink{number}")
            self.check(f"symlink{number}", there=True)
            os.mkdir(f"{source}/directory{number}")
            self.check(f"directory{number}", there=True)
            os.unlink(f"{source}/in{number}")
            self.check(f"in{number}", there=False)

    def test_a_frame_of_another_program_shows_at_once(self):
        for number in range(100):
            for suffix in SUFFIXES:
                name = f"x{number}{suffix[1:]}"
                self.check(name, there=False)
                self.put(self.frame, f"d/{name}{suffix}")
                self.check(name, there=True)

    def test_more_changes_than_the_system_queues(self):
        with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as file:
            queued = int(file.read())
        count = queued // 2 + 1000  # two events for each file
        daemons = mounting.daemons_of(self.mountpoint)
        for daemon in daemons:
            os.kill(daemon, signal.SIGSTOP)
        for number in range(count):
            with open(f"{self.source}/d/many{number}", "wb"):
                pass
        for daemon in daemons:
            os.kill(daemon, signal.SIGCONT)
        missing = [number for number in range(count) if not os.path.exists(f"{self.at}/many{number}")]
        self.assertEqual(missing, [])

    def test_names_made_and_removed_through_the_mount(self):
        for number in range(1000):
            name = f"{self.at}/own{number % 7}"
            with open(name, "xb") as file:
                file.write(b"x")
            self.assertRaises(FileExistsError, os.mkdir, name)
            os.rename(name, f"{self.at}/other")
            self.assertFalse(os.path.exists(name))
            os.unlink(f"{self.at}/other")

    def test_a_directory_that_is_replaced(self):
        for number in range(50):
            os.rename(self.source + "/d", f"{self.source}/old{number}")
            os.mkdir(self.source + "/d")
            # The kernel hears of another directory a moment later.
            wait_for(lambda: not os.path.exists(f"{self.at}/kept0"))
            self.place("kept0")
            self.check("kept0", there=True)
            self.look_for_many()


if __name__ == "__main__":
    mounting.main()
