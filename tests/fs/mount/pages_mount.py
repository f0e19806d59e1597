"""The kernel reads the rest of a block that is read from here and there (fill_pages), and the process that has it do so
neither keeps a mount from ending nor outlives it.

PAGES_ROUNDS of the environment: rounds of unmounting and of killing.
"""

import contextlib
import ctypes
import mmap
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import mounting
from mounting import Mount, fillers_of, is_mounted, output, wait_for

ROUNDS = int(os.environ.get("PAGES_ROUNDS", "10"))
PAGE = 4096
BLOCK = 128 << 10
CHUNK = 1 << 20
SIZE = 16 << 20


def resident(descriptor):
    """The numbers of the file's pages that are in the page cache. (An open(2) of a file that has just changed would drop
    them.)"""
    libc = ctypes.CDLL(None, use_errno=True)
    with mmap.mmap(descriptor, 0, flags=mmap.MAP_PRIVATE) as memory:
        pages = (len(memory) + PAGE - 1) // PAGE
        found = (ctypes.c_ubyte * pages)()
        start = ctypes.c_char.from_buffer(memory)
        failed = libc.mincore(ctypes.byref(start), ctypes.c_size_t(len(memory)), found)
        del start
        if failed:
            raise OSError(ctypes.get_errno(), "mincore")
        return {page for page in range(pages) if found[page] & 1}


@unittest.skipUnless(os.geteuid() == 0, "only root may copy a mount")
class Pages(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-pages-")
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.source = work.name + "/source"
        os.mkdir(self.source)
        self.content = random.Random(1).randbytes(SIZE // 16) * 16
        self.store("x", self.content)

    def store(self, name, content):
        """A frame that comes into its place by a rename, as other programs write it."""
        plain = f"{self.work}/{name}.plain"
        with open(plain, "wb") as file:
            file.write(content)
        output(mounting.CFRAME, "pack", "--force", "--chunksize", str(CHUNK), "--blocksize", str(BLOCK), "--codec", "lz4",
               plain, f"{self.work}/{name}.b2frame")
        os.rename(f"{self.work}/{name}.b2frame", f"{self.source}/{name}.b2frame")

    def read(self, descriptor, at, content=None):
        expected = (content or self.content)[at:at + PAGE]
        self.assertTrue(os.pread(descriptor, PAGE, at) == expected, at)

    @contextlib.contextmanager
    def open(self, mount):
        descriptor = os.open(mount / "x", os.O_RDONLY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def touch_twice(self, descriptor, block, pages=(0, 9), content=None):
        """Reads of two pages of a block, with jumps before each."""
        for page in pages:
            self.read(descriptor, 5 * CHUNK, content)
            self.read(descriptor, block * BLOCK + page * PAGE, content)

    def pages_of(self, block):
        return set(range(block * BLOCK // PAGE, (block + 1) * BLOCK // PAGE))

    def fill(self, descriptor, block):
        self.touch_twice(descriptor, block)
        wait_for(lambda: self.pages_of(block) <= resident(descriptor), what="the block")

    def fill_after_change(self, descriptor, block, content):
        """Reads pages of a block until all of it is in the page cache. The report of a change may drop pages once more after
        the block was filled; it is filled again when other pages of it are read."""
        for page in range(0, BLOCK // PAGE, 2):
            self.touch_twice(descriptor, block, (page, page + 1), content)
            try:
                wait_for(lambda: self.pages_of(block) <= resident(descriptor), seconds=0.5)
                return
            except AssertionError:
                continue


class Filling(Pages):
    def test_block_that_is_read_twice_gets_into_the_page_cache(self):
        with Mount(self.source) as mount:
            with self.open(mount) as descriptor:
                self.fill(descriptor, 70)
                self.assertFalse(self.pages_of(71) & resident(descriptor))
                self.assertTrue(os.pread(descriptor, SIZE, 0) == self.content)
            self.assertEqual(mount.lines(), [])

    def test_option_turns_it_off(self):
        for options in (("fill_pages=off",), ("writeback=on",)):
            with self.subTest(options), Mount(self.source, *options) as mount:
                self.assertEqual(fillers_of(mount.path), [])
                with self.open(mount) as descriptor:
                    self.touch_twice(descriptor, 70)
                    self.assertEqual(len(self.pages_of(70) & resident(descriptor)), 2)

    def test_changed_file(self):
        other = bytes(reversed(self.content))
        with Mount(self.source) as mount:
            for content in (self.content, other, self.content):
                self.store("x", content)
                with self.open(mount) as descriptor:
                    for block in (70, 3):
                        self.fill_after_change(descriptor, block, content)
                    self.assertTrue(os.pread(descriptor, SIZE, 0) == content)

    def test_files_are_closed_soon(self):
        with Mount(self.source) as mount:
            (filler,) = fillers_of(mount.path)
            with self.open(mount) as descriptor:
                self.fill(descriptor, 70)
                # The standard streams, the socket, the table of mounts, and the root of the mount.
                wait_for(lambda: len(os.listdir(f"/proc/{filler}/fd")) == 6, what="closed files")

    def test_process_keeps_one_capability_and_has_a_filter(self):
        with Mount(self.source, "sandbox=auto") as mount:
            (filler,) = fillers_of(mount.path)
            with self.open(mount) as descriptor:
                self.fill(descriptor, 70)
            with open(f"/proc/{filler}/status", encoding="ascii") as file:
                fields = dict(line.split(":", 1) for line in file)
            self.assertEqual(int(fields["CapPrm"], 16), 1 << 2)  # CAP_DAC_READ_SEARCH
            self.assertEqual(int(fields["Seccomp"]), 2 if mounting.has_sandbox() else 0)
            self.assertEqual(int(fields["NoNewPrivs"]), 1)

    def test_mount_goes_on_without_it(self):
        with Mount(self.source) as mount:
            (filler,) = fillers_of(mount.path)
            os.kill(filler, signal.SIGKILL)
            wait_for(lambda: not fillers_of(mount.path), what="its end")
            with self.open(mount) as descriptor:
                for block in (70, 71):
                    self.touch_twice(descriptor, block)
            self.assertEqual(mount.lines(), [])


class Ending(Pages):
    """How a mount ends after, or in, a load: threads that read pages here and there."""

    def read_on(self, path, seed, stop):
        order = random.Random(seed)
        try:
            descriptor = os.open(path, os.O_RDONLY)
            while not stop.is_set():
                os.pread(descriptor, PAGE, order.randrange(SIZE // PAGE) * PAGE)
            os.close(descriptor)
        except OSError:
            pass

    def rounds(self, end):
        """Mounts, lets the load run for a while, which differs, and calls `end` with the mount and what ends the load."""
        mountpoint = self.work + "/mnt"
        os.mkdir(mountpoint)
        for number in range(ROUNDS):
            mount = Mount(self.source, mountpoint=mountpoint)
            stop = threading.Event()
            threads = [threading.Thread(target=self.read_on, args=(mount / "x", seed, stop)) for seed in range(3)]
            for thread in threads:
                thread.start()

            def end_load():
                stop.set()  # pylint: disable=W0640
                for thread in threads:  # pylint: disable=W0640
                    thread.join(20)
                    self.assertFalse(thread.is_alive(), number)  # pylint: disable=W0640

            time.sleep(0.02 + number % 7 * 0.01)
            end(mount, end_load)
            wait_for(lambda: not fillers_of(mountpoint), what="the end of the process")
            wait_for(lambda: not is_mounted(mountpoint), what="the end of the mount")

    def test_unmounting_after_reads_is_never_busy(self):
        def unmount(mount, end_load):
            end_load()
            done = subprocess.run(["umount", mount.path], capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertFalse(is_mounted(mount.path))
            self.assertEqual(mount.daemon.wait(20), 0)
            mount.close()

        self.rounds(unmount)

    def test_killed_daemon_leaves_no_process(self):
        def kill(mount, end_load):
            mount.daemon.kill()
            mount.daemon.wait(20)
            # Pages that are cached can still be read.
            end_load()
            wait_for(lambda: not is_mounted(mount.path), what="the end of the mount")
            with self.assertRaises(AssertionError):
                mount.close()

        self.rounds(kill)

    def test_stopped_process_holds_up_no_reader(self):
        with Mount(self.source) as mount:
            (filler,) = fillers_of(mount.path)
            os.kill(filler, signal.SIGSTOP)
            try:
                with self.open(mount) as descriptor:
                    for block in range(SIZE // BLOCK):
                        self.touch_twice(descriptor, block)
            finally:
                os.kill(filler, signal.SIGCONT)


if __name__ == "__main__":
    mounting.main()
