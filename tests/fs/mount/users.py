"""Users for tests that root runs: processes that act as them, and what the source says of what they leave."""

import errno
import json
import os
import stat
import sys
import tempfile

import mounting

OWNER, GROUP = 3001, 3100
# name: (user, group, further groups)
USERS = {
    "owner": (OWNER, GROUP, []),
    "member": (3002, GROUP, []),
    "supplementary": (3003, 3200, [GROUP]),
    "other": (3004, 3200, []),
    "acl-user": (3005, 3200, []),
    "acl-group": (3006, 3200, [3300]),
    "root": (0, 0, []),
}


def directories(test, *names):
    """New directories that every user may enter, gone with the test; the one that holds them comes first."""
    work = tempfile.TemporaryDirectory(prefix="cframefs-test-")
    test.addCleanup(work.cleanup)
    os.chmod(work.name, 0o755)
    paths = [f"{work.name}/{name}" for name in names]
    for path in paths:
        os.mkdir(path)
    return [work.name, *paths]


def call(function, *arguments):
    """The name of the error; "" if there was none. Of what answers with text that."""
    try:
        answer = function(*arguments)
        return answer if isinstance(answer, str) else ""
    except OSError as error:
        return errno.errorcode[error.errno]


def as_user(user, work):
    """What `work` answers when a process of that user does it."""
    number, group, groups = USERS[user]
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(groups)
            os.setresgid(group, group, group)
            os.setresuid(number, number, number)
            with os.fdopen(write, "w") as file:
                json.dump(work(), file)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        answer = json.load(file)
    os.waitpid(child, 0)
    return answer


def described(path):
    """What the source says of an entry."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    acl = []
    if not stat.S_ISLNK(status.st_mode):
        for name in ("system.posix_acl_access", "system.posix_acl_default"):
            try:
                acl.append(os.getxattr(path, name).hex())
            except OSError:
                acl.append("")
    return [oct(status.st_mode), status.st_uid, status.st_gid, acl]


def main():
    """mounting.main() of a program that root alone can run."""
    if os.geteuid() != 0:
        sys.stderr.write("skipped: only root can be all users\n")
        sys.exit(mounting.SKIPPED)
    mounting.main()
