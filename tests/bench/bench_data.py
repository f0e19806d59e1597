"""The files that the suite measures with, made where they are missing.

Everything comes from the suite's own generator and from programs of this system: our `cframe pack`, mksquashfs,
mkfs.erofs. What a program is missing for, or fails at, is not made, and the subjects that need it are reported as
skipped. A file is written under another name and renamed, so that a broken-off run leaves nothing half made.

    a.f32                                   1 GiB of float32: waves with noise
    a-lz4-1m.b2frame …                      frames of it, shuffle, chunks of 1 MiB (-16m: of 16 MiB)
    a-lz4-1m.sqfs … a-lz4.erofs             images with a.f32 in them
    many-1k.b2frame many-100k… many-1m…     frames of as many chunks of 4 KiB
    parts-2/ parts-64/                      a.f32 in that many frames
    directory/                              100,000 small frames
    zeros-1g.b2frame … zeros-8t.b2frame     frames of chunks of zeros, but for one
"""

import os
import pathlib
import shutil
import subprocess
import sys
import time

GIB = 1 << 30
SIZE = GIB
MANY = {"1k": 1_000, "100k": 100_000, "1m": 1_000_000}
MANY_CHUNK = 4096
PARTS = (2, 64)
DIRECTORY_FILES = 100_000
ZEROS = {"1g": GIB, "1t": 1 << 40, "8t": 8 << 40}
FRAMES = {  # name -> options of cframe pack
    "a-lz4-1m": ("--codec=lz4", "--chunksize=1M"),
    "a-zstd5-1m": ("--codec=zstd", "--chunksize=1M"),
    "a-zlib-1m": ("--codec=zlib", "--chunksize=1M"),
    "a-zstd5-16m": ("--codec=zstd", "--chunksize=16M"),
}
SHUFFLED = ("--clevel=5", "--filter=shuffle", "--typesize=4")
IMAGES = {  # name -> command; {raw} is a directory with a.f32 in it, {out} the image
    "a-lz4-1m.sqfs": ("mksquashfs", "{raw}", "{out}", "-comp", "lz4", "-b", "1M"),
    "a-lz4-128k.sqfs": ("mksquashfs", "{raw}", "{out}", "-comp", "lz4", "-b", "128K"),
    "a-zstd5-1m.sqfs": ("mksquashfs", "{raw}", "{out}", "-comp", "zstd", "-Xcompression-level", "5", "-b", "1M"),
    "a-zstd5-128k.sqfs": ("mksquashfs", "{raw}", "{out}", "-comp", "zstd", "-Xcompression-level", "5", "-b", "128K"),
    "a-lz4.erofs": ("mkfs.erofs", "-zlz4", "-C65536", "{out}", "{raw}"),
}


class Data:
    """Makes files in one directory."""

    def __init__(self, directory: pathlib.Path, client: str, cframe: str, cframefs: str):
        self.directory = directory
        self.client = client
        self.cframe = cframe
        self.cframefs = cframefs

    def make(self, groups: set[str]) -> None:
        """`groups`: of "files", "many", "parts", "directory", "zeros"; "files" always come."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._make("a.f32", lambda out: self._run(self.client, "generate", out, f"--size={SIZE}"))
        for name, options in FRAMES.items():
            self._make(f"{name}.b2frame",
                       lambda out, options=options: self._pack(self.directory / "a.f32", out, *SHUFFLED, *options))
        for name, command in IMAGES.items():
            if shutil.which(command[0]):
                self._make(name, lambda out, command=command: self._make_image(command, out))
        makers = {"many": self._make_many, "parts": self._make_parts, "directory": self._make_directory,
                  "zeros": self._make_zeros}
        for group, maker in makers.items():
            if group in groups:
                maker()

    def _make_many(self) -> None:
        for name, count in MANY.items():
            def pack(out: pathlib.Path, count=count) -> None:
                words = ("--codec=lz4", *SHUFFLED, f"--chunksize={MANY_CHUNK}")
                with subprocess.Popen([self.client, "generate", "-", f"--size={count * MANY_CHUNK}", "--kind=count"],
                                      stdout=subprocess.PIPE) as source:
                    self._pack("-", out, *words, stdin=source.stdout)
                if source.returncode != 0:
                    raise OSError("the generator failed")
            self._make(f"many-{name}.b2frame", pack)

    def _make_parts(self) -> None:
        for parts in PARTS:
            directory = self.directory / f"parts-{parts}"
            directory.mkdir(exist_ok=True)
            for part in range(parts):
                def pack(out: pathlib.Path, part=part, parts=parts) -> None:
                    slice_of = out.with_suffix(".slice")
                    with open(self.directory / "a.f32", "rb") as raw, open(slice_of, "wb") as piece:
                        os.sendfile(piece.fileno(), raw.fileno(), part * (SIZE // parts), SIZE // parts)
                    self._pack(slice_of, out, *SHUFFLED, *FRAMES["a-lz4-1m"])
                    slice_of.unlink()
                self._make(f"parts-{parts}/{part:02}.b2frame", pack)

    def _make_directory(self) -> None:
        def fill(out: pathlib.Path) -> None:
            out.mkdir()
            small = out / "000000.b2frame"
            piece = out / "piece"
            with open(self.directory / "a.f32", "rb") as raw:
                piece.write_bytes(raw.read(MANY_CHUNK))
            self._pack(piece, small, *SHUFFLED, "--codec=lz4")
            piece.unlink()
            bytes_of_one = small.read_bytes()
            for number in range(1, DIRECTORY_FILES):
                (out / f"{number:06}.b2frame").write_bytes(bytes_of_one)
        self._make("directory", fill)

    def _make_zeros(self) -> None:
        """Through a mount: a hole makes chunks of zeros, and one write in the middle a chunk that is none."""
        def grow(out: pathlib.Path, size: int) -> None:
            source, mount = out.with_suffix(".d"), out.with_suffix(".mnt")
            source.mkdir()
            mount.mkdir()
            words = ["-f", "-o", "codec=lz4,typesize=4,chunksize=1M,stats=on", str(source), str(mount)]
            with subprocess.Popen([self.cframefs, *words]) as server:
                try:
                    while not os.path.ismount(mount):
                        if server.poll() is not None:
                            raise OSError("cframefs ended")
                        time.sleep(0.01)
                    with open(mount / "zeros", "xb") as file:
                        os.truncate(file.fileno(), size)
                        os.pwrite(file.fileno(), bytes(range(256)) * 16, size // 2)
                finally:
                    server.terminate()
            os.rename(source / "zeros.b2frame", out)
            source.rmdir()
            mount.rmdir()
        for name, size in ZEROS.items():
            self._make(f"zeros-{name}.b2frame", lambda out, size=size: grow(out, size))

    def _make_image(self, command: tuple[str, ...], out: pathlib.Path) -> None:
        raw = out.with_suffix(".d")
        raw.mkdir()
        try:
            # A directory of its own, so that the image holds nothing else; a link, for a copy would take a gigabyte.
            os.link(self.directory / "a.f32", raw / "a.f32")
            self._run(*(word.format(raw=raw, out=out) for word in command))
        finally:
            shutil.rmtree(raw)

    def _pack(self, source: pathlib.Path | str, out: pathlib.Path, *options: str, stdin=None) -> None:
        self._run(self.cframe, "pack", *options, source, out, stdin=stdin)

    @staticmethod
    def _run(*words: object, stdin=None) -> None:
        done = subprocess.run([str(word) for word in words], stdin=stdin, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise OSError(f"{words[0]}: {done.stderr.strip()}")

    def _make(self, name: str, how) -> None:
        place = self.directory / name
        if place.exists():
            return
        begin = time.monotonic()
        unfinished = place.with_name(f"unfinished-{place.name}")
        if unfinished.is_dir():
            shutil.rmtree(unfinished)
        else:
            unfinished.unlink(missing_ok=True)
        try:
            how(unfinished)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{name} cannot be made: {error}", file=sys.stderr)
            return
        os.rename(unfinished, place)
        print(f"made {name} in {time.monotonic() - begin:.1f} s", flush=True)
