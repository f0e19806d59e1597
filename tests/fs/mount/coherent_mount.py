"""Several threads and processes access one file at once, buffered, mapped, direct, asynchronous direct and appending, on
frames, sparse frames and plain files: what was acknowledged is what every later read gives, by whatever way, and what is
on disk afterwards.

The driver is coherent_access.cc, its path in COHERENT_ACCESS of the environment; COHERENT_SEED and COHERENT_ROUNDS (a
factor) change what it does.
"""

import os
import subprocess
import tempfile
import unittest

import mounting
from mounting import Mount, output
from sparse_frames import make_sparse_frame

SEED = int(os.environ.get("COHERENT_SEED", "1"))
FACTOR = float(os.environ.get("COHERENT_ROUNDS", "1"))
ONLOOKERS = ("read", "reopen", "hot", "map", "readdirect", "stat", "open", "drop", "fsync", "copy")


class Coherent(unittest.TestCase):
    """`kind`: a codec, "sparse" or "plain"; `slots` of `slot` bytes; the file is in chunks of `chunk` bytes."""

    def access(self, kind, actors, rounds, options=(), slots=10, slot=65536, chunk=65536):
        driver = os.environ["COHERENT_ACCESS"]
        work = tempfile.TemporaryDirectory(prefix="cframefs-coherent-", dir=mounting.fast_directory())
        self.addCleanup(work.cleanup)
        source = work.name + "/source"
        os.mkdir(source)
        stored = self.make(kind, source, output(driver, "make", str(slots), str(slot)), chunk)
        rounds = max(2, int(rounds * FACTOR / (4 if mounting.is_sanitized() else 1)))
        with Mount(source, *options) as mount:
            done = subprocess.run(
                [driver, "run", mount / "x", work.name + "/state", str(SEED), str(rounds), str(slots), str(slot),
                 mounting.CFRAME, stored, *actors], capture_output=True, timeout=120, check=False)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            said = mount.lines()
        self.assertEqual(said, [])
        state = f"'{driver}' check '{work.name}/state' {slots} {slot}"
        if kind != "plain":
            output("sh", "-c", f"'{mounting.CFRAME}' cat '{stored}' | {state}")
            output(mounting.CFRAME, "verify", stored)
        with Mount(source, "ro") as mount:
            output("sh", "-c", f"{state} < '{mount / 'x'}'")

    def make(self, kind, source, content, chunk):
        """The path of the stored file."""
        plain = source + "/x"
        frame = plain + ".b2frame"
        if kind == "sparse":
            make_sparse_frame(frame, content, chunk)
            return frame
        with open(plain, "wb") as file:
            file.write(content)
        if kind == "plain":
            return plain
        output(mounting.CFRAME, "pack", "--codec", kind, "--chunksize", str(chunk), plain, frame)
        os.unlink(plain)
        return frame


class OneWriter(Coherent):
    """Each way to write by itself, beside readers of its own kind: large parts, many rounds."""

    def test_plain_write_only(self):
        self.access("plain", ("writeonly", "reopen", "reopen", "hot"), 1500)

    def test_plain_read_write(self):
        self.access("plain", ("buffered", "reopen", "reopen", "open"), 1000)

    def test_plain_read_write_by_new_handles(self):
        self.access("plain", ("buffered-reopen", "reopen", "reopen", "open"), 1000)

    def test_plain_direct(self):
        self.access("plain", ("direct", "reopen", "hot", "map"), 200)

    def test_plain_mapped(self):
        self.access("plain", ("mapped", "reopen", "open", "readdirect"), 100)

    def test_plain_asynchronous(self):
        self.access("plain", ("async", "reopen", "reopen"), 300)

    def test_frame_write_only(self):
        self.access("zstd", ("writeonly", "reopen", "reopen", "hot"), 100, ("commit_interval=0.05",))

    def test_frame_read_write_by_new_handles(self):
        self.access("lz4", ("buffered-reopen", "reopen", "open", "stat"), 60)

    def test_frame_asynchronous(self):
        self.access("zstd", ("async", "reopen", "reopen"), 200, ("commit_interval=0.05",))

    def test_frame_asynchronous_with_writeback(self):
        self.access("zstd", ("async", "reopen", "map"), 100, ("writeback=on", "commit_interval=0.05"))

    def test_sparse_frame_asynchronous(self):
        self.access("sparse", ("async", "reopen", "reopen"), 200, ("commit_interval=0.05",))


class Commits(Coherent):
    """Readers beside commits, which follow each other closely or come in parts."""

    def test_sparse_frame_with_a_commit_for_each_chunk(self):
        self.access("sparse", ("buffered-sync", "readdirect", "readdirect"), 1, slots=1024, slot=4096, chunk=4096)

    def test_sparse_frame_with_commits_in_parts(self):
        self.access("sparse", ("buffered-sparsely", "buffered-sparsely", "readdirect", "reopen", "drop", "read"), 3,
                    slots=16384, slot=4096)

    def test_sparse_frame_beyond_dirty_limit(self):
        self.access("sparse", ("buffered", "writeonly", "readdirect", "read", "drop"), 3,
                    ("dirty_limit=1M", "commit_interval=0.02"), slots=2048, slot=4096)

    def test_frame_with_a_commit_for_each_chunk(self):
        self.access("zstd", ("buffered-sync", "readdirect", "reopen", "drop"), 1, slots=512, slot=4096, chunk=4096)

    def test_frame_with_commits_in_parts(self):
        self.access("zstd", ("buffered-sparsely", "readdirect", "reopen", "drop", "read"), 2, slots=16384, slot=4096)

    def test_sparse_frame_read_by_cframe(self):
        self.access("sparse", ("buffered-sync", "cat", "cat"), 2, slots=512, slot=4096, chunk=4096)

    def test_frame_read_by_cframe(self):
        self.access("lz4", ("buffered-sync", "cat", "cat"), 2, slots=512, slot=4096, chunk=4096)


class AllWays(Coherent):
    """All ways at once, each writer with pages of its own in every chunk."""

    WRITERS = ("buffered", "writeonly-reopen", "direct", "async", "mapped", "append", "append-writeonly")
    SMALL = ("commit_interval=0.02", "dirty_limit=1M")

    def access_by_all(self, kind, rounds, options, chunk):
        cat = ("cat",) if kind != "plain" else ()
        self.access(kind, self.WRITERS + ONLOOKERS + cat, rounds, options, slots=60, slot=16384, chunk=chunk)

    def test_frame(self):
        # semantics: W2
        self.access_by_all("zstd", 25, self.SMALL, 65536)

    def test_frame_of_small_chunks(self):
        self.access_by_all("lz4", 25, self.SMALL, 4096)

    def test_frame_with_writeback(self):
        self.access_by_all("zstd", 25, self.SMALL + ("writeback=on",), 65536)

    def test_sparse_frame(self):
        # semantics: W2
        self.access_by_all("sparse", 25, self.SMALL, 65536)

    def test_sparse_frame_of_small_chunks(self):
        self.access_by_all("sparse", 15, self.SMALL, 4096)

    def test_plain(self):
        # semantics: W2
        self.access_by_all("plain", 40, (), 65536)


if __name__ == "__main__":
    mounting.main(hang_seconds=600)
