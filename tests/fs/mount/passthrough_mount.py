"""Plain files that the kernel reads and maps itself: no request reaches the daemon, and the bytes are those of the source.
Where the kernel cannot, the daemon reads."""

import errno
import mmap
import os
import random
import shutil
import subprocess
import sys

import mounting
from mounted_directory import SMALL
from mounting import Mount, golden_frames, output, run, wait_for
from passed_files import CONTENT, SIZE, Plain, read, write

PAGE = 4096


class Reading(Plain):
    def read_in_each_way(self, mount):
        path = mount / "plain"
        self.assertEqual(read(path), CONTENT)
        places = random.Random(1)
        handles = [self.open(path) for _ in range(3)]
        for _ in range(200):
            at, length = places.randrange(SIZE), places.randrange(1, 70_000)
            self.assertEqual(os.pread(places.choice(handles), length, at), CONTENT[at : at + length])
        for access in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):
            with mmap.mmap(handles[0], SIZE, flags=access, prot=mmap.PROT_READ) as mapped:
                self.assertEqual(mapped[:], CONTENT)
        direct = self.open(path, os.O_RDONLY | os.O_DIRECT)
        with mmap.mmap(-1, 64 * PAGE) as buffer:
            self.assertEqual(os.preadv(direct, [buffer], 16 * PAGE), 64 * PAGE)
            self.assertEqual(buffer[:], CONTENT[16 * PAGE : 80 * PAGE])
        copied = self.work + "/copied"
        with open(copied, "wb") as file:
            self.assertEqual(os.sendfile(file.fileno(), handles[1], 0, SIZE), SIZE)
        self.assertEqual(read(copied), CONTENT)

    def test_no_read_reaches_the_daemon(self):
        # semantics: R12
        with Mount(self.source, *self.OPTIONS) as mount:
            self.read_in_each_way(mount)
            self.assertEqual(self.requests(mount), 0)

    def test_the_daemon_reads_if_the_option_says_so(self):
        # semantics: R12
        with Mount(self.source, *self.OPTIONS, "passthrough=off") as mount:
            self.read_in_each_way(mount)
            self.assertGreater(self.requests(mount), 0)
            self.assertIn("passthrough=off\n", read(mount / ".cframefs/config").decode())

    def test_without_a_sandbox_and_in_the_strict_one(self):
        # semantics: R12
        for mode in ("off", "auto", *(["strict"] if mounting.has_sandbox() else [])):
            with Mount(self.source, *self.OPTIONS, "sandbox=" + mode) as mount:
                self.read_in_each_way(mount)
                self.assertEqual(self.requests(mount), 0, mode)
                self.assertIn("passthrough=auto\n", read(mount / ".cframefs/config").decode())

    def test_the_daemon_reads_with_writeback_or_noatime(self):
        # semantics: R13
        for option in ("writeback=on", "noatime"):
            with Mount(self.source, *self.OPTIONS, option) as mount:
                self.assertEqual(read(mount / "plain"), CONTENT)
                self.assertGreater(self.requests(mount), 0, option)

    def test_noatime_leaves_the_access_time(self):
        # semantics: I5
        os.utime(self.stored, ns=(10**18, 2 * 10**18))
        with Mount(self.source, "noatime") as mount:
            self.assertEqual(read(mount / "plain"), CONTENT)
        self.assertEqual(os.stat(self.stored).st_atime_ns, 10**18)

    def test_the_access_time_shows(self):
        os.utime(self.stored, ns=(10**18, 2 * 10**18))
        mount = self.mount()
        descriptor = self.open(mount / "plain")
        os.pread(descriptor, 1, 0)
        self.assertGreater(os.fstat(descriptor).st_atime_ns, 10**18)

    def test_a_frame_beside_it_shows_decoded(self):
        (frame, content), = golden_frames(SMALL)
        self.put(frame, "y.b2frame")
        with Mount(self.source, "stats=on") as mount:
            self.assertEqual(read(mount / "y"), content)
            self.assertEqual(read(mount / "plain"), CONTENT)

    def test_a_file_that_becomes_a_frame_while_it_is_open(self):
        (frame, content), = golden_frames(SMALL)
        for passthrough in ("auto", "off"):
            with self.subTest(passthrough=passthrough), Mount(self.source, "detect=content", "names=strip",
                                                              "passthrough=" + passthrough) as mount:
                with open(mount / "plain", "rb", buffering=0) as before:
                    self.assertEqual(os.pread(before.fileno(), 10, 0), CONTENT[:10])
                    shutil.copyfile(frame, self.stored)
                    self.assertEqual(read(mount / "plain"), content)
                    self.assertEqual(before.read(SIZE) + before.read(), read(frame))
                    write(self.stored, CONTENT)
                    self.assertEqual(read(mount / "plain"), CONTENT)

    def test_a_file_that_becomes_a_frame_without_a_report(self):
        # semantics: F1
        (frame, content), = golden_frames(SMALL)
        stored = read(frame)
        write(self.stored, CONTENT[: len(stored)])
        for passthrough in ("auto", "off"):
            with self.subTest(passthrough=passthrough), Mount(self.source, "detect=content", "names=strip",
                                                              "passthrough=" + passthrough) as mount:
                with open(mount / "plain", "rb", buffering=0) as before, open(self.stored, "r+b") as source:
                    self.assertEqual(before.read(SIZE), CONTENT[: len(stored)])
                    with mmap.mmap(source.fileno(), len(stored)) as mapped:
                        mapped[:] = stored
                        mapped.flush()
                        self.assertEqual(read(mount / "plain"), content)
                        self.assertEqual(os.pread(before.fileno(), SIZE, 0), stored)
                        mapped[:] = CONTENT[: len(stored)]

    def test_programs_run(self):
        write(self.source + "/script", b"#!/bin/sh\necho it runs\n")
        shutil.copy("/bin/true", self.source + "/program")
        os.chmod(self.source + "/script", 0o755)
        for mode in ("off", *(["strict"] if mounting.has_sandbox() else [])):
            with Mount(self.source, *self.OPTIONS, "sandbox=" + mode) as mount:
                self.assertEqual(output(mount / "script"), b"it runs\n", mode)
                self.assertEqual(run(mount / "program").returncode, 0, mode)

    def test_ten_thousand_handles(self):
        for number in range(100):
            write(f"{self.source}/{number}", b"%d" % number)
        with Mount(self.source, *self.OPTIONS) as mount:
            before = len(os.listdir(f"/proc/{mount.daemon.pid}/fd"))
            # Each child has a tenth of them.
            program = ("import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (4000, 4000)); "
                       "held = [(n, os.open(f'{sys.argv[1]}/{n}', os.O_RDONLY)) for _ in range(10) for n in range(100)]; "
                       "print(all(os.pread(fd, 9, 0) == b'%d' % n for n, fd in held), flush=True); sys.stdin.read()")
            children = [subprocess.Popen([sys.executable, "-c", program, mount.path], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True) for _ in range(10)]
            self.assertEqual([child.stdout.readline() for child in children], ["True\n"] * 10)
            self.assertEqual(self.requests(mount), 0)
            for child in children:
                child.communicate()
            wait_for(lambda: len(os.listdir(f"/proc/{mount.daemon.pid}/fd")) <= before, what="the handles to be closed")


class Elsewhere(Plain):
    """Filesystems whose files the kernel does not take, or not for each call."""

    def beneath(self, *command):
        done = run("mount", *command)
        if done.returncode != 0:
            self.skipTest(f"mount {' '.join(command)}: {done.stderr.decode()}")
        self.addCleanup(output, "umount", command[-1])

    def test_a_stacked_source_is_served_by_the_daemon(self):
        # semantics: R13
        for name in ("lower", "upper", "worked"):
            os.mkdir(f"{self.work}/{name}")
        write(self.work + "/lower/plain", CONTENT)
        self.beneath("-t", "overlay", "overlay", "-o",
                     f"lowerdir={self.work}/lower,upperdir={self.work}/upper,workdir={self.work}/worked", self.source)
        with Mount(self.source, *self.OPTIONS, mountpoint=self.mountpoint) as mount:
            reads, writes = self.open(mount / "plain"), self.open(mount / "plain", os.O_RDWR)
            self.assertEqual(os.pread(reads, SIZE, 0), CONTENT)
            os.pwrite(writes, b"changed", 0)
            self.assertEqual(os.pread(reads, 7, 0), b"changed")
            self.assertGreater(self.requests(mount), 0)
            for descriptor in (reads, writes):
                os.close(descriptor)

    def test_a_mount_of_a_mount_is_served_by_the_daemon(self):
        # semantics: R13
        os.mkdir(self.work + "/second")
        with Mount(self.source, *self.OPTIONS, mountpoint=self.mountpoint) as mount:
            with Mount(mount.path, *self.OPTIONS, mountpoint=self.work + "/second") as second:
                self.assertEqual(read(second / "plain"), CONTENT)
                self.assertGreater(self.requests(second), 0)

    def test_overlayfs_above_the_mount(self):
        # semantics: R19
        for name in ("empty", "first", "second"):
            os.mkdir(f"{self.work}/{name}")
            # What is left if the test fails.
            self.addCleanup(run, "umount", "-q", "-l", f"{self.work}/{name}")

        def stack(lower, on):
            return run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower}:{self.work}/empty", on).returncode

        for option, second in (("passthrough=auto", 32), ("passthrough=off", 0)):
            with Mount(self.source, option, mountpoint=self.mountpoint) as mount:
                self.assertEqual(stack(mount.path, self.work + "/first"), 0, option)
                self.assertEqual(read(self.work + "/first/plain"), CONTENT)
                self.assertEqual(stack(self.work + "/first", self.work + "/second"), second, option)
                if second == 0:
                    self.assertEqual(read(self.work + "/second/plain"), CONTENT)
                    output("umount", self.work + "/second")
                output("umount", self.work + "/first")

    def test_the_first_open_decides_for_all_until_the_last_close(self):
        # semantics: R13
        library = os.environ.get("SLOW_CALLS_LIBRARY")
        if library is None:
            self.skipTest("SLOW_CALLS_LIBRARY is not set")
        gate = self.work + "/gate"
        with Mount(self.source, *self.OPTIONS, mountpoint=self.mountpoint,
                   environment={"LD_PRELOAD": library, "NO_BACKING": gate}) as mount:
            for is_refused in (False, True):
                if is_refused:
                    write(gate, b"")
                handles = [os.open(mount / "plain", os.O_RDONLY)]
                if is_refused:
                    os.unlink(gate)
                else:
                    write(gate, b"")
                before = self.requests(mount)
                handles += [os.open(mount / "plain", flags) for flags in (os.O_RDONLY, os.O_RDWR)]
                os.pwrite(handles[2], b"x", 5)
                for handle in handles:
                    self.assertEqual(os.pread(handle, SIZE, 0), CONTENT[:5] + b"x" + CONTENT[6:])
                self.assertEqual(self.requests(mount) > before, is_refused)
                for handle in handles:
                    os.close(handle)
                wait_for(lambda: not self.is_open_in(mount.daemon.pid), what="the last close")

    def is_open_in(self, pid):
        links = [f"/proc/{pid}/fd/{number}" for number in os.listdir(f"/proc/{pid}/fd")]
        return any(os.path.lexists(link) and os.readlink(link) == self.stored for link in links)

    def test_direct_reads_where_the_source_has_none(self):
        # semantics: R16
        self.beneath("-t", "ramfs", "ramfs", self.source)
        write(self.stored, CONTENT)
        with Mount(self.source, *self.OPTIONS, mountpoint=self.mountpoint) as mount:
            for path in (self.stored, mount / "plain"):
                with self.assertRaises(OSError) as refused:
                    os.open(path, os.O_RDONLY | os.O_DIRECT)
                self.assertEqual(refused.exception.errno, errno.EINVAL, path)
            self.assertEqual(read(mount / "plain"), CONTENT)
            self.assertEqual(self.requests(mount), 0)


if __name__ == "__main__":
    mounting.main()
