"""Extended attributes of files and directories of a mount, by what the tests of filesystems ask: xfstests generic/020, 062,
097, 337, 377, 523, 533 and 618, which failed for `user.blosc2.info` was listed. The steps are those tests', in our words."""

import ctypes
import errno
import os
import tempfile
import unittest

import mounting
from mounting import Mount

libc = ctypes.CDLL(None, use_errno=True)


class Attributes(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-attributes-", dir="/var/tmp")
        self.addCleanup(work.cleanup)
        self.source = work.name
        try:
            os.setxattr(self.source, "user.x", b"1")
            os.removexattr(self.source, "user.x")
        except OSError:
            self.skipTest("no extended attributes on this filesystem")
        self.mount = Mount(self.source)
        self.addCleanup(lambda: self.mount.close())
        with open(self.source + "/plain.txt", "wb") as file:
            file.write(b"plain")
        with open(self.mount / "frame", "wb") as file:
            file.write(b"of a frame")
        os.mkdir(self.mount / "directory")
        self.paths = [self.mount / name for name in ("plain.txt", "frame", "directory")]

    def remount(self):
        self.mount.close()
        self.mount = Mount(self.source, mountpoint=None)
        self.paths = [self.mount / name for name in ("plain.txt", "frame", "directory")]

    def all_of(self, path):
        return {name: os.getxattr(path, name) for name in os.listxattr(path)}

    def fails(self, number, call, *arguments):
        with self.assertRaises(OSError) as raised:
            call(*arguments)
        self.assertEqual(raised.exception.errno, number)

    def names(self):
        return ["user"] + (["trusted"] if os.geteuid() == 0 else [])

    def test_set_read_list_and_removed(self):
        """generic/097 and 533; 020 as far as one attribute goes."""
        # semantics: X1
        for path in self.paths:
            for space in self.names():
                with self.subTest(path=path, space=space):
                    one, other = f"{space}.noise", f"{space}.colour"
                    self.assertEqual(self.all_of(path), {})
                    self.fails(errno.ENODATA, os.getxattr, path, one)
                    self.fails(errno.ENODATA, os.removexattr, path, one)
                    os.setxattr(path, one, b"woof")
                    os.setxattr(path, other, b"")
                    self.assertEqual(self.all_of(path), {one: b"woof", other: b""})
                    self.fails(errno.EEXIST, os.setxattr, path, one, b"x", os.XATTR_CREATE)
                    self.fails(errno.ENODATA, os.setxattr, path, f"{space}.none", b"x", os.XATTR_REPLACE)
                    os.setxattr(path, one, b"a longer value\0\xff")
                    os.setxattr(path, other, b"marone", os.XATTR_REPLACE)
                    self.assertEqual(self.all_of(path), {one: b"a longer value\0\xff", other: b"marone"})
                    os.removexattr(path, one)
                    self.assertEqual(self.all_of(path), {other: b"marone"})
                    self.fails(errno.ENODATA, os.getxattr, path, one)
                    os.removexattr(path, other)
        self.fails(errno.ENOENT, os.setxattr, self.mount / "missing", "user.a", b"x")
        self.fails(errno.EOPNOTSUPP, os.setxattr, self.paths[0], "nothing.a", b"x")

    def test_a_label_of_a_kernel_without_selinux(self):
        # semantics: X13
        if os.path.exists("/sys/fs/selinux/enforce") or os.geteuid() != 0:
            self.skipTest("the kernel answers itself, or labels cannot be set")
        for path in self.paths:
            with self.subTest(path=path):
                self.fails(errno.EOPNOTSUPP, os.getxattr, path, "security.selinux")
                os.setxattr(path, "security.selinux", b"some:label")
                self.assertEqual(os.getxattr(path, "security.selinux"), b"some:label")
                os.removexattr(path, "security.selinux")
                self.fails(errno.EOPNOTSUPP, os.getxattr, path, "security.selinux")

    def test_as_many_and_as_long_as_the_source_takes(self):
        """generic/020: the bounds are those of the source, and what it has taken is listed and read."""
        # semantics: X1
        for path in self.paths:
            expected = {}
            try:
                for number in range(1000):
                    os.setxattr(path, f"user.attribute_{number}", b"value_%d" % number)
                    expected[f"user.attribute_{number}"] = b"value_%d" % number
            except OSError as error:
                self.assertEqual(error.errno, errno.ENOSPC)
            self.assertGreater(len(expected), 20)
            self.assertEqual(self.all_of(path), expected)
            for name in list(expected)[::2]:
                os.removexattr(path, name)
                del expected[name]
            self.assertEqual(self.all_of(path), expected)
            for name in expected:
                os.removexattr(path, name)
            longest = "user." + "n" * 250
            os.setxattr(path, longest, b"x" * 2000)
            self.assertEqual(self.all_of(path), {longest: b"x" * 2000})
            os.removexattr(path, longest)
            self.fails(errno.ERANGE, os.setxattr, path, longest + "n", b"x")
            self.fails(errno.E2BIG, os.setxattr, path, "user.a", bytes(65537))
            self.assertEqual(self.all_of(path), {})

    def test_a_dump_of_a_tree_is_restored(self):
        """generic/062: all attributes of all files are read, removed, and set again from what was read."""
        os.makedirs(self.mount / "directory/in/deep")
        os.symlink("plain.txt", self.mount / "link")
        os.mkfifo(self.mount / "pipe")
        with open(self.mount / "directory/in/frame", "wb") as file:
            file.write(b"text")
        tree = self.paths + [self.mount / name for name in ("directory/in", "directory/in/deep", "directory/in/frame")]
        for number, path in enumerate(tree):
            for space in self.names():
                os.setxattr(path, f"{space}.name", path.encode())
                os.setxattr(path, f"{space}.name2", b"\x7f\0\xff" * number)
        for name in ("link", "pipe"):
            with self.assertRaises(OSError):
                os.setxattr(self.mount / name, "user.a", b"x", follow_symlinks=False)
            self.assertEqual(os.listxattr(self.mount / name, follow_symlinks=False), [])
        dump = {path: self.all_of(path) for path in tree}
        for path, attributes in dump.items():
            self.assertEqual(len(attributes), 2 * len(self.names()))
            for name in attributes:
                os.removexattr(path, name)
            self.assertEqual(self.all_of(path), {})
            for name, value in attributes.items():
                os.setxattr(path, name, value)
        self.assertEqual({path: self.all_of(path) for path in tree}, dump)

    def test_names_that_hash_alike_are_all_listed(self):
        """generic/337: each of many names that are alike, and each after the others have been replaced."""
        names = [f"user.{letter * length}" for letter in "ab" for length in range(1, 9)] + ["user.foo", "user.J3__T_Km3dVsW_"]
        for path in self.paths:
            for name in names:
                os.setxattr(path, name, name.encode())
            self.assertEqual(sorted(os.listxattr(path)), sorted(names))
            for name in names:
                os.setxattr(path, name, name[::-1].encode(), os.XATTR_REPLACE)
            self.assertEqual(self.all_of(path), {name: name[::-1].encode() for name in names})

    def test_lists_and_values_into_buffers_of_any_size(self):
        """generic/377: size 0 asks for the length, what is too small is ERANGE, what is larger is not filled."""
        for path in self.paths:
            os.setxattr(path, "user.one", b"value")
            os.setxattr(path, "user.three", b"")
            length = len("user.one") + len("user.three") + 2
            for call, whole in ((lambda room, size, p=path: libc.listxattr(p.encode(), room, size), length),
                                (lambda room, size, p=path: libc.getxattr(p.encode(), b"user.one", room, size), 5)):
                self.assertEqual(call(None, 0), whole)
                for size in (1, whole - 1):
                    self.assertEqual((call(ctypes.create_string_buffer(100), size), ctypes.get_errno()), (-1, errno.ERANGE))
                for size in (whole, whole + 1, 100):
                    room = ctypes.create_string_buffer(b"\xee" * 100, 100)
                    self.assertEqual(call(room, size), whole)
                    self.assertEqual(room.raw[whole:], b"\xee" * (100 - whole))

    def test_names_may_have_a_slash(self):
        """generic/523"""
        for path in self.paths:
            os.setxattr(path, "user.boo/hoo", b"x")
            os.setxattr(path, "user.boo/..", b"y")
            self.assertEqual(self.all_of(path), {"user.boo/hoo": b"x", "user.boo/..": b"y"})
            os.removexattr(path, "user.boo/hoo")
            self.assertEqual(os.listxattr(path), ["user.boo/.."])

    def test_what_is_added_beside_what_was_there_stays_after_a_remount(self):
        """generic/618: small ones until the inode is full, then others in the place of one that went."""
        for path in self.paths:
            os.setxattr(path, "user.0", b"1" * 5)
            for number in range(1, 7):
                os.setxattr(path, f"user.{number}", b"2" * 20)
        self.remount()
        for path in self.paths:
            os.removexattr(path, "user.0")
            os.setxattr(path, "user.long", b"3" * 800)
            os.setxattr(path, "user.0", b"")
        expected = {f"user.{number}": b"2" * 20 for number in range(1, 7)} | {"user.long": b"3" * 800, "user.0": b""}
        self.remount()
        for path in self.paths:
            self.assertEqual(self.all_of(path), expected)


if __name__ == "__main__":
    mounting.main()
