"""The program cframe as its users call it: standard streams, signals, times of files, places that are also the input.

usage: program_test.py CFRAME [unittest's own arguments]
"""

import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree
import zipfile
import zlib

CFRAME = None
OLD = 978_307_200  # 2001-01-01
PLAIN = random.Random(7).randbytes(700_000) + bytes(900_000)


def npy(values):
    """A .npy file of doubles."""
    head = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }" % len(values)
    head += " " * (118 - len(head) - 1) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode() + struct.pack("<%dd" % len(values), *values)


class Program(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="cframefs-program-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.write("data", PLAIN)

    def write(self, name, content):
        (self.directory / name).write_bytes(content)
        return name

    def read(self, name):
        return (self.directory / name).read_bytes()

    def run_cframe(self, *arguments, stdin=subprocess.DEVNULL, **options):
        return subprocess.run([CFRAME, *arguments], stdin=stdin, capture_output=True, timeout=60, check=False,
                              cwd=self.directory, **options)

    def done(self, *arguments, **options):
        ran = self.run_cframe(*arguments, **options)
        self.assertEqual(ran.returncode, 0, f"{arguments}: {ran.stderr}")
        return ran.stdout

    def refused(self, *arguments, **options):
        ran = self.run_cframe(*arguments, **options)
        self.assertEqual(ran.returncode, 2, f"{arguments}: {ran.stdout[:80]} {ran.stderr}")
        return ran.stderr.decode()

    def from_file(self, name, *arguments):
        with open(self.directory / name, "rb") as file:
            return self.done(*arguments, stdin=file)

    def from_pipe(self, name, *arguments):
        return self.done(*arguments, input=self.read(name), stdin=None)

    def names(self):
        return sorted(os.listdir(self.directory))


class StandardStreams(Program):
    def test_dash_is_standard_output_of_what_makes_a_file(self):
        packed = self.done("pack", "data", "-")
        self.write("x.b2frame", packed)
        self.assertEqual(self.done("cat", "x.b2frame"), PLAIN)
        self.assertEqual(self.done("unpack", "x.b2frame", "-"), PLAIN)
        self.assertEqual(self.done("unpack", "--force", "x.b2frame", "-"), PLAIN)
        self.write("y.b2frame", self.done("convert", "--codec", "lz4", "x.b2frame", "-"))
        self.assertEqual(self.done("cat", "y.b2frame"), PLAIN)
        self.assertEqual(json.loads(self.done("info", "--json", "y.b2frame"))["codec"], "lz4")
        self.write("a.npy", npy([1.5, 2.5]))
        self.write("a.b2nd", self.done("convert", "a.npy", "-"))
        self.assertEqual(self.done("cat", "a.b2nd"), self.read("a.npy"))
        self.assertEqual(self.names(), ["a.b2nd", "a.npy", "data", "x.b2frame", "y.b2frame"])

    def test_dash_is_standard_input_of_what_reads_a_file(self):
        self.done("pack", "data", "x.b2frame")
        self.done("set-meta", "x.b2frame", "notes", "text")
        for given in (self.from_file, self.from_pipe):
            with self.subTest(given=given.__name__):
                self.assertEqual(given("x.b2frame", "cat", "-"), PLAIN)
                self.assertEqual(given("x.b2frame", "cat", "--offset", "600000", "--length", "5", "-"),
                                 PLAIN[600_000:600_005])
                self.assertEqual(given("x.b2frame", "unpack", "-", "-"), PLAIN)
                self.assertEqual(given("x.b2frame", "get-meta", "-", "notes"), b"text\n")
                info = json.loads(given("x.b2frame", "info", "--json", "-"))
                self.assertEqual((info["nbytes"], info["path"]), (len(PLAIN), "standard input"))
                self.assertEqual(info["file_bytes"], len(self.read("x.b2frame")))
                self.assertIn(b"standard input: ok", given("x.b2frame", "verify", "-"))
                given("x.b2frame", "convert", "-", "y.b2frame", "-f")
                self.assertEqual(self.done("cat", "y.b2frame"), PLAIN)
                given("x.b2frame", "unpack", "-", "out", "-f")
                self.assertEqual(self.read("out"), PLAIN)
                given("data", "pack", "-", "z.b2frame", "-f")
                self.assertEqual(self.done("cat", "z.b2frame"), PLAIN)
                given("data", "set-meta", "x.b2frame", "data", "--from", "-")
                self.assertEqual(self.done("get-meta", "x.b2frame", "data"), PLAIN)
        self.assertEqual(self.names(), ["data", "out", "x.b2frame", "y.b2frame", "z.b2frame"])

    def test_a_full_output_is_told_once(self):
        self.done("pack", "data", "x.b2frame")
        for arguments in (["--help"], ["--version"], ["info", "x.b2frame", "x.b2frame"], ["ls", ".", "."], ["verify", "x.b2frame"]):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                ran = subprocess.run([CFRAME, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False,
                                     cwd=self.directory)
                self.assertEqual(ran.returncode, 3)
                self.assertEqual(ran.stderr.count(b"standard output"), 1, ran.stderr)
                self.assertEqual(ran.stderr.count(b"\n"), 1, ran.stderr)

    def test_a_stream_that_is_damaged_or_read_already_is_seen(self):
        self.done("pack", "data", "x.b2frame")
        frame = bytearray(self.read("x.b2frame"))
        del frame[-40:]
        self.write("bad.b2frame", frame)
        with open(self.directory / "bad.b2frame", "rb") as file:
            ran = self.run_cframe("verify", "--json", "-", stdin=file)
        self.assertEqual(ran.returncode, 1)
        report = json.loads(ran.stdout)["files"][0]
        self.assertEqual((report["path"], report["verdict"]), ("standard input", "damaged"))
        self.write("behind", b"12345" + self.read("x.b2frame"))
        with open(self.directory / "behind", "rb", buffering=0) as file:
            self.assertEqual(file.read(5), b"12345")
            self.assertEqual(self.done("cat", "-", stdin=file), PLAIN)
        self.assertIn("standard input", self.run_cframe("cat", "-", input=b"no frame", stdin=None).stderr.decode())

    def test_what_is_changed_in_place_cannot_be_a_stream(self):
        self.assertIn("standard input", self.refused("compact", "-"))
        self.assertIn("standard input", self.refused("repair", "-"))
        self.assertIn("standard input", self.refused("set-meta", "-", "notes", "x"))
        os.rename(self.directory / "data", self.directory / "-")
        self.done("pack", "./-", "./x.b2frame")
        self.assertEqual(self.done("cat", "x.b2frame"), PLAIN)

    def test_a_frame_is_not_written_to_a_terminal(self):
        leader, follower = os.openpty()
        self.addCleanup(os.close, leader)
        ran = subprocess.run([CFRAME, "pack", "data", "-"], stdin=subprocess.DEVNULL, stdout=follower,
                             stderr=subprocess.PIPE, timeout=60, check=False, cwd=self.directory)
        os.close(follower)
        self.assertEqual(ran.returncode, 2)
        self.assertIn(b"terminal", ran.stderr)

    def test_json_is_one_object_on_a_line_for_each_file(self):
        self.done("pack", "data", "x.b2frame")
        self.done("pack", "data", "y.b2frame")
        for files in (["x.b2frame"], ["x.b2frame", "y.b2frame"]):
            lines = self.done("info", "--json", *files).decode().splitlines()
            self.assertEqual([json.loads(line)["path"] for line in lines], files)
        ran = self.run_cframe("info", "--json", "missing", "x.b2frame")
        self.assertEqual(ran.returncode, 2)
        first, second = map(json.loads, ran.stdout.decode().splitlines())
        self.assertIn("error", first)
        self.assertEqual(second["path"], "x.b2frame")


class Places(Program):
    def test_an_output_does_not_replace_its_input(self):
        self.done("pack", "data", "x.b2frame")
        frame = self.read("x.b2frame")
        os.symlink("data", self.directory / "link")
        os.symlink("x.b2frame", self.directory / "frame-link")
        for arguments in (["pack", "-f", "data", "data"], ["pack", "-f", "link", "data"], ["pack", "-f", "./data", "data"],
                          ["unpack", "-f", "x.b2frame", "x.b2frame"], ["unpack", "-f", "frame-link", "x.b2frame"],
                          ["convert", "-f", "x.b2frame", "x.b2frame"]):
            self.assertIn("would replace the input", self.refused(*arguments))
        with open(self.directory / "data", "rb") as file:
            self.assertIn("would replace the input", self.refused("pack", "-f", "-", "data", stdin=file))
        with open(self.directory / "x.b2frame", "rb") as file:
            self.assertIn("would replace the input", self.refused("unpack", "-f", "-", "x.b2frame", stdin=file))
        self.assertEqual((self.read("data"), self.read("x.b2frame")), (PLAIN, frame))
        self.done("unpack", "-f", "x.b2frame", "data")
        self.assertEqual(self.read("data"), PLAIN)

    def test_files_keep_their_time(self):
        os.utime(self.directory / "data", (OLD + 5, OLD))
        self.done("pack", "data", "x.b2frame")
        self.done("unpack", "x.b2frame", "back")
        self.done("convert", "x.b2frame", "y.b2frame")
        self.write("there", b"")
        self.done("unpack", "-f", "x.b2frame", "there")
        for name in ("x.b2frame", "back", "y.b2frame", "there"):
            self.assertEqual(os.stat(self.directory / name).st_mtime, OLD, name)
        self.from_pipe("data", "pack", "-", "z.b2frame")
        self.assertLess(time.time() - os.stat(self.directory / "z.b2frame").st_mtime, 1000)

    def test_a_frame_is_not_named_as_an_array(self):
        self.write("a.npy", npy([float(i) for i in range(1000)]))
        self.done("pack", "--codec", "lz4", "a.npy", "a.b2nd")
        self.done("verify", "a.b2nd")
        self.assertEqual(self.done("cat", "a.b2nd"), self.read("a.npy"))
        info = json.loads(self.done("info", "--json", "a.b2nd"))
        self.assertEqual((info["codec"], info["array"]["shape"]), ("lz4", [1000]))
        self.from_pipe("a.npy", "pack", "-", "b.b2nd")
        self.assertEqual(self.done("cat", "b.b2nd"), self.read("a.npy"))
        self.assertIn(".npy", self.refused("pack", "data", "c.b2nd"))
        self.refused("pack", "--typesize", "4", "a.npy", "d.b2nd")
        self.assertEqual(self.names(), ["a.b2nd", "a.npy", "b.b2nd", "data"])

    def test_repair_writes_what_the_others_write(self):
        self.done("pack", "--chunksize", "100000", "data", "x.b2frame")
        self.write("a.npy", npy([float(i) for i in range(1000)]))
        self.done("convert", "a.npy", "a.b2nd")
        for given in (self.from_file, self.from_pipe):
            with self.subTest(given=given.__name__):
                self.write("y.b2frame", given("x.b2frame", "repair", "-", "-"))
                self.assertEqual(self.done("cat", "y.b2frame"), PLAIN)
        broken = bytearray(self.read("x.b2frame"))
        first_chunk = int.from_bytes(broken[11:15], "big")
        broken[first_chunk : first_chunk + 32] = bytes(32)
        self.write("broken.b2frame", broken)
        ran = self.run_cframe("repair", "broken.b2frame", "-")
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b"standard output: 16 chunks, 1 lost", ran.stderr)
        self.write("y.b2frame", ran.stdout)
        self.assertEqual(self.done("cat", "y.b2frame"), bytes(100_000) + PLAIN[100_000:])
        # What is named as an array is one.
        self.done("repair", "a.b2nd", "b.b2nd")
        self.assertEqual(self.done("cat", "b.b2nd"), self.read("a.npy"))
        message = self.refused("repair", "x.b2frame", "c.b2nd")
        self.assertIn("is not an array, but a .b2nd file must be one", message)
        self.assertEqual(message.count("\n"), 1)
        self.assertIn("would replace the input", self.refused("repair", "x.b2frame", "x.b2frame"))
        self.assertEqual(self.names(), ["a.b2nd", "a.npy", "b.b2nd", "broken.b2frame", "data", "x.b2frame", "y.b2frame"])

    def test_plain_bytes_are_not_named_as_a_container(self):
        """A mount would show such a file as a damaged frame or store."""
        self.done("pack", "data", "x.b2frame")
        for name in ("y.b2frame", "y.b2f", "y.b2", "y.b2nd", "y.blp", "y.blosc", "y.b2z", "y.b2e"):
            message = self.refused("unpack", "x.b2frame", name)
            self.assertIn(name[1:], message)
            self.assertIn("cframe convert", message)
            self.assertEqual(message.count("\n"), 1)
        self.assertEqual(self.names(), ["data", "x.b2frame"])
        # What was packed is a container itself.
        self.done("pack", "x.b2frame", "z.b2frame")
        self.done("unpack", "z.b2frame", "y.b2frame")
        self.assertEqual(self.read("y.b2frame"), self.read("x.b2frame"))
        with zipfile.ZipFile(self.directory / "a.zip", "w") as file:
            file.writestr("embed.b2e", self.read("x.b2frame"))
        self.done("pack", "a.zip", "zip.b2frame")
        self.done("unpack", "zip.b2frame", "y.b2z")
        self.assertEqual(self.read("y.b2z"), self.read("a.zip"))

    def test_a_frame_is_not_named_as_a_store(self):
        self.done("pack", "data", "x.b2frame")
        for name in ("y.b2z", "y.b2e"):
            for words in (("pack", "data"), ("convert", "x.b2frame"), ("repair", "x.b2frame")):
                message = self.refused(*words, name)
                self.assertIn(name, message)
                self.assertIn("store", message)
                self.assertEqual(message.count("\n"), 1)
        self.assertEqual(self.names(), ["data", "x.b2frame"])

    def test_messages_tell_what_is_there(self):
        os.mkdir(self.directory / "directory")
        self.done("pack", "data", "directory/x.b2frame")
        for command in ("compact", "repair", "info", "cat", "get-meta"):
            message = self.refused(command, "directory")
            self.assertIn("is a directory, not a sparse frame", message)
            self.assertNotIn("No such file", message)
        self.assertIn("is a directory", self.refused("unpack", "directory", "out"))
        self.assertIn("is a directory", self.refused("convert", "directory", "out.b2frame"))
        self.write("text", b"1\n2\n3\n")
        ran = self.run_cframe("verify", "text")
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b"neither a frame nor", ran.stderr)
        self.assertEqual(ran.stdout, b"text: no frame\n")
        os.mkdir(self.directory / "empty")
        self.write("empty/text", b"")
        self.assertIn("contains no frames", self.refused("verify", "empty"))
        self.assertIn("contains no frames", self.refused("verify", "--quiet", "empty"))


class Pictures(Program):
    def setUp(self):
        super().setUp()
        self.done("pack", "--chunksize", "100000", "data", "x.b2frame")

    def pixels(self, png):
        """(width, rows of bytes) of a PNG without interlace or filters, whose check sums are right."""
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        chunks, at = {}, 8
        while at < len(png):
            length, = struct.unpack(">I", png[at : at + 4])
            kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
            self.assertEqual(struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0], zlib.crc32(kind + data))
            chunks[kind] = data
            at += 12 + length
        self.assertEqual(list(chunks), [b"IHDR", b"IDAT", b"IEND"])
        width, height, depth, color = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
        self.assertEqual((depth, color), (8, 2))
        data = zlib.decompress(chunks[b"IDAT"])
        self.assertEqual(len(data), height * (1 + 3 * width))
        rows = [data[i : i + 1 + 3 * width] for i in range(0, len(data), 1 + 3 * width)]
        self.assertEqual({row[0] for row in rows}, {0})
        return width, [row[1:] for row in rows]

    def test_a_map_as_png_and_svg_shows_the_same(self):
        self.assertEqual(self.done("map", "-o", "x.png", "x.b2frame"), b"")
        self.done("map", "-o", "x.svg", "x.b2frame")
        width, rows = self.pixels(self.read("x.png"))
        svg = xml.etree.ElementTree.fromstring(self.read("x.svg"))
        self.assertEqual((int(svg.get("width")), int(svg.get("height"))), (width, len(rows)))
        checked = 0
        for shape in svg.iter("{http://www.w3.org/2000/svg}rect"):
            if shape.get("x") is None:
                continue
            x, y = (int(shape.get(name)) for name in ("x", "y"))
            self.assertEqual(rows[y][3 * x : 3 * x + 3].hex(), shape.get("fill")[1:])
            checked += 1
        self.assertGreater(checked, 100)
        words = " ".join(text.text for text in svg.iter("{http://www.w3.org/2000/svg}text"))
        for text in ("x.b2frame", "16 chunks", "zeros", "compact would gain 0 bytes", "90 % and more"):
            self.assertIn(text, words)

    def test_a_picture_replaces_nothing_unless_told(self):
        self.write("x.png", b"other")
        self.assertIn("--force", self.refused("map", "-o", "x.png", "x.b2frame"))
        self.assertEqual(self.read("x.png"), b"other")
        self.done("map", "-f", "-o", "x.png", "x.b2frame")
        self.pixels(self.read("x.png"))

    def test_a_terminal_gets_colours_unless_told(self):
        for environment, colored in (({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False)):
            leader, follower = os.openpty()
            subprocess.run([CFRAME, "map", "x.b2frame"], stdin=subprocess.DEVNULL, stdout=follower, timeout=60, check=True,
                           cwd=self.directory, env={**os.environ, **environment})
            os.close(follower)
            self.assertEqual(b"\x1b[48;5;" in os.read(leader, 65536), colored)
            os.close(leader)
        self.assertNotIn(b"\x1b", self.done("map", "x.b2frame"))

    def test_names_that_markup_would_misread(self):
        os.rename(self.directory / "x.b2frame", self.directory / "a<b>&\x1b\xe9.b2frame")
        self.done("map", "-o", "x.svg", "a<b>&\x1b\xe9.b2frame")
        svg = xml.etree.ElementTree.fromstring(self.read("x.svg"))
        self.assertIn("a<b>&\\x1b\xe9.b2frame", " ".join(text.text for text in svg.iter() if text.text))


class Metalayers(Program):
    def setUp(self):
        super().setUp()
        self.done("pack", "data", "x.b2frame")

    def stored(self, name):
        return self.done("get-meta", "--raw", "x.b2frame", name)

    def test_values_are_msgpack_as_python_blosc2_expects(self):
        self.done("set-meta", "x.b2frame", "notes", "from the second run")
        self.assertEqual(self.stored("notes"), b"\xb3from the second run")
        self.assertEqual(self.done("get-meta", "x.b2frame", "notes"), b"from the second run\n")
        self.done("set-meta", "--type", "json", "x.b2frame", "run", '{"n": 7, "ok": [true, null, 0.5]}')
        self.assertEqual(self.stored("run"), b"\x82\xa1n\x07\xa2ok\x93\xc3\xc0\xca\x3f\x00\x00\x00")
        self.assertEqual(json.loads(self.done("get-meta", "x.b2frame", "run")), {"n": 7, "ok": [True, None, 0.5]})
        self.assertEqual(json.loads(self.done("get-meta", "--json", "x.b2frame", "run"))["encoding"], "msgpack")
        self.write("picture", b"\x00\xff\x80")
        self.done("set-meta", "x.b2frame", "picture", "--from", "picture")
        self.assertEqual(self.stored("picture"), b"\xc4\x03\x00\xff\x80")
        self.assertEqual(self.done("get-meta", "x.b2frame", "picture"), b"\x00\xff\x80")

    def test_json_and_msgpack_by_their_options(self):
        self.done("set-meta", "--json", "x.b2frame", "run", '{"n": 7}')
        self.assertEqual(self.stored("run"), b"\x81\xa1n\x07")
        self.write("packed", b"\x81\xa1n\xcd\x01\x00")
        self.done("set-meta", "--msgpack", "x.b2frame", "run", "--from", "packed")
        self.assertEqual(self.stored("run"), self.read("packed"))
        self.assertEqual(json.loads(self.done("get-meta", "x.b2frame", "run")), {"n": 256})
        self.write("cut", b"\x82\xa1n\x07")
        self.assertIn("msgpack", self.refused("set-meta", "--msgpack", "x.b2frame", "run", "--from", "cut"))
        self.refused("set-meta", "--json", "--msgpack", "x.b2frame", "run", "1")
        self.refused("set-meta", "--json", "--type", "text", "x.b2frame", "run", "1")
        self.assertEqual(self.stored("run"), self.read("packed"))

    def test_raw_contents_stay_possible(self):
        self.done("set-meta", "--type", "raw", "x.b2frame", "notes", "as it is")
        self.assertEqual(self.stored("notes"), b"as it is")
        self.assertEqual(self.done("get-meta", "x.b2frame", "notes"), b"as it is")
        self.write("content", b"\xc1" + PLAIN)
        self.done("set-meta", "--type", "raw", "x.b2frame", "big", "--from", "content")
        self.assertEqual(self.stored("big"), b"\xc1" + PLAIN)

    def test_values_that_are_not_what_they_are_said_to_be(self):
        self.assertIn("JSON", self.refused("set-meta", "--type", "json", "x.b2frame", "n", "{"))
        self.write("bytes", b"\xff\xfe")
        self.assertIn("UTF-8", self.refused("set-meta", "--type", "text", "x.b2frame", "n", "--from", "bytes"))
        self.refused("set-meta", "--type", "number", "x.b2frame", "n", "1")
        self.assertEqual(self.done("get-meta", "x.b2frame"), b"")


class Signals(Program):
    COMMANDS = (["pack", "big", "o.b2frame"], ["pack", "-f", "big", "there.b2frame"], ["unpack", "big.b2frame", "o"],
                ["convert", "-f", "big.b2frame", "there.b2frame"])

    def setUp(self):
        super().setUp()
        self.write("big", random.Random(3).randbytes(40 << 20))
        self.done("pack", "big", "big.b2frame")
        self.write("there.b2frame", b"old")
        self.before = self.names()

    def end_at_work(self, command, number):
        """Ends the program while it makes its file; returns its exit status, or None if it was quicker."""
        before = self.names()
        # The caller of the test may ignore some signals (nohup, a shell's background).
        program = subprocess.Popen([CFRAME, *command], cwd=self.directory, stderr=subprocess.DEVNULL,
                                   preexec_fn=lambda: number != signal.SIGKILL and signal.signal(number, signal.SIG_DFL))
        descriptors = f"/proc/{program.pid}/fd"
        written = 0
        while written < 1 << 20 and program.poll() is None:
            try:
                files = [os.stat(f"{descriptors}/{fd}", follow_symlinks=True) for fd in os.listdir(descriptors)
                         if int(fd) > 2 and "(deleted)" in os.readlink(f"{descriptors}/{fd}") or
                         "tmp." in os.readlink(f"{descriptors}/{fd}")]
                written = max([status.st_size for status in files], default=0)
            except (FileNotFoundError, PermissionError):
                continue
        program.send_signal(number)
        status = program.wait(60)
        if status == 0:
            return None
        self.assertEqual(self.names(), before, f"{command} after {number}")
        self.assertEqual(self.read("there.b2frame"), b"old")
        return status

    def test_nothing_is_left_by_any_signal(self):
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            for command in self.COMMANDS:
                with self.subTest(signal=number.name, command=command):
                    for attempt in range(20):
                        status = self.end_at_work(command, number)
                        if status is not None:
                            break
                        shutil.rmtree(self.directory / "o", ignore_errors=True)
                        for name in set(self.names()) - set(self.before):
                            os.unlink(self.directory / name)
                        self.write("there.b2frame", b"old")
                    self.assertEqual(status, -number, "the shell sees which signal ended it")

    def test_a_hangup_that_the_caller_ignores_ends_nothing(self):
        program = subprocess.Popen([CFRAME, "pack", "big", "o.b2frame"], cwd=self.directory,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        time.sleep(0.02)
        program.send_signal(signal.SIGHUP)
        self.assertEqual(program.wait(60), 0)

    def test_a_file_that_may_not_grow_is_an_error(self):
        import resource
        ran = self.run_cframe("pack", "big", "o.b2frame",
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
        self.assertEqual(ran.returncode, 3)
        self.assertIn(b"File too large", ran.stderr)
        self.assertEqual(self.names(), self.before)


if __name__ == "__main__":
    CFRAME = os.path.abspath(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
