"""What programs do that write: each thing is done in a mount and to a plain file, and both are compared, also after the
source has been mounted again."""

import ctypes
import errno
import fcntl
import filecmp
import mmap
import os
import random
import shutil
import stat
import subprocess
import tempfile
import threading
import time
import unittest

import mounting
from mounting import Mount, output, run, wait_for
from sparse_frames import make_sparse_frame

SAMPLE = "matrix/000-blosclz-c1-none-t3.b2frame"
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
LIBC = ctypes.CDLL(None, use_errno=True)


def rename2(one, other, flags):
    if LIBC.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), flags) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def some_bytes(count, seed=1):
    chance = random.Random(seed)
    return b"".join(chance.choice((bytes(1000), chance.randbytes(1000), b"text, " * 166)) for _ in range(count // 1000 + 1))[:count]


class Writing(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-writing-")
        self.addCleanup(work.cleanup)
        self.source = work.name + "/source"
        self.plain = work.name + "/plain"
        for directory in (self.source, self.plain):
            os.mkdir(directory)
        self.options = ["chunksize=64K"]

    def mount(self, *options):
        mount = Mount(self.source, *self.options, *options)
        self.addCleanup(lambda: mount.log is not None and mount.close())
        return mount

    def in_both(self, mount, command):
        for directory in (mount.path, self.plain):
            output("sh", "-ec", f"cd '{directory}'; {command}")

    def check_same(self, mount):
        """Now, after another mount, and for `cframe verify`."""
        output("diff", "-r", mount.path, self.plain)
        said = mount.lines()
        mount.close()
        self.assertEqual(said, [])
        with Mount(self.source, "ro") as again:
            output("diff", "-r", again.path, self.plain)
        output(mounting.CFRAME, "verify", self.source)

    def assert_refused(self, why, call, *arguments):
        with self.assertRaises(OSError) as refused:
            call(*arguments)
        self.assertEqual(refused.exception.errno, why)


class Programs(Writing):
    def test_cp_cat_dd_and_sed(self):
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
        mount = self.mount("codec=lz4", "clevel=9", "filter=bitshuffle", "typesize=8")
        with open(mount / "x", "wb") as file:
            file.write(some_bytes(200_000))
        info = os.getxattr(mount / "x", "user.blosc2.info").decode()
        for part in ('"codec":"lz4"', '"clevel":9', '"filters":"bitshuffle"', '"typesize":8', '"chunksize":65536', '"chunks":4'):
            self.assertIn(part, info)

    def test_extended_attributes(self):
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


class Copies(Writing):
    """copy_file_range: chunks go over as they are where they can; programs see nothing but a copy."""

    CHUNK = 65536

    def setUp(self):
        super().setUp()
        self.options = ["chunksize=64K", "stats=on"]
        self.content = some_bytes(21 * self.CHUNK)[: 20 * self.CHUNK] + b"end" * 259

    def filled(self, mount, name, content):
        for directory in (mount.path, self.plain):
            with open(f"{directory}/{name}", "wb") as file:
                file.write(content)

    def copy(self, mount, one, other, count, from_at, to_at):
        """The same in both directories; how many chunks went over as they are, and were decoded."""
        before = mount.statistics()
        for directory in (mount.path, self.plain):
            with open(f"{directory}/{one}", "rb") as source, open(f"{directory}/{other}", "r+b") as target:
                left, at, to = count, from_at, to_at
                while left > 0:
                    done = os.copy_file_range(source.fileno(), target.fileno(), left, at, to)
                    if done == 0:
                        break
                    left, at, to = left - done, at + done, to + done
        after = mount.statistics()
        return tuple(after[name] - before[name] for name in ("chunks_copied", "blocks_decoded"))

    def test_cp_decodes_nothing(self):
        mount = self.mount()
        self.filled(mount, "big", self.content)
        before = mount.statistics()
        # Of what looks sparse, as all that is compressed does, cp itself reads and writes.
        self.in_both(mount, "cp --reflink=auto --sparse=never big copy")
        after = mount.statistics()
        self.assertEqual(after["chunks_copied"] - before["chunks_copied"], 21)
        self.assertEqual(after["blocks_decoded"], before["blocks_decoded"])
        self.in_both(mount, "cp --reflink=auto big second; cp big third; cat big > fourth")
        self.check_same(mount)

    def test_ranges(self):
        mount = self.mount()
        self.filled(mount, "a", self.content)
        self.filled(mount, "b", some_bytes(9 * self.CHUNK, 2))
        chunk = self.CHUNK
        # What is read back before is in the kernel's pages, which must go.
        with open(mount / "b", "rb") as file:
            file.read()
        self.assertEqual(self.copy(mount, "a", "b", 6 * chunk, 2 * chunk, chunk), (6, 0))
        self.assertEqual(self.copy(mount, "a", "b", len(self.content), 0, 4 * chunk), (21, 0))
        self.assertEqual(self.copy(mount, "a", "a", 8 * chunk, 0, 10 * chunk), (8, 0))
        self.assertEqual(self.copy(mount, "a", "b", 5 * chunk + 99, 0, 30 * chunk)[0], 5)
        self.assertEqual(self.copy(mount, "a", "b", 6 * chunk, 5, chunk)[0], 0)
        self.assertEqual(self.copy(mount, "a", "b", 6 * chunk, chunk, 5)[0], 0)
        self.assertEqual(self.copy(mount, "b", "a", 10_000, 60_000, 100)[0], 0)
        self.check_same(mount)

    def test_what_is_dirty_on_either_side(self):
        mount = self.mount("commit_interval=1000")
        self.filled(mount, "a", self.content)
        self.filled(mount, "b", some_bytes(12 * self.CHUNK, 2))
        for directory in (mount.path, self.plain):
            with open(directory + "/a", "r+b") as one, open(directory + "/b", "r+b") as other:
                one.seek(70_000)
                one.write(b"dirty")
                one.flush()
                other.seek(3)
                other.write(b"overwritten, and then " * 10_000)
                other.flush()
                with mmap.mmap(other.fileno(), 0) as memory, mmap.mmap(one.fileno(), 0) as source:
                    memory[11 * self.CHUNK] = 1
                    memory[5] = 2
                    source[99] = 3
                    left = 10 * self.CHUNK
                    while left > 0:
                        done = 10 * self.CHUNK - left
                        left -= os.copy_file_range(one.fileno(), other.fileno(), left, done, done)
                    self.assertEqual(memory[70_000:70_005], b"dirty")
                    self.assertEqual(memory[99], 3)
                    memory[7] = 4
        self.assertGreaterEqual(mount.statistics()["chunks_copied"], 10)
        self.check_same(mount)

    def test_somebody_elses_change_of_the_source_is_copied(self):
        mount = self.mount()
        self.filled(mount, "a", self.content)
        self.filled(mount, "b", b"")
        with tempfile.TemporaryDirectory() as directory, Mount(directory, "chunksize=64K") as other:
            with open(other / "a", "wb") as file:
                file.write(some_bytes(8 * self.CHUNK, 9))
            shutil.copyfile(directory + "/a.b2frame", self.source + "/a.b2frame")
        shutil.copyfile(mount / "a", self.plain + "/a")
        wait_for(lambda: os.stat(mount / "a").st_size == 8 * self.CHUNK, 30)
        self.copy(mount, "a", "b", 8 * self.CHUNK, 0, 0)
        self.check_same(mount)


class SparseFrames(Writing):
    def setUp(self):
        super().setUp()
        shutil.copytree(mounting.GOLDEN + "/cframe/sframe/lz4.b2frame", self.source + "/s.b2frame")
        with Mount(self.source, "ro") as mount:
            shutil.copyfile(mount / "s", self.plain + "/s")

    def test_programs_write_them(self):
        mount = self.mount()
        self.in_both(mount, "echo more >> s; sync s; echo most >> s")
        self.in_both(mount, "printf changed | dd of=s bs=1 seek=5000 conv=notrunc 2>/dev/null; truncate -s 9001 s")
        self.in_both(mount, "truncate -s 40000 s; mv s t; echo end >> t")
        self.check_same(mount)
        self.assertTrue(os.path.isdir(self.source + "/t.b2frame"))

    def test_who_opens_it_anew_sees_what_was_written_and_synced(self):
        mount = self.mount()
        chance = random.Random(7)
        files = [open(path, "r+b", buffering=0) for path in (mount / "s", self.plain + "/s")]
        for _ in range(60):
            what, place, data = chance.randrange(4), chance.randrange(20_000), chance.randbytes(chance.randrange(1, 9000))
            for file in files:
                if what == 0:
                    os.fsync(file)
                elif what == 1:
                    os.ftruncate(file.fileno(), place)
                else:
                    os.pwrite(file.fileno(), data, place)
            with open(mount / "s", "rb") as shown, open(self.plain + "/s", "rb") as wanted:
                self.assertEqual(shown.read(), wanted.read())
            self.assertEqual(os.stat(mount / "s").st_size, os.stat(self.plain + "/s").st_size)
        for file in files:
            file.close()
        self.check_same(mount)
        # What nothing refers to any more is gone.
        stored = len(os.listdir(self.source + "/s.b2frame"))
        self.assertLessEqual(stored, 2 + os.path.getsize(self.plain + "/s") // 1000)

    def test_a_handle_outlives_the_last_writer(self):
        content = bytearray(some_bytes(8 << 20))
        make_sparse_frame(self.source + "/large.b2frame", content, 4096)
        mount = self.mount()
        with open(mount / "large", "rb", buffering=0) as reader:
            os.pread(reader.fileno(), 10, 0)
            for number in range(3):
                with open(mount / "large", "r+b", buffering=0) as writer:
                    os.pwrite(writer.fileno(), b"written", number << 20)
                content[number << 20 : (number << 20) + 7] = b"written"
                # All of it, for the kernel tells the daemon of the close at some time after it.
                os.posix_fadvise(reader.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                for begin in range(0, len(content), 1 << 20):
                    self.assertTrue(os.pread(reader.fileno(), 1 << 20, begin) == content[begin : begin + (1 << 20)])

    def test_removed_while_open(self):
        mount = self.mount()
        for writes in (False, True):
            with self.subTest(writes=writes):
                if not os.path.exists(mount / "s"):
                    shutil.copytree(mounting.GOLDEN + "/cframe/sframe/lz4.b2frame", self.source + "/s.b2frame")
                with open(self.plain + "/s", "rb") as file:
                    content = file.read()
                with open(mount / "s", "r+b" if writes else "rb", buffering=0) as file:
                    if writes:
                        os.pwrite(file.fileno(), b"before", 0)
                    os.unlink(mount / "s")
                    self.assertEqual(os.listdir(mount.path), [])
                    if writes:
                        os.pwrite(file.fileno(), b" and after", 6)
                        os.fsync(file.fileno())
                        content = b"before and after" + content[16:]
                    self.assertEqual(os.pread(file.fileno(), 1 << 20, 0), content)
                    self.assertEqual(os.fstat(file.fileno()).st_size, len(content))
                wait_for(lambda: os.listdir(self.source) == [], what="its files to go")
        self.assertEqual(mount.lines(), [])


class Names(Writing):
    def test_renames(self):
        mount = self.mount()
        self.in_both(mount, "echo a > a; echo b > b; mkdir d e; mv a d/a; mv d/a b; mv d e/f; echo c > e/f/c; mv e/f g; ls -R")
        self.in_both(mount, "echo 1 > one; echo 2 > two")
        for directory in (mount.path, self.plain):
            rename2(directory + "/one", directory + "/two", RENAME_EXCHANGE)
            self.assert_refused(errno.EEXIST, rename2, directory + "/one", directory + "/two", RENAME_NOREPLACE)
            rename2(directory + "/one", directory + "/three", RENAME_NOREPLACE)
            self.assert_refused(errno.EISDIR, os.rename, directory + "/three", directory + "/g")
            self.assert_refused(errno.ENOTEMPTY, os.rmdir, directory + "/g")
        self.assert_refused(errno.EPERM, os.link, mount / "three", mount / "link")
        self.check_same(mount)

    def test_a_frame_over_a_plain_file_and_back(self):
        for directory in (self.source, self.plain):
            with open(directory + "/notes.txt", "w", encoding="ascii") as file:
                file.write("plain\n")
        mount = self.mount()
        self.in_both(mount, "echo more >> notes.txt; ln notes.txt second; rm second; sed -i s/plain/PLAIN/ notes.txt")
        self.assertEqual(os.listdir(self.source), ["notes.txt.b2frame"])
        self.check_same(mount)

    def test_locks_go_with_their_frames(self):
        mount = self.mount()
        for name in ("a", "b"):
            with open(mount / name, "w", encoding="ascii") as file:
                file.write(name)
            with open(f"{self.source}/{name}.b2frame.b2lock", "w", encoding="ascii") as file:
                file.write(name * 16)
        self.assertEqual(sorted(os.listdir(mount.path)), ["a", "b"])
        os.rename(mount / "a", mount / "b")
        self.assertEqual(sorted(os.listdir(self.source)), ["b.b2frame", "b.b2frame.b2lock"])
        os.unlink(mount / "b")
        self.assertEqual(os.listdir(self.source), [])

    def test_names_keep(self):
        mount = self.mount("names=keep")
        with open(mount / "x.b2frame", "wb") as file:
            file.write(b"in a frame")
        with open(mount / "y", "wb") as file:
            file.write(b"as it is")
        with open(self.source + "/y", "rb") as file:
            self.assertEqual(file.read(), b"as it is")
        # A rename would make another file of it.
        self.assert_refused(errno.EXDEV, os.rename, mount / "x.b2frame", mount / "x")
        self.assert_refused(errno.EXDEV, os.rename, mount / "y", mount / "y.b2frame")
        output("mv", mount / "y", mount / "y.b2frame")
        with open(mount / "y.b2frame", "rb") as file:
            self.assertEqual(file.read(), b"as it is")
        output(mounting.CFRAME, "verify", self.source)

    def test_open_files_survive_what_becomes_of_their_names(self):
        mount = self.mount()
        for what in ("unlink", "rename over", "rename"):
            with self.subTest(what):
                with open(mount / "x", "w+b", buffering=0) as file:
                    file.write(b"before")
                    if what == "unlink":
                        os.unlink(mount / "x")
                    elif what == "rename":
                        os.rename(mount / "x", mount / "y")
                    else:
                        with open(mount / "new", "wb") as other:
                            other.write(b"other")
                        os.rename(mount / "new", mount / "x")
                    file.write(b" and after")
                    os.fsync(file.fileno())
                    file.seek(0)
                    self.assertEqual(file.read(), b"before and after")
                    self.assertEqual(os.fstat(file.fileno()).st_size, 16)
                expected = {"unlink": [], "rename over": ["x"], "rename": ["y"]}[what]
                self.assertEqual(sorted(os.listdir(mount.path)), expected)
        with open(mount / "y", "rb") as file:
            self.assertEqual(file.read(), b"before and after")
        self.assertEqual(os.listdir(self.source), ["y.b2frame"])


class Others(Writing):
    """Other processes, and disks that are full."""

    def frame(self, name, content):
        with tempfile.TemporaryDirectory() as directory, Mount(directory, *self.options) as mount:
            with open(mount / "x", "wb") as file:
                file.write(content)
            shutil.copy(directory + "/x.b2frame", self.source + "/" + name)

    def test_who_reads_sees_what_others_only_write(self):
        # Writes through handles that cannot read may pass the kernel's pages by.
        self.frame("x.b2frame", bytes(100_000))
        mount = self.mount()
        reads = os.open(mount / "x", os.O_RDONLY)
        writes = os.open(mount / "x", os.O_WRONLY)
        self.addCleanup(os.close, reads)
        self.addCleanup(os.close, writes)
        with mmap.mmap(reads, 100_000, prot=mmap.PROT_READ) as mapped:
            self.assertEqual(os.pread(reads, 100_000, 0), bytes(100_000))
            self.assertEqual(mapped[:], bytes(100_000))
            for at, length in ((0, 1), (4095, 2), (50_000, 30_000), (99_999, 1)):
                piece = some_bytes(length, at)
                os.pwrite(writes, piece, at)
                self.assertEqual(os.pread(reads, length, at), piece)
                self.assertEqual(mapped[at : at + length], piece)
        os.pwrite(writes, b"more", 100_000)
        self.assertEqual(os.fstat(reads).st_size, 100_004)
        self.assertEqual(os.pread(reads, 10, 99_999)[1:], b"more")

    def test_what_is_written_synchronously_is_on_disk(self):
        self.frame("x.b2frame", b"first" * 1000)
        mount = self.mount("commit_interval=1000")

        def stored():
            with open(self.source + "/x.b2frame", "rb") as file:
                return file.read()

        for access in (os.O_WRONLY, os.O_RDWR):
            for opened, of_call in ((os.O_SYNC, 0), (os.O_DSYNC, 0), (0, os.RWF_SYNC), (0, os.RWF_DSYNC), (0, 0)):
                with self.subTest(access=access, opened=opened, of_call=of_call):
                    descriptor = os.open(mount / "x", access | opened)
                    before = stored()
                    os.pwritev(descriptor, [os.urandom(100)], 50, of_call)
                    self.assertEqual(stored() != before, bool(opened or of_call))
                    os.close(descriptor)

    def test_writing_takes_privileges_away(self):
        def write_as_user(path, pipes):
            """In a process of its own: privileged writers need not take them away."""
            child = os.fork()
            if child == 0:
                try:
                    if os.geteuid() == 0:
                        os.setgroups([])
                        os.setgid(65534)
                        os.setuid(65534)
                    descriptor = os.open(path, os.O_WRONLY)
                    os.write(pipes[1], b"1")
                    os.read(pipes[2], 1)
                    os.pwrite(descriptor, b"XX", 0)
                    os._exit(0)
                finally:
                    os._exit(1)
            return child

        os.chmod(self.source, 0o777)
        mount = self.mount(*(["allow_other"] if os.geteuid() == 0 else []))
        for late in (False, True):
            with self.subTest(late=late):
                with open(mount / "x", "wb") as file:
                    file.write(b"first")
                os.chmod(mount / "x", 0o777 if late else 0o6777)
                pipes = (*os.pipe(), *os.pipe())
                child = write_as_user(mount / "x", pipes)
                os.close(pipes[1])
                os.read(pipes[0], 1)
                if late:
                    os.chmod(mount / "x", 0o6777)
                os.write(pipes[3], b"1")
                self.assertEqual(os.waitpid(child, 0)[1], 0)
                for pipe in (pipes[0], *pipes[2:]):
                    os.close(pipe)
                self.assertEqual(oct(os.stat(mount / "x").st_mode & 0o7777), oct(0o777))
                self.assertEqual(oct(os.stat(self.source + "/x.b2frame").st_mode & 0o7777), oct(0o777))

    def test_no_read_that_begins_after_a_write_gives_what_was_before(self):
        self.frame("x.b2frame", bytes(8192))
        mount = self.mount()
        written = [0]
        ended = threading.Event()
        older = []

        def read():
            with open(mount / "x", "rb", buffering=0) as file:
                while not ended.is_set():
                    least = written[0]
                    got = int.from_bytes(os.pread(file.fileno(), 8, 4090), "little")
                    if got < least:
                        older.append((got, least))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        with open(mount / "x", "wb", buffering=0, opener=lambda name, _: os.open(name, os.O_WRONLY)) as file:
            for number in range(1, 3000):
                os.pwrite(file.fileno(), number.to_bytes(8, "little"), 4090)
                written[0] = number
        ended.set()
        for reader in readers:
            reader.join()
        self.assertEqual(older, [])

    def test_a_change_by_somebody_else_under_dirty_data_is_stale(self):
        self.frame("x.b2frame", b"first" * 1000)
        self.frame("other", b"second" * 1000)
        mount = self.mount("commit_interval=1000")
        descriptor = os.open(mount / "x", os.O_RDWR)
        os.pwrite(descriptor, b"mine", 0)
        shutil.copyfile(self.source + "/other", self.source + "/x.b2frame")
        self.assert_refused(errno.ESTALE, os.fsync, descriptor)
        self.assert_refused(errno.ESTALE, os.pwrite, descriptor, b"mine", 0)
        self.assert_refused(errno.ESTALE, os.close, descriptor)
        self.assertTrue(filecmp.cmp(self.source + "/other", self.source + "/x.b2frame", shallow=False))
        with open(mount / "x", "rb") as file:
            self.assertEqual(file.read(), b"second" * 1000)

    def test_a_commit_that_waits_for_a_lock_keeps_nobody_waiting(self):
        # One thread of the daemon may be serving alone just then (fs/fuse/busy_poll_policy.h).
        self.frame("x.b2frame", b"first" * 1000)
        self.frame("y.b2frame", b"second" * 1000)
        mount = self.mount("commit_interval=1000")
        answers = [0]
        ended = threading.Event()

        def ask():
            while not ended.is_set():
                os.listxattr(mount / "y")
                answers[0] += 1

        def commit_behind_a_lock(descriptor):
            os.pwrite(descriptor, b"mine", 0)
            commits = threading.Thread(target=os.fsync, args=(descriptor,))
            with open(self.source + "/x.b2frame.b2lock", "wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                commits.start()
                time.sleep(0.03)  # by now it waits
                try:
                    wait_for(lambda before=answers[0]: answers[0] > before + 100, seconds=4)
                    self.assertTrue(commits.is_alive())
                finally:
                    fcntl.flock(lock, fcntl.LOCK_UN)
                    commits.join()

        asks = threading.Thread(target=ask)
        asks.start()
        descriptor = os.open(mount / "x", os.O_RDWR)
        try:
            for _ in range(15):
                wait_for(lambda before=answers[0]: answers[0] > before + 100)
                commit_behind_a_lock(descriptor)
        finally:
            ended.set()
            asks.join()
        os.close(descriptor)
        self.assertEqual(output(mounting.CFRAME, "cat", self.source + "/x.b2frame")[:6], b"minetf")

    def test_a_clean_file_follows_somebody_else(self):
        self.frame("x.b2frame", b"first" * 1000)
        self.frame("other", b"second" * 1000)
        mount = self.mount()
        with open(mount / "x", "r+b", buffering=0) as file:
            self.assertEqual(file.read(5), b"first")
            shutil.copyfile(self.source + "/other", self.source + "/x.b2frame")
            wait_for(lambda: os.fstat(file.fileno()).st_size == 6000, 30)
            self.assertEqual(os.pread(file.fileno(), 6, 0), b"second")
            os.pwrite(file.fileno(), b"SECOND", 0)
        with open(mount / "x", "rb") as file:
            self.assertEqual(file.read(), b"SECOND" + b"second" * 999)

    def test_a_full_disk(self):
        if os.geteuid() != 0 or run("mount", "-t", "tmpfs", "-o", "size=1M", "none", self.source).returncode != 0:
            self.skipTest("needs the right to mount a small tmpfs")
        self.addCleanup(subprocess.run, ["umount", "-l", self.source], check=False)
        mount = self.mount("commit_interval=1000")
        with open(mount / "x", "wb") as file:
            file.write(b"old state " * 100)
        with open(self.source + "/ballast", "wb") as file:
            file.write(bytes(700_000))
        descriptor = os.open(mount / "x", os.O_RDWR)
        noise = os.urandom(600_000)
        self.assertEqual(os.pwrite(descriptor, noise, 0), len(noise))
        self.assert_refused(errno.ENOSPC, os.fsync, descriptor)
        output(mounting.CFRAME, "verify", self.source + "/x.b2frame")
        self.assertEqual(output(mounting.CFRAME, "cat", self.source + "/x.b2frame"), b"old state " * 100)
        os.unlink(self.source + "/ballast")
        os.fsync(descriptor)
        os.close(descriptor)
        self.assertEqual(output(mounting.CFRAME, "cat", self.source + "/x.b2frame"), noise)

    def test_what_cannot_be_written_is_read_only(self):
        shutil.copytree(mounting.GOLDEN + "/cframe/variable/chunks-0-s.b2frame", self.source + "/s.b2frame")
        mount = self.mount()
        for _ in range(2):
            self.assert_refused(errno.EROFS, os.open, mount / "s", os.O_RDWR)
            self.assert_refused(errno.EROFS, os.truncate, mount / "s", 5)
        self.assertEqual(len(mount.lines()), 1)
        os.rename(mount / "s", mount / "t")
        os.unlink(mount / "t")
        self.assertEqual(os.listdir(self.source), [])

    def test_everything_is_committed_when_the_daemon_ends(self):
        mount = self.mount("commit_interval=1000")
        descriptor = os.open(mount / "x", os.O_RDWR | os.O_CREAT)
        os.write(descriptor, b"not closed")
        mount.close()
        with self.assertRaises(OSError):
            os.close(descriptor)
        self.assertEqual(output(mounting.CFRAME, "cat", self.source + "/x.b2frame"), b"not closed")


if __name__ == "__main__":
    mounting.main()
