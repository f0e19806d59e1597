"""Renames, removals and locks of frames that are open or not."""

import errno
import os

import mounting
from mounting import output
from written_directory import RENAME_EXCHANGE, RENAME_NOREPLACE, Writing, rename2


class Names(Writing):
    def test_renames(self):
        # semantics: M1, M2, L3
        mount = self.mount()
        self.in_both(mount, "echo a > a; echo b > b; mkdir d e; mv a d/a; mv d/a b; mv d e/f; echo c > e/f/c; mv e/f g; ls -R")
        self.in_both(mount, "echo 1 > one; echo 2 > two")
        for directory in (mount.path, self.plain):
            rename2(directory + "/one", directory + "/two", RENAME_EXCHANGE)
            self.assert_refused(errno.EEXIST, rename2, directory + "/one", directory + "/two", RENAME_NOREPLACE)
            rename2(directory + "/one", directory + "/three", RENAME_NOREPLACE)
            self.assert_refused(errno.EISDIR, os.rename, directory + "/three", directory + "/g")
            self.assert_refused(errno.ENOTEMPTY, os.rmdir, directory + "/g")
        self.assert_refused(errno.EPERM, os.link, mount / "three", mount / "link")
        self.check_same(mount)

    def test_a_frame_over_a_plain_file_and_back(self):
        # semantics: O3, L1
        for directory in (self.source, self.plain):
            with open(directory + "/notes.txt", "w", encoding="ascii") as file:
                file.write("plain\n")
        mount = self.mount()
        self.in_both(mount, "echo more >> notes.txt; ln notes.txt second; rm second; sed -i s/plain/PLAIN/ notes.txt")
        self.assertEqual(os.listdir(self.source), ["notes.txt.b2frame"])
        self.check_same(mount)

    def test_locks_go_with_their_frames(self):
        # semantics: N6
        mount = self.mount()
        for name in ("a", "b"):
            with open(mount / name, "w", encoding="ascii") as file:
                file.write(name)
            with open(f"{self.source}/{name}.b2frame.b2lock", "w", encoding="ascii") as file:
                file.write(name * 16)
        self.assertEqual(sorted(os.listdir(mount.path)), ["a", "b"])
        os.rename(mount / "a", mount / "b")
        self.assertEqual(sorted(os.listdir(self.source)), ["b.b2frame", "b.b2frame.b2lock"])
        os.unlink(mount / "b")
        self.assertEqual(os.listdir(self.source), [])

    def test_names_keep(self):
        # semantics: M5
        mount = self.mount("names=keep")
        with open(mount / "x.b2frame", "wb") as file:
            file.write(b"in a frame")
        with open(mount / "y", "wb") as file:
            file.write(b"as it is")
        with open(self.source + "/y", "rb") as file:
            self.assertEqual(file.read(), b"as it is")
        # A rename would make another file of it.
        self.assert_refused(errno.EXDEV, os.rename, mount / "x.b2frame", mount / "x")
        self.assert_refused(errno.EXDEV, os.rename, mount / "y", mount / "y.b2frame")
        output("mv", mount / "y", mount / "y.b2frame")
        with open(mount / "y.b2frame", "rb") as file:
            self.assertEqual(file.read(), b"as it is")
        output(mounting.CFRAME, "verify", self.source)

    def test_open_files_survive_what_becomes_of_their_names(self):
        # semantics: M3, U2
        mount = self.mount()
        for what in ("unlink", "rename over", "rename"):
            with self.subTest(what):
                with open(mount / "x", "w+b", buffering=0) as file:
                    file.write(b"before")
                    if what == "unlink":
                        os.unlink(mount / "x")
                    elif what == "rename":
                        os.rename(mount / "x", mount / "y")
                    else:
                        with open(mount / "new", "wb") as other:
                            other.write(b"other")
                        os.rename(mount / "new", mount / "x")
                    file.write(b" and after")
                    os.fsync(file.fileno())
                    file.seek(0)
                    self.assertEqual(file.read(), b"before and after")
                    self.assertEqual(os.fstat(file.fileno()).st_size, 16)
                expected = {"unlink": [], "rename over": ["x"], "rename": ["y"]}[what]
                self.assertEqual(sorted(os.listdir(mount.path)), expected)
        with open(mount / "y", "rb") as file:
            self.assertEqual(file.read(), b"before and after")
        self.assertEqual(os.listdir(self.source), ["y.b2frame"])


if __name__ == "__main__":
    mounting.main()
