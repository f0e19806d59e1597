"""chmod, chown and ACLs of a sparse frame reach the frame alone, whatever lies in its directory or takes its index's place.

The directory belongs to the frame's owner, and the owner can put files of other users there: by moving them, or by a
second name. What the owner or root then asks the mount to do to the frame must not happen to these files.
"""

import os
import subprocess
import unittest

import users
from mounting import Mount
from sparse_frames import make_sparse_frame
from users import GROUP, OWNER, as_user, call, described

CONTENT = bytes(range(200))
OTHER = 3004
# Version 2; user, named user 3001 may read and write, group, the mask, others.
ACL = bytes.fromhex("02000000" "01000600ffffffff" "02000600b90b0000" "04000000ffffffff" "10000600ffffffff" "20000000ffffffff")
CHANGES = {
    "chmod": lambda path: os.chmod(path, 0o666),
    "chgrp": lambda path: os.chown(path, -1, GROUP),
    "chown": lambda path: os.chown(path, OTHER, 3200),
}


@unittest.skipIf(os.geteuid() != 0, "only root can be all users")
class SparseRights(unittest.TestCase):
    def setUp(self):
        _, self.source, self.mountpoint = users.directories(self, "source", "mnt")
        self.frame = self.source + "/x.b2frame"

    def make(self, directory=OWNER, index=OWNER):
        """The frame: its directory belongs to one user, the files in it to another or the same."""
        subprocess.run(["rm", "-rf", self.frame], check=True)
        make_sparse_frame(self.frame, CONTENT, 64)
        for name in os.listdir(self.frame):
            os.chown(f"{self.frame}/{name}", index, 3200)
            os.chmod(f"{self.frame}/{name}", 0o600)
        os.chown(self.frame, directory, 3200)
        os.chmod(self.frame, 0o755)

    def put(self, path, user=0, mode=0o600):
        with open(path, "wb") as file:
            file.write(b"another's")
        os.chown(path, user, user)
        os.chmod(path, mode)
        return path

    def changes(self, untouched, prepare):
        """Each change by the owner and by root: the files of others stay what they are, the frame's change."""
        for user in ("owner", "root"):
            for name, change in CHANGES.items():
                if name == "chown" and user == "owner":
                    continue
                with self.subTest(user=user, change=name):
                    self.make()
                    prepare()
                    before = [described(path) for path in untouched]
                    index = described(self.frame + "/chunks.b2frame")
                    chunk = described(self.frame + "/00000000.chunk")
                    with Mount(self.source, "allow_other", mountpoint=self.mountpoint):
                        done = as_user(user, lambda change=change: call(change, self.mountpoint + "/x"))
                    self.assertEqual(done, "")
                    self.assertEqual([described(path) for path in untouched], before)
                    self.assertNotEqual(described(self.frame + "/chunks.b2frame"), index)
                    if self.frame + "/00000000.chunk" not in untouched:
                        self.assertNotEqual(described(self.frame + "/00000000.chunk"), chunk)

    def test_files_of_other_users(self):
        # semantics: A2
        files = [f"{self.frame}/00000001.chunk", f"{self.frame}/00000009.chunk", f"{self.frame}/notes"]

        def prepare():
            os.chown(files[0], OTHER, OTHER)
            self.put(files[1])
            self.put(files[2], OTHER, 0o640)

        self.changes(files, prepare)

    def test_second_names_and_links(self):
        secret, others = self.source + "/secret", self.source + "/others"

        def prepare():
            for path, user in ((secret, 0), (others, OWNER)):
                if os.path.lexists(path):
                    os.unlink(path)
                self.put(path, user)
            os.link(secret, self.frame + "/00000009.chunk")
            os.link(others, self.frame + "/0000000A.chunk")
            os.symlink(secret, self.frame + "/0000000B.chunk")
            os.symlink(secret, self.frame + "/0000000C.chunk-link")

        self.changes([secret, others], prepare)

    def test_a_directory_of_another_user(self):
        for directory in (0, OTHER):
            for user in ("owner", "root"):
                with self.subTest(directory=directory, user=user):
                    self.make(directory=directory)
                    before = described(self.frame)
                    chunk = described(self.frame + "/00000000.chunk")
                    with Mount(self.source, "allow_other", mountpoint=self.mountpoint):
                        done = as_user(user, lambda: call(os.chmod, self.mountpoint + "/x", 0o666))
                    self.assertEqual(done, "")
                    self.assertEqual(described(self.frame), before)
                    self.assertEqual(os.stat(self.frame + "/chunks.b2frame").st_mode & 0o7777, 0o666)
                    # Another user's directory may hold anything; root's holds what its owner was given.
                    self.assertEqual(described(self.frame + "/00000000.chunk") == chunk, directory == OTHER)

    def test_roots_frame_in_the_directory_of_a_user(self):
        """Where that user has put another of root's files."""
        self.make(directory=OWNER, index=0)
        moved = self.put(self.frame + "/00000009.chunk")
        with Mount(self.source, "allow_other", mountpoint=self.mountpoint) as mount:
            os.chmod(mount / "x", 0o666)
            os.chown(mount / "x", OTHER, OTHER)
        self.assertEqual(described(moved)[:3], ["0o100600", 0, 0])
        self.assertEqual(os.stat(self.frame + "/chunks.b2frame").st_uid, OTHER)

    def test_an_index_that_takes_the_place_of_the_owners(self):
        """By a handle, for which the kernel looks at the rights that it knows."""
        changes = {
            "chmod": lambda fd: os.fchmod(fd, 0o666),
            "chgrp": lambda fd: os.fchown(fd, -1, GROUP),
            "utime": lambda fd: os.utime(fd, (1, 1)),
            "set an ACL": lambda fd: os.setxattr(fd, "system.posix_acl_access", ACL),
            "remove an ACL": lambda fd: os.removexattr(fd, "system.posix_acl_access"),
        }
        for user in ("owner", "root"):
            for name, change in changes.items():
                with self.subTest(user=user, change=name):
                    self.make()
                    index = self.frame + "/chunks.b2frame"
                    with Mount(self.source, "allow_other,attr_timeout=60", mountpoint=self.mountpoint):

                        def work(change=change, index=index):
                            fd = os.open(self.mountpoint + "/x", os.O_RDONLY)
                            os.rename(index, index + "-own")
                            os.rename(self.frame + "/secret", index)
                            return call(change, fd)

                        secret = self.put(self.frame + "/secret")
                        if name == "remove an ACL":
                            os.setxattr(secret, "system.posix_acl_access", ACL)
                        os.utime(secret, (1000, 1000))
                        before = described(secret)
                        done = as_user(user, work)
                        self.assertNotEqual(done, "")
                        self.assertEqual(described(index), before)
                        self.assertEqual(os.stat(index).st_mtime, 1000)

    def test_a_group_is_not_lent_by_files_beside_the_index(self):
        """The kernel asks whether the caller is of the index's group; other files may have another one."""
        self.make()
        chunk = self.frame + "/00000000.chunk"
        os.chown(chunk, OWNER, 0)
        with Mount(self.source, "allow_other", mountpoint=self.mountpoint):
            os.chown(self.frame, OWNER, 0)
            os.chown(self.frame + "/chunks.b2frame", OWNER, GROUP)
            self.assertEqual(as_user("owner", lambda: call(os.chmod, self.mountpoint + "/x", 0o6775)), "")
        self.assertEqual(os.stat(self.frame + "/chunks.b2frame").st_mode & 0o7777, 0o6775)
        self.assertEqual(os.stat(chunk).st_mode & 0o7777, 0o775)
        self.assertEqual(os.stat(self.frame).st_mode & 0o7777, 0o775)

    def test_a_writer_that_is_not_the_owner_takes_the_set_ids(self):
        for options in ("allow_other", "allow_other,writeback=on"):
            for flags in (os.O_WRONLY, os.O_RDWR):
                with self.subTest(options=options, flags=flags):
                    self.make()
                    os.chmod(self.frame, 0o777)
                    os.chmod(self.frame + "/chunks.b2frame", 0o6777)
                    with Mount(self.source, options, mountpoint=self.mountpoint):

                        def write(flags=flags):
                            fd = os.open(self.mountpoint + "/x", flags)
                            os.pwrite(fd, b"new", 3)
                            os.close(fd)

                        self.assertEqual(as_user("other", lambda: call(write)), "")
                    self.assertEqual(os.stat(self.frame + "/chunks.b2frame").st_mode & 0o7777, 0o777)


if __name__ == "__main__":
    users.main()
