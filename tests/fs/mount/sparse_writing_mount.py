"""Sparse frames are written through a mount."""

import os
import random
import shutil

import mounting
from mounting import Mount, wait_for
from sparse_frames import make_sparse_frame
from written_directory import Writing, some_bytes


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


if __name__ == "__main__":
    mounting.main()
