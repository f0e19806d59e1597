"""What the latency benchmark reads, made in its directory: small files for those that ask, slow ones for each kind of load.

    small/ names/ cold/     20, 1,000 and 400 small frames
    block-N                 one block of --huge MiB, zlib
    large-N                 blocks of 32 MiB, zlib
    store-N.b2z             a store whose member is deflated: 128 MiB of a frame that is not packed
    copied                  512 MiB
    many-N/                 50,000 names of one frame
    chunks-N                1,000,000 chunks
    locked-N                a frame that another program has locked

Files of a kind are there for as long as it is measured: there are as many as programs, and some are large.
"""

import binascii
import contextlib
import fcntl
import os
import pathlib
import random
import shutil
import subprocess
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fs/mount"))
from stores_mount import embed_frame  # pylint: disable=wrong-import-position

MIB = 1 << 20
NAMES, COLD, SMALL = 1000, 400, 20
MANY = 50_000
CHUNKS, CHUNK = 1_000_000, 64
LARGE_MIB, LARGE_BLOCK_MIB = 128, 32
MEMBER_MIB = 128
COPIED_MIB = 512
PLAIN = ("--filter=none", "--typesize=1")


def digits(size: int) -> bytes:
    """Half as long when packed, and slow to unpack."""
    return binascii.hexlify(os.urandom(size // 2))


def words(mebibytes: int) -> list[bytes]:
    """A third as long when packed, or less."""
    chance = random.Random(1)
    known = [bytes(chance.choices(b"abcdefghijklmnop", k=chance.randint(3, 9))) + b" " for _ in range(64)]
    base = b"".join(chance.choices(known, k=MIB // 4))[:MIB]
    return [base[turn:] + base[:turn] for turn in (number * 7919 % MIB for number in range(mebibytes))]


class Data:
    def __init__(self, directory: pathlib.Path, cframe: str, huge_mib: int):
        self.directory, self.cframe, self.huge_mib = directory, cframe, huge_mib
        self.source = directory / "source"
        self.locks: list[int] = []

    def make_small(self) -> None:
        self.source.mkdir()
        first = self.pack([digits(MIB // 4)], "small/000", "--codec=zlib")
        tiny = self.pack([digits(4096)], "names/000", "--codec=lz4")
        for one, name, count in ((first, "small", SMALL), (first, "cold", COLD), (tiny, "names", NAMES)):
            (self.source / name).mkdir(exist_ok=True)
            for number in range(count):
                place = self.source / name / f"{number:03}.b2frame"
                if not place.exists():
                    shutil.copyfile(one, place)

    def pack(self, content: list[bytes], name: str, *options: str) -> pathlib.Path:
        out = self.source / f"{name}.b2frame"
        out.parent.mkdir(exist_ok=True)
        command = [self.cframe, "pack", *PLAIN, *options, "-", str(out)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as packer:
            for part in content:
                packer.stdin.write(part)
            packer.stdin.close()
        if packer.returncode != 0:
            raise OSError(f"cframe pack: exit status {packer.returncode}")
        return out

    @contextlib.contextmanager
    def of_kind(self, kind: str, count: int):
        """Returns the files for count programs."""
        make = {"block": self.make_blocks, "sequential": self.make_large, "member": self.make_stores,
                "copy": self.make_copied, "readdir": self.make_many, "chunks": self.make_chunks,
                "lock": self.make_locked}.get(kind)
        try:
            if make:
                make(count)
            yield
        finally:
            self.remove()

    def remove(self) -> None:
        for lock in self.locks:
            os.close(lock)
        self.locks.clear()
        for path in self.source.iterdir():
            if path.name in ("small", "names", "cold"):
                continue
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def copies(self, first: pathlib.Path, count: int) -> None:
        for number in range(1, count):
            shutil.copyfile(first, first.with_name(first.name.replace("-0", f"-{number}")))

    def make_blocks(self, count: int) -> None:
        size = f"{self.huge_mib}M"
        content = [digits(MIB) for _ in range(self.huge_mib)]
        self.copies(self.pack(content, "block-0", "--codec=zlib", "--clevel=1", f"--chunksize={size}",
                              f"--blocksize={size}"), count)

    def make_large(self, count: int) -> None:
        size = f"{LARGE_BLOCK_MIB}M"
        content = [digits(MIB) for _ in range(LARGE_MIB)]
        self.copies(self.pack(content, "large-0", "--codec=zlib", "--clevel=1", f"--chunksize={size}",
                              f"--blocksize={size}"), count)

    def make_stores(self, count: int) -> None:
        member = self.pack(words(MEMBER_MIB), "member", "--clevel=0")
        first = self.source / "store-0.b2z"
        with zipfile.ZipFile(first, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as store:
            store.write(member, "member.b2f")
            store.writestr("embed.b2e", embed_frame({}))
        member.unlink()
        self.copies(first, count)

    def make_copied(self, _count: int) -> None:
        self.pack(words(COPIED_MIB), "copied", "--codec=zstd", "--clevel=1")

    def make_many(self, count: int) -> None:
        for directory in range(count):
            (self.source / f"many-{directory}").mkdir()
            # One file for each directory: a file may have no more names than that on some filesystems.
            one = self.source / f"names/{directory:03}.b2frame"
            for number in range(MANY):
                os.link(one, self.source / f"many-{directory}/{number:05}.b2frame")

    def make_chunks(self, count: int) -> None:
        content = [os.urandom(CHUNKS * CHUNK // 64) for _ in range(64)]
        self.copies(self.pack(content, "chunks-0", "--codec=lz4", f"--chunksize={CHUNK}", f"--blocksize={CHUNK}"), count)

    def make_locked(self, count: int) -> None:
        for number in range(count):
            path = self.pack([b"locked\n"], f"locked-{number}")
            self.locks.append(os.open(path, os.O_RDONLY))
            fcntl.flock(self.locks[-1], fcntl.LOCK_EX)
