"""Command lines and sources that are refused, each with one line that says why."""

import os
import shutil
import subprocess

import mounting
from mounting import golden_frames, is_mounted, unmount
from mounted_directory import Directory, SMALL


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

    def test_a_full_output(self):
        for option in ("--help", "-V"):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([mounting.CFRAMEFS, option], stdout=full, stderr=subprocess.PIPE, check=False)
            self.assertEqual(done.returncode, 3)
            self.assertEqual(done.stderr, b"cframefs: standard output: write: No space left on device\n")

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
        # A sanitizer has its own lines to print without /proc.
        said = [line for line in done.stderr.decode().splitlines()
                if line.startswith("cframefs: ") or not mounting.is_sanitized()]
        self.assertEqual(said, ["cframefs: /proc is not mounted, but files are reopened through /proc/self/fd"])


if __name__ == "__main__":
    mounting.main()
