"""cframe at work in a mount and beside one: it writes into a mount, and it takes nothing away that the mount has accepted."""

import errno
import os
import subprocess
import tempfile
import unittest

import mounting
from mounting import Mount, output, run

HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (500,), }"
NPY = b"\x93NUMPY\x01\x00\x76\x00" + HEADER.ljust(117).encode() + b"\n" + bytes(i % 251 for i in range(4000))


class ToolsAndMounts(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-tools-")
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.source = self.work + "/source"
        os.mkdir(self.source)
        self.content = b"".join(b"line %d\n" % i for i in range(100_000))
        with open(self.work + "/data", "wb") as file:
            file.write(self.content)
        output(mounting.CFRAME, "pack", self.work + "/data", self.work + "/x.b2frame")

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def test_what_is_made_in_a_mount_is_what_is_read(self):
        for names in ("strip", "keep"):
            with self.subTest(names=names), Mount(self.source, f"names={names}") as mount:
                directory = mount / names
                os.mkdir(directory)
                output(mounting.CFRAME, "unpack", self.work + "/x.b2frame", directory + "/data")
                self.assertEqual(self.read(directory + "/data"), self.content)
                output(mounting.CFRAME, "pack", self.work + "/data", directory + "/y.b2frame")
                self.assertEqual(output(mounting.CFRAME, "cat", directory + "/y.b2frame"), self.content)
                output(mounting.CFRAME, "convert", "--codec", "lz4", self.work + "/x.b2frame", directory + "/z.b2frame")
                self.assertEqual(output(mounting.CFRAME, "cat", directory + "/z.b2frame"), self.content)
                self.assertEqual(sorted(os.listdir(directory)), ["data", "y.b2frame", "z.b2frame"])
                refused = run(mounting.CFRAME, "unpack", self.work + "/x.b2frame", directory + "/data")
                self.assertEqual(refused.returncode, 2, "it is there already")
                output(mounting.CFRAME, "unpack", "--force", self.work + "/x.b2frame", directory + "/data")
                self.assertEqual(self.read(directory + "/data"), self.content)
        with Mount(self.source) as mount:
            self.assertEqual(self.read(mount / "strip/data"), self.content)
            self.assertEqual(sorted(os.listdir(mount / "strip")), ["data", "y.b2frame", "z.b2frame"])

    def test_a_run_that_fails_leaves_nothing_in_the_mount(self):
        with open(self.work + "/x.b2frame", "r+b") as file:
            file.seek(os.path.getsize(self.work + "/x.b2frame") // 2)
            file.write(b"damage" * 100)
        with Mount(self.source) as mount:
            failed = run(mounting.CFRAME, "unpack", self.work + "/x.b2frame", mount / "data")
            self.assertEqual(failed.returncode, 1, failed.stderr)
            self.assertEqual(os.listdir(mount.path), [])
        self.assertEqual(os.listdir(self.source), [])

    def test_changing_a_frame_that_is_being_written_loses_nothing(self):
        commands = (["compact"], ["set-meta"], ["repair"])
        for number, command in enumerate(commands):
            with self.subTest(command=command[0]), Mount(self.source) as mount:
                name = f"f{number}"
                expected = b""
                descriptor = os.open(mount / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
                for i in range(6):
                    line = b"line %d\n" % i
                    self.assertEqual(os.write(descriptor, line), len(line))
                    expected += line
                    if i == 1:
                        os.fsync(descriptor)
                    if i in (2, 4):
                        stored = f"{self.source}/{name}.b2frame"
                        arguments = [stored, "note", "text"] if command[0] == "set-meta" else [stored]
                        words = [mounting.CFRAME, command[0], *arguments]
                        done = subprocess.run(words, capture_output=True, check=False)
                        self.assertIn(done.returncode, (0, 3), done.stderr)
                        if done.returncode == 3:
                            self.assertIn(stored.encode(), done.stderr, "the message names the frame")
                os.close(descriptor)
                self.assertEqual(self.read(mount / name), expected)
            self.assertEqual(output(mounting.CFRAME, "cat", f"{self.source}/{name}.b2frame"), expected)

    def attributes(self, path):
        return {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith("user.")}

    def test_programs_that_copy_attributes_succeed_in_all_directions(self):
        # semantics: X3, X4, X6
        disk = self.work + "/disk"
        with Mount(self.source) as mount:
            for directory in (disk, mount / "in", mount / "back"):
                os.mkdir(directory)
            stored = self.source + "/in/x.b2frame"
            os.rename(self.work + "/x.b2frame", stored)
            # A name of ours as an attribute of the backing file: what the mount says of the frame hides it.
            os.setxattr(stored, "user.blosc2.info", b"of another time")
            os.setxattr(mount / "in/x", "user.mine", b"own")
            os.setxattr(mount / "in/x", "user.blosc2.vlmeta.notes", b"\xa4text")
            with open(self.work + "/a.npy", "wb") as file:
                file.write(NPY)
            output(mounting.CFRAME, "convert", self.work + "/a.npy", self.source + "/in/a.b2nd")
            expected = {"x": {"user.mine": b"own", "user.blosc2.vlmeta.notes": b"\xa4text"}, "a.npy": {}}
            for name in expected:
                self.assertEqual(self.attributes(mount / "in/" + name), expected[name])
                self.assertIn(b'"nbytes"', os.getxattr(mount / "in/" + name, "user.blosc2.info"))
            self.assertTrue(os.getxattr(mount / "in/a.npy", "user.blosc2.meta.b2nd"))
            archive = self.work + "/archive.tar"
            for number, copy in enumerate((
                lambda source, target: output("cp", "-a", source + "/.", target),
                lambda source, target: output("cp", "--preserve=all", "-r", source + "/.", target),
                lambda source, target: output("rsync", "-aX", source + "/", target + "/"),
                lambda source, target: (output("tar", "--xattrs", "-cf", archive, "-C", source, "."),
                                        output("tar", "--xattrs", "--xattrs-include=*", "-xf", archive, "-C", target)),
            )):
                targets = [f"{disk}/{number}", mount / f"back/from-disk-{number}", mount / f"back/from-mount-{number}"]
                for source, target in zip((mount / "in", targets[0], mount / "in"), targets):
                    with self.subTest(number=number, source=source, target=target):
                        os.mkdir(target)
                        copied = copy(source, target)
                        for name, content in (("x", self.content), ("a.npy", NPY)):
                            self.assertEqual(self.read(f"{target}/{name}"), content)
                            self.assertEqual(self.attributes(f"{target}/{name}"), expected[name])
            os.rename(disk + "/0/x", self.work + "/moved")
            output("mv", self.work + "/moved", mount / "moved")
            self.assertEqual(self.attributes(mount / "moved"), expected["x"])
        layer = output(mounting.CFRAME, "get-meta", self.source + "/moved.b2frame", "notes")
        self.assertEqual(layer, b"text\n")

    def set_long_layers(self, frame, layers):
        for name, content in layers.items():
            with open(self.work + "/layer", "wb") as file:
                file.write(content)
            output(mounting.CFRAME, "set-meta", "--type", "raw", "--from", self.work + "/layer", frame, name)

    def layers(self, frame):
        names = output(mounting.CFRAME, "get-meta", frame).decode().split()
        return {name: output(mounting.CFRAME, "get-meta", "--raw", frame, name) for name in names}

    def test_metalayers_longer_than_a_value_may_be_are_copied(self):
        """64 KiB is what the kernel takes for one attribute."""
        # semantics: X7
        part = 65536
        layers = {"less": os.urandom(part - 1), "one": os.urandom(part), "more": os.urandom(part + 1),
                  "many": os.urandom(9 * part - 7), "most": bytes(16 * part)}
        stored = self.source + "/x.b2frame"
        os.rename(self.work + "/x.b2frame", stored)
        self.set_long_layers(stored, layers)
        with Mount(self.source) as mount:
            archive = self.work + "/archive.tar"
            for number, copy in enumerate((
                ["cp", "-a", mount / "x", mount / "0"],
                ["cp", "--preserve=all", mount / "x", mount / "1"],
                ["rsync", "-aX", mount / "x", mount / "2"],
                ["tar", "--xattrs", "-cf", archive, "-C", mount.path, "x"],
                ["mv", mount / "1", mount / "3"],
            )):
                with self.subTest(copy=copy):
                    done = run(*copy)
                    self.assertEqual((done.returncode, done.stderr), (0, b""))
            os.mkdir(mount / "in")
            done = run("tar", "--xattrs", "--xattrs-include=*", "-xf", archive, "-C", mount / "in")
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            # A copy that has them already, longer and shorter.
            for change in ({"many": os.urandom(3 * part), "less": os.urandom(2 * part + 5), "more": b"short"},
                           {"many": layers["many"][: 2 * part], "one": os.urandom(part), "most": bytes(5)}):
                self.set_long_layers(self.source + "/2.b2frame", change)
                os.utime(mount / "2", (5, 5))
                done = run("rsync", "-aX", mount / "x", mount / "2")
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                self.assertEqual(self.layers(self.source + "/2.b2frame"), layers)
            for name in [name for name in os.listxattr(mount / "2") if "vlpart" in name]:
                os.removexattr(mount / "2", name)
            self.assertEqual(set(self.layers(self.source + "/2.b2frame")), {"less"})
        for name in ("0", "3", "in/x"):
            self.assertEqual(self.layers(f"{self.source}/{name}.b2frame"), layers)

    def test_metalayers_that_are_longer_still_keep_no_program_from_copying_the_file(self):
        # semantics: X8, X9
        stored = self.source + "/x.b2frame"
        os.rename(self.work + "/x.b2frame", stored)
        self.set_long_layers(stored, {"huge": bytes((1 << 20) + 1)})
        with Mount(self.source) as mount:
            self.assertEqual(os.listxattr(mount / "x"), [])
            with self.assertRaises(OSError) as raised:
                os.getxattr(mount / "x", "user.blosc2.vlmeta.huge")
            self.assertEqual(raised.exception.errno, errno.E2BIG)
            output("rsync", "-aX", mount / "x", mount / "y")
            self.assertEqual(self.read(mount / "y"), self.content)

    def test_what_cframe_makes_in_a_mount_keeps_its_time(self):
        os.utime(self.work + "/data", (978_307_200, 978_307_200))
        with Mount(self.source) as mount:
            output(mounting.CFRAME, "pack", self.work + "/data", mount / "y.b2frame")
            output(mounting.CFRAME, "pack", self.work + "/data", self.source + "/z.b2frame")
            output(mounting.CFRAME, "unpack", self.source + "/z.b2frame", mount / "out")
            for name in ("y.b2frame", "z", "out"):
                self.assertEqual(os.stat(mount / name).st_mtime, 978_307_200, name)
        for name in ("y.b2frame.b2frame", "out.b2frame"):
            self.assertEqual(os.stat(f"{self.source}/{name}").st_mtime, 978_307_200, name)

    def test_a_frame_is_made_in_a_mount_of_what_another_one_shows(self):
        """Which, stored, would be the file that is read."""
        with Mount(self.source) as mount:
            output(mounting.CFRAME, "unpack", self.work + "/x.b2frame", mount / "x")
            refused = run(mounting.CFRAME, "pack", "--force", mount / "x", mount / "x")
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertEqual(self.read(mount / "x"), self.content)

    def test_a_killed_run_leaves_nothing_that_the_mount_shows(self):
        with Mount(self.source) as mount:
            for target in (self.source + "/big.b2frame", mount / "big.b2frame"):
                program = subprocess.Popen([mounting.CFRAME, "pack", "--workers", "1", "/dev/urandom", target],
                                           stderr=subprocess.DEVNULL)
                mounting.wait_for(lambda: any("tmp" in name or "deleted" in name or "part" in name
                                              for name in self.open_files(program.pid)), what="the temporary file")
                program.kill()
                program.wait()
            self.assertEqual([name for name in os.listdir(mount.path) if not name.startswith(".")], [])
            left = os.listdir(self.source)
            for name in left:
                os.utime(f"{self.source}/{name}", (978_307_200, 978_307_200))
            output(mounting.CFRAME, "pack", self.work + "/data", mount / "big.b2frame")
            self.assertEqual(os.listdir(self.source), ["big.b2frame.b2frame"], f"left by the killed ones: {left}")

    @staticmethod
    def open_files(pid):
        try:
            return [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            return []


if __name__ == "__main__":
    mounting.main()
