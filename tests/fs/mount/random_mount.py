"""Random changes of files in a mount, compared with plain shadow files: 100,000 of them (40,000 with a daemon that is
watched by a sanitizer, and slower), or RANDOM_OPERATIONS.

The driver is random_changes.cc, its path in RANDOM_CHANGES of the environment. Between rounds the source is mounted
again, with other options, and each file is compared whole; at the end every frame is verified.
"""

import os
import tempfile
import unittest

import mounting
from mounting import Mount, output

SEED = int(os.environ.get("RANDOM_SEED", "1"))

# Share of the operations, and mount options of the round.
ROUNDS = (
    (0.30, ("chunksize=64K", "dirty_limit=4M", "commit_interval=0.1")),
    (0.20, ("chunksize=16K", "codec=lz4", "commit_interval=0.01", "cache_size=1M", "readahead=0")),
    (0.15, ("chunksize=100000", "typesize=4", "codec=zlib", "dirty_limit=1M")),
    (0.15, ("codec=blosclz", "workers=4")),
    (0.20, ("chunksize=64K", "writeback=on", "clevel=1")),
)


class RandomChanges(unittest.TestCase):
    def test_the_mount_is_a_plain_folder_to_programs(self):
        driver = os.environ["RANDOM_CHANGES"]
        operations = int(os.environ.get("RANDOM_OPERATIONS", "40000" if mounting.is_sanitized() else "100000"))
        work = tempfile.TemporaryDirectory(prefix="cframefs-random-", dir=mounting.fast_folder())
        self.addCleanup(work.cleanup)
        shadow = tempfile.TemporaryDirectory(prefix="cframefs-shadow-")
        self.addCleanup(shadow.cleanup)
        print(f"seed {SEED}, {operations} operations", flush=True)
        for number, (share, options) in enumerate(ROUNDS):
            with self.subTest(options=options), Mount(work.name, *options) as mount:
                done = mounting.subprocess.run(
                    [driver, mount.path, shadow.name, str(SEED + number), str(int(operations * share))],
                    capture_output=True, timeout=900, check=False)
                self.assertEqual(done.returncode, 0, done.stderr.decode())
                self.assertEqual(mount.lines(), [])
            self.check_after_remount(work.name, shadow.name)
        output(mounting.CFRAME, "verify", work.name)

    def check_after_remount(self, source, shadow):
        with Mount(source, "ro") as mount:
            self.assertEqual(sorted(os.listdir(mount.path)), sorted(os.listdir(shadow)))
            for name in os.listdir(shadow):
                output("cmp", mount / name, os.path.join(shadow, name))


if __name__ == "__main__":
    mounting.main(hang_seconds=1200)
