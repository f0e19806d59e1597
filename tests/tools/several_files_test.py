"""The program cframe on several files: operands, names of outputs, --rm, directories, and what comes of failures.

usage: several_files_test.py CFRAME [unittest's own arguments]
"""

import json
import os
import sys
import threading
import time
import unittest

import program_test
from program_test import OLD, PLAIN, Program, npy


class Several(Program):
    def lines(self, *arguments, status=0):
        ran = self.run_cframe(*arguments)
        self.assertEqual(ran.returncode, status, ran.stderr)
        return [json.loads(line) for line in ran.stdout.decode().splitlines()]

    def refused_or_failed(self, *arguments):
        ran = self.run_cframe(*arguments)
        self.assertIn(ran.returncode, (2, 3))
        return ran.stderr.decode()

    def tree(self, top="."):
        top = self.directory / top
        return sorted(str(path.relative_to(top)) for path in top.rglob("*") if path.is_file())

    def damage(self, name):
        """Overwrites the header of the first chunk."""
        frame = bytearray(self.read(name))
        first_chunk = int.from_bytes(frame[11:15], "big")
        frame[first_chunk : first_chunk + 32] = bytes(32)
        self.write(name, frame)

    def fill(self):
        """A directory with two files, an array, and a frame in a sub-directory."""
        os.makedirs(self.directory / "d/e")
        self.write("d/a", PLAIN)
        self.write("d/b.bin", b"")
        self.write("d/e/x.npy", npy([1.5, 2.5]))
        self.done("pack", "data", "d/e/there.b2frame")


class Operands(Several):
    def test_one_operand_is_named_after_the_input(self):
        self.write("a.npy", npy([1.0, 2.0]))
        self.done("pack", "data")
        self.done("pack", "a.npy")
        self.assertEqual(self.names(), ["a.b2nd", "a.npy", "data", "data.b2frame"])
        os.rename(self.directory / "data", self.directory / "original")
        os.rename(self.directory / "a.npy", self.directory / "original.npy")
        self.done("unpack", "data.b2frame")
        self.done("unpack", "./a.b2nd")
        self.assertEqual(self.read("data"), PLAIN)
        self.assertEqual(self.read("a.npy"), self.read("original.npy"))
        self.done("unpack", "--b2nd", "flat", "a.b2nd")
        self.assertEqual(self.read("a"), self.read("a.npy")[-16:])
        self.done("convert", "-f", "a.npy")
        self.assertEqual(self.done("cat", "a.b2nd"), self.read("a.npy"))
        self.assertIn("suffix", self.refused("unpack", "original"))
        self.assertIn("suffix", self.refused("pack", "data.b2frame"))
        self.assertEqual(self.done("unpack", "-", input=self.done("pack", "-", input=PLAIN, stdin=None), stdin=None), PLAIN)

    def test_two_operands_are_input_and_output(self):
        self.write("other", b"other data")
        for force in ([], ["-f"]):
            with self.subTest(force=force):
                self.refused("pack", *force, "data", "other")
                self.assertEqual((self.read("data"), self.read("other")), (PLAIN, b"other data"))
        self.done("pack", "data", "x.b2frame")
        self.refused("convert", "-f", "x.b2frame", "other")
        # What is replaced by --force: a frame under any name, an empty file, and what is named like a frame.
        self.done("pack", "data", "frame")
        self.done("pack", "-f", "other", "frame")
        self.assertEqual(self.done("cat", "frame"), b"other data")
        self.write("empty", b"")
        self.done("pack", "-f", "other", "empty")
        self.write("y.b2frame", b"damaged")
        self.done("pack", "-f", "other", "y.b2frame")

    def test_more_operands_need_an_option(self):
        self.write("b", b"b")
        self.write("c", b"c")
        self.assertIn("--multiple", self.refused("pack", "data", "b", "c"))
        self.assertEqual(self.names(), ["b", "c", "data"])
        ran = self.done("pack", "-m", "data", "b", "c")
        self.assertIn(b"3 files packed", ran)
        for name in ("data", "b", "c"):
            self.assertEqual(self.done("cat", name + ".b2frame"), self.read(name))

    def test_the_output_of_one_is_no_input_of_another(self):
        self.done("pack", "data", "x.b2frame")
        frame = self.read("x.b2frame")
        os.link(self.directory / "x.b2frame", self.directory / "x")
        message = self.refused("pack", "-m", "-f", "x", "x.b2frame")
        self.assertIn("x.b2frame: is an input", message)
        self.assertEqual(self.read("x.b2frame"), frame)
        # Two inputs of one name, and one input under two names.
        os.mkdir(self.directory / "d")
        self.write("d/data", b"other")
        for others in (["d/data"], ["./data"]):
            message = self.refused("pack", "-m", "--to", "out", "-f", "data", *others)
            self.assertIn("earlier input", message)
            self.assertEqual(self.done("cat", "out/data.b2frame"), PLAIN)
        os.symlink("out", self.directory / "alias")
        self.done("pack", "-f", "--to", "alias", "data")
        self.assertEqual(self.tree("out"), ["data.b2frame"])

    def test_the_directory_of_outputs(self):
        self.refused("pack", "--to", "", "data")
        self.assertIn("data", self.refused_or_failed("pack", "--to", "data", "data"))
        self.done("pack", "--to", "new/deep", "data")
        self.assertEqual(self.tree("new"), ["deep/data.b2frame"])
        os.mkdir(self.directory / "d")
        for operand in (".", "d/..", "../" + self.directory.name + "/."):
            self.done("pack", "-r", "-f", "--to", "out", "--codec", "lz4", operand)
        self.assertIn("data.b2frame", self.tree("out"))
        self.assertEqual(os.listdir(self.directory.parent).count("data.b2frame"), 0)

    def test_standard_input_is_alone(self):
        self.assertIn("standard input", self.refused("pack", "-m", "-", "data"))
        self.assertIn("--rm", self.refused("pack", "--rm", "-", "x.b2frame"))
        self.assertIn("--rm", self.refused("pack", "--rm", "data", "-"))
        self.assertIn("--json", self.refused("pack", "--json", "data", "-"))
        self.assertTrue((self.directory / "data").exists())


class Directories(Several):
    def test_a_directory_there_and_back(self):
        self.fill()
        self.assertIn("--recursive", self.refused("pack", "-m", "d"))
        made = self.lines("pack", "-r", "--json", "d")
        self.assertEqual([line["out"] for line in made], ["d/a.b2frame", "d/b.bin.b2frame", "d/e/x.b2nd"])
        self.assertEqual([line["plain"] for line in made], [len(PLAIN), 0, 16])
        self.assertEqual(made[0]["stored"], len(self.read("d/a.b2frame")))
        self.done("unpack", "-r", "d/", "--to", "back")
        self.assertEqual(self.tree("back"), ["d/a", "d/b.bin", "d/e/there", "d/e/x.npy"])
        for name in ("d/a", "d/b.bin", "d/e/x.npy"):
            self.assertEqual(self.read("back/" + name), self.read(name))
        # Again: each output is there.
        again = self.lines("pack", "-r", "--json", "d", status=2)
        self.assertTrue(all("exists already" in line["error"] for line in again))
        self.done("pack", "-r", "-q", "-f", "d")

    def test_symbolic_links_are_not_followed(self):
        self.fill()
        os.symlink("../data", self.directory / "d/link")
        os.symlink("..", self.directory / "d/up")
        made = self.lines("pack", "-r", "--json", "d")
        self.assertEqual([line["in"] for line in made], ["d/a", "d/b.bin", "d/e/x.npy"])
        # A link that is named is followed.
        self.done("pack", "-m", "d/link")
        self.assertEqual(self.done("cat", "d/link.b2frame"), PLAIN)

    def test_convert_makes_arrays_of_npy_files_and_leaves_frames(self):
        self.fill()
        made = self.lines("convert", "-r", "--json", "d")
        self.assertEqual([line["out"] for line in made], ["d/e/x.b2nd"])
        self.assertEqual(self.done("cat", "d/e/x.b2nd"), self.read("d/e/x.npy"))

    def test_a_failure_stops_no_other_file(self):
        self.fill()
        self.done("pack", "-r", "d")
        self.damage("d/a.b2frame")
        ran = self.run_cframe("unpack", "-r", "--to", "out", "d", "missing.b2frame")
        self.assertEqual(ran.returncode, 2)
        self.assertIn(b"3 files unpacked", ran.stdout)
        self.assertIn(b"2 failed", ran.stdout)
        self.assertIn(b"d/a.b2frame", ran.stderr)
        self.assertIn(b"missing.b2frame", ran.stderr)
        self.assertEqual(self.tree("out"), ["d/b.bin", "d/e/there", "d/e/x.npy"])

    def test_many_files(self):
        names = [f"d/{i:03}" for i in range(300)]
        os.mkdir(self.directory / "d")
        for name in names:
            self.write(name, name.encode() * 100)
        # One that takes all threads, between those that take one each.
        self.write("d/150", PLAIN * 12)
        made = self.lines("pack", "-r", "--json", "--workers", "5", "d")
        self.assertEqual([line["in"] for line in made], names)
        self.assertIn(b"300 ok", self.done("verify", "-r", "d"))
        self.assertEqual(self.done("cat", "d/150.b2frame"), PLAIN * 12)
        self.assertEqual(self.done("cat", "d/299.b2frame"), b"d/299" * 100)

    def test_compact_in_a_directory(self):
        self.fill()
        self.write("d/chunk.blosc", b"\x02\x01\x00\x01" + bytes(12))
        for i in range(20):
            self.done("set-meta", "d/e/there.b2frame", "notes", str(i) * 1000)
        before = os.stat(self.directory / "d/e/there.b2frame").st_size
        self.assertIn("is a directory", self.refused("compact", "d"))
        (line,) = self.lines("compact", "-r", "--json", "d")
        after = os.stat(self.directory / "d/e/there.b2frame").st_size
        self.assertEqual(line, {"path": "d/e/there.b2frame", "before": before, "after": after})
        self.assertLess(after, before)


class Removal(Several):
    def test_inputs_go_once_outputs_are_there(self):
        self.fill()
        os.utime(self.directory / "d/a", (OLD, OLD))
        self.done("pack", "-r", "--rm", "d")
        self.assertEqual(self.tree("d"), ["a.b2frame", "b.bin.b2frame", "e/there.b2frame", "e/x.b2nd"])
        self.assertEqual(os.stat(self.directory / "d/a.b2frame").st_mtime, OLD)
        self.done("unpack", "-r", "--rm", "d")
        self.assertEqual(self.tree("d"), ["a", "b.bin", "e/there", "e/x.npy"])
        self.assertEqual(self.read("d/a"), PLAIN)
        self.assertEqual(os.stat(self.directory / "d/a").st_mtime, OLD)
        self.done("pack", "--rm", "data", "x.b2frame")
        self.assertEqual(self.names(), ["d", "x.b2frame"])

    def test_inputs_stay_if_anything_failed(self):
        self.done("pack", "data", "x.b2frame")
        self.write("bad.b2frame", self.read("x.b2frame"))
        self.damage("bad.b2frame")
        self.write("there", b"old")
        self.assertEqual(self.run_cframe("unpack", "--rm", "bad.b2frame").returncode, 1)
        self.refused("unpack", "--rm", "x.b2frame", "there")
        self.refused("pack", "--rm", "data", "x.b2frame")
        self.refused("pack", "--rm", "-m", "-f", "data", "x.b2frame")
        self.assertEqual(self.names(), ["bad.b2frame", "data.b2frame", "there", "x.b2frame"])
        self.done("unpack", "--rm", "data.b2frame")
        full = self.run_cframe("pack", "--rm", "data", preexec_fn=limit_files)
        self.assertEqual(full.returncode, 3)
        self.assertEqual(self.names(), ["bad.b2frame", "data", "there", "x.b2frame"])

    def test_only_regular_files_go(self):
        os.symlink("data", self.directory / "link")
        self.assertIn("not a regular file", self.refused("pack", "--rm", "link"))
        self.assertEqual(self.names(), ["data", "link"])

    def test_an_input_that_changes_stays(self):
        """A writer appends until the program has ended; every byte that it has written must stay somewhere."""
        self.write("log", PLAIN * 20)
        stop = threading.Event()

        def append():
            with open(self.directory / "log", "ab", buffering=0) as file:
                while not stop.is_set():
                    file.write(b"x")
                    time.sleep(0.001)

        writer = threading.Thread(target=append)
        writer.start()
        ran = self.run_cframe("pack", "--rm", "log")
        stop.set()
        writer.join()
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn(b"has changed", ran.stderr)
        self.assertTrue((self.directory / "log").exists())


def limit_files():
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, 1 << 12))


if __name__ == "__main__":
    program_test.CFRAME = os.path.abspath(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
