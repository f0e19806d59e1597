"""A mount of root's for all users decides as its source does: who may do what, and whose is what they make.

The same call, by the same user, on the mount and on a plain copy of what it shows beside the source: the answers are the
same, and so are owner, group, mode and ACL of what is there afterwards. Calls x users x modes and ACLs x kinds of files.
Without root, where no other user can be tried, the test says so and is skipped.
"""

import os
import shutil
import unittest

import mounting
import users
from mounting import Mount, output
from sparse_frames import make_sparse_frame
from users import GROUP, OWNER, USERS, as_user, call, described

# name: (mode, ACL entries)
RIGHTS = {
    "rw-------": (0o600, ""),
    "rw-r--r--": (0o644, ""),
    "rw-rw----": (0o660, ""),
    "r--r--r--": (0o444, ""),
    "----rw-rw-": (0o066, ""),
    "set-ids": (0o6755, ""),
    "acl-grants": (0o600, "u:3005:rw,g:3300:r"),
    "acl-denies": (0o664, "u:3005:-,g:3300:-"),
    "acl-masks": (0o640, "u:3005:rwx,g::rwx,m::r"),
}
CONTENT = b"content of a file\n" * 10


def access(path):
    return "".join(letter for letter, right in (("r", os.R_OK), ("w", os.W_OK), ("x", os.X_OK)) if os.access(path, right))


def opened(path, flags, mode=0o666):
    os.close(os.open(path, flags, mode))


def written(path):
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, b"C")
    finally:
        os.close(descriptor)


# Each on a file of its own.
CALLS = {
    "open for reading": lambda path: opened(path, os.O_RDONLY),
    "write": written,
    "open for both": lambda path: opened(path, os.O_RDWR),
    "truncate": lambda path: os.truncate(path, 5),
    "access": access,
    "chmod": lambda path: os.chmod(path, 0o2751),
    "chgrp": lambda path: os.chown(path, -1, 3200),
    "chgrp to the same": lambda path: os.chown(path, -1, GROUP),
    "chown": lambda path: os.chown(path, 3004, -1),
    "utime of now": lambda path: os.utime(path),
    "utime of then": lambda path: os.utime(path, (1000, 2000)),
    "setxattr": lambda path: os.setxattr(path, "user.colour", b"red"),
    "getxattr": lambda path: os.getxattr(path, "user.shape"),
    "set an ACL": lambda path: os.setxattr(path, "system.posix_acl_access", ACL),
    "unlink": os.unlink,
    "rename": lambda path: os.rename(path, path + "-renamed"),
}
# Version 2; user, named user 3005 and group may read, the mask, nothing for others.
ACL = bytes.fromhex("02000000" "01000600ffffffff" "02000400bd0b0000" "04000400ffffffff" "10000400ffffffff" "20000000ffffffff")

# Each in a directory of its own.
DIRECTORIES = {
    "rwxr-xr-x": (0o755, "", ""),
    "rwxrwxrwx": (0o777, "", ""),
    "rwxrwxrwt": (0o1777, "", ""),
    "rwxrwsrwx": (0o2777, "", ""),
    "rwxr-x---": (0o750, "", ""),
    "rwx-wx-wx": (0o733, "", ""),
    "acl-grants": (0o700, "u:3005:rwx,g:3300:rx", ""),
    "default-acl": (0o777, "", "u:3005:rw,g::rw,o::-,m::rwx"),
}


def symlink(path):
    os.symlink("anywhere", path)


def created(path, mode):
    opened(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)


MAKERS = {
    "create": lambda path: created(path, 0o666),
    "create with the set-group-id bit": lambda path: created(path, 0o2775),
    "mkdir": lambda path: os.mkdir(path, 0o777),
    "mkfifo": lambda path: os.mkfifo(path, 0o666),
    "symlink": symlink,
    "list": lambda path: os.listdir(os.path.dirname(path)),
    "unlink of the owner's": lambda path: os.unlink(os.path.dirname(path) + "/theirs"),
    "rename of the owner's": lambda path: os.rename(os.path.dirname(path) + "/theirs", path),
    "stat": lambda path: os.stat(os.path.dirname(path) + "/theirs"),
}
UMASKS = (0, 0o027)


@unittest.skipIf(os.geteuid() != 0, "only root can be all users")
class Rights(unittest.TestCase):
    def setUp(self):
        work, self.source, self.plain, self.mountpoint = users.directories(self, "source", "plain", "mnt")
        self.content = work + "/content"
        with open(self.content, "wb") as file:
            file.write(CONTENT)
        self.frame = work + "/content.b2frame"
        output(mounting.CFRAME, "pack", self.content, self.frame)
        if shutil.which("setfacl") is None:
            self.skipTest("there is no setfacl")

    def give(self, path, mode, acl="", default=""):
        os.chown(path, OWNER, GROUP)
        os.chmod(path, mode)
        if acl:
            output("setfacl", "-n" if "m::" not in acl else "-m", *(["-m"] if "m::" not in acl else []), acl, path)
        if default:
            output("setfacl", "-d", "-m", default, path)

    def compare(self, user, cases, stored):
        """`cases`: [(path below the roots, call)]. `stored`: the name on disk that shows as the path."""
        umask = os.umask(0)
        answers = []
        for root in (self.mountpoint, self.plain):
            answers.append(as_user(user, lambda root=root: [call(run, root + "/" + path) for path, run in cases]))
        os.umask(umask)
        for (path, _), shown, plain in zip(cases, *answers):
            self.assertEqual(shown, plain, f"{user}: {path}")
            ours, theirs = described(stored(path)), described(self.plain + "/" + path)
            self.assertEqual(ours, theirs, f"{user}: {path}")

    def files(self, suffix, make):
        cases = []
        for user in USERS:
            for right, (mode, acl) in RIGHTS.items():
                for name in CALLS:
                    path = f"{user} {right} {name}"
                    make(f"{self.source}/{path}{suffix}")
                    shutil.copy(self.content, f"{self.plain}/{path}")
                    for file in (f"{self.source}/{path}{suffix}", f"{self.plain}/{path}"):
                        os.setxattr(file, "user.shape", b"round")
                        self.give(file, mode, acl)
                    cases.append((user, path, CALLS[name]))
        os.chmod(self.source, 0o777)
        os.chmod(self.plain, 0o777)
        with Mount(self.source, "allow_other", mountpoint=self.mountpoint):
            for user in USERS:
                mine = [(path, run) for owner, path, run in cases if owner == user]
                self.compare(user, mine, lambda path: f"{self.source}/{path}{suffix}")

    def test_plain_files(self):
        # semantics: A1
        self.files("", lambda path: shutil.copy(self.content, path))

    def test_frames(self):
        # semantics: A1
        self.files(".b2frame", lambda path: shutil.copy(self.frame, path))

    def test_what_is_made(self):
        # semantics: U1, A1
        for options in ((), ("names=keep",)):
            suffix = "" if options else ".b2frame"
            for root in (self.source, self.plain):
                shutil.rmtree(root)
                os.mkdir(root)
            cases = []
            for user in USERS:
                for right, (mode, acl, default) in DIRECTORIES.items():
                    for maker in MAKERS:
                        for umask in UMASKS:
                            path = f"{user} {right} {maker} {umask}"
                            for root in (self.source, self.plain):
                                os.mkdir(f"{root}/{path}")
                                file = f"{root}/{path}/theirs{suffix if root == self.source else ''}"
                                shutil.copy(self.frame if suffix and root == self.source else self.content, file)
                                self.give(file, 0o640)
                                self.give(f"{root}/{path}", mode, acl, default)
                            cases.append((user, umask, path, MAKERS[maker]))
            with Mount(self.source, "allow_other", *options, mountpoint=self.mountpoint):
                for user in USERS:
                    for umask in UMASKS:
                        self.makes(user, umask, [case[2:] for case in cases if case[:2] == (user, umask)], suffix)

    def makes(self, user, umask, cases, suffix):
        def run(root):
            os.umask(umask)
            return [call(maker, f"{root}/{path}/new") for path, maker in cases]

        shown, plain = (as_user(user, lambda root=root: run(root)) for root in (self.mountpoint, self.plain))
        for (path, _), ours, theirs in zip(cases, shown, plain):
            self.assertEqual(ours, theirs, path)
            made = f"{self.source}/{path}/new"
            if not os.path.lexists(made):
                made += suffix
            self.assertEqual(described(made), described(f"{self.plain}/{path}/new"), path)

    def test_sparse_frames_need_the_rights_to_their_directories(self):
        # semantics: A2
        cases = [(f"{directory:o} {index:o}", directory, index)
                 for directory in (0o700, 0o750, 0o755, 0o711, 0o777) for index in (0o600, 0o640, 0o644, 0o666)]
        for name, directory, index in cases:
            frame = f"{self.source}/{name}.b2frame"
            make_sparse_frame(frame, CONTENT, 64)
            for entry in os.listdir(frame):
                os.chown(f"{frame}/{entry}", OWNER, GROUP)
                os.chmod(f"{frame}/{entry}", index)
            os.chown(frame, OWNER, GROUP)
            os.chmod(frame, directory)
        with Mount(self.source, "allow_other", mountpoint=self.mountpoint):
            for user in USERS:
                for name, _, _ in cases:
                    shown = as_user(user, lambda name=name: call(opened, f"{self.mountpoint}/{name}", os.O_RDONLY))
                    index = f"{self.source}/{name}.b2frame/chunks.b2frame"
                    stored = as_user(user, lambda index=index: call(opened, index, os.O_RDONLY))
                    self.assertEqual(shown, stored, f"{user}: {name}")


if __name__ == "__main__":
    users.main()
