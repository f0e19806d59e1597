"""Files of older writers and sibling formats, read through a real mount, give the bytes of their manifest."""

import ast
import errno
import json
import os
import shutil
import struct
import tempfile
import unittest

import mounting
from mounting import Mount, manifest, output, pread, sha256

SUFFIXES = (".b2frame", ".blp", ".cdata", ".blosc")
# Frames that nothing tells from those of a release that shuffled bits in another way.
OLD_BITS = ("legacy-b3-zlib-bitshuffle-odd.b2frame", "legacy-b4-zlib-bitshuffle-odd.b2frame")
DAMAGED = "bp-bad-checksum.blp"


def strip(name):
    return next(name[: -len(suffix)] for suffix in SUFFIXES if name.endswith(suffix))


def rows(*prefixes):
    found = [row for row in manifest("legacy/MANIFEST.tsv") if row["file"].split("-")[0] in prefixes]
    return [row for row in found if not row["file"].startswith("bp-np-")]


def numpy_rows():
    return [row for row in manifest("legacy/MANIFEST.tsv") if row["file"].startswith("bp-np-")]


def is_readable(row):
    return "lizard" not in row["file"] and row["file"] not in OLD_BITS and row["file"] != DAMAGED


class LegacyMount(unittest.TestCase):
    def setUp(self):
        self.mount = Mount(mounting.GOLDEN + "/legacy")
        self.addCleanup(self.mount.close)

    def path(self, row):
        return self.mount / strip(row["file"])

    def check(self, *prefixes):
        """Sizes before the first read, then the bytes whole and from the middle; the number of files."""
        checked = [row for row in rows(*prefixes) if is_readable(row)]
        for row in checked:
            with self.subTest(row["file"]):
                length = int(row["uncompressed_length"])
                self.assertEqual(os.stat(self.path(row)).st_size, length)
                middle = pread(self.path(row), length // 2, 100)
                content = output("cat", self.path(row))
                self.assertEqual(sha256(content), row["sha256_expected"])
                self.assertEqual(middle, content[length // 2 :][:100])
        return len(checked)

    def test_frames_of_the_betas(self):
        self.assertEqual(self.check("legacy"), 98)

    def test_frames_of_the_release_candidates(self):
        self.assertEqual(self.check("cframe"), 21)

    def test_bare_chunks(self):
        # semantics: N1
        self.assertEqual(self.check("blosc1", "alpha5"), 46)

    def test_bloscpack(self):
        # semantics: N1
        self.assertEqual(self.check("bp"), 37)

    def test_numpy_arrays_in_bloscpack_are_npy_files(self):
        names = os.listdir(self.mount.path)
        for row in numpy_rows():
            with self.subTest(row["file"]):
                self.assertIn(strip(row["file"]) + ".npy", names)
                self.assertNotIn(strip(row["file"]), names)
                self.assertFalse(os.path.exists(self.path(row)))
                path = self.path(row) + ".npy"
                length = int(row["uncompressed_length"])
                size = os.stat(path).st_size
                content = output("cat", path)
                self.assertEqual(len(content), size)
                self.assertEqual(content[:8], b"\x93NUMPY\x01\x00")
                (head,) = struct.unpack("<H", content[8:10])
                self.assertEqual((10 + head) % 64, 0)
                self.assertEqual(size, 10 + head + length)
                header = ast.literal_eval(content[10 : 10 + head].decode("latin-1"))
                self.assertEqual(set(header), {"descr", "fortran_order", "shape"})
                self.assertEqual(header["fortran_order"], "fortran" in row["file"])
                self.assertEqual(sha256(content[10 + head :]), row["sha256_expected"])
                self.assertEqual(pread(path, 8 + head, 6), content[8 + head : 14 + head])
        self.assertEqual(len(numpy_rows()), 7)

    def test_no_suffix_is_shown(self):
        names = os.listdir(self.mount.path)
        self.assertEqual([name for name in names if name.endswith((".blp", ".cdata", ".b2frame"))], [])

    def test_lizard_is_not_supported_and_named_in_the_log(self):
        # semantics: R3
        checked = 0
        for row in rows("legacy"):
            if "lizard" in row["file"]:
                with self.subTest(row["file"]), self.assertRaises(OSError) as refused:
                    pread(self.path(row), 0, 100)
                self.assertEqual(refused.exception.errno, errno.EOPNOTSUPP)
                self.assertTrue(any("lizard" in line and row["file"] in line for line in self.mount.lines()))
                checked += 1
        self.assertEqual(checked, 5)

    def test_a_wrong_checksum_is_an_error_of_its_chunk_alone(self):
        # semantics: R2, R4
        path = self.mount / strip(DAMAGED)
        with open(self.mount / "bp-ck-crc32", "rb") as file:
            good = file.read()
        self.assertEqual(os.stat(path).st_size, len(good))
        self.assertEqual(pread(path, 0, 8000), good[:8000])
        for at in (8000, 8999):
            with self.assertRaises(OSError) as damaged:
                pread(path, at, 1)
            self.assertEqual(damaged.exception.errno, errno.EIO)
        lines = [line for line in self.mount.lines() if DAMAGED in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("chunk 2", lines[0])
        self.assertIn("crc32", lines[0])

    def test_metalayers_usermeta_and_metadata_are_attributes(self):
        # semantics: X2
        frame = self.mount / "legacy-b5-blosclz-meta-um"
        self.assertEqual(os.getxattr(frame, "user.blosc2.meta.rose"), b"\x93\x01\x02\x03")
        self.assertEqual(len(os.getxattr(frame, "user.blosc2.vlmeta.usermeta")), 300)
        pack = self.mount / "bp-meta-small-nocomp"
        self.assertEqual(os.listxattr(pack), ["user.blosc2.vlmeta.metadata"])
        self.assertEqual(os.getxattr(pack, "user.blosc2.vlmeta.metadata"), b'{"a":1}')
        formats = {
            name: json.loads(os.getxattr(self.mount / name, "user.blosc2.info"))["format"]
            for name in ("legacy-b1-empty", "bp-v1", "blosc1-mixed")
        }
        self.assertEqual(formats, {"legacy-b1-empty": "legacy", "bp-v1": "bloscpack", "blosc1-mixed": "chunk"})


class LegacyVariants(unittest.TestCase):
    def test_the_bitshuffle_of_beta3_and_beta4(self):
        wanted = [row for row in rows("legacy") if row["file"] in OLD_BITS]
        self.assertEqual(len(wanted), 2)
        with Mount(mounting.GOLDEN + "/legacy", "beta_bitshuffle=old") as mount:
            for row in wanted:
                with self.subTest(row["file"]):
                    self.assertEqual(sha256(output("cat", mount / strip(row["file"]))), row["sha256_expected"])

    def test_renamed_and_linked_numpy_arrays(self):
        with tempfile.TemporaryDirectory() as directory:
            shutil.copy(mounting.GOLDEN + "/legacy/bp-np-f8.blp", directory + "/a.blp")
            shutil.copy(mounting.GOLDEN + "/legacy/bp-ck-md5.blp", directory + "/b.blp")
            os.symlink("a.blp", directory + "/link-to-a")
            os.symlink("b.blp", directory + "/link-to-b")
            with Mount(directory) as mount:
                self.assertEqual(sorted(os.listdir(mount.path)), ["a.npy", "b", "link-to-a", "link-to-b"])
                self.assertEqual(os.readlink(mount / "link-to-a"), "a.npy")
                self.assertEqual(os.readlink(mount / "link-to-b"), "b")
                content = output("cat", mount / "link-to-a")
                os.rename(mount / "a.npy", mount / "c.npy")
                self.assertEqual(sorted(os.listdir(directory)), ["b.blp", "c.blp", "link-to-a", "link-to-b"])
                self.assertEqual(output("cat", mount / "c.npy"), content)

    def test_single_files(self):
        for name in ("bp-v1.blp", "blosc1-mixed.cdata", "legacy-b1-lz4-3chunks.b2frame"):
            row = next(row for row in rows("bp", "blosc1", "legacy") if row["file"] == name)
            with self.subTest(name), Mount(mounting.GOLDEN + "/legacy/" + name) as mount:
                self.assertEqual(os.listdir(mount.path), [strip(name)])
                self.assertEqual(sha256(output("cat", mount / strip(name))), row["sha256_expected"])

    def test_bl2_is_a_container_where_its_content_is_one(self):
        """save_array() of python-blosc2 writes frames of this suffix, its users chunks, and boot loaders have it, too."""
        # semantics: N2
        stored = {"frame.bl2": "legacy-b1-lz4-3chunks.b2frame", "chunk.bl2": "blosc1-mixed.cdata"}
        digests = {row["file"]: row["sha256_expected"] for row in rows("blosc1", "legacy")}
        boot = b"a boot loader" * 1000
        with tempfile.TemporaryDirectory() as directory:
            for name, golden in stored.items():
                shutil.copy(mounting.GOLDEN + "/legacy/" + golden, f"{directory}/{name}")
            with open(directory + "/boot.bl2", "wb") as file:
                file.write(boot)
            with Mount(directory) as mount:
                self.assertEqual(sorted(os.listdir(mount.path)), ["boot.bl2", "chunk", "frame"])
                for name, golden in stored.items():
                    self.assertEqual(sha256(output("cat", mount / name.removesuffix(".bl2"))), digests[golden])
                self.assertFalse(os.path.exists(mount / "boot"))
                with open(mount / "boot.bl2", "r+b") as file:
                    self.assertEqual(file.read(), boot)
                    file.write(b"longer")
                os.rename(mount / "frame", mount / "other")
                output("mv", mount / "boot.bl2", mount / "boot2.bl2")
            self.assertEqual(sorted(os.listdir(directory)), ["boot2.bl2.b2frame", "chunk.bl2", "other.bl2"])
            with Mount(directory, "names=keep") as mount:
                with open(mount / "new.bl2", "wb") as file:
                    file.write(boot)
                with open(mount / "new.bl2", "rb") as file:
                    self.assertEqual(file.read(), boot)
                self.assertEqual(sha256(output("cat", mount / "other.bl2")), digests[stored["frame.bl2"]])
            self.assertEqual(output(mounting.CFRAME, "cat", directory + "/new.bl2"), boot)

    def test_detect_content_and_names_keep(self):
        with Mount(mounting.GOLDEN + "/legacy", "detect=content", "names=keep") as mount:
            for row in rows("bp", "blosc1", "alpha5"):
                if is_readable(row):
                    with self.subTest(row["file"]):
                        self.assertEqual(sha256(output("cat", mount / row["file"])), row["sha256_expected"])

    def test_numpy_arrays_are_their_bytes_where_arrays_are_flat(self):
        with Mount(mounting.GOLDEN + "/legacy", "b2nd=flat") as mount:
            for row in numpy_rows():
                with self.subTest(row["file"]):
                    self.assertEqual(sha256(output("cat", mount / strip(row["file"]))), row["sha256_expected"])


if __name__ == "__main__":
    mounting.main()
