"""New .npy files on a mount with new_npy=b2nd: n-d arrays if one can hold what was written, else the bytes."""

import errno
import io
import json
import os
import random
import tempfile
import unittest
import warnings

import mounting
from array_files import filled, saved

try:
    import numpy
except ImportError:
    numpy = None

warnings.simplefilter("ignore")  # about header versions


@unittest.skipIf(numpy is None, "needs python3-numpy")
class NewArrays(unittest.TestCase):
    """Files that are created as .npy on a mount with new_npy=b2nd."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="cframefs-arrays-")
        self.addCleanup(self.directory.cleanup)

    def is_array(self):
        self.assertEqual(os.listdir(self.directory.name), ["x.b2nd"])
        said = mounting.output(mounting.CFRAME, "info", "--json", os.path.join(self.directory.name, "x.b2nd"))
        mounting.output(mounting.CFRAME, "verify", self.directory.name)
        return "array" in json.loads(said)

    def check(self, content, is_array):
        """Of x.npy, from a mount that has never seen it before. Removes it."""
        self.assertEqual(self.is_array(), is_array)
        with mounting.Mount(self.directory.name) as mount:
            with open(mount / "x.npy", "rb") as file:
                self.assertEqual(file.read(), content)
            os.remove(mount / "x.npy")

    def test_what_numpy_saves_and_maps_and_what_cp_copies_becomes_an_array(self):
        # semantics: B9, B4
        rng = random.Random(8)
        arrays = [filled((6, 5), "<f8", rng), filled((100_000,), "|u1", rng), numpy.float64(3.5), filled((0, 3), "<i8", rng),
                  filled((3, 0), "<i8", rng), filled((300, 900), "<f8", rng), filled((4, 3, 2), "<U3", rng),
                  numpy.ones(7, [(f"field {n}", "<f8") for n in range(20)])]

        def save(array, path):
            numpy.save(path, array)

        def map_in_memory(array, path):
            mapped = numpy.lib.format.open_memmap(path, "w+", dtype=array.dtype, shape=array.shape)
            mapped[...] = array
            mapped.flush()

        def copy(array, path):
            with tempfile.NamedTemporaryFile(suffix=".npy") as file:
                numpy.save(file, array)
                file.flush()
                mounting.output("cp", file.name, path)

        for options in ((), ("writeback=on",), ("commit_interval=0.05", "dirty_limit=1M")):
            for array in arrays:
                for write in (save, copy) if array.size == 0 else (save, copy, map_in_memory):
                    with self.subTest(options=options, shape=array.shape, write=write.__name__):
                        with mounting.Mount(self.directory.name, "new_npy=b2nd", *options) as mount:
                            write(array, mount / "x.npy")
                            with open(mount / "x.npy", "rb") as file:
                                self.assertEqual(file.read(), saved(array))
                            self.assertEqual(mount.lines(), [])
                        self.check(saved(array), True)

    def test_what_no_array_can_hold_is_stored_as_it_is(self):
        # semantics: B9
        rng = random.Random(9)
        objects = io.BytesIO()
        numpy.save(objects, numpy.array([{}, "x"], dtype=object), allow_pickle=True)
        short = saved(filled((6, 5), "<f8", rng))
        for content in (saved(numpy.asfortranarray(filled((6, 5), "<f8", rng))), objects.getvalue(), b"no header at all",
                        short.replace(b"'descr'", b'"descr"'), short[:20], b""):
            for options in ((), ("writeback=on",)):
                with self.subTest(content=content[:80], options=options):
                    with mounting.Mount(self.directory.name, "new_npy=b2nd", *options) as mount:
                        with open(mount / "x.npy", "wb") as file:
                            file.write(content)
                        with open(mount / "x.npy", "rb") as file:
                            self.assertEqual(file.read(), content)
                    self.check(content, False)

    def test_rows_beyond_those_of_the_header_are_told(self):
        # semantics: B10
        array = filled((6, 8), "<f8", random.Random(3))
        with mounting.Mount(self.directory.name, "new_npy=b2nd") as mount:
            with self.assertRaises(OSError) as caught:
                with open(mount / "x.npy", "wb") as file:  # two arrays in one file
                    numpy.save(file, array)
                    numpy.save(file, array)
            self.assertEqual(caught.exception.errno, errno.EINVAL)
            self.assertTrue(any("header was written for 384" in line for line in mount.lines()), mount.lines())
            with open(mount / "x.npy", "r+b") as file:  # told once
                file.seek(-8, os.SEEK_END)
                file.write(bytes(8))
            # The header is written again when the number of rows is known.
            with open(mount / "x.npy", "wb") as file:
                file.write(saved(array[:1]))
                file.write(array[1:].tobytes())
                file.seek(0)
                file.write(saved(array)[:128])
        self.check(saved(array), True)

    def test_the_bytes_give_way_to_an_array_and_stay_with_other_writes(self):
        array = filled((6, 5), "<f8", random.Random(3))
        with mounting.Mount(self.directory.name, "new_npy=b2nd") as mount:
            with open(mount / "x.npy", "wb") as file:
                file.write(bytes(100))
            with open(mount / "x.npy", "r+b") as file:  # not empty: it stays what it is
                file.write(saved(array))
            self.assertFalse(self.is_array())
            numpy.save(mount / "x.npy", array)
            self.assertTrue(self.is_array())
        self.check(saved(array), True)

    def test_other_names_and_other_mounts_make_frames(self):
        array = filled((6, 5), "<f8", random.Random(3))
        for options, name, stored in ((("new_npy=b2nd",), "x.dat", "x.dat.b2frame"), ((), "x.npy", "x.npy.b2frame"),
                                      (("new_npy=b2nd",), ".npy", ".npy.b2frame")):
            with mounting.Mount(self.directory.name, *options) as mount:
                with open(mount / name, "wb") as file:
                    file.write(saved(array))
                self.assertEqual(os.listdir(self.directory.name), [stored])
                os.remove(mount / name)


if __name__ == "__main__":
    mounting.main()
