"""Access control lists of what a frame or member is made of: the directory of a sparse frame, the file of a store.

The answers of calls on the mount, by users of all kinds, are those that the source gives for the files which hold the
bytes. Without root, where no other user can be tried, the test says so and is skipped.
"""

import itertools
import os
import shutil
import unittest
import zipfile

import users
from mounting import Mount, output
from users import GROUP, OWNER, USERS, as_user, call
from sparse_frames import make_sparse_frame
from stores_mount import embed_frame, packed, plain_frame

CONTENT = b"content of a file\n" * 10
# mode, ACL entries
DIRECTORIES = ((0o700, ""), (0o755, ""), (0o777, ""), (0o700, "u:3005:rwx,g:3300:rx"), (0o755, "u:3005:-,g:3300:-"),
               (0o770, "u:3005:rwx,m::rx"), (0o711, "g:3300:rwx"))
INDEXES = ((0o600, ""), (0o644, ""), (0o666, ""), (0o640, "u:3005:rw,g:3300:r"), (0o664, "u:3005:-"))


def give(path, mode, acl):
    os.chown(path, OWNER, GROUP)
    os.chmod(path, mode)
    if acl:
        mask = ["-n", "-m"] if "m::" in acl else ["-m"]
        output("setfacl", *mask, acl, path)


def allowed(*checks):
    """EACCES, or "" if each of (path, rights) is allowed."""
    return "" if all(os.access(path, rights) for path, rights in checks) else "EACCES"


def opened(path, flags):
    os.close(os.open(path, flags))


def changed(path):
    """Changes what comes back as it was."""
    os.setxattr(path, "user.colour", b"red")
    os.removexattr(path, "user.colour")


@unittest.skipIf(os.geteuid() != 0, "only root can be all users")
class Lists(unittest.TestCase):
    def setUp(self):
        if shutil.which("setfacl") is None:
            self.skipTest("there is no setfacl")
        _, self.source, self.mountpoint = users.directories(self, "source", "mnt")

    def make_sparse(self, name, directory, index):
        frame = f"{self.source}/{name}.b2frame"
        make_sparse_frame(frame, CONTENT, 64)
        os.setxattr(frame + "/chunks.b2frame", "user.shape", b"round")
        os.setxattr(frame, "user.shape", b"round")
        for entry in os.listdir(frame):
            give(f"{frame}/{entry}", *index)
        give(frame, *directory)
        return frame

    def test_the_directory_of_a_sparse_frame(self):
        # semantics: A2, A3
        cases = []
        for number, (directory, index) in enumerate(itertools.product(DIRECTORIES, INDEXES)):
            cases.append((str(number), self.make_sparse(str(number), directory, index), directory, index))
        calls = {
            "read": (lambda path: opened(path, os.O_RDONLY), os.X_OK, os.R_OK),
            "write": (lambda path: opened(path, os.O_RDWR), os.W_OK | os.X_OK, os.R_OK | os.W_OK),
            "truncate": (lambda path: os.truncate(path, len(CONTENT)), os.W_OK | os.X_OK, os.W_OK),
            "getxattr": (lambda path: os.getxattr(path, "user.shape"), os.X_OK, os.R_OK),
            "setxattr": (changed, os.W_OK | os.X_OK, os.W_OK),
        }
        with Mount(self.source, "allow_other", mountpoint=self.mountpoint):
            for user in USERS:
                def answers():
                    found = []
                    for name, frame, _, _ in cases:
                        for run, in_directory, of_index in calls.values():
                            found.append([call(run, f"{self.mountpoint}/{name}"),
                                          allowed((frame, in_directory), (frame + "/chunks.b2frame", of_index))])
                    return found
                for (case, name), (shown, stored) in zip(itertools.product(cases, calls), as_user(user, answers)):
                    self.assertEqual(shown, stored, f"{user} {name}, directory {case[2]}, index {case[3]}")

    def test_the_time_of_now_is_for_writers_and_the_owner(self):
        # Others may write the index, but make no files in the directory.
        self.make_sparse("frame", (0o755, "u:3005:rwx"), (0o666, ""))
        with Mount(self.source, "allow_other", mountpoint=self.mountpoint):
            path = self.mountpoint + "/frame"
            for user, expected in (("owner", ""), ("root", ""), ("other", "EACCES"), ("acl-user", "")):
                self.assertEqual(as_user(user, lambda: call(os.utime, path)), expected, user)

    def test_a_list_that_is_set_on_a_sparse_frame_holds_for_its_files(self):
        # semantics: A2
        frame = self.make_sparse("frame", (0o700, ""), (0o600, ""))
        chunk = frame + "/00000000.chunk"
        with Mount(self.source, "allow_other", mountpoint=self.mountpoint):
            path = self.mountpoint + "/frame"
            def reads():
                return [call(opened, one, os.O_RDONLY) for one in (path, chunk)]
            self.assertEqual(as_user("acl-user", reads), ["EACCES", "EACCES"])
            output("setfacl", "-m", "u:3005:r", path)
            self.assertEqual(as_user("acl-user", reads), ["", ""])
            self.assertEqual(as_user("other", reads), ["EACCES", "EACCES"])
            self.assertIn(b"user:3005:r--", output("getfacl", "-pn", path))
            output("setfacl", "-b", path)
            self.assertEqual(as_user("acl-user", reads), ["EACCES", "EACCES"])
            with self.assertRaises(OSError):
                os.getxattr(chunk, "system.posix_acl_access")

    def test_members_of_stores_go_by_the_list_of_the_file_with_their_bytes(self):
        # semantics: A4
        raw = plain_frame(b"plain bytes " * 1000)
        lists = ((0o600, "u:3005:r"), (0o644, "u:3005:-"), (0o640, "g:3300:r"), (0o644, ""))
        cases = []
        for number, (mode, acl) in enumerate(lists):
            zip_file, embed = f"{self.source}/{number}.b2z", f"{self.source}/{number}.b2e"
            with zipfile.ZipFile(zip_file, "w", zipfile.ZIP_STORED) as store:
                store.writestr("embed.b2e", embed_frame({"/group/raw": raw}))
            with open(embed, "wb") as file:
                file.write(embed_frame({"/group/raw": raw}))
            directory = f"{self.source}/{number}.b2d"
            os.mkdir(directory)
            shutil.copy(embed, directory + "/embed.b2e")
            give(directory, 0o755, "")
            for stored in (zip_file, embed, directory + "/embed.b2e"):
                give(stored, mode, acl)
            cases += [(f"{number}.b2{kind}/group", stored)
                      for kind, stored in (("z", zip_file), ("e", embed), ("d", directory + "/embed.b2e"))]
        with Mount(self.source, "allow_other", mountpoint=self.mountpoint):
            for user in USERS:
                def answers():
                    return [[call(lambda: len(os.listdir(f"{self.mountpoint}/{group}")) and ""),
                             call(opened, f"{self.mountpoint}/{group}/raw", os.O_RDONLY),
                             allowed((stored, os.R_OK))] for group, stored in cases]
                for (group, stored), (listed, read, expected) in zip(cases, as_user(user, answers)):
                    self.assertEqual(listed, expected, f"{user} lists {group}")
                    self.assertEqual(read, expected, f"{user} reads in {group}")

    def test_metadata_of_a_group_need_the_rights_to_their_file(self):
        metadata = plain_frame(b"-", packed("of the group"), b"title")
        embed = embed_frame({"/raw": plain_frame(b"plain bytes " * 1000)})
        cases = []
        for number, (owner, mode) in enumerate(((0, 0o600), (0, 0o644), (OWNER, 0o644), (OWNER, 0o640))):
            directory = f"{self.source}/{number}.b2d"
            os.mkdir(directory)
            for name, content in (("embed.b2e", embed), ("__vlmeta__.b2f", metadata)):
                with open(f"{directory}/{name}", "wb") as file:
                    file.write(content)
                give(f"{directory}/{name}", 0o644, "")
            os.chown(directory + "/__vlmeta__.b2f", owner, GROUP)
            os.chmod(directory + "/__vlmeta__.b2f", mode)
            give(directory, 0o755, "")
            cases.append((f"{number}.b2d", "" if mode == 0o644 else "EACCES"))
        with Mount(self.source, "allow_other", mountpoint=self.mountpoint):
            for user in ("owner", "other", "root"):
                for name, expected in cases:
                    found = as_user(user, lambda name=name: call(os.getxattr, f"{self.mountpoint}/{name}",
                                                                 "user.blosc2.vlmeta.title"))
                    self.assertEqual(found, expected, f"{user} {name}")


if __name__ == "__main__":
    users.main()
