"""The same call by the same user on the mount and on its source's like: links, directories, members of stores, bits.

As rights_mount.py, for what a call does to the entry itself and not to a file's content: symbolic links, directories, a
sticky directory, the bits that lend rights. A member of a store is compared with the file that holds its bytes.
What an ordinary user sees of files of its own is run by an ordinary user, too.
"""

import os
import shutil
import tempfile
import unittest
import zipfile

import mounting
from mounting import Mount, output
from rights_mount import ACL, CONTENT, RIGHTS
from stores_mount import embed_frame, plain_frame
from users import GROUP, OWNER, USERS, as_user, call, described

CAPABILITY = bytes.fromhex("0100000200040000" + "00" * 12)  # cap_net_bind_service=ep


def opened(path, flags, mode=0o666):
    os.close(os.open(path, flags, mode))


def written(path, flags=os.O_WRONLY):
    descriptor = os.open(path, flags)
    os.write(descriptor, b"C")
    os.close(descriptor)


def allocated(path):
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.posix_fallocate(descriptor, 0, 10_000)
    finally:
        os.close(descriptor)


def listed(path):
    return " ".join(sorted(name for name in os.listxattr(path, follow_symlinks=False) if name.startswith("user.")
                           and not name.startswith("user.blosc2.")))


def rights(path):
    return "".join(letter for letter, right in (("r", os.R_OK), ("w", os.W_OK), ("x", os.X_OK))
                   if os.access(path, right, effective_ids=True))


# On a link: on itself where the call can do so.
OF_LINKS = {
    "lchown": lambda path: os.chown(path, 3004, 3200, follow_symlinks=False),
    "lchown of the group": lambda path: os.chown(path, -1, GROUP, follow_symlinks=False),
    "utimensat": lambda path: os.utime(path, (1000, 2000), follow_symlinks=False),
    "utimensat of now": lambda path: os.utime(path, follow_symlinks=False),
    "lsetxattr": lambda path: os.setxattr(path, "user.colour", b"red", follow_symlinks=False),
    "lgetxattr": lambda path: os.getxattr(path, "user.shape", follow_symlinks=False).decode(),
    "lremovexattr": lambda path: os.removexattr(path, "user.shape", follow_symlinks=False),
    "llistxattr": listed,
    "readlink": os.readlink,
    "open": lambda path: opened(path, os.O_RDONLY),
    "open without following": lambda path: opened(path, os.O_RDONLY | os.O_NOFOLLOW),
    "truncate": lambda path: os.truncate(path, 3),
    "chmod": lambda path: os.chmod(path, 0o4751),
    "access": rights,
    "unlink": os.unlink,
    "rename": lambda path: os.rename(path, path + "-renamed"),
    "link": lambda path: os.link(path, path + "-second", follow_symlinks=False),
}
OF_DIRECTORIES = {
    "chmod": lambda path: os.chmod(path, 0o7751),
    "chgrp": lambda path: os.chown(path, -1, 3200),
    "chown": lambda path: os.chown(path, 3004, -1),
    "utime of then": lambda path: os.utime(path, (1000, 2000)),
    "utime of now": os.utime,
    "setxattr": lambda path: os.setxattr(path, "user.colour", b"red"),
    "getxattr": lambda path: os.getxattr(path, "user.shape").decode(),
    "removexattr": lambda path: os.removexattr(path, "user.shape"),
    "listxattr": listed,
    "set an ACL": lambda path: os.setxattr(path, "system.posix_acl_access", ACL),
    "set a default ACL": lambda path: os.setxattr(path, "system.posix_acl_default", ACL),
    "open": lambda path: opened(path, os.O_RDONLY | os.O_DIRECTORY),
    "open for writing": lambda path: opened(path, os.O_WRONLY),
    "truncate": lambda path: os.truncate(path, 3),
    "access": rights,
    "unlink": os.unlink,
    "rmdir": os.rmdir,
    "rename": lambda path: os.rename(path, path + "-renamed"),
}
OF_FILES = {
    "removexattr": lambda path: os.removexattr(path, "user.shape"),
    "listxattr": listed,
    "access": rights,
    "chmod with all bits": lambda path: os.chmod(path, 0o7777),
    "open to append": lambda path: written(path, os.O_WRONLY | os.O_APPEND),
    "open and cut": lambda path: written(path, os.O_WRONLY | os.O_TRUNC),
    "open by path": lambda path: opened(path, os.O_PATH),
    "create there": lambda path: opened(path, os.O_RDWR | os.O_CREAT),
    "create only": lambda path: opened(path, os.O_RDWR | os.O_CREAT | os.O_EXCL),
    "security.capability": lambda path: os.setxattr(path, "security.capability", CAPABILITY),
}
# What can be asked of a member of a store: the file that holds it answers, where it is not about changing it.
OF_MEMBERS = {
    "open": lambda path: opened(path, os.O_RDONLY),
    "read": lambda path: os.close(os.open(path, os.O_RDONLY)),
    "access": lambda path: "r" if os.access(path, os.R_OK) else "",
}
CHANGES_OF_MEMBERS = {
    "chmod": lambda path: os.chmod(path, 0o777),
    "chown": lambda path: os.chown(path, 3004, -1),
    "utime": lambda path: os.utime(path, (1, 1)),
    "truncate": lambda path: os.truncate(path, 1),
    "open for writing": lambda path: opened(path, os.O_RDWR),
    "setxattr": lambda path: os.setxattr(path, "user.colour", b"red"),
    "removexattr": lambda path: os.removexattr(path, "user.blosc2.info"),
    "unlink": os.unlink,
    "rename": lambda path: os.rename(path, path + "-renamed"),
}
DIRECTORIES = {"rwxrwxrwx": 0o777, "rwxrwxrwt": 0o1777, "rwxrwsrwx": 0o2777, "rwxr-xr-x": 0o755}


class Matrix(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="cframefs-test-", dir=mounting.fast_directory())
        self.addCleanup(work.cleanup)
        os.chmod(work.name, 0o755)
        self.source, self.plain, self.mountpoint = (work.name + name for name in ("/source", "/plain", "/mnt"))
        for directory in (self.source, self.plain, self.mountpoint):
            os.mkdir(directory)
            os.chmod(directory, 0o777 if directory != self.mountpoint else 0o755)
        with open(work.name + "/content", "wb") as file:
            file.write(CONTENT)
        self.content, self.frame = work.name + "/content", work.name + "/content.b2frame"
        output(mounting.CFRAME, "pack", self.content, self.frame)
        self.users = list(USERS) if os.geteuid() == 0 else [None]
        self.options = ("allow_other",) if os.geteuid() == 0 else ()

    def run_as(self, user, work):
        return as_user(user, work) if user else work()

    def give(self, path, mode=None, owner=OWNER, acl=""):
        if os.geteuid() == 0:
            os.chown(path, owner, GROUP, follow_symlinks=False)
        if mode is not None:
            os.chmod(path, mode)
        if acl and os.geteuid() == 0 and shutil.which("setfacl"):
            output("setfacl", "-n" if "m::" not in acl else "-m", *(["-m"] if "m::" not in acl else []), acl, path)

    def compare(self, calls, variants, make, suffix=""):
        """`make(path, variant, is_source)` makes what a call is tried on."""
        cases = [(user, variant, name, f"{user} {variant} {name}") for user in self.users for variant in variants
                 for name in calls]
        for _, variant, _, path in cases:
            make(f"{self.source}/{path}", variant, True)
            make(f"{self.plain}/{path}", variant, False)
        with Mount(self.source, *self.options, mountpoint=self.mountpoint):
            for user in self.users:
                mine = [(name, path) for who, _, name, path in cases if who == user]
                answers = [self.run_as(user, lambda root=root: [call(calls[name], f"{root}/{path}/x") for name, path in mine])
                           for root in (self.mountpoint, self.plain)]
                for (_, path), shown, plain in zip(mine, *answers):
                    self.assertEqual(shown, plain, path)
                    for name in ("", "/x", "/x-renamed", "/x-second"):
                        with_suffix = name + suffix if name in ("/x", "/x-renamed") else name
                        self.assertEqual(described(f"{self.source}/{path}{with_suffix}"),
                                         described(f"{self.plain}/{path}{name}"), path + name)

    def holder(self, path, mode):
        os.mkdir(path)
        self.give(path, mode)

    def test_links(self):
        # semantics: L1, A1
        def make(path, variant, _):
            self.holder(path, DIRECTORIES[variant])
            with open(path + "/y", "wb") as file:
                file.write(CONTENT)
            self.give(path + "/y", 0o644)
            os.symlink("y", path + "/x")
            self.give(path + "/x")

        self.compare(OF_LINKS, DIRECTORIES, make)

    def test_directories(self):
        def make(path, variant, _):
            self.holder(path, 0o1777)
            os.mkdir(path + "/x")
            os.setxattr(path + "/x", "user.shape", b"round")
            self.give(path + "/x", RIGHTS[variant][0] | 0o111, acl=RIGHTS[variant][1])

        self.compare(OF_DIRECTORIES, RIGHTS, make)

    def files(self, suffix):
        def make(path, variant, is_source):
            self.holder(path, 0o1777)
            name = path + "/x" + (suffix if is_source else "")
            shutil.copy(self.frame if suffix and is_source else self.content, name)
            os.setxattr(name, "user.shape", b"round")
            self.give(name, RIGHTS[variant][0], acl=RIGHTS[variant][1])

        self.compare(OF_FILES, RIGHTS, make, suffix)

    def test_plain_files(self):
        self.files("")

    def test_frames(self):
        # semantics: X1
        self.files(".b2frame")

    def bits(self, suffix):
        """What writers of whatever kind take from a file: set-user-id, set-group-id, capabilities."""
        variants = {f"{mode:o} {caps}": (mode, caps) for mode in (0o4777, 0o2777, 0o6777, 0o4666)
                    for caps in (False, True)}
        calls = {
            "write": written,
            "write for both": lambda path: written(path, os.O_RDWR),
            "truncate": lambda path: os.truncate(path, 2),
            "cut": lambda path: opened(path, os.O_WRONLY | os.O_TRUNC),
            "allocate": allocated,
            "chown": lambda path: os.chown(path, -1, os.getgid()),
        }

        def make(path, variant, is_source):
            mode, caps = variants[variant]
            self.holder(path, 0o777)
            name = path + "/x" + (suffix if is_source else "")
            shutil.copy(self.frame if suffix and is_source else self.content, name)
            self.give(name, mode)
            if caps and os.geteuid() == 0:
                os.setxattr(name, "security.capability", CAPABILITY)

        self.compare(calls, variants, make, suffix)
        for user in self.users:
            for variant in variants:
                for name in calls:
                    shown, plain = f"{self.source}/{user} {variant} {name}/x{suffix}", f"{self.plain}/{user} {variant} {name}/x"
                    self.assertEqual("security.capability" in os.listxattr(shown),
                                     "security.capability" in os.listxattr(plain), plain)

    def test_bits_of_plain_files(self):
        self.bits("")

    def test_bits_of_frames(self):
        # semantics: W8
        self.bits(".b2frame")

    def test_members_of_stores(self):
        # semantics: A4, G4
        frame = plain_frame(CONTENT)
        held = []  # (member on the mount, the file that holds it)
        for right, (mode, acl) in RIGHTS.items():
            # An ACL of the file is not one of what it holds. What the daemon may not read does not show as a store.
            if acl or (os.geteuid() != 0 and not mode & 0o400):
                continue
            zipped, embed, directory = (f"{self.source}/{right}.{kind}" for kind in ("b2z", "b2e", "b2d"))
            with zipfile.ZipFile(zipped, "w") as store:
                store.writestr("raw.b2f", frame)
                store.writestr("embed.b2e", embed_frame({}))
            os.mkdir(directory)
            for path in (embed, directory + "/embed.b2e"):
                with open(path, "wb") as file:
                    file.write(embed_frame({"/raw": frame}))
            with open(directory + "/own.b2f", "wb") as file:
                file.write(frame)
            self.give(directory, 0o755)
            for member, holder in (("b2z/raw", zipped), ("b2e/raw", embed), ("b2d/raw", directory + "/embed.b2e"),
                                   ("b2d/own", directory + "/own.b2f")):
                self.give(holder, mode)
                held.append((f"{self.mountpoint}/{right}.{member}", holder))
        before = [described(holder) for _, holder in held]
        with Mount(self.source, *self.options, mountpoint=self.mountpoint):
            for user in self.users:
                for member, holder in held:
                    for name, run in OF_MEMBERS.items():
                        shown, stored = (self.run_as(user, lambda path=path, run=run: call(run, path))
                                         for path in (member, holder))
                        self.assertEqual(shown, stored, f"{user}: {name} of {member}")
                    for name, run in CHANGES_OF_MEMBERS.items():
                        done = self.run_as(user, lambda run=run, member=member: call(run, member))
                        self.assertIn(done, ("EROFS", "EACCES", "EPERM"), f"{user}: {name} of {member}")
        self.assertEqual([described(holder) for _, holder in held], before)


if __name__ == "__main__":
    mounting.main()
