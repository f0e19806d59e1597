"""What the suite measures, section by section: each a list of (subject, measurement).

A measurement is called with a fresh server whose backing file is in the page cache, and returns {metric: value}. All
pairs of a run are shuffled together; nothing here runs anything by itself.
"""

import random

from bench_data import DIRECTORY_FILES, PARTS, ZEROS
from bench_servers import Mounted, Subject, floor_mount, our_mount, plain_directory

CAT = "cold cat MB/s"
WARM = "warm MB/s"
WARM_REQUESTS = "requests of a warm read"
CPU = "server CPU s"
CAT_PEAK = "server peak MiB"
DD_1M = "cold dd bs=1M MB/s"
DD_128K = "cold dd bs=128K MB/s"
MMAP = "cold mmap MB/s"
IN_PROCESS = "in process, 1 thread MB/s"
FIRST_BYTE = "open + first byte µs"
MIDDLE_BYTE = "open + byte in the middle µs"
RANDOM_4K = "random 4K in it ops/s"
INDEX_MEMORY = "peak above start MiB"
STAT_COLD = "list and stat, cold files/s"
STAT_WARM = "stat, warm files/s"
OPEN_WARM = "open and close files/s"
TOGETHER = "all readers MB/s"

LZ4, ZSTD, ZLIB, FLOOR = "cframefs lz4", "cframefs zstd", "cframefs zlib", "floor"
REFERENCE_ZLIB = "reference library zlib"
PLAIN_DIRECTORY = "plain directory"
OUR_DIRECTORY = "cframefs, a directory of frames"
OUR_DIRECTORY_CACHED = "cframefs attr_timeout=60,entry_timeout=60"
FLOOR_DIRECTORY = "floor, a directory"
CACHE_SIZES_MIB = (64, 256)
MEMORY_READERS = 8
DETAILED = ("floor", "cframefs lz4", "cframefs zstd", "squashfuse_ll lz4 1M", "kernel squashfs lz4 1M")


def random_metric(block: str, jobs: int) -> str:
    return f"random {block}, {jobs} {'job' if jobs == 1 else 'jobs'} ops/s"


def chunks_label(chunks: str) -> str:
    return f"cframefs, {chunks} chunks"


def readers_label(server: str, parts: int) -> str:
    return f"{server}, {parts} {'file' if parts == 1 else 'files'}"


def memory_label(size_mib: int) -> str:
    return f"cframefs zstd 16M, cache_size={size_mib}M"


def memory_metric(pattern: str) -> str:
    return f"{pattern}, peak above cache_size MiB"


def sequential(bench) -> list[tuple]:
    """1 GiB from beginning to end, cold and warm."""
    def cat(mounted: Mounted) -> dict:
        bench.prewarm(mounted.file.stat().st_size)
        cold = bench.client("cat", mounted.file, pid=mounted.pid)
        warm = bench.client("sequential", mounted.file, pid=mounted.pid)
        result = {CAT: cold["MBps"], WARM: warm["MBps"]}
        if mounted.pid:
            result.update({CPU: cold["server_cpu_s"], WARM_REQUESTS: warm["server_requests"],
                           CAT_PEAK: warm["server_peak_mib"]})
        return result

    def in_order(metric: str, command: str, *words: str):
        def measure(mounted: Mounted) -> dict:
            bench.prewarm(mounted.file.stat().st_size)
            return {metric: bench.client(command, mounted.file, *words)["MBps"]}
        return measure

    def in_process(_mounted: Mounted) -> dict:
        return {IN_PROCESS: bench.reference_rate(bench.data / "a-zlib-1m.b2frame")}

    subjects = bench.reading_subjects()
    plan = [(subject, cat) for subject in subjects.values()]
    for label in DETAILED:
        plan += [(subjects[label], in_order(DD_1M, "sequential", "--block=1M")),
                 (subjects[label], in_order(DD_128K, "sequential", "--block=128K")),
                 (subjects[label], in_order(MMAP, "mmap"))]
    reference = Subject(REFERENCE_ZLIB, (), "", bench.data / "a-zlib-1m.b2frame", program=bench.programs.reference)
    return [*plan, (reference, in_process)]


def random_reads(bench) -> list[tuple]:
    """Reads at random places of 1 GiB, for a second."""
    def at_random(block: str, jobs: int):
        metric = random_metric(block, jobs)
        stem = metric.removesuffix(" ops/s")

        def measure(mounted: Mounted) -> dict:
            got = bench.client("random", mounted.file, f"--block={block}", f"--jobs={jobs}",
                               f"--seed={random.randrange(1, 1 << 20)}", f"--seconds={bench.arguments.seconds}")
            return {metric: got["ops"], f"{stem} p99 µs": got["p99_us"]}
        return measure

    subjects = bench.reading_subjects()
    del subjects[ZLIB]
    plan = [(subject, at_random("4K", jobs)) for subject in subjects.values() for jobs in (1, 4)]
    large = [subject for label, subject in subjects.items() if label in (LZ4, ZSTD, FLOOR) or "ll lz4 128K" in label]
    return plan + [(subject, at_random("64K", jobs)) for subject in large for jobs in (1, 4)]


def first_byte(bench) -> list[tuple]:
    """Frames of few and many chunks. Another frame is read first: starting up is not opening."""
    def measure(mounted: Mounted) -> dict:
        other = mounted.mount_point / "a-lz4-1m.b2frame"
        bench.client("open", other, "--offset=500M")
        before = bench.client("open", other, pid=mounted.pid)["server_resident_mib"]
        result = {FIRST_BYTE: bench.client("open", mounted.file)["first_byte_us"]}
        result[RANDOM_4K] = bench.client("random", mounted.file, "--seconds=0.3")["ops"]
        peak = bench.client("open", other, pid=mounted.pid)["server_peak_mib"]
        # What a bounded cache of decoded blocks takes is no cost of the index: it is bounded to the least here.
        return {**result, INDEX_MEMORY: peak - before}

    def middle(mounted: Mounted) -> dict:
        bench.client("open", mounted.mount_point / "a-lz4-1m.b2frame")
        half = mounted.file.stat().st_size // 2
        return {MIDDLE_BYTE: bench.client("open", mounted.file, f"--offset={half}")["first_byte_us"]}

    plan = []
    for chunks, name in (("1,000", "many-1k"), ("100,000", "many-100k"), ("1,000,000", "many-1m"),
                         *((f"zeros, {size}", f"zeros-{size}") for size in ZEROS)):
        subject = our_mount(bench.programs, chunks_label(chunks), bench.data / f"{name}.b2frame", "cache_size=1M")
        plan += [(subject, measure)] * 3 + [(subject, middle)] * 2
    return plan


def directories(bench) -> list[tuple]:
    """Listing, stat and open of many small files; the mount beside the directory itself and the floor."""
    def walk(mounted: Mounted) -> dict:
        at = mounted.file if mounted.file.is_dir() else mounted.mount_point
        cold = bench.client("walk", at)
        return {STAT_COLD: cold["ops"], STAT_WARM: bench.client("stat", at)["ops"],
                OPEN_WARM: bench.client("open-all", at)["ops"]}

    directory = bench.data / "directory"
    first = directory / "000000.b2frame"
    floor = floor_mount(bench.programs, FLOOR_DIRECTORY, bench.data / "a.f32", 0, f"--many={DIRECTORY_FILES}", shown="many")
    subjects = [our_mount(bench.programs, OUR_DIRECTORY, first),
                our_mount(bench.programs, OUR_DIRECTORY_CACHED, first, "attr_timeout=60,entry_timeout=60"),
                plain_directory(PLAIN_DIRECTORY, directory), floor]
    return [(subject, walk) for subject in subjects]


def readers(bench) -> list[tuple]:
    """One file read by one reader, two by two, 64 by 64."""
    def together(directory: str, count: int):
        def measure(mounted: Mounted) -> dict:
            at = mounted.mount_point / directory
            names = sorted(path for path in at.iterdir() if path.is_file())[:count]
            bench.prewarm(sum(path.stat().st_size for path in names))
            return {TOGETHER: bench.client("together", *names)["MBps"]}
        return measure

    plan = []
    read_ahead_kb = bench.our_read_ahead_kb()
    for count, parts in ((1, 2), *((parts, parts) for parts in PARTS)):
        first = bench.data / f"parts-{parts}" / "00.b2frame"
        plan.append((our_mount(bench.programs, readers_label(LZ4, count), first), together("", count)))
        floor = floor_mount(bench.programs, readers_label(FLOOR, count), bench.data / "a.f32", read_ahead_kb,
                            f"--parts={parts}", shown="parts/0")
        plan.append((floor, together("parts", count)))
    return plan


def memory(bench) -> list[tuple]:
    """Peak memory of the daemon, each pattern on a daemon of its own."""
    plan = []
    for size in CACHE_SIZES_MIB:
        subject = our_mount(bench.programs, memory_label(size), bench.data / "a-zstd5-16m.b2frame",
                            f"cache_size={size}M")

        def in_order(mounted: Mounted, size=size) -> dict:
            got = bench.client("sequential", mounted.file, f"--jobs={MEMORY_READERS}", pid=mounted.pid)
            return {memory_metric("sequential"): got["server_peak_mib"] - size}

        def scattered(mounted: Mounted, size=size) -> dict:
            got = bench.client("random", mounted.file, "--block=64K", f"--jobs={MEMORY_READERS}", "--seconds=1.5",
                               pid=mounted.pid)
            return {memory_metric("random"): got["server_peak_mib"] - size}

        plan += [(subject, in_order), (subject, scattered)]
    return plan


# name -> (what makes the plan, groups of data that it needs)
SECTIONS = {
    "sequential": (sequential, set()),
    "random": (random_reads, set()),
    "first-byte": (first_byte, {"many", "zeros"}),
    "directories": (directories, {"directory"}),
    "readers": (readers, {"parts"}),
    "memory": (memory, set()),
}
