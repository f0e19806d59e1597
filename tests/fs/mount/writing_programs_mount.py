"""Ordinary programs write through a mount."""

import errno
import mmap
import os
import shutil
import stat

import mounting
from mounting import output
from written_directory import SAMPLE, Writing, some_bytes


class Programs(Writing):
    def test_cp_cat_dd_and_sed(self):
        # semantics: W1, O1
        mount = self.mount()
        with open(self.plain + "/big", "wb") as file:
            file.write(some_bytes(1_500_000))
        output("cp", self.plain + "/big", mount / "big")
        self.in_both(mount, "echo one > small; cat small small >> small2; echo more >> small2; cp big copy")
        self.in_both(mount, "dd if=big of=copy bs=1000 seek=333 count=77 conv=notrunc 2>&1; sed -i s/one/ONE/ small2")
        self.in_both(mount, "head -c 70000 big > cut; truncate -s 300000 cut; truncate -s 131073 copy; : > big; mv copy big")
        self.assertIn("big.b2frame", os.listdir(self.source))
        self.check_same(mount)

    def test_tar_keeps_times_and_modes(self):
        tree = self.plain + "/tree"
        os.makedirs(tree + "/deep/er")
        for number in range(30):
            name = f"{tree}/deep/{number}"
            with open(name, "wb") as file:
                file.write(some_bytes(number * 7000, number))
            os.chmod(name, 0o400 + number)
            os.utime(name, ns=(10**18, 10**18 + number))
        os.symlink("1", tree + "/deep/link")
        mount = self.mount()
        output("sh", "-ec", f"tar cf - -C '{self.plain}' tree | tar xpf - -C '{mount.path}'")
        for number in range(30):
            shown = os.stat(mount / f"tree/deep/{number}")
            self.assertEqual((stat.S_IMODE(shown.st_mode), shown.st_mtime), (0o400 + number, 10**9))
        self.check_same(mount)

    def test_shared_maps(self):
        # semantics: W1
        mount = self.mount()
        content = bytearray(some_bytes(500_000))
        for directory in (mount.path, self.plain):
            with open(directory + "/x", "w+b") as file:
                file.write(content)
                file.flush()
                with mmap.mmap(file.fileno(), 0) as memory:
                    memory[100_000:200_000] = b"m" * 100_000
                    memory.flush()
                    memory[-5:] = b"after"
        self.check_same(mount)

    def test_fallocate_and_holes(self):
        # semantics: W1
        mount = self.mount()
        with open(self.plain + "/x", "wb") as file:
            file.write(b"x" * 600_000)
        output("cp", self.plain + "/x", mount / "x")
        self.in_both(mount, "fallocate -p -o 65536 -l 131072 x; fallocate -p -o 5 -l 10 x; fallocate -z -o 590000 -l 20000 x;"
                            "fallocate -n -l 9000000 x; fallocate -o 700000 -l 1 x")
        descriptor = os.open(mount / "x", os.O_RDONLY)
        self.assertEqual(os.lseek(descriptor, 0, os.SEEK_HOLE), 65536)
        self.assertEqual(os.lseek(descriptor, 65536, os.SEEK_DATA), 65536 + 131072)
        os.close(descriptor)
        self.check_same(mount)

    def test_writeback(self):
        mount = self.mount("writeback=on")
        for directory in (mount.path, self.plain):
            with open(directory + "/x", "wb", buffering=0) as file:
                for number in range(5000):
                    file.write(b"%d\n" % number)
                file.seek(100)
                file.write(b"here")
        self.check_same(mount)

    def test_what_the_kernel_holds_is_not_lost_when_the_daemon_is_told_to_end(self):
        # semantics: W7
        mount = self.mount("writeback=on", "commit_interval=1000")
        content = some_bytes(3_000_000)
        file = os.open(mount / "x", os.O_RDWR | os.O_CREAT)
        os.write(file, content)
        gone = os.open(mount / "gone", os.O_RDWR | os.O_CREAT)
        os.write(gone, b"without a name")
        os.unlink(mount / "gone")
        with mmap.mmap(file, 0) as memory:
            memory[1_000_000:1_000_005] = b"maps!"
            mount.close()
        for descriptor in (file, gone):
            with self.assertRaises(OSError):
                os.close(descriptor)
        wanted = content[:1_000_000] + b"maps!" + content[1_000_005:]
        self.assertEqual(output(mounting.CFRAME, "cat", self.source + "/x.b2frame"), wanted)
        self.assertEqual(os.listdir(self.source), ["x.b2frame"])

    def test_statistics_of_writing(self):
        mount = self.mount("stats=on")
        with open(mount / "x", "wb", buffering=0) as file:
            for number in range(10):
                file.write(some_bytes(65536, number))
            os.fsync(file)
        seen = mount.statistics()
        self.assertEqual((seen["writes"], seen["write_bytes"]), (10, 10 * 65536))
        self.assertEqual((seen["chunks_encoded"], seen["bytes_encoded"], seen["dirty_bytes"]), (10, 10 * 65536, 0))
        self.assertGreaterEqual(seen["commits"], 1)
        # All but the empty frame that creating it has made; and no chunk more often than once.
        self.assertAlmostEqual(seen["bytes_written"], os.path.getsize(self.source + "/x.b2frame"), delta=1000)
        manual = os.path.join(mounting.GOLDEN, "..", "..", "tools", "man", "cframefs.1.scd")
        with open(manual, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual([name for name in seen if f"*{name}*" not in text], [])

    def test_parameters_of_new_files(self):
        # semantics: O1
        mount = self.mount("codec=lz4", "clevel=9", "filter=bitshuffle", "typesize=8")
        with open(mount / "x", "wb") as file:
            file.write(some_bytes(200_000))
        info = os.getxattr(mount / "x", "user.blosc2.info").decode()
        for part in ('"codec":"lz4"', '"clevel":9', '"filters":"bitshuffle"', '"typesize":8', '"chunksize":65536', '"chunks":4'):
            self.assertIn(part, info)

    def test_extended_attributes(self):
        # semantics: X4, X10
        shutil.copy(f"{mounting.GOLDEN}/cframe/{SAMPLE}", self.source + "/x.b2frame")
        mount = self.mount()
        with open(mount / "x", "rb") as file:
            content = file.read()
        os.setxattr(mount / "x", "user.blosc2.vlmeta.note", b"first")
        os.setxattr(mount / "x", "user.blosc2.vlmeta.note", b"second" * 1000)
        os.setxattr(mount / "x", "user.mine", b"kept")
        self.assertEqual(os.getxattr(mount / "x", "user.blosc2.vlmeta.note"), b"second" * 1000)
        self.assert_refused(errno.EEXIST, os.setxattr, mount / "x", "user.blosc2.vlmeta.note", b"", os.XATTR_CREATE)
        self.assert_refused(errno.ENODATA, os.setxattr, mount / "x", "user.blosc2.meta.absent", b"1")
        self.assert_refused(errno.EPERM, os.setxattr, mount / "x", "user.blosc2.info", b"")
        os.removexattr(mount / "x", "user.blosc2.vlmeta.note")
        self.assertEqual(set(os.listxattr(mount / "x")), {"user.mine"})
        with open(mount / "x", "rb") as file:
            self.assertEqual(file.read(), content)


if __name__ == "__main__":
    mounting.main()
