"""A frame that cannot be opened is never taken for an empty file: not by tar, rsync, cp or find, and not by the mount
itself after a limit of the system is left behind."""

import errno
import os
import subprocess
import tempfile
import unittest

import mounting
from mounting import Mount, output, run, wait_for

DATA = os.urandom(300_000)


class Damage(unittest.TestCase):
    """Its name is listed, and what needs its size or its bytes fails, with an exit status that says so."""

    OPTIONS = ()

    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-damage-")
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.source = work.name + "/source"
        os.mkdir(self.source)
        with open(self.work + "/raw", "wb") as file:
            file.write(DATA)
        for name in ("good", "header", "magic", "version", "cut"):
            output(mounting.CFRAME, "pack", self.work + "/raw", f"{self.source}/{name}.b2frame")
        self.change("header", 20, b"\xff")
        self.change("magic", 2, b"x")
        self.change("version", 25, b"\x1f")  # of a format that is not known
        os.truncate(self.source + "/cut.b2frame", 1000)
        self.stored = {name: self.bytes_of(name) for name in os.listdir(self.source)}
        self.mount = Mount(self.source, *self.OPTIONS)
        self.addCleanup(self.mount.close)

    def change(self, name, at, data):
        with open(f"{self.source}/{name}.b2frame", "r+b") as file:
            file.seek(at)
            file.write(data)

    def bytes_of(self, name):
        with open(f"{self.source}/{name}", "rb") as file:
            return file.read()

    def fails(self, *command):
        done = run(*command)
        self.assertNotEqual(done.returncode, 0, f"{command} took it for a file")
        return done

    def each(self):
        for name in ("header", "magic", "version", "cut"):
            yield name, self.mount / name

    def test_stat_and_open_fail(self):
        # semantics: S5
        self.assertEqual(set(os.listdir(self.mount.path)), {"good", "header", "magic", "version", "cut"})
        for _ in range(2):
            for name, path in self.each():
                wanted = (errno.EOPNOTSUPP,) if name == "version" else (errno.EIO, errno.EOPNOTSUPP)
                for call in (os.stat, os.path.getsize, lambda path: os.open(path, os.O_RDONLY)):
                    with self.subTest(name, call=call), self.assertRaises(OSError) as failed:
                        call(path)
                    self.assertIn(failed.exception.errno, wanted)
            self.assertEqual(os.stat(self.mount / "good").st_size, len(DATA))

    def test_tar_stores_no_empty_file(self):
        # semantics: S5
        archive = self.work + "/a.tar"
        self.fails("tar", "cf", archive, "-C", self.mount.path, ".")
        listed = output("tar", "tvf", archive).decode().splitlines()
        files = {line.split()[-1]: int(line.split()[2]) for line in listed if line.startswith("-")}
        self.assertEqual(files, {"./good": len(DATA)})

    def test_rsync_and_cp_copy_no_empty_file(self):
        commands = [("cp", "-r", self.mount.path + "/.", self.work + "/cp"), ("cp", "-a", self.mount.path + "/.", self.work + "/cp-a")]
        if run("sh", "-c", "command -v rsync").returncode == 0:
            commands.append(("rsync", "-a", self.mount.path + "/", self.work + "/rsync"))
        for command in commands:
            with self.subTest(command[:2]):
                os.mkdir(command[-1])
                self.fails(*command)
                self.assertEqual(os.listdir(command[-1]), ["good"])
                output("cmp", self.work + "/raw", command[-1] + "/good")

    def test_find_deletes_nothing(self):
        run("find", self.mount.path, "-type", "f", "-empty", "-delete")
        run("find", self.mount.path, "-size", "0", "-delete")
        self.assertEqual({name: self.bytes_of(name) for name in os.listdir(self.source)}, self.stored)

    def test_it_is_renamed_and_removed(self):
        # semantics: S5
        for name, path in self.each():
            with self.subTest(name):
                os.rename(path, path + "-away")
                self.assertEqual(self.bytes_of(name + "-away.b2frame"), self.stored[name + ".b2frame"])
                os.unlink(path + "-away")
                self.assertFalse(os.path.exists(f"{self.source}/{name}-away.b2frame"))

    def test_a_good_file_is_moved_over_it(self):
        # semantics: S5
        for name, path in self.each():
            with self.subTest(name):
                output("cp", self.work + "/raw", self.mount / "new")
                os.rename(self.mount / "new", path)
                output("cmp", self.work + "/raw", path)

    def test_what_is_mended_shows_at_once(self):
        for name, path in self.each():
            with self.subTest(name):
                self.assertRaises(OSError, os.stat, path)
                with open(f"{self.source}/{name}.b2frame", "wb") as file:
                    file.write(self.stored["good.b2frame"])
                wait_for(lambda path=path: os.path.exists(path) and os.stat(path).st_size == len(DATA))
                output("cmp", self.work + "/raw", path)


class DamageWithKeptAttributes(Damage):
    OPTIONS = ("attr_timeout=60", "entry_timeout=60")


class DamageReadOnly(Damage):
    OPTIONS = ("ro",)

    def test_it_is_renamed_and_removed(self):
        for name, path in self.each():
            with self.subTest(name):
                self.assertRaises(OSError, os.rename, path, path + "-away")
                self.assertRaises(OSError, os.unlink, path)
                self.assertEqual(self.bytes_of(name + ".b2frame"), self.stored[name + ".b2frame"])

    def test_a_good_file_is_moved_over_it(self):
        for name, path in self.each():
            with self.subTest(name):
                self.assertRaises(OSError, os.rename, self.mount / "good", path)


class Limits(unittest.TestCase):
    """The daemon has few descriptors: that is the answer to one call, and never remembered as damage."""

    FILES = 120
    SIZE = 5000

    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-limits-")
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.source = work.name + "/source"
        os.mkdir(self.source)
        with open(self.work + "/raw", "wb") as file:
            file.write(os.urandom(self.SIZE))
        output(mounting.CFRAME, "pack", self.work + "/raw", self.source + "/0.b2frame")
        for number in range(1, self.FILES):
            output("cp", self.source + "/0.b2frame", f"{self.source}/{number}.b2frame")

    def few_descriptors(self):
        limit = ["prlimit", "--nofile=64:64"]
        if not mounting.is_sanitized():
            return limit
        # The sanitizer finds out with a pipe whether an object may be looked at, and without descriptors takes every
        # object for one of no type.
        with open(self.work + "/suppressions", "w", encoding="ascii") as file:
            file.write("vptr:*\n")
        options = os.environ.get("UBSAN_OPTIONS", "")
        return ["env", f"UBSAN_OPTIONS={options}:suppressions={self.work}/suppressions", *limit]

    def sizes(self, mount, numbers):
        """What stat says of each: its size, or the error."""
        found = set()
        for number in numbers:
            try:
                found.add(os.stat(mount / str(number)).st_size)
            except OSError as error:
                found.add(errno.errorcode[error.errno])
        return found

    def open_until_refused(self, mount):
        held = []
        try:
            for number in range(self.FILES - 20):
                held.append(open(mount / str(number), "rb", buffering=0))
        except OSError as error:
            self.assertIn(error.errno, (errno.EMFILE, errno.ENFILE))
            return held
        self.fail("the limit was not met")
        return held

    def check(self, *options):
        last = range(self.FILES - 20, self.FILES)
        with Mount(self.source, *options, before=self.few_descriptors()) as mount:
            held = self.open_until_refused(mount)
            try:
                self.assertLessEqual(self.sizes(mount, last), {self.SIZE, "EMFILE", "ENFILE"})
                done = run("tar", "cf", self.work + "/a.tar", "-C", mount.path, "--", *map(str, last))
                listed = run("tar", "tvf", self.work + "/a.tar").stdout.decode().splitlines()
                sizes = {int(line.split()[2]) for line in listed}
                self.assertLessEqual(sizes, {self.SIZE})
                self.assertTrue(done.returncode != 0 or len(listed) == len(last))
            finally:
                for file in held:
                    file.close()
            wait_for(lambda: self.sizes(mount, last) == {self.SIZE})
            self.assertEqual(self.sizes(mount, range(self.FILES)), {self.SIZE})
            for number in last:
                output("cmp", self.work + "/raw", mount / str(number))
            self.assertEqual(set(os.listdir(mount.path)), set(map(str, range(self.FILES))))

    def test_told_by_name(self):
        self.check()

    def test_told_by_content(self):
        self.check("detect=content")

    def test_with_kept_attributes(self):
        self.check("attr_timeout=60", "entry_timeout=60")

    def test_a_file_that_cannot_be_made_leaves_nothing(self):
        with Mount(self.source, before=self.few_descriptors()) as mount:
            held = self.open_until_refused(mount)
            self.assertRaises(OSError, open, mount / "new", "wb")
            for file in held:
                file.close()
            self.assertEqual(sorted(os.listdir(self.source)), sorted(f"{number}.b2frame" for number in range(self.FILES)))


if __name__ == "__main__":
    mounting.main()
