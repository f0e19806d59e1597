"""cframe info, cat, verify and unpack of what lies on servers: as of the same file on a disk."""

import io
import json
import os
import urllib.parse
import zipfile

import mounting
from mounting import output
# First of the two: it says where the other one is.
from remote_sources import MIB, Served, noise, whole
from object_service import most_at_once
from stores_mount import embed_frame


class Tools(Served):
    def setUp(self):
        super().setUp()
        self.content = b"".join(b"line %d\n" % number for number in range(100_000)) + noise(10, 5 * MIB)
        self.frame = self.packed(self.content, "--codec", "lz4", "--chunksize", "256K")
        self.service.put("d/x.b2frame", self.frame)
        self.local = self.work + "/x.b2frame"
        with open(self.local, "wb") as file:
            file.write(self.frame)
        self.service.put("d/plain", b"no frame at all")

    def test_cat(self):
        for address in self.addresses("d/x.b2frame"):
            with self.subTest(address):
                self.assertTrue(self.done("cat", address) == self.content)
                at = 3 * MIB
                self.assertEqual(self.done("cat", "--offset", str(at), "--length", "100", address), self.content[at : at + 100])

    def test_a_part_is_not_the_whole(self):
        self.done("cat", "--offset", str(2 * MIB), "--length", "100", self.web("d/x.b2frame"))
        self.assertLess(sum(request.sent for request in self.service.log), len(self.frame) // 2)

    def test_info(self):
        here = json.loads(output(mounting.CFRAME, "info", "--json", self.local))
        for address in self.addresses("d/x.b2frame"):
            with self.subTest(address):
                there = json.loads(self.done("info", "--json", address))
                self.assertEqual(there["path"], address)
                self.assertEqual({**there, "path": None}, {**here, "path": None})
                self.assertIn(b"lz4", self.done("info", address))

    def test_a_sparse_frame(self):
        content = self.content[: MIB + 1000]
        self.put_sparse_frame("d/s.b2frame", content, MIB // 4)
        for address in (*self.addresses("d/s.b2frame/"), self.bucket("d/s.b2frame")):
            with self.subTest(address):
                self.assertEqual(json.loads(self.done("info", "--json", address))["nbytes"], len(content))
                self.assertTrue(self.done("cat", address) == content)

    def test_verify(self):
        damaged = bytearray(self.frame)
        damaged[len(damaged) // 2 : len(damaged) // 2 + 5000] = os.urandom(5000)
        self.service.put("d/damaged.b2frame", bytes(damaged))
        for good, bad in zip(self.addresses("d/x.b2frame"), self.addresses("d/damaged.b2frame")):
            with self.subTest(good):
                self.done("verify", good)
                ran = self.cframe("verify", bad)
                self.assertEqual(ran.returncode, 1, ran.stderr)
                self.assertIn(b"damaged.b2frame", ran.stdout + ran.stderr)

    def test_unpack(self):
        for number, address in enumerate(self.addresses("d/x.b2frame")):
            with self.subTest(address):
                target = f"{self.work}/unpacked-{number}"
                self.done("unpack", address, target)
                self.assertTrue(whole(target) == self.content)
                # Its owner may write to it, whatever the mode of the object.
                self.assertEqual(os.stat(target).st_mode & 0o700, 0o600)
                # Nothing is replaced.
                self.assertEqual(self.cframe("unpack", address, target).returncode, 2)

    def test_what_cannot_be_read(self):
        for command in ("cat", "info", "verify"):
            here = self.cframe(command, self.work + "/absent.b2frame")
            for address in self.addresses("d/absent.b2frame"):
                ran = self.cframe(command, address)
                self.assertEqual(ran.returncode, here.returncode, (command, address, ran.stderr))
                self.assertIn(b"No such file or directory", ran.stdout + ran.stderr)
                self.assertIn(b"d/absent.b2frame", ran.stdout + ran.stderr)
            ran = self.cframe(command, self.bucket("d/x.b2frame"), AWS_SECRET_ACCESS_KEY="wrong-secret")
            self.assertIn(ran.returncode, (2, 3), ran.stderr)
            self.assertIn(b"SignatureDoesNotMatch", ran.stdout + ran.stderr)
            self.assertNotIn(b"wrong-secret", ran.stdout + ran.stderr)
            with open(self.work + "/plain", "wb") as file:
                file.write(b"no frame at all")
            here = self.cframe(command, self.work + "/plain")
            there = self.cframe(command, self.web("d/plain"))
            self.assertEqual(there.returncode, here.returncode)
            self.assertEqual((there.stdout + there.stderr).replace(self.web("d/").encode(), b""),
                             (here.stdout + here.stderr).replace(self.work.encode() + b"/", b""))

    def test_nothing_on_a_server_is_changed(self):
        self.done("info", self.web("d/x.b2frame"))
        for command in (["compact"], ["repair"], ["seal"], ["set-meta", "note", "text"]):
            for address in self.addresses("d/x.b2frame"):
                with self.subTest(command=command[0], address=address):
                    ran = self.cframe(command[0], address, *command[1:])
                    self.assertNotEqual(ran.returncode, 0)
                    self.assertTrue(ran.stderr)
        self.assertEqual({request.method for request in self.service.log} - {"GET", "HEAD"}, set())
        self.assertEqual([name for name in os.listdir(self.work) if name.startswith(("http", "s3"))], [])

    def test_an_object_that_changes_while_it_is_read(self):
        other = self.packed(noise(11, len(self.content)), "--codec", "lz4", "--chunksize", "256K")
        self.done("cat", self.web("d/x.b2frame"))
        for address in self.addresses("d/x.b2frame"):
            for skip in range(2, 6):
                with self.subTest(address, skip=skip):
                    self.service.put("d/x.b2frame", self.frame)
                    self.service.faults.clear()
                    self.service.faults.add("call", "d/x.b2frame", skip=skip, count=1,
                                            function=lambda _: self.service.put("d/x.b2frame", other))
                    ran = self.cframe("cat", address)
                    self.assertTrue(self.content.startswith(ran.stdout), "other bytes")
                    if ran.returncode == 0:
                        self.assertTrue(ran.stdout == self.content)
                    else:
                        self.assertTrue(ran.stderr)

    def test_a_server_that_fails_for_a_while(self):
        for kind, how in (("status", {"code": 503, "count": 2}), ("close", {"count": 1}), ("cut", {"after": 100, "count": 1})):
            for address in self.addresses("d/x.b2frame"):
                with self.subTest(address, kind=kind):
                    self.service.faults.clear()
                    self.service.faults.add(kind, "d/x.b2frame", **how)
                    self.assertTrue(self.done("cat", address) == self.content)

    def test_without_credentials(self):
        self.credentials = {}
        ran = self.cframe("cat", self.bucket("d/x.b2frame"))
        self.assertIn(ran.returncode, (2, 3), ran.stderr)
        self.assertIn(b"redentials", ran.stderr)
        self.assertEqual(self.service.log, [])

    def test_a_path_that_looks_like_an_address(self):
        os.makedirs(self.work + "/http:/host")
        with open(self.work + "/http:/host/x.b2frame", "wb") as file:
            file.write(self.frame)
        self.assertTrue(self.done("cat", "./http://host/x.b2frame") == self.content)


class Directories(Served):
    """Directories and stores on servers, beside the same on a disk."""

    def setUp(self):
        super().setUp()
        self.disk = self.work + "/d"
        frames = {name: self.packed(noise(seed, 300_000), "--codec", "lz4", "--chunksize", "64K")
                  for seed, name in enumerate(("a.b2frame", "sub/b \u00e9+c%20&#?.b2frame", "sub/deep/c.b2frame"))}
        store = io.BytesIO()
        with zipfile.ZipFile(store, "w") as archive:
            archive.writestr("group/leaf.b2f", frames["a.b2frame"])
            archive.writestr("embed.b2e", embed_frame({}))
        frames.update({"e.b2d/embed.b2e": embed_frame({}), "e.b2d/in/leaf.b2f": frames["a.b2frame"]})
        frames.update({"z.b2z": store.getvalue(), "plain": b"no frame", "sub/text.txt": b"neither"})
        for name, content in frames.items():
            self.put(name, content)
        sparse = noise(7, 200_000)
        self.put_sparse_frame("d/s.b2frame", sparse, 65536)
        os.rename(self.work + "/sparse", self.disk + "/s.b2frame")

    def put(self, name, content):
        self.service.put("d/" + name, content)
        os.makedirs(os.path.dirname(f"{self.disk}/{name}"), exist_ok=True)
        with open(f"{self.disk}/{name}", "wb") as file:
            file.write(content)

    def same_text(self, address, text):
        """What cframe says of a directory on a server, as it would say it of the one on the disk."""
        if address.startswith("http"):
            text = urllib.parse.unquote(text)
        return text.replace(address, self.disk + "/").replace(address.rstrip("/"), self.disk)

    def test_verify(self):
        here = output(mounting.CFRAME, "verify", "-r", self.disk + "/").decode()
        self.assertIn("7 frames checked: 7 ok", here)
        for address in self.addresses("d/"):
            with self.subTest(address):
                self.assertEqual(self.same_text(address, self.done("verify", "-r", address).decode()), here)
                self.assertEqual(self.same_text(address, self.done("verify", address).decode()), here)

    def test_verify_names_what_is_damaged(self):
        damaged = bytearray(self.packed(noise(9, 300_000), "--codec", "lz4"))
        damaged[150_000] ^= 1
        self.put("sub/deep/bad.b2frame", bytes(damaged))
        for address in self.addresses("d/"):
            ran = self.cframe("verify", address)
            self.assertEqual(ran.returncode, 1)
            self.assertIn("sub/deep/bad.b2frame: damaged", ran.stdout.decode())
            self.assertIn("8 frames checked: 7 ok, 1 faulty", ran.stdout.decode())

    def test_ls(self):
        for options in (["-r"], ["--tree"], []):
            here = output(mounting.CFRAME, "ls", *options, self.disk + "/").decode()
            for address in self.addresses("d/"):
                with self.subTest(address, options=options):
                    there = self.same_text(address, self.done("ls", *options, address).decode())
                    # The size of a sparse frame is that of its files; a server is not asked for it.
                    self.assertEqual([line for line in there.splitlines() if "s.b2frame" not in line][:-1],
                                     [line for line in here.splitlines() if "s.b2frame" not in line][:-1])
                    self.assertEqual(there.count("s.b2frame"), here.count("s.b2frame"))

    def test_unpack(self):
        output(mounting.CFRAME, "unpack", "-r", "-q", "--to", self.work + "/here", self.disk)
        for number, address in enumerate((*self.addresses("d/"), self.bucket("d"))):
            with self.subTest(address):
                target = f"{self.work}/there-{number}"
                self.done("unpack", "-r", "-q", "--to", target, address)
                output("diff", "-r", self.work + "/here", target)

    def test_members(self):
        plain = output(mounting.CFRAME, "cat", self.disk + "/a.b2frame")
        for address in self.addresses("d/"):
            with self.subTest(address):
                self.assertTrue(self.done("cat", address + "z.b2z/group/leaf.b2f") == plain)
                self.assertIn(b"leaf.b2f: ok", self.done("verify", address + "z.b2z"))
                self.assertIn(b"leaf.b2f", self.done("ls", address + "z.b2z"))
                self.assertTrue(self.done("cat", address + "e.b2d/in/leaf.b2f") == plain)
        for command in ("verify", "ls"):
            here = output(mounting.CFRAME, command, self.disk + "/e.b2d").decode()
            for address in (self.bucket("d/e.b2d"), *self.addresses("d/e.b2d/")):
                there = self.done(command, address).decode().replace(address.rstrip("/"), self.disk + "/e.b2d")
                self.assertEqual(there, here)

    def test_a_directory_is_no_frame(self):
        for address in self.addresses("d/"):
            for command in ("info", "cat"):
                here = self.cframe(command, self.disk + "/")
                there = self.cframe(command, address)
                self.assertEqual(there.returncode, here.returncode)
                self.assertEqual(self.same_text(address, there.stderr.decode()), here.stderr.decode())

    def test_a_walk_lists_a_directory_once(self):
        frame = self.packed(b"x" * 1000)
        for number in range(100):
            self.service.put(f"many/{number}.b2frame", frame)
        self.service.latency = 0.05
        self.service.clear_log()
        self.done("verify", "-q", self.bucket("many/"))
        # One request for each short object, and those for the directory.
        self.assertLess(len(self.service.log), 110)
        self.assertGreater(most_at_once(self.service.log), 16)

    def test_passwords_are_not_printed(self):
        address = self.web("d/").replace("http://", "http://user:geheim@")
        for number, words in enumerate((["verify"], ["verify", "--json"], ["ls", "-r"], ["ls", "--json"], ["ls", "--tree"],
                                        ["unpack", "-r", "--to", self.work + "/t1"],
                                        ["unpack", "-r", "--json", "--to", self.work + "/t2"])):
            for place in (address, address + "?key=geheim"):
                with self.subTest(words, place=place):
                    ran = self.cframe(*words, place)
                    self.assertIn(b"a.b2frame" if words[0] != "unpack" else b"unpacked" if number == 5 else b"t2", ran.stdout)
                    self.assertNotIn(b"geheim", ran.stdout + ran.stderr)

    def test_nothing_is_changed(self):
        for command in ("compact", "seal"):
            for address in self.addresses("d/"):
                self.assertNotEqual(self.cframe(command, "-r", address).returncode, 0)
        self.assertEqual({request.method for request in self.service.log} - {"GET", "HEAD"}, set())


if __name__ == "__main__":
    mounting.main()
