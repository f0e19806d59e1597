"""Every good golden frame, read through a real mount with ordinary programs, gives the bytes of its manifest."""

import concurrent.futures
import errno
import mmap
import os
import random
import subprocess
import tarfile
import tempfile
import unittest

import mounting
from mounting import Mount, manifest, output, pread, ranges, sha256, shown

PLAIN = None  # path -> content, of the rows small enough to be read whole, as the manifest's hashes have confirmed it


# A sparse frame that only detect=content can tell from a directory.
NAMELESS = "sframe/no-extension"


def rows():
    """What a mount of the whole directory shows: frames at the beginning of a file that is named as one."""
    return [row for row in manifest("cframe/MANIFEST.tsv") if row["offset"] == "0" and row["path"] != NAMELESS]


def whole_rows():
    return [row for row in rows() if row["sha256"] != "-"]


def contents():
    """Filled once, from a mount of its own, so that the mounts of the checks are cold."""
    global PLAIN
    if PLAIN is None:
        read = {}
        with Mount(mounting.GOLDEN + "/cframe") as mount:
            for row in whole_rows():
                with open(mount / shown(row["path"]), "rb") as file:
                    data = file.read()
                if sha256(data) != row["sha256"]:
                    raise AssertionError(row["path"])
                read[row["path"]] = data
        PLAIN = read
    return PLAIN


class GoldenMount(unittest.TestCase):
    def setUp(self):
        self.mount = Mount(mounting.GOLDEN + "/cframe", "stats=on")
        self.addCleanup(self.mount.close)

    def path(self, row):
        return self.mount / shown(row["path"])

    def sample(self, step=7):
        """Some rows of every kind: every so many-th, and all that are large or sparse."""
        return [
            row
            for number, row in enumerate(whole_rows())
            if number % step == 0 or row["path"].startswith(("sframe/", "large/", "variable/"))
        ]

    def test_the_manifest_is_whole(self):
        self.assertEqual(len(rows()), 395)
        self.assertEqual(len(whole_rows()), 389)

    def test_cat_gives_the_bytes_of_every_row(self):
        # semantics: T1, R1
        for row in whole_rows():
            with self.subTest(row["path"]):
                self.assertEqual(sha256(output("cat", self.path(row))), row["sha256"])

    def test_ranges_of_every_huge_row(self):
        checked = 0
        for row in rows():
            for offset, length, digest in ranges(row["ranges"]):
                with self.subTest(row["path"], offset=offset):
                    self.assertEqual(sha256(pread(self.path(row), offset, length)), digest)
                    checked += 1
        self.assertGreaterEqual(checked, 40)

    def test_sizes_are_the_bytes_that_there_are(self):
        # semantics: S1
        for row in rows():
            with self.subTest(row["path"]):
                self.assertEqual(os.stat(self.path(row)).st_size, int(row["nbytes"]))
                size = int(row["nbytes"])
                self.assertEqual(pread(self.path(row), size, 100), b"")
                if size:
                    self.assertEqual(len(pread(self.path(row), size - 1, 100)), 1)

    def test_dd_with_odd_blocks(self):
        # semantics: R1
        chance = random.Random(1)
        for row in self.sample():
            content = contents()[row["path"]]
            block = chance.randrange(1, 5000) | 1
            skip = chance.randrange(0, len(content) // block + 1)
            count = chance.randrange(1, 20)
            with self.subTest(row["path"], bs=block, skip=skip, count=count):
                data = output("dd", f"if={self.path(row)}", f"bs={block}", f"skip={skip}", f"count={count}", "status=none")
                self.assertEqual(data, content[skip * block : (skip + count) * block])

    def test_cmp_tail_and_grep(self):
        with tempfile.NamedTemporaryFile() as copy:
            for row in self.sample(11):
                content = contents()[row["path"]]
                copy.seek(0)
                copy.truncate()
                copy.write(content)
                copy.flush()
                with self.subTest(row["path"]):
                    output("cmp", self.path(row), copy.name)
                    self.assertEqual(output("tail", "-c", "77", self.path(row)), content[-77:])
                    lines = mounting.run("grep", "-a", "-c", "a", self.path(row)).stdout
                    expected = mounting.run("grep", "-a", "-c", "a", copy.name).stdout
                    self.assertEqual(lines, expected)

    def test_mmap(self):
        # semantics: R1
        chance = random.Random(2)
        for row in self.sample():
            content = contents()[row["path"]]
            if not content:
                continue
            with self.subTest(row["path"]), open(self.path(row), "rb") as file:
                with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                    for _ in range(20):
                        at = chance.randrange(len(content))
                        length = chance.randrange(1, 9000)
                        self.assertEqual(mapped[at : at + length], content[at : at + length])
                    self.assertEqual(sha256(mapped), row["sha256"])

    def read_at_random(self, seed, row, count):
        chance = random.Random(seed)
        content = contents()[row["path"]]
        for _ in range(count):
            at = chance.randrange(len(content))
            length = chance.choice([1, 511, 4096, 70000, 300000])
            if pread(self.path(row), at, length) != content[at : at + length]:
                return f"{row['path']}: {length} bytes at {at} differ"
        return None

    def test_two_and_eight_readers_at_once(self):
        large = [row for row in whole_rows() if int(row["nbytes"]) > 500_000]
        self.assertGreaterEqual(len(large), 6)
        contents()
        for readers in (2, 8):
            with concurrent.futures.ThreadPoolExecutor(readers) as pool:
                for row in large:
                    jobs = [pool.submit(self.read_at_random, seed, row, 40) for seed in range(readers)]
                    for job in jobs:
                        self.assertIsNone(job.result())

    def test_eight_readers_of_one_cold_file(self):
        row = next(row for row in whole_rows() if row["path"] == "large/zstd.b2frame")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for digest in pool.map(lambda _: sha256(output("cat", self.path(row))), range(8)):
                self.assertEqual(digest, row["sha256"])

    def test_holes_are_zeros_and_data_covers_the_rest(self):
        # semantics: H1
        for row in self.sample(3):
            content = contents()[row["path"]]
            with self.subTest(row["path"]), open(self.path(row), "rb") as file:
                at = 0
                while at < len(content):
                    hole = os.lseek(file.fileno(), at, os.SEEK_HOLE)
                    self.assertGreaterEqual(hole, at)
                    self.assertLessEqual(hole, len(content))
                    if hole > at:
                        self.assertEqual(os.lseek(file.fileno(), at, os.SEEK_DATA), at)
                        at = hole
                        continue
                    try:
                        data = os.lseek(file.fileno(), at, os.SEEK_DATA)
                    except OSError as error:
                        self.assertEqual(error.errno, errno.ENXIO)
                        data = len(content)
                    self.assertGreater(data, at)
                    self.assertEqual(content[at:data].strip(b"\0"), b"")
                    at = data
                with self.assertRaises(OSError) as past:
                    os.lseek(file.fileno(), len(content), os.SEEK_HOLE)
                self.assertEqual(past.exception.errno, errno.ENXIO)

    def test_data_of_a_terabyte_of_zeros(self):
        # semantics: H1
        row = next(row for row in rows() if row["path"] == "huge/zeros-1TiB.b2frame")
        with open(self.path(row), "rb") as file:
            data = []
            at = 0
            while True:
                try:
                    at = os.lseek(file.fileno(), at, os.SEEK_DATA)
                except OSError as error:
                    self.assertEqual(error.errno, errno.ENXIO)
                    break
                end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
                data.append((at, end))
                at = end
        written = [(at, length) for at, length, _ in ranges(row["ranges"])]
        self.assertGreater(len(data), 0)
        self.assertLess(len(data), 100)
        # Where the bytes are not zeros, there is data.
        for at, length in written:
            if pread(self.path(row), at, length).strip(b"\0"):
                self.assertTrue(any(begin < at + length and at < end for begin, end in data), at)

    def test_cp_keeps_bytes_and_holes(self):
        for row in self.sample(13):
            with self.subTest(row["path"]), tempfile.TemporaryDirectory() as directory:
                output("cp", "--sparse=always", self.path(row), directory + "/copy")
                with open(directory + "/copy", "rb") as copy:
                    self.assertEqual(sha256(copy.read()), row["sha256"])

    def test_tar_of_a_directory(self):
        with tempfile.TemporaryFile() as archive:
            done = subprocess.run(
                ["tar", "-C", self.mount.path, "-c", "matrix", "large", "sframe"], stdout=archive, stderr=subprocess.PIPE, check=False
            )
            # The index of a sparse frame in a directory that does not say that it is one is no frame by itself.
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"sframe/no-extension/chunks: Cannot stat: Input/output error", done.stderr)
            self.assertEqual(done.stderr.count(b"Cannot"), 1, done.stderr)
            archive.seek(0)
            with tarfile.open(fileobj=archive) as tar:
                for row in whole_rows():
                    if row["path"].startswith(("matrix/", "large/", "sframe/")):
                        with self.subTest(row["path"]):
                            data = tar.extractfile(shown(row["path"])).read()
                            self.assertEqual(sha256(data), row["sha256"])

    def test_metalayers_are_attributes(self):
        # semantics: X2, X3, X7
        checked = 0
        for row in rows():
            for column, prefix in (("meta", "user.blosc2.meta."), ("vlmeta", "user.blosc2.vlmeta.")):
                if row[column] == "-":
                    continue
                for layer in row[column].split(";"):
                    name, length, digest = layer.rsplit(":", 2)
                    if "%" in name:
                        continue
                    with self.subTest(row["path"], layer=name):
                        listed = os.listxattr(self.path(row))
                        is_long = int(length) >= 65536  # the kernel's own bound on the value of an attribute
                        self.assertEqual(prefix + name in listed, column == "vlmeta" and not is_long)
                        names = [prefix + name]
                        if is_long:
                            names = [part for part in listed if part.startswith("user.blosc2.vlpart.") and
                                     part.endswith("." + name)]
                        value = b"".join(os.getxattr(self.path(row), part) for part in names)
                        self.assertEqual((len(value), sha256(value)), (int(length), digest))
                        checked += 1
        self.assertGreater(checked, 30)

    def test_info_is_an_attribute(self):
        # semantics: X2
        for row in self.sample(17):
            with self.subTest(row["path"]):
                info = mounting.json.loads(os.getxattr(self.path(row), "user.blosc2.info"))
                self.assertEqual(info["nbytes"], int(row["nbytes"]))
                self.assertEqual(info["codec"], row["codec"])
                self.assertEqual(info["filters"], row["filters"])
                self.assertEqual(info["chunks"], int(row["nchunks"]))


class GoldenVariants(unittest.TestCase):
    def test_names_keep(self):
        with Mount(mounting.GOLDEN + "/cframe", "names=keep") as mount:
            for row in whole_rows()[::5]:
                with self.subTest(row["path"]), open(mount / row["path"], "rb") as file:
                    self.assertEqual(sha256(file.read()), row["sha256"])
            with self.assertRaises(FileNotFoundError):
                os.stat(mount / shown(rows()[0]["path"]))

    def test_detect_content(self):
        # semantics: N4
        row = next(row for row in manifest("cframe/MANIFEST.tsv") if row["path"] == NAMELESS)
        with Mount(mounting.GOLDEN + "/cframe", "detect=content") as mount:
            with open(mount / NAMELESS, "rb") as file:
                self.assertEqual(sha256(file.read()), row["sha256"])
            for row in whole_rows()[::9]:
                with self.subTest(row["path"]), open(mount / shown(row["path"]), "rb") as file:
                    self.assertEqual(sha256(file.read()), row["sha256"])

    def test_frames_inside_other_files(self):
        inside = [row for row in manifest("cframe/MANIFEST.tsv") if row["path"].startswith("offset/")]
        self.assertEqual(sum(row["offset"] != "0" for row in inside), 4)
        for row in inside:
            name = os.path.basename(shown(row["path"]))
            with self.subTest(row["path"], offset=row["offset"]):
                with Mount(f"{mounting.GOLDEN}/cframe/{row['path']}", f"offset={row['offset']}") as mount:
                    self.assertEqual(os.listdir(mount.path), [name])
                    with open(mount / name, "rb") as file:
                        self.assertEqual(sha256(file.read()), row["sha256"])

    def test_small_cache_and_no_readahead(self):
        with Mount(mounting.GOLDEN + "/cframe", "cache_size=1M", "readahead=0") as mount:
            for row in whole_rows()[::4]:
                with self.subTest(row["path"]), open(mount / shown(row["path"]), "rb") as file:
                    self.assertEqual(sha256(file.read()), row["sha256"])

    def test_single_threaded(self):
        with Mount(mounting.GOLDEN + "/cframe", flags=["-s"]) as mount:
            for row in whole_rows()[::6]:
                with self.subTest(row["path"]), open(mount / shown(row["path"]), "rb") as file:
                    self.assertEqual(sha256(file.read()), row["sha256"])


if __name__ == "__main__":
    mounting.main()
