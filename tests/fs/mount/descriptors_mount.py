"""Few descriptors: a file that needs one too many is refused with EMFILE, and all else goes on."""

import errno
import os
import resource
import tempfile
import unittest

import mounting
from mounting import Mount, output

DIRECTORIES = 10_000
FILES = 2_000
LIMIT = 256


class Descriptors(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-test-", dir=mounting.fast_directory())
        self.addCleanup(work.cleanup)
        self.source, self.mountpoint = work.name + "/source", work.name + "/mnt"
        os.mkdir(self.source)
        os.mkdir(self.mountpoint)
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)

    def content(self, number):
        return f"content of {number}".encode()

    def fill(self):
        """Directories; in every fifth a frame or a plain file."""
        plain, frame = self.source + "/plain", self.source + "/packed.b2frame"
        for number in range(DIRECTORIES):
            os.mkdir(f"{self.source}/{number}")
        with open(plain, "wb") as file:
            file.write(b"x" * 5000)
        output(mounting.CFRAME, "pack", plain, frame)
        with open(frame, "rb") as file:
            packed = file.read()
        for number in range(FILES):
            kind = ".b2frame" if number % 2 else ""
            with open(f"{self.source}/{number}/file{kind}", "wb") as file:
                file.write(packed if kind else self.content(number))

    def expected(self, number):
        return b"x" * 5000 if number % 2 else self.content(number)

    def look(self, mount, step=1):
        """What needs no descriptor that stays."""
        for number in range(0, FILES, step):
            self.assertEqual(os.stat(mount / f"{number}/file").st_size, len(self.expected(number)), number)
        for number in range(0, DIRECTORIES, step):
            os.stat(mount / f"{number}")
        for number in range(0, DIRECTORIES, 50 * step):
            self.assertEqual(os.listdir(mount / f"{number}"), ["file"] if number < FILES else [], number)

    def test_many_directories_and_files_that_are_held_open(self):
        # semantics: O8
        self.fill()
        before = ("prlimit", f"--nofile={LIMIT}:{LIMIT}")
        with Mount(self.source, mountpoint=self.mountpoint, before=before) as mount:
            opened, refused = {}, 0
            for number in range(FILES):
                try:
                    opened[number] = os.open(mount / f"{number}/file", os.O_RDONLY)
                except OSError as error:
                    self.assertEqual(error.errno, errno.EMFILE, number)
                    refused += 1
            self.assertGreater(len(opened), 50)
            self.assertGreater(refused, 0)
            self.look(mount)
            for number, file in opened.items():
                self.assertEqual(os.pread(file, 10_000, 0), self.expected(number))
            os.chmod(mount / "1999", 0o700)
            os.chmod(mount / "1999/file", 0o600)
            os.rename(mount / "1998/file", mount / "1998/moved")
            os.rename(mount / "1998/moved", mount / "1998/file")
            os.mkdir(mount / "1998/new")
            os.rmdir(mount / "1998/new")
            for file in opened.values():
                os.close(file)
            self.look(mount, 7)
            for number in range(FILES):
                with open(mount / f"{number}/file", "rb") as file:
                    self.assertEqual(file.read(), self.expected(number))
            self.assertTrue(mount.is_alive())
            self.assertEqual(mount.lines(), [])

    def test_what_is_held_for_look_ups_makes_room_for_files(self):
        for number in range(FILES):
            os.mkdir(f"{self.source}/{number}")
            with open(f"{self.source}/{number}/file", "wb") as file:
                file.write(self.content(number))
        with Mount(self.source, mountpoint=self.mountpoint, before=("prlimit", f"--nofile={LIMIT}:{LIMIT}")) as mount:
            opened = []
            try:
                for number in range(FILES):
                    opened.append(os.open(mount / f"{number}/file", os.O_RDONLY))
            except OSError as error:
                self.assertEqual(error.errno, errno.EMFILE)
            # All but those that are kept back, and a few of the daemon's own.
            self.assertGreater(len(opened), LIMIT * 5 // 8)
            for number, file in enumerate(opened):
                self.assertEqual(os.pread(file, 100, 0), self.content(number))
                os.close(file)

    def test_directories_that_are_held_open(self):
        # semantics: O8
        for number in range(FILES):
            os.mkdir(f"{self.source}/{number}")
        with Mount(self.source, mountpoint=self.mountpoint, before=("prlimit", f"--nofile={LIMIT}:{LIMIT}")) as mount:
            opened, refused = [], 0
            for number in range(FILES):
                try:
                    opened.append(os.open(mount / str(number), os.O_RDONLY | os.O_DIRECTORY))
                except OSError as error:
                    self.assertEqual(error.errno, errno.EMFILE, number)
                    refused += 1
            self.assertGreater(len(opened), 50)
            self.assertGreater(refused, 0)
            for number in range(FILES):
                os.stat(mount / str(number))
            for directory in opened:
                self.assertEqual(os.listdir(directory), [])
                os.close(directory)
            for number in range(FILES):
                self.assertEqual(os.listdir(mount / str(number)), [])
            self.assertEqual(mount.lines(), [])

    def test_ten_thousand_files_and_two_thousand_directories(self):
        """The limit that the daemon is started with is raised to the most that it may have."""
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        files, directories = min(10_000, most // 2), min(2_000, most // 10)
        with open(self.source + "/plain", "wb") as file:
            file.write(b"x" * 5000)
        output(mounting.CFRAME, "pack", self.source + "/plain", self.source + "/packed.b2frame")
        with open(self.source + "/packed.b2frame", "rb") as file:
            packed = file.read()
        for number in range(directories):
            os.mkdir(f"{self.source}/{number}")
        for number in range(files):
            kind = ".b2frame" if number % 2 else ""
            with open(f"{self.source}/{number % directories}/file-{number}{kind}", "wb") as file:
                file.write(packed if kind else self.content(number))
        with Mount(self.source, mountpoint=self.mountpoint, before=("prlimit", f"--nofile=256:{most}")) as mount:
            opened = [os.open(mount / f"{number % directories}/file-{number}", os.O_RDONLY) for number in range(files)]
            listed = [os.open(mount / str(number), os.O_RDONLY | os.O_DIRECTORY) for number in range(directories)]
            for number, file in enumerate(opened):
                self.assertEqual(os.pread(file, 10_000, 0), self.expected(number))
                os.close(file)
            for number, directory in enumerate(listed):
                names = [f"file-{other}" for other in range(number, files, directories)]
                self.assertEqual(sorted(os.listdir(directory)), sorted(names))
                os.close(directory)
            self.assertEqual(mount.lines(), [])

    def test_files_that_are_made_until_there_is_no_descriptor(self):
        with Mount(self.source, mountpoint=self.mountpoint, before=("prlimit", f"--nofile={LIMIT}:{LIMIT}")) as mount:
            made = []
            with self.assertRaises(OSError) as refused:
                for number in range(FILES):
                    made.append(os.open(mount / f"made-{number}", os.O_CREAT | os.O_EXCL | os.O_RDWR))
                    os.write(made[-1], self.content(number))
            self.assertEqual(refused.exception.errno, errno.EMFILE)
            self.assertGreater(len(made), LIMIT // 8)
            self.assertLessEqual(len(made), LIMIT - LIMIT // 4)  # the rest is kept for look-ups and commits
            # The one that could not be opened does not stay behind, and those that are open go on.
            self.assertEqual(len(os.listdir(mount.path)), len(made))
            for number, file in enumerate(made):
                os.pwrite(file, b"more", len(self.content(number)))
                self.assertEqual(os.pread(file, 100, 0), self.content(number) + b"more")
                os.fsync(file)
            for file in made:
                os.close(file)
            for number in range(len(made), len(made) + 3):
                with open(mount / f"made-{number}", "xb") as file:
                    file.write(self.content(number) + b"more")
            for number in range(len(made) + 3):
                with open(mount / f"made-{number}", "rb") as file:
                    self.assertEqual(file.read(), self.content(number) + b"more")
            self.assertEqual(mount.lines(), [])


if __name__ == "__main__":
    mounting.main()
