"""Servers that present the benchmark's file, and how they are mounted, watched and stopped.

A Subject says what is served and with what; Mounted starts it afresh, in the foreground, and ends it again. Nothing
here measures. Sizes are bytes unless a name says otherwise.
"""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import time

START_TIMEOUT = 30.0  # seconds until a server must serve
STOP_TIMEOUT = 10.0


class BenchError(Exception):
    """A server that did not start or a measurement that failed."""


@dataclasses.dataclass(frozen=True)
class Subject:
    """One line of the table.

    command: the server's command line with "{mount}" where the mount point goes; none: `backing` itself is measured.
    file: the presented file, relative to the mount point. backing: what must be on disk, and is kept in the page cache.
    kernel: the file system that the kernel must know, mounted by mount(8).
    """

    label: str
    command: tuple[str, ...]
    file: str
    backing: pathlib.Path
    kernel: str = ""
    program: str = "-"  # besides the server, what measures; empty: not at hand
    read_ahead_kb: int = 0  # set on the mount after it serves; 0: left as it comes

    def missing(self) -> str:
        """Why this subject cannot be measured here; empty if it can."""
        if not self.program:
            return "no program was given that decodes with it (--reference)"
        if not self.backing.exists():
            return f"no {self.backing.name} in the data directory"
        if self.kernel and os.geteuid() != 0:
            return "kernel mounts need root"
        if self.kernel and self.kernel not in known_file_systems():
            return f"this kernel has no {self.kernel}"
        if self.command and shutil.which(self.command[0]) is None:
            return f"{self.command[0]} is not installed or not built"
        return ""


def bdi_path(mount_point: pathlib.Path) -> pathlib.Path:
    device = os.stat(mount_point).st_dev
    return pathlib.Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")


class Mounted:
    """Context manager: the subject mounted on an empty directory."""

    def __init__(self, subject: Subject, mount_point: pathlib.Path):
        self.subject = subject
        self.mount_point = mount_point
        self.process: subprocess.Popen | None = None
        self.log = mount_point.with_suffix(".log")

    def __enter__(self) -> "Mounted":
        if not self.subject.command:
            return self
        self.mount_point.mkdir(parents=True, exist_ok=True)
        command = [word.replace("{mount}", str(self.mount_point)) for word in self.subject.command]
        with open(self.log, "wb") as log:
            if self.subject.kernel:
                if subprocess.run(command, stdout=log, stderr=log, check=False).returncode != 0:
                    raise BenchError(f"{self.subject.label}: {self.last_words()}")
            else:
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.wait_until_served()
            if self.subject.read_ahead_kb and os.access(bdi_path(self.mount_point), os.W_OK):
                bdi_path(self.mount_point).write_text(str(self.subject.read_ahead_kb), encoding="ascii")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_exception) -> None:
        self.stop()

    @property
    def file(self) -> pathlib.Path:
        return self.mount_point / self.subject.file if self.subject.command else self.subject.backing

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "ended without a word"

    def wait_until_served(self) -> None:
        end = time.monotonic() + START_TIMEOUT
        while not os.path.ismount(self.mount_point):
            if self.process and self.process.poll() is not None:
                raise BenchError(f"{self.subject.label}: {self.last_words()}")
            if time.monotonic() > end:
                raise BenchError(f"{self.subject.label}: does not serve after {START_TIMEOUT:.0f} s")
            time.sleep(0.01)
        if not self.file.exists():
            raise BenchError(f"{self.subject.label}: shows no {self.subject.file}")

    def stop(self) -> None:
        if not self.subject.command:
            return
        unmount = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
        end = time.monotonic() + STOP_TIMEOUT
        while os.path.ismount(self.mount_point):
            done = subprocess.run([*unmount, str(self.mount_point)], stderr=subprocess.DEVNULL, check=False)
            if done.returncode != 0:
                if time.monotonic() > end:
                    raise BenchError(f"{self.subject.label}: cannot be unmounted")
                time.sleep(0.05)
        if self.process:
            try:
                self.process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise BenchError(f"{self.subject.label}: did not end after it was unmounted") from None


@dataclasses.dataclass(frozen=True)
class Programs:
    floor: str
    client: str
    cframefs: str
    reference: str


OUR_FRAMES = {  # label -> frame
    "cframefs lz4": "a-lz4-1m",
    "cframefs zstd": "a-zstd5-1m",
    "cframefs zlib": "a-zlib-1m",
}
IMAGES = {  # name in labels -> (file system, image)
    "lz4 1M": ("squashfs", "a-lz4-1m.sqfs"),
    "lz4 128K": ("squashfs", "a-lz4-128k.sqfs"),
    "zstd 1M": ("squashfs", "a-zstd5-1m.sqfs"),
    "zstd 128K": ("squashfs", "a-zstd5-128k.sqfs"),
    "lz4 64K": ("erofs", "a-lz4.erofs"),
}


def known_file_systems() -> set[str]:
    with open("/proc/filesystems", encoding="ascii") as file:
        return {line.split()[-1] for line in file if line.split()}


def our_mount(programs: Programs, label: str, shown: pathlib.Path, options: str = "") -> Subject:
    """The directory of `shown` mounted with names as they are, so that what else lies there does no harm."""
    words = ("-o", ",".join(filter(None, ("ro", "names=keep", options))))
    return Subject(label, (programs.cframefs, "-f", *words, str(shown.parent), "{mount}"), shown.name, shown)


def floor_mount(programs: Programs, label: str, raw: pathlib.Path, read_ahead_kb: int, *options: str,
                shown: str = "data") -> Subject:
    return Subject(label, (programs.floor, f"--file={raw}", *options, "{mount}"), shown, raw,
                   read_ahead_kb=read_ahead_kb)


def plain_directory(label: str, directory: pathlib.Path) -> Subject:
    """No server at all: the directory itself."""
    return Subject(label, (), "", directory)


def reading_subjects(programs: Programs, data: pathlib.Path, floor_read_ahead_kb: int) -> dict[str, Subject]:
    """Every way in which a.f32 is presented, by label."""
    subjects = [floor_mount(programs, "floor", data / "a.f32", floor_read_ahead_kb)]
    subjects += [our_mount(programs, label, data / f"{frame}.b2frame") for label, frame in OUR_FRAMES.items()]
    for name, (kind, image_name) in IMAGES.items():
        image = data / image_name
        if kind == "squashfs":
            command = ("squashfuse_ll", "-f", str(image), "{mount}")
            subjects.append(Subject(f"squashfuse_ll {name}", command, "a.f32", image))
        command = ("mount", "-t", kind, "-o", "loop,ro", str(image), "{mount}")
        subjects.append(Subject(f"kernel {kind} {name}", command, "a.f32", image, kernel=kind))
    return {subject.label: subject for subject in subjects}
