"""copy_file_range between frames."""

import mmap
import os
import random
import shutil
import tempfile

import mounting
from mounting import Mount, wait_for
from written_directory import Writing, some_bytes


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
        # semantics: Y1
        mount = self.mount()
        # Of what looks sparse, as all that is compressed does, cp itself reads and writes.
        self.filled(mount, "big", random.Random(1).randbytes(len(self.content)))
        before = mount.statistics()
        self.in_both(mount, "cp --reflink=auto big copy")
        after = mount.statistics()
        self.assertEqual(after["chunks_copied"] - before["chunks_copied"], 21)
        self.assertEqual(after["blocks_decoded"], before["blocks_decoded"])
        self.in_both(mount, "cp --reflink=auto big second; cp big third; cat big > fourth")
        self.check_same(mount)

    def test_ranges(self):
        # semantics: Y1
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
        # semantics: Y1
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


if __name__ == "__main__":
    mounting.main()
