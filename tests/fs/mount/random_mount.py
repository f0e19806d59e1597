"""Random changes of files in a mount, compared with plain shadow files: 100,000 of them (25,000 with a daemon that is
watched by a sanitizer, and slower), or RANDOM_OPERATIONS. Sparse frames get 15,000.

The driver is random_changes.cc, its path in RANDOM_CHANGES of the environment. Between rounds the source is mounted
again, with other options, and each file is compared whole; at the end every frame is verified.
"""

import os
import tempfile
import unittest

import mounting
from mounting import Mount, output
from sparse_frames import make_sparse_frame

SEED = int(os.environ.get("RANDOM_SEED", "1"))

# Share of the operations, and mount options of the round.
ROUNDS = (
    (0.30, ("chunksize=64K", "dirty_limit=4M", "commit_interval=0.1")),
    (0.20, ("chunksize=16K", "codec=lz4", "commit_interval=0.01", "cache_size=1M", "readahead=0")),
    (0.15, ("chunksize=100000", "typesize=4", "codec=zlib", "dirty_limit=1M")),
    (0.15, ("codec=blosclz", "workers=4")),
    (0.20, ("chunksize=64K", "writeback=on", "clevel=1")),
)

# Chunk size and mount options; small limits, so that commits follow each other closely and come in parts.
SPARSE_ROUNDS = (
    (4096, ("commit_interval=0.01", "dirty_limit=1M", "cache_size=1M", "readahead=0")),
    (4096, ("commit_interval=0.01", "writeback=on", "cache_size=1M")),
    (65536, ("commit_interval=0.02", "dirty_limit=1M", "cache_size=1M")),
)
# As random_changes.cc names them.
FILES = tuple(f"random-{thread}-{file}" for thread in range(2) for file in range(3))


class RandomChanges(unittest.TestCase):
    def test_the_mount_is_a_plain_directory_to_programs(self):
        # semantics: T1, W1
        operations = int(os.environ.get("RANDOM_OPERATIONS", "25000" if mounting.is_sanitized() else "100000"))
        work = tempfile.TemporaryDirectory(prefix="cframefs-random-", dir=mounting.fast_directory())
        self.addCleanup(work.cleanup)
        shadow = tempfile.TemporaryDirectory(prefix="cframefs-shadow-")
        self.addCleanup(shadow.cleanup)
        print(f"seed {SEED}, {operations} operations", flush=True)
        for number, (share, options) in enumerate(ROUNDS):
            with self.subTest(options=options):
                self.change(work.name, shadow.name, options, SEED + number, int(operations * share))
        output(mounting.CFRAME, "verify", work.name)

    def test_sparse_frames_are_plain_files_to_programs(self):
        operations = int(os.environ.get("RANDOM_OPERATIONS", "5000" if mounting.is_sanitized() else "15000"))
        for number, (chunk, options) in enumerate(SPARSE_ROUNDS):
            work = tempfile.TemporaryDirectory(prefix="cframefs-random-", dir=mounting.fast_directory())
            self.addCleanup(work.cleanup)
            shadow = tempfile.TemporaryDirectory(prefix="cframefs-shadow-")
            self.addCleanup(shadow.cleanup)
            for name in FILES:
                content = b"".join(bytes([1 + place % 127 * 2]) * chunk for place in range(300_000 // chunk))
                make_sparse_frame(f"{work.name}/{name}.b2frame", content, chunk)
                with open(f"{shadow.name}/{name}", "wb") as file:
                    file.write(content)
            with self.subTest(chunk=chunk, options=options):
                self.change(work.name, shadow.name, options, SEED + number, operations // len(SPARSE_ROUNDS), str(chunk))
                # They have stayed sparse frames, and nothing is left of what nothing refers to.
                for name in FILES:
                    stored = os.listdir(f"{work.name}/{name}.b2frame")
                    self.assertLessEqual(len(stored), 2 + os.path.getsize(f"{shadow.name}/{name}") // chunk + 1)
                output(mounting.CFRAME, "verify", work.name)

    def change(self, source, shadow, options, seed, operations, *chunk):
        with Mount(source, *options) as mount:
            done = mounting.subprocess.run(
                [os.environ["RANDOM_CHANGES"], mount.path, shadow, str(seed), str(operations), *chunk],
                capture_output=True, timeout=900, check=False)
            said = mount.lines()
            self.assertEqual(done.returncode, 0, done.stderr.decode() + "\n".join(said))
            self.assertEqual(said, [])
        self.check_after_remount(source, shadow)

    def check_after_remount(self, source, shadow):
        with Mount(source, "ro") as mount:
            self.assertEqual(sorted(os.listdir(mount.path)), sorted(os.listdir(shadow)))
            for name in os.listdir(shadow):
                output("cmp", mount / name, os.path.join(shadow, name))


if __name__ == "__main__":
    mounting.main(hang_seconds=1200)
