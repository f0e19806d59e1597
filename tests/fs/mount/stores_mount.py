"""Stores on a mount: a zip file, an embed frame or a directory shows as a directory of its leaves, arrays as .npy."""

import ctypes
import errno
import os
import struct
import subprocess
import tempfile
import unittest
import zipfile

import array_files
import mounting

numpy = array_files.numpy

# In a frame's header.
FRAME_LENGTH = 0x10
VLMETA_FLAG = 0x44

# What a call of this kind answers for every frame: it cannot be.
NEVER = {
    "link": errno.EPERM,
    "setxattr user.blosc2.info": errno.EPERM,
    "removexattr user.blosc2.info": errno.EPERM,
    "removexattr user.blosc2.meta.b2nd": errno.EPERM,
    "exchange": errno.EINVAL,  # with another kind
    "rename": errno.EXDEV,  # of an array, to a name without .npy
}


def packed(value):
    """msgpack of what the map of an embed frame needs."""
    if isinstance(value, dict):
        return bytes([0x80 + len(value)]) + b"".join(packed(k) + packed(v) for k, v in value.items())
    if isinstance(value, str):
        return b"\xd9" + bytes([len(value.encode())]) + value.encode()
    return b"\xce" + struct.pack(">I", value)


def plain_frame(content, vlmeta=None, name=b"estore_metadata"):
    """A frame of one chunk with the fixed metalayer b2embed, and perhaps the map of what it holds, or another layer."""
    layer = packed({"version": 1})
    made = array_files.frame(1, len(content), len(content), [array_files.chunk(content, 0)], layer)
    made = made.replace(b"\xa4b2nd", b"\xa4b2em", 1)  # a name of the same length: not that of an array
    if vlmeta is None:
        return made
    # The trailer with one variable-length metalayer takes the place of the empty one.
    empty = len(b"\x94\x01\x93\xcd\x00\x07\xde\x00\x00\xdc\x00\x00") + 23
    stored = array_files.chunk(vlmeta, 0)
    map_length = 7 + 1 + len(name) + 5
    trailer = b"\x94\x01\x93\xcd" + struct.pack(">H", map_length) + b"\xde\x00\x01" + bytes([0xA0 + len(name)]) + name
    trailer += b"\xd2" + struct.pack(">i", 2 + map_length + 3) + b"\xdc\x00\x01"
    trailer += b"\xc6" + struct.pack(">I", len(stored)) + stored
    trailer += b"\xce" + struct.pack(">I", len(trailer) + 23) + b"\xd8\0" + bytes(16)
    made = bytearray(made[:-empty] + trailer)
    made[FRAME_LENGTH : FRAME_LENGTH + 8] = struct.pack(">Q", len(made))
    assert made[VLMETA_FLAG] == 0xC2
    made[VLMETA_FLAG] = 0xC3
    return bytes(made)


def embed_frame(entries):
    content, places = b"", {}
    for key, one in entries.items():
        places[key] = {"offset": len(content), "length": len(one)}
        content += one
    return plain_frame(content or b"-", packed({"embed_map": places, "current_offset": len(content)}))


@unittest.skipIf(numpy is None, "needs python3-numpy")
class Stores(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="cframefs-stores-")
        cls.cube = numpy.arange(6 * 7 * 8, dtype="<i4").reshape(6, 7, 8)
        cls.tiny = numpy.arange(12, dtype="<f8").reshape(3, 4)
        cls.text = b"plain bytes " * 1000
        cube = array_files.b2nd(cls.cube, (4, 4, 4), (2, 3, 4), "<i4")
        tiny = array_files.b2nd(cls.tiny, (2, 2), (1, 2), "<f8")
        raw = plain_frame(cls.text)
        embed = embed_frame({"/tiny": tiny, "/group/text": raw})
        cls.leaves = {"group/cube.b2nd": cube, "raw.b2f": raw}
        cls.leaves["group/__vlmeta__.b2f"] = plain_frame(b"-", packed("of the group"), b"title")
        for store_name, method in (("s.b2z", zipfile.ZIP_STORED), ("z.b2z", zipfile.ZIP_DEFLATED)):
            with zipfile.ZipFile(os.path.join(cls.directory.name, store_name), "w", method) as store:
                for name, content in cls.leaves.items():
                    store.writestr(name, content)
                store.writestr("embed.b2e", embed)
        with open(os.path.join(cls.directory.name, "e.b2e"), "wb") as file:
            file.write(embed_frame({"/group/cube": cube, "/raw": raw, "/tiny": tiny, "/group/text": raw}))
        os.makedirs(os.path.join(cls.directory.name, "d.b2d", "group"))
        for name, content in {**cls.leaves, "embed.b2e": embed}.items():
            with open(os.path.join(cls.directory.name, "d.b2d", name), "wb") as file:
                file.write(content)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def check(self, directory):
        found = sorted(
            os.path.relpath(os.path.join(where, name), directory) for where, _, names in os.walk(directory) for name in names
        )
        self.assertEqual(found, ["group/cube.npy", "group/text", "raw", "tiny.npy"])
        for name, array in {"group/cube.npy": self.cube, "tiny.npy": self.tiny}.items():
            path = os.path.join(directory, name)
            loaded = numpy.load(path, mmap_mode="r")
            self.assertTrue((loaded == array).all())
            del loaded
            with open(path, "rb") as file:
                self.assertEqual(file.read(), array_files.saved(array))
        for name in ("raw", "group/text"):
            with open(os.path.join(directory, name), "rb") as file:
                self.assertEqual(file.read(), self.text)

    def test_each_kind_is_a_directory_of_its_leaves(self):
        # semantics: G1
        with mounting.Mount(self.directory.name) as mount:
            self.assertEqual(sorted(os.listdir(mount.path)), ["d.b2d", "e.b2e", "s.b2z", "z.b2z"])
            for name in ("s.b2z", "z.b2z", "e.b2e", "d.b2d"):
                with self.subTest(name):
                    self.check(mount / name)

    def test_a_store_as_the_source(self):
        for name in ("s.b2z", "e.b2e", "d.b2d"):
            with self.subTest(name), mounting.Mount(os.path.join(self.directory.name, name)) as mount:
                self.check(mount.path)

    def test_attributes_of_leaves(self):
        with mounting.Mount(self.directory.name) as mount:
            for name in ("s.b2z/group/cube.npy", "e.b2e/tiny.npy"):
                self.assertEqual(os.listxattr(mount / name), [])
                self.assertTrue(os.getxattr(mount / name, "user.blosc2.meta.b2nd").startswith(b"\x97"))

    def test_attributes_of_groups(self):
        # semantics: G2
        with mounting.Mount(self.directory.name) as mount:
            for store in ("s.b2z", "z.b2z", "d.b2d"):
                group = mount / f"{store}/group"
                with self.subTest(store):
                    self.assertIn("user.blosc2.vlmeta.title", os.listxattr(group))
                    self.assertEqual(os.getxattr(group, "user.blosc2.vlmeta.title"), packed("of the group"))
                    self.assertNotIn("user.blosc2.vlmeta.title", os.listxattr(mount / store))
                    with self.assertRaises(OSError):
                        os.setxattr(group, "user.blosc2.vlmeta.title", b"x")

    def test_a_large_deflated_frame_is_read_from_anywhere(self):
        # semantics: G3
        items = (numpy.arange(3_000_000, dtype="<u8") * 2654435761 % 1000003).reshape(300, 10000)
        with tempfile.TemporaryDirectory() as directory:
            with zipfile.ZipFile(os.path.join(directory, "s.b2z"), "w", zipfile.ZIP_DEFLATED) as store:
                store.writestr("a.b2nd", array_files.b2nd(items, (100, 5000), (50, 500), "<u8"))
                store.writestr("embed.b2e", embed_frame({}))
            with mounting.Mount(directory) as mount:
                shown = numpy.load(mount / "s.b2z/a.npy", mmap_mode="r")
                for row in (299, 0, 150, 7, 250):
                    self.assertTrue((shown[row] == items[row]).all(), row)
                self.assertTrue((shown == items).all())
                del shown

    def test_a_deflated_member_with_a_wrong_checksum_is_eio(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "s.b2z")
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as store:
                store.writestr("a.b2f", plain_frame(self.text))
                store.writestr("b.b2f", plain_frame(self.text))
                store.writestr("embed.b2e", embed_frame({}))
                header = store.getinfo("a.b2f").header_offset
            with open(path, "r+b") as file:
                content = bytearray(file.read())
                at = content.rindex(b"PK\x01\x02", 0, content.index(b"a.b2f", header + 100))
                content[at + 16] ^= 0xFF  # the checksum in the directory
                file.seek(0)
                file.write(content)
            with mounting.Mount(directory) as mount:
                with self.assertRaises(OSError) as failed:
                    with open(mount / "s.b2z/a", "rb") as file:
                        file.read()
                self.assertEqual(failed.exception.errno, errno.EIO)
                with open(mount / "s.b2z/b", "rb") as file:
                    self.assertEqual(file.read(), self.text)

    def changes(self, at, leaf, group):
        """Each call that changes something: a leaf, a group, or what lies in one."""
        libc = ctypes.CDLL(None, use_errno=True)

        def call(number):
            if number != 0:
                raise OSError(ctypes.get_errno(), "renameat2")

        for path in (leaf, group):
            # Those of the file below, of metalayers, and of all kinds.
            for name in ("user.mine", "user.blosc2.vlmeta.title", "user.blosc2.vlmeta.new", "user.blosc2.meta.b2nd",
                         "user.blosc2.info", "trusted.mine", "security.mine"):
                for flags in (0, os.XATTR_CREATE, os.XATTR_REPLACE):
                    yield f"setxattr {name} {flags}", lambda p=path, n=name, f=flags: os.setxattr(p, n, b"x", f)
                yield f"removexattr {name}", lambda p=path, n=name: os.removexattr(p, n)
            yield "chmod", lambda p=path: os.chmod(p, 0o600)
            yield "chown", lambda p=path: os.chown(p, 1, 1)
            yield "utime", lambda p=path: os.utime(p, (5, 5))
            yield "rename", lambda p=path: os.rename(p, at + "/other")
            yield "exchange", lambda p=path: call(libc.renameat2(-100, p.encode(), -100, (at + "/group/text").encode(), 2))
            yield "symlink", lambda p=path: os.symlink("x", os.path.dirname(p) + "/new")
        yield "unlink", lambda: os.unlink(leaf)
        yield "rmdir", lambda: os.rmdir(group)
        yield "truncate", lambda: os.truncate(leaf, 1)
        yield "link", lambda: os.link(leaf, at + "/new")
        for mode in ("r+b", "wb", "ab"):
            yield f"open {mode}", lambda m=mode: open(leaf, m)
        yield "create", lambda: open(group + "/new", "wb")
        yield "mkdir", lambda: os.mkdir(group + "/new")
        yield "mkfifo", lambda: os.mkfifo(group + "/new")

    def state(self):
        """Of all that lies in the source: bytes, mode, owner, times, attributes."""
        found = {}
        for where, directories, names in os.walk(self.directory.name):
            for path in [os.path.join(where, name) for name in names + directories] + [where]:
                status = os.lstat(path)
                with open(path, "rb") if os.path.isfile(path) else open(os.devnull, "rb") as file:
                    content = file.read()
                found[path] = (content, status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, status.st_ctime_ns,
                               {name: os.getxattr(path, name) for name in os.listxattr(path)})
        return found

    def test_nothing_in_a_store_changes(self):
        """What is refused is refused for the store (EROFS), whatever the name of the attribute."""
        # semantics: G4
        before = self.state()
        with mounting.Mount(self.directory.name) as mount:
            for name in ("s.b2z", "z.b2z", "e.b2e", "d.b2d"):
                leaves = ("group/cube.npy", "raw") if name == "e.b2e" else ("group/cube.npy", "raw", "tiny.npy")
                for leaf in leaves:
                    for what, change in self.changes(mount / name, mount / f"{name}/{leaf}", mount / f"{name}/group"):
                        with self.subTest(store=name, leaf=leaf, what=what), self.assertRaises(OSError) as refused:
                            change()
                        never = next((NEVER[key] for key in NEVER if what.startswith(key)), errno.EROFS)
                        self.assertIn(refused.exception.errno, (errno.EROFS, never), f"{name}/{leaf} {what}")
                self.check(mount / name)
        self.assertEqual(self.state(), before)

    def test_copied_whole_with_tar(self):
        with mounting.Mount(self.directory.name) as mount, tempfile.TemporaryDirectory() as target:
            archive = subprocess.run(["tar", "-C", mount.path, "-cf", "-", "s.b2z"], check=True, capture_output=True)
            subprocess.run(["tar", "-C", target, "-xf", "-"], check=True, input=archive.stdout)
            self.check(os.path.join(target, "s.b2z"))

    def test_a_store_replaced_behind_the_mount(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "s.b2z")

            def store(count):
                array = numpy.arange(count, dtype="<i8")
                with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_STORED) as file:
                    file.writestr("a.b2nd", array_files.b2nd(array, (3,), (2,), "<i8"))
                    file.writestr("embed.b2e", embed_frame({}))
                os.rename(path + ".new", path)
                return array

            first = store(10)
            with mounting.Mount(directory) as mount:
                self.assertEqual(numpy.load(mount / "s.b2z/a.npy").tobytes(), first.tobytes())
                second = store(25)

                def is_new():
                    try:
                        return numpy.load(mount / "s.b2z/a.npy").tobytes() == second.tobytes()
                    except (OSError, ValueError):
                        return False

                mounting.wait_for(is_new, what="the new store")


if __name__ == "__main__":
    mounting.main()
