"""N-d arrays on a mount, opened by Debian's NumPy: what it loads is what was stored, and the files are the ones that it
would have written itself.

The arrays are made by array_files.py.
"""

import errno
import os
import random
import tempfile
import unittest
import warnings

import mounting
from array_files import b2nd, filled, saved

try:
    import numpy
except ImportError:
    numpy = None

warnings.simplefilter("ignore")  # about header versions


DTYPES = [
    "|u1", "|b1", "<i2", ">i4", "<i8", "<f4", ">f8", "<c16", "|S7", "<U3", "<M8[ns]", "<m8[25s]", "|V5",
    [("a", "<i4"), ("b", "<f8", (2,))],
    [("x", [("y", "u1"), ("z", ">i2", (2, 2))]), ("s", "S3")],
    [("\u00e9", "<i2")],
    [("\u03c0", "<i2"), ("it's", "u1")],
    {"names": ["a", "b"], "formats": ["u1", "<i4"], "offsets": [0, 4], "itemsize": 12},
]


@unittest.skipIf(numpy is None, "needs python3-numpy")
class Arrays(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="cframefs-arrays-")
        rng = random.Random(4)
        cls.arrays = {}

        def add(name, array, chunks, blocks):
            text = array.dtype.str if array.dtype.names is None else str(array.dtype)
            with open(os.path.join(cls.directory.name, name + ".b2nd"), "wb") as file:
                file.write(b2nd(array, chunks, blocks, text))
            cls.arrays[name] = array

        for number, dtype in enumerate(DTYPES):
            add(f"dtype{number}", filled((7, 9), dtype, rng), (4, 5), (2, 3))
        for number in range(40):
            ndim = rng.randrange(1, 5)
            shape = [rng.randrange(1, 12) for _ in range(ndim)]
            chunks = [rng.randrange(1, n + 3) for n in shape]
            blocks = [rng.randrange(1, c + 1) for c in chunks]
            add(f"shape{number}", filled(shape, rng.choice(["<i2", "<f8", "|u1"]), rng), chunks, blocks)
        add("scalar", filled((), "<f8", rng), (), ())
        add("empty", filled((0, 5), "<i4", rng), (1, 5), (1, 5))
        add("wide", filled((1,) * 12 + (2, 3, 2, 3), "|u1", rng), (1,) * 13 + (2, 2, 2), (1,) * 14 + (2, 1))
        add("large", filled((300, 400, 10), "<f4", rng), (128, 150, 10), (32, 50, 10))

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def test_numpy_opens_every_one_and_the_file_is_its_own(self):
        # semantics: N1, B1
        with mounting.Mount(self.directory.name) as mount:
            self.assertEqual(sorted(os.listdir(mount.path)), sorted(name + ".npy" for name in self.arrays))
            for name, array in self.arrays.items():
                with self.subTest(name, dtype=array.dtype, shape=array.shape):
                    path = mount / f"{name}.npy"
                    expected = saved(array)
                    self.assertEqual(os.stat(path).st_size, len(expected))
                    with open(path, "rb") as file:
                        self.assertEqual(file.read(), expected)
                    mode = "r" if array.size else None  # an empty file cannot be mapped
                    loaded = numpy.load(path, mmap_mode=mode)
                    self.assertEqual((loaded.dtype, loaded.shape), (array.dtype, array.shape))
                    self.assertEqual(loaded.tobytes(), array.tobytes())

    def test_slices_of_a_mapped_array(self):
        rng = random.Random(5)
        array = self.arrays["large"]
        with mounting.Mount(self.directory.name) as mount:
            loaded = numpy.load(mount / "large.npy", mmap_mode="r")
            for _ in range(50):
                cut = tuple(slice(*sorted(rng.sample(range(n + 1), 2))) for n in array.shape)
                self.assertEqual(loaded[cut].tobytes(), array[cut].tobytes(), cut)
            del loaded

    def test_as_flat_bytes(self):
        # semantics: B1
        with mounting.Mount(self.directory.name, "b2nd=flat") as mount:
            for name, array in self.arrays.items():
                with self.subTest(name), open(mount / name, "rb") as file:
                    self.assertEqual(file.read(), array.tobytes())

    def test_names_are_kept_whatever_they_show(self):
        with mounting.Mount(self.directory.name, "names=keep") as mount:
            self.assertEqual(sorted(os.listdir(mount.path)), sorted(name + ".b2nd" for name in self.arrays))
            loaded = numpy.load(mount / "large.b2nd", mmap_mode="r")
            self.assertEqual(loaded.tobytes(), self.arrays["large"].tobytes())
            del loaded

    def test_one_array_on_a_regular_file(self):
        with tempfile.NamedTemporaryFile(suffix=".npy") as target:
            source = os.path.join(self.directory.name, "dtype5.b2nd")
            with mounting.Mount(source, mountpoint=target.name) as mount:
                self.assertEqual(numpy.load(mount.path).tobytes(), self.arrays["dtype5"].tobytes())

    def test_a_row_decodes_only_the_blocks_that_hold_it(self):
        array = self.arrays["large"]
        row = 400 * 10 * 4
        with mounting.Mount(self.directory.name, "b2nd=flat", "stats=on") as mount:
            descriptor = os.open(mount / "large", os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
            before = mount.statistics()["blocks_decoded"]
            self.assertEqual(os.pread(descriptor, row, 48 * row), array[48].tobytes())
            # Eight blocks hold it and the rows beside it, which the pages at its ends reach into. Where the kernel asks in
            # two pieces, a block may have been dropped between them.
            self.assertLessEqual(mount.statistics()["blocks_decoded"] - before, 16)
            os.close(descriptor)

    def test_a_damaged_layer_is_an_error_and_not_other_bytes(self):
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(self.directory.name, "large.b2nd"), "rb") as file:
                content = bytearray(file.read())
            at = content.index(b"\x97\x00\x03\x93\xd3")
            content[at + 5] = 0x80
            with open(os.path.join(directory, "bad.b2nd"), "wb") as file:
                file.write(content)
            with mounting.Mount(directory) as mount:
                self.assertEqual(os.listdir(mount.path), ["bad.npy"])
                for look in (os.stat, lambda path: open(path, "rb")):
                    with self.assertRaises(OSError) as caught:
                        look(mount / "bad.npy")
                    self.assertEqual(caught.exception.errno, 5)

                def is_told():
                    # Once the state has lasted longer than the clock of the filesystem takes to tell a change.
                    self.assertRaises(OSError, os.stat, mount / "bad.npy")
                    return any("dimension 0" in line for line in mount.lines())

                mounting.wait_for(is_told, what="a line of the log")


@unittest.skipIf(numpy is None, "needs python3-numpy")
class WrittenArrays(unittest.TestCase):
    """Changes that NumPy and plain calls make, read back through the mount and from a second mount."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="cframefs-arrays-")
        self.addCleanup(self.directory.cleanup)

    def store(self, array, chunks, blocks, name="x"):
        with open(os.path.join(self.directory.name, name + ".b2nd"), "wb") as file:
            file.write(b2nd(array, chunks, blocks, array.dtype.str))

    def check(self, array):
        """From a mount that has never seen it before."""
        with mounting.Mount(self.directory.name) as mount:
            with open(mount / "x.npy", "rb") as file:
                self.assertEqual(file.read(), saved(array))

    def test_a_mapped_array_is_assigned_to(self):
        # semantics: B2
        array = filled((300, 40, 10), "<f4", random.Random(1)).copy()
        self.store(array, (128, 15, 10), (32, 5, 10))
        with mounting.Mount(self.directory.name) as mount:
            mapped = numpy.load(mount / "x.npy", mmap_mode="r+")
            rng = random.Random(2)
            for step in range(20):
                cut = tuple(slice(*sorted(rng.sample(range(n + 1), 2))) for n in array.shape)
                array[cut] = mapped[cut] = step
                if step % 5 == 0:
                    mapped.flush()
            mapped.flush()
            del mapped
            self.assertEqual(numpy.load(mount / "x.npy").tobytes(), array.tobytes())
        self.check(array)

    def test_rows_are_appended_and_the_header_says_so(self):
        # semantics: B3
        array = filled((9, 7), "<i8", random.Random(3))
        self.store(array, (4, 5), (2, 3))
        with mounting.Mount(self.directory.name) as mount:
            self.assertEqual(numpy.load(mount / "x.npy").shape, (9, 7))
            for more in (1, 2, 995):
                rows = filled((more, 7), "<i8", random.Random(more))
                with open(mount / "x.npy", "ab") as file:
                    file.write(rows.tobytes())
                array = numpy.concatenate([array, rows])
                self.assertEqual(numpy.load(mount / "x.npy").tobytes(), array.tobytes())
                self.assertEqual(numpy.load(mount / "x.npy").shape, array.shape)
            with open(mount / "x.npy", "r+b") as file:
                head = len(saved(array)) - array.nbytes
                file.truncate(head + 12 * 56)
            array = array[:12]
            self.assertEqual(numpy.load(mount / "x.npy").tobytes(), array.tobytes())
        self.check(array)

    def test_a_reader_that_has_it_open_sees_new_rows(self):
        array = filled((9, 7), "<i8", random.Random(3))
        self.store(array, (4, 5), (2, 3))
        rows = filled((2000, 7), "<i8", random.Random(5))
        grown = numpy.concatenate([array, rows])
        with mounting.Mount(self.directory.name) as mount, open(mount / "x.npy", "rb", buffering=0) as reader:
            self.assertEqual(reader.read(), saved(array))
            with open(mount / "x.npy", "ab", buffering=0) as file:
                file.write(rows.tobytes())

                def sees_them():
                    reader.seek(0)
                    return reader.read() == saved(grown)

                mounting.wait_for(sees_them, what="the new header")
                os.fsync(file.fileno())
            mounting.wait_for(sees_them, what="the committed header")

    def test_save_replaces_an_array_of_its_kind(self):
        array = filled((9, 7), "<i8", random.Random(3))
        self.store(array, (4, 5), (2, 3))
        other = filled((21, 7), "<i8", random.Random(4))
        with mounting.Mount(self.directory.name) as mount:
            numpy.save(mount / "x.npy", other)
            self.assertEqual(numpy.load(mount / "x.npy").tobytes(), other.tobytes())
        self.check(other)
        with mounting.Mount(self.directory.name) as mount:
            for wrong in (other.astype("<f8"), other.reshape(7, 21)):
                with self.assertRaises(OSError) as caught:
                    with open(mount / "x.npy", "r+b", buffering=0) as file:
                        file.write(saved(wrong))
                self.assertEqual(caught.exception.errno, errno.EINVAL)
        self.check(other)

    def test_save_of_another_shape_or_type_replaces_the_array(self):
        # semantics: B4
        rng = random.Random(6)
        # Longer than the whole file that is left of the array before it.
        long_header = numpy.ones(7, [(f"field {n}", "<f8") for n in range(20)])
        arrays = [filled((6, 5), "<f8", rng), filled((5, 4), "<f4", rng), filled((5, 4, 3), "<i2", rng),
                  filled((100_000,), "|u1", rng), numpy.float64(3.5), filled((0, 3), "<i8", rng), filled((3, 0), "<i8", rng),
                  filled((300, 900), "<f8", rng), filled((40, 30), "<i4", rng).T.copy(),
                  numpy.array([(1, 2.5, b"text")] * 7, dtype=[("n", "<i4"), ("x", "<f8"), ("s", "S4")]),
                  long_header]
        for options in ((), ("writeback=on",), ("commit_interval=0.05", "dirty_limit=1M")):
            array = filled((9, 7), "<i8", rng)
            self.store(array, (4, 5), (2, 3))
            with mounting.Mount(self.directory.name, *options) as mount:
                with open(mount / "x.npy", "rb") as reader:
                    for array in arrays:
                        numpy.save(mount / "x.npy", array)
                        loaded = numpy.load(mount / "x.npy")
                        self.assertEqual((loaded.dtype, loaded.shape), (array.dtype, array.shape), options)
                        self.assertEqual(loaded.tobytes(), array.tobytes())
                        reader.seek(0)
                        self.assertEqual(reader.read(), saved(array))
                self.assertEqual(mount.lines(), [])
            self.check(array)
            mounting.output(mounting.CFRAME, "verify", self.directory.name)
            self.assertEqual(os.listdir(self.directory.name), ["x.b2nd"])

    def test_save_in_fortran_order_is_refused_and_logged(self):
        # semantics: B7
        self.store(filled((9, 7), "<i8", random.Random(3)), (4, 5), (2, 3))
        with mounting.Mount(self.directory.name) as mount:
            with self.assertRaises(OSError) as caught:
                numpy.save(mount / "x.npy", numpy.asfortranarray(filled((6, 5), "<f8", random.Random(1))))
            self.assertEqual(caught.exception.errno, errno.EINVAL)
            self.assertTrue(any("Fortran" in line for line in mount.lines()))

    def test_flat_items_are_no_npy_file(self):
        self.store(filled((3, 0), "<i8", random.Random(3)), (1, 1), (1, 1))
        before = os.stat(self.directory.name + "/x.b2nd")
        with mounting.Mount(self.directory.name, "b2nd=flat") as mount:
            with self.assertRaises(OSError) as caught:
                with open(mount / "x", "r+b", buffering=0) as file:
                    file.write(saved(filled((6, 5), "<f8", random.Random(1))))
            self.assertEqual(caught.exception.errno, errno.EFBIG)
        self.assertEqual(os.stat(self.directory.name + "/x.b2nd").st_mtime_ns, before.st_mtime_ns)

    def test_a_row_that_is_not_whole_is_told_at_close(self):
        # semantics: B6
        array = filled((9, 7), "<i8", random.Random(3))
        self.store(array, (4, 5), (2, 3))
        with mounting.Mount(self.directory.name) as mount:
            with self.assertRaises(OSError) as caught:
                with open(mount / "x.npy", "ab") as file:
                    file.write(bytes(60))
            self.assertEqual(caught.exception.errno, errno.EINVAL)
            array = numpy.concatenate([array, numpy.zeros((1, 7), "<i8")])
            # The kernel tells of the last close some time after it.
            mounting.wait_for(lambda: os.stat(mount / "x.npy").st_size == len(saved(array)), what="the rest to be dropped")
            with open(mount / "x.npy", "rb") as file:
                self.assertEqual(file.read(), saved(array))
        self.check(array)

    def test_a_read_only_mount_refuses(self):
        self.store(filled((9, 7), "<i8", random.Random(3)), (4, 5), (2, 3))
        with mounting.Mount(self.directory.name, "ro") as mount:
            with self.assertRaises(OSError) as caught:
                open(mount / "x.npy", "r+b")
            self.assertEqual(caught.exception.errno, errno.EROFS)


if __name__ == "__main__":
    mounting.main()
